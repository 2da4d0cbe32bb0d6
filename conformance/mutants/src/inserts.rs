//! Faults that occur only while records are created.

use std::collections::BTreeMap;

use serde_json::json;

use crate::fake::{FakeServer, Request};
use crate::mutant::{Mutant, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("a new record shifts later pages", &["paging.stable_literal"], |server| {
        server.test.choices.steady = false
    }),
    rule("page 2 after a creation begins one record late", &["paging.stable"], |server| {
        shift_after_creation(server, |request| request.number("page") == Some(2))
    }),
    rule("page 3 after a creation misses a record", &["paging.stable"], |server| {
        shift_after_creation(server, |request| request.number("page") == Some(3))
    }),
    rule("a new record is listed second", &["paging.stable"], |server| {
        let mut created = false;
        server.rewrite(move |request, reply| {
            created |= request.method == "POST";
            if created && request.path == "/v1/events" && request.number("per_page") == Some(100) {
                let rows = reply.body["data"].as_array_mut().expect("`data` is an array");
                // There are four new events, two per charge.
                rows.swap(3, 4);
            }
        });
    }),
    rule("a list is cached forever by its URL", &["paging.stable"], |server| {
        let mut cache = BTreeMap::new();
        server.rewrite(move |request, reply| {
            if reply.status == 200 && request.is_list() {
                let key = (request.authorization.clone(), request.path.clone(), request.query.clone());
                reply.body = cache.entry(key).or_insert_with(|| reply.body.clone()).clone();
            }
        });
    })
    .may_fail(&["paging.stable_literal"]),
];

/// Shifts matching pages by one record after a creation.
fn shift_after_creation(server: &mut FakeServer, fits: fn(&Request) -> bool) {
    let events = server.test.events.clone();
    let mut since = false;
    server.rewrite(move |request, reply| {
        since |= request.method == "POST";
        if since && request.path == "/v1/events" && fits(request) {
            let size = request.number("per_page").expect("a size") as usize;
            let from = size * (request.number("page").expect("a page") as usize - 1) + 1;
            reply.body["data"] = json!(events[from..from + size]);
        }
    });
}
