//! Parsers for times in bodies and headers.

use std::time::Duration;

use time::format_description::well_known::Iso8601;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

use super::LIMIT_WINDOW;
use crate::recording::ReceivedResponse;

/// Parses an ISO 8601 time in UTC, with `Z` or `+00:00`. `None` for any other text, or another offset.
pub fn parse_utc(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Iso8601::DEFAULT).ok().filter(|time| time.offset().is_utc())
}

/// Parses a date in the IMF-fixdate format of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_http_date(text: &str) -> Option<OffsetDateTime> {
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    PrimitiveDateTime::parse(text, format).ok().map(PrimitiveDateTime::assume_utc)
}

/// Returns the delay of the header `Retry-After`: whole seconds, or a date minus the `Date` of the response, zero if
/// it is past. Without `Date`, the clocks cannot be compared: the delay is the longest that the limit allows.
pub fn retry_after(response: &ReceivedResponse) -> Option<Duration> {
    let value = response.header("retry-after")?;
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let until = parse_http_date(value)?;
    match response.header("date") {
        Some(now) => Some(Duration::try_from(until - parse_http_date(now)?).unwrap_or_default()),
        None => Some(LIMIT_WINDOW),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_utc(text: &str, is_utc: bool) {
        assert_eq!(parse_utc(text).is_some(), is_utc, "{text}");
    }

    #[test]
    fn utc_is_written_with_z_or_with_a_zero_offset() {
        check_utc("2026-09-20T10:05:41.000000Z", true);
        check_utc("2026-09-20T10:05:41+00:00", true);
    }

    #[test]
    fn another_offset_or_none_is_not_utc() {
        check_utc("2026-09-20T10:05:41+02:00", false);
        check_utc("2026-09-20T10:05:41", false);
        check_utc("1790000000", false);
    }

    #[test]
    fn an_http_date_is_read_to_the_second() {
        let date = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date.unix_timestamp(), 784_111_777);
        assert_eq!(parse_http_date("1994-11-06"), None);
    }
}
