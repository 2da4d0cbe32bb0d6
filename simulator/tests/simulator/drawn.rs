//! Random worlds draw every operation with every field and parameter, with and without success: those of the API, and
//! those of the sandbox that change a world. The table of operations is that of the API description.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use simulator::{
    model::operation::{BodyField, FieldKind, Operation},
    record::{Observation, RecordedCall},
    sweep::Runner,
    workload,
};

/// The number of worlds that together draw everything.
const WORLDS: u64 = 200;

/// The number of draws of a field or parameter: in granted and in refused requests, and with null.
#[derive(Default)]
struct DrawCount {
    granted: u64,
    refused: u64,
    null: u64,
}

/// Collects the fields of an operation by their paths, such as `customer.email`.
fn paths(fields: &[BodyField], before: &str, found: &mut Vec<String>) {
    for field in fields {
        found.push(format!("{before}{}", field.name));
        if let FieldKind::Object(inner) | FieldKind::Objects(inner, ..) = field.kind {
            paths(inner, &format!("{before}{}.", field.name), found);
        }
    }
}

fn count_fields(body: &Value, before: &str, good: bool, drawn: &mut BTreeMap<String, DrawCount>) {
    for (name, value) in body.as_object().into_iter().flatten() {
        let path = format!("{before}{name}");
        let count = drawn.entry(path.clone()).or_default();
        match (value, good) {
            (Value::Null, _) => count.null += 1,
            (_, true) => count.granted += 1,
            (_, false) => count.refused += 1,
        }
        match value {
            Value::Array(list) => {
                list.iter().for_each(|item| count_fields(item, &format!("{path}."), good, drawn))
            }
            other => count_fields(other, &format!("{path}."), good, drawn),
        }
    }
}

/// An operation of the API description, with the fields of its body and its query parameters.
struct DescribedOperation {
    title: String,
    names: Vec<String>,
}

impl DescribedOperation {
    /// Returns `true` if a call is one of this operation.
    fn matches(&self, call: &RecordedCall) -> bool {
        let (method, template) = self.title.split_once(' ').expect("a method and a path");
        let [template, path] = [template, &call.path].map(|path| path.split('/').collect::<Vec<_>>());
        let fits = |(part, actual): (&&str, &&str)| part.starts_with('{') || part == actual;
        method == call.method && template.len() == path.len() && template.iter().zip(&path).all(fits)
    }
}

/// Returns the operations below a path of the API description.
fn described_operations(below: &str) -> Vec<DescribedOperation> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reference/openapi.json");
    let api: Value =
        serde_json::from_str(&fs::read_to_string(file).expect("openapi.json can be read")).expect("JSON");
    let paths = api["paths"]
        .as_object()
        .expect("the API has paths")
        .iter()
        .filter(|(path, _)| path.starts_with(below));
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
    for seed in 0..WORLDS {
        for entry in runner.play(&workload::draw(seed).script).record.seen {
            let Observation::Call(call) = entry.observation else { continue };
            // The fixed paths come first: `/sandbox/endpoints` before `/sandbox/{id}`.
            let Some(operation) = operations.iter().find(|operation| operation.matches(&call)) else {
                continue;
            };
            let good = call.status < 300;
            let mut fields = BTreeMap::new();
            count_fields(&serde_json::from_slice(&call.body).unwrap_or_default(), "", good, &mut fields);
            for part in call.query.iter().flat_map(|query| query.split('&')) {
                let name = part.split('=').next().unwrap_or_default().to_owned();
                let count = fields.entry(name).or_default();
                *(if good { &mut count.granted } else { &mut count.refused }) += 1;
            }
            if call.idempotency_key.is_some() {
                fields.insert(
                    "Idempotency-Key".to_owned(),
                    DrawCount { granted: good.into(), refused: (!good).into(), null: 0 },
                );
            }
            fields
                .insert(String::new(), DrawCount { granted: good.into(), refused: (!good).into(), null: 0 });
            for (name, count) in fields {
                let sum = all.entry((operation.title.clone(), name)).or_default();
                sum.granted += count.granted;
                sum.refused += count.refused;
                sum.null += count.null;
            }
        }
    }
    all
}

/// Checks that each name was granted in some world. The message of a failure has the table of all draws.
fn require(drawn: &BTreeMap<(String, String), DrawCount>, names: impl Iterator<Item = (String, String)>) {
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
const OUTSIDE: [(&str, &str); 9] = [
    ("GET ", "reads of pages, which the tests of the sandbox compare with the books"),
    ("POST /sandbox/advance", "a wait of the script, which also stops at a moment"),
    ("POST /sandbox/world", "a host starts worlds"),
    ("DELETE /sandbox/worlds", "a host starts worlds"),
    ("POST /sandbox/snapshots", "a host saves worlds"),
    ("DELETE /sandbox/snapshots", "a host saves worlds"),
    ("POST /sandbox/restore", "a host restores worlds"),
    ("POST /sandbox/forwards", "a host forwards deliveries"),
    ("POST /sandbox/mine", "a wait of the script until blocks were mined"),
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
        paths(operation.fields, "", &mut names);
        let title = format!("{} {}", operation.method, operation.path);
        names.into_iter().map(move |name| (title.clone(), name))
    });
    let sandbox = described_operations("/sandbox").into_iter();
    let sandbox = sandbox
        .filter(|operation| OUTSIDE.iter().all(|(title, _)| !operation.title.starts_with(title)))
        .flat_map(|operation| {
            let DescribedOperation { title, mut names } = operation;
            names.push(String::new());
            names.into_iter().map(move |name| (title.clone(), name))
        });
    require(&drawn, api.chain(sandbox));
}

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
fn the_operations_are_those_of_the_api_description() {
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
