//! Faults that only a second key, combined filters or one event type reveal.

use conformance::Mode;
use serde_json::json;

use crate::fake::{self, Reply, Request};
use crate::isolation;
use crate::mutant::{Mutant, is_empty_list, list, reply, requests, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("the limit belongs to the account and its mode", &["limits.second_key"], |server| {
        server.counted_identity = |request| format!("{:?}", request.mode)
    }),
    list("the second key sees a list without its newest event", &["auth.same_lists"], |request, reply| {
        if has_second_key(request) && !is_empty_list(reply) {
            reply.body["data"].as_array_mut().expect("`data` is an array").remove(0);
        }
    }),
    list("a key lists the charges that were created with it", &["auth.same_lists"], |request, reply| {
        if has_second_key(request) && request.path == "/v1/charges" {
            reply.body["data"] = json!([]);
        }
    }),
    reply("a single event is found by the first key only", &["auth.same_lists"], 200, |_, reply| {
        *reply = Reply::json(404, json!({ "message": "Not Found" }));
    })
    .for_requests(|request| has_second_key(request) && request.is_event()),
    requests("of two filters only the first is applied", &["filters.combined"], |request| {
        if request.query.contains_key("type") {
            request.query.remove("charge");
            request.query.remove("invoice");
        }
    }),
    list("the total of two filters counts the first only", &["filters.combined"], |request, reply| {
        if request.query.contains_key("type") && request.query.contains_key("charge") {
            reply.body["meta"]["total"] = json!(8);
        }
    }),
    requests("three filters together are ignored", &["filters.combined"], |request| {
        if ["type", "charge", "invoice"].iter().all(|name| request.query.contains_key(*name)) {
            request.query.retain(|name, _| name == "per_page");
        }
    })
    .may_fail(&["paging.links_keep_filters"]),
    list(
        "the total of charges ignores the status",
        &["filters.total", "filters.combined"],
        |request, reply| {
            if request.path == "/v1/charges" && request.query.contains_key("status") {
                reply.body["meta"]["total"] = json!(9);
            }
        },
    )
    .may_fail(&["filters.status"]),
    reply("a charge of the other mode is answered 403", &["isolation.objects"], 404, |_, reply| {
        reply.status = 403
    })
    .for_requests(is_foreign_object),
    reply("the 404 of an invoice of the other mode has a hint", &["isolation.objects"], 404, |_, reply| {
        reply.body["hint"] = json!("other mode")
    })
    .for_requests(is_foreign_object),
    list("links omit the charge filter", &["paging.links_keep_filters"], |_, reply| {
        crate::links::drop_link_parameter(reply, "charge")
    }),
    list(
        "links of a list filtered by payment link omit per_page",
        &["paging.links_keep_size"],
        |request, reply| {
            if request.query.contains_key("payment_link") {
                crate::links::drop_link_parameter(reply, "per_page");
            }
        },
    ),
    rule("events of one type show in the other mode", &["isolation.not_found"], |server| {
        let kinds = [Mode::Live, Mode::Test].map(|mode| {
            let book = if mode == Mode::Live { &server.live } else { &server.test };
            let of_kind = book.events.iter().filter(|event| event["type"] == "invoice.sent");
            of_kind
                .map(|event| event["id"].as_str().expect("the id is a string").to_owned())
                .collect::<Vec<_>>()
        });
        server.rewrite(move |request, reply| {
            let id = request.path.rsplit('/').next().unwrap_or_default();
            let leaks = kinds.iter().flatten().any(|kind| kind == id);
            if reply.status == 404 && isolation::is_foreign_event(request) && leaks {
                *reply = Reply::json(200, json!({ "data": { "id": id } }));
            }
        });
    }),
];

/// Returns `true` for a request of a charge or an invoice of the other mode.
fn is_foreign_object(request: &Request) -> bool {
    let other = if request.mode == Some(Mode::Live) {
        ["ch2abcdef", "in2mnopqr"]
    } else {
        ["ch1abcdef", "in1mnopqr"]
    };
    let code = request.path.rsplit('/').next().unwrap_or_default();
    other.iter().any(|make| code.starts_with(make))
}

fn has_second_key(request: &Request) -> bool {
    request.authorization.as_deref() == Some(&format!("Bearer {}", fake::SECOND_KEY))
}
