//! Exact money: fiat amounts and rates are decimals with a strict grammar, coin amounts are integers.
//!
//! `rust_decimal` has 96 bits, too few for 18 decimals of a cheap coin, and it rounds silently
//! if a product does not fit. So coin amounts are integers of 10⁻¹⁸, a quote is an exact
//! 256-bit ceiling, and decimals are parsed by a strict grammar only.

mod decimal_text;
mod u256;

use std::{fmt, iter::Sum};

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

pub use self::decimal_text::DecimalText;
use self::u256::U256;
use crate::asset::Asset;

const ATTO_DIGITS: u32 = 18;

/// The reason why a string is not a valid amount. Its message follows the name of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    /// Not digits with an optional point and more digits.
    NotDecimal,
    /// More decimal places than this.
    Decimals(u32),
    /// Above the largest amount.
    TooLarge,
    /// Zero, which is not allowed here.
    Zero,
    /// Below zero.
    Negative,
    /// A number such as `1e5`.
    Exponent,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AmountError::NotDecimal => f.write_str("must be a decimal number such as 49.90"),
            AmountError::Decimals(max) => write!(f, "may have at most {max} decimal places"),
            AmountError::TooLarge => f.write_str("is too large"),
            AmountError::Zero => f.write_str("must be greater than 0"),
            AmountError::Negative => f.write_str("must not be negative"),
            AmountError::Exponent => f.write_str("must be written without an exponent, such as 49.90"),
        }
    }
}

/// Splits `12.50` into the digits before and after the point. Refuses signs, exponents, separators, leading zeros and
/// bare points.
fn split_digits(text: &str, decimals_max: u32) -> Result<(&str, &str), AmountError> {
    if let Some(positive) = text.strip_prefix('-') {
        // The sign is reported only if the rest is valid.
        return Err(
            split_digits(positive, decimals_max).map_or(AmountError::NotDecimal, |_| AmountError::Negative)
        );
    }
    if let Some((number, exponent)) = text.split_once(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let is_number = number.parse::<Decimal>().is_ok() && exponent.parse::<u32>().is_ok();
        return Err(if is_number { AmountError::Exponent } else { AmountError::NotDecimal });
    }
    let (whole, part) = match text.split_once('.') {
        Some((_, "")) => return Err(AmountError::NotDecimal),
        Some(pair) => pair,
        None => (text, ""),
    };
    let is_all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !is_all_digits(whole) || !is_all_digits(part) {
        return Err(AmountError::NotDecimal);
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return Err(AmountError::NotDecimal);
    }
    if part.len() > decimals_max as usize {
        return Err(AmountError::Decimals(decimals_max));
    }
    // 29 digits are above every largest amount, and could exceed the 96 bits of a `Decimal`.
    if whole.len() > 28 {
        return Err(AmountError::TooLarge);
    }
    Ok((whole, part))
}

/// Parses a decimal as an integer of units of 10^-`scale`.
fn parse_scaled(text: &str, scale: u32) -> Result<u128, AmountError> {
    let (whole, part) = split_digits(text, scale)?;
    let padded = format!("{whole}{part:0<width$}", width = scale as usize);
    padded.parse().map_err(|_| AmountError::TooLarge)
}

/// Parses a decimal exactly, with at most `decimals_max` places.
fn parse_decimal(text: &str, decimals_max: u32) -> Result<Decimal, AmountError> {
    split_digits(text, decimals_max)?;
    Decimal::from_str_exact(text).map_err(|_| AmountError::TooLarge)
}

/// An amount of a fiat currency with exactly two decimal places, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fiat(#[serde(with = "exact")] Decimal);

impl Fiat {
    /// Zero.
    pub const ZERO: Fiat = Fiat(Decimal::from_parts(0, 0, 0, false, 2));
    /// The largest amount: 999,999,999,999.99, as the low and the middle 32 bits of the number of hundredths.
    pub const MAX: Fiat = Fiat(Decimal::from_parts(276_447_231, 23_283, 0, false, 2));

    /// Parses `49.90`, `49.9` or `49`.
    ///
    /// # Errors
    ///
    /// [`AmountError`] for another format, too many decimals, or a number out of range.
    ///
    /// ```
    /// use reference_core::money::Fiat;
    ///
    /// let price = Fiat::parse("49.9")?;
    /// assert_eq!(price.to_string(), "49.90");
    /// assert!(Fiat::parse("49.999").is_err());
    /// # Ok::<(), reference_core::money::AmountError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Fiat, AmountError> {
        Fiat::round(parse_decimal(text, 2)?).ok_or(AmountError::TooLarge)
    }

    /// Returns an amount of `minor` hundredths; `None` above [`Fiat::MAX`].
    pub fn from_minor(minor: u64) -> Option<Fiat> {
        Fiat::round(Decimal::from_i128_with_scale(i128::from(minor), 2))
    }

    /// Returns the amount in hundredths.
    pub(crate) fn minor(self) -> u64 {
        u64::try_from(self.0.mantissa()).expect("a fiat amount is at most Fiat::MAX")
    }

    /// Returns the sum; `None` above [`Fiat::MAX`].
    pub fn plus(self, other: Fiat) -> Option<Fiat> {
        Fiat::round(self.0.checked_add(other.0)?)
    }

    /// Returns `quantity` times this amount, rounded half up to two places; `None` above [`Fiat::MAX`].
    pub fn times(self, quantity: Quantity) -> Option<Fiat> {
        // At most 14 and 12 digits: the product fits 96 bits and is exact before it is rounded.
        Fiat::round(self.0.checked_mul(quantity.0)?)
    }

    /// Rounds half up to two places; `None` above [`Fiat::MAX`].
    fn round(value: Decimal) -> Option<Fiat> {
        let mut value = value.round_dp_with_strategy(2, rust_decimal::RoundingStrategy::MidpointAwayFromZero);
        value.rescale(2);
        let amount = Fiat(value);
        (amount <= Fiat::MAX).then_some(amount)
    }
}

/// Written with two decimals: `49.90`.
impl fmt::Display for Fiat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DecimalText::new(u128::from(self.minor()), 2).fmt(f)
    }
}

/// Serializes a decimal as its digits and the number of digits after the point.
mod exact {
    use rust_decimal::Decimal;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
        (value.mantissa(), value.scale()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
        let (digits, scale) = <(i128, u32)>::deserialize(deserializer)?;
        Decimal::try_from_i128_with_scale(digits, scale).map_err(D::Error::custom)
    }
}

/// The quantity of an invoice's item: above zero, at most three decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quantity(#[serde(with = "exact")] Decimal);

impl Quantity {
    /// Parses `2` or `1.125`, up to 999,999,999.
    ///
    /// # Errors
    ///
    /// [`AmountError`] for another format, too many decimals, or a number out of range.
    pub fn parse(text: &str) -> Result<Quantity, AmountError> {
        let value = parse_decimal(text, 3)?;
        if value > Decimal::from(999_999_999) {
            return Err(AmountError::TooLarge);
        }
        if value.is_zero() {
            return Err(AmountError::Zero);
        }
        Ok(Quantity(value.normalize()))
    }
}

/// Written without trailing zeros: `2`, `1.125`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An exchange rate: the price of one coin in fiat. Above zero, at most eight decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rate(#[serde(with = "exact")] Decimal);

impl Rate {
    /// Decimal places of a rate.
    pub(crate) const DECIMALS: u32 = 8;

    /// Parses `60000` or `0.00012345`.
    ///
    /// # Errors
    ///
    /// [`AmountError`] for another format, too many decimals, or a number out of range.
    pub fn parse(text: &str) -> Result<Rate, AmountError> {
        let value = parse_decimal(text, Rate::DECIMALS)?;
        if value.is_zero() {
            return Err(AmountError::Zero);
        }
        if value > Decimal::from(1_000_000_000_000_u64) {
            return Err(AmountError::TooLarge);
        }
        Ok(Rate(value.normalize()))
    }

    /// Returns a rate of `units` × 10⁻⁸; `None` for zero. No 64-bit number exceeds the largest rate.
    pub fn from_units(units: u64) -> Option<Rate> {
        (units > 0)
            .then(|| Rate(Decimal::from_i128_with_scale(i128::from(units), Rate::DECIMALS).normalize()))
    }

    /// Returns the price of `amount` in the coin, rounded **up** to the coin's smallest unit, so that the amount
    /// due never falls short. `None` above [`Coin::MAX`].
    pub fn quote(self, amount: Fiat, asset: Asset) -> Option<Coin> {
        let unit = 10_u128.pow(ATTO_DIGITS - asset.facts().decimals);
        // due = amount / rate; in smallest units: minor × 10^(decimals + scale − 2) / mantissa.
        let mantissa = self.mantissa();
        let factor = 10_u128.pow(asset.facts().decimals + self.0.scale());
        let product = U256::product(u128::from(amount.minor()), factor);
        let units = product.ceil_div(mantissa * 100)?;
        Coin::new(units.checked_mul(unit)?)
    }

    /// Returns the text with exactly 18 decimals, as in webhook payloads.
    pub fn padded_text(self) -> DecimalText {
        // At most 10¹² with at most eight decimals: in units of 10⁻¹⁸ far below 128 bits.
        DecimalText::new(self.mantissa() * 10_u128.pow(ATTO_DIGITS - self.0.scale()), ATTO_DIGITS)
    }

    fn mantissa(self) -> u128 {
        u128::try_from(self.0.mantissa()).expect("a rate is above zero")
    }
}

/// Written without trailing zeros: `60000`, `0.17`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An amount of a coin, in units of 10⁻¹⁸ whatever the coin's own decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coin(u128);

impl Coin {
    /// Zero.
    pub const ZERO: Coin = Coin(0);
    /// The largest single amount: 10¹² coins. The sum of a hundred million such amounts does not overflow.
    pub const MAX: Coin = Coin(1_000_000_000_000 * 10_u128.pow(ATTO_DIGITS));

    /// Returns an amount of `atto` units of 10⁻¹⁸; `None` above [`Coin::MAX`].
    pub fn new(atto: u128) -> Option<Coin> {
        let amount = Coin(atto);
        (amount <= Coin::MAX).then_some(amount)
    }

    /// Returns the amount in units of 10⁻¹⁸.
    pub const fn atto(self) -> u128 {
        self.0
    }

    /// Parses an amount of `asset`, with at most the coin's decimals.
    ///
    /// # Errors
    ///
    /// [`AmountError`] for another format, too many decimals, or a number out of range.
    pub fn parse(text: &str, asset: Asset) -> Result<Coin, AmountError> {
        split_digits(text, asset.facts().decimals)?;
        Coin::new(parse_scaled(text, ATTO_DIGITS)?).ok_or(AmountError::TooLarge)
    }

    /// Returns the smallest amount of `asset` that can be sent.
    pub fn unit(asset: Asset) -> Coin {
        Coin(10_u128.pow(ATTO_DIGITS - asset.facts().decimals))
    }

    /// Returns the sum.
    ///
    /// # Panics
    ///
    /// If the sum overflows 128 bits. Single amounts are at most [`Coin::MAX`], so the sum would need over a hundred
    /// million of them.
    pub fn plus(self, other: Coin) -> Coin {
        Coin(self.0.checked_add(other.0).expect("single amounts are bounded by Coin::MAX"))
    }

    /// Returns this amount less `other`, or zero if `other` is larger.
    pub const fn saturating_sub(self, other: Coin) -> Coin {
        Coin(self.0.saturating_sub(other.0))
    }

    /// Returns `true` if this is at least `due` × (1 − `tolerance`), exactly (`open.charge.tolerance`).
    pub fn covers(self, due: Coin, tolerance: Percent) -> bool {
        let required = U256::product(due.0, u128::from(Percent::WHOLE - tolerance.0.min(Percent::WHOLE)));
        U256::product(self.0, u128::from(Percent::WHOLE)) >= required
    }

    /// Returns `true` if this is more than `due` × (1 + `threshold`), exactly (`open.charge.overpaid`).
    pub fn exceeds(self, due: Coin, threshold: Percent) -> bool {
        let limit = U256::product(due.0, u128::from(Percent::WHOLE + threshold.0));
        U256::product(self.0, u128::from(Percent::WHOLE)) > limit
    }

    /// Returns the fraction `parts` / `whole` of this amount, rounded down to the smallest unit of `asset`; `None`
    /// above [`Coin::MAX`], or if `whole` is 0.
    pub fn share(self, parts: u64, whole: u64, asset: Asset) -> Option<Coin> {
        let unit = Coin::unit(asset).0;
        let units = U256::product(self.0 / unit, u128::from(parts)).floor_div(u128::from(whole))?;
        Coin::new(units.checked_mul(unit)?)
    }

    /// Returns the text with exactly 18 decimals, as in webhook payloads (`charge.asset_amount`).
    pub fn padded_text(self) -> DecimalText {
        DecimalText::new(self.0, ATTO_DIGITS)
    }
}

/// Written without trailing zeros: `0.0025`, `60000`, `0`.
impl fmt::Display for Coin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.padded_text().trimmed())
    }
}

impl Sum for Coin {
    fn sum<I: Iterator<Item = Coin>>(amounts: I) -> Coin {
        amounts.fold(Coin::ZERO, Coin::plus)
    }
}

/// A percentage in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Percent(u32);

impl Percent {
    /// 100 %.
    const WHOLE: u32 = 10_000;

    /// Creates a percentage from hundredths of a percent: `Percent::hundredths(150)` is 1.5 %.
    pub const fn hundredths(n: u32) -> Percent {
        Percent(n)
    }

    /// Parses `1`, `0.5` or `12.25`, at most 100.
    ///
    /// # Errors
    ///
    /// [`AmountError`] for another format, too many decimals, or a number out of range.
    pub fn parse(text: &str) -> Result<Percent, AmountError> {
        let hundredths = parse_scaled(text, 2)?;
        match u32::try_from(hundredths) {
            Ok(n) if n <= Percent::WHOLE => Ok(Percent(n)),
            _ => Err(AmountError::TooLarge),
        }
    }
}

/// Written without trailing zeros: `1`, `0.5`.
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(DecimalText::new(self.0.into(), 2).trimmed())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_plain_decimals_are_amounts() {
        for text in [
            "", ".", ".5", "1.", "+1", "--1", "01", "00", "1_000", "1,5", "1e", "e5", "1e5e5", " 1", "1 ",
            "0x1", "١", "NaN", "1.2.3",
        ] {
            assert_eq!(Fiat::parse(text), Err(AmountError::NotDecimal), "{text:?}");
            assert_eq!(Coin::parse(text, Asset::Eth), Err(AmountError::NotDecimal), "{text:?}");
        }
        for (text, error) in [
            ("-1", AmountError::Negative),
            ("-0.5", AmountError::Negative),
            ("1e5", AmountError::Exponent),
            ("1E5", AmountError::Exponent),
            ("4.99e+1", AmountError::Exponent),
        ] {
            assert_eq!(Fiat::parse(text), Err(error), "{text}");
        }
        assert_eq!(Quantity::parse("0"), Err(AmountError::Zero));
        assert_eq!(Fiat::parse("1.234"), Err(AmountError::Decimals(2)));
        assert_eq!(Coin::parse("1.123456789", Asset::Btc), Err(AmountError::Decimals(8)));
        assert_eq!(Fiat::parse(&"9".repeat(1_000_000)), Err(AmountError::TooLarge));
    }

    #[test]
    fn amounts_up_to_the_largest_one_are_accepted() {
        fn check<T>(parse: fn(&str) -> Result<T, AmountError>, largest: &str, above: &str) {
            let errors = [largest, above].map(|text| parse(text).err());
            assert_eq!(errors, [None, Some(AmountError::TooLarge)], "{largest}");
        }
        check(Fiat::parse, "999999999999.99", "1000000000000");
        check(Quantity::parse, "999999999", "999999999.001");
        check(Rate::parse, "1000000000000", "1000000000000.00000001");
        check(Percent::parse, "100", "100.01");
        check(|text| Coin::parse(text, Asset::Eth), "1000000000000", "1000000000000.000000000000000001");
        assert_eq!(Rate::from_units(0), None);
    }

    #[track_caller]
    fn check_fiat(text: &str, expected: &str) {
        assert_eq!(Fiat::parse(text).unwrap().to_string(), expected);
    }

    #[test]
    fn fiat_amounts_are_written_with_two_decimals() {
        check_fiat("0", "0.00");
        check_fiat("49.9", "49.90");
        check_fiat("999999999999.99", "999999999999.99");
        assert_eq!(Fiat::MAX.to_string(), "999999999999.99");
    }

    #[test]
    fn coin_amounts_are_written_padded_or_trimmed() {
        let amount = Coin::parse("0.0025", Asset::Btc).unwrap();
        assert_eq!(&*amount.padded_text(), "0.002500000000000000");
        assert_eq!(amount.to_string(), "0.0025");
        assert_eq!(Coin::parse("60000", Asset::Btc).unwrap().to_string(), "60000");
        assert_eq!(Coin::ZERO.to_string(), "0");
        assert_eq!(Coin(u128::MAX).to_string(), "340282366920938463463.374607431768211455");
        assert_eq!(&*Coin::MAX.padded_text(), "1000000000000.000000000000000000");
    }

    #[track_caller]
    fn check_quote(fiat: &str, rate: &str, asset: Asset, due: Option<&str>) {
        let quote = Rate::parse(rate).unwrap().quote(Fiat::parse(fiat).unwrap(), asset);
        assert_eq!(quote.map(|coin| coin.to_string()).as_deref(), due);
    }

    #[test]
    fn a_quote_is_rounded_up_to_the_coins_decimals() {
        check_quote("150.00", "60000", Asset::Btc, Some("0.0025"));
        check_quote("0.01", "60000", Asset::Btc, Some("0.00000017"));
        check_quote("1.00", "3", Asset::Btc, Some("0.33333334"));
        check_quote("1.00", "3", Asset::Usdt, Some("0.333334"));
        check_quote("1.00", "3", Asset::Eth, Some("0.333333333333333334"));
        check_quote("0.00", "3", Asset::Eth, Some("0"));
    }

    #[test]
    fn a_quote_above_the_largest_coin_amount_is_refused() {
        check_quote("999999999999.99", "0.00000001", Asset::Doge, None);
        check_quote("999999999999.99", "1", Asset::Doge, Some("999999999999.99"));
    }

    #[test]
    fn item_totals_round_half_up() {
        let total = |price: &str, n: &str| {
            Fiat::parse(price).unwrap().times(Quantity::parse(n).unwrap()).map(|t| t.to_string())
        };
        assert_eq!(total("0.01", "0.5").as_deref(), Some("0.01"));
        assert_eq!(total("0.01", "0.499").as_deref(), Some("0.00"));
        assert_eq!(total("19.99", "1.125").as_deref(), Some("22.49"));
        assert_eq!(total("999999999999.99", "1.001"), None);
    }

    #[test]
    fn tolerance_and_threshold_are_exact_to_the_last_unit() {
        let due = Coin::new(10_000).unwrap();
        let one_percent = Percent::parse("1").unwrap();
        assert!(Coin(9_900).covers(due, one_percent));
        assert!(!Coin(9_899).covers(due, one_percent));
        let three = Percent::parse("3").unwrap();
        assert!(!Coin(10_300).exceeds(due, three));
        assert!(Coin(10_301).exceeds(due, three));
    }

    proptest! {
        #[test]
        fn amount_due_is_the_smallest_sufficient_amount(
            minor in 0_u64..100_000_000_000, units in 1_u64..10_000_000_000_000_000, n in 0..Asset::ALL.len(),
        ) {
            let (asset, rate) = (Asset::ALL[n], Rate::from_units(units).unwrap());
            if let Some(due) = rate.quote(Fiat::from_minor(minor).unwrap(), asset) {
                // due × rate ≥ amount > (due − unit) × rate, in units of 10⁻²⁶.
                let amount = U256::product(u128::from(minor), 10_u128.pow(24));
                prop_assert!(U256::product(due.0, u128::from(units)) >= amount);
                if due > Coin::ZERO {
                    let one_less = due.saturating_sub(Coin::unit(asset));
                    prop_assert!(U256::product(one_less.0, u128::from(units)) < amount);
                }
                prop_assert_eq!(due.0 % Coin::unit(asset).0, 0);
            }
        }

        #[test]
        fn amounts_are_parsed_back_from_their_text(atto in 0..=Coin::MAX.0, minor in 0_u64..=99_999_999_999_999) {
            let coin = Coin(atto);
            prop_assert_eq!(Coin::parse(&coin.to_string(), Asset::Eth), Ok(coin));
            prop_assert_eq!(Coin::parse(&coin.padded_text(), Asset::Eth), Ok(coin));
            let fiat = Fiat::from_minor(minor).unwrap();
            prop_assert_eq!(Fiat::parse(&fiat.to_string()), Ok(fiat));
        }

        #[test]
        fn a_share_is_rounded_down_to_the_smallest_unit(atto in 0..=Coin::MAX.0, parts in 0_u64..=100, n in 0..Asset::ALL.len()) {
            let asset = Asset::ALL[n];
            let amount = Coin(atto - atto % Coin::unit(asset).0);
            let share = amount.share(parts, 100, asset).unwrap();
            prop_assert!(share.0 * 100 <= amount.0 * u128::from(parts));
            prop_assert!((share.0 + Coin::unit(asset).0) * 100 > amount.0 * u128::from(parts));
        }
    }
}
