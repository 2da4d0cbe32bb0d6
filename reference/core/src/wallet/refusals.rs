//! Tests of the texts that a wallet refuses, and of the messages.

use proptest::prelude::*;

use super::{golden::forms, *};

// Accounts of the mnemonic in `golden`, exported by bip_utils 2.12.3.
const ZPUB: &str = "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf31mGDtKsAYz2oz2AGutZYs";
const VPUB: &str = "vpub5Y6cjg78GGuNLsaPhmYsiw4gYX3HoQiRBiSwDaBXKUafCt9bNwWQiitDk5VZ5BVxYnQdwoTyXSs2JHRPAgjAvtbBrf8ZhDYe2jWAqvZVnsc";
const YPUB: &str = "ypub6Ww3ibxVfGzLrAH1PNcjyAWenMTbbAosGNB6VvmSEgytSER9azLDWCxoJwW7Ke7icmizBMXrzBx9979FfaHxHcrArf3zbeJJJUZPf663zsP";
const LTUB: &str = "Ltub2YDQmP391UYeDYvLye9P1SuNJFkcRGN7SYHM8JMxaDnegcPTXHJ2BnYmvHnFnGPGKu2WMuCga6iZV3SDxDMGrRyMcrYEfSPhrpS1EPkC43E";
const DGUB: &str = "dgub8rUhDtD3YFGZTUphBfpBbzvFxSMKQXYLzg87Me2ta78r2SdVLmypBUkkxrrn9RTnchsyiJSkHZyLWxD13ibBiXtuFWktBoDaGaZjQUBLNLs";
const TGUB: &str = "tgub5QziLPy2KFnZgdWALMfCBZcPpFQxtmu3sMDKvDdt1L7WAiAWXpAqf1S9FzNEEa7ipDM6kEy4o9mrVGshjxMKMoq383HELMHguMNGgRryJwt";
const XPUB: &str = "xpub6DCoCpSuQZB2jawqnGMEPS63ePKWkwWPH4TU45Q7LPXWuNd8TMtVxRrgjtEshuqpK3mdhaWHPFsBngh5GFZaM6si3yZdUsT8ddYM3PwnATt";
const TPUB: &str = "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba";
/// The external chain of the same account as `ZPUB`, one level below it.
const CHAIN: &str = "zpub6u4KbU8TSgNuZSxzv7HaGq5Tk361gMHdZxnM4UYuwzg5CMLcNytzhobitV4Zq6vWtWHpG9QijsigkxAzXvQWyLRfLq1L7VxPP1tky1hPfD4";

const PRIVATE: [&str; 9] = [
    "zprvAdG4iTXWBoARxkkzNpNh8r6Qag3irQB8PzEMkAFeTRXxHpbF9z4QgEvBRmfvqWvGp42t42nvgGpNgYSJA9iefm1yYNZKEm7z6qUWCroSQnE",
    "vprv9K7GLAaERuM58PVvbk1sMo7wzVCoPwzZpVXLRBmum93gL5pSqQCAAvZjtmz93nnnYMr9i2FwG2fqrwYLRgJmDDwFjGiamGsbRMJ5Y6siJ8H",
    "xprv9zDSoJv1aBcjX6sNgEpE2J9K6MV2MUnXuqXsFgzVn3zY2aHyupaFQdYCtdCbNMkvcTdx9FeN49sgXw6mjrhrFLRSzJVnRYPfSCCgjeg4GxY",
    "tprv8fPDJN9UQqg6pFsQsrVxTwHZmXLvHpfGGcsCA9rtnatUgVtBKxhtFeqiyaYKSWydunKpjhvgJf6PwTwgirwuCbFq8YKgpQiaVJf3JCrNmkR",
    "Ltpv7735AbcbmL1gbgDWj2ezvs59rh4RM1oTN2BKTKbfe3146FCPCNFbBBSWfuV9vCJNMXD9LuHpQnqVWpn2hbMhikqPdoGqbS3ptdPoNWEvvgR",
    "ttpv9BwgDJCRgk1NCTiBcCg8YvrR1fwRkAuoADbCVxwmo5CHCcMUDZ4W3DKiEhBxMF6MtmQhfEGNfrAwgrZizqrusyLLfRqAw1q1mYCuWp2x9bA",
    "dgpv57bftCH9z6cEAdAY9SCDV9NfVsygaQWdi5LuCXdumz5qUPWnw1S3YBM7PdHXMvA8oSGS6Pbes1xEHMd5Zi2qHVK45y5FKKXzBXsZcTtYmX5",
    "tgpv1g7gzi38m78EPmr1J83E4i4oMh3L4esLakS7m7EuDD4Vcf3p83d51i2VgkSAxnuh8eETh4QNCnbaBPmetmLqzKJLFCxy3uUZxrJUw2K7GUp",
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
];

/// Monero's and Solana's addresses of the mnemonic, from bip_utils as well.
const MONERO: [&str; 3] = [
    "48ZFsbBKZAnN9Tyw7XsCakJ4dBxBpaD3wa9Az6V5ZwAK99kYQzcgckSNVv5iZhMp8o37fhNzY7eM2ERGoTWr4B282s4mcDi",
    "86UHQmCPTwE36c9dyS8Fb18MyVdWLrowFeuog1jeR21LgobXFuwnXECCCJqtN1oCc5PH2XBZ2erGoRL5UnyP6BxyKtUVWks",
    "84iHp4jcRhg6JxXDA3aj1gGFG4psBFPZZbbT5ruSaFtaJneqog3PbQcj3ZcmuFhukRfZkaFH6BiQGdqH9KCzj1HqLvu34BC",
];
const MONERO_STAGENET: [&str; 3] = [
    "58mHxS6HCmtN9Tyw7XsCakJ4dBxBpaD3wa9Az6V5ZwAK99kYQzcgckSNVv5iZhMp8o37fhNzY7eM2ERGoTWr4B282uJv8Tm",
    "76GFKvHRpL836c9dyS8Fb18MyVdWLrowFeuog1jeR21LgobXFuwnXECCCJqtN1oCc5PH2XBZ2erGoRL5UnyP6BxyKsbHkeQ",
    "74WFjDpen6a6JxXDA3aj1gGFG4psBFPZZbbT5ruSaFtaJneqog3PbQcj3ZcmuFhukRfZkaFH6BiQGdqH9KCzj1HqLrxwg1k",
];
const MONERO_TESTNET: &str =
    "BcCQhiPkEZ636c9dyS8Fb18MyVdWLrowFeuog1jeR21LgobXFuwnXECCCJqtN1oCc5PH2XBZ2erGoRL5UnyP6BxyKwDXCtd";
const MONERO_INTEGRATED: &str = "4JFvtPzpASJN9Tyw7XsCakJ4dBxBpaD3wa9Az6V5ZwAK99kYQzcgckSNVv5iZhMp8o37fhNzY7eM2ERGoTWr4B283gDmDv6tjHH12fWtED";
const SOLANA: [&str; 3] = [
    "HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk",
    "Hh8QwFUA6MtVu1qAoq12ucvFHNwCcVTV7hpWjeY1Hztb",
    "7WktogJEd2wQ9eH2oWusmcoFTgeYi6rS632UviTBJ2jm",
];

use AddressForm::{Bitcoin, BitcoinCash, Dogecoin, Evm, Litecoin, Monero, Solana, Tron};
use Mode::{Live, Test};

#[track_caller]
fn check(text: &str, form: AddressForm, mode: Mode, expected: WalletError) {
    assert_eq!(Wallet::read(text, None, form, mode), Err(expected));
}

/// `ZPUB` with other bytes at one place, and a checksum that matches them.
fn patched(at: usize, bytes: &[u8]) -> String {
    let mut payload = base58::decode(ZPUB).unwrap();
    payload[at..at + bytes.len()].copy_from_slice(bytes);
    base58::encode(&payload)
}

const DEPTH_AT: usize = 4;
const PARENT_AT: usize = 5;
const NUMBER_AT: usize = 9;
const KEY_AT: usize = 45;

#[test]
fn private_keys_are_refused_whatever_the_wallet_is_for() {
    for form in [Bitcoin, Litecoin, Dogecoin, BitcoinCash, Evm, Tron] {
        for text in PRIVATE {
            check(text, form, Live, WalletError::PrivateKey);
            check(text, form, Test, WalletError::PrivateKey);
            // Mistyped, it is a private key still.
            check(&text.replace('a', "b"), form, Live, WalletError::PrivateKey);
        }
        // A private key under the version of a public one.
        check(&patched(KEY_AT, &[0; 1]), form, Live, WalletError::PrivateKey);
    }
    let listed = |position| WalletError::Listed { position, why: Box::new(WalletError::PrivateKey) };
    check(PRIVATE[0], Monero, Live, WalletError::PrivateKey);
    check(&PRIVATE[8].replace(' ', "\n"), Monero, Live, WalletError::PrivateKey);
    check(&format!("{}\n{}", SOLANA[0], bs58::encode([9; 64]).into_string()), Solana, Live, listed(2));
}

#[test]
fn a_key_of_the_other_network_is_refused() {
    let other = |got, form, mode| WalletError::OtherNetwork { got, form, mode };
    check(TPUB, Bitcoin, Live, other("tpub", Bitcoin, Live));
    check(VPUB, Bitcoin, Live, other("vpub", Bitcoin, Live));
    check(VPUB, Litecoin, Live, other("vpub", Litecoin, Live));
    check(TGUB, Dogecoin, Live, other("tgub", Dogecoin, Live));
    check(TPUB, BitcoinCash, Live, other("tpub", BitcoinCash, Live));
    check(TPUB, Evm, Live, other("tpub", Evm, Live));
    check(TPUB, Tron, Live, other("tpub", Tron, Live));
    check(XPUB, Bitcoin, Test, other("xpub", Bitcoin, Test));
    check(ZPUB, Bitcoin, Test, other("zpub", Bitcoin, Test));
    check(LTUB, Litecoin, Test, other("Ltub", Litecoin, Test));
    check(DGUB, Dogecoin, Test, other("dgub", Dogecoin, Test));
    check(XPUB, BitcoinCash, Test, other("xpub", BitcoinCash, Test));
}

#[test]
fn a_key_for_another_coin_or_another_kind_of_address_is_refused() {
    let other = |got, form| WalletError::OtherCoin { got, form, mode: Live };
    check(DGUB, Bitcoin, Live, other("dgub", Bitcoin));
    check(LTUB, Bitcoin, Live, other("Ltub", Bitcoin));
    check(YPUB, Dogecoin, Live, other("ypub", Dogecoin));
    check(&patched(0, &[0x02, 0xaa, 0x7e, 0xd3]), Bitcoin, Live, other("Zpub", Bitcoin));
    check(DGUB, Litecoin, Live, other("dgub", Litecoin));
    check(ZPUB, Dogecoin, Live, other("zpub", Dogecoin));
    check(ZPUB, BitcoinCash, Live, other("zpub", BitcoinCash));
    check(ZPUB, Evm, Live, other("zpub", Evm));
    check(VPUB, Tron, Live, other("vpub", Tron));
}

#[track_caller]
fn check_said(
    text: &str,
    script: Option<Script>,
    form: AddressForm,
    expected: Result<Option<Script>, WalletError>,
) {
    assert_eq!(Wallet::read(text, script, form, Live).map(|wallet| wallet.script()), expected);
}

#[test]
fn which_addresses_a_key_stands_for_is_said_and_not_guessed() {
    use Script::{P2pkh, P2shP2wpkh, P2wpkh};
    for script in Script::ALL {
        check_said(XPUB, Some(script), Bitcoin, Ok(Some(script)));
        check_said(LTUB, Some(script), Litecoin, Ok(Some(script)));
    }
    check_said(XPUB, None, Bitcoin, Err(WalletError::NeedsScript { got: "xpub" }));
    check_said(XPUB, None, Litecoin, Err(WalletError::NeedsScript { got: "xpub" }));
    check_said(LTUB, None, Litecoin, Err(WalletError::NeedsScript { got: "Ltub" }));
    for said in [None, Some(P2wpkh)] {
        check_said(ZPUB, said, Bitcoin, Ok(Some(P2wpkh)));
    }
    for said in [None, Some(P2shP2wpkh)] {
        check_said(YPUB, said, Bitcoin, Ok(Some(P2shP2wpkh)));
    }
    check_said(ZPUB, Some(P2pkh), Bitcoin, Err(WalletError::OtherScript { got: "zpub", script: P2wpkh }));
    check_said(
        YPUB,
        Some(P2wpkh),
        Bitcoin,
        Err(WalletError::OtherScript { got: "ypub", script: P2shP2wpkh }),
    );
    for form in [Dogecoin, BitcoinCash, Evm, Tron] {
        check_said(XPUB, None, form, Ok(None));
        check_said(XPUB, Some(P2pkh), form, Err(WalletError::NoScript(form)));
    }
}

#[test]
fn a_damaged_key_is_refused() {
    let ends = |end: usize| &ZPUB[..end];
    check("", Bitcoin, Live, WalletError::Checksum);
    check("zpub", Bitcoin, Live, WalletError::Checksum);
    check("zprv", Bitcoin, Live, WalletError::Checksum);
    check(ends(ZPUB.len() - 1), Bitcoin, Live, WalletError::Checksum);
    check(&ZPUB[1..], Bitcoin, Live, WalletError::Checksum);
    check(&format!("{ZPUB}s"), Bitcoin, Live, WalletError::Checksum);
    check(&ZPUB.replacen('Q', "R", 1), Bitcoin, Live, WalletError::Checksum);
    check(&ZPUB.to_lowercase(), Bitcoin, Live, WalletError::Checksum);
    check(&ZPUB.replace('Q', "0"), Bitcoin, Live, WalletError::NotBase58);
    check(&format!("{ZPUB}é"), Bitcoin, Live, WalletError::NotBase58);
    check(&"z".repeat(128), Bitcoin, Live, WalletError::Checksum);
    check(&"z".repeat(129), Bitcoin, Live, WalletError::TooLong);
    check(&ZPUB.repeat(1000), Bitcoin, Live, WalletError::TooLong);

    let payload = base58::decode(ZPUB).unwrap();
    let length = |got| WalletError::Length { got, takes: 78 };
    check(&base58::encode(&payload[..77]), Bitcoin, Live, length(77));
    check(&base58::encode(&[payload, vec![0]].concat()), Bitcoin, Live, length(79));
    check("1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu", Bitcoin, Live, length(21));
}

#[test]
fn a_key_that_contradicts_itself_is_refused() {
    // Of the 256 first bytes, 0 is a private key's, and 2 and 3 are a public key's.
    for tag in (1..=255).filter(|tag| ![2, 3].contains(tag)) {
        check(&patched(KEY_AT, &[tag]), Bitcoin, Live, WalletError::NoPoint);
    }
    // 5 is not the x of a point, and the field has no number of 256 ones.
    let x_of_5 = [&[2][..], &[0; 31], &[5]].concat();
    check(&patched(KEY_AT, &x_of_5), Bitcoin, Live, WalletError::NoPoint);
    check(&patched(KEY_AT + 1, &[255; 32]), Bitcoin, Live, WalletError::NoPoint);
    check(&patched(DEPTH_AT, &[0]), Bitcoin, Live, WalletError::Contradiction);
    check(&patched(DEPTH_AT, &[0, 1, 0, 0, 0, 0, 0, 0, 0]), Bitcoin, Live, WalletError::Contradiction);
    check(&patched(DEPTH_AT, &[0, 0, 0, 0, 0, 0, 0, 0, 1]), Bitcoin, Live, WalletError::Contradiction);
    check(&patched(0, &[1, 2, 3, 4]), Bitcoin, Live, WalletError::UnknownVersion([1, 2, 3, 4]));
}

#[test]
fn only_an_account_or_a_wallet_without_accounts_is_taken() {
    let takes = |text: &str| ExtendedKey::parse(text, Bitcoin, Live).is_ok();
    assert!(takes(&patched(DEPTH_AT, &[0; 9])), "a master key");
    assert!(takes(&patched(DEPTH_AT, &[1])), "the account m/0'");
    assert!(takes(&patched(PARENT_AT, &[9; 4])), "another parent");
    assert!(takes(&patched(DEPTH_AT, &[253])), "the last with two levels below");
    check(&patched(DEPTH_AT, &[254]), Bitcoin, Live, WalletError::TooDeep);
    check(&patched(DEPTH_AT, &[255]), Bitcoin, Live, WalletError::TooDeep);
    check(&patched(NUMBER_AT, &[0x7f, 255, 255, 255]), Bitcoin, Live, WalletError::BelowAccount);
    check(CHAIN, Bitcoin, Live, WalletError::BelowAccount);
}

#[test]
fn a_list_is_handed_out_in_its_order_and_then_used_up() {
    for (form, mode, list) in [
        (Solana, Live, SOLANA),
        (Solana, Test, SOLANA),
        (Monero, Live, MONERO),
        (Monero, Test, MONERO_STAGENET),
    ] {
        let wallet =
            Wallet::read(&format!("\n {} \r\n\n{}\n{}\n", list[0], list[1], list[2]), None, form, mode)
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
    let wallet = |list: &[&str], mode| Wallet::list(list.iter().copied(), Solana, mode).unwrap();
    let one = wallet(&SOLANA[..2], Live);
    assert!(one.overlaps(&wallet(&SOLANA[1..], Test)));
    assert!(!one.overlaps(&wallet(&SOLANA[2..], Test)));
    assert_ne!(one.identity(), wallet(&SOLANA, Live).identity());
    assert_eq!(one.identity(), wallet(&SOLANA[..2], Test).identity());
}

#[test]
fn what_is_no_address_of_the_coin_is_refused() {
    let listed = |why| WalletError::Listed { position: 1, why: Box::new(why) };
    let network = |got, mode| listed(WalletError::OtherNetwork { got, form: Monero, mode });
    check(MONERO[0], Monero, Test, network("mainnet address", Test));
    check(MONERO_STAGENET[0], Monero, Live, network("stagenet address", Live));
    check(MONERO_TESTNET, Monero, Live, network("testnet address", Live));
    check(MONERO_TESTNET, Monero, Test, network("testnet address", Test));
    check(MONERO_INTEGRATED, Monero, Live, listed(WalletError::IntegratedAddress));
    check(&MONERO[0].replacen('Z', "Y", 1), Monero, Live, listed(WalletError::Checksum));
    check(&MONERO[0][1..], Monero, Live, listed(WalletError::NotAnAddress(Monero)));
    check(SOLANA[0], Monero, Live, listed(WalletError::NotAnAddress(Monero)));

    let length = |got| listed(WalletError::Length { got, takes: 32 });
    check(&SOLANA[0][2..], Solana, Live, length(31));
    check("1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu", Solana, Live, length(25));
    check("0x9858EfFD232B4033E47d90003D41EC34EcaEda94", Solana, Live, listed(WalletError::NotBase58));
    check(&SOLANA[0].repeat(3), Solana, Live, listed(WalletError::TooLong));
}

#[test]
fn a_list_has_addresses_and_each_of_them_once() {
    check("", Monero, Live, WalletError::EmptyList);
    check(" \n\n", Solana, Live, WalletError::EmptyList);
    let repeated = WalletError::Repeated { position: 3, first: 1 };
    check(&[SOLANA[0], SOLANA[1], SOLANA[0]].join("\n"), Solana, Live, repeated);
}

#[test]
fn keys_and_lists_are_not_interchangeable() {
    assert_eq!(ExtendedKey::parse(XPUB, Solana, Live), Err(WalletError::NeedsList(Solana)));
    assert_eq!(Wallet::list(SOLANA, Evm, Live), Err(WalletError::NeedsKey(Evm)));
    assert_eq!(list::validate(Evm, Live, SOLANA[0]), Err(WalletError::NeedsKey(Evm)));
    assert_eq!(ExtendedKey::seeded(Seed(1), "acme", Monero, Live), None);
}

#[track_caller]
fn check_message(text: &str, form: AddressForm, mode: Mode, expected: &str) {
    assert_eq!(Wallet::read(text, None, form, mode).unwrap_err().to_string(), expected);
}

#[test]
fn a_refusal_says_what_is_taken_instead() {
    check_message(
        XPUB,
        Bitcoin,
        Live,
        "wallets export an xpub for several kinds of address; say which one this is: p2wpkh (native segwit), p2sh-p2wpkh \
         or p2pkh",
    );
    check_message(
        PRIVATE[0],
        Bitcoin,
        Live,
        "this is a private key: never give it to a server; move the coins if anyone may have seen it, \
         and give the extended public key",
    );
    check_message(
        TPUB,
        Bitcoin,
        Live,
        "this is a tpub; a Bitcoin wallet in live mode takes zpub or xpub or ypub",
    );
    check_message(
        DGUB,
        Litecoin,
        Live,
        "this is a dgub; a Litecoin wallet takes zpub or Ltub or xpub or ypub or Mtub",
    );
    check_message(
        MONERO_TESTNET,
        Monero,
        Test,
        "address 1 of the list: this is a testnet address; a Monero wallet in test mode takes stagenet addresses \
         (5…, 7…)",
    );
    check_message(
        &patched(0, &[1, 2, 3, 4]),
        Bitcoin,
        Live,
        "this begins with the bytes 01020304, no known kind of extended key",
    );
}

/// Reads `text` as everything that it could be, and goes on with what is taken.
fn read_as_anything(text: &str) {
    for form in forms() {
        for mode in Mode::ALL {
            for script in Script::ALL.map(Some).into_iter().chain([None]) {
                if let Ok(wallet) = Wallet::read(text, script, form, mode) {
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
        read_as_anything(&text);
    }

    #[test]
    fn any_base58_text_is_read_or_refused(bytes: Vec<u8>) {
        read_as_anything(&bs58::encode(&bytes).into_string());
        read_as_anything(&base58::encode(&bytes));
    }

    #[test]
    fn any_payload_of_the_right_length_is_read_or_refused(at in 0_usize..78, bytes: Vec<u8>) {
        let bytes = &bytes[..bytes.len().min(78 - at)];
        read_as_anything(&patched(at, bytes));
    }

    #[test]
    fn one_wrong_character_never_passes(at in 0..ZPUB.len(), wrong in b'!'..=b'~') {
        prop_assume!(ZPUB.as_bytes()[at] != wrong);
        let mut text = ZPUB.to_owned();
        text.replace_range(at..=at, &char::from(wrong).to_string());
        prop_assert!(ExtendedKey::parse(&text, Bitcoin, Live).is_err());
    }
}
