//! Payment links: allowed amounts, coins and custom fields, changes, and the end of a link.

use reference_core::{
    asset::Asset,
    call::PaymentChoice,
    charge::{CustomField, Customer},
    command::{Visit, VisitResult},
    money::Fiat,
    time::Span,
};
use serde_json::{Value, json};

use crate::test_service::{ReceivedResponse, TICK, TestRequest, TestService, code_of, confirmed, parse_code};

/// Creates a charge from a link, with these fields besides coin and link.
fn create_linked_charge(service: &mut TestService, link: &str, fields: &Value) -> ReceivedResponse {
    let mut body = json!({"asset": "BTC", "payment_link": link});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    service.post("/v1/charges", &body)
}

/// Creates a charge with these fields from a link with these terms, and checks the status and the invalid fields.
#[track_caller]
fn check(terms: &Value, fields: Value, status: u16, invalid: &[&str]) {
    let mut service = TestService::new();
    let link = service.create("/v1/payment-links", terms);
    let response = create_linked_charge(&mut service, &link, &fields);
    assert_eq!(
        (response.status(), response.invalid_fields()),
        (status, invalid.iter().map(|&name| name.to_owned()).collect()),
        "{}",
        response.text()
    );
    assert_eq!(service.total("/v1/charges"), u64::from(status == 201));
}

#[test]
fn a_link_with_a_fixed_price_refuses_other_amounts() {
    let link = json!({"title": "A hat", "amount": "75.00", "currency": "USD"});
    check(&link, json!({}), 201, &[]);
    check(&link, json!({"amount": "75"}), 201, &[]);
    check(&link, json!({"currency": "USD"}), 201, &[]);
    check(&link, json!({"amount": "74.99"}), 422, &["amount"]);
    check(&link, json!({"currency": "EUR"}), 422, &["currency"]);
}

#[test]
fn a_link_with_an_open_price_refuses_amounts_outside_its_bounds() {
    let link =
        json!({"title": "A gift", "pricing_type": "open", "min_amount": "5.00", "max_amount": "10.00"});
    check(&link, json!({}), 422, &["amount"]);
    for (amount, status) in [("4.99", 422), ("5.00", 201), ("10.00", 201), ("10.01", 422), ("0", 422)] {
        check(&link, json!({"amount": amount}), status, if status == 422 { &["amount"] } else { &[] });
    }
    let single = json!({"title": "A gift", "pricing_type": "open", "min_amount": "5", "max_amount": "5"});
    check(&single, json!({"amount": "5.00"}), 201, &[]);
    let unbounded = json!({"title": "A gift", "pricing_type": "open"});
    check(&unbounded, json!({"amount": "0.01"}), 201, &[]);
    check(&unbounded, json!({"amount": "0"}), 422, &["amount"]);
}

#[test]
fn a_link_refuses_coins_that_it_does_not_accept() {
    let link = json!({"title": "A hat", "amount": "75", "accepted_assets": ["ETH"]});
    check(&link, json!({}), 422, &["asset"]);
    check(&link, json!({"asset": "ETH"}), 201, &[]);
    for all_coins in [json!(null), json!([])] {
        check(&json!({"title": "A hat", "amount": "75", "accepted_assets": all_coins}), json!({}), 201, &[]);
    }
}

#[test]
fn a_link_requires_its_custom_fields() {
    let link = json!({
        "title": "A hat", "amount": "75", "require_email": true,
        "custom_fields": [{"label": "Size", "required": true}, {"label": "Wish", "required": false}],
    });
    let email = json!({"email": "ada@shop.example"});
    check(&link, json!({}), 422, &["custom_fields", "customer.email"]);
    let size = json!([{"label": "Size", "value": "M"}]);
    check(&link, json!({"custom_fields": size}), 422, &["customer.email"]);
    check(&link, json!({"customer": email}), 422, &["custom_fields"]);
    check(
        &link,
        json!({"customer": email, "custom_fields": [{"label": "Size", "value": ""}]}),
        422,
        &["custom_fields"],
    );
    check(&link, json!({"customer": email, "custom_fields": size}), 201, &[]);
    check(&link, json!({"customer_email": "ada@shop.example", "custom_fields": size}), 201, &[]);
    let unknown = json!([{"label": "Size", "value": "M"}, {"label": "Age", "value": "9"}]);
    check(&link, json!({"customer": email, "custom_fields": unknown}), 422, &["custom_fields"]);
}

#[test]
fn a_link_accepts_no_payment_after_expires_at() {
    let mut service = TestService::new();
    let link = service.create(
        "/v1/payment-links",
        &json!({"title": "A hat", "amount": "75", "expires_at": "2026-09-20T10:00:01Z"}),
    );
    service.wait(Span::secs(1));
    service.now = service.now.minus(TICK);
    assert_eq!(create_linked_charge(&mut service, &link, &json!({})).status(), 201);
    service.wait(TICK);
    assert_eq!(create_linked_charge(&mut service, &link, &json!({})).status(), 409);
    assert_eq!(service.get(&format!("/v1/payment-links/{link}")).data()["accepting_payments"], false);
}

#[test]
fn a_link_accepts_no_payment_after_max_payments() {
    let mut service = TestService::new();
    let link =
        service.create("/v1/payment-links", &json!({"title": "A hat", "amount": "150", "max_payments": 2}));
    for txid in ["a", "b"] {
        let charge = code_of(&create_linked_charge(&mut service, &link, &json!({})).data());
        service.report_sighting(&charge, txid, "0.0025", confirmed(2));
    }
    assert_eq!(create_linked_charge(&mut service, &link, &json!({})).status(), 409);
    let patch =
        TestRequest::new("PATCH", &format!("/v1/payment-links/{link}")).key(&service.live_key.clone());
    let object = service.send(&patch.json(&json!({"max_payments": null}))).data();
    assert_eq!((&object["max_payments"], &object["accepting_payments"]), (&Value::Null, &json!(true)));
    assert_eq!(create_linked_charge(&mut service, &link, &json!({})).status(), 201);
}

#[test]
fn an_archived_link_opens_no_charge_and_can_be_restored() {
    let mut service = TestService::new();
    let link = service.create("/v1/payment-links", &json!({"title": "A hat", "amount": "75"}));
    let charge = code_of(&create_linked_charge(&mut service, &link, &json!({})).data());
    service.post(&format!("/v1/payment-links/{link}/archive"), &json!({}));
    assert_eq!(create_linked_charge(&mut service, &link, &json!({})).status(), 409);
    assert_eq!(
        create_linked_charge(&mut service, &link, &json!({"amount": "76"})).status(),
        422,
        "invalid fields are reported before the state"
    );
    assert_eq!(service.charge_status(&charge), "pending", "earlier charges stay open");
    service.request("DELETE", &format!("/v1/payment-links/{link}/archive"));
    assert_eq!(create_linked_charge(&mut service, &link, &json!({})).status(), 201);
}

#[test]
fn a_change_sets_the_given_fields_and_does_not_affect_earlier_charges() {
    let mut service = TestService::new();
    let terms = json!({"title": "A hat", "description": "Felt", "amount": "75", "success_url": "https://acme.example/"});
    let link = service.create("/v1/payment-links", &terms);
    let charge = code_of(&create_linked_charge(&mut service, &link, &json!({})).data());
    service.wait(Span::secs(1));
    let before = service.get(&format!("/v1/payment-links/{link}")).data();
    let patch =
        TestRequest::new("PATCH", &format!("/v1/payment-links/{link}")).key(&service.live_key.clone());
    let mut expected = before.clone();
    expected["amount"] = json!("80.00");
    expected["description"] = Value::Null;
    expected["updated_at"] = json!("2026-09-20T10:00:01.000000Z");
    assert_eq!(
        service.send(&patch.clone().json(&json!({"amount": "80", "description": null}))).data(),
        expected
    );
    assert_eq!(service.read_charge(&charge)["fiat_amount"], "75.00");
    for (change, field) in [
        (json!({"title": null}), "title"),
        (json!({"title": ""}), "title"),
        (json!({"amount": null}), "amount"),
        (json!({"min_amount": "1"}), "min_amount"),
        (json!({"pricing_type": "open", "amount": "1"}), "amount"),
        (json!({"title": "B", "max_payments": -1}), "max_payments"),
    ] {
        let response = service.send(&patch.clone().json(&change));
        assert_eq!((response.status(), response.invalid_fields()), (422, vec![field.to_owned()]), "{change}");
        assert_eq!(service.get(&format!("/v1/payment-links/{link}")).data(), expected, "{change}");
    }
    let opened =
        service.send(&patch.clone().json(&json!({"pricing_type": "open", "max_amount": "9"}))).data();
    assert_eq!((&opened["amount"], &opened["max_amount"]), (&Value::Null, &json!("9.00")));
    assert_eq!(
        service.send(&patch.json(&json!({"pricing_type": "fixed"}))).status(),
        422,
        "a fixed price needs an amount"
    );
}

#[test]
fn the_page_creates_charges_by_the_rules_of_the_api() {
    let mut service = TestService::new();
    let terms = json!({"title": "A gift", "pricing_type": "open", "max_amount": "10", "custom_fields": [{"label": "Wish", "required": true}]});
    let link = service.create("/v1/payment-links", &terms);
    let visit = |amount: &str, wish: &str| Visit::PayLink {
        link: parse_code(&link),
        choice: Box::new(PaymentChoice {
            asset: Asset::Btc,
            amount: Some(Fiat::parse(amount).unwrap()),
            customer: Customer::default(),
            custom_fields: vec![CustomField { label: "Wish".to_owned(), value: wish.to_owned() }],
        }),
    };
    assert_eq!(service.visit(visit("10.01", "x")).unwrap_err().status(), 422);
    assert_eq!(service.visit(visit("10.00", "")).unwrap_err().status(), 422);
    let Ok(VisitResult::Charge(account, mode, no)) = service.visit(visit("10.00", "peace")) else {
        panic!("the visit creates a charge")
    };
    let charge = service.api.service.account(account).book(mode).charge(no).code.to_string();
    let object = service.read_charge(&charge);
    assert_eq!((&object["payment_link"], &object["description"]), (&json!(link), &json!("A gift")));
    assert_eq!(object["custom_fields"], json!([{"label": "Wish", "value": "peace"}]));
    let listed = service.list(&format!("/v1/charges?payment_link={link}"));
    assert_eq!(listed, [object]);
}

#[test]
fn terms_that_cannot_be_paid_are_refused() {
    #[track_caller]
    fn check_refusal(terms: Value, invalid: &[&str]) {
        let mut body = json!({"title": "A gift", "pricing_type": "open"});
        body.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
        let response = TestService::new().post("/v1/payment-links", &body);
        assert_eq!(
            (response.status(), response.invalid_fields()),
            (422, invalid.iter().map(|&name| name.to_owned()).collect())
        );
    }
    check_refusal(json!({"min_amount": "0"}), &["min_amount"]);
    check_refusal(json!({"max_amount": "0.00"}), &["max_amount"]);
    check_refusal(json!({"min_amount": "5", "max_amount": "4.99"}), &["max_amount"]);
    check_refusal(json!({"suggested_amounts": ["5", "0"]}), &["suggested_amounts.1"]);
    check_refusal(json!({"suggested_amounts": ["4.99", "5"], "min_amount": "5"}), &["suggested_amounts.0"]);
    check_refusal(json!({"suggested_amounts": ["5", "5.01"], "max_amount": "5"}), &["suggested_amounts.1"]);
    check_refusal(json!({"expires_at": "2026-09-20T10:00:00Z"}), &["expires_at"]);
    check_refusal(json!({"accepted_assets": ["BTC", "LTC", "BTC"]}), &["accepted_assets"]);
    check_refusal(json!({"custom_fields": [{"label": "Size"}, {"label": "Size"}]}), &["custom_fields"]);
}

#[test]
fn only_page_visits_are_counted_as_views() {
    let mut service = TestService::new();
    let link = service.create("/v1/payment-links", &json!({"title": "A hat", "amount": "75"}));
    for _ in 0..3 {
        service.visit(Visit::ViewLink(parse_code(&link))).unwrap();
    }
    let object = service.get(&format!("/v1/payment-links/{link}")).data();
    assert_eq!((&object["views_count"], &object["updated_at"]), (&json!(3), &object["created_at"]));
}
