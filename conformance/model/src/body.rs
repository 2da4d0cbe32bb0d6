//! The body of a response.

use std::{fmt, ops::Deref, sync::Arc, sync::OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The immutable text of a body. It is parsed as JSON at most once; clones share the result.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "StoredBody", into = "StoredBody")]
pub struct Body(Arc<BodyText>);

struct BodyText {
    text: String,
    is_utf8: bool,
    json: OnceLock<Option<Value>>,
}

impl Default for BodyText {
    fn default() -> BodyText {
        BodyText { text: String::new(), is_utf8: true, json: OnceLock::new() }
    }
}

/// The serialized form of a body: a string, or `{"not_utf8": …}` with a replacement character for each invalid
/// sequence.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredBody {
    Text(String),
    Invalid { not_utf8: String },
}

impl Body {
    /// Creates a body from bytes, with a replacement character for each sequence that is not UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Body {
        Body::from_text(String::from_utf8_lossy(bytes).into_owned(), std::str::from_utf8(bytes).is_ok())
    }

    /// Creates a body from text in which each replacement character stands for bytes that were not UTF-8.
    pub fn not_utf8(text: String) -> Body {
        Body::from_text(text, false)
    }

    fn from_text(text: String, is_utf8: bool) -> Body {
        Body(Arc::new(BodyText { text, is_utf8, json: OnceLock::new() }))
    }

    /// Returns `true` if all bytes of the body were UTF-8.
    pub fn is_utf8(&self) -> bool {
        self.0.is_utf8
    }

    /// Returns a body with another text and the same [`Body::is_utf8`].
    #[must_use]
    pub fn with_text(&self, text: String) -> Body {
        Body::from_text(text, self.0.is_utf8)
    }

    /// Returns the body as JSON, or `None` if it is not JSON.
    pub fn json(&self) -> Option<&Value> {
        self.0.json.get_or_init(|| serde_json::from_str(&self.0.text).ok()).as_ref()
    }
}

impl Deref for Body {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::from_text(text, true)
    }
}

impl From<StoredBody> for Body {
    fn from(stored: StoredBody) -> Body {
        match stored {
            StoredBody::Text(text) => text.into(),
            StoredBody::Invalid { not_utf8 } => Body::not_utf8(not_utf8),
        }
    }
}

impl From<Body> for StoredBody {
    fn from(body: Body) -> StoredBody {
        match body.is_utf8() {
            true => StoredBody::Text(body.into()),
            false => StoredBody::Invalid { not_utf8: body.into() },
        }
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Body {
        text.to_owned().into()
    }
}

impl From<Body> for String {
    fn from(body: Body) -> String {
        body.0.text.clone()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Body) -> bool {
        (self.0.is_utf8, &self.0.text) == (other.0.is_utf8, &other.0.text)
    }
}

impl Eq for Body {}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        let body = Body::from_bytes(bytes);
        let written = serde_json::to_string(&body).expect("every body can be serialized");
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_str::<Body>(&written).expect("a written body parses"), body);
    }

    #[test]
    fn bytes_that_are_not_utf8_differ_from_a_replacement_character() {
        check("T\u{fffd} 茶".as_bytes(), "\"T\u{fffd} 茶\"");
        check(b"T\xffa", "{\"not_utf8\":\"T\u{fffd}a\"}");
        assert!(Body::from_bytes(b"{}").is_utf8() && !Body::from_bytes(b"\xe4").is_utf8());
        assert!(!Body::from_bytes(b"\xe4").with_text("blank".into()).is_utf8());
    }
}
