//! Every response in every scenario is documented.

use std::{collections::BTreeSet, fs, path::Path};

use simulator::{
    play::{Answer, Call, LocalStage, Stage, StageError, play},
    script::Script,
};
use testkit::files_below;

use super::document::Document;

/// A stage that compares every response with the document.
struct CheckedStage<'d> {
    stage: LocalStage,
    document: &'d mut Document,
    wrong: BTreeSet<String>,
    received: usize,
}

impl Stage for CheckedStage<'_> {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, StageError> {
        let answer = self.stage.call(call)?;
        let path = call.path.split('?').next().unwrap_or(call.path);
        self.received += 1;
        match self.document.find(call.method, path) {
            Some(operation) => {
                if let Err(why) = self.document.judge(&operation, answer.status, &answer.json()) {
                    self.wrong.insert(format!("{} {}: {why}", call.method, call.path));
                }
            }
            // Undocumented paths do not exist.
            None if matches!(answer.status, 401 | 404 | 405 | 429) => {}
            None => {
                self.wrong.insert(format!("{} {path} is not documented", call.method));
            }
        }
        Ok(answer)
    }
}

#[test]
fn scenario_responses_match_the_document() {
    let mut document = Document::read();
    let (mut wrong, mut received) = (BTreeSet::new(), 0);
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for path in files_below(&scenarios, "yaml") {
        let text = fs::read_to_string(&path).expect("a scenario can be read");
        let script = Script::parse(&path.to_string_lossy(), &text).unwrap_or_else(|error| panic!("{error}"));
        let mut stage = CheckedStage {
            stage: LocalStage::new(),
            document: &mut document,
            wrong: BTreeSet::new(),
            received: 0,
        };
        play(&script, None, &mut stage).unwrap_or_else(|error| panic!("{error}"));
        received += stage.received;
        wrong.append(&mut stage.wrong);
    }
    assert!(received > 1_000, "only {received} answers were received");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
