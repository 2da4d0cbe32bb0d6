//! The objects in deliveries, compared with the events of the API and with earlier deliveries of the same object.
//!
//! A delivery contains the object as it was when it was sent, so that a sequence of deliveries shows its history even if
//! the events of the API contain the current object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::reading::{text_at, utc};
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::delivered::{ParsedDelivery, ReceivedDeliveries, member_text};
use crate::diff::{STATE, differ, first_contradiction, whole_hours};
use crate::underpayments::scaled;

/// The fields of a charge that only its owner changes.
const OWNER_FIELDS: [&str; 4] = ["description", "customer_email", "payment_link", "metadata"];
/// The fewest charges whose texts differ. The owner may edit one of them between an event and its delivery.
const ALTERED_MIN: usize = 2;
/// The fewest deliveries with a time in another time zone.
const OTHER_ZONE_MIN: usize = 3;

fn code<'a>(seen: &'a ParsedDelivery<'_>) -> Option<&'a str> {
    text_at(seen.charge()?, &["code"])
}

/// Checks that the texts of delivered charges are those that the API shows. `pairs`: deliveries with their events.
pub(super) fn check_texts(pairs: &[(&ParsedDelivery<'_>, Value)]) -> Result<(), CheckError> {
    for name in OWNER_FIELDS {
        let altered: BTreeMap<_, _> = pairs
            .iter()
            .filter_map(|(seen, event)| {
                let (sent, shown) = (seen.charge()?.get(name)?, event.get("charge")?.get(name)?);
                let is_altered = match (sent, shown) {
                    // A link may be represented by its code or its address.
                    (Value::String(sent), Value::String(shown)) => {
                        name != "payment_link" && sent != shown && !sent.is_empty() && !shown.is_empty()
                    }
                    (Value::Null, Value::String(_)) | (Value::String(_), Value::Null) => {
                        name == "payment_link"
                    }
                    (Value::Object(sent), Value::Object(shown)) => sent.is_empty() != shown.is_empty(),
                    _ => false,
                };
                is_altered.then_some((code(seen)?, (*seen, sent, shown)))
            })
            .collect();
        if let Some((code, (seen, sent, shown))) =
            altered.first_key_value().filter(|_| altered.len() >= ALTERED_MIN)
        {
            let expected = format!("{name} {shown} of charge {code}, as in the API");
            let actual = format!("{name} {sent}, and other values in {} more charges", altered.len() - 1);
            return Err(seen.violation(expected, actual));
        }
    }
    Ok(())
}

/// Checks that the deliveries of a charge contradict none that was sent before: the time of payment is kept when a refund
/// is recorded, a refunded charge is not shown as it was when it was created, and a payment does not reduce what was
/// received.
pub(super) fn check_history(
    recording: &Recording,
    received: &ReceivedDeliveries<'_>,
) -> Result<(), CheckError> {
    let mut histories: BTreeMap<_, Vec<&ParsedDelivery<'_>>> = BTreeMap::new();
    for seen in received.readable_deliveries().filter(|seen| !seen.is_test()) {
        if let (Some(code), Some(mode)) = (code(seen), seen.mode()) {
            histories.entry((mode, code)).or_default().push(seen);
        }
    }
    check_final_status(received)?;
    let is_exact = recording.exact_amounts;
    histories.into_iter().try_for_each(|((_, code), history)| check_charge(code, &history, is_exact))
}

fn check_charge(
    code: &str,
    history: &[&ParsedDelivery<'_>],
    has_exact_amounts: bool,
) -> Result<(), CheckError> {
    let first_of = |kind: &str| history.iter().find(|seen| seen.kind() == Some(kind)).copied();
    let count = |kind: &str| history.iter().filter(|seen| seen.kind() == Some(kind)).count();
    let field = |seen: &ParsedDelivery<'_>, name: &str| Some(text_at(seen.charge()?, &[name])?.to_owned());
    let (created, paid) = (first_of("charge.created"), first_of("charge.paid"));
    // A second payment or a reorganisation may change the charge again.
    let is_paid_once = count("charge.paid") == 1 && count("charge.payment_detected") <= 1;
    if let (Some(paid), Some(refunded), true) = (paid, first_of("charge.refunded"), is_paid_once) {
        let [then, now] = [paid, refunded].map(|seen| field(seen, "paid_at"));
        if let (Some(then), Some(now)) = (then, now)
            && utc(&then) != utc(&now)
        {
            return Err(
                refunded.violation(format!("paid_at {then} of charge {code}, as in its charge.paid"), now)
            );
        }
        let is_in_state_of = |other: &ParsedDelivery<'_>| {
            let [one, other] = [other, refunded].map(|seen| seen.body.as_ref().map(|body| &body["data"]));
            one.zip(other)
                .is_some_and(|(one, other)| first_contradiction(one, other, &STATE, differ).is_none())
        };
        let is_stale = |created: &&ParsedDelivery<'_>| is_in_state_of(created) && !is_in_state_of(paid);
        if created.filter(is_stale).is_some() {
            let expected = format!("charge {code} as in its charge.paid, or as refunded");
            return Err(refunded.violation(expected, "status and amounts as in its charge.created"));
        }
    }
    let amount = |seen: &ParsedDelivery<'_>| scaled(&field(seen, "received_amount")?);
    if let (Some(short), Some(paid), true) = (first_of("charge.underpaid"), paid, has_exact_amounts)
        && count("charge.refunded") == 0
        && let (Some(before), Some(after)) = (amount(short), amount(paid))
        && after < before
    {
        let expected = format!("no less received of charge {code} than in its charge.underpaid");
        return Err(
            paid.violation(expected, member_text(paid.charge().unwrap_or(&Value::Null), "received_amount"))
        );
    }
    Ok(())
}

/// The event types after which an object is in another state than at its creation. An expired charge may still be open
/// to a payment.
const FINAL: [&str; 3] = ["charge.canceled", "invoice.paid", "invoice.voided"];
/// The fewest objects whose status is kept.
const KEPT_MIN: usize = 2;

/// The status of an object in its deliveries, by the type of the event.
type States<'a> = BTreeMap<&'a str, (&'a ParsedDelivery<'a>, &'a str)>;

/// Checks that objects do not have the status of their creation when they are canceled, settled or voided. A delivery may
/// show the object as it is when it is sent, so the status counts only if all objects that change it leave that one.
fn check_final_status(received: &ReceivedDeliveries<'_>) -> Result<(), CheckError> {
    let mut objects: BTreeMap<(&str, &str), States<'_>> = BTreeMap::new();
    for seen in received.readable_deliveries().filter(|seen| !seen.is_test()) {
        let Some((kind, member)) = seen.kind().and_then(|kind| Some((kind, kind.split_once('.')?.0))) else {
            continue;
        };
        let text = |name| seen.text(&["data", member, name]);
        if let (Some(code), Some(status)) = (text("code"), text("status")) {
            objects.entry((member, code)).or_default().insert(kind, (seen, status));
        }
    }
    let status_at =
        |states: &States<'_>, kind: &str| states.get(kind).map(|(_, status)| (*status).to_owned());
    for kind in FINAL {
        let created = format!("{}.created", kind.split('.').next().unwrap_or_default());
        let has_changed = |states: &&States<'_>| {
            let then = status_at(states, &created);
            states.values().any(|(_, status)| Some(*status) != then.as_deref())
        };
        let initial: BTreeSet<_> =
            objects.values().filter(has_changed).filter_map(|states| status_at(states, &created)).collect();
        let is_kept = |states: &&States<'_>| {
            let (then, now) = (status_at(states, &created), status_at(states, kind));
            then == now && now.is_some_and(|status| initial.len() == 1 && initial.contains(&status))
        };
        let kept: Vec<_> = objects.values().filter(is_kept).collect();
        if let Some((seen, status)) =
            kept.last().filter(|_| kept.len() >= KEPT_MIN).and_then(|states| states.get(kind))
        {
            let expected = format!("another status in a {kind} than at the creation");
            let actual = format!("status {status}, and so {} others", kept.len() - 1);
            return Err(seen.violation(expected, actual));
        }
    }
    Ok(())
}

/// Checks that the times of deliveries are not a whole number of hours away from those of their events, as if in another
/// time zone.
pub(super) fn check_zone(pairs: &[(&ParsedDelivery<'_>, Value)]) -> Result<(), CheckError> {
    let hours = |(seen, event): &(&ParsedDelivery<'_>, Value)| {
        let time = |value: &Value| text_at(value, &["created_at"]).and_then(utc);
        whole_hours(time(seen.body.as_ref()?)? - time(event)?)
    };
    let distances: BTreeSet<_> = pairs.iter().map(hours).collect();
    match (pairs.first(), distances.first()) {
        (Some((first, _)), Some(Some(shift))) if distances.len() == 1 && pairs.len() >= OTHER_ZONE_MIN => {
            let expected = "created_at in the time zone of the event in the API";
            Err(first.violation(expected, format!("{shift} h away, as in all {} deliveries", pairs.len())))
        }
        _ => Ok(()),
    }
}
