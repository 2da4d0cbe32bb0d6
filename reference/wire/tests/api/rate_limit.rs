//! The rate limit: 120 requests per minute and key.

use reference_core::{command::Command, mode::Mode, time::Span};
use serde_json::json;

use crate::test_service::{ReceivedResponse, TICK, TestRequest, TestService};

fn remaining_quota(response: &ReceivedResponse) -> u64 {
    assert_eq!(response.header("x-ratelimit-limit"), Some("120"));
    response
        .header("x-ratelimit-remaining")
        .expect("responses to known keys have the header")
        .parse()
        .expect("a number")
}

#[test]
fn the_121st_request_is_refused_until_retry_after_has_passed() {
    let mut service = TestService::with_rate_limit();
    for remaining in (0..120).rev() {
        assert_eq!(remaining_quota(&service.get("/v1/account")), remaining);
    }
    service.wait(Span::millis(10_500));
    let refused = service.get("/v1/account");
    assert_eq!((refused.status(), remaining_quota(&refused)), (429, 0));
    assert_eq!(refused.header("retry-after"), Some("50"), "49.5 seconds, rounded up");
    service.wait(Span::millis(49_500));
    service.now = service.now.minus(TICK);
    let refused = service.get("/v1/account");
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    service.wait(TICK);
    assert_eq!(remaining_quota(&service.get("/v1/account")), 119, "refused requests did not count");
}

#[test]
fn every_response_except_401_and_429_counts() {
    let mut service = TestService::with_rate_limit();
    let live = service.live_key.clone();
    let requests = [
        TestRequest::new("GET", "/v1/nowhere").key(&live),
        TestRequest::new("GET", "/v1/charges/aaaaaaaaaaaa").key(&live),
        TestRequest::new("PUT", "/v1/charges").key(&live),
        TestRequest::new("GET", "/v1/charges?page=0").key(&live),
        TestRequest::new("POST", "/v1/charges").key(&live).json(&json!({})),
        TestRequest::new("POST", "/v1/charges").key(&live).raw_body("text/plain", "x"),
        TestRequest::new("POST", "/v1/charges").key(&live).raw_body("application/json", "{"),
        TestRequest::new("POST", "/v1/charges")
            .key(&live)
            .json(&json!({"asset": "BTC", "amount": "1"}))
            .idempotency_key("k"),
        TestRequest::new("POST", "/v1/charges")
            .key(&live)
            .json(&json!({"asset": "BTC", "amount": "1"}))
            .idempotency_key("k"),
    ];
    for (nth, request) in requests.iter().enumerate() {
        assert_eq!(remaining_quota(&service.send(request)), 119 - nth as u64, "{request:?}");
    }
    let unknown = service.send(&TestRequest::new("GET", "/v1/account").key("svc_live_nobody"));
    assert_eq!(unknown.status(), 401);
    assert_eq!((unknown.header("x-ratelimit-limit"), unknown.header("x-ratelimit-remaining")), (None, None));
    assert_eq!(
        remaining_quota(&service.get("/v1/account")),
        119 - requests.len() as u64,
        "a request with an unknown key does not count"
    );
}

#[test]
fn each_key_has_its_own_limit() {
    let mut service = TestService::with_rate_limit();
    let second = service.new_key(service.acme, Mode::Live);
    let test = service.test_key.clone();
    while service.get("/v1/account").status() == 200 {}
    for key in [second, test] {
        assert_eq!(remaining_quota(&service.send(&TestRequest::new("GET", "/v1/account").key(&key))), 119);
    }
    assert_eq!(service.get("/v1/account").status(), 429);
}

#[test]
fn a_rate_limited_write_is_not_executed() {
    let mut service = TestService::with_rate_limit();
    while service.get("/v1/account").status() == 200 {}
    assert_eq!(service.post("/v1/charges", &json!({"asset": "BTC", "amount": "1"})).status(), 429);
    service.wait(Span::secs(60));
    assert_eq!((service.total("/v1/charges"), service.total("/v1/events")), (0, 0));
}

#[test]
fn the_limit_can_be_disabled() {
    let mut service = TestService::new();
    for _ in 0..300 {
        let response = service.get("/v1/account");
        assert_eq!((response.status(), response.header("x-ratelimit-limit")), (200, None));
    }
}

#[test]
fn a_revoked_key_gets_the_response_of_an_unknown_key() {
    let mut service = TestService::with_rate_limit();
    let unknown = service.send(&TestRequest::new("GET", "/v1/account").key("svc_live_nobody"));
    let id = service
        .api
        .service
        .keys()
        .iter()
        .find(|key| key.principal.mode == Mode::Live)
        .expect("the account has a live key")
        .id;
    assert!(
        service.run_command(Mode::Test, Command::RevokeKey(id)).is_err(),
        "keys of the other mode are not found"
    );
    assert_eq!(service.get("/v1/account").status(), 200);
    service.run_command(Mode::Live, Command::RevokeKey(id)).unwrap();
    for _ in 0..130 {
        assert_eq!(service.get("/v1/account"), unknown, "an unknown key is not rate-limited");
    }
    let new_key = service.new_key(service.acme, Mode::Live);
    assert_eq!(service.send(&TestRequest::new("GET", "/v1/account").key(&new_key)).status(), 200);
}

#[test]
fn a_restart_clears_the_rate_limits() {
    let mut service = TestService::with_rate_limit();
    while service.get("/v1/account").status() == 200 {}
    service.api.service.restart(service.now);
    assert_eq!(remaining_quota(&service.get("/v1/account")), 119);
}
