//! Bytes that are mostly text, and their form in files.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes that are mostly text. A record holds them as a text, or as `{"base64": …}` if they are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Octets(pub Vec<u8>);

impl Octets {
    /// The bytes as text; what is no text becomes a placeholder.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<&[u8]> for Octets {
    fn from(bytes: &[u8]) -> Octets {
        Octets(bytes.to_vec())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written<'a> {
    Text(Cow<'a, str>),
    Bytes { base64: Cow<'a, str> },
}

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => Written::Text(text.into()),
            Err(_) => Written::Bytes { base64: STANDARD.encode(&self.0).into() },
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Octets, D::Error> {
        match Written::deserialize(from)? {
            Written::Text(text) => Ok(Octets(text.into_owned().into_bytes())),
            Written::Bytes { base64: text } => match STANDARD.decode(text.as_ref()) {
                Ok(bytes) => Ok(Octets(bytes)),
                Err(_) => Err(D::Error::custom("`base64` takes base64")),
            },
        }
    }
}
