//! The objects in listed and single events, the items of lists, and pages, including those of bursts.

use std::time::Duration;

use conformance_model::body::Body;
use conformance_model::part::Part;
use conformance_model::recording::{
    Burst, Exchange, ExchangeOutcome, List, PageRequest, Purpose, Recording, Side,
};
use serde_json::{Value, json};

use super::limits::burst;
use super::{LIVE, TEST, account, check, check_verdict_text, events_request, exchange, page, recording};

const ID: &str = "0190a5c4-7f3e-7abc-8def-0123456789ab";

fn charge() -> Value {
    json!({
        "code": "ch1", "status": "paid", "fiat_amount": "49.90", "fiat_currency": "EUR", "asset": "BTC",
        "asset_amount": "0.001", "received_amount": "0.001", "customer_email": "a@b.example",
        "description": "Shoes", "metadata": {}, "payment_link": null, "paid_at": "2026-01-05T09:00:00Z",
    })
}

fn event(charge: &Value) -> Value {
    json!({
        "id": ID, "type": "charge.paid", "details": {}, "charge": charge, "invoice": null,
        "created_at": "2026-01-05T09:00:00.000000Z",
    })
}

/// Returns a recording of a list with one event, without webhook deliveries.
fn listed_event(event: &Value) -> Recording {
    let mut found = recording(vec![page(events_request(None, 100), &json!([event]), [1, 1, 100, 1])]);
    found.without = [Part::Webhooks].into();
    found
}

#[track_caller]
fn check_charge(change: impl FnOnce(&mut Value), id: &str, expected: &str) {
    let mut charge = charge();
    change(&mut charge);
    check(&listed_event(&event(&charge)), id, expected);
}

#[test]
fn a_charge_in_an_event_has_the_fields_of_a_charge() {
    for id in ["charges.fields", "charges.amounts", "charges.metadata", "charges.paid_at", "charges.status"] {
        check_charge(|_| {}, id, "pass");
    }
    check_charge(|charge| drop(charge.as_object_mut().unwrap().remove("asset")), "charges.fields", "fail");
    check_charge(|charge| charge["asset_amount"] = json!(0.001), "charges.amounts", "fail");
    // Zero with 18 decimals in some languages.
    for (amount, expected) in [("0E-18", "pass"), ("1.5e+3", "pass"), ("0E", "fail"), ("E-18", "fail")] {
        check_charge(|charge| charge["received_amount"] = json!(amount), "charges.amounts", expected);
    }
    let unpaid = |amount: Value| {
        let mut event = event(&charge());
        event["type"] = json!("charge.created");
        event["charge"]["status"] = json!("pending");
        event["charge"]["received_amount"] = amount;
        event
    };
    check(&listed_event(&unpaid(json!("0"))), "charges.amounts", "pass");
    check(&listed_event(&unpaid(Value::Null)), "charges.amounts", "pass");
    check_charge(|charge| charge["received_amount"] = Value::Null, "charges.amounts", "fail");
    check_charge(|charge| charge["asset_amount"] = Value::Null, "charges.amounts", "fail");
    check_charge(|charge| charge["metadata"] = json!([]), "charges.metadata", "fail");
    check_charge(|charge| charge["paid_at"] = json!("yesterday"), "charges.paid_at", "fail");
    check_charge(|charge| charge["code"] = json!(7), "charges.code", "fail");
    // The number of decimals is specified for deliveries only.
    check_charge(|_| {}, "charges.asset_amount", "left out");
}

#[test]
fn fields_of_the_payment_may_be_missing_before_it() {
    let without = |status: &str| {
        let (status, is_paid) = (status.to_owned(), status == "paid");
        move |value: &mut Value| {
            value["status"] = json!(status);
            let charge = value.as_object_mut().unwrap();
            charge.remove("paid_at");
            if !is_paid {
                charge.remove("customer_email");
                charge.remove("description");
            }
        }
    };
    let opened = |change: &dyn Fn(&mut Value)| {
        let mut charge = charge();
        change(&mut charge);
        let mut event = event(&charge);
        event["type"] = json!("charge.created");
        listed_event(&event)
    };
    check(&opened(&without("pending")), "charges.fields", "pass");
    check(&opened(&without("paid")), "charges.fields", "fail");
    let no_amount = |value: &mut Value| drop(value.as_object_mut().unwrap().remove("received_amount"));
    check(&opened(&no_amount), "charges.fields", "fail");
}

#[test]
fn an_invoice_in_an_event_has_its_eight_fields() {
    let mut invoice = json!({
        "code": "in1", "number": "7", "status": "paid", "amount": "1.00", "currency": "EUR",
        "customer": {}, "hosted_url": "https://pay.example/i/in1", "charges": [],
    });
    let recording_of = |invoice: &Value| {
        let mut event = event(&Value::Null);
        event["type"] = json!("invoice.paid");
        event["invoice"] = invoice.clone();
        listed_event(&event)
    };
    check(&recording_of(&invoice), "invoices.fields", "pass");
    invoice.as_object_mut().unwrap().remove("hosted_url");
    check(&recording_of(&invoice), "invoices.fields", "fail");
}

#[test]
fn the_fields_of_an_invoice_have_values() {
    let invoices = |change: &dyn Fn(usize, &mut Value)| {
        let event = |index: usize| {
            let mut event = event(&Value::Null);
            event["id"] = json!(format!("{}{index}", &ID[..ID.len() - 1]));
            event["type"] = json!("invoice.created");
            event["invoice"] = json!({
                "code": format!("in{index}"), "number": index, "status": "open", "amount": "1.00", "currency": "EUR",
                "customer": null, "hosted_url": "https://pay.example/i/in", "charges": [],
            });
            change(index, &mut event["invoice"]);
            event
        };
        let rows = Value::from_iter((0..3).map(event));
        recording(vec![page(events_request(None, 100), &rows, [1, 1, 100, 3])])
    };
    for (name, count, expected) in [
        ("code", 1, "pass"),
        ("code", 2, "fail"),
        ("status", 1, "pass"),
        ("status", 2, "fail"),
        ("amount", 2, "pass"),
        ("amount", 3, "fail"),
        ("customer", 3, "pass"),
        ("hosted_url", 2, "pass"),
        ("hosted_url", 3, "fail"),
    ] {
        let set_null = |index: usize, invoice: &mut Value| {
            if index < count {
                invoice[name] = Value::Null;
            }
        };
        check(&invoices(&set_null), "invoices.fields", expected);
    }
    // The page of another invoice, of one shared by all, or of none that is known.
    for (url, expected) in [
        (
            &(|index: usize| format!("https://pay.example/i/invoice{index}")) as &dyn Fn(usize) -> String,
            "pass",
        ),
        (&|index: usize| format!("https://pay.example/i/invoice{}", (index + 1) % 5), "fail"),
        (&|_: usize| "https://pay.example/i/".to_owned(), "fail"),
        (&|index: usize| format!("https://pay.example/i/{:x}", index * 7_919), "pass"),
    ] {
        let mut pages = invoices(&|_, _| {});
        let rows = (0..5).map(|index| {
            let mut event = event(&Value::Null);
            event["id"] = json!(format!("{}{index}", &ID[..ID.len() - 1]));
            event["type"] = json!("invoice.sent");
            event["invoice"] = json!({
                "code": format!("invoice{index}"), "number": index, "status": "open", "amount": "1.00",
                "currency": "EUR", "customer": null, "hosted_url": url(index), "charges": [],
            });
            event
        });
        pages.exchanges = vec![page(events_request(None, 100), &Value::from_iter(rows), [1, 1, 100, 5])];
        check(&pages, "invoices.fields", expected);
    }
    // Three events of one invoice.
    let set_one_code = |_: usize, invoice: &mut Value| {
        invoice["code"] = json!("in0");
        invoice["amount"] = Value::Null;
    };
    check(&invoices(&set_one_code), "invoices.fields", "pass");
}

/// Returns a recording that lists the event, and that gets the single event with this body.
fn with_single_event(body: &Value) -> Recording {
    let purpose = Purpose::Event { id: ID.into(), side: Side::Own, round: 1 };
    let single = exchange(TEST, purpose, &format!("/v1/events/{ID}"), 200, body);
    let list = page(events_request(None, 100), &json!([event(&charge())]), [1, 1, 100, 1]);
    recording(vec![list, single])
}

#[test]
fn a_single_event_may_be_under_any_member() {
    let event = event(&charge());
    for body in [
        event.clone(),
        json!({ "data": event }),
        json!({ "event": event }),
        json!({ "result": event, "meta": { "id": "r1", "type": "answer" } }),
        json!({ "status": "ok", "result": { "id": 7, "event": event } }),
    ] {
        check(&with_single_event(&body), "events.single", "pass");
        check(&with_single_event(&body), "events.id", "pass");
    }
    check_verdict_text(&with_single_event(&json!({ "event": event })), "events.envelope", "under event");
}

#[test]
fn a_single_event_has_the_text_that_lists_show_before_and_after() {
    let mut other = event(&charge());
    other["charge"]["description"] = json!("Shoes &amp; socks");
    let once = with_single_event(&json!({ "data": other }));
    check(&once, "events.single", "pass");
    for (text, expected) in [("Shoes", "fail"), ("Boots", "pass")] {
        let mut later = event(&charge());
        later["charge"]["description"] = json!(text);
        let list = page(events_request(None, 100), &json!([later]), [1, 1, 100, 1]);
        let all = [once.exchanges.clone(), vec![list]].concat();
        check(&recording(all), "events.single", expected);
    }
}

#[test]
fn a_body_that_is_not_utf_8_is_not_json() {
    for (bytes, expected) in [("T\u{fffd}".as_bytes(), "pass"), (&b"T\xe4"[..], "fail")] {
        let mut found = with_single_event(&json!({ "data": event(&charge()) }));
        let ExchangeOutcome::Answered(response) = &mut found.exchanges[1].outcome else {
            panic!("the exchange has a response")
        };
        let text = response.body.to_string();
        let (before, after) = text.split_once("Shoes").expect("a description");
        response.body = Body::from_bytes(&[before.as_bytes(), bytes, after.as_bytes()].concat());
        check(&found, "answers.json", expected);
    }
}

#[test]
fn a_single_event_equals_the_listed_one() {
    for (name, other) in [
        ("type", json!("charge.created")),
        ("details", json!({ "amount": "1" })),
        ("created_at", json!("2026-01-06T09:00:00Z")),
        ("charge", json!({ "code": "ch2" })),
        ("charge", json!({ "code": "ch1", "fiat_amount": "1.00" })),
        ("charge", json!({ "code": "ch1", "asset_amount": "0.00100001" })),
    ] {
        let mut event = event(&charge());
        event[name] = other;
        check(&with_single_event(&json!({ "data": event })), "events.single", "fail");
    }
    // The same time with fewer decimals, and a charge that has changed since.
    let mut moved = event(&charge());
    moved["created_at"] = json!("2026-01-05T09:00:00Z");
    moved["charge"]["status"] = json!("refunded");
    moved["charge"]["fiat_amount"] = json!("49.9");
    check(&with_single_event(&moved), "events.single", "pass");
}

/// Returns an exchange with this status instead of its response.
fn with_refusal(mut served: Exchange, status: u16) -> Exchange {
    served.outcome = exchange(TEST, served.purpose.clone(), "", status, &json!({ "message": "No." })).outcome;
    served
}

#[test]
fn a_refusal_of_a_page_that_must_exist_is_a_violation() {
    let lists = |second: u16| {
        let mut all: Vec<_> = List::ALL
            .into_iter()
            .map(|list| {
                let request = PageRequest { list, filters: vec![], page: None, per_page: None, link: None };
                page(request, &json!([{ "id": "a" }, { "id": "b" }, { "id": "c" }]), [1, 1, 25, 3])
            })
            .collect();
        all.push(with_refusal(page(events_request(Some(2), 2), &json!([]), [2, 2, 2, 3]), second));
        recording(all)
    };
    check(&lists(200), "lists.served", "pass");
    for status in [400, 404, 422, 500] {
        check(&lists(status), "lists.served", "fail");
    }
    check(&lists(503), "lists.served", "pass");
}

#[test]
fn a_page_past_the_end_may_be_refused() {
    let mut all: Vec<_> = List::ALL
        .into_iter()
        .map(|list| {
            let request = PageRequest { list, filters: vec![], page: None, per_page: None, link: None };
            page(request, &json!([{ "id": "a" }]), [1, 1, 25, 1])
        })
        .collect();
    all.push(with_refusal(page(events_request(Some(2), 2), &json!([]), [2, 1, 2, 1]), 404));
    check(&recording(all), "lists.served", "pass");
}

#[test]
fn a_known_value_of_a_filter_is_served() {
    let filters = vec![("type".to_owned(), "charge.paid".to_owned())];
    let filtered = page(PageRequest { filters, ..events_request(None, 2) }, &json!([]), [1, 1, 2, 0]);
    for (status, expected) in [(400, "fail"), (500, "fail"), (503, "not judged")] {
        let plain = page(events_request(None, 2), &json!([]), [1, 1, 2, 0]);
        let exchanges = vec![plain, with_refusal(filtered.clone(), status)];
        check(&recording(exchanges), "filters.type", expected);
    }
}

#[test]
fn a_page_of_a_burst_is_judged_too() {
    let of_burst = |rows: &Value, total: u64| {
        let mut read = page(events_request(Some(2), 2), rows, [2, total.div_ceil(2), 2, total]);
        read.purpose = Purpose::Burst(Burst::UntilRefused { series: 1 });
        read.target = "/pay/v1/events?per_page=2&page=2".into();
        recording(vec![read])
    };
    check(&of_burst(&json!([{ "id": "c" }, { "id": "d" }]), 5), "paging.length", "pass");
    check(&of_burst(&json!([{ "id": "c" }]), 5), "paging.length", "fail");
}

/// Returns a recording of two bursts. `first`, `second`: the number of served requests. `quota`: the remaining quota
/// at the first and the last request of the second burst.
fn two_bursts(first: u32, second: u32, quota: Option<(u32, u32)>) -> Recording {
    let mut all = vec![account(LIVE, "live")];
    all.extend(burst(first, true, Duration::ZERO).exchanges);
    let wait = Duration::from_secs(180);
    let mut again = burst(second, true, Duration::ZERO).exchanges;
    let last = again.len() - 2;
    for (index, request) in again.iter_mut().enumerate() {
        request.purpose = Purpose::Burst(Burst::UntilRefused { series: 2 });
        (request.sent, request.ended) = (wait, wait);
        let Some((start, end)) = quota.filter(|_| index == 0 || index == last) else { continue };
        if let ExchangeOutcome::Answered(response) = &mut request.outcome {
            let remaining = if index == 0 { start } else { end };
            response.headers.push(("x-ratelimit-remaining".into(), remaining.to_string()));
            response.headers.push(("x-ratelimit-limit".into(), "120".into()));
        }
    }
    all.extend(again);
    recording(all)
}

#[test]
fn another_client_with_the_key_is_not_a_violation() {
    let id = "limits.served";
    // Refused at the same request twice: a smaller limit. At different requests: another client.
    check(&two_bursts(100, 100, None), id, "fail");
    check(&two_bursts(100, 87, None), id, "not judged");
    // The quota falls with the requests of the suite; or faster; or was low from the start.
    check(&two_bursts(100, 100, Some((119, 20))), id, "fail");
    check(&two_bursts(100, 60, Some((119, 0))), id, "not judged");
    check(&two_bursts(60, 60, Some((59, 0))), id, "not judged");
    check_verdict_text(&two_bursts(60, 60, Some((59, 0))), id, "another client seems to use the test key");
    // Served directly after the refusal: the server limits the number of concurrent requests.
    for (status, count, expected) in [(200, 12, "fail"), (200, 11, "not judged"), (429, 12, "not judged")] {
        let mut bursts = two_bursts(100, 60, None);
        let sent = Duration::from_millis(180_500);
        let again = burst(count, false, Duration::ZERO).exchanges.into_iter().map(|mut request| {
            request.purpose = Purpose::Burst(Burst::StillRefused);
            (request.sent, request.ended) = (sent, sent);
            if let ExchangeOutcome::Answered(response) = &mut request.outcome {
                response.status = status;
            }
            request
        });
        bursts.exchanges.extend(again);
        check(&recording(bursts.exchanges), id, expected);
    }
}

/// Checks the events of one object, each given by id, type and minute.
#[track_caller]
fn check_history(events: &[(&str, &str, u32)], expected: &str) {
    let event = |(id, kind, minute): &(&str, &str, u32)| {
        let member = kind.split('.').next().unwrap();
        let at = format!("2026-02-01T10:{minute:02}:00.000000Z");
        json!({ "id": id, "type": kind, member: { "code": "k1" }, "created_at": at })
    };
    let rows: Vec<_> = events.iter().map(event).collect();
    let total = rows.len() as u64;
    let all = recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, total])]);
    check(&all, "events.recorded", expected);
}

#[test]
fn an_object_is_created_once_and_first() {
    check_history(&[("b", "charge.paid", 9), ("a", "charge.created", 1)], "not judged");
    check_history(&[("b", "charge.created", 9), ("a", "charge.created", 1)], "fail");
    // The same event on two pages counts once.
    check_history(&[("a", "charge.created", 1), ("a", "charge.created", 1)], "not judged");
    check_history(&[("b", "charge.created", 9), ("a", "charge.paid", 1)], "fail");
    // Events of the same time may be in any order.
    check_history(&[("b", "charge.created", 2), ("a", "charge.paid", 1)], "not judged");
    check_history(&[("b", "invoice.viewed", 9), ("a", "invoice.viewed", 1)], "fail");
    check_history(&[("b", "invoice.sent", 9), ("a", "invoice.sent", 1)], "not judged");
    check_history(&[("b", "invoice.paid", 9), ("a", "invoice.voided", 1)], "fail");
    check_history(&[("b", "invoice.voided", 9), ("a", "invoice.paid", 1)], "not judged");
}

/// Checks a list of two charges, edited by `change`, and one event for each, which contains the unedited charge.
#[track_caller]
fn check_items(change: impl FnOnce(&mut Value, &mut Value), expected: &str) {
    let with_code = |code: &str| {
        let mut charge = charge();
        charge["code"] = json!(code);
        charge
    };
    let (mut first, mut second) = (with_code("ch1"), with_code("ch2"));
    let events = json!([event(&first), event(&second)]);
    change(&mut first, &mut second);
    let charges = PageRequest { list: List::Charges, ..events_request(None, 100) };
    let mut list = page(charges, &json!([first, second]), [1, 1, 100, 2]);
    let ExchangeOutcome::Answered(response) = &mut list.outcome else {
        panic!("the exchange has a response")
    };
    response.headers.push(("date".into(), "Sat, 10 Jan 2026 09:00:00 GMT".into()));
    check(
        &recording(vec![list, page(events_request(None, 100), &events, [1, 1, 100, 2])]),
        "lists.complete",
        expected,
    );
}

#[test]
fn an_item_has_the_values_of_its_newest_event() {
    // No contradiction, but also no evidence that the list is complete.
    let unviolated = "not applicable";
    check_items(|_, _| {}, unviolated);
    check_items(|first, _| first["asset"] = json!("ETH"), "fail");
    check_items(|first, _| first["fiat_amount"] = json!("49.9"), unviolated);
    check_items(|first, _| first["status"] = json!("refunded"), "fail");
    check_items(|first, _| first["paid_at"] = json!("2026-01-05T10:00:00Z"), "fail");
    // Items may have other formats and other fields.
    let in_capitals = |first: &mut Value, second: &mut Value| {
        (first["status"], second["status"]) = (json!("PAID"), json!("PAID"));
    };
    check_items(in_capitals, unviolated);
    check_items(|first, _| drop(first.as_object_mut().unwrap().remove("asset")), unviolated);
    check_items(|first, _| first["asset"] = json!({ "code": "BTC" }), unviolated);
}

#[test]
fn payments_have_the_time_zone_of_their_events() {
    let payments = |hours: &[u32], minutes: [u32; 3]| {
        let row = |(number, (hour, minute)): (usize, (&u32, u32))| {
            let mut event = event(&charge());
            event["id"] = json!(format!("0190a5c4-7f3e-7abc-8def-00000000000{number}"));
            event["charge"]["code"] = json!(format!("ch{number}"));
            event["charge"]["paid_at"] = json!(format!("2026-01-05T{hour:02}:00:00Z"));
            event["created_at"] =
                json!(format!("2026-01-05T{:02}:{:02}:00Z", hour + minute / 60, minute % 60));
            event
        };
        let rows: Vec<_> = hours.iter().zip(minutes).enumerate().map(row).collect();
        recording(vec![page(events_request(None, 100), &json!(rows), [1, 1, 100, rows.len() as u64])])
    };
    for (hours, minutes, expected) in [
        (&[12, 10, 8][..], [60, 61, 60], "fail"),
        (&[12, 10, 8], [300, 300, 300], "fail"),
        (&[12, 10, 8], [0, 1, 0], "pass"),
        // A job that records payments late, or an import.
        (&[12, 10, 8], [15, 15, 15], "pass"),
        (&[12, 10, 8], [60, 40, 60], "pass"),
        (&[12, 10, 8], [60, 120, 60], "pass"),
        (&[12, 12, 12], [60, 60, 60], "pass"),
        (&[12, 10], [60, 60, 0], "pass"),
    ] {
        check(&payments(hours, minutes), "events.created_at", expected);
    }
}

#[test]
fn a_charge_belongs_to_one_invoice() {
    let invoice = |code: &str, status: &str, charges: &[&str]| json!({ "code": code, "status": status, "charges": charges });
    for (rows, expected) in [
        ([invoice("in2", "open", &["ch2", "ch1"]), invoice("in1", "open", &["ch1"])], "fail"),
        ([invoice("in2", "open", &["ch2"]), invoice("in1", "open", &["ch1"])], "not judged"),
        // A new invoice may take the charge of a voided one.
        ([invoice("in2", "open", &["ch1"]), invoice("in1", "voided", &["ch1"])], "not judged"),
    ] {
        let request = PageRequest { list: List::Invoices, ..events_request(None, 100) };
        check(&recording(vec![page(request, &json!(rows), [1, 1, 100, 2])]), "invoices.fields", expected);
    }
}
