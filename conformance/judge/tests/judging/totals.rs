//! Totals and rows of pages that were read while records were created.

use std::time::Duration;

use conformance_model::recording::{Exchange, List, PageRequest, Purpose, Side};
use serde_json::{Value, json};

use super::{TEST, check, check_verdict_text, events_request, exchange, page, recording};

/// Returns events of one type, by their numbers.
fn events(kind: &str, numbers: impl IntoIterator<Item = u64>) -> Value {
    numbers.into_iter().map(|number| json!({ "id": format!("{kind}{number}"), "type": kind })).collect()
}

/// Returns a request of events, filtered by a type if one is given.
fn request(kind: Option<&str>, number: Option<u64>, size: u64) -> PageRequest {
    let filters = kind.map(|kind| ("type".to_owned(), kind.to_owned())).into_iter().collect();
    PageRequest { filters, ..events_request(number, size) }
}

/// Returns a page of events with this total, read at this second.
fn read_at(second: u64, request: PageRequest, rows: &Value, total: u64) -> Exchange {
    let (size, number) = (request.per_page.unwrap_or(25), request.page.unwrap_or(1));
    let mut read = page(request, rows, [number, total.div_ceil(size).max(1), size, total]);
    (read.sent, read.ended) = (Duration::from_secs(second), Duration::from_secs(second));
    read
}

/// Returns a request of a list without a status, filtered by a type or payment link if `is_filtered` is set.
fn request_of(list: List, is_filtered: bool, number: Option<u64>) -> PageRequest {
    let name = if list == List::Events { "type" } else { "payment_link" };
    let filters = is_filtered.then(|| (name.to_owned(), "a".to_owned())).into_iter().collect();
    PageRequest { list, filters, ..events_request(number, 1) }
}

#[test]
fn a_total_lies_between_those_a_minute_before_and_later() {
    for (number, second, total, of_charges, of_events) in [
        (None, 80, 300, true, true),
        (None, 80, 420, true, true),
        (None, 80, 421, false, true),
        (None, 80, 299, false, true),
        // Old events may be deleted, but not half of them.
        (None, 80, 839, false, true),
        (None, 80, 840, false, false),
        (None, 80, 151, false, true),
        (None, 80, 150, false, false),
        // The earlier or the later read is less than a minute away.
        (None, 59, 150, true, true),
        (None, 101, 840, true, true),
        // A later page may continue the first read of the first page.
        (Some(2), 80, 300, true, true),
        (Some(2), 80, 840, false, false),
    ] {
        for (list, is_filtered, is_valid) in [
            (List::Charges, false, of_charges),
            (List::Charges, true, of_charges),
            (List::Events, false, of_events),
            (List::Events, true, of_events),
        ] {
            let read = |second, number, total| {
                read_at(second, request_of(list, is_filtered, number), &events("a", [1]), total)
            };
            let found =
                recording(vec![read(0, None, 300), read(second, number, total), read(160, None, 420)]);
            let (id, expected) = match (is_valid, is_filtered) {
                (false, false) => ("paging.length", "fail"),
                (false, true) => ("filters.total", "fail"),
                (true, false) => ("paging.length", "pass"),
                (true, true) => ("filters.total", "not judged"),
            };
            check(&found, id, expected);
        }
    }
}

/// A later page may have the total of an older first page, so it is no upper bound of the pages in between.
#[test]
fn a_page_that_continues_an_older_one_bounds_no_total() {
    let read = |second, number, total| {
        read_at(second, request_of(List::Charges, false, number), &events("a", [1]), total)
    };
    for (later_total, expected) in [(27, "pass"), (30, "fail")] {
        let found = recording(vec![read(0, None, 27), read(80, None, 83), read(160, Some(2), later_total)]);
        check(&found, "paging.length", expected);
    }
}

#[test]
fn a_filtered_total_does_not_count_excluded_records() {
    let long = |second, total| read_at(second, request(None, None, 100), &events("b", 1..=100), total);
    for (total, later_total, is_valid) in [
        (30, 310, true),
        (250, 310, true),
        (300, 310, false),
        // The list grew by as many records as the tolerance.
        (300, 350, true),
    ] {
        let first = read_at(1, request(Some("a"), None, 1), &events("a", [2]), 30);
        let second = read_at(1, request(Some("a"), Some(2), 1), &events("a", [1]), total);
        let all = vec![long(0, 300), first, second.clone(), long(2, later_total)];
        check(&recording(all), "filters.total", if is_valid { "not judged" } else { "fail" });
        // The filter may come from an index that is ahead of the unfiltered list.
        let alone = vec![long(0, 300), second.clone(), long(2, later_total)];
        check(&recording(alone), "filters.total", "not judged");
        // Without a later read, the size of the list is unknown.
        check(&recording(vec![long(0, 300), second]), "filters.total", "not judged");
    }
    let first = read_at(1, request(Some("a"), None, 1), &events("a", [2]), 30);
    let few = |second, total| read_at(second, request(None, None, 100), &events("b", 1..=19), total);
    let second = read_at(1, request(Some("a"), Some(2), 1), &events("a", [1]), 300);
    check(&recording(vec![few(0, 300), first, second, few(2, 310)]), "filters.total", "not judged");
}

#[test]
fn a_later_filtered_page_continues_the_long_page() {
    let long = |total| read_at(0, request(Some("a"), None, 100), &events("a", (1..=30).rev()), total);
    let small = |number, first: u64, total| {
        let rows = events("a", (first - 1..=first).rev());
        read_at(1, request(Some("a"), Some(number), 2), &rows, total)
    };
    for (pages, expected) in [
        (vec![small(2, 28, 30), small(3, 26, 30)], "pass"),
        (vec![small(2, 30, 30), small(3, 30, 30)], "fail"),
        (vec![small(2, 29, 30), small(3, 27, 30)], "fail"),
        // The total of a single page may have been counted before a record was created.
        (vec![small(2, 29, 30), small(3, 26, 30)], "pass"),
        // The list has grown.
        (vec![small(2, 29, 31), small(3, 27, 31)], "pass"),
        // A first page between them had another total, which the later pages may continue.
        (vec![small(1, 31, 31), small(2, 29, 30), small(3, 27, 30)], "pass"),
    ] {
        check(&recording([vec![long(30)], pages].concat()), "filters.total", expected);
    }
    // Old events are deleted meanwhile.
    let whole = |total| read_at(0, request(None, None, 1), &events("b", [1]), total);
    for (later_total, expected) in [(300, "fail"), (299, "pass")] {
        let pages = vec![long(30), whole(300), small(2, 29, 30), small(3, 27, 30), whole(later_total)];
        check(&recording(pages), "filters.total", expected);
    }
}

#[test]
fn the_numbers_of_every_filtered_page_are_consistent() {
    let filtered = |last: u64, total: u64| {
        let mut read = page(request(Some("a"), Some(2), 2), &events("a", [3, 2]), [2, last, 2, total]);
        (read.sent, read.ended) = (Duration::from_secs(1), Duration::from_secs(1));
        recording(vec![read])
    };
    check(&filtered(15, 30), "filters.total", "not judged");
    check_verdict_text(&filtered(150, 30), "filters.total", "meta.last_page 15 by a total of 30");
    check_verdict_text(&filtered(1, 2), "filters.total", "rows: 0 by a total of 2");
}

#[test]
fn an_empty_list_of_an_unknown_value_has_the_numbers_of_an_empty_list() {
    let filtered = |meta: &Value, next: &Value| {
        let links = json!({ "first": null, "last": null, "prev": null, "next": next });
        let body = json!({ "data": [], "links": links, "meta": meta });
        let purpose = Purpose::Filter { list: List::Events, filter: "type".into(), side: Side::AbsentBefore };
        let listed = page(request(None, None, 25), &events("a", [1]), [1, 1, 25, 1]);
        recording(vec![listed, exchange(TEST, purpose, "/v1/events?type=b", 200, &body)])
    };
    let meta =
        |last: u64, size: u64| json!({ "current_page": 1, "last_page": last, "per_page": size, "total": 0 });
    for (meta, next, id, expected) in [
        (meta(1, 25), json!(null), "filters.total", "not judged"),
        (meta(0, 25), json!(null), "filters.total", "not judged"),
        (meta(7, 25), json!(null), "filters.total", "fail"),
        (meta(1, 25), json!(null), "paging.default_size", "pass"),
        (meta(1, 15), json!(null), "paging.default_size", "fail"),
        (meta(1, 25), json!("?type=b&page=2"), "paging.ends", "fail"),
        (json!({ "total": 0 }), json!(null), "paging.meta", "fail"),
        (meta(1, 25), json!(null), "paging.meta", "pass"),
    ] {
        check(&filtered(&meta, &next), id, expected);
    }
}
