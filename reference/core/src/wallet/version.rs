//! The version of an extended key: its first four bytes, printed as `xpub`, `zpub` or `Ltub`.
//!
//! BIP-32 defines `xpub` and `tpub`; SLIP-132 and the wallets of some coins define the others. The version determines
//! the network, and sometimes the coin or the script. The key after it is the same.

use super::Script;
use crate::{
    asset::AddressFormat::{self, Bitcoin, BitcoinCash, Dogecoin, Evm, Litecoin, Tron},
    mode::Mode,
};

/// A version of extended keys.
pub(super) struct Version {
    /// The first bytes of the public key.
    pub bytes: [u8; 4],
    /// The prefix of the public key's text.
    pub prefix: &'static str,
    /// The prefix of the corresponding private key's text.
    secret_prefix: &'static str,
    mode: Mode,
    /// The address formats of such keys; empty for multisig.
    formats: &'static [AddressFormat],
    /// The script, if the version determines it; `None` for versions that wallets export for every script.
    pub script: Option<Script>,
}

const SEGWIT: &[AddressFormat] = &[Bitcoin, Litecoin];
const ALL_DERIVED: &[AddressFormat] = &[Bitcoin, Litecoin, Dogecoin, BitcoinCash, Evm, Tron];

/// All versions, the most specific first: seeded keys have the first one that their format and mode accept.
static VERSIONS: [Version; 15] = [
    version(0x04b2_4746, "zpub", "zprv", Mode::Live, SEGWIT).with_script(Script::P2wpkh),
    version(0x019d_a462, "Ltub", "Ltpv", Mode::Live, &[Litecoin]),
    version(0x0436_f6e1, "ttub", "ttpv", Mode::Test, &[Litecoin]),
    version(0x045f_1cf6, "vpub", "vprv", Mode::Test, SEGWIT).with_script(Script::P2wpkh),
    version(0x02fa_cafd, "dgub", "dgpv", Mode::Live, &[Dogecoin]),
    version(0x0432_a9a8, "tgub", "tgpv", Mode::Test, &[Dogecoin]),
    version(0x0435_87cf, "tpub", "tprv", Mode::Test, ALL_DERIVED),
    version(0x0488_b21e, "xpub", "xprv", Mode::Live, ALL_DERIVED),
    version(0x049d_7cb2, "ypub", "yprv", Mode::Live, SEGWIT).with_script(Script::P2shP2wpkh),
    version(0x01b2_6ef6, "Mtub", "Mtpv", Mode::Live, &[Litecoin]).with_script(Script::P2shP2wpkh),
    version(0x044a_5262, "upub", "uprv", Mode::Test, SEGWIT).with_script(Script::P2shP2wpkh),
    version(0x0295_b43f, "Ypub", "Yprv", Mode::Live, &[]),
    version(0x02aa_7ed3, "Zpub", "Zprv", Mode::Live, &[]),
    version(0x0242_89ef, "Upub", "Uprv", Mode::Test, &[]),
    version(0x0257_5483, "Vpub", "Vprv", Mode::Test, &[]),
];

const fn version(
    bytes: u32,
    prefix: &'static str,
    secret_prefix: &'static str,
    mode: Mode,
    formats: &'static [AddressFormat],
) -> Version {
    Version { bytes: bytes.to_be_bytes(), prefix, secret_prefix, mode, formats, script: None }
}

impl Version {
    /// Returns the version with a script.
    const fn with_script(self, script: Script) -> Version {
        Version { script: Some(script), ..self }
    }

    /// Returns the version of a key that begins with `bytes`.
    pub(super) fn find(bytes: [u8; 4]) -> Option<&'static Version> {
        VERSIONS.iter().find(|version| version.bytes == bytes)
    }

    /// Returns the versions that a wallet accepts, the most specific first.
    pub(super) fn accepted_for(format: AddressFormat, mode: Mode) -> impl Iterator<Item = &'static Version> {
        VERSIONS.iter().filter(move |version| version.is_for(format) && version.is_for_mode(format, mode))
    }

    /// Returns `true` if wallets of this format accept such a key, in the right mode.
    pub(super) fn is_for(&self, format: AddressFormat) -> bool {
        self.formats.contains(&format)
    }

    /// Returns `true` if such a key belongs to the network of this mode.
    pub(super) fn is_for_mode(&self, format: AddressFormat, mode: Mode) -> bool {
        // Ethereum and Tron have the same addresses on their test networks, and their wallets export an `xpub` for
        // both. The reverse is refused: a `tpub` is not meant for value.
        let shares_networks = matches!(format, Evm | Tron);
        self.mode == mode || (shares_networks && mode == Mode::Test)
    }
}

/// Returns `true` if `text` is an extended private key, complete or not.
pub(super) fn has_secret_prefix(text: &str) -> bool {
    // A Solana address may begin with any four letters, but is shorter.
    const TEXT_LEN_MIN: usize = 50;
    text.len() >= TEXT_LEN_MIN && VERSIONS.iter().any(|version| text.starts_with(version.secret_prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallet::{base58, golden::address_formats, needs_address_list};

    #[test]
    fn the_bytes_of_a_version_print_as_its_prefix() {
        for version in &VERSIONS {
            for fill in [0, 255] {
                let mut bytes = [fill; 78];
                bytes[..4].copy_from_slice(&version.bytes);
                assert_eq!(base58::encode(&bytes)[..4], *version.prefix);
            }
        }
    }

    #[track_caller]
    fn check(format: AddressFormat, mode: Mode, expected: &str) {
        let accepted: Vec<_> = Version::accepted_for(format, mode).map(|version| version.prefix).collect();
        assert_eq!(accepted.join(" "), expected);
    }

    #[test]
    fn each_coin_accepts_the_versions_that_its_wallets_export() {
        check(Bitcoin, Mode::Live, "zpub xpub ypub");
        check(Bitcoin, Mode::Test, "vpub tpub upub");
        check(Litecoin, Mode::Live, "zpub Ltub xpub ypub Mtub");
        check(Litecoin, Mode::Test, "ttub vpub tpub upub");
        check(Dogecoin, Mode::Live, "dgub xpub");
        check(Dogecoin, Mode::Test, "tgub tpub");
        check(BitcoinCash, Mode::Live, "xpub");
        check(BitcoinCash, Mode::Test, "tpub");
        check(Evm, Mode::Live, "xpub");
        check(Evm, Mode::Test, "tpub xpub");
        check(Tron, Mode::Live, "xpub");
        check(Tron, Mode::Test, "tpub xpub");
        check(AddressFormat::Solana, Mode::Live, "");
        check(AddressFormat::Monero, Mode::Test, "");
    }

    /// A format that accepted neither could have no wallet.
    #[test]
    fn every_coin_accepts_either_an_xpub_or_a_list() {
        for format in address_formats() {
            for (mode, prefix) in [(Mode::Live, "xpub"), (Mode::Test, "tpub")] {
                let accepts_key = Version::accepted_for(format, mode).any(|version| version.prefix == prefix);
                assert_eq!(
                    accepts_key,
                    !needs_address_list(format),
                    "{format:?}: ALL_DERIVED lists the formats that are derived from a key"
                );
            }
        }
    }
}
