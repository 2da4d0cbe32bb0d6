//! A book in the dashboard: the objects of the API, late payments, and the delivery log.

use crate::world;
use reference_wire::Response;
use serde_json::{Value, json};
use simulator::sandbox::Sandbox;

struct World {
    sandbox: Sandbox,
}

impl World {
    fn new() -> World {
        World { sandbox: world::open() }
    }

    fn send(&mut self, method: &str, target: &str, key: &str, body: &str) -> Response {
        world::send(&mut self.sandbox, method, target, key, body)
    }

    #[track_caller]
    fn call_ok(&mut self, method: &str, target: &str, body: Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let key = self.sandbox.first_keys().live;
        let response = self.send(method, target, &key, &body);
        let response_json: Value = serde_json::from_slice(&response.body).expect("a response is JSON");
        assert!((200..300).contains(&response.status), "{method} {target}: {response_json}");
        response_json
    }

    fn get(&mut self, target: &str) -> Value {
        self.call_ok("GET", target, Value::Null)
    }

    /// Opens a live charge and returns its code.
    fn open_charge(&mut self) -> String {
        let charge = self.call_ok("POST", "/v1/charges", json!({"asset": "BTC", "amount": "10"}));
        charge["data"]["code"].as_str().expect("a charge has a code").to_owned()
    }

    fn advance(&mut self, by: &str) {
        self.call_ok("POST", "/sandbox/advance", json!({"by": by}));
    }
}

#[test]
fn the_owner_gets_the_same_bytes_as_a_key() {
    let mut world = World::new();
    let key = world.sandbox.first_keys().live;
    let code = world.open_charge();
    for _ in 0..5 {
        world.open_charge();
    }
    world.call_ok("POST", "/v1/invoices", json!({"amount": "5", "currency": "EUR"}));
    world.call_ok(
        "POST",
        "/v1/payment-links",
        json!({"title": "Tea", "pricing_type": "fixed", "amount": "2"}),
    );
    let first = world.get("/v1/charges?per_page=2");
    let next = first["links"]["next"].as_str().expect("there is a next page").to_owned();
    let (_, next) = next.split_once('?').expect("a query");
    for path in [
        "account".to_owned(),
        "charges".to_owned(),
        format!("charges/{code}"),
        "charges?status=pending&per_page=2".to_owned(),
        format!("charges?{next}"),
        "charges?status=nonsense".to_owned(),
        "charges/aaaaaaaaaaaa".to_owned(),
        "invoices".to_owned(),
        "payment-links".to_owned(),
        format!("events?charge={code}"),
        "events/nonsense".to_owned(),
        "nowhere".to_owned(),
    ] {
        let api = world.send("GET", &format!("/v1/{path}"), &key, "");
        let owner = world.send("GET", &format!("/sandbox/books/acme/live/{path}"), "", "");
        assert_eq!((owner.status, owner.body), (api.status, api.body), "{path}");
    }
}

/// An object created by the owner is in the book of the path only. Unless it is a payment link, its creation
/// is an event.
#[test]
fn the_owner_creates_objects_in_one_book() {
    for (list, body, status, expected_text) in [
        ("charges", json!({"asset": "BTC", "amount": "10"}), 201, "pending"),
        ("charges", json!({"asset": "BTC"}), 422, "amount"),
        ("charges", json!({"asset": "BTC", "amount": "10", "colour": "red"}), 422, "colour"),
        ("invoices", json!({"amount": "5", "currency": "EUR"}), 201, "open"),
        ("payment-links", json!({"title": "Tea", "pricing_type": "fixed", "amount": "2"}), 201, "active"),
    ] {
        let mut world = World::new();
        let created = world.send("POST", &format!("/sandbox/books/acme/test/{list}"), "", &body.to_string());
        let text = String::from_utf8_lossy(&created.body).into_owned();
        assert_eq!(created.status, status, "{list} {body}: {text}");
        assert!(text.contains(expected_text), "{list} {body}: {text}");
        let listed = world.get(&format!("/sandbox/books/acme/test/{list}"));
        assert_eq!(listed["meta"]["total"], u64::from(status == 201), "{list} {body}");
        let other = world.get(&format!("/sandbox/books/acme/live/{list}"));
        assert_eq!(other["meta"]["total"], 0, "{list} {body}");
        let event_count = world.get("/sandbox/happenings")["happened"].as_array().map_or(0, Vec::len);
        assert_eq!(event_count > 0, status == 201 && list != "payment-links", "{list} {body}");
    }
    let mut world = World::new();
    assert_eq!(world.send("POST", "/sandbox/books/acme/live/events", "", "{}").status, 405);
    let body = r#"{"asset":"BTC","amount":"1"}"#;
    assert_eq!(world.send("POST", "/sandbox/books/acme/both/charges", "", body).status, 404);
}

/// The responses to the owner have the statuses of the API.
#[test]
fn the_owner_records_a_refund_and_archives_a_link() {
    let mut world = World::new();
    let code =
        |object: &Value| object["data"]["code"].as_str().expect("a created object has a code").to_owned();
    let book = "/sandbox/books/acme/live";
    let charge =
        code(&world.call_ok("POST", &format!("{book}/charges"), json!({"asset": "BTC", "amount": "10"})));
    world.call_ok("POST", "/sandbox/pay", json!({ "charge": charge }));
    world.call_ok("POST", "/sandbox/advance", json!({ "by": "10s" }));
    world.call_ok("POST", "/sandbox/mine", json!({ "mode": "live", "asset": "BTC", "blocks": 2 }));
    let link = json!({ "title": "Coffee", "pricing_type": "open" });
    let link = code(&world.call_ok("POST", &format!("{book}/payment-links"), link));
    let (refunds, archive) =
        (format!("{book}/charges/{charge}/refunds"), format!("{book}/payment-links/{link}/archive"));
    for (method, path, body, status, expected_text) in [
        ("POST", &refunds, r#"{"amount":"0.00001","reason":"Too much"}"#, 201, "Too much"),
        ("POST", &refunds, r#"{"amount":"21"}"#, 422, "amount"),
        ("POST", &refunds, r#"{"sum":"1"}"#, 422, "sum"),
        ("GET", &refunds, "", 405, ""),
        ("POST", &archive, "", 200, r#""status":"archived""#),
        ("DELETE", &archive, "", 200, r#""status":"active""#),
        ("POST", &archive.replace("live", "test"), "", 404, ""),
    ] {
        let response = world.send(method, path, "", body);
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(response.status, status, "{method} {path} {body}: {text}");
        assert!(text.contains(expected_text), "{method} {path} {body}: {text}");
    }
}

/// The search finds an object in its own book, by any of its searched fields.
#[test]
fn the_search_finds_objects_by_their_fields() {
    let mut world = World::new();
    let charge = json!({
        "asset": "BTC", "amount": "10", "customer_email": "ann@shop.example", "description": "Blue mug",
        "metadata": { "order_id": "A-1001", "size": 7 },
    });
    let created = world.call_ok("POST", "/v1/charges", charge);
    let (code, address) =
        (&created["data"]["code"], created["data"]["deposit_address"].as_str().expect("text"));
    let paid = world.call_ok("POST", "/sandbox/pay", json!({"charge": code}));
    world.call_ok("POST", "/v1/invoices", json!({"amount": "5", "customer_email": "ann@shop.example"}));
    world.call_ok(
        "POST",
        "/v1/payment-links",
        json!({"title": "Mugs", "pricing_type": "fixed", "amount": "2"}),
    );
    let event = world.get("/v1/events")["data"][0]["id"].as_str().expect("an id").to_owned();
    let code = code.as_str().expect("text");
    let txid = paid["txid"].as_str().expect("text");
    for (query, found) in [
        (code, vec!["charge code"]),
        (&code[..8].to_uppercase(), vec!["charge code"]),
        (address, vec!["charge deposit_address"]),
        (txid, vec!["charge txid"]),
        ("a-1001", vec!["charge metadata.order_id"]),
        ("ann@", vec!["charge customer_email", "invoice customer_email"]),
        ("inv-0001", vec!["invoice number"]),
        ("mug", vec!["charge description", "payment_link title"]),
        (&event, vec!["event id"]),
        ("nobody", vec![]),
    ] {
        let search = |mode: &str| format!("/sandbox/books/acme/{mode}/search?q={query}");
        let response_json = world.get(&search("live"));
        let hits = response_json["found"].as_array().expect("a list").iter();
        let hits =
            hits.map(|hit| format!("{} {}", hit["kind"].as_str().unwrap(), hit["field"].as_str().unwrap()));
        assert_eq!(hits.collect::<Vec<_>>(), found, "{query}");
        assert_eq!(world.get(&search("test"))["found"], json!([]), "{query}");
    }
    assert_eq!(world.send("GET", "/sandbox/books/acme/live/search?q=+", "", "").status, 422);
}

/// A restart preserves the objects created by the owner.
#[test]
fn objects_of_the_owner_survive_a_restart() {
    let mut world = World::new();
    let created =
        world.call_ok("POST", "/sandbox/books/acme/live/charges", json!({"asset": "BTC", "amount": "10"}));
    world.call_ok("POST", "/sandbox/restart", Value::Null);
    let code = created["data"]["code"].as_str().expect("a code");
    assert_eq!(world.get(&format!("/v1/charges/{code}"))["data"], created["data"]);
}

#[test]
fn a_book_shows_no_objects_of_another() {
    let mut world = World::new();
    let code = world.open_charge();
    for (target, status) in [
        (format!("/sandbox/books/acme/live/charges/{code}"), 200),
        (format!("/sandbox/books/acme/test/charges/{code}"), 404),
        (format!("/sandbox/books/acme/test/charges/{code}/transfers"), 404),
        ("/sandbox/books/acme/both".to_owned(), 404),
        ("/sandbox/books/nobody/live".to_owned(), 404),
        ("/sandbox/books/nobody/live/charges".to_owned(), 404),
        ("/sandbox/books/acme".to_owned(), 404),
    ] {
        assert_eq!(world.send("GET", &target, "", "").status, status, "{target}");
    }
}

#[test]
fn the_read_only_paths_of_a_book_refuse_post() {
    let mut world = World::new();
    for target in
        ["/sandbox/books/acme/live", "/sandbox/books/acme/live/events", "/sandbox/books/acme/live/late"]
    {
        let refused = world.send("POST", target, "", "{}");
        assert_eq!(refused.status, 405, "{target}");
        assert_eq!(refused.headers, [("allow", "GET, HEAD".to_owned())], "{target}");
    }
}

#[test]
fn a_book_counts_its_objects() {
    let mut world = World::new();
    let empty = world.get("/sandbox/books/acme/live");
    assert_eq!(
        (&empty["charges"]["all"], &empty["events"], &empty["late"]),
        (&json!(0), &json!(0), &json!(0))
    );
    let paid_code = world.open_charge();
    world.open_charge();
    world.call_ok("POST", "/sandbox/pay", json!({"charge": paid_code}));
    world.call_ok(
        "POST",
        "/sandbox/mine",
        json!({"mode": "live", "asset": "BTC", "blocks": 2, "at_once": true}),
    );
    world.advance("31m");
    world.call_ok("POST", "/sandbox/endpoints", json!({"mode": "live", "url": "https://shop.sim"}));
    let counts = world.get("/sandbox/books/acme/live");
    let charges = json!({"all": 2, "pending": 0, "underpaid": 0, "paid": 1, "expired": 1, "canceled": 0});
    assert_eq!(counts["charges"], charges);
    assert_eq!(counts["endpoints"], json!({"enabled": 1, "disabled": 0}));
    assert_eq!(world.get("/sandbox/books/acme/test")["charges"]["all"], 0);
}

#[test]
fn a_late_payment_is_listed_until_it_is_accepted() {
    let mut world = World::new();
    let code = world.open_charge();
    world.advance("31m");
    let paid = world.call_ok("POST", "/sandbox/pay", json!({"charge": code}));
    world.advance("1s");
    for (blocks, confirmed) in [(None, false), (Some(1), false), (Some(1), true)] {
        if let Some(blocks) = blocks {
            let mine = json!({"mode": "live", "asset": "BTC", "blocks": blocks, "at_once": true});
            world.call_ok("POST", "/sandbox/mine", mine);
        }
        let late = world.get("/sandbox/books/acme/live/late");
        let transfer = &late["late"][0];
        assert_eq!(late["late"].as_array().map(Vec::len), Some(1));
        assert_eq!((&transfer["charge"], &transfer["txid"]), (&json!(code), &paid["txid"]));
        assert_eq!(
            (&transfer["standing"], &transfer["confirmed"]),
            (&json!("late"), &json!(confirmed)),
            "{transfer}"
        );
    }
    world.call_ok("POST", &format!("/sandbox/charges/{code}/accept"), json!({"txid": paid["txid"]}));
    assert_eq!(world.get("/sandbox/books/acme/live/late")["late"], json!([]));
    let transfers = world.get(&format!("/sandbox/books/acme/live/charges/{code}/transfers"));
    let transfer = &transfers["transfers"][0];
    assert_eq!((&transfer["standing"], &transfer["credited"]), (&json!("accepted"), &json!(true)));
}

#[test]
fn the_delivery_log_is_filtered_and_paged() {
    let mut world = World::new();
    let endpoint =
        world.call_ok("POST", "/sandbox/endpoints", json!({"mode": "live", "url": "https://shop.sim"}));
    world.call_ok("POST", "/sandbox/endpoints", json!({"url": "https://test.sim", "mode": "test"}));
    let id = endpoint["endpoint"]["id"].as_str().expect("an id").to_owned();
    let codes: Vec<String> = (0..3).map(|_| world.open_charge()).collect();
    world.call_ok("POST", &format!("/sandbox/endpoints/{id}/test"), Value::Null);
    world.advance("31m");
    let all = world.get("/sandbox/deliveries");
    let ids: Vec<&str> = all["deliveries"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|delivery| delivery["id"].as_str())
        .collect();
    assert_eq!(ids.len(), 7, "three created, three expired, one test");
    let event = all["deliveries"][0]["event"].as_str().expect("an event").to_owned();
    for (query, found) in [
        (format!("charge={}", codes[0]), 2),
        (format!("charge={}&status=delivered", codes[0]), 2),
        (format!("charge={}&status=waiting", codes[0]), 0),
        (format!("charge={}&mode=test", codes[0]), 0),
        ("charge=aaaaaaaaaaaa".to_owned(), 0),
        ("invoice=aaaaaaaaaaaa".to_owned(), 0),
        (format!("event={event}"), 1),
        ("account=acme&mode=live".to_owned(), 7),
        ("account=nobody".to_owned(), 0),
        ("limit=3".to_owned(), 3),
        (format!("before={}", ids[2]), 4),
        (format!("before={}&limit=2", ids[2]), 2),
        (format!("before={}", ids[6]), 0),
    ] {
        let shown = world.get(&format!("/sandbox/deliveries?{query}"));
        assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(found), "{query}");
    }
    let older = world.get(&format!("/sandbox/deliveries?before={}&limit=1", ids[2]));
    assert_eq!(older["deliveries"][0]["id"], ids[3]);
    let of_charge = world.get(&format!("/sandbox/deliveries?charge={}", codes[0]))["deliveries"].clone();
    let before = of_charge[0]["id"].as_str().expect("an id");
    let older = world.get(&format!("/sandbox/deliveries?charge={}&before={before}", codes[0]));
    assert_eq!(older["deliveries"], json!([of_charge[1]]), "`before` applies to a charge, too");
    for (query, status) in [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("limit=x", 422),
        ("before=x", 404),
        ("status=late", 422),
        ("mode=LIVE", 422),
        ("state=failed", 422),
        ("mode=live&mode=test", 422),
    ] {
        assert_eq!(
            world.send("GET", &format!("/sandbox/deliveries?{query}"), "", "").status,
            status,
            "{query}"
        );
    }
}

#[test]
fn a_delivery_shows_the_body_that_was_sent() {
    let mut world = World::new();
    world.call_ok("POST", "/sandbox/endpoints", json!({"mode": "live", "url": "https://shop.sim"}));
    let code = world.open_charge();
    let log = world.get(&format!("/sandbox/deliveries?charge={code}"));
    let id = log["deliveries"][0]["id"].as_str().expect("an id").to_owned();
    let shown = world.get(&format!("/sandbox/deliveries/{id}"));
    let body = shown["delivery"]["request_body"].as_str().expect("a body");
    let body: Value = serde_json::from_str(body).expect("a webhook body is JSON");
    assert_eq!((&body["id"], &body["data"]["charge"]["code"]), (&json!(id), &json!(code)));
    assert_eq!(body["event_id"], shown["delivery"]["event"]);
}
