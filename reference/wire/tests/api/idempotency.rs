//! Repeated writes with an `Idempotency-Key`: executed once, with the same response.

use reference_core::{mode::Mode, time::Span};
use serde_json::{Value, json};

use crate::test_service::{ReceivedResponse, TICK, TestRequest, TestService, code_of};

fn charge_body() -> Value {
    json!({"asset": "BTC", "amount": "150.00"})
}

/// Sends a `POST` with this API key and idempotency key.
fn write(
    service: &mut TestService,
    key: &str,
    target: &str,
    body: &Value,
    idempotency_key: &str,
) -> ReceivedResponse {
    service.send(&TestRequest::new("POST", target).key(key).json(body).idempotency_key(idempotency_key))
}

fn is_replayed(response: &ReceivedResponse) -> bool {
    response.header("idempotent-replayed") == Some("true")
}

#[test]
fn a_repeated_write_is_executed_once_and_gets_the_same_response() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let first = write(&mut service, &live, "/v1/charges", &charge_body(), "k");
    assert!(!is_replayed(&first));
    service.wait(Span::mins(5));
    service.report_sighting(&code_of(&first.data()), "tx1", "1", crate::test_service::MEMPOOL);
    let again = write(&mut service, &live, "/v1/charges", &charge_body(), "k");
    assert!(is_replayed(&again), "{:?}", again.0.headers);
    assert_eq!(
        (again.status(), again.text()),
        (201, first.text()),
        "the stored response, not the current state"
    );
    assert_eq!(service.total("/v1/charges"), 1);
}

#[test]
fn a_key_used_for_another_request_is_refused() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    write(&mut service, &live, "/v1/charges", &charge_body(), "k");
    let other = json!({"asset": "BTC", "amount": "150.01"});
    assert_eq!(write(&mut service, &live, "/v1/charges", &other, "k").status(), 409);
    // Another query is another request, too.
    assert_eq!(write(&mut service, &live, "/v1/charges?x=1", &charge_body(), "k").status(), 409);
    write(&mut service, &live, "/v1/invoices?x=1", &json!({"amount": "1"}), "k");
    assert_eq!(write(&mut service, &live, "/v1/invoices?x=2", &json!({"amount": "1"}), "k").status(), 409);
    // Invalid fields are reported first: 422 comes before 409.
    assert_eq!(write(&mut service, &live, "/v1/charges", &json!({}), "k").status(), 422);
    assert!(
        is_replayed(&write(&mut service, &live, "/v1/charges", &charge_body(), "k")),
        "the first response stays"
    );
    assert_eq!(service.total("/v1/charges"), 1);
}

#[test]
fn equal_json_in_another_notation_is_the_same_request() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let mut send = |body: &str| {
        let request = TestRequest::new("POST", "/v1/charges")
            .key(&live)
            .raw_body("application/json", body)
            .idempotency_key("k");
        service.send(&request)
    };
    let first = send(r#"{"asset":"BTC","amount":150.00,"metadata":{"a":1,"b":"ä"}}"#);
    let again =
        send("{ \"metadata\": {\"b\": \"\\u00e4\", \"a\": 1.0},\n\"amount\": 150, \"asset\": \"BTC\" }");
    assert_eq!((again.status(), is_replayed(&again)), (201, true), "{}", again.text());
    assert_eq!(again.text(), first.text());
}

#[test]
fn a_key_is_scoped_to_account_mode_method_and_path() {
    let mut service = TestService::new();
    let (live, test) = (service.live_key.clone(), service.test_key.clone());
    let bolt = service.open_account("bolt");
    let bolt_key = service.new_key(bolt, Mode::Live);
    let second_live_key = service.new_key(service.acme, Mode::Live);
    let first = code_of(&write(&mut service, &live, "/v1/charges", &charge_body(), "k").data());
    for key in [&test, &bolt_key] {
        let response = write(&mut service, key, "/v1/charges", &charge_body(), "k");
        assert!(!is_replayed(&response));
        assert_ne!(code_of(&response.data()), first);
    }
    assert!(
        is_replayed(&write(&mut service, &second_live_key, "/v1/charges", &charge_body(), "k")),
        "a second API key of the same account and mode"
    );
    assert!(!is_replayed(&write(&mut service, &live, "/v1/invoices", &json!({"amount": "1"}), "k")));
    let link = service.create("/v1/payment-links", &json!({"title": "A hat", "amount": "1"}));
    let archive = TestRequest::new("POST", &format!("/v1/payment-links/{link}/archive"))
        .key(&live)
        .idempotency_key("k");
    assert_eq!(service.send(&archive).status(), 200);
    let restore = TestRequest { method: "DELETE".to_owned(), ..archive.clone() };
    assert!(!is_replayed(&service.send(&restore)), "another method of the same path");
    assert!(is_replayed(&service.send(&archive)));
}

#[test]
fn a_failed_write_stores_nothing() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let without_amount = json!({"asset": "BTC"});
    assert_eq!(write(&mut service, &live, "/v1/charges", &without_amount, "k").status(), 422);
    // The service has no rate in this currency.
    assert_eq!(
        write(
            &mut service,
            &live,
            "/v1/charges",
            &json!({"asset": "BTC", "amount": "1", "currency": "SEK"}),
            "k"
        )
        .status(),
        503
    );
    let created = write(&mut service, &live, "/v1/charges", &charge_body(), "k");
    assert_eq!((created.status(), is_replayed(&created)), (201, false));
    let path = format!("/v1/charges/{}/cancel", code_of(&created.data()));
    assert_eq!(write(&mut service, &live, &path, &json!({}), "c").status(), 200);
    // The charge is canceled already. The repeated request is executed again: its 409 is not marked as replayed.
    assert_eq!(write(&mut service, &live, &path, &json!({}), "c2").status(), 409);
    let again = write(&mut service, &live, &path, &json!({}), "c2");
    assert_eq!((again.status(), is_replayed(&again)), (409, false));
    assert!(is_replayed(&write(&mut service, &live, &path, &json!({}), "c")));
}

#[test]
fn a_response_is_stored_for_24_hours() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    write(&mut service, &live, "/v1/charges", &charge_body(), "k");
    service.wait(Span::hours(24));
    // The last microsecond of the 24 hours.
    service.now = service.now.minus(TICK);
    assert!(is_replayed(&write(&mut service, &live, "/v1/charges", &charge_body(), "k")));
    service.wait(TICK);
    assert!(!is_replayed(&write(&mut service, &live, "/v1/charges", &charge_body(), "k")));
    assert!(
        is_replayed(&write(&mut service, &live, "/v1/charges", &charge_body(), "k")),
        "the new response is stored"
    );
    service.wait(Span::hours(23));
    assert!(is_replayed(&write(&mut service, &live, "/v1/charges", &charge_body(), "k")));
    assert_eq!(service.total("/v1/charges"), 2);
}

#[test]
fn a_key_has_up_to_255_characters() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    for (key, status) in
        [("k".repeat(255), 201), ("k".repeat(256), 400), ("ä".repeat(255), 201), ("ä".repeat(256), 400)]
    {
        assert_eq!(
            write(&mut service, &live, "/v1/charges", &charge_body(), &key).status(),
            status,
            "{}",
            key.len()
        );
    }
    let mut request = TestRequest::new("POST", "/v1/charges").key(&live).json(&charge_body());
    // Not UTF-8.
    request.idempotency_key = Some(vec![0xff, 0xfe]);
    assert_eq!(service.send(&request).status(), 400);
    // Empty or blank. The server also passes an empty value for a header that is sent more than once.
    for invalid in ["", " ", " \t ", "\u{a0}"] {
        request.idempotency_key = Some(invalid.as_bytes().to_vec());
        assert_eq!(service.send(&request).status(), 400, "{invalid:?}");
    }
    assert_eq!(service.total("/v1/charges"), 2);
}

#[test]
fn a_read_ignores_the_idempotency_key() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let read = TestRequest::new("GET", "/v1/charges").key(&live).idempotency_key("k");
    assert_eq!(service.send(&read).json()["meta"]["total"], 0);
    service.create_charge();
    let response = service.send(&read);
    assert_eq!((response.json()["meta"]["total"].clone(), is_replayed(&response)), (json!(1), false));
}

#[test]
fn responses_survive_a_restart() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    write(&mut service, &live, "/v1/charges", &charge_body(), "k");
    service.api.service.restart(service.now);
    assert!(is_replayed(&write(&mut service, &live, "/v1/charges", &charge_body(), "k")));
}
