//! A small conforming service, written to test the suite and for nothing else.
//!
//! Its clock is shared with the waiter, so that no test sleeps. `spoil` makes mutants of it: a fault
//! in a rule, or an answer that is warped on the wire.

pub mod book;
pub mod sender;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conformance::{Create, Mode, Outcome, Part, Plan, Secret, Silent, Wait, Waiter, check, report};
use serde_json::{Value, json};

use book::Book;

/// The account's key of live mode.
pub const LIVE_KEY: &str = "svc_live_aZ3kP9vQ7rT2mX5cB8nL";
/// The account's key of test mode.
pub const TEST_KEY: &str = "svc_test_wE6yU1iO4pS9dF2gH7jK";
/// A key that was valid once.
pub const REVOKED_KEY: &str = "svc_live_oldOLDoldOLDoldOLD99";
/// A second key of the same account and mode as the test key.
pub const SECOND_KEY: &str = "svc_test_zX8cV6bN4mQ2wE1rT3yU";
/// A key of another account, in test mode.
pub const OTHER_KEY: &str = "svc_test_another2account3key4";

/// Microseconds since 2026-01-01T00:00:00Z, for the service and for whoever waits.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// What the clock shows.
    pub fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets time pass.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(u64::try_from(span.as_micros()).expect("a short wait"), Ordering::Relaxed);
    }
}

impl Waiter for Clock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros())
    }

    fn wait(&mut self, span: Duration) -> Wait<'_> {
        self.advance(span);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
/// How requests are counted.
pub enum Limiter {
    /// Those of the last 60 seconds.
    Sliding,
    /// Those since the last full minute of the clock.
    AlignedMinute,
    /// Those since the first one, for 60 seconds from it.
    FromFirst,
    /// A bucket that gets two back each second.
    Bucket,
    /// Not at all.
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq)]
/// The two forms that HTTP gives `Retry-After`.
pub enum RetryAfter {
    /// Whole seconds.
    Seconds,
    /// A date, beside the server's own.
    Date,
}

/// What a request looks like once it is read.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The mode of the key, once it is known.
    pub mode: Option<Mode>,
    /// `GET` or `POST`.
    pub method: String,
    /// The header as it came.
    pub authorization: Option<String>,
    /// The path below the prefix.
    pub path: String,
    /// The parameters, each once.
    pub query: BTreeMap<String, String>,
}

impl Asked {
    /// A parameter as a number, if it is one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.query.get(name)?.parse().ok()
    }

    /// Whether one of the three lists is asked for.
    pub fn is_list(&self) -> bool {
        matches!(self.path.as_str(), "/v1/charges" | "/v1/invoices" | "/v1/events")
    }
}

#[derive(Clone, Debug)]
/// An answer before it is written.
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The header fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, unless `raw` is there.
    pub body: Value,
    /// Sent instead of `body`, for what JSON cannot say.
    pub raw: Option<String>,
}

impl Reply {
    /// An answer with a body of JSON that says so.
    pub fn json(status: u16, body: Value) -> Reply {
        let headers = vec![("content-type".into(), "application/json".into())];
        Reply { status, headers, body, raw: None }
    }

    /// Puts a header field in place of others of that name.
    pub fn set(&mut self, name: &str, value: &str) {
        self.drop_header(name);
        self.headers.push((name.into(), value.into()));
    }

    /// The first value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Takes a header field out.
    pub fn drop_header(&mut self, name: &str) {
        self.headers.retain(|(it, _)| it != name);
    }
}

/// Changes an answer before it is written.
pub type Warp = Box<dyn FnMut(&Asked, &mut Reply) + Send>;
/// Changes a request before it is understood.
pub type Misreading = Box<dyn FnMut(&mut Asked) + Send>;

/// The service: books, keys, a limiter, and what a mutant does to them.
pub struct Mini {
    /// Shared with whoever waits.
    pub clock: Clock,
    /// What the account has in live mode.
    pub live: Book,
    /// What the account has in test mode.
    pub test: Book,
    /// What the other account has in test mode.
    pub second: Book,
    /// Passes with every request.
    pub tick: Duration,
    /// How requests are counted.
    pub limiter: Limiter,
    /// How many are served.
    pub limit: u64,
    /// How a refusal says when to come back.
    pub retry_after: RetryAfter,
    /// Names the one who is counted: the key, unless a mutant thinks otherwise.
    pub counted: fn(&Asked) -> String,
    /// Whether a refused request uses the limit up as well.
    pub refusals_count: bool,
    /// How the wire is used.
    pub wire: wire::Wire,
    /// Paths that begin so are not counted.
    pub exempt: Option<&'static str>,
    /// Whether what was given is that key.
    pub key_fits: fn(&str, &str) -> bool,
    /// Whether `Bearer` must be the scheme.
    pub scheme_matters: bool,
    /// Whether the revoked key is still let in.
    pub revoked_works: bool,
    /// What comes before every path.
    pub prefix: &'static str,
    /// Done to every request, in order.
    pub misreadings: Vec<Misreading>,
    /// Done to every answer, in order.
    pub warps: Vec<Warp>,
    /// Who was served when, by the one who is counted.
    pub hits: BTreeMap<String, Vec<u64>>,
    /// Where it listens.
    pub address: String,
    /// Sends deliveries too, if it is there.
    pub sender: Option<sender::Sender>,
}

impl Default for Mini {
    fn default() -> Mini {
        Mini {
            clock: Clock::default(),
            live: Book::seeded(1, 9, 3),
            test: Book::seeded(2, 8, 4),
            second: Book { name: "Another shop".into(), ..Book::seeded(3, 2, 1) },
            tick: Duration::ZERO,
            limiter: Limiter::Sliding,
            limit: 120,
            retry_after: RetryAfter::Seconds,
            counted: |asked| asked.authorization.clone().unwrap_or_default(),
            refusals_count: false,
            wire: wire::Wire::default(),
            exempt: None,
            key_fits: |given, key| given == key,
            scheme_matters: true,
            revoked_works: false,
            prefix: "",
            misreadings: Vec::new(),
            warps: Vec::new(),
            hits: BTreeMap::new(),
            address: String::new(),
            sender: None,
        }
    }
}

impl Mini {
    /// Adds a change to answers.
    pub fn warp(&mut self, warp: impl FnMut(&Asked, &mut Reply) + Send + 'static) {
        self.warps.push(Box::new(warp));
    }

    /// Adds a change to requests.
    pub fn warp_request(&mut self, misread: impl FnMut(&mut Asked) + Send + 'static) {
        self.misreadings.push(Box::new(misread));
    }

    /// Answers, as honestly as the changes let it.
    pub fn answer(&mut self, mut asked: Asked) -> Reply {
        self.clock.advance(self.tick);
        for misread in &mut self.misreadings {
            misread(&mut asked);
        }
        let mut reply = self.honest(&mut asked);
        for warp in &mut self.warps {
            warp(&asked, &mut reply);
        }
        reply
    }

    fn honest(&mut self, asked: &mut Asked) -> Reply {
        let Some((mode, second)) = self.principal(asked) else {
            let mut reply = Reply::json(401, json!({ "message": "This key is not known." }));
            reply.set("www-authenticate", "Bearer");
            return reply;
        };
        asked.mode = Some(mode);
        if let Some(wait) = self.refuse_until(asked) {
            return self.too_many(wait);
        }
        let book = match (second, mode) {
            (true, _) => &mut self.second,
            (false, Mode::Live) => &mut self.live,
            (false, Mode::Test) => &mut self.test,
        };
        if asked.method == "POST" && asked.path == "/v1/charges" {
            return book.open();
        }
        book.answer(asked, mode, &format!("{}{}", self.address, self.prefix))
    }

    fn principal(&self, asked: &Asked) -> Option<(Mode, bool)> {
        let text = asked.authorization.as_deref()?;
        let given = match text.split_once(' ') {
            Some(("Bearer", key)) => key,
            Some((_, key)) if !self.scheme_matters => key,
            _ => return None,
        };
        let keys = [
            (LIVE_KEY, Mode::Live, false, true),
            (TEST_KEY, Mode::Test, false, true),
            (SECOND_KEY, Mode::Test, false, true),
            (OTHER_KEY, Mode::Test, true, true),
            (REVOKED_KEY, Mode::Live, false, self.revoked_works),
        ];
        let found = keys.into_iter().find(|(key, _, _, valid)| *valid && (self.key_fits)(given, key));
        found.map(|(_, mode, second, _)| (mode, second))
    }

    /// The microseconds after which the request would be served, if it is refused now.
    fn refuse_until(&mut self, asked: &Asked) -> Option<u64> {
        const MINUTE: u64 = 60_000_000;
        if self.limiter == Limiter::Off || self.exempt.is_some_and(|path| asked.path.starts_with(path)) {
            return None;
        }
        let now = self.clock.micros();
        let hits = self.hits.entry((self.counted)(asked)).or_default();
        match self.limiter {
            Limiter::Sliding => hits.retain(|at| at + MINUTE > now),
            Limiter::AlignedMinute => hits.retain(|at| at / MINUTE == now / MINUTE),
            Limiter::FromFirst if hits.first().is_some_and(|at| at + MINUTE <= now) => hits.clear(),
            // A full bucket, less one for each hit, plus one for each half second since it was full.
            Limiter::Bucket => {
                let refilled = now / 500_000;
                hits.retain(|slot| *slot > refilled);
            }
            Limiter::FromFirst | Limiter::Off => {}
        }
        if (hits.len() as u64) < self.limit {
            let at = match self.limiter {
                Limiter::Bucket => hits.last().copied().unwrap_or(0).max(now / 500_000) + 1,
                _ => now,
            };
            hits.push(at);
            return None;
        }
        if self.refusals_count {
            hits.push(now);
        }
        Some(match self.limiter {
            // As many must have left as there are too many.
            Limiter::Sliding => hits[hits.len() - self.limit as usize] + MINUTE - now,
            Limiter::FromFirst => hits[0] + MINUTE - now,
            Limiter::AlignedMinute => MINUTE - now % MINUTE,
            _ => hits[0] * 500_000 - now,
        })
    }

    fn too_many(&self, wait: u64) -> Reply {
        let mut reply = Reply::json(429, json!({ "message": "Too many requests." }));
        let seconds = wait.div_ceil(1_000_000);
        let now = self.clock.micros() / 1_000_000;
        match self.retry_after {
            RetryAfter::Seconds => reply.set("retry-after", &seconds.to_string()),
            RetryAfter::Date => {
                reply.set("date", &wire::http_date(now));
                // A date has no fractions: one second more, so that it is never too early.
                reply.set("retry-after", &wire::http_date(now + seconds + 1));
            }
        }
        reply
    }
}

/// A plan with every key in it.
pub fn plan(base: &str) -> Plan {
    let mut plan = Plan::new(base.parse().expect("an address"), Secret::new(LIVE_KEY), Secret::new(TEST_KEY));
    plan.second_key = Some(Secret::new(SECOND_KEY));
    plan.other_account_key = Some(Secret::new(OTHER_KEY));
    plan.revoked_key = Some(Secret::new(REVOKED_KEY));
    plan.writes = Some(Create::default());
    plan.paths.charge = Some("/v1/charges/{id}".into());
    plan.paths.invoice = Some("/v1/invoices/{id}".into());
    plan.seed = 42;
    plan.without = [Part::Webhooks].into();
    plan
}

/// Runs a future on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Serves the mini service and checks it, with a plan that may be changed first. If it sends, somebody
/// receives.
pub fn run_with(mini: Mini, change: impl FnOnce(&mut Plan)) -> Outcome {
    block_on(async {
        let mut clock = mini.clock.clone();
        let sends = mini.sender.as_ref().map(|it| it.quick);
        let (base, mini) = wire::serve_shared(mini).await;
        let mut plan = plan(&base);
        if let Some(quick) = sends {
            plan.without.remove(&Part::Webhooks);
            plan.webhooks = Some(sender::webhooks(&mini).await);
            plan.quick = quick;
        }
        change(&mut plan);
        let outcome = check(plan, &mut clock, &mut Silent).await;
        assert!(!mini.is_poisoned(), "the mini service crashed; a crash is no fault to be caught");
        outcome
    })
}

/// The same, for tests: how the run must end, and what its report must say.
#[track_caller]
pub fn run_and_read(mini: Mini, change: impl FnOnce(&mut Plan), exit: u8, parts: &[&str]) -> Outcome {
    let outcome = run_with(mini, change);
    let text = report::text(&outcome, report::Style::Plain);
    assert_eq!(outcome.exit_code(), exit, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    outcome
}

/// Serves the mini service and checks it with a plan that has everything in it.
pub fn run(mini: Mini) -> Outcome {
    run_with(mini, |_| {})
}

/// The names of the statements with one of these words.
pub fn named(outcome: &Outcome, words: &[&str]) -> Vec<String> {
    let worded = outcome.rows.iter().filter(|row| words.contains(&row.verdict.word()));
    let mut names: Vec<_> = worded.map(|row| row.id.clone()).collect();
    names.sort();
    names
}
