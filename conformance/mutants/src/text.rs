//! Lies in the text of an answer: what a parser stumbles over.

use serde_json::{Value, json};

use crate::mini::{Mini, Reply};
use crate::{Mutant, lists, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a notice of the interpreter stands before the JSON",
        breaks: &["answers.json"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| reply.raw = Some(format!("<br />Deprecated: usort()<br />{}", reply.body)));
        },
    },
    Mutant {
        name: "a byte order mark stands before the JSON",
        breaks: &["answers.json"],
        may: &[],
        spoil: |mini| charges(mini, |reply| reply.raw = Some(format!("\u{feff}{}", reply.body))),
    },
    Mutant {
        name: "a number is NaN",
        breaks: &["answers.json"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| reply.raw = Some(reply.body.to_string().replace("null", "NaN")));
        },
    },
    Mutant {
        name: "the body ends in the middle",
        breaks: &["answers.json"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| {
                let body = reply.body.to_string();
                reply.raw = Some(body[..body.len() / 2].to_owned());
            });
        },
    },
    Mutant {
        name: "the JSON stands in a text",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| charges(mini, |reply| reply.body = json!(reply.body.to_string())),
    },
    Mutant {
        name: "lists have no Content-Type",
        breaks: &["answers.content_type"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| reply.drop_header("content-type")),
    },
    Mutant {
        name: "a single event is called bytes",
        breaks: &["answers.content_type"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path.starts_with("/v1/events/"),
                |_, reply| reply.set("content-type", "application/octet-stream"),
            );
        },
    },
    Mutant {
        name: "every row names its code twice",
        breaks: &["answers.duplicate_keys"],
        may: &["paging.joined"],
        spoil: |mini| {
            charges(mini, |reply| {
                let text = reply.body.to_string();
                reply.raw = Some(text.replace("\"status\":", "\"code\":\"x\",\"status\":"));
            });
        },
    },
    Mutant {
        name: "what is null is left out",
        breaks: &["paging.links", "events.subject"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| leave_out(&mut reply.body)),
    },
    Mutant {
        name: "the invoices stand under `results`, beside `count`",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/invoices",
                |_, reply| {
                    let (rows, total) = (reply.body["data"].take(), reply.body["meta"]["total"].take());
                    reply.body = json!({ "count": total, "next": null, "previous": null, "results": rows });
                },
            );
        },
    },
    Mutant {
        name: "numbers and links stand beside data",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| {
                let meta = reply.body["meta"].take();
                reply.body = json!({
                    "data": reply.body["data"],
                    "current_page": meta["current_page"],
                    "last_page": meta["last_page"],
                    "per_page": meta["per_page"],
                    "total": meta["total"],
                    "next_page_url": reply.body["links"]["next"],
                    "prev_page_url": reply.body["links"]["prev"],
                });
            });
        },
    },
    Mutant {
        name: "the charges stand under `content`, with `totalElements`",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| {
                let (rows, total) = (reply.body["data"].take(), reply.body["meta"]["total"].take());
                reply.body = json!({ "content": rows, "totalElements": total, "number": 0, "size": 25 });
            });
        },
    },
    Mutant {
        name: "links are a list of buttons",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| {
                reply.body["links"] = json!([{ "url": null, "label": "&laquo; Previous", "active": false }]);
            });
        },
    },
    Mutant {
        name: "rows stand in an object, under their numbers",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            charges(mini, |reply| {
                let rows = reply.body["data"].as_array().cloned().unwrap_or_default();
                let named = rows.into_iter().enumerate().map(|(at, row)| (at.to_string(), row));
                reply.body["data"] = Value::Object(named.collect());
            });
        },
    },
    Mutant {
        name: "an empty list is null",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if crate::empty(reply) {
                    reply.body["data"] = Value::Null;
                }
            });
        },
    },
    Mutant {
        name: "an empty list has links in an array",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if crate::empty(reply) {
                    reply.body["links"] = json!([]);
                }
            });
        },
    },
];

fn charges(mini: &mut Mini, change: fn(&mut Reply)) {
    mini.warp(move |asked, reply| {
        if reply.status == 200 && asked.path == "/v1/charges" {
            change(reply);
        }
    });
}

fn leave_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, it| !it.is_null());
            members.values_mut().for_each(leave_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        _ => {}
    }
}
