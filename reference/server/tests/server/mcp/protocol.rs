//! The MCP protocol: its revisions and errors.

use serde_json::{Value, json};

use super::{Client, config, start};

fn initialize_params(revision: &str) -> Value {
    json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

/// Requests one revision and checks the revision that the server offers.
async fn check_initialize(client: &Client, requested: &str, offered: &str) {
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params(requested) });
    let response = client.send("POST", "/mcp", &message.to_string()).await;
    let result = &response.body["result"];
    assert_eq!((response.status, &result["protocolVersion"]), (200, &json!(offered)), "{response:?}");
    assert_eq!(result["serverInfo"]["name"], "chargeproof");
    assert!(result["capabilities"]["tools"].is_object() && result["capabilities"]["resources"].is_null());
    let instructions = result["instructions"].as_str().expect("the server sends instructions");
    assert!(instructions.contains("live key") && !instructions.contains("advance"), "{instructions}");
    assert_eq!(response.header("mcp-session-id"), None, "the server has no sessions");
}

#[tokio::test]
async fn earlier_revisions_start_with_initialize() {
    let (_server, live, _) = start(config()).await;
    check_initialize(&live, "2025-11-25", "2025-11-25").await;
    check_initialize(&live, "2025-06-18", "2025-06-18").await;
    check_initialize(&live, "1999-01-01", "2025-11-25").await;
    let initialized =
        live.send("POST", "/mcp", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!((initialized.status, initialized.body), (202, Value::Null));
    assert_eq!(live.rpc_result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn the_current_revision_needs_no_initialize() {
    let (_server, live, _) = start(config()).await;
    let revision = "2026-07-28";
    // `name`: the tool, empty for other methods.
    let call = async |method: &str, mut params: Value, name: &str| {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
        let client = live.with_header_lines(&format!(
            "MCP-Protocol-Version: {revision}\r\nMcp-Method: {method}\r\n{name}"
        ));
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = client.send("POST", "/mcp", &message.to_string()).await;
        assert_eq!(response.status, 200, "{response:?}");
        response.body["result"].clone()
    };
    let discovered = call("server/discover", json!({}), "").await;
    let revisions = discovered["supportedVersions"].as_array().expect("a list of revisions");
    assert!(revisions.contains(&json!(revision)) && revisions.contains(&json!("2025-11-25")), "{discovered}");
    let tools = call("tools/list", json!({}), "").await;
    assert!(tools["tools"].as_array().is_some_and(|tools| tools.len() > 15), "{tools}");
    let account = call("tools/call", json!({ "name": "get_account", "arguments": {} }), "get_account").await;
    assert_eq!(account["structuredContent"]["meta"]["mode"], "live", "{account}");
}

#[tokio::test]
async fn invalid_messages_get_json_errors() {
    let (_server, live, _) = start(config()).await;
    for (method, status) in [("GET", 405), ("DELETE", 405), ("PUT", 405)] {
        let response = live.send(method, "/mcp", "").await;
        assert_eq!((response.status, response.header("allow")), (status, Some("post")), "{response:?}");
        assert!(response.body["message"].is_string(), "{response:?}");
    }
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("charge=1", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{}", -32600),
        (r#"{"asset":"BTC","amount":"5"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
    ] {
        let response = live.send("POST", "/mcp", body).await;
        assert_eq!(
            (response.status, &response.body["error"]["code"]),
            (400, &json!(code)),
            "{body}: {response:?}"
        );
        assert_eq!(
            (&response.body["jsonrpc"], &response.body["id"]),
            (&json!("2.0"), &Value::Null),
            "{response:?}"
        );
        let not_json =
            live.with_header_lines("Content-Type: text/plain\r\n").send("POST", "/mcp", body).await;
        assert_eq!(not_json.status, 415, "{body}: {not_json:?}");
    }
    for method in ["tools/burn", "prompts/list", "resources/list", "resources/templates/list"] {
        let response = live.send_rpc(method, json!({})).await;
        assert_eq!(response.body["error"]["code"], -32601, "{response:?}");
    }
    let large = live.send("POST", "/mcp", &"x".repeat(300_000)).await;
    assert_eq!(large.status, 413, "{large:?}");
    assert_eq!(live.send("POST", "/mcp/", "").await.status, 404);
}
