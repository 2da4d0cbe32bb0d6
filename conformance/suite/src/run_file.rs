//! The file of a run: requests, responses, and the selection of statements.
//!
//! A report is a pure function of this file and the options of the report (the accepted gaps and the power), so a
//! stored run has the same report.

use serde::{Deserialize, Serialize};

use conformance_model::baseline::Baseline;
use conformance_model::budget::{Budget, Ledger};
use conformance_model::recording::{FORMAT_VERSION, Recording};
use conformance_model::selection::Selection;
use conformance_model::verdict::Stop;

use conformance_probe::RunResult;

use crate::FileError;
use crate::check::{Origin, Outcome};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    recording: Recording,
    selection: Selection,
    baseline: Baseline,
    private: bool,
    stop: Option<Stop>,
    budget: Budget,
    requests: Ledger,
    #[serde(default)]
    origin: Origin,
}

impl Outcome {
    /// Returns the text of the run file. It contains no keys.
    pub fn to_file(&self) -> String {
        let file = RunFile {
            recording: self.recording.clone(),
            selection: self.selection.clone(),
            baseline: self.baseline.clone(),
            private: self.is_redacted,
            stop: self.stop.clone(),
            budget: self.budget.clone(),
            requests: self.ledger.clone(),
            origin: self.origin.clone(),
        };
        serde_json::to_string(&file).expect("a run serializes to JSON") + "\n"
    }

    /// Parses the text of a run file, and judges the run again.
    ///
    /// # Errors
    ///
    /// [`FileError::Malformed`] if the text is not a recording, [`FileError::UnsupportedFormat`] for another version.
    pub fn from_file(text: &str) -> Result<Outcome, FileError> {
        let malformed = |error: String| FileError::Malformed {
            message: "not a recording of `chargeproof check --record`",
            error,
        };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|err| malformed(err.to_string()))?;
        match value["recording"]["format"].as_u64() {
            Some(format) if format != u64::from(FORMAT_VERSION) => {
                return Err(FileError::UnsupportedFormat { found: format, supported: FORMAT_VERSION });
            }
            Some(_) => {}
            None => return Err(malformed("`recording.format` is missing".into())),
        }
        let file: RunFile = serde_json::from_value(value).map_err(|err| malformed(err.to_string()))?;
        let RunFile { recording, selection, baseline, private, stop, budget, requests, origin } = file;
        let interrupted = origin.interrupted.clone();
        let run =
            RunResult { recording, stop, budget, ledger: requests, completed_if_interrupted: interrupted };
        Ok(Outcome { origin, ..Outcome::from_run(run, selection, baseline, private) })
    }
}
