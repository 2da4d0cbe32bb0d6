//! The amount that a simulated customer pays.

use reference_core::{asset::Asset, charge::Charge, error::ApiError, money::Coin};

/// The maximum number of decimal places of a share.
const SHARE_DECIMALS: usize = 6;

/// Returns the amount to pay on a charge: a given amount, a share of the remaining amount, or exactly the remaining
/// amount. If nothing remains, the charge's whole amount takes its place. `asset` is the coin that is sent.
pub(super) fn payment(
    charge: &Charge,
    asset: Asset,
    amount: Option<&str>,
    share: Option<&str>,
) -> Result<Coin, ApiError> {
    if let Some(text) = amount {
        return Coin::parse(text, asset)
            .map_err(|error| ApiError::field("amount", format!("The amount field {error}.")));
    }
    let due = match charge.remaining_amount() {
        Coin::ZERO => charge.terms.asset_amount,
        remaining => remaining,
    };
    let (numerator, denominator) = match share {
        None => (1, 1),
        Some(text) => {
            let share = millionths(text).ok_or_else(|| {
                ApiError::field(
                    "share",
                    "The share field must be a decimal such as 0.5, up to 1000, with at most 6 places.",
                )
            })?;
            (share, 10_u64.pow(SHARE_DECIMALS as u32))
        }
    };
    // Rounded down to the smallest unit of the coin that is sent, which may differ from the coin of the charge.
    due.share(numerator, denominator, charge.terms.asset)
        .and_then(|part| part.share(1, 1, asset))
        .ok_or_else(|| ApiError::field("share", "The share field makes more than can be sent."))
}

/// Parses a share such as `0.5` into millionths; `None` if it is invalid or above 1000.
fn millionths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || fraction.len() > SHARE_DECIMALS {
        return None;
    }
    let value: u64 = format!("{whole}{fraction:0<SHARE_DECIMALS$}").parse().ok()?;
    (value <= 1_000 * 10_u64.pow(SHARE_DECIMALS as u32)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_decimal_up_to_1000() {
        for (text, value) in
            [("1", 1_000_000), ("0.5", 500_000), ("1.000001", 1_000_001), ("1000", 1_000_000_000)]
        {
            assert_eq!(millionths(text), Some(value), "{text}");
        }
        for text in ["", ".5", "+5", "-1", "1e3", "0.1234567", "1001", "half"] {
            assert_eq!(millionths(text), None, "{text}");
        }
    }
}
