//! Every response in every scenario matches the OpenAPI document.

use std::{collections::BTreeSet, fs, path::Path};

use simulator::{
    play::{LocalStage, Stage, StageError, StageRequest, StageResponse, play},
    script::Script,
};
use testkit::files_below;

use super::document::Document;

/// A stage that compares every response with the document.
struct CheckedStage<'d> {
    stage: LocalStage,
    document: &'d mut Document,
    differences: BTreeSet<String>,
    response_count: usize,
}

impl Stage for CheckedStage<'_> {
    fn call(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StageError> {
        let response = self.stage.call(call)?;
        let path = call.path.split('?').next().unwrap_or(call.path);
        self.response_count += 1;
        match self.document.find(call.method, path) {
            Some(operation) => {
                if let Err(error) =
                    self.document.validate_response(&operation, response.status, &response.json())
                {
                    self.differences.insert(format!("{} {}: {error}", call.method, call.path));
                }
            }
            // Requests to undocumented paths get an error.
            None if matches!(response.status, 401 | 404 | 405 | 429) => {}
            None => {
                self.differences.insert(format!("{} {path} is not documented", call.method));
            }
        }
        Ok(response)
    }
}

#[test]
fn scenario_responses_match_the_document() {
    let mut document = Document::read();
    let (mut differences, mut response_count) = (BTreeSet::new(), 0);
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for path in files_below(&scenarios, "yaml") {
        let text = fs::read_to_string(&path).expect("a scenario can be read");
        let script = Script::parse(&path.to_string_lossy(), &text).unwrap_or_else(|error| panic!("{error}"));
        let mut stage = CheckedStage {
            stage: LocalStage::new(),
            document: &mut document,
            differences: BTreeSet::new(),
            response_count: 0,
        };
        play(&script, None, &mut stage).unwrap_or_else(|error| panic!("{error}"));
        response_count += stage.response_count;
        differences.append(&mut stage.differences);
    }
    assert!(response_count > 1_000, "only {response_count} responses were received");
    assert!(differences.is_empty(), "{differences:#?}");
}
