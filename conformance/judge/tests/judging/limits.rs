//! Chapter "limits": bursts, and requests after a refusal.

use std::time::Duration;

use conformance_judge::judge;
use conformance_model::body::Body;
use conformance_model::recording::{Burst, Caller, Exchange, ExchangeOutcome, Purpose, Recording};

use super::limit_windows::{FIRST_BURST, push_requests, wait_of};
use super::{LIVE, TEST, check, check_verdict_text, exchange, recording};

use serde_json::json;

/// Returns a burst: `served` requests, and a refused one if `is_refused`, evenly over a duration.
pub(super) fn burst(served: u32, is_refused: bool, over: Duration) -> Recording {
    let count = served + u32::from(is_refused);
    let request = |index: u32| {
        let status = if is_refused && index == served { 429 } else { 200 };
        let purpose = Purpose::Burst(Burst::UntilRefused { series: 1 });
        let mut request = exchange(TEST, purpose, "/v1/account", status, &json!({ "message": "Wait." }));
        request.sent = over * index / count;
        request.ended = over * (index + 1) / count;
        request
    };
    recording((0..count).map(request).collect())
}

#[test]
fn a_burst_is_classified_by_its_duration() {
    let none = Duration::ZERO;
    check(&burst(120, true, none), "limits.refused", "pass");
    check(&burst(123, true, Duration::from_secs(2)), "limits.refused", "pass");
    check(&burst(242, false, Duration::from_secs(9)), "limits.refused", "fail");
    check(&burst(150, true, none), "limits.refused", "not judged");
}

#[test]
fn a_slow_burst_is_not_judged() {
    let slow = burst(100, false, Duration::from_secs(56));
    check(&slow, "limits.refused", "not judged");
    check(&slow, "limits.served", "not judged");
    let rows = judge(&slow);
    let why = format!("{:?}", rows.iter().find(|row| row.id == "limits.refused").map(|row| &row.verdict));
    assert!(why.contains("only 100 requests could be sent in 56 s"), "{why}");
    assert!(why.contains("5 requests a second"), "{why}");
}

#[test]
fn an_early_refusal_is_not_judged_without_a_second_burst() {
    check(&burst(119, true, Duration::ZERO), "limits.served", "not judged");
}

/// Returns a burst and three rounds over three paths, of which one is served each time.
fn rounds(over: Duration) -> Recording {
    let mut burst = burst(120, true, Duration::ZERO);
    for round in 1..=3 {
        for (index, path) in (0..).zip(["/v1/account", "/v1/charges", "/v1/events"]) {
            let purpose = Purpose::Burst(Burst::Round { series: 1, round });
            let status = if index == 1 { 200 } else { 429 };
            let mut request = exchange(TEST, purpose, path, status, &json!({}));
            let position = u32::from(round - 1) * 3 + index;
            (request.sent, request.ended) = (over * position / 9, over * (position + 1) / 9);
            burst.exchanges.push(request);
        }
    }
    recording(burst.exchanges)
}

#[test]
fn a_path_without_a_limit_is_a_violation_unless_a_bucket_refilled() {
    check(&rounds(Duration::ZERO), "limits.every_path", "fail");
    check(&rounds(Duration::from_millis(900)), "limits.every_path", "fail");
    check(&rounds(Duration::from_millis(1_500)), "limits.every_path", "not judged");
}

/// Returns a burst with served requests, then 503 responses, and a request a minute later.
fn unavailable(served: u32, refused: u32, later_status: u16) -> Recording {
    let mut all = burst(served, false, Duration::ZERO).exchanges;
    let purpose = Purpose::Burst(Burst::UntilRefused { series: 1 });
    let busy = json!({ "message": "Service Temporarily Unavailable" });
    all.extend((0..refused).map(|_| exchange(TEST, purpose.clone(), "/v1/account", 503, &busy)));
    let mut later = exchange(TEST, Purpose::Account, "/v1/account", later_status, &json!({}));
    (later.sent, later.ended) = (Duration::from_secs(61), Duration::from_secs(61));
    all.push(later);
    recording(all)
}

#[test]
fn a_limit_that_returns_503_is_distinguished_from_an_outage() {
    check(&unavailable(120, 121, 200), "limits.refused", "fail");
    check(&unavailable(120, 60, 200), "limits.refused", "fail");
    // Too few in a row, too early, or permanently: an outage.
    check(&unavailable(120, 59, 200), "limits.refused", "not judged");
    check(&unavailable(119, 121, 200), "limits.refused", "not judged");
    check(&unavailable(120, 121, 503), "limits.refused", "not judged");
}

/// Returns a burst with requests served in two seconds, then six requests without a response for ten seconds each.
/// Meanwhile the live key is served, and a minute later the test key.
fn burst_without_responses(served: u32) -> Recording {
    let mut all = burst(served, false, Duration::from_secs(2)).exchanges;
    let set_seconds = |exchange: &mut Exchange, from: u64, to: u64| {
        (exchange.sent, exchange.ended) = (Duration::from_secs(from), Duration::from_secs(to));
    };
    for n in 0..6 {
        let purpose = Purpose::Burst(Burst::UntilRefused { series: 1 });
        let mut lost = exchange(TEST, purpose, "/v1/account", 200, &json!({}));
        lost.outcome = ExchangeOutcome::NoResponse("no response within 10 s".into());
        set_seconds(&mut lost, 2 + n * 10, 12 + n * 10);
        all.push(lost);
    }
    for (caller, second) in [(LIVE, 62), (TEST, 130)] {
        let mut later = exchange(caller, Purpose::Account, "/v1/account", 200, &json!({}));
        set_seconds(&mut later, second, second);
        all.push(later);
    }
    recording(all)
}

#[test]
fn a_limit_without_a_response_is_detected_even_if_slow() {
    check(&burst_without_responses(120), "limits.refused", "fail");
    check(&burst_without_responses(60), "limits.refused", "not judged");
}

/// Returns a burst with a refusal, then requests of a round with these statuses. All refusals have the `Retry-After`.
fn after_refusal(retry_after: &str, statuses: &[u16], apart: Duration) -> Recording {
    let mut all = burst(120, true, Duration::ZERO).exchanges;
    let delay = |exchange: &mut Exchange| {
        if let ExchangeOutcome::Answered(response) = &mut exchange.outcome
            && response.status == 429
        {
            response.headers.push(("retry-after".into(), retry_after.into()));
        }
    };
    for (index, status) in (0_u32..).zip(statuses) {
        let purpose = Purpose::Burst(Burst::Round { series: 1, round: 1 });
        let mut request = exchange(TEST, purpose, &format!("/v1/{index}"), *status, &json!({}));
        (request.sent, request.ended) = (apart * index, apart * (index + 1));
        all.push(request);
    }
    all.iter_mut().for_each(delay);
    recording(all)
}

#[test]
fn a_key_that_is_served_soon_after_a_refusal_is_a_violation() {
    let quick = Duration::from_millis(1);
    check(&after_refusal("60", &[200; 5], quick), "limits.refused", "fail");
    check(&after_refusal("60", &[200, 200, 429, 200, 200], quick), "limits.refused", "pass");
    // A window may end at the stated time, and a bucket refills.
    check(&after_refusal("1", &[200; 5], quick), "limits.refused", "pass");
    check(&after_refusal("60", &[200; 5], Duration::from_millis(500)), "limits.refused", "pass");
    check(&after_refusal("60", &[200], quick), "limits.refused", "pass");
}

#[test]
fn retry_after_has_bounds() {
    let refused_with = |delay: &str| after_refusal(delay, &[429], Duration::ZERO);
    for (delay, expected) in [
        ("60", "pass"),
        ("61", "pass"),
        ("62", "pass"),
        ("63", "fail"),
        ("75", "fail"),
        ("120", "fail"),
        ("60000", "fail"),
    ] {
        check(&refused_with(delay), "limits.retry_after", expected);
    }
    check_verdict_text(&refused_with("99999999999999999999999"), "limits.retry_after", "at most 60 s");
    check_verdict_text(&refused_with("120"), "limits.retry_after", "Retry-After: 120");
    // A limiter that counts refusals adds half a second for each one.
    let all = after_refusal("60", &[429; 10], Duration::ZERO).exchanges;
    let with_last = |delay: &str| {
        let mut all = all.clone();
        set_retry_after(all.last_mut().expect("a refusal"), delay);
        recording(all)
    };
    check(&with_last("66"), "limits.retry_after", "pass");
    check(&with_last("68"), "limits.retry_after", "fail");
}

pub(super) fn set_retry_after(exchange: &mut Exchange, delay: &str) {
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        panic!("the exchange has a response")
    };
    response.headers.retain(|(name, _)| name != "retry-after");
    response.headers.push(("retry-after".into(), delay.into()));
}

#[test]
fn retry_after_does_not_grow_while_the_key_is_refused() {
    let all = after_refusal("10", &[429, 429, 429], Duration::from_secs(1)).exchanges;
    for (delay, expected) in [("10", "pass"), ("15", "pass"), ("40", "fail")] {
        let mut all = all.clone();
        set_retry_after(all.last_mut().expect("a refusal"), delay);
        check(&recording(all.clone()), "limits.retry_after", expected);
        // A served request in between starts a new window.
        let served = exchange(TEST, Purpose::Account, "/v1/account", 200, &json!({}));
        let before_last = all.len() - 1;
        all.insert(before_last, served);
        check(&recording(all), "limits.retry_after", "pass");
    }
}

#[test]
fn retry_after_occurs_once() {
    for (more, expected) in [(&[][..], "pass"), (&["60"], "fail"), (&["120"], "fail")] {
        let mut all = after_refusal("60", &[], Duration::ZERO).exchanges;
        let ExchangeOutcome::Answered(response) = &mut all[120].outcome else {
            panic!("the exchange has a response")
        };
        response.headers.extend(more.iter().map(|text| ("retry-after".to_owned(), (*text).to_owned())));
        check(&recording(all), "limits.retry_after", expected);
    }
    check(&after_refusal("60, 120", &[], Duration::ZERO), "limits.retry_after", "fail");
}

#[test]
fn a_body_that_is_not_utf_8_is_not_json() {
    let mut all = burst(120, true, Duration::ZERO).exchanges;
    check(&recording(all.clone()), "limits.json", "pass");
    let ExchangeOutcome::Answered(response) = &mut all[120].outcome else {
        panic!("the exchange has a response")
    };
    response.body = Body::from_bytes(b"{\"message\":\"\xff\"}");
    check(&recording(all), "limits.json", "fail");
}

/// Returns the requests of a burst with another number, sent some seconds later.
fn later_burst(series: u8, seconds: u64, burst: Recording) -> Vec<Exchange> {
    let shift = |mut exchange: Exchange| {
        exchange.purpose = Purpose::Burst(Burst::UntilRefused { series });
        exchange.sent += Duration::from_secs(seconds);
        exchange.ended += Duration::from_secs(seconds);
        exchange
    };
    burst.exchanges.into_iter().map(shift).collect()
}

#[test]
fn a_repeated_burst_is_reported_with_the_previous_one() {
    let brief = |served| burst(served, true, Duration::ZERO);
    let both = |first: u32, series, second: Recording| {
        recording([brief(first).exchanges, later_burst(series, 130, second)].concat())
    };
    check_verdict_text(&brief(120), "limits.refused", "\"exact: the 121st request\"");
    let aligned = "aligned window: the 151st request of a burst across the border, the 121st of the next";
    check_verdict_text(&both(150, 2, brief(120)), "limits.refused", aligned);
    let idle = "\"exact: the 121st request, once the key was idle\"";
    check_verdict_text(&both(119, 2, brief(120)), "limits.refused", idle);
    check(&both(119, 2, brief(119)), "limits.served", "fail");
    check(&both(150, 2, brief(150)), "limits.refused", "fail");
    for (second, expected) in [
        (brief(120), "request; in the next minute exact, at the 121st"),
        (brief(110), "request; in the next minute early, at the 111th"),
        (brief(150), "request; in the next minute at the 151st: its windows begin elsewhere"),
        (burst(123, true, Duration::from_secs(2)), "a refilling bucket still, at the 124th"),
    ] {
        check_verdict_text(&both(120, Burst::NEXT_MINUTE, second), "limits.refused", expected);
    }
}

#[test]
fn the_refused_request_is_reported_as_an_ordinal() {
    for (served, ordinal) in [
        (0, "1st"),
        (1, "2nd"),
        (2, "3rd"),
        (3, "4th"),
        (10, "11th"),
        (11, "12th"),
        (12, "13th"),
        (20, "21st"),
        (21, "22nd"),
        (22, "23rd"),
        (110, "111th"),
        (111, "112th"),
        (112, "113th"),
    ] {
        let burst = burst(served, true, Duration::ZERO);
        check_verdict_text(&burst, "limits.refused", &format!("at the {ordinal} request"));
    }
}

#[test]
fn the_limit_is_served_in_any_duration() {
    check(&burst(120, false, Duration::from_secs(56)), "limits.served", "pass");
    check(&burst(119, false, Duration::from_secs(56)), "limits.served", "not judged");
}

#[test]
fn the_reason_for_a_missing_burst_is_reported() {
    let mut none = recording(vec![]);
    none.no_burst = Some("--quick leaves it out".into());
    check_verdict_text(&none, "limits.second_key", "there was no burst: --quick leaves it out");
}

#[test]
fn a_5xx_counts_as_a_limit_only_if_the_same_key_is_served_later() {
    let with_last = |change: fn(&mut Exchange)| {
        let mut all = unavailable(120, 121, 200);
        change(all.exchanges.last_mut().expect("the request a minute later"));
        all
    };
    check(&with_last(|exchange| exchange.caller = LIVE), "limits.refused", "not judged");
    check(&with_last(|exchange| exchange.sent = Duration::ZERO), "limits.refused", "not judged");
    // A request without a response was not refused.
    let mut all = unavailable(120, 60, 200).exchanges;
    let mut lost = all[0].clone();
    lost.outcome = ExchangeOutcome::NoResponse("connection reset".into());
    all.splice(120..120, vec![lost; 100]);
    check(&recording(all), "limits.refused", "not judged");
}

#[test]
fn only_a_request_that_ended_before_retry_after_was_served_too_early() {
    let mut at_the_end = after_refusal("2", &[200; 5], Duration::ZERO);
    let in_rounds =
        |exchange: &&mut Exchange| matches!(exchange.purpose, Purpose::Burst(Burst::Round { .. }));
    for exchange in at_the_end.exchanges.iter_mut().filter(in_rounds) {
        (exchange.sent, exchange.ended) = (Duration::from_secs(1), Duration::from_secs(1));
    }
    check(&at_the_end, "limits.refused", "pass");
    let mut refused_again = after_refusal("60", &[200; 5], Duration::ZERO).exchanges;
    let still = Purpose::Burst(Burst::StillRefused);
    refused_again.push(exchange(TEST, still, "/v1/account", 429, &json!({})));
    check(&recording(refused_again), "limits.refused", "fail");
}

#[test]
fn the_finding_names_the_last_served_request_of_the_path() {
    check_verdict_text(&rounds(Duration::ZERO), "limits.every_path", "exchange: Some(129)");
}

/// Returns a burst that ended in a refusal, one request after it, and further exchanges.
fn burst_and_request(caller: Caller, request: Burst, status: u16, more: &[Exchange]) -> Recording {
    let mut all = burst(120, true, Duration::from_secs(5)).exchanges;
    all.push(exchange(caller, Purpose::Burst(request), "/v1/account", status, &json!({})));
    all.extend_from_slice(more);
    recording(all)
}

#[test]
fn the_other_key_has_a_separate_limit_unless_it_is_busy() {
    let refused = |caller| exchange(caller, Purpose::Account, "/v1/account", 429, &json!({}));
    for (status, more, expected) in [
        (200, None, "pass"),
        (500, None, "not judged"),
        (503, None, "not judged"),
        (429, None, "fail"),
        (429, Some(TEST), "fail"),
        (429, Some(LIVE), "not judged"),
    ] {
        let more: Vec<_> = more.into_iter().map(refused).collect();
        check(
            &burst_and_request(LIVE, Burst::LiveKeyAfterRefusal, status, &more),
            "limits.per_key",
            expected,
        );
    }
}

#[test]
fn a_key_is_served_after_the_stated_wait() {
    for (status, expected) in
        [(200, "pass"), (404, "pass"), (429, "fail"), (500, "not judged"), (503, "not judged")]
    {
        check(&burst_and_request(TEST, wait_of(60), status, &[]), "limits.retry_after_held", expected);
    }
    let served = burst_and_request(TEST, wait_of(60), 200, &[]);
    check_verdict_text(&served, "limits.retry_after_held", "note: None");
    let again = exchange(TEST, Purpose::Burst(wait_of(61)), "/v1/account", 200, &json!({}));
    let late = burst_and_request(TEST, wait_of(60), 429, &[again]);
    check_verdict_text(&late, "limits.retry_after_held", "a second later than stated");
}

#[test]
fn both_bursts_are_classified_together() {
    let brief = |served| burst(served, true, Duration::ZERO);
    let both = |first: u32, second: Recording| {
        recording([brief(first).exchanges, later_burst(2, 130, second)].concat())
    };
    let bucket = || burst(123, true, Duration::from_secs(2));
    check(&both(201, bucket()), "limits.refused", "fail");
    check_verdict_text(
        &both(201, bucket()),
        "limits.refused",
        "429 at the 202nd request after 0 ms; in the second burst",
    );
    check(&both(119, bucket()), "limits.refused", "pass");
    check(&both(119, brief(150)), "limits.refused", "not judged");
    check(&both(240, brief(240)), "limits.refused", "fail");
    check(&both(64, brief(64)), "limits.refused", "not judged");
    check(&both(64, brief(64)), "limits.served", "fail");
    // Both bursts are refused early, at different requests: another client may use the key.
    check(&both(64, brief(20)), "limits.refused", "not judged");
}

#[test]
fn an_early_refusal_may_be_explained_by_requests_of_the_minute_before() {
    let repeated = |wait: u64| {
        let mut second = later_burst(2, wait, burst(3, true, Duration::ZERO));
        for exchange in &mut second {
            let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
                panic!("the exchange has a response")
            };
            response.headers.push(("x-ratelimit-remaining".into(), "116".into()));
        }
        recording([burst(126, true, Duration::ZERO).exchanges, second].concat())
    };
    check(&repeated(61), "limits.served", "not judged");
    check(&repeated(130), "limits.served", "fail");
}

#[test]
fn a_bucket_is_reported_with_the_requests_it_served() {
    let expected = "230 requests were served within one minute";
    check_verdict_text(&burst(230, true, Duration::from_secs(55)), "limits.refused", expected);
}

#[test]
fn a_consistent_refusal_of_another_kind_is_distinguished_from_an_outage_by_the_other_key() {
    let with_refusals = |status: Option<u16>, live_status: u16| {
        let mut all = burst(120, false, Duration::ZERO).exchanges;
        let add_refusals = |all: &mut Vec<Exchange>| {
            push_requests(all, 1, 3, status.unwrap_or(500), "", &FIRST_BURST);
            if status.is_none() {
                let last = all.len() - 3;
                all[last..]
                    .iter_mut()
                    .for_each(|exchange| exchange.outcome = ExchangeOutcome::NoResponse("closed".into()));
            }
        };
        add_refusals(&mut all);
        let request = Purpose::Burst(Burst::ConcurrentLiveKey { series: 1 });
        all.push(exchange(LIVE, request, "/v1/account", live_status, &json!({})));
        add_refusals(&mut all);
        push_requests(&mut all, 62, 1, 200, "", &Burst::StillRefused);
        recording(all)
    };
    for status in [Some(403), Some(500), Some(502), Some(503), Some(302), None] {
        check(&with_refusals(status, 200), "limits.refused", "fail");
        check(&with_refusals(status, 503), "limits.refused", "not judged");
    }
}

#[test]
fn a_quota_that_falls_by_two_in_both_bursts_is_not_another_client() {
    let both = |first: u32, quota_per_request: u32| {
        let mut all = burst(first, true, Duration::ZERO).exchanges;
        for (number, mut exchange) in (1..).zip(later_burst(2, 180, burst(60, true, Duration::ZERO))) {
            let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
                panic!("the exchange has a response")
            };
            let remaining = 120_u32.saturating_sub(number * quota_per_request);
            response.headers.push(("x-ratelimit-remaining".into(), remaining.to_string()));
            all.push(exchange);
        }
        recording(all)
    };
    check(&both(60, 2), "limits.served", "fail");
    check(&both(90, 2), "limits.served", "not judged");
}

#[test]
fn the_limit_covers_head() {
    let with = |purpose: Burst, status: u16| {
        let mut all = rounds(Duration::ZERO).exchanges;
        all.iter_mut()
            .filter(|exchange| exchange.target == "/v1/charges")
            .for_each(|exchange| set_status(exchange, 429));
        for round in 1..=3 {
            let purpose = match &purpose {
                Burst::Head { .. } => Burst::Head { round },
                _ => Burst::Round { series: 1, round },
            };
            all.push(exchange(TEST, Purpose::Burst(purpose), "/v1/events/x", status, &json!({})));
        }
        recording(all)
    };
    let round = || Burst::Round { series: 1, round: 1 };
    for (purpose, status, expected) in [
        (Burst::Head { round: 1 }, 429, "pass"),
        (Burst::Head { round: 1 }, 405, "pass"),
        (Burst::Head { round: 1 }, 200, "fail"),
        (round(), 404, "pass"),
        (round(), 200, "fail"),
    ] {
        check(&with(purpose, status), "limits.every_path", expected);
    }
    check_verdict_text(&with(round(), 404), "limits.every_path", "above the limit, unknown objects get 404");
}

fn set_status(exchange: &mut Exchange, status: u16) {
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        panic!("the exchange has a response")
    };
    response.status = status;
}

#[test]
fn a_refused_key_is_not_reported_as_never_refused() {
    let expected =
        "the test key was refused (exchange 121), and no request with the live key was sent meanwhile";
    check_verdict_text(&burst(120, true, Duration::ZERO), "limits.per_key", expected);
    check_verdict_text(&burst(242, false, Duration::ZERO), "limits.per_key", "no request was refused");
}

#[test]
fn a_live_key_that_is_refused_with_the_test_key_is_not_busy() {
    let with = |second: u64| {
        let mut all = burst_and_request(LIVE, Burst::LiveKeyAfterRefusal, 429, &[]).exchanges;
        let mut refusal = exchange(LIVE, Purpose::Account, "/v1/account", 429, &json!({}));
        (refusal.sent, refusal.ended) = (Duration::from_secs(second), Duration::from_secs(second));
        all.push(refusal);
        recording(all)
    };
    check(&with(30), "limits.per_key", "fail");
    check(&with(90), "limits.per_key", "not judged");
}
