//! Deposit addresses, derived from what the account owner made public. No private key comes here.
//!
//! A wallet serves one form of address in one mode, and knows its addresses by number. Which number
//! comes next is its owner's business.

mod address;
mod base58;
mod bip32;
mod cache;
mod cashaddr;
mod error;
mod extended_key;
mod list;
mod monero;
mod script;
mod secret;
mod version;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod vectors;

pub use address::spelled;
pub use cache::WalletCache;
pub use error::WalletError;
pub use extended_key::ExtendedKey;
pub use script::Script;
use serde::{Deserialize, Serialize};

use crate::{asset::AddressForm, mode::Mode, rng::Seed};
use list::{Drawn, Listed};

/// The source of deposit addresses of one form in one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wallet {
    form: AddressForm,
    mode: Mode,
    source: Source,
    identity: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Source {
    /// The script is given where the form has several.
    Key(Box<ExtendedKey>, Option<Script>),
    Listed(Listed),
    Drawn(Drawn),
}

impl Wallet {
    /// Reads what an owner enters: an extended public key, or for Solana and Monero one address a line. `script` says
    /// which addresses a key stands for, where its prefix does not say it.
    ///
    /// # Errors
    ///
    /// A [`WalletError`] with the reason. It repeats no private key.
    pub fn read(
        text: &str,
        script: Option<Script>,
        form: AddressForm,
        mode: Mode,
    ) -> Result<Wallet, WalletError> {
        // The whole text at once: a mnemonic may come with one word a line.
        if secret::is_secret(text) {
            return Err(WalletError::PrivateKey);
        }
        if takes_list(form) {
            return Wallet::list(text.lines().map(str::trim).filter(|line| !line.is_empty()), form, mode);
        }
        let key = ExtendedKey::parse(text.trim(), form, mode)?;
        let script = key.script(script, form)?;
        Ok(Wallet::extended(key, script, form, mode))
    }

    /// A wallet that derives its addresses from a key [parsed](ExtendedKey::parse) for this form and mode.
    fn extended(key: ExtendedKey, script: Option<Script>, form: AddressForm, mode: Mode) -> Wallet {
        let identity = key.identity();
        Wallet { form, mode, source: Source::Key(Box::new(key), script), identity }
    }

    /// A wallet that hands out these addresses in this order.
    ///
    /// # Errors
    ///
    /// The first address that is refused, and why.
    pub fn list<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        form: AddressForm,
        mode: Mode,
    ) -> Result<Wallet, WalletError> {
        let listed = Listed::check(addresses, form, mode)?;
        let identity = listed.identity();
        Ok(Wallet { form, mode, source: Source::Listed(listed), identity })
    }

    /// The built-in wallet of `realm`, such as `acme/live`: endless, and the same for the same seed.
    ///
    /// It has no known private key ([`ExtendedKey::seeded`]), so it can receive only simulated coins. The
    /// addresses it lists for Solana and Monero are drawn bytes in the right form: most of them are not
    /// even points of their curve.
    pub fn seeded(seed: Seed, realm: &str, form: AddressForm, mode: Mode) -> Wallet {
        match ExtendedKey::seeded(seed, realm, form, mode) {
            Some(key) => Wallet::extended(key, Script::is_for(form).then_some(Script::P2wpkh), form, mode),
            None => {
                let drawn = Drawn::new(seed, realm, form, mode);
                let identity = drawn.identity();
                Wallet { form, mode, source: Source::Drawn(drawn), identity }
            }
        }
    }

    /// The form of its addresses.
    pub fn form(&self) -> AddressForm {
        self.form
    }

    /// The mode it serves.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The extended public key it derives from, if it does.
    pub fn extended_key(&self) -> Option<&ExtendedKey> {
        match &self.source {
            Source::Key(key, _) => Some(key),
            Source::Listed(_) | Source::Drawn(_) => None,
        }
    }

    /// Returns the script of its key's addresses; `None` for a form with one kind only.
    pub fn script(&self) -> Option<Script> {
        match self.source {
            Source::Key(_, script) => script,
            Source::Listed(_) | Source::Drawn(_) => None,
        }
    }

    /// The addresses that its owner listed, in order; none if they are derived or drawn.
    pub fn listed(&self) -> &[String] {
        match &self.source {
            Source::Listed(listed) => listed.addresses(),
            Source::Key(..) | Source::Drawn(_) => &[],
        }
    }

    /// Deposit address `n`, counted from 0; `None` when a list is used up.
    ///
    /// A key has 2³¹ of them. BIP-32 leaves out one in 2¹²⁷, which is answered with `None` as well.
    pub fn address(&self, n: u32) -> Option<String> {
        match &self.source {
            Source::Key(key, script) => key.address(self.form, *script, self.mode, n).ok(),
            Source::Listed(listed) => listed.address(n),
            Source::Drawn(drawn) => drawn.address(self.form, self.mode, n),
        }
    }

    /// Names what the addresses come from, however it was written, so that one counter serves it
    /// wherever it is used. For a key, neither the coin nor the mode is part of it. A list that was
    /// edited is another list: its owner must leave out what the old one has already handed out.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns `true` if the two could derive the same address, or addresses of the same key.
    pub(crate) fn overlaps(&self, other: &Wallet) -> bool {
        match (&self.source, &other.source) {
            (Source::Listed(one), Source::Listed(two)) => self.form == other.form && one.overlaps(two),
            _ => self.identity() == other.identity(),
        }
    }
}

/// Returns `true` if wallets of this form are lists, because nothing public leads to a second address.
pub const fn takes_list(form: AddressForm) -> bool {
    matches!(form, AddressForm::Solana | AddressForm::Monero)
}

/// The form's name in messages and draws.
const fn name(form: AddressForm) -> &'static str {
    match form {
        AddressForm::Bitcoin => "Bitcoin",
        AddressForm::Litecoin => "Litecoin",
        AddressForm::Dogecoin => "Dogecoin",
        AddressForm::BitcoinCash => "Bitcoin Cash",
        AddressForm::Evm => "Ethereum",
        AddressForm::Tron => "Tron",
        AddressForm::Solana => "Solana",
        AddressForm::Monero => "Monero",
    }
}
