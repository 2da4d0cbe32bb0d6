//! Chapter "paging" while records are created, including records of other clients.

use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose, Recording, Step};

use super::{LIVE, TEST, check, check_verdict_text, events_request, exchange, page, recording, response_mut};

use serde_json::{Value, json};

fn rows(ids: &[u64]) -> Value {
    Value::from_iter(ids.iter().map(|id| json!({ "id": id })))
}

/// Returns a long page of five records, a first small page, and a second one that was read after a creation.
fn grown_list(list: List, second: &[u64]) -> Vec<Exchange> {
    let of_list = |page| PageRequest { list, ..events_request(page, 2) };
    vec![
        page(PageRequest { list, ..events_request(None, 100) }, &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]),
        page(of_list(Some(1)), &rows(&[5, 4]), [1, 3, 2, 5]),
        page(of_list(Some(2)), &rows(second), [2, 3, 2, 6]),
    ]
}

/// Checks the verdicts on both statements about stable pages.
#[track_caller]
fn check_both(exchanges: Vec<Exchange>, stable: &str, literal: &str) {
    let recording = recording(exchanges);
    check(&recording, "paging.stable", stable);
    check(&recording, "paging.stable_literal", literal);
}

#[test]
fn the_second_page_is_compared_with_the_long_page() {
    check_both(grown_list(List::Events, &[3, 2]), "pass", "pass");
    check_both(grown_list(List::Events, &[4, 3]), "pass", "fail");
    check_both(grown_list(List::Events, &[2, 1]), "fail", "not judged");
    check_verdict_text(
        &recording(grown_list(List::Events, &[4, 3])),
        "paging.stable_literal",
        "4 moved there",
    );
}

#[test]
fn only_unfiltered_pages_of_one_list_after_its_long_page_are_compared() {
    let [long, first, second] = &grown_list(List::Events, &[4, 3])[..] else { panic!("three pages") };
    let charges = grown_list(List::Charges, &[3, 2])[1].clone();
    let before = vec![charges, long.clone(), first.clone(), second.clone()];
    check(&recording(before), "paging.stable_literal", "fail");
    let mut filtered = second.clone();
    if let Purpose::Page(request) = &mut filtered.purpose {
        request.filters.push(("type".into(), "charge.paid".into()));
    }
    check_both(vec![long.clone(), first.clone(), filtered], "not judged", "not judged");
    // A long page that was read afterwards does not show the earlier records.
    check_both(vec![first.clone(), second.clone(), long.clone()], "not judged", "not judged");
    let second_page = page(events_request(Some(2), 100), &rows(&[16, 15, 14, 13, 12, 11]), [2, 2, 100, 106]);
    let first_page = page(events_request(Some(1), 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]);
    check(&recording(vec![second_page, first_page]), "paging.stable_literal", "not judged");
}

#[test]
fn a_stable_way_of_paging_in_one_list_does_not_excuse_another_list() {
    let all = [(List::Charges, [3, 2]), (List::Invoices, [3, 2]), (List::Events, [4, 3])];
    let exchanges = all.iter().flat_map(|(list, second)| grown_list(*list, second)).collect();
    check_both(exchanges, "pass", "fail");
}

fn during_inserts(caller: Caller, step: Step, ids: &[u64]) -> Exchange {
    let list = List::Events;
    let purpose = Purpose::DuringInserts { list, step };
    exchange(caller, purpose, list.path(), 200, &json!({ "data": rows(ids) }))
}

#[test]
fn the_reason_for_missing_growth_is_reported() {
    let check_reason =
        |exchanges, part: &str| check_verdict_text(&recording(exchanges), "paging.stable", part);
    check_reason(vec![], "pass --allow-writes");
    let long_page = during_inserts(TEST, Step::LongPageBefore, &[2, 1]);
    check_reason(vec![long_page.clone()], "no list of the test mode has 3 or more records");
    check_reason(
        vec![long_page.clone(), during_inserts(LIVE, Step::FirstPage, &[2])],
        "has 3 or more records",
    );
    check_reason(vec![long_page, during_inserts(TEST, Step::FirstPage, &[2])], "no list grew");
}

/// Returns a list of four records that was read page by page while records were created.
fn with_own_inserts(later: &[Exchange], after: &[u64]) -> Recording {
    let (long_page, first) = (
        during_inserts(TEST, Step::LongPageBefore, &[4, 3, 2, 1]),
        during_inserts(TEST, Step::FirstPage, &[4, 3]),
    );
    recording([&[long_page, first], later, &[during_inserts(TEST, Step::LongPageAfter, after)]].concat())
}

#[test]
fn created_records_are_at_the_head_and_hide_no_others() {
    let by_number = |ids: &[u64]| during_inserts(TEST, Step::ByNumber { page: 2 }, ids);
    let by_link = |ids: &[u64]| during_inserts(TEST, Step::ByLink { page: 2 }, ids);
    for (later, after, stable, literal) in [
        (vec![by_number(&[2, 1])], vec![5, 4, 3, 2, 1], "pass", "pass"),
        (vec![by_number(&[3, 2])], vec![5, 4, 3, 2, 1], "pass", "fail"),
        (vec![by_number(&[1])], vec![5, 4, 3, 2, 1], "fail", "not judged"),
        (vec![by_number(&[3, 2]), by_link(&[2, 1])], vec![5, 4, 3, 2, 1], "pass", "pass"),
        (vec![by_number(&[2, 1]), by_link(&[3, 2])], vec![5, 4, 3, 2, 1], "pass", "fail"),
        (vec![by_number(&[2, 1])], vec![4, 5, 3, 2, 1], "fail", "pass"),
        (vec![by_number(&[2, 1])], vec![4, 3, 2, 1], "not judged", "not judged"),
        // Older records may appear below the known ones.
        (vec![by_number(&[2, 1])], vec![5, 4, 3, 2, 1, 0], "pass", "pass"),
        (vec![], vec![5, 4, 3, 2, 1], "not judged", "not judged"),
    ] {
        let recording = with_own_inserts(&later, &after);
        check(&recording, "paging.stable", stable);
        check(&recording, "paging.stable_literal", literal);
    }
}

/// Returns the events of a type among others, which have other ids.
fn among_others(ids: &[u64]) -> Value {
    let of_type =
        |id: u64, kind: &str| json!({ "id": id, "type": kind, "created_at": "2026-02-01T10:00:00Z" });
    Value::from_iter(
        ids.iter().flat_map(|id| [of_type(100 + id, "charge.paid"), of_type(*id, "charge.created")]),
    )
}

/// Returns the reads of five created charges, with and without a filter, while more were created. `pages`: the pages
/// with the filter.
fn filtered_reads(pages: [&[u64]; 2], kind: &str, after: &[u64]) -> Vec<Exchange> {
    let read = |step, query: &str, rows: &Value| {
        let purpose = Purpose::DuringInserts { list: List::Events, step };
        exchange(TEST, purpose, &format!("/v1/events?{query}"), 200, &json!({ "data": rows }))
    };
    let filtered = |ids: &[u64]| {
        Value::from_iter(
            ids.iter().map(|id| json!({ "id": id, "type": kind, "created_at": "2026-02-01T10:00:00Z" })),
        )
    };
    let query = "type=charge.created&per_page=2";
    vec![
        read(Step::LongPageBefore, "per_page=100", &among_others(&[5, 4, 3, 2, 1])),
        read(Step::FirstPage, "page=1&per_page=2", &among_others(&[5])),
        read(Step::FilteredFirstPage, query, &filtered(pages[0])),
        read(Step::ByNumber { page: 2 }, "page=2&per_page=2", &among_others(&[4])),
        read(Step::ByLink { page: 2 }, "page=2&per_page=2", &among_others(&[4])),
        read(Step::FilteredByLink, &format!("{query}&page=2"), &filtered(pages[1])),
        read(Step::LongPageAfter, "per_page=100", &among_others(after)),
    ]
}

#[test]
fn a_filtered_list_is_as_stable_as_the_whole_list() {
    const CREATED: &str = "charge.created";
    let after = &[7, 6, 5, 4, 3, 2, 1];
    for (pages, kind, after, stable, literal) in [
        ([&[5, 4][..], &[3, 2][..]], CREATED, &after[..], "pass", "pass"),
        ([&[5, 4], &[5, 4]], CREATED, after, "pass", "fail"),
        ([&[5, 4], &[4, 3]], CREATED, after, "pass", "fail"),
        ([&[5, 4], &[2, 1]], CREATED, after, "fail", "pass"),
        // Another client created a charge before the first page.
        ([&[6, 5], &[4, 3]], CREATED, after, "pass", "pass"),
        ([&[6, 5], &[3, 2]], CREATED, after, "fail", "pass"),
        // The first page is older than the long page.
        ([&[4, 3], &[4, 3]], CREATED, after, "pass", "pass"),
        // Nothing of this type was created.
        ([&[5, 4], &[4, 3]], CREATED, &[5, 4, 3, 2, 1], "not judged", "not judged"),
        // Other statements judge the filter and the size.
        ([&[5, 4], &[4, 3]], "charge.paid", after, "pass", "pass"),
        ([&[5, 4], &[5, 4, 3]], CREATED, after, "pass", "pass"),
    ] {
        check_both(filtered_reads(pages, kind, after), stable, literal);
    }
}

#[test]
fn a_recent_event_may_be_missing_at_another_replica() {
    for (date, expected) in
        [("Sun, 01 Feb 2026 10:00:59 GMT", "pass"), ("Sun, 01 Feb 2026 10:01:01 GMT", "fail")]
    {
        let mut reads = filtered_reads([&[5, 4], &[2, 1]], "charge.created", &[6, 5, 4, 3, 2, 1]);
        response_mut(&mut reads[2]).headers.push(("date".into(), date.into()));
        check(&recording(reads), "paging.stable", expected);
    }
}

#[test]
fn links_must_not_shift_a_list_that_page_numbers_do_not_shift() {
    let mut reads = filtered_reads([&[5, 4], &[5, 4]], "charge.created", &[6, 5, 4, 3, 2, 1]);
    let shifted = reads[1].outcome.clone();
    reads[4].outcome = shifted;
    let all = recording(reads);
    check(&all, "paging.stable_literal", "fail");
    check_verdict_text(&all, "paging.stable", "events of type charge.created by links: records repeat");
}

#[test]
fn a_record_of_another_client_before_the_first_page_is_part_of_the_list() {
    for (first, second, stable, literal) in [
        (&[5, 4][..], &[3, 2][..], "pass", "pass"),
        (&[5, 4], &[4, 3], "pass", "fail"),
        (&[5, 4], &[2, 1], "fail", "not judged"),
        // More records may have been created than the first page shows.
        (&[6, 5], &[4, 3], "not judged", "not judged"),
        (&[5, 3], &[2, 1], "not judged", "not judged"),
    ] {
        check_both(
            vec![
                during_inserts(TEST, Step::LongPageBefore, &[4, 3, 2, 1]),
                during_inserts(TEST, Step::FirstPage, first),
                during_inserts(TEST, Step::ByNumber { page: 2 }, second),
                during_inserts(TEST, Step::LongPageAfter, &[7, 6, 5, 4, 3, 2, 1]),
            ],
            stable,
            literal,
        );
    }
}

#[test]
fn listed_records_do_not_vanish() {
    for (again, expected) in [
        (&[5, 4, 3, 2, 1][..], "pass"),
        (&[6, 5, 4, 3, 2], "pass"),
        (&[4, 3, 2, 1], "fail"),
        (&[5, 3, 2, 1], "fail"),
        // A page of another size, which ends before or after the others.
        (&[5, 4, 3, 2, 1, 0], "pass"),
        (&[4, 3, 2, 1, 0], "fail"),
        (&[4, 3, 2], "fail"),
    ] {
        let mut all =
            with_own_inserts(&[during_inserts(TEST, Step::ByNumber { page: 2 }, &[2, 1])], &[5, 4, 3, 2, 1]);
        all.exchanges.push(during_inserts(TEST, Step::LongPageAfter, again));
        check(&recording(all.exchanges), "paging.stable", expected);
    }
}

#[test]
fn the_loss_of_records_without_identifiers_is_not_judged() {
    let unnamed =
        |statuses: &[&str]| Value::from_iter(statuses.iter().map(|status| json!({ "status": status })));
    let charges = |page| PageRequest { list: List::Charges, ..events_request(page, 2) };
    let long = PageRequest { list: List::Charges, ..events_request(None, 100) };
    check_both(
        vec![
            page(long, &unnamed(&["new", "paid", "paid", "new", "paid"]), [1, 1, 100, 5]),
            page(charges(Some(1)), &unnamed(&["new", "paid"]), [1, 3, 2, 5]),
            page(charges(Some(2)), &unnamed(&["new", "paid"]), [2, 3, 2, 6]),
        ],
        "not judged",
        "not judged",
    );
}

#[test]
fn records_that_only_the_total_shows_are_not_on_page_one() {
    for (total, after, expected) in [
        (6, [4, 3, 2, 1], "fail"),
        // A single record may have been created between the page and its total.
        (5, [4, 3, 2, 1], "not judged"),
        (6, [6, 5, 4, 3], "pass"),
    ] {
        let counted = |step, ids: &[u64], total: u64| {
            let body = json!({ "data": rows(ids), "meta": { "total": total } });
            Exchange {
                outcome: exchange(TEST, Purpose::Account, "", 200, &body).outcome,
                ..during_inserts(TEST, step, ids)
            }
        };
        let read = vec![
            counted(Step::LongPageBefore, &[4, 3, 2, 1], 4),
            counted(Step::FirstPage, &[4, 3], 4),
            counted(Step::ByNumber { page: 2 }, &[2, 1], total),
            counted(Step::LongPageAfter, &after, total),
        ];
        check(&recording(read), "paging.stable", expected);
    }
}
