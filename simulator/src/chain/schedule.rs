//! The times of blocks, by a formula: a jump over ten idle years costs as much as one over a block.
//!
//! Natural blocks, as opposed to those that a caller mines at once, are numbered from 1. Eight of them share a window
//! of eight block times; the number of the window is the key of the draw of their offsets in it. So the time of a block
//! and the number of blocks at a time each take one draw, and the average never drifts. Operations on the chain change
//! the formula without new draws: blocks mined at once shift the heights, a stall shifts the times.

use std::cell::Cell;

use reference_core::{
    asset::{AddressFormat, Asset},
    mode::Mode,
    rng::{RngKey, Seed},
    time::{Span, Timestamp},
};
use serde::{Deserialize, Serialize};

/// The number of natural blocks in a window.
const WINDOW: u64 = 8;

/// The distribution of a network's blocks over time.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum BlockDistribution {
    /// Proof of work: random times, so gaps between blocks vary widely.
    Random,
    /// Proof of stake: one block per slot, at most a tenth of the slot early.
    Slotted,
}

/// The natural blocks of one chain, and the changes to their times and heights.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Schedule {
    rng_key: RngKey,
    distribution: BlockDistribution,
    /// The average time between two blocks, in microseconds.
    block_time: u64,
    start: Timestamp,
    /// The height at the start.
    start_height: u64,
    /// The number of blocks mined at once.
    at_once: u64,
    /// The total length of all stalls, in microseconds.
    delay: u64,
    /// The number of natural blocks at the start of the last stall. The stall delays the formula, but not these blocks.
    blocks_before_stall: u64,
    /// The most recently used window and its offsets.
    #[serde(skip)]
    cached_window: Cell<Option<(u64, Offsets)>>,
}

/// The offsets of the blocks from the start of their window, in microseconds.
type Offsets = [u64; WINDOW as usize];

impl Schedule {
    /// Returns the changes to the natural blocks so far.
    pub(super) fn state(&self) -> [u64; 3] {
        [self.at_once, self.delay, self.blocks_before_stall]
    }

    /// Creates the schedule of a chain that has the height `start_height` at `start`.
    pub(super) fn new(seed: Seed, mode: Mode, asset: Asset, start: Timestamp, start_height: u64) -> Schedule {
        let distribution = match asset.facts().address_format {
            AddressFormat::Bitcoin
            | AddressFormat::Litecoin
            | AddressFormat::Dogecoin
            | AddressFormat::BitcoinCash
            | AddressFormat::Monero => BlockDistribution::Random,
            AddressFormat::Evm | AddressFormat::Tron | AddressFormat::Solana => BlockDistribution::Slotted,
        };
        Schedule {
            rng_key: seed.rng_key(mode.as_str(), asset.code(), "block times"),
            distribution,
            block_time: asset.facts().block_time.0,
            start,
            start_height,
            at_once: 0,
            delay: 0,
            blocks_before_stall: 0,
            cached_window: Cell::new(None),
        }
    }

    /// Returns the height at the start: blocks up to it cannot be replaced.
    pub(super) fn start_height(&self) -> u64 {
        self.start_height
    }

    /// Returns the height of the chain at `now`.
    pub(super) fn height(&self, now: Timestamp) -> u64 {
        self.start_height + self.at_once + self.natural_blocks(now)
    }

    /// Returns the time of the future block with this height. It may be past [`Timestamp::LAST`], so it is only for
    /// comparisons.
    pub(super) fn time(&self, height: u64) -> Timestamp {
        let index = self.natural_ordinal(height) - 1;
        let window = index / WINDOW;
        let offset = self.offsets(window)[(index % WINDOW) as usize];
        let elapsed = window.saturating_mul(self.window_length()).saturating_add(offset);
        Timestamp(self.start.0.saturating_add(self.delay).saturating_add(elapsed))
    }

    /// Returns the ordinal, from 1, of the natural block with this height.
    pub(super) fn natural_ordinal(&self, height: u64) -> u64 {
        height
            .checked_sub(self.start_height + self.at_once)
            .filter(|&ordinal| ordinal > 0)
            .expect("only future blocks have a natural ordinal")
    }

    /// Adds blocks that were mined at once.
    pub(super) fn add_at_once(&mut self, blocks: u64) {
        self.at_once += blocks;
    }

    /// Delays every natural block after `now` by `span`.
    pub(super) fn stall(&mut self, now: Timestamp, span: Span) {
        self.blocks_before_stall = self.natural_blocks(now);
        self.delay = self.delay.saturating_add(span.0);
    }

    /// Returns the number of natural blocks until `now`.
    fn natural_blocks(&self, now: Timestamp) -> u64 {
        let elapsed = now.since(self.start).0.saturating_sub(self.delay);
        let window = elapsed / self.window_length();
        let rest = elapsed % self.window_length();
        let offsets = self.offsets(window);
        let in_window = offsets.iter().take_while(|&&offset| offset <= rest).count() as u64;
        self.blocks_before_stall.max(window * WINDOW + in_window)
    }

    fn window_length(&self) -> u64 {
        WINDOW * self.block_time
    }

    /// Returns the offsets of the blocks in a window: increasing, greater than 0, at most its length.
    fn offsets(&self, window: u64) -> Offsets {
        match self.cached_window.get() {
            Some((known, offsets)) if known == window => offsets,
            _ => {
                let offsets = self.draw_offsets(window);
                self.cached_window.set(Some((window, offsets)));
                offsets
            }
        }
    }

    fn draw_offsets(&self, window: u64) -> Offsets {
        let mut rng = self.rng_key.stream(window);
        let mut offsets = [0; WINDOW as usize];
        match self.distribution {
            BlockDistribution::Random => {
                // Drawn from a range that is shorter by the number of blocks, sorted, and then moved apart by one
                // each: uniform, and never two at the same time.
                offsets.fill_with(|| rng.below(self.window_length() - WINDOW + 1));
                offsets.sort_unstable();
                for (shift, offset) in (1..).zip(&mut offsets) {
                    *offset += shift;
                }
            }
            BlockDistribution::Slotted => {
                for (slot, offset) in (1..).zip(&mut offsets) {
                    *offset = slot * self.block_time - rng.below(self.block_time / 10);
                }
            }
        }
        offsets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp(1_750_000_000_000_000);
    const START_HEIGHT: u64 = 1_000;

    fn schedule(seed: u64, asset: Asset) -> Schedule {
        Schedule::new(Seed(seed), Mode::Live, asset, START, START_HEIGHT)
    }

    /// Checks that heights and times are inverse functions from `now` on, and that times increase.
    #[track_caller]
    fn check_inverse(schedule: &Schedule, now: Timestamp, blocks: u64) {
        let mut earlier = now;
        let tip = schedule.height(now);
        for height in tip + 1..=tip + blocks {
            let at = schedule.time(height);
            assert!(at > earlier, "block {height} is at {at}, not after {earlier}");
            assert_eq!(schedule.height(at), height, "at {at}");
            assert_eq!(schedule.height(at.minus(Span(1))), height - 1, "just before {at}");
            earlier = at;
        }
    }

    #[test]
    fn heights_and_times_are_inverse_functions_on_every_chain() {
        for asset in Asset::ALL {
            check_inverse(&schedule(7, asset), START, 100);
        }
    }

    #[test]
    fn the_average_is_the_coins_block_time() {
        for asset in Asset::ALL {
            let year = Span::days(365);
            let blocks = schedule(7, asset).height(START.plus(year)) - START_HEIGHT;
            assert!(blocks.abs_diff(year.0 / asset.facts().block_time.0) <= WINDOW, "{asset}: {blocks}");
        }
    }

    #[test]
    fn proof_of_work_has_short_and_long_gaps() {
        // The shortest and the longest gap, in tenths of the block time.
        let gaps = |asset: Asset| {
            let schedule = schedule(7, asset);
            let times: Vec<_> = (1..=2_000).map(|block| schedule.time(START_HEIGHT + block)).collect();
            let block_time = asset.facts().block_time.0;
            let tenths = times.windows(2).map(|pair| pair[1].since(pair[0]).0 * 10 / block_time);
            let tenths: Vec<_> = tenths.collect();
            (*tenths.iter().min().unwrap(), *tenths.iter().max().unwrap())
        };
        let (shortest, longest) = gaps(Asset::Btc);
        assert!(shortest == 0 && longest > 30, "{shortest} to {longest}");
        assert_eq!(gaps(Asset::Eth), (9, 10));
    }

    #[test]
    fn a_stall_delays_blocks_and_a_second_one_adds_to_it() {
        let mut schedule = schedule(7, Asset::Btc);
        let now = START.plus(Span::hours(5));
        let tip = schedule.height(now);
        let next = schedule.time(tip + 1);
        schedule.stall(now, Span::hours(2));
        assert_eq!(schedule.height(now), tip);
        assert_eq!(schedule.time(tip + 1), next.plus(Span::hours(2)));
        schedule.stall(now.plus(Span::hours(1)), Span::hours(3));
        assert_eq!(schedule.height(now.plus(Span::hours(5))), tip);
        assert_eq!(schedule.time(tip + 1), next.plus(Span::hours(5)));
    }

    proptest! {
        #[test]
        fn heights_and_times_stay_inverse_after_any_change(
            seed: u64,
            n in 0..Asset::ALL.len(),
            changes in prop::collection::vec((0_u64..200_000_000_000, 0_u64..4, 0_u64..50_000_000_000), 0..8),
        ) {
            let mut schedule = schedule(seed, Asset::ALL[n]);
            let mut now = START;
            for (pause, blocks, stall) in changes {
                now = now.plus(Span(pause));
                let tip = schedule.height(now);
                schedule.add_at_once(blocks);
                prop_assert_eq!(schedule.height(now), tip + blocks);
                // Half of the changes, those with an odd length, do not stall.
                if stall % 2 == 0 {
                    schedule.stall(now, Span(stall));
                    prop_assert_eq!(schedule.height(now.plus(Span(stall))), tip + blocks);
                }
                check_inverse(&schedule, now, 20);
            }
        }
    }
}
