//! The watchers: what a chain shows, and what the service hears of it.
//!
//! A watcher that does its work hands everything on at once. The others make its notices late, lost, doubled or
//! reversed, until it does its work again: then it looks at every transaction anew where that is needed, so that in
//! the end the service knows how things stand.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, mode::Mode, sighting::Sighting};

/// What becomes of a watcher's notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Manner {
    /// They come at once.
    #[default]
    Up,
    /// They wait.
    Late,
    /// They wait, and then come last first.
    Reversed,
    /// They are lost.
    Lost,
    /// Each comes twice.
    Twice,
}

impl Manner {
    pub(super) fn parse(word: &str) -> Option<Manner> {
        Some(match word {
            "up" => Manner::Up,
            "late" => Manner::Late,
            "reversed" => Manner::Reversed,
            "lost" => Manner::Lost,
            "twice" => Manner::Twice,
            _ => return None,
        })
    }
}

#[derive(Default)]
struct Watcher {
    manner: Manner,
    held: Vec<Vec<Sighting>>,
}

/// Every watcher that does not simply do its work, and what is to be handed over.
#[derive(Default)]
pub(super) struct Watchers {
    odd: BTreeMap<(Mode, Asset), Watcher>,
    /// Batches for the service, in order.
    ready: Vec<Vec<Sighting>>,
}

impl Watchers {
    /// From now on a chain is watched in this manner. Says whether the watcher has to look at everything anew.
    pub(super) fn change(&mut self, chain: (Mode, Asset), manner: Manner) -> bool {
        let Watcher { manner: before, held } = self.odd.remove(&chain).unwrap_or_default();
        match before {
            Manner::Reversed => self.ready.extend(held.into_iter().rev()),
            _ => self.ready.extend(held),
        }
        if manner != Manner::Up {
            self.odd.insert(chain, Watcher { manner, held: Vec::new() });
        }
        // What came in a wrong order, or not at all, is only put right by looking again.
        matches!(before, Manner::Reversed | Manner::Lost) && before != manner
    }

    /// The chains that are not simply watched.
    pub(super) fn odd(&self) -> Vec<(Mode, Asset)> {
        self.odd.keys().copied().collect()
    }

    /// What a chain showed at one moment, on its way to the service; what is on time joins `now`.
    pub(super) fn hear(&mut self, chain: (Mode, Asset), notices: Vec<Sighting>, now: &mut Vec<Sighting>) {
        match self.odd.get_mut(&chain) {
            None if now.is_empty() => *now = notices,
            None => now.extend(notices),
            Some(watcher) => match watcher.manner {
                Manner::Up => now.extend(notices),
                Manner::Late | Manner::Reversed => watcher.held.push(notices),
                Manner::Lost => {}
                Manner::Twice => {
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
