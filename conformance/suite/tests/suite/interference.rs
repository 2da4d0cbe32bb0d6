//! Caches in front of a service, and the kind of limiter that a thorough check determines.

use std::time::Duration;

use ::mutants::fake::{EditableResponse, FakeServer, Limiter, assert_run, http_server, ids_with_verdicts};
use conformance::{Mode, Plan, report};
use serde_json::json;

/// Returns a server that violates a statement about lists, and sets a header in the faulty responses.
fn faulty_server_with_header(name: &'static str, value: &'static str) -> FakeServer {
    let mut server = FakeServer::default();
    server.rewrite_responses(move |request, response| {
        if request.path == "/v1/invoices" && response.status == 200 {
            *response = EditableResponse::json(404, json!({ "message": "Not found." }));
            response.set_header(name, value);
        }
    });
    server
}

#[test]
fn a_cached_response_is_not_a_violation() {
    for (name, value) in [("age", "7"), ("x-cache", "HIT from edge"), ("cf-cache-status", "HIT")] {
        let outcome = assert_run(
            faulty_server_with_header(name, value),
            |plan| plan.quick = true,
            3,
            &[
                "a cache responded instead of the service",
                "check the service without the cache",
                "A cache in front",
            ],
        );
        assert_eq!(ids_with_verdicts(&outcome, &["fail"]), Vec::<String>::new());
    }
}

#[test]
fn a_response_that_a_cache_forwarded_is_judged() {
    for (name, value) in [("age", "0"), ("x-cache", "MISS"), ("cf-cache-status", "DYNAMIC")] {
        let outcome = assert_run(faulty_server_with_header(name, value), |plan| plan.quick = true, 1, &[]);
        assert!(
            ids_with_verdicts(&outcome, &["fail"]).contains(&"lists.served".to_owned()),
            "{name}: {value}"
        );
    }
}

#[test]
fn some_cached_responses_in_a_burst_do_not_prevent_verdicts_on_limits() {
    let mut server = FakeServer::default();
    let mut requests = 0;
    server.rewrite_responses(move |request, response| {
        requests += 1;
        if request.path == "/v1/account" && requests > 100 {
            response.set_header("age", "3");
        }
    });
    let outcome = assert_run(server, |_| {}, 0, &["exit 0"]);
    assert!(ids_with_verdicts(&outcome, &["pass"]).contains(&"limits.refused".to_owned()));
}

#[test]
fn a_date_that_goes_back_reveals_a_cache() {
    let mut server = FakeServer::default();
    let clock = server.clock.clone();
    server.response_time = Duration::from_millis(200);
    let mut first = None;
    server.rewrite_responses(move |request, response| {
        let now = http_server::http_date(clock.micros() / 1_000_000);
        let is_cached = request.path == "/v1/events"
            && request.number("per_page") == Some(100)
            && request.query.len() == 1
            && request.mode == Some(Mode::Live);
        let date = if is_cached { first.get_or_insert(now).clone() } else { now };
        response.set_header("date", &date);
    });
    assert_run(server, |_| {}, 0, &["A cache in front", "by Date"]);
}

#[test]
fn a_constant_date_does_not_reveal_a_cache() {
    let mut server = FakeServer::default();
    server.rewrite_responses(|_, response| response.set_header("date", "Thu, 01 Jan 2026 00:00:00 GMT"));
    let outcome = assert_run(server, |_| {}, 0, &[]);
    assert!(!report::text(&outcome, report::Style::Plain).contains("A cache in front"));
}

/// Returns a server with a `Date` header and slow responses, whose clock starts at a second of a minute.
fn slow_server(limiter: Limiter, start_second: u64) -> FakeServer {
    let mut server =
        FakeServer { limiter, response_time: Duration::from_millis(60), ..FakeServer::default() };
    server.clock.advance(Duration::from_secs(start_second));
    let clock = server.clock.clone();
    server.rewrite_responses(move |_, response| {
        response.set_header("date", &http_server::http_date(clock.micros() / 1_000_000))
    });
    server
}

#[test]
fn a_thorough_check_distinguishes_an_aligned_window_from_a_bucket() {
    let thorough = |plan: &mut Plan| plan.thorough = true;
    assert_run(
        slow_server(Limiter::AlignedWindow, 55),
        thorough,
        0,
        &["in the next minute exact, at the 121st"],
    );
    assert_run(
        slow_server(Limiter::Bucket, 55),
        thorough,
        0,
        &["in the next minute a refilling bucket still"],
    );
    assert_run(
        slow_server(Limiter::Sliding, 0),
        thorough,
        0,
        &["exact: the 121st request; in the next minute exact"],
    );
}

#[test]
fn a_thorough_check_stays_within_its_budget() {
    let outcome = assert_run(slow_server(Limiter::AlignedWindow, 30), |plan| plan.thorough = true, 0, &[]);
    assert!(outcome.ledger.in_bursts <= outcome.budget.burst, "{:?}", outcome.ledger);
    assert!(outcome.budget.to_string().contains("bursts of about 270"), "{}", outcome.budget);
}
