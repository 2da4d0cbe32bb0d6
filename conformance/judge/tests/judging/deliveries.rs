//! Statements about single deliveries: objects, signatures, addresses, retries and redirects.

use std::time::Duration;

use conformance_model::deliveries::{
    DeclaredEndpoint, Deliveries, Delivery, Difference, Registration, SignatureStatus,
};
use conformance_model::mode::Mode;
use conformance_model::raw_bytes::RawBytes;
use conformance_model::recording::Recording;

use super::{check, check_verdict_text, recording};

use serde_json::{Value, json};

const CREATED_AT: &str = "2026-02-01T10:00:00.000000Z";

/// Returns a delivery with this body, which was accepted.
pub(super) fn delivery(body: &Value) -> Delivery {
    Delivery {
        number: 0,
        arrived: Duration::ZERO,
        endpoint: Some(0),
        redirected: false,
        method: "POST".into(),
        path: "/test".into(),
        headers: Vec::new(),
        body: body.to_string().into_bytes().into(),
        response_status: Some(200),
        signature: SignatureStatus::NoSecret,
    }
}

/// Returns an endpoint whose types and secret are unknown.
pub(super) fn endpoint(path: &str, mode: Mode) -> DeclaredEndpoint {
    DeclaredEndpoint { path: path.into(), mode: Some(mode), events: None, has_secret: false }
}

/// Returns a recording of these deliveries, numbered from 1, to a test endpoint.
pub(super) fn recording_of(deliveries: Vec<Delivery>) -> Recording {
    let mut received = deliveries;
    for (number, delivery) in (1..).zip(&mut received) {
        delivery.number = number;
    }
    let endpoints = vec![endpoint("/test", Mode::Test)];
    let deliveries = Deliveries {
        header_prefix: "X-Service".into(),
        user_agent: "Service-Webhooks/1.0".into(),
        receiver: Some("127.0.0.1:80".into()),
        duration: Duration::from_secs(60),
        endpoints,
        received,
        ..Deliveries::default()
    };
    Recording { deliveries: Some(deliveries), ..recording(vec![]) }
}

/// Returns the body of a delivery of an event type, with a charge.
fn charge_body(kind: &str, created_at: &str, charge: &Value) -> Value {
    json!({
        "id": "0190a5c7-7f3e-7ddd-8def-000000000001",
        "event_id": "0190a5c7-7f3e-7ddd-8def-000000000002",
        "event": kind,
        "mode": "test",
        "created_at": created_at,
        "data": { "charge": charge },
    })
}

fn one_delivery(kind: &str, charge: &Value) -> Recording {
    recording_of(vec![delivery(&charge_body(kind, CREATED_AT, charge))])
}

#[test]
fn amounts_and_metadata_may_be_null_until_a_charge_is_paid() {
    for (kind, status, amount, metadata, expected) in [
        ("charge.created", "pending", json!(null), json!(null), "fail"),
        ("charge.created", "pending", json!("0.00"), json!(null), "pass"),
        ("charge.paid", "pending", json!(null), json!({}), "fail"),
        ("charge.refunded", "paid", json!(null), json!({}), "fail"),
        ("charge.paid", "paid", json!("49.90"), json!({}), "pass"),
        ("charge.created", "pending", json!(49.9), json!({}), "fail"),
        ("charge.created", "pending", json!("0E-18"), json!({}), "fail"),
    ] {
        let charge = json!({ "status": status, "fiat_amount": amount, "metadata": metadata });
        check(&one_delivery(kind, &charge), "charges.amounts", expected);
    }
    for (kind, metadata, expected) in [
        ("charge.created", json!(null), "pass"),
        ("charge.paid", json!(null), "fail"),
        ("charge.created", json!([]), "fail"),
        ("charge.paid", json!({ "a": 1 }), "pass"),
    ] {
        check(&one_delivery(kind, &json!({ "metadata": metadata })), "charges.metadata", expected);
    }
}

#[test]
fn a_finding_names_the_delivery_and_the_value() {
    let invalid = one_delivery("charge.paid", &json!({ "fiat_amount": 49.9 }));
    check_verdict_text(&invalid, "charges.amounts", "fiat_amount 49.9 (delivery 1, charge.paid)");
    check_verdict_text(&invalid, "webhooks.content_type", "no Content-Type (delivery 1");
    check_verdict_text(&invalid, "charges.fields", "code missing (delivery 1, charge.paid)");
}

#[test]
fn undocumented_fields_of_charges_are_observed() {
    let with_charge = |charge: &Value| one_delivery("charge.paid", charge);
    check_verdict_text(
        &with_charge(&json!({ "code": "k", "colour": "red" })),
        "charges.other_fields",
        "seen: \"colour\"",
    );
    check_verdict_text(&with_charge(&json!({ "code": "k" })), "charges.other_fields", "seen: \"nothing\"");
}

#[test]
fn transitions_are_observed_by_the_times_of_events() {
    let charge = |at, status: &str| charge_body("charge.paid", at, &json!({ "code": "k", "status": status }));
    let later = "2026-02-01T11:00:00.000000Z";
    let both = |first: &Value, second: &Value| recording_of(vec![delivery(first), delivery(second)]);
    let (pending, paid) = (charge(CREATED_AT, "pending"), charge(later, "paid"));
    for recording in [both(&pending, &paid), both(&paid, &pending)] {
        check_verdict_text(&recording, "charges.transitions", "seen: \"pending to paid\"");
    }
    check(&both(&paid, &paid), "charges.transitions", "not judged");
    // Events at the same time: the order of arrival means nothing.
    let expired = charge(CREATED_AT, "expired");
    for recording in [both(&pending, &expired), both(&expired, &pending)] {
        check(&recording, "charges.transitions", "not judged");
    }
    let mut test_delivery = paid;
    test_delivery["test"] = json!(true);
    check(&both(&pending, &test_delivery), "charges.transitions", "not judged");
}

#[test]
fn missing_deliveries_are_reported_with_the_other_requests() {
    let mut none = recording_of(vec![]);
    check(&none, "webhooks.post", "not judged");
    check_verdict_text(&none, "webhooks.post", "why: \"no delivery arrived within 60 s\"");
    let deliveries = none.deliveries.as_mut().expect("the run had a receiver");
    (deliveries.other_requests, deliveries.trigger_error) = (2, Some("the command failed".into()));
    let why = "within 60 s; the command failed; 2 other requests were received that are not deliveries";
    check_verdict_text(&none, "webhooks.post", why);
}

fn signed_delivery(signature: SignatureStatus, endpoint: usize, event: &str) -> Delivery {
    let body = json!({ "event_id": event, "n": endpoint });
    Delivery { signature, endpoint: Some(endpoint), ..delivery(&body) }
}

/// Returns a match with the secret of the endpoint (`own`) or of another one, with these differences of the
/// construction.
fn matching_signature(own: bool, differences: &[&str]) -> SignatureStatus {
    let differences =
        differences.iter().map(|name| Difference { name: (*name).into(), clause: format!("in {name}") });
    SignatureStatus::Matches { own, differences: differences.collect() }
}

#[test]
fn a_signature_is_judged_by_the_secret_that_it_matches() {
    let with_own_secret = || matching_signature(true, &[]);
    for (first, second, expected) in [
        (signed_delivery(with_own_secret(), 0, "a"), signed_delivery(with_own_secret(), 0, "b"), "pass"),
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(SignatureStatus::NoSecret, 1, "b"),
            "pass",
        ),
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(SignatureStatus::Missing, 0, "b"),
            "fail",
        ),
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(SignatureStatus::WithoutSecret, 0, "b"),
            "fail",
        ),
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(matching_signature(false, &[]), 0, "b"),
            "fail",
        ),
        // The same endpoint and another event: its secret would have signed both.
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(SignatureStatus::Unknown, 0, "b"),
            "fail",
        ),
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(SignatureStatus::Unknown, 0, "a"),
            "not judged",
        ),
        (
            signed_delivery(with_own_secret(), 0, "a"),
            signed_delivery(SignatureStatus::Unknown, 1, "b"),
            "not judged",
        ),
        // If a rewritten body is signed, the suite may not know all rewritings.
        (
            signed_delivery(matching_signature(true, &["body_rewritten"]), 0, "a"),
            signed_delivery(SignatureStatus::Unknown, 0, "b"),
            "not judged",
        ),
        (
            signed_delivery(SignatureStatus::NoSecret, 0, "a"),
            signed_delivery(SignatureStatus::NoSecret, 0, "b"),
            "not judged",
        ),
    ] {
        check(&recording_of(vec![first, second]), "webhooks.signed", expected);
    }
    let all = recording_of(vec![
        signed_delivery(with_own_secret(), 0, "a"),
        signed_delivery(SignatureStatus::NoSecret, 1, "b"),
    ]);
    check_verdict_text(
        &all,
        "webhooks.signed",
        "1 deliveries match the secret of their endpoint; the secret of 1 others is unknown",
    );
    let known = recording_of(vec![signed_delivery(with_own_secret(), 0, "a")]);
    check_verdict_text(&known, "webhooks.signed", "match the secret of their endpoint\"");
    let none = recording_of(vec![signed_delivery(SignatureStatus::NoSecret, 0, "a")]);
    check_verdict_text(&none, "webhooks.signed", "no secret of an endpoint is known");
}

#[test]
fn body_and_time_must_be_signed() {
    for (name, expected) in [("body_only", "warn"), ("body_rewritten", "warn"), ("upper_case", "pass")] {
        let recording = recording_of(vec![signed_delivery(matching_signature(true, &[name]), 0, "a")]);
        check(&recording, "webhooks.signature_covers", expected);
    }
    check_verdict_text(
        &recording_of(vec![signed_delivery(matching_signature(true, &[]), 0, "a")]),
        "webhooks.signature_scheme",
        "HMAC-SHA256 of",
    );
    let deviating = recording_of(vec![signed_delivery(matching_signature(true, &["x", "y"]), 0, "a")]);
    check_verdict_text(&deviating, "webhooks.signature_scheme", "seen: \"as usual, but in x; in y\"");
}

#[test]
fn the_signature_header_has_the_specified_format() {
    for (value, expected) in [
        ("t=1,v1=ab", "pass"),
        ("t=99999999999, v1=ab, v0=x", "pass"),
        ("v0=x,t=1,v1=AB,v1=cd", "pass"),
        ("v1=ab,t=1", "fail"),
        ("v0=x, v1=ab, t=1", "fail"),
        ("t=100000000000,v1=ab", "fail"),
        ("t=1,t=2,v1=ab", "fail"),
        ("t=,v1=ab", "fail"),
        ("t=-1,v1=ab", "fail"),
        ("t=+1,v1=ab", "fail"),
        ("t=1,v1=", "fail"),
        ("t=1,v1=ab,v1=", "fail"),
        ("t=1,v0=ab", "fail"),
        ("v1=ab", "fail"),
    ] {
        let mut signed = delivery(&json!({}));
        signed.headers.push(("x-service-signature".into(), RawBytes(value.into())));
        check(&recording_of(vec![signed.clone()]), "webhooks.signature_shape", expected);
        signed.headers.extend_from_within(..);
        check(&recording_of(vec![signed]), "webhooks.signature_shape", "fail");
    }
    check_verdict_text(
        &recording_of(vec![delivery(&json!({}))]),
        "webhooks.signature_shape",
        "no X-Service-Signature",
    );
}

#[test]
fn the_times_of_signing_differ() {
    // The times at which the first and the last of five deliveries were signed, created and received, in seconds.
    let signed = |times: [[u64; 3]; 2]| {
        let deliveries = (0..5).map(|number| {
            let [t, created, arrived] = times[usize::from(number == 4)];
            let body = json!({
                "event_id": number.to_string(),
                "event": "charge.paid",
                "created_at": format!("2026-02-01T10:00:{created:02}.000000Z"),
            });
            let headers = vec![("X-Service-Signature".into(), RawBytes(format!("t={t},v1=ab").into_bytes()))];
            Delivery { headers, arrived: Duration::from_secs(arrived), ..delivery(&body) }
        });
        deliveries.collect::<Vec<_>>()
    };
    for (deliveries, expected) in [
        (signed([[1, 0, 0], [11, 10, 10]]), "pass"),
        (signed([[1, 0, 0], [1, 10, 10]]), "fail"),
        // All were signed and sent in one batch, or signed in one and sent slowly.
        (signed([[1, 0, 9], [1, 10, 10]]), "pass"),
        (signed([[1, 0, 0], [1, 9, 10]]), "pass"),
        (signed([[1, 0, 0], [1, 10, 10]])[1..].to_vec(), "pass"),
    ] {
        check(&recording_of(deliveries), "webhooks.signature_shape", expected);
    }
}

#[test]
fn one_signature_for_two_bodies_is_a_violation() {
    let with = |value: &str, body: &Value| {
        let headers = vec![("X-Service-Signature".into(), RawBytes(value.into()))];
        Delivery { headers, signature: matching_signature(true, &[]), ..delivery(body) }
    };
    for (first, second, expected) in [
        (with("t=1,v1=ab", &json!({ "a": 1 })), with("t=1,v1=ab", &json!({ "a": 1 })), "pass"),
        (with("t=1,v1=ab", &json!({ "a": 1 })), with("t=2, v1=ab", &json!({ "a": 2 })), "fail"),
        (with("t=1,v1=ab", &json!({ "a": 1 })), with("t=1,v1=cd", &json!({ "a": 2 })), "pass"),
        (with("t=1,v1=", &json!({ "a": 1 })), with("t=1,v1=", &json!({ "a": 2 })), "pass"),
    ] {
        check(&recording_of(vec![first, second]), "webhooks.signed", expected);
    }
}

#[test]
fn a_refused_address_counts_only_if_another_was_accepted() {
    let registration = |public, accepted| Registration {
        address: "http://10.0.0.1/".into(),
        public,
        accepted,
        response: "422".into(),
    };
    for (registrations, expected) in [
        (vec![], "not judged"),
        (vec![registration(true, true)], "not judged"),
        (vec![registration(true, false), registration(false, false)], "not judged"),
        (vec![registration(true, true), registration(false, false)], "pass"),
        (vec![registration(true, true), registration(false, true)], "fail"),
        (vec![registration(false, true)], "fail"),
    ] {
        let mut recording = recording_of(vec![]);
        recording.deliveries.as_mut().expect("the run had a receiver").registrations = registrations;
        check(&recording, "endpoints.address", expected);
    }
}

#[test]
fn retries_of_refused_deliveries_are_observed() {
    let attempt = |id: &str, secs, response_status| {
        let body = json!({ "id": id, "event_id": "e" });
        Delivery { response_status, arrived: Duration::from_secs(secs), ..delivery(&body) }
    };
    let at_other_endpoint = Delivery { endpoint: Some(1), ..attempt("1", 9, Some(200)) };
    for (all, expected) in [
        (vec![attempt("1", 0, Some(200))], "every delivery was accepted"),
        (vec![attempt("1", 0, Some(500))], "after a 500 it was not delivered again within 60 s"),
        (vec![attempt("1", 0, Some(0))], "after no response it was not delivered again"),
        (vec![attempt("1", 0, Some(302)), at_other_endpoint], "after a 302 it was not delivered again"),
        (
            vec![attempt("1", 1, Some(500)), attempt("1", 8, Some(200))],
            "delivered again 7 s later under the same id\"",
        ),
        (
            vec![attempt("1", 1, Some(500)), attempt("2", 8, Some(500))],
            "delivered again 7 s later under a new id\"",
        ),
    ] {
        check_verdict_text(&recording_of(all), "webhooks.retries", expected);
    }
    let mut settled = recording_of(vec![attempt("1", 1, Some(500)), attempt("1", 8, Some(200))]);
    settled.deliveries.as_mut().expect("the run had a receiver").settled = true;
    check_verdict_text(&settled, "webhooks.retries", "it was delivered again under the same id");
}

#[test]
fn a_redirect_is_not_followed() {
    let with = |response_status, redirected| Delivery { response_status, redirected, ..delivery(&json!({})) };
    for (all, expected) in [
        (vec![with(Some(200), false)], "not judged"),
        (vec![with(Some(304), false)], "not judged"),
        (vec![with(Some(302), false)], "pass"),
        (vec![with(Some(302), false), with(Some(200), true)], "fail"),
    ] {
        check(&recording_of(all), "webhooks.redirects", expected);
    }
}

#[test]
fn the_formats_of_an_invoice_are_observed() {
    let invoice =
        json!({ "code": "in1", "number": 7, "status": null, "charges": [], "customer": {}, "amount": true });
    let delivered = recording_of(vec![delivery(&json!({ "data": { "invoice": invoice } }))]);
    let formats =
        "amount a boolean, charges an array, code a string, customer an object, number a number, status null";
    check_verdict_text(&delivered, "invoices.formats", formats);
}
