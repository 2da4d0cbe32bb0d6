//! Objects of the other mode, or of another account, do not exist for a key.

use reference_core::mode::Mode;
use serde_json::{Value, json};

use crate::test_service::{LOCK, ReceivedResponse, TestRequest, TestService, code_of, string};

/// One object of each kind, by its public id.
struct Objects {
    charge: String,
    link: String,
    invoice: String,
    event: String,
}

fn create_all_objects(service: &mut TestService, key: &str) -> Objects {
    let link =
        code_of(&service.post_as(key, "/v1/payment-links", &json!({"title": "A hat", "amount": "1"})).data());
    let charge =
        code_of(&service.post_as(key, "/v1/charges", &json!({"asset": "BTC", "payment_link": link})).data());
    let invoice = code_of(&service.post_as(key, "/v1/invoices", &json!({"amount": "1"})).data());
    let events = service.send(&TestRequest::new("GET", "/v1/events").key(key)).data();
    Objects { charge, link, invoice, event: string(&events[0]["id"]) }
}

const ABSENT: &str = "aaaaaaaaaaaa";
const ABSENT_EVENT: &str = "01900000-0000-7000-8000-000000000000";

/// Returns the response without the parts that differ between requests.
fn comparable_parts(response: &ReceivedResponse, id: &str) -> (u16, Vec<(&'static str, String)>, String) {
    let headers =
        response.0.headers.iter().filter(|(name, _)| *name != "x-ratelimit-remaining").cloned().collect();
    (response.status(), headers, response.text().replace(id, "<id>"))
}

/// Sends the request with a foreign id and with an absent one in place of `{}`, and expects the same response.
#[track_caller]
fn check(
    service: &mut TestService,
    key: &str,
    request: &TestRequest,
    (theirs, absent): (&str, &str),
    status: u16,
) {
    let with_id = |id: &str| {
        let mut request = request.clone().key(key);
        request.path = request.path.replace("{}", id);
        request.query = request.query.map(|query| query.replace("{}", id));
        request.body = String::from_utf8(request.body).unwrap().replace("{}", id).into_bytes();
        request
    };
    let (foreign, unknown) = (service.send(&with_id(theirs)), service.send(&with_id(absent)));
    assert_eq!(foreign.status(), status, "{} {}: {}", request.method, request.path, foreign.text());
    assert_eq!(
        comparable_parts(&foreign, theirs),
        comparable_parts(&unknown, absent),
        "{} {}",
        request.method,
        request.path
    );
}

/// Checks that requests with the ids of these foreign objects get the same responses as requests with absent ids.
fn check_all(service: &mut TestService, key: &str, theirs: &Objects) {
    let raw = |method: &str, target: &str, body: &str| {
        TestRequest::new(method, target).raw_body("application/json", body)
    };
    let charge = (theirs.charge.as_str(), ABSENT);
    let link = (theirs.link.as_str(), ABSENT);
    let invoice = (theirs.invoice.as_str(), ABSENT);
    for (method, target, id) in [
        ("GET", "/v1/charges/{}", charge),
        ("HEAD", "/v1/charges/{}", charge),
        ("POST", "/v1/charges/{}/cancel", charge),
        ("GET", "/v1/payment-links/{}", link),
        ("POST", "/v1/payment-links/{}/archive", link),
        ("DELETE", "/v1/payment-links/{}/archive", link),
        ("GET", "/v1/invoices/{}", invoice),
        ("POST", "/v1/invoices/{}/send", invoice),
        ("POST", "/v1/invoices/{}/void", invoice),
        ("GET", "/v1/events/{}", (theirs.event.as_str(), ABSENT_EVENT)),
        // An id of one kind is not an id of another.
        ("GET", "/v1/charges/{}", link),
        ("GET", "/v1/invoices/{}", charge),
        ("GET", "/v1/payment-links/{}", invoice),
    ] {
        check(service, key, &TestRequest::new(method, target), id, 404);
        check(service, key, &TestRequest::new(method, target).idempotency_key("k"), id, 404);
    }
    check(service, key, &raw("POST", "/v1/charges/{}/refunds", r#"{"amount": "1"}"#), charge, 404);
    check(service, key, &raw("POST", "/v1/charges/{}/refunds", r#"{"amount": []}"#), charge, 404);
    check(service, key, &raw("PATCH", "/v1/payment-links/{}", r#"{"title": "B"}"#), link, 404);
    check(service, key, &raw("POST", "/v1/charges", r#"{"asset": "BTC", "payment_link": "{}"}"#), link, 422);
    for (target, id) in [
        ("/v1/charges?payment_link={}", link),
        ("/v1/charges?payment_link={}&status=pending&page=2", link),
        ("/v1/events?charge={}", charge),
        ("/v1/events?charge={}&type=charge.created", charge),
        ("/v1/events?invoice={}", invoice),
        ("/v1/events?invoice={}&type=invoice.created", invoice),
    ] {
        check(service, key, &TestRequest::new("GET", target), id, 200);
    }
    for (target, id) in [
        ("/v1/charges?anchor={}", charge),
        ("/v1/invoices?anchor={}", invoice),
        ("/v1/payment-links?anchor={}", link),
        ("/v1/events?anchor={}", (theirs.event.as_str(), ABSENT_EVENT)),
    ] {
        check(service, key, &TestRequest::new("GET", target), id, 422);
    }
}

#[test]
fn objects_of_the_other_mode_are_not_found() {
    let mut service = TestService::with_seed_and_limit(reference_core::rng::Seed(7), Some(1_000));
    let (live, test) = (service.live_key.clone(), service.test_key.clone());
    let live_objects = create_all_objects(&mut service, &live);
    let test_objects = create_all_objects(&mut service, &test);
    check_all(&mut service, &live, &test_objects);
    check_all(&mut service, &test, &live_objects);
    assert_untouched(&mut service, &live);
    assert_untouched(&mut service, &test);
}

#[test]
fn objects_of_another_account_are_not_found() {
    let mut service = TestService::with_seed_and_limit(reference_core::rng::Seed(7), Some(1_000));
    let live = service.live_key.clone();
    let bolt = service.open_account("bolt");
    let bolt = service.new_key(bolt, Mode::Live);
    let acme_objects = create_all_objects(&mut service, &live);
    let bolt_objects = create_all_objects(&mut service, &bolt);
    check_all(&mut service, &bolt, &acme_objects);
    check_all(&mut service, &live, &bolt_objects);
    assert_untouched(&mut service, &live);
    assert_untouched(&mut service, &bolt);
}

/// Checks that the objects of the key are as they were created.
#[track_caller]
fn assert_untouched(service: &mut TestService, key: &str) {
    let events = service.send(&TestRequest::new("GET", "/v1/events").key(key)).json();
    assert_eq!(events["meta"]["total"], 2, "charge.created and invoice.created");
    let link = service.send(&TestRequest::new("GET", "/v1/payment-links").key(key)).data();
    assert_eq!((&link[0]["status"], &link[0]["title"]), (&json!("active"), &json!("A hat")));
}

#[test]
fn lists_contain_only_objects_of_the_keys_book() {
    let mut service = TestService::new();
    let (live, test) = (service.live_key.clone(), service.test_key.clone());
    create_all_objects(&mut service, &live);
    for list in ["charges", "invoices", "payment-links", "events"] {
        let page = service.send(&TestRequest::new("GET", &format!("/v1/{list}")).key(&test)).json();
        assert_eq!((&page["data"], &page["meta"]["total"]), (&json!([]), &json!(0)), "{list}");
    }
    let invoice = service.post_as(&test, "/v1/invoices", &json!({"amount": "1"})).data();
    assert_eq!(invoice["number"], "INV-0001", "each mode has its own invoice numbers");
}

#[test]
fn no_deposit_address_is_shared() {
    let mut service = TestService::new();
    let bolt = service.open_account("bolt");
    let keys = [
        service.live_key.clone(),
        service.test_key.clone(),
        service.new_key(bolt, Mode::Live),
        service.new_key(bolt, Mode::Test),
    ];
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..3 {
        for asset in ["BTC", "LTC", "ETH", "USDT", "USDC_BASE", "USDT_TRON", "XMR"] {
            for key in &keys {
                let charge: Value =
                    service.post_as(key, "/v1/charges", &json!({"asset": asset, "amount": "9.00"})).data();
                let address = string(&charge["deposit_address"]);
                assert!(addresses.insert(address.clone()), "{address} was assigned before");
            }
        }
    }
}

#[test]
fn many_expiries_at_once_delay_only_requests_to_their_own_book() {
    let mut service = TestService::new();
    (0..9).for_each(|_| drop(service.create_charge()));
    let neighbour = service.open_account("neighbour");
    let key = service.new_key(neighbour, Mode::Live);
    service.wait(LOCK);
    let expired = |service: &TestService| service.book(Mode::Live).events().count() - 9;

    assert_eq!(
        service.api.service.on_tick_in_part(service.now, 4),
        4,
        "without endpoints an ended lock is one unit of work"
    );
    assert_eq!((expired(&service), service.api.service.next_tick()), (4, Some(service.now)));
    assert_eq!(service.send(&TestRequest::new("GET", "/v1/account").key(&key)).status(), 200);
    assert_eq!(expired(&service), 4, "a request of another account expires no charge of this book");
    assert_eq!(
        service.total("/v1/charges?status=expired"),
        9,
        "a request of this account expires all of them first"
    );
    assert_eq!(service.api.service.on_tick_in_part(service.now, u32::MAX), 0);
}
