//! Query parameters and body fields: accepted and refused values.

use serde_json::{Value, json};

use crate::test_service::{TestRequest, TestService};

/// Checks that a read is refused with 422 for exactly these parameters; accepted if there are none.
#[track_caller]
fn check_query(target: &str, invalid: &[&str]) {
    let mut service = TestService::new();
    service.create_charge();
    let response = service.get(target);
    if invalid.is_empty() {
        assert_eq!(response.status(), 200, "{target}: {}", response.text());
    } else {
        assert_eq!(response.status(), 422, "{target}");
        assert_eq!(response.invalid_fields(), invalid, "{target}");
    }
}

#[test]
fn pages_start_at_1_and_have_1_to_100_records() {
    for list in ["/v1/charges", "/v1/invoices", "/v1/payment-links", "/v1/events"] {
        for good in [
            "",
            "?",
            "?page=1",
            "?page=01",
            "?page=18446744073709551615",
            "?per_page=1",
            "?per_page=100",
            "?&&",
        ] {
            check_query(&format!("{list}{good}"), &[]);
        }
        for bad in ["", "0", "-1", "1.5", "1e3", "x", "+1", " 1", "%31%00", "\u{661}"] {
            check_query(&format!("{list}?page={bad}"), &["page"]);
            check_query(&format!("{list}?per_page={bad}"), &["per_page"]);
        }
        check_query(&format!("{list}?per_page=101"), &["per_page"]);
        check_query(&format!("{list}?per_page=99999999999999999999"), &["per_page"]);
        check_query(&format!("{list}?page=x&per_page=y"), &["page", "per_page"]);
        check_query(&format!("{list}?page=1&page=2"), &["page"]);
        check_query(&format!("{list}?color=blue&color=red"), &[]);
    }
}

#[test]
fn filter_values_of_enums_are_checked_and_codes_are_not() {
    for status in ["pending", "underpaid", "paid", "expired", "canceled", "%70aid"] {
        check_query(&format!("/v1/charges?status={status}"), &[]);
    }
    for status in ["open", "paid", "void"] {
        check_query(&format!("/v1/invoices?status={status}"), &[]);
    }
    for bad in ["", "PAID", "lost", "paid,expired", "%ff", "paid%00"] {
        check_query(&format!("/v1/charges?status={bad}"), &["status"]);
        check_query(&format!("/v1/invoices?status={bad}"), &["status"]);
        check_query(&format!("/v1/events?type={bad}"), &["type"]);
    }
    check_query("/v1/charges?status=paid&status=paid", &["status"]);
    check_query("/v1/events?type=charge.paid&charge=x&charge=y", &["charge"]);
    // A filter of another list is an unknown parameter.
    check_query("/v1/charges?type=lost", &[]);
    check_query("/v1/events?status=lost", &[]);
    for name in ["", "x", "aaaaaaaaaaaa", "AAAAAAAAAAAA", "%ff", "%00", "'; drop table"] {
        for target in ["/v1/charges?payment_link=", "/v1/events?charge=", "/v1/events?invoice="] {
            check_query(&format!("{target}{name}"), &[]);
        }
    }
}

#[test]
fn the_error_of_an_unknown_filter_value_lists_the_allowed_ones() {
    let mut service = TestService::new();
    for (target, field, allowed) in [
        (
            "/v1/charges?status=lost",
            "status",
            "the allowed values are pending, underpaid, paid, expired, canceled.",
        ),
        ("/v1/invoices?status=lost", "status", "the allowed values are open, paid, void."),
        (
            "/v1/events?type=lost",
            "type",
            "the allowed values are charge.created, charge.payment_detected, charge.paid, ",
        ),
    ] {
        let response = service.get(target).json();
        let message = response["errors"][field][0].as_str().expect("the filter is refused");
        assert!(message.contains(allowed), "{target}: {message}");
    }
}

#[test]
fn foreign_and_absent_anchors_get_the_same_error() {
    let mut service = TestService::new();
    let live = service.create_charge();
    let test = service.test_key.clone();
    service.post_as(&test, "/v1/charges", &json!({"asset": "BTC", "amount": "1.00"})).data();
    let foreign = service.open_account("bolt");
    let bolt = service.new_key(foreign, reference_core::mode::Mode::Live);
    service.post_as(&bolt, "/v1/charges", &json!({"asset": "BTC", "amount": "1.00"})).data();
    for list in ["charges", "events"] {
        let good = service.list(&format!("/v1/{list}"))[0]["id"].as_str().unwrap().to_owned();
        assert_eq!(service.get(&format!("/v1/{list}?anchor={good}")).status(), 200);
        let absent = service.get(&format!("/v1/{list}?anchor=aaaaaaaaaaaa"));
        assert_eq!((absent.status(), absent.invalid_fields()), (422, vec!["anchor".to_owned()]));
        for key in [&test, &bolt] {
            let response = service.send(&TestRequest::new("GET", &format!("/v1/{list}")).key(key));
            let theirs = response.data()[0]["id"].as_str().unwrap().to_owned();
            assert_eq!(service.get(&format!("/v1/{list}?anchor={theirs}")), absent);
        }
        assert_eq!(service.get(&format!("/v1/{list}?anchor=")), absent);
    }
    assert_eq!(
        service.get(&format!("/v1/invoices?anchor={live}")).status(),
        422,
        "a charge is not an invoice"
    );
}

/// Checks that a write is refused with 422 for exactly these fields and changes nothing; accepted if there are none.
#[track_caller]
fn check_body(path: &str, body: Value, invalid: &[&str]) {
    let mut service = TestService::new();
    let response = service.post(path, &body);
    assert_eq!(response.invalid_fields(), invalid, "{body}: {}", response.text());
    assert_eq!(response.status(), if invalid.is_empty() { 201 } else { 422 }, "{body}");
    if !invalid.is_empty() {
        let json = response.json();
        let count: usize = invalid.iter().map(|name| json["errors"][name].as_array().unwrap().len()).sum();
        let suffix = match count - 1 {
            0 => String::new(),
            1 => " (and 1 more error)".to_owned(),
            n => format!(" (and {n} more errors)"),
        };
        let message = json["message"].as_str().unwrap();
        assert!(message.ends_with(&suffix) && message.contains('.'), "{message}");
        assert_eq!(service.total("/v1/events"), 0, "{body}");
    }
}

#[test]
fn a_charge_needs_a_coin_and_a_price() {
    let check_charge = |body: Value, invalid: &[&str]| check_body("/v1/charges", body, invalid);
    check_charge(json!({}), &["amount", "asset"]);
    check_charge(json!({"asset": "BTC"}), &["amount"]);
    check_charge(json!({"asset": "btc", "amount": "1"}), &["asset"]);
    check_charge(json!({"asset": "BTC", "amount": "1", "currency": "eur"}), &["currency"]);
    for amount in [
        json!("0"),
        json!(0),
        json!("-1"),
        json!("1.001"),
        json!("1e2"),
        json!("NaN"),
        json!(""),
        json!(" 1"),
        json!("1,00"),
        json!(true),
        json!([]),
        json!({}),
        json!(null),
        json!("99999999999999999999"),
        json!("0x10"),
        json!("+1"),
        json!(".5"),
    ] {
        check_charge(json!({"asset": "BTC", "amount": amount}), &["amount"]);
    }
    for amount in [json!("1"), json!("1.0"), json!("1.00"), json!(1), json!(0.5), json!("0.01")] {
        check_charge(json!({"asset": "BTC", "amount": amount}), &[]);
    }
    check_charge(json!({"asset": "BTC", "payment_link": "aaaaaaaaaaaa"}), &["payment_link"]);
    check_charge(json!({"asset": "BTC", "payment_link": "no code"}), &["payment_link"]);
    check_charge(
        json!({"asset": 7, "amount": "1", "payment_link": 7, "description": 7}),
        &["asset", "description", "payment_link"],
    );
}

#[test]
fn a_customer_has_known_fields_only() {
    let check_customer = |customer: Value, invalid: &[&str]| {
        check_body("/v1/charges", json!({"asset": "BTC", "amount": "1", "customer": customer}), invalid);
    };
    check_customer(json!({}), &[]);
    check_customer(json!(null), &[]);
    check_customer(json!({"emial": "x"}), &["customer.emial"]);
    check_customer(json!("ada"), &["customer"]);
    check_customer(json!(["ada"]), &["customer"]);
    check_customer(
        json!({"email": "nobody", "country": "de", "ip_address": "1.2.3"}),
        &["customer.country", "customer.email", "customer.ip_address"],
    );
    check_customer(json!({"metadata": {"a": []}}), &["customer.metadata.a"]);
}

#[test]
fn metadata_has_20_keys_of_40_characters_and_values_of_500() {
    let check_metadata = |metadata: Value, invalid: &[&str]| {
        check_body("/v1/charges", json!({"asset": "BTC", "amount": "1", "metadata": metadata}), invalid);
    };
    let keys = |n: usize| Value::Object((0..n).map(|i| (format!("k{i}"), json!(i))).collect());
    check_metadata(keys(20), &[]);
    check_metadata(keys(21), &["metadata"]);
    let (good, bad) = ("ä".repeat(40), "ä".repeat(41));
    check_metadata(json!({ good: "ö".repeat(500) }), &[]);
    check_metadata(json!({ bad.clone(): 1 }), &[&format!("metadata.{bad}")]);
    check_metadata(json!({"a": "x".repeat(501)}), &["metadata.a"]);
    check_metadata(json!({"a": {}, "b": [1]}), &["metadata.a", "metadata.b"]);
    check_metadata(json!({"a": "", "b": null, "c": false, "d": 1.5}), &[]);
    check_metadata(json!([]), &[]);
    check_metadata(json!("x"), &["metadata"]);
}

#[test]
fn metadata_is_returned_unchanged() {
    let mut service = TestService::new();
    let live = service.live_key.clone();
    let metadata =
        r#"{"z":1.50,"a":12345678901234567890123,"e":1e5,"t":true,"n":null,"s":"\u00e4\u0000\"\\"}"#;
    let body = format!(r#"{{"asset":"BTC","amount":"1","metadata":{metadata}}}"#);
    let response =
        service.send(&TestRequest::new("POST", "/v1/charges").key(&live).raw_body("application/json", body));
    let expected =
        r#""metadata":{"z":1.50,"a":12345678901234567890123,"e":1e5,"t":true,"n":null,"s":"ä\u0000\"\\"}"#;
    assert!(response.text().contains(expected), "{}", response.text());
    let without_metadata = service.post("/v1/charges", &json!({"asset": "BTC", "amount": "1"}));
    assert!(without_metadata.text().contains(r#""metadata":{}"#), "empty metadata is an object");
}

#[test]
fn invoices_have_an_amount_or_items() {
    let check_invoice = |body: Value, invalid: &[&str]| check_body("/v1/invoices", body, invalid);
    check_invoice(json!({}), &["amount"]);
    check_invoice(json!({"amount": "1"}), &[]);
    check_invoice(json!({"amount": "0"}), &["amount"]);
    let item = json!({"description": "Hat", "quantity": 1, "unit_amount": "1"});
    check_invoice(json!({"items": [item]}), &[]);
    check_invoice(json!({"items": [item], "amount": "1"}), &["amount"]);
    check_invoice(json!({"items": []}), &["amount"]);
    check_invoice(
        json!({"items": [{}]}),
        &["items.0.description", "items.0.quantity", "items.0.unit_amount"],
    );
    check_invoice(
        json!({"items": [item, {"description": "", "quantity": "0.0001", "unit_amount": "1.999"}]}),
        &["items.1.description", "items.1.quantity", "items.1.unit_amount"],
    );
    check_invoice(json!({"items": vec![item.clone(); 101]}), &["items"]);
    check_invoice(json!({"amount": "1", "due_at": "2026-02-30"}), &["due_at"]);
    check_invoice(json!({"amount": "1", "due_at": "2026-10-15T00:00:00Z"}), &["due_at"]);
    check_invoice(json!({"amount": "1", "send_email": true}), &["customer_email"]);
    check_invoice(json!({"amount": "1", "send_email": "yes"}), &["send_email"]);
}

#[test]
fn links_have_a_title_and_a_price() {
    let check_link = |body: Value, invalid: &[&str]| check_body("/v1/payment-links", body, invalid);
    check_link(json!({}), &["amount", "title"]);
    check_link(json!({"title": "", "amount": "1"}), &["title"]);
    check_link(json!({"title": "A", "pricing_type": "free", "amount": "1"}), &["pricing_type"]);
    check_link(json!({"title": "A", "amount": "1", "min_amount": "1"}), &["min_amount"]);
    check_link(json!({"title": "A", "amount": "1", "suggested_amounts": ["1"]}), &["suggested_amounts"]);
    check_link(json!({"title": "A", "amount": "1", "suggested_amounts": []}), &[]);
    check_link(json!({"title": "A", "pricing_type": "open", "amount": "1"}), &["amount"]);
    check_link(
        json!({"title": "A", "pricing_type": "open", "min_amount": "2", "max_amount": "1"}),
        &["max_amount"],
    );
    check_link(
        json!({"title": "A", "pricing_type": "open", "suggested_amounts": ["1", "x"]}),
        &["suggested_amounts.1"],
    );
    check_link(
        json!({"title": "A", "amount": "1", "accepted_assets": ["BTC", "btc"]}),
        &["accepted_assets.1"],
    );
    check_link(json!({"title": "A", "amount": "1", "success_url": "javascript:1"}), &["success_url"]);
    check_link(json!({"title": "A", "amount": "1", "max_payments": 0}), &["max_payments"]);
    check_link(
        json!({"title": "A", "amount": "1", "custom_fields": [{"required": 1}]}),
        &["custom_fields.0.label", "custom_fields.0.required"],
    );
    check_link(json!({"title": "A", "amount": "1", "expires_at": "tomorrow"}), &["expires_at"]);
}

#[test]
fn a_page_past_the_end_is_empty() {
    let mut service = TestService::new();
    service.create_charge();
    for page in ["2", "1000000", "18446744073709551615", "99999999999999999999999999"] {
        let response = service.get(&format!("/v1/charges?page={page}"));
        assert_eq!(response.status(), 200, "{page}");
        assert_eq!(response.json()["data"], json!([]));
        assert_eq!(response.json()["meta"]["from"], Value::Null);
    }
}

#[test]
fn metadata_numbers_must_fit_a_double() {
    for (number, status) in
        [("1e308", 201), ("-1e308", 201), ("1e-999", 201), ("1e309", 422), ("-1e999999999", 422)]
    {
        let mut service = TestService::new();
        let body = format!(r#"{{"asset": "BTC", "amount": "1", "metadata": {{"a": {number}}}}}"#);
        let request = TestRequest::new("POST", "/v1/charges")
            .key(&service.live_key.clone())
            .raw_body("application/json", body);
        let response = service.send(&request);
        let invalid: &[&str] = if status == 422 { &["metadata.a"] } else { &[] };
        assert_eq!(
            (response.status(), response.invalid_fields()),
            (status, invalid.iter().map(|&name| name.to_owned()).collect())
        );
        assert!(
            service.get("/v1/events").json()["data"].is_array(),
            "events with the charge can still be read"
        );
    }
}
