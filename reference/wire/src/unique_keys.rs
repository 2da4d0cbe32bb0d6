//! The check for duplicate keys in any object of a JSON text.
//!
//! Parsers differ in which of the two values they keep. The check reads the text once, at any depth.

use std::{borrow::Cow, collections::BTreeSet};

/// Returns the first duplicate key of any object in a JSON text. The result for invalid JSON is unspecified.
pub(crate) fn duplicate_key(json: &str) -> Option<Cow<'_, str>> {
    // The unclosed objects with their keys so far, and `None` for each unclosed list.
    let mut unclosed: Vec<Option<BTreeSet<Cow<'_, str>>>> = Vec::new();
    let mut rest = json;
    while let Some(index) = rest.find(['"', '{', '}', '[', ']']) {
        let (character, after) = (rest.as_bytes()[index], &rest[index + 1..]);
        rest = after;
        match character {
            b'{' => unclosed.push(Some(BTreeSet::new())),
            b'[' => unclosed.push(None),
            b'"' => {
                let end = string_end(after);
                rest = after.get(end + 1..).unwrap_or_default();
                if let (Some(Some(keys)), true) =
                    (unclosed.last_mut(), rest.trim_ascii_start().starts_with(':'))
                    && let Some(duplicate) = keys.replace(unescape(&after[..end]))
                {
                    return Some(duplicate);
                }
            }
            _ => drop(unclosed.pop()),
        }
    }
    None
}

/// Returns the position of the quote that ends a string; the length of the text if it is missing.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(text.len())
}

/// Returns a key without escapes; as written if the escapes are invalid.
fn unescape(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    serde_json::from_str(&format!("\"{written}\"")).map_or(Cow::Borrowed(written), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_key_is_found_at_every_depth() {
        for (json, duplicate) in [
            (r#"{}"#, None),
            (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#, None),
            (r#"{"a":"a","b":"a"}"#, None),
            (r#"{"a":["b","b"],"b":"{\"a\":1,\"a\":2}"}"#, None),
            (r#"{"a":1e400,"b":-0.5,"c":null,"d":true}"#, None),
            (r#"{"a":1,"a":2}"#, Some("a")),
            (r#"{"a":1, "\u0061" : 2}"#, Some("a")),
            (r#"{"a\\":1,"a\\":2}"#, Some("a\\")),
            (r#"{"":1,"":2}"#, Some("")),
            (r#"{"a":{"b":1,"b":2}}"#, Some("b")),
            (r#"{"a":{"b":1},"c":[[{"d":{"e":1,"f":{},"e":[]}}]]}"#, Some("e")),
            (r#"{"a":{"x":1},"b":1,"a":{}}"#, Some("a")),
            (r#"{"\ud800":1,"\ud800":2}"#, Some("\\ud800")),
        ] {
            assert_eq!(duplicate_key(json).as_deref(), duplicate, "{json}");
        }
    }

    #[test]
    fn keys_are_checked_at_a_depth_of_80_000() {
        let deep = |inside: &str| format!("{}{inside}{}", r#"{"a":["#.repeat(40_000), "]}".repeat(40_000));
        assert_eq!(duplicate_key(&deep("")), None);
        assert_eq!(duplicate_key(&deep(r#"{"b":1,"b":2}"#)).as_deref(), Some("b"));
    }
}
