//! Golden tests: addresses that other software derived, and identities and seeded wallets that must never change.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{
    vectors::{AccountVector, SeededVector, VECTORS},
    *,
};
use crate::asset::Asset;

/// Checks the addresses with these numbers.
#[track_caller]
fn check(wallet: &Wallet, numbers: [u32; 3], expected: &[String; 3]) {
    assert_eq!(numbers.map(|n| wallet.address(n).unwrap()), *expected);
}

#[test]
fn account_keys_derive_the_addresses_that_other_wallets_show() {
    for AccountVector { format, mode, script, requested, key, addresses } in &VECTORS.account {
        for selected in [requested, script] {
            let wallet = Wallet::parse(key, *selected, *format, *mode).unwrap();
            assert_eq!(wallet.script(), *script);
            check(&wallet, [0, 1, 2], addresses);
        }
        // A script that the prefix does not determine must be selected.
        assert_eq!(Wallet::parse(key, None, *format, *mode).is_ok(), requested.is_none(), "{key}");
    }
}

#[test]
fn seeded_wallets_never_change_and_their_keys_can_be_parsed() {
    for SeededVector { format, mode, key, addresses } in &VECTORS.seeded {
        let wallet = Wallet::from_seed(Seed(7), &format!("acme/{mode}"), *format, *mode);
        assert_eq!(wallet.extended_key().map(ToString::to_string), *key);
        if let Some(key) = key {
            assert_eq!(Wallet::parse(key, wallet.script(), *format, *mode).as_ref(), Ok(&wallet));
        }
        check(&wallet, [0, 1, (1 << 31) - 1], addresses);
    }
}

#[test]
fn a_key_has_an_address_for_every_number_below_the_hardened_ones() {
    let AccountVector { format, mode, ref key, .. } = VECTORS.account[0];
    let wallet = Wallet::parse(key, None, format, mode).unwrap();
    assert!(wallet.address((1 << 31) - 1).is_some());
    assert_eq!(wallet.address(1 << 31), None);
    let key = wallet.extended_key().unwrap();
    assert_eq!(key.address(format, None, mode, 1 << 31), Err(WalletError::NoSuchAddress(1 << 31)));
    assert_eq!(
        key.address(AddressFormat::Monero, None, mode, 0),
        Err(WalletError::NeedsList(AddressFormat::Monero))
    );
}

#[test]
fn the_spelling_of_a_key_changes_neither_its_addresses_nor_its_identity() {
    let AccountVector { format, mode, script, key: zpub, addresses, .. } = &VECTORS.account[0];
    let xpub = "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3XyuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V";
    let [one, two] = [zpub, xpub].map(|key| Wallet::parse(key, *script, *format, *mode).unwrap());
    check(&two, [0, 1, 2], addresses);
    assert_eq!(one.identity(), two.identity());
    assert!(one.overlaps(&two));
}

#[test]
fn wallets_of_one_key_overlap_across_modes_and_coins() {
    let key = |format| {
        &VECTORS
            .account
            .iter()
            .find(|account| account.format == format)
            .expect("every address format has a vector")
            .key
    };
    let wallet = |format, mode| Wallet::parse(key(AddressFormat::Evm), None, format, mode).unwrap();
    let live = wallet(AddressFormat::Evm, Mode::Live);
    assert!(live.overlaps(&wallet(AddressFormat::Evm, Mode::Test)));
    assert!(live.overlaps(&wallet(AddressFormat::BitcoinCash, Mode::Live)));
    assert!(
        !live.overlaps(
            &Wallet::parse(key(AddressFormat::Tron), None, AddressFormat::Tron, Mode::Live).unwrap()
        )
    );
}

#[test]
fn the_identity_of_a_wallet_never_changes() {
    let identity =
        |text, format| Wallet::parse(text, None, format, Mode::Live).unwrap().identity().to_owned();
    assert_eq!(
        identity(&VECTORS.account[0].key, AddressFormat::Bitcoin),
        "key-e7b44782b0ca91cea145cb4ca9723583"
    );
    assert_eq!(
        identity(VECTORS.key_or_address("solana"), AddressFormat::Solana),
        "list-6994d85e62bf3ce8581315d6e399d583"
    );
    let seeded = Wallet::from_seed(Seed(7), "acme/live", AddressFormat::Solana, Mode::Live);
    assert_eq!(seeded.identity(), "drawn-f6836d6e72fd2a1402893d21102732ff");
}

/// Returns the address formats of all coins, each once.
pub(super) fn address_formats() -> BTreeSet<AddressFormat> {
    Asset::ALL.map(|asset| asset.facts().address_format).into()
}

#[test]
fn no_two_seeded_wallets_have_the_same_identity() {
    let formats = address_formats();
    let mut identities = BTreeSet::new();
    for (seed, realm) in [(1, "acme"), (2, "acme"), (1, "shop")] {
        for (format, mode) in formats.iter().flat_map(|&format| Mode::ALL.map(|mode| (format, mode))) {
            assert!(
                identities.insert(Wallet::from_seed(Seed(seed), realm, format, mode).identity().to_owned())
            );
        }
    }
    assert_eq!(identities.len(), 3 * formats.len() * Mode::ALL.len());
}

proptest! {
    #[test]
    fn a_key_is_parsed_back_from_its_text(seed: u64, n in 0..VECTORS.seeded.len()) {
        let SeededVector { format, mode, .. } = VECTORS.seeded[n];
        if let Some(key) = ExtendedKey::from_seed(Seed(seed), "acme", format, mode) {
            prop_assert_eq!(ExtendedKey::parse(&key.to_string(), format, mode), Ok(key));
        }
    }

    #[test]
    fn drawn_addresses_are_valid(seed: u64, n: u32) {
        for format in [AddressFormat::Solana, AddressFormat::Monero] {
            for mode in Mode::ALL {
                let address = Wallet::from_seed(Seed(seed), "acme", format, mode).address(n).unwrap();
                prop_assert_eq!(list::validate(format, mode, &address), Ok(()));
            }
        }
    }
}
