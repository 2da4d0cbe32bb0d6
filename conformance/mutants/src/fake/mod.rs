//! [`FakeServer`]: a small correct service, used only to test the suite.
//!
//! It shares its virtual clock with the suite, which advances the clock instead of waiting, so no test sleeps.
//! `Mutant::inject` adds a fault: a changed setting of the server, or a rewritten request, response or delivery.

pub mod book;
pub mod http_server;
mod limiter;
mod run;
pub mod sender;
mod traffic;

pub use conformance_faults::EditableResponse;
pub use limiter::{Limiter, LimiterSettings};
pub use run::{assert_run, block_on, ids_with_verdicts, plan, run, run_with};
pub use traffic::Traffic;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conformance::{ClockWait, Mode, TargetClock};
use serde_json::json;

use book::Book;

/// The live key of the account.
pub const LIVE_KEY: &str = "svc_live_aZ3kP9vQ7rT2mX5cB8nL";
/// The test key of the account.
pub const TEST_KEY: &str = "svc_test_wE6yU1iO4pS9dF2gH7jK";
/// A revoked key.
pub const REVOKED_KEY: &str = "svc_live_oldOLDoldOLDoldOLD99";
/// A second key of the same account and mode as the test key.
pub const SECOND_KEY: &str = "svc_test_zX8cV6bN4mQ2wE1rT3yU";
/// A key of another account, in test mode.
pub const OTHER_KEY: &str = "svc_test_another2account3key4";

/// A virtual clock, in microseconds since 2026-01-01T00:00:00Z, shared by the service and the suite.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Returns the time of the clock.
    pub fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Advances the clock.
    pub fn advance(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).expect("the duration fits in a u64");
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

impl TargetClock for Clock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros())
    }

    fn wait(&mut self, duration: Duration) -> ClockWait<'_> {
        self.advance(duration);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The two formats of `Retry-After` in HTTP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// Whole seconds.
    Seconds,
    /// A date.
    Date,
}

/// A parsed request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The mode of the key, after authentication.
    pub mode: Option<Mode>,
    /// The method, such as `GET`, `HEAD` or `POST`.
    pub method: String,
    /// The Authorization header as received.
    pub authorization: Option<String>,
    /// The path below the prefix, or `/nowhere` if the path has another prefix.
    pub path: String,
    /// The query parameters. If one is repeated, the last value counts.
    pub query: BTreeMap<String, String>,
    /// The query as received, percent-encoded.
    pub raw_query: String,
}

impl Request {
    /// Returns a parameter as a number, if it is one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.query.get(name)?.parse().ok()
    }

    /// Returns `true` if the path is that of one event.
    pub fn is_event(&self) -> bool {
        self.path.starts_with("/v1/events/")
    }

    /// Returns `true` if the path is that of one of the three lists.
    pub fn is_list(&self) -> bool {
        matches!(self.path.as_str(), "/v1/charges" | "/v1/invoices" | "/v1/events")
    }
}

/// A change of a response before it is sent.
pub type ResponseRewrite = Box<dyn FnMut(&Request, &mut EditableResponse) + Send>;
/// A change of a request before it is processed.
pub type RequestRewrite = Box<dyn FnMut(&mut Request) + Send>;

/// The fake service: its objects, its settings, and the changes of a mutant or a variant.
pub struct FakeServer {
    /// The clock, shared with the suite.
    pub clock: Clock,
    /// The account's objects in live mode.
    pub live: Book,
    /// The account's objects in test mode.
    pub test: Book,
    /// The other account's objects in test mode.
    pub other_account: Book,
    /// The time that each request takes on the clock.
    pub response_time: Duration,
    /// The rate limiter.
    pub limiter: Limiter,
    /// The number of requests that are served per window and key.
    pub limit: u64,
    /// The length of a window, or the time in which a bucket refills 120 tokens.
    pub window: Duration,
    /// The number of replicas with separate rate limits, which respond in turn.
    pub replicas: u64,
    /// Returns the number of requests that a request counts for.
    pub cost: fn(&Request) -> u64,
    /// `true` if headers show the limit and the remaining quota.
    pub reports_quota: bool,
    /// The format of `Retry-After` in a 429.
    pub retry_after: RetryAfter,
    /// Returns the identity whose requests are counted together: the key, unless a mutant changes it.
    pub counted_identity: fn(&Request) -> String,
    /// `true` if refused requests count toward the limit too.
    pub counts_refused: bool,
    /// The HTTP settings.
    pub http_settings: http_server::HttpSettings,
    /// The prefix of paths that are exempt from the limit.
    pub exempt_path: Option<&'static str>,
    /// The method that is exempt from the limit.
    pub exempt_method: Option<&'static str>,
    /// Returns `true` if a given token is accepted as a key.
    pub token_matches: fn(given: &str, key: &str) -> bool,
    /// `true` if the authentication scheme must be `Bearer`.
    pub requires_bearer: bool,
    /// `true` if the revoked key is still accepted.
    pub accepts_revoked_key: bool,
    /// The prefix of every path.
    pub prefix: &'static str,
    /// The changes of every request, in order.
    pub request_rewrites: Vec<RequestRewrite>,
    /// The changes of every response, in order.
    pub response_rewrites: Vec<ResponseRewrite>,
    /// The state of the limiter by counted identity: for most limiters the times of counted requests, in microseconds.
    pub hits: BTreeMap<String, Vec<u64>>,
    /// The number of requests with a valid key that are not exempt from the limit, including refused ones.
    pub counted_requests: u64,
    /// The origin of the server's URLs, such as `http://127.0.0.1:4711`.
    pub origin: String,
    /// The webhook sender, if the server sends deliveries.
    pub sender: Option<sender::Sender>,
    /// The traffic that changes records during a run, if there is any.
    pub traffic: Option<Traffic>,
    /// A cache of single events in front of the server, per key.
    pub event_cache: Option<EventCache>,
    /// The number of responses so far.
    pub response_count: u64,
}

/// The cached responses of single events by path and key, with the time of storage.
pub type EventCache = BTreeMap<(String, Option<String>), (u64, EditableResponse)>;

/// The lifetime of a cached response in microseconds.
const CACHED_MICROS: u64 = 10_000_000;

impl Default for FakeServer {
    fn default() -> FakeServer {
        FakeServer {
            clock: Clock::default(),
            live: Book::with_objects(1, 9, 3),
            test: Book::with_objects(2, 8, 4),
            other_account: Book { name: "Another shop".into(), ..Book::with_objects(3, 2, 1) },
            response_time: Duration::ZERO,
            limiter: Limiter::Sliding,
            limit: 120,
            window: Duration::from_secs(60),
            replicas: 1,
            cost: |_| 1,
            reports_quota: false,
            retry_after: RetryAfter::Seconds,
            counted_identity: |request| request.authorization.clone().unwrap_or_default(),
            counts_refused: false,
            http_settings: http_server::HttpSettings::default(),
            exempt_path: None,
            exempt_method: None,
            token_matches: |given, key| given == key,
            requires_bearer: true,
            accepts_revoked_key: false,
            prefix: "",
            request_rewrites: Vec::new(),
            response_rewrites: Vec::new(),
            hits: BTreeMap::new(),
            counted_requests: 0,
            origin: String::new(),
            sender: None,
            traffic: None,
            event_cache: None,
            response_count: 0,
        }
    }
}

/// A key that the server knows.
struct KnownKey {
    key: &'static str,
    mode: Mode,
    is_other_account: bool,
    is_valid: bool,
}

impl FakeServer {
    /// Adds a change of responses.
    pub fn rewrite_responses(
        &mut self,
        rewrite: impl FnMut(&Request, &mut EditableResponse) + Send + 'static,
    ) {
        self.response_rewrites.push(Box::new(rewrite));
    }

    /// Adds a change of requests.
    pub(crate) fn rewrite_requests(&mut self, rewrite: impl FnMut(&mut Request) + Send + 'static) {
        self.request_rewrites.push(Box::new(rewrite));
    }

    /// Advances the clock and the traffic, and returns the response: from the cache, or with all changes applied.
    pub fn respond(&mut self, request: Request) -> EditableResponse {
        self.clock.advance(self.response_time);
        if let Some(traffic) = &mut self.traffic {
            traffic.run_until(self.clock.micros(), [&mut self.live, &mut self.test]);
        }
        if let Some(response) = self.cached_response(&request) {
            return response;
        }
        let key = (request.path.clone(), request.authorization.clone());
        let is_cacheable = request.method == "GET" && request.is_event() && request.path != "/v1/events/";
        let response = self.respond_uncached(request);
        if let Some(cache) = self.event_cache.as_mut().filter(|_| is_cacheable && response.status == 200) {
            cache.insert(key, (self.clock.micros(), response.clone()));
        }
        response
    }

    /// Returns the response to a request from the cache, with its age in a header, unless it is absent or too old.
    fn cached_response(&self, request: &Request) -> Option<EditableResponse> {
        let key = (request.path.clone(), request.authorization.clone());
        let (stored_at, response) =
            self.event_cache.as_ref().filter(|_| request.method == "GET")?.get(&key)?;
        let age = self.clock.micros() - stored_at;
        let mut response = response.clone();
        response.set_header("age", &(age / 1_000_000).to_string());
        response.set_header("x-cache", "HIT");
        (age < CACHED_MICROS).then_some(response)
    }

    /// Returns the response to a request, with all changes of both applied, without the cache.
    fn respond_uncached(&mut self, mut request: Request) -> EditableResponse {
        for rewrite in &mut self.request_rewrites {
            rewrite(&mut request);
        }
        let mut response = self.correct_response(&mut request);
        for rewrite in &mut self.response_rewrites {
            rewrite(&request, &mut response);
        }
        if response.header("date").is_none() && !self.http_settings.omits_date {
            response.set_header("date", &http_server::http_date(self.clock.micros() / 1_000_000));
        }
        response
    }

    /// Returns the response of the service before the changes of responses.
    fn correct_response(&mut self, request: &mut Request) -> EditableResponse {
        let Some((mode, is_other_account)) = self.authenticate(request) else {
            let mut response = EditableResponse::json(401, json!({ "message": "Unknown API key." }));
            response.set_header("www-authenticate", "Bearer");
            return response;
        };
        request.mode = Some(mode);
        let (wait, remaining) = self.count_request(request);
        if let Some(wait) = wait {
            return self.rate_limited_response(wait);
        }
        let mut response = self.book_response(request, mode, is_other_account);
        if self.reports_quota {
            response.set_header("x-ratelimit-limit", &self.limit.to_string());
            response.set_header("x-ratelimit-remaining", &remaining.to_string());
        }
        response
    }

    fn book_response(&mut self, request: &Request, mode: Mode, is_other_account: bool) -> EditableResponse {
        let book = match (is_other_account, mode) {
            (true, _) => &mut self.other_account,
            (false, Mode::Live) => &mut self.live,
            (false, Mode::Test) => &mut self.test,
        };
        if request.method == "POST" && request.path == "/v1/charges" {
            return book.create_charge();
        }
        book.respond(request, mode, &format!("{}{}", self.origin, self.prefix))
    }

    /// Returns the mode of the key, and `true` if it is of the other account; `None` if the key is invalid.
    fn authenticate(&self, request: &Request) -> Option<(Mode, bool)> {
        let authorization = request.authorization.as_deref()?;
        let given = match authorization.split_once(' ') {
            Some(("Bearer", key)) => key,
            Some((_, key)) if !self.requires_bearer => key,
            _ => return None,
        };
        let key = |key, mode| KnownKey { key, mode, is_other_account: false, is_valid: true };
        let keys = [
            key(LIVE_KEY, Mode::Live),
            key(TEST_KEY, Mode::Test),
            key(SECOND_KEY, Mode::Test),
            KnownKey { is_other_account: true, ..key(OTHER_KEY, Mode::Test) },
            KnownKey { is_valid: self.accepts_revoked_key, ..key(REVOKED_KEY, Mode::Live) },
        ];
        let matching =
            keys.into_iter().find(|known| known.is_valid && (self.token_matches)(given, known.key));
        matching.map(|known| (known.mode, known.is_other_account))
    }

    /// Counts a request. Returns the microseconds until it would be served (`None` if it is served), and the remaining
    /// quota.
    fn count_request(&mut self, request: &Request) -> (Option<u64>, u64) {
        let is_exempt = self.exempt_path.is_some_and(|path| request.path.starts_with(path))
            || self.exempt_method.is_some_and(|method| request.method == method);
        if is_exempt {
            return (None, self.limit);
        }
        let now = self.clock.micros();
        self.counted_requests += 1;
        let mut identity = (self.counted_identity)(request);
        if self.replicas > 1 {
            identity += &format!(" at replica {}", self.counted_requests % self.replicas);
        }
        let hits = self.hits.entry(identity).or_default();
        let settings = LimiterSettings {
            limit: self.limit,
            window: u64::try_from(self.window.as_micros()).expect("the window fits in a u64"),
            counts_refused: self.counts_refused,
        };
        let wait = (0..(self.cost)(request)).find_map(|_| self.limiter.record_or_wait(hits, now, &settings));
        (wait, self.limit.saturating_sub(hits.len() as u64))
    }

    fn rate_limited_response(&self, wait: u64) -> EditableResponse {
        let mut response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
        let seconds = wait.div_ceil(1_000_000);
        let now = self.clock.micros() / 1_000_000;
        match self.retry_after {
            RetryAfter::Seconds => response.set_header("retry-after", &seconds.to_string()),
            RetryAfter::Date => {
                // A date has whole seconds, so one second is added: it must not be too early.
                response.set_header("retry-after", &http_server::http_date(now + seconds + 1));
            }
        }
        response
    }
}
