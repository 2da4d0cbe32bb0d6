//! The order of records and omitted records, on pages that were read while other clients created records.

use std::time::Duration;

use conformance_model::recording::{Exchange, List, PageRequest};

use super::{check, check_verdict_text, events_request, page, recording, response_mut};

use serde_json::{Value, json};

fn filtered_request(list: List, filters: &[(&str, &str)], per_page: u64) -> PageRequest {
    let filters = filters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    PageRequest { list, filters, ..events_request(None, per_page) }
}

/// Returns charges by their codes. Those with the prefix `p` are paid and belong to a payment link.
fn charges(codes: &[&str]) -> Value {
    let charge = |code: &&str| match code.starts_with('p') {
        true => json!({ "code": code, "status": "paid", "payment_link": "pl1" }),
        false => json!({ "code": code, "status": "open", "payment_link": null }),
    };
    codes.iter().map(charge).collect()
}

/// Returns the first page of charges with these filters. `total`: the number of matching charges.
fn charges_page(filters: &[(&str, &str)], codes: &[&str], size: u64, total: u64) -> Exchange {
    let request = filtered_request(List::Charges, filters, size);
    page(request, &charges(codes), [1, total.div_ceil(size).max(1), size, total])
}

/// Adds a `Date` to the response of an exchange.
fn dated(exchange: Exchange, date: &str) -> Exchange {
    let mut exchange = exchange;
    response_mut(&mut exchange).headers.push(("date".into(), date.into()));
    exchange
}

#[test]
fn records_have_one_order_on_all_pages() {
    let link = [("payment_link", "pl1")];
    for (codes, expected) in [
        (&["p9", "p3", "p1"][..], "not applicable"),
        (&["p3", "p1"], "not applicable"),
        (&["p1", "p3"], "fail"),
        // A new charge above and a charge that the long page does not reach.
        (&["p9", "p1", "p0"], "not applicable"),
    ] {
        let total = codes.len() as u64;
        let read = recording(vec![
            charges_page(&[], &["p3", "c2", "p1"], 100, 3),
            charges_page(&link, codes, 100, total),
        ]);
        check(&read, "paging.newest_first_others", expected);
    }
    let reversed =
        vec![charges_page(&link, &["p1", "p3"], 100, 2), charges_page(&[], &["p3", "c2", "p1"], 100, 3)];
    check_verdict_text(&recording(reversed), "paging.newest_first_others", "p1 above p3");
}

#[test]
fn no_record_is_omitted_or_repeated_while_the_list_grows() {
    let long = |codes: &[&str]| charges_page(&[], codes, 100, codes.len() as u64);
    let (old, new) = (["c3", "c2", "c1"], ["c9", "c3", "c2", "c1"]);
    for (codes, later, expected) in [
        (&["c9", "c3", "c2"][..], &new[..], "not judged"),
        (&["c9", "c3", "c1"], &new, "fail"),
        (&["c9", "c8", "c3"], &new, "not judged"),
        // An older page may end the list that the long page does not reach.
        (&["c3", "c2", "c1", "c0"], &new, "not judged"),
        // The record was removed.
        (&["c9", "c3", "c1"], &["c9", "c3", "c1", "c0"], "not judged"),
    ] {
        let all = vec![long(&old), charges_page(&[], codes, codes.len() as u64, 5), long(later)];
        check(&recording(all), "paging.joined", expected);
    }
    let link = [("payment_link", "pl1")];
    let repeated =
        vec![charges_page(&[], &["p3", "p1"], 100, 2), charges_page(&link, &["p3", "p3", "p1"], 100, 3)];
    check_verdict_text(&recording(repeated), "paging.joined", "p3 occurs twice");
}

#[test]
fn a_filtered_page_omits_no_record() {
    let link = [("payment_link", "pl1")];
    for (codes, size, expected) in [
        (&["p9", "p5", "p3", "p1"][..], 100, "pass"),
        (&["p9", "p5", "p1"], 100, "fail"),
        // The end of the list is known, because the page is not full.
        (&["p9", "p5", "p3"], 100, "fail"),
        (&["p9", "p5", "p3"], 3, "pass"),
        // New records may be missing at the head for a minute, and these have no time.
        (&["p3", "p1"], 100, "pass"),
    ] {
        let read = recording(vec![
            charges_page(&[], &["p5", "c4", "p3", "c2", "p1"], 100, 5),
            charges_page(&link, codes, size, codes.len() as u64),
            charges_page(&[], &["p5", "c4", "p3", "c2", "p1"], 100, 5),
        ]);
        check(&read, "filters.payment_link", expected);
    }
}

#[test]
fn a_record_at_the_head_of_a_filtered_list_may_be_missing_for_a_minute() {
    let events =
        |ids: &[&str]| -> Value { ids.iter().map(|id| json!({ "id": id, "type": "charge.paid" })).collect() };
    for (ids, seconds, expected) in
        [(&["e2", "e1"][..], 60, "pass"), (&["e1"], 60, "fail"), (&["e1"], 59, "pass")]
    {
        let request = filtered_request(List::Events, &[("type", "charge.paid")], 100);
        let filtered = page(request, &events(ids), [1, 1, 100, ids.len() as u64]);
        let sent = Duration::from_secs(seconds);
        let later = Exchange { sent, ended: sent, ..filtered };
        let long = || page(events_request(None, 100), &events(&["e2", "e1"]), [1, 1, 100, 2]);
        let last = Exchange { sent, ended: sent, ..long() };
        check(&recording(vec![long(), later, last]), "filters.type", expected);
    }
}

#[test]
fn a_record_that_is_a_minute_older_than_another_is_not_missing() {
    let event = |minute: u32, second: u32, code: &str| {
        let at = format!("2026-02-01T12:{minute:02}:{second:02}.000000Z");
        json!({
            "id": format!("e{minute}{second}"), "type": "charge.paid", "charge": { "code": code }, "created_at": at,
        })
    };
    for (minute, second, expected) in [(0, 0, "fail"), (4, 30, "pass")] {
        let (newer, older) = (event(5, 0, "c2"), event(minute, second, "c1"));
        let filters = [("type", "charge.paid"), ("charge", "c1")];
        let filtered = page(filtered_request(List::Events, &filters, 100), &json!([]), [1, 1, 100, 0]);
        // Another event of the charge was recorded after the filtered page was read.
        let all = vec![
            page(events_request(None, 100), &json!([newer, older]), [1, 1, 100, 2]),
            filtered,
            page(events_request(None, 100), &json!([event(6, 0, "c1"), newer, older]), [1, 1, 100, 3]),
        ];
        check(&recording(all), "filters.combined", expected);
    }
}

#[test]
fn a_record_whose_status_may_have_changed_is_not_omitted() {
    let event = |hour: u32, code: &str| {
        let at = format!("2026-02-01T{hour:02}:00:00.000000Z");
        json!({ "id": format!("e{hour}"), "type": "charge.created", "charge": { "code": code }, "created_at": at })
    };
    for (hour, after, expected) in [
        (1, &["p9", "p5", "p3", "p1"][..], "fail"),
        // The event is recent.
        (12, &["p9", "p5", "p3", "p1"], "pass"),
        // The charge is not in the later read.
        (1, &["p9", "p5", "p1"], "pass"),
    ] {
        let rows = json!([event(hour, "p3")]);
        let events = page(events_request(None, 100), &rows, [1, 1, 100, 1]);
        // The second page of five is unknown, so the total is not that of the rows.
        let filtered = charges_page(&[("status", "paid")], &["p9", "p5", "p1"], 3, 5);
        let all = vec![
            events,
            charges_page(&[], &["p5", "p3", "p1"], 100, 3),
            dated(filtered, "Sun, 01 Feb 2026 12:05:00 GMT"),
            charges_page(&[], after, 100, after.len() as u64),
        ];
        check(&recording(all), "filters.status", expected);
    }
}

#[test]
fn a_record_may_be_created_between_the_total_and_the_rows() {
    let long = |codes: &[&str]| charges_page(&[], codes, 100, codes.len() as u64);
    let second = |codes: &[&str]| {
        let request = PageRequest { list: List::Charges, ..events_request(Some(2), 2) };
        page(request, &charges(codes), [2, 2, 2, 4])
    };
    let (old, new) = (["c4", "c3", "c2", "c1"], ["c5", "c4", "c3", "c2", "c1"]);
    let with_pages = |pages: &[[&str; 2]]| {
        let pages = pages.iter().map(|codes| second(codes));
        recording([long(&old)].into_iter().chain(pages).chain([long(&new)]).collect())
    };
    check(&with_pages(&[["c3", "c2"]]), "paging.joined", "not judged");
    check(&with_pages(&[["c2", "c1"], ["c3", "c2"]]), "paging.joined", "pass");
    // More than two such pages in one run are unlikely.
    check(&with_pages(&[["c3", "c2"]; 3]), "paging.joined", "fail");
    check(&with_pages(&[["c4", "c3"]]), "paging.joined", "fail");
}
