//! The quotas that a server states to the keys, and keys that are refused together.

use std::time::Duration;

use conformance_model::mode::Mode;
use conformance_model::recording::{Burst, Caller, Exchange, ExchangeOutcome, Purpose};
use serde_json::json;

use super::{LIVE, TEST, check, exchange, recording};

/// Returns a request with the time and the remaining quota of its response.
fn request(caller: Caller, purpose: Purpose, target: &str, second: u64, quota: Option<u64>) -> Exchange {
    let status = if quota.is_some() { 200 } else { 429 };
    let mut request = exchange(caller, purpose, target, status, &json!({ "message": "m" }));
    (request.sent, request.ended) = (Duration::from_secs(second), Duration::from_secs(second));
    if let (ExchangeOutcome::Answered(response), Some(quota)) = (&mut request.outcome, quota) {
        response.headers.push(("ratelimit-limit".into(), "120".into()));
        response.headers.push(("ratelimit-remaining".into(), quota.to_string()));
    }
    request
}

/// Returns the requests of a burst until the refusal. `cost` is the number that the server counts for each target.
fn burst(series: u8, quota: u64, targets: &[(&'static str, u64)]) -> Vec<Exchange> {
    let second = 130 * u64::from(series - 1);
    let purpose = Purpose::Burst(Burst::UntilRefused { series });
    let mut left = quota;
    let mut requests = Vec::new();
    for (target, cost) in targets.iter().cycle() {
        let after = left.checked_sub(*cost);
        requests.push(request(TEST, purpose.clone(), target, second, after));
        let Some(after) = after else { return requests };
        left = after;
    }
    requests
}

#[test]
fn a_small_quota_of_both_keys_is_the_limit() {
    const ACCOUNT: [(&str, u64); 1] = [("/v1/account", 1)];
    for (live_quota, expected) in [(59, "fail"), (119, "not judged")] {
        let first = request(LIVE, Purpose::Account, "/v1/account", 0, Some(live_quota));
        let bursts = [burst(1, 60, &ACCOUNT), burst(2, 60, &ACCOUNT)].concat();
        check(&recording([vec![first], bursts].concat()), "limits.served", expected);
    }
}

#[test]
fn long_pages_that_count_several_times_are_a_violation() {
    let targets = |cost| [("/v1/account", 1), ("/v1/events?per_page=100", cost)];
    for (cost, expected) in [(4, "fail"), (1, "pass")] {
        let bursts = [burst(1, 120, &targets(cost)), burst(2, 120, &targets(cost))].concat();
        check(&recording(bursts), "limits.served", expected);
    }
}

#[test]
fn keys_that_are_refused_together_have_no_limit_of_their_own() {
    let refused = |caller, second| request(caller, Purpose::Account, "/v1/account", second, None);
    let served = request(LIVE, Purpose::Burst(Burst::LiveKeyAfterRefusal), "/v1/account", 1, Some(100));
    let first_burst = [burst(1, 120, &[("/v1/account", 1)]), vec![served]].concat();
    for (seconds, expected) in [([90, 91, 92], "fail"), ([90, 200, 300], "pass")] {
        let callers = [LIVE, Caller::SecondKey, Caller::OtherAccount];
        let later = callers.into_iter().zip(seconds).map(|(caller, second)| refused(caller, second));
        let all = first_burst.iter().cloned().chain(later).collect();
        check(&recording(all), "limits.per_key", expected);
    }
}

/// Returns a request of the first burst, whose response states this remaining quota.
fn burst_request(caller: Caller, quota: u64, status: u16) -> Exchange {
    let burst = match caller {
        Caller::Own(Mode::Live) => Burst::ConcurrentLiveKey { series: 1 },
        _ => Burst::UntilRefused { series: 1 },
    };
    let mut exchange =
        exchange(caller, Purpose::Burst(burst), "/v1/account", status, &json!({ "message": "m" }));
    if let ExchangeOutcome::Answered(response) = &mut exchange.outcome {
        response.headers.push(("x-ratelimit-remaining".into(), quota.to_string()));
        response.headers.push(("retry-after".into(), "60".into()));
    }
    exchange
}

#[test]
fn a_quota_that_two_keys_share_is_a_violation() {
    // The responses to the live key state the quotas `live`. Those to the test key state the 120 quotas up to `largest`,
    // except `skipped`.
    let requests = |largest: u64, live: &[u64], skipped: &[u64]| {
        let live_requests = live.iter().map(|quota| burst_request(LIVE, *quota, 200));
        let mut all: Vec<_> = live_requests.collect();
        let quotas = (largest - 119..=largest).rev().filter(|quota| !skipped.contains(quota));
        all.extend(quotas.map(|quota| burst_request(TEST, quota, 200)));
        all.push(burst_request(TEST, 0, 429));
        recording(all)
    };
    let live = [110, 100, 90];
    check(&requests(119, &live, &live), "limits.per_key", "fail");
    check(&requests(119, &live, &[]), "limits.per_key", "not judged");
    // A larger quota, such as one for an account and a day, may be shared.
    let daily = live.map(|quota| quota + 9_000);
    check(&requests(9_119, &daily, &daily), "limits.per_key", "not judged");
}
