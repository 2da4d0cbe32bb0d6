//! The scenario format: a title, a few settings, and steps. The main type is [`Script`].
//!
//! Contains parsing, validation, writing and the JSON Schema. Must not open files: the input is a string, the
//! output a [`Script`] or an error with the line that causes it.

mod diagnostic;
mod names;
mod node;
mod schema;
pub mod step;
mod typed;
mod write;
mod yaml;

use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use schemars::JsonSchema;
use serde::Deserialize;

pub use crate::value;

pub(crate) use self::write::in_line;
pub(crate) use self::{
    diagnostic::{Diagnostic, render_diagnostic},
    names::{defined_names, is_numbered, names_defined_by, without_unknown_names},
};
pub use self::{
    diagnostic::{ScriptError, SourceSpan},
    names::Kind,
    schema::schema,
    typed::At,
};
use self::{
    step::{Settings, Step},
    value::{Duration, ModeName, Moment},
};

/// The default start of a scenario: a Monday morning.
const START: Timestamp = Timestamp(1_767_603_600_000_000);

/// A parsed and validated scenario.
#[derive(Clone, Debug)]
pub struct Script {
    /// The path of the file, for messages.
    pub path: String,
    /// The text of the file.
    pub source: String,
    /// The title: the subject in one sentence.
    pub title: String,
    /// The seed of the world's random draws.
    pub seed: u64,
    /// The start of the service clock.
    pub start: Timestamp,
    /// The time between two actions.
    pub pace: Span,
    /// The mode of steps without one.
    pub mode: Mode,
    /// The settings of the first account.
    pub account: Settings,
    /// The steps.
    pub steps: Vec<At<Step>>,
}

/// A scenario: a title, a few settings, and steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scenario", title = "A scenario for the payment service")]
struct ScenarioFile {
    /// The title: the subject in one sentence.
    title: String,
    /// A longer description.
    #[serde(default)]
    #[expect(dead_code, reason = "for the reader of the file")]
    description: Option<String>,
    /// The seed of all random draws; 1 by default.
    seed: Option<u64>,
    /// The start of the clock; 2026-01-05T09:00:00Z by default.
    start: Option<Moment>,
    /// The time between two actions; 1s by default.
    pace: Option<Duration>,
    /// The mode of steps without one; live by default.
    mode: Option<ModeName>,
    /// The settings of the first account.
    #[serde(default)]
    account: Settings,
    /// The steps in order.
    steps: At<Vec<At<Step>>>,
}

impl Script {
    /// Creates a scenario with default settings and no time between its steps.
    pub(crate) fn from_steps(title: &str, steps: Vec<At<Step>>) -> Script {
        Script {
            path: String::new(),
            source: String::new(),
            title: title.to_owned(),
            seed: 1,
            start: START,
            pace: Span(0),
            mode: Mode::Live,
            account: Settings::default(),
            steps,
        }
    }

    /// Parses a scenario and checks the names in its steps. `path` is for messages only.
    ///
    /// ```
    /// use simulator::{play::{LocalStage, play}, script::Script};
    ///
    /// let source = "title: A charge is opened\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n";
    /// let script = Script::parse("opened.yaml", source).unwrap();
    /// let summary = play(&script, None, &mut LocalStage::new()).unwrap();
    /// assert_eq!(summary.events, 1);
    ///
    /// let error = Script::parse("opened.yaml", &source.replace("c1", "C1")).unwrap_err();
    /// assert!(error.to_string().contains("opened.yaml:3:21"));
    /// ```
    ///
    /// # Errors
    ///
    /// The first error, with its line: invalid YAML, an unknown step or key, an invalid value, an unknown or duplicate
    /// name, no steps.
    pub fn parse(path: &str, source: &str) -> Result<Script, ScriptError> {
        let fail = |diagnostic| ScriptError::new(path, source, diagnostic);
        let file: ScenarioFile = yaml::parse_yaml(source).map_err(fail)?;
        if file.steps.value.is_empty() {
            let label = "add a step, such as `- endpoint: shop`".to_owned();
            return Err(fail(Diagnostic {
                title: "the scenario has no steps".to_owned(),
                span: file.steps.span,
                label,
            }));
        }
        names::check(&file.steps).map_err(fail)?;
        Ok(Script {
            path: path.to_owned(),
            source: source.to_owned(),
            title: file.title,
            seed: file.seed.unwrap_or(1),
            start: file.start.map_or(START, |start| start.0),
            pace: file.pace.map_or(Span::secs(1), |pace| pace.0),
            mode: file.mode.map_or(Mode::Live, |mode| mode.0),
            account: file.account,
            steps: file.steps.value,
        })
    }
}

/// Parses steps without checking their names.
pub(crate) fn parse_steps(source: &str) -> Result<Vec<At<Step>>, String> {
    yaml::parse_yaml(source).map_err(|Diagnostic { title, label, .. }| format!("{title}: {label}"))
}

/// Parses a file to JSON without checking it against the format, for JSON Schema validators; `None` if it is not YAML.
pub fn parse_untyped(source: &str) -> Option<serde_json::Value> {
    yaml::parse_yaml(source).ok()
}

#[cfg(test)]
mod tests;
