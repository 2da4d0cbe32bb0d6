//! Tests of invalid keys and lists, of their error messages, and of the limits of what is accepted.

use proptest::prelude::*;

use super::{
    golden::address_formats,
    vectors::{VECTORS, with_patched_bytes},
    *,
};

use AddressFormat::{Bitcoin, BitcoinCash, Dogecoin, Evm, Litecoin, Monero, Solana, Tron};
use Mode::{Live, Test};

#[track_caller]
fn check(text: &str, format: AddressFormat, mode: Mode, expected: WalletError) {
    assert_eq!(Wallet::parse(text, None, format, mode), Err(expected));
}

/// Returns the account key that most refused texts are variants of.
fn zpub() -> &'static str {
    VECTORS.key_or_address("zpub")
}

// The offsets of the fields of a decoded extended key.
const DEPTH_OFFSET: usize = 4;
const PARENT_OFFSET: usize = 5;
const KEY_OFFSET: usize = 45;

#[test]
fn texts_that_are_not_a_key_or_list_are_refused() {
    for refused in &VECTORS.refusals {
        let text = refused.text();
        let error = Wallet::parse(&text, refused.requested, refused.format, refused.mode).expect_err(&text);
        assert_eq!(format!("{error:?}"), refused.error, "{text}");
        if let Some(message) = &refused.message {
            assert_eq!(error.to_string(), *message);
        }
    }
}

#[test]
fn private_keys_are_refused_for_every_address_format() {
    let private = &VECTORS.private;
    for format in [Bitcoin, Litecoin, Dogecoin, BitcoinCash, Evm, Tron] {
        for text in private {
            check(text, format, Live, WalletError::PrivateKey);
            check(text, format, Test, WalletError::PrivateKey);
            // A private key with a typing error is still reported as one.
            check(&text.replace('a', "b"), format, Live, WalletError::PrivateKey);
        }
        // A private key under the version of a public one.
        check(&with_patched_bytes(zpub(), KEY_OFFSET, &[0; 1]), format, Live, WalletError::PrivateKey);
    }
    let listed = |position| WalletError::Listed { position, reason: Box::new(WalletError::PrivateKey) };
    check(&private[0], Monero, Live, WalletError::PrivateKey);
    // A mnemonic with one word per line.
    check(&private[8].replace(' ', "\n"), Monero, Live, WalletError::PrivateKey);
    // A Solana key pair in a list.
    let second = bs58::encode([9; 64]).into_string();
    check(&format!("{}\n{second}", VECTORS.key_or_address("solana")), Solana, Live, listed(2));
    assert_eq!(
        WalletError::PrivateKey.to_string(),
        "this is a private key: never give it to a server; move the coins if anyone may have seen it, \
         and give the extended public key",
    );
}

#[test]
fn an_ambiguous_prefix_accepts_each_script() {
    for script in Script::ALL {
        for (key, format) in [("xpub", Bitcoin), ("ltub", Litecoin)] {
            let wallet = Wallet::parse(VECTORS.key_or_address(key), Some(script), format, Live);
            assert_eq!(wallet.map(|wallet| wallet.script()), Ok(Some(script)));
        }
    }
    for format in [Dogecoin, BitcoinCash, Evm, Tron] {
        let wallet = Wallet::parse(VECTORS.key_or_address("xpub"), None, format, Live);
        assert_eq!(wallet.map(|wallet| wallet.script()), Ok(None));
    }
}

#[test]
fn a_key_of_another_length_is_refused() {
    check(&zpub().repeat(1000), Bitcoin, Live, WalletError::TooLong);
    let payload = base58::decode(zpub()).unwrap();
    let length = |got| WalletError::Length { got, expected: 78 };
    check(&base58::encode(&payload[..77]), Bitcoin, Live, length(77));
    check(&base58::encode(&[payload, vec![0]].concat()), Bitcoin, Live, length(79));
}

#[test]
fn a_public_key_with_an_unknown_first_byte_is_refused() {
    // 0 starts a private key; 2 and 3 start a public key.
    for first_byte in (1..=255).filter(|byte| ![2, 3].contains(byte)) {
        check(&with_patched_bytes(zpub(), KEY_OFFSET, &[first_byte]), Bitcoin, Live, WalletError::NoPoint);
    }
}

#[test]
fn keys_of_accounts_and_master_keys_are_accepted() {
    for (offset, bytes, description) in [
        (DEPTH_OFFSET, &[0; 9][..], "a master key"),
        (DEPTH_OFFSET, &[1], "the account m/0'"),
        (PARENT_OFFSET, &[9; 4], "another parent"),
        (DEPTH_OFFSET, &[253], "the deepest key with two levels below it"),
    ] {
        assert!(
            ExtendedKey::parse(&with_patched_bytes(zpub(), offset, bytes), Bitcoin, Live).is_ok(),
            "{description}"
        );
    }
}

#[test]
fn a_list_is_used_in_order_until_it_is_exhausted() {
    for (format, mode, list) in [
        (Solana, Live, "solana"),
        (Solana, Test, "solana"),
        (Monero, Live, "monero"),
        (Monero, Test, "monero_stagenet"),
    ] {
        let list = VECTORS.list(list);
        let wallet =
            Wallet::parse(&format!("\n {} \r\n\n{}\n{}\n", list[0], list[1], list[2]), None, format, mode)
                .unwrap();
        let addresses = [0, 1, 2].map(|n| wallet.address(n).unwrap());
        assert_eq!(addresses, list);
        assert_eq!(wallet.address(3), None);
        assert_eq!(wallet.address(u32::MAX), None);
        assert_eq!((wallet.address_format(), wallet.mode(), wallet.extended_key()), (format, mode, None));
    }
}

#[test]
fn lists_that_share_an_address_overlap() {
    let wallet = |list: &[&str], mode| Wallet::from_addresses(list.iter().copied(), Solana, mode).unwrap();
    let addresses = VECTORS.list("solana");
    let one = wallet(&addresses[..2], Live);
    assert!(one.overlaps(&wallet(&addresses[1..], Test)));
    assert!(!one.overlaps(&wallet(&addresses[2..], Test)));
    assert_ne!(one.identity(), wallet(&addresses, Live).identity());
    assert_eq!(one.identity(), wallet(&addresses[..2], Test).identity());
}

#[test]
fn keys_and_lists_are_not_interchangeable() {
    assert_eq!(
        ExtendedKey::parse(VECTORS.key_or_address("xpub"), Solana, Live),
        Err(WalletError::NeedsList(Solana))
    );
    assert_eq!(Wallet::from_addresses(VECTORS.list("solana"), Evm, Live), Err(WalletError::NeedsKey(Evm)));
    assert_eq!(list::validate(Evm, Live, VECTORS.key_or_address("solana")), Err(WalletError::NeedsKey(Evm)));
    assert_eq!(ExtendedKey::from_seed(Seed(1), "acme", Monero, Live), None);
}

/// Parses a string as every kind of wallet in both modes, and derives an address if it is accepted.
fn parse_as_every_kind(text: &str) {
    for format in address_formats() {
        for mode in Mode::ALL {
            for script in Script::ALL.map(Some).into_iter().chain([None]) {
                if let Ok(wallet) = Wallet::parse(text, script, format, mode) {
                    assert!(wallet.address(0).is_some());
                }
            }
            // Both an error and an accepted address are fine here; a panic is not.
            let _ = list::validate(format, mode, text);
        }
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text: String) {
        parse_as_every_kind(&text);
    }

    #[test]
    fn no_base58_text_causes_a_panic(bytes: Vec<u8>) {
        parse_as_every_kind(&bs58::encode(&bytes).into_string());
        parse_as_every_kind(&base58::encode(&bytes));
    }

    #[test]
    fn no_payload_of_the_right_length_causes_a_panic(offset in 0_usize..78, bytes: Vec<u8>) {
        let bytes = &bytes[..bytes.len().min(78 - offset)];
        parse_as_every_kind(&with_patched_bytes(zpub(), offset, bytes));
    }

    #[test]
    fn a_key_with_one_wrong_character_is_refused(position in 0..zpub().len(), wrong in b'!'..=b'~') {
        prop_assume!(zpub().as_bytes()[position] != wrong);
        let mut text = zpub().to_owned();
        text.replace_range(position..=position, &char::from(wrong).to_string());
        prop_assert!(ExtendedKey::parse(&text, Bitcoin, Live).is_err());
    }
}
