//! Where reports go: one to stdout, any number to files.

use conformance::{Outcome, report};

use crate::{
    Failure,
    args::{ReportFile, Reports},
    files::{check_writable, write_whole},
    screen,
};

/// Finds out before the first request whether the files can be written.
pub(crate) fn prepare(files: &[ReportFile]) -> Result<(), Failure> {
    files.iter().try_for_each(|file| check_writable(&file.path))
}

/// Prints the report and writes the others.
pub(crate) fn tell(outcome: &Outcome, reports: &Reports) -> Result<(), Failure> {
    let powerful = reports.power.then(|| outcome.clone().with_power());
    let outcome = powerful.as_ref().unwrap_or(outcome);
    let format = report::Format::from(reports.format);
    match format {
        report::Format::Text => screen::print(report::render(outcome, format, report::Style::Colour)),
        _ => screen::print_raw(&report::render(outcome, format, report::Style::Plain)),
    }
    reports.report.iter().try_for_each(|file| {
        write_whole(&file.path, &report::render(outcome, file.format.into(), report::Style::Plain))
    })
}
