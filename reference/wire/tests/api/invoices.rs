//! Invoices: creation, e-mails, views, payment and voiding.

use reference_core::{
    asset::Asset,
    command::{BookCommand, SettingsDraft, Visit},
    mode::Mode,
    time::Span,
};
use serde_json::{Value, json};

use crate::test_service::{
    LOCK, MEMPOOL, ReceivedResponse, TICK, TestService, code_of, confirmed, parse_code, string,
};

/// Creates an invoice and returns its code.
fn issue(service: &mut TestService) -> String {
    service.create(
        "/v1/invoices",
        &json!({"amount": "150.00", "customer_name": "Ada", "customer_email": "ada@shop.example"}),
    )
}

fn send(service: &mut TestService, invoice: &str) -> ReceivedResponse {
    service.post(&format!("/v1/invoices/{invoice}/send"), &json!({}))
}

fn void(service: &mut TestService, invoice: &str) -> ReceivedResponse {
    service.post(&format!("/v1/invoices/{invoice}/void"), &json!({}))
}

/// Returns the types of all live events, oldest first.
fn event_types(service: &mut TestService) -> Vec<String> {
    let mut events = service.list("/v1/events?per_page=100");
    events.reverse();
    events.iter().map(|event| string(&event["type"])).collect()
}

#[test]
fn invoice_numbers_are_consecutive() {
    let mut service = TestService::new();
    for number in ["INV-0001", "INV-0002", "INV-0003"] {
        let invoice = issue(&mut service);
        assert_eq!(service.read_invoice(&invoice)["number"], number);
        assert_eq!(
            service.post("/v1/invoices", &json!({})).status(),
            422,
            "a refused invoice takes no number"
        );
    }
}

#[test]
fn only_the_first_view_is_an_event() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    service.wait(Span::secs(1));
    for _ in 0..3 {
        service.visit(Visit::ViewInvoice(parse_code(&invoice))).unwrap();
        service.wait(Span::secs(1));
    }
    assert_eq!(event_types(&mut service), ["invoice.created", "invoice.viewed"]);
    assert_eq!(service.read_invoice(&invoice)["viewed_at"], "2026-09-20T10:00:01.000000Z");
    assert!(service.visit(Visit::ViewInvoice(parse_code("aaaaaaaaaaaa"))).is_err());
}

#[test]
fn a_paid_charge_settles_its_invoice() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    let charge = service.choose_coin(&invoice, Asset::Btc).unwrap();
    let object = service.read_charge(&charge);
    assert_eq!(
        (&object["invoice"], &object["fiat_amount"], &object["customer_email"]),
        (&json!(invoice), &json!("150.00"), &json!("ada@shop.example"))
    );
    service.report_sighting(&charge, "a", "0.001", confirmed(2));
    assert_eq!(service.read_invoice(&invoice)["status"], "open", "an underpaid charge settles no invoice");
    service.wait(TICK);
    service.report_sighting(&charge, "b", "0.0015", confirmed(2));
    let object = service.read_invoice(&invoice);
    assert_eq!(
        (&object["status"], &object["paid_at"]),
        (&json!("paid"), &json!("2026-09-20T10:00:00.000001Z"))
    );
    assert_eq!(event_types(&mut service)[5..], ["charge.paid", "invoice.paid"]);
    for response in [send(&mut service, &invoice), void(&mut service, &invoice)] {
        assert_eq!(response.status(), 409);
    }
    assert!(service.choose_coin(&invoice, Asset::Eth).is_err());
}

#[test]
fn another_coin_cancels_the_earlier_charge() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    let first = service.choose_coin(&invoice, Asset::Btc).unwrap();
    assert_eq!(service.choose_coin(&invoice, Asset::Btc).unwrap(), first, "the same coin is the same charge");
    let second = service.choose_coin(&invoice, Asset::Eth).unwrap();
    assert_eq!(
        (service.charge_status(&first), service.charge_status(&second)),
        ("canceled".to_owned(), "pending".to_owned())
    );
    let charges = service.read_invoice(&invoice)["charges"].clone();
    assert_eq!(
        charges,
        json!([
            {"id": first, "code": first, "status": "canceled", "asset": "BTC"},
            {"id": second, "code": second, "status": "pending", "asset": "ETH"},
        ])
    );
    assert_eq!(
        service.list(&format!("/v1/events?charge={first}"))[0]["details"],
        json!({"reason": "asset_switched"})
    );
    // An unavailable coin does not change the earlier charge.
    service.run_command(Mode::Live, BookCommand::RemoveWallet(Asset::Ltc)).unwrap();
    assert_eq!(service.choose_coin(&invoice, Asset::Ltc).unwrap_err().status(), 422);
    assert_eq!(service.charge_status(&second), "pending");
    service.report_sighting(&second, "a", "0.001", MEMPOOL);
    assert_eq!(service.choose_coin(&invoice, Asset::Btc).unwrap_err().status(), 409);
    assert_eq!(void(&mut service, &invoice).status(), 409);
    assert_eq!(
        service.choose_coin(&invoice, Asset::Eth).unwrap(),
        second,
        "choosing the coin of the charge that is being paid returns this charge"
    );
}

#[test]
fn an_expired_charge_can_be_replaced() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    let first = service.choose_coin(&invoice, Asset::Btc).unwrap();
    service.wait(LOCK);
    let second = service.choose_coin(&invoice, Asset::Btc).unwrap();
    assert_ne!(first, second);
    assert_eq!(
        (service.charge_status(&first), service.charge_status(&second)),
        ("expired".to_owned(), "pending".to_owned())
    );
}

#[test]
fn an_invoice_is_settled_by_one_charge_only() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    let first = service.choose_coin(&invoice, Asset::Btc).unwrap();
    let second = service.choose_coin(&invoice, Asset::Eth).unwrap();
    service.report_sighting(&first, "a", "0.0025", confirmed(2));
    service.report_sighting(&second, "b", "0.05", confirmed(100));
    assert_eq!(service.read_invoice(&invoice)["status"], "paid");
    let paid_at = service.read_invoice(&invoice)["paid_at"].clone();
    service.wait(Span::secs(1));
    service.accept_late_payments(&first, None).unwrap();
    assert_eq!(service.charge_status(&first), "paid", "the late payment is accepted");
    assert_eq!(event_types(&mut service).iter().filter(|kind| *kind == "invoice.paid").count(), 1);
    assert_eq!(service.read_invoice(&invoice)["paid_at"], paid_at);
}

#[test]
fn a_late_payment_never_settles_a_voided_invoice() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    let charge = service.choose_coin(&invoice, Asset::Btc).unwrap();
    assert_eq!(void(&mut service, &invoice).status(), 200);
    assert_eq!(
        event_types(&mut service),
        ["invoice.created", "charge.created", "charge.canceled", "invoice.voided"]
    );
    assert_eq!(
        service.list(&format!("/v1/events?charge={charge}"))[0]["details"],
        json!({"reason": "invoice_voided"})
    );
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    service.accept_late_payments(&charge, None).unwrap();
    let object = service.read_invoice(&invoice);
    assert_eq!((&object["status"], &object["paid_at"]), (&json!("void"), &Value::Null));
    assert!(!event_types(&mut service).contains(&"invoice.paid".to_owned()));
    for response in [send(&mut service, &invoice), void(&mut service, &invoice)] {
        assert_eq!(response.status(), 409);
    }
}

#[test]
fn an_accepted_late_payment_settles_an_invoice_that_is_still_open() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    let charge = service.choose_coin(&invoice, Asset::Btc).unwrap();
    service.wait(LOCK);
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    assert_eq!(service.read_invoice(&invoice)["status"], "open");
    service.accept_late_payments(&charge, Some("a")).unwrap();
    assert_eq!(service.read_invoice(&invoice)["status"], "paid");
}

#[test]
fn an_invoice_is_overdue_when_its_day_is_over() {
    // The service starts at 10:00 on that day.
    let mut service = TestService::new();
    let invoice = service.create("/v1/invoices", &json!({"amount": "1", "due_at": "2026-09-20"}));
    service.wait(Span::hours(14));
    service.now = service.now.minus(TICK);
    assert_eq!(service.read_invoice(&invoice)["overdue"], false);
    service.wait(TICK);
    assert_eq!(service.read_invoice(&invoice)["overdue"], true);
    void(&mut service, &invoice);
    assert_eq!(service.read_invoice(&invoice)["overdue"], false, "a voided invoice is never overdue");
}

#[test]
fn an_invoice_may_be_due_today_until_the_day_is_over() {
    let mut service = TestService::new();
    let due_today = json!({"amount": "1", "due_at": "2026-09-20"});
    service.wait(Span(Span::hours(14).0 - 1));
    assert_eq!(service.post("/v1/invoices", &due_today).status(), 201);
    service.wait(TICK);
    let refused = service.post("/v1/invoices", &due_today);
    assert_eq!((refused.status(), refused.invalid_fields()), (422, vec!["due_at".to_owned()]));
}

#[test]
fn an_invoice_is_mailed_once_in_10_minutes() {
    let mut service = TestService::new();
    let invoice = issue(&mut service);
    assert_eq!(service.read_invoice(&invoice)["sent_at"], Value::Null);
    assert_eq!(send(&mut service, &invoice).status(), 200);
    service.wait(Span::millis(500));
    let refused = send(&mut service, &invoice);
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("600")));
    service.wait(Span::millis(599_500));
    service.now = service.now.minus(TICK);
    let refused = send(&mut service, &invoice);
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")));
    service.wait(TICK);
    assert_eq!(send(&mut service, &invoice).status(), 200);
    assert_eq!(event_types(&mut service), ["invoice.created", "invoice.sent", "invoice.sent"]);
    assert_eq!(service.read_invoice(&invoice)["sent_at"], "2026-09-20T10:10:00.000000Z");
    let kinds: Vec<&str> = service.book(Mode::Live).mails().iter().map(|mail| mail.kind.as_str()).collect();
    assert_eq!(kinds, ["invoice", "reminder"]);
    // The e-mail at creation counts towards the limit.
    let body = json!({"amount": "1", "customer_email": "ada@shop.example", "send_email": true});
    let sent = service.create("/v1/invoices", &body);
    assert_eq!(send(&mut service, &sent).status(), 429);
}

#[test]
fn an_invoice_without_an_address_is_not_mailed() {
    let mut service = TestService::new();
    let invoice = service.create("/v1/invoices", &json!({"amount": "1"}));
    let refused = send(&mut service, &invoice);
    assert_eq!((refused.status(), refused.invalid_fields()), (422, vec!["customer_email".to_owned()]));
}

#[test]
fn an_account_sends_at_most_100_mails_per_hour_and_mode() {
    let mut service = TestService::new();
    let body = json!({"amount": "1", "customer_email": "ada@shop.example", "send_email": true});
    for _ in 0..100 {
        assert_eq!(service.post("/v1/invoices", &body).status(), 201);
        service.wait(Span::secs(10));
    }
    // 1000 seconds have passed.
    let refused = service.post("/v1/invoices", &body);
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("2600")));
    assert_eq!(
        service.total("/v1/invoices"),
        100,
        "an invoice that cannot be e-mailed as requested is not issued"
    );
    let unsent = issue(&mut service);
    assert_eq!(send(&mut service, &unsent).status(), 429);
    service.change_settings(SettingsDraft {
        members: Some(vec!["ada@shop.example".to_owned()]),
        ..SettingsDraft::default()
    });
    let test = service.test_key.clone();
    assert_eq!(service.post_as(&test, "/v1/invoices", &body).status(), 201, "each mode has its own limit");
    service.wait(Span::secs(2_600));
    service.now = service.now.minus(TICK);
    assert_eq!(send(&mut service, &unsent).status(), 429);
    service.wait(TICK);
    assert_eq!(send(&mut service, &unsent).status(), 200);
    assert_eq!(send(&mut service, &unsent).status(), 429);
}

#[test]
fn test_invoices_are_mailed_to_members_only() {
    let mut service = TestService::new();
    let test = service.test_key.clone();
    let body = json!({"amount": "1", "customer_email": "Ada@shop.example", "send_email": true});
    let refused = service.post_as(&test, "/v1/invoices", &body);
    assert_eq!((refused.status(), refused.invalid_fields()), (422, vec!["customer_email".to_owned()]));
    let unsent = code_of(
        &service
            .post_as(&test, "/v1/invoices", &json!({"amount": "1", "customer_email": "eve@shop.example"}))
            .data(),
    );
    assert_eq!(service.post_as(&test, &format!("/v1/invoices/{unsent}/send"), &json!({})).status(), 422);
    service.change_settings(SettingsDraft {
        members: Some(vec!["ada@shop.example".to_owned()]),
        ..SettingsDraft::default()
    });
    assert_eq!(service.post_as(&test, "/v1/invoices", &body).status(), 201);
    assert_eq!(service.post_as(&test, &format!("/v1/invoices/{unsent}/send"), &json!({})).status(), 422);
    assert_eq!(service.book(Mode::Test).mails().iter().count(), 1);
}
