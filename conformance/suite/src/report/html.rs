//! The HTML report: one file without scripts and external resources.

use askama::Template;

use conformance_judge::Observation;
use conformance_model::recording::{Ending, Exchange, shorten};
use conformance_model::verdict::Row;

use crate::check::Outcome;
use crate::report::coverage::{Sentence, coverage};
use crate::report::view::{Gap, ReportView, WORDS, one_line, printable, section_name};

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    base: &'a str,
    exit: u8,
    headline: String,
    mood: &'static str,
    stop: Option<String>,
    completeness: String,
    reported: String,
    requests: String,
    notes: Vec<String>,
    tiles: Vec<Tile>,
    sections: Vec<Part<'a>>,
    grave: Vec<Group<'a>>,
    gaps: Vec<Gap<'a>>,
    observations: &'a [Observation],
    power: Vec<String>,
    covered: String,
    chapters: Vec<Chapter>,
}

/// The sentences of a section of the specification.
struct Chapter {
    name: String,
    sentences: Vec<Sentence>,
}

/// A verdict and its number of statements.
struct Tile {
    word: &'static str,
    class: String,
    count: usize,
}

/// The statements of a section of the specification.
struct Part<'a> {
    name: String,
    counts: String,
    entries: Vec<Entry<'a>>,
}

/// The statements with one verdict.
struct Group<'a> {
    title: &'static str,
    entries: Vec<Entry<'a>>,
}

/// A statement with its verdict and details.
struct Entry<'a> {
    id: &'a str,
    spec: &'a str,
    level: &'static str,
    text: &'a str,
    word: &'static str,
    class: String,
    sign: &'static str,
    details: Vec<(&'static str, String)>,
    exchange: Option<ExchangeView>,
}

/// An exchange without the key.
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
    let (word, sentence) = view.verdict();
    let headline = format!("{word}: {sentence}");
    let mood = match outcome.exit_code() {
        0 => "pass",
        1 | 4 => "fail",
        _ => "not-judged",
    };
    let count = |word: &'static str| Tile { word, class: class(word), count: view.rows(word).len() };
    let grave = [("fail", "Violations"), ("known", "Known failures"), ("warn", "Warnings")];
    let group = |(word, title): (&str, &'static str)| Group {
        title,
        entries: view.rows(word).into_iter().map(|row| entry(&view, row)).collect(),
    };
    let sentences = coverage(&outcome.rows);
    let judged = sentences.iter().filter(|sentence| sentence.is_judged()).count();
    let page = Page {
        base: &outcome.recording.base,
        exit: outcome.exit_code(),
        headline,
        mood,
        stop: view.stop(),
        completeness: view.completeness(),
        reported: view.reported_count(),
        requests: format!("{} requests", outcome.ledger.total()),
        notes: view.notes().into_iter().chain(view.origin()).collect(),
        tiles: WORDS.into_iter().map(count).collect(),
        sections: view
            .sections
            .iter()
            .map(|section| Part {
                name: section.name(),
                counts: section.counts_text(),
                entries: section.rows.iter().map(|row| entry(&view, row)).collect(),
            })
            .collect(),
        grave: grave.into_iter().map(group).filter(|group| !group.entries.is_empty()).collect(),
        gaps: view.gaps(),
        observations: &view.observations,
        power: view.power(),
        covered: format!("{judged} of {} judged or observed", sentences.len()),
        chapters: chapters(sentences),
    };
    printable(&page.render().expect("rendering HTML to memory cannot fail")) + "\n"
}

fn chapters(sentences: Vec<Sentence>) -> Vec<Chapter> {
    let mut found: Vec<Chapter> = Vec::new();
    for sentence in sentences {
        let name = section_name(&sentence.section);
        match found.last_mut().filter(|chapter| chapter.name == name) {
            Some(chapter) => chapter.sentences.push(sentence),
            None => found.push(Chapter { name, sentences: vec![sentence] }),
        }
    }
    found
}

fn entry<'a>(view: &ReportView<'a>, row: &'a Row) -> Entry<'a> {
    let word = row.verdict.as_str();
    let sign = match word {
        "pass" => "✓",
        "fail" => "✕",
        "warn" => "!",
        "known" => "≈",
        "not judged" => "?",
        "observed" => "○",
        _ => "–",
    };
    let exchange = view.violating_exchange(row).map(exchange_view);
    Entry {
        id: &row.id,
        spec: &row.requirement.spec,
        level: row.requirement.level.as_str(),
        text: &row.requirement.text,
        word,
        class: class(word),
        sign,
        details: view.details(row),
        exchange,
    }
}

fn exchange_view(exchange: &Exchange) -> ExchangeView {
    let (status, headers, body) = match &exchange.ending {
        Ending::Answered(answer) => (answer.status.to_string(), &answer.headers[..], lines(&answer.body)),
        Ending::Lost(why) => (format!("no answer: {}", one_line(&shorten(why))), &[][..], Vec::new()),
    };
    let headers = headers.iter().map(|(name, value)| (one_line(name), one_line(value))).collect();
    let target = one_line(&exchange.target);
    ExchangeView { number: exchange.number, method: exchange.method(), target, status, headers, body }
}

/// Returns the lines of a body, shortened. The page has no line breaks between them, so that none starts a line of a CI
/// log.
fn lines(body: &str) -> Vec<String> {
    const LETTERS_MAX: usize = 4000;
    let (shown, more) = match body.char_indices().nth(LETTERS_MAX) {
        None => (body, None),
        Some((at, _)) => (&body[..at], Some(format!("… ({} bytes in all)", body.len()))),
    };
    shown.split('\n').map(one_line).chain(more).collect()
}

fn class(word: &str) -> String {
    word.replace(' ', "-")
}
