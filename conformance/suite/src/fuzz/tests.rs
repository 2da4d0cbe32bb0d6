//! Tests of the invariants on single responses, of curl commands and of placeholders. The integration tests of the
//! package have complete runs.

use std::process::Command;

use serde_json::{Value, json};

use super::{
    judge,
    known_ids::{IdKind, KnownIds},
    request_template::{Keys, RequestKey, RequestTemplate, ResolvedRequest, SentRequest, curl_authorization},
};
use conformance_model::mode::Mode;
use conformance_model::recording::{ExchangeOutcome, ReceivedResponse};
use conformance_model::secret::Secret;

/// The id of the event of the live key.
const OWN: &str = "0197f2c0-9d2e-7c4a-8f10-3b5d7e9f1a2c";
/// The id of the event of the test key.
const FOREIGN: &str = "0197f2c0-9d2e-7c4a-8f10-3b5d7e9f1a2d";

fn event(id: &str, kind: &str) -> Value {
    json!({"id": id, "type": kind, "details": {}, "charge": {"code": format!("code{}", &id[30..])}, "created_at": "2026-01-05T09:00:00Z"})
}

/// Returns the known identifiers: one event of the live key, another of the test key.
fn known_ids() -> KnownIds {
    let mut known = KnownIds::default();
    known.add_object(Mode::Live, IdKind::Event, &event(OWN, "charge.paid"));
    known.add_object(Mode::Test, IdKind::Event, &event(FOREIGN, "charge.paid"));
    known
}

fn json_response(status: u16, body: &Value) -> ReceivedResponse {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    ReceivedResponse { status, headers, body: body.to_string().into() }
}

fn list(rows: &[Value], numbers: [u64; 4]) -> Value {
    let [page, last, size, total] = numbers;
    let link = |exists: bool| if exists { json!("/v1/events") } else { Value::Null };
    json!({
        "data": rows,
        "links": {"first": "/", "last": "/", "prev": link(page > 1), "next": link(page < last)},
        "meta": {"current_page": page, "last_page": last, "per_page": size, "total": total},
    })
}

#[track_caller]
fn check(key: RequestKey, target: &str, response: ReceivedResponse, expected: &[&str]) {
    let template = RequestTemplate::get(key, target);
    let found = judge::judge(
        &template,
        &template.resolve(&known_ids()),
        &ExchangeOutcome::Answered(response),
        &known_ids(),
    );
    let statements: Vec<_> = found.iter().map(|violation| violation.statement.as_str()).collect();
    assert_eq!(statements, expected, "{found:?}");
}

#[test]
fn a_server_error_is_a_violation_on_any_path() {
    check(RequestKey::Live, "/v1/%00", json_response(500, &json!({})), &["answers.no_server_error"]);
    check(RequestKey::Live, "/nowhere", json_response(404, &json!({})), &[]);
    check(RequestKey::NoKey, "/v1/events", json_response(500, &json!({})), &["answers.no_server_error"]);
}

#[test]
fn a_missing_response_is_a_violation() {
    let template = RequestTemplate::get(RequestKey::Live, "/v1/events");
    let found = judge::judge(
        &template,
        &template.resolve(&known_ids()),
        &ExchangeOutcome::NoResponse("reset".into()),
        &known_ids(),
    );
    assert_eq!(found[0].statement, "answers.silence");
}

#[test]
fn requests_without_a_valid_key_are_refused() {
    let message = json!({"message": "Unauthenticated."});
    for key in RequestKey::INVALID {
        check(key, "/v1/events", json_response(401, &message), &[]);
        check(key, "/v1/events", json_response(400, &message), &[]);
        check(key, "/v1/events", json_response(200, &list(&[], [1, 1, 25, 0])), &["auth.refused"]);
        check(key, "/v1/events", json_response(403, &message), &["auth.refused"]);
    }
    check(RequestKey::NoKey, "/v1/account", json_response(401, &json!({})), &["auth.message"]);
    check(RequestKey::Live, "/v1/account", json_response(401, &message), &["auth.known_key"]);
}

#[test]
fn a_curl_command_sends_the_same_key() {
    // A key may contain underscores after the prefix of its mode.
    let (live, test) = ("svc_live_Ab_12", "svc_test_Cd_34_e");
    let keys = Keys { live: &Secret::new(live), test: &Secret::new(test), prefix: "svc" };
    for key in [
        RequestKey::Live,
        RequestKey::Test,
        RequestKey::Shortened,
        RequestKey::Swapped,
        RequestKey::OtherScheme,
        RequestKey::NoScheme,
    ] {
        let header = curl_authorization(key, "svc").expect("a key is sent");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("printf %s \"{header}\"")]);
        let output = shell
            .env("CHARGEPROOF_LIVE_KEY", live)
            .env("CHARGEPROOF_TEST_KEY", test)
            .output()
            .expect("sh can be started");
        assert_eq!(String::from_utf8_lossy(&output.stdout), keys.authorization(key).unwrap(), "{header}");
    }
    assert_eq!(keys.authorization(RequestKey::Swapped).unwrap(), "Bearer svc_live_Cd_34_e");
}

#[test]
fn responses_of_specified_paths_are_json() {
    let html = |status| ReceivedResponse {
        status,
        headers: vec![("content-type".into(), "text/html".into())],
        body: "<p>".into(),
    };
    check(RequestKey::Live, "/v1/events", html(422), &["answers.json"]);
    check(RequestKey::Live, "/v1/events", html(400), &[]);
    check(RequestKey::Live, "/v1/event", html(404), &[]);
    let twice = ReceivedResponse {
        body: r#"{"message":"a","message":"b"}"#.into(),
        ..json_response(422, &json!({}))
    };
    check(RequestKey::Live, "/v1/events?page=0", twice, &["answers.json"]);
}

#[test]
fn objects_of_the_other_mode_are_not_found() {
    let served = |id: &str| json_response(200, &json!({"data": event(id, "charge.paid")}));
    let path = |id: &str| format!("/v1/events/{id}");
    let absent = || json_response(404, &json!({"message": "Not found."}));
    check(RequestKey::Live, &path(OWN), served(OWN), &[]);
    check(RequestKey::Live, &path(OWN), absent(), &["events.readable"]);
    check(RequestKey::Live, &path(FOREIGN), absent(), &[]);
    check(RequestKey::Live, &path(FOREIGN), served(FOREIGN), &["isolation.leak", "isolation.not_found"]);
    check(RequestKey::Live, &path(FOREIGN), json_response(403, &json!({})), &["isolation.not_found"]);
    check(RequestKey::Live, "/v1/events/{absent:event:live:0}", absent(), &[]);
    let nonexistent = RequestTemplate::get(RequestKey::Live, "/v1/events/{absent:event:live:0}");
    let id = nonexistent.resolve(&known_ids()).used_ids[0].id.clone();
    check(RequestKey::Live, "/v1/events/{absent:event:live:0}", served(&id), &["isolation.not_found"]);
    check(
        RequestKey::Live,
        "/v1/events",
        json_response(200, &list(&[event(FOREIGN, "charge.paid")], [1, 1, 25, 1])),
        &["isolation.leak"],
    );
}

#[test]
fn an_event_does_not_change() {
    let changed = event(OWN, "charge.expired");
    check(
        RequestKey::Live,
        &format!("/v1/events/{OWN}"),
        json_response(200, &json!({"data": changed})),
        &["events.stable"],
    );
    check(
        RequestKey::Live,
        "/v1/events",
        json_response(200, &list(&[changed], [1, 1, 25, 1])),
        &["events.stable"],
    );
}

#[test]
fn a_page_is_consistent_with_its_numbers() {
    let row = |n: u64| json!({"code": format!("charge{n}"), "status": "paid", "created_at": format!("2026-01-05T09:00:{:02}Z", 59 - n)});
    let rows = |from: u64, count: u64| (from..from + count).map(row).collect::<Vec<_>>();
    let page = |count, numbers| json_response(200, &list(&rows(0, count), numbers));
    let path_of = |query: &str| format!("/v1/charges{query}");
    check(RequestKey::Live, &path_of(""), page(3, [1, 1, 25, 3]), &[]);
    check(RequestKey::Live, &path_of(""), page(3, [1, 2, 2, 3]), &["paging.default_size", "paging.length"]);
    check(RequestKey::Live, &path_of("?per_page=2"), page(2, [1, 2, 2, 3]), &[]);
    check(RequestKey::Live, &path_of("?per_page=2"), page(3, [1, 1, 25, 3]), &["paging.per_page"]);
    check(RequestKey::Live, &path_of("?per_page=2&page=2"), page(1, [2, 2, 2, 3]), &[]);
    check(RequestKey::Live, &path_of("?per_page=2&page=2"), page(2, [1, 2, 2, 3]), &["paging.current_page"]);
    check(RequestKey::Live, &path_of("?per_page=2"), page(2, [1, 3, 2, 3]), &["paging.last_page"]);
    check(RequestKey::Live, &path_of("?per_page=500"), page(3, [1, 1, 100, 3]), &[]);
    check(RequestKey::Live, &path_of("?per_page=500"), page(3, [1, 1, 500, 3]), &["paging.per_page"]);
    check(RequestKey::Live, &path_of("?per_page=500"), json_response(422, &json!({"message": "no"})), &[]);
    check(RequestKey::Live, &path_of(""), json_response(422, &json!({"message": "no"})), &["lists.served"]);
    check(RequestKey::Live, &path_of("?page=9"), json_response(200, &list(&[], [9, 1, 25, 3])), &[]);
    check(RequestKey::Live, &path_of(""), json_response(200, &list(&[], [1, 0, 25, 0])), &[]);
    let twice = [row(0), row(0)];
    check(
        RequestKey::Live,
        &path_of(""),
        json_response(200, &list(&twice, [1, 1, 25, 2])),
        &["paging.joined"],
    );
    let oldest_first = [row(1), row(0)];
    check(
        RequestKey::Live,
        &path_of(""),
        json_response(200, &list(&oldest_first, [1, 1, 25, 2])),
        &["paging.newest_first"],
    );
    let mut beyond = list(&rows(0, 1), [1, 1, 25, 1]);
    beyond["links"]["next"] = json!("/v1/charges?page=2");
    check(RequestKey::Live, &path_of(""), json_response(200, &beyond), &["paging.ends"]);
}

#[test]
fn a_filtered_list_has_matching_rows_only() {
    let rows = [event(OWN, "charge.paid")];
    let body = || json_response(200, &list(&rows, [1, 1, 25, 1]));
    check(RequestKey::Live, "/v1/events?type=charge.paid", body(), &[]);
    check(RequestKey::Live, "/v1/events?type=charge.expired", body(), &["filters.type"]);
    check(RequestKey::Live, "/v1/events?type=charge.expired&type=charge.paid", body(), &[]);
    check(RequestKey::Live, "/v1/events?charge={charge:live:0}", body(), &[]);
    check(
        RequestKey::Live,
        "/v1/events?charge={charge:test:0}",
        body(),
        &["filters.charge", "isolation.filters"],
    );
    check(
        RequestKey::Live,
        "/v1/charges?payment_link={link:test:0}",
        json_response(404, &json!({"message": "no"})),
        &[],
    );
}

#[test]
fn a_429_has_a_retry_after() {
    check(RequestKey::Live, "/v1/events", json_response(429, &json!({})), &["limits.retry_after"]);
}

#[test]
fn placeholders_are_replaced_by_known_identifiers() {
    let resolved = RequestTemplate::get(
        RequestKey::Live,
        "/v1/events/{event:test:7}?charge={charge:live:0}&x={nothing}&y={",
    )
    .resolve(&known_ids());
    let expected = format!("/v1/events/{FOREIGN}?charge=code{}&x={{nothing}}&y={{", &OWN[30..]);
    assert_eq!(resolved.sent, SentRequest { target: expected, body: None });
    assert_eq!(
        resolved.used_ids.iter().map(|value| value.owner).collect::<Vec<_>>(),
        [Some(Mode::Test), Some(Mode::Live)]
    );
    let ResolvedRequest { used_ids, .. } =
        RequestTemplate::get(RequestKey::Live, "/v1/events/{absent:event:live:0}").resolve(&known_ids());
    assert_eq!((used_ids[0].owner, used_ids[0].id.len()), (None, 36));
}
