//! Faults in pages: in their rows, and in `meta`.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::book::Book;
use crate::fake::{EditableResponse, FakeServer, Request};
use crate::mutant::{Mutant, list_fault, request_fault, response_fault, rewrite_matching, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    server_fault("half of all requests for lists get 502", &["lists.served"], |server| {
        let mut count = 0;
        server.rewrite_responses(move |request, response| {
            count += u32::from(request.is_list());
            if request.is_list() && count.is_multiple_of(2) {
                *response = EditableResponse::json(502, json!({ "message": "Bad gateway." }));
            }
        });
    }),
    response_fault("the list of invoices gets 404", &["lists.served"], 200, |_, response| {
        *response = EditableResponse::json(404, json!({ "message": "Not found." }));
    })
    .for_requests(|request| request.path == "/v1/invoices")
    .may_fail(&["auth.same_lists"]),
    response_fault("a list is a bare array", &["paging.envelope"], 200, |_, response| {
        response.body = response.body["data"].clone()
    })
    .for_requests(|request| request.path == "/v1/charges"),
    response_fault("a list has no links", &["paging.envelope"], 200, |_, response| {
        response.body.as_object_mut().expect("an object").remove("links");
    })
    .for_requests(|request| request.path == "/v1/charges"),
    response_fault("the total is a string", &["paging.meta"], 200, |_, response| {
        response.body["meta"]["total"] = json!(response.body["meta"]["total"].to_string());
    })
    .for_requests(|request| request.path == "/v1/charges"),
    request_fault("a page has 20 records by default", &["paging.default_size"], |request| {
        if request.is_list() && !request.query.contains_key("per_page") {
            request.query.insert("per_page".into(), "20".into());
        }
    }),
    request_fault("per_page is ignored", &["paging.per_page"], |request| {
        drop(request.query.remove("per_page"))
    })
    .may_fail(&["filters.total", "events.both_paid"]),
    server_fault("per_page has no upper bound", &["paging.per_page"], |server| {
        server.test = Book::with_many_records(2);
        server.test.choices.allows_any_page_size = true;
    }),
    request_fault("per_page is at most 50", &["paging.per_page"], |request| {
        if request.number("per_page").is_some_and(|size| (51..=100).contains(&size)) {
            request.query.insert("per_page".into(), "50".into());
        }
    }),
    // On a linked page, meta is the only source of the page number, so prev and the length are inconsistent too.
    list_fault(
        "pages count from 0 in meta",
        &["paging.current_page", "paging.ends", "paging.length", "paging.links_lead"],
        |_, response| {
            let page = response.body["meta"]["current_page"].as_u64().expect("the value is a number");
            response.body["meta"]["current_page"] = json!(page - 1);
        },
    ),
    list_fault(
        "the first page is one record short",
        &["paging.length", "paging.joined"],
        |request, response| {
            if request.number("page") == Some(1) {
                response.body["data"].as_array_mut().expect("`data` is an array").pop();
            }
        },
    ),
    list_fault("last_page is one too high if the last page is full", &["paging.last_page"], |_, response| {
        let number = |name: &str| response.body["meta"][name].as_u64().expect("the value is a number");
        let wrong = number("total") / number("per_page") + 1;
        response.body["meta"]["last_page"] = json!(wrong);
    })
    .may_fail(&["filters.total"]),
    list_fault("last_page is rounded down", &["paging.last_page"], |_, response| {
        let number = |name: &str| response.body["meta"][name].as_u64().expect("the value is a number");
        let wrong = number("total") / number("per_page");
        response.body["meta"]["last_page"] = json!(wrong);
    })
    .may_fail(&["filters.combined", "filters.total"]),
    server_fault("the second page begins one record late", &["paging.joined"], |server| {
        shift_page(server, 2, 1)
    })
    .may_fail(&["filters.charge", "filters.status", "filters.total", "paging.length"]),
    server_fault("the second page repeats the end of the first", &["paging.joined"], |server| {
        shift_page(server, 2, -1)
    })
    .may_fail(&["filters.charge", "filters.status", "filters.total", "paging.links_lead"]),
    server_fault(
        "the oldest records come first",
        &["paging.newest_first", "paging.newest_first_others"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                for list in [&mut book.charges, &mut book.invoices, &mut book.events] {
                    list.reverse();
                }
            }
        },
    ),
    server_fault("two events are swapped", &["paging.newest_first"], |server| server.test.events.swap(3, 4)),
    server_fault("pages count from 0", &["paging.current_page", "paging.joined"], |server| {
        // The links still count from 1.
        server.rewrite_requests(|request| {
            if let Some(page) = request.number("page") {
                request.query.insert("page".into(), (page + 1).to_string());
            }
        });
        rewrite_matching(server, 200, Request::is_list, |_, response| {
            let page = response.body["meta"]["current_page"].as_u64().expect("the value is a number");
            response.body["meta"]["current_page"] = json!(page - 1);
        });
    })
    .may_fail(&["filters.total", "paging.ends", "paging.length", "paging.links_lead"]),
    request_fault(
        "page is ignored",
        &["paging.current_page", "paging.joined", "paging.links_lead"],
        |request| drop(request.query.remove("page")),
    )
    .may_fail(&["filters.total"]),
    server_fault(
        "page is ignored in the rows, but not in meta",
        &["paging.joined", "paging.length"],
        |server| {
            let books = [server.live.clone(), server.test.clone()];
            server.rewrite_responses(move |request, response| {
                let (Some(_), Some(size)) = (request.number("page"), request.number("per_page")) else {
                    return;
                };
                if response.status != 200 || !request.is_list() || request.query.len() != 2 {
                    return;
                }
                let rows = unfiltered_rows(&books, request).iter().take(size as usize).cloned().collect();
                response.body["data"] = Value::Array(rows);
            });
        },
    )
    .may_fail(&["paging.links_lead"]),
    list_fault("current_page is a string", &["paging.meta"], |_, response| {
        response.body["meta"]["current_page"] = json!(response.body["meta"]["current_page"].to_string());
    }),
    list_fault("meta.per_page is a string", &["paging.meta"], |request, response| {
        if let Some(size) = request.query.get("per_page") {
            response.body["meta"]["per_page"] = json!(size);
        }
    }),
    list_fault("meta has no last_page", &["paging.meta"], |_, response| {
        drop(response.body["meta"].as_object_mut().expect("`meta` is an object").remove("last_page"))
    }),
    list_fault("meta has names in camel case", &["paging.meta"], |_, response| {
        let meta = &response.body["meta"];
        response.body["meta"] = json!({
            "currentPage": meta["current_page"],
            "lastPage": meta["last_page"],
            "perPage": meta["per_page"],
            "total": meta["total"],
        });
    }),
    list_fault(
        "a page has at most 20 records, but meta has a higher per_page",
        &["paging.length"],
        |_, response| response.body["data"].as_array_mut().expect("`data` is an array").truncate(20),
    )
    .may_fail(&["filters.total", "paging.joined", "events.both_paid"]),
    server_fault(
        "the fourth page repeats a record and shifts the later pages",
        &["paging.joined"],
        |server| {
            for page in 4..=60 {
                shift_page(server, page, -1);
            }
        },
    )
    .may_fail(&["paging.length", "paging.links_lead"]),
    list_fault("the last page is empty", &["paging.length"], |_, response| {
        let meta = &response.body["meta"];
        if meta["current_page"] == meta["last_page"] && meta["last_page"] != 1 {
            response.body["data"] = json!([]);
        }
    })
    .may_fail(&["filters.total", "paging.links_lead", "paging.joined"]),
    server_fault("the last page is filled with records of the previous one", &["paging.length"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite_responses(move |request, response| {
            if response.status != 200 || !request.is_list() || !request.query.contains_key("page") {
                return;
            }
            let meta = &response.body["meta"];
            let size = meta["per_page"].as_u64().expect("the value is a number") as usize;
            let all = unfiltered_rows(&books, request);
            if meta["current_page"] == meta["last_page"] && all.len() > size {
                response.body["data"] = json!(all[all.len() - size..]);
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
    list_fault("total is the number of rows on the page", &["paging.length"], |_, response| {
        response.body["meta"]["total"] =
            json!(response.body["data"].as_array().expect("`data` is an array").len());
    })
    .may_fail(&["paging.last_page", "paging.ends", "filters.total", "paging.links_lead"]),
    server_fault("total counts both modes", &["paging.length"], |server| {
        let books = [server.live.clone(), server.test.clone()];
        server.rewrite_responses(move |request, response| {
            if response.status == 200 && request.is_list() {
                let other = &books[usize::from(request.mode == Some(Mode::Live))];
                let other_total = other.respond(request, Mode::Test, "").body["meta"]["total"].as_u64();
                let total = response.body["meta"]["total"].as_u64().expect("the value is a number");
                response.body["meta"]["total"] = json!(total + other_total.expect("the value is a number"));
            }
        });
    })
    .may_fail(&[
        "filters.combined",
        "paging.last_page",
        "paging.ends",
        "filters.total",
        "paging.links_lead",
        "isolation.filter_charge",
        "isolation.filter_invoice",
        "isolation.filter_payment_link",
    ]),
    server_fault(
        "events of the same second are in an order that depends on the page size",
        &["paging.joined"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                book.events.iter_mut().for_each(|event| event["created_at"] = json!("2025-12-01T10:00:00Z"));
            }
            let books = [server.live.clone(), server.test.clone()];
            server.rewrite_responses(move |request, response| {
                let (Some(page), Some(size)) = (request.number("page"), request.number("per_page")) else {
                    return;
                };
                if response.status == 200 && request.path == "/v1/events" && page > 0 {
                    // The query plan of a database depends on the page size.
                    let mut all = unfiltered_rows(&books, request).clone();
                    all.rotate_left(size as usize % 5 + 1);
                    let rows =
                        all.into_iter().skip(((page - 1) * size) as usize).take(size as usize).collect();
                    response.body["data"] = Value::Array(rows);
                }
            });
        },
    )
    .may_fail(&[
        "filters.charge",
        "filters.invoice",
        "filters.total",
        "filters.type",
        "paging.newest_first",
        "paging.links_lead",
        "paging.links_keep_filters",
        "paging.length",
    ]),
    server_fault("every charge is listed twice", &["paging.joined"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.charges = book.charges.iter().flat_map(|charge| [charge.clone(), charge.clone()]).collect();
        }
    })
    .may_fail(&["filters.total"]),
    server_fault("events are ordered by random ids", &["paging.newest_first"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let len = book.events.len();
            // A permutation, because neither length is a multiple of 11.
            book.events = (0..len).map(|i| book.events[i * 11 % len].clone()).collect();
        }
    }),
    server_fault("the oldest invoices come first", &["paging.newest_first_others"], |server| {
        server.live.invoices.reverse();
        server.test.invoices.reverse();
    }),
    list_fault(
        "pages of less than 25 events are in a different order",
        &["paging.newest_first", "paging.joined"],
        |request, response| {
            if request.path == "/v1/events" && request.number("per_page").is_some_and(|size| size < 25) {
                response.body["data"].as_array_mut().expect("`data` is an array").reverse();
            }
        },
    )
    .may_fail(&["paging.links_lead", "filters.total"]),
    response_fault("the list of invoices gets 500", &["lists.served"], 200, |_, response| {
        *response = EditableResponse::json(500, json!({ "message": "Server Error" }))
    })
    .for_requests(|request| request.path == "/v1/invoices"),
];

/// Returns all records of the list that is requested, in the mode of the key.
fn unfiltered_rows<'a>(books: &'a [Book; 2], request: &Request) -> &'a Vec<Value> {
    let book = &books[usize::from(request.mode == Some(Mode::Test))];
    match request.path.as_str() {
        "/v1/charges" => &book.charges,
        "/v1/invoices" => &book.invoices,
        _ => &book.events,
    }
}

/// Shifts the page with this number by `offset` records, in the list of charges and in that of events, unless it is
/// filtered by type.
fn shift_page(server: &mut FakeServer, page: u64, offset: i64) {
    let books = [server.live.clone(), server.test.clone()];
    server.rewrite_responses(move |request, response| {
        if response.status != 200 || !request.is_list() || request.number("page") != Some(page) {
            return;
        }
        let book = &books[usize::from(request.mode == Some(Mode::Test))];
        let all = match request.path.as_str() {
            "/v1/charges" => &book.charges,
            "/v1/events" if !request.query.contains_key("type") => &book.events,
            _ => return,
        };
        let size = request.number("per_page").unwrap_or(25);
        let start = (page - 1) * size;
        let start = start.checked_add_signed(offset).expect("the index is not negative") as usize;
        let len = response.body["data"].as_array().expect("`data` is an array").len();
        let rows: Vec<_> = all.iter().skip(start).take(len).cloned().collect();
        response.body["data"] = json!(rows);
    });
}
