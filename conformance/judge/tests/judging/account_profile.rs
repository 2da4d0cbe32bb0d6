//! The facts that an account must state under names and in formats that the specification leaves open.

use std::time::Duration;

use conformance_model::recording::{Exchange, Purpose, Recording};
use serde_json::{Value, json};

use super::{
    LIVE, TEST, account, check, check_verdict_text, events_request, exchange, page, recording, response_mut,
};

/// Returns a recording in which the live account has this data; that of the test account is complete.
fn accounts(live: &Value) -> Recording {
    let complete = json!({ "type": "personal", "name": "A", "currency": "EUR", "tolerance": 1 });
    let read = |caller, mode, data: &Value| {
        let body = json!({ "data": data, "meta": { "mode": mode, "accepted_assets": ["BTC"] } });
        exchange(caller, Purpose::Account, "/v1/account", 200, &body)
    };
    recording(vec![read(LIVE, "live", live), read(TEST, "test", &complete)])
}

#[test]
fn an_account_may_state_its_facts_in_any_format() {
    for data in [
        json!({ "organization": null, "display_name": null, "default": { "fiat": "eur" }, "bounds": ["0.5%"] }),
        json!({ "a": "Personal account", "brand": {}, "b": "EUR", "c": 0 }),
        json!({ "account_type": 1, "public_profile": null, "currencies": ["EUR"], "payment_tolerances": [0] }),
        json!({ "attributes": { "kind": "org", "logo": null, "currency": 978, "underpayment": "strict" } }),
    ] {
        check(&accounts(&data), "account.profile", "pass");
    }
    for kind in [
        json!({ "is_org": false }),
        json!({ "org": null }),
        json!({ "owner": "user" }),
        json!({ "holder": "person" }),
        json!({ "account": "org" }),
        json!({ "account": "user" }),
        json!({ "legal_name": null }),
    ] {
        check(
            &accounts(&json!({ "data": kind, "currency": "EUR", "tolerance": 1 })),
            "account.profile",
            "pass",
        );
    }
}

#[test]
fn an_account_must_state_each_fact() {
    let id = "account.profile";
    for (member, value, expected) in [
        ("type", Value::Null, "the kind of the account"),
        ("currency", Value::Null, "the default currency"),
        ("currency", json!(""), "the default currency"),
        ("payment_tolerances", json!({}), "the payment tolerances"),
    ] {
        let mut data = json!({
            "id": 71, "slug": "shop_7f31", "type": "personal", "name": "Shop", "logo": null,
            "currency": "EUR", "payment_tolerances": { "under": "0.5" }, "color": "#102030",
        });
        check(&accounts(&data), id, "pass");
        data[member] = value;
        check(&accounts(&data), id, "fail");
        check_verdict_text(&accounts(&data), id, expected);
    }
    // The members of an empty profile may be omitted.
    let without_profile = json!({ "type": "personal", "currency": "EUR", "payment_tolerances": [1] });
    check(&accounts(&without_profile), id, "pass");
}

#[test]
fn hidden_values_may_state_a_fact() {
    let mut hidden = accounts(&json!({ "type": "personal", "name": "A", "money": "h:1f", "tolerance": 1 }));
    hidden.exact_amounts = false;
    check(&hidden, "account.profile", "not judged");
}

#[test]
fn accepted_assets_are_coins_in_any_format() {
    for (assets, expected) in [
        (json!(["BTC", "ETH"]), "pass"),
        (json!([{ "code": "BTC" }]), "pass"),
        (json!([]), "pass"),
        (json!(["BTC", null]), "fail"),
        (json!([""]), "fail"),
    ] {
        let mut live = account(LIVE, "live");
        let body = json!({ "data": {}, "meta": { "mode": "live", "accepted_assets": assets } });
        live.outcome = exchange(LIVE, Purpose::Account, "/v1/account", 200, &body).outcome;
        check(&recording(vec![live, account(TEST, "test")]), "account.accepted_assets", expected);
    }
}

/// Returns a recording with the accounts of both modes; the test key reads its account with each of these values, one
/// every `seconds`.
fn account_values(seconds: u64, values: &[(&str, Value)]) -> Recording {
    let read = |caller, mode, currency: &str, assets: &Value| {
        let data = json!({ "type": "personal", "default_currency": currency, "tolerance": 1, "name": "A" });
        let body = json!({ "data": data, "meta": { "mode": mode, "accepted_assets": assets } });
        exchange(caller, Purpose::Account, "/v1/account", 200, &body)
    };
    let mut all = vec![read(LIVE, "live", "USD", &json!(["LTC"]))];
    for (index, (currency, assets)) in (0..).zip(values) {
        let sent = Duration::from_secs(index * seconds);
        all.push(Exchange { sent, ended: sent, ..read(TEST, "test", currency, assets) });
    }
    recording(all)
}

#[test]
fn the_account_of_a_key_does_not_alternate() {
    let id = "account.profile";
    let currencies = |seconds, names: &[&'static str]| {
        account_values(seconds, &names.iter().map(|name| (*name, json!(["BTC"]))).collect::<Vec<_>>())
    };
    check(&currencies(9, &["EUR", "EUR"]), id, "pass");
    check(&currencies(9, &["EUR", "USD", "USD"]), id, "pass");
    check(&currencies(9, &["EUR", "USD", "EUR"]), id, "pass");
    check(&currencies(90, &["EUR", "USD", "EUR", "USD", "EUR"]), id, "pass");
    check(&currencies(20, &["EUR", "USD", "EUR", "USD", "EUR", "USD"]), id, "fail");
    // Replicas may differ for up to a minute after a change.
    check(&currencies(19, &["EUR", "USD", "EUR", "USD", "EUR", "USD"]), id, "pass");
    let assets = |all: &[Value]| {
        account_values(20, &all.iter().map(|assets| ("EUR", assets.clone())).collect::<Vec<_>>())
    };
    let (both, reversed, one) = (json!(["BTC", "ETH"]), json!(["ETH", "BTC"]), json!(["BTC"]));
    let id = "account.accepted_assets";
    let alternating =
        |first: &Value, second: &Value| [first, second, first, second, first, second].map(Value::clone);
    check(&assets(&alternating(&both, &reversed)), id, "pass");
    check(&assets(&[both.clone(), one.clone(), one.clone()]), id, "pass");
    check(&assets(&alternating(&both, &one)), id, "fail");
}

#[test]
fn the_coins_of_new_charges_are_accepted() {
    let account_at = |second: u32, assets: &Value| {
        let body = json!({ "data": {}, "meta": { "mode": "live", "accepted_assets": assets } });
        let mut read = exchange(LIVE, Purpose::Account, "/v1/account", 200, &body);
        let date = format!("Sun, 01 Feb 2026 10:00:{second:02} GMT");
        response_mut(&mut read).headers.push(("date".to_owned(), date));
        read
    };
    let event = |index: u32, asset: &str| {
        json!({
            "id": format!("e{index}"), "type": "charge.created", "charge": { "code": format!("c{index}"), "asset": asset },
            "created_at": format!("2026-02-01T10:00:{:02}Z", 20 + index),
        })
    };
    let (without_btc, with_btc) = (json!(["ETH", "LTC"]), json!([{ "code": "ETH" }, { "code": "BTC" }]));
    let [three, two] =
        [["BTC", "ETH", "BTC", "ETH", "BTC", "ETH"], ["BTC", "ETH", "BTC", "ETH", "ETH", "ETH"]];
    for (first, last, end, assets, expected) in [
        (&without_btc, &without_btc, 40, three, "fail"),
        (&with_btc, &with_btc, 40, three, "pass"),
        (&with_btc, &without_btc, 40, three, "pass"),
        (&without_btc, &without_btc, 40, two, "pass"),
        // Other names of coins.
        (&without_btc, &without_btc, 40, ["BTC"; 6], "pass"),
        // Opened after the last list of accepted assets.
        (&without_btc, &without_btc, 24, three, "pass"),
    ] {
        let events: Value = (0..).zip(assets).map(|(index, asset)| event(index, asset)).collect();
        let mut listed = page(events_request(None, 100), &events, [1, 1, 100, 6]);
        listed.caller = LIVE;
        let all = vec![account_at(10, first), listed, account_at(end, last), account(TEST, "test")];
        check(&recording(all), "account.accepted_assets", expected);
    }
}

#[test]
fn accepted_assets_are_no_fiat_currencies() {
    for (assets, asset, expected) in [
        (json!(["EUR", "BTC"]), "BTC", "fail"),
        (json!(["USD", "BTC"]), "BTC", "pass"),
        // The code of a coin and of a currency.
        (json!(["EUR"]), "EUR", "pass"),
    ] {
        let body = json!({ "data": {}, "meta": { "mode": "live", "accepted_assets": assets } });
        let live = exchange(LIVE, Purpose::Account, "/v1/account", 200, &body);
        let event = json!({
            "id": "e1", "type": "charge.created", "created_at": "2026-02-01T10:00:00Z",
            "charge": { "code": "c1", "asset": asset, "fiat_currency": "EUR" },
        });
        let list = page(events_request(None, 100), &json!([event]), [1, 1, 100, 1]);
        let all = vec![live, list, account(TEST, "test")];
        check(&recording(all), "account.accepted_assets", expected);
    }
}
