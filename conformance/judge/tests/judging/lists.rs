//! Lists: invalid pages, filters, and single events.

use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, List, PageRequest, Purpose, Recording, Side,
};

use super::{LIVE, TEST, check, check_verdict_text, events_request, exchange, page, recording};

use serde_json::{Value, json};

fn filtered_request(list: List, filters: &[(&str, &str)], per_page: u64) -> PageRequest {
    let filters = filters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    PageRequest { list, filters, ..events_request(None, per_page) }
}

/// Returns the only page of a list with these rows.
fn single_page(request: PageRequest, rows: &Value) -> Exchange {
    let len = rows.as_array().map_or(0, Vec::len) as u64;
    let size = request.per_page.unwrap_or(25);
    page(request, rows, [1, 1, size, len])
}

fn with_caller(caller: Caller, exchange: Exchange) -> Exchange {
    Exchange { caller, ..exchange }
}

#[test]
fn pages_with_invalid_numbers_are_not_compared() {
    for meta in [[1, 1, 0, 5], [0, 1, 100, 5]] {
        let invalid = page(events_request(None, 100), &json!([{ "id": 1 }]), meta);
        check(&recording(vec![invalid]), "paging.length", "not judged");
    }
}

#[test]
fn changes_in_the_other_mode_do_not_matter() {
    let rows = |ids: &[u64]| Value::from_iter(ids.iter().map(|id| json!({ "id": id })));
    let pages = |ids: &[u64]| {
        vec![
            page(events_request(None, 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]),
            page(events_request(Some(2), 2), &rows(ids), [2, 3, 2, 5]),
            with_caller(LIVE, page(events_request(Some(1), 2), &rows(&[9]), [1, 1, 2, 1])),
            with_caller(LIVE, page(events_request(Some(1), 2), &rows(&[9, 8]), [1, 1, 2, 2])),
        ]
    };
    check(&recording(pages(&[3, 2])), "paging.joined", "pass");
    check(&recording(pages(&[4, 3])), "paging.joined", "fail");
}

/// Returns an empty list filtered by a type, and a page (`request`) with an event of that type, read before.
fn empty_filtered_list(caller: Caller, request: PageRequest) -> Recording {
    let known = with_caller(caller, single_page(request, &json!([{ "id": "a", "type": "charge.paid" }])));
    recording(vec![
        known,
        single_page(filtered_request(List::Events, &[("type", "charge.paid")], 100), &json!([])),
    ])
}

#[test]
fn an_empty_list_is_wrong_only_if_the_unfiltered_list_has_a_match() {
    check(&empty_filtered_list(TEST, events_request(None, 100)), "filters.type", "fail");
    check(&empty_filtered_list(LIVE, events_request(None, 100)), "filters.type", "pass");
    check(
        &empty_filtered_list(TEST, PageRequest { list: List::Charges, ..events_request(None, 100) }),
        "filters.type",
        "pass",
    );
    let other = filtered_request(List::Events, &[("charge", "ch1")], 100);
    check(&empty_filtered_list(TEST, other), "filters.type", "pass");
}

/// Returns a recording of a filtered list of charges with the test key, and of an events list with the key `events.0`.
fn filtered_list(filters: &[(&str, &str)], rows: &Value, events: (Caller, &Value)) -> Recording {
    let (caller, events) = events;
    let list = single_page(filtered_request(List::Charges, filters, 100), rows);
    recording(vec![with_caller(caller, single_page(events_request(None, 100), events)), list])
}

#[test]
fn charges_are_judged_by_their_fields() {
    let none = (TEST, &json!([]));
    let paid = [("status", "paid")];
    let link = [("payment_link", "pl1")];
    for (filters, rows, id, expected) in [
        (&paid, json!([{ "status": "paid" }]), "filters.status", "pass"),
        (&paid, json!([{ "status": "paid" }, { "status": "open" }]), "filters.status", "fail"),
        (&paid, json!([{ "code": "a" }]), "filters.status", "not applicable"),
        (&paid, json!([{ "status": "paid" }, { "code": "a" }]), "filters.status", "not applicable"),
        (&paid, json!([]), "filters.status", "not applicable"),
        (&link, json!([{ "payment_link": "pl1" }]), "filters.payment_link", "pass"),
        (&link, json!([{ "payment_link": { "code": "pl2" } }]), "filters.payment_link", "fail"),
        (&link, json!([{ "payment_link": null }]), "filters.payment_link", "fail"),
        (&link, json!([{}]), "filters.payment_link", "not applicable"),
    ] {
        check(&filtered_list(filters, &rows, none), id, expected);
    }
}

#[test]
fn a_payment_link_of_an_event_has_charges() {
    let events_with_link = |link: &str| json!([{ "id": "a", "charge": { "payment_link": link } }]);
    let empty = json!([]);
    let link = [("payment_link", "pl1")];
    check(&filtered_list(&link, &empty, (TEST, &events_with_link("pl1"))), "filters.payment_link", "fail");
    check(
        &filtered_list(&link, &empty, (TEST, &events_with_link("pl2"))),
        "filters.payment_link",
        "not applicable",
    );
    check(
        &filtered_list(&link, &empty, (LIVE, &events_with_link("pl1"))),
        "filters.payment_link",
        "not applicable",
    );
    let as_invoice = single_page(
        PageRequest { list: List::Invoices, ..events_request(None, 100) },
        &events_with_link("pl1"),
    );
    let list = single_page(filtered_request(List::Charges, &link, 100), &empty);
    check(&recording(vec![as_invoice, list]), "filters.payment_link", "not applicable");
}

#[test]
fn combined_filters_are_judged_if_rows_have_the_fields() {
    let both = [("status", "paid"), ("payment_link", "pl1")];
    let matching = json!([{ "status": "paid", "payment_link": "pl1" }]);
    // The page is full, and there is no unfiltered list: the total cannot be counted.
    let full =
        |rows: &Value| recording(vec![page(filtered_request(List::Charges, &both, 1), rows, [1, 9, 1, 9])]);
    check(&full(&matching), "filters.combined", "pass");
    check(&full(&json!([{ "status": "paid" }])), "filters.combined", "not judged");
    let unmatched = json!([{ "code": "k", "status": "open", "payment_link": "pl1" }]);
    check(&full(&unmatched), "filters.combined", "fail");
    check_verdict_text(
        &full(&unmatched),
        "filters.combined",
        "only records of status paid and payment_link pl1",
    );
    check_verdict_text(&full(&unmatched), "filters.combined", "k is not of status paid");
}

#[test]
fn a_later_page_of_a_filtered_list_has_the_later_records() {
    let rows = |ids: &[&str]| -> Value {
        ids.iter()
            .map(|id| json!({ "id": id, "type": if *id == "x" { "charge.created" } else { "charge.paid" } }))
            .collect()
    };
    let filtered = filtered_request(List::Events, &[("type", "charge.paid")], 1);
    let second = |ids: &[&str]| {
        let later = PageRequest { page: Some(2), ..filtered.clone() };
        let first = page(filtered.clone(), &rows(&["a"]), [1, 3, 1, 3]);
        recording(vec![
            single_page(events_request(None, 100), &rows(&["a", "x", "b", "c"])),
            first,
            page(later, &rows(ids), [2, 3, 1, 3]),
            single_page(events_request(None, 100), &rows(&["a", "x", "b", "c"])),
        ])
    };
    check(&second(&["b"]), "filters.total", "pass");
    check(&second(&["a"]), "filters.total", "fail");
    check(&second(&["c"]), "filters.total", "fail");
    check(&second(&[]), "filters.total", "fail");
    let plain = PageRequest { per_page: None, ..events_request(None, 25) };
    let mut refused = second(&["b"]);
    refused.exchanges.push(single_page(plain, &rows(&["a", "x", "b", "c"])));
    refused.exchanges[2].outcome = exchange(TEST, Purpose::Account, "", 400, &json!({})).outcome;
    check(&refused, "filters.type", "fail");
    // The unfiltered list shows that there is a second page, not the total.
    refused.exchanges.remove(1);
    check(&refused, "filters.type", "fail");
    let two_rows = |request: PageRequest| single_page(request, &rows(&["a", "x"]));
    refused.exchanges[0] = two_rows(events_request(None, 100));
    refused.exchanges[2] = two_rows(events_request(None, 100));
    refused.exchanges[3] = two_rows(PageRequest { per_page: None, ..events_request(None, 25) });
    check(&refused, "filters.type", "not judged");
}

#[test]
fn a_later_page_of_a_filtered_list_may_show_the_records_of_the_first_read() {
    let second_page = |shown: &str, total| {
        let request = filtered_request(List::Events, &[("type", "charge.paid")], 1);
        page(PageRequest { page: Some(2), ..request }, &events(&[shown]), [2, total, 1, total])
    };
    let long = |ids: &[&str]| single_page(events_request(None, 100), &events(ids));
    let [old, new] = [&["p1", "p0"][..], &["p2", "p1", "p0"]];
    for (before, ids, again, expected) in [
        (old, new, second_page("p0", 2), "pass"),
        (old, new, second_page("p1", 3), "pass"),
        // Without an earlier read, or without new records, there is one correct page.
        (new, new, second_page("p0", 2), "fail"),
        (old, old, second_page("p1", 2), "fail"),
    ] {
        let first = second_page(if before == old { "p0" } else { "p1" }, before.len() as u64);
        let read = [long(before), first, long(before), long(ids), again, long(ids)];
        check(&recording(read.to_vec()), "filters.total", expected);
    }
}

/// Checks pages that show a charge in successive statuses. `hour`: the hour of its event on a past day.
#[track_caller]
fn check_statuses(statuses: &[&str], hour: u32, expected: &str) {
    let event = |hour: u32, code: &str| {
        let at = format!("2026-02-01T{hour:02}:00:00.000000Z");
        json!({ "id": code, "type": "charge.created", "charge": { "code": code }, "created_at": at })
    };
    let mut all = vec![single_page(
        events_request(None, 100),
        &json!([event(23, "ch2"), event(hour, "ch1"), event(1, "ch0")]),
    )];
    all.extend(statuses.iter().map(|status| {
        let small = PageRequest { list: List::Charges, ..events_request(None, 1) };
        single_page(small, &json!([{ "code": "ch1", "status": status }]))
    }));
    check(&recording(all), "events.recorded", expected);
}

#[test]
fn a_status_that_changes_and_returns_needs_an_event() {
    check_statuses(&["open", "open"], 2, "not applicable");
    // A single change may have no event.
    check_statuses(&["open", "overdue"], 2, "not applicable");
    check_statuses(&["open", "paid", "open"], 2, "fail");
    check_statuses(&["open", "paid", "expired", "paid"], 22, "fail");
    check_statuses(&["open", "paid", "open"], 23, "not applicable");
}

#[test]
fn a_total_that_cannot_be_counted_does_not_pass() {
    let of_type = filtered_request(List::Events, &[("type", "charge.paid")], 1);
    let rows = json!([{ "id": "a", "type": "charge.paid" }]);
    let long = page(events_request(None, 100), &rows, [1, 2, 100, 150]);
    let full = |total| page(of_type.clone(), &rows, [1, total, 1, total]);
    check(&recording(vec![long.clone(), full(9)]), "filters.total", "not judged");
    let all = single_page(events_request(None, 100), &rows);
    let between = |filtered: Exchange| recording(vec![all.clone(), filtered, all.clone()]);
    check(&between(full(1)), "filters.total", "pass");
    check(&between(full(9)), "filters.total", "fail");
    check_verdict_text(&between(full(9)), "filters.total", "meta.total 1 for type charge.paid");
    // Without a later read, the other eight may have been created in between.
    check(&recording(vec![all.clone(), full(9)]), "filters.total", "not judged");
}

/// Returns events by their ids, newest first. Ids with the prefix `p` are payments.
fn events(ids: &[&str]) -> Value {
    let kind = |id: &str| if id.starts_with('p') { "charge.paid" } else { "charge.created" };
    ids.iter().map(|id| json!({ "id": id, "type": kind(id) })).collect()
}

#[test]
fn a_filtered_page_is_compared_only_if_the_selection_did_not_change() {
    let paid = |ids: &[&str]| {
        let len = ids.len() as u64;
        page(
            filtered_request(List::Events, &[("type", "charge.paid")], 2),
            &events(ids),
            [1, len.div_ceil(2), 2, len],
        )
    };
    let long = |ids: &[&str]| single_page(events_request(None, 100), &events(ids));
    for (before, shown, after, expected) in [
        (&["p1", "c1", "p0"][..], &["p1", "p0"][..], &["p1", "c1", "p0"][..], "pass"),
        (&["p1", "c1", "p0"], &["p1"], &["p1", "c1", "p0"], "fail"),
        (&["p1", "c1", "p0"], &["p0", "p1"], &["p1", "c1", "p0"], "fail"),
        // Creations of other types do not change the selection.
        (&["p1", "c1", "p0"], &["p1", "p0"], &["c3", "c2", "p1", "c1", "p0"], "pass"),
        (&["p1", "c1", "p0"], &["p0", "p1"], &["c3", "c2", "p1", "c1", "p0"], "fail"),
        (&["p1", "c1", "p0"], &["p1", "p0"], &["p2", "p1", "c1", "p0"], "not judged"),
        (&["p1", "c1", "p0"], &["p2", "p1"], &["p2", "p1", "c1", "p0"], "not judged"),
    ] {
        // Full pages, which do not show the total by themselves.
        let mut filtered_page = paid(shown);
        if let ExchangeOutcome::Answered(response) = &mut filtered_page.outcome {
            let body = response.body.json().expect("JSON");
            let mut body = Value::clone(body);
            body["meta"]["total"] = json!(2);
            response.body = body.to_string().into();
        }
        let read = recording(vec![long(before), filtered_page, long(after)]);
        check(&read, "filters.total", expected);
    }
}

#[test]
fn a_page_is_compared_with_the_list_at_the_time_of_its_read() {
    let long = |ids: &[&str]| single_page(events_request(None, 100), &events(ids));
    let second = |ids: &[&str], total| page(events_request(Some(2), 2), &events(ids), [2, 2, 2, total]);
    let (old, new) = (["c3", "c2", "c1"], ["c4", "c3", "c2", "c1"]);
    check(&recording(vec![long(&old), second(&["c2", "c1"], 4), long(&new)]), "paging.joined", "pass");
    check(&recording(vec![long(&old), second(&["c3", "c2"], 4), long(&new)]), "paging.joined", "fail");
    check(&recording(vec![long(&old), second(&["c1"], 3), long(&new)]), "paging.joined", "pass");
    check(&recording(vec![long(&old), second(&["c2", "c1"], 4)]), "paging.joined", "not judged");
    // A different total, without creations before or after.
    check(&recording(vec![long(&old), second(&["c3", "c2"], 4), long(&old)]), "paging.joined", "fail");
}

fn single_event(caller: Caller, id: &str, status: u16, body: &Value) -> Exchange {
    let purpose = Purpose::Event { id: id.into(), side: Side::Own, round: 1 };
    exchange(caller, purpose, &format!("/v1/events/{id}"), status, body)
}

#[test]
fn a_single_event_is_judged_if_it_is_served() {
    let event = json!({ "id": "a" });
    check(&recording(vec![single_event(TEST, "a", 200, &event)]), "events.single", "pass");
    check(&recording(vec![single_event(TEST, "b", 200, &event)]), "events.single", "fail");
    check(&recording(vec![single_event(TEST, "a", 404, &event)]), "events.single", "fail");
    check(&recording(vec![single_event(Caller::SecondKey, "a", 404, &event)]), "events.single", "not judged");
    check(&recording(vec![single_event(TEST, "a", 404, &event)]), "events.envelope", "not judged");
    check_verdict_text(&recording(vec![single_event(TEST, "a", 200, &event)]), "events.envelope", "bare");
    check_verdict_text(
        &recording(vec![single_event(TEST, "a", 200, &json!({ "data": event }))]),
        "events.envelope",
        "under data",
    );
}

#[test]
fn a_finding_quotes_the_wrong_value() {
    let row = json!([{ "id": 7, "type": "charge.lost" }]);
    let listed = recording(vec![single_page(events_request(None, 100), &row)]);
    check_verdict_text(&listed, "events.type", "charge.lost");
    check_verdict_text(&listed, "events.id", "id 7 (event without an id)");
    check_verdict_text(&listed, "events.details", "details missing");
}

#[test]
fn objects_of_filtered_creation_events_are_listed() {
    let event = |kind: &str, code: &str, minute: u32| {
        json!({
            "id": format!("{kind}{code}"), "type": kind, "invoice": { "code": code },
            "created_at": format!("2026-02-01T10:{minute:02}:00.000000Z"),
        })
    };
    // In a busy account, all events of an unfiltered page are recent.
    let newest = single_page(events_request(None, 100), &json!([event("invoice.viewed", "in3", 30)]));
    let created = |kind: &str, minute| {
        let request = filtered_request(List::Events, &[("type", "invoice.created")], 100);
        single_page(request, &json!([event("invoice.created", "in3", 30), event(kind, "in1", minute)]))
    };
    let listed = |codes: &[&str]| {
        let rows: Value = codes.iter().map(|code| json!({ "code": code })).collect();
        single_page(PageRequest { list: List::Invoices, ..events_request(None, 100) }, &rows)
    };
    const CREATED: &str = "invoice.created";
    for (kind, minute, codes, expected) in [
        (CREATED, 10, &["in3", "in1"][..], "pass"),
        (CREATED, 10, &["in3"], "fail"),
        // New invoices may take a minute to appear.
        (CREATED, 29, &["in3", "in1"], "pass"),
        (CREATED, 30, &["in3"], "not judged"),
        ("invoice.sent", 10, &["in3"], "not judged"),
    ] {
        let read = [newest.clone(), created(kind, minute), listed(codes)];
        check(&recording(read.to_vec()), "lists.complete", expected);
    }
}
