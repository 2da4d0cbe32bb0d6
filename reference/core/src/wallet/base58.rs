//! Base58, and base58check: with four bytes of double SHA-256 behind the payload.

use sha2::{Digest, Sha256};

use super::WalletError;

/// The digits, from zero up.
pub(super) const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

const CHECKSUM_LEN: usize = 4;

/// The base58 of bytes, without a checksum: what Solana's addresses and signatures are.
///
/// Five digits at a time. The library divides by 58 for each of them, and took a tenth of what a charge takes from
/// opened to paid.
pub fn base58(bytes: &[u8]) -> String {
    const AT_ONCE: u32 = 5;
    const BASE: u64 = 58_u64.pow(AT_ONCE);
    let (first, words) = bytes.as_rchunks::<4>();
    let first = first.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    // The most significant word first.
    let mut number: Vec<u32> = Vec::with_capacity(words.len() + 1);
    number.push(first);
    number.extend(words.iter().map(|word| u32::from_be_bytes(*word)));
    // The least significant digit first.
    let mut text: Vec<u8> = Vec::with_capacity(bytes.len() * 3 / 2 + 8);
    let mut left = &mut number[..];
    while let Some(start) = left.iter().position(|word| *word != 0) {
        left = &mut left[start..];
        let mut rest = 0;
        for word in left.iter_mut() {
            let part = rest << 32 | u64::from(*word);
            // `rest` is below the base, so the quotient fits.
            (*word, rest) = ((part / BASE) as u32, part % BASE);
        }
        for _ in 0..AT_ONCE {
            text.push(DIGITS[(rest % 58) as usize]);
            rest /= 58;
        }
    }
    // The last five may be fewer; each zero byte in front is a zero digit.
    let zero = DIGITS[0];
    text.truncate(text.len() - text.iter().rev().take_while(|digit| **digit == zero).count());
    text.extend(bytes.iter().take_while(|byte| **byte == 0).map(|_| zero));
    text.reverse();
    String::from_utf8(text).expect("the digits are ASCII")
}

/// Encodes `payload` and its checksum.
pub(super) fn encode(payload: &[u8]) -> String {
    let mut bytes = payload.to_vec();
    bytes.extend(checksum(payload));
    base58(&bytes)
}

/// The payload, once its checksum is found right.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, WalletError> {
    let mut bytes = decode_unchecked(text)?;
    let Some(payload_len) = bytes.len().checked_sub(CHECKSUM_LEN) else {
        return Err(WalletError::Checksum);
    };
    let tail = bytes.split_off(payload_len);
    if tail != checksum(&bytes) {
        return Err(WalletError::Checksum);
    }
    Ok(bytes)
}

/// The bytes of a base58 text of any length that can be meant seriously.
pub(super) fn decode_unchecked(text: &str) -> Result<Vec<u8>, WalletError> {
    // Base58 takes time quadratic in the length, and no key or address comes near this one.
    const TEXT_LEN_MAX: usize = 128;
    if text.len() > TEXT_LEN_MAX {
        return Err(WalletError::TooLong);
    }
    bs58::decode(text).into_vec().map_err(|_| WalletError::NotBase58)
}

fn checksum(payload: &[u8]) -> [u8; CHECKSUM_LEN] {
    let twice = Sha256::digest(Sha256::digest(payload));
    [twice[0], twice[1], twice[2], twice[3]]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_are_written_as_the_library_writes_them(bytes in prop::collection::vec(any::<u8>(), 0..90), zeros: usize) {
            let mut bytes = bytes;
            let zeros = zeros % (bytes.len() + 1);
            bytes[..zeros].fill(0);
            prop_assert_eq!(base58(&bytes), bs58::encode(bytes).into_string());
        }
    }
}
