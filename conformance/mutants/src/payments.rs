//! Faults in the events of payments, compared with the state of the charges.

use serde_json::{Value, json};

use crate::fake::FakeServer;
use crate::fake::book::ChargeEvent;
use crate::mutant::{Mutant, charge_list_fault, server_fault};

/// The price of a charge.
const PRICE: &str = "0.00076192";
/// Half of the price.
const HALF: &str = "0.00038096";
/// An amount between half of the price and the price.
const MOST: &str = "0.00060000";
/// The number of the first charge that a fault adds. Those of the default server are lower.
const FIRST_NUMBER: u64 = 50;

pub(crate) const MUTANTS: &[Mutant] = &[
    server_fault("a charge has paid_at from its creation on", &["charges.paid_at"], |server| {
        record_charges(
            server,
            &[&[
                ChargeEvent::paid("charge.created", "0"),
                ChargeEvent::paid("charge.payment_detected", PRICE),
            ]],
        );
    }),
    server_fault("a canceled charge has paid_at", &["charges.paid_at"], |server| {
        record_charges(
            server,
            &[&[ChargeEvent::unpaid("charge.created", "0"), ChargeEvent::paid("charge.canceled", "0")]],
        );
    }),
    server_fault("a charge with the whole amount is underpaid", &["types.charge_underpaid"], |server| {
        record_charges(server, &[&charge_history("charge.underpaid", PRICE)]);
    }),
    server_fault(
        "charges are paid with less than others were underpaid with",
        &["types.charge_underpaid"],
        |server| {
            let (underpaid, paid) =
                (charge_history("charge.underpaid", MOST), charge_history("charge.paid", HALF));
            record_charges(server, &[&underpaid, &paid, &paid, &paid, &underpaid]);
        },
    ),
    server_fault("charges are paid although nothing was received", &["types.charge_underpaid"], |server| {
        let paid = charge_history("charge.paid", "0.00000000");
        record_charges(server, &[&paid, &paid]);
    }),
    server_fault("paid_at of a charge is its created_at", &["charges.paid_at"], |server| {
        let paid = charge_history("charge.paid", PRICE);
        record_charges(server, &[&paid, &paid]);
        for row in
            server.test.events.iter_mut().map(|event| &mut event["charge"]).chain(&mut server.test.charges)
        {
            if row["status"] == "paid" {
                row["paid_at"] = row["created_at"].clone();
            }
        }
    }),
    server_fault("a paid charge expires", &["events.recorded"], |server| {
        let paid = charge_history("charge.paid", PRICE);
        record_charges(server, &[&[&paid[..], &[ChargeEvent::paid("charge.expired", PRICE)]].concat()]);
    }),
    server_fault("a payment has two charge.paid events", &["events.recorded"], |server| {
        let paid = charge_history("charge.paid", PRICE);
        record_charges(server, &[&[&paid[..], &[ChargeEvent::paid("charge.paid", PRICE)]].concat()]);
    }),
    server_fault(
        "a payment has two charge.paid events with the same transaction",
        &["events.recorded"],
        |server| {
            server.test.choices.events_show_current_objects = true;
            let paid = charge_history("charge.paid", PRICE);
            record_charges(server, &[&[&paid[..], &[ChargeEvent::paid("charge.paid", PRICE)]].concat()]);
            for event in server.test.events.iter_mut().filter(|event| event["type"] == "charge.paid") {
                let code = event["charge"]["code"].clone();
                event["details"] = json!({ "txid": code });
            }
        },
    ),
    server_fault("refunds are recorded as cancellations", &["events.recorded"], |server| {
        record_refunds(server);
        for event in server.test.events.iter_mut().filter(|event| event["type"] == "charge.refunded") {
            event["type"] = json!("charge.canceled");
        }
    }),
    server_fault("no refund is recorded", &["events.recorded"], |server| {
        record_refunds(server);
        server.test.events.retain(|event| event["type"] != "charge.refunded");
    })
    .may_fail(&["lists.complete"]),
    server_fault("a late payment is recorded as a normal payment", &["events.recorded"], |server| {
        let [created, detected, paid] = charge_history("charge.paid", PRICE);
        let late = [created, ChargeEvent::unpaid("charge.expired", "0"), detected, paid];
        record_charges(server, &[&late, &late]);
    }),
    charge_list_fault("listed charges have no paid_at", &["lists.complete"], |_, response| {
        response.body["data"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(|row| row["paid_at"] = Value::Null);
    }),
    server_fault(
        "listed charges have no paid_at, and all records are of the last day",
        &["lists.complete"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                let lists = [&mut book.charges, &mut book.invoices, &mut book.events];
                for row in lists.into_iter().flatten() {
                    // The clock of the server starts on 2026-01-01.
                    let moved = row.to_string().replace("2025-12-01T", "2025-12-31T");
                    *row = moved.parse().expect("valid JSON");
                }
            }
            server.rewrite_responses(|request, response| {
                let rows = response.body["data"].as_array_mut().filter(|_| request.path == "/v1/charges");
                rows.into_iter().flatten().for_each(|row| row["paid_at"] = Value::Null);
            });
        },
    ),
    server_fault("no invoice is ever paid", &["invoices.settled"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let paid: Vec<Value> =
                book.charges.iter().filter(|charge| charge["status"] == "paid").cloned().collect();
            for (invoice, charge) in book.invoices.iter_mut().zip(paid) {
                invoice["charges"] = json!([charge["code"]]);
            }
            book.events.retain(|event| event["type"] != "invoice.paid");
        }
    })
    .may_fail(&["events.recorded", "lists.complete"]),
];

/// Returns the events of a charge with one transfer. The last one has the given type.
fn charge_history(last_type: &'static str, received_amount: &'static str) -> [ChargeEvent; 3] {
    let last = match last_type {
        "charge.paid" => ChargeEvent::paid(last_type, received_amount),
        _ => ChargeEvent::unpaid(last_type, received_amount),
    };
    [
        ChargeEvent::unpaid("charge.created", "0"),
        ChargeEvent::unpaid("charge.payment_detected", received_amount),
        last,
    ]
}

/// Records two refunded charges in test mode.
fn record_refunds(server: &mut FakeServer) {
    let paid = charge_history("charge.paid", PRICE);
    let refunded = [&paid[..], &[ChargeEvent::paid("charge.refunded", PRICE)]].concat();
    record_charges(server, &[&refunded, &refunded]);
}

/// Records charges in test mode.
fn record_charges(server: &mut FakeServer, histories: &[&[ChargeEvent]]) {
    for (number, history) in (FIRST_NUMBER..).zip(histories) {
        server.test.record_charge(2, number, history);
    }
}
