//! Short ASCII text on the stack. An answer holds dozens of amounts and times, and none of them needs the heap.

use std::fmt;

/// A text of at most [`AsciiBuf::ROOM`] ASCII characters.
#[derive(Clone, Copy)]
pub struct AsciiBuf {
    bytes: [u8; AsciiBuf::ROOM],
    len: usize,
}

/// `00` to `99`: two digits are one division.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + n as u8 / 10, b'0' + n as u8 % 10];
        n += 1;
    }
    pairs
};

impl Default for AsciiBuf {
    fn default() -> AsciiBuf {
        AsciiBuf { bytes: [0; AsciiBuf::ROOM], len: 0 }
    }
}

impl AsciiBuf {
    /// The longest text.
    pub const ROOM: usize = 48;

    /// Adds a character, which must be ASCII.
    pub fn push(&mut self, byte: u8) {
        debug_assert!(byte.is_ascii());
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Adds a number without leading zeros.
    pub fn number(&mut self, n: u64) {
        let width = n.checked_ilog10().map_or(1, |digits| digits as usize + 1);
        self.padded(n, width);
    }

    /// Adds the last `width` digits of a number, with leading zeros.
    pub fn padded(&mut self, mut n: u64, width: usize) {
        let (first, pairs) = self.bytes[self.len..self.len + width].as_rchunks_mut::<2>();
        for pair in pairs.iter_mut().rev() {
            *pair = PAIRS[(n % 100) as usize];
            n /= 100;
        }
        if let [first] = first {
            *first = b'0' + (n % 10) as u8;
        }
        self.len += width;
    }

    /// Takes trailing zeros away, and then a trailing point.
    pub fn trim_fraction(&mut self) {
        while self.len > 0 && self.bytes[self.len - 1] == b'0' {
            self.len -= 1;
        }
        if self.len > 0 && self.bytes[self.len - 1] == b'.' {
            self.len -= 1;
        }
    }

    /// The text's letters: cheaper than the text, which must be looked through.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("only ASCII is added")
    }
}

impl fmt::Display for AsciiBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_library_writes_them() {
        for n in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX] {
            let mut text = AsciiBuf::default();
            text.number(n);
            text.push(b' ');
            text.padded(n, 20);
            text.push(b' ');
            text.padded(n, 3);
            assert_eq!(text.as_str(), format!("{n} {n:020} {:03}", n % 1_000));
        }
    }

    #[test]
    fn only_a_fraction_loses_its_zeros() {
        let mut text = AsciiBuf::default();
        text.number(100);
        text.push(b'.');
        text.padded(2_500, 4);
        text.trim_fraction();
        assert_eq!(text.as_str(), "100.25");
        let mut text = AsciiBuf::default();
        text.number(100);
        text.push(b'.');
        text.padded(0, 4);
        text.trim_fraction();
        assert_eq!(text.to_string(), "100");
    }
}
