//! The reports of a fuzz run, as pure functions of the outcome.

use std::fmt::Write;

use url::Url;

use super::{Outcome, SavedFindings};
use crate::report::{Style, Tone, one_line, pretty};

/// Returns the file for `fuzz --replay`: the violated invariants and their sequences.
pub fn saved_findings(outcome: &Outcome) -> String {
    let saved = SavedFindings { format: SavedFindings::FORMAT, found: outcome.found.clone() };
    pretty(&saved) + "\n"
}

/// Returns the JSON report.
pub fn json(outcome: &Outcome) -> String {
    let mut value = serde_json::to_value(outcome).expect("an outcome serializes to JSON");
    value["exit_code"] = outcome.exit_code().into();
    pretty(&value) + "\n"
}

/// Returns the text report: each violated invariant with curl commands that reproduce it. `saved_file`: the path of
/// the file with the sequences, if they were saved.
pub fn text(outcome: &Outcome, style: Style, saved_file: Option<&str>) -> String {
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{}", one_line(text)).expect("writing to a string cannot fail");
    if let Some(why) = &outcome.unreachable {
        line(&format!("{} does not respond: {why}", outcome.base));
    }
    if let Some(message) = &outcome.wrong_key {
        line(message);
    }
    let base = Url::parse(&outcome.base).ok();
    for found in &outcome.found {
        let violation = &found.violation;
        writeln!(out, "{}  {}", style.colour("fail", Tone::Failure), violation.statement)
            .expect("writing to a string cannot fail");
        let mut line =
            |text: &str| writeln!(out, "{}", one_line(text)).expect("writing to a string cannot fail");
        line(&format!("  expected  {}", violation.expected));
        line(&format!("  actual    {}", violation.actual));
        if !found.is_reproducible {
            line("  not reproduced when the requests were repeated");
        }
        for (index, (template, sent)) in found.templates.iter().zip(&found.sent).enumerate() {
            let label = if index == 0 { "request" } else { "" };
            if let Some(base) = &base {
                line(&format!("  {label:<9} {}", template.curl(base, &outcome.key_prefix, sent)));
            }
        }
        if let Some(file) = saved_file {
            line(&format!("  again     chargeproof fuzz {} --replay {file}", outcome.base));
        }
    }
    let statuses: Vec<_> =
        outcome.statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
    let summary = match outcome.found.len() {
        0 if outcome.exit_code() != 0 && outcome.statuses.is_empty() => "nothing was judged".to_owned(),
        0 => "no invariant was violated".to_owned(),
        1 => "1 invariant was violated".to_owned(),
        count => format!("{count} invariants were violated"),
    };
    let summary = if outcome.interrupted { format!("interrupted: {summary} so far") } else { summary };
    let summary_line = format!(
        "{summary}; {} requests, seed {}; exit {}",
        outcome.requests,
        outcome.seed,
        outcome.exit_code()
    );
    if !statuses.is_empty() {
        writeln!(out, "responses {}", statuses.join(", ")).expect("writing to a string cannot fail");
    }
    writeln!(out, "{summary_line}").expect("writing to a string cannot fail");
    out
}
