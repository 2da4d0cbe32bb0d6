//! Bodies that are not JSON, too deep, too large, or have a field of a wrong type.

use serde_json::json;

use crate::{
    hostile::{FIELDS, judge, populated_service, read_everything},
    test_service::{Call, Reply, TestService},
};

#[track_caller]
fn check(service: &mut TestService, call: &Call) -> Reply {
    let before = read_everything(service);
    let reply = service.send(call);
    if let Err(error) = judge(call, &reply) {
        panic!("{error}");
    }
    if reply.status() >= 400 {
        assert_eq!(read_everything(service), before, "a refused request changed something");
    }
    reply
}

const WRITES: [(&str, &str); 4] = [
    ("POST", "/v1/charges"),
    ("POST", "/v1/invoices"),
    ("POST", "/v1/payment-links"),
    ("PATCH", "/v1/payment-links/{link}"),
];

/// Sends a body to every path that reads one, and expects one of these statuses.
#[track_caller]
fn check_body(body: &[u8], statuses: &[u16]) {
    let (mut service, ids) = populated_service();
    let live = service.live.clone();
    let refunds = format!("/v1/charges/{}/refunds", ids[2]);
    for (method, path) in WRITES.into_iter().chain([("POST", refunds.as_str())]) {
        let path = path.replace("{link}", &ids[3]);
        let call = Call::new(method, &path).key(&live).raw_body("application/json", body);
        let reply = check(&mut service, &call);
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert!(
            statuses.contains(&reply.status()),
            "{method} {path} {shown}: {} {:.300}",
            reply.status(),
            reply.text()
        );
    }
}

#[test]
fn bodies_that_are_no_json_object_are_refused() {
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
fn deep_nesting_is_cheap() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    check_body(open.as_bytes(), &[400]);
    check_body(format!("{open}{close}").as_bytes(), &[400]);
    check_body("{\"a\":".repeat(40_000).as_bytes(), &[400]);
    for field in
        ["asset", "amount", "metadata", "customer", "items", "custom_fields", "accepted_assets", "title"]
    {
        // A change of a link ignores unknown fields.
        check_body(format!("{{\"{field}\": {open}{close}}}").as_bytes(), &[200, 422]);
        let objects = format!("{{\"{field}\": {}1{}}}", "{\"a\":".repeat(30_000), "}".repeat(30_000));
        check_body(objects.as_bytes(), &[200, 422]);
    }
}

#[test]
fn a_large_body_is_refused_before_it_is_read() {
    check_body(format!("{{\"title\": \"{}\"}}", "x".repeat(1_000_000)).as_bytes(), &[413]);
    check_body("[".repeat(1_000_000).as_bytes(), &[413]);
}

#[test]
fn a_wrong_type_is_refused_at_every_field() {
    let wrong = [
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
    let live = service.live.clone();
    let good = [
        ("POST", "/v1/charges".to_owned(), json!({"asset": "BTC", "amount": "1"})),
        ("POST", "/v1/invoices".to_owned(), json!({"amount": "1"})),
        ("POST", "/v1/payment-links".to_owned(), json!({"title": "A", "amount": "1"})),
        ("PATCH", format!("/v1/payment-links/{}", ids[3]), json!({})),
        ("POST", format!("/v1/charges/{}/refunds", ids[2]), json!({"amount": "0.00000001"})),
    ];
    for (method, path, good) in good {
        for &field in FIELDS {
            for value in wrong {
                let mut body = good.clone();
                body.as_object_mut().unwrap().remove(field);
                let mut text = body.to_string();
                text.pop();
                let comma = if text.len() > 1 { "," } else { "" };
                let text = format!("{text}{comma}\"{field}\":{value}}}");
                let call = Call::new(method, &path).key(&live).raw_body("application/json", text);
                let reply = service.send(&call);
                judge(&call, &reply).unwrap();
                assert!(matches!(reply.status(), 200 | 201 | 422), "{} {}", reply.status(), reply.text());
            }
        }
    }
}
