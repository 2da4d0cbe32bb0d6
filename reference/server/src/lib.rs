//! The reference server: a thin HTTP host around the simulated world.
//!
//! Contains the sockets, the operating system's clock, the limits on clients, and the access control of `/sandbox`.
//! Contains no rule of the payment service: requests under `/v1` and `/sandbox` are passed to the world unchanged, and
//! so are its responses.
//!
//! ```text
//! server ── listen ── connection ── router ─┬── pages ───────────┐
//!           slots     hyper, time   routes  ├── mcp ─────────────┼── backend ── host ── World: respond, advance_to, …
//!                     limits          │     └── sandbox_access   │              │
//!                                     │                          │              ├── clock   reads the system's clock
//!                                   worlds                       │              └── sender  sends webhook deliveries
//!                        select a backend                        │
//!                                         shared state ──────────┘
//! ```
//!
//! Responses that hyper makes itself (400 for bytes that are not HTTP, 414, and 431 for an oversized head) have an
//! empty body. All other responses of the API are JSON; `/metrics` is plain text, and pages are HTML.

mod activity;
mod address;
mod backend;
mod body;
mod clock;
mod compression;
mod config;
mod connection;
mod descriptors;
mod forwards;
mod host;
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
mod response;
mod response_budget;
mod router;
mod sandbox_access;
mod sender;
mod server;
mod snapshots;
mod tls;
mod world;
mod worlds;

pub use clock::ClockKind;
pub use config::{Bounds, Config, McpClockAccess, SandboxAccess, StorageConfig};
pub use forwards::ForwardRecord;
pub use journal::WORLD_FILE_MAX;
pub use local::{Local, LocalWorld};
pub use log::{LogEntry, LogSink, RequestRecord};
pub use sender::{
    Forward, ForwardError, LocalHandler, Resolve, ResolveFuture, SenderBounds, SenderConfig, SystemResolver,
};
pub use server::Server;
pub use simulator::sandbox::Reach;
pub use tls::TlsIdentity;
pub use world::{RequestHead, RestoreKind, World};
pub use worlds::{OpeningProgress, UnavailableWorld};
