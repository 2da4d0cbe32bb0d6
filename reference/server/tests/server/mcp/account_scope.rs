//! Tools on a chain shared by two accounts: they neither show nor change transfers of the other account.

use reference_server::Server;
use serde_json::{Value, json};

use super::{Client, config, start};

/// A server with two accounts, each with a charge in BTC and a client in test mode.
struct SharedChain {
    _server: Server,
    own: Client,
    other: Client,
    own_charge: Value,
    other_charge: Value,
}

impl SharedChain {
    async fn start() -> SharedChain {
        let (server, _, own) = start(config()).await;
        let account = own.with_key("").send("POST", "/sandbox/accounts", r#"{"id":"bakery"}"#).await.body;
        let other = own.with_key(account["keys"]["test"].as_str().expect("a new account has keys"));
        let new = json!({ "asset": "BTC", "amount": "5" });
        let [own_charge, other_charge] = [
            Client::success(own.call_tool("create_charge", new.clone()).await)["data"].take(),
            Client::success(other.call_tool("create_charge", new).await)["data"].take(),
        ];
        SharedChain { _server: server, own, other, own_charge, other_charge }
    }

    /// Pays both charges; returns the transaction of the own account, then that of the other.
    async fn pay(&self) -> [Value; 2] {
        let pay = async |client: &Client, charge: &Value| {
            Client::success(client.call_tool("pay", json!({ "charge": charge["id"] })).await)["txid"].take()
        };
        [pay(&self.own, &self.own_charge).await, pay(&self.other, &self.other_charge).await]
    }
}

/// Returns the address and the number of confirmations of each transfer in the result.
fn transfers(response: &Value) -> Vec<(&Value, &Value)> {
    let happened = response["happened"].as_array().expect("a list");
    let transfers = happened.iter().filter(|event| event["what"] == "transfer");
    transfers.map(|event| (&event["address"], &event["confirmations"])).collect()
}

#[tokio::test]
async fn transfers_of_other_accounts_are_not_shown() {
    let chain = SharedChain::start().await;
    chain.pay().await;
    let mined = Client::success(
        chain.own.call_tool("mine", json!({ "asset": "BTC", "blocks": 1, "at_once": true })).await,
    );
    assert_eq!(transfers(&mined), [(&chain.own_charge["deposit_address"], &json!(1))], "{mined}");
    for (client, charge) in [(&chain.own, &chain.own_charge), (&chain.other, &chain.other_charge)] {
        let happenings = Client::success(client.call_tool("list_happenings", json!({})).await);
        let found = transfers(&happenings);
        let address = &charge["deposit_address"];
        assert_eq!(found, [(address, &json!(0)), (address, &json!(1))], "{happenings}");
    }
}

#[tokio::test]
async fn a_transaction_to_another_account_is_unknown() {
    let chain = SharedChain::start().await;
    let [own, foreign] = chain.pay().await;
    let unknown = json!("00".repeat(32));
    for tool in ["double_spend", "drop_transaction", "rebroadcast", "replace"] {
        let [refused, expected] = [
            chain.own.call_tool(tool, json!({ "txid": foreign })).await,
            chain.own.call_tool(tool, json!({ "txid": unknown })).await,
        ];
        assert!(
            Client::failure_message(&refused).contains("no chain has this transaction"),
            "{tool}: {refused}"
        );
        assert_eq!(refused, expected, "{tool}");
    }
    let address = json!({ "address": chain.other_charge["deposit_address"], "asset": "BTC", "amount": "1" });
    let refused = chain.own.call_tool("pay", address).await;
    assert!(Client::failure_message(&refused).contains("a charge of the key's account"), "{refused}");
    let address =
        json!({ "address": chain.own_charge["deposit_address"], "asset": "BTC", "amount": "0.001" });
    Client::success(chain.own.call_tool("pay", address).await);
    // A conflict or replacement belongs to the same account as the transfer it competes with.
    let conflict = Client::success(chain.own.call_tool("double_spend", json!({ "txid": own })).await);
    Client::success(chain.own.call_tool("drop_transaction", json!({ "txid": conflict["txid"] })).await);
    let foreign_conflict =
        Client::success(chain.other.call_tool("double_spend", json!({ "txid": foreign })).await);
    let refused = chain.own.call_tool("drop_transaction", json!({ "txid": foreign_conflict["txid"] })).await;
    assert!(Client::failure_message(&refused).contains("no chain has this transaction"), "{refused}");
}

#[tokio::test]
async fn a_reorganisation_removes_confirmations_of_own_transfers_only() {
    let chain = SharedChain::start().await;
    let [own, foreign] = chain.pay().await;
    Client::success(
        chain.own.call_tool("mine", json!({ "asset": "BTC", "blocks": 1, "at_once": true })).await,
    );
    let reorganise = async |fields: Value| {
        let mut arguments = json!({ "asset": "BTC", "depth": 1 });
        arguments.as_object_mut().expect("an object").extend(fields.as_object().cloned().unwrap_or_default());
        chain.own.call_tool("reorganise", arguments).await
    };
    for txid in [&foreign, &json!("00".repeat(32))] {
        let refused = reorganise(json!({ "keep": [txid] })).await;
        assert!(
            Client::failure_message(&refused).contains("is not a transaction of the test BTC chain"),
            "{refused}"
        );
    }
    let refused = reorganise(json!({ "account": "bakery" })).await;
    assert!(Client::failure_message(&refused).contains("The selected account is invalid."), "{refused}");
    let reorganised = Client::success(reorganise(json!({})).await);
    assert_eq!(reorganised["orphaned"], json!([own]));
    assert_eq!(transfers(&reorganised), [(&chain.own_charge["deposit_address"], &json!(0))], "{reorganised}");
    let happenings = Client::success(chain.other.call_tool("list_happenings", json!({})).await);
    let states: Vec<&Value> = happenings["happened"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|happening| &happening["state"])
        .collect();
    assert!(!states.contains(&&json!("unconfirmed")), "{happenings}");
    let charge =
        Client::success(chain.other.call_tool("get_charge", json!({ "id": chain.other_charge["id"] })).await);
    assert_eq!(charge["data"]["status"], "paid");
}

#[tokio::test]
async fn a_chain_that_other_accounts_use_cannot_be_stalled() {
    let stall = json!({ "asset": "BTC", "for": "1h" });
    let chain = SharedChain::start().await;
    let refused = chain.own.call_tool("stall", stall.clone()).await;
    assert!(
        Client::failure_message(&refused).starts_with("HTTP 409: This world has other accounts"),
        "{refused}"
    );
    let (_server, _, alone) = start(config()).await;
    Client::success(alone.call_tool("stall", stall).await);
}
