//! The server over real sockets: its answers on the wire, what it posts, its document and its tools.

mod data;
mod guide;
mod local;
#[cfg(feature = "mcp")]
mod mcp;
mod openapi;
mod sender;
mod wire;

use reference_core::time::Timestamp;
use reference_server::{ClockKind, Config};

const START: Timestamp = Timestamp(1_789_898_741_000_000); // 2026-09-20T10:05:41Z

/// A world whose clock only the sandbox moves, without a limit of requests.
fn config() -> Config {
    Config { start: Some(START), rate_limit: None, clock: ClockKind::Frozen, ..Config::local() }
}
