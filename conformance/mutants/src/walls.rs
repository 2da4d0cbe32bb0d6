//! Lies about what is not there, and about what only the other mode has.

use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::json;

use crate::mini::{Asked, Reply};
use crate::{Mutant, empty, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "an unknown id is answered 400",
        breaks: &["errors.not_found", "isolation.not_found", "isolation.objects", "isolation.second_account"],
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
            let other = |asked: &Asked| {
                let named = asked.query.get("charge").is_some_and(|it| it.ends_with("abcdef07"));
                named && asked.query.len() == 1
            };
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
    Mutant {
        name: "an unknown id is answered 200 and null",
        breaks: &["errors.not_found", "isolation.not_found", "isolation.second_account"],
        may: &["isolation.objects"],
        spoil: |mini| warp(mini, 404, |_| true, |_, reply| *reply = Reply::json(200, json!(null))),
    },
    Mutant {
        name: "an unknown id makes the server stumble",
        breaks: &["errors.not_found"],
        may: &["isolation.objects"],
        spoil: |mini| {
            warp(
                mini,
                404,
                |asked| !foreign(asked) && !asked.path.contains("-7ab3-"),
                |_, reply| *reply = Reply::json(500, json!({ "message": "No row was found" })),
            );
        },
    },
    Mutant {
        name: "404 has no body",
        breaks: &["errors.not_found_json"],
        may: &[],
        spoil: |mini| warp(mini, 404, |_| true, |_, reply| reply.raw = Some(String::new())),
    },
    Mutant {
        name: "404 is a page for developers that lists the routes",
        breaks: &["errors.not_found_json"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                404,
                |_| true,
                |asked, reply| {
                    reply.set("content-type", "text/html; charset=utf-8");
                    reply.raw =
                        Some(format!("<h1>Page not found</h1><p>{} with DEBUG = True</p>", asked.path));
                },
            );
        },
    },
    Mutant {
        name: "an event of live mode is forbidden to test keys",
        breaks: &["isolation.not_found"],
        may: &[],
        spoil: |mini| {
            let up = |asked: &Asked| foreign(asked) && asked.mode == Some(Mode::Test);
            warp(mini, 404, up, |_, reply| reply.status = 403);
        },
    },
    Mutant {
        name: "an event of the other mode is gone",
        breaks: &["isolation.not_found"],
        may: &[],
        spoil: |mini| warp(mini, 404, foreign, |_, reply| reply.status = 410),
    },
    Mutant {
        name: "an event of the other mode is elsewhere",
        breaks: &["isolation.not_found"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| {
                reply.status = 302;
                reply.set("location", "/test/events");
            });
        },
    },
    Mutant {
        name: "the 404 of the other mode names the object",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, foreign, |asked, reply| {
                let id = asked.path.rsplit('/').next().unwrap_or_default();
                reply.body["message"] = json!(format!("Event {id} belongs to charge ch2abcdef07."));
            });
        },
    },
    Mutant {
        name: "the 404 of the other mode has an ETag",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| warp(mini, 404, foreign, |_, reply| reply.set("etag", "W/\"5d41402a\"")),
    },
    Mutant {
        name: "the 404 of the other mode may be cached",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, |_| true, |_, reply| reply.set("cache-control", "no-store"));
            warp(mini, 404, foreign, |_, reply| reply.set("cache-control", "private, must-revalidate"));
        },
    },
    Mutant {
        name: "only absent ids get a header for debugging",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| warp(mini, 404, |asked| !foreign(asked), |_, reply| reply.set("x-debug", "no row")),
    },
    Mutant {
        name: "the 404 of the other mode has a charset",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, foreign, |_, reply| reply.set("content-type", "application/json; charset=utf-8"));
        },
    },
    Mutant {
        name: "the 404 of the other mode has a code of its own",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, |_| true, |_, reply| reply.body["code"] = json!(4041));
            warp(mini, 404, foreign, |_, reply| reply.body["code"] = json!(4042));
        },
    },
    Mutant {
        name: "the 404 of the other mode names its members in another order",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                404,
                |_| true,
                |_, reply| {
                    reply.raw = Some("{\"message\":\"Not found.\",\"code\":404}".into());
                },
            );
            warp(mini, 404, foreign, |_, reply| {
                reply.raw = Some("{\"code\":404,\"message\":\"Not found.\"}".into());
            });
        },
    },
    Mutant {
        name: "live keys learn from the 404 of a test event, test keys do not",
        breaks: &["isolation.indistinguishable"],
        may: &[],
        spoil: |mini| {
            let down = |asked: &Asked| foreign(asked) && asked.mode == Some(Mode::Live);
            warp(mini, 404, down, |_, reply| reply.body["hint"] = json!("Use your test key."));
        },
    },
    Mutant {
        name: "charges are listed in both modes",
        breaks: &["isolation.lists"],
        may: &["isolation.filter_payment_link"],
        spoil: |mini| mini.live.charges = mini.test.charges.clone(),
    },
    Mutant {
        name: "an invoice is listed in both modes",
        breaks: &["isolation.lists"],
        may: &[],
        spoil: |mini| *mini.live.invoices.last_mut().expect("an invoice") = mini.test.invoices[3].clone(),
    },
    Mutant {
        name: "the cache of lists forgets the mode",
        breaks: &["isolation.lists"],
        may: &[
            "paging.newest_first",
            "paging.joined",
            "filters.total",
            "filters.charge",
            "filters.invoice",
            "filters.payment_link",
            "events.single",
            "isolation.filter_charge",
            "isolation.filter_invoice",
            "isolation.filter_payment_link",
            "isolation.not_found",
            "isolation.second_account",
            "isolation.objects",
        ],
        spoil: |mini| {
            let mut cache = BTreeMap::new();
            mini.warp(move |asked, reply| {
                if reply.status == 200 && asked.is_list() {
                    let key = (asked.path.clone(), asked.query.clone());
                    reply.body = cache.entry(key).or_insert_with(|| reply.body.clone()).clone();
                }
            });
        },
    },
    Mutant {
        name: "the type filter forgets the mode",
        breaks: &["filters.total"],
        may: &["isolation.lists", "paging.newest_first"],
        spoil: |mini| {
            let mut both = mini.test.clone();
            both.events.extend(mini.live.events.iter().cloned());
            mini.warp(move |asked, reply| {
                if reply.status == 200 && asked.query.contains_key("type") {
                    let links = reply.body["links"].take();
                    *reply = both.answer(asked, Mode::Test, "");
                    reply.body["links"] = links;
                }
            });
        },
    },
    Mutant {
        name: "the charge filter is 404 for the other mode, empty for nobody's",
        breaks: &["isolation.filter_charge"],
        may: &[],
        spoil: |mini| {
            let other = |asked: &Asked| asked.query.get("charge").is_some_and(|it| it.ends_with("abcdef07"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    *reply = Reply::json(404, json!({ "message": "Not found." }));
                }
            });
        },
    },
    Mutant {
        name: "the charge filter knows the pages of the other mode",
        breaks: &["isolation.filter_charge"],
        may: &[],
        spoil: |mini| {
            let other = |asked: &Asked| asked.query.get("charge").is_some_and(|it| it.ends_with("abcdef07"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    reply.body["meta"]["last_page"] = json!(2);
                }
            });
        },
    },
    Mutant {
        name: "the invoice filter shows the events of the other mode",
        breaks: &["isolation.filter_invoice"],
        may: &["isolation.lists"],
        spoil: |mini| {
            let books = [mini.test.clone(), mini.live.clone()];
            mini.warp(move |asked, reply| {
                if reply.status == 200 && asked.query.contains_key("invoice") && empty(reply) {
                    *reply = books[usize::from(asked.mode == Some(Mode::Test))].answer(asked, Mode::Live, "");
                }
            });
        },
    },
    Mutant {
        name: "the payment link filter is forbidden for the other mode",
        breaks: &["isolation.filter_payment_link"],
        may: &[],
        spoil: |mini| {
            let other =
                |asked: &Asked| asked.query.get("payment_link").is_some_and(|it| it.ends_with("ghijkl01"));
            warp(mini, 200, other, |_, reply| {
                if empty(reply) {
                    *reply = Reply::json(403, json!({ "message": "This link is one of test mode." }));
                }
            });
        },
    },
    Mutant {
        name: "an event of the other account is forbidden",
        breaks: &["isolation.second_account"],
        may: &[],
        spoil: |mini| {
            let of_second = |asked: &Asked| asked.path.contains("-7ab3-");
            warp(mini, 404, of_second, |_, reply| reply.status = 403);
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
