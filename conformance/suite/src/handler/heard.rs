//! The results of the trials: the handler's answers and actions, and the selected statements.

use super::{Attempt, trials::Trial};
use conformance_model::catalogue::fits;
use conformance_model::recording::Ending;
use conformance_receiver::Withheld;

/// So much of an answer is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// The answer to one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An answer: its status, and the beginning of its body.
    Status(u16, String),
    /// No answer, and why.
    Nothing(String),
}

impl Heard {
    pub(super) fn of(ending: Ending, withheld: &Withheld) -> Heard {
        match ending {
            Ending::Answered(answer) => Heard::Status(
                answer.status,
                withheld.clean(&answer.body).chars().take(SHOWN_CHARS_MAX).collect(),
            ),
            Ending::Lost(why) => Heard::Nothing(withheld.clean(&why)),
        }
    }
}

/// One delivery that was posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The event type.
    pub kind: String,
    /// The answer.
    pub heard: Heard,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Took {
    /// The trial's name.
    pub trial: &'static str,
    /// The posts, in order.
    pub sent: Vec<Sent>,
    /// The number of the handler's actions; `None` without a witness, an error if the witness failed.
    pub acts: Option<Result<u64, String>>,
}

pub(super) fn ids(trial: &Trial) -> impl Iterator<Item = &'static str> {
    let answers = trial.answers.map(|((id, ..), _)| id);
    answers.into_iter().chain(trial.acts.map(|((id, ..), _)| id))
}

/// Returns `true` if a statement was selected.
pub(super) fn wants(attempt: &Attempt, id: &str) -> bool {
    let named = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, id));
    (attempt.only.is_empty() || named(&attempt.only)) && !named(&attempt.skip)
}
