//! Correct services with each kind of limiter, at different times of the clock minute.

use std::time::Duration;

use super::{Variant, rewrite_status, variant};
use crate::fake::{FakeServer, Limiter, TEST_KEY, http_server};

pub(super) const VARIANTS: &[Variant] = &[
    variant("fixed windows aligned to the minute, 55 s before the end", |server| {
        set_limiter(server, Limiter::AlignedWindow, 5);
    }),
    variant("fixed windows aligned to the minute, 35 s before the end", |server| {
        set_limiter(server, Limiter::AlignedWindow, 25);
    }),
    variant("fixed windows aligned to the minute, 15 s before the end", |server| {
        set_limiter(server, Limiter::AlignedWindow, 45);
    }),
    variant("fixed windows aligned to the minute, 7 s before the end", |server| {
        set_limiter(server, Limiter::AlignedWindow, 53);
    }),
    variant("fixed windows aligned to a clock other than Date", |server| {
        set_limiter(server, Limiter::AlignedWindow, 40);
        let clock = server.clock.clone();
        server.rewrite_responses(move |_, response| {
            response.set_header("date", &http_server::http_date(clock.micros() / 1_000_000 + 1_017))
        });
    }),
    variant("fixed windows aligned to the minute, refused requests count", |server| {
        set_limiter(server, Limiter::AlignedWindow, 33);
        server.counts_refused = true;
    }),
    variant("a sliding window counter, started at 30 s", |server| {
        set_limiter(server, Limiter::SlidingCounter, 30);
    }),
    variant("a sliding window counter, started at 50 s", |server| {
        set_limiter(server, Limiter::SlidingCounter, 50);
    }),
    variant("a sliding window counter that counts refused requests", |server| {
        set_limiter(server, Limiter::SlidingCounter, 2);
        server.counts_refused = true;
    }),
    variant("a sliding window counter that counts refused requests, started at 31 s", |server| {
        set_limiter(server, Limiter::SlidingCounter, 31);
        server.counts_refused = true;
    }),
    variant("a sliding window counter by a clock other than Date", |server| {
        set_limiter(server, Limiter::SlidingCounter, 31);
        server.counts_refused = true;
        let clock = server.clock.clone();
        server.rewrite_responses(move |_, response| {
            response.set_header("date", &http_server::http_date(clock.micros() / 1_000_000 + 1_017))
        });
    }),
    variant("a sliding window counter, and single events come from a cache", |server| {
        set_limiter(server, Limiter::SlidingCounter, 30);
        server.event_cache = Some(Default::default());
    }),
    variant("a sliding log that counts refused requests", |server| {
        set_limiter(server, Limiter::Sliding, 12);
        server.counts_refused = true;
    }),
    variant("a sliding log with a resolution of one second, with slow responses", |server| {
        set_limiter(server, Limiter::SlidingSeconds, 12);
        server.response_time = Duration::from_millis(80);
    }),
    variant("a sliding log, with slow responses", |server| {
        set_limiter(server, Limiter::Sliding, 50);
        server.response_time = Duration::from_millis(120);
    }),
    variant("GCRA, with slow responses", |server| {
        set_limiter(server, Limiter::Gcra, 50);
        server.response_time = Duration::from_millis(90);
    }),
    variant("a token bucket, and Retry-After is always 60", |server| {
        set_limiter(server, Limiter::Bucket, 3);
        rewrite_status(server, 429, |response| response.set_header("retry-after", "60"));
    }),
    variant("a window starts with its first request, with slow responses", |server| {
        set_limiter(server, Limiter::FromFirst, 50);
        server.response_time = Duration::from_millis(60);
    }),
    variant("one of two replicas has a stale quota in its headers", |server| {
        server.reports_quota = true;
        let mut requests = 0_u64;
        server.rewrite_responses(move |_, response| {
            requests += 1;
            let remaining =
                response.header("x-ratelimit-remaining").and_then(|value| value.parse::<u64>().ok());
            if let Some(remaining) = remaining.filter(|_| requests.is_multiple_of(2)) {
                response.set_header("x-ratelimit-remaining", &(remaining + requests % 7).to_string());
            }
        });
    }),
    variant("another client has just used the key, and the limiter is a token bucket", |server| {
        server.limiter = Limiter::Bucket;
        // A hit of a bucket is the interval at which a used token is refilled.
        server.hits.insert(format!("Bearer {TEST_KEY}"), (1..=40).collect());
    }),
];

/// Sets the limiter, a short response time, and the clock to this many seconds.
fn set_limiter(server: &mut FakeServer, limiter: Limiter, seconds: u64) {
    server.limiter = limiter;
    server.response_time = Duration::from_millis(5);
    server.clock.advance(Duration::from_secs(seconds));
}
