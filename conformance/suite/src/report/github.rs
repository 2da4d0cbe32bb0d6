//! Annotations for a GitHub workflow: one workflow command per line.

use std::fmt::Write;

use conformance_model::verdict::{StatementResult, Verdict};

use crate::check::Outcome;
use crate::report::view::{ReportView, printable};

/// Returns an error for each failure, a warning for each warning, known failure and group of required gaps, a notice
/// of the observations, and a summary, which is an error unless the run passed.
pub fn github(outcome: &Outcome) -> String {
    let view = ReportView::from_outcome(outcome);
    let mut out = String::new();
    if let Some(why) = view.stop_reason() {
        annotate(&mut out, "error", "chargeproof", &why);
    }
    for row in &outcome.rows {
        let kind = match &row.verdict {
            Verdict::Fail(_) => "error",
            Verdict::Warn(_) | Verdict::Known { .. } => "warning",
            _ => continue,
        };
        annotate(
            &mut out,
            kind,
            &format!("{}: {}", row.verdict.as_str(), row.id),
            &annotation_text(&view, row),
        );
    }
    for gap in view.gaps().into_iter().filter(|gap| gap.rows.iter().any(|row| row.is_unjudged_must())) {
        let text = format!("remedy: {}\n{}", gap.remedy, gap.ids().join(", "));
        annotate(&mut out, "warning", &format!("not judged, {}", gap.title()), &text);
    }
    if !view.observations.is_empty() {
        let lines: Vec<_> = view
            .observations
            .iter()
            .map(|observation| format!("{}: {}", observation.topic, observation.seen))
            .collect();
        annotate(&mut out, "notice", "observed, where the specification leaves it open", &lines.join("\n"));
    }
    let kind = if outcome.exit_code() == 0 { "notice" } else { "error" };
    let mut summary = view.notes();
    summary.extend(view.origin_text());
    summary.push(view.completeness_text());
    let (requests, exit) = (outcome.ledger.total(), outcome.exit_code());
    summary.push(format!(
        "{}; {}, {requests} requests; exit {exit}",
        view.counts_text(),
        view.reported_text()
    ));
    let (verdict, _) = view.run_verdict();
    annotate(&mut out, kind, &format!("{verdict}: {}", outcome.recording.base), &summary.join("\n"));
    out
}

fn annotation_text(view: &ReportView<'_>, row: &StatementResult) -> String {
    let lines = view.details(row).into_iter().map(|(name, text)| format!("{name:<11} {text}"));
    [row.requirement.text.clone()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn annotate(out: &mut String, kind: &str, title: &str, text: &str) {
    writeln!(out, "::{kind} title={}::{}", escape_property(title), escape_text(text))
        .expect("writing to a string cannot fail");
}

/// Escapes the text of a workflow command. A line break in a server's text could start another command.
fn escape_text(text: &str) -> String {
    printable(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A"))
}

fn escape_property(text: &str) -> String {
    escape_text(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(title: &str, text: &str, expected: &str) {
        let mut out = String::new();
        annotate(&mut out, "error", title, text);
        assert_eq!(out, format!("{expected}\n"));
    }

    #[test]
    fn text_cannot_inject_a_command() {
        check("a: b, c", "50%\r\n::error::x", "::error title=a%3A b%2C c::50%25%0D%0A::error::x");
    }
}
