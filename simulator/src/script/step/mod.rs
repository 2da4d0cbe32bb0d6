//! The steps of a scenario. Each is a map with one key, or a keyword. Their documentation is the source of the
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
    chain::{Congest, Keep, Pay, Reorg, Replace, TransactionStep},
    object::{By, Cancel, Choose, Invoice, Item, Link, LinkCustomField, Open, Refund, Repeat, Send, Void},
    requests::{Expect, Expected, ExpectedResponse, Request, Until, Walk, WalkBy},
};
pub use crate::{
    api::{CustomFieldValue, Mine, NoticePolicy, Settings, Stall, Watcher},
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
    /// Sends a delivery again: `resend: d1`, `resend: { delivery: shop, status: failed }`.
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
    DoubleSpend(Shorthand<TransactionStep>),
    /// Replaces an unconfirmed transaction by fee: `replace: { tx: t1, as: t2, elsewhere: true }`.
    Replace(Replace),
    /// Drops a transaction from the mempool: `drop: t1`.
    Drop(Shorthand<TransactionStep>),
    /// Sends a dropped or displaced transaction again: `rebroadcast: t1`.
    Rebroadcast(Shorthand<TransactionStep>),
    /// Stops the blocks of a chain for a while: `stall: { asset: BTC, for: 2h }`.
    Stall(Stall),
    /// Removes free space from some of the future blocks: `congest: { asset: BTC, empty: 20, full: 30 }`.
    Congest(Congest),
    /// Sets the fault of a chain's watcher: `watcher: { asset: BTC, notices: late }`.
    Watcher(Watcher),

    /// Restarts the service, which replays its inputs: `restart`.
    Restart,
    /// Advances the clock: `wait: 30s`.
    Wait(At<Duration>),
    /// Advances the clock to a time: `until: { expiry: c1, offset: -1us }`.
    Until(Until),

    /// Sends any request to the API: `request: { path: "/v1/charges/${c1}", key: test, expect: { status: 404 } }`.
    Request(Request),
    /// Reads all pages of a list while new objects are created: `walk: { path: /v1/charges, per_page: 2, insert: 1 }`.
    Walk(Walk),
    /// Checks the state: `expect: { c1: paid, i1: open }`.
    Expect(Expect),
}

/// A step with a short form: a map, or a scalar if only one field is given.
#[derive(Clone, Debug)]
pub struct Shorthand<T>(pub T);

/// A step whose short form is a scalar.
pub trait FromShorthand: Sized {
    /// The type of the scalar.
    type Scalar: for<'de> Deserialize<'de> + JsonSchema;

    /// The key of the scalar in the map; `None` to always write the map.
    const KEY: Option<&'static str>;

    /// Creates the step from its short form.
    fn from_shorthand(scalar: At<Self::Scalar>) -> Self;
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

impl<T: Serialize + FromShorthand> Serialize for Shorthand<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let full = without_defaults(serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?);
        let short = T::KEY.filter(|_| full.as_object().is_some_and(|fields| fields.len() == 1));
        short.and_then(|key| full.get(key)).unwrap_or(&full).serialize(serializer)
    }
}

/// The short or the long form of a step.
enum ScalarOrMap<T> {
    Scalar(String),
    Map(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ScalarOrMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ScalarOrMap<T>, D::Error> {
        struct ScalarOrMapVisitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ScalarOrMapVisitor<T> {
            type Value = ScalarOrMap<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or a map")
            }

            fn visit_str<E>(self, text: &str) -> Result<ScalarOrMap<T>, E> {
                Ok(ScalarOrMap::Scalar(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScalarOrMap<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(ScalarOrMap::Map)
            }
        }

        deserializer.deserialize_any(ScalarOrMapVisitor(std::marker::PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + FromShorthand> Deserialize<'de> for Shorthand<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shorthand<T>, D::Error> {
        let form = At::<ScalarOrMap<T>>::deserialize(deserializer)?;
        match form.value {
            ScalarOrMap::Map(full) => Ok(Shorthand(full)),
            ScalarOrMap::Scalar(text) => {
                let text = serde::de::value::StringDeserializer::<D::Error>::new(text);
                let value = T::Scalar::deserialize(text).map_err(D::Error::custom)?;
                Ok(Shorthand(T::from_shorthand(At { value, span: form.span })))
            }
        }
    }
}

impl<T: JsonSchema + FromShorthand> JsonSchema for Shorthand<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scalar = generator.subschema_for::<T::Scalar>();
        let full = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [scalar, full] })
    }
}

/// Implements [`FromShorthand`] with the field that the scalar fills; the other fields get their defaults.
macro_rules! from_shorthand {
    ($type:ident { $field:ident $(.$part:ident)?: $scalar:ty, $($other:ident),* }) => {
        impl $crate::script::step::FromShorthand for $type {
            type Scalar = $scalar;

            const KEY: Option<&'static str> = Some(stringify!($field));

            fn from_shorthand(scalar: $crate::script::At<$scalar>) -> $type {
                $type { $field: scalar$(.$part)?, $($other: Default::default()),* }
            }
        }
    };
}
use from_shorthand;
