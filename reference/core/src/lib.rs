//! The crypto payment service as one pure state machine.
//!
//! No clock, no socket, no file, no dice: `now` and the seed are arguments. If you look for "now",
//! look at who called.

pub mod account;
pub mod asset;
pub mod book;
pub mod business;
pub mod call;
pub mod charge;
pub mod command;
pub mod dialect;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod exchange;
pub mod heights;
pub mod id;
pub mod invoice;
pub mod key;
pub mod limit;
pub mod link;
pub mod mail;
pub mod mode;
pub mod money;
pub mod outbox;
pub mod page;
pub mod rng;
pub mod service;
pub mod shared;
pub mod sighting;
pub mod signature;
pub mod status_index;
pub mod time;
pub mod wallet;
