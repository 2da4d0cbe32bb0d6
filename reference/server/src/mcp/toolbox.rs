//! [`Toolbox`]: the tools, one for each operation of the OpenAPI document that a key may use.
//!
//! Tools are derived from the document, which is the only list of operations, so they cannot differ from it. Operations
//! with `x-destructive` remove something or cannot be undone, such as an advance of the clock. Those with
//! `x-idempotent` change nothing more when repeated.

use std::sync::{Arc, LazyLock};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use serde_json::{Map, Value};
use simulator::sandbox::{ROUTES, RouteReach};
use url::form_urlencoded;

use super::schema;
use crate::openapi;

const IDEMPOTENCY_KEY: &str = "idempotency_key";
/// Arguments whose values the key determines.
const DETERMINED_BY_KEY: [&str; 2] = ["account", "mode"];
/// The characters that are percent-encoded in a path segment.
const ENCODED_IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// All tools, those of the API first.
pub(super) struct Toolbox {
    tools: Vec<Tool>,
}

/// An operation as a tool.
pub(super) struct Tool {
    pub(super) definition: McpTool,
    method: &'static str,
    /// The path template, such as `/v1/charges/{id}`.
    path: String,
    path_arguments: Vec<String>,
    query_arguments: Vec<String>,
    /// The fields of the body; `None` if there is no body.
    body_fields: Option<Vec<String>>,
}

/// The HTTP request of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToolRequest {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) idempotency_key: Option<String>,
    pub(super) body: String,
}

impl Toolbox {
    /// Returns the toolbox, created once per process.
    pub(super) fn get() -> &'static Toolbox {
        static TOOLBOX: LazyLock<Toolbox> = LazyLock::new(Toolbox::from_document);
        &TOOLBOX
    }

    fn from_document() -> Toolbox {
        let document: Value = serde_json::from_str(openapi::DOCUMENT).expect("the tests parse the document");
        let mut tools = Vec::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for method in ["GET", "POST", "PATCH", "DELETE"] {
                let operation = &item[method.to_lowercase()];
                let id = operation["operationId"].as_str().unwrap_or_default();
                if (path.starts_with("/v1/") && !id.is_empty()) || is_sandbox_tool(method, path) {
                    tools.push(Tool::from_operation(&document, method, path, id, operation));
                }
            }
        }
        tools.sort_by_key(|tool| !tool.path.starts_with("/v1/"));
        Toolbox { tools }
    }

    /// Returns the tools that a client may use.
    pub(super) fn tools_for(&self, may_use_sandbox: bool) -> Vec<McpTool> {
        self.available(may_use_sandbox).map(|tool| tool.definition.clone()).collect()
    }

    /// Returns the tool with this name, if the client may use it.
    pub(super) fn find(&self, name: &str, may_use_sandbox: bool) -> Option<&Tool> {
        self.available(may_use_sandbox).find(|tool| tool.definition.name == name)
    }

    fn available(&self, may_use_sandbox: bool) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(move |tool| may_use_sandbox || tool.path.starts_with("/v1/"))
    }
}

impl Tool {
    fn from_operation(
        document: &Value,
        method: &'static str,
        path: &str,
        id: &str,
        operation: &Value,
    ) -> Tool {
        let mut arguments = JsonObject::new();
        let mut required = Vec::new();
        let (mut path_arguments, mut query_arguments) = (Vec::new(), Vec::new());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = schema::resolve_references(parameter, document);
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            let argument = schema::parameter_schema(&parameter);
            match parameter["in"].as_str() {
                Some("path") => {
                    required.push(Value::from(name.as_str()));
                    path_arguments.push(name.clone());
                    arguments.insert(name, argument);
                }
                Some("query") => {
                    query_arguments.push(name.clone());
                    arguments.insert(name, argument);
                }
                // The only header among the parameters.
                _ => drop(arguments.insert(IDEMPOTENCY_KEY.to_owned(), argument)),
            }
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = schema::body_arguments(body, document, method == "PATCH");
        let fields = body.properties.keys().cloned().collect();
        let body_fields = operation.get("requestBody").is_some().then_some(fields);
        required.extend(body.required);
        arguments.extend(body.properties);
        for (name, argument) in
            arguments.iter_mut().filter(|(name, _)| DETERMINED_BY_KEY.contains(&name.as_str()))
        {
            argument["description"] = format!("The key's own {name}; no other is reached.").into();
        }

        let description = tool_description(operation, &body.description);
        let mut input = JsonObject::new();
        input.insert("type".to_owned(), "object".into());
        input.insert("properties".to_owned(), Value::Object(arguments));
        if !required.is_empty() {
            input.insert("required".to_owned(), Value::Array(required));
        }
        input.insert("additionalProperties".to_owned(), Value::Bool(false));
        let is_read = method == "GET";
        // Title, read-only, destructive, idempotent, open world.
        let hints = ToolAnnotations::from_raw(
            None,
            Some(is_read),
            (!is_read).then(|| operation["x-destructive"] == true),
            (!is_read).then(|| operation["x-idempotent"] == true),
            Some(false),
        );
        let mut definition =
            McpTool::new(to_snake_case(id), description, Arc::new(input)).with_annotations(hints);
        definition.title = Some(operation["summary"].as_str().unwrap_or_default().to_owned());
        definition.output_schema = schema::response_schema(operation, document).map(Arc::new);
        Tool { definition, method, path: path.to_owned(), path_arguments, query_arguments, body_fields }
    }

    /// Returns a clause that lists the arguments, for the end of a message.
    fn argument_list(&self) -> String {
        let names = self.definition.input_schema["properties"].as_object().into_iter().flat_map(Map::keys);
        match names.map(String::as_str).collect::<Vec<_>>().join(", ") {
            names if names.is_empty() => "this tool has no arguments.".to_owned(),
            names => format!("the arguments of this tool are {names}."),
        }
    }

    /// Converts arguments to a request, or returns a message about a missing or unknown argument.
    pub(super) fn request(&self, mut arguments: Map<String, Value>) -> Result<ToolRequest, String> {
        let mut path = self.path.clone();
        for name in &self.path_arguments {
            let value = arguments.remove(name).filter(|value| !value.is_null());
            let value = value.ok_or_else(|| format!("The {name} field is required."))?;
            let segment = utf8_percent_encode(&value_text(&value), ENCODED_IN_SEGMENT).to_string();
            path = path.replace(&format!("{{{name}}}"), &segment);
        }
        let idempotency_key = match self.method {
            "GET" => None,
            _ => arguments.remove(IDEMPOTENCY_KEY).filter(|key| !key.is_null()).map(|key| value_text(&key)),
        };
        let mut query = form_urlencoded::Serializer::new(String::new());
        for name in &self.query_arguments {
            if let Some(value) = arguments.remove(name).filter(|value| !value.is_null()) {
                query.append_pair(name, &value_text(&value));
            }
        }
        let query = Some(query.finish()).filter(|query| !query.is_empty());
        let fields = self.body_fields.as_deref().unwrap_or_default();
        if let Some(name) = arguments.keys().find(|name| !fields.contains(name)) {
            return Err(format!("The {name} argument is unknown; {}", self.argument_list()));
        }
        let body =
            if self.body_fields.is_some() { Value::Object(arguments).to_string() } else { String::new() };
        Ok(ToolRequest { method: self.method, path, query, idempotency_key, body })
    }
}

/// Joins the summary and description of an operation and the description of its body.
fn tool_description(operation: &Value, body_description: &str) -> String {
    let text = |field: &str| operation[field].as_str().unwrap_or_default();
    let parts = [text("summary"), text("description"), body_description];
    let sentences = parts.into_iter().filter(|text| !text.is_empty());
    sentences.map(|text| format!("{}.", text.trim_end_matches('.'))).collect::<Vec<_>>().join(" ")
}

/// Returns `true` if an API key may make this sandbox call: its effect is limited to the account and mode of the key,
/// except for the clock, which is shared.
fn is_sandbox_tool(method: &str, path: &str) -> bool {
    let route = ROUTES.iter().find(|route| route.path == path);
    let mut methods = route.into_iter().flat_map(|route| route.methods);
    methods.any(|route| route.method == method && route.reach == RouteReach::Book)
}

/// Returns a value as text for a path, a query or a header.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Converts `createCharge` to `create_charge`.
fn to_snake_case(id: &str) -> String {
    let mut name = String::new();
    for c in id.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(tool: &str, arguments: Value, expected: Result<(&str, &str, Option<&str>, &str), &str>) {
        let tool = Toolbox::get().find(tool, true).expect("the tool exists");
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = tool.request(arguments);
        let found = match &request {
            Ok(request) => {
                Ok((request.method, request.path.as_str(), request.query.as_deref(), request.body.as_str()))
            }
            Err(why) => Err(why.as_str()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tool_call_becomes_its_http_request() {
        check("get_account", json!({}), Ok(("GET", "/v1/account", None, "")));
        check("get_charge", json!({"id": "abc"}), Ok(("GET", "/v1/charges/abc", None, "")));
        check(
            "list_events",
            json!({"type": "charge.paid", "page": 2, "charge": "a&b", "invoice": null}),
            Ok(("GET", "/v1/events", Some("type=charge.paid&charge=a%26b&page=2"), "")),
        );
        check(
            "create_charge",
            json!({"asset": "BTC", "amount": "49.90"}),
            Ok(("POST", "/v1/charges", None, r#"{"amount":"49.90","asset":"BTC"}"#)),
        );
        check(
            "archive_payment_link",
            json!({"id": "a"}),
            Ok(("POST", "/v1/payment-links/a/archive", None, "{}")),
        );
        check(
            "restore_payment_link",
            json!({"id": "a"}),
            Ok(("DELETE", "/v1/payment-links/a/archive", None, "")),
        );
        check("pay", json!({"charge": "a"}), Ok(("POST", "/sandbox/pay", None, r#"{"charge":"a"}"#)));
    }

    #[test]
    fn an_argument_stays_within_its_path_segment() {
        check(
            "get_charge",
            json!({"id": "../keys?x#"}),
            Ok(("GET", "/v1/charges/..%2Fkeys%3Fx%23", None, "")),
        );
        check("get_charge", json!({"id": ["a"]}), Ok(("GET", "/v1/charges/%5B%22a%22%5D", None, "")));
    }

    #[test]
    fn invalid_arguments_are_reported() {
        check("get_charge", json!({}), Err("The id field is required."));
        check("get_charge", json!({"id": null}), Err("The id field is required."));
        let unknown = "The mode argument is unknown; this tool has no arguments.";
        check("get_account", json!({"mode": "live"}), Err(unknown));
        let unknown =
            "The code argument is unknown; the arguments of this tool are after, by, stop_early, to.";
        check("advance", json!({"by": "1s", "code": 1}), Err(unknown));
    }

    #[test]
    fn an_idempotency_key_is_a_header() {
        let tool = Toolbox::get().find("create_charge", false).expect("the tool exists");
        let Value::Object(arguments) = json!({"asset": "BTC", "idempotency_key": "k"}) else {
            unreachable!()
        };
        let request = tool.request(arguments).expect("a request");
        assert_eq!(request.idempotency_key.as_deref(), Some("k"));
        assert_eq!(request.body, r#"{"asset":"BTC"}"#);
    }

    #[test]
    fn every_sandbox_call_that_keys_may_make_is_a_tool() {
        let found = Toolbox::get().tools.iter().filter(|tool| tool.path.starts_with("/sandbox")).count();
        let methods = ROUTES.iter().flat_map(|route| route.methods);
        assert_eq!(found, methods.filter(|method| method.reach == RouteReach::Book).count());
    }
}
