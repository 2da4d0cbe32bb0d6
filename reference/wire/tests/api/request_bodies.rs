//! Request bodies that are not JSON, too deep or too large, and bodies with a value of any type in any field.

use serde_json::json;

use crate::{
    malformed_requests::{FIELDS, check_response_rules, populated_service, read_everything},
    test_service::{ReceivedResponse, TestRequest, TestService},
};

/// Sends a request and checks that it gets a valid response, and that a refused request changes nothing.
#[track_caller]
fn send_checked(service: &mut TestService, request: &TestRequest) -> ReceivedResponse {
    let before = read_everything(service);
    let response = service.send(request);
    if let Err(error) = check_response_rules(request, &response) {
        panic!("{error}");
    }
    if response.status() >= 400 {
        assert_eq!(read_everything(service), before, "a refused request changed something");
    }
    response
}

/// The writes with fields, except a refund, whose path has the code of a charge.
const WRITES: [(&str, &str); 4] = [
    ("POST", "/v1/charges"),
    ("POST", "/v1/invoices"),
    ("POST", "/v1/payment-links"),
    ("PATCH", "/v1/payment-links/{link}"),
];

/// Sends a body to every write with fields, and expects one of these statuses from each.
#[track_caller]
fn check_body(body: &[u8], statuses: &[u16]) {
    let (mut service, ids) = populated_service();
    let live = service.live_key.clone();
    // `ids[2]` is the paid charge, `ids[3]` the link.
    let refunds = format!("/v1/charges/{}/refunds", ids[2]);
    for (method, path) in WRITES.into_iter().chain([("POST", refunds.as_str())]) {
        let path = path.replace("{link}", &ids[3]);
        let request = TestRequest::new(method, &path).key(&live).raw_body("application/json", body);
        let response = send_checked(&mut service, &request);
        let body_start = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert!(
            statuses.contains(&response.status()),
            "{method} {path} {body_start}: {} {:.300}",
            response.status(),
            response.text()
        );
    }
}

#[test]
fn bodies_that_are_not_json_objects_are_refused() {
    for body in [
        "null",
        "true",
        "1",
        "\"{}\"",
        "[{}]",
        "{",
        "{}}",
        "{} {}",
        "{'a': 1}",
        "{a: 1}",
        "{\"a\": 1,}",
        "{\"a\": NaN}",
        "{\"a\": 01}",
        "{\"a\": .5}",
        "{\"a\": \"\t\"}",
        "{\"a\": \"\\x\"}",
        " ",
        "\u{feff}{}",
        "//\n{}",
        "a=1&b=2",
        "<a/>",
        "{\"\\ud800\": 1}",
        // Duplicate keys at any depth, also with escaped characters.
        "{\"asset\": \"BTC\", \"asset\": \"BTC\"}",
        "{\"title\": \"A\", \"ti\\u0074le\": \"B\"}",
        "{\"metadata\": {\"a\": 1, \"a\": 1}}",
        "{\"items\": [{\"quantity\": 1, \"quantity\": 2}]}",
        "{\"nobody\": {\"reads\": [[{\"this\": 1, \"th\\u0069s\": 1}]]}}",
    ] {
        check_body(body.as_bytes(), &[400]);
    }
    check_body(b"{\"a\": \"\xff\"}", &[400]);
    check_body(b"\xff\xfe{\0}\0", &[400]);
    check_body(b"\0", &[400]);
}

#[test]
fn deeply_nested_bodies_are_refused_or_ignored() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    check_body(open.as_bytes(), &[400]);
    check_body(format!("{open}{close}").as_bytes(), &[400]);
    check_body("{\"a\":".repeat(40_000).as_bytes(), &[400]);
    for field in
        ["asset", "amount", "metadata", "customer", "items", "custom_fields", "accepted_assets", "title"]
    {
        // 200 is the response to a change of a link, which ignores the fields that a link does not have.
        check_body(format!("{{\"{field}\": {open}{close}}}").as_bytes(), &[200, 422]);
        let objects = format!("{{\"{field}\": {}1{}}}", "{\"a\":".repeat(30_000), "}".repeat(30_000));
        check_body(objects.as_bytes(), &[200, 422]);
    }
}

#[test]
fn an_oversized_body_is_refused_before_it_is_parsed() {
    check_body(format!("{{\"title\": \"{}\"}}", "x".repeat(1_000_000)).as_bytes(), &[413]);
    // Would get 400 if it were parsed.
    check_body("[".repeat(1_000_000).as_bytes(), &[413]);
}

#[test]
fn a_value_of_any_type_in_any_field_is_accepted_or_gets_422() {
    let values = [
        "7",
        "-0",
        "1e999999999",
        "0.1e-400",
        "123456789012345678901234567890",
        "true",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "[]",
        "[null]",
        "[[]]",
        "[{}]",
        "{}",
        "{\"a\":{}}",
        "\"x\"",
        "\"\u{202e}\"",
    ];
    let (mut service, ids) = populated_service();
    let live = service.live_key.clone();
    let writes = [
        ("POST", "/v1/charges".to_owned(), json!({"asset": "BTC", "amount": "1"})),
        ("POST", "/v1/invoices".to_owned(), json!({"amount": "1"})),
        ("POST", "/v1/payment-links".to_owned(), json!({"title": "A", "amount": "1"})),
        ("PATCH", format!("/v1/payment-links/{}", ids[3]), json!({})),
        ("POST", format!("/v1/charges/{}/refunds", ids[2]), json!({"amount": "0.00000001"})),
    ];
    for (method, path, valid_body) in writes {
        for &field in FIELDS {
            for value in values {
                let mut body = valid_body.clone();
                body.as_object_mut().unwrap().remove(field);
                // The value is added as text, because some values do not fit into a `serde_json::Value`.
                let mut unclosed = body.to_string();
                unclosed.pop();
                let comma = if unclosed.len() > 1 { "," } else { "" };
                let body = format!("{unclosed}{comma}\"{field}\":{value}}}");
                let request = TestRequest::new(method, &path).key(&live).raw_body("application/json", body);
                let response = service.send(&request);
                check_response_rules(&request, &response).unwrap();
                assert!(
                    matches!(response.status(), 200 | 201 | 422),
                    "{} {}",
                    response.status(),
                    response.text()
                );
            }
        }
    }
}
