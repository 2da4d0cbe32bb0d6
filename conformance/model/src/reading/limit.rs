//! The kinds of rate limiter that explain the responses to a burst.

use std::time::Duration;

use crate::mode::Mode;
use crate::reading::cache_evidence;
use crate::recording::{Burst, Caller, Exchange, Purpose, Recording};

/// The allowed requests per minute and key.
pub const REQUESTS_PER_MINUTE: u32 = 120;
/// The window of the limit.
pub const LIMIT_WINDOW: Duration = Duration::from_secs(60);
/// The most requests that a limiter of 120 admits in less than a minute: two adjacent windows, or a bucket that was
/// full.
pub const SERVED_MAX: u32 = 2 * REQUESTS_PER_MINUTE;
/// The longest duration of a burst, which must end within the window of its first request.
pub const BURST_TIME_MAX: Duration = Duration::from_secs(55);

/// The counts of one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstCounts {
    /// Requests of the burst that were served, and those of the test key before it in the same minute. A limiter may
    /// or may not count those with a cached response, so this is the possible number nearest to the limit.
    pub served: u32,
    /// Served requests with a cached response.
    pub cached: u32,
    /// Requests that were neither served nor refused with 429: no response, a 5xx, a redirect, 401 or 403.
    pub unclear: u32,
    /// The number of the exchange that was refused first, if any.
    pub first_refused: Option<u32>,
    /// The time from the first counted request to the end of the burst.
    pub elapsed: Duration,
}

/// The kind of limiter that explains a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimiterKind {
    /// Refuses the 120th request or an earlier one.
    Early,
    /// Refuses the 121st request first.
    Exact,
    /// Admits no more requests than a token bucket that refills two per second.
    TokenBucket,
    /// Admits more than a token bucket does, so a window ended during the burst.
    WindowBoundary,
    /// Never refuses, although more requests came than any limiter of 120 admits.
    Unlimited,
    /// Never refuses, but too few requests came within a minute.
    TooSlow,
}

impl BurstCounts {
    /// Counts the requests of burst number `series`, and those of the test key in the minute before its end. `None`
    /// if there was no such burst.
    pub fn from_burst(recording: &Recording, series: u8) -> Option<BurstCounts> {
        let requests: Vec<_> = recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.purpose == Purpose::Burst(Burst::UntilRefused { series }))
            .collect();
        let last = requests.last()?;
        let first_refused =
            requests.iter().find(|request| request.status() == Some(429)).map(|request| request.number);
        // Requests of the test key in the minute before the end of the burst count against the same limit.
        let before = recording.exchanges.iter().filter(|exchange| {
            exchange.caller == Caller::Own(Mode::Test)
                && exchange.number < requests[0].number
                && exchange.sent.saturating_add(LIMIT_WINDOW) > last.ended
        });
        let counted: Vec<_> = before.chain(requests.iter().copied()).collect();
        let served = counted.iter().filter(|exchange| is_served(exchange)).count() as u32;
        let cached =
            counted.iter().filter(|exchange| is_served(exchange) && is_cached(exchange)).count() as u32;
        let refusals = counted.iter().filter(|exchange| exchange.status() == Some(429)).count() as u32;
        let unclear = counted.len() as u32 - served - refusals;
        let served = REQUESTS_PER_MINUTE.clamp(served - cached, served);
        Some(BurstCounts {
            served,
            cached,
            unclear,
            first_refused,
            elapsed: last.ended.saturating_sub(counted[0].sent),
        })
    }

    /// Returns `true` if a request over a second after the refusal was refused too: a token bucket that refills two
    /// per second would have served it.
    pub fn was_refill_refused(recording: &Recording, series: u8) -> bool {
        let refill = Purpose::Burst(Burst::Refill { series });
        recording
            .exchanges
            .iter()
            .any(|exchange| exchange.purpose == refill && exchange.status() == Some(429))
    }

    /// Returns the kind of limiter that explains the burst.
    pub fn limiter_kind(&self) -> LimiterKind {
        let refilled =
            2 * u32::try_from(self.elapsed.as_millis().div_ceil(1000)).unwrap_or(REQUESTS_PER_MINUTE);
        match self.first_refused {
            None if self.served > SERVED_MAX && self.elapsed < LIMIT_WINDOW => LimiterKind::Unlimited,
            None => LimiterKind::TooSlow,
            Some(_) if self.served + self.unclear < REQUESTS_PER_MINUTE => LimiterKind::Early,
            Some(_) if self.served <= REQUESTS_PER_MINUTE => LimiterKind::Exact,
            Some(_) if self.served <= REQUESTS_PER_MINUTE + refilled => LimiterKind::TokenBucket,
            Some(_) => LimiterKind::WindowBoundary,
        }
    }

    /// Returns the position of the refused request among the counted ones: 121 for "the 121st".
    pub fn refused_ordinal(&self) -> u32 {
        self.served + 1
    }
}

/// Returns `true` if the service handled a request. A 4xx about the request counts; a refused key does not.
pub fn is_served(exchange: &Exchange) -> bool {
    matches!(exchange.status(), Some(200..=299 | 400 | 402 | 404..=428 | 430..=499))
}

/// Returns `true` if the response states that a cache sent it.
pub fn is_cached(exchange: &Exchange) -> bool {
    exchange.response().is_some_and(|response| cache_evidence(response).is_some())
}

/// Returns the most requests of the test key that were served within any minute, with the last of them. Cached
/// responses are not counted.
pub fn most_served_in_a_minute(recording: &Recording) -> Option<(usize, &Exchange)> {
    let served: Vec<_> = recording
        .exchanges
        .iter()
        .filter(|exchange| {
            exchange.caller == Caller::Own(Mode::Test)
                && exchange.status() == Some(200)
                && !is_cached(exchange)
        })
        .collect();
    let mut first = 0;
    let counts = served.iter().enumerate().map(|(index, exchange)| {
        while first < index && served[first].sent.saturating_add(LIMIT_WINDOW) <= exchange.ended {
            first += 1;
        }
        (index + 1 - first, *exchange)
    });
    counts.max_by_key(|(count, _)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_kind(served: u32, is_refused: bool, millis: u64, expected: LimiterKind) {
        let elapsed = Duration::from_millis(millis);
        let counts =
            BurstCounts { served, cached: 0, unclear: 0, first_refused: is_refused.then_some(1), elapsed };
        assert_eq!(counts.limiter_kind(), expected);
    }

    #[test]
    fn an_exact_limiter_refuses_the_121st_request_first() {
        check_kind(120, true, 0, LimiterKind::Exact);
        check_kind(119, true, 0, LimiterKind::Early);
    }

    #[test]
    fn a_bucket_serves_two_more_requests_per_second() {
        check_kind(122, true, 900, LimiterKind::TokenBucket);
        check_kind(122, true, 0, LimiterKind::WindowBoundary);
        check_kind(124, true, 900, LimiterKind::WindowBoundary);
    }

    #[test]
    fn more_than_240_requests_in_a_minute_prove_that_there_is_no_limit() {
        check_kind(241, false, 3_000, LimiterKind::Unlimited);
        check_kind(180, false, 55_000, LimiterKind::TooSlow);
    }
}
