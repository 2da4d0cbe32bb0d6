//! The request log: an entry for each request to the API, the sandbox or MCP, and for each event of the world. The
//! latest API requests are stored for the dashboard.
//!
//! Keys and the sandbox token are redacted before a target or a message is stored or logged; stored headers and bodies
//! are redacted when shown, by [`RequestLog::redact`].

use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT},
    request::Parts,
};
use reference_core::{dialect::Dialect, mode::Mode, time::Timestamp};
use simulator::api::WorldEvent;

use crate::{memory::MemoryShare, redaction::Redactor};

/// The maximum number of stored requests of the first world.
pub(crate) const REQUESTS_MAX: usize = 500;
/// The maximum stored bytes of the body of a request or a response.
const BODY_BYTES_MAX: usize = 4 * 1_024;
/// The maximum stored bytes of a path with its query, and of a header value.
const VALUE_BYTES_MAX: usize = 1_024;
/// The initial capacity for stored headers; most requests and responses need less.
const HEADERS_CAPACITY: usize = 256;
/// The number of characters at the end of a key that are shown.
const KEY_TAIL: usize = 4;
/// Stored headers that the `http` crate has no constant for.
static OTHER_HEADERS: [HeaderName; 4] = [
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("idempotent-replayed"),
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
];

/// An entry of the log.
#[derive(Clone, Debug)]
pub enum LogEntry {
    /// A request under `/v1`, `/sandbox` or `/mcp`, with its response.
    Request(Arc<RequestRecord>),
    /// An entry of the world's history: an event, a delivery attempt, a transfer.
    Event(WorldEvent),
    /// An entry of a world that was opened on request.
    InWorld {
        /// The world's id.
        world: Arc<str>,
        /// The entry.
        entry: Box<LogEntry>,
    },
}

/// A request and its response, with redacted keys.
#[derive(Clone, Debug, Default)]
pub struct RequestRecord {
    /// The number of the API request, counted from 1; 0 for requests to `/sandbox` and `/mcp`, which are not stored.
    pub n: u64,
    /// The time of the service clock.
    pub at: Timestamp,
    /// The time from the end of the head to the response.
    pub took: Duration,
    /// The method, such as `POST`.
    pub method: Method,
    /// The path and the query.
    pub target: String,
    /// The redacted key, such as `svc_live_…4f2a`; `None` if the request has no key with a prefix of this server.
    pub key: Option<String>,
    /// The mode that the key names.
    pub mode: Option<Mode>,
    /// The status of the response.
    pub status: u16,
    /// The message of an error response.
    pub message: Option<String>,
    pub(crate) request: CapturedMessage,
    pub(crate) response: CapturedMessage,
}

/// The headers and body of a request or a response, unparsed: few of them are ever read.
#[derive(Clone, Debug, Default)]
pub(crate) struct CapturedMessage {
    /// A line `name: value` for each header, followed by the start of the body. The body is stored for the API only,
    /// because other responses contain secrets.
    bytes: Vec<u8>,
    /// The length of the header lines.
    headers_len: usize,
    /// The full length of the body in bytes.
    pub(crate) length: usize,
}

impl RequestRecord {
    fn memory_bytes(&self) -> u64 {
        let strings = self.target.capacity() + self.message.as_ref().map_or(0, String::capacity);
        (size_of_val(self) + strings + self.request.bytes.capacity() + self.response.bytes.capacity()) as u64
    }
}

/// Returns `true` if a header of a request or a response is stored.
fn is_stored(name: &HeaderName) -> bool {
    // Standard headers are compared by number; only other names are compared as text.
    matches!(*name, ACCEPT | ALLOW | CONTENT_LENGTH | CONTENT_TYPE | LOCATION | RETRY_AFTER | USER_AGENT)
        || OTHER_HEADERS.contains(name)
}

impl CapturedMessage {
    /// Replaces the stored message.
    fn capture(&mut self, headers: &HeaderMap, body: &[u8]) {
        let CapturedMessage { bytes, headers_len, length } = self;
        let stored_body = &body[..body.len().min(BODY_BYTES_MAX)];
        bytes.clear();
        bytes.reserve(HEADERS_CAPACITY + stored_body.len());
        for (name, value) in headers {
            if is_stored(name) {
                let value = value.as_bytes();
                let value = &value[..value.len().min(VALUE_BYTES_MAX)];
                // A header value contains no line break.
                for part in [name.as_str().as_bytes(), b": ", value, b"\n"] {
                    bytes.extend_from_slice(part);
                }
            }
        }
        *headers_len = bytes.len();
        *length = body.len();
        bytes.extend_from_slice(stored_body);
    }

    /// Returns the names and values of the stored headers.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        let lines = String::from_utf8_lossy(&self.bytes[..self.headers_len]);
        lines
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Returns the stored part of the body as text.
    pub(crate) fn body(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[self.headers_len..])
    }

    /// Returns `true` if the body was truncated.
    pub(crate) fn is_truncated(&self) -> bool {
        self.length > BODY_BYTES_MAX
    }
}

/// The receiver of log entries. It is called from the serving thread, so it must not block.
#[derive(Clone)]
pub struct LogSink(Arc<dyn Fn(LogEntry) + Send + Sync>);

impl LogSink {
    /// Creates a sink that calls a function.
    pub fn new(write: impl Fn(LogEntry) + Send + Sync + 'static) -> LogSink {
        LogSink(Arc::new(write))
    }

    pub(crate) fn write(&self, entry: LogEntry) {
        (self.0)(entry);
    }

    /// Returns a sink that marks entries with the id of a world.
    pub(crate) fn for_world(&self, id: &str) -> LogSink {
        let (sink, world): (LogSink, Arc<str>) = (self.clone(), id.into());
        LogSink::new(move |entry| {
            sink.write(LogEntry::InWorld { world: Arc::clone(&world), entry: Box::new(entry) });
        })
    }
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogSink")
    }
}

/// Stores the latest requests to the API, and writes entries to the sink.
pub(crate) struct RequestLog {
    key_starts: [KeyStart; 2],
    redactor: Redactor,
    sink: Option<LogSink>,
    /// The maximum number of stored requests.
    requests_max: usize,
    stored: Mutex<StoredRequests>,
    memory: MemoryShare,
}

/// The prefix of a mode's keys.
struct KeyStart {
    mode: Mode,
    text: String,
}

#[derive(Default)]
struct StoredRequests {
    /// The number of requests so far, including those that are no longer stored.
    count: u64,
    /// The latest requests, oldest first.
    records: VecDeque<Arc<RequestRecord>>,
    /// The memory of all stored requests.
    bytes: u64,
}

/// A request with its response.
pub(crate) struct Exchange<'a> {
    pub(crate) head: &'a Parts,
    /// The first `Authorization` header.
    pub(crate) authorization: Option<&'a HeaderValue>,
    /// The path without the public prefix.
    pub(crate) path: &'a str,
    pub(crate) body: &'a Bytes,
    pub(crate) status: StatusCode,
    /// The headers of the response.
    pub(crate) response_headers: &'a HeaderMap,
    /// The body of the response; empty for a stream.
    pub(crate) response_body: &'a Bytes,
    pub(crate) at: Timestamp,
    pub(crate) took: Duration,
}

impl RequestLog {
    pub(crate) fn new(
        dialect: &Dialect,
        token: &str,
        sink: Option<LogSink>,
        requests_max: usize,
        memory: MemoryShare,
    ) -> RequestLog {
        let key_starts = Mode::ALL.map(|mode| KeyStart { mode, text: dialect.key_start(mode) });
        let redactor = Redactor::new(key_starts.iter().map(|start| start.text.as_str()), token);
        RequestLog { key_starts, redactor, sink, requests_max, stored: Mutex::default(), memory }
    }

    /// Stores a request if it is under `/v1`. Writes it to the sink if it is under `/v1` or `/sandbox`, or to `/mcp`.
    pub(crate) fn record(&self, exchange: &Exchange<'_>) {
        let is_api = is_under(exchange.path, "/v1");
        let is_logged_only = is_under(exchange.path, "/sandbox") || exchange.path == "/mcp";
        let is_recorded = is_api || (is_logged_only && self.sink.is_some());
        if !is_recorded {
            return;
        }
        let (n, mut record) = if is_api { self.next_record() } else { (0, Arc::default()) };
        let fields = Arc::make_mut(&mut record);
        fields.n = n;
        self.fill(fields, exchange, is_api);
        if is_api {
            self.insert(Arc::clone(&record));
        }
        if let Some(sink) = &self.sink {
            sink.write(LogEntry::Request(record));
        }
    }

    /// Counts a request and evicts the oldest one if the maximum is stored. Returns the number of the new request and
    /// the evicted record, whose allocation is reused; a reader that still holds it causes a copy.
    fn next_record(&self) -> (u64, Arc<RequestRecord>) {
        let (mut stored, mut evicted) = (self.lock(), None);
        stored.count += 1;
        while stored.records.len() >= self.requests_max
            && let Some(oldest) = stored.records.pop_front()
        {
            stored.bytes -= oldest.memory_bytes();
            evicted = Some(oldest);
        }
        let n = stored.count;
        drop(stored);
        (n, evicted.unwrap_or_default())
    }

    /// Inserts a record in the order of numbers: a request with a later number may finish earlier.
    fn insert(&self, record: Arc<RequestRecord>) {
        let bytes = record.memory_bytes();
        let mut stored = self.lock();
        let index =
            stored.records.iter().rposition(|earlier| earlier.n < record.n).map_or(0, |index| index + 1);
        stored.records.insert(index, record);
        stored.bytes += bytes;
        self.memory.set(stored.bytes);
    }

    /// Overwrites all fields of a record except its number.
    fn fill(&self, record: &mut RequestRecord, exchange: &Exchange<'_>, is_api: bool) {
        let RequestRecord { n: _, at, took, method, target, key, mode, status, message, request, response } =
            record;
        (*at, *took) = (exchange.at, exchange.took);
        method.clone_from(&exchange.head.method);
        *status = exchange.status.as_u16();

        target.clear();
        target.push_str(exchange.path);
        if let Some(query) = exchange.head.uri.query() {
            target.push('?');
            target.push_str(query);
        }
        // Before truncation, because a truncated secret would not be found.
        if let Cow::Owned(redacted) = self.redact(target) {
            *target = redacted;
        }
        target.truncate(target.floor_char_boundary(VALUE_BYTES_MAX));
        target.shrink_to(VALUE_BYTES_MAX);

        let previous_key = key.take();
        *mode =
            exchange.authorization.and_then(|value| self.parse_key(value.as_bytes())).map(|(start, tail)| {
                let text = key.insert(previous_key.unwrap_or_default());
                text.clear();
                text.extend([&start.text, "…", tail]);
                start.mode
            });

        *message = None;
        if *status >= 400
            && let Ok(body) = serde_json::from_slice::<serde_json::Value>(exchange.response_body)
            && let Some(text) = body["message"].as_str()
        {
            *message = Some(self.redact(text).into_owned());
        }

        let stored_body = |body| if is_api { body } else { &[][..] };
        request.capture(&exchange.head.headers, stored_body(exchange.body));
        response.capture(exchange.response_headers, stored_body(exchange.response_body));
    }

    /// Returns the prefix of the key in an `Authorization` header, and the part of its end that may be shown.
    fn parse_key<'h>(&self, authorization: &'h [u8]) -> Option<(&KeyStart, &'h str)> {
        let (scheme, secret) = authorization.split_at_checked("Bearer ".len())?;
        let is_bearer = scheme.eq_ignore_ascii_case(b"Bearer ");
        let start =
            self.key_starts.iter().find(|start| is_bearer && secret.starts_with(start.text.as_bytes()))?;
        let rest = &secret[start.text.len()..];
        // The end is shown only if at least twice as much stays hidden.
        let tail = rest.len().checked_sub(KEY_TAIL).filter(|from| *from >= 2 * KEY_TAIL);
        let tail = tail.and_then(|from| std::str::from_utf8(&rest[from..]).ok());
        Some((start, tail.unwrap_or_default()))
    }

    /// Returns the text with keys and the sandbox token redacted.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact(text)
    }

    /// Returns the stored requests, newest first.
    pub(crate) fn newest_first(&self) -> Vec<Arc<RequestRecord>> {
        self.lock().records.iter().rev().map(Arc::clone).collect()
    }

    /// Returns the stored request with this number.
    pub(crate) fn find(&self, n: u64) -> Option<Arc<RequestRecord>> {
        self.lock().records.iter().find(|record| record.n == n).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, StoredRequests> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::memory::MemoryBudget;

    const TOKEN: &str = "sandbox_0123456789abcdef";

    fn log() -> RequestLog {
        log_with_max(REQUESTS_MAX)
    }

    fn log_with_max(requests_max: usize) -> RequestLog {
        RequestLog::new(
            &Dialect::default(),
            TOKEN,
            None,
            requests_max,
            MemoryBudget::new(usize::MAX).unbounded_share(),
        )
    }

    fn record_request(log: &RequestLog, target: &str, key: &str, body: &str, response: (u16, &str)) {
        let request = Request::builder()
            .uri(target)
            .header("authorization", format!("Bearer {key}"))
            .header("cookie", "secret")
            .header("user-agent", "shop/1");
        let (head, ()) = request.body(()).expect("requests in tests are valid").into_parts();
        log.record(&Exchange {
            path: head.uri.path(),
            head: &head,
            authorization: head.headers.get("authorization"),
            body: &Bytes::copy_from_slice(body.as_bytes()),
            status: StatusCode::from_u16(response.0).expect("statuses in tests are valid"),
            response_headers: &HeaderMap::new(),
            response_body: &Bytes::copy_from_slice(response.1.as_bytes()),
            at: Timestamp(1),
            took: Duration::from_millis(2),
        });
    }

    const KEY: &str = "svc_live_0123456789abcdef0123456789abcdef0123Qx7Z";

    #[test]
    fn keys_are_redacted_in_the_log() {
        let log = log();
        let body = format!(r#"{{"note":"{KEY} and svc_test_abc, svc_live_"}}"#);
        record_request(
            &log,
            &format!("/v1/charges?x={KEY}"),
            KEY,
            &body,
            (422, &format!(r#"{{"message":"{KEY}?"}}"#)),
        );
        let record = log.newest_first().remove(0);
        assert_eq!((record.key.as_deref(), record.mode), (Some("svc_live_…Qx7Z"), Some(Mode::Live)));
        assert_eq!(record.target, "/v1/charges?x=svc_live_…");
        assert_eq!(record.message.as_deref(), Some("svc_live_…?"));
        assert_eq!(log.redact(&record.request.body()), r#"{"note":"svc_live_… and svc_test_…, svc_live_"}"#);
        assert!(record.request.headers().iter().all(|(name, _)| name == "user-agent"), "{record:?}");
    }

    #[test]
    fn a_secret_at_the_end_of_a_target_is_redacted_before_truncation() {
        for secret in [TOKEN, KEY, &KEY.replace('_', "%5f")] {
            for before in VALUE_BYTES_MAX - secret.len() - 20..VALUE_BYTES_MAX {
                let log = log();
                record_request(&log, &format!("/v1/x?{}{secret}", "y".repeat(before)), KEY, "", (404, "{}"));
                let target = log.newest_first()[0].target.clone();
                assert!(!target.contains("0123") && !target.contains("sand"), "{target}");
            }
        }
    }

    #[test]
    fn a_request_without_a_key_of_this_server_has_no_key() {
        for key in ["", "svc_live", "sk_live_0123456789abcdef", "svc_prod_1"] {
            let log = log();
            record_request(&log, "/v1/account", key, "", (401, "{}"));
            assert_eq!(log.newest_first()[0].key, None, "{key}");
        }
        let log = log();
        record_request(&log, "/v1/account", "svc_test_short", "", (401, "{}"));
        assert_eq!(
            log.newest_first()[0].key.as_deref(),
            Some("svc_test_…"),
            "no part of a short key is shown"
        );
    }

    #[test]
    fn a_reused_record_contains_nothing_of_the_previous_request() {
        let long = r#"{"message":"no such charge"}"#;
        let first = |log: &RequestLog| record_request(log, "/v1/charges?page=7", KEY, long, (404, long));
        let second_requests: [fn(&RequestLog); 3] = [
            |log| record_request(log, "/v1/account", "svc_test_short", "{}", (200, "[]")),
            |log| record_request(log, "/v1", "", "", (401, "")),
            |log| record_request(log, "/v1/events?x=svc_live_1", "sk_1", "1", (422, "{}")),
        ];
        for second in second_requests {
            let (used, fresh) = (log_with_max(1), log_with_max(1));
            first(&used);
            let address = Arc::as_ptr(&used.newest_first()[0]);
            second(&used);
            second(&fresh);
            let [used, fresh] = [used, fresh].map(|log| log.newest_first().remove(0));
            assert_eq!((Arc::as_ptr(&used), used.n), (address, 2));
            assert_eq!(format!("{:?}", RequestRecord { n: 1, ..(*used).clone() }), format!("{fresh:?}"));
        }
    }

    #[test]
    fn requests_are_stored_in_the_order_of_their_numbers() {
        let log = log();
        let [(first, _), (second, _), (third, _)] = [log.next_record(), log.next_record(), log.next_record()];
        for n in [second, third, first] {
            log.insert(Arc::new(RequestRecord { n, ..RequestRecord::default() }));
        }
        let numbers: Vec<_> = log.newest_first().iter().map(|record| record.n).collect();
        assert_eq!(numbers, [3, 2, 1]);
    }

    #[test]
    fn a_record_does_not_change_while_a_reader_holds_it() {
        let log = log_with_max(1);
        record_request(&log, "/v1/account", KEY, "", (200, "{}"));
        let held = log.newest_first().remove(0);
        record_request(&log, "/v1/charges", KEY, "", (200, "{}"));
        assert_eq!(
            (held.target.as_str(), log.newest_first()[0].target.as_str()),
            ("/v1/account", "/v1/charges")
        );
    }

    #[test]
    fn the_log_is_bounded_in_count_and_bytes() {
        let log = log();
        let target = format!("/v1/charges?x={}", "y".repeat(2 * VALUE_BYTES_MAX));
        for _ in 0..REQUESTS_MAX + 7 {
            record_request(&log, &target, KEY, &"é".repeat(5_000), (200, "{}"));
        }
        record_request(&log, "/dashboard", KEY, "", (200, "{}"));
        record_request(&log, "/v10", KEY, "", (404, "{}"));
        record_request(&log, "/sandbox/keys", KEY, "", (200, "{}"));
        let stored = log.newest_first();
        let bytes: u64 = stored.iter().map(|record| record.memory_bytes()).sum();
        assert!(bytes > (REQUESTS_MAX * BODY_BYTES_MAX) as u64);
        assert_eq!(log.memory.used_bytes(), bytes);
        assert_eq!((stored.len(), stored[0].n), (REQUESTS_MAX, 507));
        assert!(
            stored.iter().all(|r| r.request.bytes.len() - r.request.headers_len <= BODY_BYTES_MAX
                && r.request.is_truncated())
        );
        assert!(stored.iter().all(|record| record.target.capacity() < 2 * VALUE_BYTES_MAX));
        assert!(log.find(7).is_none() && log.find(8).is_some());
    }
}
