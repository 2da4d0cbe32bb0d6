//! Answers that a cache gave: what shows them, and what is no longer said because of them.

use std::time::Duration;

use conformance_model::recording::{Caller, Ending, Exchange, Forgery, List, PageAsk};

use super::limits::burst;
use super::{LIVE, TEST, account, ask, check, page, recording, refusal};

use serde_json::json;

const NOON: &str = "Thu, 01 Jan 2026 12:00:00 GMT";

fn with(name: &str, value: &str, exchange: Exchange) -> Exchange {
    let mut exchange = exchange;
    let Ending::Answered(answer) = &mut exchange.ending else { panic!("an answer") };
    answer.headers.push((name.into(), value.into()));
    exchange
}

/// A forged key that is served, and before it so much else.
#[track_caller]
fn check_served(before: &[Exchange], served: Exchange, expected: &str) {
    let accounts = [account(LIVE, "live"), account(TEST, "test")];
    check(&recording([&accounts, before, &[served]].concat()), "auth.unknown_key", expected);
}

fn forged(status: u16) -> Exchange {
    refusal(Caller::Forged(Forgery::Unknown), status)
}

#[test]
fn a_cache_is_known_by_what_it_says() {
    for (name, value, expected) in [
        ("age", "1", "not judged"),
        ("age", "0", "fail"),
        ("age", "old", "fail"),
        ("x-cache", "HIT from edge", "not judged"),
        ("x-cache", "TCP_HIT", "not judged"),
        ("cf-cache-status", "hit", "not judged"),
        ("x-cache-status", "HIT", "not judged"),
        ("x-cache", "MISS", "fail"),
        ("x-cache", "white", "fail"),
        ("x-powered-by", "HIT", "fail"),
    ] {
        check_served(&[], with(name, value, forged(200)), expected);
    }
    check_served(&[], with("age", "1", forged(401)), "pass");
}

#[test]
fn a_cache_is_known_by_an_answer_given_again_after_a_later_one() {
    let now = |seconds: u32, it| with("date", &NOON.replace(":00 GMT", &format!(":{seconds:02} GMT")), it);
    let later = |seconds| now(seconds, refusal(Caller::Nobody, 401));
    let again = || now(0, forged(200));
    check_served(&[again(), later(3)], again(), "not judged");
    check_served(&[again(), later(2)], again(), "fail");
    check_served(&[later(3), again()], again(), "fail");
    check_served(&[later(3)], again(), "fail");
    check_served(&[], again(), "fail");
    check_served(&[now(0, forged(403)), later(3)], again(), "fail");
    check_served(&[again(), later(3)], now(0, forged(403)), "fail");
    check_served(&[now(1, forged(200)), later(9)], again(), "fail");
    let elsewhere = Exchange { target: "/v1/other".into(), ..again() };
    check_served(&[elsewhere, later(3)], again(), "fail");
    let mut otherwise = again();
    let Ending::Answered(answer) = &mut otherwise.ending else { panic!("an answer") };
    answer.body = format!("{} ", &*answer.body).into();
    check_served(&[otherwise, later(3)], again(), "fail");
}

#[test]
fn a_cache_speaks_only_for_what_was_asked_past_it() {
    let short = |ask: PageAsk| page(ask, &json!([{ "id": 1, "type": "a" }]), [1, 1, 100, 2]);
    let filters = vec![("type".to_owned(), "b".to_owned())];
    let by_type = PageAsk { filters, ..ask(None, 100) };
    assert_eq!(by_type.list, List::Events);
    let aged = |it| with("age", "7", it);
    let plain_aged = recording(vec![aged(short(ask(None, 100))), short(by_type.clone())]);
    let filtered_aged = recording(vec![short(ask(None, 100)), aged(short(by_type))]);
    check(&plain_aged, "paging.length", "not judged");
    check(&filtered_aged, "paging.length", "fail");
    check(&filtered_aged, "filters.type", "not judged");
}

#[test]
fn a_burst_that_met_a_cache_says_nothing_even_if_it_fits() {
    let mut met = burst(120, true, Duration::ZERO);
    check(&met, "limits.refused", "pass");
    met.exchanges[7] = with("age", "1", met.exchanges[7].clone());
    check(&met, "limits.refused", "not judged");
}
