//! Pseudonymizes personal values and amounts in a recording, so that it can be shared.
//!
//! A value is replaced by another of the same format, under a random key that is not stored. Equal values stay equal,
//! different values stay different, digits stay digits and letters letters, so all verdicts stay the same. Values
//! that the specification defines stay readable: ids and codes, types, states, currencies, times.

mod cipher;
mod deliveries;
mod json;

use std::collections::BTreeSet;
use std::fmt;

use self::cipher::Cipher;
use crate::recording::{ExchangeOutcome, ReceivedResponse, Recording};

/// The names of header fields that contain no personal data.
const PUBLIC_HEADERS: &[&str] = &[
    "age",
    "allow",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "location",
    "retry-after",
    "server",
    "transfer-encoding",
    "vary",
    "www-authenticate",
];
/// The length of the shortest identifier that stays readable within text. A shorter identifier may be part of any word.
const READABLE_ID_LEN_MIN: usize = 6;

/// A keyed pseudonymization of recordings.
#[derive(Clone, PartialEq, Eq)]
pub struct Redaction(Cipher);

impl Redaction {
    /// Creates a redaction. `key` must be random, differ between runs, and not be stored.
    pub fn new(key: [u8; 32]) -> Redaction {
        Redaction(Cipher::new(key))
    }

    /// Replaces all personal values of a recording.
    pub fn redact(&self, recording: &mut Recording) {
        recording.exact_amounts = false;
        let ids: BTreeSet<String> =
            recording.exchanges.iter().flat_map(|exchange| requested_ids(&exchange.target)).collect();
        for exchange in &mut recording.exchanges {
            let ExchangeOutcome::Answered(response) = &mut exchange.outcome else { continue };
            let ReceivedResponse { headers, body, .. } = response;
            for (_, value) in headers.iter_mut().filter(|(name, _)| !is_public_header(name)) {
                *value = self.hide_except_ids(value, &ids);
            }
            *body = body.with_text(self.redact_body(body, &ids));
        }
        if let Some(deliveries) = &mut recording.deliveries {
            self.redact_deliveries(deliveries, &ids);
        }
    }

    fn redact_body(&self, body: &str, ids: &BTreeSet<String>) -> String {
        if let Some(hidden) = json::map_scalars(body, |scalar| self.replacement(scalar, ids)) {
            return hidden;
        }
        let mut hidden = self.hide_except_ids(body, ids);
        // A body that is not JSON must not become JSON.
        if !body.is_empty() && json::map_scalars(&hidden, |_| None).is_some() {
            hidden.push('?');
        }
        hidden
    }

    /// Returns the replacement of a value, or `None` if it stays readable.
    fn replacement(&self, scalar: json::Scalar<'_>, ids: &BTreeSet<String>) -> Option<String> {
        match scalar {
            json::Scalar::Number { name, private, text } => {
                let is_hidden = private || !json::is_count(name);
                is_hidden.then(|| self.0.encrypt_number(text))
            }
            json::Scalar::Text { text, .. } if is_time(text) || ids.contains(text) => None,
            json::Scalar::Text { name, private, text } => {
                if private || !json::is_public_member(name, text) {
                    Some(self.hide_except_ids(text, ids))
                } else if text.contains('@') {
                    Some(self.hide_email_addresses(text))
                } else {
                    None
                }
            }
        }
    }

    /// Replaces text except the requested identifiers in it, so that two responses that differ only in these
    /// identifiers still do.
    fn hide_except_ids(&self, text: &str, ids: &BTreeSet<String>) -> String {
        let readable = ids.iter().filter(|id| id.len() >= READABLE_ID_LEN_MIN);
        let first = readable.filter_map(|id| text.find(id.as_str()).map(|start| (start, id.len()))).min();
        match first {
            None => self.0.encrypt_text(text),
            Some((start, len)) => {
                let (before, rest) = text.split_at(start);
                let (id, after) = rest.split_at(len);
                format!("{}{id}{}", self.0.encrypt_text(before), self.hide_except_ids(after, ids))
            }
        }
    }

    fn hide_email_addresses(&self, text: &str) -> String {
        let words = text.split(' ');
        let hidden: Vec<_> = words
            .map(|word| if word.contains('@') { self.0.encrypt_text(word) } else { word.to_owned() })
            .collect();
        hidden.join(" ")
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redaction(…)")
    }
}

fn is_public_header(header: &str) -> bool {
    PUBLIC_HEADERS.contains(&header) || header.starts_with("x-ratelimit-") || header.starts_with("ratelimit")
}

/// Returns the identifiers in a request: the last part of its path and the values of its query, without plain numbers.
fn requested_ids(target: &str) -> Vec<String> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let last = path.rsplit('/').next().unwrap_or_default().to_owned();
    let values = url::form_urlencoded::parse(query.as_bytes()).map(|(_, value)| value.into_owned());
    let named = [last].into_iter().chain(values);
    named.filter(|id| !id.is_empty() && !id.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// Returns `true` for text that starts like an ISO 8601 time, such as `2026-01-05T09:00:00Z`, and is not longer than
/// one.
fn is_time(text: &str) -> bool {
    const FORMAT: &[u8] = b"0000-00-00T00:00";
    const LEN_MAX: usize = 40;
    text.len() >= FORMAT.len()
        && text.len() <= LEN_MAX
        && text.bytes().zip(FORMAT).all(|(byte, expected)| match expected {
            b'0' => byte.is_ascii_digit(),
            _ => byte == *expected,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction() -> Redaction {
        Redaction::new([7; 32])
    }

    #[track_caller]
    fn check_redacted(body: &str, kept: &[&str], hidden: &[&str]) {
        let ids = requested_ids("/v1/events/0190a5c4-7f3e-7abc");
        let found = redaction().redact_body(body, &ids.into_iter().collect());
        for part in kept {
            assert!(found.contains(part), "{part} in {found}");
        }
        for part in hidden {
            assert!(!found.contains(part), "{part} in {found}");
        }
    }

    #[test]
    fn specified_values_stay_readable() {
        check_redacted(
            r#"{"id":"k3m9x2","type":"charge.paid","status":"paid","created_at":"2026-01-05T09:00:00.000000Z"}"#,
            &["k3m9x2", "charge.paid", r#""paid""#, "2026-01-05T09:00:00.000000Z"],
            &[],
        );
        check_redacted(r#"{"meta":{"total":17,"per_page":25}}"#, &["17", "25"], &[]);
    }

    #[test]
    fn personal_values_and_amounts_are_hidden() {
        check_redacted(
            r#"{"customer":{"name":"Ann Lee","email":"ann@shop.example"},"description":"Red shoes"}"#,
            &["email", "@", "customer"],
            &["Ann", "Lee", "shop", "shoes"],
        );
        check_redacted(
            r#"{"amount":"4913.57","fee":12.75,"address":"bc1qxy2kgdygjrsqtzq2n0yrf2493p83kkfjhx0wlh"}"#,
            &["amount"],
            &["4913.57", "12.75", "bc1qxy2kgd"],
        );
        check_redacted(r#"{"metadata":{"id":"Ann","total":4711}}"#, &["metadata"], &["Ann", "4711"]);
        check_redacted(r#"{"message":"No customer ann@shop.example here."}"#, &["No customer "], &["shop"]);
        check_redacted(r#"{"status":"paid by Ann Lee"}"#, &["status"], &["Ann"]);
    }

    #[test]
    fn equal_values_stay_equal_everywhere() {
        let hidden = redaction().redact_body(r#"["4913.57",{"amount":"4913.57"},4913.57]"#, &BTreeSet::new());
        let value: serde_json::Value = serde_json::from_str(&hidden).unwrap();
        assert_eq!(value[0], value[1]["amount"]);
        assert_eq!(Some(value[2].to_string().as_str()), value[0].as_str());
    }

    #[test]
    fn the_requested_identifier_stays_readable_within_text() {
        check_redacted(
            "<p>No event 0190a5c4-7f3e-7abc of Ann</p>",
            &["0190a5c4-7f3e-7abc", "<", "</"],
            &["Ann", "event"],
        );
    }

    #[test]
    fn text_that_is_not_json_does_not_become_json() {
        for body in [r#"{"a":01}"#, "0123", "<html>", r#"{"a":"b""#] {
            let hidden = redaction().redact_body(body, &BTreeSet::new());
            assert!(serde_json::from_str::<serde_json::Value>(&hidden).is_err(), "{body} became {hidden}");
        }
    }

    #[test]
    fn duplicate_names_and_white_space_are_unchanged() {
        let hidden = redaction().redact_body("{ \"name\": \"Ann\",\n \"name\": null }", &BTreeSet::new());
        assert_eq!(crate::reading::first_duplicate_name(&hidden).as_deref(), Some("name"), "{hidden}");
        assert!(hidden.contains(",\n "), "{hidden}");
    }

    #[test]
    fn a_redaction_does_not_print_its_key() {
        assert_eq!(format!("{:?}", redaction()), "Redaction(…)");
    }
}
