//! The charges of a busy account in deliveries and events, all within a minute.

use conformance_model::deliveries::Delivery;
use conformance_model::recording::{Exchange, List, ObjectKind, PageRequest, Purpose, Recording, Side};
use serde_json::{Value, json};

use super::deliveries::{delivery, recording_of};
use super::{LIVE, TEST, charge_purpose, check, events_request, exchange, page, recording, response_mut};

/// The type of an event without `charge.`, its second, and the charge without its code.
type Event = (&'static str, u32, Value);

fn event_id(charge: usize, event: usize) -> String {
    format!("00000000-0000-4000-8000-{charge:06}{event:06}")
}

/// Returns the delivery of an event of charge number `charge`.
fn event_delivery(charge: usize, (event, (kind, second, object)): (usize, &Event)) -> Delivery {
    let mut object = object.clone();
    object["code"] = json!(format!("ch{charge}"));
    delivery(&json!({
        "id": event_id(100 + charge, event),
        "event_id": event_id(charge, event),
        "event": format!("charge.{kind}"),
        "mode": "test",
        "created_at": format!("2026-02-01T10:00:{second:02}.000000Z"),
        "data": { "charge": object },
    }))
}

/// Returns the events of the charges as rows of a list, newest first.
fn rows(charges: &[Vec<Event>]) -> Vec<Value> {
    let row = |charge: usize, event: usize, (kind, second, object): &Event| {
        let mut object = object.clone();
        object["code"] = json!(format!("ch{charge}"));
        json!({
            "id": event_id(charge, event),
            "type": format!("charge.{kind}"),
            "details": {},
            "charge": object,
            "invoice": null,
            "created_at": format!("2026-02-01T10:00:{second:02}Z"),
        })
    };
    let of_charges = charges.iter().enumerate();
    let mut rows: Vec<_> = of_charges
        .flat_map(|(charge, events)| {
            events.iter().enumerate().map(move |(index, event)| row(charge, index, event))
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row["created_at"].to_string()));
    rows
}

/// Returns the long page of a list with these events only.
fn events_page(rows: &[Value]) -> Exchange {
    page(events_request(None, 100), &json!(rows), [1, 1, 100, rows.len() as u64])
}

/// Returns a recording of a list of the events of these charges, and of the deliveries of the events.
fn recorded(charges: &[Vec<Event>]) -> Recording {
    let rows = rows(charges);
    let deliveries = charges.iter().enumerate().flat_map(|(charge, events)| {
        events.iter().enumerate().map(move |event| event_delivery(charge, event))
    });
    Recording {
        exchanges: recording(vec![events_page(&rows)]).exchanges,
        ..recording_of(deliveries.collect())
    }
}

/// Checks the verdict on four charges: `violating` with the faulty events, the others with the correct ones.
#[track_caller]
fn check_charges(violating: usize, faulty: &[Event], correct: &[Event], id: &str, expected: &str) {
    let charges: Vec<_> =
        (0..4).map(|index| if index < violating { faulty } else { correct }.to_vec()).collect();
    check(&recorded(&charges), id, expected);
}

fn charge(fiat_amount: &str, asset: &str, asset_amount: &str) -> Value {
    json!({ "status": "paid", "fiat_amount": fiat_amount, "asset": asset, "asset_amount": asset_amount })
}

#[test]
fn the_rate_of_a_charge_is_locked() {
    let opened = charge("10.00", "BTC", "0.5");
    let with_payment = |paid: Value| {
        vec![("created", 1, opened.clone()), ("payment_detected", 5, opened.clone()), ("paid", 9, paid)]
    };
    let unchanged = with_payment(opened.clone());
    for (violating, paid, expected) in [
        (4, charge("10.00", "BTC", "0.6"), "fail"),
        (3, charge("12.00", "BTC", "0.5"), "fail"),
        (2, charge("12.00", "BTC", "0.5"), "pass"),
        // The owner changed the amount at the same rate.
        (4, charge("20.00", "BTC", "1.0"), "pass"),
        // The customer selected another coin.
        (4, charge("10.00", "ETH", "5.0"), "pass"),
        (4, charge("10.00", "USDC", "0.5"), "pass"),
    ] {
        check_charges(violating, &with_payment(paid), &unchanged, "charges.code", expected);
    }
}

#[test]
fn a_single_charge_is_the_requested_one() {
    let charge = |code: &str, asset_amount: &str| {
        json!({
            "code": code, "status": "paid", "fiat_amount": "10.00", "asset": "BTC", "asset_amount": asset_amount,
        })
    };
    for (charge, expected) in [
        (charge("ch0", "0.5"), "pass"),
        (charge("ch1", "0.5"), "fail"),
        (charge("ch0", "0.6"), "fail"),
        // The format of a single charge is not specified.
        (charge("ch0", "0.60"), "pass"),
        (json!({ "code": "OK" }), "pass"),
    ] {
        let mut all = recorded(&[vec![("paid", 9, self::charge("10.00", "BTC", "0.5"))]]);
        let live_events = Exchange { caller: LIVE, ..all.exchanges[0].clone() };
        all.exchanges.push(live_events);
        let body = json!({ "code": "OK", "result": { "charge": charge } });
        for caller in [TEST, LIVE] {
            let purpose = charge_purpose("ch0", Side::Own);
            all.exchanges.push(exchange(caller, purpose, "/v1/charges/ch0", 200, &body));
        }
        check(&all, "charges.code", expected);
    }
}

/// Returns the events of a charge that is paid in second 9, with this `paid_at` at its payment and at its refund.
fn payment(paid_at: &str, later: &str) -> Vec<Event> {
    let charge = |status: &str, paid_at: Value| json!({ "status": status, "paid_at": paid_at });
    vec![
        ("created", 1, charge("pending", Value::Null)),
        ("payment_detected", 7, charge("pending", Value::Null)),
        ("paid", 9, charge("paid", json!(format!("2026-02-01T{paid_at}.123456Z")))),
        ("refunded", 30, charge("paid", json!(format!("2026-02-01T{later}.123456Z")))),
    ]
}

#[test]
fn the_time_of_payment_is_not_that_of_the_creation() {
    let correct = payment("10:00:08", "10:00:08");
    for (violating, paid_at, expected) in [
        (4, "10:00:08", "pass"),
        (4, "10:00:01", "fail"),
        (2, "10:00:01", "pass"),
        // The clock of a chain may differ.
        (4, "09:50:00", "pass"),
        (4, "10:00:05", "pass"),
        (4, "12:45:00", "pass"),
    ] {
        check_charges(violating, &payment(paid_at, paid_at), &correct, "charges.paid_at", expected);
    }
    let confirmed_at = |second: u32, paid_at: &str| {
        let mut events = payment(paid_at, paid_at);
        (events[2].1, events[3].1) = (second, 50);
        events
    };
    for (violating, confirmed, paid_at, expected) in [
        (4, 40, "10:00:07", "fail"),
        (2, 40, "10:00:07", "pass"),
        (4, 40, "10:00:09", "pass"),
        (4, 40, "10:00:40", "pass"),
        // Detection confirms the transfer, and a job records the payment.
        (4, 30, "10:00:07", "pass"),
    ] {
        let correct = confirmed_at(confirmed, "10:00:39");
        check_charges(violating, &confirmed_at(confirmed, paid_at), &correct, "charges.paid_at", expected);
    }
}

#[test]
fn a_charge_keeps_its_time_of_payment() {
    let mut charges: Vec<_> = (0..4).map(|_| payment("10:00:08", "10:00:08")).collect();
    let api_rows = rows(&charges);
    for charge in &mut charges {
        charge[2].2["paid_at"] = json!("2026-02-01T10:00:12.000000Z");
        charge.pop();
    }
    let mut read = recorded(&charges);
    check(&read, "charges.paid_at", "pass");
    read.exchanges = recording(vec![events_page(&api_rows)]).exchanges;
    check(&read, "charges.paid_at", "fail");
    // A second transfer may have paid the charges again.
    let detected = ("payment_detected", 8, json!({ "status": "pending" }));
    let with_second = |events: &[Event]| [std::slice::from_ref(&detected), events].concat();
    let second = charges.iter().map(|events| with_second(events)).collect::<Vec<_>>();
    read.deliveries = recorded(&second).deliveries;
    check(&read, "charges.paid_at", "pass");
}

#[test]
fn a_charge_without_a_payment_shows_none() {
    let time = json!("2026-02-01T10:00:01.000000Z");
    let ended = |status: &str, paid_at: &Value| {
        let charge = json!({ "status": status, "paid_at": paid_at });
        vec![("created", 1, charge.clone()), ("expired", 20, charge)]
    };
    let correct = ended("expired", &Value::Null);
    // Needs a charge with a payment.
    let paid = payment("10:00:08", "10:00:08");
    for (violating, status, paid_at, id, expected) in [
        (3, "expired", &Value::Null, "charges.status", "pass"),
        (3, "paid", &Value::Null, "charges.status", "fail"),
        (1, "paid", &Value::Null, "charges.status", "pass"),
        (3, "expired", &time, "charges.paid_at", "fail"),
        (1, "expired", &time, "charges.paid_at", "pass"),
    ] {
        let faulty = ended(status, paid_at);
        let charges: Vec<_> = (0..3)
            .map(|index| if index < violating { &faulty } else { &correct }.clone())
            .chain([paid.clone()])
            .collect();
        check(&recorded(&charges), id, expected);
    }
}

#[test]
fn a_payment_has_a_received_amount() {
    let payment = |amount: &str| {
        let charge = json!({ "status": "paid", "received_amount": amount });
        vec![("payment_detected", 7, charge.clone()), ("paid", 9, charge)]
    };
    let (zero, full) = (payment("0.000000000000000000"), payment("0.500000000000000000"));
    check_charges(4, &zero, &full, "charges.received_amount", "fail");
    check_charges(3, &zero, &full, "charges.received_amount", "pass");
    // The owner may have settled the charges.
    check_charges(4, &zero[1..], &full, "charges.received_amount", "pass");
}

#[test]
fn an_email_address_has_an_at_sign() {
    let charges = |email: &dyn Fn(usize) -> String| {
        let charge = |index| vec![("paid", 9, json!({ "status": "paid", "customer_email": email(index) }))];
        recorded(&(0..4).map(charge).collect::<Vec<_>>())
    };
    for (email, expected) in [
        (&(|index| format!("ann{index}@shop.example")) as &dyn Fn(usize) -> String, "pass"),
        (&|index| format!("Ann {index}"), "fail"),
        (&|index| "*".repeat(index + 1), "pass"),
        (&|index| format!("Ann {}", index.min(1)), "pass"),
        (&|index| format!("{index}***@shop.example"), "fail"),
        (&|index| format!("{index}•••@shop.example"), "fail"),
        (&|index| format!("{index}*@shop.example"), "pass"),
        // One or two masked addresses.
        (&|index| format!("{}***@shop.example", index.min(1)), "pass"),
        (&|index| format!("{index}{}@shop.example", if index < 2 { "***" } else { "" }), "pass"),
    ] {
        check(&charges(email), "charges.customer_email", expected);
    }
}

#[test]
fn single_invoices_have_the_values_of_the_list() {
    let invoice = |code: &str, amount: &str, status: &str| {
        json!({
            "code": code, "number": code, "status": status, "amount": amount, "currency": "EUR", "customer": {},
            "hosted_url": "https://pay.example/i", "charges": [],
        })
    };
    for (kind, changes, expected) in [
        ("invoice.voided", [("1.00", "void"), ("1.00", "void")], "pass"),
        ("invoice.voided", [("2.00", "void"), ("3.00", "void")], "fail"),
        ("invoice.voided", [("2.00", "void"), ("1.00", "void")], "pass"),
        ("invoice.voided", [("1.00", "open"), ("1.00", "open")], "fail"),
        // An open invoice may change at the request.
        ("invoice.created", [("1.00", "open"), ("1.00", "open")], "pass"),
    ] {
        let listed = ["in1", "in2"].map(|code| invoice(code, "1.00", "void"));
        let event = |(index, invoice): (usize, &Value)| {
            json!({
                "id": event_id(index, 0), "type": kind, "details": {}, "charge": null, "invoice": invoice,
                "created_at": "2026-02-01T10:00:00.000000Z",
            })
        };
        let events: Value = listed.iter().enumerate().map(event).collect();
        let list = PageRequest { list: List::Invoices, ..events_request(None, 100) };
        let mut all = vec![
            page(events_request(None, 100), &events, [1, 1, 100, 2]),
            page(list, &json!(listed), [1, 1, 100, 2]),
        ];
        for (code, (amount, status)) in ["in1", "in2"].into_iter().zip(changes) {
            let purpose =
                Purpose::Object { kind: ObjectKind::Invoice, id: code.to_owned(), side: Side::Own, round: 1 };
            let body = json!({ "data": invoice(code, amount, status) });
            let mut single = exchange(TEST, purpose, &format!("/v1/invoices/{code}"), 200, &body);
            let date = ("date".to_owned(), "Sun, 01 Feb 2026 11:00:00 GMT".to_owned());
            response_mut(&mut single).headers.push(date);
            all.push(single);
        }
        check(&recording(all), "invoices.fields", expected);
    }
}

#[test]
fn listed_and_single_charges_show_the_received_amount() {
    let paid = |received: Value| {
        json!({
            "status": "paid", "fiat_amount": "10.00", "fiat_currency": "EUR", "asset": "BTC",
            "asset_amount": "0.500000000000000000", "received_amount": received, "metadata": {},
            "payment_link": null, "customer_email": null, "description": null, "paid_at": null,
        })
    };
    let full = paid(json!("0.500000000000000000"));
    let payment = vec![("payment_detected", 7, full.clone()), ("paid", 9, full.clone())];
    let with_refund = [&payment[..], &[("refunded", 20, full.clone())]].concat();
    let listed = |events: &[Event], violating: usize, received: &Value| {
        let charges: Vec<_> = (0..4).map(|_| events.to_vec()).collect();
        let item = |index: usize| {
            let mut item = if index < violating { paid(received.clone()) } else { full.clone() };
            item["code"] = json!(format!("ch{index}"));
            item
        };
        let request = PageRequest { list: List::Charges, ..events_request(None, 100) };
        let list = page(request, &Value::from_iter((0..4).map(item)), [1, 1, 100, 4]);
        recording(vec![list, events_page(&rows(&charges))])
    };
    let (id, half) = ("charges.amounts", json!("0.25"));
    check(&listed(&payment, 3, &half), id, "fail");
    check(&listed(&payment, 2, &half), id, "pass");
    check(&listed(&payment, 3, &Value::Null), id, "fail");
    // No item of the list has an amount.
    check(&listed(&payment, 4, &Value::Null), id, "pass");
    check(&listed(&payment, 4, &json!("0.5")), id, "pass");
    // A second transfer.
    check(&listed(&payment, 4, &json!("0.75")), id, "pass");
    check(&listed(&with_refund, 4, &json!("0")), id, "pass");
    let mut redacted = listed(&payment, 4, &half);
    redacted.exact_amounts = false;
    check(&redacted, id, "pass");
    for (received, expected) in [(&half, "fail"), (&full["received_amount"], "pass")] {
        let mut all = listed(&payment, 0, &half);
        for code in ["ch0", "ch1"] {
            let mut single = paid(received.clone());
            single["code"] = json!(code);
            let body = json!({ "data": single });
            all.exchanges.push(exchange(TEST, charge_purpose(code, Side::Own), "/v1/charges", 200, &body));
        }
        check(&all, id, expected);
    }
}
