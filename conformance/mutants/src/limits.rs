//! Lies about the limit.

use std::time::Duration;

use conformance::Mode;
use serde_json::json;

use crate::mini::{Limiter, Reply};
use crate::{Mutant, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "no limit",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| mini.limiter = Limiter::Off,
    },
    Mutant { name: "a limit of 100", breaks: &["limits.served"], may: &[], spoil: |mini| mini.limit = 100 },
    Mutant { name: "a limit of 119", breaks: &["limits.served"], may: &[], spoil: |mini| mini.limit = 119 },
    Mutant { name: "a limit of 121", breaks: &["limits.refused"], may: &[], spoil: |mini| mini.limit = 121 },
    Mutant {
        name: "a limit of 200, while time passes",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| {
            mini.limit = 200;
            mini.tick = Duration::from_millis(10);
        },
    },
    Mutant {
        name: "the limit belongs to the account",
        breaks: &["limits.per_key", "limits.second_key"],
        may: &[],
        spoil: |mini| mini.counted = |_| "the account".into(),
    },
    Mutant {
        name: "each path has a limit of its own",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| mini.counted = |asked| format!("{:?} {}", asked.authorization, asked.path),
    },
    Mutant {
        name: "the account is exempt from the limit",
        // The wait is tried on that path too, which then proves nothing.
        breaks: &["limits.refused", "limits.every_path"],
        may: &[],
        spoil: |mini| mini.exempt = Some("/v1/account"),
    },
    Mutant {
        name: "the charges are exempt from the limit",
        breaks: &["limits.refused", "limits.every_path"],
        may: &[],
        spoil: |mini| mini.exempt = Some("/v1/charges"),
    },
    Mutant {
        name: "429 forgets Retry-After",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.drop_header("retry-after")),
    },
    Mutant {
        name: "Retry-After is in words",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "a minute")),
    },
    Mutant {
        name: "Retry-After is a fraction",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "59.5")),
    },
    Mutant {
        name: "Retry-After is too short",
        breaks: &["limits.retry_after_held"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "5")),
    },
    Mutant {
        name: "429 is plain text",
        breaks: &["limits.json"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.raw = Some("slow down".into())),
    },
    Mutant { name: "a limit of 60", breaks: &["limits.served"], may: &[], spoil: |mini| mini.limit = 60 },
    Mutant {
        name: "too many requests are answered 503",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                429,
                |_| true,
                |_, reply| {
                    *reply = Reply::json(503, json!({ "message": "Service Temporarily Unavailable" }));
                },
            );
        },
    },
    Mutant {
        name: "too many requests are answered 403",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.status = 403),
    },
    Mutant {
        name: "too many requests are answered 200 and an error",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.status = 200),
    },
    Mutant {
        name: "only the events are counted",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| {
            mini.counted = |asked| match asked.path.as_str() {
                path if path.starts_with("/v1/events") => asked.authorization.clone().unwrap_or_default(),
                other => other.to_owned(),
            };
        },
    },
    Mutant {
        name: "single events are exempt from the limit",
        breaks: &["limits.refused", "limits.every_path"],
        may: &[],
        spoil: |mini| mini.exempt = Some("/v1/events/"),
    },
    Mutant {
        name: "a refusal sets the counter back",
        breaks: &["limits.refused"],
        may: &[],
        spoil: |mini| {
            mini.limiter = Limiter::Off;
            let mut served = 0;
            mini.warp(move |asked, reply| {
                let is_test = asked.mode == Some(Mode::Test) && reply.status < 400;
                served += u32::from(is_test);
                if served > 120 {
                    served = 0;
                    *reply = Reply::json(429, json!({ "message": "Too many requests." }));
                    reply.set("retry-after", "60");
                }
            });
        },
    },
    Mutant {
        name: "Retry-After is in milliseconds",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                429,
                |_| true,
                |_, reply| {
                    let told = reply.header("retry-after").and_then(|it| it.parse::<u64>().ok());
                    reply.set("retry-after", &(told.expect("seconds") * 1000).to_string());
                },
            );
        },
    },
    Mutant {
        name: "Retry-After is a moment, in seconds since 1970",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "1767225660")),
    },
    Mutant {
        name: "Retry-After is below zero",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "-3")),
    },
    Mutant {
        name: "Retry-After names its unit",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "60s")),
    },
    Mutant {
        name: "Retry-After is a date for machines",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "2026-01-01T00:01:00Z")),
    },
    Mutant {
        name: "one path forgets Retry-After",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                429,
                |asked| asked.path == "/v1/invoices",
                |_, reply| reply.drop_header("retry-after"),
            );
        },
    },
    Mutant {
        name: "Retry-After is empty",
        breaks: &["limits.retry_after"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "")),
    },
    Mutant {
        name: "Retry-After is 0",
        breaks: &["limits.retry_after_held"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "0")),
    },
    Mutant {
        name: "Retry-After counts minutes",
        breaks: &["limits.retry_after_held"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.set("retry-after", "1")),
    },
    Mutant {
        name: "Retry-After is a date that has passed",
        breaks: &["limits.retry_after_held"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                429,
                |_| true,
                |_, reply| {
                    reply.set("date", "Thu, 01 Jan 2026 00:00:10 GMT");
                    reply.set("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT");
                },
            );
        },
    },
    Mutant {
        name: "429 has no body",
        breaks: &["limits.json"],
        may: &[],
        spoil: |mini| warp(mini, 429, |_| true, |_, reply| reply.raw = Some(String::new())),
    },
];
