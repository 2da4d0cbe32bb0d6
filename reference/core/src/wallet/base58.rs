//! Base58, and base58check, which appends four bytes of double SHA-256 to the payload.

use sha2::{Digest, Sha256};

use super::WalletError;

const CHECKSUM_LEN: usize = 4;

/// Encodes `payload` and its checksum.
pub(super) fn encode(payload: &[u8]) -> String {
    let mut bytes = payload.to_vec();
    bytes.extend(checksum(payload));
    bs58::encode(bytes).into_string()
}

/// Decodes base58check and verifies the checksum. Returns the payload.
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

/// Decodes base58 without a checksum, up to a maximum length.
pub(super) fn decode_unchecked(text: &str) -> Result<Vec<u8>, WalletError> {
    // Decoding takes time quadratic in the length; every key and address is much shorter.
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
