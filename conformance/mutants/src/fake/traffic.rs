//! Live traffic: records are created and change their status while a client reads.
//!
//! It is random with a seed and uses the server's clock, so equal runs have equal traffic.

use std::time::Duration;

use conformance_model::reading::next_random;
use serde_json::{Value, json};

use super::book::Book;
use super::wire::timestamp;

/// The first number of new records, beyond those of existing ones.
const FIRST_NUMBER: u64 = 1_000;
/// The largest number of changes, so that a run of several minutes need not read thousands of records.
const CHANGES_MAX: u64 = 400;

/// The traffic of one account, in both modes.
#[derive(Clone, Debug)]
pub struct Traffic {
    state: u64,
    /// The mean time between two changes, in microseconds.
    period: u64,
    /// The largest number of simultaneous changes.
    burst: u64,
    /// The time of the next changes, in microseconds of the server's clock.
    next: Option<u64>,
    changes: u64,
}

impl Traffic {
    /// Creates traffic of one change per `period` on average, in groups of up to `burst`.
    pub fn new(seed: u64, period: Duration, burst: u64) -> Traffic {
        let period = u64::try_from(period.as_micros()).expect("the period fits in a u64").max(1);
        Traffic { state: seed, period, burst: burst.max(1), next: None, changes: 0 }
    }

    fn next_below(&mut self, bound: u64) -> u64 {
        next_random(&mut self.state) % bound
    }

    /// Applies all due changes to the books of live and test mode.
    pub(super) fn run_until(&mut self, now: u64, books: [&mut Book; 2]) {
        let [live, test] = books;
        loop {
            let next = match self.next {
                Some(next) => next,
                None => now + self.next_below(self.period),
            };
            self.next = Some(next);
            if next > now || self.changes >= CHANGES_MAX {
                break;
            }
            let count = 1 + self.next_below(self.burst);
            for _ in 0..count {
                let (book, world) = if self.next_below(2) == 0 { (&mut *live, 1) } else { (&mut *test, 2) };
                book.now = Some(timestamp(next));
                self.change_record(book, world);
                self.changes += 1;
            }
            // Between half and one and a half times the mean.
            let mean = self.period * count;
            self.next = Some(next + mean / 2 + self.next_below(mean.max(1)));
        }
        for book in [live, test] {
            book.now = Some(timestamp(now));
        }
    }

    fn change_record(&mut self, book: &mut Book, world: u64) {
        let number = FIRST_NUMBER + self.changes;
        match self.next_below(6) {
            0 | 1 => book.add_newest(|book| {
                let mut charge = book.new_charge(world, number, "pending");
                charge["received_amount"] = json!("0");
                book.add_event(world, "charge.created", &charge, &Value::Null);
                book.charges.push(charge);
            }),
            2 => book.add_newest(|book| book.issue_invoice(world, number, None)),
            3 => {
                let open = book.invoices.iter().position(|invoice| invoice["status"] == "open");
                let pending = book.charges.iter().position(|charge| charge["status"] == "pending");
                if let Some((invoice, charge)) = open.zip(pending) {
                    finish_charge(book, world, charge, "paid");
                    pay_invoice(book, world, invoice, charge);
                }
            }
            _ => {
                const ENDS: [&str; 4] = ["paid", "paid", "canceled", "expired"];
                let end = ENDS
                    [usize::try_from(self.next_below(ENDS.len() as u64)).expect("the index fits in a usize")];
                let pending: Vec<_> =
                    (0..book.charges.len()).filter(|at| book.charges[*at]["status"] == "pending").collect();
                if !pending.is_empty() {
                    let which = usize::try_from(self.next_below(pending.len() as u64))
                        .expect("the index fits in a usize");
                    finish_charge(book, world, pending[which], end);
                }
            }
        }
    }
}

/// Changes the status of a pending charge, and records the event.
fn finish_charge(book: &mut Book, world: u64, at: usize, end: &str) {
    let now = book.next_time();
    let charge = &mut book.charges[at];
    charge["status"] = json!(end);
    if end == "paid" {
        charge["paid_at"] = json!(now);
        charge["received_amount"] = charge["asset_amount"].clone();
    }
    let charge = charge.clone();
    book.add_newest(|book| book.add_event(world, &format!("charge.{end}"), &charge, &Value::Null));
}

/// Pays an open invoice by a charge that was just paid.
fn pay_invoice(book: &mut Book, world: u64, invoice: usize, charge: usize) {
    let paid = json!([{ "code": book.charges[charge]["code"], "status": "paid" }]);
    let invoice = &mut book.invoices[invoice];
    invoice["status"] = json!("paid");
    invoice["charges"] = paid;
    let invoice = invoice.clone();
    book.add_newest(|book| book.add_event(world, "invoice.paid", &Value::Null, &invoice));
}
