//! Writes the addresses of public keys, in each format whose addresses are derived from a key.

use bech32::Hrp;
use secp256k1::PublicKey;
use sha3::{Digest, Keccak256};

use super::{Script, base58, bip32::hash160, cashaddr};
use crate::{asset::AddressFormat, mode::Mode};

/// Returns the address of the public key `point`; `None` for the formats that need lists. `script`: native segwit by
/// default; used only by formats with several scripts.
pub(super) fn address_from_point(
    format: AddressFormat,
    script: Option<Script>,
    mode: Mode,
    point: &PublicKey,
) -> Option<String> {
    let key_hash = || hash160(&point.serialize());
    let of_network = |network: &Network| network.address(script.unwrap_or(Script::P2wpkh), &key_hash());
    Some(match (format, mode) {
        (AddressFormat::Bitcoin, Mode::Live) => of_network(&BITCOIN),
        (AddressFormat::Bitcoin, Mode::Test) => of_network(&BITCOIN_TEST),
        (AddressFormat::Litecoin, Mode::Live) => of_network(&LITECOIN),
        (AddressFormat::Litecoin, Mode::Test) => of_network(&LITECOIN_TEST),
        (AddressFormat::Dogecoin, Mode::Live) => base58check(0x1e, &key_hash()),
        (AddressFormat::Dogecoin, Mode::Test) => base58check(0x71, &key_hash()),
        (AddressFormat::BitcoinCash, Mode::Live) => {
            cashaddr::pay_to_public_key_hash("bitcoincash", &key_hash())
        }
        (AddressFormat::BitcoinCash, Mode::Test) => cashaddr::pay_to_public_key_hash("bchtest", &key_hash()),
        // The test networks of these two use the same addresses as the main ones.
        (AddressFormat::Evm, _) => eip55(&account(point)),
        (AddressFormat::Tron, _) => base58check(0x41, &account(point)),
        (AddressFormat::Solana | AddressFormat::Monero, _) => return None,
    })
}

/// The prefixes of addresses on a network with several scripts.
struct Network {
    /// The prefix of segwit addresses.
    prefix: &'static str,
    /// The version byte of public key hashes.
    key_hash: u8,
    /// The version byte of script hashes.
    script_hash: u8,
}

const BITCOIN: Network = Network { prefix: "bc", key_hash: 0x00, script_hash: 0x05 };
const BITCOIN_TEST: Network = Network { prefix: "tb", key_hash: 0x6f, script_hash: 0xc4 };
const LITECOIN: Network = Network { prefix: "ltc", key_hash: 0x30, script_hash: 0x32 };
const LITECOIN_TEST: Network = Network { prefix: "tltc", key_hash: 0x6f, script_hash: 0x3a };

impl Network {
    fn address(&self, script: Script, key_hash: &[u8; 20]) -> String {
        match script {
            Script::P2wpkh => pay_to_witness(self.prefix, key_hash),
            Script::P2shP2wpkh => {
                // The hashed script: segwit version 0 and a push of 20 bytes.
                let program = [&[0, 20], &key_hash[..]].concat();
                base58check(self.script_hash, &hash160(&program))
            }
            Script::P2pkh => base58check(self.key_hash, key_hash),
        }
    }
}

/// Returns the account of the Ethereum family: the end of the Keccak hash of the point's coordinates.
fn account(point: &PublicKey) -> [u8; 20] {
    let uncompressed = point.serialize_uncompressed();
    let (_tag, coordinates) = uncompressed.split_at(1);
    let hash: [u8; 32] = Keccak256::digest(coordinates).into();
    *hash.last_chunk().expect("32 bytes end with 20")
}

/// Returns an address of segwit version 0: pay to witness public key hash (P2WPKH).
fn pay_to_witness(prefix: &str, key_hash: &[u8; 20]) -> String {
    let prefix = Hrp::parse(prefix).expect("the network prefixes are valid");
    bech32::segwit::encode_v0(prefix, key_hash).expect("20 bytes are a witness program of version 0")
}

/// Returns the base58check text of a version byte and a hash.
fn base58check(version: u8, hash: &[u8; 20]) -> String {
    let mut payload = vec![version];
    payload.extend(hash);
    base58::encode(&payload)
}

/// Returns the hexadecimal text of an account, with its checksum in the case of the letters (EIP-55).
fn eip55(account: &[u8; 20]) -> String {
    let digits = hex::encode(account);
    let hash = Keccak256::digest(digits.as_bytes());
    let with_checksum = digits.chars().enumerate().map(|(n, digit)| {
        let nibble = hash[n / 2] >> (4 * (1 - n % 2)) & 15;
        if nibble >= 8 { digit.to_ascii_uppercase() } else { digit }
    });
    "0x".chars().chain(with_checksum).collect()
}

/// Returns the normal spelling of an address. Some formats have other valid spellings: accounts of the Ethereum family
/// without the checksum in their letters, segwit in capitals as in QR codes, Bitcoin Cash without the network prefix.
/// Other formats are returned unchanged. The address is not validated.
pub fn normalize_address(format: AddressFormat, mode: Mode, text: &str) -> String {
    let cashaddr_prefix = if mode == Mode::Live { "bitcoincash:" } else { "bchtest:" };
    match format {
        AddressFormat::Evm => {
            let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            let account =
                digits.and_then(|digits| hex::decode(digits).ok()).and_then(|bytes| bytes.try_into().ok());
            account.map_or_else(|| text.to_owned(), |account| eip55(&account))
        }
        AddressFormat::Bitcoin | AddressFormat::Litecoin
            if !text.contains(|c: char| c.is_ascii_lowercase()) =>
        {
            text.to_ascii_lowercase()
        }
        AddressFormat::BitcoinCash if !text.contains(':') => {
            format!("{cashaddr_prefix}{}", text.to_ascii_lowercase())
        }
        AddressFormat::BitcoinCash => text.to_ascii_lowercase(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use secp256k1::{Secp256k1, SecretKey};

    use super::*;

    fn account_number(digits: &str) -> [u8; 20] {
        hex::decode(digits).unwrap().try_into().unwrap()
    }

    #[test]
    fn the_vectors_of_eip_55_match() {
        for expected in [
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
            "0xde709f2102306220921060314715629080e2fb77",
            "0x27b1fdb04752bbc536007a920d24acb045561c26",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            assert_eq!(eip55(&account_number(&expected[2..].to_lowercase())), expected);
        }
    }

    #[test]
    fn known_tron_addresses_match() {
        // The USDT contract, and an address without a known key.
        let usdt = account_number("a614f803b6fd780986a42c78ec9c7f77e6ded13c");
        assert_eq!(base58check(0x41, &usdt), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t");
        assert_eq!(base58check(0x41, &[0; 20]), "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb");
    }

    #[track_caller]
    fn check(private_key: u8, format: AddressFormat, script: Option<Script>, expected: &str) {
        let mut bytes = [0; 32];
        bytes[31] = private_key;
        let point = SecretKey::from_byte_array(bytes).unwrap().public_key(&Secp256k1::signing_only());
        assert_eq!(address_from_point(format, script, Mode::Live, &point).as_deref(), Some(expected));
    }

    #[test]
    fn the_smallest_private_keys_have_their_known_addresses() {
        // The example of BIP-173 is the address of the private key 1.
        check(1, AddressFormat::Bitcoin, None, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4");
        let check_script = |script| {
            check(
                1,
                AddressFormat::Bitcoin,
                Some(script),
                match script {
                    Script::P2wpkh => "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
                    Script::P2shP2wpkh => "3JvL6Ymt8MVWiCNHC7oWU6nLeHNJKLZGLN",
                    Script::P2pkh => "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH",
                },
            )
        };
        Script::ALL.into_iter().for_each(check_script);
        check(1, AddressFormat::Evm, None, "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
        check(2, AddressFormat::Evm, None, "0x2B5AD5c4795c026514f8317c7a215E218DcCD6cF");
    }

    #[test]
    fn valid_spellings_of_an_address_are_normalized() {
        #[track_caller]
        fn check(format: AddressFormat, mode: Mode, spelling: &str, expected: &str) {
            assert_eq!(normalize_address(format, mode, spelling), expected);
        }
        let account = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        check(AddressFormat::Evm, Mode::Live, &account.to_lowercase(), account);
        check(AddressFormat::Evm, Mode::Live, &format!("0x{}", account[2..].to_uppercase()), account);
        check(AddressFormat::Evm, Mode::Live, account, account);
        check(AddressFormat::Evm, Mode::Live, "0x5aAe", "0x5aAe");
        check(AddressFormat::Bitcoin, Mode::Live, "BC1QW508D6", "bc1qw508d6");
        check(AddressFormat::Bitcoin, Mode::Live, "bc1Qw508d6", "bc1Qw508d6");
        check(AddressFormat::BitcoinCash, Mode::Live, "qpm2", "bitcoincash:qpm2");
        check(AddressFormat::BitcoinCash, Mode::Test, "BCHTEST:QPM2", "bchtest:qpm2");
        check(AddressFormat::Tron, Mode::Live, "TR7NHqje", "TR7NHqje");
    }
}
