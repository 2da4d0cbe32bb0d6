//! Lies about charges and invoices, in deliveries and in the events that a paid invoice leaves.

use serde_json::{Value, json};

use crate::Mutant;
use crate::deliveries::{remove, words};
use crate::mini::sender::Leaving;

/// Changes the charges that bodies carry.
fn charge(leaving: &Leaving, body: &mut Value, kind: &str, change: fn(&mut Value)) {
    if leaving.kind == kind {
        change(&mut body["data"]["charge"]);
    }
}

pub(crate) const MUTANTS: &[Mutant] = &[
    // Charges.
    Mutant {
        name: "a charge without metadata",
        breaks: &["charges.fields"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| charge(it, body, "charge.paid", |charge| remove(charge, "metadata")))
        },
    },
    Mutant {
        name: "amounts are numbers",
        breaks: &["charges.amounts"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.refunded", |charge| charge["fiat_amount"] = json!(49.9))
            });
        },
    },
    Mutant {
        name: "amounts have a comma",
        breaks: &["charges.amounts"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.expired", |charge| charge["fiat_amount"] = json!("1,049.90"));
            });
        },
    },
    Mutant {
        name: "a paid charge received nothing",
        breaks: &["charges.amounts"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.paid", |charge| charge["received_amount"] = Value::Null);
            });
        },
    },
    Mutant {
        name: "coins have 8 decimals",
        breaks: &["charges.asset_amount"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.paid", |charge| charge["asset_amount"] = json!("0.00076192"));
            });
        },
    },
    Mutant {
        name: "received coins have no trailing zeros",
        breaks: &["charges.received_amount"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.refunded", |charge| charge["received_amount"] = json!("0.00076192"));
            });
        },
    },
    Mutant {
        name: "fiat amounts have one decimal",
        breaks: &["charges.fiat_amount"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.created", |charge| charge["fiat_amount"] = json!("49.9"))
            });
        },
    },
    Mutant {
        name: "codes are numbers",
        breaks: &["charges.code"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| charge(it, body, "charge.paid", |charge| charge["code"] = json!(4711)))
        },
    },
    Mutant {
        name: "a paid charge is confirmed, not paid",
        breaks: &["charges.status"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.paid", |charge| charge["status"] = json!("confirmed"))
            });
        },
    },
    Mutant {
        name: "currencies are objects",
        breaks: &["charges.fiat_currency"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.canceled", |charge| {
                    charge["fiat_currency"] = json!({ "code": "EUR" })
                });
            });
        },
    },
    Mutant {
        name: "a charge without a coin",
        breaks: &["charges.asset"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| charge(it, body, "charge.underpaid", |charge| charge["asset"] = json!("")))
        },
    },
    Mutant {
        name: "e-mail addresses are lists",
        breaks: &["charges.customer_email"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.paid", |charge| {
                    charge["customer_email"] = json!(["ann@shop.example"])
                });
            });
        },
    },
    Mutant {
        name: "no description is false",
        breaks: &["charges.description"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.paid", |charge| charge["description"] = json!(false))
            });
        },
    },
    Mutant {
        name: "empty metadata is an array",
        breaks: &["charges.metadata"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.created", |charge| charge["metadata"] = json!([]))
            });
        },
    },
    Mutant {
        name: "a payment link is an object",
        breaks: &["charges.payment_link"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.refunded", |charge| {
                    charge["payment_link"] = json!({ "code": "tea" })
                });
            });
        },
    },
    Mutant {
        name: "a paid charge does not say when",
        breaks: &["charges.paid_at"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| charge(it, body, "charge.paid", |charge| charge["paid_at"] = Value::Null));
        },
    },
    Mutant {
        name: "paid_at has no Z",
        breaks: &["charges.paid_at"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                charge(it, body, "charge.refunded", |charge| {
                    charge["paid_at"] = json!("2026-02-01T10:00:00.123456+00:00");
                });
            });
        },
    },
    // Invoices.
    Mutant {
        name: "an invoice has no page",
        breaks: &["invoices.fields"],
        may: &[],
        spoil: |mini| {
            words(mini, |it, body| {
                if it.kind == "invoice.viewed" {
                    remove(&mut body["data"]["invoice"], "hosted_url");
                }
            });
        },
    },
    Mutant {
        name: "an invoice is paid, and its charge is not",
        breaks: &["events.both_paid"],
        may: &[],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                retype(&mut book.events, "charge.paid", "charge.underpaid");
            }
        },
    },
    Mutant {
        name: "the charge of an invoice is paid, and the invoice is not",
        breaks: &["invoices.settled"],
        may: &[],
        spoil: |mini| {
            for book in [&mut mini.live, &mut mini.test] {
                retype(&mut book.events, "invoice.paid", "invoice.viewed");
            }
        },
    },
    Mutant {
        name: "an invoice is paid without a charge",
        breaks: &["types.invoice_paid"],
        may: &[],
        spoil: |mini| {
            for event in &mut mini.live.events {
                if event["type"] == "invoice.paid" {
                    event["invoice"]["charges"] = json!([]);
                }
            }
        },
    },
];

/// The oldest event of a type becomes one of another.
fn retype(events: &mut [Value], from: &str, to: &str) {
    let oldest = events.iter_mut().rev().find(|event| event["type"] == from);
    oldest.expect("there is one")["type"] = json!(to);
}
