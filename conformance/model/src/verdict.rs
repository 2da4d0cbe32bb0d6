//! The verdict on one statement, and its consequence for the run.

use serde::{Deserialize, Serialize};

use crate::catalogue::{Level, Requirement};

/// The expectation, the observation that contradicts it, and the exchange that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The expectation of the statement.
    pub expected: String,
    /// The observation.
    pub actual: String,
    /// The number of the exchange that shows it, if a single one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
}

/// One failure that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The reason why it is tolerated for now.
    pub reason: String,
    /// The fingerprint that the evidence must have. The JSON report of a failure contains it.
    pub fingerprint: String,
    /// The last day on which it may stay, such as `2027-01-31`.
    pub expires: String,
}

/// The word on one statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Exercised, and it held.
    Pass {
        /// The honest readings that it satisfies, or the evidence of the judgement.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A required statement was broken.
    Fail(Finding),
    /// A derived statement did not hold.
    Warn(Finding),
    /// It could not be exercised.
    NotJudged {
        /// The reason.
        why: String,
        /// The operator's remedy.
        remedy: String,
    },
    /// Shown not to exist here.
    NotApplicable {
        /// The evidence.
        why: String,
    },
    /// The specification leaves it open; this is what was seen.
    Observed {
        /// The observation.
        seen: String,
    },
    /// It was broken in a way that the operator knows of.
    Known {
        /// The finding.
        finding: Finding,
        /// The known failure.
        known: Known,
    },
    /// The operator left it out.
    LeftOut {
        /// The option that did.
        by: String,
    },
}

impl Verdict {
    /// The word that stands in a report.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Pass { .. } => "pass",
            Verdict::Fail(_) => "fail",
            Verdict::Warn(_) => "warn",
            Verdict::NotJudged { .. } => "not judged",
            Verdict::NotApplicable { .. } => "not applicable",
            Verdict::Observed { .. } => "observed",
            Verdict::Known { .. } => "known",
            Verdict::LeftOut { .. } => "left out",
        }
    }
}

/// One line of the result: a statement and the word on it.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The statement's name.
    pub id: String,
    /// The statement itself.
    #[serde(flatten)]
    pub requirement: Requirement,
    /// The word on it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Row {
    /// Returns `true` if this row makes the run incomplete.
    pub fn leaves_a_gap(&self) -> bool {
        self.requirement.level == Level::Must && matches!(self.verdict, Verdict::NotJudged { .. })
    }
}

/// The reason why a run ended before anything could be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "stopped_by", content = "why", rename_all = "snake_case")]
pub enum Stop {
    /// Something in the plan is wrong: an address, a key, a name.
    Configuration(String),
    /// The target did not answer.
    Unreachable(String),
}

/// The result of a check whose statement held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// It held, and there is no more to say.
    Plainly,
    /// It held, by this reading or on this ground.
    With(String),
    /// The specification leaves it open, and this was seen.
    Seen(String),
}

/// The reason why a check did not conclude that the statement held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The target breaks the statement.
    Broken(Finding),
    /// It could not be judged.
    Unjudged {
        /// The reason.
        why: String,
        /// The operator's remedy.
        remedy: String,
    },
    /// It does not apply here, for this reason.
    Inapplicable(String),
}

impl CheckError {
    /// The statement is broken: what was expected, what was seen, and the number of the exchange that shows it.
    pub fn broken(
        exchange: impl Into<Option<u32>>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) -> CheckError {
        let exchange = exchange.into();
        CheckError::Broken(Finding { expected: expected.into(), actual: actual.into(), exchange })
    }

    /// It could not be judged: why, and what helps.
    pub fn unjudged(why: impl Into<String>, remedy: impl Into<String>) -> CheckError {
        CheckError::Unjudged { why: why.into(), remedy: remedy.into() }
    }
}

/// The result of a check.
pub type Judged = Result<Held, CheckError>;

/// The level decides what a broken statement counts for; no check needs to know its own.
pub fn verdict(level: Level, judged: Judged) -> Verdict {
    match judged {
        Ok(Held::Plainly) => Verdict::Pass { note: None },
        Ok(Held::With(note)) => Verdict::Pass { note: Some(note) },
        Ok(Held::Seen(seen)) => Verdict::Observed { seen },
        Err(CheckError::Broken(finding)) => match level {
            Level::Must => Verdict::Fail(finding),
            Level::Should => Verdict::Warn(finding),
            Level::Open => Verdict::Observed { seen: finding.actual },
        },
        Err(CheckError::Unjudged { why, remedy }) => Verdict::NotJudged { why, remedy },
        Err(CheckError::Inapplicable(why)) => Verdict::NotApplicable { why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(level: Level, expected: &str) {
        assert_eq!(verdict(level, Err(CheckError::broken(None, "a", "b"))).word(), expected);
    }

    #[test]
    fn a_broken_statement_counts_as_much_as_its_level_says() {
        check(Level::Must, "fail");
        check(Level::Should, "warn");
        check(Level::Open, "observed");
    }
}
