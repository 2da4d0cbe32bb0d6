//! `chargeproof judge`: judges a recording without the server.

use std::path::Path;

use conformance::{FileError, Outcome};

use crate::{Failure, args::JudgeRecording, config::Config, files, reports, terminal::note};

pub(crate) fn run(args: &JudgeRecording, config: &Config) -> Result<u8, Failure> {
    reports::check_report_files(&args.reports.report)?;
    let mut outcome = judge_recording(&args.file, config)?;
    outcome.accepted_gaps = args.reports.accept.clone().unwrap_or_default();
    reports::write_all(&outcome, &args.reports)?;
    Ok(outcome.exit_code())
}

/// Judges a recording made with `check --record`, or a HAR file.
pub(super) fn judge_recording(file: &Path, config: &Config) -> Result<Outcome, Failure> {
    let path = file.display();
    let text = files::text_of(file, files::RECORDING_MAX)?;
    let is_scenario = text.lines().any(|line| line.starts_with("steps:") || line.starts_with("title:"));
    if is_scenario {
        return Err(Failure::usage(format!("`{path}` is a scenario; run it: chargeproof play {path}")));
    }
    let invalid = |error: FileError| {
        Failure::usage(format!("`{path}` is {}", files::truncate_message(&error.to_string())))
    };
    if Outcome::is_har(&text) {
        let (outcome, summary) = Outcome::from_har(&text, &config.dialect.key_prefix).map_err(invalid)?;
        note!("a HAR file: {summary}");
        return Ok(outcome);
    }
    Outcome::from_file(&text).map_err(invalid)
}
