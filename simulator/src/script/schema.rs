//! The JSON Schema of the scenario format, for editors and other tools.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::ScenarioFile;

/// Returns the schema, as stored in `scenarios/scenario.schema.json`, with a line break at its end.
pub fn schema() -> String {
    let schema = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<ScenarioFile>();
    let mut schema = Value::from(schema);
    remove_null(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

/// Removes null from the schema: absent values are omitted, and an editor should not offer null.
fn remove_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_mut_slice() {
                    let only = only.take();
                    map.insert("type".to_owned(), only);
                }
            }
            remove_null_alternative(map);
            map.values_mut().for_each(remove_null);
        }
        Value::Array(list) => list.iter_mut().for_each(remove_null),
        _ => {}
    }
}

/// Removes null from an `anyOf`. A single remaining alternative replaces the `anyOf`.
fn remove_null_alternative(map: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = map.get_mut("anyOf") else { return };
    alternatives.retain(|alternative| alternative.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = alternatives.as_mut_slice() {
        let only = std::mem::take(only);
        map.remove("anyOf");
        map.extend(only);
    }
}
