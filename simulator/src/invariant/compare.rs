//! The comparison of a book with the model: all fields of every object, event and webhook body.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, time::Timestamp};

use super::{
    BookApiState, Depth, Findings, Invariant,
    diff::{CHARGE_INVARIANTS, Difference, differences},
};
use crate::model::{Book, EventView, Ids, ObjectContext, Presentation, Subject, TimelineEntry, WithText};

/// The circumstances in which a book was read.
#[derive(Clone, Copy)]
pub struct BookReading<'a> {
    /// The time of the reading.
    pub now: Timestamp,
    /// The number of blocks by which a coin's chain grew while the book was read.
    pub blocks: &'a dyn Fn(Asset) -> u64,
    /// The base URL of the hosted pages.
    pub public_url: &'a str,
    /// The base URL of the reader's requests.
    pub base: &'a str,
}

/// The kind of a charge in reports.
const CHARGE: &str = "a charge";

/// Compares a JSON string with the expected one; adds a finding for each field that differs.
pub(super) fn compare_json(
    findings: &mut Findings,
    (kind, about): (&str, &str),
    at: Option<Timestamp>,
    (expected, actual): (&str, &str),
    blocks: u64,
) {
    let found = differences(expected, actual, blocks);
    if found.is_empty() {
        let invariants = if kind == CHARGE { &CHARGE_INVARIANTS[..] } else { &[Invariant::SameObject] };
        invariants.iter().for_each(|invariant| findings.checks[*invariant as usize] += 1);
    }
    report(findings, (kind, about), at, &found, None);
}

/// Reports differences, each with the invariant of its field unless all violate the same one.
pub(super) fn report(
    findings: &mut Findings,
    (kind, about): (&str, &str),
    at: Option<Timestamp>,
    found: &[Difference],
    invariant: Option<Invariant>,
) {
    for difference in found {
        findings.check(invariant.unwrap_or_else(|| difference.invariant()), at, || {
            let shape = match difference.field().as_str() {
                "" => format!("{kind} differs"),
                field => format!("{kind}: `{field}` differs"),
            };
            Some((shape, format!("{about}: {}", difference.in_words())))
        });
    }
}

/// Checks everything shown of a book. Events are checked if they were read.
pub fn compare_book(
    findings: &mut Findings,
    (book, ids): (&Book, &Ids),
    shown: &BookApiState,
    reading: BookReading<'_>,
) {
    let context = ObjectContext { ids, public_url: reading.public_url, now: reading.now };
    let charges = check_list(findings, "charge", &ids.charges, &shown.charges, |charge| &charge.code);
    for (no, seen) in charges {
        let before = findings.violations.len();
        compare_timeline(findings, (book, Subject::Charge(no)), &seen.code, &seen.timeline);
        let expected = book.charge_json(context, no, Presentation::Api);
        let blocks = (reading.blocks)(book.charges[no].terms.asset);
        // Differences in a timeline were reported event by event.
        let expected =
            if findings.violations.len() > before { with_timeline(&expected, seen) } else { expected };
        compare_json(findings, (CHARGE, &seen.code), None, (&expected, seen.json.get()), blocks);
    }
    let invoices = check_list(findings, "invoice", &ids.invoices, &shown.invoices, |invoice| &invoice.code);
    for (no, seen) in invoices {
        let before = findings.violations.len();
        compare_timeline(findings, (book, Subject::Invoice(no)), &seen.code, &seen.timeline);
        let expected = book.invoice_json(context, no, Presentation::Api);
        let expected =
            if findings.violations.len() > before { with_timeline(&expected, seen) } else { expected };
        compare_json(findings, ("an invoice", &seen.code), None, (&expected, seen.json.get()), 0);
    }
    let links = check_list(findings, "payment link", &ids.links, &shown.links, |link| &link.code);
    for (no, seen) in links {
        let expected = book.link_json(context, no);
        compare_json(findings, ("a payment link", &seen.code), None, (&expected, seen.json.get()), 0);
    }
    if shown.depth == Depth::Events {
        compare_events(findings, book, context, &shown.events, reading);
    }
}

/// Returns the expected object with the shown timeline.
fn with_timeline<T>(expected: &str, seen: &WithText<T>) -> String {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let mut expected = read(expected);
    expected["timeline"] = read(seen.json.get())["timeline"].take();
    expected.to_string()
}

/// Checks that a list has exactly the expected objects, newest first. Returns their numbers and values.
fn check_list<'s, T>(
    findings: &mut Findings,
    kind: &str,
    codes: &[String],
    shown: &'s [T],
    code: impl Fn(&T) -> &String,
) -> Vec<(usize, &'s T)> {
    let same = codes.len() == shown.len() && codes.iter().rev().eq(shown.iter().map(&code));
    let numbers: BTreeMap<&String, usize> = codes.iter().zip(0..).collect();
    findings.check(Invariant::Once, None, || {
        (!same).then(|| {
            let unknown = shown.iter().map(&code).find(|code| !numbers.contains_key(code));
            let missing = codes.iter().find(|made| !shown.iter().any(|object| code(object) == *made));
            match (unknown, missing) {
                (Some(code), _) => (format!("an unknown {kind} is listed"), code.clone()),
                (None, Some(code)) => (format!("a {kind} is missing in the list"), code.clone()),
                (None, None) => (format!("a list of {kind}s is in the wrong order"), String::new()),
            }
        })
    });
    shown.iter().filter_map(|object| Some((*numbers.get(code(object))?, object))).collect()
}

/// Returns the invariant that a missing, extra or different event violates.
fn invariant_of(expected: Option<&str>, actual: Option<&str>, at_lock_end: bool) -> Invariant {
    let about = |kind: &str| expected == Some(kind) || actual == Some(kind);
    if at_lock_end
        && (about("charge.expired") || about("charge.late_payment") || about("charge.payment_detected"))
    {
        return Invariant::LockEnd;
    }
    if about("charge.paid") && about("charge.underpaid") {
        return Invariant::Tolerance;
    }
    if expected == actual {
        return Invariant::Confirmations;
    }
    if about("charge.late_payment") {
        return Invariant::LateMoney;
    }
    if about("charge.paid") || about("charge.underpaid") || about("charge.payment_detected") {
        return Invariant::Confirmations;
    }
    if about("charge.refunded") {
        return Invariant::Conservation;
    }
    if about("charge.expired") {
        return Invariant::LockEnd;
    }
    if about("invoice.paid") || about("invoice.sent") || about("invoice.viewed") {
        Invariant::Once
    } else {
        Invariant::Edges
    }
}

/// Compares the events of one object, in order, with their times.
fn compare_timeline(
    findings: &mut Findings,
    (book, subject): (&Book, Subject),
    code: &str,
    seen: &[TimelineEntry],
) {
    let story = book.event_numbers(subject);
    for index in 0..seen.len().max(story.len()) {
        let (expected, actual) = (story.get(index).map(|no| &book.events[*no]), seen.get(index));
        let kinds = (expected.map(|event| event.kind), actual.map(|entry| entry.event.as_str()));
        let time = expected.map(|event| event.at.to_string());
        if kinds.0 == kinds.1 && time.as_deref() == actual.map(|entry| entry.time.as_str()) {
            findings.checks[invariant_of(kinds.0, kinds.1, false) as usize] += 1;
            continue;
        }
        let shown = actual.and_then(|entry| Timestamp::parse(&entry.time));
        let at = expected.map(|event| event.at).into_iter().chain(shown).min();
        let end = match subject {
            Subject::Charge(no) => Some(book.charges[no].end.0),
            Subject::Invoice(_) => None,
        };
        let is_close = |at: Timestamp| end.is_some_and(|end| at.0.abs_diff(end) <= 1);
        let at_lock_end = at.is_some_and(is_close) || shown.is_some_and(is_close);
        findings.check(invariant_of(kinds.0, kinds.1, at_lock_end), at, || {
            let word = |kind: Option<&str>| kind.unwrap_or("nothing").to_owned();
            let shape = match kinds.0 == kinds.1 {
                true => format!("{} has the wrong time", word(kinds.0)),
                false => format!("{} instead of {}", word(kinds.1), word(kinds.0)),
            };
            let when = |time: Option<&str>| time.unwrap_or("-").to_owned();
            let actual = actual.map(|entry| entry.time.as_str());
            Some((shape, format!("{code}: expected {}, got {}", when(time.as_deref()), when(actual))))
        });
        // Later differences are consequences of the first.
        return;
    }
}

/// Compares the events read through the API, newest first, with the expected ones.
fn compare_events(
    findings: &mut Findings,
    book: &Book,
    context: ObjectContext<'_>,
    shown: &[WithText<EventView>],
    reading: BookReading<'_>,
) {
    let oldest_first: Vec<&WithText<EventView>> = shown.iter().rev().collect();
    findings.check(Invariant::Order, None, || {
        let rises = oldest_first.is_sorted_by(|one, two| one.id < two.id);
        (!rises).then(|| ("ids of events do not rise".to_owned(), book.mode.to_string()))
    });
    let mut objects: BTreeMap<Subject, String> = BTreeMap::new();
    for index in 0..book.events.len().max(shown.len()) {
        let (expected, actual) = (book.events.get(index), oldest_first.get(index).copied());
        let kinds = (expected.map(|event| event.kind), actual.map(|event| event.kind.as_str()));
        let is_it = expected.zip(actual).is_some_and(|(expected, actual)| {
            expected.kind == actual.kind && context.ids.code(expected.subject) == actual.subject()
        });
        let invariant = match kinds.0.or(kinds.1) {
            _ if book.events.len() != shown.len() => Invariant::Once,
            Some("charge.late_payment") => Invariant::LateMoney,
            Some("charge.paid") => Invariant::PaidMoney,
            _ => Invariant::SameObject,
        };
        // In lists of different lengths, other differences are more informative.
        let shown_at = actual.and_then(|event| Timestamp::parse(&event.created_at));
        let at = expected.map(|event| event.at).or(shown_at).filter(|_| invariant != Invariant::Once);
        findings.check(invariant, at, || {
            let word = |kind: Option<&str>| kind.unwrap_or("nothing").to_owned();
            (!is_it).then(|| {
                let shape = format!("{} is listed instead of {}", word(kinds.1), word(kinds.0));
                let subjects = (
                    expected.map_or("-", |event| context.ids.code(event.subject)),
                    actual.map_or("-", |event| event.subject()),
                );
                let details = format!("event {}: expected {}, got {}", index + 1, subjects.0, subjects.1);
                (shape, details)
            })
        });
        let Some((event, actual)) = expected.zip(actual).filter(|_| is_it) else { return };
        let object =
            objects.entry(event.subject).or_insert_with(|| book.event_object_json(context, event.subject));
        let id = context.ids.events.get(index).unwrap_or(&actual.id);
        let expected = book.event_json(id, index, object);
        let blocks = match event.subject {
            Subject::Charge(no) => (reading.blocks)(book.charges[no].terms.asset),
            Subject::Invoice(_) => 0,
        };
        let about = (format!("{} {}", event.kind, actual.subject()), (expected.as_str(), actual.json.get()));
        compare_json(findings, ("an event", &about.0), Some(event.at), about.1, blocks);
    }
}

/// Checks the body of a delivery: the object at the time of the event, or the sample of a test.
pub fn compare_delivery(
    findings: &mut Findings,
    at: Timestamp,
    about: &str,
    (expected, body): (&str, &[u8]),
) {
    let body = String::from_utf8_lossy(body);
    let found = differences(expected, &body, 0);
    if found.is_empty() {
        findings.checks[Invariant::SameObject as usize] += 1;
    }
    for difference in found {
        let invariant = match difference.path.as_str() {
            "id" | "event" | "mode" | "created_at" | "test" => Invariant::Deliveries,
            _ => Invariant::SameObject,
        };
        findings.check(invariant, Some(at), || {
            let shape = format!("a delivery: `{}` differs", difference.field());
            Some((shape, format!("{about}: {}", difference.in_words())))
        });
    }
}
