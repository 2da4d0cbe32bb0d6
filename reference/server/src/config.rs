//! The configuration of a server: values only. Does not read files or the environment.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use reference_core::{dialect::Dialect, rng::Seed, time::Timestamp};

use crate::{clock::ClockKind, log::LogSink, sender::SenderConfig, tls::TlsIdentity};

/// The configuration of a server. [`Config::local`] returns one for tests.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on. Port 0 selects a free port.
    pub address: SocketAddr,
    /// The seed of the world. The same seed and the same requests give the same keys, codes and ids.
    pub seed: Seed,
    /// The start of the service clock; `None` for the time of day.
    pub start: Option<Timestamp>,
    /// Requests per minute and key; `None` for no limit.
    pub rate_limit: Option<u32>,
    /// The address that clients use, if it differs from the listening address: `https://pay.example/prefix`. Requests
    /// are accepted with and without the prefix.
    pub public_url: Option<String>,
    /// The certificate for https at the same address; links then start with `https`. `None` for http only.
    pub tls: Option<TlsIdentity>,
    /// The source of the service clock.
    pub clock: ClockKind,
    /// The names of the service in keys, headers and the user agent.
    pub dialect: Dialect,
    /// The callers that need the sandbox token.
    pub sandbox_access: SandboxAccess,
    /// The token that gives other machines access to `/sandbox` and the dashboard: 20 to 200 letters, digits, `-`, `_`,
    /// `.` and `~`; `None` for a random one.
    pub sandbox_token: Option<String>,
    /// The permission of MCP tools to move the service clock.
    pub mcp_clock: McpClockAccess,
    /// The limits on clients.
    pub bounds: Bounds,
    /// The receiver of log entries for requests and events; `None` for no log.
    pub log: Option<LogSink>,
    /// The settings of the webhook sender.
    pub sender: SenderConfig,
    /// The storage of the world; `None` to keep the world in memory only.
    pub data: Option<StorageConfig>,
    /// The exported world to start from, as returned by `GET /sandbox/snapshots/{id}`; `None` for a new world. Its
    /// seed, start and rate limit replace those of this configuration, and its clock continues from the time of the
    /// export.
    pub exported_world: Option<Vec<u8>>,
}

/// The storage of a world.
///
/// Every change is written to disk before it is acknowledged, and every delivery is sent after the event that causes it
/// is on disk. A server that is started with the same directory continues the same world.
#[derive(Clone, Debug)]
pub struct StorageConfig {
    /// The directory, created if it does not exist. It contains the keys of the world, so only its owner may read it.
    pub directory: PathBuf,
    /// The seed that an existing world must have; `None` for any. A new world gets [`Config::seed`].
    pub seed: Option<Seed>,
    /// The start that the clock of an existing world must have; `None` for any.
    pub start: Option<Timestamp>,
    /// The number of records after which a checkpoint is written, so that the world opens in seconds; `None` for no
    /// checkpoints: opening then replays every record. Also applies to worlds that are opened on request.
    pub checkpoint_after: Option<u64>,
    /// Opens a damaged world in the state of its last intact commit and renames the damaged file. Without this, a
    /// damaged world is an error that names the position of the damage. Also applies to worlds that are opened on
    /// request.
    pub recover: bool,
    /// Rewinds a world whose clock is ahead of real time to its latest state that is not in the future, as `POST
    /// /sandbox/restore` does. Timers continue from that state in real time. The abandoned state remains as a snapshot.
    /// Applies to the first world only.
    pub clock_reset: bool,
}

/// The callers that need the token for `/sandbox`, the dashboard and the MCP tools of the simulated world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxAccess {
    /// All callers if there is a public address: requests through a tunnel or a proxy on this machine also come from
    /// loopback. Without a public address, requests from loopback to a name of this machine, without headers of a
    /// proxy, need no token.
    #[default]
    TokenWhenPublic,
    /// Callers from loopback need no token even with a public address. Only for a machine on which no proxy forwards
    /// requests of others to the server.
    TrustLoopback,
}

/// The permission of MCP tools to move the service clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpClockAccess {
    /// Only a frozen clock may be moved: moving any other one would expire the charges of all users.
    #[default]
    FrozenOnly,
    /// Any clock.
    Any,
}

/// The limits on clients. Requests beyond them are refused, and connections beyond them are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of open connections, at least 1. At the maximum, a new connection evicts another: first one
    /// that has been sending a handshake, a head or a body for over a second, then the longest-idle one. If all of them
    /// have a request in progress, the new one waits in the accept queue of the operating system.
    pub connections: usize,
    /// The maximum total bytes of responses that clients have not received yet; small responses do not count. A larger
    /// response without room gets 503. If it helps, responses that have been sending for over two seconds are dropped
    /// before that, the oldest first.
    pub bytes_in_flight: usize,
    /// The maximum estimated memory of all worlds in bytes. At the limit no world can be opened, and worlds that were
    /// opened on request become read-only; the first world is not affected.
    pub world_bytes: usize,
    /// The maximum size of request line and headers together, in bytes.
    pub head_bytes: usize,
    /// The maximum size of a body in bytes.
    pub body_bytes: usize,
    /// The maximum time from the first byte of a head to its last, and from opening a connection to its first byte.
    pub head_time: Duration,
    /// The maximum time from the end of the head to the end of the body.
    pub body_time: Duration,
    /// The maximum time without a byte in either direction.
    pub idle_time: Duration,
    /// The maximum time for which a client may accept no bytes of a response.
    pub stall_time: Duration,
    /// The maximum time that a stopping server waits for running requests.
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
