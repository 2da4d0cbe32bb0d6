//! The watchers between the chains and the service, and their faults.
//!
//! A watcher that does its work hands everything on at once. The others make its notices late, lost, doubled or
//! reversed, until it does its work again: then it looks at every transaction anew where that is needed, so that in
//! the end the service knows how things stand.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode, sighting::Sighting};
use serde::{Deserialize, Serialize};

/// The fault of a watcher's notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WatcherFault {
    /// They wait.
    Late,
    /// They wait, and then come last first.
    Reversed,
    /// They are lost.
    Lost,
    /// Each comes twice.
    Twice,
}

/// The words that [`parse`] reads.
pub(super) const WORDS: [&str; 5] = ["up", "late", "reversed", "lost", "twice"];

/// Reads `up`, which is no fault, or the word of a fault; `None` if it is neither.
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

/// Every watcher that does not simply do its work, and what is to be handed over.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Watchers {
    faulty: BTreeMap<(Mode, Asset), FaultyWatcher>,
    /// Batches for the service, in order.
    ready: Vec<Vec<Sighting>>,
}

impl Watchers {
    /// From now on a chain is watched with this fault, or with none. Says whether the watcher has to look at
    /// everything anew.
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
        // What came in a wrong order, or not at all, is only put right by looking again.
        matches!(before, WatcherFault::Reversed | WatcherFault::Lost) && fault != Some(before)
    }

    /// The chains that are not simply watched.
    pub(super) fn faulty(&self) -> Vec<(Mode, Asset)> {
        self.faulty.keys().copied().collect()
    }

    /// Passes a chain's sightings of one moment on to the service; those that are on time join `now`.
    pub(super) fn hear(&mut self, chain: (Mode, Asset), notices: Vec<Sighting>, now: &mut Vec<Sighting>) {
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

    /// The batches that the service is to hear now.
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
        batches.into_iter().flatten().map(|it| it.txid).collect()
    }

    /// Two batches come while a chain is watched with a fault: what is handed over at once, what when it is mended, and
    /// whether everything must be looked at anew then.
    #[track_caller]
    fn check(fault: WatcherFault, at_once: &[&str], mended: &[&str], anew: bool) {
        let (mut watchers, mut now) = (Watchers::default(), Vec::new());
        assert!(!watchers.change(CHAIN, Some(fault)));
        assert_eq!(watchers.faulty(), [CHAIN]);
        ["a", "b"].into_iter().for_each(|txid| watchers.hear(CHAIN, batch(txid), &mut now));
        assert!(now.is_empty());
        assert_eq!(txids(watchers.take_ready()), at_once);
        assert_eq!(watchers.change(CHAIN, None), anew);
        assert!(watchers.faulty().is_empty());
        assert_eq!(txids(watchers.take_ready()), mended);
        ["c", "d"].into_iter().for_each(|txid| watchers.hear(CHAIN, batch(txid), &mut now));
        assert_eq!(txids(vec![now]), ["c", "d"]);
    }

    #[test]
    fn a_fault_delays_turns_loses_or_doubles_what_is_noticed() {
        check(WatcherFault::Late, &[], &["a", "b"], false);
        check(WatcherFault::Reversed, &[], &["b", "a"], true);
        check(WatcherFault::Lost, &[], &[], true);
        check(WatcherFault::Twice, &["a", "a", "b", "b"], &[], false);
    }

    #[test]
    fn every_word_is_read() {
        let faults: Vec<_> = WORDS.into_iter().map(|word| parse(word).expect("a word")).collect();
        let all = [WatcherFault::Late, WatcherFault::Reversed, WatcherFault::Lost, WatcherFault::Twice];
        assert_eq!(faults, [None].into_iter().chain(all.map(Some)).collect::<Vec<_>>());
        assert_eq!(parse("down"), None);
    }
}
