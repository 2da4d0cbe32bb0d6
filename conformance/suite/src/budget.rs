//! What a run may cost, and what it has cost so far.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use crate::probes::{Group, burst};
use crate::recording::Caller;

/// The worst case of a run, worked out before the first byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// Requests in all but the bursts, with every key and with none.
    pub functional: u32,
    /// Requests in bursts, all with the test key but two.
    pub burst: u32,
    /// Waits in the ordinary case.
    pub wait: Duration,
    /// Waits when a burst must be repeated.
    pub wait_worst: Duration,
}

impl Budget {
    pub(crate) fn of(groups: &BTreeSet<Group>) -> Budget {
        let bursting = groups.contains(&Group::Burst);
        let spent = |span: Duration| if bursting { span } else { Duration::ZERO };
        Budget {
            functional: groups.iter().map(|group| group.requests_max()).sum(),
            burst: if bursting { burst::REQUESTS_MAX } else { 0 },
            wait: spent(burst::WAIT_USUAL),
            wait_worst: spent(burst::WAIT_MAX),
        }
    }
}

/// The requests sent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// With the live key.
    pub live: u32,
    /// With the test key.
    pub test: u32,
    /// With any other key, or none.
    pub other: u32,
    /// Of all these, the ones in bursts.
    pub in_bursts: u32,
    /// Of all these, the ones that repeated a request that was refused for the limit or met a 502, 503 or 504.
    pub repeats: u32,
}

impl Ledger {
    pub(crate) fn count(&mut self, caller: Caller) {
        use crate::plan::Mode;
        match caller {
            Caller::Own(Mode::Live) => self.live += 1,
            Caller::Own(Mode::Test) => self.test += 1,
            _ => self.other += 1,
        }
    }

    /// All requests.
    pub fn total(&self) -> u32 {
        self.live + self.test + self.other
    }

    /// All requests outside bursts.
    pub fn functional(&self) -> u32 {
        self.total() - self.in_bursts
    }
}
