//! Values in requests: account settings, values of custom fields, and the keywords of reorganisations and watchers.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use crate::value::CurrencyCode;

/// The settings of an account in the step `account` and in `PATCH /sandbox/accounts/{id}`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The percentage below the amount due that still counts as paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underpayment_tolerance: Option<String>,
    /// The percentage above the amount due beyond which a charge is overpaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overpayment_threshold: Option<String>,
    /// The currency of prices without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_currency: Option<CurrencyCode>,
    /// The account's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name that customers see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The members, who may receive mail in test mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
}

/// The customer's value of a custom field of a payment link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LinkAnswer")]
pub struct CustomFieldValue {
    /// The label of the custom field.
    pub label: String,
    /// The value.
    pub value: String,
}

/// The transactions of the replaced blocks that the new blocks contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepRequest<T> {
    /// All transactions.
    All,
    /// None: all return to the mempool.
    #[default]
    None,
    /// These transactions.
    #[serde(untagged)]
    Only(Vec<T>),
}

impl<T> KeepRequest<T> {
    /// Returns `true` if no transaction is kept.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, KeepRequest::None)
    }

    /// Parses `all` or `none`.
    pub(super) fn parse(keyword: &str) -> Option<KeepRequest<T>> {
        match keyword {
            "all" => Some(KeepRequest::All),
            "none" => Some(KeepRequest::None),
            _ => None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for KeepRequest<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeepRequest<T>, D::Error> {
        struct KeepVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for KeepVisitor<T> {
            type Value = KeepRequest<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`all`, `none` or a list of transactions")
            }

            fn visit_str<E: de::Error>(self, keyword: &str) -> Result<KeepRequest<T>, E> {
                KeepRequest::parse(keyword).ok_or_else(|| {
                    E::custom(format!("`{keyword}` is neither `all`, `none` nor a list of transactions"))
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<KeepRequest<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(KeepRequest::Only)
            }
        }

        deserializer.deserialize_any(KeepVisitor(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for KeepRequest<T> {
    fn schema_name() -> Cow<'static, str> {
        "Keep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<Vec<T>>();
        json_schema!({ "anyOf": [{ "enum": ["all", "none"] }, list] })
    }
}

/// The delivery of a watcher's notices to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Notices")]
pub enum NoticePolicy {
    /// Immediately.
    Up,
    /// Only after the next change of this setting.
    Late,
    /// Only after the next change of this setting, and in reverse order.
    Reversed,
    /// Not at all; after the next change of this setting, the watcher reports every transaction again.
    Lost,
    /// Each twice.
    Twice,
}

impl NoticePolicy {
    pub(super) const ALL: [NoticePolicy; 5] = [
        NoticePolicy::Up,
        NoticePolicy::Late,
        NoticePolicy::Reversed,
        NoticePolicy::Lost,
        NoticePolicy::Twice,
    ];

    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            NoticePolicy::Up => "up",
            NoticePolicy::Late => "late",
            NoticePolicy::Reversed => "reversed",
            NoticePolicy::Lost => "lost",
            NoticePolicy::Twice => "twice",
        }
    }

    /// Parses the name in the API.
    pub(super) fn parse(name: &str) -> Option<NoticePolicy> {
        NoticePolicy::ALL.into_iter().find(|policy| policy.as_str() == name)
    }
}
