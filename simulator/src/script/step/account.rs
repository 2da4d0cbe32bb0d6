//! Steps of the account owner in the dashboard, and the behaviour of merchants.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::from_shorthand;
use crate::script::{
    At,
    value::{AssetCode, CurrencyCode, DeliveryStatus, EventTypeName, FiatRate, ModeName, Name},
};

/// Another account, with its own wallets and keys.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAccount {
    /// The name, which is also the id of the account.
    pub account: At<Name>,
    /// Percent below the amount due that still count as paid.
    pub underpayment_tolerance: Option<String>,
    /// Percent above the amount due from which a charge is overpaid.
    pub overpayment_threshold: Option<String>,
}

from_shorthand!(OpenAccount { account: Name, underpayment_tolerance, overpayment_threshold });

/// A wallet to set or remove.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wallet {
    /// The coin.
    pub asset: AssetCode,
    /// The mode; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The extended public key.
    pub key: Option<String>,
    /// The address type of the key, if its prefix does not determine it: `p2wpkh`, `p2sh-p2wpkh`, `p2pkh`.
    pub script: Option<String>,
    /// The addresses, for coins without extended keys.
    pub addresses: Option<Vec<String>>,
    /// Removes the wallet.
    #[serde(default)]
    pub remove: bool,
    /// The HTTP status of the expected refusal, such as 422.
    pub refused: Option<u16>,
}

/// The rate of a coin in a currency.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The coin.
    pub asset: AssetCode,
    /// The currency.
    pub currency: CurrencyCode,
    /// Fiat money per coin, or `off`.
    pub rate: FiatRate,
}

/// A new API key.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The name in the file.
    pub name: At<Name>,
    /// The mode; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The account; the first one by default.
    pub account: Option<At<Name>>,
}

from_shorthand!(Key { name: Name, mode, account });

/// A new webhook endpoint.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// The name, which is also its merchant unless the URL names another.
    pub name: At<Name>,
    /// The mode; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The event types to deliver; all by default.
    pub events: Option<Vec<EventTypeName>>,
    /// The URL; `https://NAME.sim/webhooks` by default.
    pub url: Option<String>,
    /// The account; the first one by default.
    pub account: Option<At<Name>>,
    /// The HTTP status of the expected refusal, such as 422.
    pub refused: Option<u16>,
}

from_shorthand!(Endpoint { name: Name, mode, events, url, account, refused });

/// A delivery to send again.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resend {
    /// The delivery; for an endpoint, its newest one.
    pub delivery: At<Name>,
    /// The status of the endpoint's delivery; by default any.
    pub status: Option<DeliveryStatus>,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_shorthand!(Resend { delivery: Name, status, refused });

/// A late payment to accept.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The charge.
    pub charge: At<Name>,
    /// The transaction; the only one by default.
    pub tx: Option<At<Name>>,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_shorthand!(Accept { charge: Name, tx, refused });

/// The responses of a merchant: a list of responses to the next attempts, which may be empty, and a behaviour
/// after them, which is `up` by default.
#[derive(Clone, Debug)]
pub struct Answers {
    /// The responses to the next attempts, in order.
    pub first: Vec<String>,
    /// The behaviour after them.
    pub then: MerchantState,
}

/// The behaviour of a merchant: `up`, `down`, `slow`, `lost`, `twice`, `lagging`, `redirect`, `private` or a status.
#[derive(Clone, Debug)]
pub struct MerchantState(pub String);

impl MerchantState {
    const NAMES: [&str; 8] = ["up", "down", "slow", "lost", "twice", "lagging", "redirect", "private"];

    fn read(text: &str) -> Result<MerchantState, String> {
        if MerchantState::NAMES.contains(&text) || is_status(text) {
            return Ok(MerchantState(text.to_owned()));
        }
        Err(format!(
            "`{text}` is not a behaviour of a merchant; allowed: {} or a status",
            MerchantState::NAMES.join(", ")
        ))
    }
}

fn is_status(text: &str) -> bool {
    text.len() == 3 && text.parse().is_ok_and(|status: u16| (100..600).contains(&status))
}

impl Serialize for Answers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.first.as_slice(), self.then.0.as_str()) {
            ([], then) => serializer.serialize_str(then),
            (first, "up") => first.serialize(serializer),
            (first, then) => {
                FullAnswers { answers: first.to_vec(), then: then.to_owned() }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Answers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Answers, D::Error> {
        struct AnswersVisitor;

        impl<'de> Visitor<'de> for AnswersVisitor {
            type Value = Answers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a behaviour, or a list of responses")
            }

            fn visit_str<E: serde::de::Error>(self, behaviour: &str) -> Result<Answers, E> {
                let then = MerchantState::read(behaviour).map_err(E::custom)?;
                Ok(Answers { first: Vec::new(), then })
            }

            fn visit_u64<E: serde::de::Error>(self, status: u64) -> Result<Answers, E> {
                self.visit_str(&status.to_string())
            }

            fn visit_i64<E: serde::de::Error>(self, status: i64) -> Result<Answers, E> {
                self.visit_str(&status.to_string())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Answers, A::Error> {
                let mut first = Vec::new();
                while let Some(response) = list.next_element::<String>()? {
                    first.push(response);
                }
                Ok(Answers { first, then: MerchantState("up".to_owned()) })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Answers, A::Error> {
                let full = FullAnswers::deserialize(MapAccessDeserializer::new(map))?;
                let then = MerchantState::read(&full.then).map_err(A::Error::custom)?;
                Ok(Answers { first: full.answers, then })
            }
        }

        deserializer.deserialize_any(AnswersVisitor)
    }
}

/// The long form of [`Answers`].
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FullAnswers {
    answers: Vec<String>,
    then: String,
}

impl JsonSchema for Answers {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Answers".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let status = json_schema!({ "type": "integer", "minimum": 100, "maximum": 599 });
        let state = json_schema!({ "anyOf": [{ "enum": MerchantState::NAMES }, status] });
        let response = json_schema!({ "anyOf": [{ "type": "string" }, status] });
        let list = json_schema!({ "type": "array", "items": response });
        let full = json_schema!({
            "type": "object",
            "properties": { "answers": list, "then": state },
            "required": ["answers", "then"],
            "additionalProperties": false,
        });
        json_schema!({
            "description": "up, down, slow, lost, twice, lagging, redirect, private or a status; or a list with one response per attempt.",
            "anyOf": [state, list, full],
        })
    }
}
