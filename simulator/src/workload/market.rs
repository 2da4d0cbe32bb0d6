//! The rates of coins in a world, from which plans compute the amounts due.

use std::collections::BTreeMap;

use reference_core::asset::Asset;

use super::{DAY, Fault, HOUR, MINUTE, Plan, steps};

/// The rates of each coin in EUR, in units of 10⁻⁸, by the time from which they apply; `None`: no rate.
#[derive(Default)]
pub(super) struct Market {
    rates: BTreeMap<Asset, BTreeMap<u64, Option<u64>>>,
}

/// The maximum number of times that the rate of a coin changes.
const CHANGES_MAX: u64 = 9;
/// The maximum number of periods in which a coin has no rate.
const OUTAGES_MAX: u64 = 3;

impl Market {
    /// Returns the rate at a time, in units of 10⁻⁸; `None` if there is none.
    pub(super) fn rate(&self, asset: Asset, at: u64) -> Option<u64> {
        self.rates.get(&asset)?.range(..=at).next_back().and_then(|(_, rate)| *rate)
    }
}

impl Plan {
    /// Plans the rates of every coin: the first one, changes, and unavailability.
    pub(super) fn plan_rates(&mut self) {
        for asset in self.coins.clone() {
            let mut draw = self.stream(&format!("market/{}", asset.code()));
            // The typical USD price in cents, as a price in EUR in units of 10⁻⁸. The first rate is 80 % to
            // 120 % of it.
            let typical = asset.facts().typical_usd_cents * 1_000_000;
            let mut current = typical / 10_000 * draw.between(8_000, 12_000);
            let mut rates = BTreeMap::from([(0, Some(current))]);
            for _ in 0..self.swarm.draw_count(Fault::RateMoves, &mut draw, CHANGES_MAX) {
                // 50 % to 200 % of the rate that was drawn before, which may apply at a later time.
                current = (current / 1_000 * draw.between(500, 2_000)).max(1);
                rates.insert(draw.between(MINUTE, DAY - HOUR), Some(current));
            }
            for _ in 0..self.swarm.draw_count(Fault::RateGone, &mut draw, OUTAGES_MAX) {
                let unavailable_at = draw.between(MINUTE, DAY - 4 * HOUR);
                let available_at = unavailable_at + draw.between(MINUTE, 3 * HOUR);
                // The rate planned for the end of the outage; none if it is within another outage.
                let planned_rate = rates.range(..=available_at).next_back().and_then(|(_, rate)| *rate);
                rates.retain(|at, _| !(unavailable_at..=available_at).contains(at) || *at == 0);
                rates.insert(unavailable_at, None);
                rates.insert(available_at, planned_rate.or(Some(current)));
            }
            for (at, rate) in &rates {
                self.add(*at, steps::rate(asset, *rate));
            }
            self.market.rates.insert(asset, rates);
        }
    }
}
