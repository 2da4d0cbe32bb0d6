//! Faults in responses to requests for absent objects, and in the isolation of modes and accounts.

use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::json;

use crate::fake::book::{EVENT_ID_FACTOR, has_event_id_of_other_account};
use crate::fake::{EditableResponse, Request};
use crate::mutant::{Mutant, is_empty_list, response_fault, rewrite_matching, server_fault};
use crate::variants::{set_choices, use_named_links};

/// The ends of the codes of a charge, an invoice and a payment link of the default server; see `Book::new_charge` and
/// `Book::issue_invoice`.
const CHARGE_CODE_END: &str = "abcdef07";
const INVOICE_CODE_END: &str = "mnopqr03";
const PAYMENT_LINK_END: &str = "ghijkl01";

pub(crate) const MUTANTS: &[Mutant] = &[
    response_fault(
        "an unknown id gets 400",
        &["errors.not_found", "isolation.not_found", "isolation.objects"],
        404,
        |_, response| response.status = 400,
    ),
    response_fault("a 404 is an HTML page", &["errors.not_found_json"], 404, |_, response| {
        response.raw = Some("<h1>404</h1>".into())
    }),
    response_fault("an event of the other mode gets 403", &["isolation.not_found"], 404, |_, response| {
        response.status = 403
    })
    .for_requests(is_foreign_event),
    response_fault("an event of the other mode is served", &["isolation.not_found"], 404, |_, response| {
        *response = EditableResponse::json(200, json!({ "data": { "leak": true } }))
    })
    .for_requests(is_foreign_event),
    response_fault(
        "the 404 of the other mode has a different message",
        &["isolation.indistinguishable"],
        404,
        |_, response| response.body["message"] = json!("Wrong mode."),
    )
    .for_requests(is_foreign_event),
    response_fault(
        "the 404 of the other mode has an extra header",
        &["isolation.indistinguishable"],
        404,
        |_, response| response.set_header("x-mode", "other"),
    )
    .for_requests(is_foreign_event),
    response_fault(
        "the 404 of the other mode has different white space",
        &["isolation.indistinguishable"],
        404,
        |_, response| response.raw = Some("{ \"message\": \"Not found.\" }".into()),
    )
    .for_requests(is_foreign_event),
    server_fault("an invalid id gets 500", &["errors.not_found"], |server| {
        let is_invalid_id =
            |request: &Request| request.path.strip_prefix("/v1/events/").is_some_and(|id| id.len() != 36);
        rewrite_matching(server, 404, is_invalid_id, |_, response| response.status = 500);
    }),
    server_fault("a filter reveals a charge of the other mode", &["isolation.filter_charge"], |server| {
        set_choices(server, |choices| choices.unmatched_object_filter_404 = true);
        let codes = [&server.live, &server.test].map(|book| {
            let codes = book.charges.iter().filter_map(|charge| charge["code"].as_str());
            codes.map(str::to_owned).collect::<Vec<_>>()
        });
        server.rewrite_responses(move |request, response| {
            let code = request.query.get("charge").filter(|_| response.status == 404);
            if code.is_some_and(|code| codes.iter().flatten().any(|known| known == code)) {
                response.body["message"] = json!("This charge has another mode.");
            }
        });
    }),
    server_fault("an event of the other account is served", &["isolation.second_account"], |server| {
        rewrite_matching(server, 404, has_event_id_of_other_account, |_, response| {
            *response = EditableResponse::json(200, json!({ "data": {} }))
        });
    }),
    server_fault("a charge of the other account is served", &["isolation.second_account"], |server| {
        let other_account = server.other_account.clone();
        server.rewrite_responses(move |request, response| {
            if response.status == 404 && request.path.starts_with("/v1/charges/") {
                *response = other_account.respond(request, Mode::Test, "");
            }
        });
    }),
    server_fault("an invoice of the other account is served", &["isolation.second_account"], |server| {
        let other_account = server.other_account.clone();
        server.rewrite_responses(move |request, response| {
            if response.status == 404 && request.path.starts_with("/v1/invoices/") {
                *response = other_account.respond(request, Mode::Test, "");
            }
        });
    }),
    server_fault("an event is listed in both modes", &["isolation.lists"], |server| {
        *server.live.events.last_mut().expect("the book has an event") =
            server.test.events.last().expect("the book has an event").clone()
    })
    .may_fail(&["isolation.not_found", "lists.complete", "charges.paid_at"]),
    server_fault("both modes have the same deposit addresses", &["isolation.deposit_addresses"], |server| {
        for (test, live) in server.test.charges.iter_mut().zip(&server.live.charges) {
            test["deposit_address"] = live["deposit_address"].clone();
        }
    }),
    server_fault("an invoice is paid by a charge of the other mode", &["isolation.lists"], |server| {
        let charge = server.live.charges[2]["code"].clone();
        let Some(paid) = server.test.invoices.iter_mut().find(|invoice| invoice["status"] == "paid") else {
            return;
        };
        paid["charges"] = json!([{ "code": charge, "status": "paid" }]);
    }),
    server_fault(
        "an event of an old charge has a charge of the other mode",
        &["isolation.lists"],
        |server| {
            let charge = server.test.charges[1].clone();
            server.live.events.last_mut().expect("the book has an event")["charge"] = charge;
        },
    )
    .may_fail(&[
        "lists.complete",
        "charges.paid_at",
        "events.recorded",
        "events.single",
        "filters.total",
        "filters.charge",
        "filters.combined",
    ]),
    server_fault(
        "the charge filter counts events of the other mode in total",
        &["isolation.filter_charge"],
        |server| {
            let filters_by_one_charge = |request: &Request| {
                let has_code =
                    request.query.get("charge").is_some_and(|value| value.ends_with(CHARGE_CODE_END));
                has_code && request.query.len() == 1
            };
            rewrite_matching(server, 200, filters_by_one_charge, |_, response| {
                if is_empty_list(response) {
                    response.body["meta"]["total"] = json!(2)
                }
            });
        },
    )
    .may_fail(&["filters.total"]),
    server_fault(
        "a charge filter of the other mode gets 404, and both modes share link names",
        &["isolation.filter_charge"],
        |server| {
            use_named_links(server);
            let codes = [&server.live, &server.test].map(|book| {
                let codes = book.charges.iter().filter_map(|charge| charge["code"].as_str());
                codes.map(str::to_owned).collect::<Vec<_>>()
            });
            server.rewrite_responses(move |request, response| {
                let foreign_codes = match request.mode {
                    Some(Mode::Live) => &codes[1],
                    _ => &codes[0],
                };
                if request.query.get("charge").is_some_and(|code| foreign_codes.contains(code)) {
                    response.status = 404;
                }
            });
        },
    ),
    server_fault("an invoice filter of the other mode gets 403", &["isolation.filter_invoice"], |server| {
        let filters_by_invoice = |request: &Request| {
            request.query.get("invoice").is_some_and(|value| value.ends_with(INVOICE_CODE_END))
        };
        rewrite_matching(server, 200, filters_by_invoice, |_, response| {
            if is_empty_list(response) {
                response.status = 403
            }
        });
    }),
    server_fault(
        "a payment link filter of the other mode returns a row",
        &["isolation.filter_payment_link"],
        |server| {
            let filters_by_payment_link = |request: &Request| {
                request.query.get("payment_link").is_some_and(|value| value.ends_with(PAYMENT_LINK_END))
            };
            rewrite_matching(server, 200, filters_by_payment_link, |_, response| {
                if is_empty_list(response) {
                    response.body["data"] = json!([{}])
                }
            });
        },
    )
    .may_fail(&["filters.total"]),
    response_fault(
        "an unknown id gets 200 and null",
        &["errors.not_found", "isolation.not_found", "isolation.second_account"],
        404,
        |_, response| *response = EditableResponse::json(200, json!(null)),
    )
    .may_fail(&["isolation.objects"]),
    response_fault("an unknown id gets 500", &["errors.not_found"], 404, |_, response| {
        *response = EditableResponse::json(500, json!({ "message": "No row was found" }))
    })
    .for_requests(|request| !is_foreign_event(request) && !has_event_id_of_other_account(request))
    .may_fail(&["isolation.objects"]),
    response_fault("a 404 has no body", &["errors.not_found_json"], 404, |_, response| {
        response.raw = Some(String::new())
    }),
    response_fault(
        "a 404 is a debug page for developers",
        &["errors.not_found_json"],
        404,
        |request, response| {
            response.set_header("content-type", "text/html; charset=utf-8");
            response.raw = Some(format!("<h1>Page not found</h1><p>{} with DEBUG = True</p>", request.path));
        },
    ),
    server_fault("an event of live mode gets 403 with a test key", &["isolation.not_found"], |server| {
        let is_from_test_key =
            |request: &Request| is_foreign_event(request) && request.mode == Some(Mode::Test);
        rewrite_matching(server, 404, is_from_test_key, |_, response| response.status = 403);
    }),
    response_fault("an event of the other mode gets 410", &["isolation.not_found"], 404, |_, response| {
        response.status = 410
    })
    .for_requests(is_foreign_event),
    response_fault(
        "an event of the other mode is a redirect",
        &["isolation.not_found"],
        404,
        |_, response| {
            response.status = 302;
            response.set_header("location", "/test/events");
        },
    )
    .for_requests(is_foreign_event),
    response_fault(
        "the 404 of the other mode names the object",
        &["isolation.indistinguishable"],
        404,
        |request, response| {
            let id = request.path.rsplit('/').next().unwrap_or_default();
            response.body["message"] = json!(format!("Event {id} belongs to charge ch2abcdef07."));
        },
    )
    .for_requests(is_foreign_event),
    response_fault(
        "the 404 of the other mode has an ETag",
        &["isolation.indistinguishable"],
        404,
        |_, response| response.set_header("etag", "W/\"5d41402a\""),
    )
    .for_requests(is_foreign_event),
    server_fault(
        "the 404 of the other mode has a different Cache-Control",
        &["isolation.indistinguishable"],
        |server| {
            rewrite_matching(
                server,
                404,
                |_| true,
                |_, response| response.set_header("cache-control", "no-store"),
            );
            rewrite_matching(server, 404, is_foreign_event, |_, response| {
                response.set_header("cache-control", "private, must-revalidate")
            });
        },
    ),
    response_fault(
        "only the 404 of absent ids has a debug header",
        &["isolation.indistinguishable"],
        404,
        |_, response| response.set_header("x-debug", "no row"),
    )
    .for_requests(|request| !is_foreign_event(request)),
    response_fault(
        "the 404 of the other mode has a charset",
        &["isolation.indistinguishable"],
        404,
        |_, response| response.set_header("content-type", "application/json; charset=utf-8"),
    )
    .for_requests(is_foreign_event),
    server_fault(
        "the 404 of the other mode has a different code",
        &["isolation.indistinguishable"],
        |server| {
            rewrite_matching(server, 404, |_| true, |_, response| response.body["code"] = json!(4041));
            rewrite_matching(server, 404, is_foreign_event, |_, response| {
                response.body["code"] = json!(4042)
            });
        },
    ),
    server_fault(
        "the 404 of the other mode has its members in a different order",
        &["isolation.indistinguishable"],
        |server| {
            rewrite_matching(
                server,
                404,
                |_| true,
                |_, response| {
                    response.raw = Some("{\"message\":\"Not found.\",\"code\":404}".into());
                },
            );
            rewrite_matching(server, 404, is_foreign_event, |_, response| {
                response.raw = Some("{\"code\":404,\"message\":\"Not found.\"}".into());
            });
        },
    ),
    server_fault(
        "the 404 of a test event has a hint for live keys",
        &["isolation.indistinguishable"],
        |server| {
            let is_from_live_key =
                |request: &Request| is_foreign_event(request) && request.mode == Some(Mode::Live);
            rewrite_matching(server, 404, is_from_live_key, |_, response| {
                response.body["hint"] = json!("Use your test key.")
            });
        },
    ),
    server_fault("charges are listed in both modes", &["isolation.lists"], |server| {
        server.live.charges = server.test.charges.clone()
    })
    .may_fail(&[
        "isolation.filter_payment_link",
        "events.recorded",
        "filters.payment_link",
        "lists.complete",
    ]),
    server_fault("an invoice is listed in both modes", &["isolation.lists"], |server| {
        *server.live.invoices.last_mut().expect("the book has an invoice") =
            server.test.invoices.last().expect("the book has an invoice").clone()
    })
    .may_fail(&["lists.complete"]),
    server_fault("the cache of lists ignores the key", &["isolation.lists"], |server| {
        let mut cache = BTreeMap::new();
        server.rewrite_responses(move |request, response| {
            if response.status == 200 && request.is_list() {
                let key = (request.path.clone(), request.query.clone());
                response.body = cache.entry(key).or_insert_with(|| response.body.clone()).clone();
            }
        });
    })
    .may_fail(&[
        "paging.length",
        "paging.newest_first",
        "paging.joined",
        "filters.total",
        "filters.charge",
        "filters.invoice",
        "filters.payment_link",
        "events.single",
        "isolation.filter_charge",
        "isolation.filter_invoice",
        "isolation.filter_payment_link",
        "isolation.not_found",
        "isolation.second_account",
        "isolation.objects",
        "paging.stable_literal",
    ]),
    server_fault("the type filter ignores the mode", &["filters.total"], |server| {
        let mut merged = server.test.clone();
        merged.events.extend(server.live.events.iter().cloned());
        server.rewrite_responses(move |request, response| {
            if response.status == 200 && request.query.contains_key("type") {
                let links = response.body["links"].take();
                *response = merged.respond(request, Mode::Test, "");
                response.body["links"] = links;
            }
        });
    })
    .may_fail(&[
        "isolation.filter_charge",
        "isolation.lists",
        "lists.complete",
        "paging.ends",
        "paging.links_lead",
        "paging.newest_first",
    ]),
    server_fault(
        "a charge filter of the other mode gets 404, but an unknown code gets an empty list",
        &["isolation.filter_charge"],
        |server| {
            let filters_by_charge = |request: &Request| {
                request.query.get("charge").is_some_and(|value| value.ends_with(CHARGE_CODE_END))
            };
            rewrite_matching(server, 200, filters_by_charge, |_, response| {
                if is_empty_list(response) {
                    *response = EditableResponse::json(404, json!({ "message": "Not found." }));
                }
            });
        },
    ),
    server_fault(
        "the charge filter counts events of the other mode in last_page",
        &["isolation.filter_charge"],
        |server| {
            let filters_by_charge = |request: &Request| {
                request.query.get("charge").is_some_and(|value| value.ends_with(CHARGE_CODE_END))
            };
            rewrite_matching(server, 200, filters_by_charge, |_, response| {
                if is_empty_list(response) {
                    response.body["meta"]["last_page"] = json!(2);
                }
            });
        },
    )
    .may_fail(&["filters.total"]),
    server_fault(
        "the invoice filter shows the events of the other mode",
        &["isolation.filter_invoice"],
        |server| {
            let other_books = [server.test.clone(), server.live.clone()];
            server.rewrite_responses(move |request, response| {
                if response.status == 200 && request.query.contains_key("invoice") && is_empty_list(response)
                {
                    let other_book = &other_books[usize::from(request.mode == Some(Mode::Test))];
                    *response = other_book.respond(request, Mode::Live, "");
                }
            });
        },
    )
    .may_fail(&["isolation.lists"]),
    server_fault(
        "a payment link filter of the other mode gets 403 and a message",
        &["isolation.filter_payment_link"],
        |server| {
            let filters_by_payment_link = |request: &Request| {
                request.query.get("payment_link").is_some_and(|value| value.ends_with(PAYMENT_LINK_END))
            };
            rewrite_matching(server, 200, filters_by_payment_link, |_, response| {
                if is_empty_list(response) {
                    *response = EditableResponse::json(
                        403,
                        json!({ "message": "This link belongs to the other mode." }),
                    );
                }
            });
        },
    ),
    response_fault(
        "an unknown id always gets 502",
        &["errors.not_found", "isolation.not_found"],
        404,
        |_, response| *response = EditableResponse::json(502, json!({ "message": "Bad gateway." })),
    )
    .may_fail(&["isolation.objects", "isolation.second_account"]),
    server_fault(
        "a cache that sends X-Cache serves the events of one mode to the other",
        &["isolation.lists"],
        |server| {
            let mut cache = BTreeMap::new();
            server.rewrite_responses(move |request, response| {
                if response.status == 200 && request.path == "/v1/events" {
                    match cache.get(&request.query) {
                        None => {
                            drop(cache.insert(request.query.clone(), (request.mode, response.body.clone())))
                        }
                        Some((mode, body)) if *mode != request.mode => {
                            response.body = body.clone();
                            response.set_header("x-cache", "HIT");
                        }
                        Some(_) => {}
                    }
                }
            });
        },
    )
    .may_fail(&[
        "events.single",
        "isolation.filter_charge",
        "isolation.filter_invoice",
        "isolation.filter_payment_link",
        "isolation.not_found",
        "isolation.objects",
    ]),
];

/// Returns `true` for a request for an existing event of the other mode, by the format of its id.
pub fn is_foreign_event(request: &Request) -> bool {
    // The id contains the number of the book: 1 for live mode, 2 for test mode.
    let book_part = if request.mode == Some(Mode::Live) { "-7ab2-" } else { "-7ab1-" };
    request.path.contains(book_part) && is_existing_event(request)
}

/// Returns `true` if the path ends with the id of an existing event: its last part is a multiple of [`EVENT_ID_FACTOR`].
fn is_existing_event(request: &Request) -> bool {
    request.path.rsplit('-').next().is_some_and(|last_part| {
        u64::from_str_radix(last_part, 16).is_ok_and(|number| number % EVENT_ID_FACTOR == 0)
    })
}
