//! The steps of a scenario. Each is a map of one key, or one word; what they mean is written once, here, and the
//! schema and the README repeat it.

mod account;
mod chain;
mod object;
mod talk;

use std::{collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};

pub use self::{
    account::{Accept, Answers, Endpoint, Key, MerchantState, OpenAccount, Rate, Settings, Wallet},
    chain::{
        Congest, DoubleSpend, Drop, Keep, Mine, Notices, Pay, Rebroadcast, Reorg, Replace, Stall, Watcher,
    },
    object::{
        By, Cancel, Choose, Invoice, Item, Link, LinkAnswer, LinkQuestion, Open, Refund, Repeat, Send, Void,
    },
    talk::{Expect, Expected, Holds, Request, Until, Walk, WalkBy},
};
pub use crate::chain::FeeLevel;
use serde_json::Value;

use super::{
    typed::At,
    value::{Duration, Name},
};

/// One thing that happens, or that must hold.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Changes settings of the account: `account: { underpayment_tolerance: "2" }`.
    Account(Settings),
    /// Opens another account, with wallets and keys of its own: `open_account: bakery`.
    OpenAccount(Brief<OpenAccount>),
    /// Sets, replaces or removes a wallet: `wallet: { asset: BTC, remove: true }`.
    Wallet(Wallet),
    /// Sets the rate of a coin: `rate: { asset: BTC, currency: EUR, rate: "60000" }`, or `rate: off`.
    Rate(Rate),
    /// Makes an API key: `key: k1`.
    Key(Brief<Key>),
    /// Revokes a key that a step made: `revoke: k1`.
    Revoke(At<Name>),
    /// Adds a webhook endpoint at `https://NAME.sim/webhooks`: `endpoint: shop`.
    Endpoint(Brief<Endpoint>),
    /// Switches an endpoint on again: `enable: shop`.
    Enable(At<Name>),
    /// Switches an endpoint off: `disable: shop`.
    Disable(At<Name>),
    /// Removes an endpoint: `remove: shop`.
    Remove(At<Name>),
    /// Gives an endpoint a new secret: `rotate: shop`.
    Rotate(At<Name>),
    /// Sends a test event to an endpoint: `test: shop`.
    Test(At<Name>),
    /// Posts a delivery again: `resend: d1`.
    Resend(At<Name>),
    /// Sets the answers of merchants from now on: `merchant: { shop: down }`, `merchant: { shop: [500, timeout,
    /// 200] }`.
    Merchant(BTreeMap<String, At<Answers>>),

    /// Opens a charge through the API: `open: { charge: c1, asset: BTC, amount: 49.90 EUR }`.
    Open(Open),
    /// Sends the request that opened a charge again, with its `Idempotency-Key`: `repeat: c1`.
    Repeat(Brief<Repeat>),
    /// Makes a payment link through the API: `link: { link: l1, amount: 20.00 EUR }`.
    Link(Brief<Link>),
    /// Issues an invoice through the API: `invoice: { invoice: i1, amount: 99.00 EUR, customer_email: ann@example.com }`.
    Invoice(Invoice),
    /// E-mails an invoice: `send: i1`.
    Send(Brief<Send>),
    /// A customer opens the hosted page of an invoice or a payment link: `view: i1`.
    View(At<Name>),
    /// A customer picks a coin on a hosted page: `choose: { invoice: i1, asset: BTC, charge: c1 }`.
    Choose(Choose),
    /// Cancels a charge: `cancel: c1`.
    Cancel(Brief<Cancel>),
    /// Records money sent back: `refund: { charge: c1, amount: "0.0001" }`.
    Refund(Refund),
    /// Accepts a late payment in the dashboard: `accept: c1`.
    Accept(Brief<Accept>),
    /// Withdraws an invoice: `void: i1`.
    Void(Brief<Void>),

    /// A customer pays on the chain: `pay: c1`, `pay: { charge: c1, share: 0.5 }`.
    Pay(Brief<Pay>),
    /// The clock moves until so many blocks have come: `mine: { asset: BTC, blocks: 2 }`.
    Mine(Brief<Mine>),
    /// Replaces the last blocks by others: `reorg: { asset: BTC, depth: 1 }`.
    Reorg(Reorg),
    /// The next block holds a transaction that spends the same coins elsewhere: `double_spend: t1`.
    DoubleSpend(Brief<DoubleSpend>),
    /// Replaces a transaction by fee, while no block holds it: `replace: { tx: t1, as: t2, elsewhere: true }`.
    Replace(Replace),
    /// The mempool forgets a transaction: `drop: t1`.
    Drop(Brief<Drop>),
    /// A transaction that was dropped or displaced is sent again: `rebroadcast: t1`.
    Rebroadcast(Brief<Rebroadcast>),
    /// No block comes for a while: `stall: { asset: BTC, for: 2h }`.
    Stall(Stall),
    /// Some of the blocks to come have no room: `congest: { asset: BTC, empty: 20, full: 30 }`.
    Congest(Congest),
    /// Sets the treatment of a chain's notices: `watcher: { asset: BTC, notices: late }`.
    Watcher(Watcher),

    /// The service stops and starts again from what it recorded: `restart`.
    Restart,
    /// Time passes: `wait: 30s`.
    Wait(At<Duration>),
    /// Time passes up to a moment: `until: { expiry: c1, offset: -1us }`.
    Until(Until),

    /// Any request to the API: `request: { path: "/v1/charges/${c1}", key: test, expect: { status: 404 } }`.
    Request(Request),
    /// Reads all pages of a list while new objects are created: `walk: { path: /v1/charges, per_page: 2, insert: 1 }`.
    Walk(Walk),
    /// Checks the state: `expect: { c1: paid, i1: open }`.
    Expect(Expect),
}

/// A step's map, or one word where only the name has to be said.
#[derive(Clone, Debug)]
pub struct Brief<T>(pub T);

/// A step that one word can stand for.
pub trait FromWord: Sized {
    /// The values that the word may have.
    type Word: for<'de> Deserialize<'de> + JsonSchema;

    /// The key that the word stands for, where a file is written with it; `None` writes the whole map.
    const KEY: Option<&'static str>;

    /// The step that says no more than this.
    fn from_word(word: At<Self::Word>) -> Self;
}

/// A field that goes without saying.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The fields of a step that are said: what is null or false goes without saying.
pub(super) fn said(step: Value) -> Value {
    match step {
        Value::Object(fields) => {
            let said =
                fields.into_iter().filter(|(_, value)| !value.is_null() && *value != Value::Bool(false));
            Value::Object(said.collect())
        }
        other => other,
    }
}

impl<T: Serialize + FromWord> Serialize for Brief<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let full = said(serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?);
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

impl<'de, T: Deserialize<'de> + FromWord> Deserialize<'de> for Brief<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Brief<T>, D::Error> {
        let either = At::<WordOrMap<T>>::deserialize(deserializer)?;
        match either.value {
            WordOrMap::Map(full) => Ok(Brief(full)),
            WordOrMap::Word(word) => {
                let plain = serde::de::value::StringDeserializer::<D::Error>::new(word);
                let value = T::Word::deserialize(plain).map_err(D::Error::custom)?;
                Ok(Brief(T::from_word(At { value, span: either.span })))
            }
        }
    }
}

impl<T: JsonSchema + FromWord> JsonSchema for Brief<T> {
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

/// Says which field the one word fills; the others are not said.
macro_rules! from_word {
    ($type:ident { $field:ident: $word:ty, $($other:ident),* }) => {
        impl $crate::script::step::FromWord for $type {
            type Word = $word;

            const KEY: Option<&'static str> = Some(stringify!($field));

            fn from_word(word: $crate::script::At<$word>) -> $type {
                $type { $field: word, $($other: Default::default()),* }
            }
        }
    };
}
use from_word;
