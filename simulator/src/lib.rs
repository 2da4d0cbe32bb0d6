//! The simulated world around the payment service: chains, clock, merchants, scenarios.
//!
//! Everything here is a pure function of a seed and of what was asked for. No clock, no socket, no file.

pub mod api;
pub mod chain;
pub mod demo;
pub mod digest;
pub mod exhaust;
pub mod law;
pub mod model;
pub mod network;
pub mod picture;
pub mod play;
mod printable;
pub mod sandbox;
pub mod script;
pub mod shrink;
pub mod sweep;
pub mod tamper;
pub mod transcript;
pub mod witness;
pub mod workload;
