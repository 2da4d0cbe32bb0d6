//! The requests of the test key in the minute before a refusal, and the windows that they show.

use std::time::Duration;

use conformance_model::reading::{LIMIT, WINDOW, http_date, is_served, retry_after};
use conformance_model::recording::{Caller, Exchange, Recording};
use conformance_model::words::Mode;

/// Windows are kept in whole seconds by some limiters.
const ROUNDING: Duration = Duration::from_secs(1);
/// Requests that may be counted for one minute or the next.
const SLACK: u64 = 2;
/// So long does a share of the clock's minute before stay above the limit, if the refusals of a run count too.
const SHARE_FALLS: Duration = Duration::from_secs(15);
/// Served so often in a row after a refusal, a key has a new window.
const FRESH: usize = 8;

/// The requests of the test key, in order.
pub(super) fn of_key(recording: &Recording) -> impl DoubleEndedIterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|it| it.caller == Caller::Own(Mode::Test))
}

/// The requests of the test key in the minute before an exchange, served or refused.
pub(super) fn in_minute_before(recording: &Recording, exchange: &Exchange) -> u64 {
    count(recording, exchange, WINDOW, Duration::ZERO)
}

/// The refusals of the test key in the two minutes before an exchange.
pub(super) fn refusals_before(recording: &Recording, exchange: &Exchange) -> u32 {
    let age = |it: &Exchange| exchange.sent.saturating_sub(it.ended);
    let before = of_key(recording).filter(|it| it.number < exchange.number && it.status() == Some(429));
    before.filter(|it| age(it) <= WINDOW * 2).count() as u32
}

/// The requests of the test key before an exchange that ended at most `from` and at least `to` before it.
fn count(recording: &Recording, exchange: &Exchange, from: Duration, to: Duration) -> u64 {
    let before = of_key(recording).filter(|it| it.number < exchange.number);
    let age = |it: &Exchange| exchange.sent.saturating_sub(it.ended);
    before.filter(|it| age(it) <= from && age(it) >= to).count() as u64
}

/// Returns `true` if a limiter of 120 in a minute that counts refusals too may refuse here: so many requests came within
/// the minute before, or a share of the clock's minute before makes up for them.
pub(super) fn may_be_refused(recording: &Recording, refused: &Exchange) -> bool {
    let limit = u64::from(LIMIT);
    let second = refused.answer().and_then(|it| http_date(it.header("date")?)).map(|it| it.second());
    let mut seconds = match second {
        Some(second) => u64::from(second.saturating_sub(1))..=u64::from(second.saturating_add(1).min(59)),
        None => 0..=59,
    };
    let share = |second: u64| {
        let start = Duration::from_secs(second);
        let current = count(recording, refused, start, Duration::ZERO);
        let before = count(recording, refused, start + WINDOW, start);
        before * (60 - second) + (current + SLACK) * 60 >= limit * 60
    };
    // Such a share falls below the limit soon.
    let is_soon = refused.answer().and_then(retry_after).is_none_or(|delay| delay <= SHARE_FALLS);
    in_minute_before(recording, refused) + SLACK >= limit || is_soon && seconds.any(share)
}

/// Two windows that end closer together than a minute: a key was refused, served as much as a new window has, refused
/// and served again. Neither a bucket of two a second nor a log of the last minute serves so much.
pub(super) fn short_windows(recording: &Recording) -> Option<(u32, String)> {
    let all: Vec<_> = of_key(recording).collect();
    let is_refused = |at: &usize| all[*at].status() == Some(429);
    let is_ok = |it: &&&Exchange| it.status() == Some(200);
    let refusals: Vec<_> = (0..all.len()).filter(is_refused).collect();
    // Until a bucket serves again, it takes a second.
    let delay: Vec<_> = refusals.iter().filter_map(|at| all[*at].answer().and_then(retry_after)).collect();
    let is_bucket = !delay.is_empty() && delay.iter().all(|delay| delay.as_secs() <= 2);
    // The last refusal of a window, and the first of the next.
    let pairs = refusals.windows(2).filter(|pair| pair[1] - pair[0] > FRESH);
    for pair in pairs {
        let (closed, next) = (all[pair[0]], all[pair[1]]);
        let window = all[pair[0]..pair[1]].iter().filter(is_ok).count();
        let refilled = next.ended.saturating_sub(closed.sent).as_millis() / 500;
        if window as u128 <= refilled + FRESH as u128 {
            continue;
        }
        let renewed = (pair[1] + 1..all.len())
            .find(|at| all[*at..].iter().take_while(|it| it.status() == Some(200)).count() >= FRESH)
            .map(|at| all[at + FRESH - 1]);
        let Some(renewed) = renewed else { continue };
        let span = renewed.ended.saturating_sub(closed.sent);
        let in_minute = all
            .iter()
            .filter(|it| it.number <= renewed.number && it.sent.saturating_add(WINDOW) > renewed.ended)
            .filter(|it| is_served(it))
            .count() as u64;
        if !is_bucket && span + ROUNDING < WINDOW && in_minute > u64::from(LIMIT) + SLACK * 2 {
            let actual = format!(
                "a refusal, {window} requests served, a refusal, and served again, all within {} s",
                span.as_secs()
            );
            return Some((renewed.number, actual));
        }
    }
    None
}
