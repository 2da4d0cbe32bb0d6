//! Chapter "limits": 120 requests a minute with one key.
//!
//! The obvious check, "the 121st request gets 429", would fail correct servers. The specification does not say how
//! the minute is counted, and each way of counting admits another number of requests. So the judge does not compare one
//! number: it looks for the limiter that explains the burst, and names it in the report.
//!
//! A burst sends requests with the test key as fast as possible until the first 429. A [`BurstCounts`] counts it:
//! requests served, requests without a clear result (no response, 5xx), the time. [`LimiterReading`] explains it:
//!
//! - `Exact`: the 121st was refused. A sliding window, or a fixed window that began with the burst.
//! - `Bucket`: a token bucket, which refills two tokens a second, would have let that many through in that time. A
//!   request that is refused more than a second after the first refusal contradicts it.
//! - `Border`: more than that, so only the end of a fixed window within the burst explains it. The burst is
//!   repeated in a fresh window; if it is refused late again, no window explains it and the statement fails.
//! - `Early`: refused before the 121st. Another client may use the key, so the burst is repeated with a fresh
//!   window, and it fails if the second one is early too and the remaining quota shows no other client.
//! - `Unlimited`: more than 240 served within a minute, which is more than two adjacent windows or a full bucket
//!   allow.
//! - `TooSlow`: too few requests in the time to reach any limit. Not judged.
//!
//! The other checks use the same idea: they fail only what no correct limiter does. `every_path` requests several
//! paths while the key is refused, and fails a path only if others were refused in every round and more was served
//! than a bucket refills meanwhile. `retry_after_held` compares with the response after the stated wait. `per_key`
//! needs one request with the live key.
//!
//! Example: 122 requests are served in 900 ms and the 123rd gets 429. A window would have refused the 121st. A
//! bucket refills 2 tokens in the first second, so 122 is possible: `limits.refused` passes, "refilling bucket: the
//! 123rd request". The same count in 0 ms is a `Border`, and the burst is repeated.
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
    BurstCounts, LIMIT, LimiterReading, SERVED_MAX, has_text, http_date, most_in_a_minute, retry_after,
};
use conformance_model::recording::{Answer, Burst, Exchange, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{check_media_type, missing_response};
use crate::check::Check;
use coverage::{refilled_in_rounds, round_exchanges};
use history::{may_carry_over, test_key_exchanges};
use other_traffic::{premature_refusal, shared_key, used_by_others};

pub(super) use coverage::{is_busy, not_asked_while_refused};

const NEEDS: &[Group] = &[Group::Account, Group::Burst];

pub(super) const CHECKS: &[Check] = &[
    Check::new("limits.served", NEEDS, judge_served),
    Check::new("limits.refused", NEEDS, judge_refused),
    Check::new("limits.every_path", NEEDS, coverage::every_path),
    Check::new("limits.per_key", NEEDS, coverage::per_key),
    Check::new("limits.retry_after", NEEDS, retry_after::judge_header),
    Check::new("limits.retry_after_held", NEEDS, retry_after::judge_held),
    Check::new("limits.json", NEEDS, judge_json),
];

/// Returns the last burst, and `true` if it was a repetition.
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

fn too_slow(series: BurstCounts) -> CheckError {
    /// The most responses other than 200 and 429 in a usable burst.
    const UNCLEAR_MAX: u32 = 10;
    /// The most cached responses in a usable burst.
    const CACHED_MAX: u32 = 10;
    if series.unclear > UNCLEAR_MAX {
        return CheckError::unjudged(
            format!(
                "{} requests of a burst of {} were neither served nor refused with 429",
                series.unclear,
                { series.served + series.unclear }
            ),
            "see the answers in the recording; check again once the server answers all requests",
        );
    }
    if series.cached > CACHED_MAX {
        return CheckError::unjudged(
            format!("a cache answered {} requests of the burst", series.cached),
            "check the service without the cache, or exclude /v1 from caching",
        );
    }
    CheckError::unjudged(
        format!("only {} requests could be sent in {} s", series.served, series.elapsed.as_secs()),
        "run the check closer to the server: the burst needs 5 requests a second",
    )
}

fn judge_served(recording: &Recording) -> CheckResult {
    let (series, repeated) = last_burst(recording)?;
    match series.reading() {
        LimiterReading::Early if repeated && used_by_others(recording).is_some() => {
            Err(shared_key(&used_by_others(recording).unwrap_or_default()))
        }
        LimiterReading::Early if repeated && is_carried_over(recording, series) => Err(CheckError::unjudged(
            format!(
                "the {} request was refused; requests of the minute before may have counted",
                ordinal(series.refused_at())
            ),
            "check again",
        )),
        LimiterReading::Early if repeated => Err(CheckError::violation(
            series.refused,
            format!("{LIMIT} requests served"),
            format!(
                "the {} request was refused, and so it was in a fresh window",
                ordinal(series.refused_at())
            ),
        )),
        LimiterReading::Early => Err(CheckError::unjudged(
            format!(
                "the {} request was refused, and the burst was not repeated",
                ordinal(series.refused_at())
            ),
            "check again with a test key that is not used elsewhere",
        )),
        LimiterReading::TooSlow if series.served < LIMIT => Err(too_slow(series)),
        _ => match premature_refusal(recording) {
            Some((exchange, left)) => Err(CheckError::violation(
                exchange.number,
                format!("the request served, because {left} of {LIMIT} were left"),
                exchange.summary(),
            )),
            None => Ok(CheckOutcome::Holds),
        },
    }
}

/// Returns `true` if a limiter that also weights the previous minute explains the refusal of a burst.
fn is_carried_over(recording: &Recording, series: BurstCounts) -> bool {
    series
        .refused
        .and_then(|number| recording.exchange(number))
        .is_some_and(|exchange| may_carry_over(recording, exchange))
}

/// Returns the kind of limiter that the burst in the next minute shows.
fn next_minute_reading(recording: &Recording) -> Option<String> {
    let series = BurstCounts::from_burst(recording, Burst::SETTLING)?;
    let at = ordinal(series.refused_at());
    match series.reading() {
        LimiterReading::Exact => Some(format!("in the next minute exact, at the {at}")),
        LimiterReading::Bucket => Some(format!("in the next minute a refilling bucket still, at the {at}")),
        LimiterReading::Border => {
            Some(format!("in the next minute at the {at}: its windows begin elsewhere"))
        }
        LimiterReading::Early => Some(format!("in the next minute early, at the {at}")),
        LimiterReading::Unlimited | LimiterReading::TooSlow => None,
    }
}

fn judge_refused(recording: &Recording) -> CheckResult {
    let outcome = judge_first_refusal(recording)?;
    if let Some(next) = BurstCounts::from_burst(recording, Burst::SETTLING)
        .filter(|series| series.reading() == LimiterReading::Unlimited)
    {
        return Err(CheckError::violation(
            None,
            format!("429 at the {} request of the next minute too", ordinal(LIMIT + 1)),
            format!("{} requests served in {} ms", next.served, next.elapsed.as_millis()),
        ));
    }
    Ok(match (outcome, next_minute_reading(recording)) {
        (CheckOutcome::HoldsWith(reading), Some(settled)) => {
            CheckOutcome::HoldsWith(format!("{reading}; {settled}"))
        }
        (outcome, _) => outcome,
    })
}

fn judge_first_refusal(recording: &Recording) -> CheckResult {
    let (series, repeated) = last_burst(recording)?;
    let limit = || format!("429 from the {} request on", ordinal(LIMIT + 1));
    if let Some((number, actual)) = served_after_refusal(recording) {
        return Err(CheckError::violation(number, limit(), actual));
    }
    if let Some((number, actual)) = too_many_in_a_minute(recording)
        .or_else(|| impossible_refill(recording))
        .or_else(|| history::short_windows(recording))
    {
        let expected =
            format!("at most {LIMIT} requests in a minute, by windows or by a bucket that refills");
        return Err(CheckError::violation(number, expected, actual));
    }
    let first = BurstCounts::from_burst(recording, 1).filter(|_| repeated);
    match series.reading() {
        LimiterReading::Unlimited => Err(CheckError::violation(
            None,
            format!("429 at the {} request", ordinal(LIMIT + 1)),
            format!("{} requests served in {} ms", series.served, series.elapsed.as_millis()),
        )),
        LimiterReading::TooSlow => Err(too_slow(series)),
        LimiterReading::Early => Err(CheckError::unjudged(
            format!(
                "the key was refused at the {} request already, so the {} was never sent",
                ordinal(series.refused_at()),
                ordinal(LIMIT + 1)
            ),
            "see limits.served",
        )),
        LimiterReading::Exact => Ok(exact_outcome(series, first)),
        LimiterReading::Bucket if !BurstCounts::is_no_bucket(recording, if repeated { 2 } else { 1 }) => {
            match first {
                Some(first) if first.reading() == LimiterReading::Border => {
                    judge_first_surplus(recording, first, series)
                }
                _ => Ok(CheckOutcome::HoldsWith(bucket_text(recording, series))),
            }
        }
        LimiterReading::Bucket | LimiterReading::Border => judge_surplus(recording, series, first),
    }
}

fn exact_outcome(series: BurstCounts, first: Option<BurstCounts>) -> CheckOutcome {
    let at = ordinal(series.refused_at());
    CheckOutcome::HoldsWith(match first {
        None => format!("exact: the {at} request"),
        Some(first) if first.reading() == LimiterReading::Border => format!(
            "aligned window: the {} request of a burst across the border, the {at} of the next",
            ordinal(first.refused_at())
        ),
        Some(_) => format!("exact: the {at} request, once the key was idle"),
    })
}

/// Describes a token bucket, with the number of requests that it served.
fn bucket_text(recording: &Recording, series: BurstCounts) -> String {
    let served = most_in_a_minute(recording).map_or(0, |(count, _)| count);
    format!(
        "refilling bucket: the {} request, two more for each second of {} ms; {served} requests were served within one \
         minute, and a bucket that was full serves up to {SERVED_MAX} in its first",
        ordinal(series.refused_at()),
        series.elapsed.as_millis()
    )
}

/// Judges a burst with more requests than a limiter of 120 admits, unless a window ended within the burst.
fn judge_surplus(recording: &Recording, series: BurstCounts, first: Option<BurstCounts>) -> CheckResult {
    let at = ordinal(series.refused_at());
    let was_surplus = |series: BurstCounts| {
        series.reading() == LimiterReading::Border
            || series.reading() == LimiterReading::Bucket && BurstCounts::is_no_bucket(recording, 1)
    };
    match first {
        Some(first) if was_surplus(first) => Err(CheckError::violation(
            series.refused,
            format!("429 at the {} request", ordinal(LIMIT + 1)),
            format!(
                "429 at the {} request, and in a fresh window at the {at} within {} ms, so that no border of a window \
                 and no refill explains both",
                ordinal(first.refused_at()),
                series.elapsed.as_millis()
            ),
        )),
        _ => Err(CheckError::unjudged(
            format!("the {at} request was the first to be refused; a window may have ended during the burst"),
            "check again",
        )),
    }
}

/// Judges a first burst with more requests than a full bucket holds, if the second one shows a bucket. Fixed windows
/// explain both only if a window ended within the second burst too.
fn judge_first_surplus(recording: &Recording, first: BurstCounts, second: BurstCounts) -> CheckResult {
    if crosses_minute(recording, 2) {
        return judge_surplus(recording, second, None);
    }
    Err(CheckError::violation(
        first.refused,
        format!("429 at the {} request, two later for each second of the burst", ordinal(LIMIT + 1)),
        format!(
            "429 at the {} request after {} ms; in the second burst, after an idle minute, at the {}, as a bucket of \
             two a second does",
            ordinal(first.refused_at()),
            first.elapsed.as_millis(),
            ordinal(second.refused_at())
        ),
    ))
}

/// Returns `true` if the minute of the server's clock changed during a burst.
fn crosses_minute(recording: &Recording, series: u8) -> bool {
    let shot = Purpose::Burst(Burst::Shot { series });
    let mut shots = recording.exchanges.iter().filter(|exchange| exchange.purpose == shot);
    let minute = |exchange: &Exchange| {
        http_date(exchange.answer()?.header("date")?).map(|date| (date.date(), date.hour(), date.minute()))
    };
    let first = shots.next().and_then(minute);
    first.is_some() && first != shots.next_back().and_then(minute)
}

/// Returns the evidence that more requests were served in a minute than two adjacent windows or a full bucket admit.
fn too_many_in_a_minute(recording: &Recording) -> Option<(u32, String)> {
    let (count, last) = most_in_a_minute(recording)?;
    (count > SERVED_MAX as usize).then(|| (last.number, format!("{count} requests served within 60 s")))
}

/// Returns the evidence that a limiter with a short `Retry-After` is neither a bucket nor a window: a bucket serves as
/// many requests as it has refilled, a new window nearly all.
fn impossible_refill(recording: &Recording) -> Option<(u32, String)> {
    const SLACK: u128 = 4;
    const NEARLY_ALL: usize = 100;
    let rounds: Vec<Vec<_>> = (1..=u8::MAX)
        .map(|round| {
            test_key_exchanges(recording)
                .filter(|exchange| exchange.purpose == Purpose::Burst(Burst::Again { round }))
                .collect()
        })
        .take_while(|round: &Vec<_>| !round.is_empty())
        .collect();
    let served_of = |all: &[&Exchange]| all.iter().filter(|exchange| exchange.status() == Some(200)).count();
    let first = rounds.first()?.first()?;
    let midway = Purpose::Burst(Burst::Midway);
    let refused = recording.exchanges.iter().rfind(|exchange| {
        exchange.number < first.number && exchange.status() == Some(429) && exchange.purpose != midway
    })?;
    let is_brief = refused.answer().and_then(retry_after).is_some_and(|delay| delay.as_secs() <= 2);
    if !is_brief || rounds.iter().any(|round| served_of(round) >= NEARLY_ALL) {
        return None;
    }
    // Summed over all rounds: a bucket that refills too fast is easier to detect over a longer time.
    let mut served = 0;
    rounds.iter().find_map(|round| {
        served += served_of(round);
        let millis = round.last()?.ended.saturating_sub(refused.ended).as_millis();
        (served as u128 > millis / 500 + SLACK).then(|| {
            let actual = format!(
                "{served} requests served within {millis} ms after a 429, where a bucket of two a second has {}",
                millis / 500
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
    let wait = retry_after(refused.answer()?)?;
    let until = refused.ended.saturating_add(wait.saturating_sub(Duration::from_secs(1)));
    let meanwhile: Vec<_> = round_exchanges(recording).filter(|exchange| exchange.ended < until).collect();
    if meanwhile.iter().any(|exchange| exchange.status() == Some(429)) {
        return None;
    }
    let served: Vec<_> = meanwhile.into_iter().filter(|exchange| exchange.status() == Some(200)).collect();
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
        answers_429(recording)?.into_iter().filter(|(exchange, _)| exchange.method() != "HEAD")
    {
        if !response.body.is_utf8() || !response.body.json().is_some_and(|body| has_text(&body)) {
            return Err(CheckError::violation(exchange.number, "a message in JSON", exchange.summary()));
        }
        check_media_type(exchange, response)?;
    }
    Ok(CheckOutcome::Holds)
}

pub(super) fn burst_step<'a>(recording: &'a Recording, step: &Burst) -> Option<&'a Exchange> {
    recording.find_last(|exchange| matches!(&exchange.purpose, Purpose::Burst(burst) if burst == step))
}

fn answers_429(recording: &Recording) -> Result<Vec<(&Exchange, &Answer)>, CheckError> {
    let of_burst = |exchange: &&Exchange| matches!(exchange.purpose, Purpose::Burst(_));
    let found: Vec<_> = recording
        .exchanges
        .iter()
        .filter(of_burst)
        .filter_map(|exchange| Some((exchange, exchange.answer().filter(|response| response.status == 429)?)))
        .collect();
    if found.is_empty() { Err(never_refused()) } else { Ok(found) }
}

fn never_refused() -> CheckError {
    CheckError::unjudged("no request was refused", "see limits.refused")
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
