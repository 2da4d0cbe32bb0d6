//! `serve --scenario`: plays a scenario and serves the resulting world, for inspection in the dashboard.

use std::path::Path;

use simulator::{
    play::{Stage, StageError, StageRequest, StageResponse, play},
    script::Script,
};

use crate::{
    Failure,
    files::{self, SCENARIO_MAX},
    remote::RemoteStage,
    terminal::note,
};

/// Reads a scenario and drops the steps after `until`, which counts from 1. `seed` replaces its seed.
pub(super) fn read(path: &Path, until: Option<usize>, seed: Option<u64>) -> Result<Script, Failure> {
    let text = files::text_of(path, SCENARIO_MAX)?;
    let mut script = Script::parse(&path.display().to_string(), &text)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let (steps, until) = (script.steps.len(), until.unwrap_or(script.steps.len()));
    if !(1..=steps).contains(&until) {
        return Err(Failure::usage(format!("`--until` is `{until}`; the scenario has steps 1 to {steps}")));
    }
    script.steps.truncate(until);
    script.seed = seed.unwrap_or(script.seed);
    Ok(script)
}

/// Plays a scenario on a server with a frozen clock. If a step fails, the world keeps the state reached so far.
pub(super) fn run(url: &str, token: &str, script: &Script) -> Result<(), Failure> {
    let stage = RemoteStage::new(url).map_err(Failure::usage)?;
    match play(script, None, &mut TokenStage { stage, token }) {
        Ok(summary) => {
            note!(
                "played {} steps of the scenario; the clock has advanced by {}",
                summary.steps,
                summary.duration
            );
        }
        Err(error) => {
            note!("{error}\nthe scenario stopped at that step; the world keeps the state reached so far")
        }
    }
    Ok(())
}

/// A stage that adds the sandbox token to `/sandbox` calls without a bearer token.
struct TokenStage<'a> {
    stage: RemoteStage,
    token: &'a str,
}

impl Stage for TokenStage<'_> {
    fn call(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StageError> {
        let is_sandbox = call.path.starts_with("/sandbox");
        self.stage.call(&StageRequest { bearer: call.bearer.or(is_sandbox.then_some(self.token)), ..*call })
    }
}
