//! The objects in deliveries, compared with the events of the API and with earlier deliveries of the same object.
//!
//! A delivery contains the object as it was when it was sent, so that a sequence of deliveries shows its history even if
//! the events of the API contain the current object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::diff::{STATE_FIELDS, contradict_in_field, first_contradiction, time_zone_difference};
use crate::parsed_deliveries::{ParsedDelivery, ReceivedDeliveries, member_text};
use crate::underpayments::parse_scaled;

/// The fields of a charge that only its owner changes.
const OWNER_FIELDS: [&str; 4] = ["description", "customer_email", "payment_link", "metadata"];
/// The minimum number of charges with an altered field, for a violation. The owner may edit a charge between an event and its
/// delivery.
const ALTERED_CHARGES_MIN: usize = 2;
/// The minimum number of deliveries with a time in another time zone, for a violation.
const ZONE_DELIVERIES_MIN: usize = 3;

/// Returns the code of the delivered charge.
fn code<'a>(parsed: &'a ParsedDelivery<'_>) -> Option<&'a str> {
    text_at(parsed.charge()?, &["code"])
}

/// Checks that the [`OWNER_FIELDS`] of delivered charges equal those in the API: texts, the presence of a payment link, and
/// the types of values in `metadata`. `pairs`: deliveries with their events in the API.
pub(super) fn check_owner_fields(pairs: &[(&ParsedDelivery<'_>, Value)]) -> Result<(), CheckError> {
    for name in OWNER_FIELDS {
        let altered: BTreeMap<_, _> = pairs
            .iter()
            .filter_map(|(parsed, event)| {
                let (delivered, in_api) = (parsed.charge()?.get(name)?, event.get("charge")?.get(name)?);
                let is_altered = match (delivered, in_api) {
                    // A link may be represented by its code or its address.
                    (Value::String(delivered), Value::String(in_api)) => {
                        name != "payment_link"
                            && delivered != in_api
                            && !delivered.is_empty()
                            && !in_api.is_empty()
                    }
                    (Value::Null, Value::String(_)) | (Value::String(_), Value::Null) => {
                        name == "payment_link"
                    }
                    (Value::Object(delivered), Value::Object(in_api)) => {
                        delivered.is_empty() != in_api.is_empty()
                            || have_other_keys(delivered, in_api)
                            || delivered.iter().any(|(key, value)| {
                                in_api.get(key).is_some_and(|other| is_reparsed(value, other))
                            })
                    }
                    _ => false,
                };
                is_altered.then_some((code(parsed)?, (*parsed, delivered, in_api)))
            })
            .collect();
        if let Some((code, (parsed, delivered, in_api))) =
            altered.first_key_value().filter(|_| altered.len() >= ALTERED_CHARGES_MIN)
        {
            let expected = format!("{name} {in_api} of charge {code}, as in the API");
            let actual =
                format!("{name} {delivered}, and other values in {} more charges", altered.len() - 1);
            return Err(parsed.violation(expected, actual));
        }
    }
    Ok(())
}

/// Returns `true` if each of two objects has a key that the other one lacks, as after a conversion of all keys.
fn have_other_keys(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let has_own =
        |one: &Map<String, Value>, other: &Map<String, Value>| one.keys().any(|key| !other.contains_key(key));
    has_own(one, other) && has_own(other, one)
}

/// Returns `true` if one of two values is a string, and the other a number with another text: `"007"` and `7`.
fn is_reparsed(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(text), Value::Number(number)) | (Value::Number(number), Value::String(text)) => {
            number.to_string() != *text
        }
        _ => false,
    }
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
            let [first, second] =
                [other, refunded].map(|parsed| parsed.body.as_ref().map(|body| &body["data"]));
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

/// The event types after which an object has another status than at its creation. `charge.expired` is none of them, because
/// an expired charge may still accept a payment.
const FINAL_TYPES: [&str; 3] = ["charge.canceled", "invoice.paid", "invoice.voided"];
/// The minimum number of objects whose status is unchanged after a final event, for a violation.
const UNCHANGED_MIN: usize = 2;

/// The deliveries of an object with the status in each, by the type of the event.
type DeliveredStatuses<'a> = BTreeMap<&'a str, (&'a ParsedDelivery<'a>, &'a str)>;

/// Checks that the deliveries of [`FINAL_TYPES`] do not show the status that the object had at its creation. The delivery of
/// a creation may be sent late and show a later status. So the status counts as that of a creation only if all objects whose
/// status changes have it in the delivery of their creation.
fn check_final_status(received: &ReceivedDeliveries<'_>) -> Result<(), CheckError> {
    let mut objects: BTreeMap<(&str, &str), DeliveredStatuses<'_>> = BTreeMap::new();
    for parsed in received.readable_deliveries().filter(|parsed| !parsed.is_test()) {
        let Some((kind, member)) = parsed.event_type().and_then(|kind| Some((kind, kind.split_once('.')?.0)))
        else {
            continue;
        };
        let text = |name| parsed.text(&["data", member, name]);
        if let (Some(code), Some(status)) = (text("code"), text("status")) {
            objects.entry((member, code)).or_default().insert(kind, (parsed, status));
        }
    }
    let status_at =
        |states: &DeliveredStatuses<'_>, kind: &str| states.get(kind).map(|(_, status)| (*status).to_owned());
    for kind in FINAL_TYPES {
        let created = format!("{}.created", kind.split('.').next().unwrap_or_default());
        let has_changed = |states: &&DeliveredStatuses<'_>| {
            let created_status = status_at(states, &created);
            states.values().any(|(_, status)| Some(*status) != created_status.as_deref())
        };
        let creation_statuses: BTreeSet<_> =
            objects.values().filter(has_changed).filter_map(|states| status_at(states, &created)).collect();
        let is_unchanged = |states: &&DeliveredStatuses<'_>| {
            let (created_status, final_status) = (status_at(states, &created), status_at(states, kind));
            created_status == final_status
                && final_status
                    .is_some_and(|status| creation_statuses.len() == 1 && creation_statuses.contains(&status))
        };
        let unchanged: Vec<_> = objects.values().filter(is_unchanged).collect();
        if let Some((parsed, status)) =
            unchanged.last().filter(|_| unchanged.len() >= UNCHANGED_MIN).and_then(|states| states.get(kind))
        {
            let expected = format!("another status in a {kind} than at the creation");
            let actual = format!("status {status}, as {} others", unchanged.len() - 1);
            return Err(parsed.violation(expected, actual));
        }
    }
    Ok(())
}

/// Checks that `created_at` in the deliveries is not always the same whole number of hours away from that of their events, as
/// if in another time zone.
pub(super) fn check_zone(pairs: &[(&ParsedDelivery<'_>, Value)]) -> Result<(), CheckError> {
    let hours_apart = |(parsed, event): &(&ParsedDelivery<'_>, Value)| {
        let time = |value: &Value| text_at(value, &["created_at"]).and_then(parse_utc);
        time_zone_difference(time(parsed.body.as_ref()?)? - time(event)?)
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
