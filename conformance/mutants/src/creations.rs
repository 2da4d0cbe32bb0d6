//! Faults in lists that occur only after a record was created during the check.

use std::collections::BTreeMap;

use serde_json::json;

use crate::fake::{FakeServer, Request};
use crate::mutant::{Mutant, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    server_fault("a new record shifts later pages", &["paging.stable_literal"], |server| {
        server.test.choices.has_stable_pages = false
    }),
    server_fault("page 2 after a creation starts one record late", &["paging.stable"], |server| {
        shift_after_creation(server, |request| request.number("page") == Some(2))
    }),
    server_fault("page 3 after a creation starts one record late", &["paging.stable"], |server| {
        shift_after_creation(server, |request| request.number("page") == Some(3))
    }),
    server_fault("new records shift page 2 of a filtered list", &["paging.stable_literal"], |server| {
        // Two charges are created, so the records of page 1 move to page 2.
        serve_filtered_after_creation(server, 0)
    }),
    server_fault(
        "page 2 of a filtered list after a creation starts one record late",
        &["paging.stable"],
        |server| serve_filtered_after_creation(server, 3),
    ),
    server_fault("a new event is listed after an older one", &["paging.stable"], |server| {
        let mut has_created = false;
        server.rewrite_responses(move |request, response| {
            has_created |= request.method == "POST";
            if has_created && request.path == "/v1/events" && request.number("per_page") == Some(100) {
                let rows = response.body["data"].as_array_mut().expect("`data` is an array");
                // Four events are new, two per created charge; the fourth is swapped with the first old one.
                rows.swap(3, 4);
            }
        });
    }),
    server_fault("a list is cached forever by its URL and key", &["paging.stable"], |server| {
        let mut cache = BTreeMap::new();
        server.rewrite_responses(move |request, response| {
            if response.status == 200 && request.is_list() {
                let key = (request.authorization.clone(), request.path.clone(), request.query.clone());
                response.body = cache.entry(key).or_insert_with(|| response.body.clone()).clone();
            }
        });
    })
    .may_fail(&["paging.stable_literal"]),
];

/// After the creation of a charge, serves matching pages of events from the events of test mode before it, one record
/// late.
fn shift_after_creation(server: &mut FakeServer, matches: fn(&Request) -> bool) {
    let events = server.test.events.clone();
    let mut has_created = false;
    server.rewrite_responses(move |request, response| {
        has_created |= request.method == "POST";
        if has_created && request.path == "/v1/events" && matches(request) {
            let size = request.number("per_page").expect("the suite sets per_page") as usize;
            let start = size * (request.number("page").expect("only numbered pages match") as usize - 1) + 1;
            response.body["data"] = json!(events[start..start + size]);
        }
    });
}

/// After the creation of a charge, serves page 2 of the created charges from the events of test mode before it, from this
/// position on.
fn serve_filtered_after_creation(server: &mut FakeServer, start: usize) {
    const FILTER: &str = "charge.created";
    let matching = server.test.events.iter().filter(|event| event["type"] == FILTER);
    let events: Vec<_> = matching.cloned().collect();
    let mut has_created = false;
    server.rewrite_responses(move |request, response| {
        has_created |= request.method == "POST";
        let is_filtered = request.query.get("type").is_some_and(|value| value == FILTER);
        if has_created && is_filtered && request.number("page") == Some(2) {
            let size = request.number("per_page").expect("the suite sets per_page") as usize;
            response.body["data"] = json!(events[start..start + size]);
        }
    });
}
