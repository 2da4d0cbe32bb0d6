//! The sandbox API: refusals, responses, and robustness against arbitrary bodies.

use crate::world;
use proptest::prelude::*;
use reference_core::time::Timestamp;
use reference_wire::{BODY_MAX, Request, Response};
use serde_json::{Value, json};
use simulator::sandbox::{Progress, Sandbox};

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
    fn call_ok(&mut self, method: &str, target: &str, body: &Value) -> Value {
        let response = self.send(method, target, "", &body.to_string());
        let response_json: Value = serde_json::from_slice(&response.body).expect("a response is JSON");
        assert_eq!(response.status, 200, "{response_json}");
        response_json
    }

    /// Checks that a call gets a 422 with errors for this field.
    #[track_caller]
    fn assert_refused(&mut self, target: &str, body: &Value, field: &str) {
        let response = self.send("POST", target, "", &body.to_string());
        let response_json: Value = serde_json::from_slice(&response.body).expect("a response is JSON");
        assert_eq!(response.status, 422, "{response_json}");
        assert!(response_json["errors"][field].is_array(), "{response_json} lacks errors for {field}");
    }

    /// Opens a live charge; returns its code and address.
    fn open_charge(&mut self, asset: &str) -> (String, String) {
        let key = self.sandbox.first_keys().live;
        let body = json!({"asset": asset, "amount": "10"}).to_string();
        let response = self.send("POST", "/v1/charges", &key, &body);
        let response_json: Value = serde_json::from_slice(&response.body).expect("a response is JSON");
        let text = |name: &str| response_json["data"][name].as_str().expect("a new charge").to_owned();
        (text("code"), text("deposit_address"))
    }

    /// Adds an endpoint and returns its id.
    fn add_endpoint(&mut self, mode: &str) -> String {
        let response_json =
            self.call_ok("POST", "/sandbox/endpoints", &json!({"url": "https://shop.sim", "mode": mode}));
        response_json["endpoint"]["id"].as_str().expect("an id").to_owned()
    }
}

#[test]
fn an_invalid_merchant_name_is_refused() {
    let mut world = World::new();
    world.assert_refused("/sandbox/merchants", &json!({"name": "Shop", "state": "down"}), "name");
    world.assert_refused("/sandbox/merchants", &json!({"name": "shop/x", "state": "down"}), "name");
    world.call_ok("POST", "/sandbox/merchants", &json!({"name": "shop", "state": "down"}));
}

#[test]
fn fields_that_a_payment_would_ignore_are_refused() {
    let mut world = World::new();
    let (code, address) = world.open_charge("BTC");
    world.assert_refused("/sandbox/pay", &json!({"charge": code, "mode": "test"}), "mode");
    let to_address = json!({"address": address, "asset": "BTC", "amount": "1", "share": "0.5"});
    world.assert_refused("/sandbox/pay", &to_address, "share");
    world.call_ok(
        "POST",
        "/sandbox/pay",
        &json!({"address": address, "asset": "BTC", "amount": "1", "mode": "test"}),
    );
}

#[test]
fn a_reorganisation_cannot_keep_an_unknown_transaction() {
    let mut world = World::new();
    let (code, _) = world.open_charge("ETH");
    let txid = world.call_ok("POST", "/sandbox/pay", &json!({ "charge": code }))["txid"].clone();
    for asset in ["ETH", "BTC"] {
        world.call_ok(
            "POST",
            "/sandbox/mine",
            &json!({ "mode": "live", "asset": asset, "blocks": 1, "at_once": true }),
        );
    }
    let keep = |asset, txid: &Value| json!({ "mode": "live", "asset": asset, "depth": 1, "keep": [txid] });
    world.assert_refused("/sandbox/reorg", &keep("BTC", &txid), "keep");
    world.assert_refused("/sandbox/reorg", &keep("ETH", &json!("0xabc")), "keep");
    world.call_ok("POST", "/sandbox/reorg", &keep("ETH", &txid));
}

#[test]
fn values_at_the_limits_are_accepted_and_beyond_them_refused() {
    let mut world = World::new();
    let (code, address) = world.open_charge("BTC");
    let now = world.sandbox.now();
    let to_time = |moment: Timestamp| json!({ "to": moment.to_string() });
    let to_address =
        |amount, outputs| json!({"address": address, "asset": "BTC", "amount": amount, "outputs": outputs});
    let mine = |blocks| json!({"asset": "BTC", "blocks": blocks, "at_once": true});
    let cases = [
        ("/sandbox/advance", to_time(now), to_time(Timestamp(now.0 - 1)), "to"),
        (
            "/sandbox/pay",
            json!({"charge": code, "outputs": 100}),
            json!({"charge": code, "outputs": 101}),
            "outputs",
        ),
        // One smallest unit for each output, and less than that.
        ("/sandbox/pay", to_address("0.00000100", 100), to_address("0.00000099", 100), "outputs"),
        ("/sandbox/mine", mine(100_000), mine(100_001), "blocks"),
    ];
    for (target, accepted, beyond, field) in cases {
        world.assert_refused(target, &beyond, field);
        world.call_ok("POST", target, &accepted);
    }
    let body_start = r#"{"name":"shop","state":"down"}"#;
    for (bytes, status) in [(BODY_MAX, 200), (BODY_MAX + 1, 413)] {
        let body = [body_start, &" ".repeat(bytes - body_start.len())].concat();
        assert_eq!(world.send("POST", "/sandbox/merchants", "", &body).status, status, "{bytes} bytes");
    }
}

#[test]
fn a_color_has_six_hexadecimal_digits() {
    let mut world = World::new();
    for color in ["#1f6fe", "#1f6feb0", "#1f6feg", "1f6feb"] {
        world.assert_refused(
            "/sandbox/accounts",
            &json!({"id": "bakery", "brand_color": color}),
            "brand_color",
        );
    }
    world.call_ok("POST", "/sandbox/accounts", &json!({"id": "bakery", "brand_color": "#1F6feb"}));
}

#[test]
fn an_account_is_personal_or_an_organization() {
    let mut world = World::new();
    for (id, kind) in [("ann", Some("personal")), ("bakery", Some("organization")), ("club", None)] {
        world.call_ok("POST", "/sandbox/accounts", &json!({ "id": id, "type": kind }));
    }
    world.assert_refused("/sandbox/accounts", &json!({ "id": "other", "type": "company" }), "type");
    let overview = world.call_ok("GET", "/sandbox", &Value::Null);
    let kinds: Vec<_> =
        overview["accounts"].as_array().expect("a list").iter().map(|account| &account["type"]).collect();
    assert_eq!(kinds, ["organization", "personal", "organization", "organization"], "{overview}");
}

#[test]
fn a_waiting_delivery_shows_the_time_of_its_next_attempt() {
    let mut world = World::new();
    let endpoint = world.add_endpoint("live");
    world.call_ok("POST", "/sandbox/merchants", &json!({ "name": "shop", "state": "down" }));
    world.call_ok("POST", &format!("/sandbox/endpoints/{endpoint}/test"), &json!({}));
    let next_attempt_at = |world: &mut World, status: &str| {
        world.call_ok("POST", "/sandbox/advance", &json!({ "by": "30s" }));
        let deliveries = world.call_ok("GET", "/sandbox/deliveries", &Value::Null)["deliveries"].clone();
        assert_eq!(deliveries[0]["status"], status, "{deliveries}");
        deliveries[0]["next_at"].clone()
    };
    let at = next_attempt_at(&mut world, "waiting");
    let at = Timestamp::parse(at.as_str().expect("a time")).expect("a time");
    assert!(at > world.sandbox.now());
    world.call_ok("POST", "/sandbox/merchants", &json!({ "name": "shop", "state": "up" }));
    world.call_ok("POST", "/sandbox/advance", &json!({ "to": at.to_string() }));
    assert_eq!(next_attempt_at(&mut world, "delivered"), Value::Null);
}

#[test]
fn a_search_accepts_at_most_255_bytes_and_returns_at_most_50_hits() {
    let mut world = World::new();
    (0..51).for_each(|_| drop(world.open_charge("BTC")));
    let path = "/sandbox/books/acme/live/search";
    let found = world.call_ok("GET", &format!("{path}?q=bc1"), &Value::Null)["found"].clone();
    assert_eq!(found.as_array().map(Vec::len), Some(50), "{found}");
    for (bytes, status) in [(255, 200), (256, 422)] {
        assert_eq!(world.send("GET", &format!("{path}?q={}", "x".repeat(bytes)), "", "").status, status);
    }
}

#[test]
fn a_key_restricts_a_call_to_its_own_book() {
    let mut world = World::new();
    let (code, _) = world.open_charge("BTC");
    let paid = world.call_ok("POST", "/sandbox/pay", &json!({ "charge": code }));
    let keys = world.call_ok("POST", "/sandbox/accounts", &json!({ "id": "bakery" }))["keys"].clone();
    let (live, test) = (keys["live"].as_str().expect("a key"), keys["test"].as_str().expect("a key"));
    let endpoint_of = |account: Option<&str>| json!({ "url": "https://shop.sim", "account": account });
    for (key, path, body, refused_field) in [
        (test, "/sandbox/endpoints", endpoint_of(None), None),
        (live, "/sandbox/endpoints", endpoint_of(Some("bakery")), None),
        (live, "/sandbox/endpoints", endpoint_of(Some("acme")), Some("account")),
        (live, "/sandbox/endpoints", endpoint_of(Some("nobody")), Some("account")),
        (test, "/sandbox/drop", json!({ "txid": paid["txid"] }), Some("txid")),
    ] {
        let response = world::send_authenticated(&mut world.sandbox, "POST", path, key, &body.to_string());
        let response_json: Value = serde_json::from_slice(&response.body).expect("a response is JSON");
        match refused_field {
            Some(field) => {
                assert!(response_json["errors"][field].is_array(), "{response_json} lacks errors for {field}")
            }
            None => assert_eq!(response_json["endpoint"]["account"], "bakery", "{response_json}"),
        }
    }
}

#[test]
fn mails_are_filtered_by_account_and_mode() {
    let mut world = World::new();
    world.call_ok("POST", "/sandbox/accounts", &json!({ "id": "bakery" }));
    let key = world.sandbox.first_keys().live;
    let invoice = json!({"customer_email": "ann@example.com", "amount": "99.00", "currency": "EUR", "send_email": true});
    assert_eq!(world.send("POST", "/v1/invoices", &key, &invoice.to_string()).status, 201);
    for (query, count) in [
        ("", 1),
        ("?account=acme", 1),
        ("?mode=live", 1),
        ("?account=acme&mode=live", 1),
        ("?account=acme&mode=test", 0),
        ("?account=bakery&mode=live", 0),
        ("?mode=test", 0),
    ] {
        let response_json = world.call_ok("GET", &format!("/sandbox/mails{query}"), &Value::Null);
        assert_eq!(response_json["mails"].as_array().map(Vec::len), Some(count), "{query}: {response_json}");
    }
}

#[test]
fn a_payment_arrives_for_every_spelling_of_its_address() {
    for (asset, respell) in [
        ("ETH", str::to_lowercase as fn(&str) -> String),
        ("BTC", str::to_uppercase),
        ("BCH", |address| address.trim_start_matches("bitcoincash:").to_owned()),
    ] {
        let mut world = World::new();
        let (code, address) = world.open_charge(asset);
        let respelled = respell(&address);
        assert_ne!(respelled, address);
        world.call_ok(
            "POST",
            "/sandbox/pay",
            &json!({"mode": "live", "address": respelled, "asset": asset, "amount": "1"}),
        );
        world.call_ok("POST", "/sandbox/advance", &json!({"by": "10s"}));
        let key = world.sandbox.first_keys().live;
        let shown = world.send("GET", &format!("/v1/charges/{code}"), &key, "");
        let shown: Value = serde_json::from_slice(&shown.body).expect("a response is JSON");
        assert_eq!(shown["data"]["transactions"].as_array().map(Vec::len), Some(1), "{asset}");
    }
}

#[test]
fn a_busy_book_does_not_hide_newer_deliveries_of_another() {
    let mut world = World::new();
    let [live, test] = ["live", "test"].map(|mode| world.add_endpoint(mode));
    for _ in 0..1_000 {
        world.call_ok("POST", &format!("/sandbox/endpoints/{live}/test"), &json!({}));
    }
    world.call_ok("POST", "/sandbox/advance", &json!({"by": "1s"}));
    let newest = world.call_ok("POST", &format!("/sandbox/endpoints/{test}/test"), &json!({}));
    let shown = world.call_ok("GET", "/sandbox/deliveries", &json!({}));
    assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(1_000));
    assert_eq!(shown["deliveries"][0]["id"], newest["delivery"]);
    for (filter, count) in
        [(format!("endpoint={test}"), 1), ("endpoint=none".to_owned(), 0), ("event=none".to_owned(), 0)]
    {
        let shown = world.call_ok("GET", &format!("/sandbox/deliveries?{filter}"), &json!({}));
        assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(count), "{filter}");
    }
}

/// Calls that change a world, and fields of their bodies. `{c}` and `{e}` stand for a charge and an endpoint.
const CALLS: [(&str, &str, &[&str]); 25] = [
    (
        "POST",
        "/sandbox/pay",
        &["charge", "address", "mode", "asset", "amount", "share", "fee", "outputs", "unseen"],
    ),
    ("POST", "/sandbox/mine", &["asset", "mode", "blocks", "at_once"]),
    ("POST", "/sandbox/reorg", &["asset", "mode", "depth", "keep"]),
    ("POST", "/sandbox/double-spend", &["txid"]),
    ("POST", "/sandbox/replace", &["txid", "amount", "elsewhere", "fee"]),
    ("POST", "/sandbox/drop", &["txid"]),
    ("POST", "/sandbox/rebroadcast", &["txid"]),
    ("POST", "/sandbox/stall", &["asset", "mode", "for"]),
    ("POST", "/sandbox/advance", &["by", "to"]),
    ("POST", "/sandbox/restart", &[]),
    ("POST", "/sandbox/rates", &["asset", "currency", "rate"]),
    ("POST", "/sandbox/world", &["seed", "start", "account", "journal"]),
    (
        "POST",
        "/sandbox/accounts",
        &["id", "type", "members", "underpayment_tolerance", "brand_color", "logo_url"],
    ),
    (
        "PATCH",
        "/sandbox/accounts/acme",
        &[
            "members",
            "overpayment_threshold",
            "default_currency",
            "support_email",
            "support_phone",
            "business",
        ],
    ),
    ("POST", "/sandbox/keys", &["account", "mode"]),
    ("PUT", "/sandbox/wallets", &["account", "mode", "asset", "key", "script", "addresses"]),
    ("DELETE", "/sandbox/wallets", &["account", "mode", "asset"]),
    ("POST", "/sandbox/endpoints", &["account", "mode", "url", "events"]),
    ("PATCH", "/sandbox/endpoints/{e}", &["url", "events", "status"]),
    ("POST", "/sandbox/endpoints/{e}/test", &[]),
    ("POST", "/sandbox/endpoints/{e}/rotate", &[]),
    ("POST", "/sandbox/charges/{c}/accept", &["txid"]),
    ("POST", "/sandbox/charges/{c}/cancel", &[]),
    ("POST", "/sandbox/invoices/{c}/choose", &["asset"]),
    ("POST", "/sandbox/merchants", &["name", "state", "answers"]),
];

/// The maximum number of fields in [`CALLS`].
const FIELDS_MAX: usize = 9;

/// Valid and invalid values for bodies. `C`, `T` and `A` stand for a charge, a transaction and an address.
const VALUES: [&str; 42] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "3",
    "100",
    "-1",
    "1.5",
    "1e400",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    r#""""#,
    r#""1""#,
    r#""0.00000001""#,
    r#""1000000000000""#,
    r#""1e5""#,
    r#""99999999999999999999999999999""#,
    r#""\u0000""#,
    r#""\ud800""#,
    r#""é""#,
    "[]",
    "[[]]",
    "[null]",
    "{}",
    r#"{"a":1,"a":2}"#,
    r#""BTC""#,
    r#""SOL""#,
    r#""live""#,
    r#""test""#,
    r#""none""#,
    r#""all""#,
    r#""high""#,
    r#""stuck""#,
    r#""10m""#,
    r#""18446744073709551615us""#,
    r#""9999-12-31T23:59:59.999999Z""#,
    r#""https://shop.sim""#,
    r#""C""#,
    r#""T""#,
    r#""A""#,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nor does a body set the clock back, unless the call starts a new world.
    #[test]
    fn arbitrary_bodies_cause_no_server_error(
        calls in prop::collection::vec((0..CALLS.len(), prop::collection::vec(0..VALUES.len(), FIELDS_MAX), any::<u16>()), 1..40),
    ) {
        let mut world = World::new();
        let mut txid = String::new();
        let (mut code, mut address) = world.open_charge("BTC");
        let endpoint = world.add_endpoint("live");
        for (call, values, field_mask) in calls {
            let (method, path, fields) = CALLS[call];
            let path = path.replace("{c}", &code).replace("{e}", &endpoint);
            let pairs: Vec<String> = fields.iter().zip(&values).enumerate()
                .filter(|(n, _)| field_mask >> n & 1 == 1)
                .map(|(_, (field, &value))| {
                    let value = match VALUES[value] {
                        r#""C""# => json!(code).to_string(),
                        r#""T""# => json!(txid).to_string(),
                        r#""A""# => json!(address).to_string(),
                        literal => literal.to_owned(),
                    };
                    format!("{field:?}:{value}")
                })
                .collect();
            let body = format!("{{{}}}", pairs.join(","));
            let before = world.sandbox.now();
            let response = world.send(method, &path, "", &body);
            prop_assert!(response.status < 500, "{} {method} {path} {body}", response.status);
            let is_new_world = path == "/sandbox/world" && response.status == 200;
            prop_assert!(world.sandbox.now() >= before || is_new_world, "{method} {path} {body}");
            let response_json: Value = serde_json::from_slice(&response.body).expect("every response is JSON");
            if let Some(text) = response_json["txid"].as_str() {
                text.clone_into(&mut txid);
            }
            if is_new_world {
                (code, address) = world.open_charge("BTC");
            }
        }
    }
}

#[test]
fn a_request_of_an_earlier_world_gets_a_conflict() {
    let mut world = World::new();
    let bearer = format!("Bearer {}", world.sandbox.first_keys().test);
    let authenticated =
        world.sandbox.admit(world.sandbox.now(), Some(bearer.as_bytes())).expect("the key is valid");
    world.call_ok("POST", "/sandbox/accounts", &json!({"id": "other"}));
    world.call_ok("POST", "/sandbox/world", &json!({}));
    for path in ["/v1/account", "/sandbox/endpoints"] {
        let request = Request::new("http://localhost", "GET", path);
        match world.sandbox.call_as(world.sandbox.now(), &authenticated, &request) {
            Progress::Done(response) => assert_eq!(response.status, 409, "{path}"),
            Progress::Waiting(pending) => panic!("{path} waits: {pending:?}"),
        }
    }
}
