//! Faults in lists that occur only after a record was created during the check.

use std::collections::BTreeMap;

use serde_json::json;

use crate::fake::{FakeServer, Request};
use crate::mutant::{Mutant, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("a new record shifts later pages", &["paging.stable_literal"], |server| {
        server.test.choices.steady = false
    }),
    rule("page 2 after a creation starts one record late", &["paging.stable"], |server| {
        shift_after_creation(server, |request| request.number("page") == Some(2))
    }),
    rule("page 3 after a creation misses a record", &["paging.stable"], |server| {
        shift_after_creation(server, |request| request.number("page") == Some(3))
    }),
    rule("a new record is listed second", &["paging.stable"], |server| {
        let mut has_created = false;
        server.rewrite(move |request, response| {
            has_created |= request.method == "POST";
            if has_created && request.path == "/v1/events" && request.number("per_page") == Some(100) {
                let rows = response.body["data"].as_array_mut().expect("`data` is an array");
                // There are four new events, two per charge.
                rows.swap(3, 4);
            }
        });
    }),
    rule("a list is cached forever by its URL", &["paging.stable"], |server| {
        let mut cache = BTreeMap::new();
        server.rewrite(move |request, response| {
            if response.status == 200 && request.is_list() {
                let key = (request.authorization.clone(), request.path.clone(), request.query.clone());
                response.body = cache.entry(key).or_insert_with(|| response.body.clone()).clone();
            }
        });
    })
    .may_fail(&["paging.stable_literal"]),
];

/// Shifts matching pages of the test mode's events by one record after a charge was created.
fn shift_after_creation(server: &mut FakeServer, matches: fn(&Request) -> bool) {
    let events = server.test.events.clone();
    let mut has_created = false;
    server.rewrite(move |request, response| {
        has_created |= request.method == "POST";
        if has_created && request.path == "/v1/events" && matches(request) {
            let size = request.number("per_page").expect("the suite sets per_page") as usize;
            let start = size * (request.number("page").expect("only numbered pages match") as usize - 1) + 1;
            response.body["data"] = json!(events[start..start + size]);
        }
    });
}
