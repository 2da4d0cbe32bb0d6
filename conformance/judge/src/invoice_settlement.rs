//! Statements about paid invoices, judged by their events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{Page, charges_of, codes_of, text_at};
use conformance_model::recording::{Caller, List, PageRequest, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::check::Check;
use crate::diff::recorded_at;
use crate::evidence::pages;
use crate::subjects::{Subject, subjects};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check::new("events.both_paid", NEEDS, judge_both_paid),
    Check::new("types.invoice_paid", NEEDS, judge_invoice_paid)
        .with_optional_probes(&[Group::Isolation, Group::Webhooks]),
    Check::new("invoices.settled", NEEDS, judge_settled),
];

/// The longest time between two events of one payment.
const SAME_PAYMENT_MAX: time::Duration = time::Duration::minutes(1);
/// The age of the oldest listed event relative to an event, by which related events must be listed.
const RELATED_EVENTS_MIN_AGE: time::Duration = time::Duration::days(1);
/// The fewest invoices with a paid charge that show that invoices are never settled.
const UNSETTLED_MIN: usize = 3;

/// The long page of events of a mode, and further rows of filtered lists.
struct EventHistory {
    number: u32,
    rows: Vec<Value>,
    /// `true` if the page contains all events.
    is_complete: bool,
    /// The events of lists with one filter.
    filtered: Vec<Value>,
    /// The charges whose events were listed completely by a filter, with the number of the last such page.
    complete_charges: BTreeMap<String, u32>,
    /// The number of the first page that shows an event, by its id.
    first_seen: BTreeMap<String, u32>,
    /// The items of the list of invoices.
    invoices: Vec<Value>,
}

fn event_histories(recording: &Recording) -> Vec<EventHistory> {
    Mode::BOTH.into_iter().filter_map(|mode| event_history(recording, mode)).collect()
}

fn event_history(recording: &Recording, mode: Mode) -> Option<EventHistory> {
    let exchange = recording.find_last(|exchange| {
        let plain = matches!(
            &exchange.purpose,
            Purpose::Page(PageRequest { list: List::Events, filters, link: None, per_page: Some(100), .. })
                if filters.is_empty()
        );
        plain && exchange.caller == Caller::Own(mode) && exchange.status() == Some(200)
    })?;
    let page = Page::from_exchange(exchange)?;
    let rows = page.rows()?.clone();
    let is_whole = page.meta("total").is_some_and(|total| total <= rows.len() as u64);
    let mut history = EventHistory {
        number: exchange.number,
        rows,
        is_complete: is_whole,
        filtered: Vec::new(),
        complete_charges: BTreeMap::new(),
        first_seen: BTreeMap::new(),
        invoices: Vec::new(),
    };
    for view in pages(recording).iter().filter(|view| view.mode == mode) {
        match view.request.list {
            List::Charges => continue,
            List::Invoices => {
                history.invoices.extend(view.rows().iter().cloned());
                continue;
            }
            List::Events => {}
        }
        for id in view.rows().iter().filter_map(|row| text_at(row, &["id"])) {
            history.first_seen.entry(id.to_owned()).or_insert(view.number());
        }
        let [(name, value)] = &view.request.filters[..] else { continue };
        history.filtered.extend(view.rows().iter().cloned());
        let is_all = view.page.meta("total") == Some(view.rows().len() as u64);
        if name == "charge" && is_all && !view.rows().is_empty() {
            history.complete_charges.insert(value.clone(), view.number());
        }
    }
    Some(history)
}

impl EventHistory {
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

    /// Returns `true` if a missing related event is a violation: the events of that time or of all its charges are
    /// listed, and every charge.paid has the code of its charge.
    fn is_conclusive(&self, row: &Value) -> bool {
        let is_named = self.of_type("charge.paid").all(|row| text_at(row, &["charge", "code"]).is_some());
        // The events of a charge are complete as of their page, which must be later than the event.
        let seen = text_at(row, &["id"]).and_then(|id| self.first_seen.get(id));
        let is_listed = |code: &&str| self.complete_charges.get(*code) > seen;
        let is_complete =
            || seen.is_some() && charges_of(row).is_some_and(|codes| codes.iter().all(is_listed));
        is_named && self.is_long_ago(row) && (self.begins_before(row) || is_complete())
    }

    fn begins_before(&self, row: &Value) -> bool {
        let oldest = self.rows.iter().filter_map(recorded_at).min();
        self.is_complete
            || oldest
                .zip(recorded_at(row))
                .is_some_and(|(oldest, then)| then - oldest >= RELATED_EVENTS_MIN_AGE)
    }

    /// Returns `true` if the long page begins before an event, and before related events.
    fn covers_event(&self, row: &Value) -> bool {
        let oldest = self.rows.iter().filter_map(recorded_at).min();
        oldest.zip(recorded_at(row)).is_some_and(|(oldest, then)| then - oldest >= SAME_PAYMENT_MAX)
    }

    /// Returns `true` if an event is old enough that its related events must be listed.
    fn is_long_ago(&self, row: &Value) -> bool {
        let newest = self.rows.iter().filter_map(recorded_at).max();
        newest.zip(recorded_at(row)).is_some_and(|(newest, then)| newest - then >= SAME_PAYMENT_MAX)
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

fn judge_both_paid(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for history in event_histories(recording) {
        for row in history.of_type("invoice.paid") {
            let Some(codes) = charges_of(row).filter(|codes| !codes.is_empty()) else { continue };
            if codes.iter().any(|code| history.paid_charge(code).is_some()) {
                judged = true;
            } else if history.is_conclusive(row) {
                return Err(CheckError::violation(
                    history.number,
                    format!("a charge.paid beside invoice.paid {}", name(row)),
                    format!("none for any of its charges {}", codes.join(", ")),
                ));
            }
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_paid_invoice()) }
}

/// Returns the violation if one payment settled an invoice twice: two invoice.paid at about the same time, and not more than
/// one charge.paid of its charges then.
fn settled_twice(history: &EventHistory) -> Option<CheckError> {
    let paid: Vec<_> =
        history.rows.iter().filter(|row| text_at(row, &["type"]) == Some("invoice.paid")).collect();
    let is_at_once = |one: &Value, other: &Value| {
        recorded_at(one)
            .zip(recorded_at(other))
            .is_some_and(|(one, other)| (one - other).abs() < SAME_PAYMENT_MAX)
    };
    paid.iter().enumerate().find_map(|(index, row)| {
        let code = text_at(row, &["invoice", "code"])?;
        let again = paid[index + 1..]
            .iter()
            .find(|other| text_at(other, &["invoice", "code"]) == Some(code) && is_at_once(row, other))?;
        let charges = charges_of(row).filter(|charges| !charges.is_empty())?;
        let is_payment = |event: &&Value| {
            text_at(event, &["charge", "code"]).is_some_and(|code| charges.contains(&code))
                && is_at_once(event, row)
        };
        let payments: BTreeSet<_> = history.of_type("charge.paid").filter(is_payment).map(name).collect();
        (payments.len() <= 1).then(|| {
            CheckError::violation(
                history.number,
                format!("one invoice.paid of {code} for one charge.paid"),
                format!("{} and {}", name(again), name(row)),
            )
        })
    })
}

/// Returns the violation if the invoice of an invoice.paid has an empty list of charges. The format of the charges is
/// not specified, but an empty list has none in any interpretation.
fn without_charges(recording: &Recording) -> Option<CheckError> {
    let seen = subjects(recording, "invoice").ok()?;
    let empty = |subject: &&Subject| {
        subject.object.get("charges").and_then(Value::as_array).is_some_and(Vec::is_empty)
    };
    let found = seen.iter().filter(|subject| subject.is_settlement()).find(empty)?;
    Some(found.violation("a paid charge in the invoice of an invoice.paid", "charges []"))
}

fn judge_invoice_paid(recording: &Recording) -> CheckResult {
    if let Some(broken) = without_charges(recording) {
        return Err(broken);
    }
    let mut judged = false;
    for history in event_histories(recording) {
        for row in history.of_type("invoice.paid") {
            let Some(charges) = row.get("invoice").and_then(|invoice| invoice.get("charges")?.as_array())
            else {
                continue;
            };
            let by_status = charges.iter().any(|charge| text_at(charge, &["status"]) == Some("paid"));
            let codes = charges_of(row);
            let by_event = codes.iter().flatten().any(|code| history.paid_charge(code).is_some());
            // The format of an invoice's charges is not specified; an unknown format proves nothing.
            if by_event || by_status {
                judged = true;
            } else if codes.is_some() && history.is_conclusive(row) {
                let codes = codes.unwrap_or_default();
                let listed = if codes.is_empty() { "no charge".to_owned() } else { codes.join(", ") };
                return Err(CheckError::violation(
                    history.number,
                    format!("a paid charge in the invoice of invoice.paid {}", name(row)),
                    listed,
                ));
            }
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_paid_invoice()) }
}

fn judge_settled(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for history in event_histories(recording) {
        if let Some(broken) = settled_twice(&history) {
            return Err(broken);
        }
        let voided: BTreeSet<&str> =
            history.of_type("invoice.voided").filter_map(|row| text_at(row, &["invoice", "code"])).collect();
        let of_events = history.rows.iter().chain(&history.filtered).filter_map(|row| row.get("invoice"));
        let mut unsettled = BTreeMap::new();
        for invoice in of_events.chain(&history.invoices) {
            let Some(code) = text_at(invoice, &["code"]) else { continue };
            let codes = codes_of(invoice).unwrap_or_default();
            let Some(paid) = codes.iter().find_map(|code| history.paid_charge(code)) else { continue };
            if history.paid_invoice(code).is_some() {
                judged = true;
            } else if history.is_long_ago(paid) && !voided.contains(code) {
                // A payment for a voided invoice does not settle it.
                unsettled.insert(code, paid);
            }
        }
        // An invoice may have been settled by an earlier charge, but not several, if no event settles any.
        let recent = unsettled.values().filter(|paid| history.covers_event(paid)).count();
        let is_never = || recent >= UNSETTLED_MIN && history.of_type("invoice.paid").next().is_none();
        let sure = unsettled.iter().find(|(_, paid)| history.begins_before(paid) || is_never());
        if let Some((code, paid)) = sure {
            return Err(CheckError::violation(
                history.number,
                format!("an invoice.paid of {code}, one of whose charges has charge.paid {}", name(paid)),
                "none",
            ));
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_paid_invoice()) }
}
