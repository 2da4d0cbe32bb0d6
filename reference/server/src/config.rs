//! What a server is started with. Values only: nothing here is read from a file or the environment.

use std::{net::SocketAddr, time::Duration};

use reference_core::{dialect::Dialect, draw::Seed, time::Timestamp};

use crate::{clock::ClockKind, courier::CourierConfig};

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen. Port 0 takes a free one.
    pub address: SocketAddr,
    /// What every draw of the world hangs on.
    pub seed: Seed,
    /// What the service clock shows at first; nothing for what the operating system's clock shows.
    pub start: Option<Timestamp>,
    /// Requests per minute and key; nothing for no limit.
    pub rate_limit: Option<u32>,
    /// The address under which clients reach the server, if it differs from the one it listens on:
    /// `https://pay.example/prefix`. Requests are taken with and without the prefix.
    pub public_url: Option<String>,
    /// What moves the service clock.
    pub clock: ClockKind,
    /// The names in keys and headers.
    pub dialect: Dialect,
    /// What a client may ask of the server.
    pub bounds: Bounds,
    /// How deliveries go out.
    pub courier: CourierConfig,
}

/// What a client may ask of the server before it is refused or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections served at a time, at least 1. Further ones are not refused: they wait in the accept queue
    /// of the operating system, at most `idle_time` if those before them do nothing.
    pub connections: usize,
    /// Bytes of request line and headers together.
    pub head_bytes: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// From the first byte of a head to its last.
    pub head_time: Duration,
    /// From the end of the head to the end of the body.
    pub body_time: Duration,
    /// How long a connection may stay open while no byte moves in either direction.
    pub idle_time: Duration,
    /// How long a stopping server waits for the requests that it has begun.
    pub drain_time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 1_024,
            head_bytes: 32 * 1_024,
            body_bytes: 256 * 1_024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(15),
            idle_time: Duration::from_secs(75),
            drain_time: Duration::from_secs(10),
        }
    }
}
