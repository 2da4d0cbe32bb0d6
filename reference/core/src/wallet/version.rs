//! The version of an extended key: its first four bytes, printed as `xpub`, `zpub` or `Ltub`.
//!
//! BIP-32 defines two pairs, SLIP-132 and the wallets of some coins the others. The version determines the network, and
//! sometimes the coin or the script. The key after it is the same.

use super::Script;
use crate::{
    asset::AddressForm::{self, Bitcoin, BitcoinCash, Dogecoin, Evm, Litecoin, Tron},
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
    /// The address forms of such keys; empty for multisig.
    forms: &'static [AddressForm],
    /// The script, if the version determines it. Wallets export other versions for every script.
    pub script: Option<Script>,
}

const SEGWIT: &[AddressForm] = &[Bitcoin, Litecoin];
const EVERY: &[AddressForm] = &[Bitcoin, Litecoin, Dogecoin, BitcoinCash, Evm, Tron];

/// All versions, the most specific first: seeded keys have this one.
static VERSIONS: [Version; 15] = [
    row(0x04b2_4746, "zpub", "zprv", Mode::Live, SEGWIT).with_script(Script::P2wpkh),
    row(0x019d_a462, "Ltub", "Ltpv", Mode::Live, &[Litecoin]),
    row(0x0436_f6e1, "ttub", "ttpv", Mode::Test, &[Litecoin]),
    row(0x045f_1cf6, "vpub", "vprv", Mode::Test, SEGWIT).with_script(Script::P2wpkh),
    row(0x02fa_cafd, "dgub", "dgpv", Mode::Live, &[Dogecoin]),
    row(0x0432_a9a8, "tgub", "tgpv", Mode::Test, &[Dogecoin]),
    row(0x0435_87cf, "tpub", "tprv", Mode::Test, EVERY),
    row(0x0488_b21e, "xpub", "xprv", Mode::Live, EVERY),
    row(0x049d_7cb2, "ypub", "yprv", Mode::Live, SEGWIT).with_script(Script::P2shP2wpkh),
    row(0x01b2_6ef6, "Mtub", "Mtpv", Mode::Live, &[Litecoin]).with_script(Script::P2shP2wpkh),
    row(0x044a_5262, "upub", "uprv", Mode::Test, SEGWIT).with_script(Script::P2shP2wpkh),
    row(0x0295_b43f, "Ypub", "Yprv", Mode::Live, &[]),
    row(0x02aa_7ed3, "Zpub", "Zprv", Mode::Live, &[]),
    row(0x0242_89ef, "Upub", "Uprv", Mode::Test, &[]),
    row(0x0257_5483, "Vpub", "Vprv", Mode::Test, &[]),
];

const fn row(
    bytes: u32,
    prefix: &'static str,
    secret_prefix: &'static str,
    mode: Mode,
    forms: &'static [AddressForm],
) -> Version {
    Version { bytes: bytes.to_be_bytes(), prefix, secret_prefix, mode, forms, script: None }
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
    pub(super) fn accepted_for(form: AddressForm, mode: Mode) -> impl Iterator<Item = &'static Version> {
        VERSIONS.iter().filter(move |version| version.is_for(form) && version.is_for_mode(form, mode))
    }

    /// Returns `true` if addresses of this form are usually derived from such a key.
    pub(super) fn is_for(&self, form: AddressForm) -> bool {
        self.forms.contains(&form)
    }

    /// Returns `true` if such a key belongs to the network of this mode.
    pub(super) fn is_for_mode(&self, form: AddressForm, mode: Mode) -> bool {
        // Ethereum and Tron have the same addresses on their test networks, and their wallets export an `xpub` for both. The
        // reverse is refused: a `tpub` is not meant for value.
        let shares_networks = matches!(form, Evm | Tron);
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
    use crate::wallet::{base58, golden::forms, takes_list};

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
    fn check(form: AddressForm, mode: Mode, expected: &str) {
        let accepted: Vec<_> = Version::accepted_for(form, mode).map(|version| version.prefix).collect();
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
        check(AddressForm::Solana, Mode::Live, "");
        check(AddressForm::Monero, Mode::Test, "");
    }

    /// Checks that no coin accepts neither: its wallet would have no address.
    #[test]
    fn every_coin_accepts_a_plain_key_or_a_list() {
        for form in forms() {
            for (mode, plain) in [(Mode::Live, "xpub"), (Mode::Test, "tpub")] {
                let takes_key = Version::accepted_for(form, mode).any(|version| version.prefix == plain);
                assert_eq!(
                    takes_key,
                    !takes_list(form),
                    "{form:?}: EVERY names the forms that are derived from a key"
                );
            }
        }
    }
}
