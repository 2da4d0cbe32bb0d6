//! The tools of the API: their list and schemas, and calls.

use serde_json::{Value, json};

use super::{Client, config, start};

/// Checks the schemas of all tools, and returns for each its name, its arguments (`!` for required ones), its effect
/// and its description.
async fn tool_list(client: &Client) -> String {
    let result = client.rpc_result("tools/list", json!({})).await;
    let mut lines = String::new();
    for tool in result["tools"].as_array().expect("a list") {
        let input = &tool["inputSchema"];
        assert_eq!(input["type"], "object");
        for keyword in ["$ref", "anyOf", "oneOf", "allOf", "if"] {
            assert!(input.get(keyword).is_none(), "{tool}");
        }
        assert!(!input.to_string().contains("$ref"), "{tool}");
        assert_eq!(input["additionalProperties"], false, "{tool}");
        let output = &tool["outputSchema"];
        assert_eq!(output["type"], "object", "{tool}");
        for schema in [input, output] {
            jsonschema::meta::validate(schema).expect("the schema is valid");
        }
        let required = input["required"].as_array().cloned().unwrap_or_default();
        let arguments = input["properties"].as_object().expect("arguments have names").keys();
        let arguments: Vec<String> = arguments
            .map(|name| format!("{name}{}", if required.contains(&json!(name)) { "!" } else { "" }))
            .collect();
        let hints = &tool["annotations"];
        let effect = match (&hints["readOnlyHint"], &hints["destructiveHint"]) {
            (Value::Bool(true), _) => "reads",
            (_, Value::Bool(true)) => "takes away",
            _ => "adds",
        };
        let (name, description) =
            (tool["name"].as_str().expect("a name"), tool["description"].as_str().expect("a string"));
        lines.push_str(&format!("{name}({}) {effect}\n    {description}\n", arguments.join(", ")));
    }
    lines
}

#[tokio::test]
async fn a_live_key_has_the_tools_of_the_api() {
    let (_server, live, _) = start(config()).await;
    insta::assert_snapshot!(tool_list(&live).await);
}

#[tokio::test]
async fn a_test_key_has_those_of_the_sandbox_too() {
    let (_server, live, test) = start(config()).await;
    let (live, test) = (tool_list(&live).await, tool_list(&test).await);
    let sandbox_tools = test.strip_prefix(live.as_str()).expect("the tools of the API come first");
    insta::assert_snapshot!(sandbox_tools);
}

/// The arguments `account` and `mode` allow only those of the key.
#[tokio::test]
async fn account_and_mode_arguments_are_limited_to_the_key() {
    let (_server, _, test) = start(config()).await;
    let result = test.rpc_result("tools/list", json!({})).await;
    let mut checked_arguments = 0;
    for tool in result["tools"].as_array().expect("a list") {
        for name in ["account", "mode"] {
            if let Some(argument) = tool["inputSchema"]["properties"].get(name) {
                assert_eq!(
                    argument["description"],
                    format!("The key's own {name}; no other is reached."),
                    "{tool}"
                );
                checked_arguments += 1;
            }
        }
    }
    assert!(checked_arguments > 5, "only {checked_arguments}");
}

#[tokio::test]
async fn schemas_are_resolved_and_simplified() {
    let (_server, live, _) = start(config()).await;
    let result = live.rpc_result("tools/list", json!({})).await;
    let tools = result["tools"].as_array().expect("a list");
    let schema = |name: &str| &tools.iter().find(|tool| tool["name"] == name).expect("a tool")["inputSchema"];
    let create = &schema("create_charge")["properties"];
    assert!(create["asset"]["enum"].as_array().is_some_and(|all| all.contains(&json!("BTC"))));
    assert_eq!(create["customer"]["properties"]["country"]["pattern"], "^[A-Z]{2}$");
    assert_eq!(create["customer_email"]["type"], "string");
    assert_eq!(create["customer_email"]["description"], "Deprecated: use `customer.email`.");
    assert_eq!(schema("list_charges")["properties"]["per_page"]["maximum"], 100);
    // Null clears a field of this operation.
    let change = &schema("change_payment_link")["properties"];
    assert_eq!(change["description"]["type"], json!(["string", "null"]));
}

#[tokio::test]
async fn a_charge_is_opened_paid_and_listed() {
    let (_server, live, test) = start(config()).await;
    let new = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR", "metadata": { "order": 7 } });
    let opened = Client::success(test.call_tool("create_charge", new).await);
    let code = opened["data"]["code"].as_str().expect("a code");
    assert_eq!(opened["data"]["status"], "pending");
    assert!(opened["data"]["checkout_url"].as_str().is_some_and(|url| url.ends_with(&format!("/c/{code}"))));

    let paid = Client::success(test.call_tool("pay", json!({ "charge": code })).await);
    assert!(paid["txid"].is_string(), "{paid}");
    Client::success(test.call_tool("mine", json!({ "asset": "BTC", "blocks": 1 })).await);
    let charge = Client::success(test.call_tool("get_charge", json!({ "id": code })).await);
    assert_eq!(charge["data"]["status"], "paid");
    let events = Client::success(
        test.call_tool("list_events", json!({ "charge": code, "type": "charge.paid" })).await,
    );
    assert_eq!(events["meta"]["total"], 1, "{events}");

    // The API returns the same charge, and not that of the other mode.
    let same = test.send("GET", &format!("/v1/charges/{code}"), "").await;
    assert_eq!(same.body, charge);
    let other_mode = live.call_tool("get_charge", json!({ "id": code })).await;
    let unknown = live.call_tool("get_charge", json!({ "id": "aaaaaaaaaaaa" })).await;
    assert_eq!(Client::failure_message(&other_mode), "HTTP 404: Not found.");
    assert_eq!(other_mode, unknown);
    assert_eq!(Client::success(live.call_tool("list_charges", json!({})).await)["meta"]["total"], 0);
}

#[tokio::test]
async fn links_and_invoices_can_be_created_and_changed() {
    let (_server, live, _) = start(config()).await;
    let code = |response: &Value| response["data"]["code"].as_str().expect("a code").to_owned();
    let link = Client::success(
        live.call_tool("create_payment_link", json!({ "title": "A book", "amount": "5" })).await,
    );
    let id = code(&link);
    let change = json!({ "id": id, "description": "With pictures", "title": "Two books" });
    let changed = Client::success(live.call_tool("change_payment_link", change).await);
    assert_eq!(
        (&changed["data"]["title"], &changed["data"]["amount"]),
        (&json!("Two books"), &json!("5.00"))
    );
    let cleared = Client::success(
        live.call_tool("change_payment_link", json!({ "id": id, "description": null })).await,
    );
    assert!(cleared["data"]["description"].is_null());
    Client::success(live.call_tool("archive_payment_link", json!({ "id": id })).await);
    let refused = live.call_tool("create_charge", json!({ "asset": "BTC", "payment_link": id })).await;
    assert!(Client::failure_message(&refused).contains("does not accept payments"), "{refused}");
    Client::success(live.call_tool("restore_payment_link", json!({ "id": id })).await);
    Client::success(live.call_tool("create_charge", json!({ "asset": "BTC", "payment_link": id })).await);

    let invoice = json!({ "amount": "10", "customer_email": "jane@example.com", "send_email": true });
    let invoice = code(&Client::success(live.call_tool("create_invoice", invoice).await));
    let again = live.call_tool("send_invoice", json!({ "id": invoice })).await;
    assert!(Client::failure_message(&again).ends_with("Try again in 600 seconds."), "{again}");
    let void = Client::success(live.call_tool("void_invoice", json!({ "id": invoice })).await);
    assert_eq!(void["data"]["status"], "void");
}

#[tokio::test]
async fn tool_errors_contain_the_messages_of_the_api() {
    let (_server, live, _) = start(config()).await;
    let refused = live.call_tool("create_charge", json!({ "amount": "ten", "idempotency_key": "k" })).await;
    assert_eq!(
        Client::failure_message(&refused),
        "HTTP 422: The asset field is required. (and 1 more error)\n\
         amount: The amount field must be a decimal number such as 49.90.\nasset: The asset field is required."
    );
    let missing = live.call_tool("get_charge", json!({})).await;
    assert_eq!(Client::failure_message(&missing), "The id field is required.");
    let unknown = live.send_rpc("tools/call", json!({ "name": "burn", "arguments": {} })).await;
    assert_eq!(unknown.body["error"]["code"], -32602, "{unknown:?}");
}

#[tokio::test]
async fn idempotency_keys_work_as_in_the_api() {
    let (_server, live, _) = start(config()).await;
    let new = json!({ "asset": "BTC", "amount": "5", "idempotency_key": "once" });
    let first = Client::success(live.call_tool("create_charge", new.clone()).await);
    assert_eq!(first, Client::success(live.call_tool("create_charge", new).await));
    let other = live
        .call_tool("create_charge", json!({ "asset": "BTC", "amount": "6", "idempotency_key": "once" }))
        .await;
    assert_eq!(
        Client::failure_message(&other),
        "HTTP 409: This Idempotency-Key was used for another request."
    );
}

#[tokio::test]
async fn results_match_the_output_schemas() {
    let (_server, _, test) = start(config()).await;
    let listed = test.rpc_result("tools/list", json!({})).await;
    let check = |tool: &str, response: &Value| {
        let tools = listed["tools"].as_array().expect("a list");
        let schema = &tools.iter().find(|listed| listed["name"] == tool).expect("a tool")["outputSchema"];
        let validator = jsonschema::validator_for(schema).expect("a schema");
        if let Err(error) = validator.validate(response) {
            panic!("{tool}: {error}");
        }
    };
    let new = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let opened = Client::success(test.call_tool("create_charge", new).await);
    check("create_charge", &opened);
    let code = &opened["data"]["code"];
    for (tool, arguments) in [
        ("get_account", json!({})),
        ("pay", json!({ "charge": code })),
        ("mine", json!({ "asset": "BTC", "blocks": 3 })),
        ("get_charge", json!({ "id": code })),
        ("list_charges", json!({})),
        ("list_events", json!({})),
        ("advance", json!({ "by": "1h" })),
    ] {
        check(tool, &Client::success(test.call_tool(tool, arguments).await));
    }
}

#[tokio::test]
async fn unknown_arguments_are_refused() {
    let (_server, live, _) = start(config()).await;
    let new = json!({ "asset": "BTC", "amount": "5", "curency": "USD" });
    let refused = live.call_tool("create_charge", new).await;
    let message = Client::failure_message(&refused);
    assert!(
        message.starts_with("The curency argument is unknown; the arguments of this tool are ")
            && message.contains("currency"),
        "{message}"
    );
}

/// A repeated key replays the response, whether the request came by REST or by MCP.
#[tokio::test]
async fn an_idempotency_key_is_shared_by_rest_and_mcp() {
    let (_server, live, _) = start(config()).await;
    let rest = live.with_header_lines("Idempotency-Key: once\r\n");
    let new = json!({ "asset": "BTC", "amount": "5", "currency": "EUR", "idempotency_key": "once" });
    let body = r#"{"currency":"EUR", "asset":"BTC", "amount":"5"}"#;
    let first = rest.send("POST", "/v1/charges", body).await;
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(Client::success(live.call_tool("create_charge", new.clone()).await), first.body);
    let other = rest.send("POST", "/v1/charges", &body.replace('5', "6")).await;
    assert_eq!(other.status, 409, "{other:?}");
    assert_eq!(Client::success(live.call_tool("list_charges", json!({})).await)["meta"]["total"], 1);
}
