//! Texts that are written into JSON without the heap.

use std::fmt;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::{
    money::{Coin, Fiat, Rate},
    short::Short,
    time::Timestamp,
};

/// A short text.
pub(super) struct Text(Short);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl From<Short> for Text {
    fn from(text: Short) -> Text {
        Text(text)
    }
}

impl From<Timestamp> for Text {
    fn from(moment: Timestamp) -> Text {
        Text(moment.text())
    }
}

impl From<Fiat> for Text {
    fn from(amount: Fiat) -> Text {
        Text(amount.text())
    }
}

impl From<Coin> for Text {
    fn from(amount: Coin) -> Text {
        Text(amount.text())
    }
}

impl From<Rate> for Text {
    fn from(rate: Rate) -> Text {
        Text(rate.text())
    }
}

/// The id of an event or a delivery.
pub(super) struct IdText(pub(super) Uuid);

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut room = Uuid::encode_buffer();
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut room))
    }
}

/// Texts that stand one behind the other, as an address and what it leads to.
#[derive(Clone, Copy)]
pub(super) struct Joined<'a, const N: usize>(pub(super) [&'a str; N]);

impl<const N: usize> fmt::Display for Joined<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| f.write_str(part))
    }
}

impl<const N: usize> Serialize for Joined<'_, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_texts_are_escaped_as_one() {
        let joined = Joined(["http://a/", "\"", "\n", ""]);
        assert_eq!(serde_json::to_string(&joined).unwrap(), serde_json::to_string("http://a/\"\n").unwrap());
    }

    #[test]
    fn an_id_is_written_as_it_prints() {
        let id = Uuid::from_u128(0x0197_0000_ffff_7abc_8000_0000_0000_0001);
        assert_eq!(serde_json::to_string(&IdText(id)).unwrap(), format!("\"{id}\""));
    }
}
