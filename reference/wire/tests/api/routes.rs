//! The methods of each path, and the response of every other path.

use serde_json::json;

use crate::test_service::{TestRequest, TestService, code_of, string};

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get"];

/// Checks that a path allows exactly these methods; others get 405 with an `Allow` header.
#[track_caller]
fn check(path: &str, allow: &str) {
    let allowed: Vec<&str> = allow.split(", ").collect();
    for method in METHODS {
        let mut service = TestService::new();
        let ids = [
            ("CHARGE", service.create_charge()),
            ("LINK", service.create("/v1/payment-links", &json!({"title": "A", "amount": "1"}))),
            ("INVOICE", service.create("/v1/invoices", &json!({"amount": "1"}))),
            ("EVENT", string(&service.list("/v1/events")[0]["id"])),
        ];
        let path = ids.iter().fold(path.to_owned(), |path, (name, id)| path.replace(name, id));
        let response = service.request(method, &path);
        if allowed.contains(&method) {
            assert!(!matches!(response.status(), 405), "{method} {path}");
        } else {
            assert_eq!(response.status(), 405, "{method} {path}: {}", response.text());
            let mut listed: Vec<&str> =
                response.header("allow").expect("a 405 response has the header").split(", ").collect();
            listed.sort_unstable();
            let mut expected = allowed.clone();
            expected.sort_unstable();
            assert_eq!(listed, expected, "{method} {path}");
            assert!(string(&response.json()["message"]).contains(allow), "the message lists them too");
        }
    }
}

#[test]
fn a_405_response_lists_the_methods_of_its_path() {
    check("/v1/account", "GET, HEAD");
    check("/v1/charges", "GET, HEAD, POST");
    check("/v1/charges/CHARGE", "GET, HEAD");
    check("/v1/charges/CHARGE/cancel", "POST");
    check("/v1/charges/CHARGE/refunds", "POST");
    check("/v1/payment-links", "GET, HEAD, POST");
    check("/v1/payment-links/LINK", "GET, HEAD, PATCH");
    check("/v1/payment-links/LINK/archive", "POST, DELETE");
    check("/v1/invoices", "GET, HEAD, POST");
    check("/v1/invoices/INVOICE", "GET, HEAD");
    check("/v1/invoices/INVOICE/send", "POST");
    check("/v1/invoices/INVOICE/void", "POST");
    check("/v1/events", "GET, HEAD");
    check("/v1/events/EVENT", "GET, HEAD");
}

#[test]
fn head_has_the_response_of_get() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    for path in
        ["/v1/account", "/v1/charges", "/v1/events", &format!("/v1/charges/{charge}"), "/v1/charges/x"]
    {
        assert_eq!(service.request("HEAD", path), service.get(path), "{path}");
    }
}

#[test]
fn every_other_path_gets_404_in_json() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    let absent = service.get("/v1/charges/aaaaaaaaaaaa");
    assert_eq!(absent.status(), 404);
    for path in [
        "",
        "/",
        "/v1",
        "/v1/",
        "/v2/account",
        "/V1/account",
        "/v1/Account",
        "/v1/account/",
        "//v1/account",
        "/v1//account",
        "/v1/refunds",
        "/v1/charges/",
        "/v1/charges//",
        "/v1/charges/%",
        "/v1/charges/%ff",
        "/v1%2Faccount",
        "/v1/charges%2Fcancel",
        "v1/account",
        "/v1/../v1/account",
        "/v1/account%00",
        "/v1/account%20",
        "/v1/account;x",
        "/v1/events/",
        "/v1/events/1",
        &format!("/v1/charges/{charge}/"),
        &format!("/v1/charges/{charge}/refund"),
        &format!("/v1/charges/{charge}/cancel/"),
        &format!("/v1/payment-links/{charge}"),
        &format!("/v1/invoices/{charge}"),
        &format!("/v1/charges/{}", charge.to_uppercase()),
        &format!("/v1/charges/ {charge}"),
        &format!("/v1/charges/{charge}%20"),
        &format!("/v1/charges/{charge}%00"),
        &format!("/v1/charges/{}", "a".repeat(100_000)),
    ] {
        assert_eq!(service.get(path), absent, "{path:.60}");
    }
}

#[test]
fn percent_encoded_paths_are_decoded() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    let expected = service.get(&format!("/v1/charges/{charge}"));
    let encoded: String = charge.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(service.get(&format!("/v1/charges/{encoded}")), expected);
    assert_eq!(service.get(&format!("/%76%31/%63harges/{charge}")), expected);
}

#[test]
fn a_request_without_a_valid_key_gets_401_for_every_path() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    let refused = service.send(&TestRequest::new("GET", "/v1/account"));
    assert_eq!((refused.status(), refused.header("www-authenticate")), (401, Some("Bearer")));
    for path in ["/v1/nowhere", "/v1/charges", &format!("/v1/charges/{charge}"), "/v1/charges?page=0"] {
        for method in ["GET", "DELETE", "POST"] {
            assert_eq!(service.send(&TestRequest::new(method, path)), refused, "{method} {path}");
        }
    }
    let live = service.live_key.clone();
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        &live,
        &format!("Bearer{live}"),
        &format!("Token {live}"),
        "Bearer svc_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        &format!("Bearer {}", live.replace("live", "test")),
        &format!("Bearer {live} {live}"),
        &format!("Bearer {}", &live[..live.len() - 1]),
        &format!("Bearer {live}x"),
        &format!("Bearer {}", live.to_lowercase()),
    ] {
        let mut request = TestRequest::new("GET", "/v1/account");
        request.authorization = Some(authorization.as_bytes().to_vec());
        assert_eq!(service.send(&request), refused, "{authorization}");
    }
    let mut request = TestRequest::new("GET", "/v1/account");
    request.authorization = Some(vec![b'B', b'e', b'a', b'r', b'e', b'r', b' ', 0xff, 0x00]);
    assert_eq!(service.send(&request), refused);
    request.authorization = Some(format!("bearer  {live} ").into_bytes());
    assert_eq!(
        service.send(&request).status(),
        200,
        "the scheme is case-insensitive, and blanks around the token are ignored"
    );
}

#[test]
fn a_body_needs_a_json_content_type() {
    #[track_caller]
    fn check(content_type: Option<&[u8]>, body: &str, status: u16) {
        let mut service = TestService::new();
        let mut request = TestRequest::new("POST", "/v1/charges").key(&service.live_key.clone());
        request.content_type = content_type.map(<[u8]>::to_vec);
        request.body = body.as_bytes().to_vec();
        let type_text = content_type.map(String::from_utf8_lossy);
        assert_eq!(service.send(&request).status(), status, "{type_text:?} {body}");
    }
    let body = json!({"asset": "BTC", "amount": "1.00"}).to_string();
    for good in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        " application/json ;x=y",
        "application/vnd.api+json",
    ] {
        check(Some(good.as_bytes()), &body, 201);
    }
    for bad in [
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "json",
        "*/*",
    ] {
        check(Some(bad.as_bytes()), &body, 415);
    }
    check(None, &body, 415);
    check(Some(b"\xff"), &body, 415);
    // Without a body, the content type is not checked.
    check(None, "", 422);
    check(Some(b"text/plain"), "", 422);
}

#[test]
fn a_body_has_at_most_256_kib() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let body = |len: usize| {
        let json = r#"{"asset": "BTC", "amount": "1.00"}"#;
        format!("{json}{}", " ".repeat(len - json.len()))
    };
    let request = TestRequest::new("POST", "/v1/charges").key(&live);
    assert_eq!(service.send(&request.clone().raw_body("application/json", body(256 * 1024))).status(), 201);
    assert_eq!(
        service.send(&request.clone().raw_body("application/json", body(256 * 1024 + 1))).status(),
        413
    );
}

#[test]
fn writes_without_fields_accept_no_body_or_any_object() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    for (body, status) in [("", 200), ("{}", 200), ("{\"why\": 1}", 200), ("nonsense", 400), ("{", 400)] {
        let charge = service.create_charge();
        let mut request = TestRequest::new("POST", &format!("/v1/charges/{charge}/cancel")).key(&live);
        if !body.is_empty() {
            request = request.raw_body("application/json", body);
        }
        assert_eq!(service.send(&request).status(), status, "{body}");
    }
    let link = code_of(&service.post("/v1/payment-links", &json!({"title": "A hat", "amount": "1"})).data());
    for (method, status) in
        [("POST", "archived"), ("POST", "archived"), ("DELETE", "active"), ("DELETE", "active")]
    {
        let response = service.request(method, &format!("/v1/payment-links/{link}/archive"));
        assert_eq!((response.status(), response.data()["status"].as_str()), (200, Some(status)));
    }
}

#[test]
fn event_ids_are_case_insensitive() {
    let mut service = TestService::new();
    service.create_charge();
    let id = string(&service.list("/v1/events")[0]["id"]);
    for id in [&id, &id.to_uppercase()] {
        assert_eq!(service.get(&format!("/v1/events/{id}")).status(), 200);
        assert_eq!(service.get(&format!("/v1/events?page=1&anchor={id}")).status(), 200);
    }
    for other in [id.replace('-', ""), format!("{{{id}}}"), format!("urn:uuid:{id}"), format!("{id}0")] {
        assert_eq!(service.get(&format!("/v1/events/{other}")).status(), 404, "{other}");
        assert_eq!(service.get(&format!("/v1/events?page=1&anchor={other}")).status(), 422, "{other}");
    }
}

#[test]
fn errors_are_checked_in_a_fixed_order() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let charge = service.create_charge();
    let oversized = vec![b'x'; 256 * 1024 + 1];
    let mut status_of = |method: &str, path: &str, key: &str, content_type: &str, body: &[u8]| {
        service.send(&TestRequest::new(method, path).key(key).raw_body(content_type, body)).status()
    };
    let known = format!("/v1/charges/{charge}");
    // 401 comes before everything, 404 before the method, the method before the body, its size before its type, its
    // type before its format, its format before the state.
    assert_eq!(status_of("DELETE", "/v1/charges/aaaaaaaaaaaa", "svc_live_x", "text/plain", &oversized), 401);
    assert_eq!(status_of("DELETE", "/v1/charges/aaaaaaaaaaaa", &live, "text/plain", &oversized), 404);
    assert_eq!(status_of("POST", "/v1/charges/aaaaaaaaaaaa/cancel", &live, "text/plain", &oversized), 404);
    assert_eq!(status_of("DELETE", &known, &live, "text/plain", &oversized), 405);
    let cancel = format!("{known}/cancel");
    assert_eq!(status_of("POST", &cancel, &live, "text/plain", &oversized), 413);
    assert_eq!(status_of("POST", &cancel, &live, "text/plain", b"x"), 415);
    assert_eq!(status_of("POST", &cancel, &live, "application/json", b"x"), 400);
    assert_eq!(
        status_of("POST", &cancel, &live, "application/json", b"[]"),
        200,
        "PHP clients send [] for an empty map"
    );
    let refunds = format!("{known}/refunds");
    assert_eq!(status_of("POST", &refunds, &live, "application/json", b"{}"), 422);
    assert_eq!(status_of("POST", &cancel, &live, "application/json", b"{}"), 409);
}
