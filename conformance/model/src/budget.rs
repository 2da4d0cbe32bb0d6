//! The request budget of a run, and its use so far.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::recording::{Caller, Purpose};
use crate::words::Mode;

/// Requests at worst in the bursts of a run that does not repeat them to settle the reading of the limit.
pub const BURST_MAX: u32 = 909;

/// Requests at worst, by the key that they carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// With the live key.
    pub live: u32,
    /// With the test key.
    pub test: u32,
    /// With any other key, with none, or with what is no key.
    pub other: u32,
    /// Together. Less than the sum where either key may serve.
    pub total: u32,
}

/// The most requests and the longest waits of a run, computed before its first request. A [`Ledger`] admits no more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Requests in all but the bursts.
    pub functional: Cost,
    /// Requests in bursts, with the test key and once or twice with the live one.
    pub burst: u32,
    /// Requests that may be repeated after a 429, 502, 503 or 504. They come on top of the others.
    pub repeats: u32,
    /// Requests for single objects, whose paths the operator named.
    #[serde(default)]
    pub objects: u32,
    /// Requests that see what was chosen where the specification leaves a choice.
    #[serde(default)]
    pub extended: u32,
    /// Requests that page while something is created.
    #[serde(default, rename = "between")]
    pub inserts: u32,
    /// Of these, the ones that create something, with the test key.
    #[serde(default)]
    pub writes: u32,
    /// Waits if nobody used the test key before, and its limit is one of a minute.
    pub wait: Duration,
    /// Waits at worst: a burst is repeated, and the limit asks for more than a minute.
    pub wait_worst: Duration,
}

impl Budget {
    /// Of what costs nothing.
    pub fn none() -> Budget {
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

    /// The most requests outside bursts, with repeats.
    pub fn outside_bursts(&self) -> u32 {
        self.functional.total + self.objects + self.extended + self.inserts + self.repeats
    }
}

impl fmt::Display for Budget {
    /// At most three lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, other) = (self.outside_bursts(), self.functional.other);
        write!(
            f,
            "at most {most} requests: {} with the two keys, {other} with other keys or none, {} repeats",
            most - other - self.repeats,
            self.repeats
        )?;
        if self.writes > 0 {
            write!(f, "; {} of them write", self.writes)?;
        }
        if self.burst > 0 {
            write!(
                f,
                "\nbefore that bursts of about {} requests with the test key ({} at most)\nwaits up to {} s \
                 ({} s if the key was in use, or its limit asks for more than a minute)",
                if self.burst > BURST_MAX { 270 } else { 140 },
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
    /// With any other key, or none.
    pub other: u32,
    /// Of all these, the ones in bursts.
    pub in_bursts: u32,
    /// Of all these, the ones that created something.
    #[serde(default)]
    pub writes: u32,
    /// Of all these, the ones that repeated a request that was refused for the limit or met a 502, 503 or 504.
    pub repeats: u32,
}

impl Ledger {
    /// Counts a request that is about to be sent. Returns `false`, and counts nothing, if the budget has none left.
    #[must_use]
    pub fn admit(&mut self, caller: Caller, purpose: &Purpose, budget: &Budget) -> bool {
        let is_burst = matches!(purpose, Purpose::Burst(_));
        let is_write = *purpose == Purpose::Create;
        let has_room = match is_burst {
            true => self.in_bursts < budget.burst,
            false => self.functional() < budget.outside_bursts(),
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

    /// All requests.
    pub fn total(&self) -> u32 {
        self.live + self.test + self.other
    }

    /// All requests outside bursts.
    pub fn functional(&self) -> u32 {
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
    fn check(caller: Caller, purpose: &Purpose, admitted: u32) {
        let mut ledger = Ledger::default();
        let asked = (0..9).filter(|_| ledger.admit(caller, purpose, &BUDGET)).count();
        assert_eq!((asked, ledger.total()), (admitted as usize, admitted), "{purpose:?}");
    }

    #[test]
    fn a_ledger_admits_what_was_announced_and_no_more() {
        for caller in [Caller::Own(Mode::Live), Caller::Own(Mode::Test), Caller::Nobody] {
            check(caller, &Purpose::Account, 3);
            check(caller, &Purpose::Burst(Burst::OtherKey), 2);
        }
        check(Caller::Own(Mode::Test), &Purpose::Create, 1);
    }
}
