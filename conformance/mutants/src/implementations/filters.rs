//! Faults in filters and in the isolation of modes and accounts.

use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::json;

use super::is_filter;
use crate::fake::EditableResponse;
use crate::isolation::is_foreign_event;
use crate::mutant::{Mutant, charge_list_fault, is_empty_list, request_fault, response_fault, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Filters.
    server_fault("invoices are filtered by the status of their charges", &["filters.total"], |server| {
        for book in [&mut server.live, &mut server.test] {
            for invoice in &mut book.invoices {
                if invoice["status"] == "paid" {
                    invoice["status"] = json!("settled");
                }
            }
        }
        // Only paid invoices have a charge, and its status is `paid`.
        server.rewrite_requests(|request| {
            let status = request.query.get_mut("status").filter(|_| request.path == "/v1/invoices");
            if let Some(status) = status {
                *status = if *status == "paid" { "settled".into() } else { "none".into() };
            }
        });
    })
    .may_fail(&["filters.status", "filters.total", "lists.complete"]),
    server_fault("two filters are combined with OR", &["filters.combined"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite_responses(move |request, response| {
            let filters: Vec<_> = request
                .query
                .iter()
                .filter(|(name, _)| is_filter(name))
                .map(|(name, _)| name.clone())
                .collect();
            if filters.len() < 2 || response.status != 200 {
                return;
            }
            let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
            let mode = request.mode.expect("the key is valid");
            let mut matching = Vec::new();
            for name in &filters {
                let mut with_one_filter = request.clone();
                with_one_filter.query.retain(|key, _| key == name);
                with_one_filter.query.insert("per_page".into(), "100".into());
                let page = book.respond(&with_one_filter, mode, "");
                matching.extend(page.body["data"].as_array().cloned().unwrap_or_default());
            }
            book.events.retain(|event| matching.contains(event));
            book.charges.retain(|charge| matching.contains(charge));
            let mut unfiltered = request.clone();
            unfiltered.query.retain(|name, _| !is_filter(name));
            let links = response.body["links"].take();
            *response = book.respond(&unfiltered, mode, "");
            response.body["links"] = links;
        });
    })
    .may_fail(&["paging.ends", "paging.links_lead"]),
    server_fault("the charge filter searches only the newest ten events", &["filters.total"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite_responses(move |request, response| {
            if request.query.contains_key("charge") && response.status == 200 {
                let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
                book.events.truncate(10);
                let links = response.body["links"].take();
                *response = book.respond(request, request.mode.expect("the key is valid"), "");
                response.body["links"] = links;
            }
        });
    })
    .may_fail(&["filters.charge", "filters.combined", "paging.links_lead"]),
    charge_list_fault(
        "canceled charges are not found by their status",
        &["filters.total"],
        |request, response| {
            if request.query.get("status").is_some_and(|value| value == "canceled") {
                response.body["data"] = json!([]);
                response.body["meta"]["total"] = json!(0);
            }
        },
    )
    .may_fail(&["filters.combined", "filters.status"]),
    request_fault("an unknown status of invoices is ignored", &["filters.status"], |request| {
        let is_known = |value: &String| matches!(value.as_str(), "open" | "paid" | "void");
        if request.path == "/v1/invoices" && !request.query.get("status").is_some_and(is_known) {
            request.query.remove("status");
        }
    }),
    request_fault("an unknown charge is ignored as a filter", &["filters.charge"], |request| {
        // The formats of `Book::new_charge` and of the webhook sender.
        let is_known =
            |code: &String| code.len() == 11 && code.contains("abcdef") || code.starts_with("hook");
        if !request.query.get("charge").is_some_and(is_known) {
            request.query.remove("charge");
        }
    })
    .may_fail(&["isolation.filter_charge"]),
    request_fault("an unknown invoice is ignored as a filter", &["filters.invoice"], |request| {
        let is_known = |value: &String| value.contains("mnopqr");
        if !request.query.get("invoice").is_some_and(is_known) {
            request.query.remove("invoice");
        }
    })
    .may_fail(&["isolation.filter_invoice"]),
    request_fault("an unknown payment link is ignored as a filter", &["filters.payment_link"], |request| {
        let is_known = |value: &String| value.contains("ghijkl");
        if !request.query.get("payment_link").is_some_and(is_known) {
            request.query.remove("payment_link");
        }
    })
    .may_fail(&["isolation.filter_payment_link"]),
    // Isolation.
    response_fault(
        "HEAD of an event of the other mode gets 200",
        &["isolation.not_found"],
        404,
        |_, response| response.status = 200,
    )
    .for_requests(|request| request.method == "HEAD" && is_foreign_event(request))
    .may_fail(&["answers.head"]),
    server_fault(
        "the charge filter finds events of another account",
        &["isolation.second_account"],
        |server| {
            let other_account = server.other_account.clone();
            server.rewrite_responses(move |request, response| {
                if request.query.contains_key("charge") && response.status == 200 && is_empty_list(response) {
                    *response = other_account.respond(request, Mode::Test, "");
                }
            });
        },
    ),
    server_fault("an invoice of another account is listed", &["isolation.second_account"], |server| {
        let invoice = server.other_account.invoices[0].clone();
        server.test.invoices.insert(1, invoice);
    })
    .may_fail(&["lists.complete", "events.recorded", "paging.newest_first_others"]),
    server_fault("single events are cached by their path", &["isolation.not_found"], |server| {
        let mut cache: BTreeMap<String, EditableResponse> = BTreeMap::new();
        server.rewrite_responses(move |request, response| {
            if request.is_event() && request.method == "GET" {
                if response.status == 200 {
                    cache.insert(request.path.clone(), response.clone());
                } else if let Some(cached) = cache.get(&request.path) {
                    *response = cached.clone();
                }
            }
        });
    })
    .may_fail(&[
        "auth.other_prefix",
        "answers.head",
        "auth.appended",
        "auth.every_path",
        "auth.other_scheme",
        "auth.revoked_key",
        "isolation.delivered",
        "limits.every_path",
    ]),
    server_fault(
        "the last page of charges ends with a charge of the other mode",
        &["isolation.lists"],
        |server| {
            let books = [server.live.clone(), server.test.clone()];
            for (mode, other_index) in [(Mode::Live, 1), (Mode::Test, 0)] {
                let charge = books[other_index].charges.last().expect("the book has a charge").clone();
                let book = if mode == Mode::Live { &mut server.live } else { &mut server.test };
                book.charges.push(charge);
            }
        },
    )
    .may_fail(&[
        "events.recorded",
        "filters.payment_link",
        "isolation.filter_payment_link",
        "lists.complete",
        "paging.joined",
    ]),
    server_fault(
        "two filters together return events of the other mode",
        &["isolation.filter_charge"],
        |server| {
            let other_books = [server.test.clone(), server.live.clone()];
            server.rewrite_responses(move |request, response| {
                let has_both = request.query.contains_key("charge") && request.query.contains_key("type");
                if has_both && response.status == 200 && is_empty_list(response) {
                    let links = response.body["links"].take();
                    let other_book = &other_books[usize::from(request.mode == Some(Mode::Test))];
                    *response = other_book.respond(request, Mode::Live, "");
                    response.body["links"] = links;
                }
            });
        },
    )
    .may_fail(&["isolation.lists", "filters.combined"]),
];
