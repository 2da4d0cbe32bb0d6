//! The table of calls in reference/SANDBOX.md is derived from the document; `BLESS=1` rewrites it.

use std::{env, fmt::Write as _, fs};

use serde_json::Value;

use super::{document::TEXT, json_format::Node};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../SANDBOX.md");
const HEAD: &str = "| call | fields | purpose |\n|---|---|---|\n";
/// The path below which the sandbox serves reads of the API.
const BOOK: &str = "/sandbox/books/{account}/{mode}";
/// The longest list of values that the table shows.
const VALUES_MAX: usize = 6;

/// A field of a body, or a query parameter.
struct Field {
    name: String,
    is_required: bool,
    values: Vec<String>,
}

/// Returns the entries of an object; none for other values.
fn entries(node: &Node) -> &[(String, Node)] {
    if let Node::Map(entries) = node { entries } else { &[] }
}

/// Returns the items of a list; none for other values.
fn items(node: Option<&Node>) -> &[Node] {
    if let Some(Node::List(items)) = node { items } else { &[] }
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    entries(node).iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn text(node: Option<&Node>) -> Option<&str> {
    if let Some(Node::Leaf(Value::String(text))) = node { Some(text) } else { None }
}

/// Returns the target of a `$ref`, or the node itself.
fn resolve<'a>(document: &'a Node, node: &'a Node) -> &'a Node {
    let Some(path) = text(get(node, "$ref")) else { return node };
    let target = path.trim_start_matches("#/").split('/').try_fold(document, get);
    resolve(document, target.unwrap_or_else(|| panic!("{path} has no target")))
}

/// Returns a schema and all schemas that it combines by `allOf`, `anyOf` and `oneOf`.
fn parts<'a>(document: &'a Node, schema: &'a Node) -> Vec<&'a Node> {
    let schema = resolve(document, schema);
    let combined = ["allOf", "anyOf", "oneOf"].map(|key| items(get(schema, key))).into_iter().flatten();
    [schema].into_iter().chain(combined.flat_map(|part| parts(document, part))).collect()
}

fn field(document: &Node, name: &str, is_required: bool, schema: &Node) -> Field {
    let values = parts(document, schema).into_iter().flat_map(|part| items(get(part, "enum")));
    let values: Vec<String> = values.filter_map(|value| text(Some(value)).map(str::to_owned)).collect();
    let lists_values = values.len() <= VALUES_MAX && name != "mode";
    Field { name: name.to_owned(), is_required, values: if lists_values { values } else { Vec::new() } }
}

fn fields(document: &Node, operation: &Node) -> Vec<Field> {
    let body = get(operation, "requestBody").map(|body| resolve(document, body));
    let schema = ["content", "application/json", "schema"];
    let schema = body.and_then(|body| schema.iter().try_fold(body, |node, key| get(node, key)));
    let parts = schema.map(|schema| parts(document, schema)).unwrap_or_default();
    let is_required = |name: &str| {
        let mut all = parts.iter().flat_map(|part| items(get(part, "required")));
        all.any(|required| text(Some(required)) == Some(name))
    };
    let properties = parts.iter().filter_map(|part| get(part, "properties")).flat_map(entries);
    let body = properties.map(|(name, schema)| field(document, name, is_required(name), schema));
    let parameters = items(get(operation, "parameters")).iter().map(|item| resolve(document, item));
    let query = parameters.filter(|parameter| text(get(parameter, "in")) == Some("query")).map(|parameter| {
        let name = format!("?{}", text(get(parameter, "name")).expect("a parameter has a name"));
        field(document, &name, false, get(parameter, "schema").expect("a parameter has a schema"))
    });
    body.chain(query).collect()
}

/// Returns the table cell of a field; required fields are bold.
fn cell(Field { name, is_required, values }: &Field) -> String {
    let name = if *is_required { format!("**`{name}`**") } else { format!("`{name}`") };
    let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    if values.is_empty() { name } else { format!("{name} ({})", values.join(", ")) }
}

/// Returns the rows of the calls under `/sandbox`, without those that mirror a call under `/v1`.
fn rows(document: &Node) -> String {
    let paths = get(document, "paths").expect("the document has paths");
    let mirrors =
        |path: &str| path.strip_prefix(BOOK).is_some_and(|rest| get(paths, &format!("/v1{rest}")).is_some());
    let mut rows = String::new();
    for (path, operations) in entries(paths) {
        if !path.starts_with("/sandbox") || mirrors(path) {
            continue;
        }
        for (method, operation) in entries(operations) {
            let fields: Vec<String> = fields(document, operation).iter().map(cell).collect();
            let summary = text(get(operation, "summary")).expect("an operation has a summary");
            let method = method.to_uppercase();
            writeln!(rows, "| `{method} {path}` | {} | {summary} |", fields.join(", ")).expect("a String");
        }
    }
    rows
}

#[test]
fn the_sandbox_guide_lists_every_call() {
    let guide = fs::read_to_string(GUIDE).expect("the guide is in the tree");
    let (before, rest) = guide.split_once(HEAD).expect("the guide has the table");
    // The table ends at the next empty line.
    let after =
        &rest[rest.find("\n\n").map_or(rest.len(), |end| if rest.starts_with('\n') { 0 } else { end + 1 })..];
    let expected = format!("{before}{HEAD}{}{after}", rows(&Node::read(TEXT.as_bytes())));
    if env::var_os("BLESS").is_some() {
        fs::write(GUIDE, expected).expect("the guide can be written");
    } else {
        assert!(
            guide == expected,
            "reference/SANDBOX.md differs from reference/openapi.json; BLESS=1 rewrites it"
        );
    }
}
