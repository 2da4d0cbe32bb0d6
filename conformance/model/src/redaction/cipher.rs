//! Format-preserving encryption: a Feistel network over the letters and digits of a text.
//!
//! A permutation has no collisions, unlike a hash, so no two different values become equal.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The rounds of the network. Four give a pseudorandom permutation if the round function is pseudorandom.
const ROUNDS: u8 = 4;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Cipher {
    key: [u8; 32],
}

/// A character that may change: the first character and the size of its alphabet, and its index there.
#[derive(Clone, Copy)]
struct Slot {
    first: u32,
    size: u32,
    index: u32,
}

impl Cipher {
    pub(super) fn new(key: [u8; 32]) -> Cipher {
        Cipher { key }
    }

    /// Returns another text with letters and digits at the same positions, and the same punctuation.
    pub(super) fn text(&self, text: &str) -> String {
        if is_decimal(text) {
            return self.number(text);
        }
        // The scheme of a URL is not personal, and a check may need it.
        let open = text.find("://").map_or(0, |at| at + "://".len());
        let (scheme, rest) = text.split_at(open);
        let is_hex = rest.chars().all(|character| character.is_ascii_hexdigit())
            && rest.chars().any(|character| character.is_ascii_digit());
        let slots: Vec<_> = rest.chars().map(|letter| slot_of(letter, is_hex)).collect();
        scheme.to_owned() + &self.permute(rest, &slots)
    }

    /// Returns another number with as many digits. Zero stays zero, and no other number becomes zero.
    pub(super) fn number(&self, text: &str) -> String {
        let mantissa = text.find(['e', 'E']).unwrap_or(text.len());
        let (digits, exponent) = text.split_at(mantissa);
        if digits.bytes().all(|byte| !matches!(byte, b'1'..=b'9')) {
            return text.to_owned();
        }
        let whole = digits.find('.').unwrap_or(digits.len());
        let first = digits.find(|character: char| character.is_ascii_digit());
        let slot = |(at, letter): (usize, char)| {
            let leads = Some(at) == first && at < whole;
            match letter {
                '0' if leads => None,
                '1'..='9' if leads => {
                    Some(Slot { first: '1' as u32, size: 9, index: letter as u32 - '1' as u32 })
                }
                '0'..='9' => Some(Slot { first: '0' as u32, size: 10, index: letter as u32 - '0' as u32 }),
                _ => None,
            }
        };
        let mut hidden = digits.to_owned();
        loop {
            let slots: Vec<_> = hidden.char_indices().map(slot).collect();
            hidden = self.permute(&hidden, &slots);
            if hidden.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
                return hidden + exponent;
            }
        }
    }

    fn permute(&self, text: &str, slots: &[Option<Slot>]) -> String {
        let mut moving: Vec<Slot> = slots.iter().copied().flatten().collect();
        let shape: String = text
            .chars()
            .zip(slots)
            .map(|(letter, slot)| if slot.is_some() { '\0' } else { letter })
            .collect();
        let (left, right) = moving.split_at_mut(slots.iter().flatten().count().div_ceil(2));
        for round in 0..ROUNDS {
            match round % 2 {
                0 => self.turn(round, &shape, left, right),
                _ => self.turn(round, &shape, right, left),
            }
        }
        let mut moved = moving.into_iter();
        let letters = text.chars().zip(slots).map(|(letter, slot)| match slot {
            None => letter,
            Some(_) => {
                let slot = moved.next().expect("the number of slots is unchanged");
                char::from_u32(slot.first + slot.index).unwrap_or(letter)
            }
        });
        letters.collect()
    }

    /// Shifts one half by a keyed function of the other.
    fn turn(&self, round: u8, shape: &str, half: &mut [Slot], other: &[Slot]) {
        let mut input = vec![round];
        for slot in other {
            input.extend((slot.first + slot.index).to_be_bytes());
        }
        for (block, slots) in (0_u32..).zip(half.chunks_mut(8)) {
            let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC accepts keys of any length");
            // The length of the other half separates it from the shape.
            mac.update(&(input.len() as u64).to_be_bytes());
            mac.update(&input);
            mac.update(&block.to_be_bytes());
            mac.update(shape.as_bytes());
            let stream = mac.finalize().into_bytes();
            for (slot, bytes) in slots.iter_mut().zip(stream.chunks_exact(4)) {
                let step = u32::from_be_bytes(bytes.try_into().expect("each chunk has four bytes"));
                slot.index = (slot.index + step % slot.size) % slot.size;
            }
        }
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|character: char| character.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().filter(|byte| *byte == b'.').count() <= 1
}

fn slot_of(letter: char, is_hex: bool) -> Option<Slot> {
    /// The size of the blocks in which letters beyond ASCII are permuted: the same number of bytes in UTF-8.
    const BLOCK: u32 = 64;
    let letters = if is_hex { 6 } else { 26 };
    let (first, size) = match letter {
        '0'..='9' => ('0' as u32, 10),
        'a'..='z' => ('a' as u32, letters),
        'A'..='Z' => ('A' as u32, letters),
        _ if letter.is_ascii() => return None,
        _ => (letter as u32 / BLOCK * BLOCK, BLOCK),
    };
    Some(Slot { first, size, index: letter as u32 - first })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let hidden = Cipher::new([1; 32]).text(text);
        assert_ne!(hidden, text);
        assert_eq!(hidden, Cipher::new([1; 32]).text(text), "the same key hides alike");
        assert_ne!(hidden, Cipher::new([2; 32]).text(text), "another key hides otherwise");
        assert_eq!(hidden.len(), text.len());
        for (before, after) in text.chars().zip(hidden.chars()).filter(|(before, _)| before.is_ascii()) {
            let class = |character: char| {
                (character.is_ascii_digit(), character.is_ascii_lowercase(), character.is_ascii_uppercase())
            };
            assert_eq!(class(before), class(after), "{hidden}");
        }
    }

    #[test]
    fn a_replaced_value_has_the_same_format() {
        check("ann.lee@shop.example");
        check("49.90");
        check("0.001200000000000000");
        check("https://pay.example/c/k3m9x2?who=Ann");
        check("0xDe0B295669a9FD93d5F28D9Ec85E40f4cb697BAe");
        check("Jürgen Ōno 小野");
    }

    #[test]
    fn different_values_stay_different() {
        let cipher = Cipher::new([3; 32]);
        for count in [10_usize, 100, 1000] {
            let width = count.ilog10() as usize;
            let amounts: BTreeSet<_> = (0..count).map(|n| cipher.text(&format!("0.{n:0width$}"))).collect();
            assert_eq!(amounts.len(), count);
            let words: BTreeSet<_> = (0..count).map(|n| cipher.text(&format!("order {n:0width$}"))).collect();
            assert_eq!(words.len(), count);
        }
    }

    #[test]
    fn zero_stays_zero_and_numbers_stay_numbers() {
        let cipher = Cipher::new([4; 32]);
        assert_eq!((cipher.text("0.00"), cipher.text("")), ("0.00".to_owned(), String::new()));
        for n in 1..200 {
            let hidden = cipher.number(&n.to_string());
            assert!(!hidden.starts_with('0'), "{hidden}");
        }
        assert!(cipher.number("1.5e-7").ends_with("e-7"), "an exponent stays");
        assert!(cipher.text("https://shop.example").starts_with("https://"));
        assert!(cipher.text("deadbeef01").chars().all(|character| character.is_ascii_hexdigit()));
    }
}
