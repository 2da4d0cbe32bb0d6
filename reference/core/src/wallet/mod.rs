//! Deposit addresses, derived from public keys or listed by the account owner.
//!
//! A [`Wallet`] has one address format in one mode, and returns addresses by number. Must not contain: private keys, or
//! the index of the next address, which is in `Wallets` of the book.

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

pub use address::normalize_address;
pub use cache::WalletCache;
pub use error::WalletError;
pub use extended_key::ExtendedKey;
pub use script::Script;
use serde::{Deserialize, Serialize};

use crate::{asset::AddressFormat, mode::Mode, rng::Seed};
use list::{AddressList, SeededList};

/// The source of deposit addresses of one format in one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wallet {
    format: AddressFormat,
    mode: Mode,
    source: Source,
    identity: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Source {
    /// An extended key, with the script of its addresses if the format has several.
    Key(Box<ExtendedKey>, Option<Script>),
    /// Addresses entered by the owner.
    Listed(AddressList),
    /// Random addresses for simulated coins.
    Drawn(SeededList),
}

impl Wallet {
    /// Parses the owner's input: an extended public key, or for Solana and Monero one address per line. `script`: the type
    /// of a key's addresses, required if its prefix does not determine it.
    ///
    /// # Errors
    ///
    /// [`WalletError`] with the reason. The message repeats no private key.
    pub fn parse(
        text: &str,
        script: Option<Script>,
        format: AddressFormat,
        mode: Mode,
    ) -> Result<Wallet, WalletError> {
        // The whole text is checked, because a mnemonic may have one word per line.
        if secret::is_secret(text) {
            return Err(WalletError::PrivateKey);
        }
        if needs_address_list(format) {
            return Wallet::from_addresses(
                text.lines().map(str::trim).filter(|line| !line.is_empty()),
                format,
                mode,
            );
        }
        let key = ExtendedKey::parse(text.trim(), format, mode)?;
        let script = key.resolve_script(script, format)?;
        Ok(Wallet::from_extended_key(key, script, format, mode))
    }

    /// Creates a wallet that derives its addresses from a key [parsed](ExtendedKey::parse) for this format and mode.
    fn from_extended_key(
        key: ExtendedKey,
        script: Option<Script>,
        format: AddressFormat,
        mode: Mode,
    ) -> Wallet {
        let identity = key.identity();
        Wallet { format, mode, source: Source::Key(Box::new(key), script), identity }
    }

    /// Creates a wallet that assigns these addresses in this order.
    ///
    /// # Errors
    ///
    /// [`WalletError`] for the first invalid address.
    pub fn from_addresses<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        format: AddressFormat,
        mode: Mode,
    ) -> Result<Wallet, WalletError> {
        let listed = AddressList::parse(addresses, format, mode)?;
        let identity = listed.identity();
        Ok(Wallet { format, mode, source: Source::Listed(listed), identity })
    }

    /// Returns the built-in wallet of `realm`, such as `acme/live`: endless, and the same for the same seed.
    ///
    /// It has no known private key ([`ExtendedKey::from_seed`]), so it is for simulated coins only. Its addresses for
    /// Solana and Monero are drawn bytes in the valid format; most are not points of the curve.
    pub fn from_seed(seed: Seed, realm: &str, format: AddressFormat, mode: Mode) -> Wallet {
        match ExtendedKey::from_seed(seed, realm, format, mode) {
            Some(key) => {
                Wallet::from_extended_key(key, Script::is_for(format).then_some(Script::P2wpkh), format, mode)
            }
            None => {
                let drawn = SeededList::new(seed, realm, format, mode);
                let identity = drawn.identity();
                Wallet { format, mode, source: Source::Drawn(drawn), identity }
            }
        }
    }

    /// Returns the format of its addresses.
    pub fn address_format(&self) -> AddressFormat {
        self.format
    }

    /// Returns its mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the extended public key; `None` for a list.
    pub fn extended_key(&self) -> Option<&ExtendedKey> {
        match &self.source {
            Source::Key(key, _) => Some(key),
            Source::Listed(_) | Source::Drawn(_) => None,
        }
    }

    /// Returns the script of its key's addresses; `None` for a format with a single script.
    pub fn script(&self) -> Option<Script> {
        match self.source {
            Source::Key(_, script) => script,
            Source::Listed(_) | Source::Drawn(_) => None,
        }
    }

    /// Returns the addresses that the owner listed, in order; empty if they are derived or drawn.
    pub fn listed_addresses(&self) -> &[String] {
        match &self.source {
            Source::Listed(listed) => listed.addresses(),
            Source::Key(..) | Source::Drawn(_) => &[],
        }
    }

    /// Returns deposit address `n`, counted from 0; `None` beyond the end of a list.
    ///
    /// A key has 2³¹ addresses; `None` beyond them, and for the one in 2¹²⁷ numbers that BIP-32 skips.
    pub fn address(&self, n: u32) -> Option<String> {
        match &self.source {
            Source::Key(key, script) => key.address(self.format, *script, self.mode, n).ok(),
            Source::Listed(listed) => listed.address(n),
            Source::Drawn(drawn) => drawn.address(self.format, self.mode, n),
        }
    }

    /// Returns the identity of the key or list, by which a book stores the index of the next address. The identity of a
    /// key depends neither on its spelling nor on the coin or the mode. An edited list has another identity, so it
    /// starts at its first address again; addresses that charges already have are skipped.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns `true` if the two wallets are lists that share an address, or have the same key.
    pub(crate) fn overlaps(&self, other: &Wallet) -> bool {
        match (&self.source, &other.source) {
            (Source::Listed(one), Source::Listed(two)) => self.format == other.format && one.overlaps(two),
            _ => self.identity() == other.identity(),
        }
    }
}

/// Returns `true` if wallets of this format are lists, because no address can be derived from a public key.
pub const fn needs_address_list(format: AddressFormat) -> bool {
    matches!(format, AddressFormat::Solana | AddressFormat::Monero)
}

/// Returns the format's name in messages and in the keys of random streams.
const fn name(format: AddressFormat) -> &'static str {
    match format {
        AddressFormat::Bitcoin => "Bitcoin",
        AddressFormat::Litecoin => "Litecoin",
        AddressFormat::Dogecoin => "Dogecoin",
        AddressFormat::BitcoinCash => "Bitcoin Cash",
        AddressFormat::Evm => "Ethereum",
        AddressFormat::Tron => "Tron",
        AddressFormat::Solana => "Solana",
        AddressFormat::Monero => "Monero",
    }
}
