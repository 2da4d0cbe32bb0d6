//! Chapter "isolation": responses that reveal foreign objects.

use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, List, ObjectKind, PageRequest, Purpose, Recording, Side,
};

use super::second_key::account;
use super::{
    LIVE, TEST, charge_purpose, check, check_verdict_text, events_request, exchange, page, recording,
    response_mut,
};

use serde_json::{Value, json};

fn event(caller: Caller, side: Side, status: u16, body: &Value) -> Exchange {
    in_round(1, caller, side, status, body)
}

fn in_round(round: u8, caller: Caller, side: Side, status: u16, body: &Value) -> Exchange {
    let purpose = Purpose::Event { id: format!("{side:?}"), side, round };
    exchange(caller, purpose, "/v1/events/x", status, body)
}

#[test]
fn the_reason_for_missing_requests_is_reported() {
    let none = &json!({});
    let own = |status| event(TEST, Side::Own, status, none);
    let foreign = event(TEST, Side::Foreign, 404, none);
    let busy = recording(vec![own(503), foreign]);
    check_verdict_text(&busy, "isolation.not_found", "an own event on the same path: 503");
    check_verdict_text(&recording(vec![own(200)]), "isolation.not_found", "both modes must have");
}

/// Returns an own event and two rounds of 404 responses, each with a body and a Content-Length.
fn comparison(caller: Caller, bodies: [&Value; 3], lengths: [&str; 3]) -> Vec<Exchange> {
    let mut all = vec![event(caller, Side::Own, 200, &json!({}))];
    let sides = [Side::AbsentBefore, Side::Foreign, Side::AbsentAfter];
    for round in [1, 2] {
        for ((side, body), length) in sides.into_iter().zip(bodies).zip(lengths) {
            let mut event = in_round(round, caller, side, 404, body);
            let ExchangeOutcome::Answered(response) = &mut event.outcome else {
                panic!("the exchange has a response")
            };
            response.headers.push(("content-length".into(), length.into()));
            all.push(event);
        }
    }
    all
}

fn both_modes(bodies: [&Value; 3], lengths: [&str; 3]) -> Recording {
    recording([comparison(TEST, bodies, lengths), comparison(LIVE, bodies, lengths)].concat())
}

#[test]
fn a_different_length_is_a_difference_unless_lengths_vary() {
    let (short, long) = (&json!({ "message": "No." }), &json!({ "message": "Never." }));
    let same = ["9", "9", "9"];
    let other = ["9", "8", "9"];
    let id = "isolation.indistinguishable";
    check(&both_modes([short, short, short], same), id, "pass");
    check(&both_modes([short, short, short], other), id, "fail");
    check(&both_modes([short, short, long], other), id, "pass");
    check(&both_modes([short, long, short], same), id, "fail");
    check_verdict_text(&both_modes([short, long, short], same), id, "body length: 20 (otherwise 17)");
    let body = |code| json!({ "error": { "code": code, "text": "No." } });
    let expected = "body.error.code: 7 (otherwise 5)";
    check_verdict_text(&both_modes([&body(5), &body(7), &body(5)], same), id, expected);
}

/// Returns equal responses to equal requests with different headers.
fn with_varying_header(name: &str, values: [&str; 2]) -> Vec<Exchange> {
    let with_header = |value: &str| {
        let mut served = exchange(TEST, Purpose::Account, "/v1/account", 200, &json!({}));
        let ExchangeOutcome::Answered(response) = &mut served.outcome else {
            panic!("the exchange has a response")
        };
        response.headers.push((name.into(), value.into()));
        served
    };
    values.map(with_header).into()
}

#[test]
fn a_header_that_varies_between_equal_requests_is_not_a_difference() {
    let id = "isolation.indistinguishable";
    let no = &json!({ "message": "No." });
    let mut differing = both_modes([no, no, no], ["9", "8", "9"]);
    let renamed = |exchange: &mut Exchange| {
        if let ExchangeOutcome::Answered(response) = &mut exchange.outcome {
            response.headers.iter_mut().for_each(|(name, _)| *name = "x-exists".into());
        }
    };
    differing.exchanges.iter_mut().for_each(renamed);
    check(&differing, id, "fail");
    for (values, expected) in [(["8", "8"], "fail"), (["8", "9"], "pass")] {
        let all = [differing.exchanges.clone(), with_varying_header("x-exists", values)].concat();
        check(&recording(all), id, expected);
    }
}

#[test]
fn lists_are_compared_only_if_both_modes_have_events() {
    let event = |caller, id: &str| Exchange {
        caller,
        ..page(events_request(None, 100), &json!([{ "id": id }]), [1, 1, 100, 1])
    };
    check(&recording(vec![event(LIVE, "a")]), "isolation.lists", "not judged");
    check(&recording(vec![event(TEST, "a")]), "isolation.lists", "not judged");
    check(&recording(vec![event(LIVE, "a"), event(TEST, "b")]), "isolation.lists", "pass");
    let shared = recording(vec![event(LIVE, "a"), event(TEST, "a")]);
    check_verdict_text(&shared, "isolation.lists", "exchange: Some(1)");
}

#[test]
fn filters_by_foreign_objects_have_the_links_of_filters_by_absent_ones() {
    let filter_request = |side, last: u64, code: &str| {
        let link = |page: u64| format!("?charge={code}&page={page}");
        let links = json!({ "first": link(1), "last": link(last), "prev": null, "next": null });
        let meta = json!({ "current_page": 1, "last_page": 1, "per_page": 25, "total": 0 });
        let body = json!({ "data": [], "links": links, "meta": meta });
        let purpose = Purpose::Filter { list: List::Events, filter: "charge".into(), side };
        exchange(TEST, purpose, &format!("/v1/events?charge={code}"), 200, &body)
    };
    for (last, expected) in [(1, "pass"), (2, "fail")] {
        let exchanges =
            vec![filter_request(Side::AbsentBefore, 1, "a"), filter_request(Side::Foreign, last, "b")];
        check(&recording(exchanges), "isolation.filter_charge", expected);
    }
}

#[test]
fn missing_events_of_the_other_account_are_reported() {
    let with_other_key =
        |purpose, status, body: &Value| exchange(Caller::OtherAccount, purpose, "/v1/events", status, body);
    let account = |status| with_other_key(Purpose::Account, status, &json!({ "data": { "id": 1 } }));
    let own = exchange(TEST, Purpose::Account, "/v1/account", 200, &json!({ "data": {} }));
    let listed = |status, rows: Value| {
        with_other_key(Purpose::Page(events_request(None, 100)), status, &json!({ "data": rows }))
    };
    let mut lost = event(TEST, Side::OtherAccount, 404, &json!({}));
    lost.outcome = ExchangeOutcome::NoResponse("connection reset".into());
    for (all, expected) in [
        (vec![own], "no key of another account is configured"),
        (vec![account(401)], "the key of the other account is refused"),
        (vec![account(200), listed(200, json!([]))], "the other account has no event"),
        (vec![account(200), listed(200, json!([1]))], "the events of the other account: 200"),
        (vec![account(200), listed(503, json!([]))], "the events of the other account: 503"),
        (vec![account(200), listed(401, json!([]))], "200, as for /v1/events with the same key"),
        (vec![account(200), listed(200, json!([1])), lost], "an event of the other account: no response"),
        (vec![account(200)], "an event of the other account: 200"),
    ] {
        check_verdict_text(&recording(all), "isolation.second_account", expected);
    }
}

#[test]
fn random_codes_prove_a_leak_beside_payment_links_of_the_same_names() {
    let charges = |caller, codes: [&str; 5]| {
        let rows: Value =
            codes.iter().map(|code| json!({ "code": code, "payment_link": "spring" })).collect();
        let request = PageRequest { list: List::Charges, ..events_request(None, 100) };
        Exchange { caller, ..page(request, &rows, [1, 1, 100, 5]) }
    };
    let filter_request = |side, status, code: &str| {
        let purpose = Purpose::Filter { list: List::Events, filter: "charge".into(), side };
        let body = json!({ "data": [], "links": {}, "meta": { "total": 0 } });
        exchange(TEST, purpose, &format!("/v1/events?charge={code}"), status, &body)
    };
    let random = ["QWXZRT", "KLMPVB", "ZZTRWQ", "BVNMKL", "PLKQWE"];
    let others = ["HJKDSA", "WERTUI", "MNBVCX", "ASDFGH", "YXCVBN"];
    // Numbers of different ranges: each mode may number its objects, so a number may exist in both.
    let numbers = ["CH-0001", "CH-0002", "CH-0003", "CH-0004", "CH-0005"];
    let higher = ["CH-0101", "CH-0102", "CH-0103", "CH-0104", "CH-0105"];
    for (live, test, expected) in [(others, random, "fail"), (numbers, higher, "not applicable")] {
        let exchanges =
            [filter_request(Side::AbsentBefore, 200, "QWXZRA"), filter_request(Side::Foreign, 404, live[0])];
        let all = [vec![charges(LIVE, live), charges(TEST, test)], exchanges.to_vec()].concat();
        check(&recording(all), "isolation.filter_charge", expected);
    }
}

/// Returns a recording of a read of an own charge with the status `own`, and of one that does not exist with `status` and
/// `body`.
fn absent_charge(own: u16, status: u16, body: &Value) -> Recording {
    let charge = |side, id: &str, status, body: &Value| {
        exchange(TEST, charge_purpose(id, side), &format!("/v1/charges/{id}"), status, body)
    };
    let events = vec![
        event(TEST, Side::Own, 200, &json!({})),
        event(TEST, Side::AbsentBefore, 404, &json!({ "message": "No." })),
    ];
    let charges =
        [charge(Side::Own, "k3m9x2q7", own, &json!({})), charge(Side::AbsentAfter, "w8n4p1z6", status, body)];
    recording([events, charges.into()].concat())
}

#[test]
fn a_single_object_that_does_not_exist_gets_404() {
    let message = &json!({ "message": "No." });
    let other = &json!({ "data": { "code": "k3m9x2q7" } });
    let same = &json!({ "data": { "code": "W8N4P1Z6" } });
    for (status, body, expected) in [
        (404, message, "pass"),
        (422, message, "pass"),
        (503, message, "pass"),
        (200, same, "pass"),
        (200, other, "fail"),
        (200, &Value::Null, "fail"),
        (500, message, "fail"),
        (403, message, "fail"),
    ] {
        check(&absent_charge(200, status, body), "errors.not_found", expected);
        check(&absent_charge(404, status, body), "errors.not_found", "pass");
    }
}

#[test]
fn the_404_of_a_single_object_is_json() {
    let as_html = |own| {
        let mut all = absent_charge(own, 404, &json!({ "message": "No." }));
        let last = all.exchanges.last_mut().expect("the recording has exchanges");
        response_mut(last).body = "<h1>Not Found</h1>".into();
        all
    };
    let id = "errors.not_found_json";
    check(&absent_charge(200, 404, &json!({ "message": "No." })), id, "pass");
    check(&absent_charge(200, 404, &json!({})), id, "pass");
    check(&as_html(200), id, "fail");
    check(&as_html(404), id, "pass");
}

#[test]
fn no_list_has_an_event_of_the_other_account() {
    let event_row = |id: &str, time: &str| json!({ "id": id, "type": "charge.paid", "created_at": time });
    let read = |caller, row: Value| Exchange {
        caller,
        ..page(events_request(None, 100), &json!([row]), [1, 1, 100, 1])
    };
    for (id, time, expected) in [
        ("a", "2026-02-01T10:00:00Z", "fail"),
        ("a", "2026-02-01T10:00:01Z", "pass"),
        ("b", "2026-02-01T10:00:00Z", "pass"),
    ] {
        let all = vec![
            account(TEST, "own"),
            account(Caller::OtherAccount, "other"),
            read(Caller::OtherAccount, event_row("a", "2026-02-01T10:00:00Z")),
            read(TEST, event_row(id, time)),
            event(TEST, Side::OtherAccount, 404, &json!({ "message": "No." })),
        ];
        check(&recording(all), "isolation.second_account", expected);
    }
}

fn charge(amount: &str) -> Value {
    json!({
        "code": "k3m9x2q7", "status": "paid", "asset": "BTC", "fiat_amount": amount, "fiat_currency": "EUR",
    })
}

/// Returns a page of a list of the other account with one row.
fn other_page(list: List, row: &Value) -> Exchange {
    Exchange {
        caller: Caller::OtherAccount,
        ..page(PageRequest { list, ..events_request(None, 100) }, &json!([row]), [1, 1, 100, 1])
    }
}

#[test]
fn a_charge_of_the_other_account_is_hidden() {
    for (status, body, expected) in [
        (200, json!({ "data": charge("1.00") }), "fail"),
        (200, charge("1.00"), "fail"),
        // Each account may number its own charges.
        (200, json!({ "data": charge("2.00") }), "pass"),
        (404, json!({ "message": "No." }), "pass"),
    ] {
        let purpose = charge_purpose("k3m9x2q7", Side::OtherAccount);
        let all = vec![
            account(TEST, "own"),
            account(Caller::OtherAccount, "other"),
            other_page(List::Charges, &charge("1.00")),
            other_page(List::Events, &json!({ "id": "a" })),
            exchange(TEST, purpose, "/v1/charges/k3m9x2q7", status, &body),
            event(TEST, Side::OtherAccount, 404, &json!({ "message": "No." })),
        ];
        check(&recording(all), "isolation.second_account", expected);
    }
}

#[test]
fn filters_by_objects_of_the_other_account_show_nothing() {
    let (theirs, ours) = (json!({ "id": "a" }), json!({ "id": "b" }));
    for (list, filter, rows, total, expected) in [
        (List::Events, "charge", json!([]), 0, "pass"),
        (List::Events, "invoice", json!([theirs]), 1, "fail"),
        (List::Events, "invoice", json!([]), 1, "fail"),
        // A server that ignores the filter returns own events.
        (List::Events, "invoice", json!([ours]), 1, "pass"),
        (List::Charges, "payment_link", json!([charge("1.00")]), 1, "fail"),
        // Both accounts may have a payment link of this name, and number their own charges.
        (List::Charges, "payment_link", json!([charge("2.00")]), 1, "pass"),
    ] {
        let purpose = Purpose::Filter { list, filter: filter.into(), side: Side::OtherAccount };
        let body = json!({ "data": rows, "links": {}, "meta": { "total": total } });
        let all = vec![
            account(TEST, "own"),
            account(Caller::OtherAccount, "other"),
            other_page(List::Charges, &charge("1.00")),
            other_page(List::Events, &theirs),
            exchange(TEST, purpose, &format!("{}?{filter}=spring", list.path()), 200, &body),
            event(TEST, Side::OtherAccount, 404, &json!({ "message": "No." })),
        ];
        check(&recording(all), "isolation.second_account", expected);
    }
}

#[test]
fn an_invoice_of_the_other_account_is_hidden() {
    let invoice = |number: &str| {
        json!({
            "code": "n4w8t1z6", "status": "paid", "number": number, "amount": "9.00", "currency": "EUR", "charges": [],
        })
    };
    let other_page = |list, row: &Value| Exchange {
        caller: Caller::OtherAccount,
        ..page(PageRequest { list, ..events_request(None, 100) }, &json!([row]), [1, 1, 100, 1])
    };
    for (side, status, body, expected) in [
        (Side::OtherAccount, 200, json!({ "data": invoice("7") }), "fail"),
        (Side::OtherAccount, 200, json!({ "invoice": invoice("7") }), "fail"),
        // Each account may number its own invoices.
        (Side::OtherAccount, 200, json!({ "data": invoice("8") }), "pass"),
        (Side::OtherAccount, 403, json!({ "message": "No." }), "pass"),
        (Side::Own, 200, invoice("7"), "pass"),
    ] {
        let id = "n4w8t1z6".to_owned();
        let purpose = Purpose::Object { kind: ObjectKind::Invoice, id, side, round: 1 };
        let all = vec![
            account(TEST, "own"),
            account(Caller::OtherAccount, "other"),
            other_page(List::Invoices, &invoice("7")),
            other_page(List::Events, &json!({ "id": "a" })),
            exchange(TEST, purpose, "/v1/invoices/n4w8t1z6", status, &body),
            event(TEST, Side::OtherAccount, 404, &json!({ "message": "No." })),
        ];
        check(&recording(all), "isolation.second_account", expected);
    }
}

#[test]
fn two_accounts_have_different_ids() {
    let read = |caller, name: &str, account_id: &str, event_id: &str| {
        let body = json!({ "data": { "id": account_id, "name": name } });
        let events = page(events_request(None, 100), &json!([{ "id": event_id }]), [1, 1, 100, 1]);
        [exchange(caller, Purpose::Account, "/v1/account", 200, &body), Exchange { caller, ..events }]
    };
    for (id, expected) in [
        ("acct_8d1b4b439c55", "fail"),
        // Each account may have a database of its own.
        ("acct_8d1b4b439c", "pass"),
        ("personal_account", "pass"),
    ] {
        let reads = [read(TEST, "own", id, "a"), read(Caller::OtherAccount, "other", id, "b")];
        let refused = event(TEST, Side::OtherAccount, 404, &json!({ "message": "No." }));
        let all = [reads.concat(), vec![refused]].concat();
        check(&recording(all), "isolation.second_account", expected);
    }
}

#[test]
fn the_404_of_an_event_that_does_not_exist_has_a_text() {
    for (side, body, expected) in [
        (Side::AbsentAfter, json!({ "message": "No." }), "pass"),
        (Side::AbsentAfter, json!({}), "fail"),
        (Side::Foreign, json!({}), "pass"),
    ] {
        let own = event(TEST, Side::Own, 200, &json!({}));
        let absent = event(TEST, Side::AbsentBefore, 404, &json!({ "message": "No." }));
        let all = vec![own, absent, event(TEST, side, 404, &body)];
        check(&recording(all), "errors.not_found_json", expected);
    }
}
