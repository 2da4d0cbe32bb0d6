//! Charges and invoices in all places: in deliveries, in listed events and in single events.
//!
//! An event carries the full charge or the full invoice, so what is said of their fields holds in each of these
//! places. Only how many decimals an amount has, and how exact `paid_at` is, is said of deliveries alone.

use conformance_model::reading::{own_event_asked, single_event, text_at};
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::{CheckError, Held, Judged};
use conformance_model::words::Part;
use serde_json::Value;

use crate::check::Flaw;
use crate::delivered::{caught, missing};
use crate::evidence::pages;

/// A charge or an invoice, and where it was seen.
pub(super) struct Subject {
    pub(super) object: Value,
    /// The type of the event that carries it.
    kind: String,
    pub(super) is_delivered: bool,
    exchange: Option<u32>,
    /// The name of the place in findings.
    place: String,
}

impl Subject {
    /// Until it is paid, much of a charge may be open: then null passes, and so does a field that is not there yet.
    pub(super) fn is_paid(&self) -> bool {
        self.kind == "charge.paid" || text_at(&self.object, &["status"]) == Some("paid")
    }

    /// Returns `true` if the event itself is the payment.
    pub(super) fn is_payment(&self) -> bool {
        self.kind == "charge.paid"
    }

    /// Returns `true` if the event itself says that an invoice was settled.
    pub(super) fn is_settlement(&self) -> bool {
        self.kind == "invoice.paid"
    }

    pub(super) fn broken(&self, expected: impl Into<String>, actual: impl Into<String>) -> CheckError {
        CheckError::broken(self.exchange, expected, format!("{} ({})", actual.into(), self.place))
    }
}

/// Every charge or invoice that was seen. The error says why there is none.
pub(super) fn subjects(recording: &Recording, member: &str) -> Result<Vec<Subject>, CheckError> {
    let mut found = Vec::new();
    if let Ok(catch) = caught(recording) {
        for seen in catch.readable() {
            let object = seen.body.as_ref().and_then(|body| body.get("data")?.get(member)).cloned();
            let Some(object) = object.filter(Value::is_object) else { continue };
            let kind = seen.kind().unwrap_or_default().to_owned();
            if kind.split('.').next().is_some_and(|it| it != member && matches!(it, "charge" | "invoice")) {
                continue;
            }
            found.push(Subject { object, kind, is_delivered: true, exchange: None, place: seen.name() });
        }
    }
    let views = pages(recording);
    let listed = views.iter().filter(|it| it.ask.list == List::Events);
    let listed = listed.flat_map(|it| it.rows().iter().map(|row| (it.number(), row.clone())));
    let own =
        recording.exchanges.iter().filter(|it| it.status() == Some(200) && own_event_asked(it).is_some());
    let alone = own.filter_map(|it| Some((it.number, single_event(it)?)));
    for (number, event) in listed.chain(alone) {
        let Some(object) = event.get(member).filter(|it| it.is_object()).cloned() else { continue };
        let place = format!("event {}", text_at(&event, &["id"]).unwrap_or("without an id"));
        let kind = text_at(&event, &["type"]).unwrap_or_default().to_owned();
        // Of what does not belong into an event, events.subject tells.
        if kind.split('.').next() != Some(member) {
            continue;
        }
        found.push(Subject { object, kind, is_delivered: false, exchange: Some(number), place });
    }
    if found.is_empty() { Err(none_of(recording, &format!("a {member}"))) } else { Ok(found) }
}

/// Returns the error for a kind that was not seen. A run without a receiver cannot cause one.
pub(super) fn none_of(recording: &Recording, wants: &str) -> CheckError {
    if recording.without.contains(&Part::Webhooks) {
        return CheckError::Inapplicable(format!("no event shows {wants}, and deliveries are left out"));
    }
    caught(recording).err().unwrap_or_else(|| missing(wants))
}

/// Judges every object that `flaw` says something of: `Some(None)` is fine.
pub(super) fn each_subject(
    recording: &Recording,
    member: &str,
    wants: &str,
    flaw: impl Fn(&Subject) -> Option<Flaw>,
) -> Judged {
    let mut judged = false;
    for subject in subjects(recording, member)? {
        match flaw(&subject) {
            None => {}
            Some(None) => judged = true,
            Some(Some((expected, actual))) => return Err(subject.broken(expected, actual)),
        }
    }
    if judged { Ok(Held::Plainly) } else { Err(none_of(recording, wants)) }
}
