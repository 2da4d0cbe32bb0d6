//! An account's extended public key, and the deposit addresses below it.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Script, WalletError, address, bip32::Node, name, secret, takes_list, version::Version};
use crate::{asset::AddressForm, mode::Mode, rng::Seed};

/// The first of an account's two chains: the addresses others pay to. The second is for change.
const EXTERNAL_CHAIN: u32 = 0;
/// The depth of an account's key: `m purpose' coin' 0'`.
const ACCOUNT_DEPTH: u8 = 3;
const FIRST_ACCOUNT: u32 = 1 << 31;

/// The public key of an account, from which all its addresses follow and with which none can be spent.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtendedKey {
    account: Node,
    /// Kept, so that an address takes one derivation instead of two.
    external: Node,
}

impl ExtendedKey {
    /// Reads a key that a wallet of this form and mode may have exported: an `xpub`, a `zpub` and so on.
    ///
    /// It must be the account's own key (`m/84'/0'/0'`), or the master key of a wallet without
    /// accounts.
    ///
    /// In test mode, Ethereum and Tron take an `xpub` too: their wallets know no other, since
    /// the test networks use the same addresses. Such a key is the same one as in live mode, so compare
    /// [`ExtendedKey::identity`] before a second mode takes it.
    ///
    /// # Errors
    ///
    /// A [`WalletError`] with the reason: a private key, another network or coin, or no extended key of an
    /// account at all. No private key is repeated in it.
    pub fn parse(text: &str, form: AddressForm, mode: Mode) -> Result<ExtendedKey, WalletError> {
        if secret::is_secret(text) {
            return Err(WalletError::PrivateKey);
        }
        if takes_list(form) {
            return Err(WalletError::NeedsList(form));
        }
        let account = Node::read(text)?;
        let Some(version) = Version::find(account.version) else {
            return Err(WalletError::UnknownVersion(account.version));
        };
        if !version.is_for(form) {
            return Err(WalletError::OtherCoin { got: version.prefix, form, mode });
        }
        if !version.serves(form, mode) {
            return Err(WalletError::OtherNetwork { got: version.prefix, form, mode });
        }
        if !account.is_hardened_or_master() {
            return Err(WalletError::BelowAccount);
        }
        ExtendedKey::of_account(account).ok_or(WalletError::TooDeep)
    }

    /// Returns the script of this key's addresses, given the owner's statement; `None` for a form with one kind
    /// only.
    ///
    /// An `xpub` is exported for every kind of account, so nothing is guessed from it: its owner must say.
    pub(super) fn script(
        &self,
        requested: Option<Script>,
        form: AddressForm,
    ) -> Result<Option<Script>, WalletError> {
        let version = Version::find(self.account.version);
        let got = version.map_or("key", |version| version.prefix);
        if !Script::is_for(form) {
            return requested.map_or(Ok(None), |_| Err(WalletError::NoScript(form)));
        }
        match (version.and_then(|version| version.script), requested) {
            (Some(clear), Some(requested)) if clear != requested => {
                Err(WalletError::OtherScript { got, script: clear })
            }
            (None, None) => Err(WalletError::NeedsScript { got }),
            (clear, requested) => Ok(clear.or(requested)),
        }
    }

    /// A key without a known private part.
    ///
    /// Its point is drawn, not multiplied: the first draw that happens to be the x of a point. To know
    /// the private key is to solve the discrete logarithm, so real coins sent to it are lost, and it can
    /// receive only simulated ones. `None` for the forms that take lists.
    pub fn seeded(seed: Seed, realm: &str, form: AddressForm, mode: Mode) -> Option<ExtendedKey> {
        let version = Version::taken(form, mode).next()?.bytes;
        let rng_key = seed.rng_key(realm, &format!("{} {mode}", name(form)), "extended key");
        (0..).find_map(|n| {
            let mut stream = rng_key.stream(n);
            let mut key = [0; 33];
            stream.fill(&mut key);
            key[0] = 2 | key[0] & 1;
            let point = Node::point(&key)?;
            let (parent, chain_code) = (stream.bytes(), stream.bytes());
            let (depth, number) = (ACCOUNT_DEPTH, FIRST_ACCOUNT);
            ExtendedKey::of_account(Node { version, depth, parent, number, chain_code, point })
        })
    }

    fn of_account(account: Node) -> Option<ExtendedKey> {
        let external = account.child(EXTERNAL_CHAIN)?;
        (external.depth < u8::MAX).then_some(ExtendedKey { account, external })
    }

    /// Deposit address `n`, at `0/n` below the account. Without a `script` it is native segwit, for the forms that
    /// know several.
    ///
    /// # Errors
    ///
    /// [`WalletError::NoSuchAddress`] from 2³¹ on, [`WalletError::NeedsList`] for the forms that take lists.
    pub fn address(
        &self,
        form: AddressForm,
        script: Option<Script>,
        mode: Mode,
        n: u32,
    ) -> Result<String, WalletError> {
        let (point, _) = self.external.step(n).ok_or(WalletError::NoSuchAddress(n))?;
        address::of_point(form, script, mode, &point).ok_or(WalletError::NeedsList(form))
    }

    /// Returns the identity of this key: the same for each of its spellings (`xpub`, `zpub`, …), and for no other
    /// key.
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
