//! The wallets of a book: the accepted coins, and the next deposit address of each.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode};

/// A source of deposit addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalletModel {
    /// An extended public key.
    Key {
        /// The key.
        key: String,
        /// The address type, if the prefix of the key does not determine it.
        script: Option<String>,
    },
    /// A list of addresses.
    List(Vec<String>),
}

/// The deposit address of the next charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAddress<'a> {
    /// An address derived from the wallet's key. The model does not derive it, and only knows its possible prefixes.
    Derived(&'static [&'static str]),
    /// The next address of the wallet's list.
    Listed(&'a str),
    /// None: every address of the list is used.
    Exhausted,
}

/// Returns the possible prefixes of a coin's addresses in a mode. `script` is the address type; `None` for any.
fn address_prefixes(asset: Asset, mode: Mode, script: Option<&str>) -> &'static [&'static str] {
    let [main, test]: [&[&str]; 2] = match (asset.code(), script) {
        ("BTC", Some("p2wpkh")) => [&["bc1q"], &["tb1q"]],
        ("BTC", Some("p2sh-p2wpkh")) => [&["3"], &["2"]],
        ("BTC", Some("p2pkh")) => [&["1"], &["m", "n"]],
        ("BTC", _) => [&["bc1", "1", "3"], &["tb1", "m", "n", "2"]],
        ("LTC", Some("p2wpkh")) => [&["ltc1q"], &["tltc1q"]],
        ("LTC", Some("p2sh-p2wpkh")) => [&["M"], &["Q"]],
        ("LTC", Some("p2pkh")) => [&["L"], &["m", "n"]],
        ("LTC", _) => [&["ltc1", "L", "M"], &["tltc1", "m", "n", "Q"]],
        ("DOGE", _) => [&["D"], &["n"]],
        ("BCH", _) => [&["bitcoincash:q"], &["bchtest:q"]],
        ("XMR", _) => [&["4", "8"], &["5", "7"]],
        // Base58 of any 32 bytes.
        ("SOL", _) => [&[""]; 2],
        ("USDT_TRON", _) => [&["T"]; 2],
        // Ethereum and compatible networks.
        _ => [&["0x"]; 2],
    };
    if mode == Mode::Live { main } else { test }
}

/// Returns the address type that the prefix of an extended key determines.
fn script_of_prefix(key: &str) -> Option<&'static str> {
    match key.get(..4)? {
        "zpub" | "vpub" => Some("p2wpkh"),
        "ypub" | "upub" | "Mtub" => Some("p2sh-p2wpkh"),
        _ => None,
    }
}

/// The wallets of one account in one mode.
#[derive(Clone, Debug, Default)]
pub struct Wallets {
    /// The wallets that were set or removed (`None`). Initially, there is one for every coin.
    changed: BTreeMap<Asset, Option<WalletModel>>,
    /// Every wallet that was ever set.
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

    /// Returns `true` if the wallet is or was one of these, or shares a key or an address with a current one.
    pub fn shares_with(&self, wallet: &WalletModel) -> bool {
        let mut current = self.changed.values().flatten();
        // A list that was replaced can be set elsewhere in part, but not as a whole.
        let is_used = |own: &WalletModel| match own {
            WalletModel::Key { .. } => own.shares(wallet),
            WalletModel::List(_) => own == wallet,
        };
        self.used.iter().any(is_used) || current.any(|own| own.shares(wallet))
    }

    /// Returns the next deposit address: one of the key, or the first of the list that is not among `taken`, the addresses
    /// of all charges.
    pub fn next_address(&self, asset: Asset, mode: Mode, taken: &[String]) -> NextAddress<'_> {
        let script = match self.changed.get(&asset).and_then(Option::as_ref) {
            Some(WalletModel::List(list)) => {
                let free = list.iter().find(|address| !taken.contains(address));
                return free.map_or(NextAddress::Exhausted, |address| NextAddress::Listed(address));
            }
            Some(WalletModel::Key { key, script }) => script_of_prefix(key).or(script.as_deref()),
            None => None,
        };
        NextAddress::Derived(address_prefixes(asset, mode, script))
    }
}

impl WalletModel {
    /// Returns `true` if both are the same key, or have a common address.
    fn shares(&self, other: &WalletModel) -> bool {
        match (self, other) {
            (WalletModel::List(own), WalletModel::List(other)) => {
                own.iter().any(|address| other.contains(address))
            }
            (WalletModel::Key { key: own, .. }, WalletModel::Key { key: other, .. }) => own == other,
            _ => false,
        }
    }
}
