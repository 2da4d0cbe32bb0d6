//! Tests of invalid wallets, and of the error messages.

use proptest::prelude::*;

use super::{
    golden::forms,
    vectors::{VECTORS, with_patched_bytes},
    *,
};

use AddressForm::{Bitcoin, BitcoinCash, Dogecoin, Evm, Litecoin, Monero, Solana, Tron};
use Mode::{Live, Test};

#[track_caller]
fn check(text: &str, form: AddressForm, mode: Mode, expected: WalletError) {
    assert_eq!(Wallet::parse(text, None, form, mode), Err(expected));
}

/// Returns the account key from which most refused texts are made.
fn zpub() -> &'static str {
    VECTORS.text("zpub")
}

const DEPTH_AT: usize = 4;
const PARENT_AT: usize = 5;
const KEY_AT: usize = 45;

#[test]
fn texts_that_are_no_key_or_list_are_refused() {
    for refused in &VECTORS.refusals {
        let text = refused.text();
        let error = Wallet::parse(&text, refused.stated, refused.form, refused.mode).expect_err(&text);
        assert_eq!(format!("{error:?}"), refused.error, "{text}");
        if let Some(message) = &refused.message {
            assert_eq!(error.to_string(), *message);
        }
    }
}

#[test]
fn private_keys_are_refused_for_every_form() {
    let private = &VECTORS.private;
    for form in [Bitcoin, Litecoin, Dogecoin, BitcoinCash, Evm, Tron] {
        for text in private {
            check(text, form, Live, WalletError::PrivateKey);
            check(text, form, Test, WalletError::PrivateKey);
            // A private key with a typing error is still reported as one.
            check(&text.replace('a', "b"), form, Live, WalletError::PrivateKey);
        }
        // A private key under the version of a public one.
        check(&with_patched_bytes(zpub(), KEY_AT, &[0; 1]), form, Live, WalletError::PrivateKey);
    }
    let listed = |position| WalletError::Listed { position, why: Box::new(WalletError::PrivateKey) };
    check(&private[0], Monero, Live, WalletError::PrivateKey);
    check(&private[8].replace(' ', "\n"), Monero, Live, WalletError::PrivateKey);
    let second = bs58::encode([9; 64]).into_string();
    check(&format!("{}\n{second}", VECTORS.text("solana")), Solana, Live, listed(2));
    assert_eq!(
        WalletError::PrivateKey.to_string(),
        "this is a private key: never give it to a server; move the coins if anyone may have seen it, \
         and give the extended public key",
    );
}

#[test]
fn an_ambiguous_prefix_accepts_each_script() {
    for script in Script::ALL {
        for (key, form) in [("xpub", Bitcoin), ("ltub", Litecoin)] {
            let wallet = Wallet::parse(VECTORS.text(key), Some(script), form, Live);
            assert_eq!(wallet.map(|wallet| wallet.script()), Ok(Some(script)));
        }
    }
    for form in [Dogecoin, BitcoinCash, Evm, Tron] {
        let wallet = Wallet::parse(VECTORS.text("xpub"), None, form, Live);
        assert_eq!(wallet.map(|wallet| wallet.script()), Ok(None));
    }
}

#[test]
fn a_text_of_another_length_is_refused() {
    check(&zpub().repeat(1000), Bitcoin, Live, WalletError::TooLong);
    let payload = base58::decode(zpub()).unwrap();
    let length = |got| WalletError::Length { got, takes: 78 };
    check(&base58::encode(&payload[..77]), Bitcoin, Live, length(77));
    check(&base58::encode(&[payload, vec![0]].concat()), Bitcoin, Live, length(79));
}

#[test]
fn a_key_of_an_unknown_tag_is_refused() {
    // Of the 256 first bytes, 0 is a private key's, and 2 and 3 are a public key's.
    for tag in (1..=255).filter(|tag| ![2, 3].contains(tag)) {
        check(&with_patched_bytes(zpub(), KEY_AT, &[tag]), Bitcoin, Live, WalletError::NoPoint);
    }
}

#[test]
fn only_an_account_or_a_wallet_without_accounts_is_accepted() {
    for (at, bytes, which) in [
        (DEPTH_AT, &[0; 9][..], "a master key"),
        (DEPTH_AT, &[1], "the account m/0'"),
        (PARENT_AT, &[9; 4], "another parent"),
        (DEPTH_AT, &[253], "the last with two levels below"),
    ] {
        assert!(ExtendedKey::parse(&with_patched_bytes(zpub(), at, bytes), Bitcoin, Live).is_ok(), "{which}");
    }
}

#[test]
fn a_list_is_used_in_order_until_it_is_exhausted() {
    for (form, mode, list) in [
        (Solana, Live, "solana"),
        (Solana, Test, "solana"),
        (Monero, Live, "monero"),
        (Monero, Test, "monero_stagenet"),
    ] {
        let list = VECTORS.list(list);
        let wallet =
            Wallet::parse(&format!("\n {} \r\n\n{}\n{}\n", list[0], list[1], list[2]), None, form, mode)
                .unwrap();
        let addresses = [0, 1, 2].map(|n| wallet.address(n).unwrap());
        assert_eq!(addresses, list);
        assert_eq!(wallet.address(3), None);
        assert_eq!(wallet.address(u32::MAX), None);
        assert_eq!((wallet.form(), wallet.mode(), wallet.extended_key()), (form, mode, None));
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
    assert_eq!(ExtendedKey::parse(VECTORS.text("xpub"), Solana, Live), Err(WalletError::NeedsList(Solana)));
    assert_eq!(Wallet::from_addresses(VECTORS.list("solana"), Evm, Live), Err(WalletError::NeedsKey(Evm)));
    assert_eq!(list::validate(Evm, Live, VECTORS.text("solana")), Err(WalletError::NeedsKey(Evm)));
    assert_eq!(ExtendedKey::from_seed(Seed(1), "acme", Monero, Live), None);
}

/// Parses a string as every kind of wallet in both modes, and derives an address if it is accepted.
fn parse_as_every_kind(text: &str) {
    for form in forms() {
        for mode in Mode::ALL {
            for script in Script::ALL.map(Some).into_iter().chain([None]) {
                if let Ok(wallet) = Wallet::parse(text, script, form, mode) {
                    assert!(wallet.address(0).is_some());
                }
            }
            // Both an error and an accepted address are fine here; a panic is not.
            let _ = list::validate(form, mode, text);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: String) {
        parse_as_every_kind(&text);
    }

    #[test]
    fn any_base58_text_is_read_or_refused(bytes: Vec<u8>) {
        parse_as_every_kind(&bs58::encode(&bytes).into_string());
        parse_as_every_kind(&base58::encode(&bytes));
    }

    #[test]
    fn any_payload_of_the_right_length_is_read_or_refused(at in 0_usize..78, bytes: Vec<u8>) {
        let bytes = &bytes[..bytes.len().min(78 - at)];
        parse_as_every_kind(&with_patched_bytes(zpub(), at, bytes));
    }

    #[test]
    fn one_wrong_character_never_passes(at in 0..zpub().len(), wrong in b'!'..=b'~') {
        prop_assume!(zpub().as_bytes()[at] != wrong);
        let mut text = zpub().to_owned();
        text.replace_range(at..=at, &char::from(wrong).to_string());
        prop_assert!(ExtendedKey::parse(&text, Bitcoin, Live).is_err());
    }
}
