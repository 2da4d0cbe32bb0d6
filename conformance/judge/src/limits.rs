//! Chapter "limits": 120 requests a minute with one key.
//!
//! The obvious check, "the 121st request gets 429", would fail correct servers. The specification does not say how
//! the minute is counted, and each way of counting lets another number through. So the judge does not compare one
//! number: it looks for the limiter that explains the burst, and names it in the report.
//!
//! A burst sends requests with the test key as fast as possible until the first 429. A [`Series`] counts it:
//! requests served, requests without a clear result (no response, 5xx), the time. [`Fit`] is the explanation:
//!
//! - `Exact`: the 121st was refused. A sliding window, or a fixed one that began with the burst.
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

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conformance_model::group::Group;
use conformance_model::reading::{
    Fit, LIMIT, SERVED_MAX, Series, WINDOW, asks_for_more, has_text, http_date, most_in_a_minute, retry_after,
};
use conformance_model::recording::{Answer, Burst, Caller, Exchange, Purpose, Recording};
use conformance_model::verdict::{CheckError, Held, Judged};
use conformance_model::words::Mode;

use super::evidence::{called_json, unanswered};
use crate::check::Check;

const NEEDS: &[Group] = &[Group::Account, Group::Burst];

pub(super) const CHECKS: &[Check] = &[
    Check::of("limits.served", NEEDS, served),
    Check::of("limits.refused", NEEDS, refused),
    Check::of("limits.every_path", NEEDS, every_path),
    Check::of("limits.per_key", NEEDS, per_key),
    Check::of("limits.retry_after", NEEDS, retry_after_given),
    Check::of("limits.retry_after_held", NEEDS, retry_after_held),
    Check::of("limits.json", NEEDS, json),
];

/// The last burst, and whether it was a repetition.
fn series(recording: &Recording) -> Result<(Series, bool), CheckError> {
    if let Some(why) = &recording.no_burst {
        return Err(CheckError::unjudged(
            format!("there was no burst: {why}"),
            "check again without --quick",
        ));
    }
    match (Series::of(recording, 1), Series::of(recording, 2)) {
        (Some(first), None) => Ok((first, false)),
        (_, Some(second)) => Ok((second, true)),
        (None, None) => Err(unanswered(None, "a burst")),
    }
}

/// Fails with the reason if there was no burst.
pub(super) fn no_burst(recording: &Recording) -> Result<(), CheckError> {
    series(recording).map(drop)
}

fn too_slow(series: Series) -> CheckError {
    CheckError::unjudged(
        format!("only {} requests could be sent in {} s", series.served, series.elapsed.as_secs()),
        "run the check closer to the server: the burst needs 5 requests a second",
    )
}

fn served(recording: &Recording) -> Judged {
    let (series, repeated) = series(recording)?;
    match series.fit() {
        Fit::Early if repeated && used_by_others(recording).is_some() => {
            Err(shared_key(used_by_others(recording).unwrap_or_default()))
        }
        Fit::Early if repeated => Err(CheckError::broken(
            series.refused,
            format!("{LIMIT} requests served"),
            format!(
                "the {} request was refused, and so it was in a fresh window",
                ordinal(series.refused_at())
            ),
        )),
        Fit::Early => Err(CheckError::unjudged(
            format!(
                "the {} request was refused, and the burst was not repeated",
                ordinal(series.refused_at())
            ),
            "check again with a test key that nobody else uses",
        )),
        Fit::TooSlow if series.served < LIMIT => Err(too_slow(series)),
        _ => Ok(Held::Plainly),
    }
}

/// The burst of the next minute, and what it says about the reading.
fn settled(recording: &Recording) -> Option<String> {
    let series = Series::of(recording, Burst::SETTLING)?;
    let at = ordinal(series.refused_at());
    match series.fit() {
        Fit::Exact => Some(format!("in the next minute exact, at the {at}")),
        Fit::Bucket => Some(format!("in the next minute a refilling bucket still, at the {at}")),
        Fit::Border => Some(format!("in the next minute at the {at}: its windows begin elsewhere")),
        Fit::Early => Some(format!("in the next minute early, at the {at}")),
        Fit::Unlimited | Fit::TooSlow => None,
    }
}

fn refused(recording: &Recording) -> Judged {
    let held = refused_at(recording)?;
    if let Some(next) = Series::of(recording, Burst::SETTLING).filter(|it| it.fit() == Fit::Unlimited) {
        return Err(CheckError::broken(
            None,
            format!("429 at the {} request of the next minute too", ordinal(LIMIT + 1)),
            format!("{} requests served in {} ms", next.served, next.elapsed.as_millis()),
        ));
    }
    Ok(match (held, settled(recording)) {
        (Held::With(reading), Some(settled)) => Held::With(format!("{reading}; {settled}")),
        (held, _) => held,
    })
}

fn refused_at(recording: &Recording) -> Judged {
    let (series, repeated) = series(recording)?;
    let at = ordinal(series.refused_at());
    let millis = series.elapsed.as_millis();
    if let Some((number, actual)) = refused_otherwise(recording, series).or_else(|| forgotten(recording)) {
        return Err(CheckError::broken(
            number,
            format!("429 from the {} request on", ordinal(LIMIT + 1)),
            actual,
        ));
    }
    if let Some((number, actual)) = too_many_in_a_minute(recording).or_else(|| no_refill(recording)) {
        let expected =
            format!("at most {LIMIT} requests in a minute, by windows or by a bucket that refills");
        return Err(CheckError::broken(number, expected, actual));
    }
    match series.fit() {
        Fit::Unlimited => Err(CheckError::broken(
            None,
            format!("429 at the {} request", ordinal(LIMIT + 1)),
            format!("{} requests served in {millis} ms", series.served),
        )),
        Fit::TooSlow => Err(too_slow(series)),
        Fit::Bucket if is_no_bucket(recording, repeated) => {
            let series_of = if repeated { "twice" } else { "once" };
            let actual = format!("429 at the {at} request, {series_of}, and again more than a second later");
            if !repeated {
                return Err(CheckError::unjudged(
                    format!("{actual}, and the burst was not repeated"),
                    "check again",
                ));
            }
            let expected = format!("429 at the {} request", ordinal(LIMIT + 1));
            Err(CheckError::broken(series.refused, expected, actual))
        }
        Fit::Border if repeated => Err(CheckError::broken(
            series.refused,
            format!("429 at the {} request", ordinal(LIMIT + 1)),
            format!(
                "429 at the {at} request within {millis} ms, twice, so that no border of a window explains it"
            ),
        )),
        Fit::Border => Err(CheckError::unjudged(
            format!("the {at} request was the first to be refused, and the burst was not repeated"),
            "check again",
        )),
        Fit::Early => Ok(Held::With(format!("at the {at} request"))),
        Fit::Exact if repeated => {
            match Series::of(recording, 1).map(|first| (first.fit(), first.refused_at())) {
                Some((Fit::Border, first)) => Ok(Held::With(format!(
                    "aligned window: the {} request of a burst across the border, the {at} of the next",
                    ordinal(first)
                ))),
                _ => Ok(Held::With(format!("exact: the {at} request, once the key was idle"))),
            }
        }
        Fit::Exact => Ok(Held::With(format!("exact: the {at} request"))),
        Fit::Bucket => Ok(Held::With(format!(
            "refilling bucket: the {at} request, two more for each second of {millis} ms"
        ))),
    }
}

fn is_no_bucket(recording: &Recording, repeated: bool) -> bool {
    Series::is_no_bucket(recording, 1) && (!repeated || Series::is_no_bucket(recording, 2))
        || (repeated && Series::is_no_bucket(recording, 2))
}

/// More in some minute than two windows that touch let through, or a bucket that was full.
fn too_many_in_a_minute(recording: &Recording) -> Option<(u32, String)> {
    let (count, last) = most_in_a_minute(recording)?;
    (count > SERVED_MAX as usize).then(|| (last.number, format!("{count} requests served within 60 s")))
}

/// Returns the evidence against a window: it serves again after a second or two only at its border. A bucket
/// serves as many as it has refilled since; a new window serves nearly all.
fn no_refill(recording: &Recording) -> Option<(u32, String)> {
    const SLACK: u128 = 6;
    const NEARLY_ALL: usize = 100;
    for round in 1..=u8::MAX {
        let step = Purpose::Burst(Burst::Again { round });
        let again: Vec<_> = recording.exchanges.iter().filter(|it| it.purpose == step).collect();
        let (first, last) = (again.first()?, again.last()?);
        let refused =
            recording.exchanges.iter().rfind(|it| it.number < first.number && it.status() == Some(429));
        let refused = refused?;
        let brief = refused.answer().and_then(retry_after).is_some_and(|told| told.as_secs() <= 2);
        let served = again.iter().filter(|it| it.status() == Some(200)).count();
        let refilled = last.ended.saturating_sub(refused.ended).as_millis() / 500;
        if brief && served < NEARLY_ALL && served as u128 > refilled + SLACK {
            let actual = format!(
                "{served} requests served within {} ms after a 429, where a bucket of two a second has {refilled}",
                last.ended.saturating_sub(refused.ended).as_millis()
            );
            return Some((first.number, actual));
        }
    }
    None
}

/// A limit that answers with another status than 429: so many are served as the limit allows, all that come
/// later in the minute get a 5xx, and after the minute the key is served again.
fn refused_otherwise(recording: &Recording, series: Series) -> Option<(u32, String)> {
    /// So many refusals in a row are no passing weakness.
    const IN_A_ROW: usize = 60;
    if series.fit() != Fit::TooSlow || series.served < LIMIT || series.elapsed >= WINDOW {
        return None;
    }
    let shots =
        || recording.exchanges.iter().filter(|it| matches!(it.purpose, Purpose::Burst(Burst::Shot { .. })));
    let row: Vec<_> =
        shots().rev().take_while(|it| it.status().is_some_and(|status| status >= 500)).collect();
    let (first, last) = (row.last()?, row.first()?);
    let again = recording
        .exchanges
        .iter()
        .any(|it| it.caller == last.caller && it.status() == Some(200) && it.sent > last.ended);
    let all_refused = row.len() >= IN_A_ROW && row.len() + series.served as usize >= shots().count();
    (again && all_refused).then(|| {
        let actual = format!(
            "{} to {} requests in a row, after {} were served",
            first.summary(),
            row.len(),
            series.served
        );
        (first.number, actual)
    })
}

/// A refusal that is forgotten at once. While the time lasts that the server itself asked to wait, no window
/// ends, and a bucket lets no more through than it refills.
fn forgotten(recording: &Recording) -> Option<(u32, String)> {
    let first = in_rounds(recording).next()?;
    let refused =
        recording.exchanges.iter().rfind(|it| it.number < first.number && it.status() == Some(429))?;
    let told = retry_after(refused.answer()?)?;
    let until = refused.ended.saturating_add(told.saturating_sub(Duration::from_secs(1)));
    let meanwhile: Vec<_> = in_rounds(recording).filter(|it| it.ended < until).collect();
    if meanwhile.iter().any(|it| it.status() == Some(429)) {
        return None;
    }
    let served: Vec<_> = meanwhile.into_iter().filter(|it| it.status() == Some(200)).collect();
    (served.len() as u128 > refilled_in_rounds(recording)).then(|| {
        let actual = format!(
            "{} requests served right after a 429 that asked to wait {} s",
            served.len(),
            told.as_secs()
        );
        (served[0].number, actual)
    })
}

fn every_path(recording: &Recording) -> Judged {
    series(recording)?;
    answers_429(recording)?;
    let mut rounds: BTreeMap<u8, BTreeMap<&str, bool>> = BTreeMap::new();
    for it in &recording.exchanges {
        if let (Purpose::Burst(Burst::Round { round, .. }), Some(status)) = (&it.purpose, it.status()) {
            rounds.entry(*round).or_default().insert(&it.target, status == 429);
        }
    }
    let refused: BTreeSet<_> =
        rounds.values().flatten().filter(|(_, refused)| **refused).map(|(path, _)| *path).collect();
    // While a window ends or a bucket refills, being served proves nothing. It does when some other path
    // was refused in every round, and more was served than a bucket refills in that time.
    let telling = !rounds.is_empty() && rounds.values().all(|round| round.values().any(|refused| *refused));
    let too_brief = CheckError::unjudged(
        "the key was not refused long enough to try every path",
        "run the check closer to the server, then check again",
    );
    if !telling {
        return Err(too_brief);
    }
    let paths: BTreeSet<_> = rounds.values().flat_map(|round| round.keys().copied()).collect();
    match paths.difference(&refused).next() {
        None => Ok(Held::Plainly),
        Some(_) if served_in_rounds(recording) <= refilled_in_rounds(recording) => Err(too_brief),
        Some(path) => {
            let shown = recording
                .last(|it| it.target == **path && matches!(it.purpose, Purpose::Burst(Burst::Round { .. })));
            let actual = format!("{path} was served {} times while other paths were refused", rounds.len());
            Err(CheckError::broken(shown.map(|it| it.number), "429 on every path", actual))
        }
    }
}

fn in_rounds(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|it| matches!(it.purpose, Purpose::Burst(Burst::Round { .. })))
}

fn served_in_rounds(recording: &Recording) -> u128 {
    in_rounds(recording).filter(|it| it.status().is_some_and(|status| status != 429)).count() as u128
}

/// Returns the refill of a bucket of two a second meanwhile, and of one that may have been half full before.
fn refilled_in_rounds(recording: &Recording) -> u128 {
    let start = in_rounds(recording).next().map_or(Duration::ZERO, |it| it.sent);
    let end = in_rounds(recording).last().map_or(Duration::ZERO, |it| it.ended);
    end.saturating_sub(start).as_millis() / 500 + 1
}

fn per_key(recording: &Recording) -> Judged {
    series(recording)?;
    let other = burst_step(recording, &Burst::OtherKey);
    let Some(status) = other.and_then(Exchange::status) else {
        return Err(if other.is_some() { unanswered(other, "the live key") } else { never_refused() });
    };
    match status {
        429 => {}
        500.. => return Err(unanswered(other, "the live key")),
        _ => return Ok(Held::Plainly),
    }
    let busy = recording.exchanges.iter().any(|it| {
        it.caller == Caller::Own(Mode::Live)
            && !matches!(it.purpose, Purpose::Burst(_))
            && it.status() == Some(429)
    });
    if busy {
        return Err(CheckError::unjudged(
            "the live key is at its own limit",
            "check again with a live key that is less busy",
        ));
    }
    Err(CheckError::broken(
        other.map(|it| it.number),
        "200 to the live key while the test key is refused",
        "429",
    ))
}

fn retry_after_given(recording: &Recording) -> Judged {
    series(recording)?;
    for (exchange, answer) in answers_429(recording)? {
        let expected = "Retry-After with whole seconds or an HTTP date";
        match answer.header("retry-after") {
            None => return Err(CheckError::broken(exchange.number, expected, "no such header")),
            Some(text) => {
                let seconds = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                if !seconds && http_date(text).is_none() {
                    return Err(CheckError::broken(
                        exchange.number,
                        expected,
                        format!("Retry-After: {text}"),
                    ));
                }
                if let Some(served) = served_long_before(recording, exchange, answer) {
                    let after = (served.sent - exchange.ended).as_secs();
                    let actual = format!("Retry-After: {text}, and {} served {after} s later", served.target);
                    return Err(CheckError::broken(exchange.number, "how long to wait, in seconds", actual));
                }
            }
        }
    }
    Ok(Held::Plainly)
}

/// Returns the request that was served after a small part of the stated wait: a number of another unit looks like
/// that. A somewhat longer wait than needed is honest.
fn served_long_before<'a>(
    recording: &'a Recording,
    refused: &Exchange,
    answer: &Answer,
) -> Option<&'a Exchange> {
    const FACTOR_MAX: u32 = 30;
    let told = retry_after(answer)?;
    recording.exchanges.iter().find(|it| {
        let waited = it.sent.saturating_sub(refused.ended);
        it.caller == refused.caller
            && it.status() == Some(200)
            && waited >= WINDOW
            && waited.checked_mul(FACTOR_MAX).is_some_and(|span| span < told)
    })
}

fn retry_after_held(recording: &Recording) -> Judged {
    series(recording)?;
    let refused = answers_429(recording)?;
    let waited = recording.exchanges.iter().rev().find_map(|it| match &it.purpose {
        Purpose::Burst(Burst::Waited { span }) => Some((it, *span)),
        _ => None,
    });
    let Some((exchange, span)) = waited else {
        let told = refused.last().and_then(|(_, answer)| retry_after(answer));
        let Some(span) = told else {
            return Err(CheckError::unjudged(
                "no Retry-After says how long to wait",
                "see limits.retry_after",
            ));
        };
        if let Some(served) = served_after(recording, &refused) {
            return Ok(Held::With(format!("served when that time had passed, at {served}")));
        }
        return Err(CheckError::unjudged(
            format!("Retry-After asks for {} s, and that time did not pass during the check", span.as_secs()),
            "a check waits 90 s at most, and only where the target's clock can be waited for",
        ));
    };
    match exchange.status() {
        Some(429) if used_by_others(recording).is_some() => {
            Err(shared_key(used_by_others(recording).unwrap_or_default()))
        }
        Some(429) if asks_for_more(recording, exchange).is_some() => Err(CheckError::unjudged(
            "the limit also counts what it refuses, and asked for more each time",
            "a check waits twice; see the recording",
        )),
        Some(429) => Err(CheckError::broken(
            exchange.number,
            format!("served after {} s, as Retry-After said", span.as_secs()),
            exchange.summary(),
        )),
        Some(status) if status < 500 => {
            // A server that counts whole seconds may cut off what is left of one.
            let late = recording.exchanges.iter().any(|it| {
                matches!(it.purpose, Purpose::Burst(Burst::Waited { span: s }) if s < span)
                    && it.status() == Some(429)
            });
            Ok(if late { Held::With("a second later than it said".into()) } else { Held::Plainly })
        }
        _ => Err(unanswered(Some(exchange), "the request after the wait")),
    }
}

/// A request of the same key that was the first once a refusal's own time had passed, and served: whatever it was sent
/// for, it proves that the time did pass. Later refusals, as of what was asked during the wait, may have asked for more.
fn served_after<'a>(recording: &'a Recording, refused: &[(&Exchange, &Answer)]) -> Option<&'a str> {
    refused.iter().rev().find_map(|(last, answer)| {
        let until = last.ended.saturating_add(retry_after(answer)?);
        let first = recording.exchanges.iter().find(|it| it.caller == last.caller && it.sent >= until)?;
        (first.status() == Some(200)).then_some(first.target.as_str())
    })
}

/// Returns the reason to believe that another client uses the key, if there is one: the remaining quota falls
/// faster than we ask, or the two bursts were refused at different places.
fn used_by_others(recording: &Recording) -> Option<String> {
    /// A bucket refills this much meanwhile.
    const SLACK: u32 = 2;
    /// So many requests are on their way at the same time.
    const AT_ONCE: u64 = 5;
    let shots: Vec<_> = recording
        .exchanges
        .iter()
        .filter(|it| it.purpose == Purpose::Burst(Burst::Shot { series: 2 }))
        .collect();
    let left: Vec<(u64, u64)> = (1..)
        .zip(&shots)
        .filter(|(_, it)| it.status().is_some_and(|status| status < 429))
        .filter_map(|(place, it)| Some((place, remaining(it.answer()?)?)))
        .collect();
    if let (Some((first, before)), Some((last, after))) = (left.first(), left.last()) {
        let allowed = shots.iter().find_map(|it| limit_told(it.answer()?));
        if before.saturating_sub(*after) > last - first + AT_ONCE {
            return Some(format!("what is left fell from {before} to {after} in {} requests", last - first));
        }
        if allowed.is_some_and(|allowed| allowed >= u64::from(LIMIT) && before + first + AT_ONCE < allowed) {
            return Some(format!("only {before} requests were left after {first} of ours in a fresh window"));
        }
        return None;
    }
    let (first, second) = (Series::of(recording, 1)?, Series::of(recording, 2)?);
    let brief = refusal_of(recording, second).and_then(retry_after).is_some_and(|it| it.as_secs() < 5);
    (first.served.abs_diff(second.served) > SLACK || brief).then(|| {
        format!(
            "the bursts were refused at the {} and {} request",
            ordinal(first.refused_at()),
            ordinal(second.refused_at())
        )
    })
}

fn refusal_of(recording: &Recording, series: Series) -> Option<&Answer> {
    recording.exchange(series.refused?)?.answer()
}

/// Returns the remaining quota in a header, in any of the usual spellings.
fn remaining(answer: &Answer) -> Option<u64> {
    let named = ["x-ratelimit-remaining", "x-rate-limit-remaining", "ratelimit-remaining"];
    let plain = named.iter().find_map(|name| answer.header(name)?.trim().parse().ok());
    plain.or_else(|| parameter(answer.header("ratelimit")?, &["remaining", "r"]))
}

fn limit_told(answer: &Answer) -> Option<u64> {
    let named = ["x-ratelimit-limit", "x-rate-limit-limit", "ratelimit-limit"];
    let number = |text: &str| text.split([',', ';']).next()?.trim().parse().ok();
    let plain = named.iter().find_map(|name| number(answer.header(name)?));
    let policy = || parameter(answer.header("ratelimit-policy")?, &["q"]);
    plain.or_else(|| parameter(answer.header("ratelimit")?, &["limit"])).or_else(policy)
}

/// A number among the parameters of a structured header: `"default";r=50;t=30` or `limit=100, remaining=50`.
fn parameter(text: &str, names: &[&str]) -> Option<u64> {
    let mut parts = text.split([';', ',']).filter_map(|part| part.trim().split_once('='));
    parts.find_map(|(name, value)| names.contains(&name).then(|| value.trim().parse().ok())?)
}

fn shared_key(why: String) -> CheckError {
    CheckError::unjudged(
        format!("somebody else seems to use the test key: {why}"),
        "check again with a test key that nobody else uses meanwhile",
    )
}

fn json(recording: &Recording) -> Judged {
    series(recording)?;
    for (exchange, answer) in answers_429(recording)? {
        if !answer.body.json().is_some_and(|body| has_text(&body)) {
            return Err(CheckError::broken(exchange.number, "a message in JSON", exchange.summary()));
        }
        called_json(exchange, answer)?;
    }
    Ok(Held::Plainly)
}

pub(super) fn burst_step<'a>(recording: &'a Recording, step: &Burst) -> Option<&'a Exchange> {
    recording.last(|it| matches!(&it.purpose, Purpose::Burst(burst) if burst == step))
}

fn answers_429(recording: &Recording) -> Result<Vec<(&Exchange, &Answer)>, CheckError> {
    let of_burst = |it: &&Exchange| matches!(it.purpose, Purpose::Burst(_));
    let found: Vec<_> = recording
        .exchanges
        .iter()
        .filter(of_burst)
        .filter_map(|it| Some((it, it.answer().filter(|answer| answer.status == 429)?)))
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
