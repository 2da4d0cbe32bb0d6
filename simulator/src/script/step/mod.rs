//! The steps of a scenario. Each is a map with one key, or one word. Their documentation is the source of the
//! descriptions in the schema.

mod account;
mod chain;
mod object;
mod requests;

use std::{collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};

pub use self::{
    account::{Accept, Answers, Endpoint, Key, MerchantState, OpenAccount, Rate, Resend, Wallet},
    chain::{AtTransaction, Congest, Keep, Pay, Reorg, Replace},
    object::{By, Cancel, Choose, Invoice, Item, Link, LinkQuestion, Open, Refund, Repeat, Send, Void},
    requests::{Expect, Expected, ExpectedResponse, Request, Until, Walk, WalkBy},
};
pub use crate::{
    api::{LinkAnswer, Mine, Notices, Settings, Stall, Watcher},
    chain::FeeLevel,
};
use serde_json::Value;

use super::{
    typed::At,
    value::{Duration, Name},
};

/// An action, or an expectation.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Changes settings of the account: `account: { underpayment_tolerance: "2" }`.
    Account(Settings),
    /// Opens another account with its own wallets and keys: `open_account: bakery`.
    OpenAccount(Shorthand<OpenAccount>),
    /// Sets, replaces or removes a wallet: `wallet: { asset: BTC, remove: true }`.
    Wallet(Wallet),
    /// Sets the rate of a coin: `rate: { asset: BTC, currency: EUR, rate: "60000" }`, or `rate: off`.
    Rate(Rate),
    /// Creates an API key: `key: k1`.
    Key(Shorthand<Key>),
    /// Revokes a key that a step created: `revoke: k1`.
    Revoke(At<Name>),
    /// Adds a webhook endpoint at `https://NAME.sim/webhooks`: `endpoint: shop`.
    Endpoint(Shorthand<Endpoint>),
    /// Enables an endpoint: `enable: shop`.
    Enable(At<Name>),
    /// Disables an endpoint: `disable: shop`.
    Disable(At<Name>),
    /// Removes an endpoint: `remove: shop`.
    Remove(At<Name>),
    /// Gives an endpoint a new secret: `rotate: shop`.
    Rotate(At<Name>),
    /// Sends a test event to an endpoint: `test: shop`.
    Test(At<Name>),
    /// Posts a delivery again: `resend: d1`, `resend: { delivery: shop, status: failed }`.
    Resend(Shorthand<Resend>),
    /// Sets the responses of merchants: `merchant: { shop: down }`, `merchant: { shop: [500, timeout, 200] }`.
    Merchant(BTreeMap<String, At<Answers>>),

    /// Opens a charge through the API: `open: { charge: c1, asset: BTC, amount: 49.90 EUR }`.
    Open(Open),
    /// Repeats the request that opened a charge, with its `Idempotency-Key`: `repeat: c1`.
    Repeat(Shorthand<Repeat>),
    /// Creates a payment link through the API: `link: { link: l1, amount: 20.00 EUR }`.
    Link(Shorthand<Link>),
    /// Issues an invoice through the API: `invoice: { invoice: i1, amount: 99.00 EUR, customer_email: ann@example.com }`.
    Invoice(Invoice),
    /// E-mails an invoice: `send: i1`.
    Send(Shorthand<Send>),
    /// Opens the hosted page of an invoice or a payment link, as a customer: `view: i1`.
    View(At<Name>),
    /// Chooses a coin on a hosted page, as a customer: `choose: { invoice: i1, asset: BTC, charge: c1 }`.
    Choose(Choose),
    /// Cancels a charge: `cancel: c1`.
    Cancel(Shorthand<Cancel>),
    /// Records a refund: `refund: { charge: c1, amount: "0.0001" }`.
    Refund(Refund),
    /// Accepts a late payment in the dashboard: `accept: c1`.
    Accept(Shorthand<Accept>),
    /// Voids an invoice: `void: i1`.
    Void(Shorthand<Void>),

    /// Pays on the chain, as a customer: `pay: c1`, `pay: { charge: c1, share: 0.5 }`.
    Pay(Shorthand<Pay>),
    /// Advances the clock until this number of blocks was mined: `mine: { asset: BTC, blocks: 2 }`.
    Mine(Shorthand<Mine>),
    /// Replaces the newest blocks: `reorg: { asset: BTC, depth: 1 }`.
    Reorg(Reorg),
    /// Mines a conflicting transaction in the next block: `double_spend: t1`.
    DoubleSpend(Shorthand<AtTransaction>),
    /// Replaces an unconfirmed transaction by fee: `replace: { tx: t1, as: t2, elsewhere: true }`.
    Replace(Replace),
    /// Drops a transaction from the mempool: `drop: t1`.
    Drop(Shorthand<AtTransaction>),
    /// Sends a dropped or displaced transaction again: `rebroadcast: t1`.
    Rebroadcast(Shorthand<AtTransaction>),
    /// Stops the blocks of a chain for a while: `stall: { asset: BTC, for: 2h }`.
    Stall(Stall),
    /// Removes free space from some of the future blocks: `congest: { asset: BTC, empty: 20, full: 30 }`.
    Congest(Congest),
    /// Sets how a chain's notices are delivered: `watcher: { asset: BTC, notices: late }`.
    Watcher(Watcher),

    /// Restarts the service, which replays its inputs: `restart`.
    Restart,
    /// Advances the clock: `wait: 30s`.
    Wait(At<Duration>),
    /// Advances the clock to a moment: `until: { expiry: c1, offset: -1us }`.
    Until(Until),

    /// Sends any request to the API: `request: { path: "/v1/charges/${c1}", key: test, expect: { status: 404 } }`.
    Request(Request),
    /// Reads all pages of a list while new objects are created: `walk: { path: /v1/charges, per_page: 2, insert: 1 }`.
    Walk(Walk),
    /// Checks the state: `expect: { c1: paid, i1: open }`.
    Expect(Expect),
}

/// A step with a short form: its map, or one word if only the name is given.
#[derive(Clone, Debug)]
pub struct Shorthand<T>(pub T);

/// A step with a one-word short form.
pub trait FromWord: Sized {
    /// The type of the word.
    type Word: for<'de> Deserialize<'de> + JsonSchema;

    /// The key of the word, to write the short form; `None` always writes the map.
    const KEY: Option<&'static str>;

    /// Creates the step from its short form.
    fn from_word(word: At<Self::Word>) -> Self;
}

/// Returns `true` if a field has its default value, which is omitted.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Removes fields that are null or false. The body of a request can itself be `false`.
pub(super) fn without_defaults(step: Value) -> Value {
    match step {
        Value::Object(fields) => {
            let is_default = |name: &str, value: &Value| {
                value.is_null() || (*value == Value::Bool(false) && name != "body")
            };
            Value::Object(fields.into_iter().filter(|(name, value)| !is_default(name, value)).collect())
        }
        other => other,
    }
}

impl<T: Serialize + FromWord> Serialize for Shorthand<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let full = without_defaults(serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?);
        let word = T::KEY.filter(|_| full.as_object().is_some_and(|fields| fields.len() == 1));
        word.and_then(|key| full.get(key)).unwrap_or(&full).serialize(serializer)
    }
}

enum WordOrMap<T> {
    Word(String),
    Map(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WordOrMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WordOrMap<T>, D::Error> {
        struct Either<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = WordOrMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a map")
            }

            fn visit_str<E>(self, word: &str) -> Result<WordOrMap<T>, E> {
                Ok(WordOrMap::Word(word.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordOrMap<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(WordOrMap::Map)
            }
        }

        deserializer.deserialize_any(Either(std::marker::PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + FromWord> Deserialize<'de> for Shorthand<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shorthand<T>, D::Error> {
        let either = At::<WordOrMap<T>>::deserialize(deserializer)?;
        match either.value {
            WordOrMap::Map(full) => Ok(Shorthand(full)),
            WordOrMap::Word(word) => {
                let plain = serde::de::value::StringDeserializer::<D::Error>::new(word);
                let value = T::Word::deserialize(plain).map_err(D::Error::custom)?;
                Ok(Shorthand(T::from_word(At { value, span: either.span })))
            }
        }
    }
}

impl<T: JsonSchema + FromWord> JsonSchema for Shorthand<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let word = generator.subschema_for::<T::Word>();
        let full = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [word, full] })
    }
}

/// Implements [`FromWord`] with the field that the word fills; the other fields get no value.
macro_rules! from_word {
    ($type:ident { $field:ident $(.$part:ident)?: $word:ty, $($other:ident),* }) => {
        impl $crate::script::step::FromWord for $type {
            type Word = $word;

            const KEY: Option<&'static str> = Some(stringify!($field));

            fn from_word(word: $crate::script::At<$word>) -> $type {
                $type { $field: word$(.$part)?, $($other: Default::default()),* }
            }
        }
    };
}
use from_word;
