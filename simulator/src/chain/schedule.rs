//! The times of blocks, by a formula: a jump over ten idle years costs as much as one over a block.
//!
//! Natural blocks are numbered from 1. Eight of them share a window of eight block times; their positions in it are
//! drawn by the window's number. So the time of a block and the count of blocks at a time each take one draw, and the
//! average never drifts. Operations on the chain change the formula without new draws: blocks mined at once shift the
//! heights, a stall shifts the times.

use std::cell::Cell;

use reference_core::{
    asset::{AddressForm, Asset},
    mode::Mode,
    rng::{RngKey, Seed},
    time::{Span, Timestamp},
};
use serde::{Deserialize, Serialize};

/// The number of natural blocks in a window.
const WINDOW: u64 = 8;

/// The distribution of a network's blocks over time.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Rhythm {
    /// Proof of work: random times, so gaps between blocks vary widely.
    Lottery,
    /// Proof of stake: one block per slot, at most a tenth of the slot early.
    Slots,
}

/// The natural blocks of one chain, and the changes to their times and heights.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Schedule {
    lot: RngKey,
    rhythm: Rhythm,
    block_time: u64,
    start: Timestamp,
    /// The height at the start.
    first: u64,
    /// The number of blocks mined at once.
    at_once: u64,
    /// The total length of all stalls.
    delay: u64,
    /// The number of natural blocks at the start of the last stall. They stay, although the formula is delayed.
    came: u64,
    /// The most recently used window, cached.
    #[serde(skip)]
    last: Cell<Option<(u64, Offsets)>>,
}

/// The positions of the blocks in one window.
type Offsets = [u64; WINDOW as usize];

impl Schedule {
    /// Returns the changes to the natural blocks.
    pub(super) fn state(&self) -> [u64; 3] {
        [self.at_once, self.delay, self.came]
    }

    pub(super) fn new(seed: Seed, mode: Mode, asset: Asset, start: Timestamp, first: u64) -> Schedule {
        let rhythm = match asset.facts().form {
            AddressForm::Bitcoin
            | AddressForm::Litecoin
            | AddressForm::Dogecoin
            | AddressForm::BitcoinCash
            | AddressForm::Monero => Rhythm::Lottery,
            AddressForm::Evm | AddressForm::Tron | AddressForm::Solana => Rhythm::Slots,
        };
        Schedule {
            lot: seed.rng_key(mode.as_str(), asset.code(), "block times"),
            rhythm,
            block_time: asset.facts().block_time.0,
            start,
            first,
            at_once: 0,
            delay: 0,
            came: 0,
            last: Cell::new(None),
        }
    }

    /// Returns the height at the start: blocks up to it cannot be replaced.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the height of the chain at `now`.
    pub(super) fn height(&self, now: Timestamp) -> u64 {
        self.first + self.at_once + self.natural_blocks(now)
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
            .checked_sub(self.first + self.at_once)
            .filter(|&ordinal| ordinal > 0)
            .expect("only future blocks have a natural ordinal")
    }

    /// Adds blocks that were mined at once.
    pub(super) fn add_at_once(&mut self, blocks: u64) {
        self.at_once += blocks;
    }

    /// Delays every natural block after `now` by `span`.
    pub(super) fn stall(&mut self, now: Timestamp, span: Span) {
        self.came = self.natural_blocks(now);
        self.delay = self.delay.saturating_add(span.0);
    }

    fn natural_blocks(&self, now: Timestamp) -> u64 {
        let elapsed = now.since(self.start).0.saturating_sub(self.delay);
        let window = elapsed / self.window_length();
        let rest = elapsed % self.window_length();
        let offsets = self.offsets(window);
        let of_window = offsets.iter().take_while(|&&offset| offset <= rest).count() as u64;
        self.came.max(window * WINDOW + of_window)
    }

    fn window_length(&self) -> u64 {
        WINDOW * self.block_time
    }

    /// Returns the positions of the blocks in a window: increasing, greater than 0, at most its length.
    fn offsets(&self, window: u64) -> Offsets {
        match self.last.get() {
            Some((known, offsets)) if known == window => offsets,
            _ => {
                let offsets = self.draw_offsets(window);
                self.last.set(Some((window, offsets)));
                offsets
            }
        }
    }

    fn draw_offsets(&self, window: u64) -> Offsets {
        let mut draw = self.lot.stream(window);
        let mut offsets = [0; WINDOW as usize];
        match self.rhythm {
            Rhythm::Lottery => {
                // Drawn from a range that is shorter by the number of blocks, sorted, and then moved apart by one
                // each: uniform, and never two at the same position.
                offsets.fill_with(|| draw.below(self.window_length() - WINDOW + 1));
                offsets.sort_unstable();
                for (gap, offset) in (1..).zip(&mut offsets) {
                    *offset += gap;
                }
            }
            Rhythm::Slots => {
                for (slot, offset) in (1..).zip(&mut offsets) {
                    *offset = slot * self.block_time - draw.below(self.block_time / 10);
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

    fn schedule(seed: u64, asset: Asset) -> Schedule {
        Schedule::new(Seed(seed), Mode::Live, asset, START, 1_000)
    }

    /// Checks that heights and times are inverse functions from `now` on, and that times increase.
    #[track_caller]
    fn check_inverse(schedule: &Schedule, now: Timestamp, blocks: u64) {
        let mut earlier = now;
        let tip = schedule.height(now);
        for height in tip + 1..=tip + blocks {
            let at = schedule.time(height);
            assert!(at > earlier, "block {height} comes at {at}, not after {earlier}");
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
            let blocks = schedule(7, asset).height(START.plus(year)) - 1_000;
            assert!(blocks.abs_diff(year.0 / asset.facts().block_time.0) <= WINDOW, "{asset}: {blocks}");
        }
    }

    #[test]
    fn proof_of_work_has_short_and_long_gaps() {
        let gaps = |asset: Asset| {
            let schedule = schedule(7, asset);
            let times: Vec<_> = (1_001..3_001).map(|height| schedule.time(height)).collect();
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
            bends in prop::collection::vec((0_u64..200_000_000_000, 0_u64..4, 0_u64..50_000_000_000), 0..8),
        ) {
            let mut schedule = schedule(seed, Asset::ALL[n]);
            let mut now = START;
            for (pause, blocks, stall) in bends {
                now = now.plus(Span(pause));
                let tip = schedule.height(now);
                schedule.add_at_once(blocks);
                prop_assert_eq!(schedule.height(now), tip + blocks);
                if stall % 2 == 0 {
                    schedule.stall(now, Span(stall));
                    prop_assert_eq!(schedule.height(now.plus(Span(stall))), tip + blocks);
                }
                check_inverse(&schedule, now, 20);
            }
        }
    }
}
