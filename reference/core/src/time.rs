//! Time in microseconds, as integers. Reads no clock.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::{
    Date, OffsetDateTime,
    format_description::{StaticFormatDescription, well_known::Rfc3339},
    macros::format_description,
};

/// 1970-01-01 as a Julian day.
const EPOCH_DAY: i32 = 2_440_588;
const DAY: StaticFormatDescription = format_description!("[year]-[month]-[day]");

/// A length of time in microseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(pub u64);

impl Span {
    /// Creates a span from microseconds.
    pub const fn micros(n: u64) -> Span {
        Span(n)
    }

    /// Creates a span from milliseconds.
    pub const fn millis(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// Creates a span from seconds.
    pub const fn secs(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// Creates a span from minutes.
    pub const fn mins(n: u64) -> Span {
        Span::secs(n * 60)
    }

    /// Creates a span from hours.
    pub const fn hours(n: u64) -> Span {
        Span::secs(n * 3_600)
    }

    /// Creates a span from days of 24 hours.
    pub const fn days(n: u64) -> Span {
        Span::hours(n * 24)
    }

    /// Returns whole seconds, rounded up: the value of a `Retry-After` header.
    pub const fn secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Parses `250us`, `40ms`, `30s`, `5m`, `2h`, `10d`, and sums such as `1h30m`.
    pub fn parse(text: &str) -> Option<Span> {
        let mut rest = text;
        let mut total: u64 = 0;
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let n: u64 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit: u64 = match &rest[..letters] {
                "us" => 1,
                "ms" => 1_000,
                "s" => 1_000_000,
                "m" => 60_000_000,
                "h" => 3_600_000_000,
                "d" => 86_400_000_000,
                _ => return None,
            };
            rest = &rest[letters..];
            total = total.checked_add(n.checked_mul(unit)?)?;
        }
        Some(Span(total))
    }
}

/// Written as the shortest sum of units that [`Span::parse`] accepts: `1h30m`, `40ms`, `0s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, name) in [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "m"),
            (1_000_000, "s"),
            (1_000, "ms"),
            (1, "us"),
        ] {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

/// A moment: microseconds since 1970-01-01T00:00:00Z.
///
/// Prints as `2026-09-20T10:05:41.000000Z`, always with six decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The largest time of a service clock: the end of the year 9999, which has four digits.
    pub const LAST: Timestamp = Timestamp(253_402_300_799_999_999);

    /// Returns the time `span` later, at most [`Timestamp::LAST`].
    pub const fn plus(self, span: Span) -> Timestamp {
        let later = self.0.saturating_add(span.0);
        if later > Timestamp::LAST.0 { Timestamp::LAST } else { Timestamp(later) }
    }

    /// Returns the time `span` earlier, not before 1970.
    pub const fn minus(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// Returns the time since `earlier`, or zero if `earlier` is in the future.
    pub const fn since(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns whole seconds since 1970, rounded down: the `t` of a signature.
    pub const fn unix_secs(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Parses an RFC 3339 time from 1970 on, with any offset and 0 to 9 decimals: `2026-09-20T10:05:41Z`,
    /// `2026-09-20T12:05:41.5+02:00`. Truncated to microseconds.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let decimals = text.bytes().skip_while(|b| *b != b'.').skip(1).take_while(u8::is_ascii_digit).count();
        let moment = OffsetDateTime::parse(text, &Rfc3339).ok().filter(|_| decimals <= 9)?;
        let micros = u64::try_from(moment.unix_timestamp_nanos() / 1_000).ok()?;
        (micros <= Timestamp::LAST.0).then_some(Timestamp(micros))
    }
}

impl fmt::Display for Timestamp {
    // Not formatted by a library: their formatters take ten times as long, which would be a tenth of the time of a
    // sweep.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, secs) = (self.unix_secs() / 86_400, self.unix_secs() % 86_400);
        let days = i32::try_from(days).expect("the days up to LAST fit 32 bits");
        let date = Date::from_julian_day(EPOCH_DAY + days).expect("a timestamp up to LAST is a date");
        let (month, day) = (u8::from(date.month()), date.day());
        let numbers = [
            (0..4, u64::from(date.year().unsigned_abs())),
            (5..7, month.into()),
            (8..10, day.into()),
            (11..13, secs / 3_600),
            (14..16, secs / 60 % 60),
            (17..19, secs % 60),
            // The decimals of the second.
            (20..26, self.0),
        ];
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        for (range, mut number) in numbers {
            for digit in text[range].iter_mut().rev() {
                *digit += (number % 10) as u8;
                number /= 10;
            }
        }
        f.write_str(str::from_utf8(&text).expect("digits are text"))
    }
}

/// A day of the calendar, such as an invoice's due date: `2026-10-15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(Date);

impl Day {
    /// Parses `2026-10-15`, from 1970 on.
    pub fn parse(text: &str) -> Option<Day> {
        let date = Date::parse(text, DAY).ok()?;
        (1970..=9999).contains(&date.year()).then_some(Day(date))
    }

    /// Returns the first moment after the day, in UTC.
    pub fn end(self) -> Timestamp {
        let midnight = self.0.midnight().assume_utc().unix_timestamp();
        let midnight = u64::try_from(midnight).expect("due days start in 1970");
        Timestamp(midnight * 1_000_000).plus(Span::days(1))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(DAY).expect("every date can be formatted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: StaticFormatDescription =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

    fn utc(moment: Timestamp) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(moment.0) * 1_000).unwrap()
    }

    #[test]
    fn timestamps_are_parsed_back_from_their_text() {
        for text in [
            "1970-01-01T00:00:00.000000Z",
            "2024-02-29T23:59:59.999999Z",
            "2026-09-20T10:05:41.000001Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Timestamp::parse("2026-09-20T10:05:41Z").unwrap().0 % 1_000_000, 0);
    }

    #[test]
    fn timestamps_are_written_as_by_the_time_library() {
        // Spread over all years, so that every month and many leap days are covered.
        for n in 0..20_000 {
            let moment = Timestamp(n * (Timestamp::LAST.0 / 20_000) + n);
            assert_eq!(moment.to_string(), utc(moment).format(STAMP).unwrap());
        }
    }

    #[test]
    fn timestamps_are_parsed_with_every_offset_and_number_of_decimals() {
        for (text, expected) in [
            ("2026-09-20T10:05:41+00:00", "2026-09-20T10:05:41.000000Z"),
            ("2026-09-20T12:05:41+02:00", "2026-09-20T10:05:41.000000Z"),
            ("2026-09-20T04:35:41.5-05:30", "2026-09-20T10:05:41.500000Z"),
            ("2026-09-20T10:05:41.123456789Z", "2026-09-20T10:05:41.123456Z"),
            ("1970-01-01T01:00:00+01:00", "1970-01-01T00:00:00.000000Z"),
        ] {
            assert_eq!(Timestamp::parse(text).map(|at| at.to_string()).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026-09-20",
            "2026-02-29T00:00:00Z",
            "2026-09-20T10:05:41",
            "2026-09-20T10:05:41.Z",
            "2026-09-20T10:05:41.1234567890Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn spans_are_parsed_back_from_their_text() {
        for text in ["0s", "1us", "40ms", "30s", "1h30m", "10d", "1d2h3m4s5ms6us"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "s", "1", "1w", "-1s", "1.5s", "99999999999999999999s", "30 s"] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_parsed_and_end_at_midnight() {
        assert_eq!(Day::parse("2026-10-15").unwrap().end().to_string(), "2026-10-16T00:00:00.000000Z");
        assert_eq!(Day::parse("2026-10-32"), None);
    }
}
