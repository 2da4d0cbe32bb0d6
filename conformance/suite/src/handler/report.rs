//! The reports about a handler: text, JSON, JUnit and Markdown, as pure functions of the outcome.

use std::fmt::Write;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use conformance_model::verdict::Verdict;

use super::{HandlerOutcome, HandlerRow};
use crate::report::{Style, Tone, one_line, pretty};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for a terminal.
    Text,
    /// JSON.
    Json,
    /// JUnit XML for CI systems.
    Junit,
    /// Markdown for the summary of a CI job.
    Markdown,
}

/// Returns a report in a format, with a final line break. `rerun_command`: the command that repeats the run, without
/// `--only`.
pub fn render(outcome: &HandlerOutcome, format: Format, style: Style, rerun_command: &str) -> String {
    match format {
        Format::Text => text(outcome, style, rerun_command),
        Format::Json => json(outcome),
        Format::Junit => junit(outcome),
        Format::Markdown => markdown(outcome),
    }
}

/// Returns the details below a statement.
fn details(row: &HandlerRow) -> Vec<(&'static str, String)> {
    let lines = match &row.verdict {
        Verdict::Fail(finding) | Verdict::Warn(finding) => {
            vec![("expected", finding.expected.clone()), ("actual", finding.actual.clone())]
        }
        Verdict::NotJudged { why, remedy } => vec![("because", why.clone()), ("remedy", remedy.clone())],
        Verdict::LeftOut { by } => vec![("by", by.clone())],
        _ => Vec::new(),
    };
    lines.into_iter().map(|(name, text)| (name, one_line(&text))).collect()
}

fn counts_text(outcome: &HandlerOutcome) -> String {
    let labels = [
        ("pass", "passed"),
        ("fail", "failed"),
        ("warn", "warned"),
        ("not judged", "not judged"),
        ("left out", "left out"),
    ];
    let count = |verdict: &str| outcome.rows.iter().filter(|row| row.verdict.as_str() == verdict).count();
    let parts: Vec<_> = labels
        .iter()
        .map(|(verdict, label)| (count(verdict), label))
        .filter(|(count, _)| *count > 0)
        .map(|(count, label)| format!("{count} {label}"))
        .collect();
    if parts.is_empty() { "nothing was judged".to_owned() } else { parts.join(", ") }
}

fn summary(outcome: &HandlerOutcome) -> String {
    let counts = counts_text(outcome);
    let summary = if outcome.interrupted { format!("interrupted: {counts}") } else { counts };
    let complete = if outcome.is_complete() { "complete" } else { "incomplete" };
    format!(
        "{}; {} of {} statements reported: {complete}; {} deliveries sent, seed {}; exit {}",
        summary,
        outcome.rows.len(),
        outcome.expected,
        outcome.delivery_count,
        outcome.seed,
        outcome.exit_code()
    )
}

fn stop_reason(outcome: &HandlerOutcome) -> Option<String> {
    outcome.unreachable.as_ref().map(|why| format!("{} does not respond: {}", outcome.url, one_line(why)))
}

fn text(outcome: &HandlerOutcome, style: Style, rerun_command: &str) -> String {
    const MARGIN: &str = "                  ";
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a string cannot fail");
    if let Some(why) = stop_reason(outcome) {
        line(why);
    }
    for row in outcome.rows.iter().filter(|row| !matches!(row.verdict, Verdict::NotJudged { .. })) {
        line(format!("{}  {:<22} {}", style.colour_verdict(&row.verdict), row.id, row.text));
        for (name, text) in details(row) {
            line(format!("{MARGIN}{name:<9} {text}"));
        }
        if matches!(row.verdict, Verdict::Fail(_) | Verdict::Warn(_)) {
            line(format!("{MARGIN}{:<9} {rerun_command} --only {}", "again", row.id));
        }
    }
    let gaps = gaps(&outcome.rows);
    if !gaps.is_empty() {
        line(format!("\n{}", style.colour("Not judged", Tone::Warning)));
    }
    for ((why, remedy), ids) in gaps {
        let statements = if ids.len() == 1 { "statement" } else { "statements" };
        line(format!("  {}: {} {statements}", one_line(why), ids.len()));
        line(format!("    {}", one_line(remedy)));
        line(format!("    {}", ids.join(", ")));
    }
    line(format!("\n{}", summary(outcome)));
    let (title, tone) = match outcome.exit_code() {
        0 => ("Passed", Tone::Success),
        1 => ("Failed", Tone::Failure),
        4 => ("Unreachable", Tone::Failure),
        130 => ("Interrupted", Tone::Warning),
        _ => ("Incomplete", Tone::Warning),
    };
    line(format!("\n{}: exit {}", style.colour(title, tone), outcome.exit_code()));
    out
}

/// Returns the statements that were not judged, grouped by cause and remedy, in the order of the trials.
fn gaps(rows: &[HandlerRow]) -> Vec<((&str, &str), Vec<&str>)> {
    let mut gaps: Vec<((&str, &str), Vec<&str>)> = Vec::new();
    for row in rows {
        let Verdict::NotJudged { why, remedy } = &row.verdict else { continue };
        let cause = (why.as_str(), remedy.as_str());
        match gaps.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, ids)) => ids.push(row.id),
            None => gaps.push((cause, vec![row.id])),
        }
    }
    gaps
}

fn json(outcome: &HandlerOutcome) -> String {
    let mut value = serde_json::to_value(outcome).expect("an outcome serializes to JSON");
    value["exit_code"] = outcome.exit_code().into();
    value["complete"] = outcome.is_complete().into();
    pretty(&value) + "\n"
}

fn junit(outcome: &HandlerOutcome) -> String {
    let mut report = Report::new("chargeproof receiver try");
    let mut suite = TestSuite::new("handler");
    for row in &outcome.rows {
        let lines: Vec<_> =
            details(row).into_iter().map(|(name, text)| format!("{name:<9} {text}")).collect();
        let status = match &row.verdict {
            Verdict::Fail(finding) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(format!("{} Actual: {}", row.text, one_line(&finding.actual)));
                status.set_description(lines.join("\n"));
                status
            }
            Verdict::NotJudged { .. } | Verdict::LeftOut { .. } => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(lines.join("; "));
                status
            }
            _ => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(row.id, status);
        case.set_classname("chargeproof.handler");
        if matches!(row.verdict, Verdict::Warn(_)) {
            case.set_system_out(format!("warn\n{}", lines.join("\n")));
        }
        suite.add_test_case(case);
    }
    // CI systems show skipped cases as green, so an incomplete run must fail.
    let status = if outcome.is_complete() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_message(stop_reason(outcome).unwrap_or_else(|| summary(outcome)));
        status
    };
    let mut case = TestCase::new("every required statement is judged", status);
    case.set_classname("chargeproof.completeness").set_system_out(summary(outcome));
    suite.add_test_case(case);
    report.add_test_suite(suite);
    report.to_string().expect("writing XML to memory cannot fail")
}

fn markdown(outcome: &HandlerOutcome) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    let mut out = format!(
        "## Webhook handler\n\n{}\n",
        stop_reason(outcome).map_or_else(|| summary(outcome), |why| cell(&why))
    );
    if !outcome.rows.is_empty() {
        out.push_str("\n| verdict | statement | |\n|---|---|---|\n");
    }
    for row in &outcome.rows {
        let details_text: Vec<_> =
            details(row).into_iter().map(|(name, text)| format!("{name}: {}", cell(&text))).collect();
        let (verdict, id, details_text) = (row.verdict.as_str(), row.id, details_text.join("; "));
        writeln!(out, "| {verdict} | `{id}` {} | {details_text} |", cell(row.text))
            .expect("writing to a string cannot fail");
    }
    out
}
