//! The file of a run: requests, responses, and the selection of statements.
//!
//! Everything that a report shows follows from it, so a kept run is reported in the same words.

use serde::{Deserialize, Serialize};

use conformance_model::baseline::Baseline;
use conformance_model::budget::{Budget, Ledger};
use conformance_model::recording::{FORMAT, Recording};
use conformance_model::selection::Selection;
use conformance_model::verdict::Stop;

use conformance_probe::Run;

use crate::check::{Origin, Outcome};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptRun {
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
    /// The run as the text of a file. Keys were never in it.
    pub fn to_file(&self) -> String {
        let kept = KeptRun {
            recording: self.recording.clone(),
            selection: self.selection.clone(),
            baseline: self.baseline.clone(),
            private: self.private,
            stop: self.stop.clone(),
            budget: self.budget.clone(),
            requests: self.ledger.clone(),
            origin: self.origin.clone(),
        };
        serde_json::to_string(&kept).expect("a run is plain data") + "\n"
    }

    /// A kept run, judged again.
    ///
    /// # Errors
    ///
    /// Why the text is no recording of this format.
    pub fn from_file(text: &str) -> Result<Outcome, String> {
        let none = |why: String| format!("no recording of `chargeproof check --record`: {why}");
        let value: serde_json::Value = serde_json::from_str(text).map_err(|err| none(err.to_string()))?;
        match value["recording"]["format"].as_u64() {
            Some(format) if format != u64::from(FORMAT) => {
                return Err(format!(
                    "a recording of format {format}; this program reads {FORMAT}, so record again"
                ));
            }
            Some(_) => {}
            None => return Err(none("it names no `recording.format`".into())),
        }
        let kept: KeptRun = serde_json::from_value(value).map_err(|err| none(err.to_string()))?;
        let KeptRun { recording, selection, baseline, private, stop, budget, requests, origin } = kept;
        let interrupted = origin.interrupted.clone();
        let run = Run { recording, stop, budget, ledger: requests, interrupted };
        Ok(Outcome { origin, ..Outcome::of(run, selection, baseline, private) })
    }
}
