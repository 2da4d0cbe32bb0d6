//! Property tests of the diagnosis and of the redaction.

use proptest::prelude::*;
use time::OffsetDateTime;

use conformance_model::raw_bytes::RawBytes;
use conformance_model::secret::Secret;

use super::{BODY, NOW, delivery, keyring, mac, named_secret, signed_header};
use crate::{Diagnosis, Keyring, ReceivedRequest, SecretRedaction, WebhookNames, diagnose, notes};

fn headers() -> impl Strategy<Value = Vec<(String, RawBytes)>> {
    let name = prop_oneof![
        Just("X-Service-Signature".to_owned()),
        Just("x-service-delivery".to_owned()),
        Just("Content-Type".to_owned()),
        "[ -~]{0,12}",
    ];
    let value = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..80).prop_map(RawBytes),
        "(t=[0-9]{0,22}|v1=[0-9a-zA-Z+/=]{0,66}|,| |=|;){0,6}".prop_map(|text| RawBytes(text.into_bytes())),
    ];
    proptest::collection::vec((name, value), 0..5)
}

fn body() -> impl Strategy<Value = RawBytes> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(RawBytes),
        "[\\[\\]{}\":,0-9eE+\\-. a\\\\u\n\r]{0,120}".prop_map(|text| RawBytes(text.into_bytes())),
    ]
}

proptest! {
    #[test]
    fn any_request_is_judged_and_serialized(headers in headers(), body in body(), now in any::<i64>()) {
        let at = OffsetDateTime::UNIX_EPOCH;
        let (method, path) = ("POST".to_owned(), "/".to_owned());
        let received = ReceivedRequest { at, method, path, headers, body };
        let diagnosis = diagnose(&received, &keyring(), now);
        let verified = matches!(diagnosis, Diagnosis::Verified { .. });
        prop_assert!(!verified && !diagnosis.reasons().is_empty());
        let reasons = diagnosis.reasons().iter().map(ToString::to_string);
        let notes = notes(&received, &WebhookNames::default()).iter().map(ToString::to_string).collect::<Vec<_>>();
        for text in reasons.chain(notes) {
            prop_assert!(!text.contains(char::is_control), "{text:?}");
        }
        let line = serde_json::to_string(&received).unwrap();
        prop_assert_eq!(serde_json::from_str::<ReceivedRequest>(&line).unwrap(), received);
    }

    #[test]
    fn every_correctly_signed_body_is_verified(secret in "[!-~]{8,60}", body in body(), now in 1..99_999_999_999_i64) {
        let message = [format!("{now}.").as_bytes(), &body.0].concat();
        let mut received = delivery(&format!("t={now},v1={}", mac(&secret, message)), "");
        received.body = body;
        let keyring = Keyring { secrets: vec![named_secret("A", &secret)], ..Keyring::default() };
        let verified = Diagnosis::Verified { secret: "A".to_owned() };
        prop_assert_eq!(diagnose(&received, &keyring, now), verified);
    }

    #[test]
    fn no_redacted_request_contains_the_secret(secret in "[a-z0-9]{8,12}", before in "[a-z0-9]{0,9}", after in "[a-z0-9]{0,9}") {
        let text = format!("{before}{secret}{after}");
        let mut received = delivery(&text, &text);
        received.path = format!("/{text}");
        let redacted = SecretRedaction::new([&Secret::new(&*secret)]).redact_request(&received);
        prop_assert!(!serde_json::to_string(&redacted).unwrap().contains(&secret));
    }

    #[test]
    fn a_changed_byte_is_never_verified(index in 0..BODY.len(), mask in 1_u8..) {
        let mut received = delivery(&signed_header(BODY), BODY);
        received.body.0[index] ^= mask;
        let diagnosis = diagnose(&received, &keyring(), NOW);
        prop_assert!(!diagnosis.reasons().is_empty(), "{diagnosis:?}");
    }
}

#[test]
fn deep_and_large_bodies_are_judged() {
    // The size of the last one multiplies when it is indented.
    let wide = format!("{}{}1{}", "[".repeat(100), "1,".repeat(64_000), "]".repeat(100));
    for body in ["[".repeat(1024 * 1024), "[".repeat(100_000) + &"]".repeat(100_000), wide] {
        let received = delivery(&signed_header(&body), &body);
        let verified = Diagnosis::Verified { secret: "SHOP".to_owned() };
        assert_eq!(diagnose(&received, &keyring(), NOW), verified);
        assert!(
            !diagnose(&delivery(&format!("t=1,v1={}", "0".repeat(64)), &body), &keyring(), 1)
                .reasons()
                .is_empty()
        );
    }
}
