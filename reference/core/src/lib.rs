//! The crypto payment service as one pure state machine.
//!
//! No clock, no socket, no file, no dice: `now` and the seed are arguments. If you look for "now",
//! look at who called.

pub mod account;
pub mod action;
pub mod asset;
pub mod book;
pub mod call;
pub mod charge;
pub mod dialect;
pub mod draw;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod exchange;
pub mod id;
pub mod idempotency;
pub mod invoice;
pub mod key;
pub mod limit;
pub mod link;
pub mod mail;
pub mod mode;
pub mod money;
pub mod outbox;
pub mod page;
pub mod service;
pub mod shelf;
pub mod short;
pub mod sighting;
pub mod signature;
pub mod time;
pub mod wallet;
pub mod wire;
