//! One text out of a JSON document, by its pointer, without building the rest of it: an answer is long, and a player
//! wants an id.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The text at `pointer`, such as `/data/id`; `None` if there is no text there, or if the answer is not JSON. Knows
/// names of fields only, no places in lists and no escapes.
pub(super) fn extract_str(json: &[u8], pointer: &str) -> Option<String> {
    let mut value: &RawValue = serde_json::from_slice(json).ok()?;
    for name in pointer.split('/').skip(1) {
        value = serde_json::from_str::<BTreeMap<String, &RawValue>>(value.get()).ok()?.remove(name)?;
    }
    serde_json::from_str(value.get()).ok()
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
