//! Lies about pages: what they hold and what they say of themselves.

use conformance::Mode;
use serde_json::{Value, json};

use crate::mini::book::Book;
use crate::mini::{Asked, Mini, Reply};
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
        name: "pages count from 0",
        breaks: &["paging.current_page", "paging.joined"],
        may: &["paging.ends", "paging.length", "paging.links_lead"],
        spoil: |mini| {
            // The links go on counting from 1, as the one who wrote them did.
            mini.warp_request(|asked| {
                if let Some(page) = asked.number("page") {
                    asked.query.insert("page".into(), (page + 1).to_string());
                }
            });
            lists(mini, |_, reply| {
                let page = reply.body["meta"]["current_page"].as_u64().expect("a number");
                reply.body["meta"]["current_page"] = json!(page - 1);
            });
        },
    },
    Mutant {
        name: "page is ignored",
        breaks: &["paging.current_page", "paging.joined", "paging.links_lead"],
        may: &[],
        spoil: |mini| mini.warp_request(|asked| drop(asked.query.remove("page"))),
    },
    Mutant {
        name: "page is ignored, but told back",
        breaks: &["paging.joined", "paging.length"],
        may: &["paging.links_lead"],
        spoil: |mini| {
            let books = [mini.live.clone(), mini.test.clone()];
            mini.warp(move |asked, reply| {
                let (Some(_), Some(size)) = (asked.number("page"), asked.number("per_page")) else { return };
                if reply.status != 200 || !asked.is_list() || asked.query.len() != 2 {
                    return;
                }
                let rows = all(&books, asked).iter().take(size as usize).cloned().collect();
                reply.body["data"] = Value::Array(rows);
            });
        },
    },
    Mutant {
        name: "current_page is a text",
        breaks: &["paging.meta"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                reply.body["meta"]["current_page"] = json!(reply.body["meta"]["current_page"].to_string());
            });
        },
    },
    Mutant {
        name: "per_page comes back as it was sent, a text",
        breaks: &["paging.meta"],
        may: &[],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if let Some(size) = asked.query.get("per_page") {
                    reply.body["meta"]["per_page"] = json!(size);
                }
            });
        },
    },
    Mutant {
        name: "meta has no last_page",
        breaks: &["paging.meta"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                drop(reply.body["meta"].as_object_mut().expect("meta").remove("last_page"))
            });
        },
    },
    Mutant {
        name: "meta speaks in camel case",
        breaks: &["paging.meta"],
        may: &[],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let meta = &reply.body["meta"];
                reply.body["meta"] = json!({
                    "currentPage": meta["current_page"],
                    "lastPage": meta["last_page"],
                    "perPage": meta["per_page"],
                    "total": meta["total"],
                });
            });
        },
    },
    Mutant {
        name: "a page holds 20 records at most, whatever meta says",
        breaks: &["paging.length"],
        may: &["filters.total", "paging.joined"],
        spoil: |mini| {
            lists(mini, |_, reply| reply.body["data"].as_array_mut().expect("rows").truncate(20));
        },
    },
    Mutant {
        name: "from the fourth page on, a record is skipped",
        breaks: &["paging.joined"],
        may: &["paging.length", "paging.links_lead"],
        spoil: |mini| {
            for page in 4..=60 {
                shift_page(mini, page, -1);
            }
        },
    },
    Mutant {
        name: "the last page is empty",
        breaks: &["paging.length"],
        may: &["paging.links_lead", "paging.joined"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                let meta = &reply.body["meta"];
                if meta["current_page"] == meta["last_page"] && meta["last_page"] != 1 {
                    reply.body["data"] = json!([]);
                }
            });
        },
    },
    Mutant {
        name: "the last page is filled up from the one before",
        breaks: &["paging.length"],
        may: &["paging.joined", "paging.links_lead", "paging.links_keep_filters"],
        spoil: |mini| {
            let books = [mini.live.clone(), mini.test.clone()];
            mini.warp(move |asked, reply| {
                if reply.status != 200 || !asked.is_list() || !asked.query.contains_key("page") {
                    return;
                }
                let meta = &reply.body["meta"];
                let size = meta["per_page"].as_u64().expect("a number") as usize;
                let all = all(&books, asked);
                if meta["current_page"] == meta["last_page"] && all.len() > size {
                    reply.body["data"] = json!(all[all.len() - size..]);
                }
            });
        },
    },
    Mutant {
        name: "total is the number of rows on the page",
        breaks: &["paging.length"],
        may: &["paging.last_page", "paging.ends", "filters.total", "paging.links_lead"],
        spoil: |mini| {
            lists(mini, |_, reply| {
                reply.body["meta"]["total"] = json!(reply.body["data"].as_array().expect("rows").len());
            });
        },
    },
    Mutant {
        name: "total counts both modes",
        breaks: &["paging.length"],
        may: &[
            "paging.last_page",
            "paging.ends",
            "filters.total",
            "paging.links_lead",
            "isolation.filter_charge",
            "isolation.filter_invoice",
            "isolation.filter_payment_link",
        ],
        spoil: |mini| {
            let books = [mini.live.clone(), mini.test.clone()];
            mini.warp(move |asked, reply| {
                if reply.status == 200 && asked.is_list() {
                    let other = &books[usize::from(asked.mode == Some(Mode::Live))];
                    let more = other.answer(asked, Mode::Test, "").body["meta"]["total"].as_u64();
                    let total = reply.body["meta"]["total"].as_u64().expect("a number");
                    reply.body["meta"]["total"] = json!(total + more.expect("a number"));
                }
            });
        },
    },
    Mutant {
        name: "events of the same second come in any order",
        breaks: &["paging.joined"],
        may: &["paging.links_lead", "paging.links_keep_filters"],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                book.events.iter_mut().for_each(|it| it["created_at"] = json!("2025-12-01T10:00:00Z"));
            }
            let books = [mini.live.clone(), mini.test.clone()];
            mini.warp(move |asked, reply| {
                let (Some(page), Some(size)) = (asked.number("page"), asked.number("per_page")) else {
                    return;
                };
                if reply.status == 200 && asked.path == "/v1/events" && page > 0 {
                    // The database's plan depends on how much it is asked for.
                    let mut all = all(&books, asked).clone();
                    all.rotate_left(size as usize % 5 + 1);
                    let rows =
                        all.into_iter().skip(((page - 1) * size) as usize).take(size as usize).collect();
                    reply.body["data"] = Value::Array(rows);
                }
            });
        },
    },
    Mutant {
        name: "a join shows every charge twice",
        breaks: &["paging.joined"],
        may: &["filters.total"],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                book.charges = book.charges.iter().flat_map(|it| [it.clone(), it.clone()]).collect();
            }
        },
    },
    Mutant {
        name: "events stand in the order of random ids",
        breaks: &["paging.newest_first"],
        may: &[],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                let len = book.events.len();
                book.events = (0..len).map(|at| book.events[at * 11 % len].clone()).collect();
            }
        },
    },
    Mutant {
        name: "the oldest invoices come first",
        breaks: &["paging.newest_first_others"],
        may: &[],
        spoil: |mini| {
            mini.live.invoices.reverse();
            mini.test.invoices.reverse();
        },
    },
    Mutant {
        name: "a long page is in another order than short ones",
        breaks: &["paging.newest_first", "paging.joined"],
        may: &["paging.links_lead"],
        spoil: |mini| {
            lists(mini, |asked, reply| {
                if asked.path == "/v1/events" && asked.number("per_page").is_some_and(|size| size < 25) {
                    reply.body["data"].as_array_mut().expect("rows").reverse();
                }
            });
        },
    },
    Mutant {
        name: "invoices cannot be paged, the server stumbles",
        breaks: &["lists.served"],
        may: &[],
        spoil: |mini| {
            warp(
                mini,
                200,
                |asked| asked.path == "/v1/invoices",
                |_, reply| *reply = Reply::json(500, json!({ "message": "Server Error" })),
            );
        },
    },
];

/// The rows that a list without filters would be cut from.
fn all<'a>(books: &'a [Book; 2], asked: &Asked) -> &'a Vec<Value> {
    let book = &books[usize::from(asked.mode == Some(Mode::Test))];
    match asked.path.as_str() {
        "/v1/charges" => &book.charges,
        "/v1/invoices" => &book.invoices,
        _ => &book.events,
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
