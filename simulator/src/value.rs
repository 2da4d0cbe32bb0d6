//! The small values of scenarios and of requests: names, prices, durations, times. Each is one YAML scalar; an invalid
//! one is reported with its position.

use std::{borrow::Cow, fmt};

use reference_core::{
    asset::{Asset, Currency},
    event::EventType,
    mode::Mode,
    money::{Fiat, Rate},
    outbox::DeliveryState,
    time::{Span, Timestamp},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, json};

/// Returns the names of the event types.
fn event_types() -> [&'static str; EventType::ALL.len()] {
    EventType::ALL.map(EventType::as_str)
}

/// A value that is one YAML scalar.
trait ScalarValue: Sized {
    /// The name of its JSON schema.
    const TITLE: &'static str;

    fn read(text: &str) -> Result<Self, String>;

    /// Returns the scalar as written in a file.
    fn to_text(&self) -> Cow<'_, str>;

    fn schema() -> Value;
}

macro_rules! scalars {
    ($($type:ident),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                $type::read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_text())
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $type::TITLE.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let schema = $type::schema();
                schema.try_into().expect("a schema is an object")
            }
        }
    )*};
}

scalars!(
    Name,
    Price,
    Duration,
    Offset,
    Moment,
    Amount,
    Share,
    FiatRate,
    AssetCode,
    CurrencyCode,
    ModeName,
    EventTypeName,
    DeliveryStatus
);

/// The name of an object in a file and in its transcript: `c1`, `shop`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(pub String);

impl ScalarValue for Name {
    const TITLE: &'static str = "Name";

    fn read(text: &str) -> Result<Name, String> {
        let mut bytes = text.bytes();
        let starts_with_letter = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase());
        let is_rest_valid =
            bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte));
        if starts_with_letter && is_rest_valid && text.len() <= 40 {
            return Ok(Name(text.to_owned()));
        }
        Err(format!(
            "`{text}` is not a valid name; start with a lower-case letter, followed by lower-case letters, digits, `_` or `-`"
        ))
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,39}$", "description": "A name, such as c1 or shop." })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An amount of money in a currency: `49.90 EUR`.
#[derive(Clone, Debug)]
pub struct Price {
    /// The amount, as written.
    pub amount: String,
    /// The currency.
    pub currency: Currency,
}

impl ScalarValue for Price {
    const TITLE: &'static str = "Price";

    fn read(text: &str) -> Result<Price, String> {
        let (amount, currency) =
            text.split_once(' ').ok_or_else(|| format!("`{text}` is not a price; write `49.90 EUR`"))?;
        Fiat::parse(amount).map_err(|error| format!("`{amount}` {error}"))?;
        Ok(Price { amount: amount.to_owned(), currency: currency_of(currency)? })
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.to_string().into()
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": r"^[0-9]+(\.[0-9]{1,2})? [A-Z]{3}$",
            "description": "An amount and its currency: 49.90 EUR.",
        })
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount, self.currency)
    }
}

fn currency_of(code: &str) -> Result<Currency, String> {
    Currency::parse(code).ok_or_else(|| {
        let codes = Currency::ALL.iter().map(|currency| currency.code());
        let hint = did_you_mean(code, codes).unwrap_or_else(|| "try EUR or USD".to_owned());
        format!("`{code}` is not a supported currency; {hint}")
    })
}

/// A length of time: `250us`, `40ms`, `30s`, `5m`, `2h`, `10d`, `1h30m`.
#[derive(Clone, Copy, Debug)]
pub struct Duration(pub Span);

impl ScalarValue for Duration {
    const TITLE: &'static str = "Duration";

    fn read(text: &str) -> Result<Duration, String> {
        Span::parse(text).map(Duration).ok_or_else(|| {
            format!("`{text}` is not a duration; write 250us, 40ms, 30s, 5m, 2h, 10d or a sum such as 1h30m")
        })
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.to_string().into()
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": "^([0-9]+(us|ms|s|m|h|d))+$",
            "description": "A length of time: 250us 40ms 30s 5m 2h 10d 1h30m.",
        })
    }
}

/// A time difference before or after a moment: `-1us`, `+5m`, `0s`.
#[derive(Clone, Copy, Debug)]
pub enum Offset {
    /// A time before.
    Before(Span),
    /// The same time or later.
    After(Span),
}

impl Offset {
    /// Returns the time at this offset from `moment`.
    pub fn from(self, moment: Timestamp) -> Timestamp {
        match self {
            Offset::Before(span) => moment.minus(span),
            Offset::After(span) => moment.plus(span),
        }
    }
}

impl ScalarValue for Offset {
    const TITLE: &'static str = "Offset";

    fn read(text: &str) -> Result<Offset, String> {
        let (sign, span) = match text.split_at_checked(1) {
            Some(("-", span)) => (Offset::Before as fn(Span) -> Offset, span),
            Some(("+", span)) => (Offset::After as fn(Span) -> Offset, span),
            _ => (Offset::After as fn(Span) -> Offset, text),
        };
        Span::parse(span).map(sign).ok_or_else(|| format!("`{text}` is not an offset; write -1us, +5m or 0s"))
    }

    fn to_text(&self) -> Cow<'_, str> {
        match self {
            Offset::Before(span) => format!("-{span}").into(),
            Offset::After(span) => format!("+{span}").into(),
        }
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": "^[+-]?([0-9]+(us|ms|s|m|h|d))+$",
            "description": "Time before or after: -1us +5m 0s.",
        })
    }
}

/// A point in time: `2026-01-05T09:00:00Z`.
#[derive(Clone, Copy, Debug)]
pub struct Moment(pub Timestamp);

impl ScalarValue for Moment {
    const TITLE: &'static str = "Moment";

    fn read(text: &str) -> Result<Moment, String> {
        Timestamp::parse(text).map(Moment).ok_or_else(|| {
            format!("`{text}` is not a time; write 2026-01-05T09:00:00Z, with six decimals or none")
        })
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.to_string().into()
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?Z$",
            "description": "A moment in UTC: 2026-01-05T09:00:00Z.",
        })
    }
}

const DECIMAL: &str = r"^[0-9]+(\.[0-9]+)?$";

fn decimal_schema(description: &str) -> Value {
    json!({ "type": ["string", "number"], "pattern": DECIMAL, "minimum": 0, "description": description })
}

/// Returns `true` for digits with at most one decimal point between them.
fn is_decimal(text: &str) -> bool {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole) && rest.is_none_or(is_digits)
}

/// An amount of coins, as written. The coin is in another field, so the world checks the number of decimals.
#[derive(Clone, Debug)]
pub struct Amount(pub String);

impl ScalarValue for Amount {
    const TITLE: &'static str = "Amount";

    fn read(text: &str) -> Result<Amount, String> {
        if is_decimal(text) {
            return Ok(Amount(text.to_owned()));
        }
        Err(format!("`{text}` is not an amount; write digits such as 0.00083167"))
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        decimal_schema("An amount of coins: 0.00083167.")
    }
}

/// A share of the remaining amount: `0.5`.
#[derive(Clone, Debug)]
pub struct Share(pub String);

impl ScalarValue for Share {
    const TITLE: &'static str = "Share";

    fn read(text: &str) -> Result<Share, String> {
        if is_decimal(text) {
            return Ok(Share(text.to_owned()));
        }
        Err(format!("`{text}` is not a share; write a decimal fraction such as 0.5"))
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        decimal_schema("A share of the remaining amount: 0.5.")
    }
}

/// A rate in fiat money per coin, or `off`.
#[derive(Clone, Debug)]
pub struct FiatRate(pub Option<String>);

impl ScalarValue for FiatRate {
    const TITLE: &'static str = "FiatRate";

    fn read(text: &str) -> Result<FiatRate, String> {
        if text == "off" {
            return Ok(FiatRate(None));
        }
        Rate::parse(text).map_err(|error| format!("`{text}` {error}"))?;
        Ok(FiatRate(Some(text.to_owned())))
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.as_deref().unwrap_or("off").into()
    }

    fn schema() -> Value {
        json!({
            "anyOf": [{ "const": "off" }, { "type": ["string", "number"], "pattern": DECIMAL, "minimum": 0 }],
            "description": "Fiat money per coin, or off if no rate is available.",
        })
    }
}

/// The code of a coin.
#[derive(Clone, Copy, Debug)]
pub struct AssetCode(pub Asset);

impl ScalarValue for AssetCode {
    const TITLE: &'static str = "Asset";

    fn read(text: &str) -> Result<AssetCode, String> {
        Asset::parse(text).map(AssetCode).ok_or_else(|| {
            let codes = || Asset::ALL.iter().map(|asset| asset.code());
            let allowed = || format!("allowed: {}", codes().collect::<Vec<_>>().join(", "));
            format!("`{text}` is not a known coin; {}", did_you_mean(text, codes()).unwrap_or_else(allowed))
        })
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.code().into()
    }

    fn schema() -> Value {
        let codes: Vec<_> = Asset::ALL.iter().map(|asset| asset.code()).collect();
        json!({ "enum": codes, "description": "A coin on one network." })
    }
}

/// The code of a currency.
#[derive(Clone, Copy, Debug)]
pub struct CurrencyCode(pub Currency);

impl ScalarValue for CurrencyCode {
    const TITLE: &'static str = "Currency";

    fn read(text: &str) -> Result<CurrencyCode, String> {
        currency_of(text).map(CurrencyCode)
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.code().into()
    }

    fn schema() -> Value {
        let codes: Vec<_> = Currency::ALL.iter().map(|currency| currency.code()).collect();
        json!({ "enum": codes, "description": "A fiat currency." })
    }
}

/// The name of a mode: `live` or `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeName(pub Mode);

impl From<ModeName> for Mode {
    fn from(ModeName(mode): ModeName) -> Mode {
        mode
    }
}

impl ScalarValue for ModeName {
    const TITLE: &'static str = "Mode";

    fn read(text: &str) -> Result<ModeName, String> {
        Mode::parse(text)
            .map(ModeName)
            .ok_or_else(|| format!("`{text}` is not a mode; allowed: `live` or `test`"))
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        json!({ "enum": ["live", "test"], "description": "Real coins or test networks." })
    }
}

/// One of the 13 event types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTypeName(pub EventType);

impl ScalarValue for EventTypeName {
    const TITLE: &'static str = "EventType";

    fn read(text: &str) -> Result<EventTypeName, String> {
        EventType::parse(text).map(EventTypeName).ok_or_else(|| {
            let hint = did_you_mean(text, event_types()).unwrap_or_else(|| "try `charge.paid`".to_owned());
            format!("`{text}` is not an event type; {hint}")
        })
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.as_str().into()
    }

    fn schema() -> Value {
        json!({ "enum": event_types(), "description": "What happened to a charge or an invoice." })
    }
}

/// The status of a delivery, as in the delivery log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryStatus(pub &'static str);

impl ScalarValue for DeliveryStatus {
    const TITLE: &'static str = "DeliveryStatus";

    fn read(text: &str) -> Result<DeliveryStatus, String> {
        let statuses = DeliveryState::NAMES;
        let known = statuses.into_iter().find(|status| *status == text);
        known.map(DeliveryStatus).ok_or_else(|| {
            format!("`{text}` is not a status of a delivery; allowed: {}", statuses.join(", "))
        })
    }

    fn to_text(&self) -> Cow<'_, str> {
        self.0.into()
    }

    fn schema() -> Value {
        json!({ "enum": DeliveryState::NAMES, "description": "The status of a delivery." })
    }
}

/// Returns ``did you mean `…`?`` with the most similar of the known names, if one is similar enough.
pub(crate) fn did_you_mean<'a>(unknown: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // A third of the characters and one more may be wrong.
    let length = unknown.chars().count();
    let distance_max = (length / 3).max(1) + 1;
    names
        .into_iter()
        // The distance is at least the difference of the lengths, and computing it takes time in their product.
        .filter(|name| name.chars().count().abs_diff(length) <= distance_max)
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .filter(|(distance, _)| *distance <= distance_max)
        .min()
        .map(|(_, name)| format!("did you mean `{name}`?"))
}
