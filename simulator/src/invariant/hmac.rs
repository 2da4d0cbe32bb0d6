//! HMAC-SHA256, implemented independently of the service, to verify its signatures.

use sha2::{Digest as _, Sha256};

/// The block size of SHA-256, in bytes.
const BLOCK_SIZE: usize = 64;

/// A key, with the states of the inner and the outer hash after the padded key.
#[derive(Clone)]
pub(super) struct HmacKey {
    inner: Sha256,
    outer: Sha256,
}

impl HmacKey {
    pub(super) fn new(key: &[u8]) -> HmacKey {
        let mut block = [0_u8; BLOCK_SIZE];
        if key.len() > BLOCK_SIZE {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        // The pads of RFC 2104.
        let state_after = |pad: u8| Sha256::new().chain_update(block.map(|byte| byte ^ pad));
        HmacKey { inner: state_after(0x36), outer: state_after(0x5c) }
    }

    /// Returns the lower-case hexadecimal HMAC-SHA256 of the concatenated parts.
    pub(super) fn hex(&self, parts: &[&[u8]]) -> [u8; 64] {
        let (mut inner, mut outer) = (self.inner.clone(), self.outer.clone());
        parts.iter().for_each(|part| inner.update(part));
        outer.update(inner.finalize());
        let mut digits = [0; 64];
        hex::encode_to_slice(outer.finalize(), &mut digits).expect("32 bytes are 64 digits");
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_matches_rfc_4231() {
        // RFC 4231, test cases 1 and 6.
        assert_eq!(
            HmacKey::new(&[0x0b; 20]).hex(&[b"Hi ", b"There"]),
            *b"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            HmacKey::new(&[0xaa; 131]).hex(&[b"Test Using Larger Than Block-Size Key - Hash Key First"]),
            *b"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
