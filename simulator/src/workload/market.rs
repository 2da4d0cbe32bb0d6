//! The rates of coins in a world, from which plans compute the amounts due.

use std::collections::BTreeMap;

use reference_core::asset::Asset;

use super::{DAY, Fault, HOUR, MINUTE, Plan, steps};

/// The rate of each coin from each time on; `None` while it is unavailable.
#[derive(Default)]
pub(super) struct Market {
    rates: BTreeMap<Asset, BTreeMap<u64, Option<u64>>>,
}

impl Market {
    /// Returns the rate at a time, in units of 10⁻⁸.
    pub(super) fn rate(&self, asset: Asset, at: u64) -> Option<u64> {
        self.rates.get(&asset)?.range(..=at).next_back().and_then(|(_, rate)| *rate)
    }
}

impl Plan {
    /// Plans the rates of every coin: the first one, changes, and unavailability.
    pub(super) fn plan_rates(&mut self) {
        for asset in self.coins.clone() {
            let mut draw = self.stream(&format!("market/{}", asset.code()));
            // Typical prices in cents, converted to units of 10⁻⁸.
            let typical = asset.facts().typical_usd_cents * 1_000_000;
            let mut current = typical / 10_000 * draw.between(8_000, 12_000);
            let mut rates = BTreeMap::from([(0, Some(current))]);
            for _ in 0..self.swarm.draw_count(Fault::RateMoves, &mut draw, 9) {
                current = (current / 1_000 * draw.between(500, 2_000)).max(1);
                rates.insert(draw.between(MINUTE, DAY - HOUR), Some(current));
            }
            for _ in 0..self.swarm.draw_count(Fault::RateGone, &mut draw, 3) {
                let unavailable_at = draw.between(MINUTE, DAY - 4 * HOUR);
                let available_at = unavailable_at + draw.between(MINUTE, 3 * HOUR);
                let latest = rates.range(..=available_at).next_back().and_then(|(_, rate)| *rate);
                rates.retain(|at, _| !(unavailable_at..=available_at).contains(at) || *at == 0);
                rates.insert(unavailable_at, None);
                rates.insert(available_at, latest.or(Some(current)));
            }
            for (at, rate) in &rates {
                self.add(*at, steps::rate(asset, *rate));
            }
            self.market.rates.insert(asset, rates);
        }
    }
}
