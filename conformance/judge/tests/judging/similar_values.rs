//! Values similar to those of the key's own objects count as unknown: ids, filters, and objects of another account.

use std::time::Duration;

use conformance_model::recording::{
    Caller, Exchange, List, ObjectKind, PageRequest, Purpose, Recording, SIMILAR_ID_ROUND, Side,
};
use serde_json::{Value, json};

use super::{LIVE, TEST, check, check_verdict_text, events_request, exchange, page, recording};

const ID: &str = "0190a5c4-7f3e-7abc-8def-0123456789ab";

fn event(id: &str, side: Side, round: u8, status: u16) -> Exchange {
    let purpose = Purpose::Event { id: id.to_owned(), side, round };
    exchange(TEST, purpose, &format!("/v1/events/{id}"), status, &json!({ "message": "No." }))
}

#[test]
fn similar_ids_find_nothing_with_any_refusal() {
    for (status, expected) in [(404, "pass"), (400, "pass"), (422, "pass"), (200, "fail")] {
        let all = vec![
            event(ID, Side::Own, 1, 200),
            event("absent", Side::AbsentBefore, 1, 404),
            event(&ID[..ID.len() - 1], Side::AbsentAfter, SIMILAR_ID_ROUND, status),
        ];
        check(&recording(all), "errors.not_found", expected);
    }
}

/// Returns a list of one record, the list filtered by the record's value, and the list filtered by a
/// similar value. `status`, `rows`: the response to the last request.
fn with_similar_filter(list: List, row: &Value, filter: &str, status: u16, rows: &Value) -> Recording {
    let purpose = Purpose::Filter { list, filter: filter.to_owned(), side: Side::AbsentAfter };
    let total = rows.as_array().map_or(0, Vec::len);
    let body = json!({
        "data": rows, "links": { "first": null, "last": null, "prev": null, "next": null },
        "meta": { "current_page": 1, "last_page": 1, "per_page": 25, "total": total },
    });
    let target = format!("{}?{filter}=PAID", list.path());
    let own = PageRequest {
        list,
        filters: vec![(filter.to_owned(), "paid".to_owned())],
        ..events_request(None, 100)
    };
    let all = PageRequest { list, ..events_request(None, 100) };
    recording(vec![
        page(all, &json!([row]), [1, 1, 100, 1]),
        page(own, &json!([row]), [1, 1, 100, 1]),
        exchange(TEST, purpose, &target, status, &body),
    ])
}

#[test]
fn similar_filter_values_find_nothing() {
    let charge = json!({ "code": "ch1abcdef00", "status": "paid", "payment_link": "paid" });
    let invoice = json!({ "code": "in1mnopqr00", "status": "paid" });
    let event = json!({ "id": "a", "type": "paid", "charge": { "code": "paid" }, "invoice": null });
    let of_invoice = json!({ "id": "b", "type": "paid", "charge": null, "invoice": { "code": "paid" } });
    for (list, row, filter) in [
        (List::Charges, &charge, "status"),
        (List::Charges, &charge, "payment_link"),
        (List::Invoices, &invoice, "status"),
        (List::Events, &event, "type"),
        (List::Events, &event, "charge"),
        (List::Events, &of_invoice, "invoice"),
    ] {
        let id = format!("filters.{filter}");
        check(&with_similar_filter(list, row, filter, 200, &json!([])), &id, "pass");
        check(&with_similar_filter(list, row, filter, 422, &json!([])), &id, "pass");
        check(&with_similar_filter(list, row, filter, 200, &json!([row])), &id, "fail");
    }
}

#[test]
fn a_similar_value_may_be_that_of_another_object() {
    let [row, other] =
        ["paid", "PAID"].map(|code| json!({ "id": code, "type": "charge.paid", "charge": { "code": code } }));
    let read = |rows: &Value| with_similar_filter(List::Events, &row, "charge", 200, rows);
    check(&read(&json!([other])), "filters.charge", "pass");
    check(&read(&json!([other, row])), "filters.charge", "fail");
    let similar_id = format!("{}0", &ID[..ID.len() - 1]);
    for (id, expected) in [(similar_id.as_str(), "pass"), (ID, "fail")] {
        let body = json!({ "data": { "id": id, "type": "charge.paid", "details": {} } });
        let purpose =
            Purpose::Event { id: similar_id.clone(), side: Side::AbsentAfter, round: SIMILAR_ID_ROUND };
        let all = vec![
            event(ID, Side::Own, 1, 200),
            event("absent", Side::AbsentBefore, 1, 404),
            exchange(TEST, purpose, &format!("/v1/events/{similar_id}"), 200, &body),
        ];
        check(&recording(all), "errors.not_found", expected);
    }
}

#[test]
fn a_listed_object_is_found() {
    for (requests, seconds, expected) in [(2, 60, "fail"), (1, 60, "pass"), (2, 59, "pass")] {
        let rows = json!([{ "code": "in2" }, { "code": "in1" }]);
        let list = PageRequest { list: List::Invoices, ..events_request(None, 100) };
        let sent = Duration::from_secs(seconds);
        let single = |id: &str, status| {
            let purpose =
                Purpose::Object { kind: ObjectKind::Invoice, id: id.to_owned(), side: Side::Own, round: 1 };
            let body = json!({ "data": { "code": id } });
            let target = format!("/v1/invoices/{id}");
            Exchange { sent, ended: sent, ..exchange(TEST, purpose, &target, status, &body) }
        };
        let mut all = vec![
            event(ID, Side::Own, 1, 200),
            event("absent", Side::AbsentBefore, 1, 404),
            page(list, &rows, [1, 1, 100, 2]),
            single("in2", 200),
        ];
        all.extend((0..requests).map(|_| single("in1", 404)));
        check(&recording(all), "errors.not_found", expected);
    }
}

#[test]
fn objects_of_other_accounts_are_not_found_or_listed() {
    let charge = json!({
        "code": "k3m9x2q7", "status": "paid", "fiat_amount": "1.00", "asset": "BTC", "asset_amount": "0.1",
    });
    let same_code = json!({
        "code": "k3m9x2q7", "status": "paid", "fiat_amount": "2.00", "asset": "BTC", "asset_amount": "0.2",
    });
    let listed_only = json!({
        "code": "q2w8r5t1", "status": "paid", "fiat_amount": "3.00", "asset": "BTC", "asset_amount": "0.3",
    });
    let unrelated = json!({ "code": "z8w4" });
    for (found, listed, theirs, expected) in [
        (0, None, None, "Pass"),
        (2, None, None, "no events of a charge of the other account"),
        (0, Some(&charge), None, "no charge of the other account"),
        (0, Some(&listed_only), Some(&listed_only), "no charge of the other account"),
        (0, Some(&listed_only), Some(&unrelated), "Pass"),
        // Codes may be numbers that each account counts: two accounts have the same ones.
        (0, Some(&same_code), None, "Pass"),
    ] {
        let account = |caller, name: &str| {
            exchange(caller, Purpose::Account, "/v1/account", 200, &json!({ "data": { "name": name } }))
        };
        let charges_of_other = theirs.map(|row| {
            let request = PageRequest { list: List::Charges, ..events_request(None, 100) };
            Exchange { caller: Caller::OtherAccount, ..page(request, &json!([row]), [1, 1, 100, 1]) }
        });
        let theirs = json!({ "data": [{ "id": "e1", "type": "charge.paid", "charge": charge }] });
        let purpose =
            Purpose::Filter { list: List::Events, filter: "charge".into(), side: Side::OtherAccount };
        let rows = Value::from_iter((0..found).map(|number| json!({ "id": format!("e{number}") })));
        let body = json!({ "data": rows, "links": {}, "meta": { "total": found } });
        let mut all = vec![
            account(LIVE, "ours"),
            account(TEST, "ours"),
            account(Caller::OtherAccount, "theirs"),
            exchange(
                Caller::OtherAccount,
                Purpose::Page(events_request(None, 100)),
                "/v1/events",
                200,
                &theirs,
            ),
            event("e1", Side::OtherAccount, 1, 404),
            exchange(TEST, purpose, "/v1/events?charge=k3m9x2q7", 200, &body),
        ];
        let own = PageRequest { list: List::Charges, ..events_request(None, 100) };
        all.extend(listed.map(|row| page(own, &json!([row]), [1, 1, 100, 1])));
        all.extend(charges_of_other);
        check_verdict_text(&recording(all), "isolation.second_account", expected);
    }
}
