//! Times in requests, parsed independently of the service.

use reference_core::time::Timestamp;

/// Returns the number of days from 1970-01-01 to a day of the Gregorian calendar; `None` if there is no such day.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let earlier_months = usize::try_from(month.checked_sub(1)?).ok()?;
    let is_valid_day = year >= 1970 && (1..=*lengths.get(earlier_months)?).contains(&day);
    let years = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 });
    is_valid_day.then(|| years.sum::<u64>() + lengths[..earlier_months].iter().sum::<u64>() + day - 1)
}

/// Parses a number of decimal digits; `None` for any other text.
fn number(digits: Option<&str>) -> Option<u64> {
    let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Parses a time by RFC 3339, with any offset and 0 to 9 decimals, of which the first 6 count.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let field = |from: usize| number(text.get(from..from + 2));
    let separators = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
    if !separators.iter().all(|(index, separator)| text.get(*index..index + 1) == Some(separator)) {
        return None;
    }
    let days = days_since_1970(number(text.get(..4))?, field(5)?, field(8)?)?;
    let (hour, minute, second) = (field(11)?, field(14)?, field(17)?);
    let mut rest = text.get(19..)?;
    let mut micros = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let padded = format!("{:0<6}", &after[..digits]);
        micros = number(padded.get(..6)).filter(|_| (1..=9).contains(&digits))?;
        rest = &after[digits..];
    }
    let offset = match rest.get(..1)? {
        "Z" => Some(0).filter(|_| rest == "Z"),
        sign @ ("+" | "-") if rest.len() == 6 && &rest[3..4] == ":" => {
            let (hours, minutes) = (number(rest.get(1..3))?, number(rest.get(4..6))?);
            let seconds = i64::try_from(hours * 3_600 + minutes * 60).ok()?;
            (hours < 24 && minutes < 60).then_some(if sign == "+" { seconds } else { -seconds })
        }
        _ => None,
    }?;
    let local = i64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()?;
    let seconds = u64::try_from(local - offset).ok()?;
    let is_time = hour < 24 && minute < 60 && second < 60;
    let time = Timestamp(seconds * 1_000_000 + micros);
    (is_time && time <= Timestamp::LAST).then_some(time)
}

/// Returns `true` for a day, as `2026-10-15`.
pub(super) fn is_day(text: &str) -> bool {
    text.len() == 10 && parse_time(&format!("{text}T00:00:00Z")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_format_are_parsed_and_others_are_not() {
        let parsed = |text| parse_time(text).map(|time| time.to_string());
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
            ("2028-02-29T23:59:59.9Z", "2028-02-29T23:59:59.900000Z"),
            ("2026-01-05T09:00:00.123456789+05:30", "2026-01-05T03:30:00.123456Z"),
            ("2026-12-31T20:00:00-08:00", "2027-01-01T04:00:00.000000Z"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected));
        }
        for text in [
            "2026-02-29T00:00:00Z",
            "2026-01-05T09:00:00",
            "2026-01-05T24:00:00Z",
            "2026-01-05T09:00:00.Z",
            "2026-01-05T09:00:00.1234567890Z",
            "2026-01-05 09:00:00Z",
            "1970-01-01T00:00:00+01:00",
            "2026-01-05T09:00:00+0100",
            "é026-01-05T09:00:00Z",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert!(is_day("2026-10-15") && !is_day("2026-1-15") && !is_day("2026-13-01"));
    }
}
