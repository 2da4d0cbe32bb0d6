//! Bytes that are usually text, and their serialized form.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes that are usually text. Serialized as a string if they are UTF-8, otherwise as `{"base64": …}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBytes(pub Vec<u8>);

impl RawBytes {
    /// Returns the bytes as text; invalid UTF-8 becomes U+FFFD.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&[u8]> for RawBytes {
    fn from(bytes: &[u8]) -> RawBytes {
        RawBytes(bytes.to_vec())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredBytes<'a> {
    Text(Cow<'a, str>),
    Bytes { base64: Cow<'a, str> },
}

impl Serialize for RawBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => StoredBytes::Text(text.into()),
            Err(_) => StoredBytes::Bytes { base64: STANDARD.encode(&self.0).into() },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawBytes, D::Error> {
        match StoredBytes::deserialize(deserializer)? {
            StoredBytes::Text(text) => Ok(RawBytes(text.into_owned().into_bytes())),
            StoredBytes::Bytes { base64 } => match STANDARD.decode(base64.as_ref()) {
                Ok(bytes) => Ok(RawBytes(bytes)),
                Err(_) => Err(D::Error::custom("the value of `base64` is not valid base64")),
            },
        }
    }
}
