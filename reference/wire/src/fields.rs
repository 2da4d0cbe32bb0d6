//! [`Fields`]: reads a JSON object field by field and collects all errors.
//!
//! Values stay raw text until a field is read, so numbers stay exact and nesting costs nothing.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use url::form_urlencoded;

use crate::{unique_keys::duplicate_key, web_address::is_web_address};
use reference_core::{
    asset::{Asset, Currency},
    charge::CustomField,
    error::{ApiError, FieldErrors},
    money::{AmountError, Fiat},
};

/// The largest length of a short string field, such as a name, in characters.
pub const TEXT_MAX: usize = 255;
/// The largest length of a long string field, such as a description, in characters.
pub const PROSE_MAX: usize = 2_000;
/// The largest number of questions of a payment link.
pub const QUESTIONS_MAX: usize = 20;

/// The number of unknown keys that an error response lists.
const UNKNOWN_KEYS_LISTED_MAX: usize = 20;

/// The entries of a JSON object, in order.
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A key, copied only if it has escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries: Vec<(Cow<'de, str>, &RawValue)> = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &RawValue>()? {
                    entries.push((key, value));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// The type of a JSON value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

fn json_kind(value: &RawValue) -> JsonKind {
    match value.get().as_bytes().first() {
        Some(b'n') => JsonKind::Null,
        Some(b't' | b'f') => JsonKind::Bool,
        Some(b'"') => JsonKind::String,
        Some(b'[') => JsonKind::Array,
        Some(b'{') => JsonKind::Object,
        _ => JsonKind::Number,
    }
}

/// Returns `true` for `[]`, which PHP clients send for an empty map.
pub(crate) fn is_empty_list(text: &str) -> bool {
    let inside = text.trim_ascii().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Returns the error message for an unknown enum value.
pub(crate) fn unknown_value_message(name: &str, allowed: &[&str]) -> String {
    format!("The selected {name} is invalid; the allowed values are {}.", allowed.join(", "))
}

/// A JSON object that is read field by field, with the errors so far.
pub struct Fields<'a> {
    prefix: String,
    entries: Vec<(Cow<'a, str>, &'a RawValue)>,
    errors: FieldErrors,
}

impl<'a> Fields<'a> {
    /// Reads the body of a request that has no fields.
    ///
    /// # Errors
    ///
    /// Those of [`Fields::read`], and [`ApiError::Invalid`] if there is a field.
    pub fn require_empty(body: &'a [u8]) -> Result<(), ApiError> {
        let mut fields = Fields::read(body)?;
        fields.reject_unknown(&[]);
        fields.finish()
    }

    /// Converts a query string to a JSON object, so that parameters are read like fields.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] if a parameter is given twice.
    pub fn query_to_json(query: Option<&str>) -> Result<Vec<u8>, ApiError> {
        let mut fields = serde_json::Map::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if fields.insert(name.to_string(), value.into()).is_some() {
                return Err(ApiError::field(&*name, format!("The {name} field must be given once.")));
            }
        }
        Ok(if fields.is_empty() { Vec::new() } else { serde_json::Value::from(fields).to_string().into() })
    }

    /// Reads a request body. An empty body is an object without fields.
    ///
    /// # Errors
    ///
    /// [`ApiError::Malformed`] if the body is not a JSON object in UTF-8.
    pub fn read(body: &'a [u8]) -> Result<Fields<'a>, ApiError> {
        if body.is_empty() {
            return Ok(Fields { prefix: String::new(), entries: Vec::new(), errors: FieldErrors::default() });
        }
        let malformed = |error: &dyn fmt::Display| {
            ApiError::Malformed(format!("The request body is not a JSON object: {error}.").into())
        };
        // Validated once; otherwise the parser validates every key and value.
        let text = std::str::from_utf8(body).map_err(|error| malformed(&error))?;
        if is_empty_list(text) {
            return Ok(Fields { prefix: String::new(), entries: Vec::new(), errors: FieldErrors::default() });
        }
        let Entries(entries) = serde_json::from_str(text).map_err(|error| malformed(&error))?;
        if let Some(key) = duplicate_key(text) {
            let message = format!("The request body gives the key {key:?} twice in one object.");
            return Err(ApiError::Malformed(message.into()));
        }
        Ok(Fields { prefix: String::new(), entries, errors: FieldErrors::default() })
    }

    /// Succeeds if no error was added.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] with all errors.
    pub fn finish(self) -> Result<(), ApiError> {
        self.errors.into_result()
    }

    /// Adds an error about a field. `{}` in `sentence` is replaced by the field's path, such as `customer.email`.
    pub fn add_error(&mut self, name: &str, sentence: &str) {
        let full = format!("{}{name}", self.prefix);
        let text = sentence.replace("{}", &full);
        self.errors.add(full, text);
    }

    /// Adds an error about the whole object.
    pub(crate) fn add_object_error(&mut self, sentence: &str) {
        let name = self.prefix.trim_end_matches('.').to_owned();
        self.errors.add(name, sentence);
    }

    /// Returns `true` if the field is present, null or not.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, _)| key == name)
    }

    /// Returns `true` if the field has a value other than null and the empty string.
    pub fn has_value(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() != r#""""#)
    }

    /// Returns `true` if an error about this field was added.
    pub fn has_error(&self, name: &str) -> bool {
        let full = format!("{}{name}", self.prefix);
        self.errors.iter().any(|(known, _)| known == full)
    }

    /// Returns the value of a field, unless it is missing or null.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.entries.iter().find(|(key, _)| key == name)?;
        (json_kind(value) != JsonKind::Null).then_some(*value)
    }

    /// Adds an error for every key that is not in `known`, up to a bound.
    pub fn reject_unknown(&mut self, known: &[&str]) {
        let unknown: Vec<String> = self
            .entries
            .iter()
            .map(|(key, _)| key)
            .filter(|key| !known.contains(&key.as_ref()))
            .take(UNKNOWN_KEYS_LISTED_MAX)
            .map(|key| key.clone().into_owned())
            .collect();
        for key in unknown {
            self.add_error(&key, "The {} field is not known here.");
        }
    }

    fn parse_string(&mut self, name: &str, value: &'a RawValue, chars_max: usize) -> Option<Cow<'a, str>> {
        let quoted = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = match quoted {
            Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
            Some(_) => serde_json::from_str::<String>(value.get()).ok().map(Cow::Owned),
            None => None,
        };
        let Some(text) = text else {
            self.add_error(name, "The {} field must be a string.");
            return None;
        };
        if text.chars().count() > chars_max {
            self.add_error(name, &format!("The {{}} field must not be greater than {chars_max} characters."));
            return None;
        }
        Some(text)
    }

    /// Reads a string of at most `chars_max` characters. The empty string counts as missing.
    pub fn text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        self.borrowed_text(name, chars_max).map(Cow::into_owned)
    }

    /// Reads a string like [`Fields::text`], and copies it only if it has escapes.
    fn borrowed_text(&mut self, name: &str, chars_max: usize) -> Option<Cow<'a, str>> {
        let value = self.get(name)?;
        self.parse_string(name, value, chars_max).filter(|text| !text.is_empty())
    }

    /// Reads a required string.
    pub fn required_text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        let text = self.text(name, chars_max);
        if text.is_none() && !self.has_error(name) {
            self.add_error(name, "The {} field is required.");
        }
        text
    }

    /// Reads an e-mail address; checks only its format.
    pub fn email(&mut self, name: &str) -> Option<String> {
        let text = self.text(name, TEXT_MAX)?;
        let is_valid = text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && domain.contains('.')
                && !domain.starts_with('.')
                && !domain.ends_with('.')
                && !domain.contains('@')
        }) && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if !is_valid {
            self.add_error(name, "The {} field must be a valid email address.");
            return None;
        }
        Some(text)
    }

    /// Reads a country code of two capital letters.
    pub fn country(&mut self, name: &str) -> Option<String> {
        let code = self.text(name, 2)?;
        if code.len() != 2 || !code.bytes().all(|b| b.is_ascii_uppercase()) {
            self.add_error(name, "The {} field must be a two-letter country code.");
            return None;
        }
        Some(code)
    }

    /// Reads an absolute http or https URL.
    pub fn web_address(&mut self, name: &str) -> Option<String> {
        let text = self.text(name, PROSE_MAX)?;
        if !is_web_address(&text) {
            self.add_error(name, "The {} field must be a valid URL.");
            return None;
        }
        Some(text)
    }

    /// Reads `true` or `false`.
    pub fn bool(&mut self, name: &str) -> Option<bool> {
        let value = self.get(name)?;
        if json_kind(value) != JsonKind::Bool {
            self.add_error(name, "The {} field must be true or false.");
            return None;
        }
        Some(value.get() == "true")
    }

    /// Reads a whole number of at least 1 that fits 32 bits, given as a JSON number.
    pub fn count(&mut self, name: &str) -> Option<u32> {
        let count =
            parse_whole(self.get(name)?.get()).and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1);
        if count.is_none() {
            self.add_error(name, "The {} field must be a whole number of at least 1.");
        }
        count
    }

    /// Reads a whole number, given as a JSON number or a string.
    pub fn whole_number(&mut self, name: &str) -> Option<u64> {
        let whole = parse_whole(&self.decimal(name)?);
        if whole.is_none() {
            self.add_error(name, "The {} field must be a whole number below 2^64.");
        }
        whole
    }

    /// Reads an enum value; the error lists `allowed`.
    pub fn choice<T>(
        &mut self,
        name: &str,
        allowed: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.borrowed_text(name, TEXT_MAX)?;
        let choice = parse(&text);
        if choice.is_none() {
            self.add_error(name, &unknown_value_message("{}", allowed));
        }
        choice
    }

    /// Reads the code of a coin.
    pub fn asset(&mut self, name: &str) -> Option<Asset> {
        self.choice(name, &Asset::ALL.map(|asset| asset.code()), Asset::parse)
    }

    /// Reads the code of a currency.
    pub fn currency(&mut self, name: &str) -> Option<Currency> {
        self.choice(name, &Currency::ALL.map(|currency| currency.code()), Currency::parse)
    }

    /// Reads a string that `parse` accepts; the error message contains `example`.
    pub fn parsed_text<T>(
        &mut self,
        name: &str,
        example: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name, TEXT_MAX)?;
        let value = parse(&text);
        if value.is_none() {
            self.add_error(name, &format!("The {{}} field must be of the form {example}."));
        }
        value
    }

    /// Reads a decimal, given as a string or a JSON number, verbatim. Its format is not checked.
    pub fn decimal(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let value = self.get(name)?;
        match json_kind(value) {
            JsonKind::Number => Some(Cow::Borrowed(value.get())),
            JsonKind::String => self.parse_string(name, value, TEXT_MAX),
            _ => {
                self.add_error(name, "The {} field must be a decimal number such as 49.90.");
                None
            }
        }
    }

    /// Reads a decimal that `parse` accepts.
    pub fn amount<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, AmountError>) -> Option<T> {
        let text = self.decimal(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.add_error(name, &format!("The {{}} field {error}."));
                None
            }
        }
    }

    /// Reads a fiat amount.
    pub fn fiat(&mut self, name: &str) -> Option<Fiat> {
        self.amount(name, Fiat::parse)
    }

    /// Reads a list of fiat amounts.
    pub(crate) fn fiats(&mut self, name: &str, items_max: usize) -> Vec<Fiat> {
        self.list(name, items_max, |fields, item, value| {
            let text = match json_kind(value) {
                JsonKind::Number => Some(Cow::Borrowed(value.get())),
                JsonKind::String => fields.parse_string(item, value, TEXT_MAX),
                _ => None,
            };
            match text.as_deref().map(Fiat::parse) {
                Some(Ok(amount)) => Some(amount),
                _ => {
                    fields.add_error(item, "The {} field must be a decimal number such as 49.90.");
                    None
                }
            }
        })
    }

    /// Reads a list of coins.
    pub fn assets(&mut self, name: &str) -> Vec<Asset> {
        self.choices(name, Asset::ALL.len(), &Asset::ALL.map(|asset| asset.code()), Asset::parse)
    }

    /// Returns `true` if the field is a list.
    pub fn is_list(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| json_kind(value) == JsonKind::Array)
    }

    /// Reads the answers to a payment link's questions.
    pub fn custom_fields(&mut self, name: &str) -> Vec<CustomField> {
        self.objects(name, QUESTIONS_MAX, |f| {
            let label = f.required_text("label", TEXT_MAX);
            let value = f.text("value", PROSE_MAX).unwrap_or_default();
            Some(CustomField { label: label?, value })
        })
    }

    /// Reads a list of strings.
    pub fn texts(&mut self, name: &str, items_max: usize) -> Vec<String> {
        self.list(name, items_max, |fields, item, value| {
            fields.parse_string(item, value, PROSE_MAX).map(Cow::into_owned)
        })
    }

    /// Reads a list of enum values; the error lists `allowed`.
    pub fn choices<T>(
        &mut self,
        name: &str,
        items_max: usize,
        allowed: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        self.list(name, items_max, |fields, item, value| {
            let choice = fields.parse_string(item, value, TEXT_MAX).and_then(|text| parse(&text));
            if choice.is_none() {
                fields.add_error(item, &unknown_value_message("{}", allowed));
            }
            choice
        })
    }

    /// Reads a list of objects, each with `read`.
    pub fn objects<T>(
        &mut self,
        name: &str,
        items_max: usize,
        read: impl Fn(&mut Fields<'a>) -> Option<T>,
    ) -> Vec<T> {
        self.list(name, items_max, |fields, item, value| fields.read_nested(item, value, &read))
    }

    /// Reads an object with `read`.
    pub fn object<T>(&mut self, name: &str, read: impl Fn(&mut Fields<'a>) -> Option<T>) -> Option<T> {
        let value = self.get(name)?;
        self.read_nested(name, value, &read)
    }

    /// Returns the names of all fields.
    pub fn names(&self) -> Vec<Cow<'a, str>> {
        self.entries.iter().map(|(key, _)| key.clone()).collect()
    }

    /// Reads a string, number, boolean or null. A number stays as written.
    pub fn scalar(&mut self, name: &str, chars_max: usize) -> Option<Scalar> {
        let (_, value) = self.entries.iter().find(|(key, _)| key == name)?;
        let value = *value;
        match json_kind(value) {
            JsonKind::Null => Some(Scalar::Null),
            JsonKind::Bool => Some(Scalar::Bool(value.get() == "true")),
            // Responses and webhooks contain the number, so it must be one that common parsers accept.
            JsonKind::Number if serde_json::from_str::<serde_json::Number>(value.get()).is_err() => {
                self.add_error(name, "The {} field is a number too large to be read back.");
                None
            }
            JsonKind::Number if value.get().len() > chars_max => {
                self.add_error(
                    name,
                    &format!("The {{}} field must not be greater than {chars_max} characters."),
                );
                None
            }
            JsonKind::Number => Some(Scalar::Number(value.get().to_owned())),
            JsonKind::String => self.parse_string(name, value, chars_max).map(|s| Scalar::Text(s.into())),
            _ => {
                self.add_error(name, "The {} field must be a string, a number, a boolean or null.");
                None
            }
        }
    }

    fn read_nested<T>(
        &mut self,
        name: &str,
        value: &'a RawValue,
        read: &impl Fn(&mut Fields<'a>) -> Option<T>,
    ) -> Option<T> {
        let entries = match serde_json::from_str::<Entries<'a>>(value.get()) {
            _ if is_empty_list(value.get()) => Vec::new(),
            Ok(Entries(entries)) if json_kind(value) == JsonKind::Object => entries,
            _ => {
                self.add_error(name, "The {} field must be an object.");
                return None;
            }
        };
        let prefix = [&self.prefix, name, "."].concat();
        let mut nested = Fields { prefix, entries, errors: std::mem::take(&mut self.errors) };
        let result = read(&mut nested);
        self.errors = nested.errors;
        result
    }

    fn list<T>(
        &mut self,
        name: &str,
        items_max: usize,
        mut read: impl FnMut(&mut Fields<'a>, &str, &'a RawValue) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let items: Vec<&'a RawValue> = match json_kind(value) {
            JsonKind::Array => serde_json::from_str(value.get()).unwrap_or_default(),
            _ => {
                self.add_error(name, "The {} field must be a list.");
                return Vec::new();
            }
        };
        if items.len() > items_max {
            self.add_error(name, &format!("The {{}} field must not have more than {items_max} items."));
            return Vec::new();
        }
        let mut read_items = Vec::new();
        for (n, value) in items.into_iter().enumerate() {
            let item = format!("{name}.{n}");
            read_items.extend(read(self, &item, value));
        }
        read_items
    }
}

/// A JSON value that is neither an object nor a list.
pub enum Scalar {
    /// A string.
    Text(String),
    /// A number, verbatim.
    Number(String),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// Parses a whole number. `5.0` counts as `5`, because some JSON writers have floating-point numbers only.
fn parse_whole(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.bytes().all(|b| b == b'0') { whole } else { text }.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_do_not_change_a_string() {
        for (body, text) in [
            (r#"{"t":"plain"}"#, Some("plain")),
            (r#"{"t":"pl\u0061in"}"#, Some("plain")),
            (r#"{"t":"\"\\\n"}"#, Some("\"\\\n")),
            (r#"{"t":"ä\u00e4"}"#, Some("ää")),
            (r#"{"t":"\ud800"}"#, None),
            (r#"{"t":""}"#, None),
            (r#"{"t":7}"#, None),
        ] {
            let mut fields = Fields::read(body.as_bytes()).expect("the body is an object");
            assert_eq!(fields.text("t", 5).as_deref(), text, "{body}");
        }
    }

    #[test]
    fn a_whole_number_may_have_a_zero_fraction() {
        let count = |body: &str| Fields::read(body.as_bytes()).expect("the body is an object").count("n");
        for (body, n) in [
            (r#"{"n":5}"#, Some(5)),
            (r#"{"n":5.0}"#, Some(5)),
            (r#"{"n":5.00}"#, Some(5)),
            (r#"{"n":5.5}"#, None),
            (r#"{"n":5e1}"#, None),
            (r#"{"n":0.0}"#, None),
            (r#"{"n":-5.0}"#, None),
            (r#"{"n":"5"}"#, None),
            (r#"{"n":4294967296.0}"#, None),
        ] {
            assert_eq!(count(body), n, "{body}");
        }
    }
}
