//! Faults in the limit.

use std::time::Duration;

use conformance::Mode;
use serde_json::json;

use crate::fake::{Limiter, Reply, TEST_KEY};
use crate::mutant::{Mutant, reply, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("no limit", &["limits.refused"], |server| server.limiter = Limiter::Off),
    rule("a limit of 100", &["limits.served"], |server| server.limit = 100),
    rule("a limit of 119", &["limits.served"], |server| server.limit = 119),
    rule("a limit of 121", &["limits.refused"], |server| server.limit = 121),
    rule("a limit of 200, while time passes", &["limits.refused"], |server| {
        server.limit = 200;
        server.tick = Duration::from_millis(10);
    }),
    rule("the limit belongs to the account", &["limits.per_key", "limits.second_key"], |server| {
        server.counted = |_| "the account".into()
    })
    .may(&["limits.served"]),
    rule("each path has a limit of its own", &["limits.refused"], |server| {
        server.counted = |request| format!("{:?} {}", request.authorization, request.path)
    }),
    // The wait is tried on that path too, which then proves nothing.
    rule("the account is exempt from the limit", &["limits.refused", "limits.every_path"], |server| {
        server.exempt = Some("/v1/account")
    }),
    rule("the charges are exempt from the limit", &["limits.refused", "limits.every_path"], |server| {
        server.exempt = Some("/v1/charges")
    }),
    reply("429 forgets Retry-After", &["limits.retry_after"], 429, |_, reply| {
        reply.drop_header("retry-after")
    }),
    reply("Retry-After is in words", &["limits.retry_after"], 429, |_, reply| {
        reply.set("retry-after", "a minute")
    }),
    reply("Retry-After is a fraction", &["limits.retry_after"], 429, |_, reply| {
        reply.set("retry-after", "59.5")
    }),
    reply("Retry-After is too short", &["limits.retry_after_held"], 429, |_, reply| {
        reply.set("retry-after", "5")
    }),
    reply("429 is plain text", &["limits.json"], 429, |_, reply| reply.raw = Some("slow down".into())),
    rule("a limit of 60", &["limits.served"], |server| server.limit = 60),
    reply("too many requests are answered 503", &["limits.refused"], 429, |_, reply| {
        *reply = Reply::json(503, json!({ "message": "Service Temporarily Unavailable" }));
    }),
    reply("too many requests are answered 403", &["limits.refused"], 429, |_, reply| reply.status = 403),
    reply("too many requests are answered 200 and an error", &["limits.refused"], 429, |_, reply| {
        reply.status = 200
    })
    .may(&[
        "events.created_at",
        "events.details",
        "events.id",
        "events.single",
        "events.type",
        "paging.envelope",
    ]),
    rule("only the events are counted", &["limits.refused"], |server| {
        server.counted = |request| match request.path.as_str() {
            path if path.starts_with("/v1/events") => request.authorization.clone().unwrap_or_default(),
            other => other.to_owned(),
        };
    }),
    rule("single events are exempt from the limit", &["limits.refused", "limits.every_path"], |server| {
        server.exempt = Some("/v1/events/")
    }),
    rule("a refusal sets the counter back", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let mut served = 0;
        server.rewrite(move |request, reply| {
            let is_test = request.mode == Some(Mode::Test) && reply.status < 400;
            served += u32::from(is_test);
            if served > 120 {
                served = 0;
                *reply = Reply::json(429, json!({ "message": "Too many requests." }));
                reply.set("retry-after", "60");
            }
        });
    }),
    reply("Retry-After is in milliseconds", &["limits.retry_after"], 429, |_, reply| {
        let told = reply.header("retry-after").and_then(|it| it.parse::<u64>().ok());
        reply.set("retry-after", &(told.expect("seconds") * 1000).to_string());
    }),
    reply("Retry-After is a moment, in seconds since 1970", &["limits.retry_after"], 429, |_, reply| {
        reply.set("retry-after", "1767225660")
    }),
    reply("Retry-After is below zero", &["limits.retry_after"], 429, |_, reply| {
        reply.set("retry-after", "-3")
    }),
    reply("Retry-After names its unit", &["limits.retry_after"], 429, |_, reply| {
        reply.set("retry-after", "60s")
    }),
    reply("Retry-After is a date for machines", &["limits.retry_after"], 429, |_, reply| {
        reply.set("retry-after", "2026-01-01T00:01:00Z")
    }),
    reply("one path forgets Retry-After", &["limits.retry_after"], 429, |_, reply| {
        reply.drop_header("retry-after")
    })
    .at(|request| request.path == "/v1/invoices"),
    reply("Retry-After is empty", &["limits.retry_after"], 429, |_, reply| reply.set("retry-after", "")),
    reply("Retry-After is 0", &["limits.retry_after_held"], 429, |_, reply| reply.set("retry-after", "0")),
    reply("Retry-After counts minutes", &["limits.retry_after_held"], 429, |_, reply| {
        reply.set("retry-after", "1")
    }),
    reply("Retry-After is a date that has passed", &["limits.retry_after_held"], 429, |_, reply| {
        reply.set("retry-after", "Wed, 31 Dec 2025 23:59:50 GMT");
    }),
    rule("windows of twenty seconds, and refusals that ask for a minute", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let (clock, mut window, mut served) = (server.clock.clone(), 0, 0);
        server.rewrite(move |request, reply| {
            let now = clock.micros() / 20_000_000;
            let is_of_key = request.authorization.as_deref() == Some(&format!("Bearer {TEST_KEY}"));
            if !is_of_key || reply.status >= 400 {
                return;
            }
            served = if now == window { served + 1 } else { 1 };
            window = now;
            if served > 120 {
                *reply = Reply::json(429, json!({ "message": "Too many requests." }));
                reply.set("retry-after", "60");
            }
        });
    }),
    reply("429 has no body", &["limits.json"], 429, |_, reply| reply.raw = Some(String::new())),
];
