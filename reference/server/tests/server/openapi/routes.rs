//! The routers accept the routes of the document and no others.

use std::collections::BTreeSet;

use serde_json::Value;
use simulator::sandbox::{ANY, ROUTES, Route};

use super::{
    document::{Document, Operation},
    world::{CheckedWorld, RequestParts},
};

/// Operations that the server handles, not the world: a world has no network to forward to, no access to other worlds,
/// and no journal.
const SERVER_OPERATIONS: [&str; 11] = [
    "GET /sandbox/forwards",
    "POST /sandbox/forwards",
    "GET /sandbox/worlds",
    "POST /sandbox/worlds",
    "GET /sandbox/worlds/{}",
    "DELETE /sandbox/worlds/{}",
    "GET /sandbox/snapshots",
    "POST /sandbox/snapshots",
    "GET /sandbox/snapshots/{}",
    "DELETE /sandbox/snapshots/{}",
    "POST /sandbox/restore",
];
const API_ROUTER_SOURCE: &str = include_str!("../../../../wire/src/route.rs");

/// Returns `true` if the world, not the server, handles this path.
pub(super) fn is_of_world(path: &str) -> bool {
    let is_of_server = ["/sandbox/forwards", "/sandbox/worlds", "/sandbox/snapshots", "/sandbox/restore"]
        .iter()
        .any(|prefix| path.starts_with(prefix));
    path.starts_with("/v1") || path.starts_with("/sandbox") && !is_of_server
}

/// Returns the documented operations under this path, as `GET /v1/charges/{}`.
fn documented_routes(under: &str) -> BTreeSet<String> {
    let is_below = |path: &str| path == under || path.starts_with(&format!("{under}/"));
    let operations = Document::read().operations().into_iter().filter(|operation| is_below(&operation.path));
    operations
        .map(|Operation { method, path }| {
            let segments = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
            format!("{method} {}", segments.collect::<Vec<_>>().join("/"))
        })
        .collect()
}

/// Converts the pattern `"charges", id, "cancel"` of the router's source to the path `/charges/{}/cancel`.
fn path_of(pattern: &str) -> String {
    let segments = pattern.split(',').map(str::trim).filter(|segment| !segment.is_empty());
    segments
        .map(|segment| segment.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or("{}"))
        .map(|segment| format!("/{segment}"))
        .collect()
}

/// Returns the text between the first `open` and the next `close`, and the text after it.
fn text_between<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(open)?.1.split_once(close)
}

/// Returns the routes in the router's source: arms such as `(["v1", "account"], "GET") => …`.
fn api_routes() -> BTreeSet<String> {
    let arms = API_ROUTER_SOURCE.lines().filter(|line| line.trim_start().starts_with("([\"v1\""));
    arms.filter_map(|line| {
        let (pattern, rest) = text_between(line, "[", "]")?;
        let method = rest.strip_prefix(", \"")?.split('"').next()?;
        Some(format!("{method} {}", path_of(pattern)))
    })
    .collect()
}

/// Returns the routes of the sandbox, except those that read a book like the API.
fn sandbox_routes() -> BTreeSet<String> {
    let routes = ROUTES.iter().filter(|route| !route.path.ends_with("{*}"));
    routes
        .flat_map(|route| {
            let segments = route.path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
            let path = segments.collect::<Vec<_>>().join("/");
            route.methods.iter().map(move |method| format!("{} {path}", method.method))
        })
        .collect()
}

/// Returns the field names of a schema and of its `allOf` parts.
fn fields<'d>(document: &'d Document, schema: &'d Value) -> BTreeSet<&'d str> {
    if let Some(reference) = schema["$ref"].as_str() {
        return fields(
            document,
            document.value.pointer(&reference[1..]).expect("the reference has a target"),
        );
    }
    let own = schema["properties"].as_object().into_iter().flat_map(|map| map.keys()).map(String::as_str);
    let parts = schema["allOf"].as_array().into_iter().flatten();
    own.chain(parts.flat_map(|part| fields(document, part))).collect()
}

#[test]
fn a_documented_body_has_the_fields_of_its_route() {
    let document = Document::read();
    for route in ROUTES {
        for method in route.methods.iter().filter(|method| method.method != "GET") {
            let operation = &document.value["paths"][route.path][method.method.to_lowercase()];
            let body = &operation["requestBody"]["content"]["application/json"]["schema"];
            let expected: BTreeSet<&str> = method.fields.iter().copied().collect();
            assert_eq!(fields(&document, body), expected, "{} {}", method.method, route.path);
            let Some(required) = method.required else { continue };
            let required: BTreeSet<&str> = required.iter().flatten().copied().collect();
            let documented = body["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            assert_eq!(documented.collect::<BTreeSet<_>>(), required, "{} {}", method.method, route.path);
        }
    }
}

#[test]
fn a_documented_query_has_the_parameters_of_its_route() {
    let document = Document::read();
    let get_with_fields =
        |route: &Route| route.methods.iter().find(|method| method.method == "GET" && method.fields != ANY);
    for (route, method) in ROUTES.iter().filter_map(|route| Some((route, get_with_fields(route)?))) {
        let parameters = document.value["paths"][route.path]["get"]["parameters"].as_array();
        let query = parameters.into_iter().flatten().filter(|parameter| parameter["in"] == "query");
        let documented: BTreeSet<&str> = query.filter_map(|parameter| parameter["name"].as_str()).collect();
        let expected: BTreeSet<&str> = method.fields.iter().copied().collect();
        assert_eq!(documented, expected, "{}", route.path);
    }
}

/// Returns `true` if a schema forbids unknown fields.
fn is_closed(document: &Document, schema: &Value) -> bool {
    let referenced = schema["$ref"].as_str().and_then(|reference| document.value.pointer(&reference[1..]));
    ["additionalProperties", "unevaluatedProperties"].iter().any(|keyword| schema[keyword] == false)
        || referenced.is_some_and(|schema| is_closed(document, schema))
}

#[test]
fn body_schemas_of_the_sandbox_forbid_unknown_fields() {
    let document = Document::read();
    for operation in document.operations().iter().filter(|operation| operation.path.starts_with("/sandbox")) {
        if let Some(body) = document.definition(operation).get("requestBody") {
            let schema = &body["content"]["application/json"]["schema"];
            assert!(is_closed(&document, schema), "{operation:?}");
        }
    }
}

#[test]
fn operation_ids_are_unique() {
    let document = Document::read();
    let operations = document.operations();
    let names: BTreeSet<_> = operations
        .iter()
        .map(|operation| document.definition(operation)["operationId"].as_str().expect("a name"))
        .collect();
    assert_eq!(names.len(), operations.len());
}

/// Client generators omit responses of other types. YAML is an alternative to JSON.
#[test]
fn responses_have_types_that_client_generators_support() {
    let document = Document::read();
    for operation in document.operations() {
        let responses =
            document.definition(&operation)["responses"].as_object().expect("the operation has responses");
        let types = responses.values().filter_map(|response| response["content"].as_object());
        for kind in types.flat_map(serde_json::Map::keys) {
            let is_supported = matches!(&**kind, "application/json" | "application/octet-stream");
            assert!(
                is_supported || kind == "application/yaml" || kind.starts_with("text/"),
                "{operation:?}: {kind}"
            );
        }
    }
}

#[track_caller]
fn check_same(documented: &BTreeSet<String>, routed: &BTreeSet<String>) {
    let missing: Vec<_> = routed.difference(documented).collect();
    let unknown: Vec<_> = documented.difference(routed).collect();
    assert!(missing.is_empty(), "reference/openapi.json lacks {missing:?}");
    assert!(unknown.is_empty(), "no router has {unknown:?}");
}

#[test]
fn the_document_names_the_routes_of_the_routers_and_no_others() {
    check_same(&documented_routes("/v1"), &api_routes());
    // The sandbox also serves the API's read operations for a book.
    let book_reads = api_routes()
        .into_iter()
        .filter_map(|route| Some(format!("GET /sandbox/books/{{}}/{{}}{}", route.strip_prefix("GET /v1")?)));
    let of_server = SERVER_OPERATIONS.map(str::to_owned);
    check_same(
        &documented_routes("/sandbox"),
        &sandbox_routes().into_iter().chain(book_reads).chain(of_server).collect(),
    );
}

/// Sends an unknown method to each path: the response lists the allowed ones.
#[test]
fn a_documented_path_allows_the_documented_methods() {
    let mut world = CheckedWorld::new();
    let operations = world.document.operations();
    let ids = create_objects(&mut world);
    let paths: BTreeSet<&str> = operations.iter().map(|operation| operation.path.as_str()).collect();
    for path in paths.into_iter().filter(|path| is_of_world(path)) {
        let mut allowed: Vec<&str> = Vec::new();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            if operations.iter().any(|operation| operation.path == path && operation.method == method) {
                allowed.push(method);
                allowed.extend((method == "GET").then_some("HEAD"));
            }
        }
        let key = world.live_key.clone();
        let id = ids.iter().find(|(list, _)| path.starts_with(list)).map_or("aaaaaaaaaaaa", |(_, id)| id);
        let target = path.replace("{id}", id).replace("{account}/{mode}", "acme/live");
        let response =
            world.send_undocumented("TRACE", &target, RequestParts { key: &key, ..RequestParts::default() });
        assert_eq!(response, (405, Some(allowed.join(", "))), "{path}");
        // For an unknown object the response is 404, not 405.
        if path.starts_with("/v1") && path.contains("{id}") {
            let absent = path.replace("{id}", "aaaaaaaaaaaa");
            let response = world.send_undocumented(
                "TRACE",
                &absent,
                RequestParts { key: &key, ..RequestParts::default() },
            );
            assert_eq!(response, (404, None), "{path}");
        }
    }
}

/// Creates an object in each list under `/v1`; returns the list's path and the object's id.
fn create_objects(world: &mut CheckedWorld) -> Vec<(&'static str, String)> {
    let bodies = [
        ("/v1/charges", r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#),
        ("/v1/payment-links", r#"{"title":"Mug","pricing_type":"fixed","amount":"12.00","currency":"EUR"}"#),
        ("/v1/invoices", r#"{"customer_email":"ann@example.com","amount":"99.00","currency":"EUR"}"#),
    ];
    let key = world.live_key.clone();
    let mut ids: Vec<_> = bodies
        .into_iter()
        .map(|(path, body)| {
            let created = world.record(
                "POST",
                path,
                201,
                RequestParts { key: &key, body: body.as_bytes(), ..RequestParts::default() },
                "",
            );
            (path, created["data"]["id"].as_str().expect("an id").to_owned())
        })
        .collect();
    let events =
        world.record("GET", "/v1/events", 200, RequestParts { key: &key, ..RequestParts::default() }, "");
    ids.push(("/v1/events", events["data"][0]["id"].as_str().expect("an id").to_owned()));
    ids
}
