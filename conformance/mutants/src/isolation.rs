//! Faults in responses about absent objects, and about objects of the other mode.

use std::collections::BTreeMap;

use conformance::Mode;
use serde_json::json;

use crate::fake::{Reply, Request};
use crate::mutant::{Mutant, is_empty_list, reply, rewrite, rule};
use crate::variants::{set_choices, use_named_links};

pub(crate) const MUTANTS: &[Mutant] = &[
    reply(
        "an unknown id is answered 400",
        &["errors.not_found", "isolation.not_found", "isolation.objects"],
        404,
        |_, reply| reply.status = 400,
    ),
    reply("404 is an HTML page", &["errors.not_found_json"], 404, |_, reply| {
        reply.raw = Some("<h1>404</h1>".into())
    }),
    reply("an event of the other mode is answered 403", &["isolation.not_found"], 404, |_, reply| {
        reply.status = 403
    })
    .for_requests(is_foreign_event),
    reply("an event of the other mode is served", &["isolation.not_found"], 404, |_, reply| {
        *reply = Reply::json(200, json!({ "data": { "leak": true } }))
    })
    .for_requests(is_foreign_event),
    reply(
        "the 404 of the other mode has another message",
        &["isolation.indistinguishable"],
        404,
        |_, reply| reply.body["message"] = json!("Wrong mode."),
    )
    .for_requests(is_foreign_event),
    reply(
        "the 404 of the other mode has an extra header",
        &["isolation.indistinguishable"],
        404,
        |_, reply| reply.set("x-mode", "other"),
    )
    .for_requests(is_foreign_event),
    reply(
        "the 404 of the other mode has other white space",
        &["isolation.indistinguishable"],
        404,
        |_, reply| reply.raw = Some("{ \"message\": \"Not found.\" }".into()),
    )
    .for_requests(is_foreign_event),
    rule("an invalid id is answered 500", &["errors.not_found"], |server| {
        let is_no_id =
            |request: &Request| request.path.strip_prefix("/v1/events/").is_some_and(|id| id.len() != 36);
        rewrite(server, 404, is_no_id, |_, reply| reply.status = 500);
    }),
    rule("a filter reveals a charge of the other mode", &["isolation.filter_charge"], |server| {
        set_choices(server, |choices| choices.foreign_filter_404 = true);
        let codes = [&server.live, &server.test].map(|book| {
            let codes = book.charges.iter().filter_map(|charge| charge["code"].as_str());
            codes.map(str::to_owned).collect::<Vec<_>>()
        });
        server.rewrite(move |request, reply| {
            let code = request.query.get("charge").filter(|_| reply.status == 404);
            if code.is_some_and(|code| codes.iter().flatten().any(|known| known == code)) {
                reply.body["message"] = json!("This charge has another mode.");
            }
        });
    }),
    rule("an event of the other account is served", &["isolation.second_account"], |server| {
        let of_second = |request: &Request| request.path.contains("-7ab3-");
        rewrite(server, 404, of_second, |_, reply| *reply = Reply::json(200, json!({ "data": {} })));
    }),
    rule("an event is listed in both modes", &["isolation.lists"], |server| {
        *server.live.events.last_mut().expect("an event") = server.test.events[27].clone()
    })
    .may_fail(&["isolation.not_found", "lists.complete", "charges.paid_at"]),
    rule("both modes have the same deposit addresses", &["isolation.deposit_addresses"], |server| {
        for (test, live) in server.test.charges.iter_mut().zip(&server.live.charges) {
            test["deposit_address"] = live["deposit_address"].clone();
        }
    }),
    rule("an invoice is paid by a charge of the other mode", &["isolation.lists"], |server| {
        let charge = server.live.charges[2]["code"].clone();
        let Some(paid) = server.test.invoices.iter_mut().find(|invoice| invoice["status"] == "paid") else {
            return;
        };
        paid["charges"] = json!([{ "code": charge, "status": "paid" }]);
    }),
    rule("an event of an old charge has a charge of the other mode", &["isolation.lists"], |server| {
        let charge = server.test.charges[1].clone();
        server.live.events.last_mut().expect("an event")["charge"] = charge;
    })
    .may_fail(&[
        "lists.complete",
        "charges.paid_at",
        "events.recorded",
        "events.single",
        "filters.total",
        "filters.charge",
        "filters.combined",
    ]),
    rule(
        "the charge filter counts charges of the other mode in total",
        &["isolation.filter_charge"],
        |server| {
            let other = |request: &Request| {
                let named = request.query.get("charge").is_some_and(|value| value.ends_with("abcdef07"));
                named && request.query.len() == 1
            };
            rewrite(server, 200, other, |_, reply| {
                if is_empty_list(reply) {
                    reply.body["meta"]["total"] = json!(2)
                }
            });
        },
    ),
    rule(
        "the charge filter is 404 for the other mode, with shared link names",
        &["isolation.filter_charge"],
        |server| {
            use_named_links(server);
            let codes = [&server.live, &server.test].map(|book| {
                let codes = book.charges.iter().filter_map(|charge| charge["code"].as_str());
                codes.map(str::to_owned).collect::<Vec<_>>()
            });
            server.rewrite(move |request, reply| {
                let other = match request.mode {
                    Some(Mode::Live) => &codes[1],
                    _ => &codes[0],
                };
                if request.query.get("charge").is_some_and(|code| other.contains(code)) {
                    reply.status = 404;
                }
            });
        },
    ),
    rule(
        "the invoice filter reveals the other mode by its status",
        &["isolation.filter_invoice"],
        |server| {
            let other = |request: &Request| {
                request.query.get("invoice").is_some_and(|value| value.ends_with("mnopqr03"))
            };
            rewrite(server, 200, other, |_, reply| {
                if is_empty_list(reply) {
                    reply.status = 403
                }
            });
        },
    ),
    rule(
        "the payment link filter shows a row of the other mode",
        &["isolation.filter_payment_link"],
        |server| {
            let other = |request: &Request| {
                request.query.get("payment_link").is_some_and(|value| value.ends_with("ghijkl01"))
            };
            rewrite(server, 200, other, |_, reply| {
                if is_empty_list(reply) {
                    reply.body["data"] = json!([{}])
                }
            });
        },
    ),
    reply(
        "an unknown id is answered 200 and null",
        &["errors.not_found", "isolation.not_found", "isolation.second_account"],
        404,
        |_, reply| *reply = Reply::json(200, json!(null)),
    )
    .may_fail(&["isolation.objects"]),
    reply("an unknown id is answered 500", &["errors.not_found"], 404, |_, reply| {
        *reply = Reply::json(500, json!({ "message": "No row was found" }))
    })
    .for_requests(|request| !is_foreign_event(request) && !request.path.contains("-7ab3-"))
    .may_fail(&["isolation.objects"]),
    reply("404 has no body", &["errors.not_found_json"], 404, |_, reply| reply.raw = Some(String::new())),
    reply(
        "404 is a page for developers that lists the routes",
        &["errors.not_found_json"],
        404,
        |request, reply| {
            reply.set("content-type", "text/html; charset=utf-8");
            reply.raw = Some(format!("<h1>Page not found</h1><p>{} with DEBUG = True</p>", request.path));
        },
    ),
    rule("an event of live mode is forbidden to test keys", &["isolation.not_found"], |server| {
        let is_from_test = |request: &Request| is_foreign_event(request) && request.mode == Some(Mode::Test);
        rewrite(server, 404, is_from_test, |_, reply| reply.status = 403);
    }),
    reply("an event of the other mode is answered 410", &["isolation.not_found"], 404, |_, reply| {
        reply.status = 410
    })
    .for_requests(is_foreign_event),
    reply("an event of the other mode is a redirect", &["isolation.not_found"], 404, |_, reply| {
        reply.status = 302;
        reply.set("location", "/test/events");
    })
    .for_requests(is_foreign_event),
    reply(
        "the 404 of the other mode names the object",
        &["isolation.indistinguishable"],
        404,
        |request, reply| {
            let id = request.path.rsplit('/').next().unwrap_or_default();
            reply.body["message"] = json!(format!("Event {id} belongs to charge ch2abcdef07."));
        },
    )
    .for_requests(is_foreign_event),
    reply("the 404 of the other mode has an ETag", &["isolation.indistinguishable"], 404, |_, reply| {
        reply.set("etag", "W/\"5d41402a\"")
    })
    .for_requests(is_foreign_event),
    rule("the 404 of the other mode may be cached", &["isolation.indistinguishable"], |server| {
        rewrite(server, 404, |_| true, |_, reply| reply.set("cache-control", "no-store"));
        rewrite(server, 404, is_foreign_event, |_, reply| {
            reply.set("cache-control", "private, must-revalidate")
        });
    }),
    reply(
        "only the 404 of absent ids has a debug header",
        &["isolation.indistinguishable"],
        404,
        |_, reply| reply.set("x-debug", "no row"),
    )
    .for_requests(|request| !is_foreign_event(request)),
    reply("the 404 of the other mode has a charset", &["isolation.indistinguishable"], 404, |_, reply| {
        reply.set("content-type", "application/json; charset=utf-8")
    })
    .for_requests(is_foreign_event),
    rule("the 404 of the other mode has a code of its own", &["isolation.indistinguishable"], |server| {
        rewrite(server, 404, |_| true, |_, reply| reply.body["code"] = json!(4041));
        rewrite(server, 404, is_foreign_event, |_, reply| reply.body["code"] = json!(4042));
    }),
    rule(
        "the 404 of the other mode has its members in a different order",
        &["isolation.indistinguishable"],
        |server| {
            rewrite(
                server,
                404,
                |_| true,
                |_, reply| {
                    reply.raw = Some("{\"message\":\"Not found.\",\"code\":404}".into());
                },
            );
            rewrite(server, 404, is_foreign_event, |_, reply| {
                reply.raw = Some("{\"code\":404,\"message\":\"Not found.\"}".into());
            });
        },
    ),
    rule("the 404 of a test event has a hint for live keys", &["isolation.indistinguishable"], |server| {
        let is_from_live = |request: &Request| is_foreign_event(request) && request.mode == Some(Mode::Live);
        rewrite(server, 404, is_from_live, |_, reply| reply.body["hint"] = json!("Use your test key."));
    }),
    rule("charges are listed in both modes", &["isolation.lists"], |server| {
        server.live.charges = server.test.charges.clone()
    })
    .may_fail(&[
        "isolation.filter_payment_link",
        "events.recorded",
        "filters.payment_link",
        "lists.complete",
    ]),
    rule("an invoice is listed in both modes", &["isolation.lists"], |server| {
        *server.live.invoices.last_mut().expect("an invoice") = server.test.invoices[3].clone()
    })
    .may_fail(&["lists.complete"]),
    rule("the cache of lists ignores the mode", &["isolation.lists"], |server| {
        let mut cache = BTreeMap::new();
        server.rewrite(move |request, reply| {
            if reply.status == 200 && request.is_list() {
                let key = (request.path.clone(), request.query.clone());
                reply.body = cache.entry(key).or_insert_with(|| reply.body.clone()).clone();
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
    rule("the type filter ignores the mode", &["filters.total"], |server| {
        let mut both = server.test.clone();
        both.events.extend(server.live.events.iter().cloned());
        server.rewrite(move |request, reply| {
            if reply.status == 200 && request.query.contains_key("type") {
                let links = reply.body["links"].take();
                *reply = both.respond(request, Mode::Test, "");
                reply.body["links"] = links;
            }
        });
    })
    .may_fail(&[
        "isolation.filter_charge",
        "isolation.lists",
        "paging.ends",
        "paging.links_lead",
        "paging.newest_first",
    ]),
    rule(
        "the charge filter is 404 for the other mode, empty for unknown codes",
        &["isolation.filter_charge"],
        |server| {
            let other = |request: &Request| {
                request.query.get("charge").is_some_and(|value| value.ends_with("abcdef07"))
            };
            rewrite(server, 200, other, |_, reply| {
                if is_empty_list(reply) {
                    *reply = Reply::json(404, json!({ "message": "Not found." }));
                }
            });
        },
    ),
    rule(
        "the charge filter counts charges of the other mode in last_page",
        &["isolation.filter_charge"],
        |server| {
            let other = |request: &Request| {
                request.query.get("charge").is_some_and(|value| value.ends_with("abcdef07"))
            };
            rewrite(server, 200, other, |_, reply| {
                if is_empty_list(reply) {
                    reply.body["meta"]["last_page"] = json!(2);
                }
            });
        },
    ),
    rule("the invoice filter shows the events of the other mode", &["isolation.filter_invoice"], |server| {
        let books = [server.test.clone(), server.live.clone()];
        server.rewrite(move |request, reply| {
            if reply.status == 200 && request.query.contains_key("invoice") && is_empty_list(reply) {
                *reply =
                    books[usize::from(request.mode == Some(Mode::Test))].respond(request, Mode::Live, "");
            }
        });
    })
    .may_fail(&["isolation.lists"]),
    rule(
        "the payment link filter is forbidden for the other mode",
        &["isolation.filter_payment_link"],
        |server| {
            let other = |request: &Request| {
                request.query.get("payment_link").is_some_and(|value| value.ends_with("ghijkl01"))
            };
            rewrite(server, 200, other, |_, reply| {
                if is_empty_list(reply) {
                    *reply = Reply::json(403, json!({ "message": "This link is one of test mode." }));
                }
            });
        },
    ),
    reply(
        "an unknown id is always answered 502",
        &["errors.not_found", "isolation.not_found"],
        404,
        |_, reply| *reply = Reply::json(502, json!({ "message": "Bad gateway." })),
    )
    .may_fail(&["isolation.objects", "isolation.second_account"]),
    rule(
        "a cache that sends X-Cache serves the events of one mode to the other",
        &["isolation.lists"],
        |server| {
            let mut cache = BTreeMap::new();
            server.rewrite(move |request, reply| {
                if reply.status == 200 && request.path == "/v1/events" {
                    match cache.get(&request.query) {
                        None => drop(cache.insert(request.query.clone(), (request.mode, reply.body.clone()))),
                        Some((mode, body)) if *mode != request.mode => {
                            reply.body = body.clone();
                            reply.set("x-cache", "HIT");
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

/// Returns `true` for a request for an event of the other mode, by the form of its id.
pub fn is_foreign_event(request: &Request) -> bool {
    let other = if request.mode == Some(Mode::Live) { "-7ab2-" } else { "-7ab1-" };
    request.path.contains(other) && is_existing_event(request)
}

fn is_existing_event(request: &Request) -> bool {
    request
        .path
        .rsplit('-')
        .next()
        .is_some_and(|node| u64::from_str_radix(node, 16).is_ok_and(|number| number % 0x12_3456_789a == 0))
}
