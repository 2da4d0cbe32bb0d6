//! Faults in the charges and invoices of deliveries, in the charges of invoices, and in the events of a paid invoice.

use serde_json::{Value, json};

use crate::mutant::{Mutant, delivered_charge_fault, delivery_body_fault, remove_member, server_fault};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Charges.
    delivered_charge_fault("a charge without metadata", &["charges.fields"], "charge.paid", |charge| {
        remove_member(charge, "metadata")
    }),
    delivered_charge_fault("amounts are numbers", &["charges.amounts"], "charge.refunded", |charge| {
        charge["fiat_amount"] = json!(49.9)
    }),
    delivered_charge_fault(
        "amounts have a thousands separator",
        &["charges.amounts"],
        "charge.expired",
        |charge| charge["fiat_amount"] = json!("1,049.90"),
    ),
    delivered_charge_fault(
        "a paid charge has no received_amount",
        &["charges.amounts"],
        "charge.paid",
        |charge| charge["received_amount"] = Value::Null,
    ),
    delivered_charge_fault(
        "a charge without a payment has no asset_amount",
        &["charges.amounts"],
        "charge.created",
        |charge| charge["asset_amount"] = Value::Null,
    ),
    server_fault(
        "an invoice also lists the charges of the previous invoice",
        &["invoices.fields"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                let previous_charges: Vec<_> =
                    book.invoices.iter().skip(1).map(|invoice| invoice["charges"].clone()).collect();
                for (invoice, previous) in book.invoices.iter_mut().zip(previous_charges) {
                    let charges = invoice["charges"].as_array_mut().expect("`charges` is an array");
                    charges.extend(previous.as_array().expect("`charges` is an array").clone());
                }
            }
        },
    )
    .may_fail(&["invoices.settled"]),
    delivered_charge_fault(
        "crypto amounts have 8 decimals",
        &["charges.asset_amount"],
        "charge.paid",
        |charge| charge["asset_amount"] = json!("0.00076192"),
    ),
    delivered_charge_fault(
        "received amounts have no trailing zeros",
        &["charges.received_amount"],
        "charge.refunded",
        |charge| charge["received_amount"] = json!("0.00076192"),
    ),
    delivered_charge_fault(
        "fiat amounts have one decimal",
        &["charges.fiat_amount"],
        "charge.created",
        |charge| charge["fiat_amount"] = json!("49.9"),
    ),
    delivered_charge_fault("codes are numbers", &["charges.code"], "charge.paid", |charge| {
        charge["code"] = json!(4711)
    }),
    delivered_charge_fault(
        "a paid charge is confirmed, not paid",
        &["charges.status"],
        "charge.paid",
        |charge| charge["status"] = json!("confirmed"),
    ),
    delivered_charge_fault(
        "currencies are objects",
        &["charges.fiat_currency"],
        "charge.canceled",
        |charge| charge["fiat_currency"] = json!({ "code": "EUR" }),
    ),
    delivered_charge_fault("a charge has an empty asset", &["charges.asset"], "charge.underpaid", |charge| {
        charge["asset"] = json!("")
    }),
    delivered_charge_fault(
        "e-mail addresses are lists",
        &["charges.customer_email"],
        "charge.paid",
        |charge| charge["customer_email"] = json!(["ann@shop.example"]),
    ),
    delivered_charge_fault("a description is false", &["charges.description"], "charge.paid", |charge| {
        charge["description"] = json!(false)
    }),
    delivered_charge_fault("empty metadata is an array", &["charges.metadata"], "charge.created", |charge| {
        charge["metadata"] = json!([])
    }),
    delivered_charge_fault(
        "a payment link is an object",
        &["charges.payment_link"],
        "charge.refunded",
        |charge| charge["payment_link"] = json!({ "code": "tea" }),
    ),
    delivered_charge_fault("a paid charge has no paid_at", &["charges.paid_at"], "charge.paid", |charge| {
        charge["paid_at"] = Value::Null
    }),
    delivered_charge_fault("paid_at has no Z", &["charges.paid_at"], "charge.refunded", |charge| {
        charge["paid_at"] = json!("2026-02-01T10:00:00.123456+00:00");
    }),
    // Invoices.
    delivery_body_fault("an invoice has no hosted_url", &["invoices.fields"], |delivery, body| {
        if delivery.event_type == "invoice.viewed" {
            remove_member(&mut body["data"]["invoice"], "hosted_url");
        }
    }),
    server_fault("an invoice is paid, but its charge is not", &["events.both_paid"], |server| {
        for book in [&mut server.live, &mut server.test] {
            change_oldest_type(&mut book.events, "charge.paid", "charge.underpaid");
        }
    })
    .may_fail(&["types.charge_underpaid"]),
    server_fault(
        "the charge of an invoice is paid, but the invoice is not",
        &["invoices.settled"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                change_oldest_type(&mut book.events, "invoice.paid", "invoice.viewed");
            }
        },
    )
    .may_fail(&["events.recorded"]),
    server_fault("an invoice is paid without a charge", &["types.invoice_paid"], |server| {
        for event in &mut server.live.events {
            if event["type"] == "invoice.paid" {
                event["invoice"]["charges"] = json!([]);
            }
        }
    }),
];

/// Changes the type of the oldest event that has the type `from`.
fn change_oldest_type(events: &mut [Value], from: &str, to: &str) {
    let oldest = events.iter_mut().rev().find(|event| event["type"] == from);
    oldest.expect("the book has an event of this type")["type"] = json!(to);
}
