//! [`Combination`]: a random correct server, made of a variant, traffic that changes its records during the run, and
//! infrastructure in front of it.

use std::fmt;
use std::time::Duration;

use conformance_model::reading::next_random;

use crate::fake::book::Book;
use crate::fake::{EditableResponse, FakeServer, Limiter, Request, Traffic, http_server};
use crate::variants::{self, Variant};

/// A correct server with traffic behind random infrastructure.
pub(crate) struct Combination {
    /// The number of the combination among those of its seed, from 0.
    number: u64,
    /// The seed of the random details.
    seed: u64,
    pub(crate) variant: &'static Variant,
    /// `true` if the suite runs its quick check, without a burst.
    pub(crate) is_quick: bool,
    /// `true` if every list has several pages of 100 records.
    has_many_records: bool,
    traffic: Rate,
    infrastructure: Vec<&'static Infrastructure>,
}

/// The rate of changes in the account.
#[derive(Clone, Copy)]
struct Rate {
    name: &'static str,
    /// The mean time between two changes.
    period: Duration,
    /// The maximum number of simultaneous changes; 0 without traffic.
    burst: u64,
    /// `true` if a run must be complete despite the traffic.
    is_moderate: bool,
}

const RATES: [Rate; 7] = [
    Rate { name: "no traffic", period: Duration::MAX, burst: 0, is_moderate: true },
    Rate { name: "a change a minute", period: Duration::from_secs(60), burst: 1, is_moderate: true },
    Rate { name: "a change every 15 s", period: Duration::from_secs(15), burst: 1, is_moderate: true },
    Rate { name: "a change every 5 s", period: Duration::from_secs(5), burst: 1, is_moderate: true },
    Rate {
        name: "20 changes a minute, in bursts of up to 20",
        period: Duration::from_secs(3),
        burst: 20,
        is_moderate: true,
    },
    Rate { name: "a change a second", period: Duration::from_secs(1), burst: 1, is_moderate: false },
    Rate { name: "four changes a second", period: Duration::from_millis(250), burst: 3, is_moderate: false },
];

/// The possible response times, in ascending order.
const RESPONSE_TIMES_MILLIS: [u64; 5] = [5, 15, 40, 90, 180];

/// A property of the infrastructure in front of a server. `install` adds it with random details.
struct Infrastructure {
    name: &'static str,
    install: fn(&mut FakeServer, &mut Rng),
}

/// A seeded random number generator. The field is its state.
struct Rng(u64);

impl Rng {
    fn next_below(&mut self, bound: u64) -> u64 {
        next_random(&mut self.0) % bound
    }

    fn next_seed(&mut self) -> u64 {
        self.next_below(u64::MAX)
    }

    fn pick<T>(&mut self, items: &'static [T]) -> &'static T {
        &items[self.next_index(items.len())]
    }

    fn next_index(&mut self, len: usize) -> usize {
        usize::try_from(self.next_below(len as u64)).expect("the index fits in a usize")
    }
}

impl Combination {
    /// Returns the combination with this number, drawn at random from the seed.
    pub(crate) fn from_seed(seed: u64, number: u64) -> Combination {
        let mut rng = Rng(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number));
        let variants: Vec<_> = variants::TABLES.iter().copied().flatten().collect();
        let variant = variants[rng.next_index(variants.len())];
        let drawn_rate = *rng.pick(&RATES);
        // An account without assets cannot get new charges.
        let traffic = if variant.name == variants::NO_ASSETS { RATES[0] } else { drawn_rate };
        let infrastructure = INFRASTRUCTURE.iter().filter(|_| rng.next_below(3) == 0).collect();
        let (is_quick, has_many_records) = (rng.next_below(3) == 0, rng.next_below(8) == 0);
        Combination { number, seed: rng.0, variant, is_quick, has_many_records, traffic, infrastructure }
    }

    /// Returns `true` if the traffic is moderate, so that a run must be complete.
    pub(crate) fn is_moderate(&self) -> bool {
        self.traffic.is_moderate
    }

    /// Returns `true` for a statement that a run with traffic may be unable to judge, even if the traffic is moderate.
    pub(crate) fn may_leave_unjudged(&self, id: &str) -> bool {
        self.traffic.burst > 0
            && match id {
                // If all older records have the same time, only records of the last minute could show a missing event, and
                // the events of these may be delayed.
                "events.recorded" => self.variant.name == variants::SAME_SECOND,
                // The fake sender does not deliver events of the traffic. Those that are listed after its own count as
                // not delivered yet.
                "webhooks.pushed" => true,
                _ => false,
            }
    }

    /// Sets up a server: its records, the variant, a response time, the traffic, and the infrastructure.
    pub(crate) fn prepare(&self, server: &mut FakeServer) {
        let mut rng = Rng(self.seed);
        if self.has_many_records {
            (server.live, server.test) = (Book::with_many_records(1), Book::with_many_records(2));
        }
        (self.variant.choose)(server);
        if server.response_time.is_zero() {
            let refills = matches!(server.limiter, Limiter::Bucket | Limiter::Gcra);
            // During slow responses, a bucket refills so fast that a burst cannot exceed the limit.
            let allowed_times =
                &RESPONSE_TIMES_MILLIS[..if refills { 2 } else { RESPONSE_TIMES_MILLIS.len() }];
            server.response_time = Duration::from_millis(*rng.pick(allowed_times));
        }
        if self.traffic.burst > 0 {
            variants::set_choices(server, |choices| {
                choices.events_show_current_objects = self.number.is_multiple_of(3)
            });
            server.traffic = Some(Traffic::new(rng.next_seed(), self.traffic.period, self.traffic.burst));
        }
        for infrastructure in &self.infrastructure {
            (infrastructure.install)(server, &mut rng);
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
        name: "connections that close after a few responses",
        install: |server, rng| server.http_settings.responses_per_connection = Some(1 + rng.next_below(20)),
    },
    Infrastructure {
        name: "some responses close their connection",
        install: |server, rng| server.http_settings.close_every = Some(1 + rng.next_below(20)),
    },
    Infrastructure {
        name: "a Keep-Alive header that counts down",
        install: |server, rng| {
            let (mut left, max) = (rng.next_below(100), 100);
            server.rewrite_responses(move |_, response| {
                left = if left == 0 { max } else { left - 1 };
                response.set_header("keep-alive", &format!("timeout=5, max={left}"));
            });
        },
    },
    Infrastructure { name: "headers that name the replica", install: add_replicas },
    Infrastructure {
        name: "request ids",
        install: |server, rng| {
            let name =
                *rng.pick(&["x-request-id", "x-correlation-id", "traceparent", "request-id", "x-trace-id"]);
            let mut rng = Rng(rng.next_seed());
            server.rewrite_responses(move |_, response| {
                response.set_header(name, &format!("{:016x}", rng.next_seed()))
            });
        },
    },
    Infrastructure {
        name: "a Via header",
        install: |server, rng| {
            let via = *rng.pick(&["1.1 varnish", "1.1 edge-7 (squid), 1.1 lb", "2 cloudfront"]);
            server.rewrite_responses(move |_, response| response.set_header("via", via));
        },
    },
    Infrastructure { name: "an Age header of zero", install: |server, _| add_header(server, "age", "0") },
    Infrastructure {
        name: "a Date that is up to seven minutes ahead",
        install: |server, rng| {
            let (clock, skew) = (server.clock.clone(), 60 * rng.next_below(8));
            server.rewrite_responses(move |_, response| {
                // A date in Retry-After is relative to the Date of the same response, so both stay as they are.
                if response.header("retry-after").is_none_or(|value| value.parse::<u64>().is_ok()) {
                    response.set_header("date", &http_server::http_date(clock.micros() / 1_000_000 + skew));
                }
            });
        },
    },
    Infrastructure { name: "repeated headers", install: repeat_headers },
    Infrastructure {
        name: "a Server-Timing header",
        install: |server, rng| {
            let mut rng = Rng(rng.next_seed());
            server.rewrite_responses(move |_, response| {
                response.set_header("server-timing", &format!("app;dur={}", rng.next_below(9)))
            });
        },
    },
    Infrastructure {
        name: "single events from a cache",
        install: |server, _| server.event_cache = Some(Default::default()),
    },
    Infrastructure { name: "quota headers that lag", install: add_lagging_quota },
    Infrastructure {
        name: "header names in title case",
        install: |server, _| server.http_settings.title_case = true,
    },
    Infrastructure { name: "chunked bodies", install: |server, _| server.http_settings.chunked = true },
];

fn add_header(server: &mut FakeServer, name: &'static str, value: &'static str) {
    server.rewrite_responses(move |_, response| response.set_header(name, value));
}

/// Adds a header with the name of one of two or three replicas, in turn or at random.
fn add_replicas(server: &mut FakeServer, rng: &mut Rng) {
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
    let (name, count, in_turn) = (*rng.pick(NAMES), 2 + rng.next_below(2), rng.next_below(2) == 0);
    let (mut rng, mut responses) = (Rng(rng.next_seed()), 0);
    server.rewrite_responses(move |_, response| {
        responses += 1;
        let replica = if in_turn { responses % count } else { rng.next_below(count) };
        response.set_header(name, &format!("app-{replica}"));
    });
}

/// Adds repeated header fields, with equal or different values.
fn repeat_headers(server: &mut FakeServer, _: &mut Rng) {
    server.rewrite_responses(|_: &Request, response: &mut EditableResponse| {
        for (name, value) in [
            ("vary", "Accept-Encoding"),
            ("vary", "Origin"),
            ("x-content-type-options", "nosniff"),
            ("x-content-type-options", "nosniff"),
            ("server-timing", "db;dur=3"),
            ("server-timing", "app;dur=9"),
        ] {
            response.headers.push((name.into(), value.into()));
        }
    });
}

/// Adds quota headers that miss up to three of the last requests.
fn add_lagging_quota(server: &mut FakeServer, rng: &mut Rng) {
    let mut rng = Rng(rng.next_seed());
    let mut counts: std::collections::BTreeMap<Option<String>, Vec<u64>> = Default::default();
    let clock = server.clock.clone();
    server.rewrite_responses(move |request, response| {
        let now = clock.micros();
        let hits = counts.entry(request.authorization.clone()).or_default();
        hits.push(now);
        hits.retain(|at| at + 60_000_000 > now);
        let counted = (hits.len() as u64).saturating_sub(rng.next_below(4));
        response.set_header("x-ratelimit-limit", "120");
        response.set_header("x-ratelimit-remaining", &120_u64.saturating_sub(counted).to_string());
    });
}
