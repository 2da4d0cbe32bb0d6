//! Scenarios exported from a world's inputs: they reproduce its events.

use proptest::prelude::*;
use serde_json::{Value, json};
use simulator::{
    play::{LocalStage, Stage, StageRequest, play},
    sandbox::Sandbox,
    script::Script,
};

use crate::world;

/// An action of a client.
#[derive(Clone, Debug)]
enum Action {
    Open { asset: &'static str, test: bool },
    Invoice { send: bool },
    Link,
    PayLink(usize),
    Pay { charge: usize, share: &'static str },
    Cancel(usize),
    Mine { blocks: u32, at_once: bool },
    Reorg,
    Drop(usize),
    Advance(u32),
    Endpoint { test: bool, by_key: bool },
    Merchant(&'static str),
    Key,
    Account,
    Restart,
    Rate(bool),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        4 => (prop::sample::select(vec!["BTC", "ETH"]), any::<bool>()).prop_map(|(asset, test)| Action::Open { asset, test }),
        1 => any::<bool>().prop_map(|send| Action::Invoice { send }),
        1 => Just(Action::Link),
        1 => (0..3_usize).prop_map(Action::PayLink),
        4 => (0..6_usize, prop::sample::select(vec!["1", "0.5", "1.2"])).prop_map(|(charge, share)| Action::Pay { charge, share }),
        1 => (0..6_usize).prop_map(Action::Cancel),
        3 => (1..4_u32, any::<bool>()).prop_map(|(blocks, at_once)| Action::Mine { blocks, at_once }),
        1 => Just(Action::Reorg),
        1 => (0..4_usize).prop_map(Action::Drop),
        3 => (1..4_000_000_u32).prop_map(Action::Advance),
        1 => any::<(bool, bool)>().prop_map(|(test, by_key)| Action::Endpoint { test, by_key }),
        1 => prop::sample::select(vec!["down", "slow", "up"]).prop_map(Action::Merchant),
        1 => Just(Action::Key),
        1 => Just(Action::Account),
        1 => Just(Action::Restart),
        1 => any::<bool>().prop_map(Action::Rate),
    ];
    prop::collection::vec(action, 0..25)
}

/// A client, and the objects that it created.
struct Client {
    sandbox: Sandbox,
    live_key: String,
    test_key: String,
    charges: Vec<String>,
    links: Vec<String>,
    transactions: Vec<String>,
}

impl Client {
    fn new() -> Client {
        let mut sandbox = world::open();
        sandbox.enable_history();
        let keys = sandbox.first_keys();
        Client {
            sandbox,
            live_key: keys.live,
            test_key: keys.test,
            charges: Vec::new(),
            links: Vec::new(),
            transactions: Vec::new(),
        }
    }

    /// Sends a request, which may be refused: the world does not export refused calls. Returns the body of
    /// the response.
    fn call(&mut self, method: &str, path: &str, key: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = world::send(&mut self.sandbox, method, path, key, &body);
        serde_json::from_slice(&response.body).expect("a response is JSON")
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        self.call("POST", path, "", body)
    }

    fn add_id(list: &mut Vec<String>, id: &Value) {
        list.extend(id.as_str().map(str::to_owned));
    }

    fn perform(&mut self, action: &Action) {
        let pick = |list: &[String], n: usize| list.get(n % list.len().max(1)).cloned();
        match action {
            Action::Open { asset, test } => {
                let key = if *test { self.test_key.clone() } else { self.live_key.clone() };
                let body = json!({ "asset": asset, "amount": 12.5, "currency": "EUR", "description": "a: b # \"c\"" });
                let created = self.call("POST", "/v1/charges", &key, &body);
                Client::add_id(&mut self.charges, &created["data"]["id"]);
            }
            Action::Invoice { send } => {
                let key = self.live_key.clone();
                let body = json!({ "customer_email": "ann@example.com", "amount": "99.00", "currency": "EUR", "send_email": send });
                let created = self.call("POST", "/v1/invoices", &key, &body);
                if let Some(id) = created["data"]["id"].as_str() {
                    let chosen =
                        self.post(&format!("/sandbox/invoices/{id}/choose"), &json!({ "asset": "BTC" }));
                    Client::add_id(&mut self.charges, &chosen["charge"]);
                }
            }
            Action::Link => {
                let key = self.live_key.clone();
                let body =
                    json!({ "title": "Mug", "pricing_type": "fixed", "amount": "12.00", "currency": "EUR" });
                let created = self.call("POST", "/v1/payment-links", &key, &body);
                Client::add_id(&mut self.links, &created["data"]["id"]);
            }
            Action::PayLink(n) => {
                if let Some(link) = pick(&self.links, *n) {
                    let chosen =
                        self.post(&format!("/sandbox/links/{link}/choose"), &json!({ "asset": "BTC" }));
                    Client::add_id(&mut self.charges, &chosen["charge"]);
                }
            }
            Action::Pay { charge, share } => {
                if let Some(charge) = pick(&self.charges, *charge) {
                    let paid = self.post("/sandbox/pay", &json!({ "charge": charge, "share": share }));
                    Client::add_id(&mut self.transactions, &paid["txid"]);
                }
            }
            Action::Cancel(n) => {
                if let Some(charge) = pick(&self.charges, *n) {
                    let key = self.live_key.clone();
                    self.call("POST", &format!("/v1/charges/{charge}/cancel"), &key, &Value::Null);
                }
            }
            Action::Drop(n) => {
                if let Some(txid) = pick(&self.transactions, *n) {
                    self.post("/sandbox/drop", &json!({ "txid": txid }));
                }
            }
            // The key restricts the call to its own book.
            Action::Endpoint { test, by_key: true } => {
                let key = if *test { self.test_key.clone() } else { self.live_key.clone() };
                let body = json!({ "url": "https://shop.sim/hooks" }).to_string();
                world::send_authenticated(&mut self.sandbox, "POST", "/sandbox/endpoints", &key, &body);
            }
            other => self.change_world(other),
        }
    }

    /// Performs an action that uses neither an API key nor an earlier object.
    fn change_world(&mut self, action: &Action) {
        let (path, body) = match action {
            Action::Mine { blocks, at_once } => (
                "/sandbox/mine",
                json!({ "mode": "live", "asset": "BTC", "blocks": blocks, "at_once": at_once }),
            ),
            Action::Reorg => {
                ("/sandbox/reorg", json!({ "mode": "live", "asset": "BTC", "depth": 1, "keep": "all" }))
            }
            Action::Advance(ms) => ("/sandbox/advance", json!({ "by": format!("{ms}ms") })),
            Action::Endpoint { test, .. } => {
                let mode = if *test { "test" } else { "live" };
                ("/sandbox/endpoints", json!({ "url": "https://shop.sim/hooks", "mode": mode }))
            }
            Action::Merchant(state) => ("/sandbox/merchants", json!({ "name": "shop", "state": state })),
            Action::Account => ("/sandbox/accounts", json!({ "id": "bakery" })),
            Action::Restart => ("/sandbox/restart", json!({})),
            Action::Rate(known) => {
                let rate = if *known { json!("60000") } else { Value::Null };
                ("/sandbox/rates", json!({ "asset": "BTC", "currency": "EUR", "rate": rate }))
            }
            // `Action::Key`: the others need a key or an earlier object.
            _ => ("/sandbox/keys", json!({ "mode": "live" })),
        };
        let response_json = self.post(path, &body);
        // Later calls use the new live key, of this or a new account.
        if let Some(secret) =
            response_json["key"]["secret"].as_str().or(response_json["keys"]["live"].as_str())
        {
            self.live_key = secret.to_owned();
        }
    }
}

/// Returns the events in a response of `/sandbox/happenings`.
fn events(response_body: &[u8]) -> Value {
    serde_json::from_slice::<Value>(response_body).expect("a response is JSON")["happened"].take()
}

/// Returns the scenario, and the number of omitted calls.
fn exported_scenario(client: &mut Client) -> (String, u64) {
    let export = client.call("GET", "/sandbox/scenario", "", &Value::Null);
    let (text, omitted_count) = (export["scenario"].as_str(), export["untold"].as_u64());
    (text.expect("the scenario is a string").to_owned(), omitted_count.expect("the count is a number"))
}

/// Checks that the exported scenario of these actions reproduces the events of the world.
fn check_reproduced(actions: &[Action]) -> Result<(), TestCaseError> {
    let mut client = Client::new();
    actions.iter().for_each(|action| client.perform(action));
    let (text, omitted_count) = exported_scenario(&mut client);
    prop_assert_eq!(omitted_count, 0, "{}", text);
    let script = Script::parse("exported.yaml", &text)
        .map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    let mut stage = LocalStage::new();
    play(&script, None, &mut stage).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    let target = "/sandbox/happenings?after=0";
    let first = world::send(&mut client.sandbox, "GET", target, "", "");
    let call = StageRequest { method: "GET", path: target, bearer: None, headers: &[], body: None };
    let second = stage.call(&call).expect("a world in this process responds");
    prop_assert_eq!(events(&first.body), events(&second.body), "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn an_exported_scenario_reproduces_the_world(actions in actions()) {
        check_reproduced(&actions)?;
    }
}

#[test]
fn an_omitted_call_is_listed_with_the_reason() {
    let mut client = Client::new();
    let key = client.live_key.clone();
    let body = json!({ "asset": "BTC", "amount": "5", "description": "${c1}" });
    let created = client.call("POST", "/v1/charges", &key, &body);
    let code = created["data"]["id"].as_str().expect("a new charge").to_owned();
    client.post("/sandbox/pay", &json!({ "charge": code }));
    client.perform(&Action::Open { asset: "BTC", test: false });
    let (text, omitted_count) = exported_scenario(&mut client);
    assert_eq!(omitted_count, 2, "{text}");
    for line in [
        "  # omitted: POST /v1/charges: `${` denotes a name in a scenario",
        &format!("  # omitted: POST /sandbox/pay: {code} was created by an omitted call"),
        "# This world had no limit for one key; a scenario has 120 a minute.",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let script = Script::parse("exported.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(play(&script, None, &mut LocalStage::new()).map(|summary| summary.events).unwrap_or(0), 1);
}

#[test]
fn an_unchanged_world_is_exported() {
    check_reproduced(&[]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn created_objects_have_names_that_later_calls_use() {
    let mut client = Client::new();
    for action in [Action::Open { asset: "BTC", test: false }, Action::Link, Action::Invoice { send: false }]
    {
        client.perform(&action);
    }
    client.perform(&Action::Pay { charge: 0, share: "1" });
    let created =
        client.post("/sandbox/endpoints", &json!({ "url": "https://shop.sim/hooks", "mode": "live" }));
    let endpoint = created["endpoint"]["id"].as_str().expect("an id");
    client.post(&format!("/sandbox/endpoints/{endpoint}/rotate"), &json!({}));
    client.perform(&Action::Drop(0));
    client.perform(&Action::Key);
    let (text, _) = exported_scenario(&mut client);
    for step in [
        "path: /v1/charges, save: { c1: /data/id } }",
        "path: /v1/payment-links, save: { l1: /data/id } }",
        "path: /v1/invoices, save: { i1: /data/id } }",
        r#"path: "/sandbox/invoices/${i1}/choose", save: { c2: /charge } }"#,
        r#"body: { charge: "${c1}", share: "1" }, method: POST, path: /sandbox/pay, save: { t1: /txid } }"#,
        "path: /sandbox/endpoints, save: { shop1: /endpoint/id } }",
        r#"path: "/sandbox/endpoints/${shop1}/rotate" }"#,
        r#"body: { txid: "${t1}" }, method: POST, path: /sandbox/drop }"#,
        "path: /sandbox/keys, save: { k1: /key/secret, key1: /key/id } }",
    ] {
        assert!(text.contains(step), "{step} is not in\n{text}");
    }
}

#[test]
fn passing_time_becomes_a_wait() {
    let mut client = Client::new();
    client.perform(&Action::Open { asset: "BTC", test: false });
    client.perform(&Action::Advance(90_000));
    client.perform(&Action::Mine { blocks: 1, at_once: true });
    client.perform(&Action::Mine { blocks: 2, at_once: false });
    let (text, _) = exported_scenario(&mut client);
    let steps: Vec<&str> = text.lines().filter(|line| line.starts_with("  - ")).collect();
    let mined = "  - request: { body: { asset: BTC, at_once: true, blocks: 1, mode: live }, method: POST, path: /sandbox/mine }";
    assert_eq!((steps.len(), &steps[1..3]), (4, &["  - wait: 1m30s", mined][..]), "{text}");
    assert!(steps[3].starts_with("  - wait: "), "{text}");
}

#[test]
fn a_scenario_starts_with_the_latest_world() {
    for (body, account_changes) in
        [(json!({ "seed": 7 }), 0), (json!({ "seed": 7, "account": { "display_name": "Bakery" } }), 1)]
    {
        let mut client = Client::new();
        client.perform(&Action::Link);
        client.perform(&Action::Advance(90_000));
        client.post("/sandbox/world", &body);
        let (text, omitted_count) = exported_scenario(&mut client);
        assert!(text.contains("\nseed: 7\n"), "{text}");
        assert_eq!(
            (text.matches("PATCH, path: /sandbox/accounts/acme").count(), omitted_count),
            (account_changes, 0),
            "{text}"
        );
        assert_eq!(
            text.matches("- request:").count(),
            account_changes,
            "no call to the earlier world: {text}"
        );
        assert!(!text.contains("1m30s"), "no wait in the earlier world: {text}");
    }
}

#[test]
fn a_restricted_call_is_exported_with_its_account_and_mode() {
    let mut client = Client::new();
    let body = json!({ "asset": "BTC", "amount": "5", "currency": "EUR" });
    let key = client.test_key.clone();
    let created = client.call("POST", "/v1/charges", &key, &body)["data"].clone();
    for (path, body) in [
        ("/sandbox/pay", json!({ "charge": created["id"], "share": "0.5" })),
        ("/sandbox/pay", json!({ "address": created["deposit_address"], "asset": "BTC", "amount": "0.001" })),
        ("/sandbox/mine", json!({ "asset": "BTC", "at_once": true })),
        ("/sandbox/reorg", json!({ "asset": "BTC", "depth": 1 })),
    ] {
        let response = world::send_authenticated(&mut client.sandbox, "POST", path, &key, &body.to_string());
        assert_eq!(response.status, 200, "{path} {body}");
    }
    let (text, _) = exported_scenario(&mut client);
    for body in [
        r#"{ charge: "${c1}", share: "0.5" }"#.to_owned(),
        format!(
            r#"{{ address: {}, amount: "0.001", asset: BTC, mode: test }}"#,
            created["deposit_address"].as_str().expect("an address")
        ),
        "{ account: acme, asset: BTC, depth: 1, mode: test }".to_owned(),
    ] {
        assert!(text.contains(&format!("body: {body}")), "{body} is not in\n{text}");
    }
}

/// Checks the numbers of exported and omitted calls. `bytes` is the size of the body and path of a call.
#[track_caller]
fn check_history_limit(calls: usize, bytes: usize, expected: (usize, u64)) {
    let mut client = Client::new();
    let path = "/sandbox/merchants";
    let body_start = r#"{"name":"shop","state":"down"}"#;
    let body = format!("{body_start:<width$}", width = bytes - path.len());
    for _ in 0..calls {
        let response = world::send(&mut client.sandbox, "POST", path, "", &body);
        assert_eq!(response.status, 200);
    }
    let (text, omitted_count) = exported_scenario(&mut client);
    assert_eq!((text.matches("- request:").count(), omitted_count), expected, "{calls} of {bytes}");
    let omitted_line = format!("  # omitted: {omitted_count} later calls, beyond the size limit\n");
    assert_eq!(text.contains(&omitted_line), omitted_count > 0, "{text}");
}

#[test]
fn the_history_ends_after_5000_calls_or_512_kib() {
    check_history_limit(5_000, 48, (5_000, 0));
    check_history_limit(5_003, 48, (5_000, 3));
    check_history_limit(8, 64 * 1_024, (8, 0));
    check_history_limit(10, 64 * 1_024, (8, 2));
    check_history_limit(9, 64 * 1_024 - 1, (8, 1));
}
