//! Format-preserving encryption: a Feistel network over the letters and digits of a text.
//!
//! A permutation has no collisions, unlike a hash, so no two different values become equal.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The number of rounds of the network. Four give a pseudorandom permutation if the round function is pseudorandom.
const ROUNDS: u8 = 4;

/// A format-preserving cipher with its key.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Cipher {
    key: [u8; 32],
}

/// A character that is replaced: the first character and the size of its alphabet, and its index in the alphabet.
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

    /// Returns another text with letters and digits at the same positions, and the same punctuation. A decimal number
    /// becomes another number.
    pub(super) fn encrypt_text(&self, text: &str) -> String {
        if is_decimal(text) {
            return self.encrypt_number(text);
        }
        // The scheme of a URL is not personal, and a check may need it.
        let scheme_len = text.find("://").map_or(0, |start| start + "://".len());
        let (scheme, rest) = text.split_at(scheme_len);
        let is_hex = rest.chars().all(|character| character.is_ascii_hexdigit())
            && rest.chars().any(|character| character.is_ascii_digit());
        let slots: Vec<_> = rest.chars().map(|character| slot_of(character, is_hex)).collect();
        scheme.to_owned() + &self.permute(rest, &slots)
    }

    /// Returns another number with as many digits. Zero stays zero, and no other number becomes zero.
    pub(super) fn encrypt_number(&self, text: &str) -> String {
        let mantissa_len = text.find(['e', 'E']).unwrap_or(text.len());
        let (digits, exponent) = text.split_at(mantissa_len);
        if digits.bytes().all(|byte| !matches!(byte, b'1'..=b'9')) {
            return text.to_owned();
        }
        let integer_len = digits.find('.').unwrap_or(digits.len());
        let first = digits.find(|character: char| character.is_ascii_digit());
        let slot = |(index, digit): (usize, char)| {
            let is_leading = Some(index) == first && index < integer_len;
            match digit {
                '0' if is_leading => None,
                '1'..='9' if is_leading => {
                    Some(Slot { first: '1' as u32, size: 9, index: digit as u32 - '1' as u32 })
                }
                '0'..='9' => Some(Slot { first: '0' as u32, size: 10, index: digit as u32 - '0' as u32 }),
                _ => None,
            }
        };
        let mut hidden = digits.to_owned();
        // Encrypted again until it is not zero, which preserves the permutation.
        loop {
            let slots: Vec<_> = hidden.char_indices().map(slot).collect();
            hidden = self.permute(&hidden, &slots);
            if hidden.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
                return hidden + exponent;
            }
        }
    }

    /// Replaces the characters that have a slot, by a permutation of all texts with these slots.
    fn permute(&self, text: &str, slots: &[Option<Slot>]) -> String {
        let mut permuted: Vec<Slot> = slots.iter().copied().flatten().collect();
        let fixed_text: String = text
            .chars()
            .zip(slots)
            .map(|(character, slot)| if slot.is_some() { '\0' } else { character })
            .collect();
        let (left, right) = permuted.split_at_mut(slots.iter().flatten().count().div_ceil(2));
        for round in 0..ROUNDS {
            match round % 2 {
                0 => self.apply_round(round, &fixed_text, left, right),
                _ => self.apply_round(round, &fixed_text, right, left),
            }
        }
        let mut permuted = permuted.into_iter();
        let characters = text.chars().zip(slots).map(|(character, slot)| match slot {
            None => character,
            Some(_) => {
                let slot = permuted.next().expect("the number of slots is unchanged");
                char::from_u32(slot.first + slot.index).unwrap_or(character)
            }
        });
        characters.collect()
    }

    /// Shifts one half by a keyed function of the other.
    fn apply_round(&self, round: u8, fixed_text: &str, half: &mut [Slot], other: &[Slot]) {
        let mut input = vec![round];
        for slot in other {
            input.extend((slot.first + slot.index).to_be_bytes());
        }
        // Each slot uses four of the 32 bytes of an HMAC.
        for (block, slots) in (0_u32..).zip(half.chunks_mut(8)) {
            let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC accepts keys of any length");
            // The length of the input separates it from the fixed text.
            mac.update(&(input.len() as u64).to_be_bytes());
            mac.update(&input);
            mac.update(&block.to_be_bytes());
            mac.update(fixed_text.as_bytes());
            let stream = mac.finalize().into_bytes();
            for (slot, bytes) in slots.iter_mut().zip(stream.chunks_exact(4)) {
                let shift = u32::from_be_bytes(bytes.try_into().expect("each chunk has four bytes"));
                slot.index = (slot.index + shift % slot.size) % slot.size;
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

/// Returns the slot of a character, or `None` if it is not replaced. `is_hex`: replaces hexadecimal letters by each
/// other only.
fn slot_of(character: char, is_hex: bool) -> Option<Slot> {
    /// The size of the blocks in which characters beyond ASCII are permuted. All in a block have the same length in
    /// UTF-8.
    const BLOCK: u32 = 64;
    let letter_count = if is_hex { 6 } else { 26 };
    let (first, size) = match character {
        '0'..='9' => ('0' as u32, 10),
        'a'..='z' => ('a' as u32, letter_count),
        'A'..='Z' => ('A' as u32, letter_count),
        _ if character.is_ascii() => return None,
        _ => (character as u32 / BLOCK * BLOCK, BLOCK),
    };
    Some(Slot { first, size, index: character as u32 - first })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check_format(text: &str) {
        let hidden = Cipher::new([1; 32]).encrypt_text(text);
        assert_ne!(hidden, text);
        assert_eq!(hidden, Cipher::new([1; 32]).encrypt_text(text), "equal keys give equal texts");
        assert_ne!(hidden, Cipher::new([2; 32]).encrypt_text(text), "different keys give different texts");
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
        check_format("ann.lee@shop.example");
        check_format("49.90");
        check_format("0.001200000000000000");
        check_format("https://pay.example/c/k3m9x2?who=Ann");
        check_format("0xDe0B295669a9FD93d5F28D9Ec85E40f4cb697BAe");
        check_format("Jürgen Ōno 小野");
    }

    #[test]
    fn different_values_stay_different() {
        let cipher = Cipher::new([3; 32]);
        for count in [10_usize, 100, 1000] {
            let width = count.ilog10() as usize;
            let amounts: BTreeSet<_> =
                (0..count).map(|n| cipher.encrypt_text(&format!("0.{n:0width$}"))).collect();
            assert_eq!(amounts.len(), count);
            let words: BTreeSet<_> =
                (0..count).map(|n| cipher.encrypt_text(&format!("order {n:0width$}"))).collect();
            assert_eq!(words.len(), count);
        }
    }

    #[test]
    fn zero_stays_zero_and_numbers_stay_numbers() {
        let cipher = Cipher::new([4; 32]);
        assert_eq!(
            (cipher.encrypt_text("0.00"), cipher.encrypt_text("")),
            ("0.00".to_owned(), String::new())
        );
        for n in 1..200 {
            let hidden = cipher.encrypt_number(&n.to_string());
            assert!(!hidden.starts_with('0'), "{hidden}");
        }
        assert!(cipher.encrypt_number("1.5e-7").ends_with("e-7"), "an exponent stays");
        assert!(cipher.encrypt_text("https://shop.example").starts_with("https://"));
        assert!(cipher.encrypt_text("deadbeef01").chars().all(|character| character.is_ascii_hexdigit()));
    }
}
