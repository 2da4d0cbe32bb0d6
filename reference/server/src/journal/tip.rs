//! Where a world stands.

use serde::{Deserialize, Serialize};
use simulator::sandbox::Sandbox;

/// Where a world stands, as far as a replay is compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tip {
    /// What the service clock shows, in microseconds since 1970.
    pub(crate) now: u64,
    /// How much has happened.
    pub(crate) happened: u64,
}

impl Tip {
    pub(crate) fn of(sandbox: &Sandbox) -> Tip {
        Tip { now: sandbox.now().0, happened: sandbox.log().count() }
    }
}
