//! Chapter "auth": requests that must be refused, and the served requests without which a refusal does not count.

use std::time::Duration;

use conformance_model::recording::{Caller, Exchange, FollowedLink, Forgery, PageRequest, Purpose, Side};

use super::{
    LIVE, TEST, account, charge_purpose, check, check_verdict_text, events_request, exchange, page,
    recording, refusal, response_mut,
};

use serde_json::json;

#[test]
fn a_path_is_judged_only_if_an_own_key_gets_200_there() {
    let forged = Caller::Forged(Forgery::Unknown);
    for (caller, path, status, expected) in [
        (LIVE, "/v1/charges", 200, "fail"),
        (LIVE, "/v1/charges", 404, "not judged"),
        (LIVE, "/v1/invoices", 200, "not judged"),
        (forged, "/v1/charges", 200, "not judged"),
    ] {
        let refused =
            exchange(Caller::NoKey, Purpose::Refusal, "/v1/charges", 404, &json!({ "message": "No." }));
        let with_key = exchange(caller, Purpose::Account, path, status, &json!({}));
        check(&recording(vec![refused, with_key]), "auth.every_path", expected);
    }
}

#[test]
fn the_key_is_checked_before_an_event_is_looked_up() {
    for (served, unknown, expected) in
        [(200, 404, "fail"), (200, 401, "not judged"), (404, 404, "not judged")]
    {
        let own = Purpose::Event { id: "a".into(), side: Side::Own, round: 1 };
        let exchanges = vec![
            exchange(TEST, own, "/v1/events/a", served, &json!({})),
            exchange(Caller::NoKey, Purpose::Refusal, "/v1/events/b", unknown, &json!({ "message": "No." })),
        ];
        check(&recording(exchanges), "auth.every_path", expected);
    }
}

#[test]
fn a_key_without_letters_has_no_other_case() {
    let other_case = refusal(Caller::Forged(Forgery::LetterCase), 200);
    let served = vec![account(LIVE, "live"), account(TEST, "test"), refusal(Caller::NoKey, 401)];
    check(&recording(served.clone()), "auth.letter_case", "not applicable");
    check(&recording([served, vec![other_case]].concat()), "auth.letter_case", "fail");
}

#[test]
fn the_reason_for_an_unjudged_statement_is_reported() {
    let served = vec![account(LIVE, "live"), account(TEST, "test"), refusal(Caller::NoKey, 401)];
    check_verdict_text(&recording(served), "auth.revoked_key", "no revoked key is configured");
    let listed = vec![page(events_request(None, 100), &json!([]), [1, 1, 100, 0])];
    check_verdict_text(&recording(listed.clone()), "auth.every_path", "there is no event to request");
    let own = Purpose::Event { id: "a".into(), side: Side::Own, round: 1 };
    let lost = exchange(TEST, own, "/v1/events/a", 503, &json!({}));
    check_verdict_text(
        &recording([listed, vec![lost]].concat()),
        "auth.every_path",
        "responds with 200 to a key: 503",
    );
}

#[test]
fn an_altered_key_or_another_scheme_must_be_refused() {
    let with = |forgery: Forgery, status| {
        let refused = [
            Forgery::Appended,
            Forgery::NoScheme,
            Forgery::OtherPrefix,
            Forgery::Unknown,
            Forgery::LastCharacter,
        ];
        let refused = refused.map(|forgery| refusal(Caller::Forged(forgery), 401)).to_vec();
        let judged = vec![refusal(Caller::Forged(forgery), status)];
        recording([vec![account(LIVE, "live"), account(TEST, "test")], refused, judged].concat())
    };
    for (forgery, id, expected) in [
        (Forgery::WordAppended, "auth.appended", "fail"),
        (Forgery::ListAppended, "auth.appended", "fail"),
        (Forgery::Encoded, "auth.encoded", "fail"),
        (Forgery::LiveKeyOtherPrefix, "auth.other_prefix", "fail"),
        (Forgery::UnknownLive, "auth.unknown_key", "fail"),
        (Forgery::FirstCharacter, "auth.last_character", "fail"),
        (Forgery::BasicScheme, "auth.other_scheme", "fail"),
        (Forgery::BasicUser, "auth.other_scheme", "fail"),
        (Forgery::OtherScheme, "auth.other_scheme", "pass"),
        (Forgery::OtherScheme, "auth.token_scheme", "warn"),
    ] {
        check(&with(forgery, 200), id, expected);
        check(&with(forgery, 401), id, "pass");
    }
    // The keys of both modes have the same secret, so each with the other prefix is a valid key.
    let refused =
        [Forgery::Shortened, Forgery::UnknownLive].map(|forgery| refusal(Caller::Forged(forgery), 401));
    let accounts = vec![account(LIVE, "live"), account(TEST, "test")];
    let same_secret = recording([accounts, refused.to_vec()].concat());
    check(&same_secret, "auth.other_prefix", "not applicable");
    check_verdict_text(&same_secret, "auth.other_prefix", "the keys of both modes have the same secret");
    let unsent = recording(same_secret.exchanges[..3].to_vec());
    check(&unsent, "auth.other_prefix", "not judged");
}

/// Returns two requests of a page of the events, both by a followed link or without one, with this status.
fn listed(caller: Caller, status: u16, link: Option<FollowedLink>) -> Vec<Exchange> {
    let request = PageRequest { link, ..events_request(Some(2), 10) };
    let body = json!({ "message": "No." });
    vec![exchange(caller, Purpose::Page(request), "/v1/events?page=2", status, &body); 2]
}

#[test]
fn a_key_that_is_served_before_and_afterwards_never_gets_401() {
    let after_refusal = exchange(TEST, Purpose::AfterRefusal, "/v1/events", 200, &json!({}));
    let accounts = || vec![account(LIVE, "live"), account(TEST, "test")];
    let id = "auth.after_refusal";
    let next = Some(FollowedLink { exchange: 1, rel: "next".into() });
    for (pages, expected) in [
        (listed(TEST, 401, None), "fail"),
        (listed(LIVE, 401, None), "fail"),
        // A single 401 may come from a server that restarts, and a link may be wrong.
        (listed(TEST, 401, None)[..1].to_vec(), "pass"),
        (listed(TEST, 401, next), "pass"),
        (listed(TEST, 503, None), "pass"),
        (listed(Caller::SecondKey, 401, None), "pass"),
    ] {
        let all = [accounts(), pages, vec![after_refusal.clone()], accounts()].concat();
        check(&recording(all), id, expected);
    }
    // The second key may have been revoked during the run.
    let second = || account(Caller::SecondKey, "test");
    for (last, expected) in [(vec![], "pass"), (vec![second()], "fail")] {
        let own = [accounts(), vec![after_refusal.clone(), second()]].concat();
        let all = [own, listed(Caller::SecondKey, 401, None), last].concat();
        check(&recording(all), id, expected);
    }
}

#[test]
fn a_server_may_refuse_all_keys_shortly_after_an_invalid_one() {
    let after_refusal = exchange(TEST, Purpose::AfterRefusal, "/v1/events", 200, &json!({}));
    for (caller, seconds, expected) in [
        (Caller::NoKey, 30, "pass"),
        (Caller::Forged(Forgery::Unknown), 30, "pass"),
        (Caller::Revoked, 30, "pass"),
        (Caller::Revoked, 31, "fail"),
    ] {
        let mut pages = listed(TEST, 401, None);
        for page in &mut pages {
            (page.sent, page.ended) = (Duration::from_secs(seconds), Duration::from_secs(seconds));
        }
        let before = vec![account(LIVE, "live"), account(TEST, "test"), refusal(caller, 401)];
        let all = [before, pages, vec![after_refusal.clone(), account(TEST, "test")]].concat();
        check(&recording(all), "auth.after_refusal", expected);
    }
}

#[test]
fn a_single_charge_requires_a_key() {
    for (own, without_key, expected) in
        [(200, 200, "fail"), (200, 401, "not judged"), (404, 200, "not judged")]
    {
        let (purpose, target) = (charge_purpose("k3m9x2q7", Side::Own), "/v1/charges/k3m9x2q7");
        let exchanges = vec![
            exchange(TEST, purpose, target, own, &json!({})),
            exchange(Caller::NoKey, Purpose::Refusal, target, without_key, &json!({ "message": "No." })),
        ];
        check(&recording(exchanges), "auth.every_path", expected);
    }
}

#[test]
fn a_401_to_a_create_request_has_a_message() {
    for (status, body, expected) in
        [(401, json!({ "message": "No." }), "pass"), (401, json!({}), "fail"), (404, json!({}), "pass")]
    {
        let create = |caller, status, body| exchange(caller, Purpose::Create, "/v1/charges", status, body);
        let exchanges = vec![
            refusal(Caller::NoKey, 401),
            create(TEST, 201, &json!({ "data": { "code": "k3m9x2q7" } })),
            create(Caller::NoKey, status, &body),
        ];
        check(&recording(exchanges), "auth.message", expected);
    }
}

#[test]
fn every_content_type_of_a_401_is_json() {
    for (name, value, expected) in
        [("content-type", "text/html", "fail"), ("content-type", "application/problem+json", "pass")]
    {
        let mut refused = refusal(Caller::NoKey, 401);
        response_mut(&mut refused).headers.push((name.into(), value.into()));
        check(&recording(vec![refused]), "auth.message", expected);
    }
}
