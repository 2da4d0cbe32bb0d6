//! [`Document`]: the OpenAPI document, its operations, and the validation of requests, responses and webhooks.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde_json::{Map, Value};

pub(crate) const TEXT: &str = include_str!("../../../../openapi.json");
pub(crate) const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.json");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(crate) struct Document {
    /// The document as it is in the file.
    pub(crate) value: Value,
    /// The document with closed schemas, so that undocumented fields of requests, responses and webhooks are errors.
    closed: Value,
    validators: BTreeMap<String, Validator>,
}

/// A method and a path of the document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Operation {
    /// The method in capitals.
    pub(crate) method: String,
    /// `/v1/charges/{id}`
    pub(crate) path: String,
}

impl Document {
    pub(crate) fn read() -> Document {
        let value: Value = serde_json::from_str(TEXT).expect("the document is JSON");
        let mut closed = value.clone();
        let included = included_schemas(&value);
        for (name, schema) in schemas(&mut closed) {
            if !included.contains(name.as_str()) {
                close(schema);
            }
        }
        for section in ["paths", "webhooks"] {
            close_inside(&mut closed[section]);
        }
        Document { value, closed, validators: BTreeMap::new() }
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        let paths = self.value["paths"].as_object().expect("there are paths");
        let mut all = Vec::new();
        for (path, item) in paths {
            for method in METHODS.iter().filter(|method| item.get(method).is_some()) {
                all.push(Operation { method: method.to_uppercase(), path: path.clone() });
            }
        }
        all
    }

    /// Returns the object of an operation in the document.
    pub(crate) fn definition(&self, operation: &Operation) -> &Value {
        &self.value["paths"][&operation.path][operation.method.to_lowercase()]
    }

    /// Returns the operation for a request to this path; `HEAD` counts as `GET`.
    pub(crate) fn find(&self, method: &str, path: &str) -> Option<Operation> {
        let method = if method == "HEAD" { "GET" } else { method };
        let matches = |template: &str| {
            let (expected, given): (Vec<_>, Vec<_>) =
                (template.split('/').collect(), path.split('/').collect());
            expected.len() == given.len()
                && expected
                    .iter()
                    .zip(&given)
                    .all(|(expected, given)| expected.starts_with('{') || expected == given)
        };
        self.operations().into_iter().find(|operation| operation.method == method && matches(&operation.path))
    }

    /// Validates a response against the document; the error describes the difference.
    pub(crate) fn validate_response(
        &mut self,
        operation: &Operation,
        status: u16,
        body: &Value,
    ) -> Result<(), String> {
        let mut path = vec!["paths".to_owned(), operation.path.clone(), operation.method.to_lowercase()];
        path.extend(["responses".to_owned(), status.to_string()]);
        let response =
            descend(&self.closed, &path).ok_or_else(|| format!("status {status} is not documented"))?;
        if let Some(reference) = response.get("$ref").and_then(Value::as_str) {
            path = reference.trim_start_matches("#/").split('/').map(str::to_owned).collect();
        }
        path.extend(["content", "application/json", "schema"].map(str::to_owned));
        self.validate(&path, body)
    }

    /// Validates the body of a webhook against the document.
    pub(crate) fn validate_webhook(&mut self, kind: &str, body: &Value) -> Result<(), String> {
        let path = ["webhooks", kind, "post", "requestBody", "content", "application/json", "schema"];
        self.validate(&path.map(str::to_owned), body)
    }

    /// Validates the body of a request against the document.
    pub(crate) fn validate_request(&mut self, operation: &Operation, body: &Value) -> Result<(), String> {
        let method = operation.method.to_lowercase();
        let path =
            ["paths", &operation.path, &method, "requestBody", "content", "application/json", "schema"];
        self.validate(&path.map(str::to_owned), body)
    }

    /// Validates a value against the schema at this path of the document.
    fn validate(&mut self, path: &[String], value: &Value) -> Result<(), String> {
        let pointer = pointer(path);
        if !self.validators.contains_key(&pointer) {
            descend(&self.closed, path).ok_or_else(|| format!("the document has no schema at {pointer}"))?;
            let mut root = self.closed.clone();
            root["$ref"] = format!("#{}", escape_braces(&pointer)).into();
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&root)
                .unwrap_or_else(|error| panic!("{pointer} is not a schema: {error}"));
            self.validators.insert(pointer.clone(), validator);
        }
        let errors: Vec<String> = self.validators[&pointer]
            .iter_errors(value)
            .map(|error| format!("{error} (at {:?})", error.instance_path().to_string()))
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    pub(crate) fn examples(&self) -> &Map<String, Value> {
        self.value["components"]["examples"].as_object().expect("there are examples")
    }
}

fn schemas(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    document["components"]["schemas"].as_object_mut().expect("there are schemas").iter_mut()
}

/// Returns the names of schemas that others include by `allOf`: the including schema is closed instead.
fn included_schemas(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(document, &mut |node| {
        for part in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let name = part.get("$ref").and_then(Value::as_str).and_then(|text| text.rsplit('/').next());
            found.extend(name.map(str::to_owned));
        }
    });
    found
}

/// Calls `inspect` with every object in the document.
fn visit(node: &Value, inspect: &mut impl FnMut(&Map<String, Value>)) {
    match node {
        Value::Object(map) => {
            inspect(map);
            map.values().for_each(|child| visit(child, inspect));
        }
        Value::Array(list) => list.iter().for_each(|child| visit(child, inspect)),
        _ => {}
    }
}

/// Forbids undocumented fields in a schema and in those of its properties and items, and in its alternatives if it
/// names no properties itself.
fn close(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let names_properties = map.contains_key("properties") || map.contains_key("allOf");
    if names_properties && !map.contains_key("additionalProperties") {
        map.insert("unevaluatedProperties".to_owned(), false.into());
    }
    for (keyword, value) in map.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(close),
            ("items", items) => close(items),
            // Of `allOf` parts, only the schemas of properties are closed.
            ("allOf", Value::Array(all)) => {
                for property in all.iter_mut().filter_map(|part| part.get_mut("properties")) {
                    property.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(close);
                }
            }
            // Next to properties, an alternative has only some of the fields. `unevaluatedProperties` above covers both.
            ("oneOf" | "anyOf", Value::Array(all)) if !names_properties => all.iter_mut().for_each(close),
            _ => {}
        }
    }
}

/// Closes all schemas below a node.
fn close_inside(node: &mut Value) {
    match node {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                if key == "schema" { close(child) } else { close_inside(child) }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close_inside),
        _ => {}
    }
}

/// Returns the value at a path of keys.
fn descend<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |inside, key| inside.get(key))
}

/// Returns the JSON pointer of a path.
fn pointer(path: &[String]) -> String {
    path.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Escapes the only characters of the document's paths that a URI does not allow.
fn escape_braces(pointer: &str) -> String {
    pointer.replace('{', "%7B").replace('}', "%7D")
}
