//! The requests of the test key in the minutes before a refusal, and the windows of the limiter that they imply.

use std::time::Duration;

use conformance_model::mode::Mode;
use conformance_model::reading::{
    LIMIT_WINDOW, REQUESTS_PER_MINUTE, is_served, parse_http_date, retry_after,
};
use conformance_model::recording::{Caller, Exchange, Recording};

/// The rounding of limiters that use whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);
/// The tolerance for requests that may count for either of two minutes.
const SLACK: u64 = 2;
/// The maximum time for which the weighted count of the previous clock minute stays above the limit, if refusals count.
const WEIGHTED_FALL_MAX: Duration = Duration::from_secs(15);
/// The minimum number of consecutive served requests after a refusal that show a new window.
const NEW_WINDOW_MIN: usize = 8;

/// Returns the requests of the test key, in order.
pub(super) fn test_key_exchanges(recording: &Recording) -> impl DoubleEndedIterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(Mode::Test))
}

/// Returns the number of requests of the test key in the minute before an exchange, served or refused.
pub(super) fn requests_in_minute_before(recording: &Recording, exchange: &Exchange) -> u64 {
    count_requests(recording, exchange, LIMIT_WINDOW, Duration::ZERO)
}

/// Returns the number of refusals of the test key in the two minutes before an exchange.
pub(super) fn refusals_before(recording: &Recording, exchange: &Exchange) -> u32 {
    let age = |earlier: &Exchange| exchange.sent.saturating_sub(earlier.ended);
    let before = test_key_exchanges(recording)
        .filter(|earlier| earlier.number < exchange.number && earlier.status() == Some(429));
    before.filter(|earlier| age(earlier) <= LIMIT_WINDOW * 2).count() as u32
}

/// Returns the number of requests of the test key that ended at most `age_max` and at least
/// `age_min` before an exchange.
fn count_requests(recording: &Recording, exchange: &Exchange, age_max: Duration, age_min: Duration) -> u64 {
    let before = test_key_exchanges(recording).filter(|earlier| earlier.number < exchange.number);
    let age = |earlier: &Exchange| exchange.sent.saturating_sub(earlier.ended);
    before.filter(|earlier| age(earlier) <= age_max && age(earlier) >= age_min).count() as u64
}

/// Returns `true` if a limiter of 120 per minute that also counts refusals may refuse this request: by the requests of
/// the minute before, or by a sliding window that weights the previous clock minute.
pub(super) fn may_be_refused(recording: &Recording, refused: &Exchange) -> bool {
    let limit = u64::from(REQUESTS_PER_MINUTE);
    let date_second = refused
        .response()
        .and_then(|response| parse_http_date(response.header("date")?))
        .map(|date| date.second());
    // The seconds of the clock minute at which the server may have refused the request.
    let mut seconds = match date_second {
        Some(second) => u64::from(second.saturating_sub(1))..=u64::from(second.saturating_add(1).min(59)),
        None => 0..=59,
    };
    let explains_refusal = |second: u64| {
        // The current clock minute began this long ago.
        let start = Duration::from_secs(second);
        let current = count_requests(recording, refused, start, Duration::ZERO);
        let previous = count_requests(recording, refused, start + LIMIT_WINDOW, start);
        previous * (60 - second) + (current + SLACK) * 60 >= limit * 60
    };
    // A weighted count falls below the limit soon, so such a limiter never demands a long wait.
    let is_short_wait =
        refused.response().and_then(retry_after).is_none_or(|delay| delay <= WEIGHTED_FALL_MAX);
    requests_in_minute_before(recording, refused) + SLACK >= limit
        || is_short_wait && seconds.any(explains_refusal)
}

/// Returns `true` if requests before the last minute may explain a refusal: a limiter may weight the previous minute.
pub(super) fn may_carry_over(recording: &Recording, refused: &Exchange) -> bool {
    count_requests(recording, refused, LIMIT_WINDOW * 2, LIMIT_WINDOW) > SLACK
        && may_be_refused(recording, refused)
}

/// Returns the evidence of two windows that end less than a minute apart, with the number of the last
/// exchange: the test key was refused, served the requests of a new window, refused and served again.
/// Neither a bucket of two per second nor a sliding log serves that many.
pub(super) fn short_windows(recording: &Recording) -> Option<(u32, String)> {
    let all: Vec<_> = test_key_exchanges(recording).collect();
    let is_refused = |index: &usize| all[*index].status() == Some(429);
    let is_served_200 = |exchange: &&&Exchange| exchange.status() == Some(200);
    let refusals: Vec<_> = (0..all.len()).filter(is_refused).collect();
    // A bucket serves again after a second.
    let delays: Vec<_> =
        refusals.iter().filter_map(|index| all[*index].response().and_then(retry_after)).collect();
    let is_bucket = !delays.is_empty() && delays.iter().all(|delay| delay.as_secs() <= 2);
    // The last refusal of a window, and the first of the next.
    let pairs = refusals.windows(2).filter(|pair| pair[1] - pair[0] > NEW_WINDOW_MIN);
    for pair in pairs {
        let (last_refused, next_refused) = (all[pair[0]], all[pair[1]]);
        let served_count = all[pair[0]..pair[1]].iter().filter(is_served_200).count();
        // A bucket gets one token per 500 ms.
        let refilled = next_refused.ended.saturating_sub(last_refused.sent).as_millis() / 500;
        if served_count as u128 <= refilled + NEW_WINDOW_MIN as u128 {
            continue;
        }
        let served_again = (pair[1] + 1..all.len())
            .find(|index| {
                all[*index..].iter().take_while(|exchange| exchange.status() == Some(200)).count()
                    >= NEW_WINDOW_MIN
            })
            .map(|index| all[index + NEW_WINDOW_MIN - 1]);
        let Some(served_again) = served_again else { continue };
        let span = served_again.ended.saturating_sub(last_refused.sent);
        let in_minute = all
            .iter()
            .filter(|exchange| {
                exchange.number <= served_again.number
                    && exchange.sent.saturating_add(LIMIT_WINDOW) > served_again.ended
            })
            .filter(|exchange| is_served(exchange))
            .count() as u64;
        if !is_bucket
            && span + ROUNDING < LIMIT_WINDOW
            && in_minute > u64::from(REQUESTS_PER_MINUTE) + SLACK * 2
        {
            let actual = format!(
                "a refusal, {served_count} requests served, a refusal, and served again, all within {} s",
                span.as_secs()
            );
            return Some((served_again.number, actual));
        }
    }
    None
}

/// The minimum `Retry-After` that states the end of a window. A bucket that refills two requests a second states less.
const WINDOW_WAIT_MIN: Duration = Duration::from_secs(3);

/// The minimum number of requests that a new window serves more than a bucket, which may refill in portions.
const FULL_WINDOW_MIN: u128 = 40;
/// The maximum length of the segments of a sliding window. Its oldest segment may begin that long before the first request.
const SEGMENT_MAX: Duration = Duration::from_secs(15);

/// Returns a refusal that states the end of a window at a time at which no window of a minute ends. Windows that begin
/// every minute end a multiple of a minute after an end that the run has seen. All others end a minute after
/// the first of their 120 requests.
pub(super) fn misplaced_window_end(recording: &Recording) -> Option<(u32, String)> {
    let all: Vec<_> = test_key_exchanges(recording).collect();
    let (border, after, before) = (1..all.len()).find_map(|index| window_border(&all, index))?;
    all.iter().enumerate().skip(border + 1).find_map(|(index, refused)| {
        let response = refused.response().filter(|response| response.status == 429)?;
        let wait = retry_after(response).filter(|wait| *wait >= WINDOW_WAIT_MIN)?;
        let accepted: Vec<_> =
            all[..index].iter().filter(|exchange| exchange.status() == Some(200)).collect();
        let first = accepted.len().checked_sub(REQUESTS_PER_MINUTE as usize).map(|start| accepted[start])?;
        let mut minutes = (1..).map(|count| LIMIT_WINDOW * count);
        let next = minutes.find(|minutes| before + *minutes > refused.sent)?;
        let earliest_end = (after + next).min(first.sent + LIMIT_WINDOW - SEGMENT_MAX);
        let stated_end = refused.ended.saturating_add(wait);
        let actual = || {
            format!(
                "429 with Retry-After: {} s, although a window ended {} s before, and the key had sent {REQUESTS_PER_MINUTE} \
                 requests in {} s",
                wait.as_secs(),
                refused.sent.saturating_sub(before).as_secs(),
                refused.sent.saturating_sub(first.sent).as_secs()
            )
        };
        (stated_end + ROUNDING * 2 < earliest_end).then(|| (refused.number, actual()))
    })
}

/// Returns the index of a request with which a new window begins, and the times between which the previous one ended: it
/// was full, its last request was refused, and then more were served than a bucket refills.
fn window_border(all: &[&Exchange], index: usize) -> Option<(usize, Duration, Duration)> {
    let (refused, first) = (all[index - 1], all[index]);
    if refused.status() != Some(429) || !is_served(first) {
        return None;
    }
    let full = all[..index].iter().filter(|exchange| is_served(exchange)).count();
    let served: Vec<_> = all[index..].iter().take_while(|exchange| is_served(exchange)).collect();
    // A bucket gets one token per 500 ms.
    let exceeds_refill = |(served, exchange): (u128, &&&Exchange)| {
        served > exchange.ended.saturating_sub(refused.sent).as_millis() / 500 + FULL_WINDOW_MIN
    };
    let is_new_window = (1..).zip(&served).any(exceeds_refill);
    (is_new_window && full >= REQUESTS_PER_MINUTE as usize).then_some((index, refused.sent, first.ended))
}
