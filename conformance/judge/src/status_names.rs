//! Statuses that are named after an event type, compared with the events of their objects.
//!
//! The specification names one status only, `paid`, but most services name the others after the event types: `expired`,
//! `canceled`, `voided`. Such a status shows two kinds of faults. An event has the type of another one: a refund is recorded
//! as `charge.canceled`, and its charge is shown as `refunded`. Or an event is missing: an old invoice is listed as `voided`,
//! and has no `invoice.voided`. Statuses with other names prove nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::{LISTED_KINDS, are_most};
use crate::evidence::{PageView, readable_pages, recorded_at, response_date};
use crate::object_history::{
    EVENT_DELAY_MAX, ListedEvent, ObjectHistory, complete_histories, recent_histories,
};
use crate::parsed_deliveries::{ParsedDelivery, received_deliveries};

/// The fewest objects that show a fault. The status of a single one may have changed at the same moment.
const OBJECTS_MIN: usize = 2;
/// The maximum time between a change of a status and its event, if no job records the event.
const RECORDED_TOGETHER_MAX: Duration = Duration::seconds(10);

/// The event types that end an object. If any status is named after its event type, the status after these is.
const END_TYPES: [&str; 4] = ["charge.expired", "charge.canceled", "invoice.paid", "invoice.voided"];

/// Returns the event type that a status is named after.
fn named_type(member: &str, status: &str) -> Option<&'static str> {
    let status = status.to_ascii_lowercase();
    let name = match &*status {
        "cancelled" => "canceled",
        "void" => "voided",
        name => name,
    };
    EVENT_TYPES.into_iter().find(|kind| kind.split_once('.') == Some((member, name)))
}

/// Checks the statuses in events and in lists.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let histories = recent_histories(&views);
    check_types(&histories)?;
    check_missing_events(&views, &histories)?;
    check_delivered_charges(recording, &views)
}

/// Checks for each of the [`END_TYPES`] that its events do not show objects whose status is named after another lasting type.
/// Judges only types of which some event shows a status of its own name.
fn check_types(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let status_type = |history: &ObjectHistory<'_>, event: &ListedEvent<'_>| {
        let (member, _) = event.event_type().split_once('.')?;
        let is_shown = history.is_kind(member) && history.shows_own_state(event);
        text_at(event.row, &[member, "status"])
            .filter(|_| is_shown)
            .and_then(|status| named_type(member, status))
    };
    for kind in END_TYPES {
        let events = histories.iter().flat_map(|history| {
            history
                .of_type(kind)
                .filter_map(move |event| Some((history, event, status_type(history, event)?)))
        });
        let (own, others): (Vec<_>, Vec<_>) = events.partition(|(.., named)| *named == kind);
        let others: Vec<_> = others.into_iter().filter(|(.., named)| is_lasting_type(named)).collect();
        if own.is_empty() || others.len() < OBJECTS_MIN {
            continue;
        }
        let (history, event, named) = &others[0];
        return Err(CheckError::violation(
            event.number,
            format!("no event {kind} of {}, whose status names {named}", history.name()),
            format!("event {} and {} more, while others show their own status", event.id(), others.len() - 1),
        ));
    }
    Ok(())
}

/// Returns `true` for the event types after which a status is final. `charge.underpaid` is none of them, because a charge may
/// keep the status `underpaid` after it expires.
fn is_lasting_type(kind: &str) -> bool {
    END_TYPES.contains(&kind) || kind == "charge.refunded"
}

/// Checks that listed objects whose status is named after an event type have an event of this type. An object
/// counts if all its events are known, and are so old, or the list of events so new, that no event is still to be listed.
fn check_missing_events(views: &[PageView<'_>], histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    for (list, member) in LISTED_KINDS {
        if has_event_without_code(views, member) {
            continue;
        }
        let of_kind = histories.iter().filter(|history| history.is_kind(member));
        let by_code: BTreeMap<_, _> =
            of_kind.map(|history| ((history.mode, history.code()), history)).collect();
        let mut reported_codes = BTreeSet::new();
        let (mut missing, mut missing_in_new_list) = (Vec::new(), Vec::new());
        for view in views.iter().filter(|view| view.request.list == list) {
            for row in view.rows() {
                let Some(code) = text_at(row, &["code"]) else { continue };
                let Some(history) = by_code.get(&(view.mode, code)) else { continue };
                // An event of the last moment is listed later than its object.
                if history.events().iter().any(|event| event.number <= view.number()) {
                    continue;
                }
                let Some(kind) = missing_type(member, row, history) else { continue };
                let is_old = has_old_events(history, view.read_at);
                let is_list_new = kind != "charge.expired" && shows_later_events(views, view, history);
                if (is_old || is_list_new) && reported_codes.insert(code) {
                    let missing = if is_old { &mut missing } else { &mut missing_in_new_list };
                    missing.push((view, row, kind));
                }
            }
        }
        let missing = if missing.len() >= OBJECTS_MIN { missing } else { missing_in_new_list };
        if let Some((view, row, kind)) = missing.first().filter(|_| missing.len() >= OBJECTS_MIN) {
            return Err(CheckError::violation(
                view.number(),
                format!("the event {kind} of {member} {}, which is listed as {}", row["code"], row["status"]),
                format!("no such event, nor of {} more", missing.len() - 1),
            ));
        }
    }
    Ok(())
}

/// A delivery of an invoice, and its charge that has no event of its status.
type DeliveredCharge<'a> = (&'a ParsedDelivery<'a>, &'a Value);

/// Checks that the charges of delivered invoices whose status is named after an event type have an event of this type. A charge
/// counts if a list of events was read later that contains its creation and, as the delivery, shows that no event is still to
/// be listed.
fn check_delivered_charges(recording: &Recording, views: &[PageView<'_>]) -> Result<(), CheckError> {
    let Ok(received) = received_deliveries(recording) else { return Ok(()) };
    let Some(listed_at) = received.deliveries.listed_at else { return Ok(()) };
    if has_event_without_code(views, "charge") {
        return Ok(());
    }
    let histories = complete_histories(views);
    let by_code: BTreeMap<_, _> = histories
        .iter()
        .filter(|history| history.is_kind("charge"))
        .map(|history| ((history.mode, history.code()), history))
        .collect();
    let delivered: BTreeSet<_> = received
        .readable_deliveries()
        .filter_map(|parsed| Some((parsed.event_type()?, parsed.text(&["data", "charge", "code"])?)))
        .collect();
    let mut kinds: BTreeMap<&str, BTreeMap<&str, Option<DeliveredCharge<'_>>>> = BTreeMap::new();
    for parsed in received.readable_deliveries().filter(|parsed| !parsed.is_test()) {
        let charges = parsed.body.map(|body| &body["data"]["invoice"]["charges"]);
        let is_old = listed_at.saturating_sub(parsed.delivery.arrived) > RECORDED_TOGETHER_MAX;
        let created_at = parsed.text(&["created_at"]).and_then(parse_utc);
        for charge in charges.and_then(Value::as_array).into_iter().flatten().filter(|_| is_old) {
            let (Some(code), Some(mode)) = (text_at(charge, &["code"]), parsed.mode()) else { continue };
            let Some(history) = by_code.get(&(mode, code)) else { continue };
            let named = text_at(charge, &["status"]).and_then(|status| named_type("charge", status));
            let Some(named) = named.filter(|kind| *kind != "charge.expired") else { continue };
            let is_list_later = newest_of_read(views, history)
                .zip(created_at)
                .is_some_and(|(newest, created_at)| newest - created_at > RECORDED_TOGETHER_MAX);
            if is_list_later {
                // A delivered event that is not listed may be the missing one.
                let is_listed =
                    |(kind, other): &(&str, &str)| *other != code || history.of_type(kind).next().is_some();
                let missing =
                    missing_type("charge", charge, history).filter(|_| delivered.iter().all(is_listed));
                kinds.entry(named).or_default().insert(code, missing.map(|_| (parsed, charge)));
            }
        }
    }
    for (kind, charges) in kinds {
        let missing: Vec<_> = charges.values().flatten().collect();
        if let Some((parsed, charge)) = missing.last().filter(|_| are_most(missing.len(), charges.len())) {
            let [code, status] = ["code", "status"].map(|name| &charge[name]);
            return Err(parsed.violation(
                format!("the event {kind} of charge {code}, which is delivered as {status}"),
                format!("no such event, nor of {} more charges", missing.len() - 1),
            ));
        }
    }
    Ok(())
}

/// Returns `true` if a listed event of a kind of object lacks the code of its object, which is then unknown.
fn has_event_without_code(views: &[PageView<'_>], member: &str) -> bool {
    let lacks_code = |row: &Value| {
        let kind = text_at(row, &["type"]).unwrap_or_default();
        kind.starts_with(member) && text_at(row, &[member, "code"]).is_none()
    };
    let events = views.iter().filter(|view| view.request.list == List::Events);
    events.flat_map(PageView::rows).any(lacks_code)
}

/// Returns the time of the newest event in the read of the list that contains a history.
fn newest_of_read(views: &[PageView<'_>], history: &ObjectHistory<'_>) -> Option<OffsetDateTime> {
    let events = views
        .iter()
        .filter(|view| view.mode == history.mode && view.request.list == List::Events)
        .filter(|view| history.events().iter().any(|event| event.number == view.number()));
    events.flat_map(PageView::rows).filter_map(recorded_at).max()
}

/// Returns `true` if all events of an object are so old that a later one would be recorded by now, even by a job.
fn has_old_events(history: &ObjectHistory<'_>, now: Option<OffsetDateTime>) -> bool {
    let newest = history.events().iter().filter_map(|event| recorded_at(event.row)).max();
    newest.zip(now).is_some_and(|(newest, now)| now - newest > EVENT_DELAY_MAX)
}

/// Returns `true` if the list of events that contains the history also contains an event that was recorded over
/// [`RECORDED_TOGETHER_MAX`] after a page was read. Returns `false` if the page has the date of a slow clock, before an event
/// that was listed earlier.
fn shows_later_events(views: &[PageView<'_>], view: &PageView<'_>, history: &ObjectHistory<'_>) -> bool {
    let earlier = views.iter().filter(|other| {
        other.mode == view.mode && other.request.list == List::Events && other.number() < view.number()
    });
    let earlier = earlier.flat_map(PageView::rows).filter_map(recorded_at).max();
    let later = newest_of_read(views, history);
    let Some(((earlier, later), date)) = earlier.zip(later).zip(response_date(view.exchange)) else {
        return false;
    };
    earlier - date <= Duration::seconds(1) && later - date > RECORDED_TOGETHER_MAX
}

/// Returns the event type after which the status of a listed object is named, if the object must have such an event and has
/// none.
fn missing_type(member: &str, row: &Value, history: &ObjectHistory<'_>) -> Option<&'static str> {
    let kind = text_at(row, &["status"]).and_then(|status| named_type(member, status))?;
    // An invoice may be created as sent, and a transfer be confirmed at once.
    let always_has_event = !matches!(kind, "invoice.sent" | "charge.payment_detected");
    let has_event = |kind: &str| history.of_type(kind).next().is_some();
    // A service may use one status for canceled and expired charges, and a late payment may settle a charge by itself.
    let is_explained = match kind {
        "charge.canceled" | "charge.expired" => has_event("charge.canceled") || has_event("charge.expired"),
        "charge.paid" | "charge.underpaid" => {
            ["charge.paid", "charge.underpaid", "charge.late_payment"].into_iter().any(has_event)
        }
        kind => has_event(kind),
    };
    let has_known_types = history.events().iter().all(|event| EVENT_TYPES.contains(&event.event_type()));
    (history.is_complete() && has_known_types && always_has_event && !is_explained).then_some(kind)
}
