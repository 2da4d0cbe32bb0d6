//! Texts that are written into JSON without the heap.

use std::fmt;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::json_writer::PlainText;
use reference_core::{
    money::{Coin, Fiat, Percent, Rate},
    time::Timestamp,
};

/// A value that is printed when it is written: a view is moved about a few times, and a text is larger than what it
/// is the text of.
pub(crate) enum Text {
    Moment(Timestamp),
    Fiat(Fiat),
    Coin(Coin),
    /// With all 18 decimals, as webhooks carry it.
    PaddedCoin(Coin),
    Rate(Rate),
    PaddedRate(Rate),
    Percent(Percent),
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = match self {
            Text::Moment(moment) => moment.text(),
            Text::Fiat(amount) => amount.text(),
            Text::Coin(amount) => amount.text(),
            Text::PaddedCoin(amount) => amount.padded(),
            Text::Rate(rate) => rate.text(),
            Text::PaddedRate(rate) => rate.padded(),
            Text::Percent(percent) => percent.text(),
        };
        PlainText(text.as_bytes()).serialize(serializer)
    }
}

impl From<Timestamp> for Text {
    fn from(moment: Timestamp) -> Text {
        Text::Moment(moment)
    }
}

impl From<Fiat> for Text {
    fn from(amount: Fiat) -> Text {
        Text::Fiat(amount)
    }
}

impl From<Coin> for Text {
    fn from(amount: Coin) -> Text {
        Text::Coin(amount)
    }
}

/// The id of an event or a delivery.
pub(crate) struct IdText(pub(crate) Uuid);

impl Serialize for IdText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut room = Uuid::encode_buffer();
        PlainText(self.0.hyphenated().encode_lower(&mut room).as_bytes()).serialize(serializer)
    }
}

/// Texts that stand one behind the other, as an address and what it leads to.
#[derive(Clone, Copy)]
pub(crate) struct Joined<'a, const N: usize>(pub(crate) [&'a str; N]);

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
    use crate::json_writer;

    #[test]
    fn joined_texts_are_escaped_as_one() {
        let joined = Joined(["http://a/", "\"", "\n", ""]);
        assert_eq!(serde_json::to_string(&joined).unwrap(), serde_json::to_string("http://a/\"\n").unwrap());
    }

    #[test]
    fn an_id_is_written_as_it_prints() {
        let id = Uuid::from_u128(0x0197_0000_ffff_7abc_8000_0000_0000_0001);
        let mut body = Vec::new();
        json_writer::write(&mut body, &IdText(id));
        assert_eq!(String::from_utf8(body).unwrap(), format!("\"{id}\""));
    }
}
