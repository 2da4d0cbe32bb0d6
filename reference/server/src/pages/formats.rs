//! Formatting of times and amounts for pages.

use std::{fmt::Display, time::Duration};

use reference_core::time::{Span, Timestamp};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Formats of a time, in UTC.
pub(crate) trait TimeFormats {
    /// Returns the time in RFC 3339: `2026-09-20T10:05:41.000000Z`.
    fn iso(&self) -> String;

    /// Returns the date: `2026-09-20`.
    fn day(&self) -> String {
        self.iso().split('T').next().unwrap_or_default().to_owned()
    }

    /// Returns the time of day to the second: `10:05:41`.
    fn time(&self) -> String {
        self.iso().split_once('T').and_then(|(_, time)| time.get(..8)).unwrap_or_default().to_owned()
    }

    /// Returns date and time to the second.
    fn date_time(&self) -> String {
        format!("{} {}", self.day(), self.time())
    }

    /// Returns date and time for customers: `20 Sep 2026, 10:05 UTC`.
    fn customer_time(&self) -> String {
        customer_time(self.iso())
    }

    /// Returns the distance from `now`: `in 5 minutes`, `2 hours ago`; `now` if it is less than a second.
    fn relative_to(&self, now: &Timestamp) -> String;
}

impl TimeFormats for Timestamp {
    fn iso(&self) -> String {
        self.to_string()
    }

    fn relative_to(&self, now: &Timestamp) -> String {
        let span_text = |span: Span| duration_text(Duration::from_micros(span.0));
        match (self.since(*now), now.since(*self)) {
            (ahead, behind) if ahead.0.max(behind.0) < 1_000_000 => "now".to_owned(),
            (ahead, _) if self > now => format!("in {}", span_text(ahead)),
            (_, behind) => format!("{} ago", span_text(behind)),
        }
    }
}

/// Formats an RFC 3339 time or date for customers: `20 Sep 2026, 10:05 UTC`. Any other text is unchanged.
pub(crate) fn customer_time(rfc3339: impl Display) -> String {
    let text = &rfc3339.to_string();
    parse_and_format(text).unwrap_or_else(|| text.to_owned())
}

/// Formats a fiat amount with its currency, joined by a no-break space.
pub(crate) fn price(amount: impl Display, currency: impl Display) -> String {
    format!("{}\u{a0}{currency}", fiat(amount))
}

fn parse_and_format(text: &str) -> Option<String> {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    let day: u32 = day.parse().ok()?;
    Some(match time {
        Some(time) => format!("{day} {month} {year}, {} UTC", time.get(..5)?),
        None => format!("{day} {month} {year}"),
    })
}

/// Formats a duration, rounded down to its largest unit: `29 minutes`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let secs = duration.as_secs();
    let (n, unit) = match secs {
        0..60 => (secs, "second"),
        60..3_600 => (secs / 60, "minute"),
        3_600..86_400 => (secs / 3_600, "hour"),
        _ => (secs / 86_400, "day"),
    };
    format!("{n} {unit}{}", if n == 1 { "" } else { "s" })
}

/// Returns the distance of the service clock from real time: `2 days ahead of real time`; `None` for less than two
/// seconds.
pub(crate) fn clock_offset(service: Timestamp, real: Timestamp) -> Option<String> {
    let (ahead, behind) = (service.since(real), real.since(service));
    let span_text = |span: Span| duration_text(Duration::from_micros(span.0));
    match (ahead.0.max(behind.0) >= 2_000_000, service > real) {
        (false, _) => None,
        (true, true) => Some(format!("{} ahead of real time", span_text(ahead))),
        (true, false) => Some(format!("{} behind real time", span_text(behind))),
    }
}

/// Formats a fiat amount with thin no-break spaces between thousands: `12 345.60`.
pub(crate) fn fiat(amount: impl Display) -> String {
    let text = amount.to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::with_capacity(text.len() + 8);
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_for_customers() {
        for (text, expected) in [
            ("2026-09-20T10:05:41.000000Z", "20 Sep 2026, 10:05 UTC"),
            ("2026-01-05", "5 Jan 2026"),
            ("2026-13-05", "2026-13-05"),
            ("soon", "soon"),
            ("", ""),
        ] {
            assert_eq!(customer_time(text), expected);
        }
    }

    #[test]
    fn durations_are_shown_in_their_largest_unit() {
        for (secs, expected) in
            [(0, "0 seconds"), (1, "1 second"), (1_799, "29 minutes"), (7_200, "2 hours"), (86_400, "1 day")]
        {
            assert_eq!(duration_text(Duration::from_secs(secs)), expected);
        }
    }

    #[test]
    fn thousands_are_separated_by_thin_spaces() {
        for (text, expected) in [
            ("0.05", "0.05"),
            ("999.00", "999.00"),
            ("1234.50", "1\u{202f}234.50"),
            ("1000000.00", "1\u{202f}000\u{202f}000.00"),
        ] {
            assert_eq!(fiat(text), expected);
        }
    }
}
