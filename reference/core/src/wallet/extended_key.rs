//! An account's extended public key, and the deposit addresses below it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Script, WalletError, address, bip32::Node, name, needs_address_list, secret, version::Version};
use crate::{asset::AddressFormat, mode::Mode, rng::Seed};

/// The first of an account's two chains: its receiving addresses. The second chain is for change outputs.
const EXTERNAL_CHAIN: u32 = 0;
/// The depth of an account's key: `m purpose' coin' 0'`.
const ACCOUNT_DEPTH: u8 = 3;
/// The child number of the first account, which is hardened.
const FIRST_ACCOUNT: u32 = 1 << 31;

/// The extended public key of an account. All its addresses derive from it; it cannot spend.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtendedKey {
    account: Node,
    /// The external chain, stored so that an address takes one derivation instead of two.
    external: Node,
}

impl ExtendedKey {
    /// Parses a key that a wallet of this format and mode may export: an `xpub`, a `zpub` and so on.
    ///
    /// It must be the key of an account (`m/84'/0'/0'`), or the master key of a wallet without accounts.
    ///
    /// In test mode, Ethereum and Tron accept an `xpub` too: their test networks use the same addresses, so their wallets
    /// export nothing else. The same key may be in use in live mode; compare [`ExtendedKey::identity`].
    ///
    /// # Errors
    ///
    /// [`WalletError`] for a private key, another network or coin, or text that is not the extended key of an account.
    /// The message repeats no private key.
    pub fn parse(text: &str, format: AddressFormat, mode: Mode) -> Result<ExtendedKey, WalletError> {
        if secret::is_secret(text) {
            return Err(WalletError::PrivateKey);
        }
        if needs_address_list(format) {
            return Err(WalletError::NeedsList(format));
        }
        let account = Node::parse(text)?;
        let Some(version) = Version::find(account.version) else {
            return Err(WalletError::UnknownVersion(account.version));
        };
        if !version.is_for(format) {
            return Err(WalletError::OtherCoin { got: version.prefix, format, mode });
        }
        if !version.is_for_mode(format, mode) {
            return Err(WalletError::OtherNetwork { got: version.prefix, format, mode });
        }
        if !account.is_hardened_or_master() {
            return Err(WalletError::BelowAccount);
        }
        ExtendedKey::from_account(account).ok_or(WalletError::TooDeep)
    }

    /// Returns the script of this key's addresses; `None` for a format with a single script. `requested`: the owner's
    /// choice.
    ///
    /// Wallets export an `xpub` for every script, so the owner must choose.
    pub(super) fn resolve_script(
        &self,
        requested: Option<Script>,
        format: AddressFormat,
    ) -> Result<Option<Script>, WalletError> {
        let version = Version::find(self.account.version);
        let got = version.map_or("key", |version| version.prefix);
        if !Script::is_for(format) {
            return requested.map_or(Ok(None), |_| Err(WalletError::NoScript(format)));
        }
        match (version.and_then(|version| version.script), requested) {
            (Some(determined), Some(requested)) if determined != requested => {
                Err(WalletError::OtherScript { got, script: determined })
            }
            (None, None) => Err(WalletError::NeedsScript { got }),
            (determined, requested) => Ok(determined.or(requested)),
        }
    }

    /// Draws a key whose private key is unknown; `None` for the formats that need lists.
    ///
    /// The point is drawn: the first random number that is the x coordinate of a point. Finding its private key means
    /// solving the discrete logarithm, so coins sent to it are lost. It is for simulated coins only.
    pub fn from_seed(seed: Seed, realm: &str, format: AddressFormat, mode: Mode) -> Option<ExtendedKey> {
        let version = Version::accepted_for(format, mode).next()?.bytes;
        let rng_key = seed.rng_key(realm, &format!("{} {mode}", name(format)), "extended key");
        (0..).find_map(|n| {
            let mut stream = rng_key.stream(n);
            let mut key = [0; 33];
            stream.fill(&mut key);
            // A compressed point begins with 2 or 3.
            key[0] = 2 | key[0] & 1;
            let point = Node::point(&key)?;
            let (parent, chain_code) = (stream.bytes(), stream.bytes());
            let (depth, number) = (ACCOUNT_DEPTH, FIRST_ACCOUNT);
            ExtendedKey::from_account(Node { version, depth, parent, number, chain_code, point })
        })
    }

    /// Creates the key of an account; `None` if it is too deep in the tree to have addresses two levels below.
    fn from_account(account: Node) -> Option<ExtendedKey> {
        let external = account.child(EXTERNAL_CHAIN)?;
        (external.depth < u8::MAX).then_some(ExtendedKey { account, external })
    }

    /// Returns deposit address `n`, at `0/n` below the account. `script`: native segwit by default; used only by
    /// formats with several scripts.
    ///
    /// # Errors
    ///
    /// [`WalletError::NoSuchAddress`] from 2³¹ on, [`WalletError::NeedsList`] for the formats that need lists.
    pub fn address(
        &self,
        format: AddressFormat,
        script: Option<Script>,
        mode: Mode,
        n: u32,
    ) -> Result<String, WalletError> {
        let (point, _) = self.external.derive_point(n).ok_or(WalletError::NoSuchAddress(n))?;
        address::address_from_point(format, script, mode, &point).ok_or(WalletError::NeedsList(format))
    }

    /// Returns the identity of this key: equal for its spellings (`xpub`, `zpub`, …), different for other keys.
    pub fn identity(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.account.point.serialize());
        hash.update(self.account.chain_code);
        let hash: [u8; 32] = hash.finalize().into();
        format!("key-{}", hex::encode(&hash[..16]))
    }
}

impl fmt::Display for ExtendedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.account.fmt(f)
    }
}

impl fmt::Debug for ExtendedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtendedKey({self})")
    }
}
