//! Lies about pages and their links.

use conformance::Mode;
use serde_json::{Value, json};

use crate::mini::{Mini, Reply};
use crate::{Mutant, lists, warp};

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "there are no invoices to list",
        breaks: &["lists.served"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/invoices",
                |_, reply| {
                    *reply = Reply::json(404, json!({ "message": "Not found." }));
                },
            );
        },
    },
    Mutant {
        name: "a list is a bare array",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/charges",
                |_, reply| reply.body = reply.body["data"].clone(),
            );
        },
    },
    Mutant {
        name: "a list has no links",
        breaks: &["paging.envelope"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/charges",
                |_, reply| {
                    reply.body.as_object_mut().expect("an object").remove("links");
                },
            );
        },
    },
    Mutant {
        name: "numbers are texts",
        breaks: &["paging.meta"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/charges",
                |_, reply| {
                    reply.body["meta"]["total"] = json!(reply.body["meta"]["total"].to_string());
                },
            );
        },
    },
    Mutant {
        name: "a page has 20 records by default",
        breaks: &["paging.default_size"],
        may: &[],
        spoil: |mini| {
            mini.warp_request(|asked| {
                if asked.is_list() && !asked.query.contains_key("per_page") {
                    asked.query.insert("per_page".into(), "20".into());
                }
            });
        },
    },
    Mutant {
        name: "per_page is ignored",
        breaks: &["paging.per_page"],
        may: &[],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("per_page"))),
    },
    Mutant {
        name: "per_page ends at 50",
        breaks: &["paging.per_page"],
        may: &[],
        spoil: |mini| {
            mini.warp_request(|asked| {
                if asked.number("per_page").is_some_and(|size| (51..=100).contains(&size)) {
                    asked.query.insert("per_page".into(), "50".into());
                }
            });
        },
    },
    Mutant {
        name: "pages count from 0 in meta",
        // Behind a link only the page itself says which it is, and then prev and length do not fit.
        breaks: &["paging.current_page", "paging.ends", "paging.length", "paging.links_lead"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let page = reply.body["meta"]["current_page"].as_u64().expect("a number");
                reply.body["meta"]["current_page"] = json!(page - 1);
            });
        },
    },
    Mutant {
        name: "a page is one record short",
        breaks: &["paging.length", "paging.joined"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.number("page") == Some(1) {
                    reply.body["data"].as_array_mut().expect("rows").pop();
                }
            });
        },
    },
    Mutant {
        name: "last_page is one too many when it divides evenly",
        breaks: &["paging.last_page"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let number = |name: &str| reply.body["meta"][name].as_u64().expect("a number");
                let wrong = number("total") / number("per_page") + 1;
                reply.body["meta"]["last_page"] = json!(wrong);
            });
        },
    },
    Mutant {
        name: "last_page is rounded down",
        breaks: &["paging.last_page"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let number = |name: &str| reply.body["meta"][name].as_u64().expect("a number");
                let wrong = number("total") / number("per_page");
                reply.body["meta"]["last_page"] = json!(wrong);
            });
        },
    },
    Mutant {
        name: "the second page begins one record late",
        breaks: &["paging.joined"],
        may: &[],
        spoil: |mini| shift_page(mini, 2, 1),
    },
    Mutant {
        name: "the second page repeats the end of the first",
        breaks: &["paging.joined"],
        may: &[],
        spoil: |mini| shift_page(mini, 2, -1),
    },
    Mutant {
        name: "the oldest come first",
        breaks: &["paging.newest_first", "paging.newest_first_others"],
        may: &[],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                for list in [&mut book.charges, &mut book.invoices, &mut book.events] {
                    list.reverse();
                }
            }
        },
    },
    Mutant {
        name: "two events have changed places",
        breaks: &["paging.newest_first"],
        may: &[],
        spoil: |mini| mini.test.events.swap(3, 4),
    },
    Mutant {
        name: "a link is missing",
        breaks: &["paging.links"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| drop(reply.body["links"].as_object_mut().expect("links").remove("first")));
        },
    },
    Mutant {
        name: "prev is not null on the first page",
        breaks: &["paging.ends"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if reply.body["links"]["prev"].is_null() {
                    reply.body["links"]["prev"] = reply.body["links"]["first"].clone();
                }
            });
        },
    },
    Mutant {
        name: "next is never null",
        breaks: &["paging.ends"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                if reply.body["links"]["next"].is_null() {
                    reply.body["links"]["next"] = reply.body["links"]["last"].clone();
                }
            });
        },
    },
    Mutant {
        name: "next is always null",
        breaks: &["paging.ends"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| reply.body["links"]["next"] = Value::Null),
    },
    Mutant {
        name: "next leads to the same page",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if let Some(next) = reply.body["links"]["next"].as_str() {
                    let page = asked.number("page").unwrap_or(1);
                    let wrong = next.replace(&format!("&page={}", page + 1), &format!("&page={page}"));
                    reply.body["links"]["next"] = json!(wrong);
                }
            });
        },
    },
    Mutant {
        name: "last leads to the first page",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| reply.body["links"]["last"] = reply.body["links"]["first"].clone())
        },
    },
    Mutant {
        name: "links lead to another path",
        breaks: &["paging.links_lead"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| reply.body["links"]["last"] = json!("/dashboard")),
    },
    Mutant {
        name: "links forget per_page",
        breaks: &["paging.links_keep_size"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| forget(reply, "per_page")),
    },
    Mutant {
        name: "links forget the filter",
        breaks: &["paging.links_keep_filters"],
        may: &[],
        spoil: |mini| lists(mini, |_, reply| forget(reply, "type")),
    },
    Mutant {
        name: "links lead to another host",
        breaks: &["paging.links_origin"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                let first = reply.body["links"]["first"].as_str().expect("a link");
                let query = first.split_once('?').expect("a query").1;
                reply.body["links"]["first"] =
                    json!(format!("http://internal.example:8080{}?{query}", asked.path));
            });
        },
    },
];

/// Takes a parameter out of every link.
fn forget(reply: &mut Reply, name: &str) {
    for rel in ["first", "last", "prev", "next"] {
        let Some(link) = reply.body["links"][rel].as_str() else { continue };
        let (path, query) = link.split_once('?').expect("a link has a query");
        let kept: Vec<_> = query.split('&').filter(|pair| !pair.starts_with(&format!("{name}="))).collect();
        reply.body["links"][rel] = json!(format!("{path}?{}", kept.join("&")));
    }
}

/// Serves a page from rows that begin some records later or earlier than they should.
fn shift_page(mini: &mut Mini, page: u64, by: i64) {
    let books = [mini.live.clone(), mini.test.clone()];
    mini.warp(move |asked, reply| {
        if reply.status != 200 || !asked.is_list() || asked.number("page") != Some(page) {
            return;
        }
        let book = &books[usize::from(asked.mode == Some(Mode::Test))];
        let all = match asked.path.as_str() {
            "/v1/charges" => &book.charges,
            "/v1/events" if !asked.query.contains_key("type") => &book.events,
            _ => return,
        };
        let size = asked.number("per_page").expect("a size");
        let from = (page - 1) * size;
        let from = from.checked_add_signed(by).expect("a place in the list") as usize;
        let len = reply.body["data"].as_array().expect("rows").len();
        let rows: Vec<_> = all.iter().skip(from).take(len).cloned().collect();
        reply.body["data"] = json!(rows);
    });
}
