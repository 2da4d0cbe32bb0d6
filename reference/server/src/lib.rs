//! The reference server: a thin HTTP host around the simulated world.
//!
//! Owns sockets, the operating system's clock, the bounds on what a client may send, and who may use
//! `/sandbox`. Holds no rule of the payment service: a request under `/v1` or `/sandbox` is handed to the
//! world as it came, and the world's answer goes back as it is.
//!
//! ```text
//! server ── listen ── connection ── router ─┬── pages ──┐
//!           slots     hyper, time   routes  ├── mcp ────┼── backend ── host ── World: respond, advance_to, …
//!                     limits          │     └── gate    │              │
//!                                     │                 │              ├── clock   reads the system's clock
//!                                   worlds              │              └── sender  posts deliveries
//!                     whose backend it is               │
//!                                       what all share ─┘
//! ```
//!
//! What hyper answers by itself (400 for bytes that are no HTTP, 414, 431 for a head that is too large) has
//! an empty body; every other answer is JSON, or plain text under `/metrics`.

mod activity;
mod address;
mod answer;
mod backend;
mod body;
mod clock;
mod compression;
mod config;
mod connection;
mod descriptors;
mod forwards;
mod gate;
mod host;
mod in_flight;
mod journal;
mod listen;
mod local;
mod log;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod metrics;
mod openapi;
mod pages;
mod redaction;
mod refusal;
mod router;
mod sender;
mod server;
mod snapshots;
mod tls;
mod world;
mod worlds;

pub use clock::ClockKind;
pub use config::{Bounds, Config, Data, McpClock, SandboxAccess};
pub use forwards::Forwarded;
pub use journal::WORLD_FILE_MAX;
pub use local::{Local, LocalWorld};
pub use log::{LogEntry, LogSink, RequestRecord};
pub use sender::{
    Forward, ForwardError, LocalHandler, Resolve, Resolved, SenderBounds, SenderConfig, SystemResolver,
};
pub use server::Server;
pub use simulator::sandbox::Reach;
pub use tls::TlsIdentity;
pub use world::{RequestHead, RestoreKind, World};
pub use worlds::{LostWorld, Openings};
