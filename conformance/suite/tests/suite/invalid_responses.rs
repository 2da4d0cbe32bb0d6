//! Servers with invalid or missing responses: the run must end with a report and the correct exit code.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use ::mutants::fake::{
    Clock, EditableResponse, FakeServer, LIVE_KEY, TEST_KEY, block_on, http_server, ids_with_verdicts, plan,
    run, run_with,
};
use conformance::{ClockWait, Outcome, Plan, Silent, TargetClock, check, report};
use serde_json::json;
use tokio::net::TcpListener;
use wiremock::matchers::{any, header, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

async fn run_check(base: &str, change: impl FnOnce(&mut Plan)) -> Outcome {
    let mut plan = plan(base);
    change(&mut plan);
    check(plan, &mut Clock::default(), &mut Silent).await
}

#[track_caller]
fn check_outcome(outcome: &Outcome, exit: u8, expected: &str) {
    let text = report::text(outcome, report::Style::Plain);
    assert_eq!(outcome.exit_code(), exit, "{text}");
    assert!(text.contains(expected), "{text}");
    assert!(text.ends_with(&format!("exit {exit}\n")), "{text}");
    let json: serde_json::Value = serde_json::from_str(&report::json(outcome)).expect("a JSON report");
    assert_eq!(json["exit_code"], exit);
}

/// Checks a server that sends the same response to every request.
#[track_caller]
fn check_template(template: ResponseTemplate, exit: u8, expected: &str) {
    let outcome = block_on(async {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(template).mount(&server).await;
        run_check(&server.uri(), |_| {}).await
    });
    check_outcome(&outcome, exit, expected);
}

/// Checks a server that writes the same bytes to every connection and closes it.
#[track_caller]
fn check_bytes(bytes: &'static [u8], exit: u8, expected: &str) {
    let address = testkit::serve(move |_, connection| connection.send(bytes).map(ControlFlow::Break));
    let base = format!("http://{}", address.expect("a free port"));
    check_outcome(&block_on(run_check(&base, |_| {})), exit, expected);
}

#[test]
fn a_closed_port_is_unreachable() {
    let base = format!("http://{}", testkit::free_address().expect("a free port"));
    check_outcome(&block_on(run_check(&base, |_| {})), 4, "did not respond");
}

#[test]
fn a_server_that_hangs_is_unreachable() {
    let outcome = block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        // The operating system accepts connections, but nothing reads from them.
        let outcome = run_check(&base, |plan| plan.time_limit = Duration::from_millis(100)).await;
        drop(listener);
        outcome
    });
    check_outcome(&outcome, 4, "no complete response within 100ms");
}

#[test]
fn a_response_that_is_not_http_is_lost() {
    check_bytes(b"\x00\x01\x02 garbage \xff\xfe\r\n\r\n", 4, "did not respond");
    check_bytes(b"", 4, "did not respond");
}

#[test]
fn endless_interim_responses_are_lost() {
    const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    static ENDLESS: [u8; 4_096 * INTERIM.len()] = {
        let mut bytes = [0; 4_096 * INTERIM.len()];
        let mut index = 0;
        while index < bytes.len() {
            bytes[index] = INTERIM[index % INTERIM.len()];
            index += 1;
        }
        bytes
    };
    check_bytes(&ENDLESS, 4, "interim responses before it exceed 64 KiB");
}

#[test]
fn truncated_bodies_are_a_violation() {
    check_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":", 1, "a body cut short");
    check_bytes(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        1,
        "answers.json",
    );
}

#[test]
fn contradictory_lengths_are_a_violation() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 7\r\n\r\n{}";
    check_bytes(head, 1, "invalid content-length parsed");
}

#[test]
fn a_too_large_body_is_aborted() {
    let body = vec![b' '; 5 * 1024 * 1024];
    check_template(ResponseTemplate::new(200).set_body_bytes(body), 4, "a body of more than");
}

#[test]
fn a_redirect_is_not_followed() {
    let redirect = ResponseTemplate::new(301).insert_header("location", "http://127.0.0.1:1/v1/account");
    check_template(redirect, 2, "redirects are not followed, so use that address");
}

#[test]
fn a_refused_key_is_a_configuration_error() {
    check_template(ResponseTemplate::new(401), 2, "the live key is refused with 401");
}

#[test]
fn a_wrong_base_path_is_a_configuration_error() {
    check_template(ResponseTemplate::new(404), 2, "does it need a path prefix?");
}

#[test]
fn a_gateway_without_a_service_is_unreachable_and_a_service_that_always_fails_is_not() {
    check_template(ResponseTemplate::new(500), 1, "account.served");
    check_template(ResponseTemplate::new(503), 4, "responds with 503");
}

#[test]
fn an_html_page_is_a_configuration_error() {
    let page = "<!doctype html><title>Sign in</title>";
    let html = ResponseTemplate::new(200).set_body_raw(page, "text/html; charset=utf-8");
    check_template(html, 2, "is this the API's base address?");
    check_template(ResponseTemplate::new(200).set_body_string(page), 2, "is this the API's base address?");
}

#[test]
fn wrong_types_are_failures() {
    check_template(ResponseTemplate::new(200).set_body_json(json!([1, 2, 3])), 1, "a JSON object");
    check_template(
        ResponseTemplate::new(200).set_body_json(json!({ "data": 1, "meta": [] })),
        1,
        "account.mode",
    );
    check_template(ResponseTemplate::new(200).set_body_string("hello"), 1, "a body of JSON");
    check_template(ResponseTemplate::new(200), 1, "answers.json");
}

#[test]
fn a_server_without_authentication_fails() {
    let test_account = json!({ "data": {}, "meta": { "mode": "test", "accepted_assets": [] } });
    let live_account = json!({ "data": {}, "meta": { "mode": "live", "accepted_assets": [] } });
    let outcome = block_on(async {
        let server = MockServer::start().await;
        let bearer = header("authorization", format!("Bearer {LIVE_KEY}").as_str());
        Mock::given(bearer)
            .respond_with(ResponseTemplate::new(200).set_body_json(live_account))
            .mount(&server)
            .await;
        Mock::given(any())
            .respond_with(ResponseTemplate::new(200).set_body_json(test_account))
            .mount(&server)
            .await;
        run_check(&server.uri(), |_| {}).await
    });
    check_outcome(&outcome, 1, "242 requests served");
    assert!(ids_with_verdicts(&outcome, &["fail"]).contains(&"auth.no_header".to_owned()));
}

#[test]
fn a_key_of_the_other_mode_is_never_used_for_a_burst() {
    let outcome = block_on(async {
        let server = MockServer::start().await;
        let body = json!({ "data": {}, "meta": { "mode": "live", "accepted_assets": [] } });
        Mock::given(path("/v1/account"))
            .respond_with(ResponseTemplate::new(200).set_body_json(body))
            .mount(&server)
            .await;
        run_check(&server.uri(), |_| {}).await
    });
    check_outcome(&outcome, 1, "meta.mode \"test\"");
    assert_eq!(outcome.ledger.in_bursts, 0);
}

#[test]
fn swapped_keys_are_rejected_before_the_first_request() {
    let outcome = run_with(FakeServer::default(), |plan| {
        *plan = Plan::new(
            plan.base.clone(),
            conformance::Secret::new(TEST_KEY),
            conformance::Secret::new(LIVE_KEY),
        );
    });
    check_outcome(&outcome, 2, "it is a test key; swap the two keys");
    assert_eq!(outcome.ledger.total(), 0);
}

#[test]
fn a_server_that_crashes_during_the_run_makes_it_incomplete() {
    let outcome = block_on(async {
        let server = MockServer::start().await;
        for (key, mode) in [(LIVE_KEY, "live"), (TEST_KEY, "test")] {
            let data = json!({ "type": "personal", "name": "A", "currency": "EUR", "tolerance": 1 });
            let body = json!({ "data": data, "meta": { "mode": mode, "accepted_assets": [] } });
            Mock::given(header("authorization", format!("Bearer {key}").as_str()))
                .respond_with(ResponseTemplate::new(200).set_body_json(body))
                .up_to_n_times(1)
                .with_priority(1)
                .mount(&server)
                .await;
        }
        let slow = ResponseTemplate::new(200).set_delay(Duration::from_secs(3600));
        Mock::given(any()).respond_with(slow).mount(&server).await;
        let outcome = run_check(&server.uri(), |plan| plan.time_limit = Duration::from_millis(400)).await;
        assert_eq!(outcome.ledger.total(), 8, "the run ends soon after the server stops responding");
        outcome
    });
    check_outcome(&outcome, 3, "the server had stopped responding");
}

#[test]
fn a_lockout_is_not_a_violation() {
    let mut server = FakeServer::default();
    let mut refusals = 0;
    server.rewrite_responses(move |_, response| {
        if response.status == 401 {
            refusals += 1;
            if refusals > 3 {
                *response = EditableResponse::json(429, json!({ "message": "Too many wrong keys." }));
                response.set_header("retry-after", "3600");
            }
        }
    });
    let outcome = run(server);
    assert_eq!(ids_with_verdicts(&outcome, &["fail"]), Vec::<String>::new());
    check_outcome(&outcome, 3, "a request that must be refused: 429");
}

#[test]
fn a_retry_after_of_an_hour_is_not_waited_for() {
    let mut server = FakeServer::default();
    let mut refused_keys = BTreeSet::new();
    server.rewrite_responses(move |request, response| {
        // A key that was refused once stays refused, as Retry-After states.
        if response.status == 429 || refused_keys.contains(&request.authorization) {
            refused_keys.insert(request.authorization.clone());
            *response = EditableResponse::json(429, json!({ "message": "Come back in an hour." }));
            response.set_header("retry-after", "3600");
        }
    });
    let clock = server.clock.clone();
    let outcome = run(server);
    assert!(clock.micros() < 70_000_000, "the run waited too long");
    // With a limit of 120 per minute, no wait longer than 60 s is needed.
    assert_eq!(ids_with_verdicts(&outcome, &["fail"]), ["limits.retry_after"]);
    check_outcome(&outcome, 1, "Retry-After: 3600");
}

/// A clock that cannot be advanced.
struct StoppedClock;

impl TargetClock for StoppedClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wait(&mut self, _: Duration) -> ClockWait<'_> {
        Box::pin(std::future::ready(Err("the clock does not move".into())))
    }
}

#[test]
fn a_clock_that_cannot_be_advanced_makes_the_run_incomplete() {
    let outcome = block_on(async {
        let base = http_server::serve(FakeServer::default()).await;
        check(plan(&base), &mut StoppedClock, &mut Silent).await
    });
    assert_eq!(ids_with_verdicts(&outcome, &["fail"]), Vec::<String>::new());
    check_outcome(&outcome, 3, "Retry-After is 60 s, and that time did not pass during the check");
}

#[test]
fn invalid_links_are_a_violation() {
    for link in [
        "http://[",
        "javascript:alert(1)",
        "//evil.example/v1/events?page=2",
        "?page=99999999999999999999",
        "",
    ] {
        let mut server = FakeServer::default();
        server.rewrite_responses(move |_, response| {
            if response.body["links"]["next"].is_string() {
                response.body["links"]["next"] = json!(link);
            }
        });
        let outcome = run(server);
        check_outcome(&outcome, 1, "paging.links_lead");
    }
}
