//! Which statements a run is about.

use serde::{Deserialize, Serialize};

use crate::catalogue::{extended, fits, judged};

/// What a run asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// What the specification says, and nothing else.
    #[default]
    Spec,
    /// Also what the reference server chose where the specification leaves a choice.
    Extended,
}

/// Which statements a run is about. Patterns may hold `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Selection {
    /// What is asked for at all.
    #[serde(default)]
    pub profile: Profile,
    /// Only the statements that fit one of these; all if there are none.
    pub only: Vec<String>,
    /// Not the statements that fit one of these.
    pub skip: Vec<String>,
}

impl Selection {
    /// Checks that every pattern names something that is judged.
    ///
    /// # Errors
    ///
    /// Names the first pattern that does not, and says what to do.
    pub fn validate(&self) -> Result<(), String> {
        let mut ids: Vec<String> = judged().into_keys().collect();
        if self.profile == Profile::Extended {
            ids.extend(extended().into_keys());
        }
        let known = |pattern: &&String| ids.iter().any(|id| fits(pattern, id));
        match self.only.iter().chain(&self.skip).find(|pattern| !known(pattern)) {
            None => Ok(()),
            Some(pattern) if extended().keys().any(|id| fits(pattern, id)) => {
                Err(format!("`{pattern}` names choices of the reference server; say --profile extended too"))
            }
            Some(pattern) => Err(format!(
                "no statement that is judged is called `{pattern}`; `chargeproof check --list` names them"
            )),
        }
    }

    /// Whether the run is about a statement.
    pub fn selects(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| fits(pattern, id))
    }

    /// Whether the run passes over a statement.
    pub fn skips(&self, id: &str) -> bool {
        self.skip.iter().any(|pattern| fits(pattern, id))
    }
}
