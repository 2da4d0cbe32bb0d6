//! Chapter "paging": the evidence that pages need, and the targets of links.

use conformance_model::recording::{
    Burst, Exchange, ExchangeOutcome, FollowedLink, List, PageRequest, Purpose, Recording,
};

use super::{check, check_verdict_text, events_request, page, recording};

use serde_json::{Value, json};

fn rows(ids: &[u64]) -> Value {
    Value::from_iter(ids.iter().map(|id| json!({ "id": id })))
}

#[test]
fn a_statement_about_pages_needs_suitable_pages() {
    let empty = page(events_request(None, 100), &json!([]), [1, 1, 100, 0]);
    let first = page(events_request(Some(1), 2), &rows(&[5, 4]), [1, 3, 2, 5]);
    let second = page(events_request(Some(2), 2), &rows(&[3, 2]), [2, 3, 2, 5]);
    let even = page(events_request(Some(1), 2), &rows(&[4, 3]), [1, 2, 2, 4]);
    let long = page(events_request(None, 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]);
    for (pages, id, expected) in [
        (vec![&empty], "paging.length", "not judged"),
        (vec![&first], "paging.length", "pass"),
        (vec![&first], "paging.current_page", "not judged"),
        (vec![&second], "paging.current_page", "pass"),
        (vec![&first], "paging.last_page", "not judged"),
        (vec![&even], "paging.last_page", "not judged"),
        (vec![&even, &first], "paging.last_page", "pass"),
        (vec![&long, &first], "paging.joined", "not judged"),
        (vec![&long, &second], "paging.joined", "pass"),
    ] {
        check(&recording(pages.into_iter().cloned().collect()), id, expected);
    }
}

#[test]
fn the_rows_of_an_incomplete_long_page_count() {
    // A total of five, and three rows.
    let long = page(events_request(None, 100), &rows(&[5, 4, 3]), [1, 1, 100, 5]);
    let with_first_page = |ids: &[u64]| {
        let last = page(events_request(Some(2), 2), &rows(&[3, 2]), [2, 3, 2, 5]);
        recording(vec![long.clone(), last, page(events_request(Some(1), 2), &rows(ids), [1, 3, 2, 5])])
    };
    check(&with_first_page(&[5, 4]), "paging.joined", "pass");
    check(&with_first_page(&[5]), "paging.joined", "fail");
    check_verdict_text(&with_first_page(&[5, 3]), "paging.joined", "record 2 of the long page ");
}

#[test]
fn the_order_is_judged_only_with_two_dated_records() {
    let created = |day: u64| json!({ "created_at": format!("2026-02-0{day}T10:00:00.000000Z") });
    let bare = json!({ "code": "a" });
    let paid = |days: Vec<u64>| -> Value {
        days.iter().map(|day| json!({ "paid_at": format!("2026-02-{day:02}T10:00:00.000000Z") })).collect()
    };
    let others = "paging.newest_first_others";
    for (list, rows, id, expected) in [
        (List::Events, json!([created(2)]), "paging.newest_first", "not judged"),
        (List::Events, json!([created(2), created(1)]), "paging.newest_first", "pass"),
        (List::Events, json!([created(1), created(2)]), "paging.newest_first", "fail"),
        (List::Charges, json!([created(2), created(1)]), others, "pass"),
        (List::Charges, json!([bare, bare]), others, "not applicable"),
        (List::Charges, json!([bare]), others, "not judged"),
        (List::Charges, paid((1..=12).collect()), others, "fail"),
        (List::Charges, paid((1..=12).rev().collect()), others, "not applicable"),
        (List::Charges, paid((1..=11).collect()), others, "not applicable"),
        (List::Charges, paid(vec![1; 12]), others, "not applicable"),
        (List::Events, json!([bare, bare]), others, "not judged"),
    ] {
        let len = rows.as_array().map_or(0, Vec::len) as u64;
        let read = page(PageRequest { list, ..events_request(None, 100) }, &rows, [1, 1, 100, len]);
        check(&recording(vec![read]), id, expected);
    }
}

/// Replaces a link of a page.
fn with_link(exchange: Exchange, rel: &str, url: &str) -> Exchange {
    let mut exchange = exchange;
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        panic!("the exchange has a response")
    };
    let mut body: Value = serde_json::from_str(&response.body).expect("JSON");
    body["links"][rel] = json!(url);
    response.body = body.to_string().into();
    exchange
}

#[test]
fn the_ends_of_a_list_are_judged_only_with_a_middle_page() {
    let only = page(events_request(None, 100), &rows(&[1]), [1, 1, 100, 1]);
    check(&recording(vec![only]), "paging.ends", "not judged");
    let first = || page(events_request(Some(1), 2), &rows(&[5, 4]), [1, 3, 2, 5]);
    check(&recording(vec![with_link(first(), "next", "?page=2")]), "paging.ends", "pass");
    check(&recording(vec![first()]), "paging.ends", "fail");
    check(&recording(vec![with_link(first(), "prev", "?page=0")]), "paging.ends", "fail");
}

#[test]
fn a_linked_page_has_the_number_of_its_link() {
    for (target, current, expected) in [
        ("/v1/events?page=3&per_page=2", 3, "pass"),
        ("/v1/events?page=3&per_page=2", 2, "fail"),
        ("/v1/events?cursor=b7", 2, "pass"),
        ("/v1/events?page=eyJpZCI6MX0", 2, "pass"),
    ] {
        let link = Some(FollowedLink { exchange: 1, rel: "last".into() });
        let linked = page(
            PageRequest { link, per_page: None, ..events_request(None, 2) },
            &rows(&[1]),
            [current, 3, 2, 5],
        );
        let second = page(events_request(Some(2), 2), &rows(&[3, 2]), [2, 3, 2, 5]);
        let all = vec![second, Exchange { target: target.into(), ..linked }];
        check(&recording(all), "paging.current_page", expected);
    }
}

#[test]
fn a_link_is_judged_by_its_query() {
    let middle = || page(events_request(Some(2), 2), &rows(&[5, 4]), [2, 3, 2, 5]);
    for (rel, url, id, expected) in [
        ("prev", "?page=1&per_page=2", "paging.links_lead", "not judged"),
        ("prev", "?page=3&per_page=2", "paging.links_lead", "fail"),
        ("first", "?per_page=2", "paging.links_lead", "not judged"),
        ("next", "?per_page=2", "paging.links_lead", "fail"),
        // Only the server knows the target.
        ("next", "?cursor=b7", "paging.links_lead", "not judged"),
        ("last", "?page=2&per_page=2", "paging.links_lead", "fail"),
        ("next", "?page=3", "paging.links_keep_size", "fail"),
        ("next", "?page=3&cursor=b7", "paging.links_keep_size", "not judged"),
    ] {
        check(&recording(vec![with_link(middle(), rel, url)]), id, expected);
    }
}

/// Returns the first page, the second by number, and `linked`: the page of the link `next` of the first page.
fn with_followed_link(filters: &[(&str, &str)], linked: &[u64], total: u64) -> Recording {
    let filters: Vec<_> = filters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let request = |filters, page| PageRequest { filters, ..events_request(page, 2) };
    let link = Some(FollowedLink { exchange: 1, rel: "next".into() });
    recording(vec![
        page(request(filters.clone(), Some(1)), &rows(&[5, 4]), [1, 3, 2, 5]),
        page(request(vec![], Some(2)), &rows(&[3, 2]), [2, 3, 2, 5]),
        page(PageRequest { link, per_page: None, ..request(filters, None) }, &rows(linked), [2, 3, 2, total]),
    ])
}

#[test]
fn a_link_leads_to_the_page_of_that_number() {
    check(&with_followed_link(&[], &[3, 2], 5), "paging.links_lead", "pass");
    check(&with_followed_link(&[], &[4, 3], 5), "paging.links_lead", "fail");
    // The list grew, or is another list.
    check(&with_followed_link(&[], &[4, 3], 6), "paging.links_lead", "pass");
    check(&with_followed_link(&[("charge", "ch1")], &[4, 3], 6), "paging.links_lead", "pass");
    // Records may have changed their status while the total stayed the same.
    check(&with_followed_link(&[("status", "paid")], &[4, 3], 5), "paging.links_lead", "pass");
    // A filtered list has fewer records than the unfiltered one, but no duplicates.
    check(&with_followed_link(&[("charge", "ch1")], &[9, 8], 5), "paging.links_lead", "pass");
    check(&with_followed_link(&[("charge", "ch1")], &[4, 3], 5), "paging.links_lead", "fail");
}

#[test]
fn a_total_equals_that_of_the_enclosing_reads_or_of_an_older_first_page() {
    let dated = |request: PageRequest, total: u64| {
        let row = |id: u64| json!({ "id": id, "created_at": "2025-02-01T10:00:00.000000Z" });
        let (current, size) = (request.page.unwrap_or(1), request.per_page.expect("the request has a size"));
        let rows: Vec<_> = (1..=total).rev().map(row).skip(((current - 1) * size) as usize).collect();
        let rows = rows.into_iter().take(size as usize).collect();
        let mut page = page(request, &rows, [current, total.div_ceil(size), size, total]);
        let ExchangeOutcome::Answered(response) = &mut page.outcome else {
            panic!("the exchange has a response")
        };
        response.headers.push(("date".into(), "Thu, 01 Jan 2026 12:00:00 GMT".into()));
        page
    };
    let long = || dated(events_request(None, 100), 4);
    let around = |page: u64, total| vec![long(), dated(events_request(Some(page), 2), total), long()];
    let of_burst = |total| {
        let purpose = Purpose::Burst(Burst::UntilRefused { series: 1 });
        Exchange { purpose, target: "/v1/events?per_page=1".into(), ..dated(events_request(None, 1), total) }
    };
    for (older, page, total, expected) in [
        (None, 2, 4, "pass"),
        (None, 2, 3, "fail"),
        (Some(2), 2, 3, "fail"),
        // Later pages may continue the read of an older first page.
        (Some(3), 2, 3, "pass"),
        (Some(3), 1, 3, "fail"),
    ] {
        let all = [older.map(of_burst).into_iter().collect(), around(page, total)].concat();
        check(&recording(all), "paging.length", expected);
    }
}
