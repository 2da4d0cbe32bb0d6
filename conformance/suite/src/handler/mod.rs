//! Tests a merchant's webhook handler with deliveries that it must accept, and others that it must refuse.
//!
//! A trial is a few deliveries with an expected response and an expected number of actions, such as "ship the order".
//! `trials` is the table of trials, `delivery` writes and signs a delivery, `run` sends deliveries and records
//! responses, `judge` computes verdicts from the results, `report` formats them. Actions are not observable over HTTP,
//! so an [`ActionCounter`] of the operator counts them; without one, statements about actions are not judged.

mod delivery;
mod judge;
mod report;
mod results;
mod run;
#[cfg(test)]
mod tests;
mod trials;

use std::time::Duration;

use serde::Serialize;
use url::Url;

use conformance_model::catalogue::Level;
use conformance_model::mode::Mode;
use conformance_model::secret::Secret;
use conformance_model::verdict::Verdict;
use conformance_probe::Interrupt;
use conformance_receiver::WebhookNames;

pub use conformance_model::catalogue::matches_pattern;
pub use report::{Format, render};
pub use results::{HandlerResponse, SentDelivery, TrialResult};
pub use run::{ActionCounter, Progress, TrialObjects, test_handler};
pub use trials::{TrialStatement, statements};

/// The plan of a test of a handler.
#[derive(Clone, Debug)]
pub struct HandlerPlan {
    /// The URL of the handler.
    pub url: Url,
    /// The secret of the endpoint.
    pub secret: Secret,
    /// The secret of the endpoint of the other mode, if there is one.
    pub other_mode_secret: Option<Secret>,
    /// The mode of the endpoint.
    pub mode: Mode,
    /// The prefix of the webhook headers, and the user agent.
    pub names: WebhookNames,
    /// The charge in the deliveries, which gets the code and status of each trial; `None` for a default charge.
    pub sample_charge: Option<serde_json::Map<String, serde_json::Value>>,
    /// The patterns of the selected statements; all if empty.
    pub only: Vec<String>,
    /// The patterns of the skipped statements.
    pub skip: Vec<String>,
    /// Excludes the statements about actions, because the operator cannot count actions.
    pub without_actions: bool,
    /// `true` if a warning counts as a failure.
    pub strict: bool,
    /// The seed of all ids and codes. A handler that deduplicates ids accepts a seed only once.
    pub seed: u64,
    /// The time limit of a delivery.
    pub time_limit: Duration,
    /// The longest wait after the responses for the expected actions of the handler.
    pub settle_time: Duration,
    /// Additional trusted certificates, in PEM.
    pub ca_pem: Option<String>,
    /// The operator's interrupt.
    pub interrupt: Interrupt,
}

/// A statement about the handler, and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerRow {
    /// The id of the statement.
    pub id: &'static str,
    /// The level.
    pub level: Level,
    /// The statement.
    pub text: &'static str,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The outcome of a run.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerOutcome {
    /// The address of the handler.
    pub url: String,
    /// The seed of ids and codes.
    pub seed: u64,
    /// The number of sent deliveries.
    #[serde(rename = "posts")]
    pub delivery_count: usize,
    /// The number of selected statements.
    pub expected: usize,
    /// The reason why nothing could be judged, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// `true` if the operator interrupted the run.
    pub interrupted: bool,
    /// The verdicts on the selected statements.
    pub rows: Vec<HandlerRow>,
}

impl HandlerOutcome {
    /// Returns `true` if every required statement was judged.
    pub fn is_complete(&self) -> bool {
        let is_gap =
            |row: &HandlerRow| row.level == Level::Must && matches!(row.verdict, Verdict::NotJudged { .. });
        self.rows.len() >= self.expected && !self.rows.is_empty() && !self.rows.iter().any(is_gap)
    }

    /// Returns the exit code: 0 all required statements were judged and hold, 1 a violation, 3 incomplete, 4 the
    /// handler is unreachable, 130 interrupted.
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
