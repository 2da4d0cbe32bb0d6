//! Faults in keys, the account and events.

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::{self, FakeServer, Reply, Request};
use crate::isolation::is_foreign_event;
use crate::keys::SINGLE_REFUSALS;
use crate::mutant::{Mutant, account, events, remove, reply, rewrite, rule, single_event};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Keys.
    reply("an unknown event without a key is answered 404", &["auth.every_path"], 401, |_, reply| {
        *reply = Reply::json(404, json!({ "message": "Not found." }))
    })
    .for_requests(|request| request.is_event() && !is_known(request))
    .may_fail(SINGLE_REFUSALS),
    reply("the message of a 401 is empty", &["auth.message"], 401, |_, reply| {
        reply.body = json!({ "message": "" })
    }),
    reply("the message of a 401 is null", &["auth.message"], 401, |_, reply| {
        reply.body = json!({ "message": null })
    }),
    reply(
        "an unknown key is forbidden on lists",
        &["auth.last_character", "auth.encoded"],
        401,
        |_, reply| reply.status = 403,
    )
    .for_requests(|request| request.is_list() && has_key(request) && !is_revoked(request))
    .may_fail(SINGLE_REFUSALS),
    rule("the key is accepted as the user of Basic", &["auth.other_scheme"], |server| {
        server.rewrite_requests(|request| {
            // base64 of the test key and a colon.
            let basic = "Basic c3ZjX3Rlc3Rfd0U2eVUxaU80cFM5ZEYyZ0g3aks6";
            if request.authorization.as_deref() == Some(basic) {
                request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
            }
        });
    }),
    rule("a revoked key still reads single events", &["auth.revoked_key"], |server| {
        server.rewrite_requests(|request| {
            if request.is_event() && is_revoked(request) {
                request.authorization = Some(format!("Bearer {}", fake::LIVE_KEY));
            }
        });
    }),
    rule(
        "the list of invoices accepts any key with the right prefix",
        &["auth.letter_case", "auth.shortened"],
        |server| {
            server.rewrite_requests(|request| {
                let is_test = |text: &str| text.starts_with("Bearer svc_test_");
                if request.path == "/v1/invoices" && request.authorization.as_deref().is_some_and(is_test) {
                    request.authorization = Some(format!("Bearer {}", fake::TEST_KEY));
                }
            });
        },
    )
    .may_fail(&["isolation.lists", "isolation.second_account"]),
    // The account.
    rule("the first account is cached for all keys", &["account.mode"], |server| {
        let mut first = None;
        server.rewrite(move |request, reply| {
            if request.path == "/v1/account" && reply.status == 200 {
                *reply = first.get_or_insert_with(|| reply.clone()).clone();
            }
        });
    })
    .may_fail(&["isolation.second_account"]),
    account("the modes are called production and sandbox", &["account.mode"], |request, reply| {
        let mode = if request.mode == Some(Mode::Live) { "production" } else { "sandbox" };
        reply.body["meta"]["mode"] = json!(mode);
    }),
    // Events.
    events("details of invoice events are null", &["events.details"], |event| {
        if event["invoice"].is_object() {
            event["details"] = Value::Null;
        }
    }),
    events("times have an offset of two hours", &["events.created_at"], |event| {
        let time = event["created_at"].as_str().expect("the time is a string").replace('Z', "+02:00");
        event["created_at"] = json!(time);
    }),
    single_event("the id of a single event has no hyphens", &["events.single"], |_, reply| {
        let id = reply.body["data"]["id"].as_str().unwrap_or_default().replace('-', "");
        reply.body["data"]["id"] = json!(id);
    })
    .may_fail(&["events.id"]),
    rule("an event is found by its id with appended characters", &["errors.not_found"], |server| {
        find_events_by(server, |given, id| given.starts_with(id))
    }),
    rule("an event is found by the beginning of its id", &["errors.not_found"], |server| {
        find_events_by(server, |given, id| given.len() >= 8 && id.starts_with(given))
    }),
    rule("single events of canceled charges are not found", &["events.single"], |server| {
        let canceled = |request: &Request| request.is_event();
        rewrite(server, 200, canceled, |_, reply| {
            if reply.body["data"]["type"] == "charge.canceled" {
                *reply = Reply::json(404, json!({ "message": "Not found." }));
            }
        });
    }),
    events("a paid invoice's event carries its charge as well", &["events.subject"], |event| {
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
    events("amounts of events are numbers", &["charges.amounts"], |event| {
        if event["charge"].is_object() {
            event["charge"]["fiat_amount"] = json!(49.9);
        }
    }),
    events("empty metadata of events is an array", &["charges.metadata"], |event| {
        if event["charge"]["status"] == "canceled" {
            event["charge"]["metadata"] = json!([]);
        }
    }),
    events("the payment link of an event's charge is an object", &["charges.payment_link"], |event| {
        if event["charge"]["payment_link"].is_string() {
            event["charge"]["payment_link"] = json!({ "code": event["charge"]["payment_link"] });
        }
    })
    .may_fail(&["filters.payment_link", "filters.combined"]),
    single_event("a single event omits null members", &["events.subject"], |_, reply| {
        for member in ["charge", "invoice"] {
            if reply.body["data"][member].is_null() {
                remove(&mut reply.body["data"], member);
            }
        }
    })
    .may_fail(&["events.single"]),
    events("empty details are omitted", &["events.details"], |event| remove(event, "details")),
    events("statuses of charges are in capitals", &["charges.status"], |event| {
        if let Some(status) = event["charge"]["status"].as_str() {
            event["charge"]["status"] = json!(status.to_uppercase());
        }
    })
    .may_fail(&["events.recorded", "lists.complete"]),
    events("a paid charge has no time of payment", &["charges.paid_at"], |event| {
        if event["charge"]["paid_at"].is_string() {
            event["charge"]["paid_at"] = Value::Null;
        }
    })
    .may_fail(&["lists.complete"]),
    events("the charge of an event has only some fields", &["charges.fields"], |event| {
        if event["charge"].is_object() {
            for name in ["customer_email", "metadata", "description"] {
                remove(&mut event["charge"], name);
            }
        }
    }),
    events("the invoice of an event has no charges", &["invoices.fields"], |event| {
        if event["invoice"].is_object() {
            remove(&mut event["invoice"], "charges");
        }
    })
    .may_fail(&["events.both_paid", "types.invoice_paid", "invoices.settled"]),
    rule("text beyond ASCII is encoded twice in single events", &["events.single"], |server| {
        garble_descriptions(server, "Grüner Tee", "GrÃ¼ner Tee")
    }),
    rule("text is escaped for HTML in single events", &["events.single"], |server| {
        garble_descriptions(server, "Tea & cake", "Tea &amp; cake")
    }),
    rule("the creation of an old charge is recorded late", &["events.recorded"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let created = book.events.iter().rposition(|event| event["type"] == "charge.created");
            let mut event = book.events.remove(created.expect("an event"));
            event["created_at"] = book.events[0]["created_at"].clone();
            book.events.insert(0, event);
        }
    })
    .may_fail(&["paging.newest_first_others"]),
    rule("the list of charges misses a payment", &["lists.complete"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let paid = book.charges.iter_mut().rev().find(|charge| charge["status"] == "paid");
            paid.expect("a paid charge")["status"] = json!("pending");
        }
    })
    .may_fail(&["lists.complete", "filters.status"]),
    rule("the list of invoices misses a payment", &["lists.complete"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let paid = book.invoices.iter_mut().find(|invoice| invoice["status"] == "paid");
            let paid = paid.expect("a paid invoice");
            paid["status"] = json!("open");
            paid["charges"] = json!([]);
        }
    })
    .may_fail(&["lists.complete", "filters.status", "invoices.settled"]),
    rule("old events are deleted", &["events.both_paid"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let left = book.events.len() - 7;
            book.events.truncate(left);
        }
    })
    .may_fail(&["events.recorded"]),
    rule("an event is listed twice", &["paging.joined"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let event = book.events[4].clone();
            book.events.insert(4, event);
        }
    })
    .may_fail(&["events.recorded", "filters.total"]),
    rule("charges that were archived are in no list", &["lists.complete"], |server| {
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

/// Returns `true` for an event of either mode, by the form of its id.
fn is_known(request: &Request) -> bool {
    let other = Request { mode: request.mode.map(Mode::other), ..request.clone() };
    is_foreign_event(request) || is_foreign_event(&other)
}

/// Also finds single events by values other than their exact ids.
fn find_events_by(server: &mut FakeServer, fits: fn(given: &str, id: &str) -> bool) {
    let books = [server.live.clone(), server.test.clone()];
    server.rewrite(move |request, reply| {
        let Some(given) = request.path.strip_prefix("/v1/events/").filter(|_| reply.status == 404) else {
            return;
        };
        let book = &books[usize::from(request.mode == Some(Mode::Test))];
        let found = book.events.iter().find(|event| event["id"].as_str().is_some_and(|id| fits(given, id)));
        if let Some(event) = found {
            *reply = Reply::json(200, json!({ "data": event }));
        }
    });
}

/// Sets the description of the charge in all events, and a wrong one in single events.
fn garble_descriptions(server: &mut FakeServer, text: &'static str, wrong: &'static str) {
    for book in [&mut server.live, &mut server.test] {
        for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
            event["charge"]["description"] = json!(text);
        }
    }
    server.rewrite(move |request, reply| {
        if request.is_event() && reply.body["data"]["charge"].is_object() {
            reply.body["data"]["charge"]["description"] = json!(wrong);
        }
    });
}
