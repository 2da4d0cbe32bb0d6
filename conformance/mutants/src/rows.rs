//! Lies about filters, and about events.

use serde_json::{Value, json};

use crate::mini::Mini;
use crate::{Mutant, empty, lists, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the type filter is ignored",
        breaks: &["filters.type", "filters.total", "filters.combined"],
        may: &["filters.combined"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("type"))),
    },
    Mutant {
        name: "the charge filter is ignored",
        breaks: &["filters.charge", "filters.total", "filters.combined"],
        may: &["filters.combined"],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("charge"))),
    },
    Mutant {
        name: "the invoice filter lets nothing through",
        breaks: &["filters.invoice", "filters.total", "filters.combined"],
        may: &["filters.combined"],
        spoil: |mini| {
            mini.warp_request(|asked| {
                asked.query.entry("invoice".into()).and_modify(|it| it.push('x'));
            });
        },
    },
    Mutant {
        name: "total ignores the filter",
        breaks: &["filters.total", "filters.combined"],
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
        breaks: &["filters.payment_link", "filters.combined"],
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
        name: "ids are numbers",
        breaks: &["events.id"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.query.contains_key("invoice"),
                |_, reply| {
                    reply.body["data"]
                        .as_array_mut()
                        .into_iter()
                        .flatten()
                        .for_each(|row| row["id"] = json!(7));
                },
            );
        },
    },
    Mutant {
        name: "a single event is another",
        breaks: &["events.single"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path.starts_with("/v1/events/"),
                |_, reply| {
                    reply.body["data"]["id"] = json!("0190a5c4-7f3e-7abc-8def-aaaaaaaaaaaa");
                },
            );
        },
    },
    Mutant {
        name: "an event has a type of its own",
        breaks: &["events.type"],
        may: &[],
        spoil: |mini| mini.test.events[2]["type"] = json!("invoice.confirmed"),
    },
    Mutant {
        name: "empty details are an array",
        breaks: &["events.details"],
        may: &[],
        spoil: |mini| events(mini, |event| event["details"] = json!([])),
    },
    Mutant {
        name: "a charge event also carries an invoice",
        breaks: &["events.subject"],
        may: &[],
        spoil: |mini| {
            events(mini, |event| {
                if event["invoice"].is_null() {
                    event["invoice"] = json!({})
                }
            })
        },
    },
    Mutant {
        name: "an invoice event has no charge member",
        breaks: &["events.subject"],
        may: &[],
        spoil: |mini| {
            events(mini, |event| {
                if event["charge"].is_null() {
                    event.as_object_mut().expect("an event").remove("charge");
                }
            });
        },
    },
    Mutant {
        name: "times are local",
        breaks: &["events.created_at"],
        may: &[],
        spoil: |mini| {
            events(mini, |event| {
                let time = event["created_at"].as_str().expect("a time").replace('Z', "+02:00");
                event["created_at"] = json!(time);
            });
        },
    },
];

fn events(mini: &mut Mini, change: fn(&mut Value)) {
    mini.warp(move |asked, reply| {
        if reply.status == 200 && asked.path == "/v1/events" {
            reply.body["data"].as_array_mut().into_iter().flatten().for_each(change);
        } else if reply.status == 200 && asked.path.starts_with("/v1/events/") {
            change(&mut reply.body["data"]);
        }
    });
}
