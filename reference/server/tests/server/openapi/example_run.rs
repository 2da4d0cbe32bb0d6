//! A run that performs every operation and causes every event. The examples of the document are recorded from it.
//!
//! The last parameter of most functions, `name`, is the example as which the response is recorded; empty for none.

use std::fs;

use serde_json::{Value, json};

use super::{
    document::{self, Document},
    json_format::Node,
    routes::is_of_world,
    world::{CheckedWorld, RECEIVER, RequestParts},
};

impl CheckedWorld {
    /// Sends `GET` to the API with the test key.
    fn get(&mut self, target: &str, name: &str) -> Value {
        let key = self.test_key.clone();
        self.record("GET", target, 200, RequestParts { key: &key, ..RequestParts::default() }, name)
    }

    /// Sends a request with the test key and expects an error with this status.
    fn check_refusal(&mut self, method: &str, target: &str, status: u16, body: &str, name: &str) {
        let key = self.test_key.clone();
        self.record(
            method,
            target,
            status,
            RequestParts { key: &key, body: body.as_bytes(), ..RequestParts::default() },
            name,
        );
    }

    /// Calls the API with the test key, and without a body or with one that is not an example; expects 200.
    fn call(&mut self, method: &str, target: &str, body: &Value, name: &str) -> Value {
        let key = self.test_key.clone();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.record(
            method,
            target,
            200,
            RequestParts { key: &key, body: body.as_bytes(), ..RequestParts::default() },
            name,
        )
    }

    /// Calls the sandbox, without a body or with one that is not an example; expects 200.
    fn call_sandbox(&mut self, method: &str, path: &str, body: &Value, name: &str) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let target = format!("/sandbox{path}");
        self.record(
            method,
            &target,
            200,
            RequestParts { body: body.as_bytes(), ..RequestParts::default() },
            name,
        )
    }

    /// Sends the request body of an example, with these fields replaced, and records the sent body as that example.
    #[track_caller]
    fn send_example(
        &mut self,
        (method, target): (&str, &str),
        example: &str,
        fields: &[(&str, &str)],
        name: &str,
    ) -> Value {
        let status = match (method, target) {
            ("POST", "/v1/charges" | "/v1/payment-links" | "/v1/invoices") => 201,
            ("POST", _) if target.ends_with("/refunds") => 201,
            _ => 200,
        };
        let mut document = Node::read(document::TEXT.as_bytes());
        let mut body = document.entry("components").entry("examples").entry(example).entry("value").clone();
        for (field, value) in fields {
            *body.entry(field) = Node::Leaf((*value).into());
        }
        let body = body.print().into_bytes();
        let value: Value = serde_json::from_slice(&body).expect("an example is JSON");
        let operation = self.document.find(method, target).expect("the operation is documented");
        let verdict = self.document.validate_request(&operation, &value);
        verdict.unwrap_or_else(|error| panic!("example {example} does not match its schema: {error}"));
        self.examples.insert(example.to_owned(), body.clone());
        let key = if target.starts_with("/v1") { self.test_key.clone() } else { String::new() };
        self.record(
            method,
            target,
            status,
            RequestParts { key: &key, body: &body, ..RequestParts::default() },
            name,
        )
    }

    /// Creates a charge in bitcoin and returns its code.
    fn open_charge(&mut self) -> String {
        let response = self.send_example(("POST", "/v1/charges"), "new_charge", &[], "");
        code(&response)
    }

    fn mine(&mut self) {
        self.send_example(("POST", "/sandbox/mine"), "mine", &[], "mined");
    }
}

fn code(response: &Value) -> String {
    response["data"]["code"].as_str().expect("an object has a code").to_owned()
}

fn text(response: &Value, pointer: &str) -> String {
    response
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{pointer} in {response}"))
        .to_owned()
}

/// Sends all requests of the run, and returns the world after them.
pub(crate) fn run_all() -> CheckedWorld {
    let mut world = CheckedWorld::new();
    prepare(&mut world);
    charges(&mut world);
    let link = links(&mut world);
    invoices(&mut world, &link);
    events(&mut world);
    book_operations(&mut world);
    refusals(&mut world);
    chains(&mut world);
    dashboard(&mut world);
    world
}

fn prepare(world: &mut CheckedWorld) {
    world.get("/v1/account", "account");
    world.call_sandbox("POST", "/endpoints", &json!({ "url": RECEIVER }), "");
    world.send_example(("POST", "/sandbox/endpoints"), "add_endpoint", &[], "endpoint_added");
    world.send_example(("POST", "/sandbox/merchants"), "set_merchant", &[], "");
    world.send_example(("POST", "/sandbox/rates"), "set_rate", &[], "");
}

fn charges(world: &mut CheckedWorld) {
    let opened = world.send_example(("POST", "/v1/charges"), "new_charge", &[], "charge_pending");
    let paid = code(&opened);
    world.send_example(("POST", "/sandbox/pay"), "pay", &[("charge", &paid)], "paid");
    world.mine();
    let charge = world.get(&format!("/v1/charges/{paid}"), "charge_paid");
    let txid = text(&charge, "/data/transactions/0/txid");
    let target = format!("/v1/charges/{paid}/refunds");
    world.send_example(("POST", &target), "new_refund", &[("txid", &txid)], "charge_refunded");
    world.check_refusal("POST", &format!("/v1/charges/{paid}/cancel"), 409, "", "conflict");

    let canceled = world.open_charge();
    world.call("POST", &format!("/v1/charges/{canceled}/cancel"), &Value::Null, "charge_canceled");
    world.call_sandbox("POST", "/pay", &json!({ "charge": canceled }), "");
    world.mine();
    world.call_sandbox("POST", &format!("/charges/{canceled}/accept"), &Value::Null, "");

    let underpaid = world.open_charge();
    world.send_example(("POST", "/sandbox/pay"), "pay_half", &[("charge", &underpaid)], "");
    // The blocks are mined without a delay: an underpayment does not hold the charge open until the next blocks.
    world.call_sandbox("POST", "/mine", &json!({ "asset": "BTC", "blocks": 2, "at_once": true }), "");
    world.send_example(("POST", "/sandbox/advance"), "advance", &[], "advanced");
    let canceled_by_owner = world.open_charge();
    world.call_sandbox("POST", &format!("/charges/{canceled_by_owner}/cancel"), &Value::Null, "");
    world.get("/v1/charges?per_page=1&status=paid", "charge_page");
}

/// Performs the operations on payment links; returns the code of an open link.
fn links(world: &mut CheckedWorld) -> String {
    let links = ("POST", "/v1/payment-links");
    let fixed = code(&world.send_example(links, "new_payment_link_fixed", &[], "payment_link_fixed"));
    let target = format!("/v1/payment-links/{fixed}");
    world.get(&target, "");
    world.send_example(("PATCH", &target), "payment_link_change", &[], "payment_link_changed");
    let archive = format!("{target}/archive");
    world.call("POST", &archive, &Value::Null, "payment_link_archived");
    world.call("DELETE", &archive, &Value::Null, "");
    let open = code(&world.send_example(links, "new_payment_link_open", &[], "payment_link_open"));
    world.get("/v1/payment-links?per_page=1", "payment_link_page");
    world.send_example(("POST", "/v1/charges"), "new_charge_from_link", &[("payment_link", &open)], "");
    world.call_sandbox("POST", &format!("/links/{fixed}/view"), &Value::Null, "");
    world.call_sandbox("POST", &format!("/links/{fixed}/choose"), &json!({ "asset": "ETH" }), "");
    open
}

fn invoices(world: &mut CheckedWorld, link: &str) {
    let create = ("POST", "/v1/invoices");
    let paid = code(&world.send_example(create, "new_invoice", &[], "invoice_open"));
    world.check_refusal("POST", &format!("/v1/invoices/{paid}/send"), 429, "", "too_many");
    world.call_sandbox("POST", &format!("/invoices/{paid}/view"), &Value::Null, "");
    let choose = format!("/sandbox/invoices/{paid}/choose");
    let chosen = world.send_example(("POST", &choose), "choose_coin", &[], "coin_chosen");
    world.call_sandbox("POST", "/pay", &json!({ "charge": chosen["charge"] }), "");
    world.mine();
    world.get(&format!("/v1/invoices/{paid}"), "invoice_paid");

    let void = code(&world.send_example(create, "new_invoice_of_items", &[], ""));
    world.call("POST", &format!("/v1/invoices/{void}/void"), &Value::Null, "invoice_void");
    let key = world.test_key.clone();
    let body = r#"{"amount":"5.00","customer_email":"owner@acme.example"}"#;
    let repeated = RequestParts {
        key: &key,
        idempotency_key: Some("once"),
        body: body.as_bytes(),
        ..RequestParts::default()
    };
    let sent = code(&world.record("POST", "/v1/invoices", 201, repeated, ""));
    assert_eq!(code(&world.record("POST", "/v1/invoices", 201, repeated, "")), sent);
    world.call("POST", &format!("/v1/invoices/{sent}/send"), &Value::Null, "invoice_sent");
    world.send_example(("POST", "/sandbox/advance"), "advance", &[], "");
    world.call_sandbox("POST", &format!("/invoices/{sent}/send"), &Value::Null, "");
    world.call_sandbox("POST", &format!("/invoices/{sent}/void"), &Value::Null, "");
    world.get("/v1/invoices?per_page=1&status=paid", "invoice_page");
    world.get(&format!("/v1/charges?payment_link={link}"), "");
}

fn events(world: &mut CheckedWorld) {
    world.get("/v1/events?per_page=2", "event_page");
    for (kind, name) in [("charge.paid", "event_of_charge"), ("invoice.sent", "event_of_invoice")] {
        let id = text(&world.get(&format!("/v1/events?type={kind}&per_page=1"), ""), "/data/0/id");
        world.get(&format!("/v1/events/{id}"), name);
    }
}

/// Performs the sandbox operations on a book and on hosted pages.
fn book_operations(world: &mut CheckedWorld) {
    let book = "/books/acme/test";
    world.call_sandbox("GET", book, &Value::Null, "");
    world.call_sandbox("GET", &format!("{book}/account"), &Value::Null, "");
    for (list, page) in [("charges", "c"), ("payment-links", "pay"), ("invoices", "i"), ("events", "")] {
        let all = world.call_sandbox("GET", &format!("{book}/{list}?per_page=100"), &Value::Null, "");
        for object in all["data"].as_array().expect("a list") {
            let id = object["id"].as_str().expect("an id");
            world.call_sandbox("GET", &format!("{book}/{list}/{id}"), &Value::Null, "");
            if !page.is_empty() {
                world.call_sandbox("GET", &format!("/pages/{page}/{id}"), &Value::Null, "");
            }
            if page == "c" {
                world.call_sandbox("GET", &format!("{book}/charges/{id}/transfers"), &Value::Null, "");
            }
        }
    }
    for (list, body) in [
        ("charges", json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" })),
        (
            "invoices",
            json!({ "customer_email": "customer@shop.example", "amount": "99.00", "currency": "EUR" }),
        ),
        (
            "payment-links",
            json!({ "title": "Mug", "pricing_type": "fixed", "amount": "12.00", "currency": "EUR" }),
        ),
    ] {
        let body = body.to_string();
        let parts = RequestParts { body: body.as_bytes(), ..RequestParts::default() };
        world.record("POST", &format!("/sandbox{book}/{list}"), 201, parts, "");
    }
    let found = world.call_sandbox("GET", &format!("{book}/search?q=SHOP.example"), &Value::Null, "");
    assert!(found["found"].as_array().is_some_and(|all| !all.is_empty()), "{found}");
    let late = world.open_charge();
    world.call_sandbox("POST", &format!("/charges/{late}/cancel"), &Value::Null, "");
    world.call_sandbox("POST", "/pay", &json!({ "charge": late }), "");
    let waiting = world.call_sandbox("GET", &format!("{book}/late"), &Value::Null, "");
    let waiting = waiting["late"].as_array().expect("a list");
    assert!(waiting.iter().any(|payment| payment["charge"] == late.as_str()), "{waiting:?}");
    let first_id = |response: &Value| text(response, "/data/0/id");
    let paid = first_id(&world.call_sandbox("GET", &format!("{book}/charges?status=paid"), &Value::Null, ""));
    let refund = RequestParts { body: br#"{"amount":"0.00000001"}"#, ..RequestParts::default() };
    world.record("POST", &format!("/sandbox{book}/charges/{paid}/refunds"), 201, refund, "");
    let link = first_id(&world.call_sandbox("GET", &format!("{book}/payment-links"), &Value::Null, ""));
    for method in ["POST", "DELETE"] {
        world.call_sandbox(method, &format!("{book}/payment-links/{link}/archive"), &Value::Null, "");
    }
}

fn refusals(world: &mut CheckedWorld) {
    world.check_refusal("GET", "/v1/charges/aaaaaaaaaaaa", 404, "", "not_found");
    world.check_refusal("POST", "/v1/charges", 400, "[1]", "bad_request");
    world.check_refusal("POST", "/v1/charges", 422, r#"{"amount":"ten","currency":"EUR"}"#, "invalid");
    world.record("GET", "/v1/account", 401, RequestParts::default(), "unauthenticated");
    let key = world.test_key.clone();
    let plain_text = RequestParts {
        key: &key,
        content_type: Some("text/plain"),
        body: b"asset=BTC",
        ..RequestParts::default()
    };
    world.record("POST", "/v1/charges", 415, plain_text, "not_json");
    world.call_sandbox("POST", "/rates", &json!({ "asset": "DOGE", "currency": "PLN", "rate": null }), "");
    let body = r#"{"asset":"DOGE","amount":"10.00","currency":"PLN"}"#;
    world.check_refusal("POST", "/v1/charges", 503, body, "no_rate");
    // The other key, because this exhausts its rate limit.
    let key = world.live_key.clone();
    for remaining in (0..120).rev() {
        let parts = RequestParts { key: &key, ..RequestParts::default() };
        world.record("GET", "/v1/account", 200, parts, "");
        if remaining == 0 {
            world.record("GET", "/v1/account", 429, parts, "");
        }
    }
}

fn chains(world: &mut CheckedWorld) {
    let pay = |world: &mut CheckedWorld| {
        let charge = world.open_charge();
        text(&world.call_sandbox("POST", "/pay", &json!({ "charge": charge, "fee": "low" }), ""), "/txid")
    };
    let txid = pay(world);
    world.call_sandbox("POST", "/replace", &json!({ "txid": txid, "fee": "high" }), "");
    let txid = pay(world);
    world.call_sandbox("POST", "/double-spend", &json!({ "txid": txid }), "");
    let txid = pay(world);
    world.call_sandbox("POST", "/drop", &json!({ "txid": txid }), "");
    world.call_sandbox("POST", "/rebroadcast", &json!({ "txid": txid }), "");
    world.mine();
    world.call_sandbox("POST", "/reorg", &json!({ "asset": "BTC", "depth": 1 }), "");
    world.call_sandbox("POST", "/stall", &json!({ "asset": "BTC", "for": "1m" }), "");
    world.call_sandbox("POST", "/congest", &json!({ "asset": "BTC", "empty": 10, "full": 20 }), "");
    world.call_sandbox("POST", "/watchers", &json!({ "asset": "BTC", "notices": "late" }), "");
    world.call_sandbox("POST", "/watchers", &json!({ "asset": "BTC", "notices": "up" }), "");
    world.call_sandbox("POST", "/mine", &json!({ "asset": "LTC", "at_once": true }), "");
    let count = world.call_sandbox("GET", "", &Value::Null, "")["happenings"].as_u64().expect("a count");
    world.call_sandbox("GET", &format!("/happenings?after={}", count - 2), &Value::Null, "happenings");
    world.call_sandbox("GET", "/happenings", &Value::Null, "");
    world.call_sandbox("GET", "/scenario", &Value::Null, "");
}

fn dashboard(world: &mut CheckedWorld) {
    let endpoints = world.call_sandbox("GET", "/endpoints", &Value::Null, "");
    let [external, shop] = [0, 1].map(|n| text(&endpoints, &format!("/endpoints/{n}/id")));
    world.call_sandbox("POST", &format!("/endpoints/{external}/test"), &Value::Null, "");
    let log = world.call_sandbox("GET", &format!("/deliveries?endpoint={shop}"), &Value::Null, "");
    let oldest = log["deliveries"].as_array().and_then(|all| all.last()).expect("the log has a delivery");
    let path = format!("/deliveries/{}", text(oldest, "/id"));
    world.call_sandbox("GET", &path, &Value::Null, "delivery");
    world.call_sandbox("POST", &format!("{path}/resend"), &Value::Null, "");
    let path = format!("/endpoints/{shop}");
    world.call_sandbox("PATCH", &path, &json!({ "status": "disabled" }), "");
    world.call_sandbox("POST", &format!("{path}/rotate"), &Value::Null, "");
    world.call_sandbox("DELETE", &path, &Value::Null, "");
    world.call_sandbox("GET", "/endpoints", &Value::Null, "");
    world.call_sandbox("GET", "/mails", &Value::Null, "");
    let wallets = world.call_sandbox("GET", "/wallets", &Value::Null, "");
    let rows = wallets["wallets"].as_array().expect("a list");
    let doge_wallet = rows
        .iter()
        .find(|wallet| wallet["asset"] == "DOGE" && wallet["mode"] == "live")
        .expect("a wallet")
        .clone();
    let coin = json!({ "asset": "DOGE", "mode": "live" });
    world.call_sandbox("DELETE", "/wallets", &coin, "");
    world.call_sandbox(
        "PUT",
        "/wallets",
        &json!({ "asset": "DOGE", "mode": "live", "key": doge_wallet["key"] }),
        "",
    );
    let key = text(&world.call_sandbox("POST", "/keys", &json!({ "mode": "test" }), ""), "/key/id");
    world.call_sandbox("DELETE", &format!("/keys/{key}"), &Value::Null, "");
    world.call_sandbox("GET", "/keys", &Value::Null, "");
    world.call_sandbox("POST", "/accounts", &json!({ "id": "other", "type": "personal" }), "");
    world.call_sandbox("PATCH", "/accounts/other", &json!({ "display_name": "Other" }), "");
    world.call_sandbox("GET", "", &Value::Null, "");
    world.call_sandbox("POST", "/restart", &Value::Null, "");
    world.call_sandbox("GET", "/happenings", &Value::Null, "");
    world.call_sandbox("POST", "/world", &json!({ "seed": 2 }), "");
}

#[test]
fn the_examples_of_the_document_match_the_run() {
    let world = run_all();
    let mut tree = Node::read(document::TEXT.as_bytes());
    let examples = tree.entry("components").entry("examples");
    let names: Vec<String> = world.document.examples().keys().cloned().collect();
    for name in &names {
        let example = world.examples.get(name).unwrap_or_else(|| panic!("the run has no example {name}"));
        *examples.entry(name).entry("value") = Node::read(example);
    }
    let text = tree.print();
    if std::env::var_os("BLESS").is_some() {
        fs::write(document::PATH, text).expect("the document can be written");
    } else {
        let outdated: Vec<&String> = names
            .iter()
            .filter(|name| {
                let example: Value = serde_json::from_slice(&world.examples[*name]).expect("JSON");
                world.document.examples()[*name]["value"] != example
            })
            .collect();
        assert!(outdated.is_empty(), "the examples {outdated:?} are outdated; BLESS=1 rewrites them");
        assert!(text == document::TEXT, "reference/openapi.json is not formatted; BLESS=1 rewrites it");
    }
}

#[test]
fn the_run_performs_every_operation_and_delivers_every_webhook() {
    let world = run_all();
    let document = Document::read();
    let unperformed: Vec<_> = document
        .operations()
        .into_iter()
        .filter(|operation| is_of_world(&operation.path))
        .filter(|operation| !world.observed.iter().any(|(known, status)| known == operation && *status < 300))
        .collect();
    assert!(unperformed.is_empty(), "the run never succeeds with {unperformed:?}");
    let kinds: Vec<&String> =
        document.value["webhooks"].as_object().expect("there are webhooks").keys().collect();
    let delivered: Vec<&String> = world.delivered_types.iter().collect();
    assert_eq!(kinds, delivered, "the webhooks of the document, and those of the run");
}
