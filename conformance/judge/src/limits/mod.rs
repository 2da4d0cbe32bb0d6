//! Chapter "limits": 120 requests a minute with one key.
//!
//! The obvious check, "the 121st request gets 429", would fail correct servers. The specification does not say how
//! the minute is counted, and each way of counting admits another number of requests. So the judge does not compare one
//! number: it looks for the limiter that explains the burst, and names it in the report.
//!
//! A burst sends requests with the test key as fast as possible until the first 429. A [`BurstCounts`] counts it:
//! requests served, requests without a clear result (no response, 5xx), the time. [`LimiterKind`] explains it:
//!
//! - `Exact`: the 121st was refused. A sliding window, or a fixed window that began with the burst.
//! - `TokenBucket`: a token bucket, which refills two tokens a second, would have let that many through in that time. A
//!   request that is refused more than a second after the first refusal contradicts it.
//! - `WindowBoundary`: more than that, so only the end of a fixed window within the burst explains it. The burst is
//!   repeated in a fresh window; if it is refused late again, no window explains it and the statement fails.
//! - `Early`: refused before the 121st. Another client may use the key, so the burst is repeated with a fresh
//!   window, and it fails if the second one is early too and the remaining quota shows no other client.
//! - `Unlimited`: more than 240 served within a minute, which is more than two adjacent windows or a full bucket
//!   allow.
//! - `TooSlow`: too few requests in the time to reach any limit. Not judged.
//!
//! The other checks use the same idea: they fail only what no correct limiter does. `limits.every_path` requests several
//! paths while the key is refused, and fails a path only if others were refused in every round and more was served
//! than a bucket refills meanwhile. `limits.retry_after_held` judges the first request after the stated wait.
//! `limits.per_key` needs one request with the live key while the test key is refused.
//!
//! Example: 122 requests are served in 900 ms and the 123rd gets 429. A window would have refused the 121st. A
//! bucket refills 2 tokens in the first second, so 122 is possible: `limits.refused` passes, "refilling bucket: the
//! 123rd request". The same count in 0 ms is a `WindowBoundary`, and the burst is repeated.
//!
//! Must not contain: a request, a clock, or an assumption about the clock of the server that the recording does not
//! prove.

mod coverage;
mod history;
mod other_traffic;
mod retry_after;

use std::time::Duration;

use conformance_model::group::Group;
use conformance_model::reading::{
    BurstCounts, LimiterKind, REQUESTS_PER_MINUTE, SERVED_MAX, has_text, most_served_in_a_minute,
    parse_http_date, retry_after,
};
use conformance_model::recording::{Burst, Exchange, Purpose, ReceivedResponse, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{check_media_type, missing_response};
use crate::check::Check;
use coverage::{refilled_in_rounds, round_exchanges};
use history::{may_carry_over, test_key_exchanges};
use other_traffic::{premature_refusal, shared_key, used_by_others};

pub(super) use coverage::{is_at_own_limit, not_requested_while_refused};

const NEEDS: &[Group] = &[Group::Account, Group::Burst];

pub(super) const CHECKS: &[Check] = &[
    Check::new("limits.served", NEEDS, judge_served),
    Check::new("limits.refused", NEEDS, judge_refused),
    Check::new("limits.every_path", NEEDS, coverage::judge_every_path),
    Check::new("limits.per_key", NEEDS, coverage::judge_per_key),
    Check::new("limits.retry_after", NEEDS, retry_after::judge_header),
    Check::new("limits.retry_after_held", NEEDS, retry_after::judge_served_after_wait),
    Check::new("limits.json", NEEDS, judge_json),
];

/// Returns the counts of the second burst and `true`; if it was not sent, those of the first burst and `false`.
fn last_burst(recording: &Recording) -> Result<(BurstCounts, bool), CheckError> {
    if let Some(why) = &recording.no_burst {
        return Err(CheckError::unjudged(
            format!("there was no burst: {why}"),
            "check again without --quick",
        ));
    }
    match (BurstCounts::from_burst(recording, 1), BurstCounts::from_burst(recording, 2)) {
        (Some(first), None) => Ok((first, false)),
        (_, Some(second)) => Ok((second, true)),
        (None, None) => Err(missing_response(None, "a burst")),
    }
}

/// Returns an error with the reason if there was no burst.
pub(super) fn check_has_burst(recording: &Recording) -> Result<(), CheckError> {
    last_burst(recording).map(drop)
}

/// Returns the error for a burst that was too slow, or had too many unclear or cached responses, to show a limit.
fn unusable_burst(burst: BurstCounts) -> CheckError {
    /// The maximum number of responses other than 200 and 429 in a usable burst.
    const UNCLEAR_MAX: u32 = 10;
    /// The maximum number of cached responses in a usable burst.
    const CACHED_MAX: u32 = 10;
    if burst.unclear > UNCLEAR_MAX {
        return CheckError::unjudged(
            format!(
                "{} requests of a burst of {} were neither served nor refused with 429",
                burst.unclear,
                { burst.served + burst.unclear }
            ),
            "see the responses in the recording; check again when the server handles all requests",
        );
    }
    if burst.cached > CACHED_MAX {
        return CheckError::unjudged(
            format!("a cache responded to {} requests of the burst", burst.cached),
            "check the service without the cache, or exclude /v1 from caching",
        );
    }
    CheckError::unjudged(
        format!("only {} requests could be sent in {} s", burst.served, burst.elapsed.as_secs()),
        "run the check closer to the server: the burst needs 5 requests a second",
    )
}

fn judge_served(recording: &Recording) -> CheckResult {
    let (burst, is_repeated) = last_burst(recording)?;
    match burst.limiter_kind() {
        LimiterKind::Early if is_repeated && used_by_others(recording).is_some() => {
            Err(shared_key(&used_by_others(recording).unwrap_or_default()))
        }
        LimiterKind::Early if is_repeated && is_carried_over(recording, burst) => Err(CheckError::unjudged(
            format!(
                "the {} request was refused; requests of the minute before may have counted",
                ordinal(burst.refused_ordinal())
            ),
            "check again",
        )),
        LimiterKind::Early if is_repeated => Err(CheckError::violation(
            burst.first_refused,
            format!("{REQUESTS_PER_MINUTE} requests served"),
            format!(
                "the {} request was refused, and so it was in a fresh window",
                ordinal(burst.refused_ordinal())
            ),
        )),
        LimiterKind::Early => Err(CheckError::unjudged(
            format!(
                "the {} request was refused, and the burst was not repeated",
                ordinal(burst.refused_ordinal())
            ),
            "check again with a test key that is not used elsewhere",
        )),
        LimiterKind::TooSlow if burst.served < REQUESTS_PER_MINUTE => Err(unusable_burst(burst)),
        _ => match premature_refusal(recording) {
            Some((exchange, left)) => Err(CheckError::violation(
                exchange.number,
                format!("the request served, because {left} of {REQUESTS_PER_MINUTE} were left"),
                exchange.summary(),
            )),
            None => Ok(CheckOutcome::Holds),
        },
    }
}

/// Returns `true` if a limiter that also weights the previous minute explains the refusal of a burst.
fn is_carried_over(recording: &Recording, burst: BurstCounts) -> bool {
    burst
        .first_refused
        .and_then(|number| recording.exchange(number))
        .is_some_and(|exchange| may_carry_over(recording, exchange))
}

/// Describes the limiter that the burst in the next minute shows; `None` if that burst was not refused.
fn next_minute_reading(recording: &Recording) -> Option<String> {
    let burst = BurstCounts::from_burst(recording, Burst::NEXT_MINUTE)?;
    let refused_at = ordinal(burst.refused_ordinal());
    match burst.limiter_kind() {
        LimiterKind::Exact => Some(format!("in the next minute exact, at the {refused_at}")),
        LimiterKind::TokenBucket => {
            Some(format!("in the next minute a refilling bucket still, at the {refused_at}"))
        }
        LimiterKind::WindowBoundary => {
            Some(format!("in the next minute at the {refused_at}: its windows begin elsewhere"))
        }
        LimiterKind::Early => Some(format!("in the next minute early, at the {refused_at}")),
        LimiterKind::Unlimited | LimiterKind::TooSlow => None,
    }
}

fn judge_refused(recording: &Recording) -> CheckResult {
    let outcome = judge_first_refusal(recording)?;
    if let Some(next) = BurstCounts::from_burst(recording, Burst::NEXT_MINUTE)
        .filter(|burst| burst.limiter_kind() == LimiterKind::Unlimited)
    {
        return Err(CheckError::violation(
            None,
            format!("429 at the {} request of the next minute too", ordinal(REQUESTS_PER_MINUTE + 1)),
            format!("{} requests served in {} ms", next.served, next.elapsed.as_millis()),
        ));
    }
    Ok(match (outcome, next_minute_reading(recording)) {
        (CheckOutcome::HoldsWith(reading), Some(next_minute)) => {
            CheckOutcome::HoldsWith(format!("{reading}; {next_minute}"))
        }
        (outcome, _) => outcome,
    })
}

fn judge_first_refusal(recording: &Recording) -> CheckResult {
    let (burst, is_repeated) = last_burst(recording)?;
    let limit = || format!("429 from the {} request on", ordinal(REQUESTS_PER_MINUTE + 1));
    if let Some((number, actual)) = served_after_refusal(recording) {
        return Err(CheckError::violation(number, limit(), actual));
    }
    if let Some((number, actual)) = too_many_in_a_minute(recording)
        .or_else(|| impossible_refill(recording))
        .or_else(|| history::short_windows(recording))
        .or_else(|| history::misplaced_window_end(recording))
    {
        let expected = format!(
            "at most {REQUESTS_PER_MINUTE} requests in a minute, by windows or by a bucket that refills"
        );
        return Err(CheckError::violation(number, expected, actual));
    }
    let first = BurstCounts::from_burst(recording, 1).filter(|_| is_repeated);
    match burst.limiter_kind() {
        LimiterKind::Unlimited => Err(CheckError::violation(
            None,
            format!("429 at the {} request", ordinal(REQUESTS_PER_MINUTE + 1)),
            format!("{} requests served in {} ms", burst.served, burst.elapsed.as_millis()),
        )),
        LimiterKind::TooSlow => Err(unusable_burst(burst)),
        LimiterKind::Early => Err(CheckError::unjudged(
            format!(
                "the key was refused at the {} request already, so the {} was never sent",
                ordinal(burst.refused_ordinal()),
                ordinal(REQUESTS_PER_MINUTE + 1)
            ),
            "see limits.served",
        )),
        LimiterKind::Exact => Ok(exact_outcome(burst, first)),
        LimiterKind::TokenBucket
            if !BurstCounts::was_refill_refused(recording, if is_repeated { 2 } else { 1 }) =>
        {
            match first {
                Some(first) if first.limiter_kind() == LimiterKind::WindowBoundary => {
                    judge_first_surplus(recording, first, burst)
                }
                _ => Ok(CheckOutcome::HoldsWith(bucket_text(recording, burst))),
            }
        }
        LimiterKind::TokenBucket | LimiterKind::WindowBoundary => judge_surplus(recording, burst, first),
    }
}

fn exact_outcome(burst: BurstCounts, first: Option<BurstCounts>) -> CheckOutcome {
    let refused_at = ordinal(burst.refused_ordinal());
    CheckOutcome::HoldsWith(match first {
        None => format!("exact: the {refused_at} request"),
        Some(first) if first.limiter_kind() == LimiterKind::WindowBoundary => format!(
            "aligned window: the {} request of a burst across the border, the {refused_at} of the next",
            ordinal(first.refused_ordinal())
        ),
        Some(_) => format!("exact: the {refused_at} request, once the key was idle"),
    })
}

/// Describes a token bucket, with the number of requests that it served.
fn bucket_text(recording: &Recording, burst: BurstCounts) -> String {
    let served = most_served_in_a_minute(recording).map_or(0, |(count, _)| count);
    format!(
        "refilling bucket: the {} request, two more for each second of {} ms; {served} requests were served within one \
         minute, and a bucket that was full serves up to {SERVED_MAX} in its first",
        ordinal(burst.refused_ordinal()),
        burst.elapsed.as_millis()
    )
}

/// Judges a burst in which more than 120 requests were served. `first`: the first burst, if this one is the second. It
/// is a violation only if both served more: a window may have ended within one of them.
fn judge_surplus(recording: &Recording, burst: BurstCounts, first: Option<BurstCounts>) -> CheckResult {
    let refused_at = ordinal(burst.refused_ordinal());
    let was_surplus = |burst: BurstCounts| {
        burst.limiter_kind() == LimiterKind::WindowBoundary
            || burst.limiter_kind() == LimiterKind::TokenBucket
                && BurstCounts::was_refill_refused(recording, 1)
    };
    match first {
        Some(first) if was_surplus(first) => Err(CheckError::violation(
            burst.first_refused,
            format!("429 at the {} request", ordinal(REQUESTS_PER_MINUTE + 1)),
            format!(
                "429 at the {} request, and in a fresh window at the {refused_at} within {} ms, so that no border of a window \
                 and no refill explains both",
                ordinal(first.refused_ordinal()),
                burst.elapsed.as_millis()
            ),
        )),
        _ => Err(CheckError::unjudged(
            format!(
                "the {refused_at} request was the first to be refused; a window may have ended during the burst"
            ),
            "check again",
        )),
    }
}

/// Judges a first burst that served more requests than a bucket admits, if the second one shows a
/// bucket. Fixed windows explain both only if a window also ended within the second burst.
fn judge_first_surplus(recording: &Recording, first: BurstCounts, second: BurstCounts) -> CheckResult {
    if crosses_minute(recording, 2) {
        return judge_surplus(recording, second, None);
    }
    Err(CheckError::violation(
        first.first_refused,
        format!(
            "429 at the {} request, two later for each second of the burst",
            ordinal(REQUESTS_PER_MINUTE + 1)
        ),
        format!(
            "429 at the {} request after {} ms; in the second burst, after an idle minute, at the {}, as a bucket of \
             two a second does",
            ordinal(first.refused_ordinal()),
            first.elapsed.as_millis(),
            ordinal(second.refused_ordinal())
        ),
    ))
}

/// Returns `true` if the minute of the server's clock changed during a burst.
fn crosses_minute(recording: &Recording, series: u8) -> bool {
    let purpose = Purpose::Burst(Burst::UntilRefused { series });
    let mut requests = recording.exchanges.iter().filter(|exchange| exchange.purpose == purpose);
    let minute = |exchange: &Exchange| {
        parse_http_date(exchange.response()?.header("date")?)
            .map(|date| (date.date(), date.hour(), date.minute()))
    };
    let first = requests.next().and_then(minute);
    first.is_some() && first != requests.next_back().and_then(minute)
}

/// Returns the evidence that more requests were served in a minute than two adjacent windows or a full bucket admit.
fn too_many_in_a_minute(recording: &Recording) -> Option<(u32, String)> {
    let (count, last) = most_served_in_a_minute(recording)?;
    (count > SERVED_MAX as usize).then(|| (last.number, format!("{count} requests served within 60 s")))
}

/// Returns the evidence that a limiter with a short `Retry-After` is neither a bucket nor a window: a bucket serves as
/// many requests as it has refilled, a new window nearly all.
fn impossible_refill(recording: &Recording) -> Option<(u32, String)> {
    const TOLERANCE: u128 = 4;
    /// The minimum number of requests that a new window serves.
    const WINDOW_SERVED_MIN: usize = 100;
    let rounds: Vec<Vec<_>> = (1..=u8::MAX)
        .map(|round| {
            test_key_exchanges(recording)
                .filter(|exchange| exchange.purpose == Purpose::Burst(Burst::RepeatedAfterWait { round }))
                .collect()
        })
        .take_while(|round: &Vec<_>| !round.is_empty())
        .collect();
    let served_count =
        |all: &[&Exchange]| all.iter().filter(|exchange| exchange.status() == Some(200)).count();
    let first = rounds.first()?.first()?;
    let midway = Purpose::Burst(Burst::DuringWait);
    let refused = recording.exchanges.iter().rfind(|exchange| {
        exchange.number < first.number && exchange.status() == Some(429) && exchange.purpose != midway
    })?;
    let is_short_wait = refused.response().and_then(retry_after).is_some_and(|delay| delay.as_secs() <= 2);
    if !is_short_wait || rounds.iter().any(|round| served_count(round) >= WINDOW_SERVED_MIN) {
        return None;
    }
    // Summed over all rounds: a bucket that refills too fast is easier to detect over a longer time.
    let mut served = 0;
    rounds.iter().find_map(|round| {
        served += served_count(round);
        let millis = round.last()?.ended.saturating_sub(refused.ended).as_millis();
        // A bucket gets one token per 500 ms.
        let refilled = millis / 500;
        (served as u128 > refilled + TOLERANCE).then(|| {
            let actual = format!(
                "{served} requests served within {millis} ms after a 429, where a bucket of two a second has {refilled}"
            );
            (first.number, actual)
        })
    })
}

/// Returns the evidence that a key was served right after a refusal. During the wait of `Retry-After`, no window ends,
/// and a bucket serves no more than it refills.
fn served_after_refusal(recording: &Recording) -> Option<(u32, String)> {
    let first = round_exchanges(recording).next()?;
    let refused = recording
        .exchanges
        .iter()
        .rfind(|exchange| exchange.number < first.number && exchange.status() == Some(429))?;
    let wait = retry_after(refused.response()?)?;
    // The server may have rounded the wait up to whole seconds.
    let until = refused.ended.saturating_add(wait.saturating_sub(Duration::from_secs(1)));
    let during_wait: Vec<_> = round_exchanges(recording).filter(|exchange| exchange.ended < until).collect();
    if during_wait.iter().any(|exchange| exchange.status() == Some(429)) {
        return None;
    }
    let served: Vec<_> = during_wait.into_iter().filter(|exchange| exchange.status() == Some(200)).collect();
    (served.len() as u128 > refilled_in_rounds(recording)).then(|| {
        let actual = format!(
            "{} requests served right after a 429 with a Retry-After of {} s",
            served.len(),
            wait.as_secs()
        );
        (served[0].number, actual)
    })
}

fn judge_json(recording: &Recording) -> CheckResult {
    last_burst(recording)?;
    for (exchange, response) in
        responses_429(recording)?.into_iter().filter(|(exchange, _)| exchange.method() != "HEAD")
    {
        if !response.body.is_utf8() || !response.body.json().is_some_and(has_text) {
            return Err(CheckError::violation(exchange.number, "a message in JSON", exchange.summary()));
        }
        check_media_type(exchange, response)?;
    }
    Ok(CheckOutcome::Holds)
}

/// Returns the last request of a step of a burst.
pub(super) fn burst_step<'a>(recording: &'a Recording, step: &Burst) -> Option<&'a Exchange> {
    recording.find_last(|exchange| matches!(&exchange.purpose, Purpose::Burst(burst) if burst == step))
}

fn responses_429(recording: &Recording) -> Result<Vec<(&Exchange, &ReceivedResponse)>, CheckError> {
    let of_burst = |exchange: &&Exchange| matches!(exchange.purpose, Purpose::Burst(_));
    let found: Vec<_> = recording
        .exchanges
        .iter()
        .filter(of_burst)
        .filter_map(|exchange| {
            Some((exchange, exchange.response().filter(|response| response.status == 429)?))
        })
        .collect();
    if found.is_empty() { Err(never_refused()) } else { Ok(found) }
}

fn never_refused() -> CheckError {
    CheckError::unjudged("no request was refused", "see limits.refused")
}

fn ordinal(number: u32) -> String {
    let suffix = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}
