//! The report for people: each failure ends with what to type next.

use std::fmt::Write;

use anstyle::AnsiColor;
use conformance_model::verdict::Verdict;

use crate::check::Outcome;
use crate::report::view::ReportView;

/// Whether words of judgement have a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For files and pipes.
    Plain,
    /// For terminals that understand ANSI colours.
    Colour,
}

/// How a word is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Doubt,
    Dim,
    Title,
}

impl Style {
    pub(crate) fn paint(self, verdict: &Verdict) -> String {
        let tone = match verdict {
            Verdict::Pass { .. } => Tone::Good,
            Verdict::Fail(_) => Tone::Bad,
            Verdict::Warn(_) | Verdict::NotJudged { .. } | Verdict::Known { .. } => Tone::Doubt,
            _ => Tone::Dim,
        };
        self.coloured(&format!("{:>14}", verdict.word()), tone)
    }

    pub(crate) fn coloured(self, text: &str, tone: Tone) -> String {
        let style = match tone {
            _ if self == Style::Plain => anstyle::Style::new(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Doubt => AnsiColor::Yellow.on_default(),
            Tone::Dim => anstyle::Style::new().dimmed(),
            Tone::Title => anstyle::Style::new().bold(),
        };
        format!("{style}{text}{style:#}")
    }
}

const MARGIN: &str = "                  ";

/// The whole report, ending with the counts and the exit code.
pub fn text(outcome: &Outcome, style: Style) -> String {
    let view = ReportView::of(outcome);
    let mut out = String::new();
    if let Some(why) = view.stop() {
        line(&mut out, &why);
    }
    for section in &view.sections {
        line(&mut out, &format!("{}   {}", style.coloured(&section.name(), Tone::Title), section.counts()));
        for row in &section.rows {
            line(&mut out, &format!("{}  {}   {}", style.paint(&row.verdict), row.id, row.requirement.text));
            for (name, text) in view.details(row) {
                line(&mut out, &format!("{MARGIN}{name:<11} {text}"));
            }
        }
        line(&mut out, "");
    }
    if !view.observations.is_empty() {
        line(&mut out, &style.coloured("Observed, where the specification leaves it open", Tone::Title));
        let width = view.observations.iter().map(|it| it.topic.chars().count()).max().unwrap_or(0);
        for it in &view.observations {
            line(&mut out, &format!("  {:<width$}  {}", it.topic, it.seen));
        }
        line(&mut out, "");
    }
    violations(&mut out, &view, style);
    for note in view.notes().into_iter().chain(view.origin()) {
        line(&mut out, &note);
    }
    for (at, told) in view.power().iter().enumerate() {
        line(&mut out, &format!("{}{told}", if at == 0 { "" } else { "  " }));
    }
    line(&mut out, &view.completeness());
    let (requests, exit) = (outcome.ledger.total(), outcome.exit_code());
    line(&mut out, &format!("{}; {}, {requests} requests; exit {exit}", view.counts(), view.reported()));
    out
}

/// Failures once more, where a long report ends: one for each cause, and what else the same answer shows.
fn violations(out: &mut String, view: &ReportView<'_>, style: Style) {
    let causes = view.causes();
    if causes.is_empty() {
        return;
    }
    line(out, &style.coloured("Violations found", Tone::Bad));
    for rows in causes {
        let Some((first, others)) = rows.split_first() else { continue };
        let spec = &first.requirement.spec;
        line(
            out,
            &format!("{}  {} ({spec})   {}", style.paint(&first.verdict), first.id, first.requirement.text),
        );
        for (name, text) in view.details(first) {
            line(out, &format!("{MARGIN}{name:<11} {text}"));
        }
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(|row| row.id.as_str()).collect();
            line(out, &format!("{MARGIN}{:<11} {}", "also", others.join(", ")));
        }
    }
    line(out, "");
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a string takes any text");
}
