//! What every part of the server works with. Owns nothing that only one of them needs.

#[cfg(feature = "mcp")]
use crate::config::McpClock;
use crate::{
    address::Addresses, config::Bounds, gate::Token, host::Host, in_flight::InFlight, log::RequestLog,
};

/// The world, the names that it is called by, what opens its sandbox, how much a client may ask, and the room
/// for what it is answered.
pub(crate) struct Backend {
    pub(crate) host: Host,
    pub(crate) addresses: Addresses,
    pub(crate) token: Token,
    pub(crate) bounds: Bounds,
    pub(crate) in_flight: InFlight,
    pub(crate) requests: RequestLog,
    #[cfg(feature = "mcp")]
    pub(crate) mcp_clock: McpClock,
}
