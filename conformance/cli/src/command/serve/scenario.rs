//! `serve --scenario`: a world in which a scenario was played, to look around in.

use std::path::Path;

use simulator::{
    play::{Answer, Call, Stage, StageError, play},
    script::Script,
};

use crate::{
    Failure,
    files::{self, SCENARIO_MAX},
    remote::RemoteStage,
    screen::note,
};

/// The scenario of a file, up to a step, counted from 1.
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

/// Plays it in a server with a frozen clock. Where it stops, the world is left as it stands there.
pub(super) fn open(url: &str, token: &str, script: &Script) -> Result<(), Failure> {
    let stage = RemoteStage::new(url).map_err(Failure::usage)?;
    match play(script, None, &mut Admitted { stage, token }) {
        Ok(played) => {
            note!(
                "the scenario was played, steps: {}; the clock stands {} after its start",
                played.steps,
                played.lasted
            );
        }
        Err(error) => note!("{error}\nthe scenario stopped there, and the world stands as it was then"),
    }
    Ok(())
}

/// A server whose sandbox asks for a token.
struct Admitted<'a> {
    stage: RemoteStage,
    token: &'a str,
}

impl Stage for Admitted<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, StageError> {
        let is_sandbox = call.path.starts_with("/sandbox");
        self.stage.call(&Call { bearer: call.bearer.or(is_sandbox.then_some(self.token)), ..*call })
    }
}
