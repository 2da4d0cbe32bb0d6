//! `chargeproof judge`: the verdicts of a recording, without the server.

use std::fs;

use conformance::Outcome;

use crate::{Failure, args::Judge, reports};

pub(crate) fn run(args: &Judge) -> Result<u8, Failure> {
    let path = args.file.display();
    reports::prepare(&args.reports.report)?;
    let text = fs::read_to_string(&args.file)
        .map_err(|error| Failure::usage(format!("`{path}` can't be read: {error}")))?;
    let outcome =
        Outcome::from_file(&text).map_err(|error| Failure::usage(format!("`{path}` is {error}")))?;
    reports::tell(&outcome, &args.reports)?;
    Ok(outcome.exit_code())
}
