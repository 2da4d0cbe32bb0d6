//! The OpenAPI document: its operations and the schemas of their responses.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde_json::{Map, Value};

pub(crate) const TEXT: &str = include_str!("../../../../openapi.json");
pub(crate) const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../openapi.json");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(crate) struct Document {
    pub(crate) value: Value,
    /// The document with closed response schemas, so that undocumented fields are errors.
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
        let parts = parts(&value);
        for (name, schema) in schemas(&mut closed) {
            if !parts.contains(name.as_str()) {
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

    pub(crate) fn operation(&self, operation: &Operation) -> &Value {
        &self.value["paths"][&operation.path][operation.method.to_lowercase()]
    }

    /// Returns the operation for a request to this path; `HEAD` counts as `GET`.
    pub(crate) fn find(&self, method: &str, path: &str) -> Option<Operation> {
        let method = if method == "HEAD" { "GET" } else { method };
        let fits = |template: &str| {
            let (ours, theirs): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
            ours.len() == theirs.len()
                && ours.iter().zip(&theirs).all(|(our, their)| our.starts_with('{') || our == their)
        };
        self.operations().into_iter().find(|operation| operation.method == method && fits(&operation.path))
    }

    /// Checks a response against the document; the error names the difference.
    pub(crate) fn judge(&mut self, operation: &Operation, status: u16, body: &Value) -> Result<(), String> {
        let mut at = vec!["paths".to_owned(), operation.path.clone(), operation.method.to_lowercase()];
        at.extend(["responses".to_owned(), status.to_string()]);
        let answer =
            descend(&self.closed, &at).ok_or_else(|| format!("status {status} is not documented"))?;
        if let Some(reference) = answer.get("$ref").and_then(Value::as_str) {
            at = reference.trim_start_matches("#/").split('/').map(str::to_owned).collect();
        }
        at.extend(["content", "application/json", "schema"].map(str::to_owned));
        self.validate(&at, body)
    }

    /// Checks the body of a webhook against the document.
    pub(crate) fn judge_webhook(&mut self, kind: &str, body: &Value) -> Result<(), String> {
        let at = ["webhooks", kind, "post", "requestBody", "content", "application/json", "schema"];
        self.validate(&at.map(str::to_owned), body)
    }

    /// Checks the body of a request against the document.
    pub(crate) fn judge_request(&mut self, operation: &Operation, body: &Value) -> Result<(), String> {
        let method = operation.method.to_lowercase();
        let at = ["paths", &operation.path, &method, "requestBody", "content", "application/json", "schema"];
        self.validate(&at.map(str::to_owned), body)
    }

    fn validate(&mut self, at: &[String], value: &Value) -> Result<(), String> {
        let pointer = pointer(at);
        if !self.validators.contains_key(&pointer) {
            descend(&self.closed, at).ok_or_else(|| format!("nothing stands at {pointer}"))?;
            let mut root = self.closed.clone();
            root["$ref"] = format!("#{}", escape_in_uri(&pointer)).into();
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

/// Returns the schemas that others include by `allOf`: the including schema is closed instead.
fn parts(document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(document, &mut |node| {
        for part in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let name = part.get("$ref").and_then(Value::as_str).and_then(|text| text.rsplit('/').next());
            found.extend(name.map(str::to_owned));
        }
    });
    found
}

fn visit(node: &Value, see: &mut impl FnMut(&Map<String, Value>)) {
    match node {
        Value::Object(map) => {
            see(map);
            map.values().for_each(|inner| visit(inner, see));
        }
        Value::Array(list) => list.iter().for_each(|inner| visit(inner, see)),
        _ => {}
    }
}

/// Closes a schema and those of its properties and items. Of alternatives, each is closed.
fn close(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let names_properties = map.contains_key("properties") || map.contains_key("allOf");
    if names_properties && !map.contains_key("additionalProperties") {
        map.insert("unevaluatedProperties".to_owned(), false.into());
    }
    for (word, inner) in map.iter_mut() {
        match (word.as_str(), inner) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(close),
            ("items", items) => close(items),
            // Of `allOf` parts, only the schemas of properties are closed.
            ("allOf", Value::Array(all)) => {
                for property in all.iter_mut().filter_map(|part| part.get_mut("properties")) {
                    property.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(close);
                }
            }
            ("oneOf" | "anyOf", Value::Array(all)) if !names_properties => all.iter_mut().for_each(close),
            _ => {}
        }
    }
}

/// Closes all nested schemas.
fn close_inside(node: &mut Value) {
    match node {
        Value::Object(map) => {
            for (word, inner) in map.iter_mut() {
                if word == "schema" { close(inner) } else { close_inside(inner) }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close_inside),
        _ => {}
    }
}

fn descend<'v>(value: &'v Value, at: &[String]) -> Option<&'v Value> {
    at.iter().try_fold(value, |inside, key| inside.get(key))
}

fn pointer(at: &[String]) -> String {
    at.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

fn escape_in_uri(pointer: &str) -> String {
    pointer.replace('{', "%7B").replace('}', "%7D")
}
