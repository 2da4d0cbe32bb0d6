//! Comparison of the representations of a charge or invoice: the fields to compare, the contradictions between two
//! values, the difference between two times, and the times after which all representations must agree.

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{Exchange, List};

use crate::evidence::{PageView, read_at, recorded_at};

/// The two members of an event that contain an object, each with the fields to compare.
type Fields = [(&'static str, &'static [&'static str]); 2];

/// The fields of an object that never change: its identity, and the amounts at the locked rate.
pub(crate) const IMMUTABLE_FIELDS: Fields = [
    ("charge", &["code", "fiat_amount", "fiat_currency", "asset", "asset_amount"]),
    ("invoice", &["code", "number", "amount", "currency"]),
];

/// The fields that an event may change.
pub(crate) const STATE_FIELDS: Fields =
    [("charge", &["status", "received_amount", "paid_at"]), ("invoice", &["status"])];

/// The text fields of an object. Only the merchant changes them; no event does.
pub(crate) const TEXT_FIELDS: Fields = [("charge", &["description", "customer_email"]), ("invoice", &[])];

/// The longest time until a new record is in all lists.
pub(crate) const LIST_DELAY_MAX: Duration = Duration::minutes(1);

/// The kinds of objects that have a list, with the member of an event that contains one.
pub(crate) const LISTED_KINDS: [(List, &str); 2] = [(List::Charges, "charge"), (List::Invoices, "invoice")];

/// The longest time after a change until all copies of an object agree.
pub(crate) const CONSISTENCY_TIME: Duration = Duration::minutes(10);
/// The maximum difference between two representations of one time, which may have different precisions.
pub(crate) const SAME_TIME_MAX: Duration = Duration::seconds(1);

/// Returns `true` if two times differ by more than [`SAME_TIME_MAX`].
pub(crate) fn is_other_time(first: OffsetDateTime, second: OffsetDateTime) -> bool {
    (first - second).abs() > SAME_TIME_MAX
}

/// Returns `true` if a decimal number is not zero.
pub(crate) fn is_nonzero(number: &str) -> bool {
    number.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

/// The minimum number of objects with the same fault, for a violation by a rule that one object may break legally.
pub(crate) const FAULTY_OBJECTS_MIN: usize = 3;

/// Returns `true` if at least [`FAULTY_OBJECTS_MIN`] objects have a fault, and more than half of the compared ones.
pub(crate) fn are_most(faulty: usize, compared: usize) -> bool {
    faulty >= FAULTY_OBJECTS_MIN && faulty * 2 > compared
}

/// Returns a text of digits and points without trailing zeros after a point, and the number of decimals as written.
/// `None` if the text is empty or has other characters.
fn parse_number(text: &str) -> Option<(&str, usize)> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let decimals = text.split_once('.').map(|(_, decimals)| decimals.len());
    let trimmed = decimals.map_or(text, |_| text.trim_end_matches('0').trim_end_matches('.'));
    is_number.then_some((trimmed, decimals.unwrap_or_default()))
}

/// Returns `true` if two values of one field are different numbers, or strings with different times, numbers or texts. An
/// empty text contradicts no other, and neither do values of two kinds: the checks of formats report those.
pub(crate) fn contradict(first: &Value, second: &Value) -> bool {
    if let (Value::Number(first), Value::Number(second)) = (first, second) {
        let (first, second) = (first.to_string(), second.to_string());
        let numbers = parse_number(&first).zip(parse_number(&second));
        return numbers.is_some_and(|((first, _), (second, _))| first != second);
    }
    let (Value::String(first), Value::String(second)) = (first, second) else { return false };
    match ((parse_utc(first), parse_utc(second)), (parse_number(first), parse_number(second))) {
        ((Some(first), Some(second)), _) => first != second,
        (_, (Some((first, _)), Some((second, _)))) => first != second,
        ((None, None), (None, None)) => first != second && !first.is_empty() && !second.is_empty(),
        _ => false,
    }
}

/// Like [`contradict`], but two numbers in strings contradict each other only if both have equally many decimals: redaction
/// may replace `1.5` and `1.50`, which are equal, by different amounts.
pub(crate) fn contradict_as_written(_: &str, first: &Value, second: &Value) -> bool {
    let decimals = |value: &Value| value.as_str().and_then(parse_number).map(|(_, decimals)| decimals);
    decimals(first) == decimals(second) && contradict(first, second)
}

/// Like [`contradict`], but a number in a string with fewer decimals, without trailing zeros, may be the other one, rounded.
/// Not for redacted values, in which the two amounts are unrelated.
pub(crate) fn contradict_unless_rounded(_: &str, first: &Value, second: &Value) -> bool {
    let number = |value: &'_ Value| value.as_str().and_then(parse_number).map(|(text, _)| text.to_owned());
    let (Some(first_number), Some(second_number)) = (number(first), number(second)) else {
        return contradict(first, second);
    };
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let places = decimals(&first_number).min(decimals(&second_number));
    let truncated = |text: &str| -> Option<u128> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{:0<places$}", decimals.get(..places).unwrap_or(decimals)).parse().ok()
    };
    // The last place of a rounded number may be one more than that of the truncated number. Numbers that are too long to
    // be compared count as rounded.
    let is_rounded = decimals(&first_number) != decimals(&second_number)
        && truncated(&first_number)
            .zip(truncated(&second_number))
            .is_none_or(|(first, second)| first.abs_diff(second) <= 1);
    !is_rounded && contradict(first, second)
}

/// Returns `true` if one of two values of `paid_at` is null and the other a string.
fn is_one_paid_at_null(name: &str, first: &Value, second: &Value) -> bool {
    name == "paid_at" && (first.is_null() && second.is_string() || first.is_string() && second.is_null())
}

/// Like [`contradict`], but null and a string contradict each other in the field `paid_at`.
pub(crate) fn contradict_in_field(name: &str, first: &Value, second: &Value) -> bool {
    contradict(first, second) || is_one_paid_at_null(name, first, second)
}

/// Returns the member and field of the first contradiction between the charges or invoices of two events.
pub(crate) fn first_contradiction(
    first: &Value,
    second: &Value,
    fields: &Fields,
    contradicts: fn(&str, &Value, &Value) -> bool,
) -> Option<(&'static str, &'static str)> {
    fields.iter().find_map(|(member, names)| {
        let (first, second) = (first.get(member)?, second.get(member)?);
        let is_contradiction = |name: &&&str| {
            first
                .get(**name)
                .zip(second.get(**name))
                .is_some_and(|(first, second)| contradicts(name, first, second))
        };
        Some((*member, *names.iter().find(is_contradiction)?))
    })
}

/// Returns a time difference in hours if it is a nonzero whole number of hours, to within a minute,
/// as between two time zones.
pub(crate) fn time_zone_difference(difference: Duration) -> Option<i64> {
    let hours = (difference + Duration::minutes(30)).whole_minutes().div_euclid(60);
    (hours != 0 && (difference - Duration::hours(hours)).abs() <= Duration::minutes(1)).then_some(hours)
}

/// Returns `true` if the newest listed event with the charge and invoice of `event` was recorded more than
/// [`CONSISTENCY_TIME`] before a response: all copies of the object must then agree.
pub(crate) fn is_unchanged_before(
    views: &[PageView<'_>],
    mode: Mode,
    event: &Value,
    exchange: &Exchange,
) -> bool {
    fn codes(event: &Value) -> [Option<&str>; 2] {
        ["charge", "invoice"].map(|member| text_at(event, &[member, "code"]))
    }
    let of_event = codes(event);
    let events = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
    let of_object = events.flat_map(PageView::rows).filter(|row| codes(row) == of_event);
    let newest = of_object.filter_map(recorded_at).max();
    newest
        .zip(read_at(views, exchange))
        .is_some_and(|(newest, responded_at)| newest + CONSISTENCY_TIME < responded_at)
}

/// Returns `true` if two texts differ only in case.
pub(crate) fn have_other_case(one: &Value, other: &Value) -> bool {
    let is_same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    one != other && one.as_str().zip(other.as_str()).is_some_and(|(one, other)| is_same(one, other))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_contradict_unless_one_is_the_other_rounded() {
        for (first, second, expected) in [
            ("13.200000000000000000", "13.2", false),
            ("13.200000000000000000", "6.6", true),
            ("0.319752399999616298", "0.3197524", false),
            ("0.319752399999616298", "0.3197", false),
            ("0.319752399999616298", "0.3199", true),
            ("10", "11.00", true),
            ("10", "10.4", false),
            ("10", "12.4", true),
            ("text", "other", true),
            ("10", "text", false),
        ] {
            for (first, second) in [(first, second), (second, first)] {
                let contradicts = contradict_unless_rounded("", &json!(first), &json!(second));
                assert_eq!(contradicts, expected, "{first} {second}");
            }
        }
    }
}
