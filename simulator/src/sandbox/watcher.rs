//! The watchers, which report the transfers that they see on the chains to the service, and their faults.
//!
//! A watcher without a fault passes each sighting on immediately. A fault delays, loses, duplicates or reverses the
//! sightings. When it ends, the watcher rescans all transactions if needed, so that the service finally has the correct
//! state.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode, sighting::Sighting};
use serde::{Deserialize, Serialize};

use crate::api::NoticePolicy;

/// The watcher of one chain while it has a fault.
#[derive(Debug, Serialize, Deserialize)]
struct FaultyWatcher {
    /// Never [`NoticePolicy::Up`].
    fault: NoticePolicy,
    /// Batches that are reported when the fault ends.
    withheld: Vec<Vec<Sighting>>,
}

/// All faulty watchers, and the sightings that are ready for the service.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Watchers {
    faulty: BTreeMap<(Mode, Asset), FaultyWatcher>,
    /// Batches for the service, in order.
    ready: Vec<Vec<Sighting>>,
}

impl Watchers {
    /// Sets the fault of a chain's watcher; [`NoticePolicy::Up`] ends it. Returns `true` if the watcher must rescan the
    /// chain.
    pub(super) fn set_fault(&mut self, chain: (Mode, Asset), fault: NoticePolicy) -> bool {
        let previous = self.faulty.remove(&chain);
        if fault != NoticePolicy::Up {
            self.faulty.insert(chain, FaultyWatcher { fault, withheld: Vec::new() });
        }
        let Some(FaultyWatcher { fault: old_fault, withheld }) = previous else { return false };
        match old_fault {
            NoticePolicy::Reversed => self.ready.extend(withheld.into_iter().rev()),
            _ => self.ready.extend(withheld),
        }
        // Only a rescan repairs a wrong order or a loss, once that fault ends.
        matches!(old_fault, NoticePolicy::Reversed | NoticePolicy::Lost) && fault != old_fault
    }

    /// Returns the chains with a faulty watcher.
    pub(super) fn faulty_chains(&self) -> Vec<(Mode, Asset)> {
        self.faulty.keys().copied().collect()
    }

    /// Receives the sightings on a chain at one time. Without a fault they are added to `on_time`.
    pub(super) fn on_sightings(
        &mut self,
        chain: (Mode, Asset),
        sightings: Vec<Sighting>,
        on_time: &mut Vec<Sighting>,
    ) {
        match self.faulty.get_mut(&chain) {
            None if on_time.is_empty() => *on_time = sightings,
            None => on_time.extend(sightings),
            Some(watcher) => match watcher.fault {
                NoticePolicy::Late | NoticePolicy::Reversed => watcher.withheld.push(sightings),
                NoticePolicy::Lost => {}
                NoticePolicy::Up => on_time.extend(sightings),
                NoticePolicy::Twice => {
                    self.ready.push(sightings.clone());
                    self.ready.push(sightings);
                }
            },
        }
    }

    /// Removes and returns the batches that are ready for the service.
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

    /// Checks two batches under a fault: those that are reported at once, those that are reported when the fault ends,
    /// and the need for a rescan.
    #[track_caller]
    fn check(fault: NoticePolicy, at_once: &[&str], at_end: &[&str], needs_rescan: bool) {
        let (mut watchers, mut on_time) = (Watchers::default(), Vec::new());
        assert!(!watchers.set_fault(CHAIN, fault));
        assert_eq!(watchers.faulty_chains(), [CHAIN]);
        ["a", "b"].into_iter().for_each(|txid| watchers.on_sightings(CHAIN, batch(txid), &mut on_time));
        assert!(on_time.is_empty());
        assert_eq!(txids(watchers.take_ready()), at_once);
        assert_eq!(watchers.set_fault(CHAIN, NoticePolicy::Up), needs_rescan);
        assert!(watchers.faulty_chains().is_empty());
        assert_eq!(txids(watchers.take_ready()), at_end);
        ["c", "d"].into_iter().for_each(|txid| watchers.on_sightings(CHAIN, batch(txid), &mut on_time));
        assert_eq!(txids(vec![on_time]), ["c", "d"]);
    }

    #[test]
    fn a_fault_delays_reverses_loses_or_duplicates_sightings() {
        check(NoticePolicy::Late, &[], &["a", "b"], false);
        check(NoticePolicy::Reversed, &[], &["b", "a"], true);
        check(NoticePolicy::Lost, &[], &[], true);
        check(NoticePolicy::Twice, &["a", "a", "b", "b"], &[], false);
    }
}
