//! The enums and bounds of the document match the service.

use reference_core::{
    asset::{Asset, Currency},
    charge::ChargeStatus,
    event::EventType,
    invoice::InvoiceStatus,
    mode::Mode,
};
use reference_wire::fields::{PROSE_MAX, QUESTIONS_MAX, TEXT_MAX};
use serde_json::{Value, json};

use super::document::Document;

/// Checks that the enum of a schema has exactly these values.
#[track_caller]
fn check_enum<T>(
    document: &Document,
    schema: &str,
    all: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> &'static str,
) {
    let values: Vec<&str> = all.into_iter().map(name).collect();
    assert_eq!(
        document.value["components"]["schemas"][schema]["enum"],
        json!(values),
        "reference/openapi.json: the enum of {schema}"
    );
}

#[test]
fn enums_list_exactly_the_values_of_the_service() {
    let document = Document::read();
    check_enum(&document, "Mode", Mode::ALL, Mode::as_str);
    check_enum(&document, "Asset", Asset::ALL, Asset::code);
    check_enum(&document, "Currency", Currency::ALL, Currency::code);
    check_enum(&document, "ChargeStatus", ChargeStatus::ALL, ChargeStatus::as_str);
    check_enum(&document, "InvoiceStatus", InvoiceStatus::ALL, InvoiceStatus::as_str);
    check_enum(&document, "EventType", EventType::ALL, EventType::as_str);
}

/// Collects `maxItems` of all arrays whose items have this schema.
fn collect_max_items(value: &Value, schema: &str, found: &mut Vec<u64>) {
    let has_schema =
        value["items"]["$ref"].as_str().is_some_and(|text| text.ends_with(&format!("/{schema}")));
    found.extend(value["maxItems"].as_u64().filter(|_| has_schema));
    match value {
        Value::Array(all) => all.iter().for_each(|value| collect_max_items(value, schema, found)),
        Value::Object(all) => all.values().for_each(|value| collect_max_items(value, schema, found)),
        _ => {}
    }
}

#[test]
fn array_bounds_match_the_enums() {
    let document = Document::read();
    for (schema, count) in [("Asset", Asset::ALL.len()), ("EventType", EventType::ALL.len())] {
        let mut found = Vec::new();
        collect_max_items(&document.value, schema, &mut found);
        // The document has two lists of each.
        assert_eq!(found, [count as u64; 2], "reference/openapi.json: `maxItems` of the lists of {schema}");
    }
}

#[test]
fn length_bounds_match_the_service() {
    let document = Document::read();
    let bound = |pointer: &str| {
        let value = document.value.pointer(&format!("/components/schemas/{pointer}"));
        value.and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} is not a bound"))
    };
    for (pointer, expected) in [
        ("NewCharge/properties/payment_link/maxLength", TEXT_MAX),
        ("NewCharge/properties/description/maxLength", PROSE_MAX),
        ("NewCharge/properties/custom_fields/maxItems", QUESTIONS_MAX),
        ("NewPaymentLink/properties/custom_fields/maxItems", QUESTIONS_MAX),
    ] {
        assert_eq!(bound(pointer), expected as u64, "reference/openapi.json: {pointer}");
    }
}
