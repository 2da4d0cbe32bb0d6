//! The reference server: a thin HTTP host around the simulated world.
//!
//! Owns sockets, the operating system's clock, the bounds on what a client may send, and who may use
//! `/sandbox`. Holds no rule of the payment service: a request under `/v1` or `/sandbox` is handed to the
//! world as it came, and the world's answer goes back as it is.
//!
//! ```text
//! listen ── connection ── front ──┬── gate        may this caller use /sandbox?
//! sockets   hyper, time   routes  ├── body        the bounded body
//!           limits                ├── mcp         the same calls as tools
//!                                 └── host ────── World: respond, advance_to, take_outgoing, on_landing
//!                           pages ─────┤
//!                           HTML, live ├── clock    the only reader of the operating system's clock
//!                                      └── courier  posts deliveries over the real network
//! ```
//!
//! What hyper answers by itself (400 for bytes that are no HTTP, 414, 431 for a head that is too large) has
//! an empty body; every other answer is JSON, or plain text under `/metrics`.

mod address;
mod answer;
mod body;
mod clock;
mod config;
mod connection;
mod courier;
mod front;
mod gate;
mod host;
mod listen;
mod local;
#[cfg(feature = "mcp")]
mod mcp;
mod metrics;
mod openapi;
mod pages;
mod refusal;
mod server;
mod world;

pub use clock::ClockKind;
pub use config::{Bounds, Config};
pub use courier::{CourierBounds, CourierConfig, Forward, Resolve, Resolved, SystemResolver};
pub use local::Local;
pub use server::Server;
pub use simulator::sandbox::Reach;
pub use world::World;
