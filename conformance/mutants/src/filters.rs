//! Faults in filters: their rows and totals.

use crate::fake::{LIVE_KEY, Reply, Request};
use conformance::Mode;
use serde_json::json;

use crate::mutant::{Mutant, charges, each_link, is_empty_list, list, remove, requests, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    requests("the type filter is ignored", &["filters.type", "filters.total"], |request| {
        drop(request.query.remove("type"))
    })
    .may_fail(&["filters.combined"]),
    requests("the filter for one type is ignored in live mode", &["filters.type"], |request| {
        if is_live(request) && request.query.get("type").is_some_and(|value| value == "invoice.sent") {
            request.query.remove("type");
        }
    })
    .may_fail(&["filters.total"]),
    requests("the filter for one status is ignored in live mode", &["filters.status"], |request| {
        if is_live(request) && request.query.get("status").is_some_and(|value| value == "paid") {
            request.query.remove("status");
        }
    })
    .may_fail(&["filters.total"]),
    requests("filter values are not percent-decoded", &["filters.combined"], |request| {
        let pairs = request.raw_query.split('&').filter_map(|pair| pair.split_once('='));
        request.query = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    }),
    requests("the charge filter is ignored", &["filters.charge", "filters.total"], |request| {
        drop(request.query.remove("charge"))
    })
    .may_fail(&["filters.combined"]),
    requests("the invoice filter returns nothing", &["filters.invoice", "filters.total"], |request| {
        request.query.entry("invoice".into()).and_modify(|value| value.push('x'));
    })
    .may_fail(&["filters.combined"]),
    list("total ignores the filter", &["filters.total"], |request, reply| {
        if request.query.contains_key("type") {
            reply.body["meta"]["total"] = json!(28);
        }
    })
    .may_fail(&["filters.combined", "filters.type"]),
    requests("the status filter is ignored", &["filters.status"], |request| {
        drop(request.query.remove("status"))
    })
    .may_fail(&["filters.total", "paging.links_keep_filters"]),
    list("an unknown type is answered 500", &["filters.type"], |request, reply| {
        let known = |kind: &String| kind.starts_with("charge.") || kind.starts_with("invoice.");
        if request.query.get("type").is_some_and(|kind| !known(kind)) {
            *reply = Reply::json(500, json!({ "message": "Server Error" }));
        }
    }),
    list("the payment link filter returns other links", &["filters.payment_link"], |request, reply| {
        if request.query.contains_key("payment_link") && !is_empty_list(reply) {
            reply.body["data"][0]["payment_link"] = json!("another");
        }
    })
    .may_fail(&["filters.combined"]),
    rule("the type filter compares the first word only", &["filters.type", "filters.total"], |server| {
        // The page consists of all types with the same first word.
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            let Some(kind) = request.query.get("type").filter(|_| reply.status == 200) else { return };
            let family = kind.split('.').next().expect("a first word").to_owned();
            let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
            book.events.retain(|event| event["type"].as_str().is_some_and(|text| text.starts_with(&family)));
            let mut request = request.clone();
            request.query.remove("type");
            let (mode, links) = (request.mode.expect("a key"), reply.body["links"].take());
            *reply = book.respond(&request, mode, "");
            reply.body["links"] = links;
        });
    })
    .may_fail(&["paging.ends", "paging.links_keep_filters", "paging.links_lead", "filters.combined"]),
    requests("the type filter returns nothing", &["filters.type", "filters.total"], |request| {
        request.query.entry("type".into()).and_modify(|value| *value = value.to_uppercase());
    })
    .may_fail(&["filters.combined"]),
    list("the charge filter finds one event of each charge", &["filters.total"], |request, reply| {
        if request.query.contains_key("charge") && !is_empty_list(reply) {
            reply.body["data"].as_array_mut().expect("`data` is an array").truncate(1);
            reply.body["meta"]["total"] = json!(1);
        }
    }),
    rule("the charge filter compares the start of codes", &["filters.charge", "filters.total"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            let Some(code) = request.query.get("charge").filter(|_| reply.status == 200) else { return };
            let alike = code[..code.len() - 1].to_owned();
            let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
            book.events.retain(|event| {
                event["charge"]["code"].as_str().is_some_and(|text| text.starts_with(&alike))
            });
            let mut request = request.clone();
            request.query.remove("charge");
            *reply = book.respond(&request, Mode::Test, "");
        });
    })
    .may_fail(&["filters.combined", "paging.links_keep_filters"]),
    requests("the invoice filter is ignored", &["filters.invoice", "filters.total"], |request| {
        drop(request.query.remove("invoice"))
    })
    .may_fail(&["filters.combined"]),
    list("total of a charge's events is that of all events", &["filters.total"], |request, reply| {
        if request.query.contains_key("charge") && !is_empty_list(reply) {
            reply.body["meta"]["total"] = json!(28);
        }
    })
    .may_fail(&["filters.combined"]),
    list("total of filtered charges is that of all charges", &["filters.total"], |request, reply| {
        if request.path == "/v1/charges" && request.query.contains_key("status") {
            reply.body["meta"]["total"] = json!(8);
        }
    })
    .may_fail(&["filters.combined", "filters.status"]),
    list("total ignores the payment link filter", &["filters.total"], |request, reply| {
        if request.query.contains_key("payment_link") && !is_empty_list(reply) {
            reply.body["meta"]["total"] = json!(8);
        }
    })
    .may_fail(&["filters.combined"]),
    rule("invoices ignore the status filter", &["filters.status"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.invoices[0]["status"] = json!("overdue");
        }
        server.rewrite_requests(|request| {
            if request.path == "/v1/invoices" {
                request.query.remove("status");
            }
        });
    })
    .may_fail(&["filters.total"]),
    requests("the payment link filter returns nothing", &["filters.payment_link"], |request| {
        request.query.entry("payment_link".into()).and_modify(|value| value.push('x'));
    })
    .may_fail(&["filters.combined", "filters.total"]),
    list("an unknown type returns everything", &["filters.type"], |request, reply| {
        let known = |kind: &String| kind.starts_with("charge.") || kind.starts_with("invoice.");
        if request.query.get("type").is_some_and(|kind| !known(kind)) {
            reply.body["data"] = json!([{ "id": "0190a5c4-7f3e-7ab1-8def-000000000001" }]);
        }
    }),
    rule("the status filter compares prefixes", &["filters.status"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.filter_matches = |name, shown, wanted| matches(name == "status", shown, wanted);
        }
    }),
    rule("the type filter compares prefixes", &["filters.type"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.filter_matches = |name, shown, wanted| matches(name == "type", shown, wanted);
        }
    }),
    list("an unknown status is ignored", &["filters.status"], |request, reply| {
        let known = |status: &String| ["paid", "canceled", "open", "void"].contains(&status.as_str());
        if request.query.get("status").is_some_and(|status| !known(status)) {
            reply.body["data"] = json!([{ "status": "paid" }]);
        }
    }),
    rule("page is ignored in filtered lists, links work", &["filters.total"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            let filters = ["type", "charge", "invoice", "status", "payment_link"];
            if reply.status != 200 || !filters.iter().any(|name| request.query.contains_key(*name)) {
                return;
            }
            each_link(reply, |link| format!("{link}&cursor=1"));
            if !request.query.contains_key("cursor") {
                let (mut first, mode) = (request.clone(), request.mode.expect("a key"));
                first.query.remove("page");
                reply.body["data"] =
                    books[usize::from(mode == Mode::Test)].respond(&first, mode, "").body["data"].take();
            }
        });
    }),
    charges("charges that are paid are not found by their status", &["filters.total"], |request, reply| {
        if request.query.get("status").is_some_and(|value| value == "paid") {
            reply.body["data"] = json!([]);
            reply.body["meta"]["total"] = json!(0);
        }
    })
    .may_fail(&["filters.status"]),
    list("the filter by one of the types loses a record", &["filters.total"], |request, reply| {
        if request.query.get("type").is_some_and(|value| value == "invoice.sent") {
            let rows = reply.body["data"].as_array_mut().expect("`data` is an array");
            reply.body["meta"]["total"] = json!(rows.pop().map_or(0, |_| rows.len()));
        }
    }),
    rule(
        "the payment link filter is ignored, and charges have no payment link",
        &["filters.payment_link"],
        |server| {
            server.request_rewrites.push(Box::new(|request| drop(request.query.remove("payment_link"))));
            server.rewrite(|request, reply| {
                if request.path == "/v1/charges" && reply.status == 200 {
                    let rows = reply.body["data"].as_array_mut();
                    rows.into_iter().flatten().for_each(|row| remove(row, "payment_link"));
                }
            });
        },
    )
    .may_fail(&["isolation.filter_payment_link", "filters.combined", "paging.links_keep_filters"]),
    requests("the payment link filter is ignored", &["filters.payment_link"], |request| {
        drop(request.query.remove("payment_link"))
    })
    .may_fail(&["isolation.filter_payment_link", "filters.combined"]),
];

/// Compares the beginning of a value, or the whole value.
fn matches(is_prefix: bool, shown: &str, wanted: &str) -> bool {
    if is_prefix { shown.starts_with(wanted) } else { shown == wanted }
}

/// Returns `true` for a request with the live key.
fn is_live(request: &Request) -> bool {
    request.authorization.as_deref().is_some_and(|authorization| authorization.ends_with(LIVE_KEY))
}
