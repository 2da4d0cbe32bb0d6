//! The watchers between the chains and the service, and their faults.
//!
//! A watcher without a fault passes each notice on immediately. A fault delays, loses, duplicates or reverses the
//! notices. When it ends, the watcher rescans all transactions if needed, so that the service finally has the correct
//! state.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode, sighting::Sighting};
use serde::{Deserialize, Serialize};

/// A fault of a watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WatcherFault {
    /// Notices are delayed until the fault ends.
    Late,
    /// Notices are delayed, then delivered in reverse order.
    Reversed,
    /// Notices are lost.
    Lost,
    /// Each notice is delivered twice.
    Twice,
}

/// The words that [`parse`] accepts.
pub(super) const WORDS: [&str; 5] = ["up", "late", "reversed", "lost", "twice"];

/// Parses `up`, which means no fault, or the word of a fault; `None` for other words.
pub(super) fn parse(word: &str) -> Option<Option<WatcherFault>> {
    Some(match word {
        "up" => None,
        "late" => Some(WatcherFault::Late),
        "reversed" => Some(WatcherFault::Reversed),
        "lost" => Some(WatcherFault::Lost),
        "twice" => Some(WatcherFault::Twice),
        _ => return None,
    })
}

#[derive(Debug, Serialize, Deserialize)]
struct FaultyWatcher {
    fault: WatcherFault,
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
    /// Sets or removes the fault of a chain's watcher. Returns `true` if the chain must be rescanned.
    pub(super) fn change(&mut self, chain: (Mode, Asset), fault: Option<WatcherFault>) -> bool {
        let before = self.faulty.remove(&chain);
        if let Some(fault) = fault {
            self.faulty.insert(chain, FaultyWatcher { fault, held: Vec::new() });
        }
        let Some(FaultyWatcher { fault: before, held }) = before else { return false };
        match before {
            WatcherFault::Reversed => self.ready.extend(held.into_iter().rev()),
            _ => self.ready.extend(held),
        }
        // A wrong order or a loss is repaired only by a rescan.
        matches!(before, WatcherFault::Reversed | WatcherFault::Lost) && fault != Some(before)
    }

    /// Returns the chains with a faulty watcher.
    pub(super) fn faulty(&self) -> Vec<(Mode, Asset)> {
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
                WatcherFault::Late | WatcherFault::Reversed => watcher.held.push(notices),
                WatcherFault::Lost => {}
                WatcherFault::Twice => {
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
    fn check(fault: WatcherFault, at_once: &[&str], mended: &[&str], anew: bool) {
        let (mut watchers, mut now) = (Watchers::default(), Vec::new());
        assert!(!watchers.change(CHAIN, Some(fault)));
        assert_eq!(watchers.faulty(), [CHAIN]);
        ["a", "b"].into_iter().for_each(|txid| watchers.on_sightings(CHAIN, batch(txid), &mut now));
        assert!(now.is_empty());
        assert_eq!(txids(watchers.take_ready()), at_once);
        assert_eq!(watchers.change(CHAIN, None), anew);
        assert!(watchers.faulty().is_empty());
        assert_eq!(txids(watchers.take_ready()), mended);
        ["c", "d"].into_iter().for_each(|txid| watchers.on_sightings(CHAIN, batch(txid), &mut now));
        assert_eq!(txids(vec![now]), ["c", "d"]);
    }

    #[test]
    fn a_fault_delays_reverses_loses_or_duplicates_notices() {
        check(WatcherFault::Late, &[], &["a", "b"], false);
        check(WatcherFault::Reversed, &[], &["b", "a"], true);
        check(WatcherFault::Lost, &[], &[], true);
        check(WatcherFault::Twice, &["a", "a", "b", "b"], &[], false);
    }

    #[test]
    fn parse_accepts_every_word() {
        let faults: Vec<_> = WORDS.into_iter().map(|word| parse(word).expect("a word")).collect();
        let all = [WatcherFault::Late, WatcherFault::Reversed, WatcherFault::Lost, WatcherFault::Twice];
        assert_eq!(faults, [None].into_iter().chain(all.map(Some)).collect::<Vec<_>>());
        assert_eq!(parse("down"), None);
    }
}
