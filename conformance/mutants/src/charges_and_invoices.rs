//! Faults in the charges and invoices of deliveries, and in the events of a paid invoice.

use serde_json::{Value, json};

use crate::mutant::{Mutant, body, charge, remove, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    // Charges.
    charge("a charge without metadata", &["charges.fields"], "charge.paid", |charge| {
        remove(charge, "metadata")
    }),
    charge("amounts are numbers", &["charges.amounts"], "charge.refunded", |charge| {
        charge["fiat_amount"] = json!(49.9)
    }),
    charge("amounts have a comma", &["charges.amounts"], "charge.expired", |charge| {
        charge["fiat_amount"] = json!("1,049.90")
    }),
    charge("a paid charge has no received_amount", &["charges.amounts"], "charge.paid", |charge| {
        charge["received_amount"] = Value::Null
    }),
    charge(
        "a charge without a payment has no asset_amount",
        &["charges.amounts"],
        "charge.created",
        |charge| charge["asset_amount"] = Value::Null,
    ),
    rule("an invoice also lists the charges of the previous invoice", &["invoices.fields"], |server| {
        for book in [&mut server.live, &mut server.test] {
            let previous_charges: Vec<_> =
                book.invoices.iter().skip(1).map(|invoice| invoice["charges"].clone()).collect();
            for (invoice, previous) in book.invoices.iter_mut().zip(previous_charges) {
                let charges = invoice["charges"].as_array_mut().expect("`charges` is an array");
                charges.extend(previous.as_array().expect("`charges` is an array").clone());
            }
        }
    })
    .may_fail(&["invoices.settled"]),
    charge("crypto amounts have 8 decimals", &["charges.asset_amount"], "charge.paid", |charge| {
        charge["asset_amount"] = json!("0.00076192")
    }),
    charge(
        "received amounts have no trailing zeros",
        &["charges.received_amount"],
        "charge.refunded",
        |charge| charge["received_amount"] = json!("0.00076192"),
    ),
    charge("fiat amounts have one decimal", &["charges.fiat_amount"], "charge.created", |charge| {
        charge["fiat_amount"] = json!("49.9")
    }),
    charge("codes are numbers", &["charges.code"], "charge.paid", |charge| charge["code"] = json!(4711)),
    charge("a paid charge is confirmed, not paid", &["charges.status"], "charge.paid", |charge| {
        charge["status"] = json!("confirmed")
    }),
    charge("currencies are objects", &["charges.fiat_currency"], "charge.canceled", |charge| {
        charge["fiat_currency"] = json!({ "code": "EUR" })
    }),
    charge("a charge has an empty asset", &["charges.asset"], "charge.underpaid", |charge| {
        charge["asset"] = json!("")
    }),
    charge("e-mail addresses are lists", &["charges.customer_email"], "charge.paid", |charge| {
        charge["customer_email"] = json!(["ann@shop.example"])
    }),
    charge("a missing description is false", &["charges.description"], "charge.paid", |charge| {
        charge["description"] = json!(false)
    }),
    charge("empty metadata is an array", &["charges.metadata"], "charge.created", |charge| {
        charge["metadata"] = json!([])
    }),
    charge("a payment link is an object", &["charges.payment_link"], "charge.refunded", |charge| {
        charge["payment_link"] = json!({ "code": "tea" })
    }),
    charge("a paid charge has no paid_at", &["charges.paid_at"], "charge.paid", |charge| {
        charge["paid_at"] = Value::Null
    }),
    charge("paid_at has no Z", &["charges.paid_at"], "charge.refunded", |charge| {
        charge["paid_at"] = json!("2026-02-01T10:00:00.123456+00:00");
    }),
    // Invoices.
    body("an invoice has no hosted_url", &["invoices.fields"], |delivery, body| {
        if delivery.kind == "invoice.viewed" {
            remove(&mut body["data"]["invoice"], "hosted_url");
        }
    }),
    rule("an invoice is paid, but its charge is not", &["events.both_paid"], |server| {
        for book in [&mut server.live, &mut server.test] {
            change_oldest_type(&mut book.events, "charge.paid", "charge.underpaid");
        }
    })
    .may_fail(&["types.charge_underpaid"]),
    rule("the charge of an invoice is paid, but the invoice is not", &["invoices.settled"], |server| {
        for book in [&mut server.live, &mut server.test] {
            change_oldest_type(&mut book.events, "invoice.paid", "invoice.viewed");
        }
    })
    .may_fail(&["events.recorded"]),
    rule("an invoice is paid without a charge", &["types.invoice_paid"], |server| {
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
