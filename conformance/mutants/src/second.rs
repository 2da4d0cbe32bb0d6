//! Lies that only a second key, a combination of filters or one type of event brings to light.

use conformance::Mode;
use serde_json::json;

use crate::mini::{self, Asked, Reply};
use crate::{Mutant, empty, lists, walls, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the limit belongs to the account and its mode",
        breaks: &["limits.second_key"],
        may: &[],
        spoil: |mini| mini.counted = |asked| format!("{:?}", asked.mode),
    },
    Mutant {
        name: "the second key sees a list without its newest event",
        breaks: &["auth.same_lists"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if by_second(asked) && !empty(reply) {
                    reply.body["data"].as_array_mut().expect("rows").remove(0);
                }
            });
        },
    },
    Mutant {
        name: "of two filters only the first counts",
        breaks: &["filters.combined"],
        may: &[],
        spoil: |mini| {
            mini.warp_request(|asked| {
                if asked.query.contains_key("type") {
                    asked.query.remove("charge");
                    asked.query.remove("invoice");
                }
            });
        },
    },
    Mutant {
        name: "the total of two filters counts the first only",
        breaks: &["filters.combined"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("type") && asked.query.contains_key("charge") {
                    reply.body["meta"]["total"] = json!(8);
                }
            });
        },
    },
    Mutant {
        name: "all three filters together are taken for none",
        breaks: &["filters.combined"],
        may: &[],
        spoil: |mini| {
            mini.warp_request(|asked| {
                if ["type", "charge", "invoice"].iter().all(|name| asked.query.contains_key(*name)) {
                    asked.query.retain(|name, _| name == "per_page");
                }
            });
        },
    },
    Mutant {
        name: "the total of charges forgets the status",
        breaks: &["filters.total", "filters.combined"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.path == "/v1/charges" && asked.query.contains_key("status") {
                    reply.body["meta"]["total"] = json!(9);
                }
            });
        },
    },
    Mutant {
        name: "a charge of the other mode is answered 403",
        breaks: &["isolation.objects"],
        may: &[],
        spoil: |mini| warp(mini, 404, other_object, |_, reply| reply.status = 403),
    },
    Mutant {
        name: "the 404 of an invoice of the other mode says more",
        breaks: &["isolation.objects"],
        may: &[],
        spoil: |mini| {
            warp(mini, 404, other_object, |_, reply| reply.body["hint"] = json!("other mode"));
        },
    },
    Mutant {
        name: "links forget the charge",
        breaks: &["paging.links_keep_filters"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| crate::links::forget(reply, "charge")),
    },
    Mutant {
        name: "links of a list filtered by payment link forget per_page",
        breaks: &["paging.links_keep_size"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("payment_link") {
                    crate::links::forget(reply, "per_page");
                }
            });
        },
    },
    Mutant {
        name: "events of one type show in the other mode",
        breaks: &["isolation.not_found"],
        may: &[],
        spoil: |mini| {
            let kinds = [Mode::Live, Mode::Test].map(|mode| {
                let book = if mode == Mode::Live { &mini.live } else { &mini.test };
                let of_kind = book.events.iter().filter(|event| event["type"] == "invoice.sent");
                of_kind.map(|event| event["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
            });
            mini.warp(move |asked, reply| {
                let id = asked.path.rsplit('/').next().unwrap_or_default();
                let leaks = kinds.iter().flatten().any(|it| it == id);
                if reply.status == 404 && walls::foreign(asked) && leaks {
                    *reply = Reply::json(200, json!({ "data": { "id": id } }));
                }
            });
        },
    },
];

/// A single object of the other mode: of those that exist, the number is small.
fn other_object(asked: &Asked) -> bool {
    let other =
        if asked.mode == Some(Mode::Live) { ["ch2abcdef", "in2mnopqr"] } else { ["ch1abcdef", "in1mnopqr"] };
    let code = asked.path.rsplit('/').next().unwrap_or_default();
    other.iter().any(|make| code.starts_with(make))
}

fn by_second(asked: &Asked) -> bool {
    asked.authorization.as_deref() == Some(&format!("Bearer {}", mini::SECOND_KEY))
}
