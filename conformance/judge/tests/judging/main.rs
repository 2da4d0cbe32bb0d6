//! The judge on handwritten recordings, without network and clock.

mod account_profile;
mod auth;
mod caches;
mod charge_versions;
mod current_states;
mod delivered_objects;
mod deliveries;
mod delivery_routing;
mod event_relations;
mod event_sequences;
mod exchanged_values;
mod final_statuses;
mod inserts;
mod invoice_settlement;
mod isolation;
mod key_quotas;
mod late_payments;
mod limit_windows;
mod limits;
mod listed_objects;
mod lists;
mod objects;
mod pages;
mod payment_amounts;
mod payments;
mod persistent_failures;
mod record_order;
mod repeated_events;
mod second_key;
mod silent_endpoints;
mod similar_values;
mod status_names;
mod totals;

use std::time::Duration;

use conformance_judge::judge;
use conformance_model::catalogue::judged_statements;
use conformance_model::mode::Mode;
use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, FORMAT_VERSION, Forgery, Inserts, List, ObjectKind, PageRequest,
    Purpose, ReceivedResponse, Recording, Side,
};
use conformance_model::verdict::Verdict;

use serde_json::{Value, json};

const LIVE: Caller = Caller::Own(Mode::Live);
const TEST: Caller = Caller::Own(Mode::Test);

/// Returns a recording of these exchanges, numbered from 1.
fn recording(exchanges: Vec<Exchange>) -> Recording {
    let mut exchanges = exchanges;
    for (number, exchange) in (1..).zip(&mut exchanges) {
        exchange.number = number;
    }
    Recording {
        format: FORMAT_VERSION,
        base: "http://pay.example/".into(),
        key_prefix: "svc".into(),
        without: [].into(),
        no_burst: None,
        inserts: Inserts::default(),
        exact_amounts: true,
        exchanges,
        deliveries: None,
    }
}

/// Returns an exchange with a JSON response, sent and received at the start of the run.
fn exchange(caller: Caller, purpose: Purpose, target: &str, status: u16, body: &Value) -> Exchange {
    let headers = vec![("content-type".into(), "application/json".into())];
    let outcome =
        ExchangeOutcome::Answered(ReceivedResponse { status, headers, body: body.to_string().into() });
    Exchange {
        number: 0,
        caller,
        purpose,
        target: target.into(),
        sent: Duration::ZERO,
        ended: Duration::ZERO,
        outcome,
    }
}

/// Returns a request of the account, whose response states this mode.
fn account(caller: Caller, mode: &str) -> Exchange {
    let body = json!({ "data": {}, "meta": { "mode": mode, "accepted_assets": [] } });
    exchange(caller, Purpose::Account, "/v1/account", 200, &body)
}

/// Returns a request of the account that must be refused, with this status.
fn refusal(caller: Caller, status: u16) -> Exchange {
    exchange(caller, Purpose::Refusal, "/v1/account", status, &json!({ "message": "No." }))
}

/// Returns a page that the test key read. `numbers`: the current page, the last page, the page size and the total.
fn page(request: PageRequest, rows: &Value, numbers: [u64; 4]) -> Exchange {
    let [current, last, size, total] = numbers;
    let filters: String = request.filters.iter().map(|(name, value)| format!("&{name}={value}")).collect();
    let link = |page: u64| format!("?page={page}&per_page={size}{filters}");
    let links = json!({ "first": link(1), "last": link(last), "prev": null, "next": null });
    let meta = json!({ "current_page": current, "last_page": last, "per_page": size, "total": total });
    let body = json!({ "data": rows, "links": links, "meta": meta });
    let target = request.list.path();
    exchange(TEST, Purpose::Page(request), target, 200, &body)
}

/// Returns the purpose of the first request for a single charge.
fn charge_purpose(id: &str, side: Side) -> Purpose {
    Purpose::Object { kind: ObjectKind::Charge, id: id.into(), side, round: 1 }
}

/// Returns the response of an exchange, which must have one.
fn response_mut(exchange: &mut Exchange) -> &mut ReceivedResponse {
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        panic!("the exchange has a response")
    };
    response
}

fn events_request(page: Option<u64>, per_page: u64) -> PageRequest {
    PageRequest { list: List::Events, filters: vec![], page, per_page: Some(per_page), link: None }
}

/// Checks the verdict on a statement.
#[track_caller]
fn check(recording: &Recording, id: &str, expected: &str) {
    let rows = judge(recording);
    let row = rows.iter().find(|row| row.id == id).expect("the statement exists");
    assert_eq!(row.verdict.as_str(), expected, "{:?}", row.verdict);
}

/// Checks that the debug text of a verdict contains a part: of the note, the finding, the reason or the remedy.
#[track_caller]
fn check_verdict_text(recording: &Recording, id: &str, part: &str) {
    let rows = judge(recording);
    let row = rows.iter().find(|row| row.id == id).expect("the statement exists");
    let verdict = format!("{:?}", row.verdict);
    assert!(verdict.contains(part), "{part:?} in {verdict}");
}

#[test]
fn no_statement_is_judged_by_an_empty_recording() {
    let rows = judge(&recording(Vec::new()));
    assert_eq!(rows.len(), judged_statements().len());
    for row in rows {
        assert!(matches!(row.verdict, Verdict::NotJudged { .. }), "{}: {:?}", row.id, row.verdict);
    }
}

#[test]
fn every_unjudged_statement_names_a_reason_and_a_remedy() {
    for row in judge(&recording(Vec::new())) {
        let Verdict::NotJudged { why, remedy } = row.verdict else { panic!("{} is judged", row.id) };
        assert!(!why.is_empty() && !remedy.is_empty(), "{}", row.id);
    }
}

#[test]
fn a_refusal_counts_only_beside_a_200_on_the_same_path() {
    let refused = refusal(Caller::NoKey, 401);
    check(&recording(vec![refused.clone()]), "auth.no_header", "not judged");
    let served = vec![account(LIVE, "live"), account(TEST, "test"), refused];
    check(&recording(served), "auth.no_header", "pass");
}

#[test]
fn a_missing_response_is_not_a_violation() {
    let mut lost = refusal(Caller::NoKey, 401);
    lost.outcome = ExchangeOutcome::NoResponse("connection reset".into());
    let served = vec![account(LIVE, "live"), account(TEST, "test"), lost];
    check(&recording(served), "auth.no_header", "not judged");
}

#[test]
fn only_401_refuses_a_key() {
    let forged = Caller::Forged(Forgery::Unknown);
    for (status, expected) in
        [(401, "pass"), (200, "fail"), (403, "fail"), (404, "fail"), (429, "not judged")]
    {
        let exchanges = vec![account(LIVE, "live"), account(TEST, "test"), refusal(forged, status)];
        check(&recording(exchanges), "auth.unknown_key", expected);
    }
}

#[test]
fn a_violated_should_statement_is_a_warning() {
    let forged = Caller::Forged(Forgery::OtherScheme);
    let exchanges = vec![account(LIVE, "live"), account(TEST, "test"), refusal(forged, 200)];
    check(&recording(exchanges), "auth.token_scheme", "warn");
}

#[test]
fn pages_of_a_list_that_grows_are_not_compared() {
    let rows = |ids: &[u64]| Value::from_iter(ids.iter().map(|id| json!({ "id": id.to_string() })));
    let pages = |total| {
        vec![
            page(events_request(None, 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]),
            page(events_request(Some(1), 2), &rows(&[5, 4]), [1, 3, 2, 5]),
            page(events_request(Some(2), 2), &rows(&[4, 3]), [2, 3, 2, total]),
        ]
    };
    check(&recording(pages(5)), "paging.joined", "fail");
    check(&recording(pages(6)), "paging.joined", "not judged");
}

#[test]
fn an_empty_list_has_no_page_or_one() {
    for (last, expected) in [(0, "not judged"), (1, "not judged"), (2, "fail")] {
        let empty = page(events_request(None, 25), &json!([]), [1, last, 25, 0]);
        check(&recording(vec![empty]), "paging.last_page", expected);
    }
}

#[test]
fn both_interpretations_of_the_invoice_filter_pass() {
    let invoice_event = json!({ "id": "a", "charge": null, "invoice": { "code": "in1" } });
    let charge_event = json!({ "id": "b", "charge": { "code": "ch1", "invoice": "in1" }, "invoice": null });
    let unrelated = json!({ "id": "c", "charge": { "code": "ch2", "invoice": null }, "invoice": null });
    let filtered = |rows: &Value| {
        let len = rows.as_array().map_or(0, Vec::len) as u64;
        let filters = vec![("invoice".into(), "in1".into())];
        let all = json!([invoice_event, charge_event, unrelated]);
        recording(vec![
            page(events_request(None, 100), &all, [1, 1, 100, 3]),
            page(PageRequest { filters, ..events_request(None, 100) }, rows, [1, 1, 100, len]),
        ])
    };
    for rows in [json!([invoice_event]), json!([invoice_event, charge_event])] {
        check(&filtered(&rows), "filters.invoice", "pass");
        check(&filtered(&rows), "filters.total", "pass");
    }
    check(&filtered(&json!([invoice_event, unrelated])), "filters.invoice", "fail");
    check(&filtered(&json!([])), "filters.invoice", "fail");
}

/// Returns reads of absent, foreign and absent events with the live key, and one round with the test key. Every second
/// round reads foreign, absent and foreign. `rounds`: the value of the header in each response of the live key.
fn rounds(header: &str, rounds: &[[&str; 3]]) -> Recording {
    let mut exchanges = Vec::new();
    for (caller, is_constant) in [(LIVE, false), (TEST, true)] {
        let event = |side, round, id: &str, status, body: &Value| {
            let purpose = Purpose::Event { id: id.into(), side, round };
            exchange(caller, purpose, &format!("/v1/events/{id}"), status, body)
        };
        exchanges.push(event(Side::Own, 1, "own", 200, &json!({ "id": "own" })));
        for (round, values) in (1..).zip(if is_constant { &[["a", "a", "a"]] } else { rounds }) {
            let sides = match round % 2 {
                1 => [Side::AbsentBefore, Side::Foreign, Side::AbsentAfter],
                _ => [Side::Foreign, Side::AbsentAfter, Side::Foreign],
            };
            for (side, value) in sides.into_iter().zip(values) {
                let id = format!("{side:?}");
                let mut event =
                    event(side, round, &id, 404, &json!({ "message": format!("No event {id}.") }));
                let ExchangeOutcome::Answered(response) = &mut event.outcome else {
                    panic!("the exchange has a response")
                };
                response.headers.push((header.into(), (*value).into()));
                exchanges.push(event);
            }
        }
    }
    recording(exchanges)
}

#[test]
fn a_difference_counts_only_if_it_follows_the_object_in_every_round() {
    let id = "isolation.indistinguishable";
    for (values, expected) in [
        (&[["a", "a", "a"]][..], "pass"),
        (&[["a", "b", "c"]], "pass"),
        (&[["a", "b", "a"]], "not judged"),
        (&[["a", "b", "a"], ["a", "a", "b"]], "pass"),
        // A value of every second response is on an absent object in the second round.
        (&[["a", "b", "a"], ["a", "b", "a"]], "pass"),
        (&[["a", "b", "a"], ["b", "a", "b"]], "fail"),
        (&[["a", "b", "a"], ["b", "a", "b"], ["a", "a", "a"]], "pass"),
    ] {
        check(&rounds("x-reason", values), id, expected);
    }
    for name in ["connection", "x-served-by", "via", "age", "x-request-id", "x-ratelimit-remaining"] {
        check(&rounds(name, &[["a", "b", "a"], ["b", "a", "b"]]), id, "pass");
    }
}

#[test]
fn the_finding_names_the_difference() {
    let rows = judge(&rounds("x-reason", &[["a", "b", "a"], ["b", "a", "b"]]));
    let row = rows.iter().find(|row| row.id == "isolation.indistinguishable").expect("the statement exists");
    let Verdict::Fail(finding) = &row.verdict else { panic!("{:?}", row.verdict) };
    assert_eq!(finding.actual, "header x-reason: b (otherwise a)");
}

/// Checks `paging.joined` for a list of five records: a page of 100, the second page of 4, and this page.
#[track_caller]
fn check_page(number: u64, size: u64, ids: &[u64], expected: &str) {
    let rows = |ids: &[u64]| Value::from_iter(ids.iter().map(|id| json!({ "id": id })));
    let pages = vec![
        page(events_request(None, 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]),
        page(events_request(Some(2), 4), &rows(&[1]), [2, 2, 4, 5]),
        page(events_request(Some(number), size), &rows(ids), [number, 5_u64.div_ceil(size), size, 5]),
    ];
    check(&recording(pages), "paging.joined", expected);
}

#[test]
fn every_page_equals_its_part_of_the_long_page() {
    check_page(1, 2, &[5, 4], "pass");
    check_page(3, 2, &[1], "pass");
    check_page(4, 2, &[], "pass");
    check_page(3, 2, &[2], "fail");
    check_page(3, 2, &[], "fail");
    check_page(3, 2, &[1, 0], "fail");
    check_page(4, 2, &[1], "fail");
    check_page(1, 3, &[5, 5, 4], "fail");
    check_page(1, 2, &[5], "fail");
}

#[test]
fn rows_without_an_identifier_may_differ_between_reads() {
    let rows =
        |seconds: &[u64]| Value::from_iter(seconds.iter().map(|seconds| json!({ "seconds_left": seconds })));
    let pages = |second: &[u64]| {
        recording(vec![
            page(events_request(None, 100), &rows(&[9, 9, 9]), [1, 1, 100, 3]),
            page(events_request(Some(2), 2), &rows(second), [2, 2, 2, 3]),
        ])
    };
    check(&pages(&[8]), "paging.joined", "pass");
    check(&pages(&[8, 8]), "paging.joined", "fail");
}

#[test]
fn a_row_of_both_modes_is_a_leak_only_if_it_is_equal_and_has_a_code() {
    let charges = |caller, row: &Value| {
        let request = PageRequest { list: List::Charges, ..events_request(None, 100) };
        Exchange { caller, ..page(request, &json!([row]), [1, 1, 100, 1]) }
    };
    let event = |caller, id| Exchange {
        caller,
        ..page(events_request(None, 100), &json!([{ "id": id }]), [1, 1, 100, 1])
    };
    let lists = |live: &Value, test: &Value| {
        recording(vec![event(LIVE, "a"), event(TEST, "b"), charges(LIVE, live), charges(TEST, test)])
    };
    let charge = json!({ "code": "k3m9x2q7", "status": "paid" });
    check(&lists(&charge, &charge), "isolation.lists", "fail");
    check(&lists(&charge, &json!({ "code": "k3m9x2q7", "status": "open" })), "isolation.lists", "pass");
    check(&lists(&json!({ "status": "paid" }), &json!({ "status": "paid" })), "isolation.lists", "pass");
    let numbered = json!({ "id": 1, "status": "paid" });
    check(&lists(&numbered, &numbered), "isolation.lists", "pass");
}
