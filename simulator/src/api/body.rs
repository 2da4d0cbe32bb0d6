//! The macro `request_bodies!`: one definition generates the type that a caller serializes, the list of its fields, and
//! the reader that validates them.

use std::ops::Deref;

use reference_core::{
    asset::{Asset, Currency},
    charge::CustomField,
    endpoint::EndpointStatus,
    error::ApiError,
    event::EventType,
    mode::Mode,
    money::Rate,
    time::{Span, Timestamp},
};
use reference_wire::fields::{Fields, TEXT_MAX};
use serde::{Serialize, Serializer};

use super::{ApiText, CustomFieldValue, KeepRequest, NoticePolicy};
use crate::{
    chain::FeeLevel,
    value::{Amount, AssetCode, Duration, FiatRate, ModeName, Share},
};

/// The maximum length of a list of strings.
const LIST_MAX: usize = 10_000;
/// The maximum number of transactions that a reorganisation keeps by name.
const KEPT_TXIDS_MAX: usize = 1_000;

/// A request body: a JSON object with these fields and no others.
pub(crate) trait RequestBody: Sized {
    /// The names of the fields.
    const FIELDS: &'static [&'static str];
    /// The names of the required fields; `None` for each optional field.
    const REQUIRED: &'static [Option<&'static str>];

    /// Reads every field. Records missing and invalid values as errors, and replaces them with placeholders.
    fn read(fields: &mut Fields<'_>) -> Self;
}

/// The type of a field of a request body.
pub(crate) trait FieldValue: Sized {
    /// The error of a missing field; `None` if the field is optional.
    const REQUIRED: Option<&'static str> = Some("The {} field is required.");

    /// Returns the value; `None` if it is missing or invalid. Records an error if it is invalid.
    fn read_given(fields: &mut Fields<'_>, name: &str) -> Option<Self>;

    /// Returns the value of an optional field that is missing, and the placeholder for a required field that
    /// is missing or any invalid value. A request with an error is never applied, but the placeholder allows
    /// the checks across fields to run, so that all errors of a request are reported together.
    fn placeholder() -> Self;

    /// Reads the value. Records an error if it is invalid, or required and missing.
    fn read(fields: &mut Fields<'_>, name: &str) -> Self {
        let value = Self::read_given(fields, name);
        if let (None, Some(message)) = (&value, Self::REQUIRED)
            && !fields.has_error(name)
        {
            fields.add_error(name, message);
        }
        value.unwrap_or_else(Self::placeholder)
    }

    /// Returns `true` if a body is written without the field.
    fn is_omitted(&self) -> bool {
        false
    }

    /// Writes the value.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

impl<T: FieldValue> FieldValue for Option<T> {
    const REQUIRED: Option<&'static str> = None;

    fn read_given(fields: &mut Fields<'_>, name: &str) -> Option<Option<T>> {
        T::read_given(fields, name).map(Some)
    }

    fn placeholder() -> Option<T> {
        None
    }

    fn is_omitted(&self) -> bool {
        self.is_none()
    }

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(value) => value.write(serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// Implements [`FieldValue`] for types, given for each its reader and its placeholder. The first word
/// determines how a value is written: `text` as its [`ApiText`], `list` as a list of such strings, `inner` as
/// its inner value, and `plain` by serde. A `default` type is written like `plain`, but not required. An
/// `optional` type is like `default`, and not written if it equals the placeholder. The string after
/// `required` is the error of a missing field.
macro_rules! field_values {
    ($($kind:ident $type:ty $(, required $message:literal)?: $read:expr, $placeholder:expr;)*) => {$(
        impl $crate::api::FieldValue for $type {
            $(const REQUIRED: Option<&'static str> = Some($message);)?

            fn read_given(fields: &mut Fields<'_>, name: &str) -> Option<$type> {
                let read: fn(&mut Fields<'_>, &str) -> Option<$type> = $read;
                read(fields, name)
            }

            fn placeholder() -> $type {
                $placeholder
            }

            field_values!(@$kind);
        }
    )*};
    (@text) => {
        fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(&self.to_text())
        }
    };
    (@plain) => {
        fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.serialize(serializer)
        }
    };
    (@inner) => {
        fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.serialize(serializer)
        }
    };
    (@list) => {
        fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(self.iter().map(ApiText::to_text))
        }
    };
    (@default) => {
        const REQUIRED: Option<&'static str> = None;

        field_values!(@plain);
    };
    (@optional) => {
        const REQUIRED: Option<&'static str> = None;

        fn is_omitted(&self) -> bool {
            *self == Self::placeholder()
        }

        field_values!(@plain);
    };
}

field_values! {
    text Asset: |f, name| f.asset(name), Asset::Btc;
    text Currency: |f, name| f.currency(name), Currency::Eur;
    text Mode: |f, name| f.choice(name, &Mode::ALL.map(Mode::as_str), Mode::parse), Mode::Live;
    text EndpointStatus: |f, name| f.choice(name, &["enabled", "disabled"], ApiText::parse), EndpointStatus::Enabled;
    text Span: |f, name| f.parsed_text(name, "30s, 250us or 1h30m", Span::parse), Span(0);
    text Timestamp: |f, name| f.parsed_text(name, "2026-01-05T09:00:00Z", Timestamp::parse), Timestamp(0);
    plain u32: |f, name| f.count(name), 1;
    plain u64: |f, name| f.whole_number(name), 0;
    optional bool: |f, name| f.bool(name), false;
    plain String: |f, name| f.text(name, TEXT_MAX), String::new();
    plain Amount: |f, name| f.decimal(name).map(|text| Amount(text.into())), Amount(String::new());
    plain Share: |f, name| f.decimal(name).map(|text| Share(text.into())), Share(String::new());
    plain FeeLevel: |f, name| f.choice(name, &FeeLevel::ALL.map(FeeLevel::as_str), FeeLevel::parse), FeeLevel::Normal;
    default Vec<String>: |f, name| Some(f.texts(name, LIST_MAX)), Vec::new();
    optional Vec<CustomFieldValue>: |f, name| {
        let fields = f.custom_fields(name).into_iter();
        Some(fields.map(|CustomField { label, value }| CustomFieldValue { label, value }).collect())
    }, Vec::new();
    list Vec<EventType>: |f, name| {
        let allowed = EventType::ALL.map(EventType::as_str);
        f.has(name).then(|| f.choices(name, EventType::ALL.len(), &allowed, EventType::parse))
    }, Vec::new();
    inner FiatRate, required "The {} field is required; null means that no rate is available.": |f, name| {
        let rate = f.amount(name, |text| Rate::parse(text).map(|_| text.to_owned()));
        f.has(name).then_some(FiatRate(rate))
    }, FiatRate(None);
    plain AssetCode: |f, name| f.asset(name).map(AssetCode), AssetCode(Asset::Btc);
    plain ModeName: |f, name| Mode::read_given(f, name).map(ModeName), ModeName(Mode::Live);
    plain Duration, required "The {} field is required: a length of time such as 2h.":
        |f, name| f.parsed_text(name, "30s or 2h", Span::parse).map(Duration), Duration(Span(0));
    plain NoticePolicy, required "The {} field is required: up, late, reversed, lost or twice.":
        |f, name| f.choice(name, &NoticePolicy::ALL.map(NoticePolicy::as_str), NoticePolicy::parse), NoticePolicy::Up;
    default KeepRequest<String>: |f, name| match f.is_list(name) {
        true => Some(KeepRequest::Only(f.texts(name, KEPT_TXIDS_MAX))),
        false => f.choice(name, &["all", "none", "a list of txids"], KeepRequest::parse),
    }, KeepRequest::None;
}

/// Defines request bodies. A field has the same name in Rust and in JSON. An expression after `=>` reads the field instead
/// of [`FieldValue::read`].
macro_rules! request_bodies {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $type:ty $(=> $read:expr)?,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, Serialize)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[serde(
                    serialize_with = "crate::api::FieldValue::write",
                    skip_serializing_if = "crate::api::FieldValue::is_omitted"
                )]
                pub $field: $type,
            )*
        }

        impl $crate::api::RequestBody for $name {
            const FIELDS: &'static [&'static str] = &[$($crate::api::field_name(stringify!($field))),*];

            const REQUIRED: &'static [Option<&'static str>] = &[$(
                match <$type as FieldValue>::REQUIRED {
                    Some(_) => Some($crate::api::field_name(stringify!($field))),
                    None => None,
                }
            ),*];

            fn read(fields: &mut Fields<'_>) -> $name {
                $name { $($field: request_bodies!(@read fields, $field $(, $read)?),)* }
            }
        }
    )*};
    (@read $fields:ident, $field:ident) => {
        FieldValue::read($fields, const { $crate::api::field_name(stringify!($field)) })
    };
    (@read $fields:ident, $field:ident, $read:expr) => {{
        let read: fn(&mut Fields<'_>) -> _ = $read;
        read($fields)
    }};
}
pub(crate) use request_bodies;

/// Returns the JSON name of a field: `for` for `r#for`.
pub(crate) const fn field_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// A body that was read, together with its raw fields, which record errors.
pub(crate) struct Body<'f, T> {
    value: T,
    pub(crate) fields: Fields<'f>,
}

impl<'f, T: RequestBody> Body<'f, T> {
    /// Reads every field. [`Body::finish`] reports missing and invalid ones.
    pub(crate) fn read(mut fields: Fields<'f>) -> Body<'f, T> {
        Body { value: T::read(&mut fields), fields }
    }

    /// Records an error if a number exceeds `max`.
    pub(crate) fn require_at_most(&mut self, name: &str, number: Option<u32>, max: u32) {
        if number.is_some_and(|number| number > max) {
            self.fields.add_error(name, &format!("The {{}} field must be at most {max}."));
        }
    }

    /// Returns the value if no error was recorded.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] with every invalid field.
    pub(crate) fn finish(self) -> Result<T, ApiError> {
        self.fields.finish()?;
        Ok(self.value)
    }
}

impl<T> Deref for Body<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
