//! The idempotency cache: the responses of writes, for repeated requests (`open.idempotency`).

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use reference_core::time::{Span, Timestamp};

use crate::{fields::is_empty_list, http::Response};

const KEPT: Span = Span::hours(24);
/// The largest number of bytes that the responses of one book use.
const BYTES_MAX: usize = 64 << 20;
/// The memory of an entry besides its texts: its rows in both maps.
const ROW_BYTES: usize = 256;
/// The depth to which a body is compared by value. No known field is deeper, and each level costs another pass.
const DEPTH_MAX: usize = 8;

/// The result of looking up a repeated request.
pub(crate) enum Lookup {
    /// The key is new.
    New,
    /// The same request was answered before.
    Repeated(Response),
    /// The key was used for another request.
    OtherRequest,
}

/// The responses to the writes of one book, kept for 24 hours.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct IdempotencyCache {
    kept: BTreeMap<String, StoredResponse>,
    /// Oldest first.
    order: BTreeMap<(Timestamp, u64), String>,
    stored: u64,
    /// The bytes of all entries.
    bytes: usize,
}

#[derive(Serialize, Deserialize)]
struct StoredResponse {
    at: Timestamp,
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
        _ => add_sign(&mut hash, b'{', 0),
    }
    hash.finalize().into()
}

/// Adds a value. Below `depth` further levels it is added as it is written.
fn add_value(hash: &mut Sha256, value: &RawValue, depth: usize) {
    let text = value.get();
    let parts = match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<Cow<'_, str>>(text).map(|text| add_text(hash, b'"', &text)),
        Some(b'[') if depth > 0 => serde_json::from_str::<Vec<&RawValue>>(text).map(|items| {
            add_sign(hash, b'[', items.len());
            items.into_iter().for_each(|item| add_value(hash, item, depth - 1));
        }),
        Some(b'{') if depth > 0 => serde_json::from_str::<BTreeMap<String, &RawValue>>(text).map(|fields| {
            add_sign(hash, b'{', fields.len());
            for (key, value) in fields {
                add_text(hash, b'"', &key);
                add_value(hash, value, depth - 1);
            }
        }),
        Some(b'-' | b'0'..=b'9') => {
            add_text(hash, b'#', plain_number(text));
            Ok(())
        }
        _ => {
            add_text(hash, b'=', text);
            Ok(())
        }
    };
    // An unpaired surrogate is valid JSON, but not text.
    if parts.is_err() {
        add_text(hash, b'=', text);
    }
}

/// Returns the number without redundant zeros.
fn plain_number(text: &str) -> &str {
    match text.contains('.') && !text.contains(['e', 'E']) {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

/// Adds the kind and length of the next part, so that no two requests give the same bytes.
fn add_sign(hash: &mut Sha256, sign: u8, length: usize) {
    hash.update([sign]);
    hash.update((length as u64).to_be_bytes());
}

fn add_text(hash: &mut Sha256, sign: u8, text: &str) {
    add_sign(hash, sign, text.len());
    hash.update(text);
}

impl IdempotencyCache {
    /// Looks up a request by its scope and fingerprint.
    pub(crate) fn look_up(&self, now: Timestamp, scope: &str, request: &[u8; 32]) -> Lookup {
        match self.kept.get(scope) {
            Some(kept) if now.since(kept.at) < KEPT => {
                if kept.request == *request {
                    let StoredResponse { status, body, .. } = kept;
                    Lookup::Repeated(Response { status: *status, headers: Vec::new(), body: body.clone() })
                } else {
                    Lookup::OtherRequest
                }
            }
            _ => Lookup::New,
        }
    }

    /// Stores a successful response; evicts the oldest ones beyond the bounds.
    pub(crate) fn store(&mut self, now: Timestamp, scope: String, request: [u8; 32], answer: Response) {
        let Response { status, headers, body } = answer;
        assert!(headers.is_empty(), "an answer has no header before it leaves");
        let more = entry_bytes(&scope, &body);
        while let Some(entry) = self.order.first_entry() {
            if now.since(entry.key().0) < KEPT && self.bytes + more <= BYTES_MAX {
                break;
            }
            let scope = entry.remove();
            self.remove(&scope);
        }
        self.remove(&scope);
        self.order.insert((now, self.stored), scope.clone());
        self.stored += 1;
        self.bytes += more;
        self.kept.insert(scope, StoredResponse { at: now, request, status, body });
    }

    fn remove(&mut self, scope: &str) {
        if let Some(kept) = self.kept.remove(scope) {
            self.bytes -= entry_bytes(scope, &kept.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_equal_content_have_equal_fingerprints() {
        let print = |query, body: &str| fingerprint(query, body.as_bytes());
        let body = r#"{"asset":"BTC","amount":49.9,"metadata":{"a":"\u00e4\n","b":[1,null]}}"#;
        for same in [
            r#" { "amount" : 49.90, "metadata": {"b": [1.0, null], "a": "ä\n"}, "asset":"BTC" } "#,
            r#"{"\u0061sset":"B\u0054C","amount":49.900,"metadata":{"a":"ä\n","b":[1,null]}}"#,
        ] {
            assert_eq!(print(None, body), print(None, same), "{same}");
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
            assert_ne!(print(None, body), print(None, other), "{other}");
        }
        assert_ne!(print(Some("x=1"), body), print(None, body));
        for nothing in ["", "{}", "[]", " [ ] ", "{ }"] {
            assert_eq!(print(None, nothing), print(Some(""), "{}"), "{nothing:?}");
        }
        // Digits beyond the precision of a float count.
        assert_ne!(print(None, r#"{"a":0.1}"#), print(None, r#"{"a":0.10000000000000000001}"#));
        // Too deep, and an unpaired surrogate: compared as written.
        let deep = |inside: &str| format!("{}{inside}{}", r#"{"a":"#.repeat(30_000), "}".repeat(30_000));
        assert_ne!(print(None, &deep("1")), print(None, &deep("2")));
        assert_ne!(print(None, r#"{"a":"\ud800"}"#), print(None, r#"{"a":"\ud801"}"#));
    }

    #[test]
    fn large_responses_evict_the_oldest() {
        let mut answers = IdempotencyCache::default();
        let request = [0; 32];
        let large = || Response { status: 201, headers: Vec::new(), body: vec![b'x'; BYTES_MAX / 4].into() };
        for n in 0..6 {
            answers.store(Timestamp(n), format!("key {n}"), request, large());
        }
        let known = |n: u64| {
            matches!(answers.look_up(Timestamp(9), &format!("key {n}"), &request), Lookup::Repeated(_))
        };
        assert_eq!((0..6).map(known).collect::<Vec<_>>(), [false, false, false, true, true, true]);
        assert!(answers.bytes <= BYTES_MAX, "{}", answers.bytes);
    }

    #[test]
    fn the_oldest_is_evicted_above_a_limit_and_not_at_it() {
        let request = [0; 32];
        for most in [4, 1 << 14] {
            let body_bytes = BYTES_MAX / most - ROW_BYTES - 2 * "00000000".len();
            let most = most as u64;
            let mut answers = IdempotencyCache::default();
            let known = |answers: &IdempotencyCache| {
                [0, 1].map(|first| {
                    let found = answers.look_up(Timestamp(most), &format!("{first:08}"), &request);
                    matches!(found, Lookup::Repeated(_))
                })
            };
            let body = bytes::Bytes::from(vec![b'x'; body_bytes]);
            for n in 0..=most {
                if n == most {
                    assert_eq!(known(&answers), [true, true], "{most} answers");
                }
                let answer = Response { status: 201, headers: Vec::new(), body: body.clone() };
                answers.store(Timestamp(n), format!("{n:08}"), request, answer);
            }
            assert_eq!(known(&answers), [false, true], "one more than {most} answers");
        }
    }
}
