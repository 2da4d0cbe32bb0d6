//! The chains of a world: one for every coin and mode.
//!
//! Remembers when the next of them has something to do, because every request asks for it.

use std::{cell::Cell, collections::BTreeMap};

use reference_core::{asset::Asset, mode::Mode, rng::Seed, sighting::Sighting, time::Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;

/// Every chain.
#[derive(Serialize, Deserialize)]
pub(super) struct Chains {
    all: BTreeMap<(Mode, Asset), Chain>,
    /// What [`Chains::next_due`] said, until somebody may have changed a chain.
    #[serde(skip)]
    next_due: Cell<Option<Option<Timestamp>>>,
}

impl Chains {
    pub(super) fn new(seed: Seed, start: Timestamp) -> Chains {
        let each = |mode| Asset::ALL.into_iter().map(move |asset| (mode, asset));
        let all = Mode::ALL.into_iter().flat_map(each);
        let all = all.map(|(mode, asset)| ((mode, asset), Chain::new(seed, mode, asset, start))).collect();
        Chains { all, next_due: Cell::new(None) }
    }

    /// When one of them has something to do.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.next_due.get().unwrap_or_else(|| {
            let due = self.all.values().filter_map(Chain::next_due).min();
            self.next_due.set(Some(due));
            due
        })
    }

    /// Lets all of them do what is due, in order of mode and coin, and hands over what is to be seen on each.
    pub(super) fn advance(&mut self, now: Timestamp, mut see: impl FnMut((Mode, Asset), Vec<Sighting>)) {
        if self.next_due().is_none_or(|due| due > now) {
            return;
        }
        self.next_due.set(None);
        let due = self.all.iter_mut().filter(|(_, chain)| chain.next_due().is_some_and(|due| due <= now));
        for (place, chain) in due {
            see(*place, chain.advance(now).into_iter().map(|(_, sighting)| sighting).collect());
        }
    }

    /// A coin's chain.
    pub(super) fn get(&self, mode: Mode, asset: Asset) -> &Chain {
        self.all.get(&(mode, asset)).expect("there is a chain for every coin and mode")
    }

    /// Every chain, in order of mode and coin.
    pub(super) fn values(&self) -> impl Iterator<Item = &Chain> {
        self.all.values()
    }

    /// A coin's chain, to be changed.
    pub(super) fn get_mut(&mut self, mode: Mode, asset: Asset) -> &mut Chain {
        self.next_due.set(None);
        self.all.get_mut(&(mode, asset)).expect("there is a chain for every coin and mode")
    }

    /// Every chain, to be changed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Chain> {
        self.next_due.set(None);
        self.all.values_mut()
    }
}
