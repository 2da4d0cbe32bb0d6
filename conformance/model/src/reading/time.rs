//! Parsers for times in bodies and headers.

use std::time::Duration;

use time::format_description::well_known::Iso8601;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::recording::Answer;

/// Parses an ISO 8601 time in UTC, with `Z` or `+00:00`. `None` for any other text, or another offset.
pub fn utc(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Iso8601::DEFAULT).ok().filter(|time| time.offset().is_utc())
}

/// Parses a date in the IMF-fixdate format of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(text: &str) -> Option<OffsetDateTime> {
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    PrimitiveDateTime::parse(text, format).ok().map(PrimitiveDateTime::assume_utc)
}

/// Returns the wait of a `Retry-After`: whole seconds, or a date minus the `Date` of the response.
pub fn retry_after(answer: &Answer) -> Option<Duration> {
    let text = answer.header("retry-after")?;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    let until = http_date(text)?;
    let now = http_date(answer.header("date")?)?;
    Some(Duration::try_from(until - now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, fine: bool) {
        assert_eq!(utc(text).is_some(), fine, "{text}");
    }

    #[test]
    fn utc_is_written_with_z_or_with_a_zero_offset() {
        check("2026-09-20T10:05:41.000000Z", true);
        check("2026-09-20T10:05:41+00:00", true);
    }

    #[test]
    fn another_offset_or_none_is_not_utc() {
        check("2026-09-20T10:05:41+02:00", false);
        check("2026-09-20T10:05:41", false);
        check("1790000000", false);
    }

    #[test]
    fn an_http_date_is_read_to_the_second() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date.unix_timestamp(), 784_111_777);
        assert_eq!(http_date("1994-11-06"), None);
    }
}
