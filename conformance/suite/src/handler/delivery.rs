//! A webhook delivery, signed as the service does it or with a deliberate fault.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use conformance_model::mode::Mode;
use conformance_model::secret::Secret;
use conformance_receiver::WebhookNames;

/// A generator of ids and codes, which depend on the seed and a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdGenerator {
    pub(super) seed: u64,
}

impl IdGenerator {
    fn hash(self, name: &str) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.seed.to_be_bytes());
        hash.update(name);
        hash.finalize().into()
    }

    /// Returns a UUID for a name.
    pub(super) fn uuid(self, name: &str) -> String {
        let mut bytes = self.hash(name);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let digits = hex::encode(&bytes[..16]);
        let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
        format!("{a}-{b}-{c}-{d}-{e}")
    }

    /// Returns a code of a charge or an invoice for a name.
    pub(super) fn code(self, name: &str) -> String {
        const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        self.hash(name)[..12].iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % 36])).collect()
    }
}

/// The signature of a delivery: correct, or with a deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignatureVariant {
    /// The correct signature.
    Valid,
    /// The correct signature for a time this many seconds from now.
    TimeOffset(i64),
    /// With an unknown secret.
    WrongSecret,
    /// With the secret of the other mode, or that of the endpoint if the other is not known.
    OtherModeSecret,
    /// Over the body, without the time.
    BodyOnly,
    /// For a time an hour ago, with the current time in the header.
    TimeChanged,
    /// Over the body before its amount was changed.
    Tampered,
    /// No signature.
    Missing,
    /// An invalid header.
    Malformed(&'static str),
}

/// A delivery before it is sent.
#[derive(Clone, Debug)]
pub(super) struct PreparedDelivery {
    pub(super) delivery_id: String,
    pub(super) event_type: String,
    pub(super) body: String,
    pub(super) signature: SignatureVariant,
}

/// The content of a delivery.
pub(super) struct DeliveryContent<'a> {
    pub(super) delivery_id: String,
    /// The id of the event; `None` in a test delivery.
    pub(super) event_id: Option<String>,
    pub(super) event_type: &'a str,
    pub(super) mode: Mode,
    pub(super) created_at: &'a str,
    pub(super) data: Value,
    /// Additional JSON members of the body, each after a comma.
    pub(super) extra_members: &'a str,
}

impl DeliveryContent<'_> {
    /// Writes the body, with the fields in the order of the service.
    pub(super) fn prepare(self, signature: SignatureVariant) -> PreparedDelivery {
        let event_id = self.event_id.map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
        let body = format!(
            r#"{{"id":"{}","event_id":{event_id},"event":"{}","mode":"{}","created_at":"{}"{},"data":{}}}"#,
            self.delivery_id,
            self.event_type,
            self.mode.as_str(),
            self.created_at,
            self.extra_members,
            self.data
        );
        PreparedDelivery {
            delivery_id: self.delivery_id,
            event_type: self.event_type.to_owned(),
            body,
            signature,
        }
    }
}

/// The secrets that sign deliveries.
pub(super) struct Secrets<'a> {
    pub(super) own: &'a Secret,
    pub(super) other_mode: Option<&'a Secret>,
}

impl<'a> Secrets<'a> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a Secret> {
        [Some(self.own), self.other_mode].into_iter().flatten()
    }
}

impl PreparedDelivery {
    /// Returns the headers and the body as sent, at a time in Unix seconds.
    pub(super) fn headers_and_body(
        &self,
        now: i64,
        names: &WebhookNames,
        secrets: &Secrets<'_>,
    ) -> (Vec<(String, String)>, Vec<u8>) {
        let own = secrets.own.expose();
        let body = match self.signature {
            SignatureVariant::Tampered => self.body.replacen("\"fiat_amount\":\"", "\"fiat_amount\":\"9", 1),
            _ => self.body.clone(),
        };
        let header_value = |t: i64, v1: &str| format!("t={t},v1={v1}");
        let signed = |key: &str, t: i64, body: &str| mac(key, &format!("{t}.{body}"));
        let signature = match self.signature {
            SignatureVariant::Valid | SignatureVariant::Tampered => {
                Some(header_value(now, &signed(own, now, &self.body)))
            }
            SignatureVariant::TimeOffset(offset) => {
                Some(header_value(now + offset, &signed(own, now + offset, &body)))
            }
            SignatureVariant::WrongSecret => {
                Some(header_value(now, &signed("whsec_00000000000000000000000000000000", now, &body)))
            }
            SignatureVariant::OtherModeSecret => {
                let key = secrets.other_mode.map_or(own, Secret::expose);
                Some(header_value(now, &signed(key, now, &body)))
            }
            SignatureVariant::BodyOnly => Some(header_value(now, &mac(own, &body))),
            SignatureVariant::TimeChanged => Some(header_value(now, &signed(own, now - 3_600, &body))),
            SignatureVariant::Missing => None,
            SignatureVariant::Malformed(text) => Some(text.to_owned()),
        };
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("user-agent".to_owned(), names.user_agent.clone()),
            (names.header("Event"), self.event_type.clone()),
            (names.header("Delivery"), self.delivery_id.clone()),
        ];
        headers.extend(signature.map(|text| (names.header("Signature"), text)));
        (headers, body.into_bytes())
    }
}

fn mac(key: &str, message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(message.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

/// Returns `sample`, or a default charge, with this code and status.
pub(super) fn charge(sample: Option<&Map<String, Value>>, code: &str, status: &str) -> Map<String, Value> {
    let is_paid = status == "paid";
    let received = if is_paid { "0.002500000000000000" } else { "0.000000000000000000" };
    let default_charge = json!({
        "fiat_amount": "150.00",
        "fiat_currency": "EUR",
        "asset": "BTC",
        "asset_amount": "0.002500000000000000",
        "received_amount": received,
        "customer_email": "customer@shop.example",
        "description": "A trial of your webhook handler",
        "metadata": { "order": code },
        "payment_link": null,
        "invoice": null,
        "paid_at": if is_paid { json!("2026-01-05T09:20:00.000000Z") } else { Value::Null },
    });
    let default_charge = default_charge.as_object().expect("a charge is a JSON object").clone();
    let mut charge = sample.cloned().unwrap_or(default_charge);
    charge.insert("code".to_owned(), json!(code));
    charge.insert("status".to_owned(), json!(status));
    charge
}

/// Returns the invoice of a delivery.
pub(super) fn invoice(code: &str, charge: &str, status: &str) -> Value {
    let charge_status = if status == "paid" { "paid" } else { "pending" };
    json!({
        "code": code,
        "number": "INV-0001",
        "status": status,
        "amount": "150.00",
        "currency": "EUR",
        "customer": { "name": "A customer", "email": "customer@shop.example" },
        "hosted_url": format!("https://pay.example/i/{code}"),
        "charges": [{ "id": charge, "code": charge, "status": charge_status, "asset": "BTC" }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed_delivery(signature: SignatureVariant) -> (Vec<(String, String)>, String) {
        let content = DeliveryContent {
            delivery_id: "d".to_owned(),
            event_id: Some("e".to_owned()),
            event_type: "charge.paid",
            mode: Mode::Live,
            created_at: "2026-01-05T09:20:00.000000Z",
            data: json!({ "charge": { "fiat_amount": "1.00" } }),
            extra_members: "",
        };
        let own = Secret::new("whsec_0123456789abcdefghijklmnopqrstuv");
        let secrets = Secrets { own: &own, other_mode: None };
        let (headers, body) =
            content.prepare(signature).headers_and_body(1_767_603_600, &WebhookNames::default(), &secrets);
        (headers, String::from_utf8(body).expect("text"))
    }

    #[test]
    fn a_delivery_is_signed_over_its_time_and_its_body() {
        let (headers, body) = signed_delivery(SignatureVariant::Valid);
        assert_eq!(
            body,
            r#"{"id":"d","event_id":"e","event":"charge.paid","mode":"live","created_at":"2026-01-05T09:20:00.000000Z","data":{"charge":{"fiat_amount":"1.00"}}}"#
        );
        // The published test vector, which openssl confirms.
        let key = "whsec_0123456789abcdefghijklmnopqrstuv";
        let message = r#"1767603600.{"id": "01a0be42","event":"charge.paid","note":"ü \/"}"#;
        assert_eq!(mac(key, message), "415c0e51184762bf0f187e1e4ee6e587e0ab7cdd942673eaad05eea5f9e32a88");
        let signature = format!("t=1767603600,v1={}", mac(key, &format!("1767603600.{body}")));
        assert!(headers.contains(&("X-Service-Signature".to_owned(), signature)));
    }

    #[test]
    fn each_fault_differs_from_the_correct_signature() {
        let valid = signed_delivery(SignatureVariant::Valid);
        // Without a secret of the other mode, `OtherModeSecret` is valid.
        for signature in [
            SignatureVariant::TimeOffset(-3_600),
            SignatureVariant::WrongSecret,
            SignatureVariant::BodyOnly,
            SignatureVariant::TimeChanged,
            SignatureVariant::Tampered,
            SignatureVariant::Missing,
            SignatureVariant::Malformed("v1="),
        ] {
            assert_ne!(signed_delivery(signature), valid, "{signature:?}");
        }
    }

    #[test]
    fn ids_are_uuids_of_the_seed() {
        let id = IdGenerator { seed: 1 }.uuid("a");
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert_eq!(id, IdGenerator { seed: 1 }.uuid("a"));
        assert_ne!(id, IdGenerator { seed: 2 }.uuid("a"));
        assert_ne!(id, IdGenerator { seed: 1 }.uuid("b"));
        assert_eq!(IdGenerator { seed: 1 }.code("a").len(), 12);
    }
}
