//! The server over real sockets: responses, deliveries, the OpenAPI document and the MCP tools.

mod guide;
mod local;
#[cfg(feature = "mcp")]
mod mcp;
mod openapi;
mod sender;
mod stored_worlds;
mod wire;

use reference_core::time::Timestamp;
use reference_server::{ClockKind, Config};

const START: Timestamp = Timestamp(1_789_898_741_000_000); // 2026-09-20T10:05:41Z

/// Returns a configuration with a frozen clock and without a rate limit.
fn config() -> Config {
    Config { start: Some(START), rate_limit: None, clock: ClockKind::Frozen, ..Config::local() }
}
