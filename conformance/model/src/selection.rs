//! The selection of statements for a run.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catalogue::{extended_statements, judged_statements, matches_pattern};

/// The profile of a run: the specification alone, or the extended checks too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// The statements of the specification, and no others.
    #[default]
    Spec,
    /// Also what the reference server chose where the specification leaves a choice.
    Extended,
}

/// The selection of statements for a run. Patterns may hold `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// The profile.
    #[serde(default)]
    pub profile: Profile,
    /// The patterns of the included statements; all if there are none.
    pub only: Vec<String>,
    /// The patterns of the skipped statements.
    pub skip: Vec<String>,
}

/// A pattern that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionError {
    /// The pattern matches only statements of [`Profile::Extended`], which is not set.
    Extended(String),
    /// The pattern matches no statement that has a check.
    Unknown(String),
}

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectionError::Extended(pattern) => {
                write!(f, "`{pattern}` matches only choices of the reference server; add --profile extended")
            }
            SelectionError::Unknown(pattern) => {
                write!(f, "no judged statement matches `{pattern}`; `chargeproof check --list` lists them")
            }
        }
    }
}

impl Error for SelectionError {}

impl Selection {
    /// Checks that every pattern matches a statement that has a check.
    ///
    /// # Errors
    ///
    /// [`SelectionError`] with the first pattern that matches no statement of the profile.
    pub fn validate(&self) -> Result<(), SelectionError> {
        let mut ids: Vec<String> = judged_statements().into_keys().collect();
        if self.profile == Profile::Extended {
            ids.extend(extended_statements().into_keys());
        }
        let is_known = |pattern: &&String| ids.iter().any(|id| matches_pattern(pattern, id));
        match self.only.iter().chain(&self.skip).find(|pattern| !is_known(pattern)) {
            None => Ok(()),
            Some(pattern) if extended_statements().keys().any(|id| matches_pattern(pattern, id)) => {
                Err(SelectionError::Extended(pattern.clone()))
            }
            Some(pattern) => Err(SelectionError::Unknown(pattern.clone())),
        }
    }

    /// Returns `true` if `only` is empty or one of its patterns matches a statement.
    pub fn selects(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| matches_pattern(pattern, id))
    }

    /// Returns `true` if a pattern of `skip` matches a statement.
    pub fn skips(&self, id: &str) -> bool {
        self.skip.iter().any(|pattern| matches_pattern(pattern, id))
    }
}
