//! Reading a JSON object field by field, collecting everything that is wrong with it.
//!
//! Values are kept as raw text until a field is asked for, so numbers stay exact and nesting costs nothing.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use url::form_urlencoded;

use crate::{unique_keys::twin_key, web_address::is_web_address};
use reference_core::{
    asset::{Asset, Currency},
    charge::CustomField,
    error::{ApiError, FieldErrors},
    money::{AmountError, Fiat},
};

/// The longest plain text field, in characters.
pub const TEXT_MAX: usize = 255;
/// The longest free text, in characters.
pub const PROSE_MAX: usize = 2_000;
/// The most questions a payment link may ask.
pub const QUESTIONS_MAX: usize = 20;

/// So many unknown keys of an object are named: who sends more has made one mistake, not thousands.
const STRANGERS_NAMED_MAX: usize = 20;

/// An object's entries, in order.
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A key, copied only if it is written with escapes.
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
enum Sort {
    Null,
    Truth,
    Number,
    Text,
    List,
    Object,
}

fn sort(value: &RawValue) -> Sort {
    match value.get().as_bytes().first() {
        Some(b'n') => Sort::Null,
        Some(b't' | b'f') => Sort::Truth,
        Some(b'"') => Sort::Text,
        Some(b'[') => Sort::List,
        Some(b'{') => Sort::Object,
        _ => Sort::Number,
    }
}

/// Clients in PHP write an empty map as `[]`.
pub(crate) fn is_empty_list(text: &str) -> bool {
    let inside = text.trim_ascii().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Returns the error message for an unknown enum value.
pub(crate) fn not_among(name: &str, allowed: &[&str]) -> String {
    format!("The selected {name} is invalid; it takes {}.", allowed.join(", "))
}

/// An object being read, and what was wrong so far.
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
    /// As [`Fields::read`], and if there is a field all the same.
    pub fn none(body: &'a [u8]) -> Result<(), ApiError> {
        let mut fields = Fields::read(body)?;
        fields.only(&[]);
        fields.finish()
    }

    /// A query as the object that it stands for, in JSON: so its parameters are read as fields are.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] if a parameter is given twice.
    pub fn query(query: Option<&str>) -> Result<Vec<u8>, ApiError> {
        let mut asked = serde_json::Map::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if asked.insert(name.to_string(), value.into()).is_some() {
                return Err(ApiError::field(&*name, format!("The {name} field must be given once.")));
            }
        }
        Ok(if asked.is_empty() { Vec::new() } else { serde_json::Value::from(asked).to_string().into() })
    }

    /// Reads a request body. No body at all is an object without fields.
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
        // Looked through once; otherwise the reader does it for every key and value.
        let text = std::str::from_utf8(body).map_err(|error| malformed(&error))?;
        if is_empty_list(text) {
            return Ok(Fields { prefix: String::new(), entries: Vec::new(), errors: FieldErrors::default() });
        }
        let Entries(entries) = serde_json::from_str(text).map_err(|error| malformed(&error))?;
        if let Some(key) = twin_key(text) {
            let message = format!("The request body gives the key {key:?} twice in one object.");
            return Err(ApiError::Malformed(message.into()));
        }
        Ok(Fields { prefix: String::new(), entries, errors: FieldErrors::default() })
    }

    /// Returns all errors together.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] with every invalid field.
    pub fn finish(self) -> Result<(), ApiError> {
        self.errors.into_result()
    }

    /// Notes that a field is wrong: `{}` in the sentence is its name.
    pub fn wrong(&mut self, name: &str, sentence: &str) {
        let full = format!("{}{name}", self.prefix);
        let text = sentence.replace("{}", &full);
        self.errors.add(full, text);
    }

    /// Notes that the object that is being read is wrong as a whole.
    pub(crate) fn wrong_itself(&mut self, sentence: &str) {
        let name = self.prefix.trim_end_matches('.').to_owned();
        self.errors.add(name, sentence);
    }

    /// The field is there, null or not.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, _)| key == name)
    }

    /// The field has a value: neither null nor the empty text, which both mean that it is not given.
    pub fn gives(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() != r#""""#)
    }

    /// The value of a field, unless it is missing or null.
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.entries.iter().find(|(key, _)| key == name)?;
        (sort(value) != Sort::Null).then_some(*value)
    }

    /// Every key that is not among these is refused. The answer names the first few.
    pub fn only(&mut self, known: &[&str]) {
        let strange: Vec<String> = self
            .entries
            .iter()
            .map(|(key, _)| key)
            .filter(|key| !known.contains(&key.as_ref()))
            .take(STRANGERS_NAMED_MAX)
            .map(|key| key.clone().into_owned())
            .collect();
        for key in strange {
            self.wrong(&key, "The {} field is not known here.");
        }
    }

    fn text_of(&mut self, name: &str, value: &'a RawValue, chars_max: usize) -> Option<Cow<'a, str>> {
        let quoted = value.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = match quoted {
            Some(text) if !text.contains('\\') => Some(Cow::Borrowed(text)),
            Some(_) => serde_json::from_str::<String>(value.get()).ok().map(Cow::Owned),
            None => None,
        };
        let Some(text) = text else {
            self.wrong(name, "The {} field must be a string.");
            return None;
        };
        if text.chars().count() > chars_max {
            self.wrong(name, &format!("The {{}} field must not be greater than {chars_max} characters."));
            return None;
        }
        Some(text)
    }

    /// A text of at most so many characters. Empty counts as missing.
    pub fn text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        self.words_of(name, chars_max).map(Cow::into_owned)
    }

    /// The same, copied only if it was written with escapes.
    fn words_of(&mut self, name: &str, chars_max: usize) -> Option<Cow<'a, str>> {
        let value = self.get(name)?;
        self.text_of(name, value, chars_max).filter(|text| !text.is_empty())
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        let wrong_before = self.errors.iter().count();
        let text = self.text(name, chars_max);
        if text.is_none() && self.errors.iter().count() == wrong_before {
            self.wrong(name, "The {} field is required.");
        }
        text
    }

    /// An e-mail address, by its looks.
    pub fn email(&mut self, name: &str) -> Option<String> {
        let text = self.text(name, TEXT_MAX)?;
        let looks_right = text.split_once('@').is_some_and(|(local, domain)| {
            !local.is_empty()
                && domain.contains('.')
                && !domain.starts_with('.')
                && !domain.ends_with('.')
                && !domain.contains('@')
        }) && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if !looks_right {
            self.wrong(name, "The {} field must be a valid email address.");
            return None;
        }
        Some(text)
    }

    /// A country by its code of two capitals.
    pub fn country(&mut self, name: &str) -> Option<String> {
        let code = self.text(name, 2)?;
        if code.len() != 2 || !code.bytes().all(|b| b.is_ascii_uppercase()) {
            self.wrong(name, "The {} field must be a two-letter country code.");
            return None;
        }
        Some(code)
    }

    /// An absolute web address.
    pub fn web_address(&mut self, name: &str) -> Option<String> {
        let text = self.text(name, PROSE_MAX)?;
        if !is_web_address(&text) {
            self.wrong(name, "The {} field must be a valid URL.");
            return None;
        }
        Some(text)
    }

    /// Yes or no.
    pub fn truth(&mut self, name: &str) -> Option<bool> {
        let value = self.get(name)?;
        if sort(value) != Sort::Truth {
            self.wrong(name, "The {} field must be true or false.");
            return None;
        }
        Some(value.get() == "true")
    }

    /// A whole number from 1 up.
    pub fn count(&mut self, name: &str) -> Option<u32> {
        let count =
            parse_whole(self.get(name)?.get()).and_then(|n| u32::try_from(n).ok()).filter(|n| *n >= 1);
        if count.is_none() {
            self.wrong(name, "The {} field must be a whole number of at least 1.");
        }
        count
    }

    /// A whole number, as a number or as text.
    pub fn whole(&mut self, name: &str) -> Option<u64> {
        let whole = parse_whole(&self.decimal(name)?);
        if whole.is_none() {
            self.wrong(name, "The {} field must be a whole number below 2^64.");
        }
        whole
    }

    /// One of a few words that the refusal names.
    pub fn word<T>(&mut self, name: &str, allowed: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.words_of(name, TEXT_MAX)?;
        let word = parse(&text);
        if word.is_none() {
            self.wrong(name, &not_among("{}", allowed));
        }
        word
    }

    /// A coin.
    pub fn asset(&mut self, name: &str) -> Option<Asset> {
        self.word(name, &Asset::ALL.map(|asset| asset.code()), Asset::parse)
    }

    /// A currency.
    pub fn currency(&mut self, name: &str) -> Option<Currency> {
        self.word(name, &Currency::ALL.map(|currency| currency.code()), Currency::parse)
    }

    /// A word of a form that is best said by an example.
    pub fn word_like<T>(
        &mut self,
        name: &str,
        example: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name, TEXT_MAX)?;
        let word = parse(&text);
        if word.is_none() {
            self.wrong(name, &format!("The {{}} field must be of the form {example}."));
        }
        word
    }

    /// An exact decimal, as a string or a number, as it was written.
    pub fn decimal(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let value = self.get(name)?;
        match sort(value) {
            Sort::Number => Some(Cow::Borrowed(value.get())),
            Sort::Text => self.text_of(name, value, TEXT_MAX),
            _ => {
                self.wrong(name, "The {} field must be a decimal number such as 49.90.");
                None
            }
        }
    }

    /// A decimal that `parse` understands.
    pub fn parsed<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, AmountError>) -> Option<T> {
        let text = self.decimal(name)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(name, &format!("The {{}} field {error}."));
                None
            }
        }
    }

    /// An amount of fiat.
    pub fn fiat(&mut self, name: &str) -> Option<Fiat> {
        self.parsed(name, Fiat::parse)
    }

    /// Decimals in a list.
    pub(crate) fn fiats(&mut self, name: &str, most: usize) -> Vec<Fiat> {
        self.list(name, most, |fields, item, value| {
            let text = match sort(value) {
                Sort::Number => Some(Cow::Borrowed(value.get())),
                Sort::Text => fields.text_of(item, value, TEXT_MAX),
                _ => None,
            };
            match text.as_deref().map(Fiat::parse) {
                Some(Ok(amount)) => Some(amount),
                _ => {
                    fields.wrong(item, "The {} field must be a decimal number such as 49.90.");
                    None
                }
            }
        })
    }

    /// Coins in a list.
    pub fn assets(&mut self, name: &str) -> Vec<Asset> {
        self.words(name, Asset::ALL.len(), &Asset::ALL.map(|asset| asset.code()), Asset::parse)
    }

    /// The field is a list.
    pub fn is_list(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| sort(value) == Sort::List)
    }

    /// Answers to a payment link's questions.
    pub fn custom_fields(&mut self, name: &str) -> Vec<CustomField> {
        self.objects(name, QUESTIONS_MAX, |f| {
            let label = f.required_text("label", TEXT_MAX);
            let value = f.text("value", PROSE_MAX).unwrap_or_default();
            Some(CustomField { label: label?, value })
        })
    }

    /// Texts in a list.
    pub fn texts(&mut self, name: &str, most: usize) -> Vec<String> {
        self.list(name, most, |fields, item, value| {
            fields.text_of(item, value, PROSE_MAX).map(Cow::into_owned)
        })
    }

    /// Words in a list, each one of a few that the refusal names.
    pub fn words<T>(
        &mut self,
        name: &str,
        most: usize,
        allowed: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        self.list(name, most, |fields, item, value| {
            let word = fields.text_of(item, value, TEXT_MAX).and_then(|text| parse(&text));
            if word.is_none() {
                fields.wrong(item, &not_among("{}", allowed));
            }
            word
        })
    }

    /// Objects in a list, each read by `read`.
    pub fn objects<T>(
        &mut self,
        name: &str,
        most: usize,
        read: impl Fn(&mut Fields<'a>) -> Option<T>,
    ) -> Vec<T> {
        self.list(name, most, |fields, item, value| fields.inside(item, value, &read))
    }

    /// The object under a name, read by `read`.
    pub fn object<T>(&mut self, name: &str, read: impl Fn(&mut Fields<'a>) -> Option<T>) -> Option<T> {
        let value = self.get(name)?;
        self.inside(name, value, &read)
    }

    /// Every entry of the object, by name.
    pub fn names(&self) -> Vec<Cow<'a, str>> {
        self.entries.iter().map(|(key, _)| key.clone()).collect()
    }

    /// A value that is kept as it is: a text, a number, a truth or nothing.
    pub fn scalar(&mut self, name: &str, chars_max: usize) -> Option<Scalar> {
        let (_, value) = self.entries.iter().find(|(key, _)| key == name)?;
        let value = *value;
        match sort(value) {
            Sort::Null => Some(Scalar::Null),
            Sort::Truth => Some(Scalar::Truth(value.get() == "true")),
            // Answers and webhooks repeat it: a number that common readers refuse would spoil them.
            Sort::Number if serde_json::from_str::<serde_json::Number>(value.get()).is_err() => {
                self.wrong(name, "The {} field is a number too large to be read back.");
                None
            }
            Sort::Number if value.get().len() > chars_max => {
                self.wrong(name, &format!("The {{}} field must not be greater than {chars_max} characters."));
                None
            }
            Sort::Number => Some(Scalar::Number(value.get().to_owned())),
            Sort::Text => self.text_of(name, value, chars_max).map(Cow::into_owned).map(Scalar::Text),
            _ => {
                self.wrong(name, "The {} field must be a string, a number, a boolean or null.");
                None
            }
        }
    }

    fn inside<T>(
        &mut self,
        name: &str,
        value: &'a RawValue,
        read: &impl Fn(&mut Fields<'a>) -> Option<T>,
    ) -> Option<T> {
        let entries = match serde_json::from_str::<Entries<'a>>(value.get()) {
            _ if is_empty_list(value.get()) => Vec::new(),
            Ok(Entries(entries)) if sort(value) == Sort::Object => entries,
            _ => {
                self.wrong(name, "The {} field must be an object.");
                return None;
            }
        };
        let prefix = [&self.prefix, name, "."].concat();
        let mut inner = Fields { prefix, entries, errors: std::mem::take(&mut self.errors) };
        let result = read(&mut inner);
        self.errors = inner.errors;
        result
    }

    fn list<T>(
        &mut self,
        name: &str,
        most: usize,
        mut read: impl FnMut(&mut Fields<'a>, &str, &'a RawValue) -> Option<T>,
    ) -> Vec<T> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let items: Vec<&'a RawValue> = match sort(value) {
            Sort::List => serde_json::from_str(value.get()).unwrap_or_default(),
            _ => {
                self.wrong(name, "The {} field must be a list.");
                return Vec::new();
            }
        };
        if items.len() > most {
            self.wrong(name, &format!("The {{}} field must not have more than {most} items."));
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

/// A value without parts.
pub enum Scalar {
    /// A string.
    Text(String),
    /// A number, as it was written.
    Number(String),
    /// `true` or `false`.
    Truth(bool),
    /// `null`.
    Null,
}

/// `5.0` is as whole as `5`: some writers of JSON know only one kind of number.
fn parse_whole(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.bytes().all(|b| b == b'0') { whole } else { text }.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_with_and_without_escapes() {
        for (body, text) in [
            (r#"{"t":"plain"}"#, Some("plain")),
            (r#"{"t":"pl\u0061in"}"#, Some("plain")),
            (r#"{"t":"\"\\\n"}"#, Some("\"\\\n")),
            (r#"{"t":"ä\u00e4"}"#, Some("ää")),
            (r#"{"t":"\ud800"}"#, None),
            (r#"{"t":""}"#, None),
            (r#"{"t":7}"#, None),
        ] {
            let mut fields = Fields::read(body.as_bytes()).expect("an object");
            assert_eq!(fields.text("t", 5).as_deref(), text, "{body}");
        }
    }

    #[test]
    fn a_whole_number_may_be_written_as_a_fraction() {
        let count = |body: &str| Fields::read(body.as_bytes()).expect("an object").count("n");
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
