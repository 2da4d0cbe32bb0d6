//! Fuzzing of any implementation with sequences of valid and invalid requests.
//!
//! `generator` generates requests from a seed, `known_ids` stores the received identifiers, `judge` checks each
//! response against the specification and the earlier responses, `client` sends requests within the rate limit, and
//! `shrink` shortens a sequence that violates an invariant. Requests contain placeholders instead of
//! identifiers, so that a sequence can be replayed, shortened, or run against another account.

mod client;
mod generator;
mod judge;
mod known_ids;
mod report;
mod request_template;
mod run;
mod shrink;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use conformance_model::secret::Secret;
use conformance_probe::Interrupt;

use crate::FileError;

pub use client::Progress;
pub use judge::Violation;
pub use report::{json, saved_findings, text};
pub use request_template::{RequestKey, RequestTemplate, SentRequest};
pub use run::{fuzz, replay};

/// The plan of a fuzz run: target, keys and limits.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The base address of the service. Its path is the prefix of all paths.
    pub base: Url,
    /// A live key, used only for reads.
    pub live_key: Secret,
    /// A key of test mode.
    pub test_key: Secret,
    /// The prefix of keys, before `_live_` or `_test_`.
    pub key_prefix: String,
    /// The seed of the requests.
    pub seed: u64,
    /// The number of requests, without those for shrinking.
    pub requests: u32,
    /// The maximum duration of the run, without shrinking.
    pub duration_max: Option<Duration>,
    /// The requests per minute and key; `None` if the server has no limit.
    pub rate: Option<u32>,
    /// Allows opening charges in test mode.
    pub allow_writes: bool,
    /// The time limit of a request.
    pub time_limit: Duration,
    /// Additional trusted certificates, in PEM.
    pub ca_pem: Option<String>,
    /// The operator's interrupt.
    pub interrupt: Interrupt,
}

/// A violated statement, with the shortest sequence that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reproduction {
    /// The violation, by the last request of the sequence.
    #[serde(rename = "breach")]
    pub violation: Violation,
    /// The requests, in order.
    #[serde(rename = "asks")]
    pub templates: Vec<RequestTemplate>,
    /// The requests as sent, with identifiers in place of placeholders.
    pub sent: Vec<SentRequest>,
    /// `true` if the violation occurred again when the sequence was replayed.
    #[serde(rename = "repeats")]
    pub is_reproducible: bool,
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
    /// The number of sent requests, including those for shrinking.
    pub requests: u32,
    /// The number of judged responses by status; `lost` counts requests without a response.
    pub statuses: std::collections::BTreeMap<String, u32>,
    /// The reason why the target is unreachable, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// The message about a key that the target does not accept, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong_key: Option<String>,
    /// `true` if the operator interrupted the run.
    pub interrupted: bool,
    /// The violated invariants, one entry each.
    pub found: Vec<Reproduction>,
}

impl Outcome {
    /// Returns the exit code: 0 no violation, 1 a violation, 2 an invalid key, 4 target unreachable, 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            Outcome { interrupted: true, .. } => 130,
            Outcome { unreachable: Some(_), .. } => 4,
            Outcome { wrong_key: Some(_), .. } => 2,
            Outcome { found, .. } => u8::from(!found.is_empty()),
        }
    }
}

/// The contents of a file that `fuzz --save` writes and `fuzz --replay` reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedFindings {
    /// The version of this format.
    pub format: u32,
    /// The violated invariants and their sequences.
    pub found: Vec<Reproduction>,
}

impl SavedFindings {
    /// The version of the format. Incremented when an older reader would misread a file.
    pub const FORMAT: u32 = 1;

    /// Parses a file.
    ///
    /// # Errors
    ///
    /// [`FileError::Malformed`] if the text is not such a file, [`FileError::UnsupportedFormat`] for another version.
    pub fn read(text: &str) -> Result<SavedFindings, FileError> {
        let saved: SavedFindings = serde_json::from_str(text).map_err(|error| FileError::Malformed {
            message: "not a file of `fuzz --save`",
            error: error.to_string(),
        })?;
        match saved.format {
            SavedFindings::FORMAT => Ok(saved),
            found => {
                Err(FileError::UnsupportedFormat { found: found.into(), supported: SavedFindings::FORMAT })
            }
        }
    }
}
