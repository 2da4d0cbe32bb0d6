//! The watchers between the chains and the service, and their faults.
//!
//! A watcher without a fault passes each notice on immediately. A fault delays, loses, duplicates or reverses the
//! notices. When it ends, the watcher rescans all transactions if needed, so that the service finally has the correct
//! state.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode, sighting::Sighting};
use serde::{Deserialize, Serialize};

use crate::api::Notices;

#[derive(Debug, Serialize, Deserialize)]
struct FaultyWatcher {
    /// All but [`Notices::Up`].
    fault: Notices,
    held: Vec<Vec<Sighting>>,
}

/// All faulty watchers, and the notices that are ready for delivery.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Watchers {
    faulty: BTreeMap<(Mode, Asset), FaultyWatcher>,
    /// Batches for the service, in order.
    ready: Vec<Vec<Sighting>>,
}

impl Watchers {
    /// Changes the treatment of a chain's notices. Returns `true` if the watcher has to read everything again.
    pub(super) fn change(&mut self, chain: (Mode, Asset), fault: Notices) -> bool {
        let before = self.faulty.remove(&chain);
        if fault != Notices::Up {
            self.faulty.insert(chain, FaultyWatcher { fault, held: Vec::new() });
        }
        let Some(FaultyWatcher { fault: before, held }) = before else { return false };
        match before {
            Notices::Reversed => self.ready.extend(held.into_iter().rev()),
            _ => self.ready.extend(held),
        }
        // A wrong order or a loss is repaired only by a rescan.
        matches!(before, Notices::Reversed | Notices::Lost) && fault != before
    }

    /// Returns the chains with a faulty watcher.
    pub(super) fn faulty_chains(&self) -> Vec<(Mode, Asset)> {
        self.faulty.keys().copied().collect()
    }

    /// Passes a chain's sightings of one moment on to the service; those that are on time join `now`.
    pub(super) fn on_sightings(
        &mut self,
        chain: (Mode, Asset),
        notices: Vec<Sighting>,
        now: &mut Vec<Sighting>,
    ) {
        match self.faulty.get_mut(&chain) {
            None if now.is_empty() => *now = notices,
            None => now.extend(notices),
            Some(watcher) => match watcher.fault {
                Notices::Late | Notices::Reversed => watcher.held.push(notices),
                Notices::Lost => {}
                Notices::Up => now.extend(notices),
                Notices::Twice => {
                    self.ready.push(notices.clone());
                    self.ready.push(notices);
                }
            },
        }
    }

    /// Takes the batches that are ready for the service.
    pub(super) fn take_ready(&mut self) -> Vec<Vec<Sighting>> {
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use reference_core::{money::Coin, sighting::Depth};

    use super::*;

    const CHAIN: (Mode, Asset) = (Mode::Live, Asset::Btc);

    fn batch(txid: &str) -> Vec<Sighting> {
        let (mode, asset) = CHAIN;
        let (address, txid, amount) = (String::new(), txid.to_owned(), Coin::ZERO);
        let depth = Depth::Confirmations(0);
        vec![Sighting { mode, asset, address, txid, output: 0, amount, depth, height: 0 }]
    }

    fn txids(batches: Vec<Vec<Sighting>>) -> Vec<String> {
        batches.into_iter().flatten().map(|sighting| sighting.txid).collect()
    }

    /// Checks two batches under a fault: which are delivered at once, which when it ends, and whether a rescan is
    /// needed then.
    #[track_caller]
    fn check(fault: Notices, at_once: &[&str], mended: &[&str], rescans: bool) {
        let (mut watchers, mut now) = (Watchers::default(), Vec::new());
        assert!(!watchers.change(CHAIN, fault));
        assert_eq!(watchers.faulty_chains(), [CHAIN]);
        ["a", "b"].into_iter().for_each(|txid| watchers.on_sightings(CHAIN, batch(txid), &mut now));
        assert!(now.is_empty());
        assert_eq!(txids(watchers.take_ready()), at_once);
        assert_eq!(watchers.change(CHAIN, Notices::Up), rescans);
        assert!(watchers.faulty_chains().is_empty());
        assert_eq!(txids(watchers.take_ready()), mended);
        ["c", "d"].into_iter().for_each(|txid| watchers.on_sightings(CHAIN, batch(txid), &mut now));
        assert_eq!(txids(vec![now]), ["c", "d"]);
    }

    #[test]
    fn a_fault_delays_reverses_loses_or_duplicates_notices() {
        check(Notices::Late, &[], &["a", "b"], false);
        check(Notices::Reversed, &[], &["b", "a"], true);
        check(Notices::Lost, &[], &[], true);
        check(Notices::Twice, &["a", "a", "b", "b"], &[], false);
    }
}
