//! Faults in pages: their rows, and their numbers and links.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::book::Book;
use crate::fake::{FakeServer, Reply, Request};
use crate::mutant::{Mutant, list, reply, requests, rewrite, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("half of all requests for lists are answered 502", &["lists.served"], |server| {
        let mut count = 0;
        server.rewrite(move |request, reply| {
            count += u32::from(request.is_list());
            if request.is_list() && count.is_multiple_of(2) {
                *reply = Reply::json(502, json!({ "message": "Bad gateway." }));
            }
        });
    }),
    reply("the list of invoices is answered 404", &["lists.served"], 200, |_, reply| {
        *reply = Reply::json(404, json!({ "message": "Not found." }));
    })
    .for_requests(|request| request.path == "/v1/invoices"),
    reply("a list is a bare array", &["paging.envelope"], 200, |_, reply| {
        reply.body = reply.body["data"].clone()
    })
    .for_requests(|request| request.path == "/v1/charges"),
    reply("a list has no links", &["paging.envelope"], 200, |_, reply| {
        reply.body.as_object_mut().expect("an object").remove("links");
    })
    .for_requests(|request| request.path == "/v1/charges"),
    reply("numbers are texts", &["paging.meta"], 200, |_, reply| {
        reply.body["meta"]["total"] = json!(reply.body["meta"]["total"].to_string());
    })
    .for_requests(|request| request.path == "/v1/charges"),
    requests("a page has 20 records by default", &["paging.default_size"], |request| {
        if request.is_list() && !request.query.contains_key("per_page") {
            request.query.insert("per_page".into(), "20".into());
        }
    }),
    requests("per_page is ignored", &["paging.per_page"], |request| drop(request.query.remove("per_page")))
        .may_fail(&["filters.total", "events.both_paid"]),
    rule("per_page has no upper bound", &["paging.per_page"], |server| {
        server.test = Book::with_many_records(2);
        server.test.choices.unbounded = true;
    }),
    requests("per_page ends at 50", &["paging.per_page"], |request| {
        if request.number("per_page").is_some_and(|size| (51..=100).contains(&size)) {
            request.query.insert("per_page".into(), "50".into());
        }
    }),
    // A linked page has only its own number, so prev and length are inconsistent too.
    list(
        "pages count from 0 in meta",
        &["paging.current_page", "paging.ends", "paging.length", "paging.links_lead"],
        |_, reply| {
            let page = reply.body["meta"]["current_page"].as_u64().expect("a number");
            reply.body["meta"]["current_page"] = json!(page - 1);
        },
    ),
    list("a page is one record short", &["paging.length", "paging.joined"], |request, reply| {
        if request.number("page") == Some(1) {
            reply.body["data"].as_array_mut().expect("`data` is an array").pop();
        }
    }),
    list("last_page is one too many when it divides evenly", &["paging.last_page"], |_, reply| {
        let number = |name: &str| reply.body["meta"][name].as_u64().expect("a number");
        let wrong = number("total") / number("per_page") + 1;
        reply.body["meta"]["last_page"] = json!(wrong);
    })
    .may_fail(&["filters.total"]),
    list("last_page is rounded down", &["paging.last_page"], |_, reply| {
        let number = |name: &str| reply.body["meta"][name].as_u64().expect("a number");
        let wrong = number("total") / number("per_page");
        reply.body["meta"]["last_page"] = json!(wrong);
    }),
    rule("the second page begins one record late", &["paging.joined"], |server| shift_page(server, 2, 1))
        .may_fail(&["filters.charge", "filters.status", "filters.total", "paging.length"]),
    rule("the second page repeats the end of the first", &["paging.joined"], |server| {
        shift_page(server, 2, -1)
    })
    .may_fail(&["filters.charge", "filters.status", "filters.total", "paging.links_lead"]),
    rule("the oldest records come first", &["paging.newest_first", "paging.newest_first_others"], |server| {
        for book in [&mut server.live, &mut server.test] {
            for list in [&mut book.charges, &mut book.invoices, &mut book.events] {
                list.reverse();
            }
        }
    }),
    rule("two events are swapped", &["paging.newest_first"], |server| server.test.events.swap(3, 4)),
    rule("pages count from 0", &["paging.current_page", "paging.joined"], |server| {
        // The links still count from 1.
        server.rewrite_requests(|request| {
            if let Some(page) = request.number("page") {
                request.query.insert("page".into(), (page + 1).to_string());
            }
        });
        rewrite(server, 200, Request::is_list, |_, reply| {
            let page = reply.body["meta"]["current_page"].as_u64().expect("a number");
            reply.body["meta"]["current_page"] = json!(page - 1);
        });
    })
    .may_fail(&["filters.total", "paging.ends", "paging.length", "paging.links_lead"]),
    requests("page is ignored", &["paging.current_page", "paging.joined", "paging.links_lead"], |request| {
        drop(request.query.remove("page"))
    })
    .may_fail(&["filters.total"]),
    rule("page is ignored, but returned in meta", &["paging.joined", "paging.length"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            let (Some(_), Some(size)) = (request.number("page"), request.number("per_page")) else { return };
            if reply.status != 200 || !request.is_list() || request.query.len() != 2 {
                return;
            }
            let rows = unfiltered_rows(&books, request).iter().take(size as usize).cloned().collect();
            reply.body["data"] = Value::Array(rows);
        });
    })
    .may_fail(&["paging.links_lead"]),
    list("current_page is a string", &["paging.meta"], |_, reply| {
        reply.body["meta"]["current_page"] = json!(reply.body["meta"]["current_page"].to_string());
    }),
    list("meta.per_page is a string", &["paging.meta"], |request, reply| {
        if let Some(size) = request.query.get("per_page") {
            reply.body["meta"]["per_page"] = json!(size);
        }
    }),
    list("meta has no last_page", &["paging.meta"], |_, reply| {
        drop(reply.body["meta"].as_object_mut().expect("`meta` is an object").remove("last_page"))
    }),
    list("meta has names in camel case", &["paging.meta"], |_, reply| {
        let meta = &reply.body["meta"];
        reply.body["meta"] = json!({
            "currentPage": meta["current_page"],
            "lastPage": meta["last_page"],
            "perPage": meta["per_page"],
            "total": meta["total"],
        });
    }),
    list("a page has at most 20 records, but meta has a higher per_page", &["paging.length"], |_, reply| {
        reply.body["data"].as_array_mut().expect("`data` is an array").truncate(20)
    })
    .may_fail(&["filters.total", "paging.joined", "events.both_paid"]),
    rule("from the fourth page on, a record is skipped", &["paging.joined"], |server| {
        for page in 4..=60 {
            shift_page(server, page, -1);
        }
    })
    .may_fail(&["paging.length", "paging.links_lead"]),
    list("the last page is empty", &["paging.length"], |_, reply| {
        let meta = &reply.body["meta"];
        if meta["current_page"] == meta["last_page"] && meta["last_page"] != 1 {
            reply.body["data"] = json!([]);
        }
    })
    .may_fail(&["filters.total", "paging.links_lead", "paging.joined"]),
    rule("the last page is filled up from the one before", &["paging.length"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            if reply.status != 200 || !request.is_list() || !request.query.contains_key("page") {
                return;
            }
            let meta = &reply.body["meta"];
            let size = meta["per_page"].as_u64().expect("a number") as usize;
            let all = unfiltered_rows(&books, request);
            if meta["current_page"] == meta["last_page"] && all.len() > size {
                reply.body["data"] = json!(all[all.len() - size..]);
            }
        });
    })
    .may_fail(&[
        "filters.charge",
        "filters.status",
        "filters.total",
        "filters.type",
        "paging.joined",
        "paging.links_lead",
        "paging.links_keep_filters",
    ]),
    list("total is the number of rows on the page", &["paging.length"], |_, reply| {
        reply.body["meta"]["total"] = json!(reply.body["data"].as_array().expect("`data` is an array").len());
    })
    .may_fail(&["paging.last_page", "paging.ends", "filters.total", "paging.links_lead"]),
    rule("total counts both modes", &["paging.length"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            if reply.status == 200 && request.is_list() {
                let other = &books[usize::from(request.mode == Some(Mode::Live))];
                let more = other.respond(request, Mode::Test, "").body["meta"]["total"].as_u64();
                let total = reply.body["meta"]["total"].as_u64().expect("a number");
                reply.body["meta"]["total"] = json!(total + more.expect("a number"));
            }
        });
    })
    .may_fail(&[
        "paging.last_page",
        "paging.ends",
        "filters.total",
        "paging.links_lead",
        "isolation.filter_charge",
        "isolation.filter_invoice",
        "isolation.filter_payment_link",
    ]),
    rule("events of the same second come in any order", &["paging.joined"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.events.iter_mut().for_each(|event| event["created_at"] = json!("2025-12-01T10:00:00Z"));
        }
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite(move |request, reply| {
            let (Some(page), Some(size)) = (request.number("page"), request.number("per_page")) else {
                return;
            };
            if reply.status == 200 && request.path == "/v1/events" && page > 0 {
                // The query plan of a database depends on the page size.
                let mut all = unfiltered_rows(&books, request).clone();
                all.rotate_left(size as usize % 5 + 1);
                let rows = all.into_iter().skip(((page - 1) * size) as usize).take(size as usize).collect();
                reply.body["data"] = Value::Array(rows);
            }
        });
    })
    .may_fail(&[
        "filters.charge",
        "filters.invoice",
        "filters.total",
        "filters.type",
        "paging.links_lead",
        "paging.links_keep_filters",
        "paging.length",
    ]),
    rule("every charge is listed twice", &["paging.joined"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.charges = book.charges.iter().flat_map(|charge| [charge.clone(), charge.clone()]).collect();
        }
    })
    .may_fail(&["filters.total"]),
    rule("events are ordered by random ids", &["paging.newest_first"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let len = book.events.len();
            book.events = (0..len).map(|at| book.events[at * 11 % len].clone()).collect();
        }
    }),
    rule("the oldest invoices come first", &["paging.newest_first_others"], |server| {
        server.live.invoices.reverse();
        server.test.invoices.reverse();
    }),
    list(
        "long pages are in a different order than short pages",
        &["paging.newest_first", "paging.joined"],
        |request, reply| {
            if request.path == "/v1/events" && request.number("per_page").is_some_and(|size| size < 25) {
                reply.body["data"].as_array_mut().expect("`data` is an array").reverse();
            }
        },
    )
    .may_fail(&["paging.links_lead", "filters.total"]),
    reply("a second page of invoices is answered 500", &["lists.served"], 200, |_, reply| {
        *reply = Reply::json(500, json!({ "message": "Server Error" }))
    })
    .for_requests(|request| request.path == "/v1/invoices"),
];

/// Returns the rows of the unfiltered list.
fn unfiltered_rows<'a>(books: &'a [Book; 2], request: &Request) -> &'a Vec<Value> {
    let book = &books[usize::from(request.mode == Some(Mode::Test))];
    match request.path.as_str() {
        "/v1/charges" => &book.charges,
        "/v1/invoices" => &book.invoices,
        _ => &book.events,
    }
}

/// Shifts a page by a number of records.
fn shift_page(server: &mut FakeServer, page: u64, by: i64) {
    let books = [server.live.clone(), server.test.clone()];
    server.rewrite(move |request, reply| {
        if reply.status != 200 || !request.is_list() || request.number("page") != Some(page) {
            return;
        }
        let book = &books[usize::from(request.mode == Some(Mode::Test))];
        let all = match request.path.as_str() {
            "/v1/charges" => &book.charges,
            "/v1/events" if !request.query.contains_key("type") => &book.events,
            _ => return,
        };
        let size = request.number("per_page").unwrap_or(25);
        let from = (page - 1) * size;
        let from = from.checked_add_signed(by).expect("a position in the list") as usize;
        let len = reply.body["data"].as_array().expect("`data` is an array").len();
        let rows: Vec<_> = all.iter().skip(from).take(len).cloned().collect();
        reply.body["data"] = json!(rows);
    });
}
