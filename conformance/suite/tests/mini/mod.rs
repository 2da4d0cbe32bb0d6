//! A small conforming service, written for the tests of the suite and for nothing else.
//!
//! Its clock is shared with the waiter, so that no test sleeps. `spoil` makes mutants of it: a fault
//! in a rule, or an answer that is warped on the wire.

#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod book;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use conformance::{Create, Mode, Outcome, Plan, Secret, Silent, Wait, Waiter, check};
use serde_json::{Value, json};

use book::Book;

pub(crate) const LIVE_KEY: &str = "svc_live_aZ3kP9vQ7rT2mX5cB8nL";
pub(crate) const TEST_KEY: &str = "svc_test_wE6yU1iO4pS9dF2gH7jK";
pub(crate) const REVOKED_KEY: &str = "svc_live_oldOLDoldOLDoldOLD99";
pub(crate) const SECOND_KEY: &str = "svc_test_zX8cV6bN4mQ2wE1rT3yU";
pub(crate) const OTHER_KEY: &str = "svc_test_another2account3key4";

/// Microseconds since 2026-01-01T00:00:00Z, for the service and for whoever waits.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn advance(&self, span: Duration) {
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
pub(crate) enum Limiter {
    Sliding,
    AlignedMinute,
    Bucket,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    Seconds,
    Date,
}

/// What a request looks like once it is read.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) mode: Option<Mode>,
    pub(crate) method: String,
    pub(crate) authorization: Option<String>,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
}

impl Asked {
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.query.get(name)?.parse().ok()
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.path.as_str(), "/v1/charges" | "/v1/invoices" | "/v1/events")
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// Sent instead of `body`, for what JSON cannot say.
    pub(crate) raw: Option<String>,
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Reply {
        let headers = vec![("content-type".into(), "application/json".into())];
        Reply { status, headers, body, raw: None }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.drop_header(name);
        self.headers.push((name.into(), value.into()));
    }

    pub(crate) fn drop_header(&mut self, name: &str) {
        self.headers.retain(|(it, _)| it != name);
    }
}

pub(crate) type Warp = Box<dyn FnMut(&Asked, &mut Reply) + Send>;
/// Changes a request before it is understood.
pub(crate) type Misreading = Box<dyn FnMut(&mut Asked) + Send>;

pub(crate) struct Mini {
    pub(crate) clock: Clock,
    pub(crate) live: Book,
    pub(crate) test: Book,
    pub(crate) second: Book,
    /// Passes with every request.
    pub(crate) tick: Duration,
    pub(crate) limiter: Limiter,
    pub(crate) limit: u64,
    pub(crate) retry_after: RetryAfter,
    /// Names the one who is counted: the key, unless a mutant thinks otherwise.
    pub(crate) counted: fn(&Asked) -> String,
    pub(crate) exempt: Option<&'static str>,
    pub(crate) key_fits: fn(&str, &str) -> bool,
    pub(crate) scheme_matters: bool,
    pub(crate) revoked_works: bool,
    /// What comes before every path.
    pub(crate) prefix: &'static str,
    pub(crate) misreadings: Vec<Misreading>,
    pub(crate) warps: Vec<Warp>,
    pub(crate) hits: BTreeMap<String, Vec<u64>>,
    pub(crate) address: String,
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
            exempt: None,
            key_fits: |given, key| given == key,
            scheme_matters: true,
            revoked_works: false,
            prefix: "",
            misreadings: Vec::new(),
            warps: Vec::new(),
            hits: BTreeMap::new(),
            address: String::new(),
        }
    }
}

impl Mini {
    pub(crate) fn warp(&mut self, warp: impl FnMut(&Asked, &mut Reply) + Send + 'static) {
        self.warps.push(Box::new(warp));
    }

    pub(crate) fn warp_request(&mut self, misread: impl FnMut(&mut Asked) + Send + 'static) {
        self.misreadings.push(Box::new(misread));
    }

    pub(crate) fn answer(&mut self, mut asked: Asked) -> Reply {
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
            // A full bucket, less one for each hit, plus one for each half second since it was full.
            Limiter::Bucket => {
                let refilled = now / 500_000;
                hits.retain(|slot| *slot > refilled);
            }
            Limiter::Off => {}
        }
        if (hits.len() as u64) < self.limit {
            let at = match self.limiter {
                Limiter::Bucket => hits.last().copied().unwrap_or(0).max(now / 500_000) + 1,
                _ => now,
            };
            hits.push(at);
            return None;
        }
        Some(match self.limiter {
            Limiter::Sliding => hits[0] + MINUTE - now,
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
pub(crate) fn plan(base: &str) -> Plan {
    let mut plan = Plan::new(base.parse().expect("an address"), Secret::new(LIVE_KEY), Secret::new(TEST_KEY));
    plan.second_key = Some(Secret::new(SECOND_KEY));
    plan.other_account_key = Some(Secret::new(OTHER_KEY));
    plan.revoked_key = Some(Secret::new(REVOKED_KEY));
    plan.writes = Some(Create::default());
    plan.seed = 42;
    plan
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Serves the mini service and checks it, with a plan that may be changed first.
pub(crate) fn run_with(mini: Mini, change: impl FnOnce(&mut Plan)) -> Outcome {
    block_on(async {
        let mut clock = mini.clock.clone();
        let base = wire::serve(mini).await;
        let mut plan = plan(&base);
        change(&mut plan);
        check(plan, &mut clock, &mut Silent).await
    })
}

pub(crate) fn run(mini: Mini) -> Outcome {
    run_with(mini, |_| {})
}

/// The names of the statements with one of these words.
pub(crate) fn named(outcome: &Outcome, words: &[&str]) -> Vec<String> {
    let worded = outcome.rows.iter().filter(|row| words.contains(&row.verdict.word()));
    let mut names: Vec<_> = worded.map(|row| row.id.clone()).collect();
    names.sort();
    names
}
