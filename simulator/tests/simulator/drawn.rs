//! Random worlds draw every operation with every field and parameter, with and without success. The table of operations is
//! that of the API description.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use simulator::{
    model::operation::{BodyField, FieldKind, Operation},
    record::Observation,
    sweep::Runner,
    workload,
};

/// The number of worlds that together draw everything.
const WORLDS: u64 = 200;

/// The number of draws of a field or parameter: in granted and in refused requests, and with null.
#[derive(Default)]
struct Drawn {
    granted: u64,
    refused: u64,
    null: u64,
}

/// The fields of an operation by their paths, as `customer.email`.
fn paths(fields: &[BodyField], before: &str, found: &mut Vec<String>) {
    for field in fields {
        found.push(format!("{before}{}", field.name));
        if let FieldKind::Object(inner) | FieldKind::Objects(inner, ..) = field.kind {
            paths(inner, &format!("{before}{}.", field.name), found);
        }
    }
}

fn note(body: &Value, before: &str, good: bool, drawn: &mut BTreeMap<String, Drawn>) {
    for (name, value) in body.as_object().into_iter().flatten() {
        let path = format!("{before}{name}");
        let count = drawn.entry(path.clone()).or_default();
        match (value, good) {
            (Value::Null, _) => count.null += 1,
            (_, true) => count.granted += 1,
            (_, false) => count.refused += 1,
        }
        match value {
            Value::Array(list) => list.iter().for_each(|item| note(item, &format!("{path}."), good, drawn)),
            other => note(other, &format!("{path}."), good, drawn),
        }
    }
}

/// Returns the draws of all worlds by operation and by field or parameter. The empty name counts the operation itself.
fn drawn() -> BTreeMap<(String, String), Drawn> {
    let mut all: BTreeMap<(String, String), Drawn> = BTreeMap::new();
    let runner = Runner::default();
    for seed in 0..WORLDS {
        for entry in runner.play(&workload::draw(seed).script).record.seen {
            let Observation::Call(call) = entry.what else { continue };
            let Some((operation, _)) = Operation::find(&call.method, &call.path) else { continue };
            let good = call.status < 300;
            let mut fields = BTreeMap::new();
            note(&serde_json::from_slice(&call.body).unwrap_or_default(), "", good, &mut fields);
            for part in call.query.iter().flat_map(|query| query.split('&')) {
                let name = part.split('=').next().unwrap_or_default().to_owned();
                let count = fields.entry(name).or_default();
                *(if good { &mut count.granted } else { &mut count.refused }) += 1;
            }
            if call.idempotency_key.is_some() {
                fields.insert(
                    "Idempotency-Key".to_owned(),
                    Drawn { granted: good.into(), refused: (!good).into(), null: 0 },
                );
            }
            fields.insert(String::new(), Drawn { granted: good.into(), refused: (!good).into(), null: 0 });
            let title = format!("{} {}", operation.method, operation.path);
            for (name, count) in fields {
                let sum = all.entry((title.clone(), name)).or_default();
                sum.granted += count.granted;
                sum.refused += count.refused;
                sum.null += count.null;
            }
        }
    }
    all
}

#[test]
fn worlds_draw_every_field_of_every_operation() {
    let drawn = drawn();
    let mut missing = Vec::new();
    for operation in Operation::ALL {
        let title = format!("{} {}", operation.method, operation.path);
        let mut names: Vec<String> = operation.parameters.iter().map(|name| (*name).to_owned()).collect();
        names.push(String::new());
        if operation.method != "GET" {
            names.push("Idempotency-Key".to_owned());
        }
        paths(operation.fields, "", &mut names);
        for name in names {
            match drawn.get(&(title.clone(), name.clone())) {
                None => missing.push(format!("{title} {name}: never drawn")),
                Some(count) if count.granted == 0 => missing.push(format!("{title} {name}: never granted")),
                Some(_) => {}
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

fn resolved<'v>(api: &'v Value, value: &'v Value) -> &'v Value {
    match value["$ref"].as_str() {
        Some(place) => resolved(api, api.pointer(place.trim_start_matches('#')).expect("it leads somewhere")),
        None => value,
    }
}

/// A field that is missing in the table would never be drawn.
#[test]
fn the_operations_are_those_of_the_api_description() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../reference/openapi.json");
    let api: Value = serde_json::from_str(&fs::read_to_string(path).expect("it can be read")).expect("JSON");
    let mut described = Vec::new();
    for (path, operations) in
        api["paths"].as_object().expect("paths").iter().filter(|(path, _)| path.starts_with("/v1"))
    {
        for (method, operation) in operations.as_object().expect("operations") {
            if method == "parameters" {
                continue;
            }
            let body = resolved(&api, &operation["requestBody"]);
            let schema = resolved(&api, &body["content"]["application/json"]["schema"]);
            let mut names: Vec<String> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect();
            let parameters = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|parameter| resolved(&api, parameter));
            let queries = parameters.filter(|parameter| parameter["in"] == "query");
            names.extend(queries.map(|query| query["name"].as_str().unwrap_or_default().to_owned()));
            names.sort();
            described.push(format!("{} {path}: {}", method.to_uppercase(), names.join(" ")));
        }
    }
    let mut known: Vec<String> = Operation::ALL
        .iter()
        .map(|operation| {
            let fields = operation.fields.iter().map(|field| field.name);
            let mut names: Vec<&str> = fields.chain(operation.parameters.iter().copied()).collect();
            names.sort_unstable();
            format!("{} {}: {}", operation.method, operation.path, names.join(" "))
        })
        .collect();
    described.sort();
    known.sort();
    assert_eq!(described, known);
}
