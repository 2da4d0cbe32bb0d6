//! The values of requests that are more than one word, or a word of a closed list.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use crate::value::CurrencyCode;

/// Settings of the account, as the step `account` and `PATCH /sandbox/accounts/{id}` take them.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Percent below the amount due that still counts as paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underpayment_tolerance: Option<String>,
    /// Percent above the amount due from which a charge is overpaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overpayment_threshold: Option<String>,
    /// The currency where none is given.
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

/// The answer to a question of a payment link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkAnswer {
    /// The question.
    pub label: String,
    /// The customer's answer.
    pub value: String,
}

/// The transactions of the replaced blocks that the new ones hold.
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
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, KeepRequest::None)
    }

    pub(super) fn parse(word: &str) -> Option<KeepRequest<T>> {
        match word {
            "all" => Some(KeepRequest::All),
            "none" => Some(KeepRequest::None),
            _ => None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for KeepRequest<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeepRequest<T>, D::Error> {
        struct KeepForms<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for KeepForms<T> {
            type Value = KeepRequest<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`all`, `none` or a list of transactions")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<KeepRequest<T>, E> {
                KeepRequest::parse(word).ok_or_else(|| {
                    E::custom(format!("`{word}` is neither `all`, `none` nor a list of transactions"))
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<KeepRequest<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(KeepRequest::Only)
            }
        }

        deserializer.deserialize_any(KeepForms(PhantomData))
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

/// The treatment of a watcher's notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notices {
    /// They come at once.
    Up,
    /// They wait until the state changes.
    Late,
    /// They wait, and then come last first.
    Reversed,
    /// They are lost; when the state changes, the watcher reads every transaction again.
    Lost,
    /// Each comes twice.
    Twice,
}

impl Notices {
    pub(super) const ALL: [Notices; 5] =
        [Notices::Up, Notices::Late, Notices::Reversed, Notices::Lost, Notices::Twice];

    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Notices::Up => "up",
            Notices::Late => "late",
            Notices::Reversed => "reversed",
            Notices::Lost => "lost",
            Notices::Twice => "twice",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Notices> {
        Notices::ALL.into_iter().find(|notices| notices.as_str() == word)
    }
}
