//! The Markdown report for the summary of a CI job.

use std::fmt::Write;

use conformance_model::verdict::Row;

use crate::check::Outcome;
use crate::report::view::{ReportView, WORDS, is_unseen};

/// Returns the report in the Markdown of GitHub and GitLab.
pub fn markdown(outcome: &Outcome) -> String {
    let view = ReportView::of(outcome);
    let mut out = String::new();
    let (word, sentence) = view.verdict();
    let sign = match outcome.exit_code() {
        0 => "✅",
        1 => "❌",
        _ => "⚠️",
    };
    put(&mut out, &format!("## {sign} {word}: {sentence}\n"));
    put(&mut out, &format!("{} — {}  ", code(&outcome.recording.base), escaped(&view.completeness())));
    put(
        &mut out,
        &format!(
            "{}; {}, {} requests; exit {}\n",
            view.counts(),
            view.reported(),
            outcome.ledger.total(),
            outcome.exit_code()
        ),
    );
    for note in view.notes().into_iter().chain(view.origin()) {
        put(&mut out, &format!("{}\n", escaped(&note)));
    }
    for sentence in view.power() {
        put(&mut out, &format!("{}  ", escaped(&sentence)));
    }
    if let Some(why) = view.stop() {
        put(&mut out, &format!("> {}\n", escaped(&why)));
    }
    matrix(&mut out, &view);
    for (word, title) in [("fail", "Violations"), ("known", "Known failures"), ("warn", "Warnings")] {
        let rows = view.rows(word);
        if !rows.is_empty() {
            put(&mut out, &format!("### {title}\n"));
            rows.into_iter().for_each(|row| entry(&mut out, &view, row));
        }
    }
    gaps(&mut out, &view);
    observations(&mut out, &view);
    every_statement(&mut out, &view);
    out
}

fn matrix(out: &mut String, view: &ReportView<'_>) {
    if view.sections.is_empty() {
        return;
    }
    put(out, &format!("| section | {} |", WORDS.join(" | ")));
    put(out, &format!("|---|{}", "--:|".repeat(WORDS.len())));
    for section in &view.sections {
        let of = |word: &&str| section.rows.iter().filter(|row| row.verdict.as_str() == *word).count();
        let cells =
            WORDS.iter().map(of).map(|count| if count == 0 { String::new() } else { count.to_string() });
        put(out, &format!("| {} | {} |", escaped(&section.name()), cells.collect::<Vec<_>>().join(" | ")));
    }
    put(out, "");
}

fn entry(out: &mut String, view: &ReportView<'_>, row: &Row) {
    put(out, &format!("**{}** {}\n", escaped(&row.id), escaped(&row.requirement.text)));
    let lines = view.details(row);
    let lines: Vec<_> =
        lines.iter().map(|(name, text)| format!("{name:<11} {}", on_one_line(text))).collect();
    let body = lines.join("\n");
    let fence = "`".repeat(longest_run(&body).max(2) + 1);
    put(out, &format!("{fence}text\n{body}\n{fence}\n"));
}

fn gaps(out: &mut String, view: &ReportView<'_>) {
    let gaps = view.gaps();
    if gaps.is_empty() {
        return;
    }
    put(out, "### Not judged\n");
    put(out, "| cause | remedy | statements |\n|---|---|---|");
    for gap in gaps {
        let (why, remedy, ids) = (escaped(&gap.title()), escaped(&gap.remedy), gap.ids().join(", "));
        put(out, &format!("| {why} | {remedy} | {} |", escaped(&ids)));
    }
    put(out, "");
}

fn observations(out: &mut String, view: &ReportView<'_>) {
    if view.observations.is_empty() {
        return;
    }
    put(out, "### Observed, where the specification leaves it open\n");
    put(out, "| what | seen |\n|---|---|");
    for it in &view.observations {
        put(out, &format!("| {} | {} |", escaped(&it.topic), escaped(&it.seen)));
    }
    put(out, "");
}

fn every_statement(out: &mut String, view: &ReportView<'_>) {
    if view.sections.is_empty() {
        return;
    }
    put(out, "<details><summary>Every statement</summary>\n");
    put(out, "| | statement | section | text |\n|---|---|---|---|");
    for row in view.sections.iter().flat_map(|section| &section.rows) {
        let (word, spec, text) = (row.verdict.as_str(), &row.requirement.spec, &row.requirement.text);
        put(out, &format!("| {word} | {} | {} | {} |", escaped(&row.id), escaped(spec), escaped(text)));
    }
    put(out, "\n</details>");
}

/// Escapes text, so that a server cannot inject markup, table cells or mentions.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in on_one_line(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}

/// Returns a code span with a fence that is longer than any backticks in the text.
fn code(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    format!("{fence}{}{fence}", on_one_line(text))
}

fn on_one_line(text: &str) -> String {
    text.chars().map(|character| if is_unseen(character) { ' ' } else { character }).collect()
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

fn put(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(escaped(text), expected);
    }

    #[test]
    fn text_of_a_server_is_escaped() {
        check("<img src=x>\n| a | @you", "&lt;img src=x&gt; \\| a \\| &#64;you");
        check("[x](y) `z` *b*", "\\[x\\](y) \\`z\\` \\*b\\*");
    }

    #[test]
    fn code_may_contain_backticks() {
        assert_eq!(code("a``b"), "```a``b```");
    }
}
