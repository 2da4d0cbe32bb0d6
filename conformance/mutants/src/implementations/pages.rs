//! Faults in pages and their links.

use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::json;

use super::is_filter;
use crate::fake::{self, EditableResponse, FakeServer, Request};
use crate::mutant::{Mutant, list_fault, replace_links, request_fault, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Pages.
    request_fault("the default size is 15 from the second page on", &["paging.default_size"], |request| {
        if request.number("page").is_some_and(|page| page > 1) {
            request.query.entry("per_page".into()).or_insert("15".into());
        }
    })
    .may_fail(&["paging.joined", "paging.length", "paging.links_keep_size"]),
    request_fault("a page has 20 invoices by default", &["paging.default_size"], |request| {
        if request.path == "/v1/invoices" {
            request.query.entry("per_page".into()).or_insert("20".into());
        }
    })
    .may_fail(&["paging.links_keep_size"]),
    request_fault("a page has at most 50 events", &["paging.per_page"], |request| {
        if request.path == "/v1/events" && request.number("per_page").is_some_and(|size| size > 50) {
            request.query.insert("per_page".into(), "50".into());
        }
    }),
    list_fault("a size of 100 is refused", &["lists.served"], |request, response| {
        if request.number("per_page") == Some(100) {
            *response = EditableResponse::json(422, json!({ "message": "per_page must be less than 100." }));
        }
    })
    .may_fail(LIST_STATEMENTS),
    list_fault("a size of 1 is refused", &["lists.served"], |request, response| {
        if request.number("per_page") == Some(1) {
            *response = EditableResponse::json(422, json!({ "message": "per_page must be at least 2." }));
        }
    })
    .may_fail(&["lists.served", "isolation.second_account"]),
    list_fault("meta.per_page is always 25", &["paging.per_page"], |_, response| {
        response.body["meta"]["per_page"] = json!(25)
    })
    .may_fail(&[
        "filters.total",
        "paging.ends",
        "paging.last_page",
        "paging.length",
        "paging.links_keep_size",
        "paging.links_lead",
    ]),
    list_fault("meta.current_page is always 1", &["paging.current_page"], |_, response| {
        response.body["meta"]["current_page"] = json!(1)
    })
    .may_fail(&["paging.ends", "paging.length", "paging.links_lead", "filters.total"]),
    list_fault("next of a full last page is not null", &["paging.ends"], |_, response| {
        let number = |name: &str| response.body["meta"][name].as_u64().unwrap_or(1);
        let [page, last_page, size, total] = ["current_page", "last_page", "per_page", "total"].map(number);
        if page == last_page && total % size == 0 && total > 0 {
            let last = response.body["links"]["last"].as_str().expect("the link is a string");
            let next = last.replace(&format!("&page={last_page}"), &format!("&page={}", last_page + 1));
            response.body["links"]["next"] = json!(next);
        }
    })
    .may_fail(&["paging.links_lead"]),
    list_fault("last is computed with the default page size", &["paging.links_lead"], |_, response| {
        let total = response.body["meta"]["total"].as_u64().unwrap_or(1);
        let last_page = response.body["meta"]["last_page"].as_u64().unwrap_or(1);
        let last = response.body["links"]["last"].as_str().unwrap_or_default();
        let wrong = total.div_ceil(25).max(1);
        response.body["links"]["last"] =
            json!(last.replace(&format!("page={last_page}"), &format!("page={wrong}")));
    })
    .may_fail(&["paging.links_keep_size"]),
    list_fault("prev leads two pages back", &["paging.links_lead"], |request, response| {
        let page = request.number("page").unwrap_or(1);
        if page > 2 {
            let link = response.body["links"]["prev"].as_str().expect("the link is a string");
            let prev = link.replace(&format!("&page={}", page - 1), &format!("&page={}", page - 2));
            response.body["links"]["prev"] = json!(prev);
        }
    }),
    list_fault("first omits the filters", &["paging.links_keep_filters"], |request, response| {
        let filters = ["type", "charge", "invoice", "status", "payment_link"];
        if let Some(first) = response.body["links"]["first"].as_str()
            && filters.iter().any(|name| request.query.contains_key(*name))
        {
            let path = first.split('?').next().unwrap_or_default();
            let size = request.number("per_page").unwrap_or(25);
            response.body["links"]["first"] = json!(format!("{path}?per_page={size}&page=1"));
        }
    })
    .may_fail(&["filters.total"]),
    list_fault("the second page is in ascending order", &["paging.joined"], |request, response| {
        if request.number("page").is_some_and(|page| page > 1) {
            response.body["data"].as_array_mut().expect("`data` is an array").reverse();
        }
    })
    .may_fail(&["paging.newest_first", "paging.newest_first_others", "paging.stable", "filters.total"]),
    server_fault("totals are cached for a minute", &["paging.length"], |server| {
        let (clock, mut totals) = (server.clock.clone(), BTreeMap::new());
        server.rewrite_responses(move |request, response| {
            if request.is_list() && response.status == 200 {
                let mut key = request.clone();
                key.query.retain(|name, _| !matches!(name.as_str(), "page" | "per_page"));
                let now = clock.micros();
                let (stored_at, total) = totals
                    .entry((key.path, key.query, key.authorization))
                    .or_insert((now, response.body["meta"]["total"].clone()));
                if *stored_at + 60_000_000 < now {
                    (*stored_at, *total) = (now, response.body["meta"]["total"].clone());
                }
                response.body["meta"]["total"] = total.clone();
            }
        });
    })
    .may_fail(&["filters.total", "paging.last_page", "paging.length", "paging.stable"]),
    list_fault("totals are at most 20", &["paging.length"], |_, response| {
        let total = response.body["meta"]["total"].as_u64().unwrap_or(0).min(20);
        response.body["meta"]["total"] = json!(total);
    })
    .may_fail(&["paging.last_page", "filters.total", "paging.ends", "paging.links_lead"]),
    server_fault("paid charges are listed first", &["paging.newest_first_others"], |server| {
        for book in [&mut server.live, &mut server.test, &mut server.other_account] {
            book.charges.sort_by_key(|charge| charge["status"] != "paid");
        }
    })
    .may_fail(&["paging.stable", "paging.stable_literal", "lists.complete"]),
    server_fault("events are ordered by their number as a string", &["paging.newest_first"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let count = book.events.len();
            let mut numbered: Vec<_> = book.events.drain(..).enumerate().collect();
            numbered.sort_by_key(|(index, _)| std::cmp::Reverse((count - index).to_string()));
            book.events = numbered.into_iter().map(|(_, event)| event).collect();
        }
    })
    .may_fail(&["events.recorded", "paging.stable", "paging.stable_literal"]),
    list_fault(
        "links keep the first of two filters only",
        &["paging.links_keep_filters"],
        |request, response| {
            if request.query.contains_key("type") && request.query.contains_key("charge") {
                replace_links(response, |link| {
                    let (path, query) = link.split_once('?').unwrap_or((link, ""));
                    let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with("type=")).collect();
                    format!("{path}?{}", kept.join("&"))
                });
            }
        },
    ),
    list_fault("the total of invoices counts a deleted one", &["paging.length"], |request, response| {
        if request.path == "/v1/invoices" {
            let total = response.body["meta"]["total"].as_u64().unwrap_or(0) + 1;
            response.body["meta"]["total"] = json!(total);
        }
    })
    .may_fail(&[
        "filters.status",
        "filters.total",
        "isolation.filter_invoice",
        "paging.ends",
        "paging.last_page",
        "paging.links_lead",
    ]),
    server_fault("every second list comes from a stale replica", &["paging.stable"], |server| {
        serve_stale_lists(server, |request_number| request_number % 2 == 0)
    })
    .may_fail(&["paging.stable_literal"]),
    server_fault("lists come from a stale replica", &["paging.stable"], |server| {
        serve_stale_lists(server, |_| true)
    })
    .may_fail(&["paging.stable_literal"]),
    server_fault("a cache of lists ignores per_page", &["paging.per_page"], |server| {
        let mut cache = BTreeMap::new();
        server.rewrite_responses(move |request, response| {
            if request.is_list() && response.status == 200 {
                let mut query = request.query.clone();
                query.remove("per_page");
                let key = (request.path.clone(), query, request.authorization.clone());
                response.body = cache.entry(key).or_insert_with(|| response.body.clone()).clone();
            }
        });
    })
    .may_fail(&["auth.same_lists", "paging.default_size", "paging.links_keep_size"]),
    request_fault("per_page is ignored if there is a filter", &["paging.per_page"], |request| {
        if is_filtered(request) {
            request.query.remove("per_page");
        }
    })
    .may_fail(&["filters.total", "paging.links_keep_size", "filters.combined", "paging.length"]),
    request_fault("a filtered page has 10 records by default", &["paging.default_size"], |request| {
        if is_filtered(request) {
            request.query.entry("per_page".into()).or_insert("10".into());
        }
    })
    .may_fail(&["filters.total", "paging.links_keep_size"]),
    request_fault(
        "the second page of a filtered list is that of the whole list",
        &["filters.total"],
        |request| {
            if is_filtered(request) && request.number("page").is_some_and(|page| page > 1) {
                request.query.retain(|name, _| matches!(name.as_str(), "page" | "per_page"));
            }
        },
    )
    .may_fail(&[
        "filters.charge",
        "filters.invoice",
        "filters.status",
        "filters.payment_link",
        "filters.type",
        "filters.combined",
        "paging.links_lead",
        "paging.links_keep_filters",
    ]),
];

/// The statements about lists that may fail if long pages are missing or wrong.
const LIST_STATEMENTS: &[&str] = &[
    "auth.same_lists",
    "events.recorded",
    "filters.charge",
    "filters.combined",
    "filters.invoice",
    "filters.payment_link",
    "filters.status",
    "filters.total",
    "filters.type",
    "isolation.lists",
    "lists.complete",
    "lists.served",
    "paging.ends",
    "paging.joined",
    "paging.last_page",
    "paging.length",
    "paging.links_keep_size",
    "paging.links_lead",
    "paging.stable",
    "paging.stable_literal",
];

fn is_filtered(request: &Request) -> bool {
    request.query.keys().any(|name| is_filter(name))
}

/// Serves lists of test mode from a copy without new records, for the requests whose number `is_stale` accepts.
fn serve_stale_lists(server: &mut FakeServer, is_stale: fn(request_number: u64) -> bool) {
    let copy = server.test.clone();
    let mut requests = 0;
    server.rewrite_responses(move |request, response| {
        if request.is_list() && request.mode == Some(Mode::Test) && response.status == 200 {
            requests += 1;
            let is_other_account =
                request.authorization.as_deref() == Some(&format!("Bearer {}", fake::OTHER_KEY));
            if is_stale(requests) && !is_other_account {
                let links = response.body["links"].take();
                *response = copy.respond(request, Mode::Test, "");
                response.body["links"] = links;
            }
        }
    });
}
