//! Random requests against any implementation: plausible ones, hostile ones, and sequences of both.
//!
//! `draw` makes requests from a seed, `known` remembers the identifiers that answers have shown, `law` judges each answer
//! by what the specification says and by what was answered before, `talk` keeps the pace, `shrink` looks for the shortest
//! sequence in which the same law breaks. Requests name identifiers by how they became known, so that a sequence can be run
//! again, shorter, or on another day.

mod ask;
mod draw;
mod known;
mod law;
mod report;
mod run;
mod shrink;
mod talk;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use conformance_model::secret::Secret;
use conformance_probe::Interrupt;

pub use ask::{Ask, By, Sent};
pub use law::Breach;
pub use report::{json, kept, text};
pub use run::{fuzz, replay};
pub use talk::Progress;

/// The plan of a run: requests, keys and bounds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The service's base address. A path is kept as a prefix of every path.
    pub base: Url,
    /// A key of live mode. Only read with.
    pub live_key: Secret,
    /// A key of test mode.
    pub test_key: Secret,
    /// The prefix of keys, before `_live_` or `_test_`.
    pub key_prefix: String,
    /// The seed of the requests.
    pub seed: u64,
    /// The number of requests, beside those that shrink a sequence.
    pub requests: u32,
    /// No new request is asked once the run has lasted this long.
    pub lasting: Option<Duration>,
    /// Requests per minute and key; nothing if the server's limit is off.
    pub rate: Option<u32>,
    /// Charges may be opened in test mode.
    pub allow_writes: bool,
    /// The time that one request may take.
    pub time_limit: Duration,
    /// Certificates in PEM that are trusted besides the usual ones.
    pub ca_pem: Option<String>,
    /// The operator's interrupt.
    pub interrupt: Interrupt,
}

/// A law that broke, with the shortest sequence that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The breach, in the last request of the sequence.
    pub breach: Breach,
    /// The requests, in order.
    pub asks: Vec<Ask>,
    /// The same as they were sent: with identifiers in place of their names.
    pub sent: Vec<Sent>,
    /// `true` if the sequence broke the rule again when it was repeated.
    pub repeats: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The base address.
    pub base: String,
    /// The prefix of keys.
    pub key_prefix: String,
    /// The seed of the requests.
    pub seed: u64,
    /// Requests that were sent, those for shrinking included.
    pub requests: u32,
    /// Answers that were judged, by status; `lost` for none.
    pub statuses: std::collections::BTreeMap<String, u32>,
    /// The reason why no request could be sent, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// The key that does not work, if one does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_key: Option<String>,
    /// The operator ended the run before all its requests were sent.
    pub interrupted: bool,
    /// The laws that broke, one entry each.
    pub found: Vec<Found>,
}

impl Outcome {
    /// 0 no law broke, 1 one did, 2 a key does not work, 4 the target does not answer, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome { interrupted: true, .. } => 130,
            Outcome { unreachable: Some(_), .. } => 4,
            Outcome { wrong_key: Some(_), .. } => 2,
            Outcome { found, .. } => u8::from(!found.is_empty()),
        }
    }
}

/// A sequence that was kept, to be run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The version of this format.
    pub format: u32,
    /// The laws and their sequences.
    pub found: Vec<Found>,
}

impl Kept {
    /// Rises when an older reader would misread it.
    pub const FORMAT: u32 = 1;

    /// Reads a kept file.
    ///
    /// # Errors
    ///
    /// Why the text is no kept file, or that its format is another.
    pub fn read(text: &str) -> Result<Kept, String> {
        let kept: Kept = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match kept.format {
            Kept::FORMAT => Ok(kept),
            other => Err(format!("its format is {other}; this program reads format {}", Kept::FORMAT)),
        }
    }
}
