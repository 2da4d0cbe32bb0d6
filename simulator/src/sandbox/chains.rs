//! The chains of a world: one for every coin and mode. The next due time is cached, because every request needs it.

use std::{cell::Cell, collections::BTreeMap};

use reference_core::{asset::Asset, mode::Mode, rng::Seed, sighting::Sighting, time::Timestamp};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;

/// The chains of a world.
#[derive(Serialize, Deserialize)]
pub(super) struct Chains {
    all: BTreeMap<(Mode, Asset), Chain>,
    /// The cached result of [`Chains::next_due`]; `None` after a change.
    #[serde(skip)]
    next_due: Cell<Option<Option<Timestamp>>>,
    /// The time of the next block on any chain with transactions; `None` if the heights must be read again.
    #[serde(skip)]
    next_block: Cell<Option<Timestamp>>,
}

impl Chains {
    pub(super) fn new(seed: Seed, start: Timestamp) -> Chains {
        let coins = |mode| Asset::ALL.into_iter().map(move |asset| (mode, asset));
        let keys = Mode::ALL.into_iter().flat_map(coins);
        let all = keys.map(|(mode, asset)| ((mode, asset), Chain::new(seed, mode, asset, start))).collect();
        Chains { all, next_due: Cell::new(None), next_block: Cell::new(None) }
    }

    /// Returns the next time at which a chain changes by itself.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.next_due.get().unwrap_or_else(|| {
            let due = self.all.values().filter_map(Chain::next_due).min();
            self.next_due.set(Some(due));
            due
        })
    }

    /// Performs the due work on all chains, in order of mode and coin, and passes each chain's new sightings to
    /// `report`.
    pub(super) fn advance(&mut self, now: Timestamp, mut report: impl FnMut((Mode, Asset), Vec<Sighting>)) {
        if self.next_due().is_none_or(|due| due > now) {
            return;
        }
        self.next_due.set(None);
        let due = self.all.iter_mut().filter(|(_, chain)| chain.next_due().is_some_and(|due| due <= now));
        for (key, chain) in due {
            report(*key, chain.advance(now).into_iter().map(|(_, sighting)| sighting).collect());
        }
    }

    /// Returns the heights of the chains with transactions; `None` if there was no block since the last call.
    pub(super) fn new_heights(&self, now: Timestamp) -> Option<Vec<((Mode, Asset), u64)>> {
        if self.next_block.get().is_some_and(|next| now < next) {
            return None;
        }
        let used_chains = || self.all.iter().filter(|(_, chain)| chain.is_used());
        let next = used_chains().map(|(_, chain)| chain.block_after(now, 1)).min();
        self.next_block.set(Some(next.unwrap_or(Timestamp::LAST)));
        Some(used_chains().map(|(key, chain)| (*key, chain.height(now))).collect())
    }

    /// Returns the chain of a coin.
    pub(super) fn get(&self, mode: Mode, asset: Asset) -> &Chain {
        self.all.get(&(mode, asset)).expect("there is a chain for every coin and mode")
    }

    /// Returns every chain, in order of mode and coin.
    pub(super) fn values(&self) -> impl Iterator<Item = &Chain> {
        self.all.values()
    }

    /// Returns the chain of a coin, mutable.
    pub(super) fn get_mut(&mut self, mode: Mode, asset: Asset) -> &mut Chain {
        self.clear_cache();
        self.all.get_mut(&(mode, asset)).expect("there is a chain for every coin and mode")
    }

    /// Returns every chain, mutable.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Chain> {
        self.clear_cache();
        self.all.values_mut()
    }

    /// Clears the cached times, because a chain may change.
    fn clear_cache(&self) {
        self.next_due.set(None);
        self.next_block.set(None);
    }
}
