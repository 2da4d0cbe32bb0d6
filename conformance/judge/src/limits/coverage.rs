//! The paths, methods and keys that the limit covers.
//!
//! After the first refusal of a burst, the suite requests each of its paths again in several rounds, and in each round sends
//! a HEAD request and one for a nonexistent event. While the key is refused, all of these must be refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conformance_model::mode::Mode;
use conformance_model::reading::{LIMIT_WINDOW, LimiterKind, is_served};
use conformance_model::recording::{Burst, Caller, Exchange, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::history::test_key_exchanges;
use super::other_traffic::shared_quotas;
use super::{burst_step, last_burst, never_refused, responses_429};
use crate::evidence::missing_response;

/// The duration of a burst in which a token bucket serves more than a window does.
const DISTINGUISHING_DURATION: Duration = Duration::from_millis(1_500);
/// The time in which a token bucket of two requests per second gets one token.
const MILLIS_PER_TOKEN: u128 = 500;

/// Judges that a refused key gets 429 for every method and path.
pub(super) fn judge_every_path(recording: &Recording) -> CheckResult {
    let (burst, _) = last_burst(recording)?;
    responses_429(recording)?;
    let mut rounds: BTreeMap<u8, BTreeMap<(&str, &str), u16>> = BTreeMap::new();
    for exchange in round_exchanges(recording) {
        if let (Some(round), Some(status)) = (round_number(exchange), exchange.status()) {
            rounds.entry(round).or_default().insert((exchange.method(), &exchange.target), status);
        }
    }
    // A served request may mean that a window ended or a bucket refilled. It counts only if another path was
    // refused in every round, and more was served than a bucket refills in that time.
    let has_refusal = |round: &BTreeMap<_, u16>| round.values().any(|status| *status == 429);
    let refused_too_briefly = CheckError::unjudged(
        "the key was not refused long enough to try every path",
        "run the check closer to the server, then check again",
    );
    if rounds.is_empty() || !rounds.values().all(has_refusal) {
        return Err(refused_too_briefly);
    }
    let requests_with_status = |is_wanted: fn(u16) -> bool| -> BTreeSet<_> {
        let all = rounds.values().flatten().filter(|(_, status)| is_wanted(**status));
        all.map(|(request, _)| *request).collect()
    };
    let (refused, served) = (
        requests_with_status(|status| status == 429),
        requests_with_status(|status| (200..300).contains(&status)),
    );
    // A window does not refill. A bucket would have served more than the exact limit in a burst of this length.
    let is_window = burst.limiter_kind() == LimiterKind::Exact && burst.elapsed >= DISTINGUISHING_DURATION;
    let refilled = if is_window { 0 } else { refilled_in_rounds(recording) };
    if let Some((method, path)) = served.difference(&refused).next() {
        if served_in_rounds(recording) <= refilled {
            return Err(refused_too_briefly);
        }
        let example = recording.find_last(|exchange| {
            (exchange.method(), exchange.target.as_str()) == (*method, *path)
                && round_number(exchange).is_some()
        });
        let actual =
            format!("{method} {path} was served {} times while other paths were refused", rounds.len());
        return Err(CheckError::violation(
            example.map(|exchange| exchange.number),
            "429 on every path",
            actual,
        ));
    }
    let absent = requests_with_status(|status| status == 404);
    match absent.difference(&refused).next() {
        Some((_, path)) => {
            Ok(CheckOutcome::HoldsWith(format!("above the limit, unknown objects get 404 ({path})")))
        }
        None => Ok(CheckOutcome::Holds),
    }
}

fn round_number(exchange: &Exchange) -> Option<u8> {
    match exchange.purpose {
        Purpose::Burst(Burst::Round { round, .. } | Burst::Head { round }) => Some(round),
        _ => None,
    }
}

/// Returns the requests of the rounds after the first refusal.
pub(super) fn round_exchanges(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|exchange| round_number(exchange).is_some())
}

fn served_in_rounds(recording: &Recording) -> u128 {
    round_exchanges(recording)
        .filter(|exchange| exchange.status().is_some_and(|status| (200..300).contains(&status)))
        .count() as u128
}

/// Returns the number of tokens that a bucket of two per second gets during the rounds, plus one for a partial token that it
/// may have had before.
pub(super) fn refilled_in_rounds(recording: &Recording) -> u128 {
    let start = round_exchanges(recording).next().map_or(Duration::ZERO, |exchange| exchange.sent);
    let end = round_exchanges(recording).last().map_or(Duration::ZERO, |exchange| exchange.ended);
    end.saturating_sub(start).as_millis() / MILLIS_PER_TOKEN + 1
}

/// Judges that the limit counts each key separately.
pub(super) fn judge_per_key(recording: &Recording) -> CheckResult {
    last_burst(recording)?;
    if let Some(quotas) = shared_quotas(recording) {
        let quotas: Vec<_> = quotas.iter().map(u64::to_string).collect();
        let is_live_request = |exchange: &&Exchange| {
            matches!(exchange.purpose, Purpose::Burst(Burst::ConcurrentLiveKey { series: 1 }))
        };
        return Err(CheckError::violation(
            recording.exchanges.iter().find(is_live_request).map(|exchange| exchange.number),
            "a separate quota for each key",
            format!("the live key got the quotas {}, which the test key skipped", quotas.join(", ")),
        ));
    }
    if let Some((number, requests)) = refused_together(recording) {
        return Err(CheckError::violation(
            number,
            "no refusal of a key with fewer than 120 requests in a minute",
            format!(
                "429 to {REFUSED_KEYS_MIN} keys within a minute, after at most {requests} requests of each"
            ),
        ));
    }
    let latest = burst_step(recording, &Burst::LiveKeyAfterRefusal);
    let Some(exchange) = latest else { return Err(not_requested_while_refused(recording, "the live key")) };
    match exchange.status() {
        Some(429) if is_at_own_limit(recording, exchange) => Err(CheckError::unjudged(
            "the live key is at its own limit",
            "check again with a live key that is less busy",
        )),
        Some(429) => Err(CheckError::violation(
            exchange.number,
            "200 to the live key while the test key is refused",
            "429",
        )),
        Some(_) if is_served(exchange) => Ok(CheckOutcome::Holds),
        _ => Err(missing_response(latest, "the live key")),
    }
}

/// The number of keys that are refused together by something else than the limit of a key. Other clients may use one or
/// two of them.
const REFUSED_KEYS_MIN: usize = 3;
/// The maximum number of requests in a minute of a key that counts as little used.
const LITTLE_USED_MAX: usize = 60;

/// Returns the last refusal of a minute in which at least [`REFUSED_KEYS_MIN`] little-used keys were refused, and the number
/// of requests of the most used one.
fn refused_together(recording: &Recording) -> Option<(u32, usize)> {
    let requests_before = |refused: &Exchange| {
        let is_before = |exchange: &&Exchange| {
            exchange.caller == refused.caller
                && exchange.is_sent()
                && exchange.number < refused.number
                && exchange.sent.saturating_add(LIMIT_WINDOW) >= refused.sent
        };
        recording.exchanges.iter().filter(is_before).count()
    };
    let is_counted =
        |caller: Caller| matches!(caller, Caller::Own(_) | Caller::SecondKey | Caller::OtherAccount);
    let little_used: Vec<(&Exchange, usize)> = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.status() == Some(429) && is_counted(exchange.caller))
        .map(|exchange| (exchange, requests_before(exchange)))
        .filter(|(_, requests)| *requests <= LITTLE_USED_MAX)
        .collect();
    little_used.iter().find_map(|(last, _)| {
        let together: BTreeMap<Caller, usize> = little_used
            .iter()
            .filter(|(other, _)| {
                other.number <= last.number && other.sent.saturating_add(LIMIT_WINDOW) >= last.sent
            })
            .map(|(other, requests)| (other.caller, *requests))
            .collect();
        let requests = together.values().max().copied()?;
        (together.len() >= REFUSED_KEYS_MIN).then_some((last.number, requests))
    })
}

/// Returns `true` if the refusal of another key than the test key has its own limit as a cause: outside the bursts, the key
/// was also refused before the test key was, or over a window after this refusal.
pub(crate) fn is_at_own_limit(recording: &Recording, refused: &Exchange) -> bool {
    let first_refusal = test_key_exchanges(recording).find(|exchange| exchange.status() == Some(429));
    let is_before_first_refusal = |exchange: &Exchange| {
        first_refusal.is_some_and(|first| exchange.number < first.number || exchange.sent < first.sent)
    };
    let window_end = refused.ended.saturating_add(LIMIT_WINDOW);
    recording.exchanges.iter().any(|exchange| {
        exchange.caller == refused.caller
            && !matches!(exchange.purpose, Purpose::Burst(_))
            && exchange.status() == Some(429)
            && (exchange.sent > window_end || is_before_first_refusal(exchange))
    })
}

/// Returns the error if no request with a key was sent while the test key was refused.
pub(crate) fn not_requested_while_refused(recording: &Recording, key: &str) -> CheckError {
    let is_refused =
        |exchange: &&Exchange| exchange.caller == Caller::Own(Mode::Test) && exchange.status() == Some(429);
    match recording.exchanges.iter().find(is_refused) {
        None => never_refused(),
        Some(refused) => CheckError::unjudged(
            format!(
                "the test key was refused (exchange {}), and no request with {key} was sent meanwhile",
                refused.number
            ),
            "check again, and do not interrupt the burst",
        ),
    }
}
