//! Faults in keys, the account and events.

use conformance::Mode;
use serde_json::{Value, json};

use crate::authentication::SINGLE_REFUSALS;
use crate::fake::{self, EditableResponse, FakeServer, Request};
use crate::isolation::is_foreign_event;
use crate::mutant::{
    Mutant, account_fault, event_fault, remove_member, response_fault, rewrite_matching, server_fault,
    single_event_fault,
};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Keys.
    response_fault("an unknown event without a key gets 404", &["auth.every_path"], 401, |_, response| {
        *response = EditableResponse::json(404, json!({ "message": "Not found." }))
    })
    .for_requests(|request| request.is_event() && !is_existing_event(request))
    .may_fail(SINGLE_REFUSALS),
    response_fault("the message of a 401 is empty", &["auth.message"], 401, |_, response| {
        response.body = json!({ "message": "" })
    }),
    response_fault("the message of a 401 is null", &["auth.message"], 401, |_, response| {
        response.body = json!({ "message": null })
    }),
    response_fault(
        "an unknown key gets 403 on lists",
        &["auth.last_character", "auth.encoded"],
        401,
        |_, response| response.status = 403,
    )
    .for_requests(|request| request.is_list() && has_key(request) && !is_revoked(request))
    .may_fail(SINGLE_REFUSALS),
    server_fault(
        "the key is accepted as the user name of Basic authentication",
        &["auth.other_scheme"],
        |server| {
            server.rewrite_requests(|request| {
                // The base64 of the test key and a colon.
                let basic = "Basic c3ZjX3Rlc3Rfd0U2eVUxaU80cFM5ZEYyZ0g3aks6";
                if request.authorization.as_deref() == Some(basic) {
                    request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
                }
            });
        },
    ),
    server_fault("a revoked key still reads single events", &["auth.revoked_key"], |server| {
        server.rewrite_requests(|request| {
            if request.is_event() && is_revoked(request) {
                request.authorization = Some(format!("Bearer {}", fake::LIVE_KEY));
            }
        });
    }),
    server_fault(
        "the list of invoices accepts any key with the right prefix",
        &["auth.letter_case", "auth.shortened"],
        |server| {
            server.rewrite_requests(|request| {
                let has_test_prefix = |authorization: &str| authorization.starts_with("Bearer svc_test_");
                if request.path == "/v1/invoices"
                    && request.authorization.as_deref().is_some_and(has_test_prefix)
                {
                    request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
                }
            });
        },
    )
    .may_fail(&["isolation.lists", "isolation.second_account"]),
    // The account.
    server_fault("the first account is cached for all keys", &["account.mode"], |server| {
        let mut cached = None;
        server.rewrite_responses(move |request, response| {
            if request.path == "/v1/account" && response.status == 200 {
                *response = cached.get_or_insert_with(|| response.clone()).clone();
            }
        });
    })
    .may_fail(&["isolation.second_account"]),
    account_fault("the modes are called production and sandbox", &["account.mode"], |request, response| {
        let mode = if request.mode == Some(Mode::Live) { "production" } else { "sandbox" };
        response.body["meta"]["mode"] = json!(mode);
    }),
    // Events.
    event_fault("details of invoice events are null", &["events.details"], |event| {
        if event["invoice"].is_object() {
            event["details"] = Value::Null;
        }
    }),
    event_fault("times have an offset of two hours", &["events.created_at"], |event| {
        let time = event["created_at"].as_str().expect("the time is a string").replace('Z', "+02:00");
        event["created_at"] = json!(time);
    }),
    single_event_fault("the id of a single event has no hyphens", &["events.single"], |_, response| {
        let id = response.body["data"]["id"].as_str().unwrap_or_default().replace('-', "");
        response.body["data"]["id"] = json!(id);
    })
    .may_fail(&["events.id"]),
    server_fault("an event is found by its id with appended characters", &["errors.not_found"], |server| {
        find_events_by(server, |given, id| given.starts_with(id))
    }),
    server_fault("an event is found by the beginning of its id", &["errors.not_found"], |server| {
        find_events_by(server, |given, id| given.len() >= 8 && id.starts_with(given))
    }),
    server_fault("single events of canceled charges are not found", &["events.single"], |server| {
        rewrite_matching(server, 200, Request::is_event, |_, response| {
            if response.body["data"]["type"] == "charge.canceled" {
                *response = EditableResponse::json(404, json!({ "message": "Not found." }));
            }
        });
    }),
    event_fault("a paid invoice's event carries its charge as well", &["events.subject"], |event| {
        if event["type"] == "invoice.paid" {
            event["charge"] = json!({ "code": event["invoice"]["charges"][0]["code"] });
        }
    })
    .may_fail(&[
        "charges.fields",
        "charges.status",
        "filters.charge",
        "filters.combined",
        "filters.total",
    ]),
    event_fault("amounts in events are numbers", &["charges.amounts"], |event| {
        if event["charge"].is_object() {
            event["charge"]["fiat_amount"] = json!(49.9);
        }
    }),
    event_fault("empty metadata in events is an array", &["charges.metadata"], |event| {
        if event["charge"]["status"] == "canceled" {
            event["charge"]["metadata"] = json!([]);
        }
    }),
    event_fault("the payment link of an event's charge is an object", &["charges.payment_link"], |event| {
        if event["charge"]["payment_link"].is_string() {
            event["charge"]["payment_link"] = json!({ "code": event["charge"]["payment_link"] });
        }
    })
    .may_fail(&["filters.payment_link", "filters.combined"]),
    single_event_fault("a single event omits null members", &["events.subject"], |_, response| {
        for member in ["charge", "invoice"] {
            if response.body["data"][member].is_null() {
                remove_member(&mut response.body["data"], member);
            }
        }
    })
    .may_fail(&["events.single"]),
    event_fault("empty details are omitted", &["events.details"], |event| remove_member(event, "details")),
    event_fault("statuses of charges are in upper case", &["charges.status"], |event| {
        if let Some(status) = event["charge"]["status"].as_str() {
            event["charge"]["status"] = json!(status.to_uppercase());
        }
    })
    .may_fail(&["events.recorded", "lists.complete"]),
    event_fault("a paid charge has no time of payment", &["charges.paid_at"], |event| {
        if event["charge"]["paid_at"].is_string() {
            event["charge"]["paid_at"] = Value::Null;
        }
    })
    .may_fail(&["lists.complete"]),
    event_fault("the charge of an event has only some fields", &["charges.fields"], |event| {
        if event["charge"].is_object() {
            for name in ["customer_email", "metadata", "description"] {
                remove_member(&mut event["charge"], name);
            }
        }
    }),
    event_fault("the invoice of an event has no charges", &["invoices.fields"], |event| {
        if event["invoice"].is_object() {
            remove_member(&mut event["invoice"], "charges");
        }
    })
    .may_fail(&["events.both_paid", "types.invoice_paid", "invoices.settled"]),
    server_fault("text beyond ASCII is encoded twice in single events", &["events.single"], |server| {
        garble_descriptions(server, "Grüner Tee", "GrÃ¼ner Tee")
    }),
    server_fault("text is escaped for HTML in single events", &["events.single"], |server| {
        garble_descriptions(server, "Tea & cake", "Tea &amp; cake")
    }),
    server_fault("the creation of an old charge is recorded late", &["events.recorded"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let created = book.events.iter().rposition(|event| event["type"] == "charge.created");
            let mut event = book.events.remove(created.expect("a charge was created"));
            event["created_at"] = book.events[0]["created_at"].clone();
            book.events.insert(0, event);
        }
    })
    .may_fail(&["paging.newest_first_others"]),
    server_fault("the list of charges misses a payment", &["lists.complete"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let paid = book.charges.iter_mut().rev().find(|charge| charge["status"] == "paid");
            paid.expect("a charge is paid")["status"] = json!("pending");
        }
    })
    .may_fail(&["lists.complete", "filters.status"]),
    server_fault("the list of invoices misses a payment", &["lists.complete"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let paid = book.invoices.iter_mut().find(|invoice| invoice["status"] == "paid");
            let paid = paid.expect("an invoice is paid");
            paid["status"] = json!("open");
            paid["charges"] = json!([]);
        }
    })
    .may_fail(&["lists.complete", "filters.status", "invoices.settled"]),
    server_fault("old events are deleted", &["events.both_paid"], |server| {
        for book in [&mut server.live, &mut server.test] {
            // The events of the three oldest charges, and the creation of the fourth.
            let kept = book.events.len() - 7;
            book.events.truncate(kept);
        }
    })
    .may_fail(&["events.recorded"]),
    server_fault("an event is listed twice", &["paging.joined"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let event = book.events[4].clone();
            book.events.insert(4, event);
        }
    })
    .may_fail(&["events.recorded", "filters.total"]),
    server_fault("an archived charge is not listed", &["lists.complete"], |server| {
        for book in [&mut server.live, &mut server.test] {
            book.charges.remove(3);
        }
    }),
];

fn has_key(request: &Request) -> bool {
    request.authorization.is_some()
}

fn is_revoked(request: &Request) -> bool {
    request.authorization.as_deref().is_some_and(|authorization| authorization.ends_with(fake::REVOKED_KEY))
}

/// Returns `true` for a request for an existing event of either mode, by the format of its id.
fn is_existing_event(request: &Request) -> bool {
    // A request without a valid key has no mode.
    Mode::BOTH.into_iter().any(|mode| is_foreign_event(&Request { mode: Some(mode), ..request.clone() }))
}

/// Makes a server also find a single event if `matches` accepts the given id for the id of the event.
fn find_events_by(server: &mut FakeServer, matches: fn(given: &str, id: &str) -> bool) {
    let books = [server.live.clone(), server.test.clone()];
    server.rewrite_responses(move |request, response| {
        let Some(given) = request.path.strip_prefix("/v1/events/").filter(|_| response.status == 404) else {
            return;
        };
        let book = &books[usize::from(request.mode == Some(Mode::Test))];
        let found =
            book.events.iter().find(|event| event["id"].as_str().is_some_and(|id| matches(given, id)));
        if let Some(event) = found {
            *response = EditableResponse::json(200, json!({ "data": event }));
        }
    });
}

/// Sets the description of the charge in all events, and a garbled one in the responses with a single event.
fn garble_descriptions(server: &mut FakeServer, description: &'static str, garbled: &'static str) {
    for book in [&mut server.live, &mut server.test] {
        for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
            event["charge"]["description"] = json!(description);
        }
    }
    server.rewrite_responses(move |request, response| {
        if request.is_event() && response.body["data"]["charge"].is_object() {
            response.body["data"]["charge"]["description"] = json!(garbled);
        }
    });
}
