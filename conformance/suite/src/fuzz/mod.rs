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

/// What to ask, with which keys, and how much.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The service's base address. A path is kept as a prefix of every path.
    pub base: Url,
    /// A key of live mode. Only read with.
    pub live_key: Secret,
    /// A key of test mode.
    pub test_key: Secret,
    /// What keys begin with, before `_live_` or `_test_`.
    pub key_prefix: String,
    /// What the requests are drawn from.
    pub seed: u64,
    /// How many are asked, beside those that shrink a sequence.
    pub requests: u32,
    /// No new request is asked once the run has lasted this long.
    pub lasting: Option<Duration>,
    /// Requests per minute and key; nothing if the server's limit is off.
    pub rate: Option<u32>,
    /// Charges may be opened in test mode.
    pub allow_writes: bool,
    /// How long one request may take.
    pub time_limit: Duration,
    /// Certificates in PEM that are trusted besides the usual ones.
    pub ca_pem: Option<String>,
    /// Whether the operator ended the run.
    pub interrupt: Interrupt,
}

/// A law that broke, with the shortest sequence that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What broke, in the last request of the sequence.
    pub breach: Breach,
    /// The requests, in order.
    pub asks: Vec<Ask>,
    /// The same as they were sent: with identifiers in place of their names.
    pub sent: Vec<Sent>,
    /// Whether the sequence broke the law again when it was run again.
    pub repeats: bool,
}

/// What a run has brought.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The base address.
    pub base: String,
    /// What keys begin with.
    pub key_prefix: String,
    /// What the requests were drawn from.
    pub seed: u64,
    /// Requests that were sent, those for shrinking included.
    pub requests: u32,
    /// Answers that were judged, by status; `lost` for none.
    pub statuses: std::collections::BTreeMap<String, u32>,
    /// Why nothing could be asked, if so.
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
