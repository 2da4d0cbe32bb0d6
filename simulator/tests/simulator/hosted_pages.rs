//! The content of the hosted pages: the state of a charge, the available coins, and the reason why there are none.

use reference_core::{asset::Asset, rng::Seed, time::Timestamp};
use reference_wire::Request;
use serde_json::{Value, json};
use simulator::sandbox::{Sandbox, Setup};

struct World {
    sandbox: Sandbox,
}

impl World {
    fn new() -> World {
        let start = Timestamp::parse("2026-01-05T09:00:00Z").unwrap();
        World { sandbox: Sandbox::new(&Setup::new(Seed(1), start, "https://pay.example")) }
    }

    #[track_caller]
    fn call(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let bearer = format!("Bearer {}", self.sandbox.first_keys().live);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request {
            authorization: Some(bearer.as_bytes()),
            ..Request::json("https://pay.example", method, path, &body)
        };
        let response = self.sandbox.respond(self.sandbox.now(), &request);
        let response_json = serde_json::from_slice(&response.body).expect("a response is JSON");
        assert!(matches!(response.status, 200..300), "{method} {path} {body}: {response_json}");
        response_json
    }

    /// Creates an object and returns its code.
    #[track_caller]
    fn create(&mut self, path: &str, body: Value) -> String {
        self.call("POST", path, &body)["data"]["code"].as_str().expect("a code").to_owned()
    }

    fn page(&mut self, path: &str) -> Value {
        self.call("GET", &format!("/sandbox/pages/{path}"), &Value::Null)
    }
}

/// Checks the stage of a charge in LTC, which needs 3 confirmations, after these sandbox calls: paths and bodies, in
/// which `CODE` stands for the code of the charge and `TXID` for the id of the last payment.
#[track_caller]
fn check_stage(calls: &[(&str, &str)], stage: &str) {
    let mut world = World::new();
    let code = world.create("/v1/charges", json!({ "asset": "LTC", "amount": "49.90", "currency": "EUR" }));
    let mut txid = String::new();
    for (path, body) in calls {
        let path = path.replace("CODE", &code);
        let body = body.replace("CODE", &code).replace("TXID", &txid);
        let body = serde_json::from_str(&body).expect("bodies in tests are JSON");
        let response_json = world.call("POST", &path, &body);
        txid = response_json["txid"].as_str().map_or(txid, str::to_owned);
    }
    assert_eq!(world.page(&format!("c/{code}"))["stage"], stage, "{calls:?}");
}

const PAY: (&str, &str) = ("/sandbox/pay", r#"{"charge":"CODE"}"#);
const PAY_HALF: (&str, &str) = ("/sandbox/pay", r#"{"charge":"CODE","share":"0.5"}"#);
const DROP: (&str, &str) = ("/sandbox/drop", r#"{"txid":"TXID"}"#);
const MINE: (&str, &str) = ("/sandbox/mine", r#"{"mode":"live","asset":"LTC","blocks":3}"#);
/// Lets the rate lock end.
const WAIT: (&str, &str) = ("/sandbox/advance", r#"{"by":"31m"}"#);
const CANCEL: (&str, &str) = ("/sandbox/charges/CODE/cancel", "{}");
const ACCEPT: (&str, &str) = ("/sandbox/charges/CODE/accept", "{}");

#[test]
fn a_charge_is_confirming_until_its_transfer_is_confirmed_or_dropped() {
    check_stage(&[], "waiting");
    check_stage(&[PAY], "confirming");
    check_stage(&[PAY, DROP], "waiting");
    check_stage(&[PAY, MINE], "paid");
    check_stage(&[PAY, WAIT], "paid");
}

#[test]
fn a_partial_payment_leaves_a_charge_underpaid() {
    check_stage(&[PAY_HALF, MINE], "underpaid");
    check_stage(&[PAY_HALF, MINE, PAY], "confirming");
    check_stage(&[PAY_HALF, MINE, PAY, MINE], "paid");
    check_stage(&[PAY_HALF, MINE, WAIT], "expired");
}

/// Checks the missing amount of a charge of 49.90 EUR in LTC after payments of these shares of the remaining amount,
/// and whether it is within the tolerance. A dropped transfer must not change the missing amount.
#[track_caller]
fn check_missing(shares: &[&str], missing: &str, is_covered: bool) {
    let mut world = World::new();
    world.call("POST", "/sandbox/rates", &json!({ "asset": "LTC", "currency": "EUR", "rate": "49.90" }));
    let code = world.create("/v1/charges", json!({ "asset": "LTC", "amount": "49.90", "currency": "EUR" }));
    for share in shares {
        world.call("POST", "/sandbox/pay", &json!({ "charge": code, "share": share }));
    }
    let page = world.page(&format!("c/{code}"));
    assert_eq!((&page["missing"], &page["covered"]), (&json!(missing), &json!(is_covered)), "{shares:?}");
    let dropped = world.call("POST", "/sandbox/pay", &json!({ "charge": code, "share": "0.1" }));
    world.call("POST", "/sandbox/drop", &json!({ "txid": dropped["txid"] }));
    assert_eq!(
        world.page(&format!("c/{code}"))["missing"],
        missing,
        "a dropped transfer is not expected to arrive"
    );
}

#[test]
fn pending_transfers_reduce_the_missing_amount() {
    check_missing(&[], "1", false);
    check_missing(&["0.25"], "0.75", false);
    check_missing(&["0.25", "0.25"], "0.5", false);
    check_missing(&["0.995"], "0.005", true);
    check_missing(&["1"], "0", true);
    check_missing(&["1.5"], "0", true);
}

#[test]
fn a_payment_after_expiry_or_cancellation_is_late() {
    check_stage(&[WAIT], "expired");
    check_stage(&[CANCEL], "canceled");
    check_stage(&[CANCEL, WAIT], "canceled");
    for end in [WAIT, CANCEL] {
        check_stage(&[end, PAY], "late");
        check_stage(&[end, PAY, MINE], "late");
        check_stage(&[end, PAY, MINE, ACCEPT], "paid");
        check_stage(&[end, PAY_HALF, MINE, ACCEPT], "short");
    }
}

#[test]
fn a_coin_of_an_invoice_can_be_chosen_until_a_transfer_is_pending() {
    let mut world = World::new();
    let code = world.create("/v1/invoices", json!({ "amount": "80.00", "currency": "EUR" }));
    let path = format!("i/{code}");
    let page = world.page(&path);
    assert_eq!((&page["may_choose"], &page["payment"]), (&json!(true), &Value::Null));
    assert_eq!(page["coins"].as_array().unwrap().len(), Asset::ALL.len());

    let choose = format!("/sandbox/invoices/{code}/choose");
    for asset in ["BTC", "LTC"] {
        world.call("POST", &choose, &json!({ "asset": asset }));
        let page = world.page(&path);
        assert_eq!((&page["may_choose"], &page["payment"]["stage"]), (&json!(true), &json!("waiting")));
        assert_eq!(page["payment"]["charge"]["asset"], asset);
        // The offered amount is the amount due.
        let offered = page["coins"].as_array().unwrap().iter().find(|coin| coin["asset"] == asset).unwrap();
        assert_eq!(offered["amount"], page["payment"]["charge"]["asset_amount"]);
    }

    let charge = world.page(&path)["payment"]["charge"]["code"].take();
    world.call("POST", "/sandbox/pay", &json!({ "charge": charge }));
    let page = world.page(&path);
    assert_eq!((&page["may_choose"], &page["coins"]), (&json!(false), &json!([])));
    world.call("POST", "/sandbox/mine", &json!({ "mode": "live", "asset": "LTC", "blocks": 3 }));
    let page = world.page(&path);
    assert_eq!((&page["invoice"]["status"], &page["payment"]["stage"]), (&json!("paid"), &json!("paid")));
    assert_eq!(page["may_choose"], false);
}

/// Checks whether a coin can be chosen for an invoice with a charge in LTC, after these sandbox calls.
#[track_caller]
fn check_may_choose(calls: &[(&str, &str)], may_choose: bool) {
    let mut world = World::new();
    let invoice = world.create("/v1/invoices", json!({ "amount": "80.00", "currency": "EUR" }));
    let choose = format!("/sandbox/invoices/{invoice}/choose");
    let chosen = world.call("POST", &choose, &json!({ "asset": "LTC" }));
    let code = chosen["charge"].as_str().expect("a code");
    for (path, body) in calls {
        let body = serde_json::from_str(&body.replace("CODE", code)).expect("bodies in tests are JSON");
        world.call("POST", &path.replace("CODE", code), &body);
    }
    assert_eq!(world.page(&format!("i/{invoice}"))["may_choose"], may_choose, "{calls:?}");
}

#[test]
fn a_coin_can_be_chosen_again_when_the_charge_is_closed() {
    check_may_choose(&[], true);
    check_may_choose(&[PAY_HALF], false);
    check_may_choose(&[PAY_HALF, MINE], false);
    check_may_choose(&[PAY_HALF, MINE, WAIT], true);
    check_may_choose(&[WAIT], true);
    check_may_choose(&[CANCEL], true);
}

#[test]
fn a_coin_is_offered_if_it_is_accepted_and_has_a_rate() {
    let mut world = World::new();
    let link = json!({
        "title": "Book", "amount": "9.00", "currency": "EUR", "accepted_assets": ["BTC", "LTC", "XMR"],
    });
    let path = format!("pay/{}", world.create("/v1/payment-links", link));
    let coins = |page: Value| -> Vec<String> {
        let all = page["coins"].as_array().unwrap().iter();
        all.map(|coin| coin["asset"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(coins(world.page(&path)), ["BTC", "LTC", "XMR"]);
    world.call("POST", "/sandbox/rates", &json!({ "asset": "LTC", "currency": "EUR", "rate": null }));
    assert_eq!(coins(world.page(&path)), ["BTC", "XMR"]);
    world.call("DELETE", "/sandbox/wallets", &json!({ "mode": "live", "asset": "XMR" }));
    assert_eq!(coins(world.page(&path)), ["BTC"]);
}

/// Checks the reason why a link with these fields is closed after this time; null if it is open.
#[track_caller]
fn check_closed(fields: Value, archived: bool, wait: &str, closed: &Value) {
    let mut world = World::new();
    let mut link = json!({ "title": "Book", "amount": "9.00", "currency": "EUR" });
    link.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let code = world.create("/v1/payment-links", link);
    if archived {
        world.call("POST", &format!("/v1/payment-links/{code}/archive"), &json!({}));
    }
    world.call("POST", "/sandbox/advance", &json!({ "by": wait }));
    assert_eq!(world.page(&format!("pay/{code}"))["closed"], *closed, "{fields} {archived}");
}

#[test]
fn a_link_shows_the_reason_why_it_is_closed() {
    let ends = json!({ "expires_at": "2026-01-06T09:00:00Z" });
    check_closed(json!({}), false, "1s", &Value::Null);
    check_closed(ends.clone(), false, "1s", &Value::Null);
    check_closed(ends.clone(), false, "1d", &json!("expired"));
    check_closed(ends, true, "1d", &json!("archived"));
    check_closed(json!({}), true, "1s", &json!("archived"));
}
