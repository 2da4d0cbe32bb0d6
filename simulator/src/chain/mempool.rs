//! The mempool: the transactions that wait for a block, and the capacity of blocks.

use std::collections::BTreeSet;

use reference_core::rng::RngKey;
use serde::{Deserialize, Serialize};

use super::{ChainError, FeeLevel};

/// The shares of natural blocks without room for all transactions. Both are 0 by default, so that a scenario
/// behaves the same with every seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Congestion {
    /// Blocks without any transaction, in percent.
    pub empty_percent: u32,
    /// Blocks with only high-fee transactions, in percent.
    pub full_percent: u32,
}

impl Congestion {
    /// The maximum of empty and full blocks together: beyond it, waiting times become very long.
    pub(crate) const PERCENT_MAX: u32 = 90;

    /// Returns the congestion unless its sum exceeds [`Congestion::PERCENT_MAX`].
    pub(super) fn check(self) -> Result<Congestion, ChainError> {
        let percent = self.empty_percent.saturating_add(self.full_percent);
        if percent > Congestion::PERCENT_MAX {
            return Err(ChainError::Congestion { percent });
        }
        Ok(self)
    }

    /// Returns the capacity of natural block number `ordinal`.
    pub(super) fn capacity(self, rng_key: &RngKey, ordinal: u64) -> BlockCapacity {
        if self == Congestion::default() {
            return BlockCapacity::Everything;
        }
        let drawn = rng_key.stream(ordinal).below(100);
        if drawn < u64::from(self.empty_percent) {
            BlockCapacity::Nothing
        } else if drawn < u64::from(self.empty_percent + self.full_percent) {
            BlockCapacity::HighFees
        } else {
            BlockCapacity::Everything
        }
    }
}

/// The transactions that a block can take, by fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockCapacity {
    Nothing,
    HighFees,
    Everything,
}

impl BlockCapacity {
    fn admits(self, queue: Queue) -> bool {
        match self {
            BlockCapacity::Nothing => false,
            BlockCapacity::HighFees => queue == Queue::HighFees,
            BlockCapacity::Everything => true,
        }
    }
}

/// A part of the waiting transactions, by fee level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Queue {
    HighFees,
    Others,
}

impl Queue {
    const ALL: [Queue; 2] = [Queue::HighFees, Queue::Others];

    /// Returns the queue of a fee level; stuck transactions have none.
    fn for_fee(fee: FeeLevel) -> Option<Queue> {
        match fee {
            FeeLevel::High => Some(Queue::HighFees),
            FeeLevel::Normal | FeeLevel::Low => Some(Queue::Others),
            FeeLevel::Stuck => None,
        }
    }
}

/// The transactions that wait to be mined.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Mempool {
    /// Each with its queue, the first height at which it can be mined, and its number.
    waiting: BTreeSet<(Queue, u64, usize)>,
}

impl Mempool {
    pub(super) fn add(&mut self, number: usize, fee: FeeLevel, minable_from: u64) {
        if let Some(queue) = Queue::for_fee(fee) {
            self.waiting.insert((queue, minable_from, number));
        }
    }

    pub(super) fn remove(&mut self, number: usize, fee: FeeLevel, minable_from: u64) {
        if let Some(queue) = Queue::for_fee(fee) {
            self.waiting.remove(&(queue, minable_from, number));
        }
    }

    /// Returns the numbers of the transactions that a block of this height would take.
    pub(super) fn block_candidates(&self, height: u64, capacity: BlockCapacity) -> BTreeSet<usize> {
        Queue::ALL
            .into_iter()
            .filter(|&queue| capacity.admits(queue))
            .flat_map(|queue| self.waiting.range((queue, 0, 0)..=(queue, height, usize::MAX)))
            .map(|&(.., number)| number)
            .collect()
    }

    /// Returns the first height above `tip` whose block will take a transaction.
    pub(super) fn next_height(&self, tip: u64, capacity: impl Fn(u64) -> BlockCapacity) -> Option<u64> {
        let first = |queue: Queue| {
            let mut waiting = self.waiting.range((queue, 0, 0)..=(queue, u64::MAX, usize::MAX));
            let &(_, minable_from, _) = waiting.next()?;
            (minable_from.max(tip + 1)..).find(|&height| capacity(height).admits(queue))
        };
        Queue::ALL.into_iter().filter_map(first).min()
    }
}

#[cfg(test)]
mod tests {
    use reference_core::rng::Seed;

    use super::*;

    /// Checks the shares of empty and full blocks among 10,000, with a tolerance of 2 percentage points.
    #[track_caller]
    fn check(empty_percent: u32, full_percent: u32) {
        let rng_key = Seed(7).rng_key("live", "BTC", "room");
        let congestion = Congestion { empty_percent, full_percent };
        let rounded_percent = |wanted| {
            let capacities = (1..=10_000).map(|ordinal| congestion.capacity(&rng_key, ordinal));
            (capacities.filter(|&capacity| capacity == wanted).count() as u32 + 50) / 100
        };
        for (capacity, expected) in
            [(BlockCapacity::Nothing, empty_percent), (BlockCapacity::HighFees, full_percent)]
        {
            let percent = rounded_percent(capacity);
            assert!(percent.abs_diff(expected) <= 2, "{capacity:?}: {percent} percent, not {expected}");
        }
    }

    #[test]
    fn the_shares_of_blocks_without_room_are_as_configured() {
        check(0, 0);
        check(20, 30);
        check(90, 0);
        check(0, 90);
    }
}
