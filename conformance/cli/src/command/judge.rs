//! `chargeproof judge`: the verdicts of a recording, without the server.

use conformance::Outcome;

use crate::{
    Failure,
    args::{JudgeRecording, ReportFormat},
    config::Config,
    files, reports,
    screen::note,
};

pub(crate) fn run(args: &JudgeRecording, config: &Config) -> Result<u8, Failure> {
    let path = args.file.display();
    reports::prepare(&args.reports.report)?;
    let text = files::text_of(&args.file, files::RECORDING_MAX)?;
    let is_scenario = text.lines().any(|line| line.starts_with("steps:") || line.starts_with("title:"));
    if is_scenario {
        return Err(Failure::usage(format!("`{path}` is a scenario; run it: chargeproof play {path}")));
    }
    let wrong = |error: String| Failure::usage(format!("`{path}` is {}", files::excerpt(&error)));
    let mut outcome = if Outcome::is_har(&text) {
        let (outcome, told) = Outcome::from_har(&text, &config.dialect.key_prefix).map_err(wrong)?;
        if args.reports.format == ReportFormat::Text {
            note!("a HAR file: {told}");
        }
        outcome
    } else {
        Outcome::from_file(&text).map_err(wrong)?
    };
    outcome.accept = args.reports.accept.clone().unwrap_or_default();
    reports::tell(&outcome, &args.reports)?;
    Ok(outcome.exit_code())
}
