//! [`Client`]: a hand-written MCP client, so that the tests check the sent and received bytes.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{AsyncConnection, Request};

/// The latest revision of MCP whose sessions start with `initialize`.
pub(crate) const REVISION: &str = "2025-11-25";

pub(crate) struct Client {
    address: SocketAddr,
    key: String,
    /// Additional header lines, each with its line break.
    pub(crate) header_lines: String,
    /// The value of the `Host` header.
    pub(crate) host: String,
}

#[derive(Debug)]
pub(crate) struct McpResponse {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Value,
}

impl McpResponse {
    /// Returns the value of a header. Name and value are in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr, key: String) -> Client {
        Client { address, key, header_lines: String::new(), host: address.to_string() }
    }

    /// Returns the client with additional header lines.
    pub(crate) fn with_header_lines(&self, lines: &str) -> Client {
        let lines = format!("{}{lines}", self.header_lines);
        Client { address: self.address, key: self.key.clone(), header_lines: lines, host: self.host.clone() }
    }

    /// Returns the client with another `Host` header.
    pub(crate) fn with_host(&self, host: &str) -> Client {
        Client { host: host.to_owned(), ..self.with_header_lines("") }
    }

    /// Returns the client with another key; without a key if it is empty.
    pub(crate) fn with_key(&self, key: &str) -> Client {
        Client { key: key.to_owned(), ..self.with_header_lines("") }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: &str) -> McpResponse {
        let key = Some(self.key.as_str()).filter(|key| !key.is_empty());
        let request = Request { method, path, host: &self.host, key, header_lines: &self.header_lines, body };
        let response = AsyncConnection::connect(self.address).await.call_once(request).await;
        let body = match response.body.as_str() {
            "" => Value::Null,
            body => serde_json::from_str(body).unwrap_or_else(|_| panic!("{body:?} is not JSON")),
        };
        McpResponse { status: response.status, head: response.head().to_lowercase(), body }
    }

    /// Sends a JSON-RPC request.
    pub(crate) async fn send_rpc(&self, method: &str, params: Value) -> McpResponse {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let client = self.with_header_lines(&format!("MCP-Protocol-Version: {REVISION}\r\n"));
        client.send("POST", "/mcp", &message.to_string()).await
    }

    /// Sends a JSON-RPC request and returns its result.
    pub(crate) async fn rpc_result(&self, method: &str, params: Value) -> Value {
        let mut response = self.send_rpc(method, params).await;
        assert_eq!((response.status, &response.body["id"]), (200, &json!(7)), "{response:?}");
        assert_eq!(response.header("content-type"), Some("application/json"));
        let result = response.body["result"].take();
        assert!(!result.is_null(), "{response:?}");
        result
    }

    /// Calls a tool and returns its result.
    pub(crate) async fn call_tool(&self, tool: &str, arguments: Value) -> Value {
        self.rpc_result("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Checks that a tool call succeeded and returns its content.
    #[track_caller]
    pub(crate) fn success(result: Value) -> Value {
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().expect("a result has text content");
        let response: Value = serde_json::from_str(text).expect("the text content is JSON");
        assert_eq!(response, result["structuredContent"]);
        response
    }

    /// Checks that a tool call failed and returns its error message.
    #[track_caller]
    pub(crate) fn failure_message(result: &Value) -> &str {
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(
            result.get("structuredContent"),
            None,
            "output schemas describe successful results only: {result}"
        );
        result["content"][0]["text"].as_str().expect("an error has text content")
    }
}
