//! The relations between the events and deliveries of a busy account, in which the life of an object takes a few seconds.

use std::ops::Range;
use std::time::Duration;

use conformance_judge::judge;
use conformance_model::deliveries::Delivery;
use conformance_model::recording::{Exchange, List, PageRequest, Purpose, Recording};
use serde_json::{Value, json};

use super::deliveries::{delivery, recording_of};
use super::{TEST, events_request, exchange, page, recording};

/// Checks whether a statement is violated.
#[track_caller]
fn check_violated(recording: &Recording, id: &str, expected: bool) {
    let rows = judge(recording);
    let row = rows.iter().find(|row| row.id == id).expect("the statement exists");
    assert_eq!(row.verdict.as_str() == "fail", expected, "{:?}", row.verdict);
}

fn time(second: u64) -> String {
    format!("2026-02-01T10:{:02}:{:02}.000000Z", second / 60, second % 60)
}

fn event_id(object: usize, kind: &str) -> String {
    let number: usize = kind.bytes().map(usize::from).sum();
    format!("00000000-0000-4000-8000-{object:06}{number:06}")
}

/// Returns an event of an object. The name of its member is the first part of the type.
fn event(number: usize, kind: &str, second: u64, object: &Value) -> Value {
    let (member, other) =
        if kind.starts_with("charge") { ("charge", "invoice") } else { ("invoice", "charge") };
    json!({
        "id": event_id(number, &format!("{kind}{second}")),
        "type": kind,
        "details": {},
        member: object,
        other: null,
        "created_at": time(second),
    })
}

/// Returns a recording of one long page with these events.
fn listed(mut rows: Vec<Value>) -> Recording {
    rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
    let total = rows.len() as u64;
    recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])])
}

/// The traffic of four minutes: every four seconds, a charge of an invoice is created and paid.
struct Traffic {
    /// The type of the events that some objects lack.
    lacking: &'static str,
    objects: Range<usize>,
    /// The time from `charge.paid` to `invoice.paid`.
    delay: u64,
    /// The number of records by which each page overlaps the page before. If negative, there is a gap.
    overlap: isize,
    /// The time by which the clock of the list of charges is fast, if it has times.
    charges_ahead: Option<u64>,
}

impl Traffic {
    /// Returns the traffic in which some objects lack the event of a type.
    fn lacking(lacking: &'static str, objects: Range<usize>) -> Traffic {
        Traffic { lacking, objects, delay: 0, overlap: 10, charges_ahead: None }
    }

    /// Returns the exchanges of a list of charges and of three pages of events.
    fn recording(&self) -> Recording {
        let mut rows = Vec::new();
        for number in 0..60 {
            let (charge, start) = (json!({ "code": format!("c{number}") }), 4 * number as u64);
            let invoice = json!({ "code": format!("in{number}"), "charges": [charge] });
            for (kind, second, object) in [
                ("invoice.created", start, &invoice),
                ("charge.created", start, &charge),
                ("charge.paid", start + 1, &charge),
                ("invoice.paid", start + 1 + self.delay, &invoice),
            ] {
                if kind != self.lacking || !self.objects.contains(&number) {
                    rows.push(event(number, kind, second, object));
                }
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
        let charge = |number: u64| {
            let created_at = self.charges_ahead.map(|ahead| time(4 * number + ahead));
            json!({ "code": format!("c{number}"), "created_at": created_at })
        };
        let charges = Value::from_iter((0..60).rev().map(charge));
        let charges_request = PageRequest { list: List::Charges, ..events_request(None, 100) };
        let mut exchanges = vec![page(charges_request, &charges, [1, 1, 100, 60])];
        for number in 0..3_usize {
            let shift = self.overlap * number.cast_signed();
            let start = (100 * number).saturating_add_signed(-shift);
            let rows = &rows[start..(start + 100).min(rows.len())];
            let (page_number, total) = (number as u64 + 1, 300_usize.saturating_add_signed(shift) as u64);
            let request = events_request((page_number > 1).then_some(page_number), 100);
            exchanges.push(page(request, &json!(rows), [page_number, 3, 100, total]));
        }
        recording(exchanges)
    }
}

#[test]
fn pages_that_overlap_show_the_missing_events_of_a_busy_account() {
    let traffic =
        |lacking, objects, overlap| Traffic { overlap, ..Traffic::lacking(lacking, objects) }.recording();
    for (lacking, id) in [
        ("charge.paid", "events.both_paid"),
        ("invoice.paid", "invoices.settled"),
        ("charge.created", "events.recorded"),
    ] {
        check_violated(&traffic(lacking, 0..0, 10), id, false);
        check_violated(&traffic(lacking, 20..25, 10), id, true);
        check_violated(&traffic(lacking, 20..21, 10), id, false);
        // The events of the last minute may still be recorded.
        check_violated(&traffic(lacking, 45..55, 10), id, false);
        // Two pages with a gap, such as those of two replicas.
        check_violated(&traffic(lacking, 20..25, -10), id, false);
    }
    // A slow job records the second event.
    let slow = Traffic { delay: 30, ..Traffic::lacking("invoice.paid", 20..25) };
    check_violated(&slow.recording(), "invoices.settled", false);
    for (lacking, id) in [("charge.paid", "events.both_paid"), ("invoice.paid", "invoices.settled")] {
        // A job that runs every few minutes records the second event of all payments, and did so for one of them.
        check_violated(&Traffic::lacking(lacking, 0..59).recording(), id, false);
        check_violated(&Traffic::lacking(lacking, 0..60).recording(), id, true);
    }
    // The first charges are older than the oldest event, but have later times, by the clock of the database.
    let ahead = Traffic { charges_ahead: Some(20), ..Traffic::lacking("charge.created", 0..3) };
    check_violated(&ahead.recording(), "events.recorded", false);
    let ahead = Traffic { charges_ahead: Some(20), ..Traffic::lacking("charge.created", 20..25) };
    check_violated(&ahead.recording(), "events.recorded", true);
}

/// Checks the events of five objects: `count` with the faulty events, the others with the correct ones.
#[track_caller]
fn check_events(count: usize, faulty: &[(&str, u64)], correct: &[(&str, u64)], expected: bool) {
    let rows = (0..5).flat_map(|number| {
        let events = if number < count { faulty } else { correct };
        let object = json!({ "code": format!("ob{number}"), "status": "open" });
        events.iter().map(move |(kind, second)| event(number, kind, *second, &object))
    });
    check_violated(&listed(rows.collect()), "events.recorded", expected);
}

#[test]
fn one_change_has_one_result() {
    let created = ("charge.created", 1);
    let underpaid = [created, ("charge.payment_detected", 5), ("charge.underpaid", 9)];
    let both = |second| [&underpaid[..], &[("charge.paid", second)]].concat();
    check_events(3, &both(9), &underpaid, true);
    check_events(2, &both(9), &underpaid, false);
    // The owner accepted the shortfall later.
    check_events(5, &both(14), &underpaid, false);
    // A second transfer.
    let second_transfer = [&both(9)[..], &[("charge.payment_detected", 8)]].concat();
    check_events(5, &second_transfer, &underpaid, false);
    let canceled = [created, ("charge.canceled", 9)];
    check_events(3, &[&canceled[..], &[("charge.expired", 10)]].concat(), &canceled, true);
    // The rate lock ran out later.
    check_events(5, &[&canceled[..], &[("charge.expired", 40)]].concat(), &canceled, false);
}

#[test]
fn a_lasting_change_is_recorded_once_at_any_time() {
    let canceled = [("charge.created", 1), ("charge.canceled", 9)];
    let again = |second| [&canceled[..], &[("charge.canceled", second)]].concat();
    check_events(3, &again(50), &canceled, true);
    check_events(2, &again(50), &canceled, false);
    check_events(5, &[&again(50)[..], &[("charge.paid", 30)]].concat(), &canceled, false);
    let expired = [("charge.created", 1), ("charge.expired", 21)];
    let again = |second| [&expired[..], &[("charge.expired", second)]].concat();
    check_events(3, &again(29), &expired, true);
    // The rate may have been locked again.
    check_events(5, &again(42), &expired, false);
}

/// Returns a charge with all fields.
fn charge(number: usize, name: &str, value: &Value) -> Value {
    let mut charge = json!({
        "code": format!("ch{number}"),
        "status": "paid",
        "fiat_amount": "10.00",
        "fiat_currency": "EUR",
        "asset": "BTC",
        "asset_amount": "0.500000000000000000",
        "received_amount": "0.500000000000000000",
        "customer_email": format!("{number}@pay.example"),
        "description": "Tea",
        "metadata": { "order": number.to_string() },
        "payment_link": "li1",
        "paid_at": "2026-02-01T10:00:00.000000Z",
    });
    charge[name] = value.clone();
    charge
}

#[test]
fn events_of_all_types_show_the_same_fields() {
    let check_values = |name: &str, count: usize, [created, paid, refunded]: [&Value; 3], expected: bool| {
        let kinds = [("charge.created", created), ("charge.paid", paid), ("charge.refunded", refunded)];
        let values = || (0..5).flat_map(|number| (1..).zip(kinds).map(move |item| (number, item)));
        let object =
            |number: usize, value: &Value| charge(number, name, if number < count { value } else { created });
        let rows = values()
            .map(|(number, (second, (kind, value)))| event(number, kind, second, &object(number, value)));
        check_violated(&listed(rows.collect()), "charges.fields", expected);
        let deliveries = values()
            .map(|(number, (second, (kind, value)))| delivered(number, kind, second, &object(number, value)));
        check_violated(&recording_of(deliveries.collect()), "charges.fields", expected);
    };
    let (none, tea, coffee) = (json!(null), json!("Tea"), json!("Coffee"));
    check_values("description", 5, [&tea, &none, &tea], true);
    check_values("description", 3, [&tea, &none, &none], true);
    check_values("description", 2, [&tea, &none, &tea], false);
    check_values("description", 5, [&tea, &coffee, &tea], true);
    // The owner edited the description.
    check_values("description", 5, [&tea, &coffee, &coffee], false);
    check_values("customer_email", 5, [&none, &json!("a@pay.example"), &json!("a@pay.example")], false);
    check_values("payment_link", 5, [&json!("li1"), &none, &json!("li1")], true);
    check_values("metadata", 5, [&json!({ "order": "1" }), &json!({}), &json!({ "order": "1" })], true);
    check_values("fiat_amount", 5, [&json!("10.00"), &json!(""), &json!("10.00")], true);
    // charges.code judges these.
    check_values("fiat_amount", 5, [&json!("10.00"), &json!("12.00"), &json!("10.00")], false);
}

/// Returns the delivery of an event, which arrived at this second.
fn delivered(number: usize, kind: &str, second: u64, object: &Value) -> Delivery {
    let id = event_id(number, &format!("{kind}{second}"));
    let member = kind.split('.').next().unwrap_or_default();
    let body = json!({
        "id": id.replace("8000", "9000"),
        "event_id": id,
        "event": kind,
        "mode": "test",
        "created_at": time(second),
        "data": { member: object },
    });
    Delivery { arrived: Duration::from_secs(second), ..delivery(&body) }
}

#[test]
fn an_underpaid_charge_received_an_amount() {
    let check_amount = |kinds: &[&str], amount: &str, expected: bool| {
        let object = |number| charge(number, "received_amount", &json!(amount));
        let deliveries = (0..4).flat_map(|number| {
            (1..).zip(kinds).map(move |(second, kind)| delivered(number, kind, second, &object(number)))
        });
        check_violated(&recording_of(deliveries.collect()), "charges.received_amount", expected);
    };
    let (one, zero) = ("1.000000000000000000", "0.000000000000000000");
    let underpaid = ["charge.created", "charge.payment_detected", "charge.underpaid"];
    check_amount(&underpaid, zero, true);
    check_amount(&underpaid, one, false);
}

/// Returns a run whose list of events was read after `listed_at` seconds, with these deliveries and events.
fn run(listed_at: u64, deliveries: Vec<Delivery>, rows: &[Value]) -> Recording {
    let list: Exchange =
        exchange(TEST, Purpose::AfterDeliveries, "/v1/events?per_page=100", 200, &json!({ "data": rows }));
    let mut run = Recording { exchanges: recording(vec![list]).exchanges, ..recording_of(deliveries) };
    run.deliveries.as_mut().expect("the run had a receiver").listed_at = Some(Duration::from_secs(listed_at));
    run
}

#[test]
fn the_events_of_a_listed_object_are_listed() {
    let check_listed = |listed_at, count: usize, is_created_listed: bool, expected: bool| {
        let (mut deliveries, mut rows) = (Vec::new(), Vec::new());
        for number in 0..4 {
            let object = charge(number, "status", &json!("open"));
            deliveries.push(delivered(number, "charge.created", 10, &object));
            deliveries.push(delivered(number, "charge.expired", 20, &object));
            if is_created_listed {
                rows.push(event(number, "charge.created", 10, &object));
            }
            if number >= count {
                rows.push(event(number, "charge.expired", 20, &object));
            }
        }
        check_violated(&run(listed_at, deliveries, &rows), "webhooks.event_id", expected);
    };
    check_listed(200, 0, true, false);
    check_listed(200, 2, true, true);
    check_listed(200, 1, true, false);
    check_listed(70, 4, true, false);
    // The objects may be older than the list.
    check_listed(200, 4, false, false);
}

#[test]
fn an_expired_charge_has_the_status_that_the_api_shows() {
    let check_status = |delivered_status: &str, shown: &str, count: usize, expected: bool| {
        let (mut deliveries, mut rows) = (Vec::new(), Vec::new());
        for number in 0..5 {
            let object = |status: &str| charge(number, "status", &json!(status));
            let status = if number < count { delivered_status } else { "expired" };
            deliveries.push(delivered(number, "charge.created", 10, &object("new")));
            deliveries.push(delivered(number, "charge.expired", 20, &object(status)));
            rows.push(event(number, "charge.created", 10, &object("new")));
            rows.push(event(number, "charge.expired", 20, &object(shown)));
        }
        check_violated(&run(200, deliveries, &rows), "webhooks.event_id", expected);
    };
    check_status("new", "expired", 3, true);
    check_status("new", "expired", 2, false);
    check_status("expired", "expired", 5, false);
    // An expired charge may still accept a payment.
    check_status("new", "new", 5, false);
}

#[test]
fn events_are_not_at_the_time_of_the_creation() {
    let at = |second: u64, fraction: &str| time(second).replace("000000", fraction);
    let check_fractions =
        |kind: &str, arrived: u64, recorded: u64, fraction: &str, more: &[(&str, u64)], expected: bool| {
            let (mut deliveries, mut rows) = (Vec::new(), Vec::new());
            for number in 0..4 {
                let mut object = charge(number, "status", &json!("open"));
                for (kind, arrived, recorded) in [("charge.created", 10, 10), (kind, arrived, recorded)]
                    .into_iter()
                    .chain(more.iter().map(|(kind, recorded)| (*kind, arrived, *recorded)))
                {
                    if kind == "paid_at" {
                        continue;
                    }
                    let paid_at = more.iter().find(|(name, _)| *name == "paid_at" && kind == "charge.paid");
                    object["paid_at"] = json!(paid_at.map(|(_, second)| at(*second, fraction)));
                    deliveries.push(delivered(number, kind, arrived, &object));
                    let mut row = event(number, kind, arrived, &object);
                    row["created_at"] = json!(at(recorded, fraction));
                    rows.push(row);
                }
            }
            check_violated(&run(200, deliveries, &rows), "webhooks.created_at", expected);
        };
    let check_times =
        |kind, arrived, recorded, expected| check_fractions(kind, arrived, recorded, "123456", &[], expected);
    // A rate lock has a duration.
    check_times("charge.expired", 30, 10, true);
    check_times("charge.expired", 30, 29, false);
    check_times("charge.expired", 12, 10, false);
    check_times("charge.payment_detected", 30, 10, false);
    // Instant test payments, and a throttled sender.
    for kind in ["charge.paid", "charge.canceled"] {
        check_times(kind, 30, 10, false);
    }
    // Another time proves that the payment was later.
    check_fractions("charge.paid", 30, 10, "123456", &[("paid_at", 25)], true);
    check_fractions("charge.paid", 30, 10, "123456", &[("paid_at", 10)], false);
    check_fractions("charge.paid", 30, 10, "123456", &[("charge.payment_detected", 24)], true);
    check_fractions("charge.paid", 30, 10, "123456", &[("charge.payment_detected", 10)], false);
    check_fractions("charge.refunded", 30, 10, "123456", &[("charge.paid", 24)], true);
    // Times in whole seconds.
    check_fractions("charge.paid", 30, 10, "000000", &[("charge.payment_detected", 24)], false);
}
