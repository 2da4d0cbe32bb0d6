//! The sandbox tools: available to test keys, from this machine or with the sandbox token, for the key's own book.

use reference_server::{ClockKind, Config, McpClockAccess};
use serde_json::json;

use super::{Client, config, start};

#[tokio::test]
async fn a_live_key_has_no_sandbox_tools() {
    let (_server, live, _) = start(config()).await;
    let response =
        live.send_rpc("tools/call", json!({ "name": "advance", "arguments": { "by": "1h" } })).await;
    let message = response.body["error"]["message"].as_str().expect("a protocol error");
    assert!(message.contains("`advance`") && message.contains("requires a test key"), "{message}");
}

#[tokio::test]
async fn other_machines_need_the_token() {
    let (server, _, test) = start(config()).await;
    let proxied = test.with_header_lines("Via: 1.1 proxy\r\n");
    let arguments = json!({ "name": "advance", "arguments": { "by": "1s" } });
    let response = proxied.send_rpc("tools/call", arguments.clone()).await;
    assert_eq!(response.body["error"]["code"], -32602, "{response:?}");
    assert_eq!(proxied.call_tool("get_account", json!({})).await["isError"], false);
    for (token, is_valid) in [(server.sandbox_token(), true), ("sandbox_0", false)] {
        let response = proxied
            .with_header_lines(&format!("Sandbox-Token: {token}\r\n"))
            .send_rpc("tools/call", arguments.clone())
            .await;
        assert_eq!(response.body.get("result").is_some(), is_valid, "{response:?}");
    }
}

#[tokio::test]
async fn sandbox_tools_are_limited_to_the_keys_book() {
    let (_server, live, test) = start(config()).await;
    let new = json!({ "asset": "BTC", "amount": "5" });
    let live_charge = Client::success(live.call_tool("create_charge", new.clone()).await);
    let test_charge = Client::success(test.call_tool("create_charge", new).await);
    let foreign = test.call_tool("pay", json!({ "charge": live_charge["data"]["code"] })).await;
    let unknown = test.call_tool("pay", json!({ "charge": "aaaaaaaaaaaa" })).await;
    assert!(Client::failure_message(&foreign).starts_with("HTTP 422: The selected charge is invalid."));
    assert_eq!(foreign, unknown);
    let other_mode = test.call_tool("mine", json!({ "asset": "BTC", "mode": "live" })).await;
    assert!(Client::failure_message(&other_mode).contains("must be the mode of the key"), "{other_mode}");
    let other_account =
        test.call_tool("add_endpoint", json!({ "url": "https://shop.sim", "account": "other" })).await;
    assert!(
        Client::failure_message(&other_account).contains("selected account is invalid"),
        "{other_account}"
    );

    // Both rate locks expire, and the result contains only the key's own charge.
    let advanced = Client::success(test.call_tool("advance", json!({ "by": "31m" })).await);
    let happened = advanced["happened"].as_array().expect("a list");
    let subjects: Vec<_> = happened.iter().map(|event| (&event["mode"], &event["subject"])).collect();
    assert_eq!(subjects, [(&json!("test"), &test_charge["data"]["code"])], "{advanced}");
}

#[tokio::test]
async fn webhooks_can_be_tested_with_the_tools() {
    let (_server, _, test) = start(config()).await;
    let added =
        Client::success(test.call_tool("add_endpoint", json!({ "url": "https://shop.sim/hooks" })).await);
    let endpoint = &added["endpoint"];
    assert_eq!(endpoint["mode"], "test");
    assert!(endpoint["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
    let sent = Client::success(test.call_tool("send_test_event", json!({ "id": endpoint["id"] })).await);
    Client::success(test.call_tool("advance", json!({ "by": "1s" })).await);
    let delivery = Client::success(test.call_tool("get_delivery", json!({ "id": sent["delivery"] })).await);
    assert_eq!(delivery["delivery"]["status"], "delivered");
    let private = test.call_tool("add_endpoint", json!({ "url": "https://127.0.0.1/hooks" })).await;
    assert!(Client::failure_message(&private).contains("url field is invalid"), "{private}");
}

#[tokio::test]
async fn a_wall_clock_is_advanced_only_if_the_configuration_allows_it() {
    for (mcp_clock, is_refused) in [(McpClockAccess::FrozenOnly, true), (McpClockAccess::Any, false)] {
        let (_server, _, test) = start(Config { clock: ClockKind::Wall, mcp_clock, ..config() }).await;
        for (tool, arguments) in
            [("advance", json!({ "by": "1s" })), ("mine", json!({ "asset": "BTC", "blocks": 1 }))]
        {
            let result = test.call_tool(tool, arguments).await;
            if is_refused {
                assert!(Client::failure_message(&result).contains("tools may not move it"), "{result}");
            } else {
                Client::success(result);
            }
        }
        let at_once = json!({ "asset": "BTC", "blocks": 1, "at_once": true });
        Client::success(test.call_tool("mine", at_once).await);
    }
}

#[tokio::test]
async fn one_call_advances_the_clock_by_at_most_366_days() {
    let (_server, _, test) = start(config()).await;
    for arguments in [json!({ "by": "99999999h" }), json!({ "to": "9999-01-01T00:00:00Z" })] {
        let refused = test.call_tool("advance", arguments).await;
        assert!(Client::failure_message(&refused).contains("366 days at most"), "{refused}");
    }
    Client::success(test.call_tool("advance", json!({ "by": "366d" })).await);
}
