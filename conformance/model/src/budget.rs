//! What a run may cost, and what it has cost so far.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::recording::Caller;
use crate::words::Mode;

/// Requests at worst in the bursts of a run that does not repeat them to settle the reading of the limit.
pub const BURST_MAX: u32 = 900;

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

/// The worst case of a run, worked out before the first byte. Repeats after a refusal come on top; there
/// are at most `repeats` of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Requests in all but the bursts.
    pub functional: Cost,
    /// Requests in bursts, with the test key and once or twice with the live one.
    pub burst: u32,
    /// Requests that may be asked a second time.
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

    /// All requests outside bursts, repeats left aside.
    pub fn outside_bursts(&self) -> u32 {
        self.functional.total + self.objects + self.extended + self.inserts
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { live, test, other, total } = self.functional;
        write!(
            f,
            "at most {total} requests: {} with the two keys (at most {live} with the live one, {test} with \
             the test one), {other} with other keys or none",
            total - other
        )?;
        if self.objects > 0 {
            write!(f, "; {} more for single objects", self.objects)?;
        }
        if self.extended > 0 {
            write!(f, "; {} more for --profile extended", self.extended)?;
        }
        if self.inserts > 0 {
            write!(f, "; {} more with the test key to page while something is created", self.inserts)?;
        }
        if self.writes > 0 {
            write!(f, ", {} of them writes", self.writes)?;
        }
        if self.burst > 0 {
            write!(
                f,
                ", before that bursts of about {} with the test key ({} at worst), \
                 and at most {} s of waiting ({} s where the key was in use before, or its limit asks for \
                 more than a minute)",
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
    /// Counts a request.
    pub fn count(&mut self, caller: Caller) {
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
