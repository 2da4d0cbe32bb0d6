//! Faults in events: in lists, and in responses with a single event.

use serde_json::{Value, json};

use crate::fake::book::Book;
use crate::fake::{EditableResponse, FakeServer};
use crate::mutant::{
    Mutant, charge_list_fault, event_fault, response_fault, server_fault, single_event_fault,
};

pub(crate) const MUTANTS: &[Mutant] = &[
    response_fault("ids in a list filtered by invoice are numbers", &["events.id"], 200, |_, response| {
        response.body["data"].as_array_mut().into_iter().flatten().for_each(|row| row["id"] = json!(7));
    })
    .for_requests(|request| request.query.contains_key("invoice"))
    .may_fail(&["filters.combined", "filters.total", "isolation.lists", "paging.joined"]),
    single_event_fault(
        "the charge of a single event has another amount",
        &["events.single"],
        |_, response| {
            if response.body["data"]["charge"].is_object() {
                response.body["data"]["charge"]["asset_amount"] = json!("0.00076193");
            }
        },
    )
    .may_fail(&["charges.code"]),
    response_fault("a single event is a different event", &["events.single"], 200, |_, response| {
        response.body["data"]["id"] = json!("0190a5c4-7f3e-7abc-8def-aaaaaaaaaaaa");
    })
    .for_requests(|request| request.path.starts_with("/v1/events/")),
    single_event_fault("a single event always gets 502", &["events.single"], |_, response| {
        *response = EditableResponse::json(502, json!({ "message": "Bad gateway." }))
    }),
    server_fault("an event has an unknown type", &["events.type"], |server| {
        server.test.events[2]["type"] = json!("invoice.confirmed")
    }),
    event_fault("empty details are an array", &["events.details"], |event| event["details"] = json!([])),
    event_fault("a charge event also carries an invoice", &["events.subject"], |event| {
        if event["invoice"].is_null() {
            event["invoice"] = json!({})
        }
    }),
    event_fault("an invoice event has no charge member", &["events.subject"], |event| {
        if event["charge"].is_null() {
            event.as_object_mut().expect("the event is an object").remove("charge");
        }
    }),
    event_fault("times are local", &["events.created_at"], |event| {
        let time = event["created_at"].as_str().expect("the time is a string").replace('Z', "+02:00");
        event["created_at"] = json!(time);
    }),
    server_fault("ids have no hyphens", &["events.id"], |server| {
        for book in [&mut server.live, &mut server.test, &mut server.other_account] {
            for event in &mut book.events {
                event["id"] = json!(event["id"].as_str().expect("the id is a string").replace('-', ""));
            }
        }
    }),
    server_fault("ids are sequential numbers", &["events.id"], |server| {
        for (book_number, book) in
            [(1, &mut server.live), (2, &mut server.test), (3, &mut server.other_account)]
        {
            let len = book.events.len();
            for (index, event) in book.events.iter_mut().enumerate() {
                event["id"] = json!(format!("evt_{}", book_number * 1_000_000 + len - index));
            }
        }
    }),
    event_fault("empty details are null", &["events.details"], |event| event["details"] = Value::Null),
    event_fault("details are JSON in a string", &["events.details"], |event| event["details"] = json!("{}")),
    single_event_fault("a single event has no details", &["events.details"], |_, response| {
        drop(response.body["data"].as_object_mut().expect("the event is an object").remove("details"))
    }),
    // Only canceled charges are missing: without any charge, the suite has no value for the charge filter.
    event_fault("a charge event has no charge", &["events.subject"], |event| {
        if event["type"] == "charge.canceled" {
            event["charge"] = Value::Null;
        }
    })
    .may_fail(&["filters.charge", "filters.total"]),
    event_fault("a charge event names the charge by its code only", &["events.subject"], |event| {
        if event["charge"].is_object() {
            event["charge"] = event["charge"]["code"].clone();
        }
    })
    .may_fail(&["events.both_paid"]),
    event_fault("invoice.sent carries a charge", &["events.subject"], |event| {
        if event["type"] == "invoice.sent" {
            event["charge"] = json!({ "code": "none" });
        }
    })
    .may_fail(&["filters.charge", "filters.total"]),
    event_fault("null members are empty objects", &["events.subject"], |event| {
        for name in ["charge", "invoice"] {
            if event[name].is_null() {
                event[name] = json!({});
            }
        }
    }),
    server_fault("canceled is spelled with two l", &["events.type"], |server| {
        rename_event_type(server, "charge.canceled", "charge.cancelled")
    }),
    server_fault("a type is written in camel case", &["events.type"], |server| {
        rename_event_type(server, "invoice.viewed", "invoiceViewed")
    }),
    server_fault("an internal type is exposed", &["events.type"], |server| {
        rename_event_type(server, "charge.created", "charge.pending")
    }),
    server_fault("times are local, but end with Z", &["events.created_at"], |server| {
        (server.live, server.test) = (Book::with_long_lists(1, 64), Book::with_long_lists(2, 61));
        for event in server.live.events.iter_mut().chain(&mut server.test.events) {
            change_time(event, |created_at| {
                let (day, time) = created_at.split_once('T').expect("the time contains a T");
                let hour: u32 = time[..2].parse().expect("the time starts with the hour");
                json!(format!("{day}T{:02}{}", hour + 1, &time[2..]))
            });
        }
    }),
    event_fault("times have no zone", &["events.created_at"], |event| {
        change_time(event, |time| json!(time.replace('Z', "")))
    })
    .may_fail(&["paging.newest_first"]),
    event_fault("times have a space and no zone, as in a database", &["events.created_at"], |event| {
        change_time(event, |time| json!(time.replace('T', " ").replace('Z', "")))
    }),
    event_fault("times are seconds since 1970", &["events.created_at"], |event| {
        change_time(event, |_| json!(1_764_547_200))
    }),
    event_fault("times are in the format of RFC 2822", &["events.created_at"], |event| {
        change_time(event, |_| json!("Mon, 01 Dec 2025 00:00:00 GMT"))
    }),
    single_event_fault("only a single event has local time", &["events.created_at"], |_, response| {
        let time = response.body["data"]["created_at"]
            .as_str()
            .expect("the time is a string")
            .replace('Z', "-05:00");
        response.body["data"]["created_at"] = json!(time);
    }),
    charge_list_fault(
        "an unfiltered page of 100 shows stale charges",
        &["events.recorded"],
        |request, response| {
            if request.number("per_page") == Some(100) && request.query.len() == 1 {
                for charge in response.body["data"].as_array_mut().into_iter().flatten() {
                    charge["status"] = json!("pending");
                }
            }
        },
    )
    .may_fail(&["filters.total", "filters.combined", "filters.status", "lists.complete"]),
    single_event_fault(
        "a single event shows its charge before the payment",
        &["events.single"],
        |_, response| {
            if response.body["data"]["charge"]["status"] == "paid" {
                response.body["data"]["charge"]["status"] = json!("pending");
            }
        },
    )
    .may_fail(&["charges.status"]),
    server_fault("a charge is created twice", &["events.recorded"], |server| {
        let index = server
            .test
            .events
            .iter()
            .position(|event| event["type"] == "charge.created")
            .expect("the book has such an event");
        let mut duplicate = server.test.events[index].clone();
        duplicate["id"] = json!("0190a5c4-7f3e-7ab2-8def-bbbbbbbbbbbb");
        server.test.events.insert(index, duplicate);
    })
    .may_fail(&["filters.total"]),
    server_fault("a void invoice is paid", &["events.recorded"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let paid = book
                .events
                .iter()
                .find(|event| event["type"] == "invoice.paid")
                .expect("the book has such an event")
                .clone();
            let is_sent = |event: &&mut Value| {
                event["type"] == "invoice.sent" && event["invoice"]["code"] == paid["invoice"]["code"]
            };
            let voided = book.events.iter_mut().find(is_sent).expect("the book has such an event");
            voided["type"] = json!("invoice.voided");
            voided["created_at"] = paid["invoice"]["created_at"].clone();
        }
    })
    .may_fail(&["invoices.settled"]),
    server_fault("an invoice is paid twice by one payment", &["invoices.settled"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let index = book
                .events
                .iter()
                .position(|event| event["type"] == "invoice.paid")
                .expect("the book has such an event");
            let mut duplicate = book.events[index].clone();
            let id = duplicate["id"].as_str().expect("the id is a string").to_owned();
            duplicate["id"] = json!(format!("{}f{}", &id[..24], &id[25..]));
            book.events.insert(index, duplicate);
        }
    }),
    charge_list_fault(
        "canceled charges are listed with a zero amount",
        &["lists.complete"],
        |_, response| {
            for charge in response.body["data"].as_array_mut().into_iter().flatten() {
                if charge["status"] == "canceled" {
                    charge["fiat_amount"] = json!("0.00");
                }
            }
        },
    ),
    server_fault("a charge has no charge.created event", &["events.recorded"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let created = book.events.iter().position(|event| event["type"] == "charge.created");
            book.events.remove(created.expect("a charge was created"));
        }
    }),
    server_fault(
        "a listed charge without created_at has no charge.created event",
        &["events.recorded"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                for charge in &mut book.charges {
                    charge.as_object_mut().expect("the charge is an object").remove("created_at");
                }
                let mut created =
                    (0..book.events.len()).filter(|i| book.events[*i]["type"] == "charge.created");
                let second = created.nth(1).expect("two charges were created");
                book.events.remove(second);
            }
        },
    ),
    server_fault("a charge with events is not listed", &["lists.complete"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let is_hidden =
                |charge: &Value| charge["status"] == "canceled" && charge["payment_link"].is_null();
            let index = book.charges.iter().position(is_hidden);
            book.charges.remove(index.expect("a charge without a link was canceled"));
        }
    }),
    single_event_fault(
        "a single event is wrapped in a list",
        &["events.single", "events.id"],
        |_, response| response.body = json!({ "data": [response.body["data"]] }),
    )
    .may_fail(&["events.type", "events.details", "events.created_at"]),
    single_event_fault("single events are not found", &["events.single"], |_, response| {
        *response = EditableResponse::json(404, json!({ "message": "No route." }))
    }),
    server_fault("a single event is always the oldest one", &["events.single"], |server| {
        let oldest = server.test.events.last().cloned();
        server.rewrite_responses(move |request, response| {
            if response.status == 200 && request.path.starts_with("/v1/events/") {
                response.body["data"] = json!(oldest);
            }
        });
    }),
];

fn rename_event_type(server: &mut FakeServer, from: &'static str, to: &'static str) {
    for book in [&mut server.live, &mut server.test] {
        for event in book.events.iter_mut().filter(|event| event["type"] == from) {
            event["type"] = json!(to);
        }
    }
}

/// Replaces the time of an event.
fn change_time(event: &mut Value, change: fn(&str) -> Value) {
    event["created_at"] = change(event["created_at"].as_str().expect("the time is a string"));
}
