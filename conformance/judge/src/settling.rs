//! The traces of a paid invoice in the events that the API shows.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::reading::{Page, charges_of, codes_of, text_at};
use conformance_model::recording::{Caller, List, PageAsk, Purpose, Recording};
use conformance_model::verdict::{CheckError, Held, Judged};
use conformance_model::words::Mode;

use crate::check::Check;
use crate::contrast::at;
use crate::evidence::pages;
use crate::subjects::{Subject, subjects};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check::of("events.both_paid", NEEDS, both_paid),
    Check::of("types.invoice_paid", NEEDS, invoice_paid).and(&[Group::Isolation, Group::Webhooks]),
    Check::of("invoices.settled", NEEDS, settled),
];

/// Two events of one act may come to be one after the other.
const APART: time::Duration = time::Duration::minutes(1);
/// The longest time between an event and those that belong to it.
const BEFORE: time::Duration = time::Duration::days(1);

/// The long page of events of a mode, and what filtered lists show besides.
struct Ledger {
    number: u32,
    rows: Vec<Value>,
    /// `true` if the page holds all of them.
    is_whole: bool,
    /// From lists by one filter, whatever their age.
    filtered: Vec<Value>,
    /// Charges of which a list by that filter has shown everything.
    told: BTreeSet<String>,
    /// Items of the list of invoices.
    invoices: Vec<Value>,
}

fn ledgers(recording: &Recording) -> Vec<Ledger> {
    Mode::BOTH.into_iter().filter_map(|mode| ledger(recording, mode)).collect()
}

fn ledger(recording: &Recording, mode: Mode) -> Option<Ledger> {
    let exchange = recording.last(|it| {
        let plain = matches!(
            &it.purpose,
            Purpose::Page(PageAsk { list: List::Events, filters, link: None, per_page: Some(100), .. })
                if filters.is_empty()
        );
        plain && it.caller == Caller::Own(mode) && it.status() == Some(200)
    })?;
    let page = Page::of(exchange)?;
    let rows = page.rows()?.clone();
    let is_whole = page.meta("total").is_some_and(|total| total <= rows.len() as u64);
    let (filtered, told, invoices) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut ledger = Ledger { number: exchange.number, rows, is_whole, filtered, told, invoices };
    for view in pages(recording).iter().filter(|it| it.mode == mode) {
        match view.ask.list {
            List::Charges => continue,
            List::Invoices => {
                ledger.invoices.extend(view.rows().iter().cloned());
                continue;
            }
            List::Events => {}
        }
        let [(name, value)] = &view.ask.filters[..] else { continue };
        ledger.filtered.extend(view.rows().iter().cloned());
        let is_all = view.page.meta("total") == Some(view.rows().len() as u64);
        if name == "charge" && is_all && !view.rows().is_empty() {
            ledger.told.insert(value.clone());
        }
    }
    Some(ledger)
}

impl Ledger {
    fn of_type(&self, kind: &str) -> impl Iterator<Item = &Value> {
        let all = self.rows.iter().chain(&self.filtered);
        all.filter(move |row| text_at(row, &["type"]) == Some(kind))
    }

    fn paid_charge(&self, code: &str) -> Option<&Value> {
        self.of_type("charge.paid").find(|row| text_at(row, &["charge", "code"]) == Some(code))
    }

    fn paid_invoice(&self, code: &str) -> Option<&Value> {
        self.of_type("invoice.paid").find(|row| text_at(row, &["invoice", "code"]) == Some(code))
    }

    /// Returns `true` if a missing companion of an event is a fault: the page holds all events, or goes back long
    /// before it, or shows all events of its charges, and each names the paid charge.
    fn is_telling(&self, row: &Value) -> bool {
        let tells = self.of_type("charge.paid").all(|row| text_at(row, &["charge", "code"]).is_some());
        let is_told =
            || charges_of(row).is_some_and(|codes| codes.iter().all(|code| self.told.contains(*code)));
        tells && self.is_long_ago(row) && (self.goes_back_before(row) || is_told())
    }

    fn goes_back_before(&self, row: &Value) -> bool {
        let oldest = self.rows.iter().filter_map(at).min();
        self.is_whole || oldest.zip(at(row)).is_some_and(|(oldest, then)| then - oldest >= BEFORE)
    }

    /// Returns `true` if so many events followed that its companion would be there.
    fn is_long_ago(&self, row: &Value) -> bool {
        let newest = self.rows.iter().filter_map(at).max();
        newest.zip(at(row)).is_some_and(|(newest, then)| newest - then >= APART)
    }
}

fn name(row: &Value) -> &str {
    text_at(row, &["id"]).unwrap_or("without an id")
}

fn no_paid_invoice() -> CheckError {
    CheckError::unjudged(
        "no event shows an invoice that was paid and which charges it has",
        "issue an invoice, pay one of its charges, then check again",
    )
}

fn both_paid(recording: &Recording) -> Judged {
    let mut judged = false;
    for ledger in ledgers(recording) {
        for row in ledger.of_type("invoice.paid") {
            let Some(codes) = charges_of(row).filter(|codes| !codes.is_empty()) else { continue };
            if codes.iter().any(|code| ledger.paid_charge(code).is_some()) {
                judged = true;
            } else if ledger.is_telling(row) {
                return Err(CheckError::broken(
                    ledger.number,
                    format!("a charge.paid beside invoice.paid {}", name(row)),
                    format!("none for any of its charges {}", codes.join(", ")),
                ));
            }
        }
    }
    if judged { Ok(Held::Plainly) } else { Err(no_paid_invoice()) }
}

/// Wherever an invoice.paid shows: its invoice has a charge. How an invoice tells of its charges is left open, but an
/// empty list tells of none by any reading.
fn without_charges(recording: &Recording) -> Option<CheckError> {
    let seen = subjects(recording, "invoice").ok()?;
    let empty = |it: &&Subject| it.object.get("charges").and_then(Value::as_array).is_some_and(Vec::is_empty);
    let found = seen.iter().filter(|it| it.is_settlement()).find(empty)?;
    Some(found.broken("a paid charge in the invoice of an invoice.paid", "charges []"))
}

fn invoice_paid(recording: &Recording) -> Judged {
    if let Some(broken) = without_charges(recording) {
        return Err(broken);
    }
    let mut judged = false;
    for ledger in ledgers(recording) {
        for row in ledger.of_type("invoice.paid") {
            let Some(charges) = row.get("invoice").and_then(|it| it.get("charges")?.as_array()) else {
                continue;
            };
            let by_status = charges.iter().any(|it| text_at(it, &["status"]) == Some("paid"));
            let codes = charges_of(row);
            let by_event = codes.iter().flatten().any(|code| ledger.paid_charge(code).is_some());
            // How an invoice tells of its charges is left open: what can't be read proves nothing.
            if by_event || by_status {
                judged = true;
            } else if codes.is_some() && ledger.is_telling(row) {
                let codes = codes.unwrap_or_default();
                let told = if codes.is_empty() { "no charge at all".to_owned() } else { codes.join(", ") };
                return Err(CheckError::broken(
                    ledger.number,
                    format!("a paid charge in the invoice of invoice.paid {}", name(row)),
                    told,
                ));
            }
        }
    }
    if judged { Ok(Held::Plainly) } else { Err(no_paid_invoice()) }
}

fn settled(recording: &Recording) -> Judged {
    let mut judged = false;
    for ledger in ledgers(recording) {
        let voided: BTreeSet<&str> =
            ledger.of_type("invoice.voided").filter_map(|row| text_at(row, &["invoice", "code"])).collect();
        let of_events = ledger.rows.iter().chain(&ledger.filtered).filter_map(|row| row.get("invoice"));
        for invoice in of_events.chain(&ledger.invoices) {
            let Some(code) = text_at(invoice, &["code"]) else { continue };
            let codes = codes_of(invoice).unwrap_or_default();
            let Some(paid) = codes.iter().find_map(|code| ledger.paid_charge(code)) else { continue };
            if ledger.paid_invoice(code).is_some() {
                judged = true;
            } else if ledger.goes_back_before(paid) && ledger.is_long_ago(paid) && !voided.contains(code) {
                // Money for an invoice that was withdrawn settles nothing.
                return Err(CheckError::broken(
                    ledger.number,
                    format!("an invoice.paid of {code}, one of whose charges has charge.paid {}", name(paid)),
                    "none",
                ));
            }
        }
    }
    if judged { Ok(Held::Plainly) } else { Err(no_paid_invoice()) }
}
