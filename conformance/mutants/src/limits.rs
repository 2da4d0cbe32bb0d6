//! Faults in the rate limit.

use std::time::Duration;

use conformance::Mode;
use serde_json::json;

use crate::fake::{EditableResponse, FakeServer, Limiter, TEST_KEY, http_server};
use crate::mutant::{Mutant, response_fault, rewrite_matching, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    server_fault("no limit", &["limits.refused"], |server| server.limiter = Limiter::Off),
    server_fault("a limit of 100", &["limits.served"], |server| server.limit = 100),
    server_fault("a limit of 119", &["limits.served"], |server| server.limit = 119),
    server_fault("a limit of 121", &["limits.refused"], |server| server.limit = 121),
    server_fault("a limit of 200, with slow responses", &["limits.refused"], |server| {
        server.limit = 200;
        server.response_time = Duration::from_millis(10);
    }),
    server_fault(
        "the live key is refused while the test key is over its limit",
        &["limits.per_key"],
        |server| {
            let (clock, mut last_refusal) = (server.clock.clone(), None);
            server.rewrite_responses(move |request, response| {
                if response.status == 429 {
                    last_refusal = Some((clock.micros(), response.clone()));
                }
                let recent = last_refusal.as_ref().filter(|(at, _)| clock.micros() < at + 5_000_000);
                if let Some((_, refusal)) = recent.filter(|_| request.mode == Some(Mode::Live)) {
                    *response = refusal.clone();
                }
            });
        },
    )
    .may_fail(&["limits.refused", "limits.retry_after_held"]),
    // If the live key is refused first, it may be at its own limit, so `limits.per_key` need not fail.
    server_fault("all keys of an account share a limit", &["limits.served", "limits.second_key"], |server| {
        server.counted_identity = |_| "the account".into()
    })
    .may_fail(&["limits.per_key"]),
    server_fault("each path has a separate limit", &["limits.refused"], |server| {
        server.counted_identity = |request| format!("{:?} {}", request.authorization, request.path)
    }),
    // The requests after the wait of Retry-After read the account too, so the wait cannot be judged.
    server_fault(
        "the account is exempt from the limit",
        &["limits.refused", "limits.every_path"],
        |server| server.exempt_path = Some("/v1/account"),
    ),
    server_fault(
        "the charges are exempt from the limit",
        &["limits.refused", "limits.every_path"],
        |server| server.exempt_path = Some("/v1/charges"),
    ),
    response_fault("a 429 has no Retry-After", &["limits.retry_after"], 429, |_, response| {
        response.remove_header("retry-after")
    }),
    response_fault("Retry-After is not a number", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "a minute")
    }),
    response_fault("Retry-After is a fraction", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "59.5")
    }),
    response_fault("Retry-After is too short", &["limits.retry_after_held"], 429, |_, response| {
        response.set_header("retry-after", "5")
    }),
    response_fault("a 429 is plain text", &["limits.json"], 429, |_, response| {
        response.raw = Some("slow down".into())
    }),
    server_fault("a limit of 60", &["limits.served"], |server| server.limit = 60),
    response_fault("too many requests get 503", &["limits.refused"], 429, |_, response| {
        *response = EditableResponse::json(503, json!({ "message": "Service Temporarily Unavailable" }));
    }),
    response_fault("too many requests get 403", &["limits.refused"], 429, |_, response| {
        response.status = 403
    }),
    response_fault(
        "too many requests get 200 with an error in the body",
        &["limits.refused"],
        429,
        |_, response| response.status = 200,
    )
    .may_fail(&[
        "account.profile",
        "events.created_at",
        "events.details",
        "events.id",
        "events.single",
        "events.type",
        "paging.envelope",
    ]),
    server_fault(
        "events share a quota per key, and every other path has its own",
        &["limits.refused"],
        |server| {
            server.counted_identity = |request| match request.path.as_str() {
                path if path.starts_with("/v1/events") => request.authorization.clone().unwrap_or_default(),
                other => other.to_owned(),
            };
        },
    ),
    server_fault(
        "single events are exempt from the limit",
        &["limits.refused", "limits.every_path"],
        |server| server.exempt_path = Some("/v1/events/"),
    ),
    server_fault("a refusal resets the counter", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let mut served = 0;
        server.rewrite_responses(move |request, response| {
            let is_served = request.mode == Some(Mode::Test) && response.status < 400;
            served += u32::from(is_served);
            if served > 120 {
                served = 0;
                *response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
                response.set_header("retry-after", "60");
            }
        });
    }),
    response_fault("Retry-After is in milliseconds", &["limits.retry_after"], 429, |_, response| {
        let seconds = response.header("retry-after").and_then(|value| value.parse::<u64>().ok());
        response.set_header("retry-after", &(seconds.expect("Retry-After is in seconds") * 1000).to_string());
    }),
    response_fault("Retry-After is a Unix timestamp", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "1767225660")
    }),
    response_fault("Retry-After is negative", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "-3")
    }),
    response_fault("Retry-After has a unit", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "60s")
    }),
    response_fault("Retry-After is an ISO 8601 date", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "2026-01-01T00:01:00Z")
    }),
    response_fault("a 429 of one path has no Retry-After", &["limits.retry_after"], 429, |_, response| {
        response.remove_header("retry-after")
    })
    .for_requests(|request| request.path == "/v1/invoices"),
    response_fault("Retry-After is empty", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "")
    }),
    response_fault("Retry-After is 0", &["limits.retry_after_held"], 429, |_, response| {
        response.set_header("retry-after", "0")
    }),
    response_fault("Retry-After is in minutes", &["limits.retry_after_held"], 429, |_, response| {
        response.set_header("retry-after", "1")
    }),
    response_fault("Retry-After is a date in the past", &["limits.retry_after_held"], 429, |_, response| {
        response.set_header("retry-after", "Wed, 31 Dec 2025 23:59:50 GMT");
    }),
    server_fault("a window of 20 s, and Retry-After is a minute", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let (clock, mut window, mut served) = (server.clock.clone(), 0, 0);
        server.rewrite_responses(move |request, response| {
            let now = clock.micros() / 20_000_000;
            let has_test_key = request.authorization.as_deref() == Some(&format!("Bearer {TEST_KEY}"));
            if !has_test_key || response.status >= 400 {
                return;
            }
            served = if now == window { served + 1 } else { 1 };
            window = now;
            if served > 120 {
                *response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
                response.set_header("retry-after", "60");
            }
        });
    }),
    response_fault("a 429 has no body", &["limits.json"], 429, |_, response| {
        response.raw = Some(String::new())
    }),
    response_fault("a 429 has bytes that are not UTF-8", &["limits.json"], 429, |_, response| {
        response.raw = Some(format!("{{\"message\":\"{}\"}}", char::REPLACEMENT_CHARACTER));
    }),
    // Windows of another length.
    server_fault("fixed windows of 10 s", &["limits.refused"], |server| use_aligned_windows(server, 10, 43)),
    server_fault("fixed windows of 20 s", &["limits.refused"], |server| use_aligned_windows(server, 20, 43)),
    server_fault("fixed windows of 30 s", &["limits.refused"], |server| use_aligned_windows(server, 30, 43)),
    server_fault("fixed windows of 45 s", &["limits.refused"], |server| use_aligned_windows(server, 45, 20)),
    server_fault("fixed windows of 45 s, 3 s before the end", &["limits.refused"], |server| {
        use_aligned_windows(server, 45, 42)
    }),
    server_fault("fixed windows of two minutes", &["limits.retry_after"], |server| {
        use_aligned_windows(server, 120, 43)
    }),
    server_fault("fixed windows of two minutes, 20 s before the end", &["limits.retry_after"], |server| {
        use_aligned_windows(server, 120, 100)
    }),
    server_fault("fixed windows of five minutes", &["limits.retry_after"], |server| {
        use_aligned_windows(server, 300, 280)
    }),
    server_fault("a sliding log of 30 seconds", &["limits.refused"], |server| {
        use_window(server, Limiter::Sliding, 30)
    }),
    server_fault("a sliding log of two minutes", &["limits.retry_after"], |server| {
        use_window(server, Limiter::Sliding, 120)
    })
    .may_fail(KEY_STAYS_REFUSED),
    server_fault("a window of 30 seconds from the first request", &["limits.refused"], |server| {
        use_window(server, Limiter::FromFirst, 30);
    }),
    server_fault("a window of two minutes from the first request", &["limits.retry_after"], |server| {
        use_window(server, Limiter::FromFirst, 120);
    })
    .may_fail(KEY_STAYS_REFUSED),
    server_fault(
        "a window of two minutes, and Retry-After is one minute",
        &["limits.retry_after_held"],
        |server| {
            use_window(server, Limiter::FromFirst, 120);
            server.rewrite_responses(|_, response| {
                if response.status == 429 {
                    response.set_header("retry-after", "60");
                }
            });
        },
    ),
    server_fault("a refused request restarts the window", &["limits.retry_after_held"], |server| {
        use_window(server, Limiter::Restarting, 60);
    }),
    // Buckets of another size or rate. GCRA is a token bucket.
    // nginx with `burst=200 nodelay` serves one request and a burst of 200 more.
    server_fault("a burst of 200 without delay", &["limits.refused"], |server| {
        (server.limiter, server.limit, server.response_time) = (Limiter::Gcra, 201, Duration::from_millis(5));
    }),
    server_fault("a burst of 20 without delay", &["limits.served"], |server| {
        (server.limiter, server.limit, server.response_time) = (Limiter::Gcra, 21, Duration::from_millis(5));
    }),
    server_fault("a token bucket gets four tokens per second", &["limits.refused"], |server| {
        use_window(server, Limiter::Bucket, 30);
    }),
    server_fault("a token bucket of 60 tokens", &["limits.served"], |server| {
        (server.limiter, server.limit, server.response_time) = (Limiter::Gcra, 60, Duration::from_millis(5));
    }),
    // Separate limits.
    server_fault("two replicas have separate limits", &["limits.refused"], |server| server.replicas = 2),
    server_fault("two replicas have separate token buckets", &["limits.refused"], |server| {
        (server.replicas, server.limiter, server.response_time) =
            (2, Limiter::Bucket, Duration::from_millis(5));
    }),
    server_fault("lists and single objects have separate limits", &["limits.refused"], |server| {
        server.counted_identity = |request| format!("{:?} {}", request.authorization, request.is_list());
    })
    .may_fail(&["limits.every_path"]),
    server_fault("the account has a separate limit", &["limits.refused"], |server| {
        server.counted_identity =
            |request| format!("{:?} {}", request.authorization, request.path == "/v1/account");
    })
    .may_fail(&["limits.every_path"]),
    server_fault("HEAD is exempt from the limit", &["limits.every_path"], |server| {
        server.exempt_method = Some("HEAD")
    }),
    server_fault("a list counts for two requests, and headers show it", &["limits.served"], |server| {
        server.reports_quota = true;
        server.cost = |request| if request.is_list() { 2 } else { 1 };
    }),
    server_fault("every request counts for two, and headers show it", &["limits.served"], |server| {
        server.reports_quota = true;
        server.cost = |_| 2;
    }),
    server_fault(
        "all keys of a client address share a limit, and headers show it",
        &["limits.served", "limits.second_key"],
        |server| {
            server.reports_quota = true;
            server.counted_identity = |_| "the address".into();
        },
    )
    .may_fail(&["limits.per_key"]),
    // Other refusals.
    response_fault("too many requests get 500", &["limits.refused"], 429, |_, response| {
        response.status = 500
    }),
    response_fault("too many requests get 502", &["limits.refused"], 429, |_, response| {
        response.status = 502
    }),
    response_fault("too many requests are redirected", &["limits.refused"], 429, |_, response| {
        response.status = 302;
        response.set_header("location", "/slow-down");
    }),
    response_fault("too many requests get no response", &["limits.refused"], 429, |_, response| {
        response.status = http_server::CLOSE_WITHOUT_RESPONSE
    }),
    server_fault("requests over a limit of 100 get 503", &["limits.refused"], |server| {
        server.limit = 100;
        rewrite_matching(server, 429, |_| true, |_, response| response.status = 503);
    }),
    // `Retry-After`.
    response_fault("Retry-After is two minutes", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "120")
    }),
    response_fault("Retry-After is sent twice", &["limits.retry_after"], 429, |_, response| {
        response.headers.push(("retry-after".into(), "120".into()))
    }),
    response_fault("Retry-After has two values", &["limits.retry_after"], 429, |_, response| {
        response.set_header("retry-after", "60, 120")
    }),
    server_fault("Retry-After increases with time", &["limits.retry_after"], |server| {
        let (clock, mut first_at) = (server.clock.clone(), None);
        server.rewrite_responses(move |_, response| {
            if response.status == 429 {
                let now = clock.micros() / 1_000_000;
                response.set_header("retry-after", &(now - *first_at.get_or_insert(now) + 30).to_string());
            }
        });
    })
    .may_fail(&["limits.retry_after_held"]),
];

/// The statements that may fail if a key is refused for the rest of the run.
const KEY_STAYS_REFUSED: &[&str] = &["limits.retry_after_held"];

/// Sets fixed windows of this many seconds, aligned to the clock, which starts at `start` seconds.
fn use_aligned_windows(server: &mut FakeServer, seconds: u64, start: u64) {
    use_window(server, Limiter::AlignedWindow, seconds);
    // `use_window` has set the clock to 12 seconds.
    server.clock.advance(Duration::from_secs(start - 12));
}

/// Sets a limiter with windows of this many seconds, a short response time, and the clock to 12 seconds.
fn use_window(server: &mut FakeServer, limiter: Limiter, seconds: u64) {
    (server.limiter, server.window) = (limiter, Duration::from_secs(seconds));
    server.response_time = Duration::from_millis(5);
    server.clock.advance(Duration::from_secs(12));
}
