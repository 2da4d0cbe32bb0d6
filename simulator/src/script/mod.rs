//! The scenario format: a title, a few settings, and steps.
//!
//! Owns reading, checking and the JSON Schema. Opens no file: text comes in, a [`Script`] or an error that shows
//! the line goes out.

mod diagnostic;
mod names;
mod node;
mod schema;
pub mod step;
mod typed;
pub mod value;
mod write;
mod yaml;

use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::write::in_line;
pub(crate) use self::{
    diagnostic::{Diagnostic, did_you_mean, show},
    names::{given, given_by, without_strangers},
};
pub use self::{
    diagnostic::{ScriptError, SourceSpan},
    names::Kind,
    schema::schema,
    typed::At,
};
use self::{
    step::{Settings, Step},
    value::{Duration, InMode, Moment},
};

/// The moment a scenario begins at when it does not say: a Monday morning.
const START: Timestamp = Timestamp(1_767_603_600_000_000);

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file, as messages show it.
    pub path: String,
    /// The text of the file.
    pub source: String,
    /// The title: the subject in one sentence.
    pub title: String,
    /// The seed of the world's random draws.
    pub seed: u64,
    /// The start of the service clock.
    pub start: Timestamp,
    /// The time from one act to the next.
    pub pace: Span,
    /// The mode of a step that does not say.
    pub mode: Mode,
    /// Settings of the account.
    pub account: Settings,
    /// The steps.
    pub steps: Vec<At<Step>>,
}

/// A title, a few settings, and steps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scenario", title = "A scenario for the payment service")]
struct ScenarioFile {
    /// The title: the subject in one sentence.
    title: String,
    /// More about it.
    #[serde(default)]
    #[expect(dead_code, reason = "for the reader of the file")]
    description: Option<String>,
    /// The seed of every draw of the world; 1 if not given.
    seed: Option<u64>,
    /// The start of the clock; 2026-01-05T09:00:00Z if not given.
    start: Option<Moment>,
    /// The time from one act to the next; 1s if not given.
    pace: Option<Duration>,
    /// The mode of steps that do not say; live if not given.
    mode: Option<InMode>,
    /// Settings of the account.
    #[serde(default)]
    account: Settings,
    /// The steps in order.
    steps: At<Vec<At<Step>>>,
}

impl Script {
    /// A scenario of steps between which no time passes, and nothing else.
    pub(crate) fn plain(title: &str, steps: Vec<At<Step>>) -> Script {
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

    /// Reads a scenario and checks that its steps name what there is. `path` is for messages only.
    ///
    /// ```
    /// use simulator::{play::{LocalStage, play}, script::Script};
    ///
    /// let source = "title: A charge is opened\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n";
    /// let script = Script::parse("opened.yaml", source).unwrap();
    /// let played = play(&script, None, &mut LocalStage::new()).unwrap();
    /// assert_eq!(played.events, 1);
    ///
    /// let error = Script::parse("opened.yaml", &source.replace("c1", "C1")).unwrap_err();
    /// assert!(error.to_string().contains("opened.yaml:3:21"));
    /// ```
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with the line that says it: no YAML, an unknown step or key, a value that cannot
    /// be read, a name that is unknown or taken, no steps.
    pub fn parse(path: &str, source: &str) -> Result<Script, ScriptError> {
        let fail = |diagnostic| ScriptError::new(path, source, diagnostic);
        let page: ScenarioFile = yaml::read(source).map_err(fail)?;
        if page.steps.value.is_empty() {
            let label = "says no step; try `- endpoint: shop`".to_owned();
            return Err(fail(Diagnostic {
                title: "nothing happens".to_owned(),
                span: page.steps.span,
                label,
            }));
        }
        names::check(&page.steps).map_err(fail)?;
        Ok(Script {
            path: path.to_owned(),
            source: source.to_owned(),
            title: page.title,
            seed: page.seed.unwrap_or(1),
            start: page.start.map_or(START, |start| start.0),
            pace: page.pace.map_or(Span::secs(1), |pace| pace.0),
            mode: page.mode.map_or(Mode::Live, |mode| mode.0),
            account: page.account,
            steps: page.steps.value,
        })
    }
}

/// Steps that stand alone. What they name is not looked for.
pub(crate) fn read_steps(source: &str) -> Result<Vec<At<Step>>, String> {
    yaml::read(source).map_err(|Diagnostic { title, label, .. }| format!("{title}: {label}"))
}

/// The file as plain JSON, as a schema check in an editor sees it; `None` if it is not YAML.
pub fn untyped(source: &str) -> Option<serde_json::Value> {
    yaml::read(source).ok()
}

#[cfg(test)]
mod tests;
