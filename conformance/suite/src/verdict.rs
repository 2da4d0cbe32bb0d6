//! What can be said about one statement, and what follows for the run.

use serde::{Deserialize, Serialize};

use crate::baseline::Known;
use crate::catalogue::{Level, Requirement};

/// What was expected, what came instead, and which exchange shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What the statement asks for.
    pub expected: String,
    /// What was seen.
    pub actual: String,
    /// The number of the exchange that shows it, if a single one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u32>,
}

/// The word on one statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Exercised, and it held.
    Pass {
        /// Which of several honest readings it satisfies, or on what ground it was judged.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A required statement was broken.
    Fail(Finding),
    /// A derived statement did not hold.
    Warn(Finding),
    /// It could not be exercised.
    NotJudged {
        /// Why not.
        why: String,
        /// What the operator can do about it.
        remedy: String,
    },
    /// Shown not to exist here.
    NotApplicable {
        /// What showed it.
        why: String,
    },
    /// The specification leaves it open; this is what was seen.
    Observed {
        /// What was seen.
        seen: String,
    },
    /// It was broken in a way that the operator knows of.
    Known {
        /// What was seen.
        finding: Finding,
        /// What is known of it.
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
    /// Whether the run is incomplete because of this row.
    pub fn leaves_a_gap(&self) -> bool {
        self.requirement.level == Level::Must && matches!(self.verdict, Verdict::NotJudged { .. })
    }
}

/// What a check found when the statement held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Plainly,
    With(String),
    Seen(String),
}

/// Why a check could not say that the statement held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    Broken(Finding),
    Unjudged { why: String, remedy: String },
    Inapplicable(String),
}

impl Halt {
    pub(crate) fn broken(
        exchange: impl Into<Option<u32>>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) -> Halt {
        let exchange = exchange.into();
        Halt::Broken(Finding { expected: expected.into(), actual: actual.into(), exchange })
    }

    pub(crate) fn unjudged(why: impl Into<String>, remedy: impl Into<String>) -> Halt {
        Halt::Unjudged { why: why.into(), remedy: remedy.into() }
    }
}

pub(crate) type Judged = Result<Held, Halt>;

/// The level decides what a broken statement counts for; no check needs to know its own.
pub(crate) fn verdict(level: Level, judged: Judged) -> Verdict {
    match judged {
        Ok(Held::Plainly) => Verdict::Pass { note: None },
        Ok(Held::With(note)) => Verdict::Pass { note: Some(note) },
        Ok(Held::Seen(seen)) => Verdict::Observed { seen },
        Err(Halt::Broken(finding)) => match level {
            Level::Must => Verdict::Fail(finding),
            Level::Should => Verdict::Warn(finding),
            Level::Open => Verdict::Observed { seen: finding.actual },
        },
        Err(Halt::Unjudged { why, remedy }) => Verdict::NotJudged { why, remedy },
        Err(Halt::Inapplicable(why)) => Verdict::NotApplicable { why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(level: Level, expected: &str) {
        assert_eq!(verdict(level, Err(Halt::broken(None, "a", "b"))).word(), expected);
    }

    #[test]
    fn a_broken_statement_counts_as_much_as_its_level_says() {
        check(Level::Must, "fail");
        check(Level::Should, "warn");
        check(Level::Open, "observed");
    }
}
