//! Faults in the events of a payment, compared with the state of the charge.

use serde_json::{Value, json};

use crate::fake::FakeServer;
use crate::mutant::{Mutant, charges, rule};

const WHOLE: &str = "0.00076192";
const HALF: &str = "0.00038096";
/// An amount of more than half of the price, but less than the price.
const MOST: &str = "0.00060000";
/// The number of the first recorded charge. The others have smaller ones.
const FIRST: u64 = 50;

pub(crate) const MUTANTS: &[Mutant] = &[
    rule("a charge has a time of payment from the start", &["charges.paid_at"], |server| {
        record_charges(server, &[&[("charge.created", "0", true), ("charge.payment_detected", WHOLE, true)]]);
    }),
    rule("a canceled charge has a time of payment", &["charges.paid_at"], |server| {
        record_charges(server, &[&[("charge.created", "0", false), ("charge.canceled", "0", true)]]);
    }),
    rule("a charge with the whole amount is underpaid", &["types.charge_underpaid"], |server| {
        record_charges(server, &[&charge_history("charge.underpaid", WHOLE)]);
    }),
    rule(
        "charges are paid with less than others were underpaid with",
        &["types.charge_underpaid"],
        |server| {
            let (underpaid, paid) =
                (charge_history("charge.underpaid", MOST), charge_history("charge.paid", HALF));
            record_charges(server, &[&underpaid, &paid, &paid, &paid, &underpaid]);
        },
    ),
    rule("charges are paid although nothing was received", &["types.charge_underpaid"], |server| {
        let paid = charge_history("charge.paid", "0.00000000");
        record_charges(server, &[&paid, &paid]);
    }),
    rule("charges are paid at their creation", &["charges.paid_at"], |server| {
        let paid = charge_history("charge.paid", WHOLE);
        record_charges(server, &[&paid, &paid]);
        for row in
            server.test.events.iter_mut().map(|event| &mut event["charge"]).chain(&mut server.test.charges)
        {
            if row["status"] == "paid" {
                row["paid_at"] = row["created_at"].clone();
            }
        }
    }),
    rule("a paid charge expires", &["events.recorded"], |server| {
        let paid = charge_history("charge.paid", WHOLE);
        record_charges(server, &[&[&paid[..], &[("charge.expired", WHOLE, true)]].concat()]);
    }),
    rule("a payment is recorded twice", &["events.recorded"], |server| {
        let paid = charge_history("charge.paid", WHOLE);
        record_charges(server, &[&[&paid[..], &[("charge.paid", WHOLE, true)]].concat()]);
    }),
    rule("a payment has two events of one transaction", &["events.recorded"], |server| {
        server.test.choices.current_objects = true;
        let paid = charge_history("charge.paid", WHOLE);
        record_charges(server, &[&[&paid[..], &[("charge.paid", WHOLE, true)]].concat()]);
        for event in server.test.events.iter_mut().filter(|event| event["type"] == "charge.paid") {
            let code = event["charge"]["code"].clone();
            event["details"] = json!({ "txid": code });
        }
    }),
    rule("refunds are recorded as cancelations", &["events.recorded"], |server| {
        record_refunds(server);
        for event in server.test.events.iter_mut().filter(|event| event["type"] == "charge.refunded") {
            event["type"] = json!("charge.canceled");
        }
    }),
    rule("no refund is recorded", &["events.recorded"], |server| {
        record_refunds(server);
        server.test.events.retain(|event| event["type"] != "charge.refunded");
    })
    .may_fail(&["lists.complete"]),
    rule("late funds are recorded as a payment", &["events.recorded"], |server| {
        let [created, detected, paid] = charge_history("charge.paid", WHOLE);
        let late = [created, ("charge.expired", "0", false), detected, paid];
        record_charges(server, &[&late, &late]);
    }),
    charges("listed charges have no time of payment", &["lists.complete"], |_, reply| {
        reply.body["data"].as_array_mut().into_iter().flatten().for_each(|row| row["paid_at"] = Value::Null);
    }),
    rule(
        "listed charges that were paid within a day have no time of payment",
        &["lists.complete"],
        |server| {
            for book in [&mut server.live, &mut server.test] {
                let lists = [&mut book.charges, &mut book.invoices, &mut book.events];
                for row in lists.into_iter().flatten() {
                    let recent = row.to_string().replace("2025-12-01T", "2025-12-31T");
                    *row = recent.parse().expect("valid JSON");
                }
            }
            server.rewrite(|request, reply| {
                let rows = reply.body["data"].as_array_mut().filter(|_| request.path == "/v1/charges");
                rows.into_iter().flatten().for_each(|row| row["paid_at"] = Value::Null);
            });
        },
    ),
    rule("no invoice is ever paid", &["invoices.settled"], |server| {
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

/// Returns the events of a charge with one transfer.
fn charge_history(kind: &'static str, received: &'static str) -> [(&'static str, &'static str, bool); 3] {
    let is_paid = kind == "charge.paid";
    [("charge.created", "0", false), ("charge.payment_detected", received, false), (kind, received, is_paid)]
}

/// Records two refunded charges in test mode.
fn record_refunds(server: &mut FakeServer) {
    let paid = charge_history("charge.paid", WHOLE);
    let refunded = [&paid[..], &[("charge.refunded", WHOLE, true)]].concat();
    record_charges(server, &[&refunded, &refunded]);
}

/// Records charges in test mode.
fn record_charges(server: &mut FakeServer, histories: &[&[(&str, &str, bool)]]) {
    for (number, history) in (FIRST..).zip(histories) {
        server.test.record_charge(2, number, history);
    }
}
