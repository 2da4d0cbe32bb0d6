//! The request budget of a run, and the requests sent so far.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mode::Mode;
use crate::recording::{Caller, Purpose};

/// The most requests in the bursts of a run, unless it is thorough: then it sends one more burst.
pub const BURST_REQUESTS_MAX: u32 = 915;

/// The most requests of a probe or a run, by the key that they carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// With the live key.
    pub live: u32,
    /// With the test key.
    pub test: u32,
    /// With any other key, an invalid token, or none.
    pub other: u32,
    /// The total. Less than the sum if a request may use either key.
    pub total: u32,
}

/// The most requests and the longest waits of a run, computed before its first request. A [`Ledger`] admits no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The requests that no other field counts.
    pub functional: Cost,
    /// The requests in bursts, most of them with the test key.
    pub burst: u32,
    /// The repeated requests, most of them retries after a 429, 502, 503 or 504. No other field counts them.
    pub repeats: u32,
    /// The requests for single objects, whose paths the operator gave.
    #[serde(default)]
    pub objects: u32,
    /// The requests for the choices that the specification leaves open.
    #[serde(default)]
    pub extended: u32,
    /// The requests that read pages while records are created, and the requests that create the records.
    #[serde(default, rename = "between")]
    pub inserts: u32,
    /// The number of `inserts` that create records, with the test key.
    #[serde(default)]
    pub writes: u32,
    /// The longest total wait in the usual case: the test key was idle before, and its limit requires a minute at most.
    pub wait: Duration,
    /// The longest total wait in all other cases, even if both apply: the key was in use, so that a burst is repeated, and
    /// its limit requires more than a minute.
    pub wait_worst: Duration,
}

impl Budget {
    /// Returns an empty budget.
    pub fn empty() -> Budget {
        Budget {
            functional: Cost::default(),
            burst: 0,
            repeats: 0,
            objects: 0,
            extended: 0,
            inserts: 0,
            writes: 0,
            wait: Duration::ZERO,
            wait_worst: Duration::ZERO,
        }
    }

    /// Returns the most requests outside bursts, including retries.
    pub fn outside_bursts(&self) -> u32 {
        self.functional.total + self.objects + self.extended + self.inserts + self.repeats
    }
}

impl fmt::Display for Budget {
    /// Writes the number of requests. If there are bursts, two more lines have their requests and the waits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The requests of a typical burst.
        const TYPICAL_BURST: u32 = 140;
        /// The requests in the bursts of a typical thorough run.
        const TYPICAL_THOROUGH_BURSTS: u32 = 270;
        let (total, other) = (self.outside_bursts(), self.functional.other);
        write!(
            f,
            "at most {total} requests: {} with the two keys, {other} with other keys or none, {} repeats",
            total - other - self.repeats,
            self.repeats
        )?;
        if self.writes > 0 {
            write!(f, "; {} of them create records", self.writes)?;
        }
        if self.burst > 0 {
            write!(
                f,
                "\nin addition, bursts of about {} requests with the test key (at most {})\nwaits up to {} s \
                 ({} s if the key was in use, or its limit requires more than a minute)",
                if self.burst > BURST_REQUESTS_MAX { TYPICAL_THOROUGH_BURSTS } else { TYPICAL_BURST },
                self.burst,
                self.wait.as_secs(),
                self.wait_worst.as_secs()
            )?;
        }
        Ok(())
    }
}

/// The requests sent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// With the live key.
    pub live: u32,
    /// With the test key.
    pub test: u32,
    /// With any other key, an invalid token, or none.
    pub other: u32,
    /// The number of these requests that belong to bursts.
    pub in_bursts: u32,
    /// The number of these requests that may have created records.
    #[serde(default)]
    pub writes: u32,
    /// The number of these requests that were repeated, most of them retries after a 429, 502, 503 or 504.
    pub repeats: u32,
}

impl Ledger {
    /// Counts a request that is about to be sent. Returns `false`, and counts nothing, if the budget has none left.
    #[must_use]
    pub fn admit(&mut self, caller: Caller, purpose: &Purpose, budget: &Budget) -> bool {
        let is_burst = matches!(purpose, Purpose::Burst(_));
        // A create request without a key must be refused, so it creates no record.
        let is_write = *purpose == Purpose::Create && caller != Caller::NoKey;
        let has_room = match is_burst {
            true => self.in_bursts < budget.burst,
            false => self.outside_bursts() < budget.outside_bursts(),
        };
        if !has_room || (is_write && self.writes >= budget.writes) {
            return false;
        }
        match caller {
            Caller::Own(Mode::Live) => self.live += 1,
            Caller::Own(Mode::Test) => self.test += 1,
            _ => self.other += 1,
        }
        self.in_bursts += u32::from(is_burst);
        self.writes += u32::from(is_write);
        true
    }

    /// Returns the number of all requests.
    pub fn total(&self) -> u32 {
        self.live + self.test + self.other
    }

    /// Returns the number of requests outside bursts.
    pub fn outside_bursts(&self) -> u32 {
        self.total() - self.in_bursts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Burst;

    const BUDGET: Budget = Budget {
        functional: Cost { live: 1, test: 1, other: 0, total: 1 },
        burst: 2,
        repeats: 1,
        objects: 0,
        extended: 0,
        inserts: 1,
        writes: 1,
        wait: Duration::ZERO,
        wait_worst: Duration::ZERO,
    };

    #[track_caller]
    fn check_admitted(caller: Caller, purpose: &Purpose, admitted: u32) {
        let mut ledger = Ledger::default();
        let count = (0..9).filter(|_| ledger.admit(caller, purpose, &BUDGET)).count();
        assert_eq!((count, ledger.total()), (admitted as usize, admitted), "{purpose:?}");
    }

    #[test]
    fn a_ledger_admits_exactly_its_budget() {
        for caller in [Caller::Own(Mode::Live), Caller::Own(Mode::Test), Caller::NoKey] {
            // One functional request, one of the inserts, and one repeat.
            check_admitted(caller, &Purpose::Account, 3);
            check_admitted(caller, &Purpose::Burst(Burst::LiveKeyAfterRefusal), 2);
        }
        check_admitted(Caller::Own(Mode::Test), &Purpose::Create, 1);
    }
}
