//! Chapter "limits": bursts, and requests after a refusal.

use std::time::Duration;

use conformance_judge::judge;
use conformance_model::recording::{Burst, Caller, Ending, Exchange, Purpose, Recording};

use super::{LIVE, TEST, check, check_says, exchange, recording};

use serde_json::json;

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

/// The burst of that number, so long after the start.
fn later(series: u8, seconds: u64, burst: Recording) -> Vec<Exchange> {
    let moved = |mut it: Exchange| {
        it.purpose = Purpose::Burst(Burst::Shot { series });
        it.sent += Duration::from_secs(seconds);
        it.ended += Duration::from_secs(seconds);
        it
    };
    burst.exchanges.into_iter().map(moved).collect()
}

#[test]
fn a_repeated_burst_is_told_with_the_one_before() {
    let brief = |served| burst(served, true, Duration::ZERO);
    let both = |first: u32, series, second: Recording| {
        recording([brief(first).exchanges, later(series, 130, second)].concat())
    };
    check_says(&brief(120), "limits.refused", "\"exact: the 121st request\"");
    let aligned = "aligned window: the 151st request of a burst across the border, the 121st of the next";
    check_says(&both(150, 2, brief(120)), "limits.refused", aligned);
    let idle = "\"exact: the 121st request, once the key was idle\"";
    check_says(&both(119, 2, brief(120)), "limits.refused", idle);
    check(&both(119, 2, brief(119)), "limits.served", "fail");
    check(&both(150, 2, brief(150)), "limits.refused", "fail");
    let settling = 3;
    for (second, says) in [
        (brief(120), "request; in the next minute exact, at the 121st"),
        (brief(110), "request; in the next minute early, at the 111th"),
        (brief(150), "request; in the next minute at the 151st: its windows begin elsewhere"),
        (burst(123, true, Duration::from_secs(2)), "a refilling bucket still, at the 124th"),
    ] {
        check_says(&both(120, settling, second), "limits.refused", says);
    }
}

#[test]
fn the_request_that_was_refused_is_counted_as_people_do() {
    for (served, says) in [
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
        check_says(&burst, "limits.refused", &format!("at the {says} request"));
    }
}

#[test]
fn as_many_as_the_limit_allows_were_served_however_long_it_took() {
    check(&burst(120, false, Duration::from_secs(56)), "limits.served", "pass");
    check(&burst(119, false, Duration::from_secs(56)), "limits.served", "not judged");
    let mut none = recording(vec![]);
    none.no_burst = Some("--quick leaves it out".into());
    check_says(&none, "limits.second_key", "there was no burst: --quick leaves it out");
}

#[test]
fn only_the_same_key_served_afterwards_shows_that_a_5xx_was_a_limit() {
    let with_last = |change: fn(&mut Exchange)| {
        let mut all = unavailable(120, 121, 200);
        change(all.exchanges.last_mut().expect("the later one"));
        all
    };
    check(&with_last(|it| it.caller = LIVE), "limits.refused", "not judged");
    check(&with_last(|it| it.sent = Duration::ZERO), "limits.refused", "not judged");
    // What got no answer in between was not refused.
    let mut all = unavailable(120, 60, 200).exchanges;
    let mut lost = all[0].clone();
    lost.ending = Ending::Lost("connection reset".into());
    all.splice(120..120, vec![lost; 100]);
    check(&recording(all), "limits.refused", "not judged");
}

#[test]
fn only_what_ended_before_the_told_time_was_served_too_early() {
    let mut at_the_end = after_refusal("2", &[200; 5], Duration::ZERO);
    let in_rounds = |it: &&mut Exchange| matches!(it.purpose, Purpose::Burst(Burst::Round { .. }));
    for it in at_the_end.exchanges.iter_mut().filter(in_rounds) {
        (it.sent, it.ended) = (Duration::from_secs(1), Duration::from_secs(1));
    }
    check(&at_the_end, "limits.refused", "pass");
    let mut refused_again = after_refusal("60", &[200; 5], Duration::ZERO).exchanges;
    let still = Purpose::Burst(Burst::StillRefused);
    refused_again.push(exchange(TEST, still, "/v1/account", 429, &json!({})));
    check(&recording(refused_again), "limits.refused", "fail");
}

#[test]
fn the_finding_shows_the_last_time_that_the_path_was_served() {
    check_says(&rounds(Duration::ZERO), "limits.every_path", "exchange: Some(129)");
}

/// A burst that ended in a refusal, and one request after it.
fn and_then(caller: Caller, step: Burst, status: u16, more: &[Exchange]) -> Recording {
    let mut all = burst(120, true, Duration::from_secs(5)).exchanges;
    all.push(exchange(caller, Purpose::Burst(step), "/v1/account", status, &json!({})));
    all.extend_from_slice(more);
    recording(all)
}

#[test]
fn the_other_key_has_a_limit_of_its_own_unless_it_is_busy() {
    let asked = |caller| exchange(caller, Purpose::Account, "/v1/account", 429, &json!({}));
    for (status, more, expected) in [
        (200, None, "pass"),
        (500, None, "not judged"),
        (503, None, "not judged"),
        (429, None, "fail"),
        (429, Some(TEST), "fail"),
        (429, Some(LIVE), "not judged"),
    ] {
        let more: Vec<_> = more.into_iter().map(asked).collect();
        check(&and_then(LIVE, Burst::OtherKey, status, &more), "limits.per_key", expected);
    }
}

#[test]
fn whoever_waited_as_told_is_served() {
    let waited = |seconds| Burst::Waited { span: Duration::from_secs(seconds) };
    for (status, expected) in
        [(200, "pass"), (404, "pass"), (429, "fail"), (500, "not judged"), (503, "not judged")]
    {
        check(&and_then(TEST, waited(60), status, &[]), "limits.retry_after_held", expected);
    }
    let held = and_then(TEST, waited(60), 200, &[]);
    check_says(&held, "limits.retry_after_held", "note: None");
    let again = exchange(TEST, Purpose::Burst(waited(61)), "/v1/account", 200, &json!({}));
    let late = and_then(TEST, waited(60), 429, &[again]);
    check_says(&late, "limits.retry_after_held", "a second later than it said");
}

#[test]
fn the_finding_counts_from_the_refusal() {
    let mut all = burst(120, true, Duration::from_secs(5)).exchanges;
    let Ending::Answered(answer) = &mut all[120].ending else { panic!("an answer") };
    answer.headers.push(("retry-after".into(), "60000".into()));
    let mut served = exchange(TEST, Purpose::Account, "/v1/account", 200, &json!({}));
    (served.sent, served.ended) = (Duration::from_secs(66), Duration::from_secs(66));
    all.push(served);
    check_says(&recording(all.clone()), "limits.retry_after", "/v1/account served 61 s later");
    // What another key gets says nothing about the wait of this one.
    all[121].caller = LIVE;
    check(&recording(all), "limits.retry_after", "pass");
}
