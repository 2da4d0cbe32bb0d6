//! Converts schemas of the OpenAPI document to schemas of tool arguments and results: resolves references, and simplifies the
//! schemas of arguments for clients.

use serde_json::{Map, Value};

/// The arguments that a body adds to a tool.
#[derive(Default)]
pub(super) struct Arguments {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<Value>,
    pub(super) description: String,
}

/// Returns the value with all references resolved. The document has no circular references.
pub(super) fn resolve_references(value: &Value, document: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut resolved = match map.get("$ref").and_then(Value::as_str) {
                Some(reference) => {
                    let target = document.pointer(reference.trim_start_matches('#'));
                    match resolve_references(target.unwrap_or(&Value::Null), document) {
                        Value::Object(target) => target,
                        other => return other,
                    }
                }
                None => Map::new(),
            };
            // Keywords beside a reference override those of its target.
            for (key, value) in map.iter().filter(|(key, _)| *key != "$ref") {
                resolved.insert(key.clone(), resolve_references(value, document));
            }
            Value::Object(resolved)
        }
        Value::Array(all) => all.iter().map(|element| resolve_references(element, document)).collect(),
        other => other.clone(),
    }
}

/// Returns the schema of a parameter, with its description.
pub(super) fn parameter_schema(parameter: &Value) -> Value {
    let mut schema = simplify(&parameter["schema"], false);
    if let (Value::Object(schema), Some(description)) = (&mut schema, parameter.get("description")) {
        schema.insert("description".to_owned(), description.clone());
    }
    schema
}

/// Returns the fields of a body as arguments. The schema does not state which combinations are allowed, because few
/// clients support alternatives at the top level; the description does, and the service checks them. `keeps_null`: null
/// has a meaning in this operation.
pub(super) fn body_arguments(body: &Value, document: &Value, keeps_null: bool) -> Arguments {
    let body = resolve_references(body, document);
    let Some(fields) = body.get("properties").and_then(Value::as_object) else {
        return Arguments::default();
    };
    Arguments {
        properties: fields.iter().map(|(name, field)| (name.clone(), simplify(field, keeps_null))).collect(),
        required: body["required"].as_array().cloned().unwrap_or_default(),
        description: body["description"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Returns the schema of an operation's successful response; `None` if it is not an object.
pub(super) fn response_schema(operation: &Value, document: &Value) -> Option<Map<String, Value>> {
    let responses = operation["responses"].as_object()?;
    let (_, success) = responses.iter().find(|(status, _)| status.starts_with('2'))?;
    match resolve_references(&success["content"]["application/json"]["schema"], document) {
        Value::Object(schema) if schema.get("type").is_some_and(|kind| kind == "object") => Some(schema),
        _ => None,
    }
}

/// Removes the alternatives that mean "not given", because clients omit the argument instead, and replaces an `anyOf` with
/// a single alternative by this alternative. `keeps_null`: null has a meaning of its own, so nothing means "not given".
fn simplify(schema: &Value, keeps_null: bool) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let mut map: Map<String, Value> = map
        .iter()
        .map(|(keyword, value)| {
            let value = match (keyword.as_str(), value) {
                ("properties", Value::Object(fields)) => {
                    fields.iter().map(|(name, field)| (name.clone(), simplify(field, keeps_null))).collect()
                }
                ("items" | "additionalProperties", schema) => simplify(schema, keeps_null),
                ("anyOf" | "oneOf", Value::Array(all)) => all
                    .iter()
                    .filter(|schema| !means_not_given(schema, keeps_null))
                    .map(|schema| simplify(schema, keeps_null))
                    .collect(),
                _ => value.clone(),
            };
            (keyword.clone(), value)
        })
        .collect();
    if !keeps_null
        && let Some(Value::Array(types)) = map.get("type")
        && let [first_type, Value::String(second_type)] = &types[..]
        && second_type == "null"
    {
        let first_type = first_type.clone();
        map.insert("type".to_owned(), first_type);
    }
    match map.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(only)]) => {
            let mut only = only.clone();
            map.remove("anyOf");
            only.append(&mut map);
            Value::Object(only)
        }
        _ => Value::Object(map),
    }
}

/// Returns `true` for a schema that allows only `null` or the empty string, unless `keeps_null`.
fn means_not_given(schema: &Value, keeps_null: bool) -> bool {
    let is_null = schema["type"] == "null";
    let is_empty_text = schema["maxLength"] == 0;
    !keeps_null && (is_null || is_empty_text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_resolved_and_keywords_beside_it_override_it() {
        let document = json!({ "schemas": { "Code": { "type": "string", "description": "A code." } } });
        let schema = json!({ "items": { "$ref": "#/schemas/Code", "description": "Of a charge." } });
        assert_eq!(
            resolve_references(&schema, &document),
            json!({ "items": { "type": "string", "description": "Of a charge." } })
        );
    }

    #[track_caller]
    fn check(schema: Value, keeps_null: bool, expected: Value) {
        assert_eq!(simplify(&schema, keeps_null), expected);
    }

    #[test]
    fn alternatives_that_mean_not_given_are_removed() {
        let nothing = json!({ "type": ["string", "null"], "maxLength": 0, "description": "Not given." });
        let email = json!({ "type": "string", "maxLength": 255 });
        check(
            json!({ "anyOf": [email, nothing], "description": "Whose." }),
            false,
            json!({ "type": "string", "maxLength": 255, "description": "Whose." }),
        );
        check(json!({ "type": ["boolean", "null"] }), false, json!({ "type": "boolean" }));
        check(json!({ "anyOf": [email, { "type": "null" }] }), false, email.clone());
        check(
            json!({ "type": "array", "items": { "type": ["string", "null"] } }),
            false,
            json!({ "type": "array", "items": { "type": "string" } }),
        );
    }

    #[test]
    fn null_is_allowed_where_it_has_a_meaning() {
        check(json!({ "type": ["boolean", "null"] }), true, json!({ "type": ["boolean", "null"] }));
    }
}
