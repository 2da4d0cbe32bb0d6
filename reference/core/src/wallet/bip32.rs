//! The public part of BIP-32: extended public keys, and the derivation of children without the private key.

use std::{fmt, sync::LazyLock};

use hmac::{Hmac, KeyInit, Mac};
use ripemd::Ripemd160;
use secp256k1::{PublicKey, Secp256k1, SecretKey, SignOnly};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256, Sha512};

use super::{WalletError, base58};

const SERIALIZED_LEN: usize = 78;
/// The first hardened child number: hardened children can be derived only with the private key.
const HARDENED: u32 = 1 << 31;

/// The library's precomputed context. Never randomised, because the tweaks of public keys are not secret.
static GENERATOR: LazyLock<Secp256k1<SignOnly>> = LazyLock::new(Secp256k1::signing_only);

/// A node in the tree of keys: a point, a chain code, and its position.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Node {
    pub version: [u8; 4],
    pub depth: u8,
    /// The fingerprint of the parent key.
    pub parent: [u8; 4],
    /// The child number.
    pub number: u32,
    pub chain_code: [u8; 32],
    #[serde(with = "point")]
    pub point: PublicKey,
}

/// Serializes a point in compressed form (33 bytes).
mod point {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{Node, PublicKey};

    pub(super) fn serialize<S: Serializer>(point: &PublicKey, serializer: S) -> Result<S::Ok, S::Error> {
        point.serialize().as_slice().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Node::point(&bytes).ok_or_else(|| D::Error::custom("not a point of the curve"))
    }
}

impl Node {
    /// Parses a serialized extended public key.
    pub(super) fn parse(text: &str) -> Result<Node, WalletError> {
        let bytes = base58::decode(text)?;
        let Ok(bytes) = <[u8; SERIALIZED_LEN]>::try_from(bytes.as_slice()) else {
            return Err(WalletError::Length { got: bytes.len(), expected: SERIALIZED_LEN });
        };
        let (version, rest) = split_array(&bytes);
        let ([depth], rest) = split_array(rest);
        let (parent, rest) = split_array(rest);
        let (number, rest) = split_array(rest);
        let (chain_code, key) = split_array(rest);
        let point = Node::point(key).ok_or(WalletError::NoPoint)?;
        let number = u32::from_be_bytes(number);
        if depth == 0 && (parent != [0; 4] || number != 0) {
            return Err(WalletError::Contradiction);
        }
        Ok(Node { version, depth, parent, number, chain_code, point })
    }

    /// Parses a compressed point; `None` if it is not on the curve.
    pub(super) fn point(compressed: &[u8]) -> Option<PublicKey> {
        PublicKey::from_byte_array_compressed(compressed.try_into().ok()?).ok()
    }

    /// Returns `true` if only the parent's private key can have derived this key, as for BIP-44 accounts, or if it is
    /// a master key.
    pub(super) fn is_hardened_or_master(&self) -> bool {
        self.number >= HARDENED || self.depth == 0
    }

    /// Returns the point of child `n` and its chain code.
    ///
    /// `None` if `n` is hardened, and for the 1 in 2¹²⁷ numbers that BIP-32 skips.
    pub(super) fn derive_point(&self, n: u32) -> Option<(PublicKey, [u8; 32])> {
        if n >= HARDENED {
            return None;
        }
        let mut mac =
            Hmac::<Sha512>::new_from_slice(&self.chain_code).expect("HMAC accepts a key of any length");
        mac.update(&self.point.serialize());
        mac.update(&n.to_be_bytes());
        let bytes: [u8; 64] = mac.finalize().into_bytes().into();
        let (tweak, chain_code) = split_array::<32>(&bytes);
        // The precomputed table of the generator makes this a third faster than adding a tweak to the public key.
        let tweak = SecretKey::from_byte_array(tweak).ok()?;
        let point = PublicKey::from_secret_key(&GENERATOR, &tweak).combine(&self.point).ok()?;
        Some((point, chain_code.try_into().expect("64 bytes are 32 and 32")))
    }

    /// Returns child `n` with its position in the tree; `None` as for [`Node::derive_point`], and if this node has the
    /// maximum depth.
    pub(super) fn child(&self, n: u32) -> Option<Node> {
        let depth = self.depth.checked_add(1)?;
        let (point, chain_code) = self.derive_point(n)?;
        let [a, b, c, d, ..] = hash160(&self.point.serialize());
        Some(Node { version: self.version, depth, parent: [a, b, c, d], number: n, chain_code, point })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(SERIALIZED_LEN);
        bytes.extend(self.version);
        bytes.push(self.depth);
        bytes.extend(self.parent);
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.chain_code);
        bytes.extend(self.point.serialize());
        f.write_str(&base58::encode(&bytes))
    }
}

/// Returns RIPEMD-160 of SHA-256: the hash of a public key in BIP-32 and in addresses of the Bitcoin family.
pub(super) fn hash160(bytes: &[u8]) -> [u8; 20] {
    Ripemd160::digest(Sha256::digest(bytes)).into()
}

/// Splits off the first `N` bytes.
fn split_array<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let (first, rest) = bytes.split_first_chunk().expect("the lengths of the fields add up");
    (*first, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the derivation of child `n`. `pair`: a key of the official test vectors, and the expected child.
    #[track_caller]
    fn check(pair: [&str; 2], n: u32) {
        let [parent, child] = pair.map(|text| Node::parse(text).unwrap());
        assert_eq!(parent.to_string(), pair[0]);
        assert_eq!(parent.child(n).unwrap().to_string(), pair[1]);
        assert!(parent.child(n) == Some(child));
    }

    #[test]
    fn the_public_derivations_of_the_bip_32_vectors_match() {
        // Test vector 1, m/0' to m/0'/1.
        check(
            [
                "xpub68Gmy5EdvgibQVfPdqkBBCHxA5htiqg55crXYuXoQRKfDBFA1WEjWgP6LHhwBZeNK1VTsfTFUHCdrfp1bgwQ9xv5ski8PX9rL2dZXvgGDnw",
                "xpub6ASuArnXKPbfEwhqN6e3mwBcDTgzisQN1wXN9BJcM47sSikHjJf3UFHKkNAWbWMiGj7Wf5uMash7SyYq527Hqck2AxYysAA7xmALppuCkwQ",
            ],
            1,
        );
        // m/0'/1/2' to m/0'/1/2'/2.
        check(
            [
                "xpub6D4BDPcP2GT577Vvch3R8wDkScZWzQzMMUm3PWbmWvVJrZwQY4VUNgqFJPMM3No2dFDFGTsxxpG5uJh7n7epu4trkrX7x7DogT5Uv6fcLW5",
                "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
            ],
            2,
        );
        // m/0'/1/2'/2 to m/0'/1/2'/2/1000000000.
        check(
            [
                "xpub6FHa3pjLCk84BayeJxFW2SP4XRrFd1JYnxeLeU8EqN3vDfZmbqBqaGJAyiLjTAwm6ZLRQUMv1ZACTj37sR62cfN7fe5JnJ7dh8zL4fiyLHV",
                "xpub6H1LXWLaKsWFhvm6RVpEL9P4KfRZSW7abD2ttkWP3SSQvnyA8FSVqNTEcYFgJS2UaFcxupHiYkro49S8yGasTvXEYBVPamhGW6cFJodrTHy",
            ],
            1_000_000_000,
        );
        // Test vector 2, m to m/0.
        check(
            [
                "xpub661MyMwAqRbcFW31YEwpkMuc5THy2PSt5bDMsktWQcFF8syAmRUapSCGu8ED9W6oDMSgv6Zz8idoc4a6mr8BDzTJY47LJhkJ8UB7WEGuduB",
                "xpub69H7F5d8KSRgmmdJg2KhpAK8SR3DjMwAdkxj3ZuxV27CprR9LgpeyGmXUbC6wb7ERfvrnKZjXoUmmDznezpbZb7ap6r1D3tgFxHmwMkQTPH",
            ],
            0,
        );
        // m/0/2147483647' to m/0/2147483647'/1.
        check(
            [
                "xpub6ASAVgeehLbnwdqV6UKMHVzgqAG8Gr6riv3Fxxpj8ksbH9ebxaEyBLZ85ySDhKiLDBrQSARLq1uNRts8RuJiHjaDMBU4Zn9h8LZNnBC5y4a",
                "xpub6DF8uhdarytz3FWdA8TvFSvvAh8dP3283MY7p2V4SeE2wyWmG5mg5EwVvmdMVCQcoNJxGoWaU9DCWh89LojfZ537wTfunKau47EL2dhHKon",
            ],
            1,
        );
        // m/0/2147483647'/1/2147483646' to m/0/2147483647'/1/2147483646'/2.
        check(
            [
                "xpub6ERApfZwUNrhLCkDtcHTcxd75RbzS1ed54G1LkBUHQVHQKqhMkhgbmJbZRkrgZw4koxb5JaHWkY4ALHY2grBGRjaDMzQLcgJvLJuZZvRcEL",
                "xpub6FnCn6nSzZAw5Tw7cgR9bi15UV96gLZhjDstkXXxvCLsUXBGXPdSnLFbdpq8p9HmGsApME5hQTZ3emM2rnY5agb9rXpVGyy3bdW6EEgAtqt",
            ],
            2,
        );
    }

    #[test]
    fn hardened_children_and_children_below_the_maximum_depth_are_refused() {
        let mut node = Node::parse("xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8").unwrap();
        assert!(node.child(HARDENED - 1).is_some());
        assert!(node.child(HARDENED).is_none());
        node.depth = u8::MAX;
        assert!(node.child(0).is_none());
    }
}
