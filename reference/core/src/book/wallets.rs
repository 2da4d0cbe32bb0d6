//! The wallets of a book, and the next deposit address of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Book;
use crate::{
    asset::Asset,
    command::WalletInput,
    error::ApiError,
    mode::Mode,
    money::Coin,
    rng::Seed,
    sighting::{Depth, Sighting},
    wallet::{Wallet, WalletCache},
};

/// The wallets of one account in one mode.
#[derive(Serialize, Deserialize)]
pub struct Wallets {
    mode: Mode,
    wallets: BTreeMap<Asset, Wallet>,
    /// The index of the next address of each wallet that was ever set, by the wallet's identity. Outlives the wallet,
    /// so that no two charges share an address. Coins with the same wallet share the index.
    next: BTreeMap<String, u32>,
    /// The number of times that a wallet was set or removed.
    changes: u64,
    /// The shared cache of derived addresses. It returns the same addresses as the wallets.
    #[serde(skip)]
    wallet_cache: Option<WalletCache>,
}

impl Wallets {
    /// Returns the wallets of a new book: one for each address format, from the wallet cache or the seed.
    pub(crate) fn from_seed(
        seed: Seed,
        wallet_cache: Option<&WalletCache>,
        account: &str,
        mode: Mode,
    ) -> Wallets {
        let wallet_cache = wallet_cache.cloned();
        let mut wallets =
            Wallets { mode, wallets: BTreeMap::new(), next: BTreeMap::new(), changes: 0, wallet_cache };
        let mut by_format = BTreeMap::new();
        for asset in Asset::ALL {
            let format = asset.facts().address_format;
            let realm = format!("{account}/{mode}");
            let wallet = by_format.entry(format).or_insert_with(|| match &wallets.wallet_cache {
                Some(wallet_cache) => wallet_cache.wallet(&realm, format, mode),
                None => Wallet::from_seed(seed, &realm, format, mode),
            });
            wallets.set(asset, wallet.clone());
        }
        wallets
    }

    /// Returns `true` if there is a wallet for the coin.
    pub fn accepts(&self, asset: Asset) -> bool {
        self.wallets.contains_key(&asset)
    }

    /// Returns the coins with a wallet (`account.accepted_assets`).
    pub fn accepted_assets(&self) -> impl Iterator<Item = Asset> {
        self.wallets.keys().copied()
    }

    /// Returns the wallet of each coin.
    pub fn iter(&self) -> impl Iterator<Item = (Asset, &Wallet)> {
        self.wallets.iter().map(|(&asset, wallet)| (asset, wallet))
    }

    /// Returns the number of times that a wallet was set or removed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns `true` if this wallet is, or was, in use here, or if a wallet here shares an address with it.
    fn has_used(&self, wallet: &Wallet) -> bool {
        self.next.contains_key(wallet.identity()) || self.wallets.values().any(|own| own.overlaps(wallet))
    }

    /// Returns the next address that no charge had before, without reserving it. `is_used` returns `true` for
    /// addresses of charges.
    pub(super) fn next_address(&self, asset: Asset, is_used: impl Fn(&str) -> bool) -> Option<UnusedAddress> {
        let wallet = self.wallets.get(&asset)?;
        // An edited list of addresses starts at index 0 again, so it may contain used addresses.
        for n in self.next_index_of(wallet).. {
            let address = match &self.wallet_cache {
                Some(wallet_cache) => wallet_cache.address(wallet, n)?,
                None => wallet.address(n)?,
            };
            if !is_used(&address) {
                return Some(UnusedAddress { address, asset, next_index: n.checked_add(1)? });
            }
        }
        None
    }

    /// Reserves an address, so that no later charge gets it, and returns its text.
    pub(super) fn reserve(&mut self, unused: UnusedAddress) -> String {
        let wallet =
            self.wallets.get(&unused.asset).expect("an address is reserved before its wallet changes");
        let next = self.next.get_mut(wallet.identity()).expect("every wallet that was set has a next index");
        *next = unused.next_index;
        unused.address
    }

    /// Returns the index of the next address of a wallet.
    fn next_index_of(&self, wallet: &Wallet) -> u32 {
        self.next.get(wallet.identity()).copied().unwrap_or(0)
    }

    fn set(&mut self, asset: Asset, wallet: Wallet) {
        self.next.entry(wallet.identity().to_owned()).or_insert(0);
        self.wallets.insert(asset, wallet);
        self.changes += 1;
    }

    pub(super) fn remove(&mut self, asset: Asset) -> Result<(), ApiError> {
        self.wallets.remove(&asset).ok_or(ApiError::NotFound)?;
        self.changes += 1;
        Ok(())
    }

    /// Parses a wallet as the owner typed it.
    pub(crate) fn parse_wallet(&self, asset: Asset, input: &WalletInput) -> Result<Wallet, ApiError> {
        let format = asset.facts().address_format;
        match input {
            WalletInput::Key { text, script } => Wallet::parse(text, *script, format, self.mode),
            WalletInput::Addresses(list) => {
                Wallet::from_addresses(list.iter().map(String::as_str), format, self.mode)
            }
        }
        .map_err(|error| {
            let field = if error.is_about_script() { "script" } else { input.field() };
            ApiError::field(field, format!("The {field} field is invalid: {error}."))
        })
    }
}

/// An unused deposit address.
pub(super) struct UnusedAddress {
    address: String,
    asset: Asset,
    /// The index of the next address of the same wallet.
    next_index: u32,
}

/// A transfer to one of the book's addresses that belongs to no charge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnmatchedTransfer {
    /// The coin that was sent.
    pub asset: Asset,
    /// The amount.
    pub amount: Coin,
    /// The receiving address.
    pub address: String,
    /// The depth on its chain.
    pub depth: Depth,
}

impl Book {
    /// Returns `true` if the wallet is, or was, in use here. For a list of addresses, an address of an existing charge
    /// is enough.
    pub(crate) fn has_used_wallet(&self, wallet: &Wallet) -> bool {
        self.wallets.has_used(wallet)
            || wallet.listed_addresses().iter().any(|address| self.charge_by_address(address).is_some())
    }

    /// Sets a coin's wallet.
    pub(crate) fn set_wallet(&mut self, asset: Asset, wallet: Wallet) {
        self.wallets.set(asset, wallet);
    }

    /// Removes a coin's wallet. Open charges keep their addresses.
    pub(crate) fn remove_wallet(&mut self, asset: Asset) -> Result<(), ApiError> {
        self.wallets.remove(asset)
    }

    /// Stores a transfer in another coin than its charge's.
    pub(super) fn record_unmatched(&mut self, sighting: &Sighting) {
        let transfer = UnmatchedTransfer {
            asset: sighting.asset,
            amount: sighting.amount,
            address: sighting.address.clone(),
            depth: sighting.depth,
        };
        self.unmatched.insert((sighting.txid.clone(), sighting.output), transfer);
    }
}
