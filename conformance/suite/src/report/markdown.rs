//! The Markdown report for the summary of a CI job.

use std::fmt::Write;

use conformance_model::verdict::StatementResult;

use crate::check::Outcome;
use crate::report::view::{ReportView, VERDICT_NAMES, is_invisible};

/// Returns the report in the Markdown of GitHub and GitLab.
pub fn markdown(outcome: &Outcome) -> String {
    let view = ReportView::from_outcome(outcome);
    let mut out = String::new();
    let (verdict, reason) = view.run_verdict();
    let symbol = match outcome.exit_code() {
        0 => "✅",
        1 => "❌",
        _ => "⚠️",
    };
    push_line(&mut out, &format!("## {symbol} {verdict}: {reason}\n"));
    push_line(
        &mut out,
        &format!("{} — {}  ", code_span(&outcome.recording.base), escape(&view.completeness_text())),
    );
    push_line(
        &mut out,
        &format!(
            "{}; {}, {} requests; exit {}\n",
            view.counts_text(),
            view.reported_text(),
            outcome.ledger.total(),
            outcome.exit_code()
        ),
    );
    for note in view.notes().into_iter().chain(view.origin_text()) {
        push_line(&mut out, &format!("{}\n", escape(&note)));
    }
    for line in view.power_lines() {
        push_line(&mut out, &format!("{}  ", escape(&line)));
    }
    if let Some(why) = view.stop_reason() {
        push_line(&mut out, &format!("> {}\n", escape(&why)));
    }
    write_matrix(&mut out, &view);
    for (verdict, title) in [("fail", "Violations"), ("known", "Known failures"), ("warn", "Warnings")] {
        let rows = view.rows_with_verdict(verdict);
        if !rows.is_empty() {
            push_line(&mut out, &format!("### {title}\n"));
            rows.into_iter().for_each(|row| write_statement(&mut out, &view, row));
        }
    }
    write_gaps(&mut out, &view);
    write_observations(&mut out, &view);
    write_statements(&mut out, &view);
    out
}

/// Writes the number of statements by section and verdict.
fn write_matrix(out: &mut String, view: &ReportView<'_>) {
    if view.sections.is_empty() {
        return;
    }
    push_line(out, &format!("| section | {} |", VERDICT_NAMES.join(" | ")));
    push_line(out, &format!("|---|{}", "--:|".repeat(VERDICT_NAMES.len())));
    for section in &view.sections {
        let count_of =
            |verdict: &&str| section.rows.iter().filter(|row| row.verdict.as_str() == *verdict).count();
        let cells = VERDICT_NAMES
            .iter()
            .map(count_of)
            .map(|count| if count == 0 { String::new() } else { count.to_string() });
        push_line(
            out,
            &format!("| {} | {} |", escape(&section.name()), cells.collect::<Vec<_>>().join(" | ")),
        );
    }
    push_line(out, "");
}

fn write_statement(out: &mut String, view: &ReportView<'_>, row: &StatementResult) {
    push_line(out, &format!("**{}** {}\n", escape(&row.id), escape(&row.requirement.text)));
    let lines = view.details(row);
    let lines: Vec<_> =
        lines.iter().map(|(name, text)| format!("{name:<11} {}", on_one_line(text))).collect();
    let body = lines.join("\n");
    let fence = "`".repeat(longest_backtick_run(&body).max(2) + 1);
    push_line(out, &format!("{fence}text\n{body}\n{fence}\n"));
}

fn write_gaps(out: &mut String, view: &ReportView<'_>) {
    let gaps = view.gaps();
    if gaps.is_empty() {
        return;
    }
    push_line(out, "### Not judged\n");
    push_line(out, "| cause | remedy | statements |\n|---|---|---|");
    for gap in gaps {
        let (why, remedy, ids) = (escape(&gap.title()), escape(&gap.remedy), gap.ids().join(", "));
        push_line(out, &format!("| {why} | {remedy} | {} |", escape(&ids)));
    }
    push_line(out, "");
}

fn write_observations(out: &mut String, view: &ReportView<'_>) {
    if view.observations.is_empty() {
        return;
    }
    push_line(out, "### Observed, where the specification leaves it open\n");
    push_line(out, "| topic | observation |\n|---|---|");
    for observation in &view.observations {
        let (topic, seen) = (escape(&observation.topic), escape(&observation.seen));
        push_line(out, &format!("| {topic} | {seen} |"));
    }
    push_line(out, "");
}

fn write_statements(out: &mut String, view: &ReportView<'_>) {
    if view.sections.is_empty() {
        return;
    }
    push_line(out, "<details><summary>Every statement</summary>\n");
    push_line(out, "| | statement | section | text |\n|---|---|---|---|");
    for row in view.sections.iter().flat_map(|section| &section.rows) {
        let (verdict, spec, text) = (row.verdict.as_str(), &row.requirement.spec, &row.requirement.text);
        push_line(out, &format!("| {verdict} | {} | {} | {} |", escape(&row.id), escape(spec), escape(text)));
    }
    push_line(out, "\n</details>");
}

/// Escapes text, so that a server cannot inject markup, table cells or mentions.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in on_one_line(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => out.extend(['\\', character]),
            _ => out.push(character),
        }
    }
    out
}

/// Returns a code span with a fence that is longer than any backticks in the text.
fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_backtick_run(text) + 1);
    format!("{fence}{}{fence}", on_one_line(text))
}

/// Replaces invisible characters, including line breaks, by spaces.
fn on_one_line(text: &str) -> String {
    text.chars().map(|character| if is_invisible(character) { ' ' } else { character }).collect()
}

/// Returns the length of the longest run of backticks.
fn longest_backtick_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

fn push_line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(escape(text), expected);
    }

    #[test]
    fn text_of_a_server_is_escaped() {
        check("<img src=x>\n| a | @you", "&lt;img src=x&gt; \\| a \\| &#64;you");
        check("[x](y) `z` *b*", "\\[x\\](y) \\`z\\` \\*b\\*");
    }

    #[test]
    fn code_may_contain_backticks() {
        assert_eq!(code_span("a``b"), "```a``b```");
    }
}
