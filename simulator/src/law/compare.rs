//! The comparison of a book with the model, field by field. Each field has the invariant that a difference breaks.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use reference_core::{asset::Asset, time::Timestamp};

use super::{BookShown, Depth, Findings, Law};
use crate::model::{
    Book, ChargeView, Envelope, EventView, Ids, InvoiceView, LinkView, Status, Subject, TimelineEntry,
};

/// A field: its law, its name, what it must be and what it is.
type ComparedField<'a> = (Law, &'static str, &'a str, &'a str);

fn compare_fields<const N: usize>(
    findings: &mut Findings,
    about: &str,
    at: Option<Timestamp>,
    fields: [ComparedField<'_>; N],
) {
    for (law, name, expected, actual) in fields {
        findings.check(law, at, || {
            (expected != actual).then(|| {
                (format!("{name} is another"), format!("{about}: expected {expected}, got {actual}"))
            })
        });
    }
}

fn or_none(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("none")
}

/// One field of each of several things, in one text.
fn joined<T>(things: &[T], text: impl Fn(&T) -> String) -> String {
    things.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Judges everything that is shown of a book. `unknown_links` have terms that the model does not know; events are
/// judged if they were asked for. `heights` are those of a coin's chain while the book was read.
pub fn compare_book(
    findings: &mut Findings,
    (book, ids): (&Book, &Ids),
    shown: &BookShown,
    unknown_links: &BTreeSet<usize>,
    (now, heights): (Timestamp, &dyn Fn(Asset) -> RangeInclusive<u64>),
) {
    let mut stories: BTreeMap<(bool, usize), Vec<usize>> = BTreeMap::new();
    for (no, event) in book.events.iter().enumerate() {
        let subject = match event.subject {
            Subject::Charge(no) => (true, no),
            Subject::Invoice(no) => (false, no),
        };
        stories.entry(subject).or_default().push(no);
    }
    let story = |subject| stories.get(&subject).map_or(&[][..], Vec::as_slice);
    let charges = listed(findings, "charge", &ids.charges, &shown.charges, |it| &it.code);
    for (no, seen) in charges {
        compare_timeline(findings, (book, no), (true, &seen.code), story((true, no)), &seen.timeline);
        let heights = heights(book.charges[no].terms.asset);
        let view = |height| book.charge_view(ids, no, height);
        let (mut expected, last) = (view(*heights.start()), view(*heights.end()));
        // Blocks may come while pages are read.
        for ((expected, last), seen) in
            expected.transactions.iter_mut().zip(last.transactions).zip(&seen.transactions)
        {
            expected.confirmations = seen.confirmations.clamp(expected.confirmations, last.confirmations);
        }
        compare_charge(findings, &expected, seen, book.charges[no].status);
    }
    let invoices = listed(findings, "invoice", &ids.invoices, &shown.invoices, |it| &it.code);
    for (no, seen) in invoices {
        compare_timeline(findings, (book, no), (false, &seen.code), story((false, no)), &seen.timeline);
        compare_invoice(findings, &book.invoice_view(ids, no), seen);
    }
    let links = listed(findings, "payment link", &ids.links, &shown.links, |it| &it.code);
    for (no, seen) in links.into_iter().filter(|(no, _)| !unknown_links.contains(no)) {
        compare_link(findings, &book.link_view(ids, no, now), seen);
    }
    if shown.depth == Depth::Events {
        compare_events(findings, (book, ids), &shown.events);
    }
}

/// The list must hold what was made, newest first. Returns the numbers of what it shows.
fn listed<'s, T>(
    findings: &mut Findings,
    what: &str,
    codes: &[String],
    shown: &'s [T],
    code: impl Fn(&T) -> &String,
) -> Vec<(usize, &'s T)> {
    let same = codes.len() == shown.len() && codes.iter().rev().eq(shown.iter().map(&code));
    let numbers: BTreeMap<&String, usize> = codes.iter().zip(0..).collect();
    findings.check(Law::Once, None, || {
        (!same).then(|| {
            let unknown = shown.iter().map(&code).find(|code| !numbers.contains_key(code));
            let missing = codes.iter().find(|made| !shown.iter().any(|it| code(it) == *made));
            match (unknown, missing) {
                (Some(code), _) => (format!("a {what} is listed that nobody made"), code.clone()),
                (None, Some(code)) => (format!("a {what} that was made is not in the list"), code.clone()),
                (None, None) => (format!("a list of {what}s is in another order"), String::new()),
            }
        })
    });
    shown.iter().filter_map(|it| Some((*numbers.get(code(it))?, it))).collect()
}

fn compare_charge(findings: &mut Findings, expected: &ChargeView, seen: &ChargeView, status: Status) {
    let received = if status == Status::Paid { Law::PaidMoney } else { Law::Confirmations };
    let flag = |flag: bool| if flag { "true" } else { "false" };
    let refunds = |of: &ChargeView| joined(&of.refunds, |refund| refund.amount.clone());
    let transfers = |of: &ChargeView| {
        joined(&of.transactions, |it| {
            let credited = if it.credited { " credited" } else { "" };
            let depth = (it.confirmations, it.required_confirmations);
            format!(
                "{} {} {}/{} {}{credited} from {}",
                it.txid, it.amount, depth.0, depth.1, it.status, it.seen_at
            )
        })
    };
    compare_fields(
        findings,
        &expected.code,
        None,
        [
            (Law::Edges, "status", &expected.status, &seen.status),
            (received, "received_amount", &expected.received_amount, &seen.received_amount),
            (Law::Tolerance, "remaining_amount", &expected.remaining_amount, &seen.remaining_amount),
            (Law::Tolerance, "overpaid", flag(expected.overpaid), flag(seen.overpaid)),
            (Law::Tolerance, "asset_amount", &expected.asset_amount, &seen.asset_amount),
            (Law::Tolerance, "fiat_amount", &expected.fiat_amount, &seen.fiat_amount),
            (Law::Tolerance, "fiat_currency", &expected.fiat_currency, &seen.fiat_currency),
            (Law::Tolerance, "exchange_rate", &expected.exchange_rate, &seen.exchange_rate),
            (Law::SameObject, "asset", &expected.asset, &seen.asset),
            (Law::Conservation, "refunded_amount", &expected.refunded_amount, &seen.refunded_amount),
            (Law::Conservation, "refunds", &refunds(expected), &refunds(seen)),
            (Law::Conservation, "deposit_address", &expected.deposit_address, &seen.deposit_address),
            (Law::Confirmations, "transactions", &transfers(expected), &transfers(seen)),
            (Law::PaidMoney, "paid_at", or_none(&expected.paid_at), or_none(&seen.paid_at)),
            (Law::LockEnd, "expires_at", &expected.expires_at, &seen.expires_at),
            (Law::Order, "created_at", &expected.created_at, &seen.created_at),
            (Law::SameObject, "payment_link", or_none(&expected.payment_link), or_none(&seen.payment_link)),
            (Law::SameObject, "invoice", or_none(&expected.invoice), or_none(&seen.invoice)),
        ],
    );
}

fn compare_invoice(findings: &mut Findings, expected: &InvoiceView, seen: &InvoiceView) {
    let charges = |of: &InvoiceView| {
        joined(&of.charges, |charge| format!("{} {} {}", charge.code, charge.status, charge.asset))
    };
    compare_fields(
        findings,
        &expected.code,
        None,
        [
            (Law::Edges, "status of an invoice", &expected.status, &seen.status),
            (Law::Edges, "paid_at of an invoice", or_none(&expected.paid_at), or_none(&seen.paid_at)),
            (Law::Edges, "voided_at of an invoice", or_none(&expected.voided_at), or_none(&seen.voided_at)),
            (Law::Once, "sent_at of an invoice", or_none(&expected.sent_at), or_none(&seen.sent_at)),
            (Law::Once, "viewed_at of an invoice", or_none(&expected.viewed_at), or_none(&seen.viewed_at)),
            (Law::SameObject, "charges of an invoice", &charges(expected), &charges(seen)),
            (Law::Order, "number of an invoice", &expected.number, &seen.number),
            (Law::Order, "created_at of an invoice", &expected.created_at, &seen.created_at),
            (Law::SameObject, "amount of an invoice", &expected.amount, &seen.amount),
            (Law::SameObject, "currency of an invoice", &expected.currency, &seen.currency),
            (
                Law::SameObject,
                "customer_email of an invoice",
                or_none(&expected.customer_email),
                or_none(&seen.customer_email),
            ),
        ],
    );
}

fn compare_link(findings: &mut Findings, expected: &LinkView, seen: &LinkView) {
    findings.check(Law::Once, None, || {
        (expected.accepting_payments != seen.accepting_payments).then(|| {
            let shape = match expected.accepting_payments {
                true => "a payment link takes no payments though it has room",
                false => "a payment link takes payments though it is over",
            };
            (shape.to_owned(), seen.code.clone())
        })
    });
    let same = LinkView { accepting_payments: seen.accepting_payments, ..expected.clone() } == *seen;
    findings.check(Law::SameObject, None, || {
        (!same).then(|| {
            ("a payment link has other terms".to_owned(), format!("expected {expected:?}, got {seen:?}"))
        })
    });
}

/// Returns the invariant that an event belongs to, when it is missing, superfluous or different.
fn law_of(expected: Option<&str>, actual: Option<&str>, at_lock_end: bool) -> Law {
    let about = |kind: &str| expected == Some(kind) || actual == Some(kind);
    if at_lock_end
        && (about("charge.expired") || about("charge.late_payment") || about("charge.payment_detected"))
    {
        return Law::LockEnd;
    }
    if about("charge.paid") && about("charge.underpaid") {
        return Law::Tolerance;
    }
    if expected == actual {
        return Law::Confirmations;
    }
    if about("charge.late_payment") {
        return Law::LateMoney;
    }
    if about("charge.paid") || about("charge.underpaid") || about("charge.payment_detected") {
        return Law::Confirmations;
    }
    if about("charge.refunded") {
        return Law::Conservation;
    }
    if about("charge.expired") {
        return Law::LockEnd;
    }
    if about("invoice.paid") || about("invoice.sent") || about("invoice.viewed") {
        Law::Once
    } else {
        Law::Edges
    }
}

/// The events of one subject, in order, with their times.
fn compare_timeline(
    findings: &mut Findings,
    (book, no): (&Book, usize),
    (is_charge, code): (bool, &str),
    story: &[usize],
    seen: &[TimelineEntry],
) {
    for place in 0..seen.len().max(story.len()) {
        let (expected, actual) = (story.get(place).map(|no| &book.events[*no]), seen.get(place));
        let kinds = (expected.map(|event| event.kind), actual.map(|entry| entry.event.as_str()));
        let time = expected.map(|event| event.at.to_string());
        if kinds.0 == kinds.1 && time.as_deref() == actual.map(|entry| entry.time.as_str()) {
            findings.checks[law_of(kinds.0, kinds.1, false) as usize] += 1;
            continue;
        }
        let shown = actual.and_then(|entry| Timestamp::parse(&entry.time));
        let at = expected.map(|event| event.at).into_iter().chain(shown).min();
        let at_lock_end = is_charge
            && at.is_some_and(|at| {
                let end = book.charges[no].end.0;
                at.0.abs_diff(end) <= 1 || shown.is_some_and(|shown| shown.0.abs_diff(end) <= 1)
            });
        findings.check(law_of(kinds.0, kinds.1, at_lock_end), at, || {
            let word = |kind: Option<&str>| kind.unwrap_or("nothing").to_owned();
            let shape = match kinds.0 == kinds.1 {
                true => format!("{} comes at another time", word(kinds.0)),
                false => format!("{} where {} must be", word(kinds.1), word(kinds.0)),
            };
            let when = |time: Option<&str>| time.unwrap_or("-").to_owned();
            let actual = actual.map(|entry| entry.time.as_str());
            Some((shape, format!("{code}: expected {}, got {}", when(time.as_deref()), when(actual))))
        });
        // What follows the first difference follows from it.
        return;
    }
}

/// Events that were read through the API, newest first: those that must be, in order, once each.
fn compare_events(findings: &mut Findings, (book, ids): (&Book, &Ids), shown: &[EventView]) {
    let oldest_first: Vec<&EventView> = shown.iter().rev().collect();
    findings.check(Law::Order, None, || {
        let rises = oldest_first.is_sorted_by(|one, two| one.id < two.id);
        (!rises).then(|| ("ids of events do not rise".to_owned(), book.mode.to_string()))
    });
    findings.check(Law::Order, None, || {
        let rises = oldest_first.is_sorted_by(|one, two| one.created_at <= two.created_at);
        (!rises).then(|| ("times of events fall".to_owned(), book.mode.to_string()))
    });
    for place in 0..book.events.len().max(shown.len()) {
        let expected = (place < book.events.len()).then(|| book.event_view(ids, place));
        let actual = oldest_first.get(place).copied();
        let same = expected.as_ref().zip(actual).is_some_and(|(expected, actual)| {
            let id = if expected.id.is_empty() { &actual.id } else { &expected.id };
            (&expected.kind, &expected.details, &expected.created_at, id)
                == (&actual.kind, &actual.details, &actual.created_at, &actual.id)
                && (&expected.charge, &expected.invoice) == (&actual.charge, &actual.invoice)
        });
        let law = match expected.as_ref().or(actual).map(|event| event.kind.as_str()) {
            _ if book.events.len() != shown.len() => Law::Once,
            Some("charge.late_payment") => Law::LateMoney,
            Some("charge.paid") => Law::PaidMoney,
            _ => Law::SameObject,
        };
        // Where the lists are of different lengths, whatever else differs says more.
        let at = expected.as_ref().or(actual).and_then(|event| Timestamp::parse(&event.created_at));
        let at = at.filter(|_| law != Law::Once);
        findings.check(law, at, || {
            (!same).then(|| {
                let kind =
                    |event: Option<&EventView>| event.map_or("nothing", |it| it.kind.as_str()).to_owned();
                let shape = format!("{} is listed where {} must be", kind(actual), kind(expected.as_ref()));
                (shape, format!("expected {expected:?}, got {actual:?}"))
            })
        });
        if !same {
            return;
        }
    }
}

/// The body of a delivery: the object as it was when the event happened. What nobody has to know is empty.
pub fn compare_envelope(
    findings: &mut Findings,
    at: Timestamp,
    expected: &Envelope<'_>,
    seen: &Envelope<'_>,
) {
    let about = if expected.subject().is_empty() { &expected.id } else { expected.subject() };
    let event_id = |of: &Envelope<'_>| of.event_id.as_deref().unwrap_or("none").to_owned();
    let (mut must, is) = (event_id(expected), event_id(seen));
    if must.is_empty() {
        must.clone_from(&is);
    }
    let test = |of: &Envelope<'_>| if of.test { "true" } else { "false" };
    compare_fields(
        findings,
        about,
        Some(at),
        [
            (Law::Deliveries, "id of a delivery", &expected.id, &seen.id),
            (Law::Deliveries, "event of a delivery", &expected.event, &seen.event),
            (Law::Deliveries, "mode of a delivery", &expected.mode, &seen.mode),
            (Law::Deliveries, "created_at of a delivery", &expected.created_at, &seen.created_at),
            (Law::Deliveries, "test of a delivery", test(expected), test(seen)),
            (Law::SameObject, "event_id of a delivery", &must, &is),
        ],
    );
    if expected.test {
        return;
    }
    findings.check(Law::SameObject, Some(at), || {
        (expected.data != seen.data).then(|| {
            let what = format!("{about}: expected {:?}, got {:?}", expected.data, seen.data);
            ("the object in a delivery is another than it was".to_owned(), what)
        })
    });
}
