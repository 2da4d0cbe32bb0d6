//! The idempotency cache: the responses of writes, for repeated requests (`open.idempotency`).

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use reference_core::time::{Span, Timestamp};

use crate::{fields::is_empty_list, http::Response};

/// The time for which a response is stored.
const RETENTION: Span = Span::hours(24);
/// The largest number of bytes that the responses of one book use.
const BYTES_MAX: usize = 64 << 20;
/// The memory of an entry besides its scope and body: its rows in both maps.
const ROW_BYTES: usize = 256;
/// The depth to which a body is compared by value. No known field is deeper, and each level costs another pass.
const DEPTH_MAX: usize = 8;

/// The result of looking up a request in the cache.
pub(crate) enum Lookup {
    /// No response is stored for the key.
    New,
    /// The same request was sent before and got this response.
    Repeated(Response),
    /// The key was used for another request.
    OtherRequest,
}

/// The responses to the writes of one book, stored for 24 hours.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct IdempotencyCache {
    /// By scope: method, path and `Idempotency-Key`.
    #[serde(rename = "kept")]
    responses: BTreeMap<String, StoredResponse>,
    /// The scopes by the time and the sequence number of their storage, oldest first.
    order: BTreeMap<(Timestamp, u64), String>,
    /// The number of responses stored so far, including evicted ones.
    stored: u64,
    /// The bytes of all entries.
    bytes: usize,
}

#[derive(Serialize, Deserialize)]
struct StoredResponse {
    #[serde(rename = "at")]
    stored_at: Timestamp,
    /// The fingerprint of the request.
    request: [u8; 32],
    /// The status. Headers are not stored: responses to writes have none of their own.
    status: u16,
    body: Bytes,
}

fn entry_bytes(scope: &str, body: &Bytes) -> usize {
    // The scope is stored in both maps.
    ROW_BYTES + 2 * scope.len() + body.len()
}

/// Returns a fingerprint of query and body. It depends on the values only, not on the order of keys, white space, escapes
/// and trailing zeros, which differ between clients, and between the API and MCP.
pub(crate) fn fingerprint(query: Option<&str>, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    add_text(&mut hash, b'?', query.unwrap_or(""));
    // The body was parsed before, so it is JSON or empty.
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(value) if !is_empty_list(value.get()) => add_value(&mut hash, value, DEPTH_MAX),
        _ => add_tag(&mut hash, b'{', 0),
    }
    hash.finalize().into()
}

/// Adds a value to the hash: the outer `depth` levels by value, deeper ones as they are written.
fn add_value(hash: &mut Sha256, value: &RawValue, depth: usize) {
    let text = value.get();
    let parsed = match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Cow<'_, str>>(text).map(|text| add_text(hash, b'"', &text)),
        Some(b'[') if depth > 0 => serde_json::from_str::<Vec<&RawValue>>(text).map(|items| {
            add_tag(hash, b'[', items.len());
            items.into_iter().for_each(|item| add_value(hash, item, depth - 1));
        }),
        Some(b'{') if depth > 0 => serde_json::from_str::<BTreeMap<String, &RawValue>>(text).map(|fields| {
            add_tag(hash, b'{', fields.len());
            for (key, value) in fields {
                add_text(hash, b'"', &key);
                add_value(hash, value, depth - 1);
            }
        }),
        Some(b'-' | b'0'..=b'9') => {
            add_text(hash, b'#', normalize_number(text));
            Ok(())
        }
        _ => {
            add_text(hash, b'=', text);
            Ok(())
        }
    };
    // An unpaired surrogate is valid JSON, but not a valid string.
    if parsed.is_err() {
        add_text(hash, b'=', text);
    }
}

/// Returns the number without trailing zeros of its fraction.
fn normalize_number(text: &str) -> &str {
    match text.contains('.') && !text.contains(['e', 'E']) {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// Adds the kind and length of the next part, so that different requests hash different bytes.
fn add_tag(hash: &mut Sha256, kind: u8, length: usize) {
    hash.update([kind]);
    hash.update((length as u64).to_be_bytes());
}

fn add_text(hash: &mut Sha256, kind: u8, text: &str) {
    add_tag(hash, kind, text.len());
    hash.update(text);
}

impl IdempotencyCache {
    /// Looks up a request by its scope and fingerprint.
    pub(crate) fn look_up(&self, now: Timestamp, scope: &str, request: &[u8; 32]) -> Lookup {
        match self.responses.get(scope) {
            Some(stored) if now.since(stored.stored_at) < RETENTION => {
                if stored.request == *request {
                    let StoredResponse { status, body, .. } = stored;
                    Lookup::Repeated(Response { status: *status, headers: Vec::new(), body: body.clone() })
                } else {
                    Lookup::OtherRequest
                }
            }
            _ => Lookup::New,
        }
    }

    /// Stores a successful response; evicts the oldest ones beyond the bounds.
    pub(crate) fn store(&mut self, now: Timestamp, scope: String, request: [u8; 32], response: Response) {
        let Response { status, headers, body } = response;
        assert!(headers.is_empty(), "headers are added after the response is stored");
        let added_bytes = entry_bytes(&scope, &body);
        while let Some(entry) = self.order.first_entry() {
            if now.since(entry.key().0) < RETENTION && self.bytes + added_bytes <= BYTES_MAX {
                break;
            }
            let scope = entry.remove();
            self.remove(&scope);
        }
        self.remove(&scope);
        self.order.insert((now, self.stored), scope.clone());
        self.stored += 1;
        self.bytes += added_bytes;
        self.responses.insert(scope, StoredResponse { stored_at: now, request, status, body });
    }

    fn remove(&mut self, scope: &str) {
        if let Some(removed) = self.responses.remove(scope) {
            self.bytes -= entry_bytes(scope, &removed.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_equal_content_have_equal_fingerprints() {
        let fingerprint_of = |query, body: &str| fingerprint(query, body.as_bytes());
        let body = r#"{"asset":"BTC","amount":49.9,"metadata":{"a":"\u00e4\n","b":[1,null]}}"#;
        for same in [
            r#" { "amount" : 49.90, "metadata": {"b": [1.0, null], "a": "ä\n"}, "asset":"BTC" } "#,
            r#"{"\u0061sset":"B\u0054C","amount":49.900,"metadata":{"a":"ä\n","b":[1,null]}}"#,
        ] {
            assert_eq!(fingerprint_of(None, body), fingerprint_of(None, same), "{same}");
        }
        for other in [
            r#"{"asset":"BTC","amount":49.9}"#,
            r#"{"asset":"BTC","amount":"49.9","metadata":{"a":"ä\n","b":[1,null]}}"#,
            r#"{"asset":"BTC","amount":49.91,"metadata":{"a":"ä\n","b":[1,null]}}"#,
            r#"{"asset":"BTC","amount":49.9,"metadata":{"a":"ä\n","b":[null,1]}}"#,
            r#"{"asset":"BTC","amount":49.9,"metadata":{"a":"ä\n","b":[1]}}"#,
            r#"{"asset":"BTC","amount":49.9,"metadata":{"a":"ä\n","b":[10,null]}}"#,
            r#"{"asset":"BTC","amount":49.9,"metadata":{"a":"ä\n","b":[1,null]},"x":null}"#,
        ] {
            assert_ne!(fingerprint_of(None, body), fingerprint_of(None, other), "{other}");
        }
        assert_ne!(fingerprint_of(Some("x=1"), body), fingerprint_of(None, body));
        for empty in ["", "{}", "[]", " [ ] ", "{ }"] {
            assert_eq!(fingerprint_of(None, empty), fingerprint_of(Some(""), "{}"), "{empty:?}");
        }
        // Digits beyond the precision of a float are compared.
        assert_ne!(
            fingerprint_of(None, r#"{"a":0.1}"#),
            fingerprint_of(None, r#"{"a":0.10000000000000000001}"#)
        );
        // Too deep, and an unpaired surrogate: compared as written.
        let deep = |inside: &str| format!("{}{inside}{}", r#"{"a":"#.repeat(30_000), "}".repeat(30_000));
        assert_ne!(fingerprint_of(None, &deep("1")), fingerprint_of(None, &deep("2")));
        assert_ne!(fingerprint_of(None, r#"{"a":"\ud800"}"#), fingerprint_of(None, r#"{"a":"\ud801"}"#));
    }

    #[test]
    fn large_responses_evict_the_oldest_ones() {
        let mut cache = IdempotencyCache::default();
        let request = [0; 32];
        let large_response =
            || Response { status: 201, headers: Vec::new(), body: vec![b'x'; BYTES_MAX / 4].into() };
        for n in 0..6 {
            cache.store(Timestamp(n), format!("key {n}"), request, large_response());
        }
        let is_stored = |n: u64| {
            matches!(cache.look_up(Timestamp(9), &format!("key {n}"), &request), Lookup::Repeated(_))
        };
        assert_eq!((0..6).map(is_stored).collect::<Vec<_>>(), [false, false, false, true, true, true]);
        assert!(cache.bytes <= BYTES_MAX, "{}", cache.bytes);
    }

    #[test]
    fn the_oldest_response_is_evicted_only_above_the_byte_limit() {
        let request = [0; 32];
        for count in [4, 1 << 14] {
            let body_bytes = BYTES_MAX / count - ROW_BYTES - 2 * "00000000".len();
            let count = count as u64;
            let mut cache = IdempotencyCache::default();
            let are_first_two_stored = |cache: &IdempotencyCache| {
                [0, 1].map(|n| {
                    let found = cache.look_up(Timestamp(count), &format!("{n:08}"), &request);
                    matches!(found, Lookup::Repeated(_))
                })
            };
            let body = bytes::Bytes::from(vec![b'x'; body_bytes]);
            for n in 0..=count {
                if n == count {
                    assert_eq!(are_first_two_stored(&cache), [true, true], "{count} responses");
                }
                let response = Response { status: 201, headers: Vec::new(), body: body.clone() };
                cache.store(Timestamp(n), format!("{n:08}"), request, response);
            }
            assert_eq!(are_first_two_stored(&cache), [false, true], "one more than {count} responses");
        }
    }
}
