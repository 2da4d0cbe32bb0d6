//! The text of a decimal in a fixed buffer. It needs no allocation, because every object in a response has about ten
//! decimals.

use std::{
    fmt::{self, Write},
    ops::Deref,
};

/// Enough for every 128-bit integer (39 digits), a point and a leading zero.
const LEN_MAX: usize = 41;

/// A decimal number as text, with all its decimals.
#[derive(Clone, Copy, Debug)]
pub struct DecimalText {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl DecimalText {
    /// Formats `n` × 10^-`scale`; `scale` is 1 to 18.
    pub(super) fn new(n: u128, scale: u32) -> DecimalText {
        let unit = 10_u64.pow(scale);
        let (whole, part) = (n / u128::from(unit), n % u128::from(unit));
        let part = u64::try_from(part).expect("a remainder is below its divisor");
        let mut text = DecimalText { bytes: [0; LEN_MAX], len: 0 };
        text.append(whole);
        let point = text.len;
        // Adding the unit keeps the decimals' leading zeros; the point then replaces the unit's digit.
        text.append(unit + part);
        text.bytes[point] = b'.';
        text
    }

    fn append(&mut self, digits: impl fmt::Display) {
        write!(self, "{digits}").expect("the buffer has room for 128 bits");
    }

    /// Returns the text without trailing zeros, and without the point if no decimals remain.
    pub(super) fn trimmed(&self) -> &str {
        self.trim_end_matches('0').trim_end_matches('.')
    }
}

impl Write for DecimalText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl Deref for DecimalText {
    type Target = str;

    fn deref(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).expect("digits are text")
    }
}

impl fmt::Display for DecimalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_all_its_decimals() {
        #[track_caller]
        fn check(n: u128, scale: u32, expected: &str, trimmed: &str) {
            let text = DecimalText::new(n, scale);
            assert_eq!((&*text, text.trimmed()), (expected, trimmed));
        }
        check(0, 2, "0.00", "0");
        check(7, 2, "0.07", "0.07");
        check(1_000, 2, "10.00", "10");
        check(1, 18, "0.000000000000000001", "0.000000000000000001");
        check(
            u128::MAX,
            18,
            "340282366920938463463.374607431768211455",
            "340282366920938463463.374607431768211455",
        );
        check(
            u128::MAX,
            1,
            "34028236692093846346337460743176821145.5",
            "34028236692093846346337460743176821145.5",
        );
    }
}
