//! The report for people: each failure ends with what to type next.

use std::fmt::Write;

use crate::check::Outcome;
use crate::report::sheet::{Sheet, printable};
use crate::verdict::Verdict;

/// Whether words of judgement have a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For files and pipes.
    Plain,
    /// For terminals that understand ANSI colours.
    Colour,
}

impl Style {
    pub(crate) fn paint(self, verdict: &Verdict) -> String {
        let word = format!("{:>14}", verdict.word());
        let colour = match verdict {
            Verdict::Pass { .. } => "32",
            Verdict::Fail(_) => "31",
            Verdict::Warn(_) | Verdict::NotJudged { .. } | Verdict::Known { .. } => "33",
            _ => "2",
        };
        self.coloured(&word, colour)
    }

    pub(crate) fn coloured(self, text: &str, colour: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Colour => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
        }
    }
}

const MARGIN: &str = "                  ";

/// The whole report, ending with the counts and the exit code.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let sheet = Sheet::of(outcome);
    let mut out = String::new();
    if let Some(why) = sheet.stop() {
        line(&mut out, &clean(&why));
    }
    for section in &sheet.sections {
        line(&mut out, &format!("{}   {}", style.coloured(&section.name(), "1"), section.counts()));
        for row in &section.rows {
            line(&mut out, &format!("{}  {}   {}", style.paint(&row.verdict), row.id, row.requirement.text));
            for (name, text) in sheet.details(row) {
                line(&mut out, &format!("{MARGIN}{name:<9} {}", clean(&text)));
            }
        }
        line(&mut out, "");
    }
    if !sheet.observations.is_empty() {
        line(&mut out, &style.coloured("Observed, where the specification leaves it open", "1"));
        let width = sheet.observations.iter().map(|it| it.topic.chars().count()).max().unwrap_or(0);
        for it in &sheet.observations {
            line(&mut out, &format!("  {:<width$}  {}", it.topic, clean(&it.seen)));
        }
        line(&mut out, "");
    }
    for note in sheet.notes() {
        line(&mut out, &note);
    }
    line(&mut out, &sheet.completeness());
    let (requests, exit) = (outcome.ledger.total(), outcome.exit_code());
    line(&mut out, &format!("{}; {}, {requests} requests; exit {exit}", sheet.counts(), sheet.reported()));
    out
}

/// One line, and nothing in it that moves the cursor.
fn clean(text: &str) -> String {
    printable(text).replace('\n', " ")
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes any text");
}
