//! Detects private keys and seed phrases, which must never be sent to a server.
//!
//! Runs before every other parser, so that the response is a warning and not "bad checksum".

use super::{base58, version};

const MNEMONIC_WORDS_MIN: usize = 12;

/// Returns `true` if `text` is a private key, or so close to one that no part of it may be repeated.
pub(super) fn is_secret(text: &str) -> bool {
    let text = text.trim();
    version::has_secret_prefix(text) || is_mnemonic(text) || is_raw_key(text) || is_base58_key(text)
}

/// Returns `true` for twelve or more words: BIP-39 has up to 24, Monero 25.
fn is_mnemonic(text: &str) -> bool {
    let is_word = |word: &str| word.chars().all(char::is_alphabetic);
    text.split_whitespace().count() >= MNEMONIC_WORDS_MIN && text.split_whitespace().all(is_word)
}

/// Returns `true` for 32 bytes in hexadecimal, as for Ethereum, Tron and Monero.
fn is_raw_key(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns `true` for a private key in wallet import format (33 or 34 bytes), an extended private key of an
/// unknown coin (its key starts with a zero byte), or a Solana key pair (64 bytes).
fn is_base58_key(text: &str) -> bool {
    /// The offset of the key in a decoded extended key.
    const KEY_OFFSET: usize = 45;
    match base58::decode(text) {
        Ok(payload) => match payload.len() {
            33 => true,
            // The last byte marks the key of a compressed point.
            34 => payload[33] == 1,
            78 => payload[KEY_OFFSET] == 0,
            _ => false,
        },
        Err(_) => base58::decode_unchecked(text).is_ok_and(|bytes| bytes.len() == 64),
    }
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[track_caller]
    fn check(text: &str, expected: bool) {
        assert_eq!(is_secret(text), expected, "{text}");
    }

    #[test]
    fn private_keys_are_detected_in_every_spelling() {
        // The private key of BIP-32 test vector 1, complete and without its last letter.
        let xprv = "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi";
        check(xprv, true);
        check(&xprv[..110], true);
        // A Solana address may have this prefix, but is shorter.
        check(&xprv[..50], true);
        check(&xprv[..49], false);
        check(&format!(" {xprv}\n"), true);
        check("KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn", true);
        check("5HpHagT65TZzG1PH3CSu63k8DbpvD8s5ip4nEB3kEsreAnchuDf", true);
        check(
            "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
            true,
        );
        check("0000000000000000000000000000000000000000000000000000000000000001", true);
        check("0x0000000000000000000000000000000000000000000000000000000000000001", true);
        check(&bs58::encode([7; 64]).into_string(), true);
    }

    #[test]
    fn public_texts_are_not_detected_as_private_keys() {
        check(
            "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8",
            false,
        );
        check("HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk", false);
        check("1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu", false);
        check("", false);
        check("this sentence has not enough words", false);
    }
}
