//! The results of the trials: the responses and actions of the handler.

use super::{HandlerPlan, trials::Trial};
use conformance_model::catalogue::matches_pattern;
use conformance_model::recording::ExchangeOutcome;
use conformance_receiver::SecretRedaction;

/// The largest number of characters of a response body in a report.
const SHOWN_CHARS_MAX: usize = 200;

/// The response to one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerResponse {
    /// A response: its status, and the start of its body.
    Status(u16, String),
    /// No response, with the reason.
    NoResponse(String),
}

impl HandlerResponse {
    pub(super) fn from_outcome(outcome: ExchangeOutcome, redaction: &SecretRedaction) -> HandlerResponse {
        match outcome {
            ExchangeOutcome::Answered(response) => HandlerResponse::Status(
                response.status,
                redaction.redact(&response.body).chars().take(SHOWN_CHARS_MAX).collect(),
            ),
            ExchangeOutcome::NoResponse(why) => HandlerResponse::NoResponse(redaction.redact(&why)),
        }
    }
}

/// A delivery that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentDelivery {
    /// The event type.
    pub event_type: String,
    /// The response.
    pub response: HandlerResponse,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialResult {
    /// The name of the trial.
    pub trial: &'static str,
    /// The deliveries, in order.
    pub sent: Vec<SentDelivery>,
    /// The number of the handler's actions; `None` if they were not counted, an error if counting failed.
    pub actions: Option<Result<u64, String>>,
}

/// Returns the ids of the statements that a trial tests.
pub(super) fn statement_ids(trial: &Trial) -> impl Iterator<Item = &'static str> {
    let responses = trial.responses.map(|(statement, _)| statement.id);
    responses.into_iter().chain(trial.actions.map(|(statement, _)| statement.id))
}

/// Returns `true` if a statement was selected.
pub(super) fn is_selected(plan: &HandlerPlan, id: &str) -> bool {
    let matches_any = |patterns: &[String]| patterns.iter().any(|pattern| matches_pattern(pattern, id));
    (plan.only.is_empty() || matches_any(&plan.only)) && !matches_any(&plan.skip)
}
