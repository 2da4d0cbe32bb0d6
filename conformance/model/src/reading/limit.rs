//! The limiters that explain a burst.

use std::time::Duration;

use crate::recording::{Burst, Caller, Exchange, Purpose, Recording};
use crate::words::Mode;

/// Requests in a minute with one key.
pub const LIMIT: u32 = 120;
/// The minute that the limit speaks of.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Two windows that touch let through no more than this in less than a minute; so does a bucket that
/// was full. Who serves more has no limit of 120.
pub const SERVED_MAX: u32 = 2 * LIMIT;
/// A burst must be over before the window of its first request is.
pub const BURST_TIME_MAX: Duration = Duration::from_secs(55);

/// One burst, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Requests that were served before the first refusal, the account's own look-up included.
    pub served: u32,
    /// Requests that were neither served nor answered 429: no answer, a 5xx, a redirect, 401 or 403.
    pub unclear: u32,
    /// The exchange that was refused first.
    pub refused: Option<u32>,
    /// From the first request to the refusal, or to the end.
    pub elapsed: Duration,
}

/// The kind of limiter that explains a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Refused at the 120th or before.
    Early,
    /// The 121st was the first to be refused.
    Exact,
    /// A bucket that refills two a second would have let that many through.
    Bucket,
    /// Only a window that ended during the burst explains it.
    Border,
    /// Never refused, although more came than any limiter of 120 lets through.
    Unlimited,
    /// Never refused, but too few came within a minute to be refused.
    TooSlow,
}

impl Series {
    /// Counts the shots of a burst, and what the test key asked in the same minute before it. `None` if there was
    /// no such burst.
    pub fn of(recording: &Recording, series: u8) -> Option<Series> {
        let shots: Vec<_> = recording
            .exchanges
            .iter()
            .filter(|it| it.purpose == Purpose::Burst(Burst::Shot { series }))
            .collect();
        let last = shots.last()?;
        let refused = shots.iter().find(|it| it.status() == Some(429)).map(|it| it.number);
        // What the test key asked in the same minute before the burst counts as well.
        let before = recording.exchanges.iter().filter(|it| {
            it.caller == Caller::Own(Mode::Test)
                && it.number < shots[0].number
                && it.sent.saturating_add(WINDOW) > last.ended
        });
        let counted: Vec<_> = before.chain(shots.iter().copied()).collect();
        let served = counted.iter().filter(|it| is_served(it)).count() as u32;
        let refusals = counted.iter().filter(|it| it.status() == Some(429)).count() as u32;
        let unclear = counted.len() as u32 - served - refusals;
        Some(Series { served, unclear, refused, elapsed: last.ended.saturating_sub(counted[0].sent) })
    }

    /// Returns `true` if a request more than a second after the refusal was refused too: no bucket that refills
    /// two a second stays empty for that long.
    pub fn is_no_bucket(recording: &Recording, series: u8) -> bool {
        let refill = Purpose::Burst(Burst::Refill { series });
        recording.exchanges.iter().any(|it| it.purpose == refill && it.status() == Some(429))
    }

    /// The kind of limiter that explains it.
    pub fn fit(&self) -> Fit {
        let refill = 2 * u32::try_from(self.elapsed.as_millis().div_ceil(1000)).unwrap_or(LIMIT);
        match self.refused {
            None if self.served > SERVED_MAX && self.elapsed < WINDOW => Fit::Unlimited,
            None => Fit::TooSlow,
            Some(_) if self.served + self.unclear < LIMIT => Fit::Early,
            Some(_) if self.served <= LIMIT => Fit::Exact,
            Some(_) if self.served <= LIMIT + refill => Fit::Bucket,
            Some(_) => Fit::Border,
        }
    }

    /// Served so far, in the words of a report: "the 121st".
    pub fn refused_at(&self) -> u32 {
        self.served + 1
    }
}

/// Returns `true` if the service handled a request: a 4xx about the request itself counts, a refused key does not.
pub fn is_served(exchange: &Exchange) -> bool {
    matches!(exchange.status(), Some(200..=299 | 400 | 402 | 404..=428 | 430..=499))
}

/// The most requests of the test key that were served within any minute, with the last of these.
pub fn most_in_a_minute(recording: &Recording) -> Option<(usize, &Exchange)> {
    let served: Vec<_> = recording
        .exchanges
        .iter()
        .filter(|it| it.caller == Caller::Own(Mode::Test) && it.status() == Some(200))
        .collect();
    let mut first = 0;
    let counts = served.iter().enumerate().map(|(at, it)| {
        while first < at && served[first].sent.saturating_add(WINDOW) <= it.ended {
            first += 1;
        }
        (at + 1 - first, *it)
    });
    counts.max_by_key(|(count, _)| *count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(served: u32, refused: bool, millis: u64, expected: Fit) {
        let elapsed = Duration::from_millis(millis);
        let series = Series { served, unclear: 0, refused: refused.then_some(1), elapsed };
        assert_eq!(series.fit(), expected);
    }

    #[test]
    fn the_121st_is_the_first_to_be_refused() {
        check(120, true, 0, Fit::Exact);
        check(119, true, 0, Fit::Early);
    }

    #[test]
    fn a_bucket_explains_two_more_for_each_second() {
        check(122, true, 900, Fit::Bucket);
        check(122, true, 0, Fit::Border);
        check(124, true, 900, Fit::Border);
    }

    #[test]
    fn nobody_lets_241_through_in_a_minute() {
        check(241, false, 3_000, Fit::Unlimited);
        check(180, false, 55_000, Fit::TooSlow);
    }
}
