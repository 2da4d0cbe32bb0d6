//! Lies about the limit.

use std::time::Duration;

use crate::mini::Limiter;
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
        breaks: &["limits.per_key"],
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
];
