//! [`Traffic`]: changes of an account during a run: new records, and records that change their status.
//!
//! It is pseudorandom and uses the server's clock, so runs with the same seed have the same traffic.

use std::time::Duration;

use conformance_model::reading::next_random;
use serde_json::{Value, json};

use super::book::Book;
use super::http_server::timestamp;

/// The first number of new records, beyond those of existing ones.
const FIRST_NUMBER: u64 = 1_000;
/// The number of changes after which no more are made, so that a run of several minutes need not read thousands of records.
const CHANGES_MAX: u64 = 400;

/// The traffic of one account, in both modes.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The state of the random number generator.
    state: u64,
    /// The mean time between two changes, in microseconds.
    period: u64,
    /// The maximum number of simultaneous changes.
    burst: u64,
    /// The time of the next changes, in microseconds of the server's clock; `None` before the first request.
    next_at: Option<u64>,
    /// The number of changes so far, including those that found no record to change.
    changes: u64,
}

impl Traffic {
    /// Creates traffic of one change per `period` on average, in groups of up to `burst`.
    pub fn new(seed: u64, period: Duration, burst: u64) -> Traffic {
        let period = u64::try_from(period.as_micros()).expect("the period fits in a u64").max(1);
        Traffic { state: seed, period, burst: burst.max(1), next_at: None, changes: 0 }
    }

    fn next_below(&mut self, bound: u64) -> u64 {
        next_random(&mut self.state) % bound
    }

    fn next_index(&mut self, len: usize) -> usize {
        usize::try_from(self.next_below(len as u64)).expect("the index fits in a usize")
    }

    /// Applies all changes that are due by `now` to the books of live and test mode, and sets the time of both books.
    pub(super) fn run_until(&mut self, now: u64, books: [&mut Book; 2]) {
        let [live, test] = books;
        loop {
            let next_at = match self.next_at {
                Some(next_at) => next_at,
                None => now + self.next_below(self.period),
            };
            self.next_at = Some(next_at);
            if next_at > now || self.changes >= CHANGES_MAX {
                break;
            }
            let count = 1 + self.next_below(self.burst);
            for _ in 0..count {
                let (book, book_number) =
                    if self.next_below(2) == 0 { (&mut *live, 1) } else { (&mut *test, 2) };
                book.now = Some(timestamp(next_at));
                self.change_record(book, book_number);
                self.changes += 1;
            }
            // The pause after `count` changes is between 0.5 and 1.5 times its mean.
            let mean = self.period * count;
            self.next_at = Some(next_at + mean / 2 + self.next_below(mean.max(1)));
        }
        for book in [live, test] {
            book.now = Some(timestamp(now));
        }
    }

    /// At random, creates a charge or an invoice, ends a pending charge, or pays an open invoice with a pending charge.
    /// Changes nothing if there is no record to end or pay.
    fn change_record(&mut self, book: &mut Book, book_number: u64) {
        let number = FIRST_NUMBER + self.changes;
        match self.next_below(6) {
            0 | 1 => book.add_newest(|book| {
                let mut charge = book.new_charge(book_number, number, "pending");
                charge["received_amount"] = json!("0");
                book.add_event(book_number, "charge.created", &charge, &Value::Null);
                book.charges.push(charge);
            }),
            2 => book.add_newest(|book| book.issue_invoice(book_number, number, None)),
            3 => {
                let open_index = book.invoices.iter().position(|invoice| invoice["status"] == "open");
                let pending_index = book.charges.iter().position(|charge| charge["status"] == "pending");
                if let Some((invoice_index, charge_index)) = open_index.zip(pending_index) {
                    finish_charge(book, book_number, charge_index, "paid");
                    pay_invoice(book, book_number, invoice_index, charge_index);
                }
            }
            _ => {
                // Half of the ended charges are paid.
                const FINAL_STATUSES: [&str; 4] = ["paid", "paid", "canceled", "expired"];
                let status = FINAL_STATUSES[self.next_index(FINAL_STATUSES.len())];
                let pending: Vec<_> =
                    (0..book.charges.len()).filter(|i| book.charges[*i]["status"] == "pending").collect();
                if !pending.is_empty() {
                    let index = pending[self.next_index(pending.len())];
                    finish_charge(book, book_number, index, status);
                }
            }
        }
    }
}

/// Gives the pending charge at an index its final status, and records the event.
fn finish_charge(book: &mut Book, book_number: u64, index: usize, status: &str) {
    let now = book.next_time();
    let charge = &mut book.charges[index];
    charge["status"] = json!(status);
    if status == "paid" {
        charge["paid_at"] = json!(now);
        charge["received_amount"] = charge["asset_amount"].clone();
    }
    let charge = charge.clone();
    book.add_newest(|book| book.add_event(book_number, &format!("charge.{status}"), &charge, &Value::Null));
}

/// Marks an open invoice as paid by a charge, and records the event.
fn pay_invoice(book: &mut Book, book_number: u64, invoice_index: usize, charge_index: usize) {
    let charges = json!([{ "code": book.charges[charge_index]["code"], "status": "paid" }]);
    let invoice = &mut book.invoices[invoice_index];
    invoice["status"] = json!("paid");
    invoice["charges"] = charges;
    let invoice = invoice.clone();
    book.add_newest(|book| book.add_event(book_number, "invoice.paid", &Value::Null, &invoice));
}
