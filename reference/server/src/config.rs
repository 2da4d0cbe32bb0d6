//! The configuration of a server. Values only: nothing here is read from a file or the environment.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use reference_core::{dialect::Dialect, rng::Seed, time::Timestamp};

use crate::{clock::ClockKind, log::LogSink, sender::SenderConfig, tls::TlsIdentity};

/// The configuration of a server. [`Config::local`] is one for tests.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on. Port 0 takes a free one.
    pub address: SocketAddr,
    /// The seed of the world: the same seed and the same requests give the same keys, codes and ids.
    pub seed: Seed,
    /// The start of the service clock; `None` for the time of day.
    pub start: Option<Timestamp>,
    /// Requests per minute and key; `None` for no limit.
    pub rate_limit: Option<u32>,
    /// The address under which clients reach the server, if it differs from the one it listens on:
    /// `https://pay.example/prefix`. Requests are taken with and without the prefix.
    pub public_url: Option<String>,
    /// Serves https too, at the same address, and links say `https`; `None` for http only.
    pub tls: Option<TlsIdentity>,
    /// The source of the service clock.
    pub clock: ClockKind,
    /// The names in keys and headers.
    pub dialect: Dialect,
    /// The callers that need the sandbox token.
    pub sandbox_access: SandboxAccess,
    /// The token that opens `/sandbox` and the dashboard from another machine: 20 to 200 letters, digits, `-`,
    /// `_`, `.` and `~`; `None` for a random one.
    pub sandbox_token: Option<String>,
    /// The permission of MCP tools to move the service clock.
    pub mcp_clock: McpClock,
    /// The bounds on clients.
    pub bounds: Bounds,
    /// The receiver of log entries for requests and events; `None` for no log.
    pub log: Option<LogSink>,
    /// The settings of the webhook sender.
    pub sender: SenderConfig,
    /// The storage of the world; `None` for a world that ends with the server.
    pub data: Option<Data>,
    /// The world to begin with, as `GET /sandbox/snapshots/{id}` gave it; `None` for a new one. The seed, the start and
    /// the limit of requests are its own then, and the clock goes on from where it stood.
    pub from: Option<Vec<u8>>,
}

/// The storage of a world.
///
/// Every call that changes it is on the disk before its answer leaves, and every post after its cause. A server
/// that is started with the same directory continues the same world.
#[derive(Clone, Debug)]
pub struct Data {
    /// The directory; made if it does not exist. It holds the keys of the world, so only its owner may read it.
    pub directory: PathBuf,
    /// The seed that a world in it must have been begun with; `None` for any. A new one gets [`Config::seed`].
    pub seed: Option<Seed>,
    /// The start that its clock must have had; `None` for any.
    pub start: Option<Timestamp>,
    /// After so many records the state of the world is kept beside them, so that opening it again takes seconds; `None` for
    /// never, and then every call that it was told is made again. The same for each world that is opened on request.
    pub checkpoint_after: Option<u64>,
    /// Opens a damaged world as it stood after its last commit that is sound, and keeps the damaged file beside it. Without,
    /// a damaged world is an error that says where the damage is. The same for each world that is opened on request.
    pub recover: bool,
    /// Takes a world whose clock is ahead of real time back to its last moment that is not in the future, as
    /// `POST /sandbox/restore` does: timers are those of that moment, and real time passes for them from there. Where the world
    /// stood stays as a snapshot. Only the server's own world.
    pub clock_reset: bool,
}

/// The callers that need the token for `/sandbox`, the dashboard and the tools that act on the simulated world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxAccess {
    /// Everybody, once there is a public address: a tunnel or a proxy on this machine makes strangers look as if
    /// they called from it. Without one, whoever calls from loopback, by a name of this machine and without a trace
    /// of a proxy needs no token.
    #[default]
    TokenWhenPublic,
    /// Such callers need no token with a public address either. Only for a machine on which nothing passes requests
    /// of others on to the server.
    TrustLoopback,
}

/// The permission of MCP tools to move the service clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpClock {
    /// Only a clock that nothing else moves: on any other one a jump costs everybody their rate locks.
    #[default]
    FrozenOnly,
    /// Any clock.
    Any,
}

/// The bounds on a client's requests, beyond which it is refused or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections served at a time, at least 1. A further one evicts another: first one whose client has owed the rest of
    /// a handshake, a head or a body for over a second, then the longest-idle one. If all of them are being answered, the
    /// new one waits in the accept queue of the operating system.
    pub connections: usize,
    /// Bytes of answers at a time that clients have yet to take; small answers do not count. A larger answer for
    /// which there is no room is 503; connections that have been taking theirs for more than two seconds are closed
    /// before that, those that have done so the longest first, if that makes room.
    pub bytes_in_flight: usize,
    /// Bytes of memory that all worlds together may hold, estimated. At the bound none is opened beside the first, and those
    /// that were opened change no more; the first goes on.
    pub world_bytes: usize,
    /// Bytes of request line and headers together.
    pub head_bytes: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// From the first byte of a head to its last, and from the beginning of a connection to its first byte.
    pub head_time: Duration,
    /// From the end of the head to the end of the body.
    pub body_time: Duration,
    /// The time that a connection may stay open while no byte moves in either direction.
    pub idle_time: Duration,
    /// The time that a client may take none of the bytes that are sent to it.
    pub stall_time: Duration,
    /// The time that a stopping server waits for the requests that it has begun.
    pub drain_time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 1_024,
            bytes_in_flight: 32 * 1_024 * 1_024,
            world_bytes: 1_024 * 1_024 * 1_024,
            head_bytes: 32 * 1_024,
            body_bytes: 256 * 1_024,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(15),
            idle_time: Duration::from_secs(75),
            stall_time: Duration::from_secs(15),
            drain_time: Duration::from_secs(10),
        }
    }
}
