//! Lies that show only while something is created.

use serde_json::json;

use crate::Mutant;
use crate::mini::{Asked, Mini};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a new record shifts the pages",
        breaks: &["paging.stable_literal"],
        may: &[],
        spoil: |mini| mini.test.manners.steady = false,
    },
    Mutant {
        name: "the page after something new begins one record late",
        breaks: &["paging.stable"],
        may: &[],
        spoil: |mini| after_creation(mini, |asked| asked.number("page") == Some(2)),
    },
    Mutant {
        name: "the third page loses a record once something is new",
        breaks: &["paging.stable"],
        may: &[],
        spoil: |mini| after_creation(mini, |asked| asked.number("page") == Some(3)),
    },
    Mutant {
        name: "a new record stands second",
        breaks: &["paging.stable"],
        may: &[],
        spoil: |mini| {
            let mut created = false;
            mini.warp(move |asked, reply| {
                created |= asked.method == "POST";
                if created && asked.path == "/v1/events" && asked.number("per_page") == Some(100) {
                    let rows = reply.body["data"].as_array_mut().expect("rows");
                    // Four events are new, two for each charge.
                    rows.swap(3, 4);
                }
            });
        },
    },
];

/// Once something was created, a page that fits leaves its first record out and takes the next one in.
fn after_creation(mini: &mut Mini, fits: fn(&Asked) -> bool) {
    let events = mini.test.events.clone();
    let mut since = false;
    mini.warp(move |asked, reply| {
        since |= asked.method == "POST";
        if since && asked.path == "/v1/events" && fits(asked) {
            let size = asked.number("per_page").expect("a size") as usize;
            let from = size * (asked.number("page").expect("a page") as usize - 1) + 1;
            reply.body["data"] = json!(events[from..from + size]);
        }
    });
}
