//! The objects in deliveries, compared with earlier deliveries of the same object.
//!
//! A delivery contains the object as it was when it was sent, so that a sequence of deliveries shows its history even if
//! the events of the API contain the current object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use super::delivered_copies::DeliveredEvent;
use crate::diff::{
    FAULTY_OBJECTS_MIN, LISTED_KINDS, STATE_FIELDS, contradict_in_field, first_contradiction,
    time_zone_difference,
};
use crate::evidence::{PageView, readable_pages};
use crate::final_statuses::{EventStatus, unchanged_status};
use crate::parsed_deliveries::{ParsedDelivery, ReceivedDeliveries, member_text};
use crate::underpayments::parse_scaled;

/// The minimum number of deliveries with a time in another time zone, for a violation.
const ZONE_DELIVERIES_MIN: usize = 3;

/// Returns the code of the delivered charge.
fn code<'a>(parsed: &'a ParsedDelivery<'_>) -> Option<&'a str> {
    text_at(parsed.charge()?, &["code"])
}

/// Checks the deliveries of each charge with [`check_charge`], and that final events change the status.
pub(super) fn check_history(
    recording: &Recording,
    received: &ReceivedDeliveries<'_>,
) -> Result<(), CheckError> {
    let mut histories: BTreeMap<_, Vec<&ParsedDelivery<'_>>> = BTreeMap::new();
    for parsed in received.readable_deliveries().filter(|parsed| !parsed.is_test()) {
        if let (Some(code), Some(mode)) = (code(parsed), parsed.mode()) {
            histories.entry((mode, code)).or_default().push(parsed);
        }
    }
    check_final_status(received)?;
    check_status_changes(recording, received)?;
    let is_exact = recording.exact_amounts;
    histories.into_iter().try_for_each(|((_, code), history)| check_charge(code, &history, is_exact))
}

/// Checks the deliveries of one charge against each other: a refund does not change the time of payment, a refunded charge is
/// not in the state of its creation, and the received amount does not fall from `charge.underpaid` to `charge.paid`.
fn check_charge(
    code: &str,
    history: &[&ParsedDelivery<'_>],
    has_exact_amounts: bool,
) -> Result<(), CheckError> {
    let first_of = |kind: &str| history.iter().find(|parsed| parsed.event_type() == Some(kind)).copied();
    let count = |kind: &str| history.iter().filter(|parsed| parsed.event_type() == Some(kind)).count();
    let field =
        |parsed: &ParsedDelivery<'_>, name: &str| Some(text_at(parsed.charge()?, &[name])?.to_owned());
    let (created, paid) = (first_of("charge.created"), first_of("charge.paid"));
    // A second payment or a reorganisation may change the charge again.
    let is_paid_once = count("charge.paid") == 1 && count("charge.payment_detected") <= 1;
    if let (Some(paid), Some(refunded), true) = (paid, first_of("charge.refunded"), is_paid_once) {
        let [paid_at, refunded_paid_at] = [paid, refunded].map(|parsed| field(parsed, "paid_at"));
        if let (Some(paid_at), Some(refunded_paid_at)) = (paid_at, refunded_paid_at)
            && parse_utc(&paid_at) != parse_utc(&refunded_paid_at)
        {
            return Err(refunded.violation(
                format!("paid_at {paid_at} of charge {code}, as in its charge.paid"),
                refunded_paid_at,
            ));
        }
        let has_state_of = |other: &ParsedDelivery<'_>| {
            let [first, second] = [other, refunded].map(|parsed| parsed.body.map(|body| &body["data"]));
            first.zip(second).is_some_and(|(first, second)| {
                first_contradiction(first, second, &STATE_FIELDS, contradict_in_field).is_none()
            })
        };
        let is_stale = |created: &&ParsedDelivery<'_>| has_state_of(created) && !has_state_of(paid);
        if created.filter(is_stale).is_some() {
            let expected = format!("charge {code} as in its charge.paid, or as refunded");
            return Err(refunded.violation(expected, "status and amounts as in its charge.created"));
        }
    }
    let amount = |parsed: &ParsedDelivery<'_>| parse_scaled(&field(parsed, "received_amount")?);
    if let (Some(underpaid), Some(paid), true) = (first_of("charge.underpaid"), paid, has_exact_amounts)
        && count("charge.refunded") == 0
        && let (Some(underpaid_amount), Some(paid_amount)) = (amount(underpaid), amount(paid))
        && paid_amount < underpaid_amount
    {
        let expected = format!("no less received of charge {code} than in its charge.underpaid");
        return Err(
            paid.violation(expected, member_text(paid.charge().unwrap_or(&Value::Null), "received_amount"))
        );
    }
    Ok(())
}

/// Checks that the deliveries of final events do not show the status that the object had at its creation.
fn check_final_status(received: &ReceivedDeliveries<'_>) -> Result<(), CheckError> {
    let events = received.readable_deliveries().filter(|parsed| !parsed.is_test());
    let statuses = events.filter_map(|parsed| {
        let text = |member: &str, name: &str| parsed.text(&["data", member, name]);
        EventStatus::read(parsed.event_type()?, text, parsed)
    });
    match unchanged_status(statuses) {
        None => Ok(()),
        Some(unchanged) => Err(unchanged.source.violation(unchanged.expected, unchanged.actual)),
    }
}

/// Checks that the delivered invoices, or charges, do not all have one status although several were paid and others ended, and
/// the list shows several statuses.
fn check_status_changes(recording: &Recording, received: &ReceivedDeliveries<'_>) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    for (list, member) in LISTED_KINDS {
        let rows = views.iter().filter(|view| view.request.list == list).flat_map(PageView::rows);
        let listed: BTreeSet<_> = rows.filter_map(|row| text_at(row, &["status"])).collect();
        let events: Vec<_> = received
            .readable_deliveries()
            .filter(|parsed| !parsed.is_test())
            .filter_map(|parsed| {
                Some((parsed, parsed.event_type()?, parsed.text(&["data", member, "status"])?))
            })
            .collect();
        let count_of = |kinds: &[&str]| {
            let codes = events.iter().filter(|(_, kind, _)| kinds.contains(kind));
            codes
                .filter_map(|(parsed, ..)| parsed.text(&["data", member, "code"]))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let statuses: BTreeSet<_> = events.iter().map(|(.., status)| status).collect();
        let (paid, ended) = (
            count_of(&["charge.paid", "invoice.paid"]),
            count_of(&["charge.canceled", "charge.expired", "invoice.voided"]),
        );
        let has_changes = listed.len() > 1 && paid.min(ended) >= FAULTY_OBJECTS_MIN;
        if let Some((parsed, _, status)) = events.last().filter(|_| has_changes && statuses.len() == 1) {
            let expected = format!("the current status of each {member}");
            return Err(
                parsed.violation(expected, format!("status {status} in all {} deliveries", events.len()))
            );
        }
    }
    Ok(())
}

/// Checks that `created_at` in the deliveries is not always the same whole number of hours away from that of their events, as
/// if in another time zone.
pub(super) fn check_zone(pairs: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    let hours_apart = |(parsed, event): &DeliveredEvent<'_>| {
        let time = |value: &Value| text_at(value, &["created_at"]).and_then(parse_utc);
        time_zone_difference(time(parsed.body?)? - time(event)?)
    };
    let differences: BTreeSet<_> = pairs.iter().map(hours_apart).collect();
    match (pairs.first(), differences.first()) {
        (Some((parsed, _)), Some(Some(hours)))
            if differences.len() == 1 && pairs.len() >= ZONE_DELIVERIES_MIN =>
        {
            let expected = "created_at in the time zone of the event in the API";
            Err(parsed.violation(expected, format!("{hours} h away, as in all {} deliveries", pairs.len())))
        }
        _ => Ok(()),
    }
}
