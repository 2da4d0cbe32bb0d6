//! [`DeliveryWriter`]: writes signed deliveries for a merchant's webhook handler.

use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use time::{OffsetDateTime, macros::format_description};

use crate::target::Target;

/// Writes `charge.paid` deliveries, each with unique ids, so that no handler treats one as a retry.
pub(crate) struct DeliveryWriter {
    /// The part of the head that all deliveries share.
    head: String,
    header_prefix: String,
    mac: Hmac<Sha256>,
    /// The time at which this writer was created, in microseconds since 1970. Distinguishes its ids from those of
    /// other runs.
    started_micros: u64,
}

/// The `data` of every delivery: deliveries differ only in `id`, `event_id`, `created_at` and the headers.
const DATA: &str = r#"{"charge":{"code":"load00000000","object":"charge","status":"paid","payment_link":null,"invoice":null,"description":"load","fiat_amount":"49.90","fiat_currency":"EUR","asset":"BTC","asset_amount":"0.000831670000000000","received_amount":"0.000831670000000000","remaining_amount":"0.000000000000000000","overpaid":false,"refunded_amount":"0.000000000000000000","exchange_rate":"60000.000000000000000000","deposit_address":"tb1qload","transactions":[],"customer_email":null,"customer_name":null,"customer":{"email":null,"name":null,"ip_address":null,"user_agent":null,"reference":null,"phone":null,"country":null,"metadata":{}},"custom_fields":[],"metadata":{},"expires_at":"2026-01-05T09:30:00.000000Z","paid_at":"2026-01-05T09:10:00.000000Z","created_at":"2026-01-05T09:00:00.000000Z"}}"#;

impl DeliveryWriter {
    pub(crate) fn new(
        target: &Target,
        secret: &str,
        header_prefix: &str,
        user_agent: &str,
    ) -> DeliveryWriter {
        let (secs, micros) = unix_time();
        DeliveryWriter {
            head: target.post_head(user_agent),
            header_prefix: header_prefix.to_owned(),
            mac: Hmac::new_from_slice(secret.as_bytes()).expect("HMAC accepts a key of any length"),
            started_micros: secs * 1_000_000 + u64::from(micros),
        }
    }

    /// Replaces the content of `buffer` with the request of the `nth` delivery, signed with the current time.
    pub(crate) fn write(&self, nth: u64, buffer: &mut Vec<u8>) {
        let (secs, micros) = unix_time();
        let (delivery, event) = (self.id(nth.wrapping_mul(2)), self.id(nth.wrapping_mul(2).wrapping_add(1)));
        let created_at = format_time(secs, micros);
        let body = format!(
            r#"{{"id":"{delivery}","event_id":"{event}","event":"charge.paid","mode":"test","created_at":"{created_at}","data":{DATA}}}"#
        );
        let mut mac = self.mac.clone();
        mac.update(secs.to_string().as_bytes());
        mac.update(b".");
        mac.update(body.as_bytes());
        let signature = hex::encode(mac.finalize().into_bytes());
        let DeliveryWriter { head, header_prefix: prefix, .. } = self;
        buffer.clear();
        for part in [
            head.as_str(),
            &format!("Content-Length: {}\r\n{prefix}-Event: charge.paid\r\n", body.len()),
            &format!("{prefix}-Delivery: {delivery}\r\n{prefix}-Signature: t={secs},v1={signature}\r\n\r\n"),
            &body,
        ] {
            buffer.extend_from_slice(part.as_bytes());
        }
    }

    /// Returns a UUID of version 7, made of the creation time of this writer and a counter.
    fn id(&self, n: u64) -> String {
        let millis = self.started_micros / 1_000;
        let micros = self.started_micros % 1_000;
        format!(
            "{:08x}-{:04x}-7{micros:03x}-8{:03x}-{:012x}",
            millis >> 16,
            millis & 0xffff,
            (n >> 48) & 0xfff,
            n & 0xffff_ffff_ffff
        )
    }
}

/// Returns the seconds since 1970, and the microseconds of the current second.
#[allow(clippy::disallowed_methods, reason = "receivers compare the time of a signature with their clock")]
fn unix_time() -> (u64, u32) {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since_1970.as_secs(), since_1970.subsec_micros())
}

fn format_time(secs: u64, micros: u32) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]");
    let time = i64::try_from(secs).ok().and_then(|secs| OffsetDateTime::from_unix_timestamp(secs).ok());
    let seconds = time.unwrap_or(OffsetDateTime::UNIX_EPOCH).format(format);
    let seconds = seconds.expect("the format applies to every date");
    format!("{seconds}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pace, Plan, Work};

    fn writer() -> DeliveryWriter {
        let work = Work::Paths { key: None, paths: Vec::new() };
        let plan = Plan {
            url: "http://127.0.0.1:1/hooks?shop=1".parse().unwrap(),
            pace: Pace::Max,
            duration: std::time::Duration::ZERO,
            connections: 1,
            threads: None,
            ca_pem: None,
            work,
        };
        DeliveryWriter::new(
            &Target::resolve(&plan).unwrap(),
            "whsec_abc",
            "X-Service",
            "Service-Webhooks/1.0",
        )
    }

    #[test]
    fn a_delivery_has_consistent_headers_and_a_valid_signature() {
        let mut buffer = Vec::new();
        writer().write(7, &mut buffer);
        let text = String::from_utf8(buffer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| {
            let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("no {name} in {head}"))[name.len() + 2..].to_owned()
        };
        assert!(head.starts_with("POST /hooks?shop=1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "{head}");
        assert_eq!(header("content-length"), body.len().to_string());
        let value: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(value["id"], header("x-service-delivery"));
        assert_eq!(value["event"], header("x-service-event"));
        let signature = header("x-service-signature");
        let (t, v1) = signature.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(b"whsec_abc").unwrap();
        mac.update(format!("{t}.{body}").as_bytes());
        assert_eq!(v1, hex::encode(mac.finalize().into_bytes()));
    }

    #[test]
    fn every_delivery_has_unique_ids() {
        let writer = writer();
        let mut ids: Vec<String> = (0..1_000).map(|n| writer.id(n)).collect();
        assert!(ids.iter().all(|id| id.len() == 36 && &id[14..15] == "7" && &id[19..20] == "8"), "{ids:?}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }
}
