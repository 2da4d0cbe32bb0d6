//! Lies about what is not there, and about what only the other mode has.

use conformance::Mode;
use serde_json::json;

use crate::mini::{Asked, Reply};
use crate::{Mutant, empty, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "an unknown id is answered 400",
        breaks: &["errors.not_found", "isolation.not_found", "isolation.second_account"],
        may: &[],
        spoil: |mini| warp(mini, 404, |_| true, |_, reply| reply.status = 400),
    },
    Mutant {
        name: "404 is a page",
        breaks: &["errors.not_found_json"],
        may: &[],
        spoil: |mini| warp(mini, 404, |_| true, |_, reply| reply.raw = Some("<h1>404</h1>".into())),
    },
    Mutant {
        name: "an event of the other mode is answered 403",
        breaks: &["isolation.not_found"],
        may: &[],
        spoil: |mini| warp(mini, 404, foreign, |_, reply| reply.status = 403),
    },
    Mutant {
        name: "an event of the other mode is answered",
        breaks: &["isolation.not_found"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| {
                *reply = Reply::json(200, json!({ "data": { "leak": true } }))
            });
        },
    },
    Mutant {
        name: "the 404 of the other mode says why",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| reply.body["message"] = json!("Wrong mode."));
        },
    },
    Mutant {
        name: "the 404 of the other mode has a header more",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| warp(mini, 404, foreign, |_, reply| reply.set("x-mode", "other")),
    },
    Mutant {
        name: "the 404 of the other mode has other spaces",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| reply.raw = Some("{ \"message\": \"Not found.\" }".into()));
        },
    },
    Mutant {
        name: "an event of the other account is answered",
        breaks: &["isolation.second_account"],
        may: &[],
        spoil: |mini| {
            let of_second = |asked: &Asked| asked.path.contains("-7ab3-");
            warp(mini, 404, of_second, |_, reply| *reply = Reply::json(200, json!({ "data": {} })));
        },
    },
    Mutant {
        name: "an event is listed in both modes",
        breaks: &["isolation.lists"],
        may: &[],
        spoil: |mini| *mini.live.events.last_mut().expect("an event") = mini.test.events[27].clone(),
    },
    Mutant {
        name: "the charge filter sees the other mode",
        breaks: &["isolation.filter_charge"],
        may: &[],
        spoil: |mini| {
            let other = |asked: &Asked| asked.query.get("charge").is_some_and(|it| it.ends_with("abcdef07"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.body["meta"]["total"] = json!(2)
                }
            });
        },
    },
    Mutant {
        name: "the invoice filter tells the other mode by its status",
        breaks: &["isolation.filter_invoice"],
        may: &[],
        spoil: |mini| {
            let other = |asked: &Asked| asked.query.get("invoice").is_some_and(|it| it.ends_with("mnopqr03"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.status = 403
                }
            });
        },
    },
    Mutant {
        name: "the payment link filter shows a row of the other mode",
        breaks: &["isolation.filter_payment_link"],
        may: &[],
        spoil: |mini| {
            let other =
                |asked: &Asked| asked.query.get("payment_link").is_some_and(|it| it.ends_with("ghijkl01"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.body["data"] = json!([{}])
                }
            });
        },
    },
];

/// An event of the other mode, by the make of its id.
pub fn foreign(asked: &Asked) -> bool {
    let other = if asked.mode == Some(Mode::Live) { "-7ab2-" } else { "-7ab1-" };
    asked.path.contains(other) && known(asked)
}

fn known(asked: &Asked) -> bool {
    asked
        .path
        .rsplit('-')
        .next()
        .is_some_and(|node| u64::from_str_radix(node, 16).is_ok_and(|number| number % 0x12_3456_789a == 0))
}
