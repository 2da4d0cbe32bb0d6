//! Lies about filters: what they let through, and what is counted.

use conformance::Mode;
use serde_json::json;

use crate::{Mutant, empty, lists};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the type filter is ignored",
        breaks: &["filters.type", "filters.total"],
        may: &["filters.combined"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("type"))),
    },
    Mutant {
        name: "the charge filter is ignored",
        breaks: &["filters.charge", "filters.total"],
        may: &["filters.combined"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("charge"))),
    },
    Mutant {
        name: "the invoice filter lets nothing through",
        breaks: &["filters.invoice", "filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            mini.warp_request(|asked| {
                asked.query.entry("invoice".into()).and_modify(|it| it.push('x'));
            });
        },
    },
    Mutant {
        name: "total ignores the filter",
        breaks: &["filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("type") {
                    reply.body["meta"]["total"] = json!(28);
                }
            });
        },
    },
    Mutant {
        name: "the status filter is ignored",
        breaks: &["filters.status"],
        may: &[],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("status"))),
    },
    Mutant {
        name: "the payment link filter finds others",
        breaks: &["filters.payment_link"],
        may: &["filters.combined"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("payment_link") && !empty(reply) {
                    reply.body["data"][0]["payment_link"] = json!("another");
                }
            });
        },
    },
    Mutant {
        name: "the type filter compares the first word only",
        breaks: &["filters.type", "filters.total"],
        may: &["paging.links_keep_filters", "filters.combined"],
        spoil: |mini| {
            // The page is cut from the whole family of types.
            let books = [mini.live.clone(), mini.test.clone()];
            mini.warp(move |asked, reply| {
                let Some(kind) = asked.query.get("type").filter(|_| reply.status == 200) else { return };
                let family = kind.split('.').next().expect("a first word").to_owned();
                let mut book = books[usize::from(asked.mode == Some(Mode::Test))].clone();
                book.events.retain(|it| it["type"].as_str().is_some_and(|it| it.starts_with(&family)));
                let mut asked = asked.clone();
                asked.query.remove("type");
                let (mode, links) = (asked.mode.expect("a key"), reply.body["links"].take());
                *reply = book.answer(&asked, mode, "");
                reply.body["links"] = links;
            });
        },
    },
    Mutant {
        name: "the type filter lets nothing through",
        breaks: &["filters.type", "filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            mini.warp_request(|asked| {
                asked.query.entry("type".into()).and_modify(|it| *it = it.to_uppercase());
            });
        },
    },
    Mutant {
        name: "the charge filter finds one event of each charge",
        breaks: &["filters.total"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("charge") && !empty(reply) {
                    reply.body["data"].as_array_mut().expect("rows").truncate(1);
                    reply.body["meta"]["total"] = json!(1);
                }
            });
        },
    },
    Mutant {
        name: "the charge filter finds charges whose code begins alike",
        breaks: &["filters.charge", "filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            let books = [mini.live.clone(), mini.test.clone()];
            mini.warp(move |asked, reply| {
                let Some(code) = asked.query.get("charge").filter(|_| reply.status == 200) else { return };
                let alike = code[..code.len() - 1].to_owned();
                let mut book = books[usize::from(asked.mode == Some(Mode::Test))].clone();
                book.events
                    .retain(|it| it["charge"]["code"].as_str().is_some_and(|it| it.starts_with(&alike)));
                let mut asked = asked.clone();
                asked.query.remove("charge");
                *reply = book.answer(&asked, Mode::Test, "");
            });
        },
    },
    Mutant {
        name: "the invoice filter is ignored",
        breaks: &["filters.invoice", "filters.total"],
        may: &["filters.combined"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("invoice"))),
    },
    Mutant {
        name: "total of a charge's events is that of all events",
        breaks: &["filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("charge") && !empty(reply) {
                    reply.body["meta"]["total"] = json!(28);
                }
            });
        },
    },
    Mutant {
        name: "total of filtered charges is that of all charges",
        breaks: &["filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.path == "/v1/charges" && asked.query.contains_key("status") {
                    reply.body["meta"]["total"] = json!(8);
                }
            });
        },
    },
    Mutant {
        name: "total counts rows before the payment link is looked at",
        breaks: &["filters.total"],
        may: &["filters.combined"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.query.contains_key("payment_link") && !empty(reply) {
                    reply.body["meta"]["total"] = json!(8);
                }
            });
        },
    },
    Mutant {
        name: "invoices ignore the status filter",
        breaks: &["filters.status"],
        may: &[],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                book.invoices[0]["status"] = json!("void");
            }
            mini.warp_request(|asked| {
                if asked.path == "/v1/invoices" {
                    asked.query.remove("status");
                }
            });
        },
    },
    Mutant {
        name: "the payment link filter lets nothing through",
        breaks: &["filters.payment_link"],
        may: &[],
        spoil: |mini| {
            mini.warp_request(|asked| {
                asked.query.entry("payment_link".into()).and_modify(|it| it.push('x'));
            });
        },
    },
    Mutant {
        name: "the payment link filter is ignored",
        breaks: &["filters.payment_link"],
        may: &["isolation.filter_payment_link", "filters.combined"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("payment_link"))),
    },
];
