//! Properties of JSON bodies: the declared media type, the presence of text, and duplicate names.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;

use crate::recording::ReceivedResponse;

/// Returns `true` if there is a `Content-Type` and each one declares a JSON body. Clients differ in which of several they
/// use.
pub fn declares_json(response: &ReceivedResponse) -> bool {
    let is_json = |media_type: &str| {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || essence.ends_with("+json")
    };
    let mut media_types = response.headers.iter().filter(|(name, _)| name == "content-type").peekable();
    media_types.peek().is_some() && media_types.all(|(_, media_type)| is_json(media_type))
}

/// Returns `true` if a value contains a non-blank string at any depth.
pub fn has_text(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(members) => members.values().any(has_text),
        _ => false,
    }
}

/// Returns the first duplicate name in any object of a JSON text. Parsing into a `Value` would drop it.
pub fn first_duplicate_name(text: &str) -> Option<String> {
    let mut duplicate = None;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The error stops parsing at the first duplicate name. Text that is not JSON has no names.
    let _ = DuplicateNameFinder { duplicate: &mut duplicate }.deserialize(&mut deserializer);
    duplicate
}

/// A visitor of any value that stops at the first duplicate name.
struct DuplicateNameFinder<'a> {
    duplicate: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for DuplicateNameFinder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DuplicateNameFinder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = std::collections::BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                *self.duplicate = Some(name);
                return Err(A::Error::custom("a name is given twice"));
            }
            map.next_value_seed(DuplicateNameFinder { duplicate: self.duplicate })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(DuplicateNameFinder { duplicate: self.duplicate })?.is_some() {}
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        IgnoredAny::deserialize(deserializer).map(drop)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_duplicate(text: &str, expected: Option<&str>) {
        assert_eq!(first_duplicate_name(text).as_deref(), expected);
    }

    #[test]
    fn a_duplicate_name_is_found_at_any_depth() {
        check_duplicate(r#"{"a":1,"a":1}"#, Some("a"));
        check_duplicate(r#"{"a":[1,null,{"b":{"c":1.5,"c":"x"}}]}"#, Some("c"));
    }

    #[test]
    fn the_same_name_in_two_objects_is_fine() {
        check_duplicate(r#"[{"a":1},{"a":true}]"#, None);
        check_duplicate("no json", None);
    }
}
