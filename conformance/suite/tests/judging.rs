//! The judge alone, on recordings made by hand: no network, no clock.

use std::time::Duration;

use conformance::{
    Answer, Burst, Caller, Ending, Exchange, FORMAT, Forgery, Inserting, List, Mode, PageAsk, Purpose,
    Recording, Side, Verdict, judge, judged,
};
use serde_json::{Value, json};

const LIVE: Caller = Caller::Own(Mode::Live);
const TEST: Caller = Caller::Own(Mode::Test);

fn recording(exchanges: Vec<Exchange>) -> Recording {
    let mut exchanges = exchanges;
    for (number, exchange) in (1..).zip(&mut exchanges) {
        exchange.number = number;
    }
    Recording {
        format: FORMAT,
        base: "http://pay.example/".into(),
        key_prefix: "svc".into(),
        without: [].into(),
        no_burst: None,
        inserting: Inserting::default(),
        exchanges,
        deliveries: None,
    }
}

fn exchange(caller: Caller, purpose: Purpose, target: &str, status: u16, body: &Value) -> Exchange {
    let headers = vec![("content-type".into(), "application/json".into())];
    let ending = Ending::Answered(Answer { status, headers, body: body.to_string() });
    Exchange {
        number: 0,
        caller,
        purpose,
        target: target.into(),
        sent: Duration::ZERO,
        ended: Duration::ZERO,
        ending,
    }
}

fn account(caller: Caller, mode: &str) -> Exchange {
    let body = json!({ "data": {}, "meta": { "mode": mode, "accepted_assets": [] } });
    exchange(caller, Purpose::Account, "/v1/account", 200, &body)
}

fn refusal(caller: Caller, status: u16) -> Exchange {
    exchange(caller, Purpose::Refusal, "/v1/account", status, &json!({ "message": "No." }))
}

fn page(ask: PageAsk, rows: &Value, meta: [u64; 4]) -> Exchange {
    let [current, last, size, total] = meta;
    let links = json!({ "first": "?page=1", "last": "?page=1", "prev": null, "next": null });
    let meta = json!({ "current_page": current, "last_page": last, "per_page": size, "total": total });
    let body = json!({ "data": rows, "links": links, "meta": meta });
    let target = ask.list.path();
    exchange(TEST, Purpose::Page(ask), target, 200, &body)
}

fn ask(page: Option<u64>, per_page: u64) -> PageAsk {
    PageAsk { list: List::Events, filters: vec![], page, per_page: Some(per_page), link: None }
}

#[track_caller]
fn check(recording: &Recording, id: &str, expected: &str) {
    let rows = judge(recording);
    let row = rows.iter().find(|row| row.id == id).expect("a statement of that name");
    assert_eq!(row.verdict.word(), expected, "{:?}", row.verdict);
}

#[test]
fn silence_is_never_success() {
    let rows = judge(&recording(Vec::new()));
    assert_eq!(rows.len(), judged().len());
    for row in rows {
        assert!(matches!(row.verdict, Verdict::NotJudged { .. }), "{}: {:?}", row.id, row.verdict);
    }
}

#[test]
fn every_gap_names_a_remedy() {
    for row in judge(&recording(Vec::new())) {
        let Verdict::NotJudged { why, remedy } = row.verdict else { panic!("{} is judged", row.id) };
        assert!(!why.is_empty() && !remedy.is_empty(), "{}", row.id);
    }
}

#[test]
fn a_refusal_counts_only_beside_a_200_on_the_same_path() {
    let refused = refusal(Caller::Nobody, 401);
    check(&recording(vec![refused.clone()]), "auth.no_header", "not judged");
    let served = vec![account(LIVE, "live"), account(TEST, "test"), refused];
    check(&recording(served), "auth.no_header", "pass");
}

#[test]
fn a_lost_answer_is_no_violation() {
    let mut lost = refusal(Caller::Nobody, 401);
    lost.ending = Ending::Lost("connection reset".into());
    let served = vec![account(LIVE, "live"), account(TEST, "test"), lost];
    check(&recording(served), "auth.no_header", "not judged");
}

#[test]
fn only_401_refuses_a_key() {
    let forged = Caller::Forged(Forgery::Unknown);
    for (status, expected) in
        [(401, "pass"), (200, "fail"), (403, "fail"), (404, "fail"), (429, "not judged")]
    {
        let asked = vec![account(LIVE, "live"), account(TEST, "test"), refusal(forged, status)];
        check(&recording(asked), "auth.unknown_key", expected);
    }
}

#[test]
fn a_derived_statement_warns() {
    let forged = Caller::Forged(Forgery::OtherScheme);
    let asked = vec![account(LIVE, "live"), account(TEST, "test"), refusal(forged, 200)];
    check(&recording(asked), "auth.other_scheme", "warn");
}

/// Shots evenly over a time; the last one is refused if it says so.
fn burst(served: u32, refused: bool, over: Duration) -> Recording {
    let shots = served + u32::from(refused);
    let shot = |at: u32| {
        let status = if refused && at == served { 429 } else { 200 };
        let purpose = Purpose::Burst(Burst::Shot { series: 1 });
        let mut shot = exchange(TEST, purpose, "/v1/account", status, &json!({ "message": "Wait." }));
        shot.sent = over * at / shots;
        shot.ended = over * (at + 1) / shots;
        shot
    };
    recording((0..shots).map(shot).collect())
}

#[test]
fn a_burst_is_read_by_how_long_it_took() {
    let none = Duration::ZERO;
    check(&burst(120, true, none), "limits.refused", "pass");
    check(&burst(123, true, Duration::from_secs(2)), "limits.refused", "pass");
    check(&burst(242, false, Duration::from_secs(9)), "limits.refused", "fail");
    check(&burst(150, true, none), "limits.refused", "not judged");
}

#[test]
fn too_slow_a_burst_decides_nothing() {
    let slow = burst(100, false, Duration::from_secs(56));
    check(&slow, "limits.refused", "not judged");
    check(&slow, "limits.served", "not judged");
    let rows = judge(&slow);
    let why = format!("{:?}", rows.iter().find(|row| row.id == "limits.refused").map(|row| &row.verdict));
    assert!(why.contains("only 100 requests could be sent in 56 s"), "{why}");
    assert!(why.contains("5 requests a second"), "{why}");
}

#[test]
fn an_early_refusal_is_repeated_before_it_is_judged() {
    check(&burst(119, true, Duration::ZERO), "limits.served", "not judged");
}

/// A burst, and three rounds over three paths of which one is served each time.
fn rounds(over: Duration) -> Recording {
    let mut burst = burst(120, true, Duration::ZERO);
    for round in 1..=3 {
        for (place, path) in (0..).zip(["/v1/account", "/v1/charges", "/v1/events"]) {
            let purpose = Purpose::Burst(Burst::Round { series: 1, round });
            let status = if place == 1 { 200 } else { 429 };
            let mut it = exchange(TEST, purpose, path, status, &json!({}));
            let at = u32::from(round - 1) * 3 + place;
            (it.sent, it.ended) = (over * at / 9, over * (at + 1) / 9);
            burst.exchanges.push(it);
        }
    }
    recording(burst.exchanges)
}

#[test]
fn a_path_is_exempt_only_if_no_bucket_explains_it() {
    check(&rounds(Duration::ZERO), "limits.every_path", "fail");
    check(&rounds(Duration::from_millis(900)), "limits.every_path", "fail");
    check(&rounds(Duration::from_millis(1_500)), "limits.every_path", "not judged");
}

#[test]
fn pages_of_a_list_that_grows_are_not_compared() {
    let rows = |ids: &[u64]| Value::from_iter(ids.iter().map(|id| json!({ "id": id.to_string() })));
    let pages = |total| {
        vec![
            page(ask(None, 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]),
            page(ask(Some(1), 2), &rows(&[5, 4]), [1, 3, 2, 5]),
            page(ask(Some(2), 2), &rows(&[4, 3]), [2, 3, 2, total]),
        ]
    };
    check(&recording(pages(5)), "paging.joined", "fail");
    check(&recording(pages(6)), "paging.joined", "not judged");
}

#[test]
fn an_empty_list_has_no_page_or_one() {
    for (last, expected) in [(0, "not judged"), (1, "not judged"), (2, "fail")] {
        let empty = page(ask(None, 25), &json!([]), [1, last, 25, 0]);
        check(&recording(vec![empty]), "paging.last_page", expected);
    }
}

#[test]
fn both_readings_of_the_invoice_filter_are_honest() {
    let invoice_event = json!({ "id": "a", "charge": null, "invoice": { "code": "in1" } });
    let charge_event = json!({ "id": "b", "charge": { "code": "ch1", "invoice": "in1" }, "invoice": null });
    let stranger = json!({ "id": "c", "charge": { "code": "ch2", "invoice": null }, "invoice": null });
    let filtered = |rows: &Value| {
        let len = rows.as_array().map_or(0, Vec::len) as u64;
        let filters = vec![("invoice".into(), "in1".into())];
        let all = json!([invoice_event, charge_event, stranger]);
        recording(vec![
            page(ask(None, 100), &all, [1, 1, 100, 3]),
            page(PageAsk { filters, ..ask(None, 100) }, rows, [1, 1, 100, len]),
        ])
    };
    for rows in [json!([invoice_event]), json!([invoice_event, charge_event])] {
        check(&filtered(&rows), "filters.invoice", "pass");
        check(&filtered(&rows), "filters.total", "pass");
    }
    check(&filtered(&json!([invoice_event, stranger])), "filters.invoice", "fail");
    check(&filtered(&json!([])), "filters.invoice", "fail");
}

/// Absent, foreign, absent, with the value of one header each, for each round; and the other direction.
fn trios(rounds: &[[&str; 3]]) -> Recording {
    let mut exchanges = Vec::new();
    for (caller, other) in [(LIVE, false), (TEST, true)] {
        let event = |side, round, id: &str, status, body: &Value| {
            let purpose = Purpose::Event { id: id.into(), side, round };
            exchange(caller, purpose, &format!("/v1/events/{id}"), status, body)
        };
        exchanges.push(event(Side::Own, 1, "own", 200, &json!({ "id": "own" })));
        for (round, servers) in (1..).zip(if other { &[["a", "a", "a"]] } else { rounds }) {
            let sides = [Side::AbsentBefore, Side::Foreign, Side::AbsentAfter];
            for (side, server) in sides.into_iter().zip(servers) {
                let id = format!("{side:?}");
                let mut it = event(side, round, &id, 404, &json!({ "message": format!("No event {id}.") }));
                let Ending::Answered(answer) = &mut it.ending else { panic!("an answer") };
                answer.headers.push(("x-served-by".into(), (*server).into()));
                exchanges.push(it);
            }
        }
    }
    recording(exchanges)
}

#[test]
fn a_difference_must_last_to_be_a_trace() {
    check(&trios(&[["a", "a", "a"]]), "isolation.indistinguishable", "pass");
    check(&trios(&[["a", "b", "a"], ["a", "a", "b"]]), "isolation.indistinguishable", "pass");
    check(&trios(&[["a", "b", "c"]]), "isolation.indistinguishable", "pass");
    check(&trios(&[["a", "b", "a"], ["a", "b", "a"]]), "isolation.indistinguishable", "fail");
}

#[test]
fn the_failure_names_the_difference() {
    let rows = judge(&trios(&[["a", "b", "a"], ["a", "b", "a"]]));
    let row = rows.iter().find(|row| row.id == "isolation.indistinguishable").expect("a row");
    let Verdict::Fail(finding) = &row.verdict else { panic!("{:?}", row.verdict) };
    assert_eq!(finding.actual, "header x-served-by: b (otherwise a)");
}

/// A burst of which so many are served and so many get a 503, and a request a minute later.
fn unavailable(served: u32, refused: u32, afterwards: u16) -> Recording {
    let mut all = burst(served, false, Duration::ZERO).exchanges;
    let shot = Purpose::Burst(Burst::Shot { series: 1 });
    let busy = json!({ "message": "Service Temporarily Unavailable" });
    all.extend((0..refused).map(|_| exchange(TEST, shot.clone(), "/v1/account", 503, &busy)));
    let mut later = exchange(TEST, Purpose::Account, "/v1/account", afterwards, &json!({}));
    (later.sent, later.ended) = (Duration::from_secs(61), Duration::from_secs(61));
    all.push(later);
    recording(all)
}

#[test]
fn a_limit_that_answers_503_is_told_from_an_outage() {
    check(&unavailable(120, 121, 200), "limits.refused", "fail");
    check(&unavailable(120, 60, 200), "limits.refused", "fail");
    // Too few in a row, too early, or for good: that is a server in trouble.
    check(&unavailable(120, 59, 200), "limits.refused", "not judged");
    check(&unavailable(119, 121, 200), "limits.refused", "not judged");
    check(&unavailable(120, 121, 503), "limits.refused", "not judged");
}

/// A refusal that asks for some patience, then so many requests in rounds, each half a second after the other.
fn after_refusal(retry_after: &str, statuses: &[u16], apart: Duration) -> Recording {
    let mut all = burst(120, true, Duration::ZERO).exchanges;
    let told = |it: &mut Exchange| {
        if let Ending::Answered(answer) = &mut it.ending
            && answer.status == 429
        {
            answer.headers.push(("retry-after".into(), retry_after.into()));
        }
    };
    for (place, status) in (0_u32..).zip(statuses) {
        let purpose = Purpose::Burst(Burst::Round { series: 1, round: 1 });
        let mut it = exchange(TEST, purpose, &format!("/v1/{place}"), *status, &json!({}));
        (it.sent, it.ended) = (apart * place, apart * (place + 1));
        all.push(it);
    }
    all.iter_mut().for_each(told);
    recording(all)
}

#[test]
fn a_refusal_that_is_forgotten_at_once_is_no_limit() {
    let quick = Duration::from_millis(1);
    check(&after_refusal("60", &[200; 5], quick), "limits.refused", "fail");
    check(&after_refusal("60", &[200, 200, 429, 200, 200], quick), "limits.refused", "pass");
    // A window may end where the server says that it does, and a bucket refills.
    check(&after_refusal("1", &[200; 5], quick), "limits.refused", "pass");
    check(&after_refusal("60", &[200; 5], Duration::from_millis(500)), "limits.refused", "pass");
    check(&after_refusal("60", &[200], quick), "limits.refused", "pass");
}

#[test]
fn a_retry_after_of_another_unit_is_shown_by_who_is_served_before() {
    let served_after = |told: &str, seconds| {
        let mut all = after_refusal(told, &[429], Duration::ZERO).exchanges;
        let mut later = exchange(TEST, Purpose::Account, "/v1/account", 200, &json!({}));
        (later.sent, later.ended) = (Duration::from_secs(seconds), Duration::from_secs(seconds));
        all.push(later);
        recording(all)
    };
    check(&served_after("60000", 61), "limits.retry_after", "fail");
    check(&served_after("1831", 61), "limits.retry_after", "fail");
    check(&served_after("1830", 61), "limits.retry_after", "pass");
    check(&served_after("60000", 59), "limits.retry_after", "pass");
    check(&served_after("75", 61), "limits.retry_after", "pass");
}

/// A long page of five, and another page of which the rows are given by the numbers of their ids.
#[track_caller]
fn check_page(number: u64, size: u64, ids: &[u64], expected: &str) {
    let rows = |ids: &[u64]| Value::from_iter(ids.iter().map(|id| json!({ "id": id })));
    let pages = vec![
        page(ask(None, 100), &rows(&[5, 4, 3, 2, 1]), [1, 1, 100, 5]),
        page(ask(Some(2), 4), &rows(&[1]), [2, 2, 4, 5]),
        page(ask(Some(number), size), &rows(ids), [number, 5_u64.div_ceil(size), size, 5]),
    ];
    check(&recording(pages), "paging.joined", expected);
}

#[test]
fn every_page_has_its_place_in_the_long_one() {
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
fn rows_without_a_name_may_look_different_each_time() {
    let rows = |left: &[u64]| Value::from_iter(left.iter().map(|left| json!({ "seconds_left": left })));
    let pages = |second: &[u64]| {
        recording(vec![
            page(ask(None, 100), &rows(&[9, 9, 9]), [1, 1, 100, 3]),
            page(ask(Some(2), 2), &rows(second), [2, 2, 2, 3]),
        ])
    };
    check(&pages(&[8]), "paging.joined", "pass");
    check(&pages(&[8, 8]), "paging.joined", "fail");
}

#[test]
fn rows_of_both_modes_are_the_same_only_if_all_of_them_is() {
    let charges = |caller, row: &Value| {
        let ask = PageAsk { list: List::Charges, ..ask(None, 100) };
        Exchange { caller, ..page(ask, &json!([row]), [1, 1, 100, 1]) }
    };
    let event =
        |caller, id| Exchange { caller, ..page(ask(None, 100), &json!([{ "id": id }]), [1, 1, 100, 1]) };
    let both = |live: &Value, test: &Value| {
        recording(vec![event(LIVE, "a"), event(TEST, "b"), charges(LIVE, live), charges(TEST, test)])
    };
    let one = json!({ "code": "k3m9x2q7", "status": "paid" });
    check(&both(&one, &one), "isolation.lists", "fail");
    check(&both(&one, &json!({ "code": "k3m9x2q7", "status": "open" })), "isolation.lists", "pass");
    check(&both(&json!({ "status": "paid" }), &json!({ "status": "paid" })), "isolation.lists", "pass");
    let first = json!({ "id": 1, "status": "paid" });
    check(&both(&first, &first), "isolation.lists", "pass");
}
