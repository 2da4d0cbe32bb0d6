//! Tries a merchant's own webhook handler: deliveries that it must take, and some that it must not.
//!
//! `trials` is the table of trials, `delivery` writes and signs a delivery, `run` posts and records, `judge` is
//! a pure function of the record, `report` formats its result. What the handler *does* can't be seen from outside, so a
//! [`Witness`] of the operator's says how often it acted; without one, such statements are not judged.

mod delivery;
mod heard;
mod judge;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod trials;

use std::time::Duration;

use serde::Serialize;
use url::Url;

use conformance_model::catalogue::Level;
use conformance_model::secret::Secret;
use conformance_model::verdict::Verdict;
use conformance_model::words::Mode;
use conformance_probe::Interrupt;
use conformance_receiver::Names;

pub use conformance_model::catalogue::fits;
pub use heard::{Heard, Sent, Took};
pub use report::{Format, render};
pub use run::{Order, Progress, Witness, attempt};
pub use trials::statements;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The URL of the handler.
    pub url: Url,
    /// The endpoint's secret.
    pub secret: Secret,
    /// The secret of the endpoint of the other mode, if there is one.
    pub other_mode_secret: Option<Secret>,
    /// The endpoint's mode.
    pub mode: Mode,
    /// The names of the headers.
    pub names: Names,
    /// A charge as it stands in a delivery, to be told of under new codes; ours if there is none.
    pub sample: Option<serde_json::Map<String, serde_json::Value>>,
    /// Only the statements that fit one of these patterns; all if there are none.
    pub only: Vec<String>,
    /// Not the statements that fit one of these.
    pub skip: Vec<String>,
    /// The operator has no way to tell how often the handler acted: such statements are left out.
    pub without_acts: bool,
    /// `true` if a warning counts as a failure.
    pub strict: bool,
    /// Every id and code is drawn from it. A handler that remembers ids takes a seed only once.
    pub seed: u64,
    /// The time that a sender waits for an answer.
    pub time_limit: Duration,
    /// The time that the handler may take to act after it answered.
    pub settle: Duration,
    /// Certificates in PEM that are trusted besides the usual ones.
    pub ca_pem: Option<String>,
    /// The operator's interrupt.
    pub interrupt: Interrupt,
}

/// One statement about the handler, and the word on it.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerRow {
    /// The statement's name.
    pub id: &'static str,
    /// The level.
    pub level: Level,
    /// The statement.
    pub text: &'static str,
    /// The word on it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerOutcome {
    /// The handler's address.
    pub url: String,
    /// The seed of ids and codes.
    pub seed: u64,
    /// The number of posted deliveries.
    pub posts: usize,
    /// The number of selected statements.
    pub expected: usize,
    /// The reason why nothing could be judged, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// The operator ended the run before everything was tried.
    pub interrupted: bool,
    /// The word on every statement that was asked for.
    pub rows: Vec<HandlerRow>,
}

impl HandlerOutcome {
    /// Returns `true` if every required statement was judged.
    pub fn is_complete(&self) -> bool {
        let gap =
            |row: &HandlerRow| row.level == Level::Must && matches!(row.verdict, Verdict::NotJudged { .. });
        self.rows.len() >= self.expected && !self.rows.is_empty() && !self.rows.iter().any(gap)
    }

    /// 0 all required statements judged and held, 1 one was broken, 3 incomplete, 4 the handler does not answer,
    /// 130 interrupted.
    pub fn exit_code(&self) -> u8 {
        match &self.unreachable {
            _ if self.interrupted => 130,
            Some(_) => 4,
            None if self.rows.iter().any(|row| matches!(row.verdict, Verdict::Fail(_))) => 1,
            None if !self.is_complete() => 3,
            None => 0,
        }
    }
}
