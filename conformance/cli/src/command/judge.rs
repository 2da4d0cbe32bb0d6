//! `chargeproof judge`: the verdicts of a recording, without the server.

use std::fs;

use conformance::Outcome;

use crate::{
    Failure,
    args::{Judge, ReportFormat},
    config::Config,
    reports,
};

pub(crate) fn run(args: &Judge, config: &Config) -> Result<u8, Failure> {
    let path = args.file.display();
    reports::prepare(&args.reports.report)?;
    let text = fs::read_to_string(&args.file)
        .map_err(|error| Failure::usage(format!("`{path}` can't be read: {error}")))?;
    let wrong = |error: String| Failure::usage(format!("`{path}` is {error}"));
    let outcome = if Outcome::is_har(&text) {
        let dialect = config.dialect().map_err(Failure::usage)?;
        let (outcome, told) = Outcome::from_har(&text, &dialect.key_prefix).map_err(wrong)?;
        if args.reports.format == ReportFormat::Text {
            anstream::eprintln!("a HAR file: {told}");
        }
        outcome
    } else {
        Outcome::from_file(&text).map_err(wrong)?
    };
    reports::tell(&outcome, &args.reports)?;
    Ok(outcome.exit_code())
}
