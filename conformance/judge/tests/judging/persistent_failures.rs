//! Permanent failures of a kind of requests, as opposed to transient ones.

use std::time::Duration;

use conformance_model::recording::{Burst, Caller, Exchange, ExchangeOutcome, Forgery, Purpose, Side};

use super::limits::burst;
use super::{LIVE, TEST, account, check, exchange, recording, refusal};

use serde_json::json;

/// Checks the verdict if these requests fail between served requests with valid keys.
#[track_caller]
fn check_between(failed: Vec<Exchange>, statement: &str, expected: &str) {
    let served = || vec![account(LIVE, "live"), account(TEST, "test")];
    check(&recording([served(), failed, served()].concat()), statement, expected);
}

fn absent_event(status: u16) -> Exchange {
    let purpose = Purpose::Event { id: "a".into(), side: Side::AbsentBefore, round: 1 };
    exchange(TEST, purpose, "/v1/events/a", status, &json!({ "message": "No." }))
}

fn without_response(exchange: Exchange, reason: &str) -> Exchange {
    Exchange { outcome: ExchangeOutcome::NoResponse(reason.into()), ..exchange }
}

#[test]
fn a_permanent_failure_of_a_kind_of_requests_is_a_violation() {
    for status in [429, 502, 503, 504] {
        check_between(vec![refusal(Caller::NoKey, status); 3], "auth.no_header", "fail");
    }
    let closed = without_response(refusal(Caller::NoKey, 0), "connection closed before message completed");
    check_between(vec![closed; 3], "auth.no_header", "fail");
    check_between(vec![absent_event(503); 3], "errors.not_found", "fail");
}

#[test]
fn one_or_two_failures_are_transient() {
    check_between(vec![refusal(Caller::NoKey, 503); 2], "auth.no_header", "not judged");
    check_between(vec![absent_event(503); 2], "errors.not_found", "not judged");
}

#[test]
fn an_address_with_malformed_responses_only_is_a_violation() {
    let malformed = || {
        without_response(account(LIVE, "live"), "malformed response: 200 with a body cut short: end of file")
    };
    let refused = || without_response(account(LIVE, "live"), "connection refused");
    let (live, test) = (account(LIVE, "live"), account(TEST, "test"));
    for (exchanges, expected) in [
        (vec![malformed(); 3], "fail"),
        (vec![malformed(); 2], "not judged"),
        (vec![refused(); 3], "not judged"),
        ([vec![malformed(); 3], vec![live]].concat(), "pass"),
        ([vec![malformed(); 3], vec![Exchange { target: "/v1/events".into(), ..test }]].concat(), "fail"),
    ] {
        check(&recording(exchanges), "answers.json", expected);
    }
}

#[test]
fn a_request_that_was_not_sent_does_not_count() {
    let unsent = without_response(refusal(Caller::NoKey, 0), "not asked: the server had stopped responding");
    check_between(vec![unsent; 3], "auth.no_header", "not judged");
}

#[test]
fn a_server_that_stays_down_is_not_a_violation() {
    let served = vec![account(LIVE, "live"), account(TEST, "test")];
    let refused = vec![refusal(Caller::NoKey, 503); 3];
    check(&recording([served, refused].concat()), "auth.no_header", "not judged");
}

#[test]
fn a_lockout_starts_after_refusals() {
    let forged = |status| refusal(Caller::Forged(Forgery::Unknown), status);
    let locked = vec![refusal(Caller::NoKey, 401), forged(429), forged(429), forged(429)];
    check_between(locked, "auth.unknown_key", "not judged");
    check_between(vec![forged(429); 3], "auth.unknown_key", "fail");
}

#[test]
fn a_limit_that_refuses_without_responses_or_with_503_is_a_violation() {
    let burst_request = |caller, request, status| {
        exchange(caller, Purpose::Burst(request), "/v1/account", status, &json!({}))
    };
    let lost =
        || without_response(burst_request(TEST, Burst::UntilRefused { series: 1 }, 0), "connection closed");
    let no_responses = |live_status| {
        let served = burst(120, false, Duration::ZERO).exchanges;
        let still = without_response(burst_request(TEST, Burst::StillRefused, 0), "connection closed");
        let after =
            vec![lost(), lost(), lost(), burst_request(LIVE, Burst::LiveKeyAfterRefusal, live_status), still];
        recording([served, after].concat())
    };
    check(&no_responses(200), "limits.refused", "fail");
    check(&no_responses(503), "limits.refused", "not judged");

    // A bucket serves one request after two refusals.
    let refilling_bucket = |repetitions| {
        let requests = (0..repetitions).flat_map(|_| {
            let request = |status| burst_request(TEST, Burst::UntilRefused { series: 1 }, status);
            [request(503), request(503), request(200)]
        });
        let served = burst(120, false, Duration::ZERO).exchanges;
        let later = Duration::from_secs(61);
        let after = [account(LIVE, "live"), account(TEST, "test")];
        let after = after.map(|after| Exchange { sent: later, ended: later, ..after });
        recording(served.into_iter().chain(requests).chain(after).collect())
    };
    check(&refilling_bucket(15), "limits.refused", "fail");
    check(&refilling_bucket(14), "limits.refused", "not judged");
}
