//! [`WorldPosition`]: the clock and event count that a replay must reach.

use serde::{Deserialize, Serialize};
use simulator::sandbox::Sandbox;

/// The position of a world in its own history. A replay that ends elsewhere has diverged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorldPosition {
    /// The time of the service clock, in microseconds since 1970.
    pub(crate) now: u64,
    /// The number of events.
    #[serde(rename = "happened")]
    pub(crate) event_count: u64,
}

impl WorldPosition {
    pub(crate) fn from_sandbox(sandbox: &Sandbox) -> WorldPosition {
        WorldPosition { now: sandbox.now().0, event_count: sandbox.log().count() }
    }
}
