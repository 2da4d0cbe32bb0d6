//! Amounts of money, computed in integers as the specification demands, without code of the service.

use reference_core::asset::Asset;

/// 100 percent, in hundredths of a percent.
const HUNDRED_PERCENT: u128 = 10_000;
/// The decimal places of rates.
pub(crate) const RATE_DECIMALS: u32 = 8;
/// A rate of 1, in units of 10⁻⁸.
const RATE_ONE: u128 = 100_000_000;

/// Returns the number of smallest units in one coin.
pub(crate) fn units_per_coin(asset: Asset) -> u128 {
    10_u128.pow(asset.facts().decimals)
}

/// Returns one smallest unit of a coin in 10⁻¹⁸ of the coin, which is the unit of sightings.
pub fn atto_per_unit(asset: Asset) -> u128 {
    10_u128.pow(18) / units_per_coin(asset)
}

/// Returns the amount due in the smallest units of a coin: the price divided by the rate, rounded up.
pub fn amount_due(cents: u64, rate_units: u64, asset: Asset) -> u128 {
    // cents / 100 / (rate_units / 10^8) · 10^decimals
    (u128::from(cents) * RATE_ONE * units_per_coin(asset)).div_ceil(100 * u128::from(rate_units))
}

/// Returns `true` if more than 10¹² coins are due; such a charge is refused.
pub(crate) fn exceeds_maximum(cents: u64, rate_units: u64, asset: Asset) -> bool {
    amount_due(cents, rate_units, asset) > 10_u128.pow(12) * units_per_coin(asset)
}

/// Returns `true` if at least the amount due minus the tolerance was received. The tolerance is in hundredths of a
/// percent.
pub(crate) fn is_enough(received: u128, due: u128, tolerance: u32) -> bool {
    received * HUNDRED_PERCENT >= due * (HUNDRED_PERCENT - u128::from(tolerance).min(HUNDRED_PERCENT))
}

/// Returns `true` if the received amount exceeds the amount due plus the threshold, which is in hundredths of
/// a percent.
pub fn is_overpaid(received: u128, due: u128, threshold: u32) -> bool {
    received * HUNDRED_PERCENT > due * (HUNDRED_PERCENT + u128::from(threshold))
}

/// Returns the smallest amount that is sufficient.
pub fn least_enough(due: u128, tolerance: u32) -> u128 {
    (due * (HUNDRED_PERCENT - u128::from(tolerance).min(HUNDRED_PERCENT))).div_ceil(HUNDRED_PERCENT)
}

/// Returns the largest amount that is not [overpaid](is_overpaid).
pub fn most_not_overpaid(due: u128, threshold: u32) -> u128 {
    due * (HUNDRED_PERCENT + u128::from(threshold)) / HUNDRED_PERCENT
}

/// Formats smallest units as a decimal such as `0.00083167`.
pub fn format_units(units: u128, asset: Asset) -> String {
    let decimals = asset.facts().decimals as usize;
    let digits = format!("{units:0>width$}", width = decimals + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

/// Formats smallest units as a decimal such as `0.000831670000000000`, with 18 decimals as in webhooks.
pub(crate) fn format_units_padded(units: u128, asset: Asset) -> String {
    let (atto, coin) = (units * atto_per_unit(asset), 10_u128.pow(18));
    format!("{}.{:018}", atto / coin, atto % coin)
}

/// Formats cents as `12.30`.
pub fn fiat(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Formats units of 10⁻⁸ as `65490.59`.
pub fn rate(units: u64) -> String {
    let text = format!("{}.{:08}", units / 100_000_000, units % 100_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats units of 10⁻⁸ as `65490.590000000000000000`, with 18 decimals as in webhooks.
pub(crate) fn rate_padded(units: u64) -> String {
    format!("{}.{:08}0000000000", units / 100_000_000, units % 100_000_000)
}

/// Parses a decimal number to units with `decimals` places; `None` if it is not a number or has more places.
pub fn parse_units(text: &str, decimals: u32) -> Option<u128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.trim_end_matches('0');
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(part) || part.len() > decimals as usize {
        return None;
    }
    let append_digit = |sum: u128, b: u8| sum.checked_mul(10)?.checked_add(u128::from(b - b'0'));
    let units = whole.bytes().chain(part.bytes()).try_fold(0, append_digit)?;
    units.checked_mul(10_u128.checked_pow(decimals - part.len() as u32)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_rounded_up_to_the_smallest_unit() {
        // 49.90 at 65490.59 per coin.
        let rate = 6_549_059_000_000;
        let units = amount_due(4_990, rate, Asset::Btc);
        assert_eq!(format_units(units, Asset::Btc), "0.00076195");
        assert!(units * u128::from(rate) >= 4_990 * 1_000_000 * 100_000_000);
        assert!((units - 1) * u128::from(rate) < 4_990 * 1_000_000 * 100_000_000);
    }

    #[test]
    fn one_unit_decides_at_the_bounds() {
        for (due, hundredths) in [(76_195, 100), (1, 100), (999, 0), (10_000, 250), (7, 9_999), (3, 10_000)] {
            let least = least_enough(due, hundredths);
            assert!(is_enough(least, due, hundredths));
            assert!(least == 0 || !is_enough(least - 1, due, hundredths));
            let most = most_not_overpaid(due, hundredths);
            assert!(!is_overpaid(most, due, hundredths) && is_overpaid(most + 1, due, hundredths));
        }
    }

    #[test]
    fn formatted_amounts_parse_back() {
        for units in [0, 1, 10, 100_000_000, 123_456_789_012] {
            assert_eq!(parse_units(&format_units(units, Asset::Btc), 8), Some(units));
        }
        assert_eq!(format_units_padded(123, Asset::Btc), "0.000001230000000000");
        assert_eq!(
            (fiat(1_205), rate(6_549_059_000_000), rate(300_000_000)),
            ("12.05".into(), "65490.59".into(), "3".into())
        );
        for text in ["", ".", "1.123456789", "-1", "1e3"] {
            assert_eq!(parse_units(text, 8), None, "{text}");
        }
    }
}
