//! The body of a response.

use std::{fmt, ops::Deref, sync::Arc, sync::OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The immutable text of a body. It is parsed as JSON at most once; clones share the result.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Body(Arc<Read>);

#[derive(Default)]
struct Read {
    text: String,
    json: OnceLock<Option<Arc<Value>>>,
}

impl Body {
    /// Returns the body as JSON, or `None` if it is not JSON.
    pub fn json(&self) -> Option<Arc<Value>> {
        self.0.json.get_or_init(|| serde_json::from_str(&self.0.text).ok().map(Arc::new)).clone()
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
        Body(Arc::new(Read { text, json: OnceLock::new() }))
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
        self.0.text == other.0.text
    }
}

impl Eq for Body {}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}
