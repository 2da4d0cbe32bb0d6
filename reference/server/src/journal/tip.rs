//! The position of a world.

use serde::{Deserialize, Serialize};
use simulator::sandbox::Sandbox;

/// The position of a world, as far as a replay is compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tip {
    /// The time of the service clock, in microseconds since 1970.
    pub(crate) now: u64,
    /// The number of events.
    pub(crate) happened: u64,
}

impl Tip {
    pub(crate) fn of(sandbox: &Sandbox) -> Tip {
        Tip { now: sandbox.now().0, happened: sandbox.log().count() }
    }
}
