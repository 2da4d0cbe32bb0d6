//! The report for people: each failure ends with what to type next.

use std::fmt::Write;

use crate::catalogue::Level;
use crate::check::{Outcome, Stop};
use crate::report::command::{again, curl};
use crate::verdict::{Finding, Row, Verdict};

/// Whether words of judgement have a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For files and pipes.
    Plain,
    /// For terminals that understand ANSI colours.
    Colour,
}

impl Style {
    fn paint(self, verdict: &Verdict) -> String {
        let word = format!("{:>14}", verdict.word());
        let colour = match verdict {
            Verdict::Pass { .. } => 32,
            Verdict::Fail(_) => 31,
            Verdict::Warn(_) | Verdict::NotJudged { .. } => 33,
            _ => 2,
        };
        match self {
            Style::Plain => word,
            Style::Colour => format!("\u{1b}[{colour}m{word}\u{1b}[0m"),
        }
    }
}

const MARGIN: &str = "                  ";

/// The whole report, ending with the counts and the exit code.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let mut out = String::new();
    match &outcome.stop {
        Some(Stop::Configuration(why)) => line(&mut out, &format!("cannot check: {why}")),
        Some(Stop::Unreachable(why)) => {
            line(&mut out, &format!("{} did not answer: {why}", outcome.recording.base))
        }
        None => {}
    }
    for row in &outcome.rows {
        line(&mut out, &format!("{}  {}   {}", style.paint(&row.verdict), row.id, row.requirement.text));
        explain(&mut out, outcome, row);
    }
    summary(&mut out, outcome);
    out
}

fn explain(out: &mut String, outcome: &Outcome, row: &Row) {
    match &row.verdict {
        Verdict::Pass { note: None } => {}
        Verdict::Pass { note: Some(note) } => detail(out, "reading", note),
        Verdict::Fail(finding) | Verdict::Warn(finding) => evidence(out, outcome, row, finding),
        Verdict::NotJudged { why, remedy } => {
            detail(out, "because", why);
            detail(out, "remedy", remedy);
        }
        Verdict::NotApplicable { why } => detail(out, "because", why),
        Verdict::Observed { seen } => detail(out, "seen", seen),
        Verdict::LeftOut { by } => detail(out, "by", by),
    }
}

fn evidence(out: &mut String, outcome: &Outcome, row: &Row, finding: &Finding) {
    detail(out, "expected", &finding.expected);
    detail(out, "actual", &finding.actual);
    if let Some(exchange) = finding.exchange.and_then(|number| outcome.recording.exchange(number)) {
        detail(out, "asked", &curl(&outcome.recording, exchange));
    }
    detail(out, "again", &again(&outcome.recording, &row.id));
}

fn summary(out: &mut String, outcome: &Outcome) {
    let count = |fits: &dyn Fn(&Row) -> bool| outcome.rows.iter().filter(|row| fits(row)).count();
    let required: Vec<_> = outcome.rows.iter().filter(|row| row.requirement.level == Level::Must).collect();
    let judged =
        required.iter().filter(|row| matches!(row.verdict, Verdict::Pass { .. } | Verdict::Fail(_))).count();
    let gaps = count(&Row::leaves_a_gap);
    let verdict = if gaps > 0 || outcome.rows.is_empty() { "incomplete" } else { "complete" };
    line(out, &format!("{judged} of {} required statements judged: {verdict}", required.len()));
    let counts: Vec<_> = ["pass", "fail", "warn", "not judged", "not applicable", "observed", "left out"]
        .into_iter()
        .map(|word| (word, count(&|row| row.verdict.word() == word)))
        .filter(|(_, number)| *number > 0)
        .map(|(word, number)| format!("{number} {word}"))
        .collect();
    let counts = if counts.is_empty() { "nothing reported".to_owned() } else { counts.join(", ") };
    line(
        out,
        &format!(
            "{counts}; {} of {} statements reported, {} requests; exit {}",
            outcome.rows.len(),
            crate::catalogue::judged().len(),
            outcome.ledger.total(),
            outcome.exit_code()
        ),
    );
}

fn detail(out: &mut String, name: &str, text: &str) {
    line(out, &format!("{MARGIN}{name:<9} {text}"));
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes any text");
}
