//! A second key of the same account and mode.

use std::time::Duration;

use conformance_model::recording::{Burst, Caller, Exchange, Purpose};

use super::limits::burst;
use super::{LIVE, TEST, check, check_verdict_text, events_request, exchange, page, recording, response_mut};

use serde_json::{Value, json};

/// Returns a read of the account with this name.
pub(super) fn account(caller: Caller, name: &str) -> Exchange {
    exchange(caller, Purpose::Account, "/v1/account", 200, &json!({ "data": { "name": name } }))
}

fn events_page(caller: Caller, ids: &[u64]) -> Exchange {
    let rows = Value::from_iter(ids.iter().map(|id| json!({ "id": id })));
    Exchange { caller, ..page(events_request(None, 100), &rows, [1, 1, 100, ids.len() as u64]) }
}

#[test]
fn both_keys_of_an_account_list_the_same_events() {
    for (name, theirs, ours, expected) in [
        ("a", &[5, 4][..], &[5, 4][..], "pass"),
        ("b", &[5, 4], &[5, 4], "pass"),
        ("a", &[], &[], "not judged"),
        ("a", &[9, 8], &[5, 4], "fail"),
        ("b", &[9, 8], &[5, 4], "not judged"),
        // A new event at the head of an unchanged list.
        ("a", &[6, 5, 4], &[5, 4], "not judged"),
        ("a", &[7, 6, 5], &[5, 4, 3], "fail"),
        ("a", &[6, 5, 3], &[5, 4], "fail"),
        ("a", &[5, 3], &[5, 4], "fail"),
        ("a", &[5], &[5, 4], "fail"),
    ] {
        let all = [account(TEST, "a"), account(Caller::SecondKey, name), events_page(TEST, ours)];
        let theirs = [events_page(Caller::SecondKey, theirs)];
        check(&recording([&all[..], &theirs].concat()), "auth.same_lists", expected);
    }
}

#[test]
fn the_account_has_the_mode_of_the_second_key() {
    for (mode, expected) in [("test", "pass"), ("live", "fail")] {
        let keys = [(LIVE, "live"), (TEST, "test"), (Caller::SecondKey, mode)];
        let accounts = keys.map(|(caller, mode)| super::account(caller, mode));
        check(&recording(accounts.into()), "account.mode", expected);
    }
}

#[test]
fn the_reads_before_and_after_show_the_new_events() {
    for (before, theirs, after, expected) in [
        (&[5, 4][..], &[6, 5, 4][..], &[6, 5, 4][..], "pass"),
        (&[5, 4], &[6, 5, 4], &[7, 6, 5, 4], "pass"),
        (&[5, 4], &[5, 4], &[7, 6, 5, 4], "pass"),
        (&[5, 4], &[6, 5, 4], &[5, 4], "fail"),
        (&[5, 4], &[5], &[5, 4], "fail"),
        // The list changed meanwhile, so the missing event proves nothing.
        (&[5, 4], &[6, 4], &[6, 5, 4], "not judged"),
    ] {
        let accounts = [account(TEST, "a"), account(Caller::SecondKey, "a")];
        let lists =
            [events_page(TEST, before), events_page(Caller::SecondKey, theirs), events_page(TEST, after)];
        check(&recording([&accounts[..], &lists].concat()), "auth.same_lists", expected);
    }
}

#[test]
fn a_wrong_second_key_is_reported() {
    let status = |status| exchange(Caller::SecondKey, Purpose::Account, "/v1/account", status, &json!({}));
    for (all, expected) in [
        (vec![account(TEST, "a"), events_page(Caller::SecondKey, &[1])], "there was no second key"),
        (vec![account(TEST, "a"), status(401)], "the second key is refused"),
        (vec![account(TEST, "a"), status(403)], "the second key is refused"),
        (vec![account(TEST, "a"), status(503)], "the account of the second key: 503"),
    ] {
        check_verdict_text(&recording(all), "auth.same_lists", expected);
    }
}

#[test]
fn the_second_key_has_a_separate_limit() {
    let refused = |caller| Exchange { caller, ..exchange(TEST, Purpose::Account, "/", 429, &json!({})) };
    let none = || events_page(Caller::SecondKey, &[]);
    for (name, status, more, expected) in [
        ("a", 200, none(), "pass"),
        ("a", 404, none(), "pass"),
        ("a", 500, none(), "not judged"),
        ("a", 503, none(), "not judged"),
        ("a", 429, none(), "fail"),
        ("a", 429, refused(TEST), "fail"),
        ("a", 429, refused(LIVE), "fail"),
        (
            "a",
            429,
            Exchange { purpose: Purpose::BeforeDeliveries, ..refused(Caller::SecondKey) },
            "not judged",
        ),
        // Keys of two accounts have separate limits anyway. Equal events show that it is one account.
        ("b", 200, none(), "not judged"),
        ("b", 200, events_page(Caller::SecondKey, &[5, 4]), "pass"),
        ("b", 200, events_page(Caller::SecondKey, &[5]), "not judged"),
    ] {
        let mut all = vec![account(TEST, "a"), account(Caller::SecondKey, name), events_page(TEST, &[5, 4])];
        all.push(more);
        all.extend(burst(120, true, Duration::ZERO).exchanges);
        let request = Purpose::Burst(Burst::SecondKey);
        all.push(exchange(Caller::SecondKey, request, "/v1/account", status, &json!({})));
        check(&recording(all), "limits.second_key", expected);
    }
    let mut empty = vec![account(TEST, "a"), account(Caller::SecondKey, "b"), events_page(TEST, &[]), none()];
    empty.extend(burst(120, true, Duration::ZERO).exchanges);
    let request = Purpose::Burst(Burst::SecondKey);
    empty.push(exchange(Caller::SecondKey, request, "/v1/account", 200, &json!({})));
    check(&recording(empty), "limits.second_key", "not judged");
}

#[test]
fn a_key_that_reads_its_account_reads_its_lists() {
    for (name, status, expected) in [
        ("a", 401, "fail"),
        ("a", 404, "fail"),
        // The key may lack the permission to read the list.
        ("a", 403, "not judged"),
        ("a", 503, "not judged"),
        ("b", 401, "not judged"),
    ] {
        let mut refused = events_page(Caller::SecondKey, &[]);
        response_mut(&mut refused).status = status;
        let all = [account(TEST, "a"), account(Caller::SecondKey, name), events_page(TEST, &[5, 4]), refused];
        check(&recording(all.into()), "auth.same_lists", expected);
    }
}
