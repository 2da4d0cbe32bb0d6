//! The comparison of a book with the model: all fields of every object, event and webhook body.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, time::Timestamp};

use super::{
    BookApiState, Findings, Invariant, ReadDepth,
    diff::{CHARGE_INVARIANTS, Difference, differences},
};
use crate::model::{Book, EventView, Ids, ObjectContext, Presentation, Subject, TimelineEntry, WithJson};

/// The circumstances in which a book was read.
#[derive(Clone, Copy)]
pub struct ReadingContext<'a> {
    /// The time of the reading.
    pub now: Timestamp,
    /// The number of blocks by which a coin's chain grew while the book was read.
    pub blocks_mined: &'a dyn Fn(Asset) -> u64,
    /// The base URL of the hosted pages.
    pub public_url: &'a str,
    /// The base URL of the reader's requests, which the links of its pages have.
    pub request_base_url: &'a str,
}

/// The `kind` of charges in reports.
const CHARGE: &str = "a charge";

/// Compares a JSON document with the expected one; reports each field that differs. `kind` and `about` name the object:
/// `an invoice` and its code. `blocks`: the growth of the chain while the document was read.
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

/// Reports differences as violations of `invariant`; if it is `None`, each as a violation of the invariant of its field.
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
            Some((shape, format!("{about}: {}", difference.to_sentence())))
        });
    }
}

/// Compares everything that the API shows of a book with the model. Events are compared if they were read.
pub fn compare_book(
    findings: &mut Findings,
    (book, ids): (&Book, &Ids),
    api_book: &BookApiState,
    reading: ReadingContext<'_>,
) {
    let context = ObjectContext { ids, public_url: reading.public_url, now: reading.now };
    let charges = check_list(findings, "charge", &ids.charges, &api_book.charges, |charge| &charge.code);
    for (number, charge) in charges {
        let is_same =
            compare_timeline(findings, (book, Subject::Charge(number)), &charge.code, &charge.timeline);
        let expected = book.charge_json(context, number, Presentation::Api);
        let blocks = (reading.blocks_mined)(book.charges[number].terms.asset);
        // Differences in a timeline are reported event by event.
        let expected = if is_same { expected } else { with_timeline(&expected, charge) };
        compare_json(findings, (CHARGE, &charge.code), None, (&expected, charge.json.get()), blocks);
    }
    let invoices =
        check_list(findings, "invoice", &ids.invoices, &api_book.invoices, |invoice| &invoice.code);
    for (number, invoice) in invoices {
        let is_same =
            compare_timeline(findings, (book, Subject::Invoice(number)), &invoice.code, &invoice.timeline);
        let expected = book.invoice_json(context, number, Presentation::Api);
        let expected = if is_same { expected } else { with_timeline(&expected, invoice) };
        compare_json(findings, ("an invoice", &invoice.code), None, (&expected, invoice.json.get()), 0);
    }
    let links = check_list(findings, "payment link", &ids.links, &api_book.links, |link| &link.code);
    for (number, link) in links {
        let expected = book.link_json(context, number);
        compare_json(findings, ("a payment link", &link.code), None, (&expected, link.json.get()), 0);
    }
    if api_book.depth == ReadDepth::Events {
        compare_events(findings, book, context, &api_book.events, reading);
    }
}

/// Returns the expected object with the timeline of the actual one.
fn with_timeline<T>(expected: &str, actual: &WithJson<T>) -> String {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap_or_default();
    let mut expected = parse(expected);
    expected["timeline"] = parse(actual.json.get())["timeline"].take();
    expected.to_string()
}

/// Checks that a list has exactly the objects with these codes, newest first. Returns the known ones with their numbers.
fn check_list<'s, T>(
    findings: &mut Findings,
    kind: &str,
    codes: &[String],
    listed: &'s [T],
    code: impl Fn(&T) -> &String,
) -> Vec<(usize, &'s T)> {
    let is_same = codes.len() == listed.len() && codes.iter().rev().eq(listed.iter().map(&code));
    let numbers: BTreeMap<&String, usize> = codes.iter().zip(0..).collect();
    findings.check(Invariant::Once, None, || {
        (!is_same).then(|| {
            let unknown = listed.iter().map(&code).find(|code| !numbers.contains_key(code));
            let missing =
                codes.iter().find(|expected| !listed.iter().any(|object| code(object) == *expected));
            match (unknown, missing) {
                (Some(code), _) => (format!("an unknown {kind} is listed"), code.clone()),
                (None, Some(code)) => (format!("a {kind} is missing from the list"), code.clone()),
                (None, None) => (format!("a list of {kind}s is in the wrong order"), String::new()),
            }
        })
    });
    listed.iter().filter_map(|object| Some((*numbers.get(code(object))?, object))).collect()
}

/// Returns the invariant that a missing, extra or different event violates, given the expected and the actual type.
/// `at_lock_end`: its time is that of the end of the rate lock, or one microsecond from it.
fn invariant_of_event(expected: Option<&str>, actual: Option<&str>, at_lock_end: bool) -> Invariant {
    let involves = |kind: &str| expected == Some(kind) || actual == Some(kind);
    if at_lock_end
        && (involves("charge.expired")
            || involves("charge.late_payment")
            || involves("charge.payment_detected"))
    {
        return Invariant::LockEnd;
    }
    if involves("charge.paid") && involves("charge.underpaid") {
        return Invariant::Tolerance;
    }
    // Only the times differ.
    if expected == actual {
        return Invariant::Confirmations;
    }
    if involves("charge.late_payment") {
        return Invariant::LateMoney;
    }
    if involves("charge.paid") || involves("charge.underpaid") || involves("charge.payment_detected") {
        return Invariant::Confirmations;
    }
    if involves("charge.refunded") {
        return Invariant::Conservation;
    }
    if involves("charge.expired") {
        return Invariant::LockEnd;
    }
    if involves("invoice.paid") || involves("invoice.sent") || involves("invoice.viewed") {
        Invariant::Once
    } else {
        Invariant::Edges
    }
}

/// Compares the events of one object, in order, with their times. Returns `true` if they are equal.
fn compare_timeline(
    findings: &mut Findings,
    (book, subject): (&Book, Subject),
    code: &str,
    timeline: &[TimelineEntry],
) -> bool {
    let events = book.event_numbers(subject);
    for index in 0..timeline.len().max(events.len()) {
        let expected = events.get(index).map(|number| &book.events[*number]);
        let actual = timeline.get(index);
        let kinds = (expected.map(|event| event.kind), actual.map(|entry| entry.event.as_str()));
        let time = expected.map(|event| event.at.to_string());
        if kinds.0 == kinds.1 && time.as_deref() == actual.map(|entry| entry.time.as_str()) {
            findings.checks[invariant_of_event(kinds.0, kinds.1, false) as usize] += 1;
            continue;
        }
        let actual_at = actual.and_then(|entry| Timestamp::parse(&entry.time));
        let at = expected.map(|event| event.at).into_iter().chain(actual_at).min();
        let lock_end = match subject {
            Subject::Charge(number) => Some(book.charges[number].lock_ends_at.0),
            Subject::Invoice(_) => None,
        };
        let is_close = |at: Timestamp| lock_end.is_some_and(|end| at.0.abs_diff(end) <= 1);
        let at_lock_end = at.is_some_and(is_close) || actual_at.is_some_and(is_close);
        findings.check(invariant_of_event(kinds.0, kinds.1, at_lock_end), at, || {
            let name = |kind: Option<&str>| kind.unwrap_or("nothing").to_owned();
            let shape = match kinds.0 == kinds.1 {
                true => format!("{} has the wrong time", name(kinds.0)),
                false => format!("{} instead of {}", name(kinds.1), name(kinds.0)),
            };
            let or_dash = |time: Option<&str>| time.unwrap_or("-").to_owned();
            let actual = actual.map(|entry| entry.time.as_str());
            Some((shape, format!("{code}: expected {}, got {}", or_dash(time.as_deref()), or_dash(actual))))
        });
        // Later differences are consequences of the first.
        return false;
    }
    true
}

/// Compares the events read through the API, newest first, with the expected ones.
fn compare_events(
    findings: &mut Findings,
    book: &Book,
    context: ObjectContext<'_>,
    listed: &[WithJson<EventView>],
    reading: ReadingContext<'_>,
) {
    let oldest_first: Vec<&WithJson<EventView>> = listed.iter().rev().collect();
    findings.check(Invariant::Order, None, || {
        let is_increasing = oldest_first.is_sorted_by(|one, two| one.id < two.id);
        (!is_increasing).then(|| ("the ids of events do not increase".to_owned(), book.mode.to_string()))
    });
    let mut objects: BTreeMap<Subject, String> = BTreeMap::new();
    for index in 0..book.events.len().max(listed.len()) {
        let (expected, actual) = (book.events.get(index), oldest_first.get(index).copied());
        let kinds = (expected.map(|event| event.kind), actual.map(|event| event.kind.as_str()));
        let is_same_event = expected.zip(actual).is_some_and(|(expected, actual)| {
            expected.kind == actual.kind && context.ids.code(expected.subject) == actual.subject()
        });
        let invariant = match kinds.0.or(kinds.1) {
            _ if book.events.len() != listed.len() => Invariant::Once,
            Some("charge.late_payment") => Invariant::LateMoney,
            Some("charge.paid") => Invariant::PaidMoney,
            _ => Invariant::SameObject,
        };
        // In lists of different lengths, other differences are more informative: reports list violations
        // without a time after those with one.
        let shown_at = actual.and_then(|event| Timestamp::parse(&event.created_at));
        let at = expected.map(|event| event.at).or(shown_at).filter(|_| invariant != Invariant::Once);
        findings.check(invariant, at, || {
            let name = |kind: Option<&str>| kind.unwrap_or("nothing").to_owned();
            (!is_same_event).then(|| {
                let shape = format!("{} is listed instead of {}", name(kinds.1), name(kinds.0));
                let subjects = (
                    expected.map_or("-", |event| context.ids.code(event.subject)),
                    actual.map_or("-", |event| event.subject()),
                );
                let details = format!("event {}: expected {}, got {}", index + 1, subjects.0, subjects.1);
                (shape, details)
            })
        });
        let Some((event, actual)) = expected.zip(actual).filter(|_| is_same_event) else { return };
        let object =
            objects.entry(event.subject).or_insert_with(|| book.event_object_json(context, event.subject));
        let id = context.ids.events.get(index).unwrap_or(&actual.id);
        let expected = book.event_json(id, index, object);
        let blocks = match event.subject {
            Subject::Charge(number) => (reading.blocks_mined)(book.charges[number].terms.asset),
            Subject::Invoice(_) => 0,
        };
        let about = format!("{} {}", event.kind, actual.subject());
        let documents = (expected.as_str(), actual.json.get());
        compare_json(findings, ("an event", &about), Some(event.at), documents, blocks);
    }
}

/// Compares the body of a delivery with the expected one: it contains the object at the time of the event, or the sample
/// of a test.
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
            Some((shape, format!("{about}: {}", difference.to_sentence())))
        });
    }
}
