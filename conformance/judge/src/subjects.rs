//! The charges and invoices in deliveries, listed events and single events.
//!
//! An event contains the full charge or invoice, so the statements about fields apply to all of these. Only the number
//! of decimals of an amount and the precision of `paid_at` are specified for deliveries alone.

use conformance_model::mode::Mode;
use conformance_model::part::Part;
use conformance_model::reading::{parse_utc, requested_own_event, single_event, text_at};
use conformance_model::recording::{Caller, Exchange, List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};
use serde_json::Value;
use time::OffsetDateTime;

use crate::check::Mismatch;
use crate::evidence::{readable_pages, recorded_at};
use crate::parsed_deliveries::{no_delivery_with, received_deliveries};

/// A charge or an invoice, and its source.
pub(super) struct Subject<'a> {
    pub(super) object: &'a Value,
    /// The mode of its event; `None` for a test delivery, whose object may not exist.
    pub(super) mode: Option<Mode>,
    /// The type of its event.
    pub(super) kind: &'a str,
    /// The id of its event, if it has one.
    pub(super) event_id: Option<&'a str>,
    /// The time of its event; `None` for a delivery, which has a time of its own.
    pub(super) recorded_at: Option<OffsetDateTime>,
    /// The time of its event or delivery.
    pub(super) created_at: Option<OffsetDateTime>,
    pub(super) is_delivered: bool,
    /// The number of the exchange; `None` for a delivery.
    pub(super) exchange: Option<u32>,
    /// The name of the source in findings.
    source: String,
}

impl Subject<'_> {
    /// Returns `true` if the charge is paid, by the event or its status. Before that, fields may be null or missing.
    pub(super) fn is_paid(&self) -> bool {
        self.kind == "charge.paid" || text_at(self.object, &["status"]) == Some("paid")
    }

    /// Returns `true` if the event reports the payment of a charge.
    pub(super) fn is_payment(&self) -> bool {
        self.kind == "charge.paid"
    }

    /// Returns `true` if the event reports the payment of an invoice.
    pub(super) fn is_settlement(&self) -> bool {
        self.kind == "invoice.paid"
    }

    pub(super) fn violation(&self, expected: impl Into<String>, actual: impl Into<String>) -> CheckError {
        CheckError::violation(self.exchange, expected, format!("{} ({})", actual.into(), self.source))
    }
}

/// Returns the charges or the invoices of all deliveries and events, or the reason why there are none.
pub(super) fn subjects<'a>(recording: &'a Recording, member: &str) -> Result<Vec<Subject<'a>>, CheckError> {
    let mut subjects = Vec::new();
    if let Ok(received) = received_deliveries(recording) {
        for parsed in received.readable_deliveries() {
            let object = parsed.body.and_then(|body| body.get("data")?.get(member));
            let Some(object) = object.filter(|object| object.is_object()) else { continue };
            let kind = parsed.event_type().unwrap_or_default();
            if kind
                .split('.')
                .next()
                .is_some_and(|prefix| prefix != member && matches!(prefix, "charge" | "invoice"))
            {
                continue;
            }
            subjects.push(Subject {
                object,
                mode: parsed.mode().filter(|_| !parsed.is_test()),
                kind,
                event_id: parsed.text(&["event_id"]),
                recorded_at: None,
                created_at: parsed.text(&["created_at"]).and_then(parse_utc),
                is_delivered: true,
                exchange: None,
                source: parsed.name(),
            });
        }
    }
    let views = readable_pages(recording);
    let listed = views.iter().filter(|view| view.request.list == List::Events);
    let listed = listed.flat_map(|view| view.rows().iter().map(|row| (view.number(), Some(view.mode), row)));
    let own_mode = |exchange: &Exchange| match exchange.caller {
        Caller::Own(mode) => Some(mode),
        _ => None,
    };
    let own_requests = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.status() == Some(200) && requested_own_event(exchange).is_some());
    let single = own_requests
        .filter_map(|exchange| Some((exchange.number, own_mode(exchange), single_event(exchange)?)));
    for (number, mode, event) in listed.chain(single) {
        let Some(object) = event.get(member).filter(|object| object.is_object()) else { continue };
        let source = format!("event {}", text_at(event, &["id"]).unwrap_or("without an id"));
        let kind = text_at(event, &["type"]).unwrap_or_default();
        // events.subject judges a member that does not belong to the type.
        if kind.split('.').next() != Some(member) {
            continue;
        }
        subjects.push(Subject {
            object,
            mode,
            kind,
            event_id: text_at(event, &["id"]),
            recorded_at: recorded_at(event),
            created_at: recorded_at(event),
            is_delivered: false,
            exchange: Some(number),
            source,
        });
    }
    if subjects.is_empty() { Err(no_subject(recording, &format!("a {member}"))) } else { Ok(subjects) }
}

/// Returns the error if no object of a kind was found. In a run without a receiver, the operator cannot cause one.
pub(super) fn no_subject(recording: &Recording, needed: &str) -> CheckError {
    if recording.without.contains(&Part::Webhooks) {
        return CheckError::Inapplicable(format!("no event shows {needed}, and deliveries are left out"));
    }
    received_deliveries(recording).err().unwrap_or_else(|| no_delivery_with(needed))
}

/// Judges the objects for which `mismatch` returns `Some`. `Some(None)` means that the statement holds for the object.
pub(super) fn judge_each_subject(
    recording: &Recording,
    member: &str,
    needed: &str,
    mismatch: impl Fn(&Subject<'_>) -> Option<Option<Mismatch>>,
) -> CheckResult {
    let mut judged = false;
    for subject in subjects(recording, member)? {
        match mismatch(&subject) {
            None => {}
            Some(None) => judged = true,
            Some(Some((expected, actual))) => return Err(subject.violation(expected, actual)),
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_subject(recording, needed)) }
}
