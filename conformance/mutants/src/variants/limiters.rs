//! Correct services with each kind of limiter, at different times of the clock minute.

use std::time::Duration;

use super::{Variant, on, plain};
use crate::fake::{FakeServer, Limiter, TEST_KEY, wire};

pub(super) const VARIANTS: &[Variant] = &[
    plain("a window is a minute of the clock, of which 55 s are left", |server| {
        begins(server, Limiter::AlignedMinute, 5);
    }),
    plain("a window is a minute of the clock, of which 35 s are left", |server| {
        begins(server, Limiter::AlignedMinute, 25);
    }),
    plain("a window is a minute of the clock, of which 15 s are left", |server| {
        begins(server, Limiter::AlignedMinute, 45);
    }),
    plain("a window is a minute of the clock, of which 7 s are left", |server| {
        begins(server, Limiter::AlignedMinute, 53);
    }),
    plain("a window is a minute of another clock than that of Date", |server| {
        begins(server, Limiter::AlignedMinute, 40);
        let clock = server.clock.clone();
        server
            .rewrite(move |_, reply| reply.set("date", &wire::http_date(clock.micros() / 1_000_000 + 1_017)));
    }),
    plain("a window is a minute of the clock, and refused requests count", |server| {
        begins(server, Limiter::AlignedMinute, 33);
        server.refusals_count = true;
    }),
    plain("a share of the minute before counts, from its middle", |server| {
        begins(server, Limiter::SlidingCounter, 30);
    }),
    plain("a share of the minute before counts, shortly before its end", |server| {
        begins(server, Limiter::SlidingCounter, 50);
    }),
    plain("a share of the minute before counts, and refused requests too", |server| {
        begins(server, Limiter::SlidingCounter, 2);
        server.refusals_count = true;
    }),
    plain("a share of the minute before counts, and so does what is refused, from its middle", |server| {
        begins(server, Limiter::SlidingCounter, 31);
        server.refusals_count = true;
    }),
    plain("a share of the minute before counts, of another clock, and so does what is refused", |server| {
        begins(server, Limiter::SlidingCounter, 31);
        server.refusals_count = true;
        let clock = server.clock.clone();
        server
            .rewrite(move |_, reply| reply.set("date", &wire::http_date(clock.micros() / 1_000_000 + 1_017)));
    }),
    plain("a share of the minute before counts, and single events come from a cache", |server| {
        begins(server, Limiter::SlidingCounter, 30);
        server.event_cache = Some(Default::default());
    }),
    plain("a log of the last minute also holds what is refused", |server| {
        begins(server, Limiter::Sliding, 12);
        server.refusals_count = true;
    }),
    plain("a log of whole seconds, while answers are slow", |server| {
        begins(server, Limiter::SlidingSeconds, 12);
        server.tick = Duration::from_millis(80);
    }),
    plain("a log of the last minute, while answers are slow", |server| {
        begins(server, Limiter::Sliding, 50);
        server.tick = Duration::from_millis(120);
    }),
    plain("the cell rate algorithm, while answers are slow", |server| {
        begins(server, Limiter::Gcra, 50);
        server.tick = Duration::from_millis(90);
    }),
    plain("a bucket that refills quickly, and always sends Retry-After 60", |server| {
        begins(server, Limiter::Bucket, 3);
        on(server, 429, |reply| reply.set("retry-after", "60"));
    }),
    plain("a window from the first request, while answers are slow", |server| {
        begins(server, Limiter::FromFirst, 50);
        server.tick = Duration::from_millis(60);
    }),
    plain("the quota in headers lags behind at one of two replicas", |server| {
        server.reports_quota = true;
        let mut turn = 0_u64;
        server.rewrite(move |_, reply| {
            turn += 1;
            let left = reply.header("x-ratelimit-remaining").and_then(|value| value.parse::<u64>().ok());
            if let Some(left) = left.filter(|_| turn.is_multiple_of(2)) {
                reply.set("x-ratelimit-remaining", &(left + turn % 7).to_string());
            }
        });
    }),
    plain("another client used the key a moment ago, and a bucket shows it", |server| {
        server.limiter = Limiter::Bucket;
        server.hits.insert(format!("Bearer {TEST_KEY}"), (1..=40).collect());
    }),
];

/// Sets the limiter, the time of the clock at the start of the check, and a short response time.
fn begins(server: &mut FakeServer, limiter: Limiter, seconds: u64) {
    server.limiter = limiter;
    server.tick = Duration::from_millis(5);
    server.clock.advance(Duration::from_secs(seconds));
}
