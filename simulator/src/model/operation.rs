//! The operations under `/v1`: their paths, parameters and body fields, and the valid values of each field.
//!
//! Random worlds draw requests from this table, the invariants derive expected refusals from it, and tests compare it with
//! the API description and with the drawn requests.

use reference_core::asset::{Asset, Currency};
use serde_json::Value;

use crate::model::{money, request_time};

/// The maximum length of a short text, in characters.
pub const TEXT_MAX: usize = 255;
/// The maximum length of prose, in characters.
pub const PROSE_MAX: usize = 2_000;
/// The maximum length of an `Idempotency-Key`, in characters.
pub const IDEMPOTENCY_KEY_MAX: usize = 255;
/// The maximum number of entries of metadata.
pub const METADATA_KEYS_MAX: usize = 20;
/// The maximum length of a key of metadata, in characters.
pub const METADATA_KEY_MAX: usize = 40;
/// The maximum length of a value of metadata, in characters.
pub const METADATA_VALUE_MAX: usize = 500;
/// The maximum size of a body, in bytes.
pub const BODY_MAX: usize = 256 * 1024;
/// The maximum price, in cents.
pub const CENTS_MAX: u128 = 99_999_999_999_999;

/// The maximum quantity, in thousandths.
const QUANTITY_MAX: u128 = 999_999_999_000;

/// The kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A string of at most this many characters.
    Text(usize),
    /// An e-mail address.
    Email,
    /// An absolute HTTP or HTTPS URL.
    HttpUrl,
    /// An IP address.
    IpAddress,
    /// The code of a country: two capital letters.
    Country,
    /// Fiat money: a string or a number with at most two decimal places.
    Fiat,
    /// An amount of a coin: a string or a number.
    CoinAmount,
    /// A number with at most three decimal places.
    Quantity,
    /// A currency.
    Currency,
    /// A coin.
    Asset,
    /// A boolean.
    Bool,
    /// An integer from 1 up.
    Count,
    /// A time.
    Time,
    /// A day, as `2026-10-15`.
    Day,
    /// One of these keywords.
    Keyword(&'static [&'static str]),
    /// Metadata: scalar values by key.
    Metadata,
    /// A list of distinct coins.
    Assets,
    /// A list of at most this many fiat amounts.
    Fiats(usize),
    /// An object with these fields and no others.
    Object(&'static [BodyField]),
    /// A list of at most this many objects with these fields, and the field whose strings are distinct, if any.
    Objects(&'static [BodyField], usize, Option<&'static str>),
}

/// A field of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyField {
    /// The name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: FieldKind,
    /// `true` if it is required.
    pub is_required: bool,
}

const fn field(name: &'static str, kind: FieldKind) -> BodyField {
    BodyField { name, kind, is_required: false }
}

const fn required_field(name: &'static str, kind: FieldKind) -> BodyField {
    BodyField { name, kind, is_required: true }
}

/// An operation: a method and a path, with `{id}` in place of the code of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The method.
    pub method: &'static str,
    /// The path.
    pub path: &'static str,
    /// The fields of the body.
    pub fields: &'static [BodyField],
    /// The parameters of the query.
    pub parameters: &'static [&'static str],
}

const CUSTOMER: &[BodyField] = &[
    field("email", FieldKind::Email),
    field("name", FieldKind::Text(TEXT_MAX)),
    field("ip_address", FieldKind::IpAddress),
    field("user_agent", FieldKind::Text(PROSE_MAX)),
    field("reference", FieldKind::Text(TEXT_MAX)),
    field("phone", FieldKind::Text(TEXT_MAX)),
    field("country", FieldKind::Country),
    field("metadata", FieldKind::Metadata),
];
const CUSTOM_FIELD: &[BodyField] =
    &[required_field("label", FieldKind::Text(TEXT_MAX)), field("value", FieldKind::Text(PROSE_MAX))];
const CUSTOM_FIELD_DEFINITION: &[BodyField] =
    &[required_field("label", FieldKind::Text(TEXT_MAX)), field("required", FieldKind::Bool)];
const ITEM: &[BodyField] = &[
    required_field("description", FieldKind::Text(PROSE_MAX)),
    required_field("quantity", FieldKind::Quantity),
    required_field("unit_amount", FieldKind::Fiat),
];

const CHARGE: &[BodyField] = &[
    required_field("asset", FieldKind::Asset),
    field("amount", FieldKind::Fiat),
    field("currency", FieldKind::Currency),
    field("payment_link", FieldKind::Text(TEXT_MAX)),
    field("customer", FieldKind::Object(CUSTOMER)),
    field("customer_email", FieldKind::Email),
    field("description", FieldKind::Text(PROSE_MAX)),
    field("metadata", FieldKind::Metadata),
    field("custom_fields", FieldKind::Objects(CUSTOM_FIELD, 20, None)),
];
const REFUND: &[BodyField] = &[
    required_field("amount", FieldKind::CoinAmount),
    field("txid", FieldKind::Text(TEXT_MAX)),
    field("reason", FieldKind::Text(PROSE_MAX)),
];
/// The fields of a payment link. None is required, because a `PATCH` has only the changed ones.
const LINK: &[BodyField] = &[
    field("title", FieldKind::Text(TEXT_MAX)),
    field("description", FieldKind::Text(PROSE_MAX)),
    field("pricing_type", FieldKind::Keyword(&["fixed", "open"])),
    field("amount", FieldKind::Fiat),
    field("suggested_amounts", FieldKind::Fiats(10)),
    field("min_amount", FieldKind::Fiat),
    field("max_amount", FieldKind::Fiat),
    field("currency", FieldKind::Currency),
    field("accepted_assets", FieldKind::Assets),
    field("success_url", FieldKind::HttpUrl),
    field("cancel_url", FieldKind::HttpUrl),
    field("collect_name", FieldKind::Bool),
    field("require_email", FieldKind::Bool),
    field("custom_fields", FieldKind::Objects(CUSTOM_FIELD_DEFINITION, 20, Some("label"))),
    field("success_message", FieldKind::Text(PROSE_MAX)),
    field("expires_at", FieldKind::Time),
    field("max_payments", FieldKind::Count),
];
const INVOICE: &[BodyField] = &[
    field("customer_name", FieldKind::Text(TEXT_MAX)),
    field("customer_email", FieldKind::Email),
    field("currency", FieldKind::Currency),
    field("amount", FieldKind::Fiat),
    field("items", FieldKind::Objects(ITEM, 100, None)),
    field("memo", FieldKind::Text(PROSE_MAX)),
    field("due_at", FieldKind::Day),
    field("send_email", FieldKind::Bool),
];

const fn get(path: &'static str, parameters: &'static [&'static str]) -> Operation {
    Operation { method: "GET", path, fields: &[], parameters }
}

const fn write(method: &'static str, path: &'static str, fields: &'static [BodyField]) -> Operation {
    Operation { method, path, fields, parameters: &[] }
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 19] = [
        get("/v1/account", &[]),
        get("/v1/charges", &["status", "payment_link", "page", "per_page", "anchor"]),
        get("/v1/charges/{id}", &[]),
        get("/v1/invoices", &["status", "page", "per_page", "anchor"]),
        get("/v1/invoices/{id}", &[]),
        get("/v1/payment-links", &["page", "per_page", "anchor"]),
        get("/v1/payment-links/{id}", &[]),
        get("/v1/events", &["type", "charge", "invoice", "page", "per_page", "anchor"]),
        get("/v1/events/{id}", &[]),
        write("POST", "/v1/charges", CHARGE),
        write("POST", "/v1/charges/{id}/cancel", &[]),
        write("POST", "/v1/charges/{id}/refunds", REFUND),
        write("POST", "/v1/invoices", INVOICE),
        write("POST", "/v1/invoices/{id}/send", &[]),
        write("POST", "/v1/invoices/{id}/void", &[]),
        write("POST", "/v1/payment-links", LINK),
        write("PATCH", "/v1/payment-links/{id}", LINK),
        write("POST", "/v1/payment-links/{id}/archive", &[]),
        write("DELETE", "/v1/payment-links/{id}/archive", &[]),
    ];

    /// Returns the operation of a request, and the code in its path.
    pub fn find<'p>(method: &str, path: &'p str) -> Option<(Operation, Option<&'p str>)> {
        let parts: Vec<&str> = path.split('/').collect();
        Operation::ALL.into_iter().filter(|operation| operation.method == method).find_map(|operation| {
            let pattern: Vec<&str> = operation.path.split('/').collect();
            let is_match = pattern.len() == parts.len()
                && pattern.iter().zip(&parts).all(|(expected, part)| expected == part || *expected == "{id}");
            let position = pattern.iter().position(|part| *part == "{id}");
            let id = position.and_then(|position| parts.get(position).copied());
            is_match.then_some((operation, id))
        })
    }

    /// Returns the paths of the invalid fields of a body, as `items.0.quantity`.
    pub fn invalid_fields(&self, body: &Value) -> Vec<String> {
        let mut paths = Vec::new();
        add_invalid(&mut paths, "", self.fields, body);
        paths
    }
}

impl BodyField {
    /// Returns `true` if a body has a valid value of the field, or none of an optional field.
    fn accepts(&self, body: &Value) -> bool {
        match &body[self.name] {
            Value::Null => !self.is_required,
            Value::String(text) if text.is_empty() && !self.kind.is_decimal() => !self.is_required,
            value => self.kind.accepts(value),
        }
    }
}

/// Adds the paths of the invalid fields of an object; of nested invalid fields, only the innermost.
fn add_invalid(paths: &mut Vec<String>, prefix: &str, fields: &[BodyField], body: &Value) {
    for field in fields.iter().filter(|field| !field.accepts(body)) {
        let (path, before) = (format!("{prefix}{}", field.name), paths.len());
        match (field.kind, &body[field.name]) {
            (FieldKind::Object(nested), value @ Value::Object(_)) => {
                add_invalid(paths, &format!("{path}."), nested, value);
            }
            (FieldKind::Objects(nested, ..), Value::Array(list)) => {
                for (index, value) in list.iter().enumerate().filter(|(_, value)| value.is_object()) {
                    add_invalid(paths, &format!("{path}.{index}."), nested, value);
                }
            }
            _ => {}
        }
        if paths.len() == before {
            paths.push(path);
        }
    }
}

/// Returns `true` if all fields of an object are valid.
fn all_accept(fields: &[BodyField], body: &Value) -> bool {
    fields.iter().all(|field| field.accepts(body))
}

/// Returns `true` for a media type of JSON (`application/json`, `application/…+json`), with any parameters.
pub fn is_json(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence.strip_prefix("application/").is_some_and(|kind| kind == "json" || kind.ends_with("+json"))
}

/// Parses a decimal, given as a string or a number, into units of 10 to the power of `-decimals`; `None` if
/// it is invalid, has more decimal places (even zeros), or leading zeros.
pub fn parse_units_strictly(value: &Value, decimals: u32) -> Option<u128> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let (whole, part) = text.split_once('.').unwrap_or((&text, "0"));
    let is_canonical =
        (whole == "0" || !whole.starts_with('0')) && (1..=decimals.max(1)).contains(&(part.len() as u32));
    money::parse_units(&text, decimals).filter(|_| is_canonical)
}

fn is_text(value: &Value, chars_max: usize) -> bool {
    value.as_str().is_some_and(|text| text.chars().count() <= chars_max)
}

fn is_email(text: &str) -> bool {
    let parts: Vec<&str> = text.split('@').collect();
    let [local, domain] = parts[..] else { return false };
    let labels: Vec<&str> = domain.split('.').collect();
    let is_domain =
        labels.len() > 1 && !labels[0].is_empty() && labels.last().is_some_and(|label| !label.is_empty());
    !local.is_empty() && is_domain && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn is_metadata(value: &Value) -> bool {
    let is_valid_entry = |(key, value): (&String, &Value)| {
        let is_valid_value = match value {
            Value::String(text) => text.chars().count() <= METADATA_VALUE_MAX,
            Value::Array(_) | Value::Object(_) => false,
            _ => true,
        };
        is_valid_value && key.chars().count() <= METADATA_KEY_MAX
    };
    match value {
        Value::Object(map) => map.len() <= METADATA_KEYS_MAX && map.iter().all(is_valid_entry),
        // PHP clients write an empty map as an empty list.
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Returns `true` if no string occurs twice.
fn are_distinct<'v>(values: impl Iterator<Item = Option<&'v str>>) -> bool {
    let mut known = std::collections::BTreeSet::new();
    values.flatten().all(|value| known.insert(value))
}

impl FieldKind {
    /// Returns `true` for decimals, for which an empty string is invalid; for other kinds it is a missing value.
    fn is_decimal(self) -> bool {
        matches!(self, FieldKind::Fiat | FieldKind::CoinAmount | FieldKind::Quantity)
    }

    /// Returns `true` if a value is valid.
    fn accepts(self, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            FieldKind::Text(chars_max) => is_text(value, chars_max),
            FieldKind::Email => is_text(value, TEXT_MAX) && text.is_some_and(is_email),
            FieldKind::HttpUrl => {
                let host = text.and_then(|text| text.split_once("://"));
                is_text(value, PROSE_MAX)
                    && text.is_some_and(|text| text.is_ascii() && !text.contains(' '))
                    && host
                        .is_some_and(|(scheme, rest)| ["https", "http"].contains(&scheme) && !rest.is_empty())
            }
            FieldKind::IpAddress => text.is_some_and(|text| text.parse::<std::net::IpAddr>().is_ok()),
            FieldKind::Country => {
                text.is_some_and(|text| text.len() == 2 && text.bytes().all(|b| b.is_ascii_uppercase()))
            }
            FieldKind::Fiat => parse_units_strictly(value, 2).is_some_and(|cents| cents <= CENTS_MAX),
            // The allowed decimal places depend on the coin of the charge.
            FieldKind::CoinAmount => value.is_number() || is_text(value, TEXT_MAX),
            FieldKind::Quantity => {
                parse_units_strictly(value, 3).is_some_and(|n| (1..=QUANTITY_MAX).contains(&n))
            }
            FieldKind::Currency => text.and_then(Currency::parse).is_some(),
            FieldKind::Asset => text.and_then(Asset::parse).is_some(),
            FieldKind::Bool => value.is_boolean(),
            FieldKind::Count => value.as_u64().is_some_and(|n| n >= 1 && u32::try_from(n).is_ok()),
            FieldKind::Time => text.and_then(request_time::parse_time).is_some(),
            FieldKind::Day => text.is_some_and(request_time::is_day),
            FieldKind::Keyword(keywords) => text.is_some_and(|text| keywords.contains(&text)),
            FieldKind::Metadata => is_metadata(value),
            FieldKind::Assets => value.as_array().is_some_and(|list| {
                list.iter().all(|item| FieldKind::Asset.accepts(item))
                    && are_distinct(list.iter().map(Value::as_str))
            }),
            FieldKind::Fiats(max) => value.as_array().is_some_and(|list| {
                list.len() <= max && list.iter().all(|item| FieldKind::Fiat.accepts(item))
            }),
            FieldKind::Object(fields) => match value {
                Value::Object(map) => {
                    map.keys().all(|key| fields.iter().any(|field| field.name == key))
                        && all_accept(fields, value)
                }
                Value::Array(list) => list.is_empty(),
                _ => false,
            },
            FieldKind::Objects(fields, max, distinct) => value.as_array().is_some_and(|list| {
                list.len() <= max
                    && list.iter().all(|item| item.is_object() && all_accept(fields, item))
                    && distinct
                        .is_none_or(|name| are_distinct(list.iter().map(|object| object[name].as_str())))
            }),
        }
    }
}
