//! Responses of a cache: their detection, and the verdicts that they prevent.

use std::time::Duration;

use conformance_model::reading::{BurstCounts, LimiterKind};
use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, Forgery, List, PageRequest, Purpose, Side,
};

use super::limits::burst;
use super::{
    LIVE, TEST, account, check, check_verdict_text, events_request, exchange, page, recording, refusal,
};

use serde_json::json;

const NOON: &str = "Thu, 01 Jan 2026 12:00:00 GMT";

fn with_header(name: &str, value: &str, exchange: Exchange) -> Exchange {
    let mut exchange = exchange;
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        panic!("the exchange has a response")
    };
    response.headers.push((name.into(), value.into()));
    exchange
}

/// Checks the verdict on a request for an absent event, sent ten seconds after the requests `before`.
#[track_caller]
fn check_absent(before: &[Exchange], absent: Exchange, expected: &str) {
    let own = [event(Side::Own, 200)];
    let sent_at = Duration::from_secs(10);
    let absent = Exchange { sent: sent_at, ended: sent_at, ..absent };
    check(&recording([&own, before, &[absent]].concat()), "errors.not_found", expected);
}

fn absent_event(status: u16) -> Exchange {
    event(Side::AbsentBefore, status)
}

fn event(side: Side, status: u16) -> Exchange {
    let purpose = Purpose::Event { id: "a".into(), side, round: 1 };
    exchange(TEST, purpose, &format!("/v1/events/{side:?}"), status, &json!({ "message": "No." }))
}

/// Returns a request for the same path as [`absent_event`], with the same response, that no statement uses.
fn unused_response(status: u16) -> Exchange {
    Exchange { purpose: Purpose::Choice { name: "events".into() }, ..absent_event(status) }
}

#[test]
fn a_cache_is_detected_by_its_headers() {
    for (name, value, expected) in [
        ("age", "1", "not judged"),
        ("age", "0", "fail"),
        ("age", "old", "fail"),
        ("x-cache", "HIT from edge", "not judged"),
        ("x-cache", "TCP_HIT", "not judged"),
        ("cf-cache-status", "hit", "not judged"),
        ("x-cache-status", "HIT", "not judged"),
        ("cache-status", "edge; hit; ttl=30", "not judged"),
        ("x-varnish", "32770 32768", "not judged"),
        ("x-varnish", "32770", "fail"),
        ("x-cache", "MISS", "fail"),
        ("x-cache", "white", "fail"),
        ("x-powered-by", "HIT", "fail"),
    ] {
        check_absent(&[], with_header(name, value, absent_event(200)), expected);
    }
    check_absent(&[], with_header("age", "1", absent_event(404)), "pass");
}

#[test]
fn a_cache_is_detected_by_a_repeated_older_response() {
    let dated = |seconds: u32, exchange| {
        with_header("date", &NOON.replace(":00 GMT", &format!(":{seconds:02} GMT")), exchange)
    };
    let later_refusal = |seconds| dated(seconds, refusal(Caller::NoKey, 401));
    let repeated = || dated(0, absent_event(200));
    let first = || dated(0, unused_response(200));
    check_absent(&[first(), later_refusal(3)], repeated(), "not judged");
    check_absent(&[first(), later_refusal(2)], repeated(), "fail");
    check_absent(&[later_refusal(3), first()], repeated(), "fail");
    check_absent(&[later_refusal(3)], repeated(), "fail");
    check_absent(&[], repeated(), "fail");
    check_absent(&[dated(0, unused_response(403)), later_refusal(3)], repeated(), "fail");
    check_absent(&[first(), later_refusal(3)], dated(0, absent_event(403)), "fail");
    check_absent(&[dated(1, unused_response(200)), later_refusal(9)], repeated(), "fail");
    // Two replicas with different clocks.
    let recent = Exchange { ended: Duration::from_secs(9), ..first() };
    check_absent(&[recent, later_refusal(3)], repeated(), "fail");
    let other_path = Exchange { target: "/v1/other".into(), ..first() };
    check_absent(&[other_path, later_refusal(3)], repeated(), "fail");
    let mut other_body = first();
    let ExchangeOutcome::Answered(response) = &mut other_body.outcome else {
        panic!("the exchange has a response")
    };
    response.body = format!("{} ", &*response.body).into();
    check_absent(&[other_body, later_refusal(3)], repeated(), "fail");
}

#[test]
fn a_cache_excuses_only_statements_that_use_the_response() {
    let incomplete = |request: PageRequest| page(request, &json!([{ "id": 1, "type": "a" }]), [1, 1, 100, 2]);
    let filters = vec![("type".to_owned(), "b".to_owned())];
    let by_type = PageRequest { filters, ..events_request(None, 100) };
    assert_eq!(by_type.list, List::Events);
    let aged = |exchange| with_header("age", "7", exchange);
    let plain_aged =
        recording(vec![aged(incomplete(events_request(None, 100))), incomplete(by_type.clone())]);
    let filtered_aged = recording(vec![incomplete(events_request(None, 100)), aged(incomplete(by_type))]);
    check(&plain_aged, "paging.length", "not judged");
    check(&filtered_aged, "paging.length", "fail");
    check(&filtered_aged, "filters.type", "not judged");
}

#[test]
fn data_of_another_key_is_a_violation_even_from_a_cache() {
    let accounts = || vec![account(LIVE, "live"), account(TEST, "test")];
    let forged = with_header("age", "7", refusal(Caller::Forged(Forgery::Unknown), 200));
    check(&recording([accounts(), vec![forged]].concat()), "auth.unknown_key", "fail");
    let refused = exchange(TEST, Purpose::AfterRefusal, "/v1/account", 401, &json!({ "message": "No." }));
    let cached_refusal = [accounts(), vec![with_header("x-cache", "HIT", refused)]].concat();
    check(&recording(cached_refusal), "auth.after_refusal", "fail");
    let other_mode = with_header("age", "7", account(TEST, "live"));
    check(&recording(vec![account(LIVE, "live"), other_mode]), "account.mode", "fail");
}

#[test]
fn cached_responses_in_a_burst_are_not_counted() {
    let mut measured = burst(121, true, Duration::ZERO);
    measured.exchanges[7] = with_header("age", "1", measured.exchanges[7].clone());
    check(&measured, "limits.refused", "pass");
    let mut measured = burst(120, true, Duration::ZERO);
    for exchange in &mut measured.exchanges[7..90] {
        *exchange = with_header("age", "1", exchange.clone());
    }
    // A limiter may or may not count cached responses.
    check(&measured, "limits.served", "pass");
    let mut measured = burst(60, false, Duration::ZERO);
    check(&measured, "limits.refused", "not judged");
    measured.exchanges[7] = with_header("age", "1", measured.exchanges[7].clone());
    check(&measured, "limits.refused", "not judged");
    // The reason is the number of requests, because one cached response decides nothing.
    check_verdict_text(&measured, "limits.refused", "only 60 requests could be sent");
    let mut mostly_cached = burst(130, false, Duration::ZERO);
    for exchange in &mut mostly_cached.exchanges[7..120] {
        *exchange = with_header("age", "1", exchange.clone());
    }
    check_verdict_text(&mostly_cached, "limits.refused", "a cache responded to 113 requests of the burst");
}

#[test]
fn cached_responses_do_not_hide_the_first_refusal() {
    for (served, cached, expected) in [
        (126, 6, LimiterKind::Exact),
        (126, 9, LimiterKind::Exact),
        (126, 2, LimiterKind::WindowBoundary),
        (119, 2, LimiterKind::Early),
    ] {
        let mut measured = burst(served, true, Duration::ZERO);
        for exchange in &mut measured.exchanges[7..7 + cached] {
            *exchange = with_header("x-cache", "HIT", exchange.clone());
        }
        assert_eq!(
            BurstCounts::from_burst(&measured, 1).expect("a burst").limiter_kind(),
            expected,
            "{served} with {cached} cached"
        );
    }
}

#[test]
fn a_violation_in_an_uncached_response_counts_beside_a_cached_one() {
    let aged = with_header("age", "1", absent_event(200));
    check(&recording(vec![event(Side::Own, 200), aged, absent_event(200)]), "errors.not_found", "fail");
}
