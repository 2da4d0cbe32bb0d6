//! Faults in filters and in the isolation of modes and accounts.

use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::json;

use super::is_filter;
use crate::fake::Reply;
use crate::isolation::is_foreign_event;
use crate::mutant::{Mutant, charges, is_empty_list, reply, requests, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Filters.
    rule("invoices are filtered by the status of their charges", &["filters.total"], |server| {
        for book in [&mut server.live, &mut server.test] {
            for invoice in &mut book.invoices {
                if invoice["status"] == "paid" {
                    invoice["status"] = json!("settled");
                }
            }
        }
        server.rewrite_requests(|request| {
            let status = request.query.get_mut("status").filter(|_| request.path == "/v1/invoices");
            if let Some(status) = status {
                *status = if *status == "paid" { "settled".into() } else { "none".into() };
            }
        });
    })
    .may_fail(&["filters.status", "filters.total", "lists.complete"]),
    rule("two filters are combined with OR", &["filters.combined"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            let filters: Vec<_> = request
                .query
                .iter()
                .filter(|(name, _)| is_filter(name))
                .map(|(name, _)| name.clone())
                .collect();
            if filters.len() < 2 || reply.status != 200 {
                return;
            }
            let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
            let mode = request.mode.expect("a key");
            let mut some = Vec::new();
            for name in &filters {
                let mut one = request.clone();
                one.query.retain(|key, _| key == name);
                one.query.insert("per_page".into(), "100".into());
                some.extend(
                    book.respond(&one, mode, "").body["data"].as_array().cloned().unwrap_or_default(),
                );
            }
            book.events.retain(|event| some.contains(event));
            book.charges.retain(|charge| some.contains(charge));
            let mut whole = request.clone();
            whole.query.retain(|name, _| !is_filter(name));
            let links = reply.body["links"].take();
            *reply = book.respond(&whole, mode, "");
            reply.body["links"] = links;
        });
    })
    .may_fail(&["paging.ends", "paging.links_lead"]),
    rule("the charge filter searches only the newest ten events", &["filters.total"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            if request.query.contains_key("charge") && reply.status == 200 {
                let mut book = books[usize::from(request.mode == Some(Mode::Test))].clone();
                book.events.truncate(10);
                let links = reply.body["links"].take();
                *reply = book.respond(request, request.mode.expect("a key"), "");
                reply.body["links"] = links;
            }
        });
    })
    .may_fail(&["filters.charge", "filters.combined", "paging.links_lead"]),
    charges("canceled charges are not found by their status", &["filters.total"], |request, reply| {
        if request.query.get("status").is_some_and(|value| value == "canceled") {
            reply.body["data"] = json!([]);
            reply.body["meta"]["total"] = json!(0);
        }
    })
    .may_fail(&["filters.combined", "filters.status"]),
    requests("an unknown status of invoices is ignored", &["filters.status"], |request| {
        let known = |text: &String| matches!(text.as_str(), "open" | "paid" | "void");
        if request.path == "/v1/invoices" && !request.query.get("status").is_some_and(known) {
            request.query.remove("status");
        }
    }),
    requests("an unknown charge is ignored as a filter", &["filters.charge"], |request| {
        let known = |code: &String| code.len() == 11 && code.contains("abcdef") || code.starts_with("hook");
        if !request.query.get("charge").is_some_and(known) {
            request.query.remove("charge");
        }
    })
    .may_fail(&["isolation.filter_charge"]),
    requests("an unknown invoice is ignored as a filter", &["filters.invoice"], |request| {
        let known = |text: &String| text.contains("mnopqr");
        if !request.query.get("invoice").is_some_and(known) {
            request.query.remove("invoice");
        }
    })
    .may_fail(&["isolation.filter_invoice"]),
    requests("an unknown payment link is ignored as a filter", &["filters.payment_link"], |request| {
        let known = |text: &String| text.contains("ghijkl");
        if !request.query.get("payment_link").is_some_and(known) {
            request.query.remove("payment_link");
        }
    })
    .may_fail(&["isolation.filter_payment_link"]),
    // Isolation.
    reply("HEAD of an event of the other mode is 200", &["isolation.not_found"], 404, |_, reply| {
        reply.status = 200
    })
    .for_requests(|request| request.method == "HEAD" && is_foreign_event(request))
    .may_fail(&["answers.head"]),
    rule("the charge filter finds events of another account", &["isolation.second_account"], |server| {
        let second = server.other_account.clone();
        server.rewrite(move |request, reply| {
            if request.query.contains_key("charge") && reply.status == 200 && is_empty_list(reply) {
                *reply = second.respond(request, Mode::Test, "");
            }
        });
    }),
    rule("an invoice of another account is listed", &["isolation.second_account"], |server| {
        let invoice = server.other_account.invoices[0].clone();
        server.test.invoices.insert(1, invoice);
    })
    .may_fail(&["lists.complete", "events.recorded", "paging.newest_first_others"]),
    rule("single events are cached by their address", &["isolation.not_found"], |server| {
        let mut cache: BTreeMap<String, Reply> = BTreeMap::new();
        server.rewrite(move |request, reply| {
            if request.is_event() && request.method == "GET" {
                if reply.status == 200 {
                    cache.insert(request.path.clone(), reply.clone());
                } else if let Some(kept) = cache.get(&request.path) {
                    *reply = kept.clone();
                }
            }
        });
    })
    .may_fail(&[
        "answers.head",
        "auth.appended",
        "auth.every_path",
        "auth.other_scheme",
        "auth.revoked_key",
        "isolation.delivered",
        "limits.every_path",
    ]),
    rule("the last page of charges ends with one of the other mode", &["isolation.lists"], |server| {
        for (own, other) in [(Mode::Live, 1), (Mode::Test, 0)] {
            let books = [server.live.clone(), server.test.clone()];
            let charge = books[other].charges.last().expect("a charge").clone();
            let book = if own == Mode::Live { &mut server.live } else { &mut server.test };
            book.charges.push(charge);
        }
    })
    .may_fail(&[
        "events.recorded",
        "filters.payment_link",
        "isolation.filter_payment_link",
        "lists.complete",
        "paging.joined",
    ]),
    rule("two filters together return events of the other mode", &["isolation.filter_charge"], |server| {
        let books = [server.test.clone(), server.live.clone()];
        server.rewrite(move |request, reply| {
            let both = request.query.contains_key("charge") && request.query.contains_key("type");
            if both && reply.status == 200 && is_empty_list(reply) {
                let links = reply.body["links"].take();
                *reply =
                    books[usize::from(request.mode == Some(Mode::Test))].respond(request, Mode::Live, "");
                reply.body["links"] = links;
            }
        });
    })
    .may_fail(&["isolation.lists", "filters.combined"]),
];
