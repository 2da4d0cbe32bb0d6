//! Monero addresses: a network byte, two public keys and four bytes of Keccak, in Monero's base58.
//!
//! This base58 encodes each block of eight bytes as eleven characters, so the length of the text depends on the number
//! of bytes only.

use sha3::{Digest, Keccak256};

use super::WalletError;
use crate::{asset::AddressFormat, mode::Mode};

/// The digits of base58.
const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

const BLOCK_LEN: usize = 8;
/// The number of characters for a block of 0 to 8 bytes.
const BLOCK_CHARS: [usize; BLOCK_LEN + 1] = [0, 2, 3, 5, 6, 7, 9, 10, 11];

const CHECKSUM_LEN: usize = 4;
const ADDRESS_LEN: usize = 1 + 32 + 32 + CHECKSUM_LEN;
/// The length of an integrated address, which contains a payment id of eight bytes.
const INTEGRATED_LEN: usize = ADDRESS_LEN + 8;

/// Checks an address of the mode's network: mainnet, or stagenet for test mode.
pub(super) fn validate(mode: Mode, text: &str) -> Result<(), WalletError> {
    const FORMAT: AddressFormat = AddressFormat::Monero;
    let bytes = decode(text).ok_or(WalletError::NotAnAddress(FORMAT))?;
    let [network, ..] = bytes[..] else { return Err(WalletError::NotAnAddress(FORMAT)) };
    let payload_len = match bytes.len() {
        ADDRESS_LEN | INTEGRATED_LEN => bytes.len() - CHECKSUM_LEN,
        _ => return Err(WalletError::NotAnAddress(FORMAT)),
    };
    if bytes[payload_len..] != checksum(&bytes[..payload_len]) {
        return Err(WalletError::Checksum);
    }
    // The network bytes of standard addresses and subaddresses, and in the fourth line of integrated addresses.
    let (network_mode, got) = match network {
        18 | 42 => (Some(Mode::Live), "mainnet address"),
        24 | 36 => (Some(Mode::Test), "stagenet address"),
        53 | 63 => (None, "testnet address"),
        19 | 25 | 54 => return Err(WalletError::IntegratedAddress),
        _ => return Err(WalletError::NotAnAddress(FORMAT)),
    };
    if bytes.len() != ADDRESS_LEN {
        return Err(WalletError::NotAnAddress(FORMAT));
    }
    if network_mode != Some(mode) {
        return Err(WalletError::OtherNetwork { got, format: FORMAT, mode });
    }
    Ok(())
}

/// Returns the subaddress of two public keys, which need not be points of the curve.
pub(super) fn subaddress(mode: Mode, keys: &[u8; 64]) -> String {
    // The network bytes of subaddresses.
    let network = match mode {
        Mode::Live => 42,
        Mode::Test => 36,
    };
    let mut bytes = vec![network];
    bytes.extend(keys);
    bytes.extend(checksum(&bytes));
    encode(&bytes)
}

fn checksum(payload: &[u8]) -> [u8; CHECKSUM_LEN] {
    let hash: [u8; 32] = Keccak256::digest(payload).into();
    *hash.first_chunk().expect("32 bytes begin with 4")
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for block in bytes.chunks(BLOCK_LEN) {
        let mut rest = block.iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let mut characters = vec![DIGITS[0]; BLOCK_CHARS[block.len()]];
        for character in characters.iter_mut().rev() {
            *character = DIGITS[(rest % 58) as usize];
            rest /= 58;
        }
        text.extend(characters.into_iter().map(char::from));
    }
    text
}

/// Decodes a string; `None` if it is not an output of [`encode`].
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for block in text.as_bytes().chunks(BLOCK_CHARS[BLOCK_LEN]) {
        let len = BLOCK_CHARS.iter().position(|&chars| chars == block.len())?;
        let mut number = 0_u64;
        for character in block {
            let digit = DIGITS.iter().position(|digit| digit == character)?;
            number = number.checked_mul(58)?.checked_add(digit as u64)?;
        }
        // A larger value would be a second spelling of the same address.
        let number = number.to_be_bytes();
        let (overflow, block) = number.split_at(BLOCK_LEN - len);
        if overflow.iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend(block);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(bytes: &str, text: &str) {
        let bytes = hex::decode(bytes).unwrap();
        assert_eq!(encode(&bytes), text);
        assert_eq!(decode(text), Some(bytes));
    }

    #[test]
    fn each_number_of_bytes_has_its_number_of_characters() {
        check("", "");
        check("00", "11");
        check("39", "1z");
        check("ff", "5Q");
        check("0000", "111");
        check("ffff", "LUv");
        check("ffffff", "2UzHL");
        check("ffffffff", "7YXq9G");
        check("ffffffffff", "VtB5VXc");
        check("ffffffffffff", "3CUsUpv9t");
        check("ffffffffffffff", "Ahg1opVcGW");
        check("ffffffffffffffff", "jpXCZedGfVQ");
        check("06156013762879f7ffffffffff", "22222222222VtB5VXc");
    }

    #[test]
    fn texts_that_encode_no_bytes_are_refused() {
        for text in ["1", "1111", "5R", "zz", "LUw", "jpXCZedGfVR", "zzzzzzzzzzz", "0O", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_are_decoded_from_their_text(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
