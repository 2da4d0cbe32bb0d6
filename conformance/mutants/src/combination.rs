//! Correct servers as they are deployed: random combinations of a variant, live traffic and infrastructure in front.

use std::fmt;
use std::time::Duration;

use conformance_model::reading::next_random;

use crate::fake::book::Book;
use crate::fake::{FakeServer, Limiter, Reply, Request, Traffic, wire};
use crate::variants::{self, Variant};

/// A correct server with live traffic behind random infrastructure.
pub(crate) struct Combination {
    number: u64,
    seed: u64,
    pub(crate) variant: &'static Variant,
    pub(crate) is_quick: bool,
    /// `true` if the lists have several long pages.
    has_many_records: bool,
    traffic: Rate,
    infrastructure: Vec<&'static Infrastructure>,
}

/// The rate of changes in the account.
#[derive(Clone, Copy)]
struct Rate {
    name: &'static str,
    period: Duration,
    burst: u64,
    /// `true` if a run must be complete despite the traffic.
    is_moderate: bool,
}

const RATES: [Rate; 7] = [
    Rate { name: "no traffic", period: Duration::MAX, burst: 0, is_moderate: true },
    Rate { name: "a change a minute", period: Duration::from_secs(60), burst: 1, is_moderate: true },
    Rate { name: "a change each 15 s", period: Duration::from_secs(15), burst: 1, is_moderate: true },
    Rate { name: "a change each 5 s", period: Duration::from_secs(5), burst: 1, is_moderate: true },
    Rate {
        name: "bursts of 20 changes a minute",
        period: Duration::from_secs(3),
        burst: 20,
        is_moderate: true,
    },
    Rate { name: "a change a second", period: Duration::from_secs(1), burst: 1, is_moderate: false },
    Rate { name: "four changes a second", period: Duration::from_millis(250), burst: 3, is_moderate: false },
];

/// The possible response times.
const TICKS_MILLIS: [u64; 5] = [5, 15, 40, 90, 180];

/// A property of the infrastructure in front of a server. `install` adds it with random details.
struct Infrastructure {
    name: &'static str,
    install: fn(&mut FakeServer, &mut Draw),
}

/// A seeded random number generator.
struct Draw(u64);

impl Draw {
    fn next_below(&mut self, bound: u64) -> u64 {
        next_random(&mut self.0) % bound
    }

    fn pick<T>(&mut self, of: &'static [T]) -> &'static T {
        &of[usize::try_from(self.next_below(of.len() as u64)).expect("the index fits in a usize")]
    }
}

impl Combination {
    /// Returns the combination with this number, drawn at random from the seed.
    pub(crate) fn from_seed(seed: u64, number: u64) -> Combination {
        let mut draw = Draw(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
        let variants: Vec<_> = variants::TABLES.iter().copied().flatten().collect();
        let variant = variants
            [usize::try_from(draw.next_below(variants.len() as u64)).expect("the index fits in a usize")];
        let drawn = draw.pick(&RATES);
        let traffic = if variant.name == variants::NO_ASSETS { RATES[0] } else { *drawn };
        let infrastructure = INFRASTRUCTURE.iter().filter(|_| draw.next_below(3) == 0).collect();
        let (is_quick, has_many_records) = (draw.next_below(3) == 0, draw.next_below(8) == 0);
        Combination { number, seed: draw.0, variant, is_quick, has_many_records, traffic, infrastructure }
    }

    /// Returns `true` if the traffic is moderate, so that a run must be complete.
    pub(crate) fn is_moderate(&self) -> bool {
        self.traffic.is_moderate
    }

    /// Returns `true` for a statement that a run with traffic may be unable to judge, however moderate the traffic is.
    pub(crate) fn may_leave_open(&self, id: &str) -> bool {
        self.traffic.burst > 0
            && match id {
                // If all older records have the same time, only records of the last minute could show a missing event, and
                // these may still be on their way.
                "events.recorded" => self.variant.name == variants::SAME_SECOND,
                // The fake sender delivers the events that it caused. An event of the traffic that is listed after them is
                // still on its way.
                "webhooks.pushed" => true,
                _ => false,
            }
    }

    pub(crate) fn prepare(&self, server: &mut FakeServer) {
        let mut draw = Draw(self.seed);
        if self.has_many_records {
            (server.live, server.test) = (Book::with_many_records(1), Book::with_many_records(2));
        }
        (self.variant.choose)(server);
        if server.tick.is_zero() {
            let refills = matches!(server.limiter, Limiter::Bucket | Limiter::Gcra);
            // With slow responses, a bucket refills faster than a burst can detect.
            let slowest = if refills { 2 } else { TICKS_MILLIS.len() };
            server.tick = Duration::from_millis(*draw.pick(&TICKS_MILLIS[..slowest]));
        }
        if self.traffic.burst > 0 {
            variants::set_choices(server, |variant| variant.current_objects = self.number.is_multiple_of(3));
            server.traffic =
                Some(Traffic::new(draw.next_below(u64::MAX), self.traffic.period, self.traffic.burst));
        }
        for infrastructure in &self.infrastructure {
            (infrastructure.install)(server, &mut draw);
        }
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quick = if self.is_quick { "quick, " } else { "" };
        let many = if self.has_many_records { "many records, " } else { "" };
        write!(f, "{}: {quick}{many}{}, {}", self.number, self.variant.name, self.traffic.name)?;
        self.infrastructure.iter().try_for_each(|infrastructure| write!(f, ", {}", infrastructure.name))
    }
}

const INFRASTRUCTURE: &[Infrastructure] = &[
    Infrastructure {
        name: "connections of few requests",
        install: |server, draw| server.wire.answers_per_connection = Some(1 + draw.next_below(20)),
    },
    Infrastructure {
        name: "connections that close now and then",
        install: |server, draw| server.wire.closing_distance = Some(1 + draw.next_below(20)),
    },
    Infrastructure {
        name: "a Keep-Alive header that counts",
        install: |server, draw| {
            let (mut left, most) = (draw.next_below(100), 100);
            server.rewrite(move |_, reply| {
                left = if left == 0 { most } else { left - 1 };
                reply.set("keep-alive", &format!("timeout=5, max={left}"));
            });
        },
    },
    Infrastructure { name: "replicas that name themselves", install: add_replicas },
    Infrastructure {
        name: "request ids",
        install: |server, draw| {
            let name =
                *draw.pick(&["x-request-id", "x-correlation-id", "traceparent", "request-id", "x-trace-id"]);
            let mut state = Draw(draw.next_below(u64::MAX));
            server.rewrite(move |_, reply| reply.set(name, &format!("{:016x}", state.next_below(u64::MAX))));
        },
    },
    Infrastructure {
        name: "proxies that name themselves",
        install: |server, draw| {
            let via = *draw.pick(&["1.1 varnish", "1.1 edge-7 (squid), 1.1 lb", "2 cloudfront"]);
            server.rewrite(move |_, reply| reply.set("via", via));
        },
    },
    Infrastructure { name: "an age of zero", install: |server, _| add_header(server, "age", "0") },
    Infrastructure {
        name: "a clock that is wrong",
        install: |server, draw| {
            let (clock, skew) = (server.clock.clone(), 60 * draw.next_below(8));
            server.rewrite(move |_, reply| {
                if reply.header("retry-after").is_none_or(|text| text.parse::<u64>().is_ok()) {
                    reply.set("date", &wire::http_date(clock.micros() / 1_000_000 + skew));
                }
            });
        },
    },
    Infrastructure { name: "headers that come twice", install: repeat_headers },
    Infrastructure {
        name: "the time that an answer took",
        install: |server, draw| {
            let mut state = Draw(draw.next_below(u64::MAX));
            server.rewrite(move |_, reply| {
                reply.set("server-timing", &format!("app;dur={}", state.next_below(9)))
            });
        },
    },
    Infrastructure {
        name: "single events from a cache",
        install: |server, _| server.event_cache = Some(Default::default()),
    },
    Infrastructure { name: "a quota that lags", install: add_lagging_quota },
    Infrastructure {
        name: "names of headers in capitals",
        install: |server, _| server.wire.title_case = true,
    },
    Infrastructure { name: "chunked bodies", install: |server, _| server.wire.chunked = true },
];

fn add_header(server: &mut FakeServer, name: &'static str, value: &'static str) {
    server.rewrite(move |_, reply| reply.set(name, value));
}

/// Adds two or three replicas with names, which respond in turn or at random.
fn add_replicas(server: &mut FakeServer, draw: &mut Draw) {
    const NAMES: &[&str] = &[
        "x-served-by",
        "x-backend",
        "x-pod",
        "x-instance",
        "x-upstream-addr",
        "server",
        "x-app-node",
        "set-cookie",
    ];
    let (name, count, in_turn) = (*draw.pick(NAMES), 2 + draw.next_below(2), draw.next_below(2) == 0);
    let (mut state, mut answers) = (Draw(draw.next_below(u64::MAX)), 0);
    server.rewrite(move |_, reply| {
        answers += 1;
        let replica = if in_turn { answers % count } else { state.next_below(count) };
        reply.set(name, &format!("app-{replica}"));
    });
}

/// Adds repeated header fields, with equal or different values.
fn repeat_headers(server: &mut FakeServer, _: &mut Draw) {
    server.rewrite(|_: &Request, reply: &mut Reply| {
        for (name, value) in [
            ("vary", "Accept-Encoding"),
            ("vary", "Origin"),
            ("x-content-type-options", "nosniff"),
            ("x-content-type-options", "nosniff"),
            ("server-timing", "db;dur=3"),
            ("server-timing", "app;dur=9"),
        ] {
            reply.headers.push((name.into(), value.into()));
        }
    });
}

/// Adds quota headers that are up to three requests behind.
fn add_lagging_quota(server: &mut FakeServer, draw: &mut Draw) {
    let mut state = Draw(draw.next_below(u64::MAX));
    let mut counts: std::collections::BTreeMap<Option<String>, Vec<u64>> = Default::default();
    let clock = server.clock.clone();
    server.rewrite(move |request, reply| {
        let now = clock.micros();
        let hits = counts.entry(request.authorization.clone()).or_default();
        hits.push(now);
        hits.retain(|at| at + 60_000_000 > now);
        let known = (hits.len() as u64).saturating_sub(state.next_below(4));
        reply.set("x-ratelimit-limit", "120");
        reply.set("x-ratelimit-remaining", &120_u64.saturating_sub(known).to_string());
    });
}
