//! One text out of a JSON document, by its pointer, without building the rest of it: an answer is long, and a player
//! wants an id.

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// The text at `pointer`, such as `/data/id`; `None` if there is no text there, or if the answer is not JSON. Knows
/// names of fields only, no places in lists and no escapes.
pub(super) fn extract_str(json: &[u8], pointer: &str) -> Option<String> {
    let mut found = None;
    // Reading ends with an error where the text was found: nobody needs the rest.
    let _ = Extract { path: pointer, found: &mut found }
        .deserialize(&mut serde_json::Deserializer::from_slice(json));
    found
}

struct Extract<'a> {
    /// What is left of the pointer.
    path: &'a str,
    found: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Extract<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Extract<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if !self.path.is_empty() {
            return Ok(());
        }
        *self.found = Some(text.to_owned());
        Err(E::custom("it was found"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let path = self.path.strip_prefix('/').unwrap_or_default();
        let name = path.split('/').next().unwrap_or_default();
        let rest = &path[name.len()..];
        while let Some(is_it) = map.next_key_seed(FieldNamed(name))? {
            if is_it {
                map.next_value_seed(Extract { path: rest, found: &mut *self.found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
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

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Whether a field has this name.
struct FieldNamed<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for FieldNamed<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldNamed<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        Ok(text == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::extract_str;

    #[test]
    fn extraction_finds_what_a_reader_of_it_all_finds() {
        let json =
            r#"{"id":"a","n":[{"id":"b"},-1,2.5],"data":{"id":"c\"\u00e9","at":null,"deep":{"x":true}}}"#;
        let whole: serde_json::Value = serde_json::from_str(json).unwrap();
        let pointers = ["/id", "/data/id", "/data", "/data/at", "/data/deep/x", "/n/id", "/none", "/id/more"];
        for pointer in pointers {
            let expected = whole.pointer(pointer).and_then(serde_json::Value::as_str);
            assert_eq!(extract_str(json.as_bytes(), pointer).as_deref(), expected, "{pointer}");
        }
        assert_eq!(extract_str(b"no JSON", "/id"), None);
    }
}
