//! Faults in the rate limit.

use std::time::Duration;

use conformance::Mode;
use serde_json::json;

use crate::fake::{FakeServer, Limiter, Reply, TEST_KEY, wire};
use crate::mutant::{Mutant, reply, rewrite, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("no limit", &["limits.refused"], |server| server.limiter = Limiter::Off),
    rule("a limit of 100", &["limits.served"], |server| server.limit = 100),
    rule("a limit of 119", &["limits.served"], |server| server.limit = 119),
    rule("a limit of 121", &["limits.refused"], |server| server.limit = 121),
    rule("a limit of 200, with slow responses", &["limits.refused"], |server| {
        server.limit = 200;
        server.tick = Duration::from_millis(10);
    }),
    rule("the live key is refused while the test key is over its limit", &["limits.per_key"], |server| {
        let (clock, mut last_refusal) = (server.clock.clone(), None);
        server.rewrite(move |request, response| {
            if response.status == 429 {
                last_refusal = Some((clock.micros(), response.clone()));
            }
            let recent = last_refusal.as_ref().filter(|(at, _)| clock.micros() < at + 5_000_000);
            if let Some((_, refusal)) = recent.filter(|_| request.mode == Some(Mode::Live)) {
                *response = refusal.clone();
            }
        });
    })
    .may_fail(&["limits.refused", "limits.retry_after_held"]),
    // If the live key is refused first, it may be at its own limit.
    rule("all keys of an account share a limit", &["limits.served", "limits.second_key"], |server| {
        server.counted_identity = |_| "the account".into()
    })
    .may_fail(&["limits.per_key"]),
    rule("each path has a separate limit", &["limits.refused"], |server| {
        server.counted_identity = |request| format!("{:?} {}", request.authorization, request.path)
    }),
    // The requests after the wait use this path too, so the wait cannot be judged.
    rule("the account is exempt from the limit", &["limits.refused", "limits.every_path"], |server| {
        server.exempt_path = Some("/v1/account")
    }),
    rule("the charges are exempt from the limit", &["limits.refused", "limits.every_path"], |server| {
        server.exempt_path = Some("/v1/charges")
    }),
    reply("a 429 has no Retry-After", &["limits.retry_after"], 429, |_, response| {
        response.drop_header("retry-after")
    }),
    reply("Retry-After is not a number", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "a minute")
    }),
    reply("Retry-After is a fraction", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "59.5")
    }),
    reply("Retry-After is too short", &["limits.retry_after_held"], 429, |_, response| {
        response.set("retry-after", "5")
    }),
    reply("a 429 is plain text", &["limits.json"], 429, |_, response| {
        response.raw = Some("slow down".into())
    }),
    rule("a limit of 60", &["limits.served"], |server| server.limit = 60),
    reply("too many requests get 503", &["limits.refused"], 429, |_, response| {
        *response = Reply::json(503, json!({ "message": "Service Temporarily Unavailable" }));
    }),
    reply("too many requests get 403", &["limits.refused"], 429, |_, response| response.status = 403),
    reply("too many requests get 200 with an error in the body", &["limits.refused"], 429, |_, response| {
        response.status = 200
    })
    .may_fail(&[
        "events.created_at",
        "events.details",
        "events.id",
        "events.single",
        "events.type",
        "paging.envelope",
    ]),
    rule("events share a quota, and every other path has its own", &["limits.refused"], |server| {
        server.counted_identity = |request| match request.path.as_str() {
            path if path.starts_with("/v1/events") => request.authorization.clone().unwrap_or_default(),
            other => other.to_owned(),
        };
    }),
    rule("single events are exempt from the limit", &["limits.refused", "limits.every_path"], |server| {
        server.exempt_path = Some("/v1/events/")
    }),
    rule("a refusal resets the counter", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let mut served = 0;
        server.rewrite(move |request, response| {
            let is_served = request.mode == Some(Mode::Test) && response.status < 400;
            served += u32::from(is_served);
            if served > 120 {
                served = 0;
                *response = Reply::json(429, json!({ "message": "Too many requests." }));
                response.set("retry-after", "60");
            }
        });
    }),
    reply("Retry-After is in milliseconds", &["limits.retry_after"], 429, |_, response| {
        let seconds = response.header("retry-after").and_then(|value| value.parse::<u64>().ok());
        response.set("retry-after", &(seconds.expect("Retry-After is in seconds") * 1000).to_string());
    }),
    reply("Retry-After is a Unix timestamp", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "1767225660")
    }),
    reply("Retry-After is negative", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "-3")
    }),
    reply("Retry-After has a unit", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "60s")
    }),
    reply("Retry-After is an ISO 8601 date", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "2026-01-01T00:01:00Z")
    }),
    reply("a 429 of one path has no Retry-After", &["limits.retry_after"], 429, |_, response| {
        response.drop_header("retry-after")
    })
    .for_requests(|request| request.path == "/v1/invoices"),
    reply("Retry-After is empty", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "")
    }),
    reply("Retry-After is 0", &["limits.retry_after_held"], 429, |_, response| {
        response.set("retry-after", "0")
    }),
    reply("Retry-After is in minutes", &["limits.retry_after_held"], 429, |_, response| {
        response.set("retry-after", "1")
    }),
    reply("Retry-After is a date in the past", &["limits.retry_after_held"], 429, |_, response| {
        response.set("retry-after", "Wed, 31 Dec 2025 23:59:50 GMT");
    }),
    rule("a window of 20 s, and Retry-After is a minute", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let (clock, mut window, mut served) = (server.clock.clone(), 0, 0);
        server.rewrite(move |request, response| {
            let now = clock.micros() / 20_000_000;
            let has_test_key = request.authorization.as_deref() == Some(&format!("Bearer {TEST_KEY}"));
            if !has_test_key || response.status >= 400 {
                return;
            }
            served = if now == window { served + 1 } else { 1 };
            window = now;
            if served > 120 {
                *response = Reply::json(429, json!({ "message": "Too many requests." }));
                response.set("retry-after", "60");
            }
        });
    }),
    reply("a 429 has no body", &["limits.json"], 429, |_, response| response.raw = Some(String::new())),
    reply("a 429 has bytes that are not UTF-8", &["limits.json"], 429, |_, response| {
        response.raw = Some(format!("{{\"message\":\"{}\"}}", char::REPLACEMENT_CHARACTER));
    }),
    // Windows of another length.
    rule("fixed windows of 10 s", &["limits.refused"], |server| use_aligned_windows(server, 10, 43)),
    rule("fixed windows of 20 s", &["limits.refused"], |server| use_aligned_windows(server, 20, 43)),
    rule("fixed windows of 30 s", &["limits.refused"], |server| use_aligned_windows(server, 30, 43)),
    rule("fixed windows of 45 s", &["limits.refused"], |server| use_aligned_windows(server, 45, 20)),
    rule("fixed windows of 45 s, 3 s before the end", &["limits.refused"], |server| {
        use_aligned_windows(server, 45, 42)
    }),
    rule("fixed windows of two minutes", &["limits.retry_after"], |server| {
        use_aligned_windows(server, 120, 43)
    }),
    rule("fixed windows of two minutes, 20 s before the end", &["limits.retry_after"], |server| {
        use_aligned_windows(server, 120, 100)
    }),
    rule("fixed windows of five minutes", &["limits.retry_after"], |server| {
        use_aligned_windows(server, 300, 280)
    }),
    rule("a sliding log of 30 seconds", &["limits.refused"], |server| {
        use_window(server, Limiter::Sliding, 30)
    }),
    rule("a sliding log of two minutes", &["limits.retry_after"], |server| {
        use_window(server, Limiter::Sliding, 120)
    })
    .may_fail(KEY_STAYS_REFUSED),
    rule("a window of 30 seconds from the first request", &["limits.refused"], |server| {
        use_window(server, Limiter::FromFirst, 30);
    }),
    rule("a window of two minutes from the first request", &["limits.retry_after"], |server| {
        use_window(server, Limiter::FromFirst, 120);
    })
    .may_fail(KEY_STAYS_REFUSED),
    rule("a window of two minutes, and Retry-After is one minute", &["limits.retry_after_held"], |server| {
        use_window(server, Limiter::FromFirst, 120);
        server.rewrite(|_, response| {
            if response.status == 429 {
                response.set("retry-after", "60");
            }
        });
    }),
    rule("a refused request restarts the window", &["limits.retry_after_held"], |server| {
        use_window(server, Limiter::Restarting, 60);
    }),
    // Buckets of another size or rate.
    rule("a burst of 200 without delay", &["limits.refused"], |server| {
        (server.limiter, server.limit, server.tick) = (Limiter::Gcra, 201, Duration::from_millis(5));
    }),
    rule("a burst of 20 without delay", &["limits.served"], |server| {
        (server.limiter, server.limit, server.tick) = (Limiter::Gcra, 21, Duration::from_millis(5));
    }),
    rule("a token bucket gets four tokens per second", &["limits.refused"], |server| {
        use_window(server, Limiter::Bucket, 30);
    }),
    rule("a token bucket of 60 tokens", &["limits.served"], |server| {
        (server.limiter, server.limit, server.tick) = (Limiter::Gcra, 60, Duration::from_millis(5));
    }),
    // Separate limits.
    rule("two replicas have separate limits", &["limits.refused"], |server| server.replicas = 2),
    rule("two replicas have separate token buckets", &["limits.refused"], |server| {
        (server.replicas, server.limiter, server.tick) = (2, Limiter::Bucket, Duration::from_millis(5));
    }),
    rule("lists and single objects have separate limits", &["limits.refused"], |server| {
        server.counted_identity = |request| format!("{:?} {}", request.authorization, request.is_list());
    })
    .may_fail(&["limits.every_path"]),
    rule("the account has a separate limit", &["limits.refused"], |server| {
        server.counted_identity =
            |request| format!("{:?} {}", request.authorization, request.path == "/v1/account");
    })
    .may_fail(&["limits.every_path"]),
    rule("HEAD is exempt from the limit", &["limits.every_path"], |server| {
        server.exempt_method = Some("HEAD")
    }),
    rule("a list counts for two requests, and headers show it", &["limits.served"], |server| {
        server.reports_quota = true;
        server.cost = |request| if request.is_list() { 2 } else { 1 };
    }),
    rule("every request counts for two, and headers show it", &["limits.served"], |server| {
        server.reports_quota = true;
        server.cost = |_| 2;
    }),
    rule(
        "all keys of a client address share a limit, and headers show it",
        &["limits.served", "limits.second_key"],
        |server| {
            server.reports_quota = true;
            server.counted_identity = |_| "the address".into();
        },
    )
    .may_fail(&["limits.per_key"]),
    // Other refusals.
    reply("too many requests get 500", &["limits.refused"], 429, |_, response| response.status = 500),
    reply("too many requests get 502", &["limits.refused"], 429, |_, response| response.status = 502),
    reply("too many requests are redirected", &["limits.refused"], 429, |_, response| {
        response.status = 302;
        response.set("location", "/slow-down");
    }),
    reply("too many requests get no response", &["limits.refused"], 429, |_, response| {
        response.status = wire::CLOSED
    }),
    rule("requests over a limit of 100 get 503", &["limits.refused"], |server| {
        server.limit = 100;
        rewrite(server, 429, |_| true, |_, response| response.status = 503);
    }),
    // `Retry-After`.
    reply("Retry-After is two minutes", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "120")
    }),
    reply("Retry-After is sent twice", &["limits.retry_after"], 429, |_, response| {
        response.headers.push(("retry-after".into(), "120".into()))
    }),
    reply("Retry-After has two values", &["limits.retry_after"], 429, |_, response| {
        response.set("retry-after", "60, 120")
    }),
    rule("Retry-After increases with time", &["limits.retry_after"], |server| {
        let (clock, mut first_at) = (server.clock.clone(), None);
        server.rewrite(move |_, response| {
            if response.status == 429 {
                let now = clock.micros() / 1_000_000;
                response.set("retry-after", &(now - *first_at.get_or_insert(now) + 30).to_string());
            }
        });
    })
    .may_fail(&["limits.retry_after_held"]),
];

/// The statements that may fail if a key is refused for the rest of the run.
const KEY_STAYS_REFUSED: &[&str] = &["limits.retry_after_held"];

/// Sets fixed windows of this many seconds, aligned to the clock, which starts at `start` seconds.
fn use_aligned_windows(server: &mut FakeServer, seconds: u64, start: u64) {
    use_window(server, Limiter::AlignedMinute, seconds);
    server.clock.advance(Duration::from_secs(start - 12));
}

/// Sets a limiter with windows of this many seconds, a short response time, and the clock to 12 seconds.
fn use_window(server: &mut FakeServer, limiter: Limiter, seconds: u64) {
    (server.limiter, server.window) = (limiter, Duration::from_secs(seconds));
    server.tick = Duration::from_millis(5);
    server.clock.advance(Duration::from_secs(12));
}
