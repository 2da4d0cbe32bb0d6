//! Simulates everything around the payment service: chains, time, customers, merchants and the network. Scenarios
//! ([`play`]) and random worlds ([`sweep`]) run in it, and the [`invariant`]s check what the service did.
//!
//! All results are pure functions of a seed and the calls. The crate must not read a clock, a socket or a file.

pub mod api;
pub mod chain;
pub mod demo;
pub mod digest;
pub mod exhaust;
pub mod invariant;
pub mod model;
pub mod network;
pub mod picture;
pub mod play;
mod printable;
pub mod record;
pub mod sandbox;
pub mod script;
pub mod shrink;
pub mod sweep;
pub mod tamper;
pub mod transcript;
pub mod value;
pub mod workload;
