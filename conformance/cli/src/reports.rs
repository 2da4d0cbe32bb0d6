//! Writes the reports of `check` and `judge`: one to stdout, any number to files.

use conformance::{
    Outcome,
    report::{self, Detail, Layout, Style},
};

use crate::{
    Failure,
    args::{ReportFile, ReportOptions},
    files::{check_writable, write_atomically},
    terminal,
};

/// Checks that all report files can be written, before the first request.
pub(crate) fn check_report_files(files: &[ReportFile]) -> Result<(), Failure> {
    files.iter().try_for_each(|file| check_writable(&file.path))
}

/// Prints the report and writes the report files.
pub(crate) fn write_all(outcome: &Outcome, reports: &ReportOptions) -> Result<(), Failure> {
    // Power is the share of known server faults that the run would detect.
    let outcome_with_power = reports.power.then(|| outcome.clone().with_power());
    let outcome = outcome_with_power.as_ref().unwrap_or(outcome);
    let format = report::Format::from(reports.format);
    let detail = if reports.verbose { Detail::Full } else { Detail::Brief };
    let plain_layout = Layout { style: Style::Plain, detail, columns: None };
    match format {
        report::Format::Text => {
            let layout = Layout { style: Style::Colour, detail, columns: terminal::columns() };
            terminal::print(report::render(outcome, format, layout));
        }
        _ => terminal::print_raw(&report::render(outcome, format, plain_layout)),
    }
    reports.report.iter().try_for_each(|file| {
        write_atomically(&file.path, &report::render(outcome, file.format.into(), plain_layout))
    })
}
