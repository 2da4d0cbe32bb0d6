//! Lies about events, in lists and alone.

use serde_json::{Value, json};

use crate::mini::{Mini, Reply};
use crate::{Mutant, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
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
    Mutant {
        name: "ids have no hyphens",
        breaks: &["events.id"],
        may: &[],
        spoil: |mini| {
            events(mini, |event| {
                event["id"] = json!(event["id"].as_str().expect("an id").replace('-', ""));
            });
            mini.warp_request(|asked| {
                if let Some(id) = asked.path.strip_prefix("/v1/events/").filter(|id| id.len() == 32) {
                    let parts = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]];
                    asked.path = format!("/v1/events/{}", parts.join("-"));
                }
            });
        },
    },
    Mutant {
        name: "ids are counted",
        breaks: &["events.id"],
        may: &[],
        spoil: |mini| {
            for (world, book) in [(1, &mut mini.live), (2, &mut mini.test), (3, &mut mini.second)] {
                let len = book.events.len();
                for (at, event) in book.events.iter_mut().enumerate() {
                    event["id"] = json!(format!("evt_{}", world * 1_000_000 + len - at));
                }
            }
        },
    },
    Mutant {
        name: "details are null when there is nothing to add",
        breaks: &["events.details"],
        may: &[],
        spoil: |mini| events(mini, |event| event["details"] = Value::Null),
    },
    Mutant {
        name: "details are JSON in a text",
        breaks: &["events.details"],
        may: &[],
        spoil: |mini| events(mini, |event| event["details"] = json!("{}")),
    },
    Mutant {
        name: "a single event leaves its details out",
        breaks: &["events.details"],
        may: &[],
        spoil: |mini| {
            alone(mini, |reply| drop(reply.body["data"].as_object_mut().expect("an event").remove("details")))
        },
    },
    Mutant {
        name: "a charge event has no charge",
        breaks: &["events.subject"],
        may: &["filters.charge", "filters.total"],
        spoil: |mini| {
            // Filters by a charge have nothing to name then.
            events(mini, |event| {
                if event["type"] == "charge.canceled" {
                    event["charge"] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "a charge event names the charge by its code only",
        breaks: &["events.subject"],
        may: &["events.both_paid"],
        spoil: |mini| {
            events(mini, |event| {
                if event["charge"].is_object() {
                    event["charge"] = event["charge"]["code"].clone();
                }
            });
        },
    },
    Mutant {
        name: "invoice.sent carries a charge",
        breaks: &["events.subject"],
        may: &["filters.charge", "filters.total"],
        spoil: |mini| {
            events(mini, |event| {
                if event["type"] == "invoice.sent" {
                    event["charge"] = json!({ "code": "none" });
                }
            });
        },
    },
    Mutant {
        name: "what is null is an empty object",
        breaks: &["events.subject"],
        may: &[],
        spoil: |mini| {
            events(mini, |event| {
                for name in ["charge", "invoice"] {
                    if event[name].is_null() {
                        event[name] = json!({});
                    }
                }
            });
        },
    },
    Mutant {
        name: "canceled is spelled with two l",
        breaks: &["events.type"],
        may: &[],
        spoil: |mini| rename(mini, "charge.canceled", "charge.cancelled"),
    },
    Mutant {
        name: "a type is written in camel case",
        breaks: &["events.type"],
        may: &[],
        spoil: |mini| rename(mini, "invoice.viewed", "invoiceViewed"),
    },
    Mutant {
        name: "an internal type shows",
        breaks: &["events.type"],
        may: &[],
        spoil: |mini| rename(mini, "charge.created", "charge.pending"),
    },
    Mutant {
        name: "times have no zone",
        breaks: &["events.created_at"],
        may: &["paging.newest_first"],
        spoil: |mini| times(mini, |time| json!(time.replace('Z', ""))),
    },
    Mutant {
        name: "times have a space and no zone, as the database writes them",
        breaks: &["events.created_at"],
        may: &[],
        spoil: |mini| times(mini, |time| json!(time.replace('T', " ").replace('Z', ""))),
    },
    Mutant {
        name: "times are seconds since 1970",
        breaks: &["events.created_at"],
        may: &[],
        spoil: |mini| times(mini, |_| json!(1_764_547_200)),
    },
    Mutant {
        name: "times are those of e-mails",
        breaks: &["events.created_at"],
        may: &[],
        spoil: |mini| times(mini, |_| json!("Mon, 01 Dec 2025 00:00:00 GMT")),
    },
    Mutant {
        name: "only a single event tells local time",
        breaks: &["events.created_at"],
        may: &[],
        spoil: |mini| {
            alone(mini, |reply| {
                let time = reply.body["data"]["created_at"].as_str().expect("a time").replace('Z', "-05:00");
                reply.body["data"]["created_at"] = json!(time);
            });
        },
    },
    Mutant {
        name: "a single event stands in a list",
        breaks: &["events.single", "events.id"],
        may: &["events.type", "events.details", "events.created_at"],
        spoil: |mini| alone(mini, |reply| reply.body = json!({ "data": [reply.body["data"]] })),
    },
    Mutant {
        name: "a single event stands under `event`",
        breaks: &["events.single", "events.id"],
        may: &["events.type", "events.details", "events.created_at"],
        spoil: |mini| alone(mini, |reply| reply.body = json!({ "event": reply.body["data"] })),
    },
    Mutant {
        name: "single events are not found",
        breaks: &["events.single"],
        may: &[],
        spoil: |mini| {
            alone(mini, |reply| *reply = Reply::json(404, json!({ "message": "No route." })));
        },
    },
    Mutant {
        name: "a single event is always the newest",
        breaks: &["events.single"],
        may: &[],
        spoil: |mini| {
            let oldest = mini.test.events.last().cloned();
            mini.warp(move |asked, reply| {
                if reply.status == 200 && asked.path.starts_with("/v1/events/") {
                    reply.body["data"] = json!(oldest);
                }
            });
        },
    },
];

fn alone(mini: &mut Mini, change: fn(&mut Reply)) {
    mini.warp(move |asked, reply| {
        if reply.status == 200 && asked.path.starts_with("/v1/events/") {
            change(reply);
        }
    });
}

fn rename(mini: &mut Mini, from: &'static str, to: &'static str) {
    for book in [&mut mini.live, &mut mini.test] {
        for event in book.events.iter_mut().filter(|it| it["type"] == from) {
            event["type"] = json!(to);
        }
    }
}

fn times(mini: &mut Mini, change: fn(&str) -> Value) {
    mini.warp(move |asked, reply| {
        let write =
            |event: &mut Value| event["created_at"] = change(event["created_at"].as_str().expect("a time"));
        if reply.status == 200 && asked.path == "/v1/events" {
            reply.body["data"].as_array_mut().into_iter().flatten().for_each(write);
        } else if reply.status == 200 && asked.path.starts_with("/v1/events/") {
            write(&mut reply.body["data"]);
        }
    });
}

fn events(mini: &mut Mini, change: fn(&mut Value)) {
    mini.warp(move |asked, reply| {
        if reply.status == 200 && asked.path == "/v1/events" {
            reply.body["data"].as_array_mut().into_iter().flatten().for_each(change);
        } else if reply.status == 200 && asked.path.starts_with("/v1/events/") {
            change(&mut reply.body["data"]);
        }
    });
}
