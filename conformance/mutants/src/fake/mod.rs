//! [`FakeServer`]: a small correct service, used only to test the suite.
//!
//! It shares its virtual clock with the suite's waiter, so that no test sleeps. `Mutant::inject` adds a fault: a
//! changed setting of the server, or a rewritten request or response.

pub mod book;
mod limiter;
mod run;
pub mod sender;
mod traffic;
pub mod wire;

pub use conformance_faults::Reply;
pub use limiter::{Limiter, Rules};
pub use run::{block_on, ids_with_verdicts, plan, run, run_and_read, run_with};
pub use traffic::Traffic;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conformance::{Mode, Wait, Waiter};
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

/// A virtual clock, in microseconds since 2026-01-01T00:00:00Z, shared by the service and the waiter.
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

impl Waiter for Clock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros())
    }

    fn wait(&mut self, duration: Duration) -> Wait<'_> {
        self.advance(duration);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
/// The two formats of `Retry-After` in HTTP.
pub enum RetryAfter {
    /// Whole seconds.
    Seconds,
    /// A date, with a `Date` header.
    Date,
}

/// A parsed request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The mode of the key, after authentication.
    pub mode: Option<Mode>,
    /// `GET` or `POST`.
    pub method: String,
    /// The Authorization header as received.
    pub authorization: Option<String>,
    /// The path below the prefix.
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

    /// Returns `true` for a request for one event.
    pub fn is_event(&self) -> bool {
        self.path.starts_with("/v1/events/")
    }

    /// Returns `true` for a request for one of the three lists.
    pub fn is_list(&self) -> bool {
        matches!(self.path.as_str(), "/v1/charges" | "/v1/invoices" | "/v1/events")
    }
}

/// A change of a response before it is sent.
pub type ReplyRewrite = Box<dyn FnMut(&Request, &mut Reply) + Send>;
/// A change of a request before it is processed.
pub type RequestRewrite = Box<dyn FnMut(&mut Request) + Send>;

/// The fake service: objects, keys, a limiter, and the changes of a mutant.
pub struct FakeServer {
    /// The clock, shared with the waiter.
    pub clock: Clock,
    /// The account's objects in live mode.
    pub live: Book,
    /// The account's objects in test mode.
    pub test: Book,
    /// The other account's objects in test mode.
    pub other_account: Book,
    /// The time that each request takes on the clock.
    pub tick: Duration,
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
    pub refusals_count: bool,
    /// The HTTP settings.
    pub wire: wire::Wire,
    /// The prefix of paths that are exempt from the limit.
    pub exempt_path: Option<&'static str>,
    /// The method that is exempt from the limit.
    pub exempt_method: Option<&'static str>,
    /// Returns `true` if a given token is accepted as a key.
    pub key_fits: fn(given: &str, key: &str) -> bool,
    /// `true` if the authentication scheme must be `Bearer`.
    pub scheme_matters: bool,
    /// `true` if the revoked key is still accepted.
    pub revoked_works: bool,
    /// The prefix of every path.
    pub prefix: &'static str,
    /// The changes of every request, in order.
    pub request_rewrites: Vec<RequestRewrite>,
    /// The changes of every response, in order.
    pub reply_rewrites: Vec<ReplyRewrite>,
    /// The state of the limiter by counted identity: for most limiters the times of counted requests, in microseconds.
    pub hits: BTreeMap<String, Vec<u64>>,
    /// The number of requests that counted toward a limit.
    pub turn: u64,
    /// The base URL, without the prefix of paths.
    pub address: String,
    /// The webhook sender, if the server sends deliveries.
    pub sender: Option<sender::Sender>,
    /// The live traffic.
    pub traffic: Option<Traffic>,
    /// A cache of single events in front of the server, per key.
    pub event_cache: Option<EventCache>,
    /// The number of responses so far.
    pub answers: u64,
}

/// The cached responses of single events by path and key, with the time of storage.
pub type EventCache = BTreeMap<(String, Option<String>), (u64, Reply)>;

/// The lifetime of a cached response in microseconds.
const CACHED_MICROS: u64 = 10_000_000;

impl Default for FakeServer {
    fn default() -> FakeServer {
        FakeServer {
            clock: Clock::default(),
            live: Book::with_objects(1, 9, 3),
            test: Book::with_objects(2, 8, 4),
            other_account: Book { name: "Another shop".into(), ..Book::with_objects(3, 2, 1) },
            tick: Duration::ZERO,
            limiter: Limiter::Sliding,
            limit: 120,
            window: Duration::from_secs(60),
            replicas: 1,
            cost: |_| 1,
            reports_quota: false,
            retry_after: RetryAfter::Seconds,
            counted_identity: |request| request.authorization.clone().unwrap_or_default(),
            refusals_count: false,
            wire: wire::Wire::default(),
            exempt_path: None,
            exempt_method: None,
            key_fits: |given, key| given == key,
            scheme_matters: true,
            revoked_works: false,
            prefix: "",
            request_rewrites: Vec::new(),
            reply_rewrites: Vec::new(),
            hits: BTreeMap::new(),
            turn: 0,
            address: String::new(),
            sender: None,
            traffic: None,
            event_cache: None,
            answers: 0,
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
    pub fn rewrite(&mut self, rewrite: impl FnMut(&Request, &mut Reply) + Send + 'static) {
        self.reply_rewrites.push(Box::new(rewrite));
    }

    /// Adds a change of requests.
    pub(crate) fn rewrite_requests(&mut self, rewrite: impl FnMut(&mut Request) + Send + 'static) {
        self.request_rewrites.push(Box::new(rewrite));
    }

    /// Returns the response to a request, with all changes applied.
    pub fn respond(&mut self, request: Request) -> Reply {
        self.clock.advance(self.tick);
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

    /// Returns a response from the cache, with its age.
    fn cached_response(&self, request: &Request) -> Option<Reply> {
        let key = (request.path.clone(), request.authorization.clone());
        let (stored_at, response) =
            self.event_cache.as_ref().filter(|_| request.method == "GET")?.get(&key)?;
        let age = self.clock.micros() - stored_at;
        let mut response = response.clone();
        response.set("age", &(age / 1_000_000).to_string());
        response.set("x-cache", "HIT");
        (age < CACHED_MICROS).then_some(response)
    }

    /// Returns the response with all changes, without the cache.
    fn respond_uncached(&mut self, mut request: Request) -> Reply {
        for rewrite in &mut self.request_rewrites {
            rewrite(&mut request);
        }
        let mut response = self.correct_response(&mut request);
        for rewrite in &mut self.reply_rewrites {
            rewrite(&request, &mut response);
        }
        // Prevents hyper from adding a `Date` of the system clock.
        if response.header("date").is_none() {
            response.set("date", &wire::http_date(self.clock.micros() / 1_000_000));
        }
        response
    }

    /// Returns the response of the service before it is changed.
    fn correct_response(&mut self, request: &mut Request) -> Reply {
        let Some((mode, is_other_account)) = self.authenticate(request) else {
            let mut response = Reply::json(401, json!({ "message": "Unknown API key." }));
            response.set("www-authenticate", "Bearer");
            return response;
        };
        request.mode = Some(mode);
        let (wait, remaining) = self.count_request(request);
        if let Some(wait) = wait {
            return self.rate_limited_response(wait);
        }
        let mut response = self.book_response(request, mode, is_other_account);
        if self.reports_quota {
            response.set("x-ratelimit-limit", &self.limit.to_string());
            response.set("x-ratelimit-remaining", &remaining.to_string());
        }
        response
    }

    fn book_response(&mut self, request: &Request, mode: Mode, is_other_account: bool) -> Reply {
        let book = match (is_other_account, mode) {
            (true, _) => &mut self.other_account,
            (false, Mode::Live) => &mut self.live,
            (false, Mode::Test) => &mut self.test,
        };
        if request.method == "POST" && request.path == "/v1/charges" {
            return book.create_charge();
        }
        book.respond(request, mode, &format!("{}{}", self.address, self.prefix))
    }

    /// Returns the mode of the key, and `true` if it is of the other account; `None` if the key is invalid.
    fn authenticate(&self, request: &Request) -> Option<(Mode, bool)> {
        let authorization = request.authorization.as_deref()?;
        let given = match authorization.split_once(' ') {
            Some(("Bearer", key)) => key,
            Some((_, key)) if !self.scheme_matters => key,
            _ => return None,
        };
        let key = |key, mode| KnownKey { key, mode, is_other_account: false, is_valid: true };
        let keys = [
            key(LIVE_KEY, Mode::Live),
            key(TEST_KEY, Mode::Test),
            key(SECOND_KEY, Mode::Test),
            KnownKey { is_other_account: true, ..key(OTHER_KEY, Mode::Test) },
            KnownKey { is_valid: self.revoked_works, ..key(REVOKED_KEY, Mode::Live) },
        ];
        let matching = keys.into_iter().find(|known| known.is_valid && (self.key_fits)(given, known.key));
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
        self.turn += 1;
        let mut identity = (self.counted_identity)(request);
        if self.replicas > 1 {
            identity += &format!(" at replica {}", self.turn % self.replicas);
        }
        let hits = self.hits.entry(identity).or_default();
        let rules = Rules {
            limit: self.limit,
            window: u64::try_from(self.window.as_micros()).expect("the window fits in a u64"),
            refusals_count: self.refusals_count,
        };
        let wait = (0..(self.cost)(request)).find_map(|_| self.limiter.refuse_until(hits, now, &rules));
        (wait, self.limit.saturating_sub(hits.len() as u64))
    }

    fn rate_limited_response(&self, wait: u64) -> Reply {
        let mut response = Reply::json(429, json!({ "message": "Too many requests." }));
        let seconds = wait.div_ceil(1_000_000);
        let now = self.clock.micros() / 1_000_000;
        match self.retry_after {
            RetryAfter::Seconds => response.set("retry-after", &seconds.to_string()),
            RetryAfter::Date => {
                response.set("date", &wire::http_date(now));
                // A date has whole seconds, so one second is added: it must not be too early.
                response.set("retry-after", &wire::http_date(now + seconds + 1));
            }
        }
        response
    }
}
