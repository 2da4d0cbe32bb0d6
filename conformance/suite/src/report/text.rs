//! The text report. Each failure ends with the command that reproduces it.

use std::fmt::Write;

use anstyle::AnsiColor;
use conformance_model::verdict::{StatementResult, Verdict};

use crate::check::Outcome;
use crate::report::view::ReportView;

/// The style of verdicts: plain or coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For files and pipes.
    Plain,
    /// For terminals that understand ANSI colours.
    Colour,
}

/// The meaning of a text, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Success,
    Failure,
    Warning,
    Dim,
    Title,
}

impl Style {
    pub(crate) fn colour_verdict(self, verdict: &Verdict) -> String {
        let tone = match verdict {
            Verdict::Pass { .. } => Tone::Success,
            Verdict::Fail(_) => Tone::Failure,
            Verdict::Warn(_) | Verdict::NotJudged { .. } | Verdict::Known { .. } => Tone::Warning,
            _ => Tone::Dim,
        };
        self.colour(&format!("{:>14}", verdict.as_str()), tone)
    }

    pub(crate) fn colour(self, text: &str, tone: Tone) -> String {
        let style = match tone {
            _ if self == Style::Plain => anstyle::Style::new(),
            Tone::Success => AnsiColor::Green.on_default(),
            Tone::Failure => AnsiColor::Red.on_default(),
            Tone::Warning => AnsiColor::Yellow.on_default(),
            Tone::Dim => anstyle::Style::new().dimmed(),
            Tone::Title => anstyle::Style::new().bold(),
        };
        format!("{style}{text}{style:#}")
    }
}

/// The detail of a text report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// One line per section, besides failures, warnings and gaps.
    Brief,
    /// Every statement and every observation.
    Full,
}

/// The layout of a text report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The colours.
    pub style: Style,
    /// The detail.
    pub detail: Detail,
    /// The width of the terminal in columns; `None`: lines are not wrapped.
    pub columns: Option<usize>,
}

impl From<Style> for Layout {
    /// Returns the layout of the full report, without wrapped lines.
    fn from(style: Style) -> Layout {
        Layout { style, detail: Detail::Full, columns: None }
    }
}

/// The names of details that are commands. They are not wrapped, so that they can be copied.
const COMMAND_DETAILS: [&str; 2] = ["request", "again"];
/// The largest number of statements that are listed per gap.
const LISTED_IDS_MAX: usize = 3;
/// The indentation of details.
const MARGIN: usize = 4;
/// The indentation of details below a statement with its verdict.
const VERDICT_MARGIN: usize = 18;
/// The smallest width at which lines are wrapped.
const COLUMNS_MIN: usize = 40;

/// Returns the full report without wrapped lines.
pub fn text(outcome: &Outcome, style: Style) -> String {
    text_with_layout(outcome, style.into())
}

/// Returns the report in a layout, with the counts and the exit code at the end.
pub(super) fn text_with_layout(outcome: &Outcome, layout: Layout) -> String {
    let view = ReportView::from_outcome(outcome);
    let mut page = TextPage { layout, out: String::new() };
    if let Some(why) = view.stop_reason() {
        page.paragraph("", &why);
    }
    if layout.detail == Detail::Full {
        write_statements(&mut page, &view);
    }
    write_violations(&mut page, &view);
    for (verdict, title) in [("known", "Known failures"), ("warn", "Warnings")] {
        let rows = view.rows_with_verdict(verdict);
        if !rows.is_empty() && layout.detail == Detail::Brief {
            page.title(title, Tone::Warning);
            rows.into_iter().for_each(|row| page.statement(&view, row));
            page.blank_line();
        }
    }
    write_gaps(&mut page, &view);
    if layout.detail == Detail::Brief {
        write_section_counts(&mut page, &view);
    }
    write_summary(&mut page, &view);
    page.out
}

/// A text writer that wraps lines at the width of the layout.
struct TextPage {
    layout: Layout,
    out: String,
}

impl TextPage {
    /// Writes a text after a prefix, wrapped with a hanging indent.
    fn paragraph(&mut self, prefix: &str, text: &str) {
        let indent = " ".repeat(textwrap::core::display_width(prefix));
        match self.layout.columns.filter(|columns| *columns >= COLUMNS_MIN) {
            Some(columns) => {
                let options = textwrap::Options::new(columns)
                    .initial_indent(prefix)
                    .subsequent_indent(&indent)
                    .word_splitter(textwrap::WordSplitter::NoHyphenation)
                    .break_words(true);
                textwrap::wrap(text, options).iter().for_each(|line| self.line(line));
            }
            None => self.line(&format!("{prefix}{text}")),
        }
    }

    fn line(&mut self, text: &str) {
        writeln!(self.out, "{}", text.trim_end()).expect("writing to a string cannot fail");
    }

    fn blank_line(&mut self) {
        self.line("");
    }

    fn title(&mut self, text: &str, tone: Tone) {
        let text = self.layout.style.colour(text, tone);
        self.paragraph("", &text);
    }

    /// Writes a statement with its evidence.
    fn statement(&mut self, view: &ReportView<'_>, row: &StatementResult) {
        self.paragraph("  ", &format!("{} ({})  {}", row.id, row.requirement.spec, row.requirement.text));
        self.details(view, row, MARGIN);
    }

    fn details(&mut self, view: &ReportView<'_>, row: &StatementResult, margin: usize) {
        for (name, text) in view.details(row) {
            let prefix = format!("{:margin$}{name:<11} ", "");
            match COMMAND_DETAILS.contains(&name) {
                true => self.line(&format!("{prefix}{text}")),
                false => self.paragraph(&prefix, &text),
            }
        }
    }

    /// Writes a table of two columns.
    fn table(&mut self, rows: &[(String, String)]) {
        let width = |text: &str| textwrap::core::display_width(text);
        let widest = rows.iter().map(|(first, _)| width(first)).max().unwrap_or(0);
        for (first, second) in rows {
            self.paragraph(&format!("  {first}{}  ", " ".repeat(widest - width(first))), second);
        }
    }
}

fn write_statements(page: &mut TextPage, view: &ReportView<'_>) {
    for section in &view.sections {
        let title = page.layout.style.colour(&section.name(), Tone::Title);
        page.paragraph("", &format!("{title}   {}", section.counts_text()));
        for row in &section.rows {
            let prefix = format!("{}  ", page.layout.style.colour_verdict(&row.verdict));
            page.paragraph(&prefix, &format!("{}   {}", row.id, row.requirement.text));
            page.details(view, row, VERDICT_MARGIN);
        }
        page.blank_line();
    }
    if !view.observations.is_empty() {
        page.title("Observed, where the specification leaves it open", Tone::Title);
        let rows: Vec<_> = view
            .observations
            .iter()
            .map(|observation| (observation.topic.clone(), observation.seen.clone()))
            .collect();
        page.table(&rows);
        page.blank_line();
    }
}

/// Writes the first failure of each exchange, and the ids of the others.
fn write_violations(page: &mut TextPage, view: &ReportView<'_>) {
    let failures = view.failures_by_exchange();
    if failures.is_empty() {
        return;
    }
    page.title("Violations", Tone::Failure);
    for rows in failures {
        let Some((first, others)) = rows.split_first() else { continue };
        page.statement(view, first);
        if !others.is_empty() {
            let others: Vec<_> = others.iter().map(|row| row.id.as_str()).collect();
            page.paragraph(&format!("{:MARGIN$}{:<11} ", "", "also"), &others.join(", "));
        }
    }
    page.blank_line();
}

fn write_gaps(page: &mut TextPage, view: &ReportView<'_>) {
    let gaps = view.gaps();
    if gaps.is_empty() {
        return;
    }
    page.title("Not judged", Tone::Warning);
    for gap in gaps {
        page.paragraph("  ", &gap.title());
        page.paragraph(&" ".repeat(MARGIN), &gap.remedy);
        let ids = gap.ids();
        let more = ids.len().saturating_sub(LISTED_IDS_MAX);
        let mut listed = ids[..ids.len() - more].join(", ");
        if more > 0 {
            listed.push_str(&format!(" and {more} more"));
        }
        page.paragraph(&" ".repeat(MARGIN), &listed);
    }
    page.blank_line();
}

fn write_section_counts(page: &mut TextPage, view: &ReportView<'_>) {
    if view.sections.is_empty() {
        return;
    }
    page.title("Chapters of the specification", Tone::Title);
    let rows: Vec<_> = view.sections.iter().map(|section| (section.name(), section.counts_text())).collect();
    page.table(&rows);
    page.blank_line();
}

/// Writes the summary, whose last line is the verdict on the run.
fn write_summary(page: &mut TextPage, view: &ReportView<'_>) {
    for note in view.notes().into_iter().chain(view.origin_text()) {
        page.paragraph("", &note);
    }
    for (index, line) in view.power_lines().iter().enumerate() {
        page.paragraph(if index == 0 { "" } else { "  " }, line);
    }
    page.paragraph("", &view.completeness_text());
    page.paragraph("", &view.counts_text());
    let requests = view.outcome.ledger.total();
    let hint = match page.layout.detail {
        Detail::Brief if !view.outcome.rows.is_empty() => "; --verbose lists every statement",
        _ => "",
    };
    page.paragraph("", &format!("{}, {requests} requests{hint}", view.reported_text()));
    page.blank_line();
    let (verdict, reason) = view.run_verdict();
    let tone = match view.outcome.exit_code() {
        0 => Tone::Success,
        1 | 4 => Tone::Failure,
        _ => Tone::Warning,
    };
    let verdict = page.layout.style.colour(verdict, tone);
    page.paragraph("", &format!("{verdict}: {reason}; exit {}", view.outcome.exit_code()));
}
