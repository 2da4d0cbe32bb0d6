//! The verdict on a statement, and its effect on the run.

use serde::{Deserialize, Serialize};

use crate::catalogue::{Level, Requirement};

/// A violation of a statement: the expectation, the contradicting observation and the exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The expectation of the statement.
    pub expected: String,
    /// The observation.
    pub actual: String,
    /// The number of the exchange, if a single one shows the violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
}

/// A known failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFailure {
    /// The reason for tolerating it.
    pub reason: String,
    /// The fingerprint that the evidence must have. The JSON report of a failure contains it.
    pub fingerprint: String,
    /// The last day on which it is tolerated, such as `2027-01-31`.
    pub expires: String,
}

/// The verdict on one statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The statement was tested and holds.
    Pass {
        /// The interpretation of the specification that it satisfies, or the evidence.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A `must` was violated.
    Fail(Finding),
    /// A `should` was violated.
    Warn(Finding),
    /// The statement could not be tested.
    NotJudged {
        /// The reason.
        why: String,
        /// The operator's remedy.
        remedy: String,
    },
    /// The statement does not apply, because the target lacks the feature that it is about.
    NotApplicable {
        /// The evidence.
        why: String,
    },
    /// The specification leaves the behaviour open; it was observed.
    Observed {
        /// The observation.
        seen: String,
    },
    /// The statement was violated as a known failure describes.
    Known {
        /// The finding.
        finding: Finding,
        /// The known failure.
        known: KnownFailure,
    },
    /// The operator excluded the statement.
    LeftOut {
        /// The command-line option.
        by: String,
    },
}

impl Verdict {
    /// Returns the name of the verdict in reports.
    pub fn as_str(&self) -> &'static str {
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

/// A statement and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct StatementResult {
    /// The id of the statement.
    pub id: String,
    /// The statement itself.
    #[serde(flatten)]
    pub requirement: Requirement,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl StatementResult {
    /// Returns `true` for a `must` that was not judged, which makes the run incomplete.
    pub fn is_unjudged_must(&self) -> bool {
        self.requirement.level == Level::Must && matches!(self.verdict, Verdict::NotJudged { .. })
    }
}

/// The reason why a run ended before anything could be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "stopped_by", content = "why", rename_all = "snake_case")]
pub enum Stop {
    /// The plan is invalid: an address, a key or a name.
    Configuration(String),
    /// The target did not respond.
    Unreachable(String),
}

/// The result of a check that found no violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It holds.
    Holds,
    /// It holds, with this interpretation or evidence.
    HoldsWith(String),
    /// The specification leaves the behaviour open; this was observed.
    Observed(String),
}

/// The result of a check that did not find that the statement holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The target violates the statement.
    Violation(Finding),
    /// The statement could not be judged.
    Unjudged {
        /// The reason.
        why: String,
        /// The operator's remedy.
        remedy: String,
    },
    /// The statement does not apply, for this reason.
    Inapplicable(String),
}

impl CheckError {
    /// Returns the error for a violated statement. `exchange`: the number of the exchange that shows it.
    pub fn violation(
        exchange: impl Into<Option<u32>>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) -> CheckError {
        let exchange = exchange.into();
        CheckError::Violation(Finding { expected: expected.into(), actual: actual.into(), exchange })
    }

    /// Returns the error for a statement that could not be judged.
    pub fn unjudged(why: impl Into<String>, remedy: impl Into<String>) -> CheckError {
        CheckError::Unjudged { why: why.into(), remedy: remedy.into() }
    }
}

/// The result of a check.
pub type CheckResult = Result<CheckOutcome, CheckError>;

/// Returns the verdict for the result of a check. The level decides the effect of a violation, so checks need not
/// know it.
pub fn verdict(level: Level, result: CheckResult) -> Verdict {
    match result {
        Ok(CheckOutcome::Holds) => Verdict::Pass { note: None },
        Ok(CheckOutcome::HoldsWith(note)) => Verdict::Pass { note: Some(note) },
        Ok(CheckOutcome::Observed(seen)) => Verdict::Observed { seen },
        Err(CheckError::Violation(finding)) => match level {
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
        assert_eq!(verdict(level, Err(CheckError::violation(None, "a", "b"))).as_str(), expected);
    }

    #[test]
    fn the_level_decides_the_effect_of_a_violation() {
        check(Level::Must, "fail");
        check(Level::Should, "warn");
        check(Level::Open, "observed");
    }
}
