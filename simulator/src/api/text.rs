//! Conversion between types of `reference_core` and their strings in the API.

use std::borrow::Cow;

use reference_core::{
    asset::{Asset, Currency},
    endpoint::EndpointStatus,
    event::EventType,
    id::Code,
    mode::Mode,
    time::{Span, Timestamp},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use uuid::Uuid;

/// A value that is a string in the API.
pub trait ApiText: Sized {
    /// The type's name in error messages.
    const NAME: &'static str;

    /// Returns the string.
    fn to_text(&self) -> Cow<'_, str>;

    /// Parses a string; `None` if it is invalid.
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! api_text {
    ($($type:ty, $name:literal, $to_text:expr, $parse:expr;)*) => {$(
        impl ApiText for $type {
            const NAME: &'static str = $name;

            fn to_text(&self) -> Cow<'_, str> {
                let write: fn(&Self) -> Cow<'_, str> = $to_text;
                write(self)
            }

            fn parse(text: &str) -> Option<Self> {
                $parse(text)
            }
        }
    )*};
}

api_text! {
    Mode, "mode", |mode| mode.as_str().into(), Mode::parse;
    Asset, "asset", |asset| asset.code().into(), Asset::parse;
    Currency, "currency", |currency| currency.code().into(), Currency::parse;
    EndpointStatus, "endpoint status", |status| status.as_str().into(), parse_status;
    EventType, "event type", |kind| kind.as_str().into(), EventType::parse;
    Code, "id", |code| code.as_str().into(), Code::parse;
    Uuid, "UUID", |uuid| uuid.to_string().into(), reference_core::id::parse_uuid;
    Timestamp, "time", |time| time.to_string().into(), Timestamp::parse;
    Span, "length of time", |span| span.to_string().into(), Span::parse;
}

/// Parses a status that an owner may give an endpoint: `enabled` or `disabled`.
fn parse_status(text: &str) -> Option<EndpointStatus> {
    [EndpointStatus::Enabled, EndpointStatus::Disabled].into_iter().find(|status| status.as_str() == text)
}

/// Serializes a value as a string; for `#[serde(with = "text")]`.
pub(super) fn serialize<T: ApiText, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_text())
}

/// Deserializes a value from a string.
pub(super) fn deserialize<'de, T: ApiText, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    parse_or_error(&Cow::<str>::deserialize(deserializer)?)
}

fn parse_or_error<T: ApiText, E: Error>(text: &str) -> Result<T, E> {
    T::parse(text).ok_or_else(|| E::custom(format!("`{text}` is not a valid {}", T::NAME)))
}

/// Serializes optional values, which may be null; for `#[serde(with = "text::option")]`.
pub(super) mod option {
    use super::{ApiText, Cow, Deserialize, Deserializer, Serialize, Serializer, parse_or_error};

    pub(crate) fn serialize<T: ApiText, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(ApiText::to_text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T: ApiText, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        Option::<Cow<'_, str>>::deserialize(deserializer)?.map(|text| parse_or_error(&text)).transpose()
    }
}

/// Serializes lists of values; for `#[serde(with = "text::list")]`.
pub(super) mod list {
    use super::{ApiText, Cow, Deserialize, Deserializer, Serializer, parse_or_error};

    pub(crate) fn serialize<T: ApiText, S: Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(ApiText::to_text))
    }

    pub(crate) fn deserialize<'de, T: ApiText, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        Vec::<Cow<'_, str>>::deserialize(deserializer)?.iter().map(|text| parse_or_error(text)).collect()
    }
}
