//! Tests of the notes about deliveries, of their summaries and counts, and of the serialization and redaction of
//! requests.

use conformance_model::raw_bytes::RawBytes;
use conformance_model::secret::Secret;

use super::{BODY, DELIVERY_ID, SECRET, delivery, secret_without_prefix, signed_header};
use crate::{
    DeliveryCounter, DeliverySummary, Note, REDIRECT_PATH, ReceivedRequest, SecretRedaction, WebhookNames,
    notes,
};

/// Checks the notes about a changed delivery.
#[track_caller]
fn check(change: impl FnOnce(&mut ReceivedRequest), expected: &[Note]) {
    let mut received = delivery(&signed_header(BODY), BODY);
    change(&mut received);
    assert_eq!(notes(&received, &WebhookNames::default()), expected);
}

fn set_header(received: &mut ReceivedRequest, name: &str, value: &str) {
    let header = received.headers.iter_mut().find(|(header, _)| header == name).unwrap();
    header.1 = value.as_bytes().into();
}

fn remove_header(received: &mut ReceivedRequest, name: &str) {
    received.headers.retain(|(header, _)| header != name);
}

fn replace_in_body(received: &mut ReceivedRequest, from: &str, to: &str) {
    assert!(received.body.to_string_lossy().contains(from));
    received.body = received.body.to_string_lossy().replace(from, to).as_bytes().into();
}

#[test]
fn a_correct_delivery_has_no_notes() {
    check(|_| {}, &[]);
    check(|request| set_header(request, "Content-Type", "Application/JSON; charset=utf-8"), &[]);
}

#[test]
fn headers_are_compared_with_the_body() {
    let delivery_header = "X-Service-Delivery".to_owned();
    check(
        |request| remove_header(request, "X-Service-Delivery"),
        &[Note::HeaderMissing { name: delivery_header.clone() }],
    );
    let differs = Note::HeaderDiffers {
        name: delivery_header,
        header: "another".to_owned(),
        member: "id",
        body: DELIVERY_ID.to_owned(),
    };
    check(|request| set_header(request, "X-Service-Delivery", "another"), &[differs]);
    let differs = Note::HeaderDiffers {
        name: "X-Service-Event".to_owned(),
        header: "charge.created".to_owned(),
        member: "event",
        body: "charge.paid".to_owned(),
    };
    check(|request| set_header(request, "X-Service-Event", "charge.created"), &[differs]);
}

#[test]
fn unexpected_header_values_are_noted() {
    let got = "text/plain".to_owned();
    check(|request| set_header(request, "Content-Type", "text/plain"), &[Note::ContentType { got }]);
    check(|request| remove_header(request, "Content-Type"), &[Note::ContentType { got: String::new() }]);
    check(
        |request| set_header(request, "User-Agent", "x\u{1b}[2J"),
        &[Note::UserAgent { got: "x\\u{1b}[2J".to_owned() }],
    );
    check(|request| set_header(request, "X-Service-Signature", "t=1, v1=00"), &[Note::SignatureWhiteSpace]);
}

#[test]
fn the_members_of_the_body_are_checked() {
    check(|request| request.body = b"[]".as_slice().into(), &[Note::BodyNotObject]);
    check(
        |request| replace_in_body(request, "\"mode\":\"live\"", "\"mode\":\"prod\""),
        &[Note::UnknownMode { got: "prod".to_owned() }],
    );
    check(
        |request| {
            replace_in_body(
                request,
                "\"event_id\":\"01a0be42-2100-7000-8000-014aeed46937\"",
                "\"event_id\":null",
            )
        },
        &[Note::MemberMissing { name: "event_id" }],
    );
    check(
        |request| replace_in_body(request, "{\"charge\":", "{\"invoice\":"),
        &[Note::SubjectMissing { name: "charge" }],
    );
    let unknown = |request: &mut ReceivedRequest| {
        set_header(request, "X-Service-Event", "refund.paid");
        replace_in_body(request, "charge.paid", "refund.paid");
    };
    check(unknown, &[Note::UnknownEvent { got: "refund.paid".to_owned() }]);
}

#[test]
fn a_test_delivery_needs_no_event() {
    let test_members = "\"test\":true,\"event_id\":null";
    check(
        |request| {
            replace_in_body(request, "\"event_id\":\"01a0be42-2100-7000-8000-014aeed46937\"", test_members)
        },
        &[Note::TestDelivery],
    );
}

#[test]
fn a_redirect_that_is_followed_is_noted() {
    check(|request| request.path = REDIRECT_PATH.to_owned(), &[Note::RedirectFollowed]);
}

#[test]
fn a_summary_has_the_values_of_the_body_or_the_headers() {
    let received = delivery(&signed_header(BODY), BODY);
    let some = |value: &str| Some(value.to_owned());
    assert_eq!(
        received.summary(&WebhookNames::default()),
        DeliverySummary {
            delivery: some(DELIVERY_ID),
            event: some("charge.paid"),
            mode: some("live"),
            subject: some("kanwf93se5yn"),
        }
    );
    let received = delivery("", "not JSON");
    let summary = received.summary(&WebhookNames::default());
    assert_eq!(summary.event, some("charge.paid"), "the type is from the header, if the body has none");
    assert_eq!(summary.subject, None);
}

#[test]
fn each_arrival_of_a_delivery_is_counted() {
    let mut counter = DeliveryCounter::default();
    let counts = ["a", "b", "a", "a", "b"].map(|id| counter.count(id));
    assert_eq!(counts, [1, 1, 2, 3, 2]);
}

#[test]
fn serialization_preserves_every_byte() {
    let mut received = delivery(&signed_header(BODY), BODY);
    received.headers.push(("x-ODD".to_owned(), RawBytes(vec![0xff, 0x00])));
    for body in [&b"{\"a\": 1}\r\n"[..], &[0xff, 0xfe, 0x00], b""] {
        received.body = body.into();
        let line = serde_json::to_string(&received).unwrap();
        assert_eq!(serde_json::from_str::<ReceivedRequest>(&line).unwrap(), received, "{line}");
    }
}

#[test]
fn redaction_changes_only_requests_with_a_secret() {
    let received = delivery(&signed_header(BODY), BODY);
    let redaction = SecretRedaction::new([&Secret::new(SECRET)]);
    assert_eq!(redaction.redact_request(&received), received);

    let mut leaking = delivery(SECRET, &format!("{{\"secret\":\"{SECRET}\"}}"));
    leaking.path = format!("/hooks?secret={}", secret_without_prefix());
    let line = serde_json::to_string(&redaction.redact_request(&leaking)).unwrap();
    assert!(!line.contains(secret_without_prefix()), "{line}");
}
