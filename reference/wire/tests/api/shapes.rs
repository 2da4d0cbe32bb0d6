//! Snapshots of responses and deliveries, byte by byte.

use reference_core::{
    asset::{Asset, Currency},
    business::{Business, PostalAddress},
    command::{BookCommand, SettingsDraft, Visit},
    event::EventType,
    mode::Mode,
    outbox::AttemptResult,
    time::Span,
};
use serde_json::{Value, json};

use crate::test_service::{
    MEMPOOL, ReceivedResponse, TestRequest, TestService, code_of, confirmed, indent_json, parse_code, string,
};

/// Returns status, headers and body as one string.
fn response_text(response: &ReceivedResponse) -> String {
    let mut text = format!("{}\n", response.status());
    for (name, value) in &response.0.headers {
        text.push_str(&format!("{name}: {value}\n"));
    }
    format!("{text}\n{}", indent_json(&response.0.body))
}

/// Compares a response with the snapshot of this name.
#[track_caller]
fn check(name: &str, response: &ReceivedResponse) {
    insta::assert_snapshot!(name, response_text(response));
}

/// Returns a business with all fields except two parts of its address.
fn hat_makers() -> Business {
    let some = |text: &str| Some(text.to_owned());
    Business {
        kind: some("company"),
        legal_name: some("Acme Hats GmbH"),
        registration_number: some("HRB 4711"),
        tax_id: some("DE123456789"),
        address: Some(PostalAddress {
            line1: some("Hutgasse 7"),
            city: some("Berlin"),
            postal_code: some("10115"),
            country: some("DE"),
            ..PostalAddress::default()
        }),
        industry: some("retail"),
        product_description: some("Hats"),
        monthly_volume: some("10000 to 50000 EUR"),
        phone: some("+49 30 3"),
    }
}

fn full_charge() -> Value {
    json!({
        "asset": "BTC", "amount": "150.00", "currency": "EUR", "description": "Two hats",
        "customer": {
            "email": "ada@shop.example", "name": "Ada", "ip_address": "2001:db8::1", "user_agent": "Browser/1",
            "reference": "customer 17", "phone": "+49 30 1", "country": "DE", "metadata": {"tier": "gold"},
        },
        "metadata": {"order": "A-17", "hats": 2, "weight": 1.50, "gift": true, "note": null},
    })
}

#[test]
fn the_account_states_the_mode_of_the_key() {
    let mut service = TestService::new();
    service.change_settings(SettingsDraft {
        display_name: Some("Acme Hats".to_owned()),
        website_url: Some(Some("https://acme.example".to_owned())),
        support_phone: Some(Some("+49 30 2".to_owned())),
        business: Some(Some(hat_makers())),
        default_currency: Some(Currency::Usd),
        ..SettingsDraft::default()
    });
    service.run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Xmr)).unwrap();
    check("account_live", &service.get("/v1/account"));
    let response = service.send(&TestRequest::new("GET", "/v1/account").key(&service.test_key.clone()));
    assert_eq!(response.json()["meta"]["mode"], "test");
    assert!(response.json()["meta"]["accepted_assets"].as_array().unwrap().contains(&json!("XMR")));
}

#[test]
fn a_charge_before_and_after_it_is_paid() {
    let mut service = TestService::new();
    let response = service.post("/v1/charges", &full_charge());
    check("charge_pending", &response);
    let charge = code_of(&response.data());
    service.wait(Span::secs(90));
    service.report_sighting(&charge, "tx1", "0.0026", MEMPOOL);
    service.wait(Span::secs(600));
    service.report_sighting(&charge, "tx1", "0.0026", confirmed(2));
    service.wait(Span::micros(1));
    let refund = json!({"amount": "0.0001", "txid": "tx9", "reason": "one hat was small"});
    let response = service.post(&format!("/v1/charges/{charge}/refunds"), &refund);
    check("charge_paid_and_refunded", &response);
    assert_eq!(
        service.read_charge(&charge),
        response.data(),
        "the response to a refund is the current charge"
    );
}

#[test]
fn payment_links_with_a_fixed_and_an_open_price() {
    let mut service = TestService::new();
    let fixed = service.post("/v1/payment-links", &json!({"title": "A hat", "amount": "75"}));
    check("link_fixed", &fixed);
    let open = json!({
        "title": "A gift", "description": "Any amount", "pricing_type": "open", "currency": "USD",
        "suggested_amounts": ["5.00", 10], "min_amount": "1.00", "max_amount": "100.00",
        "accepted_assets": ["BTC", "USDT_TRON"], "success_url": "https://acme.example/thanks",
        "cancel_url": "https://acme.example/oh", "collect_name": true, "require_email": true,
        "custom_fields": [{"label": "Size", "required": true}, {"label": "Wish"}],
        "success_message": "Thanks!", "expires_at": "2026-12-24T18:00:00Z", "max_payments": 3,
    });
    let open = code_of(&service.post("/v1/payment-links", &open).data());
    service.visit(Visit::ViewLink(parse_code(&open))).unwrap();
    service.wait(Span::secs(1));
    check("link_open_archived", &service.post(&format!("/v1/payment-links/{open}/archive"), &json!({})));
}

fn invoice_with_items() -> Value {
    json!({
        "customer_name": "Ada", "customer_email": "ada@shop.example", "currency": "EUR", "memo": "Thank you",
        "items": [
            {"description": "Hat", "quantity": 2, "unit_amount": "49.90"},
            {"description": "Ribbon, by the metre", "quantity": "1.125", "unit_amount": "0.40"},
        ],
        "due_at": "2026-10-15", "send_email": true,
    })
}

#[test]
fn an_invoice_with_items_and_a_charge() {
    let mut service = TestService::new();
    let invoice = service.create("/v1/invoices", &invoice_with_items());
    service.wait(Span::secs(5));
    service.visit(Visit::ViewInvoice(parse_code(&invoice))).unwrap();
    service.choose_coin(&invoice, Asset::Eth).unwrap();
    check("invoice_open", &service.get(&format!("/v1/invoices/{invoice}")));
}

#[test]
fn an_event_of_a_charge_and_one_of_an_invoice() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    service.wait(Span::secs(1));
    service.report_sighting(&charge, "tx1", "0.001", MEMPOOL);
    service.create("/v1/invoices", &json!({"amount": "20.00", "customer_name": "Ada"}));
    let events = service.list("/v1/events");
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["invoice.created", "charge.payment_detected", "charge.created"]);
    for (name, event) in [("event_of_invoice", &events[0]), ("event_of_charge", &events[1])] {
        check(name, &service.get(&format!("/v1/events/{}", string(&event["id"]))));
    }
    // events.timeline: a single event and a list show the same object.
    assert_eq!(service.get(&format!("/v1/events/{}", string(&events[0]["id"]))).data(), events[0]);
}

/// Returns the ids, links and meta of a list as one string, without its records, which have their own snapshots.
fn ids_links_and_meta(response: &ReceivedResponse) -> String {
    let json = response.json();
    let ids: Vec<&str> =
        json["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    format!("{ids:?}\n{}\n{}", indent_json(json["links"].to_string().as_bytes()), {
        indent_json(json["meta"].to_string().as_bytes())
    })
}

#[test]
fn empty_filtered_and_middle_pages_of_a_list() {
    let mut service = TestService::new();
    check("list_empty", &service.get("/v1/charges"));
    let link = service.create("/v1/payment-links", &json!({"title": "A hat", "amount": "75"}));
    for _ in 0..5 {
        service.create("/v1/charges", &json!({"asset": "BTC", "payment_link": link}));
        service.create_charge();
    }
    service.get("/v1/charges?per_page=3");
    insta::assert_snapshot!(
        "list_middle_page",
        ids_links_and_meta(&service.get("/v1/charges?per_page=3&page=2"))
    );
    let filtered = format!("/v1/charges?status=pending&payment_link={link}&per_page=2");
    insta::assert_snapshot!("list_filtered", ids_links_and_meta(&service.get(&filtered)));
    insta::assert_snapshot!("list_past_the_end", ids_links_and_meta(&service.get("/v1/charges?page=9")));
}

#[test]
fn error_responses_of_every_status() {
    let mut service = TestService::with_rate_limit();
    let key = service.live_key.clone();
    let charge_request =
        |body: &str| TestRequest::new("POST", "/v1/charges").key(&key).raw_body("application/json", body);
    check("error_400_not_json", &service.send(&charge_request("{\"asset\": ")));
    check(
        "error_400_idempotency_key",
        &service.send(&charge_request("{}").idempotency_key(&"k".repeat(256))),
    );
    check("error_401", &service.send(&TestRequest::new("GET", "/v1/account")));
    check("error_404", &service.get("/v1/charges/aaaaaaaaaaaa"));
    check("error_405", &service.request("DELETE", "/v1/charges"));
    let charge = service.create_charge();
    service.report_sighting(&charge, "tx1", "0.001", MEMPOOL);
    check("error_409", &service.post(&format!("/v1/charges/{charge}/cancel"), &json!({})));
    let large = format!("{{\"description\": \"{}\"}}", "x".repeat(256 * 1024));
    check("error_413", &service.send(&charge_request(&large)));
    check(
        "error_415",
        &service.send(&TestRequest::new("POST", "/v1/charges").key(&key).raw_body("text/plain", "{}")),
    );
    check("error_422_one_field", &service.post("/v1/charges", &json!({"amount": "1.00"})));
    let many_errors = json!({
        "customer_email": "nobody", "items": [
            {"description": "Hat", "quantity": "1.0001", "unit_amount": "-1"},
            {"quantity": 1, "unit_amount": 1}, 7,
        ],
    });
    check("error_422_nested", &service.post("/v1/invoices", &many_errors));
    check("error_422_query", &service.get("/v1/events?page=0&per_page=101&type=charge.lost"));
    let pair_without_rate = json!({"asset": "BTC", "amount": "1.00", "currency": "CHF"});
    check("error_503", &service.post("/v1/charges", &pair_without_rate));
    while service.get("/v1/account").status() == 200 {}
    service.wait(Span::millis(1_500));
    check("error_429", &service.get("/v1/account"));
}

/// Makes all due delivery attempts; returns event type, attempt number and body of each.
fn attempted_bodies(service: &mut TestService) -> String {
    let mut text = String::new();
    for (_, attempt) in service.attempt_all(&AttemptResult::Response(200)) {
        let body: Value = serde_json::from_slice(&attempt.body).unwrap();
        assert_eq!(string(&body["id"]), attempt.id.to_string(), "webhooks.delivery_id");
        assert_eq!(string(&body["event"]), attempt.kind.as_str(), "webhooks.event_header");
        text.push_str(&format!(
            "# {}, attempt {}\n{}\n\n",
            attempt.kind.as_str(),
            attempt.attempt,
            indent_json(&attempt.body)
        ));
    }
    text
}

#[test]
fn webhooks_of_a_charge() {
    let mut service = TestService::new();
    service.add_endpoint(Mode::Live, "https://shop.example/hook", &EventType::ALL);
    let charge = code_of(&service.post("/v1/charges", &full_charge()).data());
    service.wait(Span::secs(2));
    service.report_sighting(&charge, "tx1", "0.0025", MEMPOOL);
    service.wait(Span::secs(2));
    service.report_sighting(&charge, "tx1", "0.0025", confirmed(2));
    service.post(&format!("/v1/charges/{charge}/refunds"), &json!({"amount": "0.0005"}));
    insta::assert_snapshot!("webhooks_charge", attempted_bodies(&mut service));
}

#[test]
fn webhooks_of_late_payments_and_invoices() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    service.post(&format!("/v1/charges/{charge}/cancel"), &json!({}));
    service.add_endpoint(Mode::Live, "https://shop.example/hook", &EventType::ALL);
    service.report_sighting(&charge, "tx1", "0.0025", confirmed(1));
    insta::assert_snapshot!("webhooks_late_payment", attempted_bodies(&mut service));
    let invoice = service.create("/v1/invoices", &invoice_with_items());
    service.choose_coin(&invoice, Asset::Btc).unwrap();
    service.post(&format!("/v1/invoices/{invoice}/void"), &json!({}));
    insta::assert_snapshot!("webhooks_invoice", attempted_bodies(&mut service));
}

#[test]
fn a_test_delivery_is_marked_as_test() {
    let mut service = TestService::new();
    let id = service.add_endpoint(Mode::Test, "https://shop.example/hook", &[EventType::InvoiceSent]);
    service.run_command(Mode::Test, BookCommand::SendTest(id)).unwrap();
    insta::assert_snapshot!("webhook_test", attempted_bodies(&mut service));
    assert_eq!(service.book(Mode::Test).events().count(), 0, "a test delivery is not an event");
}

#[test]
fn webhooks_contain_no_api_only_fields() {
    let mut service = TestService::new();
    service.add_endpoint(Mode::Live, "https://shop.example/hook", &EventType::ALL);
    let invoice = service.create("/v1/invoices", &invoice_with_items());
    let charge = service.choose_coin(&invoice, Asset::Btc).unwrap();
    service.report_sighting(&charge, "tx1", "1", confirmed(2));
    for (_, attempt) in service.attempt_all(&AttemptResult::Response(204)) {
        let body: Value = serde_json::from_slice(&attempt.body).unwrap();
        let data = body["data"].as_object().unwrap();
        let (name, object) = data.iter().next().unwrap();
        let object = object.as_object().unwrap();
        for absent in ["id", "timeline", "refunds", "checkout_url", "receipt_url"] {
            assert!(!object.contains_key(absent), "{name} of {} has no {absent}", attempt.kind.as_str());
        }
        for amount in
            ["asset_amount", "received_amount", "remaining_amount", "refunded_amount", "exchange_rate"]
        {
            if name == "charge" {
                let text = string(&object[amount]);
                assert_eq!(
                    text.split_once('.').map(|(_, decimals)| decimals.len()),
                    Some(18),
                    "{amount} {text}"
                );
            }
        }
    }
}
