//! Faults that only a second key, combined filters or requests for single objects reveal.

use conformance::Mode;
use serde_json::json;

use crate::fake::{self, EditableResponse, Request};
use crate::isolation;
use crate::mutant::{Mutant, is_empty_list, list_fault, request_fault, response_fault, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    server_fault("all keys of an account and mode share a limit", &["limits.second_key"], |server| {
        server.counted_identity = |request| format!("{:?}", request.mode)
    }),
    list_fault(
        "the second key gets lists without the newest record",
        &["auth.same_lists"],
        |request, response| {
            if has_second_key(request) && !is_empty_list(response) {
                response.body["data"].as_array_mut().expect("`data` is an array").remove(0);
            }
        },
    ),
    list_fault(
        "a key lists only the charges that were created with it",
        &["auth.same_lists"],
        |request, response| {
            if has_second_key(request) && request.path == "/v1/charges" {
                response.body["data"] = json!([]);
            }
        },
    ),
    response_fault(
        "a single event is found by the first key only",
        &["auth.same_lists"],
        200,
        |_, response| {
            *response = EditableResponse::json(404, json!({ "message": "Not Found" }));
        },
    )
    .for_requests(|request| has_second_key(request) && request.is_event()),
    request_fault("of two filters only the first is applied", &["filters.combined"], |request| {
        if request.query.contains_key("type") {
            request.query.remove("charge");
            request.query.remove("invoice");
        }
    }),
    list_fault(
        "the total of two filters counts the first only",
        &["filters.combined"],
        |request, response| {
            if request.query.contains_key("type") && request.query.contains_key("charge") {
                // In test mode, each of the 8 charges has one `charge.created`.
                response.body["meta"]["total"] = json!(8);
            }
        },
    ),
    request_fault("three filters together are ignored", &["filters.combined"], |request| {
        if ["type", "charge", "invoice"].iter().all(|name| request.query.contains_key(*name)) {
            request.query.retain(|name, _| name == "per_page");
        }
    })
    .may_fail(&["paging.links_keep_filters"]),
    list_fault(
        "the total of charges ignores the status",
        &["filters.total", "filters.combined"],
        |request, response| {
            if request.path == "/v1/charges" && request.query.contains_key("status") {
                // The number of charges in live mode; test mode has 8.
                response.body["meta"]["total"] = json!(9);
            }
        },
    )
    .may_fail(&["filters.status"]),
    response_fault(
        "a charge or invoice of the other mode gets 403",
        &["isolation.objects"],
        404,
        |_, response| response.status = 403,
    )
    .for_requests(is_foreign_object),
    response_fault(
        "the 404 of a charge or invoice of the other mode has a hint",
        &["isolation.objects"],
        404,
        |_, response| response.body["hint"] = json!("other mode"),
    )
    .for_requests(is_foreign_object),
    list_fault("links omit the charge filter", &["paging.links_keep_filters"], |_, response| {
        crate::links::drop_link_parameter(response, "charge")
    })
    .may_fail(&["filters.total"]),
    list_fault(
        "links of a list filtered by payment link omit per_page",
        &["paging.links_keep_size"],
        |request, response| {
            if request.query.contains_key("payment_link") {
                crate::links::drop_link_parameter(response, "per_page");
            }
        },
    ),
    server_fault(
        "events of one type are served to keys of the other mode",
        &["isolation.not_found"],
        |server| {
            let leaked_ids = [&server.live, &server.test].map(|book| {
                let leaked = book.events.iter().filter(|event| event["type"] == "invoice.sent");
                leaked
                    .map(|event| event["id"].as_str().expect("the id is a string").to_owned())
                    .collect::<Vec<_>>()
            });
            server.rewrite_responses(move |request, response| {
                let id = request.path.rsplit('/').next().unwrap_or_default();
                let is_leaked = leaked_ids.iter().flatten().any(|leaked| leaked == id);
                if response.status == 404 && isolation::is_foreign_event(request) && is_leaked {
                    *response = EditableResponse::json(200, json!({ "data": { "id": id } }));
                }
            });
        },
    ),
];

/// Returns `true` for a request for a charge or an invoice of the other mode, by the format of its code.
fn is_foreign_object(request: &Request) -> bool {
    let foreign_prefixes = if request.mode == Some(Mode::Live) {
        ["ch2abcdef", "in2mnopqr"]
    } else {
        ["ch1abcdef", "in1mnopqr"]
    };
    let code = request.path.rsplit('/').next().unwrap_or_default();
    foreign_prefixes.iter().any(|prefix| code.starts_with(prefix))
}

fn has_second_key(request: &Request) -> bool {
    request.authorization.as_deref() == Some(&format!("Bearer {}", fake::SECOND_KEY))
}
