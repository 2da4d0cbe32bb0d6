//! A cache of derived addresses, for hosts that run many services with the same seeded wallets.
//!
//! The derivation is a pure function of a key and a number, and takes longer than the rest of creating a charge.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Script, Wallet};
use crate::{asset::AddressFormat, mode::Mode, rng::Seed};

/// The number of cached addresses of one wallet; later ones are derived each time.
const CACHED_MAX: usize = 4_096;

/// The wallets of new accounts, drawn from one seed, and their derived addresses. Clones share the cache.
#[derive(Clone)]
pub struct WalletCache {
    seed: Seed,
    entries: Arc<Mutex<Entries>>,
}

/// The values that determine a wallet's addresses: its identity, the format and script of its addresses, its mode.
type WalletKey = (String, AddressFormat, Option<Script>, Mode);

#[derive(Default)]
struct Entries {
    wallets: BTreeMap<(String, AddressFormat, Mode), Wallet>,
    addresses: BTreeMap<WalletKey, Vec<Option<String>>>,
}

impl WalletCache {
    /// Creates an empty cache.
    pub fn new(seed: Seed) -> WalletCache {
        WalletCache { seed, entries: Arc::default() }
    }

    /// Returns the built-in wallet of `realm`: that of [`Wallet::from_seed`] with the seed of this cache.
    pub fn wallet(&self, realm: &str, format: AddressFormat, mode: Mode) -> Wallet {
        self.with_entries(|entries| {
            let key = (realm.to_owned(), format, mode);
            entries
                .wallets
                .entry(key)
                .or_insert_with(|| Wallet::from_seed(self.seed, realm, format, mode))
                .clone()
        })
    }

    /// Returns the same as [`Wallet::address`].
    pub fn address(&self, wallet: &Wallet, n: u32) -> Option<String> {
        let index = n as usize;
        if index >= CACHED_MAX {
            return wallet.address(n);
        }
        self.with_entries(|entries| {
            let key = (wallet.identity().to_owned(), wallet.address_format(), wallet.script(), wallet.mode());
            let addresses = entries.addresses.entry(key).or_default();
            if addresses.len() <= index {
                addresses.resize(index + 1, None);
            }
            if addresses[index].is_none() {
                addresses[index] = wallet.address(n);
            }
            addresses[index].clone()
        })
    }

    fn with_entries<T>(&self, action: impl FnOnce(&mut Entries) -> T) -> T {
        // A panic while the lock is held leaves no partial write.
        action(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for WalletCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WalletCache({:?})", self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asset::Asset;

    #[test]
    fn a_wallet_cache_returns_the_addresses_of_the_wallets() {
        let wallet_cache = WalletCache::new(Seed(7));
        for mode in Mode::ALL {
            for asset in Asset::ALL {
                let format = asset.facts().address_format;
                let seeded = Wallet::from_seed(Seed(7), "acme", format, mode);
                let cached = wallet_cache.wallet("acme", format, mode);
                assert_eq!(seeded, cached);
                for n in [3, 0, 3, 4_096] {
                    assert_eq!(wallet_cache.address(&cached, n), seeded.address(n), "{asset} {mode} {n}");
                }
            }
        }
    }
}
