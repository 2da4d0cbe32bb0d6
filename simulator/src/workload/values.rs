//! Random values for the fields of requests, by the kind of field: valid values, values at the bounds, and invalid
//! values.

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    rng::RngStream,
    time::{Span, Timestamp},
};
use serde_json::{Map, Value, json};

use super::{DAY, HOUR, MINUTE};
use crate::model::operation::{
    BodyField, FieldKind, METADATA_KEY_MAX, METADATA_KEYS_MAX, METADATA_VALUE_MAX,
};

const TEXTS: [&str; 5] = ["Tea & cake", "Größe 👕", "支払い", "a\"b\\c/d", "null"];
const EMAILS: [&str; 4] = ["ann@example.com", "Owner@acme.example", "owner@acme.example", "a@b.example"];
const URLS: [&str; 3] =
    ["https://shop.example/thanks?x=1", "http://shop.example", "https://shop.example/%C3%A9"];
const COUNTRIES: [&str; 3] = ["DE", "PL", "JP"];
/// Strings that are not times by RFC 3339, or have too many decimals.
const INVALID_TIMES: [&str; 4] =
    ["2029-01-05", "2029-01-05T09:00:00", "2029-02-29T09:00:00Z", "2029-01-05T09:00:00.1234567890Z"];
const IP_ADDRESSES: [&str; 3] = ["203.0.113.7", "2001:db8::1", "0.0.0.0"];

/// The facts on which the values of a request depend.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The time of the request.
    pub(super) now: Timestamp,
    /// The coins of the world.
    pub(super) coins: &'a [Asset],
}

/// Draws an element of a list.
fn pick<T: Copy>(list: &[T], draw: &mut RngStream) -> T {
    list[draw.below(list.len() as u64) as usize]
}

/// Returns a string of this number of characters that starts with `text`.
fn pad_to(text: &str, chars: usize) -> String {
    text.chars().chain(std::iter::repeat('é')).take(chars).collect()
}

/// Returns an amount of fiat money in one of its allowed formats.
pub(super) fn fiat(cents: u64, draw: &mut RngStream) -> Value {
    match draw.below(6) {
        0 if cents.is_multiple_of(100) => json!(cents / 100),
        1 if cents.is_multiple_of(100) => json!((cents / 100).to_string()),
        _ => json!(format!("{}.{:02}", cents / 100, cents % 100)),
    }
}

/// Returns a time in one of its allowed formats.
pub(super) fn time(at: Timestamp, draw: &mut RngStream) -> String {
    let in_zone = |at: Timestamp, zone: &str| at.to_string().replace('Z', zone);
    // The service ignores decimals after the sixth.
    let with_decimals = |count: usize| {
        let text = at.to_string().replace('Z', "789");
        format!("{}Z", &text[..if count == 0 { 19 } else { 20 + count }])
    };
    match draw.below(8) {
        0 => in_zone(at, "+00:00"),
        1 => in_zone(at.plus(Span::mins(330)), "+05:30"),
        2 => in_zone(at.minus(Span::hours(8)), "-08:00"),
        3 => with_decimals(draw.below(9) as usize),
        4 => with_decimals(9),
        _ => at.to_string(),
    }
}

/// Draws a list of objects. With `distinct`, they have different values of this field.
fn objects(
    fields: &[BodyField],
    distinct: Option<&str>,
    context: Context<'_>,
    draw: &mut RngStream,
) -> Value {
    let mut list: Vec<Value> = Vec::new();
    for _ in 0..draw.between(1, 3) {
        let object = draw_object(fields, context, draw);
        let is_new = distinct.is_none_or(|name| list.iter().all(|other| other[name] != object[name]));
        if is_new {
            list.push(object);
        }
    }
    json!(list)
}

/// Draws an object with the required fields and about half of the others.
pub(super) fn draw_object(fields: &[BodyField], context: Context<'_>, draw: &mut RngStream) -> Value {
    let mut map = Map::new();
    for field in fields {
        if field.is_required || draw.chance(1, 2) {
            let value = if field.is_required || draw.chance(7, 8) {
                draw_valid(field.kind, context, draw)
            } else {
                Value::Null
            };
            map.insert(field.name.to_owned(), value);
        }
    }
    Value::Object(map)
}

/// Draws an object of which one field is invalid.
fn object_with_invalid_field(fields: &[BodyField], context: Context<'_>, draw: &mut RngStream) -> Value {
    let mut value = draw_object(fields, context, draw);
    let field = pick(fields, draw);
    value[field.name] = draw_invalid(field.kind, context, draw);
    value
}

/// Draws a valid value.
pub(super) fn draw_valid(kind: FieldKind, context: Context<'_>, draw: &mut RngStream) -> Value {
    let is_extreme = draw.chance(1, 12);
    match kind {
        FieldKind::Text(chars_max) if is_extreme => json!(pad_to(pick(&TEXTS, draw), chars_max)),
        FieldKind::Text(_) => json!(pick(&TEXTS, draw)),
        FieldKind::Email => json!(pick(&EMAILS, draw)),
        FieldKind::HttpUrl => json!(pick(&URLS, draw)),
        FieldKind::IpAddress => json!(pick(&IP_ADDRESSES, draw)),
        FieldKind::Country => json!(pick(&COUNTRIES, draw)),
        FieldKind::Fiat => fiat(draw.between(1, 60_000), draw),
        FieldKind::CoinAmount => json!(format!("0.{:06}", draw.between(1, 999_999))),
        FieldKind::Quantity => match draw.below(3) {
            0 => json!(draw.between(1, 9)),
            _ => json!(format!("{}.{:03}", draw.below(20), draw.between(1, 999))),
        },
        // Mostly euros, because plans compute amounts due only in euros.
        FieldKind::Currency => {
            json!(if draw.chance(2, 3) { "EUR" } else { pick(&Currency::ALL, draw).code() })
        }
        FieldKind::Asset => json!(pick(context.coins, draw).code()),
        FieldKind::Bool => json!(draw.chance(1, 2)),
        FieldKind::Count => json!(draw.between(1, 3)),
        FieldKind::Time => {
            let span =
                [draw.between(1, 2 * HOUR), draw.between(MINUTE, DAY), 3 * DAY][draw.below(3) as usize];
            json!(time(context.now.plus(Span::micros(span)), draw))
        }
        FieldKind::Day => json!(format_date(context.now.plus(Span::days(draw.below(5))))),
        FieldKind::Keyword(names) => json!(pick(names, draw)),
        // Some clients encode an empty map as a list.
        FieldKind::Metadata if is_extreme => json!([]),
        FieldKind::Metadata => json!({
            "order": draw.below(1 << 40), "gift": draw.chance(1, 2), "note": pick(&TEXTS, draw), "none": null,
        }),
        FieldKind::Assets => {
            let first = draw.below(Asset::ALL.len() as u64) as usize;
            let assets = context.coins.iter().filter(|_| draw.chance(2, 3)).chain([&Asset::ALL[first]]);
            let mut codes: Vec<&str> = assets.map(|asset| asset.code()).collect();
            codes.sort_unstable();
            codes.dedup();
            json!(codes)
        }
        FieldKind::Fiats(count_max) => {
            let count = if is_extreme { count_max as u64 } else { draw.below(3) };
            json!((0..count).map(|_| fiat(draw.between(1, 60_000), draw)).collect::<Vec<_>>())
        }
        FieldKind::Object(fields) => draw_object(fields, context, draw),
        FieldKind::Objects(fields, _, distinct) => objects(fields, distinct, context, draw),
    }
}

/// Returns the date of a time, as `2026-10-15`.
pub(super) fn format_date(at: Timestamp) -> String {
    at.to_string()[..10].to_owned()
}

/// Draws an invalid value.
pub(super) fn draw_invalid(kind: FieldKind, context: Context<'_>, draw: &mut RngStream) -> Value {
    if draw.chance(1, 4) {
        return match kind {
            FieldKind::Bool => json!("yes"),
            _ => json!(true),
        };
    }
    match kind {
        FieldKind::Text(chars_max) => json!(pad_to("x", chars_max + 1)),
        FieldKind::Metadata => match draw.below(4) {
            0 => json!({ "nested": {} }),
            1 => json!({ (pad_to("é", METADATA_KEY_MAX + 1)): 1 }),
            2 => json!({ "note": pad_to("é", METADATA_VALUE_MAX + 1) }),
            _ => json!((0..=METADATA_KEYS_MAX).map(|n| (n.to_string(), n)).collect::<BTreeMap<_, _>>()),
        },
        FieldKind::Assets => json!([context.coins[0].code(), context.coins[0].code()]),
        FieldKind::Fiats(count_max) => json!(vec!["1.00"; count_max + 1]),
        FieldKind::Object(fields) => match draw.below(4) {
            0 => json!({ "colour": "red" }),
            _ => object_with_invalid_field(fields, context, draw),
        },
        FieldKind::Objects(fields, _, distinct) => match (draw.below(3), distinct) {
            (0, Some(name)) => json!([{ name: "twice" }, { name: "twice" }]),
            (0, None) => json!([{ fields[0].name: "" }]),
            _ => {
                json!([draw_object(fields, context, draw), object_with_invalid_field(fields, context, draw)])
            }
        },
        FieldKind::Count => json!(0),
        FieldKind::Fiat => json!("1.005"),
        FieldKind::Quantity => json!("0"),
        FieldKind::Day => json!("2026-02-30"),
        FieldKind::Time => json!(pick(&INVALID_TIMES, draw)),
        FieldKind::Country => json!("de"),
        FieldKind::CoinAmount | FieldKind::Bool => json!([]),
        FieldKind::Email
        | FieldKind::HttpUrl
        | FieldKind::IpAddress
        | FieldKind::Currency
        | FieldKind::Asset
        | FieldKind::Keyword(_) => json!("nowhere"),
    }
}
