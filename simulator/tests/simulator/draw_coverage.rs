//! Coverage of the random worlds: together they draw every operation of the API and every operation of the sandbox that
//! changes a world, with every field and parameter. Also compares the table of operations with the API description.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use simulator::{
    model::operation::{BodyField, FieldKind, Operation},
    record::{Observation, RecordedCall},
    sweep::Runner,
    workload,
};

/// The number of worlds that together draw everything.
const WORLD_COUNT: u64 = 200;

/// The number of draws of a field or parameter: in granted and in refused requests, and with null.
#[derive(Default)]
struct DrawCount {
    granted: u64,
    refused: u64,
    null: u64,
}

/// Collects the fields of an operation by their paths, such as `customer.email`.
fn collect_field_paths(fields: &[BodyField], prefix: &str, found: &mut Vec<String>) {
    for field in fields {
        found.push(format!("{prefix}{}", field.name));
        if let FieldKind::Object(members) | FieldKind::Objects(members, ..) = field.kind {
            collect_field_paths(members, &format!("{prefix}{}.", field.name), found);
        }
    }
}

/// Counts the fields of a body, at any depth, in `drawn`.
fn count_fields(body: &Value, prefix: &str, is_granted: bool, drawn: &mut BTreeMap<String, DrawCount>) {
    for (name, value) in body.as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let count = drawn.entry(path.clone()).or_default();
        match (value, is_granted) {
            (Value::Null, _) => count.null += 1,
            (_, true) => count.granted += 1,
            (_, false) => count.refused += 1,
        }
        match value {
            Value::Array(list) => {
                list.iter().for_each(|item| count_fields(item, &format!("{path}."), is_granted, drawn))
            }
            other => count_fields(other, &format!("{path}."), is_granted, drawn),
        }
    }
}

/// An operation of the API description, with the fields of its body and its query parameters.
struct DescribedOperation {
    /// The method and the path, such as `GET /v1/charges/{code}`.
    title: String,
    /// The names of the fields and parameters.
    names: Vec<String>,
}

impl DescribedOperation {
    /// Returns `true` if a call is one of this operation.
    fn matches(&self, call: &RecordedCall) -> bool {
        let (method, template) = self.title.split_once(' ').expect("a method and a path");
        let [template, path] = [template, &call.path].map(|path| path.split('/').collect::<Vec<_>>());
        let is_match = |(part, actual): (&&str, &&str)| part.starts_with('{') || part == actual;
        method == call.method && template.len() == path.len() && template.iter().zip(&path).all(is_match)
    }
}

/// Returns the operations of the API description whose paths begin with this prefix.
fn described_operations(path_prefix: &str) -> Vec<DescribedOperation> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reference/openapi.json");
    let api: Value = serde_json::from_str(&fs::read_to_string(file).expect("openapi.json can be read"))
        .expect("openapi.json is JSON");
    let paths = api["paths"]
        .as_object()
        .expect("the API has paths")
        .iter()
        .filter(|(path, _)| path.starts_with(path_prefix));
    let operations = paths.flat_map(|(path, operations)| {
        let methods = operations.as_object().expect("a path has operations").iter();
        methods.filter(|(method, _)| *method != "parameters").map(move |found| (path, found))
    });
    let operations = operations.map(|(path, (method, operation))| {
        let body = resolve_ref(&api, &operation["requestBody"]);
        let schema = resolve_ref(&api, &body["content"]["application/json"]["schema"]);
        let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| resolve_ref(&api, parameter));
        let queries = parameters.filter(|parameter| parameter["in"] == "query");
        let queries = queries.map(|query| query["name"].as_str().unwrap_or_default().to_owned());
        DescribedOperation {
            title: format!("{} {path}", method.to_uppercase()),
            names: fields.chain(queries).collect(),
        }
    });
    operations.collect()
}

/// Returns the draws of all worlds by operation and by field or parameter. The empty name counts the operation itself.
fn count_draws() -> BTreeMap<(String, String), DrawCount> {
    let mut all: BTreeMap<(String, String), DrawCount> = BTreeMap::new();
    let (runner, operations) = (Runner::default(), described_operations("/"));
    for seed in 0..WORLD_COUNT {
        for entry in runner.play(&workload::draw(seed).script).record.entries {
            let Observation::Call(call) = entry.observation else { continue };
            // The fixed paths come first: `/sandbox/endpoints` before `/sandbox/{id}`.
            let Some(operation) = operations.iter().find(|operation| operation.matches(&call)) else {
                continue;
            };
            let is_granted = call.status < 300;
            let mut fields = BTreeMap::new();
            count_fields(
                &serde_json::from_slice(&call.body).unwrap_or_default(),
                "",
                is_granted,
                &mut fields,
            );
            for part in call.query.iter().flat_map(|query| query.split('&')) {
                let name = part.split('=').next().unwrap_or_default().to_owned();
                let count = fields.entry(name).or_default();
                *(if is_granted { &mut count.granted } else { &mut count.refused }) += 1;
            }
            if call.idempotency_key.is_some() {
                fields.insert(
                    "Idempotency-Key".to_owned(),
                    DrawCount { granted: is_granted.into(), refused: (!is_granted).into(), null: 0 },
                );
            }
            fields.insert(
                String::new(),
                DrawCount { granted: is_granted.into(), refused: (!is_granted).into(), null: 0 },
            );
            for (name, count) in fields {
                let total = all.entry((operation.title.clone(), name)).or_default();
                total.granted += count.granted;
                total.refused += count.refused;
                total.null += count.null;
            }
        }
    }
    all
}

/// Checks that each name was granted in some world. The message of a failure has the table of all draws.
fn check_all_granted(
    drawn: &BTreeMap<(String, String), DrawCount>,
    names: impl Iterator<Item = (String, String)>,
) {
    let missing = names.filter_map(|(title, name)| match drawn.get(&(title.clone(), name.clone())) {
        None => Some(format!("{title} {name}: never drawn")),
        Some(count) if count.granted == 0 => Some(format!("{title} {name}: never granted")),
        Some(_) => None,
    });
    let missing: Vec<String> = missing.collect();
    let table = drawn.iter().map(|((title, name), DrawCount { granted, refused, null })| {
        format!("{title} {name}: {granted} granted, {refused} refused, {null} null")
    });
    let table: Vec<String> = table.collect();
    assert!(missing.is_empty(), "{}\n\nAll draws:\n{}", missing.join("\n"), table.join("\n"));
}

/// The operations of the sandbox that no world can draw, as beginnings of titles, and the reasons.
const NOT_DRAWN: [(&str, &str); 9] = [
    ("GET ", "reads of pages, which the tests of the sandbox compare with the books"),
    ("POST /sandbox/advance", "scripts wait instead, also until a given time"),
    ("POST /sandbox/world", "only a host starts worlds"),
    ("DELETE /sandbox/worlds", "only a host starts worlds"),
    ("POST /sandbox/snapshots", "only a host saves worlds"),
    ("DELETE /sandbox/snapshots", "only a host saves worlds"),
    ("POST /sandbox/restore", "only a host restores worlds"),
    ("POST /sandbox/forwards", "only a host forwards deliveries"),
    ("POST /sandbox/mine", "scripts wait for blocks instead"),
];

#[test]
fn worlds_draw_every_field_of_the_sandbox_and_the_api() {
    let drawn = count_draws();
    let api = Operation::ALL.into_iter().flat_map(|operation| {
        let mut names: Vec<String> = operation.parameters.iter().map(|name| (*name).to_owned()).collect();
        names.push(String::new());
        if operation.method != "GET" {
            names.push("Idempotency-Key".to_owned());
        }
        collect_field_paths(operation.fields, "", &mut names);
        let title = format!("{} {}", operation.method, operation.path);
        names.into_iter().map(move |name| (title.clone(), name))
    });
    let sandbox = described_operations("/sandbox").into_iter();
    let sandbox = sandbox
        .filter(|operation| NOT_DRAWN.iter().all(|(title, _)| !operation.title.starts_with(title)))
        .flat_map(|operation| {
            let DescribedOperation { title, mut names } = operation;
            names.push(String::new());
            names.into_iter().map(move |name| (title.clone(), name))
        });
    check_all_granted(&drawn, api.chain(sandbox));
}

/// Returns the part of the API description that a `$ref` names; other values are returned as they are.
fn resolve_ref<'v>(api: &'v Value, value: &'v Value) -> &'v Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            resolve_ref(api, api.pointer(reference.trim_start_matches('#')).expect("the reference resolves"))
        }
        None => value,
    }
}

/// A field that is missing in the table would never be drawn.
#[test]
fn the_table_of_operations_equals_the_api_description() {
    let line = |title: &str, mut names: Vec<String>| {
        names.sort();
        format!("{title}: {}", names.join(" "))
    };
    let mut described: Vec<String> = described_operations("/v1")
        .into_iter()
        .map(|operation| line(&operation.title, operation.names))
        .collect();
    let mut known: Vec<String> = Operation::ALL
        .iter()
        .map(|operation| {
            let fields = operation.fields.iter().map(|field| field.name);
            let names = fields.chain(operation.parameters.iter().copied()).map(str::to_owned).collect();
            line(&format!("{} {}", operation.method, operation.path), names)
        })
        .collect();
    described.sort();
    known.sort();
    assert_eq!(described, known);
}
