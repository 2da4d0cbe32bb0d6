//! Chapter "limits": bursts, and what follows a refusal.

use std::time::Duration;

use conformance::{Burst, Ending, Exchange, Purpose, Recording, judge};
use serde_json::json;

use super::{TEST, check, exchange, recording};

/// Shots evenly over a time; the last one is refused if it says so.
pub(super) fn burst(served: u32, refused: bool, over: Duration) -> Recording {
    let shots = served + u32::from(refused);
    let shot = |at: u32| {
        let status = if refused && at == served { 429 } else { 200 };
        let purpose = Purpose::Burst(Burst::Shot { series: 1 });
        let mut shot = exchange(TEST, purpose, "/v1/account", status, &json!({ "message": "Wait." }));
        shot.sent = over * at / shots;
        shot.ended = over * (at + 1) / shots;
        shot
    };
    recording((0..shots).map(shot).collect())
}

#[test]
fn a_burst_is_read_by_how_long_it_took() {
    let none = Duration::ZERO;
    check(&burst(120, true, none), "limits.refused", "pass");
    check(&burst(123, true, Duration::from_secs(2)), "limits.refused", "pass");
    check(&burst(242, false, Duration::from_secs(9)), "limits.refused", "fail");
    check(&burst(150, true, none), "limits.refused", "not judged");
}

#[test]
fn too_slow_a_burst_decides_nothing() {
    let slow = burst(100, false, Duration::from_secs(56));
    check(&slow, "limits.refused", "not judged");
    check(&slow, "limits.served", "not judged");
    let rows = judge(&slow);
    let why = format!("{:?}", rows.iter().find(|row| row.id == "limits.refused").map(|row| &row.verdict));
    assert!(why.contains("only 100 requests could be sent in 56 s"), "{why}");
    assert!(why.contains("5 requests a second"), "{why}");
}

#[test]
fn an_early_refusal_is_repeated_before_it_is_judged() {
    check(&burst(119, true, Duration::ZERO), "limits.served", "not judged");
}

/// A burst, and three rounds over three paths of which one is served each time.
fn rounds(over: Duration) -> Recording {
    let mut burst = burst(120, true, Duration::ZERO);
    for round in 1..=3 {
        for (place, path) in (0..).zip(["/v1/account", "/v1/charges", "/v1/events"]) {
            let purpose = Purpose::Burst(Burst::Round { series: 1, round });
            let status = if place == 1 { 200 } else { 429 };
            let mut it = exchange(TEST, purpose, path, status, &json!({}));
            let at = u32::from(round - 1) * 3 + place;
            (it.sent, it.ended) = (over * at / 9, over * (at + 1) / 9);
            burst.exchanges.push(it);
        }
    }
    recording(burst.exchanges)
}

#[test]
fn a_path_is_exempt_only_if_no_bucket_explains_it() {
    check(&rounds(Duration::ZERO), "limits.every_path", "fail");
    check(&rounds(Duration::from_millis(900)), "limits.every_path", "fail");
    check(&rounds(Duration::from_millis(1_500)), "limits.every_path", "not judged");
}

/// A burst of which so many are served and so many get a 503, and a request a minute later.
fn unavailable(served: u32, refused: u32, afterwards: u16) -> Recording {
    let mut all = burst(served, false, Duration::ZERO).exchanges;
    let shot = Purpose::Burst(Burst::Shot { series: 1 });
    let busy = json!({ "message": "Service Temporarily Unavailable" });
    all.extend((0..refused).map(|_| exchange(TEST, shot.clone(), "/v1/account", 503, &busy)));
    let mut later = exchange(TEST, Purpose::Account, "/v1/account", afterwards, &json!({}));
    (later.sent, later.ended) = (Duration::from_secs(61), Duration::from_secs(61));
    all.push(later);
    recording(all)
}

#[test]
fn a_limit_that_answers_503_is_told_from_an_outage() {
    check(&unavailable(120, 121, 200), "limits.refused", "fail");
    check(&unavailable(120, 60, 200), "limits.refused", "fail");
    // Too few in a row, too early, or for good: that is a server in trouble.
    check(&unavailable(120, 59, 200), "limits.refused", "not judged");
    check(&unavailable(119, 121, 200), "limits.refused", "not judged");
    check(&unavailable(120, 121, 503), "limits.refused", "not judged");
}

/// A refusal that asks for some patience, then so many requests in rounds, each half a second after the other.
fn after_refusal(retry_after: &str, statuses: &[u16], apart: Duration) -> Recording {
    let mut all = burst(120, true, Duration::ZERO).exchanges;
    let told = |it: &mut Exchange| {
        if let Ending::Answered(answer) = &mut it.ending
            && answer.status == 429
        {
            answer.headers.push(("retry-after".into(), retry_after.into()));
        }
    };
    for (place, status) in (0_u32..).zip(statuses) {
        let purpose = Purpose::Burst(Burst::Round { series: 1, round: 1 });
        let mut it = exchange(TEST, purpose, &format!("/v1/{place}"), *status, &json!({}));
        (it.sent, it.ended) = (apart * place, apart * (place + 1));
        all.push(it);
    }
    all.iter_mut().for_each(told);
    recording(all)
}

#[test]
fn a_refusal_that_is_forgotten_at_once_is_no_limit() {
    let quick = Duration::from_millis(1);
    check(&after_refusal("60", &[200; 5], quick), "limits.refused", "fail");
    check(&after_refusal("60", &[200, 200, 429, 200, 200], quick), "limits.refused", "pass");
    // A window may end where the server says that it does, and a bucket refills.
    check(&after_refusal("1", &[200; 5], quick), "limits.refused", "pass");
    check(&after_refusal("60", &[200; 5], Duration::from_millis(500)), "limits.refused", "pass");
    check(&after_refusal("60", &[200], quick), "limits.refused", "pass");
}

#[test]
fn a_retry_after_of_another_unit_is_shown_by_who_is_served_before() {
    let served_after = |told: &str, seconds| {
        let mut all = after_refusal(told, &[429], Duration::ZERO).exchanges;
        let mut later = exchange(TEST, Purpose::Account, "/v1/account", 200, &json!({}));
        (later.sent, later.ended) = (Duration::from_secs(seconds), Duration::from_secs(seconds));
        all.push(later);
        recording(all)
    };
    check(&served_after("60000", 61), "limits.retry_after", "fail");
    check(&served_after("1831", 61), "limits.retry_after", "fail");
    check(&served_after("1830", 61), "limits.retry_after", "pass");
    check(&served_after("60000", 59), "limits.retry_after", "pass");
    check(&served_after("75", 61), "limits.retry_after", "pass");
}
