//! The steps for arbitrary requests, waiting and expectations.

use std::{collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use super::is_default;
use crate::{
    script::{At, diagnostic::list_allowed},
    value::{Amount, Duration, EventTypeName, Moment, Name, Offset, did_you_mean},
};

/// A time to wait for: exactly one of `at`, `expiry`, `attempt` and `event`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// A time.
    pub at: Option<At<Moment>>,
    /// The end of this charge's rate lock.
    pub expiry: Option<At<Name>>,
    /// The next attempt of this delivery, or at this endpoint.
    pub attempt: Option<At<Name>>,
    /// The next event of this type, checked every second.
    pub event: Option<At<EventTypeName>>,
    /// The object of the event.
    pub of: Option<At<Name>>,
    /// The time within which the event must occur; two hours by default.
    pub within: Option<Duration>,
    /// The difference to that time.
    pub offset: Option<At<Offset>>,
}

/// A request and its expected response.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The method; GET by default.
    pub method: Option<String>,
    /// The path and query; `${c1}` is replaced by the code of c1.
    pub path: At<String>,
    /// The key: `live`, `test`, the name of a created key, or `none`; that of the scenario's mode by default.
    pub key: Option<At<Name>>,
    /// The JSON body; `${c1}` within a text is replaced by the code of c1.
    pub body: Option<Value>,
    /// Additional headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The number of repetitions; each response must be as expected.
    pub times: Option<u32>,
    /// Names for values of the response, by JSON pointer: `{ page: /links/next }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub save: BTreeMap<String, String>,
    /// The expected response; any 2xx by default.
    #[serde(default, skip_serializing_if = "ExpectedResponse::is_empty")]
    pub expect: ExpectedResponse,
}

/// The expected response to a request.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedResponse {
    /// The status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<At<u16>>,
    /// Values of the body, by JSON pointer: `{ /data/status: paid }`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub body: BTreeMap<String, At<Value>>,
    /// Headers, by lower-case name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, At<String>>,
    /// JSON pointers that must not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<At<String>>,
}

impl ExpectedResponse {
    fn is_empty(&self) -> bool {
        self.status.is_none() && self.body.is_empty() && self.headers.is_empty() && self.absent.is_empty()
    }
}

/// A list to read page by page while it grows.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// The path of the list, with its filters.
    pub path: At<String>,
    /// The size of a page.
    pub per_page: u32,
    /// The number of objects created after each page: invoices for a list of invoices, otherwise charges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub insert: u32,
    /// Follows `links.next`, or increments `page`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: WalkBy,
    /// The key, as in `request`.
    pub key: Option<At<Name>>,
}

/// The way in which a client gets the next page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WalkBy {
    /// By `links.next`.
    #[default]
    Links,
    /// By the page number.
    Numbers,
}

/// The expected states by name: a status, or a map with more.
pub type Expect = BTreeMap<String, At<Expected>>;

/// The expected state of one object.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(into = "StatusOrMap")]
pub struct Expected {
    /// The status, or the state of a transfer.
    pub status: Option<String>,
    /// The credited amount of a charge.
    pub received: Option<String>,
    /// The types of the object's events, oldest first.
    pub events: Option<Vec<EventTypeName>>,
    /// Values of the object, by JSON pointer: `{ /overpaid: true }`.
    pub fields: BTreeMap<String, Value>,
    /// The results of a delivery's attempts, oldest first.
    pub answers: Option<Vec<String>>,
    /// The types of the events that an endpoint acknowledged, in order of arrival.
    pub acknowledged: Option<Vec<EventTypeName>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expected")]
struct ExpectedMap {
    /// The status, or the state of a transfer.
    #[serde(default, deserialize_with = "read_status", skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// The credited amount of a charge.
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<Amount>,
    /// The types of the object's events, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<EventTypeName>>,
    /// Values of the object, by JSON pointer: `{ /overpaid: true }`.
    #[serde(default)]
    fields: BTreeMap<String, Value>,
    /// The results of a delivery's attempts, oldest first.
    answers: Option<Vec<ResultName>>,
    /// The types of the events that an endpoint acknowledged, in order of arrival.
    acknowledged: Option<Vec<EventTypeName>>,
}

/// The statuses of charges, invoices, payment links, endpoints, deliveries and transfers.
const STATUSES: [&str; 23] = [
    "pending",
    "underpaid",
    "paid",
    "expired",
    "canceled",
    "open",
    "void",
    "active",
    "archived",
    "enabled",
    "disabled",
    "removed",
    "waiting",
    "in_flight",
    "delivered",
    "failed",
    "unseen",
    "seen",
    "confirmed",
    "unconfirmed",
    "double_spent",
    "replaced",
    "dropped",
];

/// Returns a status if it exists, so that a typo is found when the scenario is parsed.
fn known_status<E: serde::de::Error>(status: String) -> Result<String, E> {
    if STATUSES.contains(&status.as_str()) {
        return Ok(status);
    }
    let hint = did_you_mean(&status, STATUSES).unwrap_or_else(|| {
        format!("write a name and its status, `expect: {{ c1: paid }}`; {}", list_allowed(&STATUSES))
    });
    Err(E::custom(format_args!("`{status}` is not a status; {hint}")))
}

fn read_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)?.map(known_status).transpose()
}

/// A status, or a map.
#[derive(Serialize)]
#[serde(untagged)]
enum StatusOrMap {
    Status(String),
    Map(ExpectedMap),
}

impl From<Expected> for StatusOrMap {
    fn from(expected: Expected) -> StatusOrMap {
        let has_more = expected.received.is_some()
            || expected.events.is_some()
            || !expected.fields.is_empty()
            || expected.answers.is_some()
            || expected.acknowledged.is_some();
        match expected.status {
            Some(status) if !has_more => StatusOrMap::Status(status),
            status => StatusOrMap::Map(ExpectedMap {
                status,
                received: expected.received.map(Amount),
                events: expected.events,
                fields: expected.fields,
                answers: expected.answers.map(|results| results.into_iter().map(ResultName).collect()),
                acknowledged: expected.acknowledged,
            }),
        }
    }
}

/// The result of an attempt: a status code, or a name such as `timeout`.
#[derive(Serialize)]
struct ResultName(String);

impl<'de> Deserialize<'de> for ResultName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ResultName, D::Error> {
        String::deserialize(deserializer).map(ResultName)
    }
}

impl JsonSchema for ResultName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Answer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "description": "A status code, or a name such as timeout." })
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expected, D::Error> {
        struct ExpectedVisitor;

        impl<'de> Visitor<'de> for ExpectedVisitor {
            type Value = Expected;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a status, or a map")
            }

            fn visit_str<E: serde::de::Error>(self, status: &str) -> Result<Expected, E> {
                Ok(Expected { status: Some(known_status(status.to_owned())?), ..Expected::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expected, A::Error> {
                let full = ExpectedMap::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Expected {
                    status: full.status,
                    received: full.received.map(|amount| amount.0),
                    events: full.events,
                    fields: full.fields,
                    answers: full.answers.map(|results| results.into_iter().map(|result| result.0).collect()),
                    acknowledged: full.acknowledged,
                })
            }
        }

        deserializer.deserialize_any(ExpectedVisitor)
    }
}

impl JsonSchema for Expected {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StatusOrExpected".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let full = generator.subschema_for::<ExpectedMap>();
        json_schema!({ "anyOf": [{ "type": "string", "description": "The status." }, full] })
    }
}

#[cfg(test)]
mod tests {
    use crate::script::Script;

    /// `expect: { charge: c1, status: paid }` is wrong: the name is the key of its status, not a field beside it.
    #[test]
    fn the_error_for_a_status_beside_a_name_shows_the_right_form() {
        for fields in ["charge: c1, status: paid", "status: paid, invoice: i1"] {
            let text = format!(
                "title: Paid\nsteps:\n  - open: {{ charge: c1, asset: BTC, amount: 5 EUR }}\n  - expect: {{ {fields} }}\n"
            );
            let error = Script::parse("paid.yaml", &text).expect_err("`c1` is not a status").to_string();
            assert!(
                error.contains("is not a status; write a name and its status, `expect: { c1: paid }`"),
                "{error}"
            );
            assert!(error.contains("paid.yaml:4:"), "{error}");
        }
    }
}
