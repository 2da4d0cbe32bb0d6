//! Statements about paid invoices: each `invoice.paid` belongs to a `charge.paid` of one of the invoice's charges, and
//! an invoice with a `charge.paid` has an `invoice.paid`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{Page, event_charge_codes, invoice_charge_codes, text_at};
use conformance_model::recording::{Caller, List, PageRequest, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::check::Check;
use crate::diff::{CONSISTENCY_TIME, FAULTY_OBJECTS_MIN, LIST_DELAY_MAX};
use crate::evidence::{first_long_page_reads, joined_rows, readable_pages, recorded_at, with_article};
use crate::parsed_deliveries::member_text;
use crate::subjects::{Subject, subjects};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check::new("events.both_paid", NEEDS, judge_both_paid),
    Check::new("types.invoice_paid", NEEDS, judge_invoice_paid)
        .with_optional_probes(&[Group::Isolation, Group::Webhooks]),
    Check::new("invoices.settled", NEEDS, judge_settled),
];

/// The maximum time between the events of one payment.
const SAME_PAYMENT_MAX: time::Duration = time::Duration::minutes(1);
/// The minimum time between the oldest listed event and an event, for all related events to be listed.
const RELATED_EVENTS_SPAN: time::Duration = time::Duration::days(1);
/// The maximum time between the two events of one payment.
const PAIR_DELAY_MAX: time::Duration = time::Duration::seconds(10);
/// The minimum number of invoices with a paid charge, none of them settled, for a violation.
const UNSETTLED_MIN: usize = 3;

/// The events of a mode, from the long page of events that was read last and from filtered lists; and the invoices.
struct EventHistory<'a> {
    /// The number of the long page's exchange.
    number: u32,
    /// The events of the long page.
    rows: Vec<&'a Value>,
    /// `true` if the long page contains all events.
    is_complete: bool,
    /// The longest list of events without gaps that was read at once, newest first.
    recent: Vec<&'a Value>,
    /// The events of lists with one filter.
    filtered: Vec<&'a Value>,
    /// The charges of which a filtered page contains all events, by code, with the exchange number of the last one.
    complete_charges: BTreeMap<String, u32>,
    /// The exchange number of the first page that contains an event, by the id of the event.
    first_seen: BTreeMap<&'a str, u32>,
    /// The rows of all pages of invoices.
    invoices: Vec<&'a Value>,
}

fn event_histories(recording: &Recording) -> Vec<EventHistory<'_>> {
    Mode::BOTH.into_iter().filter_map(|mode| event_history(recording, mode)).collect()
}

fn event_history(recording: &Recording, mode: Mode) -> Option<EventHistory<'_>> {
    let exchange = recording.find_last(|exchange| {
        let is_long_page = matches!(
            &exchange.purpose,
            Purpose::Page(PageRequest { list: List::Events, filters, link: None, per_page: Some(100), .. })
                if filters.is_empty()
        );
        is_long_page && exchange.caller == Caller::Own(mode) && exchange.status() == Some(200)
    })?;
    let page = Page::from_exchange(exchange)?;
    let rows: Vec<_> = page.rows()?.iter().collect();
    let is_complete = page.meta_number("total").is_some_and(|total| total <= rows.len() as u64);
    let views = readable_pages(recording);
    let reads = first_long_page_reads(&views, List::Events, mode);
    let recent = reads.map(|first| joined_rows(&views, first)).max_by_key(Vec::len);
    let mut history = EventHistory {
        number: exchange.number,
        rows,
        is_complete,
        recent: recent.unwrap_or_default().into_iter().map(|joined| joined.row).collect(),
        filtered: Vec::new(),
        complete_charges: BTreeMap::new(),
        first_seen: BTreeMap::new(),
        invoices: Vec::new(),
    };
    for view in views.iter().filter(|view| view.mode == mode) {
        match view.request.list {
            List::Charges => continue,
            List::Invoices => {
                history.invoices.extend(view.rows());
                continue;
            }
            List::Events => {}
        }
        for id in view.rows().iter().filter_map(|row| text_at(row, &["id"])) {
            history.first_seen.entry(id).or_insert(view.number());
        }
        let [(name, value)] = &view.request.filters[..] else { continue };
        history.filtered.extend(view.rows());
        let is_all = view.page.meta_number("total") == Some(view.rows().len() as u64);
        if name == "charge" && is_all && !view.rows().is_empty() {
            history.complete_charges.insert(value.clone(), view.number());
        }
    }
    Some(history)
}

impl<'a> EventHistory<'a> {
    /// Returns all events; some of them repeatedly.
    fn events(&self) -> impl Iterator<Item = &'a Value> {
        self.rows.iter().chain(&self.recent).chain(&self.filtered).copied()
    }

    fn of_type(&self, kind: &str) -> impl Iterator<Item = &'a Value> {
        self.events().filter(move |row| text_at(row, &["type"]) == Some(kind))
    }

    fn paid_charge(&self, code: &str) -> Option<&'a Value> {
        self.of_type("charge.paid").find(|row| text_at(row, &["charge", "code"]) == Some(code))
    }

    fn paid_invoice(&self, code: &str) -> Option<&'a Value> {
        self.of_type("invoice.paid").find(|row| text_at(row, &["invoice", "code"]) == Some(code))
    }

    /// Returns `true` if a `charge.paid` related to the event `row` would be found: `row` is not one of the newest
    /// events, all events of the day before it or of all its charges are listed, or the recent events include all of its
    /// charges, and every `charge.paid` has the code of its charge.
    fn is_conclusive(&self, row: &Value) -> bool {
        let have_codes = self.of_type("charge.paid").all(|row| text_at(row, &["charge", "code"]).is_some());
        // A page with all events of a charge counts only if it was read later than a page with `row`.
        let first_page = text_at(row, &["id"]).and_then(|id| self.first_seen.get(id));
        let has_all_events = |code: &&str| self.complete_charges.get(*code) > first_page;
        let is_complete = || {
            first_page.is_some()
                && event_charge_codes(row).is_some_and(|codes| codes.iter().all(has_all_events))
        };
        let has_all_recent_events = || {
            let codes = event_charge_codes(row).unwrap_or_default();
            !codes.is_empty()
                && codes.iter().all(|code| self.has_recent_history("charge", code))
                && self.is_long_before_newest(row)
        };
        have_codes
            && (self.is_long_ago(row) && (self.covers_day_before(row) || is_complete())
                || has_all_recent_events())
    }

    /// Returns `true` if the recent events include the creation of a charge or an invoice, and so all its events. Those of
    /// the time of the oldest event may be on the next page.
    fn has_recent_history(&self, member: &str, code: &str) -> bool {
        let created = format!("{member}.created");
        let oldest = self.recent.iter().copied().filter_map(recorded_at).min();
        let is_creation = |row: &Value| {
            text_at(row, &["type"]) == Some(&created)
                && text_at(row, &[member, "code"]) == Some(code)
                && recorded_at(row) > oldest
        };
        self.recent.iter().copied().any(is_creation)
    }

    /// Returns `true` if `row` is one of the recent events, and so much older than the newest of them that its related
    /// events must be among them.
    fn is_long_before_newest(&self, row: &Value) -> bool {
        let is_recent = self.recent.iter().any(|recent| recent["id"] == row["id"]);
        let newest = self.recent.iter().copied().filter_map(recorded_at).max();
        is_recent
            && newest
                .zip(recorded_at(row))
                .is_some_and(|(newest, recorded)| newest - recorded >= CONSISTENCY_TIME)
    }

    /// Returns `true` if `row` is one of the recent events, and over a minute older than the newest of them.
    fn is_minute_before_newest(&self, row: &Value) -> bool {
        let is_recent = self.recent.iter().any(|recent| recent["id"] == row["id"]);
        let newest = self.recent.iter().copied().filter_map(recorded_at).max();
        is_recent
            && newest
                .zip(recorded_at(row))
                .is_some_and(|(newest, recorded)| newest - recorded > LIST_DELAY_MAX)
    }

    /// Returns the events of a type that are so old, and whose objects are so new, that the related events must be among the
    /// recent events. `relate` returns the charges and invoices of the related events, and the related event.
    fn related_pairs<'h>(
        &self,
        kind: &str,
        relate: impl Fn(&'a Value) -> Option<RelatedEvent<'h>>,
    ) -> Vec<(&'a Value, Option<&'h Value>)> {
        let rows = self.recent.iter().copied().filter(|row| text_at(row, &["type"]) == Some(kind));
        let is_complete = |related: &RelatedEvent<'_>| {
            related.codes.iter().all(|code| self.has_recent_history(related.member, code))
        };
        rows.filter(|row| self.is_minute_before_newest(row))
            .filter_map(|row| Some((row, relate(row).filter(is_complete)?.event)))
            .collect()
    }

    /// Returns the `invoice.paid` events without a `charge.paid`, and the `charge.paid` events of invoices without an
    /// `invoice.paid`, that are so old that the related event must be listed, even if the account is busy.
    fn check_recent_pairs(&self, kind: &'static str) -> Result<(), CheckError> {
        let voided: BTreeSet<&str> =
            self.of_type("invoice.voided").filter_map(|row| text_at(row, &["invoice", "code"])).collect();
        let owners: BTreeMap<&str, &str> = self
            .events()
            .filter_map(|row| row.get("invoice"))
            .chain(self.invoices.iter().copied())
            .filter_map(|invoice| Some((invoice_charge_codes(invoice)?, text_at(invoice, &["code"])?)))
            .flat_map(|(charges, invoice)| charges.into_iter().map(move |charge| (charge, invoice)))
            .collect();
        let relate = |row| -> Option<RelatedEvent<'_>> {
            if kind == "invoice.paid" {
                let codes = event_charge_codes(row).filter(|codes| !codes.is_empty())?;
                let event = codes.iter().find_map(|code| self.paid_charge(code));
                return Some(RelatedEvent { member: "charge", codes, event });
            }
            let code = *owners.get(text_at(row, &["charge", "code"])?)?;
            let event = self.paid_invoice(code);
            (!voided.contains(code)).then(|| RelatedEvent { member: "invoice", codes: vec![code], event })
        };
        let pairs = self.related_pairs(kind, relate);
        let unpaired: Vec<_> = pairs.iter().filter(|(_, related)| related.is_none()).collect();
        let is_prompt = |(row, related): &(&Value, &Value)| {
            let times = recorded_at(row).zip(recorded_at(related));
            times.is_some_and(|(row, related)| (related - row).abs() <= PAIR_DELAY_MAX)
        };
        let found: Vec<_> = pairs.iter().filter_map(|(row, related)| Some((*row, (*related)?))).collect();
        let other = if kind == "invoice.paid" { "charge.paid" } else { "invoice.paid" };
        // Other events have their related event soon, or no such event is known: no slow job is still to record them.
        let are_prompt = if found.is_empty() {
            self.of_type(other).next().is_none()
        } else {
            found.len() >= FAULTY_OBJECTS_MIN && found.iter().all(is_prompt)
        };
        let Some((row, _)) = unpaired.last().filter(|_| are_prompt && unpaired.len() >= FAULTY_OBJECTS_MIN)
        else {
            return Ok(());
        };
        Err(CheckError::violation(
            self.number,
            format!("{} beside {kind} {}", with_article(other), event_id(row)),
            format!("no {other} within a minute; {} more {kind} lack one, too", unpaired.len() - 1),
        ))
    }

    /// Returns `true` if the long page has all events of the day before `row`, or all events.
    fn covers_day_before(&self, row: &Value) -> bool {
        let oldest = self.rows.iter().copied().filter_map(recorded_at).min();
        self.is_complete
            || oldest
                .zip(recorded_at(row))
                .is_some_and(|(oldest, recorded)| recorded - oldest >= RELATED_EVENTS_SPAN)
    }

    /// Returns `true` if the long page has an event that is older than `row` and its related events.
    fn covers_event(&self, row: &Value) -> bool {
        let oldest = self.rows.iter().copied().filter_map(recorded_at).min();
        oldest.zip(recorded_at(row)).is_some_and(|(oldest, recorded)| recorded - oldest >= SAME_PAYMENT_MAX)
    }

    /// Returns `true` if an event is so much older than the newest that its related events must have been recorded.
    fn is_long_ago(&self, row: &Value) -> bool {
        let newest = self.rows.iter().copied().filter_map(recorded_at).max();
        newest.zip(recorded_at(row)).is_some_and(|(newest, recorded)| newest - recorded >= CONSISTENCY_TIME)
    }
}

/// The event that a payment produces beside another one, and the objects whose events must be known to find it.
struct RelatedEvent<'h> {
    /// `charge` or `invoice`.
    member: &'static str,
    codes: Vec<&'h str>,
    event: Option<&'h Value>,
}

fn event_id(row: &Value) -> &str {
    text_at(row, &["id"]).unwrap_or("without an id")
}

fn no_paid_invoice() -> CheckError {
    CheckError::unjudged(
        "no event shows a paid invoice with its charges",
        "issue an invoice, pay one of its charges, then check again",
    )
}

fn judge_both_paid(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for history in event_histories(recording) {
        history.check_recent_pairs("invoice.paid")?;
        for row in history.of_type("invoice.paid") {
            let Some(codes) = event_charge_codes(row).filter(|codes| !codes.is_empty()) else { continue };
            if codes.iter().any(|code| history.paid_charge(code).is_some()) {
                judged = true;
            } else if history.is_conclusive(row) {
                return Err(CheckError::violation(
                    history.number,
                    format!("a charge.paid beside invoice.paid {}", event_id(row)),
                    format!("none for any of its charges {}", codes.join(", ")),
                ));
            }
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_paid_invoice()) }
}

/// Returns the violation if one payment settled an invoice twice: two `invoice.paid` at about the
/// same time, with at most one `charge.paid` of its charges at that time.
fn settled_twice(history: &EventHistory) -> Option<CheckError> {
    let rows = if history.recent.len() > history.rows.len() { &history.recent } else { &history.rows };
    let paid: Vec<_> = rows.iter().filter(|row| text_at(row, &["type"]) == Some("invoice.paid")).collect();
    let is_same_payment = |first: &Value, second: &Value| {
        recorded_at(first)
            .zip(recorded_at(second))
            .is_some_and(|(first, second)| (first - second).abs() < SAME_PAYMENT_MAX)
    };
    paid.iter().enumerate().find_map(|(index, row)| {
        let code = text_at(row, &["invoice", "code"])?;
        let repeated = paid[index + 1..].iter().find(|second| {
            text_at(second, &["invoice", "code"]) == Some(code) && is_same_payment(row, second)
        })?;
        let charges = event_charge_codes(row).filter(|charges| !charges.is_empty())?;
        let is_payment = |event: &&Value| {
            text_at(event, &["charge", "code"]).is_some_and(|code| charges.contains(&code))
                && is_same_payment(event, row)
        };
        let payments: BTreeSet<_> = history.of_type("charge.paid").filter(is_payment).map(event_id).collect();
        (payments.len() <= 1).then(|| {
            CheckError::violation(
                history.number,
                format!("one invoice.paid of {code} for one charge.paid"),
                format!("{} and {}", event_id(repeated), event_id(row)),
            )
        })
    })
}

/// Returns the violation if the charges in the invoice of an `invoice.paid` are empty or null. Their format is not specified,
/// but these values contain no charge in any interpretation. The invoice of a test delivery may not exist.
fn settled_without_charges(invoices: &[Subject<'_>]) -> Option<CheckError> {
    let is_empty = |charges: &Value| match charges {
        Value::Null => true,
        Value::Array(charges) => charges.is_empty(),
        Value::Object(charges) => charges.is_empty(),
        _ => false,
    };
    let has_empty_charges = |subject: &&Subject<'_>| subject.object.get("charges").is_some_and(is_empty);
    let mut settled = invoices.iter().filter(|subject| subject.is_settlement() && subject.mode.is_some());
    let invoice = settled.find(has_empty_charges)?;
    let actual = member_text(invoice.object, "charges");
    Some(invoice.violation("a paid charge in the invoice of an invoice.paid", actual))
}

/// The minimum number of settled invoices, none of them with a paid charge, for a violation.
const WITHOUT_PAID_CHARGE_MIN: usize = 3;

/// Checks that the charges in settled invoices do not all have the status of new charges, although `charge.paid` shows the
/// status `paid`. Charges without a status, or with other statuses, prove nothing.
fn check_charges_are_paid(recording: &Recording, invoices: &[Subject<'_>]) -> Result<(), CheckError> {
    let charges = subjects(recording, "charge").unwrap_or_default();
    for is_delivered in [true, false] {
        let statuses = |kind: &str| -> BTreeSet<&str> {
            let of_kind =
                charges.iter().filter(|charge| charge.kind == kind && charge.is_delivered == is_delivered);
            of_kind.filter_map(|charge| text_at(charge.object, &["status"])).collect()
        };
        let (new, paid) = (statuses("charge.created"), statuses("charge.paid"));
        let settled: Vec<_> = invoices
            .iter()
            .filter(|invoice| invoice.is_settlement() && invoice.is_delivered == is_delivered)
            .collect();
        let codes: BTreeSet<_> =
            settled.iter().filter_map(|invoice| text_at(invoice.object, &["code"])).collect();
        let are_new = |invoice: &&Subject<'_>| {
            let charges = invoice.object["charges"].as_array();
            let is_new =
                |charge: &Value| text_at(charge, &["status"]).is_some_and(|status| new.contains(status));
            charges.is_some_and(|charges| !charges.is_empty() && charges.iter().all(is_new))
        };
        let has_fault = codes.len() >= WITHOUT_PAID_CHARGE_MIN
            && paid.contains("paid")
            && !new.contains("paid")
            && settled.iter().all(are_new);
        if let Some(invoice) = settled.last().filter(|_| has_fault) {
            let actual =
                format!("{}, and no paid charge in any other", member_text(invoice.object, "charges"));
            return Err(invoice.violation("a paid charge in the invoice of an invoice.paid", actual));
        }
    }
    Ok(())
}

fn judge_invoice_paid(recording: &Recording) -> CheckResult {
    let invoices = subjects(recording, "invoice").unwrap_or_default();
    if let Some(violation) = settled_without_charges(&invoices) {
        return Err(violation);
    }
    check_charges_are_paid(recording, &invoices)?;
    let mut judged = false;
    for history in event_histories(recording) {
        for row in history.of_type("invoice.paid") {
            let Some(charges) = row.get("invoice").and_then(|invoice| invoice.get("charges")?.as_array())
            else {
                continue;
            };
            let has_paid_status = charges.iter().any(|charge| text_at(charge, &["status"]) == Some("paid"));
            let codes = event_charge_codes(row);
            let has_paid_event = codes.iter().flatten().any(|code| history.paid_charge(code).is_some());
            // The format of an invoice's charges is not specified; an unknown format proves nothing.
            if has_paid_event || has_paid_status {
                judged = true;
            } else if codes.is_some() && history.is_conclusive(row) {
                let codes = codes.unwrap_or_default();
                let listed = if codes.is_empty() { "no charge".to_owned() } else { codes.join(", ") };
                return Err(CheckError::violation(
                    history.number,
                    format!("a paid charge in the invoice of invoice.paid {}", event_id(row)),
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
        if let Some(violation) = settled_twice(&history) {
            return Err(violation);
        }
        history.check_recent_pairs("charge.paid")?;
        let voided: BTreeSet<&str> =
            history.of_type("invoice.voided").filter_map(|row| text_at(row, &["invoice", "code"])).collect();
        let of_events = history.events().filter_map(|row| row.get("invoice"));
        let mut unsettled = BTreeMap::new();
        for invoice in of_events.chain(history.invoices.iter().copied()) {
            let Some(code) = text_at(invoice, &["code"]) else { continue };
            let codes = invoice_charge_codes(invoice).unwrap_or_default();
            let Some(paid_event) = codes.iter().find_map(|code| history.paid_charge(code)) else { continue };
            if history.paid_invoice(code).is_some() {
                judged = true;
            } else if (history.is_long_ago(paid_event) || history.is_long_before_newest(paid_event))
                && !voided.contains(code)
            {
                // A payment for a voided invoice does not settle it.
                unsettled.insert(code, paid_event);
            }
        }
        // A single invoice may have been settled by an earlier charge, but not all of several.
        let covered_count = unsettled.values().filter(|paid_event| history.covers_event(paid_event)).count();
        let is_none_settled =
            || covered_count >= UNSETTLED_MIN && history.of_type("invoice.paid").next().is_none();
        let has_recent_history = |code: &str, paid_event: &Value| {
            history.has_recent_history("invoice", code) && history.is_long_before_newest(paid_event)
        };
        let violating = unsettled.iter().find(|(code, paid_event)| {
            history.is_long_ago(paid_event) && (history.covers_day_before(paid_event) || is_none_settled())
                || has_recent_history(code, paid_event)
        });
        if let Some((code, paid_event)) = violating {
            return Err(CheckError::violation(
                history.number,
                format!(
                    "an invoice.paid of {code}, one of whose charges has charge.paid {}",
                    event_id(paid_event)
                ),
                "none",
            ));
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_paid_invoice()) }
}
