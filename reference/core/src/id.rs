//! Identifiers: public codes, event and delivery ids, and the numbers of objects.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Uuid, fmt::Hyphenated};

use crate::{rng::RngKey, time::Timestamp};

const CODE_LEN: usize = 12;
const CODE_ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The public code of a charge, an invoice or a payment link, which is its id in the API: 12 characters of `[a-z0-9]`
/// (choice `open.ids.code` in `CHOICES.md`). Endpoints and API keys have codes as ids in the dashboard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Code([u8; CODE_LEN]);

impl Code {
    /// Draws the code of the `n`th object of its kind.
    pub fn draw(rng_key: &RngKey, n: u64) -> Code {
        let mut stream = rng_key.stream(n);
        Code(std::array::from_fn(|_| CODE_ALPHABET[stream.below(CODE_ALPHABET.len() as u64) as usize]))
    }

    /// Parses a code; returns `None` if no object can have it.
    pub fn parse(text: &str) -> Option<Code> {
        let bytes: [u8; CODE_LEN] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9')).then_some(Code(bytes))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("a code is ASCII")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Parses the id of an event or a delivery: with hyphens, in upper or lower case. Returns `None` for other formats.
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    // Of the formats that the parser accepts, only the one with hyphens has this length.
    (text.len() == Hyphenated::LENGTH).then(|| Uuid::try_parse(text).ok()).flatten()
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the index in the list of its kind, from 0.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Returns the number of the object at an index of the list of its kind. With the length of the list as
            /// index, it is the number of the next object.
            ///
            /// # Panics
            ///
            /// Panics if there are 2^32 objects of a kind.
            pub fn from_index(index: usize) -> $name {
                $name(u32::try_from(index).expect("there are fewer than 2^32 objects of a kind"))
            }
        }
    )*};
}

numbers! {
    /// The number of a charge in its [`Book`](crate::book::Book), in order of creation.
    ChargeNo;
    /// The number of an invoice in its book.
    InvoiceNo;
    /// The number of a payment link in its book.
    LinkNo;
    /// The number of an event in its book.
    EventNo;
    /// The number of a delivery in its book.
    DeliveryNo;
    /// The number of a webhook endpoint in its book.
    EndpointNo;
    /// The number of an account in the service.
    AccountNo;
    /// The number of an API key in the service.
    KeyNo;
}

impl AccountNo {
    /// Returns the numbers of the first `len` accounts.
    pub(crate) fn first_n(len: usize) -> impl Iterator<Item = AccountNo> {
        (0..len).map(AccountNo::from_index)
    }
}

/// Generates the event ids or the delivery ids of one [`Book`](crate::book::Book): strictly increasing UUIDs of version 7.
///
/// The millisecond and, in `rand_a`, the microsecond come from the service clock; 20 bits count the ids of one
/// microsecond; the rest is keyed randomness (choice `open.ids.uuid` in `CHOICES.md`).
#[derive(Serialize, Deserialize)]
pub struct IdGenerator {
    rng_key: RngKey,
    /// The number of ids generated so far.
    generated: u64,
    /// The time in the latest id.
    last_at: Timestamp,
    /// The number of ids with that time.
    count: u32,
}

impl IdGenerator {
    /// The number of ids that one microsecond can have.
    const COUNT_END: u32 = 1 << 20;

    /// Creates a generator.
    pub fn new(rng_key: RngKey) -> IdGenerator {
        IdGenerator { rng_key, generated: 0, last_at: Timestamp(0), count: 0 }
    }

    /// Returns the next id.
    pub fn next(&mut self, now: Timestamp) -> Uuid {
        if now > self.last_at {
            self.last_at = now;
            self.count = 0;
        }
        if self.count == IdGenerator::COUNT_END {
            self.last_at = Timestamp(self.last_at.0 + 1);
            self.count = 0;
        }
        let (millis, micros) = (u128::from(self.last_at.0 / 1_000), u128::from(self.last_at.0 % 1_000));
        let drawn = u128::from(self.rng_key.stream(self.generated).bits() >> 22);
        let id = Uuid::from_u128(
            (millis << 80) | (7 << 76) | (micros << 64) | (2 << 62) | (u128::from(self.count) << 42) | drawn,
        );
        self.count += 1;
        self.generated += 1;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    #[test]
    fn only_twelve_lower_case_letters_and_digits_are_a_code() {
        let code = Code::draw(&Seed(1).rng_key("live", "acme", "charge"), 0);
        assert_eq!(Code::parse(code.as_str()), Some(code));
        for text in ["", "short", "ABCDEFGHIJKL", "abcdefghijk-", "abcdefghijklm", "äbcdefghijk"] {
            assert_eq!(Code::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_is_parsed_with_hyphens_in_either_case() {
        let text = "019b8d5a-6f80-7123-8000-00000abcdef0";
        for spelling in [text, &text.to_uppercase()] {
            assert_eq!(parse_uuid(spelling).map(|id| id.to_string()).as_deref(), Some(text));
        }
        for other in [
            "",
            "019b8d5a",
            "019b8d5a6f80712380000000abcdef00",
            "{019b8d5a-6f80-7123-8000-00000abcdef0}",
            "urn:uuid:019b8d5a-6f80-7123-8000-00000abcdef0",
            "019b8d5a-6f80-7123-8000-00000abcdefg",
            "019b8d5a-6f80-7123-80000-0000abcdef0",
            "019b8d5a06f800712308000000000abcdef0",
            "0123456789abcdef0123456789abcdef----",
        ] {
            assert_eq!(parse_uuid(other), None, "{other}");
        }
    }

    #[test]
    fn ids_strictly_rise_and_contain_their_time() {
        let mut ids = IdGenerator::new(Seed(1).rng_key("live", "acme", "event"));
        let now = Timestamp(1_767_603_600_123_456);
        let mut last = ids.next(now);
        assert_eq!(last.get_version_num(), 7);
        assert_eq!(last.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(last.as_u128() >> 80, 1_767_603_600_123);
        assert_eq!((last.as_u128() >> 64) & 0xfff, 456);
        for step in [0, 0, 1, 0, 999, 1_000_000, 0] {
            let id = ids.next(Timestamp(now.0 + step));
            assert!(id > last, "{id} after {last}");
            last = id;
        }
    }

    #[test]
    fn ids_beyond_the_count_of_a_microsecond_use_the_next_one() {
        let mut ids = IdGenerator::new(Seed(1).rng_key("live", "acme", "event"));
        ids.next(Timestamp(999));
        ids.count = IdGenerator::COUNT_END;
        let id = ids.next(Timestamp(999));
        assert_eq!((id.as_u128() >> 80, (id.as_u128() >> 64) & 0xfff), (1, 0));
    }
}
