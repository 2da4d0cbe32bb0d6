//! Signs that another client uses the test key during the run.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::mode::Mode;
use conformance_model::reading::{BurstCounts, REQUESTS_PER_MINUTE, is_cached, retry_after};
use conformance_model::recording::{Burst, Caller, Exchange, Purpose, ReceivedResponse, Recording};
use conformance_model::verdict::CheckError;

use super::ordinal;

/// The tokens that a bucket may refill between two requests.
const REFILL_TOLERANCE: u32 = 2;
/// The maximum number of concurrent requests of the suite.
const CONCURRENT_MAX: u64 = 5;

/// Returns the evidence in the second burst that another client uses the key, if any. If the headers state a quota: it falls
/// faster than the suite sends requests, or starts below the limit. Otherwise: the two bursts were refused at different
/// requests, or the refusal states a short wait although the key is not a refilling bucket.
pub(super) fn used_by_others(recording: &Recording) -> Option<String> {
    /// The wait, in seconds, from which a full window needs no other client as an explanation.
    const LONG_WAIT_SECONDS: u64 = 5;
    let requests = second_burst_requests(recording);
    let quotas: Vec<(&Exchange, u64)> = requests
        .iter()
        .filter(|exchange| exchange.status().is_some_and(|status| status < 429))
        .filter_map(|exchange| Some((*exchange, remaining_quota(exchange.response()?)?)))
        .collect();
    if let (Some((first, before)), Some((last, after))) = (quotas.first(), quotas.last()) {
        let allowed = requests.iter().find_map(|exchange| limit_in_headers(exchange.response()?));
        let own_requests = requests_between(recording, first, last, |_| true);
        if before.saturating_sub(*after) > own_requests + CONCURRENT_MAX
            && !counts_repeatedly(recording, &quotas)
        {
            return Some(format!("the quota fell from {before} to {after} in {own_requests} requests"));
        }
        let sent_before =
            requests.iter().take_while(|exchange| exchange.number <= first.number).count() as u64;
        if allowed.is_some_and(|allowed| {
            allowed >= u64::from(REQUESTS_PER_MINUTE) && before + sent_before + CONCURRENT_MAX < allowed
        }) && !is_quota_of_both_keys(recording, before + sent_before)
        {
            return Some(format!(
                "only {before} requests were left after {sent_before} requests of the suite in a fresh window"
            ));
        }
        return None;
    }
    if serves_again_at_once(recording) {
        return None;
    }
    let (first, second) = (BurstCounts::from_burst(recording, 1)?, BurstCounts::from_burst(recording, 2)?);
    let is_short_wait = refusal_response(recording, second)
        .and_then(retry_after)
        .is_some_and(|delay| delay.as_secs() < LONG_WAIT_SECONDS);
    let counts_differ = first.served.abs_diff(second.served) > REFILL_TOLERANCE;
    (counts_differ || is_short_wait && !refills_steadily(recording)).then(|| {
        format!(
            "the bursts were refused at the {} and {} request",
            ordinal(first.refused_ordinal()),
            ordinal(second.refused_ordinal())
        )
    })
}

/// Returns the error for a key that another client uses.
pub(super) fn shared_key(why: &str) -> CheckError {
    CheckError::unjudged(
        format!("another client seems to use the test key: {why}"),
        "check again with a test key that is not used elsewhere meanwhile",
    )
}

fn second_burst_requests(recording: &Recording) -> Vec<&Exchange> {
    let purpose = Purpose::Burst(Burst::UntilRefused { series: 2 });
    recording.exchanges.iter().filter(|exchange| exchange.purpose == purpose).collect()
}

/// Returns the number of matching requests of the suite after one exchange and up to another.
fn requests_between(
    recording: &Recording,
    first: &Exchange,
    last: &Exchange,
    is_counted: impl Fn(&Exchange) -> bool,
) -> u64 {
    let between = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.number > first.number && exchange.number <= last.number);
    between.filter(|exchange| is_counted(exchange)).count() as u64
}

/// Returns `true` if the first responses to both keys stated this quota, counted before the request. Then it is the quota of
/// every key; another client would use one of them.
fn is_quota_of_both_keys(recording: &Recording, quota: u64) -> bool {
    let is_stated_to = |mode: Mode| {
        let first = recording.exchanges.iter().find(|exchange| exchange.caller == Caller::Own(mode));
        first.and_then(|exchange| remaining_quota(exchange.response()?)) == quota.checked_sub(1)
    };
    Mode::BOTH.into_iter().all(is_stated_to)
}

/// Returns `true` if the quota falls by the same number, two or more, for each request of one kind, and both bursts were
/// refused at the same request. Then the server counts these requests several times; another client would send at
/// irregular times.
fn counts_repeatedly(recording: &Recording, quotas: &[(&Exchange, u64)]) -> bool {
    /// The minimum number of quotas that show a regularity.
    const QUOTAS_MIN: usize = 10;
    /// The numbers of times that a server may count a request.
    const WEIGHTS: [u64; 5] = [2, 3, 4, 5, 10];
    /// The kinds of requests that a server may count several times.
    const KINDS: [fn(&Exchange) -> bool; 7] = [
        |_| true,
        |exchange| path(exchange).ends_with("/v1/account"),
        |exchange| {
            ["/v1/charges", "/v1/invoices", "/v1/events"].iter().any(|list| path(exchange).ends_with(list))
        },
        |exchange| path(exchange).ends_with("/v1/charges"),
        |exchange| path(exchange).ends_with("/v1/invoices"),
        |exchange| path(exchange).contains("/v1/events"),
        |exchange| exchange.target.contains("per_page=100"),
    ];
    let (Some(first), Some(second)) =
        (BurstCounts::from_burst(recording, 1), BurstCounts::from_burst(recording, 2))
    else {
        return false;
    };
    let Some((start, before)) = quotas.first().filter(|_| quotas.len() >= QUOTAS_MIN) else { return false };
    let is_test_key = |exchange: &Exchange| exchange.caller == Caller::Own(Mode::Test);
    let matches_weight = |is_kind: fn(&Exchange) -> bool,
                          is_counted: &dyn Fn(&Exchange) -> bool,
                          weight: u64| {
        quotas.iter().all(|(exchange, after)| {
            let of_kind =
                requests_between(recording, start, exchange, |other| is_counted(other) && is_kind(other));
            let expected = requests_between(recording, start, exchange, is_counted) + (weight - 1) * of_kind;
            before.saturating_sub(*after).abs_diff(expected) <= CONCURRENT_MAX * weight
        })
    };
    first.served.abs_diff(second.served) <= REFILL_TOLERANCE
        && KINDS.into_iter().any(|kind| {
            WEIGHTS.into_iter().any(|weight| {
                matches_weight(kind, &is_test_key, weight) || matches_weight(kind, &|_| true, weight)
            })
        })
}

fn path(exchange: &Exchange) -> &str {
    exchange.target.split('?').next().unwrap_or_default()
}

/// Returns `true` if the refused key was served again at 1.5 or more requests per second, as by a bucket that refills two. A
/// window that is shared with another client serves a request only when an old one leaves it.
fn refills_steadily(recording: &Recording) -> bool {
    const SERVED_MIN: u128 = 4;
    let Some((refused, after_refusal)) = requests_after_refusal(recording) else { return false };
    let Some(last) = after_refusal.last() else { return false };
    let served = after_refusal.iter().filter(|exchange| exchange.status() == Some(200)).count() as u128;
    let millis = last.ended.saturating_sub(refused.ended).as_millis();
    // 1.5 per second: the requests do not arrive exactly when a token does.
    served >= SERVED_MIN && served * 1_000 >= millis + millis / 2
}

/// Returns `true` if the key was served many times directly after the refusal. Another client that had used up the limit would
/// cause more refusals; this one has another cause, such as the number of concurrent requests.
fn serves_again_at_once(recording: &Recording) -> bool {
    /// More requests than a bucket of the limit refills in [`SHORT_TIME`].
    const SERVED_MIN: usize = 12;
    const SHORT_TIME: Duration = Duration::from_secs(2);
    let Some((refused, after_refusal)) = requests_after_refusal(recording) else { return false };
    let soon =
        after_refusal.iter().filter(|exchange| exchange.ended <= refused.ended.saturating_add(SHORT_TIME));
    let is_served = |exchange: &&&Exchange| exchange.status() == Some(200) && !is_cached(exchange);
    soon.clone().all(|exchange| exchange.status() != Some(429))
        && soon.filter(is_served).count() >= SERVED_MIN
}

/// Returns the first refusal of the second burst, and the later requests of the bursts with the same key, without those that were
/// sent at the same time.
fn requests_after_refusal(recording: &Recording) -> Option<(&Exchange, Vec<&Exchange>)> {
    let refused = recording.exchange(BurstCounts::from_burst(recording, 2)?.first_refused?)?;
    let is_later = |exchange: &&Exchange| {
        exchange.number > refused.number
            && exchange.sent >= refused.ended
            && exchange.caller == Caller::Own(Mode::Test)
    };
    let later = recording.exchanges.iter().filter(is_later);
    Some((refused, later.filter(|exchange| matches!(exchange.purpose, Purpose::Burst(_))).collect()))
}

/// Returns the response that refused a burst.
fn refusal_response(recording: &Recording, counts: BurstCounts) -> Option<&ReceivedResponse> {
    recording.exchange(counts.first_refused?)?.response()
}

/// The minimum number of quotas of the live key that show a common count.
const SHARED_QUOTAS_MIN: usize = 3;

/// Returns the remaining quotas that the responses to the live key state during the first burst, highest first, if those to
/// the test key skip all of them and at most as many others. Then both keys share one quota.
pub(super) fn shared_quotas(recording: &Recording) -> Option<Vec<u64>> {
    let quotas = |mode: Mode, is_wanted: fn(&Burst) -> bool| -> BTreeSet<u64> {
        let of_burst = recording.exchanges.iter().filter(|exchange| {
            exchange.caller == Caller::Own(mode)
                && matches!(&exchange.purpose, Purpose::Burst(burst) if is_wanted(burst))
                && exchange.status() == Some(200)
        });
        of_burst.filter_map(|exchange| remaining_quota(exchange.response()?)).collect()
    };
    let test = quotas(Mode::Test, |burst| matches!(burst, Burst::UntilRefused { series: 1 }));
    let live = quotas(Mode::Live, |burst| matches!(burst, Burst::ConcurrentLiveKey { series: 1 }));
    // Larger numbers are those of another quota, which keys may share.
    let (lowest, highest) =
        (*test.first()?, test.last().copied().filter(|highest| *highest < u64::from(REQUESTS_PER_MINUTE))?);
    let skipped: BTreeSet<u64> = (lowest..=highest).filter(|quota| !test.contains(quota)).collect();
    let live_in_range: BTreeSet<u64> =
        live.into_iter().filter(|quota| (lowest..=highest).contains(quota)).collect();
    // The keys may have sent other requests meanwhile.
    let is_shared = live_in_range.len() >= SHARED_QUOTAS_MIN
        && live_in_range.is_subset(&skipped)
        && skipped.len() <= 2 * live_in_range.len();
    is_shared.then(|| live_in_range.into_iter().rev().collect())
}

/// The minimum number of refusals with quota left that show another cause than the limit.
const PREMATURE_MIN: usize = 3;
/// The minimum quota left in each of them.
const QUOTA_LEFT_MIN: u64 = 20;

/// Returns the last refusal of the test key outside the bursts that states much quota left, with the quota. There must be
/// several such refusals, and all refusals of the bursts must state that no quota is left.
pub(super) fn premature_refusal(recording: &Recording) -> Option<(&Exchange, u64)> {
    let refused = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.caller == Caller::Own(Mode::Test) && exchange.status() == Some(429));
    let (in_burst, others): (Vec<_>, Vec<_>) =
        refused.partition(|exchange| matches!(exchange.purpose, Purpose::Burst(_)));
    let quota_left = |exchange: &&Exchange| remaining_quota(exchange.response()?);
    let is_used_up = !in_burst.is_empty() && in_burst.iter().all(|exchange| quota_left(exchange) == Some(0));
    let premature: Vec<_> = others
        .into_iter()
        .filter_map(|exchange| Some((exchange, quota_left(&exchange)?)))
        .filter(|(_, left)| *left >= QUOTA_LEFT_MIN)
        .collect();
    premature.last().copied().filter(|_| is_used_up && premature.len() >= PREMATURE_MIN)
}

/// Returns the remaining quota from any of the common headers.
fn remaining_quota(response: &ReceivedResponse) -> Option<u64> {
    let named = ["x-ratelimit-remaining", "x-rate-limit-remaining", "ratelimit-remaining"];
    let number_header = named.iter().find_map(|name| response.header(name)?.trim().parse().ok());
    number_header.or_else(|| parameter(response.header("ratelimit")?, &["remaining", "r"]))
}

/// Returns the limit from any of the common headers.
fn limit_in_headers(response: &ReceivedResponse) -> Option<u64> {
    let named = ["x-ratelimit-limit", "x-rate-limit-limit", "ratelimit-limit"];
    let number = |text: &str| text.split([',', ';']).next()?.trim().parse().ok();
    let number_header = named.iter().find_map(|name| number(response.header(name)?));
    let policy = || parameter(response.header("ratelimit-policy")?, &["q"]);
    number_header.or_else(|| parameter(response.header("ratelimit")?, &["limit"])).or_else(policy)
}

/// Returns a numeric parameter of a structured header, such as `"default";r=50;t=30` or `limit=100, remaining=50`.
fn parameter(text: &str, names: &[&str]) -> Option<u64> {
    let mut parts = text.split([';', ',']).filter_map(|part| part.trim().split_once('='));
    parts.find_map(|(name, value)| names.contains(&name).then(|| value.trim().parse().ok())?)
}
