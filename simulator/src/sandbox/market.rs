//! The simulated market: a rate for each pair of coin and currency, derived from the seed.

use reference_core::{
    asset::{Asset, Currency},
    money::Rate,
    rng::Seed,
};

/// Returns the rate of each pair at the start of a world. It deviates by up to 10 % from the typical price; the
/// deviation of a coin is the same in every currency.
pub(super) fn rates(seed: Seed) -> Vec<(Asset, Currency, Rate)> {
    let mut rates = Vec::new();
    for asset in Asset::ALL {
        let per_ten_thousand = seed.rng_key("market", asset.code(), "rate").stream(0).between(9_000, 11_000);
        for currency in Currency::ALL {
            // US cents per coin, times hundredths of the currency's unit per 100 dollars. The factor 100
            // makes it the rate in units of 10⁻⁸.
            let typical = asset.facts().typical_usd_cents * currency.typical_per_hundred_usd() * 100;
            let units = typical / 10_000 * per_ten_thousand;
            // Rates of 100 and more are rounded down to hundredths, others to millionths.
            let step = if units >= 100_00000000 { 1_000_000 } else { 100 };
            let rate = Rate::from_units(units - units % step).expect("every typical price is above zero");
            rates.push((asset, currency, rate));
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_a_plausible_rate() {
        let rates = rates(Seed(1));
        assert_eq!(rates.len(), Asset::ALL.len() * Currency::ALL.len());
        let rate = |asset, currency| rates.iter().find(|r| (r.0, r.1) == (asset, currency)).unwrap().2;
        let tether = rate(Asset::Usdt, Currency::Usd);
        assert!(tether >= Rate::parse("0.9").unwrap() && tether <= Rate::parse("1.1").unwrap(), "{tether}");
        let bitcoin = rate(Asset::Btc, Currency::Eur);
        assert!(
            bitcoin > Rate::parse("50000").unwrap() && bitcoin < Rate::parse("70000").unwrap(),
            "{bitcoin}"
        );
    }

    #[test]
    fn rates_depend_on_the_seed() {
        assert_ne!(format!("{:?}", rates(Seed(1))), format!("{:?}", rates(Seed(2))));
    }
}
