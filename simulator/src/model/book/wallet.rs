//! The wallets of a book by the contract: the accepted coins, and the deposit addresses of lists.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode};

/// A source of deposit addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalletModel {
    /// An extended public key.
    Key(String),
    /// A list of addresses.
    List(Vec<String>),
}

/// The deposit address of the next charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAddress<'a> {
    /// An address that the wallet's key determines. The model does not derive it, and knows how it begins
    /// ([`address_prefixes`]).
    Derived,
    /// The next one of the wallet's list.
    Listed(&'a str),
    /// None: every address of the list is used.
    Exhausted,
}

/// Returns the beginnings of a coin's addresses on the network of a mode, for every script that wallets take.
pub fn address_prefixes(asset: Asset, mode: Mode) -> &'static [&'static str] {
    let [main, test]: [&[&str]; 2] = match asset.code() {
        "BTC" => [&["bc1", "1", "3"], &["tb1", "m", "n", "2"]],
        "LTC" => [&["ltc1", "L", "M"], &["tltc1", "m", "n", "Q"]],
        "DOGE" => [&["D"], &["n"]],
        "BCH" => [&["bitcoincash:q"], &["bchtest:q"]],
        "XMR" => [&["4", "8"], &["5", "7"]],
        // Base58 of any 32 bytes.
        "SOL" => [&[""]; 2],
        "USDT_TRON" => [&["T"]; 2],
        // Ethereum and compatible networks.
        _ => [&["0x"]; 2],
    };
    if mode == Mode::Live { main } else { test }
}

/// The wallets of one account in one mode.
#[derive(Clone, Debug, Default)]
pub struct Wallets {
    /// The wallets that were set or removed. Initially, there is one for every coin.
    changed: BTreeMap<Asset, Option<WalletModel>>,
    /// Every wallet that was set.
    used: Vec<WalletModel>,
}

impl Wallets {
    /// Returns `true` if there is a wallet for the coin.
    pub fn accepts(&self, asset: Asset) -> bool {
        self.changed.get(&asset).is_none_or(Option::is_some)
    }

    /// Sets a wallet.
    pub fn set(&mut self, asset: Asset, wallet: WalletModel) {
        self.used.push(wallet.clone());
        self.changed.insert(asset, Some(wallet));
    }

    /// Removes a wallet.
    pub fn remove(&mut self, asset: Asset) {
        self.changed.insert(asset, None);
    }

    /// Returns `true` if the wallet is or was one of these, or shares an address with one that is.
    pub fn share(&self, wallet: &WalletModel) -> bool {
        let mut current = self.changed.values().flatten();
        self.used.contains(wallet) || current.any(|own| own.shares(wallet))
    }

    /// Returns the next deposit address: the first of the list that no charge has.
    pub fn next_address(&self, asset: Asset, taken: &[String]) -> NextAddress<'_> {
        let Some(Some(WalletModel::List(list))) = self.changed.get(&asset) else {
            return NextAddress::Derived;
        };
        let free = list.iter().find(|address| !taken.contains(address));
        free.map_or(NextAddress::Exhausted, |address| NextAddress::Listed(address))
    }
}

impl WalletModel {
    /// Returns `true` if both are the same key, or have a common address.
    fn shares(&self, other: &WalletModel) -> bool {
        match (self, other) {
            (WalletModel::List(own), WalletModel::List(other)) => {
                own.iter().any(|address| other.contains(address))
            }
            (own, other) => own == other,
        }
    }
}
