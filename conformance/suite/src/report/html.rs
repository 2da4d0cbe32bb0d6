//! The HTML report: one file without scripts and external resources.

use askama::Template;

use conformance_judge::Observation;
use conformance_model::recording::{Exchange, ExchangeOutcome, shorten};
use conformance_model::verdict::StatementResult;

use crate::check::Outcome;
use crate::report::coverage::{Sentence, coverage};
use crate::report::view::{Gap, ReportView, VERDICT_NAMES, one_line, printable, section_name};

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    base: &'a str,
    exit: u8,
    headline: String,
    run_class: &'static str,
    stop: Option<String>,
    completeness: String,
    reported: String,
    requests: String,
    notes: Vec<String>,
    tiles: Vec<VerdictCount>,
    sections: Vec<SectionView<'a>>,
    failures: Vec<VerdictGroup<'a>>,
    gaps: Vec<Gap<'a>>,
    observations: &'a [Observation],
    power: Vec<String>,
    coverage_summary: String,
    section_coverage: Vec<SectionCoverage>,
}

/// The coverage of a section of the specification, by sentence.
struct SectionCoverage {
    name: String,
    sentences: Vec<Sentence>,
}

/// The number of statements with a verdict.
struct VerdictCount {
    verdict: &'static str,
    class: String,
    count: usize,
}

/// The statements of a section of the specification.
struct SectionView<'a> {
    name: String,
    counts: String,
    entries: Vec<StatementEntry<'a>>,
}

/// The statements with one verdict.
struct VerdictGroup<'a> {
    title: &'static str,
    entries: Vec<StatementEntry<'a>>,
}

/// A statement with its verdict and details.
struct StatementEntry<'a> {
    id: &'a str,
    spec: &'a str,
    level: &'static str,
    text: &'a str,
    verdict: &'static str,
    class: String,
    symbol: &'static str,
    details: Vec<(&'static str, String)>,
    exchange: Option<ExchangeView>,
}

/// A recorded request, without its key, and the response.
struct ExchangeView {
    number: u32,
    method: &'static str,
    target: String,
    status: String,
    headers: Vec<(String, String)>,
    body: Vec<String>,
}

/// Returns the report as one HTML file.
pub fn html(outcome: &Outcome) -> String {
    let view = ReportView::from_outcome(outcome);
    let (verdict, reason) = view.run_verdict();
    let headline = format!("{verdict}: {reason}");
    let run_class = match outcome.exit_code() {
        0 => "pass",
        1 | 4 => "fail",
        _ => "not-judged",
    };
    let count = |verdict: &'static str| VerdictCount {
        verdict,
        class: css_class(verdict),
        count: view.rows_with_verdict(verdict).len(),
    };
    let failures = [("fail", "Violations"), ("known", "Known failures"), ("warn", "Warnings")];
    let group = |(verdict, title): (&str, &'static str)| VerdictGroup {
        title,
        entries: view.rows_with_verdict(verdict).into_iter().map(|row| entry(&view, row)).collect(),
    };
    let sentences = coverage(&outcome.rows);
    let judged = sentences.iter().filter(|sentence| sentence.is_judged()).count();
    let page = Page {
        base: &outcome.recording.base,
        exit: outcome.exit_code(),
        headline,
        run_class,
        stop: view.stop_reason(),
        completeness: view.completeness_text(),
        reported: view.reported_text(),
        requests: format!("{} requests", outcome.ledger.total()),
        notes: view.notes().into_iter().chain(view.origin_text()).collect(),
        tiles: VERDICT_NAMES.into_iter().map(count).collect(),
        sections: view
            .sections
            .iter()
            .map(|section| SectionView {
                name: section.name(),
                counts: section.counts_text(),
                entries: section.rows.iter().map(|row| entry(&view, row)).collect(),
            })
            .collect(),
        failures: failures.into_iter().map(group).filter(|group| !group.entries.is_empty()).collect(),
        gaps: view.gaps(),
        observations: &view.observations,
        power: view.power_lines(),
        coverage_summary: format!("{judged} of {} judged or observed", sentences.len()),
        section_coverage: section_coverage(sentences),
    };
    printable(&page.render().expect("rendering HTML to memory cannot fail")) + "\n"
}

fn section_coverage(sentences: Vec<Sentence>) -> Vec<SectionCoverage> {
    let mut sections: Vec<SectionCoverage> = Vec::new();
    for sentence in sentences {
        let name = section_name(&sentence.section);
        match sections.last_mut().filter(|section| section.name == name) {
            Some(section) => section.sentences.push(sentence),
            None => sections.push(SectionCoverage { name, sentences: vec![sentence] }),
        }
    }
    sections
}

fn entry<'a>(view: &ReportView<'a>, row: &'a StatementResult) -> StatementEntry<'a> {
    let verdict = row.verdict.as_str();
    let symbol = match verdict {
        "pass" => "✓",
        "fail" => "✕",
        "warn" => "!",
        "known" => "≈",
        "not judged" => "?",
        "observed" => "○",
        _ => "–",
    };
    let exchange = view.violating_exchange(row).map(exchange_view);
    StatementEntry {
        id: &row.id,
        spec: &row.requirement.spec,
        level: row.requirement.level.as_str(),
        text: &row.requirement.text,
        verdict,
        class: css_class(verdict),
        symbol,
        details: view.details(row),
        exchange,
    }
}

fn exchange_view(exchange: &Exchange) -> ExchangeView {
    let (status, headers, body) = match &exchange.outcome {
        ExchangeOutcome::Answered(response) => {
            (response.status.to_string(), &response.headers[..], lines(&response.body))
        }
        ExchangeOutcome::NoResponse(why) => {
            (format!("no response: {}", one_line(&shorten(why))), &[][..], Vec::new())
        }
    };
    let headers = headers.iter().map(|(name, value)| (one_line(name), one_line(value))).collect();
    let target = one_line(&exchange.target);
    ExchangeView { number: exchange.number, method: exchange.method(), target, status, headers, body }
}

/// Returns the lines of a body, shortened. The page has no line breaks between them, so that none starts a line of a CI
/// log.
fn lines(body: &str) -> Vec<String> {
    const CHARS_MAX: usize = 4000;
    let (start, more) = match body.char_indices().nth(CHARS_MAX) {
        None => (body, None),
        Some((end, _)) => (&body[..end], Some(format!("… ({} bytes in all)", body.len()))),
    };
    start.split('\n').map(one_line).chain(more).collect()
}

fn css_class(verdict: &str) -> String {
    verdict.replace(' ', "-")
}
