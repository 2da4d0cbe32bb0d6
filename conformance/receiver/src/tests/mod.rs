//! Tests of the diagnosis, the notes and the receiver, and the deliveries that they use.

mod arbitrary_requests;
mod diagnosis;
mod envelope;
mod wire;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::OffsetDateTime;

use conformance_model::secret::Secret;

use super::{Keyring, ReceivedRequest, WebhookNames};

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u";
/// The Unix time of all deliveries: 2026-01-05T09:00:00Z.
const NOW: i64 = 1_767_603_600;
/// The id of the delivery in `BODY`.
const DELIVERY_ID: &str = "01a0be42-2100-7000-8000-01e7e4f1ca48";
const BODY: &str = r#"{"id":"01a0be42-2100-7000-8000-01e7e4f1ca48","event_id":"01a0be42-2100-7000-8000-014aeed46937","event":"charge.paid","mode":"live","created_at":"2026-01-05T09:00:00.000000Z","data":{"charge":{"code":"kanwf93se5yn","url":"https://shop.example/ü?a&b"}}}"#;

/// Returns the part of `SECRET` that must stay secret.
fn secret_without_prefix() -> &'static str {
    SECRET.strip_prefix("whsec_").expect("the constant has the prefix")
}

/// Returns the HMAC-SHA256 of a message in hexadecimal.
fn mac(key: impl AsRef<[u8]>, message: impl AsRef<[u8]>) -> String {
    hex::encode(mac_bytes(key, message))
}

fn mac_bytes(key: impl AsRef<[u8]>, message: impl AsRef<[u8]>) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_ref()).unwrap();
    mac.update(message.as_ref());
    mac.finalize().into_bytes().to_vec()
}

/// Returns the valid signature header of a body, signed at `NOW`.
fn signed_header(body: &str) -> String {
    format!("t={NOW},v1={}", mac(SECRET, format!("{NOW}.{body}")))
}

/// Returns a correct delivery with this signature header and body.
fn delivery(signature: &str, body: &str) -> ReceivedRequest {
    let headers = [
        ("Host", "127.0.0.1"),
        ("Content-Type", "application/json"),
        ("User-Agent", "Service-Webhooks/1.0"),
        ("X-Service-Event", "charge.paid"),
        ("X-Service-Delivery", DELIVERY_ID),
        ("X-Service-Signature", signature),
    ];
    ReceivedRequest {
        at: OffsetDateTime::from_unix_timestamp(NOW).unwrap(),
        method: "POST".to_owned(),
        path: "/hooks".to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.as_bytes().into())).to_vec(),
        body: body.as_bytes().into(),
    }
}

fn named_secret(name: &str, secret: &str) -> (String, Secret) {
    (name.to_owned(), Secret::new(secret))
}

fn keyring() -> Keyring {
    Keyring {
        names: WebhookNames::default(),
        secrets: vec![named_secret("SHOP", SECRET)],
        other_endpoints: vec![named_secret("SHOP_TEST", "whsec_of_the_test_mode_000000000000")],
    }
}
