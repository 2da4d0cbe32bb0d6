//! Tests of the diagnosis of each signing fault.

use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

use conformance_model::deliveries::SignatureStatus;

use super::{
    BODY, DELIVERY_ID, NOW, SECRET, delivery, keyring, mac, mac_bytes, named_secret, secret_without_prefix,
    signed_header,
};
use crate::{
    Diagnosis, Encoding, Keyring, MessageLayout, PaddedSide, Reason, ReceivedRequest, Rewriting, TimeUnit,
    base64, diagnose, signature_status,
};

/// Checks the reasons for a request, and that neither they nor the remedies contain the secret.
#[track_caller]
fn check_with(received: &ReceivedRequest, keyring: &Keyring, now: i64, expected: &[Reason]) {
    let diagnosis = diagnose(received, keyring, now);
    assert_eq!(diagnosis.reasons(), expected, "{diagnosis:?}");
    for reason in expected {
        let (text, secret) = (format!("{reason} {}", reason.remedy()), secret_without_prefix());
        assert!(!text.contains(secret), "{text}");
    }
    check_signature_status(&signature_status(received, keyring), expected);
}

/// Checks that a signature status has the faults of the diagnosis, except for the age. The other mode is a flag of the
/// status. Without a match, checks only that the diagnosis has a fault.
#[track_caller]
fn check_signature_status(status: &SignatureStatus, reasons: &[Reason]) {
    let is_age = |reason: &&Reason| matches!(reason, Reason::Stale { .. } | Reason::Future { .. });
    let names: Vec<_> = reasons.iter().filter(|reason| !is_age(reason)).map(Reason::name).collect();
    let is_other_mode = |name: &str| name == Reason::OtherMode { secret: String::new() }.name();
    match status {
        SignatureStatus::Matches { own, differences } => {
            let differences: Vec<_> = differences.iter().map(|difference| difference.name.as_str()).collect();
            assert_eq!(*own, !names.iter().any(|name| is_other_mode(name)));
            assert_eq!(
                differences,
                names.into_iter().filter(|name| !is_other_mode(name)).collect::<Vec<_>>()
            );
        }
        SignatureStatus::NoSecret => {}
        SignatureStatus::Missing | SignatureStatus::WithoutSecret | SignatureStatus::Unknown => {
            assert_ne!(names, Vec::<&str>::new())
        }
    }
}

/// Checks the reasons for a signature header with this value.
#[track_caller]
fn check(header: &str, expected: &[Reason]) {
    check_with(&delivery(header, BODY), &keyring(), NOW, expected);
}

/// Checks the reason for a signature of this message.
#[track_caller]
fn check_message(message: impl AsRef<[u8]>, expected: Reason) {
    check(&format!("t={NOW},v1={}", mac(SECRET, message)), &[expected]);
}

/// Checks the reason for a signature with this key.
#[track_caller]
fn check_key(key: impl AsRef<[u8]>, expected: Reason) {
    check(&format!("t={NOW},v1={}", mac(key, format!("{NOW}.{BODY}"))), &[expected]);
}

#[test]
fn a_valid_signature_is_verified_within_five_minutes() {
    let verified = Diagnosis::Verified { secret: "SHOP".to_owned() };
    for now in [NOW - 300, NOW, NOW + 300] {
        assert_eq!(diagnose(&delivery(&signed_header(BODY), BODY), &keyring(), now), verified);
    }
}

/// The test vector of the README. This body is not the same after it is parsed and re-serialized.
#[test]
fn a_signature_made_with_openssl_is_verified() {
    // { printf '1767603600.'; cat body.json; } | openssl dgst -sha256 -hmac "$SECRET"
    let header = "t=1767603600,v1=415c0e51184762bf0f187e1e4ee6e587e0ab7cdd942673eaad05eea5f9e32a88";
    let body = r#"{"id": "01a0be42","event":"charge.paid","note":"ü \/"}"#;
    let secrets =
        vec![named_secret("A", SECRET), named_secret("B", "whsec_0123456789abcdefghijklmnopqrstuv")];
    let keyring = Keyring { secrets, ..Keyring::default() };
    let diagnosis = diagnose(&delivery(header, body), &keyring, NOW);
    assert_eq!(diagnosis, Diagnosis::Verified { secret: "B".to_owned() });
}

#[test]
fn one_valid_signature_among_several_suffices() {
    let zeros = "0".repeat(64);
    check(&format!("{},v1={zeros}", signed_header(BODY)), &[]);
    check(&signed_header(BODY).replace(",v1=", &format!(",v1={zeros},v0=old,v1=")), &[]);
    check(&signed_header(BODY).replace(',', ", "), &[]);
}

#[test]
fn a_time_out_of_tolerance_is_stale_or_in_the_future() {
    let received = delivery(&signed_header(BODY), BODY);
    check_with(&received, &keyring(), NOW + 301, &[Reason::Stale { by_secs: 301 }]);
    check_with(&received, &keyring(), NOW - 301, &[Reason::Future { by_secs: 301 }]);
}

#[test]
fn a_missing_header_is_reported_with_a_similar_one() {
    let mut received = delivery(&signed_header(BODY), BODY);
    let name = "X-Service-Signature".to_owned();
    received.headers.last_mut().unwrap().0 = "X-Acme-Signature".to_owned();
    let similar = Some("X-Acme-Signature".to_owned());
    check_with(&received, &keyring(), NOW, &[Reason::HeaderMissing { name: name.clone(), similar }]);
    received.headers.pop();
    check_with(&received, &keyring(), NOW, &[Reason::HeaderMissing { name, similar: None }]);
}

#[test]
fn a_repeated_header_and_a_non_ascii_one_are_invalid() {
    let mut received = delivery(&signed_header(BODY), BODY);
    received.headers.push(received.headers.last().unwrap().clone());
    check_with(&received, &keyring(), NOW, &[Reason::HeaderRepeated { times: 2 }]);
    check("t=1,v1=ü", &[Reason::HeaderNotText]);
}

#[test]
fn a_malformed_header_is_diagnosed() {
    let got = |value: &str| value.to_owned();
    let valid = mac(SECRET, format!("{NOW}.{BODY}"));
    let body_only = mac(SECRET, BODY);
    check("", &[Reason::PartForm { got: got("") }, Reason::TimeMissing, Reason::SignatureMissing]);
    check(&format!("t={NOW}"), &[Reason::SignatureMissing]);
    check(&format!("t={NOW},v2={valid}"), &[Reason::SignatureMissing]);
    check(&format!("v1={body_only}"), &[Reason::TimeMissing, Reason::BodyOnly]);
    let reasons = [Reason::TimeMissing, Reason::SignatureMissing, Reason::BodyOnly];
    check(&format!("sha256={body_only}"), &reasons);
    check(&format!("t={NOW},t={NOW},v1={valid}"), &[Reason::TimeRepeated]);
    check(
        &format!("t={NOW};v1={valid}"),
        &[Reason::TimeForm { got: format!("{NOW};v1={valid}") }, Reason::SignatureMissing],
    );
    check(&format!("t={NOW},v1=nonsense!"), &[Reason::SignatureForm { got: got("nonsense!") }]);
    check(&format!("t={NOW},v1="), &[Reason::SignatureForm { got: got("") }]);
}

#[test]
fn a_time_in_another_unit_is_diagnosed() {
    for (time, unit) in [
        (NOW * 1_000 + 7, TimeUnit::Milliseconds),
        (NOW * 1_000_000, TimeUnit::Microseconds),
        (NOW * 1_000_000_000, TimeUnit::Nanoseconds),
    ] {
        let header =
            |signed_time: i64| format!("t={time},v1={}", mac(SECRET, format!("{signed_time}.{BODY}")));
        check(&header(time), &[Reason::TimeNotSeconds { unit }]);
        check(&header(NOW), &[Reason::TimeNotSeconds { unit }, Reason::TimeSignedInSeconds]);
    }
}

#[test]
fn a_time_that_is_not_an_integer_is_diagnosed() {
    for time in ["2026-01-05T09:00:00Z", "-5", "1767603600.5", "", "99999999999999999999"] {
        let header = format!("t={time},v1={}", mac(SECRET, format!("{time}.{BODY}")));
        check(&header, &[Reason::TimeForm { got: time.to_owned() }]);
    }
}

#[test]
fn a_signature_in_another_encoding_is_diagnosed() {
    let bytes = mac_bytes(SECRET, format!("{NOW}.{BODY}"));
    let encoding = |encoding| [Reason::SignatureEncoding { encoding }];
    let standard = STANDARD.encode(&bytes);
    check(&format!("t={NOW},v1={}", hex::encode_upper(&bytes)), &encoding(Encoding::UpperCaseHex));
    check(&format!("t={NOW},v1={standard}"), &encoding(Encoding::Base64));
    let url_safe = standard.replace('+', "-").replace('/', "_");
    check(&format!("t={NOW},v1={}", url_safe.trim_end_matches('=')), &encoding(Encoding::Base64));
}

#[test]
fn a_digest_of_another_length_is_diagnosed() {
    for (bytes, algorithm) in [(16, "MD5"), (20, "SHA-1"), (48, "SHA-384"), (64, "SHA-512"), (31, "")] {
        let reason = Reason::DigestLength { bytes };
        assert!(reason.to_string().contains(algorithm), "{reason}");
        check(&format!("t={NOW},v1={}", "ab".repeat(bytes)), &[reason]);
    }
    check(&format!("t={NOW},v1={}", STANDARD.encode([9; 20])), &[Reason::DigestLength { bytes: 20 }]);
}

#[test]
fn an_hmac_with_sha512_is_diagnosed_with_its_message() {
    let sign = |message: String| {
        let mut mac =
            Hmac::<Sha512>::new_from_slice(SECRET.as_bytes()).expect("HMAC accepts keys of any length");
        Mac::update(&mut mac, message.as_bytes());
        mac.finalize().into_bytes()
    };
    let length = Reason::DigestLength { bytes: 64 };
    let header = |message: String| format!("t={NOW},v1={}", hex::encode(sign(message)));
    check(&header(format!("{NOW}.{BODY}")), std::slice::from_ref(&length));
    check(&header(BODY.to_owned()), &[length.clone(), Reason::BodyOnly]);
    let in_base64 = format!("t={NOW},v1={}", STANDARD.encode(sign(format!("{NOW}.{BODY}"))));
    check(&in_base64, &[length, Reason::SignatureEncoding { encoding: Encoding::Base64 }]);
}

#[test]
fn a_wrong_message_is_diagnosed() {
    let time_joined = |how| Reason::TimeJoined { how };
    check_message(BODY, Reason::BodyOnly);
    check_message(format!("{NOW}{BODY}"), time_joined(MessageLayout::Directly));
    check_message(format!("{NOW}:{BODY}"), time_joined(MessageLayout::SeparatedBy(':')));
    check_message(format!("{NOW}\n{BODY}"), time_joined(MessageLayout::SeparatedBy('\n')));
    check_message(format!("{DELIVERY_ID}.{NOW}.{BODY}"), time_joined(MessageLayout::AfterDeliveryId));
    check_message(format!("{NOW}.{DELIVERY_ID}.{BODY}"), time_joined(MessageLayout::BeforeDeliveryId));
    check_message(format!("{BODY}.{NOW}"), time_joined(MessageLayout::BodyFirst));
}

#[test]
fn a_re_serialized_body_is_diagnosed() {
    let rewritten = |how| Reason::BodyRewritten { how };
    check_message(format!("{NOW}."), rewritten(Rewriting::Empty));
    check_message(format!("{NOW}.{BODY}\n"), rewritten(Rewriting::NewlineAdded));
    let python = BODY.replace("\":", "\": ").replace(",\"", ", \"");
    check_message(format!("{NOW}.{python}"), rewritten(Rewriting::Spaced));
    let php = BODY.replace('/', "\\/").replace('ü', "\\u00fc");
    check_message(format!("{NOW}.{php}"), rewritten(Rewriting::SlashesEscapedAscii));
    // Here, the signature covers the original body, and a proxy re-serialized it.
    for (body, how) in
        [(format!("{BODY}\n"), Rewriting::Trimmed), (BODY.replace(",\"", ",\n  \""), Rewriting::Compact)]
    {
        check_with(&delivery(&signed_header(BODY), &body), &keyring(), NOW, &[rewritten(how)]);
    }
    let sorted = r#"{"a":{"c":1,"d":2},"b":0}"#;
    let unsorted = r#"{"b":0,"a":{"d":2,"c":1}}"#;
    check_with(&delivery(&signed_header(sorted), unsorted), &keyring(), NOW, &[rewritten(Rewriting::Sorted)]);
    let indented = "{\n  \"b\": 0\n}";
    check_with(
        &delivery(&signed_header(indented), "{\"b\":0}"),
        &keyring(),
        NOW,
        &[rewritten(Rewriting::Indented2)],
    );
}

#[test]
fn a_wrong_key_is_diagnosed() {
    let without_prefix = &SECRET[6..];
    check_key(without_prefix, Reason::SecretPrefixDropped);
    check_key(base64::decode(without_prefix).unwrap(), Reason::SecretDecoded { from: Encoding::Base64 });
    for end in ["\n", "\r\n", " "] {
        check_key(format!("{SECRET}{end}"), Reason::SecretPadded { side: PaddedSide::Sender });
    }
    check_key("whsec_of_the_test_mode_000000000000", Reason::OtherMode { secret: "SHOP_TEST".to_owned() });
    let tried = vec!["SHOP".to_owned(), "SHOP_TEST".to_owned()];
    check_key("whsec_another", Reason::WrongSecret { tried });
}

#[test]
fn a_faulty_secret_of_the_receiver_is_diagnosed() {
    let received = delivery(&signed_header(BODY), BODY);
    let keyring =
        |secret: &str| Keyring { secrets: vec![named_secret("SHOP", secret)], ..Keyring::default() };
    let padded = Reason::SecretPadded { side: PaddedSide::Receiver };
    check_with(&received, &keyring(&format!("{SECRET}\n")), NOW, &[padded]);
    check_with(&received, &keyring(&SECRET[6..]), NOW, &[Reason::SecretPrefixAdded]);
    let hexadecimal = hex::encode("0123456789");
    let signature = mac("0123456789", format!("{NOW}.{BODY}"));
    let received = delivery(&format!("t={NOW},v1={signature}"), BODY);
    let decoded = Reason::SecretDecoded { from: Encoding::Hex };
    check_with(&received, &keyring(&format!("whsec_{hexadecimal}")), NOW, &[decoded]);
}

#[test]
fn a_hash_without_hmac_is_diagnosed() {
    for message in [format!("{SECRET}{NOW}.{BODY}"), format!("{NOW}.{BODY}{SECRET}")] {
        check(&format!("t={NOW},v1={}", hex::encode(Sha256::digest(message))), &[Reason::PlainHash]);
    }
}

#[test]
fn several_faults_are_all_diagnosed() {
    let base64 = STANDARD.encode(mac_bytes(&SECRET[6..], BODY));
    let received = delivery(&format!("t={NOW}000,v1={base64}"), BODY);
    check_with(
        &received,
        &keyring(),
        NOW + 400,
        &[
            Reason::TimeNotSeconds { unit: TimeUnit::Milliseconds },
            Reason::SignatureEncoding { encoding: Encoding::Base64 },
            Reason::BodyOnly,
            Reason::SecretPrefixDropped,
            Reason::Stale { by_secs: 400 },
        ],
    );
}

#[test]
fn two_faults_of_the_message_are_both_diagnosed() {
    let rewritten = Reason::BodyRewritten { how: Rewriting::Trimmed };
    let received = delivery(&format!("t={NOW},v1={}", mac(SECRET, BODY)), &format!("{BODY}\n"));
    check_with(&received, &keyring(), NOW, &[Reason::BodyOnly, rewritten.clone()]);
    let header = signed_header(BODY).replace("t=1767603600", "t=1767603600000");
    let milliseconds = Reason::TimeNotSeconds { unit: TimeUnit::Milliseconds };
    check_with(
        &delivery(&header, &format!("{BODY}\n")),
        &keyring(),
        NOW,
        &[milliseconds, Reason::TimeSignedInSeconds, rewritten],
    );
}

#[test]
fn without_a_secret_format_and_time_are_judged() {
    let received = delivery(&signed_header(BODY), BODY);
    assert_eq!(diagnose(&received, &Keyring::default(), NOW), Diagnosis::NotJudged);
    check_with(&received, &Keyring::default(), NOW + 500, &[Reason::Stale { by_secs: 500 }]);
    let received = delivery("t=1", BODY);
    check_with(&received, &Keyring::default(), 1, &[Reason::SignatureMissing]);
}
