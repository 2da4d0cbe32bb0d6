//! Reads one string of a JSON document by its pointer. The rest is not parsed into values, because responses are long
//! and the player often needs only an id.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Returns the string at `pointer`, such as `/data/id`; `None` if there is no string, or the document is not JSON.
/// Supports field names only, no list indexes and no escapes.
pub(super) fn extract_str(json: &[u8], pointer: &str) -> Option<String> {
    let mut value: &RawValue = serde_json::from_slice(json).ok()?;
    for name in pointer.split('/').skip(1) {
        value = serde_json::Deserializer::from_str(value.get()).deserialize_map(Field(name)).ok()??;
    }
    serde_json::from_str(value.get()).ok()
}

/// Reads an object and returns the value of one field.
struct Field<'n>(&'n str);

impl<'de> Visitor<'de> for Field<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = fields.next_key::<&RawValue>()? {
            if name.get().trim_matches('"') == self.0 {
                found = Some(fields.next_value()?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::extract_str;

    #[test]
    fn extract_str_returns_the_same_as_a_full_parse() {
        let json =
            r#"{"id":"a","n":[{"id":"b"},-1,2.5],"data":{"id":"c\"\u00e9","at":null,"deep":{"x":true}}}"#;
        let parsed: serde_json::Value = serde_json::from_str(json).unwrap();
        let pointers = ["/id", "/data/id", "/data", "/data/at", "/data/deep/x", "/n/id", "/none", "/id/more"];
        for pointer in pointers {
            let expected = parsed.pointer(pointer).and_then(serde_json::Value::as_str);
            assert_eq!(extract_str(json.as_bytes(), pointer).as_deref(), expected, "{pointer}");
        }
        assert_eq!(extract_str(b"not JSON", "/id"), None);
    }
}
