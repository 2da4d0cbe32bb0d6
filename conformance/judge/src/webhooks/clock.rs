//! The times of a delivery, compared with the receiver's clock.

use std::collections::{BTreeMap, BTreeSet};

use time::OffsetDateTime;

use conformance_model::deliveries::Deliveries;
use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::delivered_copies::DeliveredEvent;
use super::endpoint_events::new_events;
use super::routing::NEEDS_WITH_LISTS;
use crate::check::Check;
use crate::diff::{FAULTY_OBJECTS_MIN, are_most};
use crate::evidence::recorded_at;
use crate::parsed_deliveries::{ParsedDelivery, ReceivedDeliveries, received_deliveries};

pub(crate) const CHECKS: &[Check] = &[Check::new("webhooks.clock", NEEDS_WITH_LISTS, judge_clock)];

/// The exclusive maximum of `t` in seconds, in the year 5138. A larger value is in a smaller unit.
pub(super) const SECONDS_MAX: u64 = 100_000_000_000;

/// The maximum difference between the clocks of the service and the receiver.
const CLOCK_DIFFERENCE_MAX_SECS: i64 = 300;

/// Judges the first delivery of each event that was created during the run. The times of the event and of sending must
/// lie between the start of the receiver and the arrival, with a tolerance of [`CLOCK_DIFFERENCE_MAX_SECS`].
fn judge_clock(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    // A trigger that lets all deliveries settle may have advanced the clock of the service.
    let Some(started_at) = received.deliveries.started_at.filter(|_| !received.deliveries.settled) else {
        return Err(CheckError::Inapplicable("the service does not use the receiver's clock".into()));
    };
    let new_rows = Mode::BOTH.into_iter().filter_map(|mode| new_events(recording, mode)).flatten();
    let mut new_ids: BTreeSet<_> = new_rows.filter_map(|row| text_at(row, &["id"])).collect();
    let mut judged = false;
    for parsed in received.readable_deliveries() {
        // Only the first delivery of each event: a retry may have the old time.
        if !parsed.text(&["event_id"]).is_some_and(|event| new_ids.remove(event)) {
            continue;
        }
        let arrived_at = arrival(started_at, parsed);
        for (name, time) in
            [("t", signed_at(received.deliveries, parsed)), ("created_at", created_at(parsed))]
        {
            let Some(time) = time else { continue };
            let (difference, position) = if time < started_at {
                (started_at - time, "before the receiver started")
            } else {
                (time - arrived_at, "after it arrived")
            };
            if difference > CLOCK_DIFFERENCE_MAX_SECS {
                let expected = format!("{name} within {CLOCK_DIFFERENCE_MAX_SECS} s of the receiver's clock");
                return Err(parsed.violation(expected, format!("{name} {difference} s {position}")));
            }
            judged = true;
        }
    }
    match judged {
        true => Ok(CheckOutcome::HoldsWith(format!("{CLOCK_DIFFERENCE_MAX_SECS} s allowed"))),
        false => Err(CheckError::unjudged(
            "no delivery had an event that was created while the receiver ran",
            "cause one while the suite receives, with keys of the same account",
        )),
    }
}

/// Returns the arrival of a delivery in Unix seconds.
fn arrival(started_at: i64, parsed: &ParsedDelivery<'_>) -> i64 {
    // Half of the maximum, so that the sum does not overflow.
    started_at + i64::try_from(parsed.delivery.arrived.as_secs()).unwrap_or(i64::MAX / 2)
}

/// Returns `created_at` of a delivery in Unix seconds.
pub(super) fn created_at(parsed: &ParsedDelivery<'_>) -> Option<i64> {
    Some(parse_utc(parsed.text(&["created_at"])?)?.unix_timestamp())
}

/// The maximum time from the arrival of a delivery to its event in the API, if the clocks agree. Much less than the tolerance, for
/// a service whose clock runs fast.
const AGREEMENT_MAX_SECS: i64 = 60;

/// Checks a time of the deliveries, `t` or `created_at`: it is between the time of the event in the API and the arrival, with a
/// tolerance of [`CLOCK_DIFFERENCE_MAX_SECS`]. Only events count whose time in the API agrees with the receiver's clock, so
/// that the clock of the service is known to be right. `read` returns the time in Unix seconds.
pub(super) fn check_between(
    received: &ReceivedDeliveries<'_>,
    delivered_events: &[DeliveredEvent<'_>],
    name: &str,
    read: impl Fn(&ParsedDelivery<'_>) -> Option<i64>,
) -> Result<(), CheckError> {
    let Some(started_at) = received.deliveries.started_at.filter(|_| !received.deliveries.settled) else {
        return Ok(());
    };
    let mut known_events = BTreeSet::new();
    let timed = delivered_events.iter().filter_map(|(parsed, event)| {
        let (recorded_at, arrived_at) = (recorded_at(event)?.unix_timestamp(), arrival(started_at, parsed));
        let is_agreed = started_at - CLOCK_DIFFERENCE_MAX_SECS <= recorded_at
            && recorded_at <= arrived_at + AGREEMENT_MAX_SECS;
        let is_first = is_agreed && known_events.insert(parsed.text(&["event_id"])?.to_owned());
        is_first.then_some((*parsed, read(parsed)?, recorded_at, arrived_at))
    });
    let timed: Vec<_> = timed.collect();
    let is_outside = |(_, time, recorded_at, arrived_at): &&(&ParsedDelivery<'_>, i64, i64, i64)| {
        *time < recorded_at - CLOCK_DIFFERENCE_MAX_SECS || *time > arrived_at + CLOCK_DIFFERENCE_MAX_SECS
    };
    let outside: Vec<_> = timed.iter().filter(is_outside).collect();
    match outside.last().filter(|_| outside.len() >= FAULTY_OBJECTS_MIN) {
        None => Ok(()),
        Some((parsed, time, recorded_at, _)) => Err(parsed.violation(
            format!("{name} between the event in the API and the arrival of the delivery"),
            format!(
                "{} s after the event, and so in {} more deliveries",
                time - recorded_at,
                outside.len() - 1
            ),
        )),
    }
}

/// The maximum time by which a delivery is created before its event, according to the clocks of two machines.
const BEFORE_EVENT_MAX: time::Duration = time::Duration::seconds(5);
/// The maximum time by which a delivery is created before its event, according to clocks that agree.
const ROUNDING_MAX: time::Duration = time::Duration::seconds(1);

/// Checks that no delivery is created before its event, such as with the time of its charge. Some other deliveries must not be,
/// so that the clocks of the service are known to agree.
pub(super) fn check_not_before_events(delivered_events: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    let delays: Vec<_> = delivered_events
        .iter()
        .filter_map(|(parsed, event)| {
            Some((*parsed, parse_utc(parsed.text(&["created_at"])?)? - recorded_at(event)?))
        })
        .collect();
    let count_events = |is_counted: &dyn Fn(time::Duration) -> bool| {
        let of_events = delays.iter().filter(|(_, delay)| is_counted(*delay));
        of_events.map(|(parsed, _)| parsed.text(&["event_id"])).collect::<BTreeSet<_>>().len()
    };
    let is_early = |delay: time::Duration| delay < -BEFORE_EVENT_MAX;
    let early_count = count_events(&is_early);
    let has_agreement = count_events(&|delay| delay >= -ROUNDING_MAX) >= FAULTY_OBJECTS_MIN;
    match delays.iter().rfind(|(_, delay)| is_early(*delay)) {
        Some((parsed, delay)) if has_agreement && early_count >= FAULTY_OBJECTS_MIN => Err(parsed.violation(
            "created_at no earlier than the event in the API",
            format!("{} s earlier, and so in {} more deliveries", -delay.whole_seconds(), early_count - 1),
        )),
        _ => Ok(()),
    }
}

/// The minimum time between the deliveries of a creation and of another event of the object, for a comparison of the times of
/// the two events.
const CREATION_SPAN_MIN: std::time::Duration = std::time::Duration::from_secs(10);
/// The minimum time from a creation to another time that proves that an event of the object was later.
const PROVEN_DELAY_MIN: time::Duration = time::Duration::seconds(10);
/// The event types that only follow one of others.
const PRECEDING_TYPES: [(&str, &[&str]); 4] = [
    ("charge.paid", &["charge.payment_detected"]),
    ("charge.underpaid", &["charge.payment_detected"]),
    ("charge.late_payment", &["charge.expired", "charge.canceled"]),
    ("charge.refunded", &["charge.paid", "charge.underpaid", "charge.late_payment"]),
];

/// The mode, the member of the data (`charge` or `invoice`) and the code of an object.
type CreatedObject<'a> = (Option<Mode>, &'a str, &'a str);

fn object_key<'a>(parsed: &'a ParsedDelivery<'_>) -> Option<CreatedObject<'a>> {
    let (member, _) = parsed.event_type()?.split_once('.')?;
    Some((parsed.mode(), member, parsed.text(&["data", member, "code"])?))
}

/// Checks that events delivered later than the creation of their object were not recorded at the time of the creation. An
/// instant payment may be recorded with the creation and delivered later, so an event counts only if another time proves
/// that it was later. Times in whole seconds are left out.
pub(super) fn check_events_after_creation(delivered_events: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    // The time of arrival and of the event, by the type of the event.
    let mut objects: BTreeMap<CreatedObject<'_>, BTreeMap<&str, (std::time::Duration, OffsetDateTime)>> =
        BTreeMap::new();
    for (parsed, event) in delivered_events {
        if let (Some(key), Some(kind), Some(recorded_at)) =
            (object_key(parsed), parsed.event_type(), recorded_at(event))
        {
            let events = objects.entry(key).or_default();
            events.entry(kind).or_insert((parsed.delivery.arrived, recorded_at));
        }
    }
    let mut by_type: BTreeMap<&str, BTreeMap<&str, Option<&ParsedDelivery<'_>>>> = BTreeMap::new();
    for (parsed, event) in delivered_events {
        let (Some(key), Some(kind), Some(id)) =
            (object_key(parsed), parsed.event_type(), parsed.text(&["event_id"]))
        else {
            continue;
        };
        let Some((events, recorded_at)) = objects.get(&key).zip(recorded_at(event)) else { continue };
        let Some((created_arrived, created_at)) = events.get(&*format!("{}.created", key.1)) else {
            continue;
        };
        let has_fractions = recorded_at.nanosecond() > 0 && created_at.nanosecond() > 0;
        let is_later = parsed.delivery.arrived >= created_arrived.saturating_add(CREATION_SPAN_MIN);
        if !is_later || !has_fractions || kind.ends_with(".created") {
            continue;
        }
        let is_at_creation = (recorded_at - *created_at).abs() < time::Duration::milliseconds(1);
        let times = events.iter().map(|(kind, (_, recorded_at))| (*kind, *recorded_at));
        if !is_at_creation || is_proven_later(parsed, *created_at, times) {
            by_type.entry(kind).or_default().entry(id).or_insert(is_at_creation.then_some(*parsed));
        }
    }
    for (kind, events) in by_type {
        let at_creation: Vec<_> = events.values().flatten().collect();
        if let Some(parsed) = at_creation.last().filter(|_| are_most(at_creation.len(), events.len())) {
            return Err(parsed.violation(
                format!("a created_at of the {kind} in the API after the creation of its object"),
                format!("the time of the creation, and so of {} more", at_creation.len() - 1),
            ));
        }
    }
    Ok(())
}

/// Returns `true` if the delivered event was later than the creation of its object: by the time of payment, or by the time of
/// an event that precedes it. An expiry always is. `times`: the types and times of the events of the object.
fn is_proven_later<'a>(
    parsed: &ParsedDelivery<'_>,
    created_at: OffsetDateTime,
    mut times: impl Iterator<Item = (&'a str, OffsetDateTime)>,
) -> bool {
    let is_later = |at: OffsetDateTime| at - created_at >= PROVEN_DELAY_MIN;
    let kind = parsed.event_type().unwrap_or_default();
    let is_paid_later = || {
        let paid_at = parsed.text(&["data", "charge", "paid_at"]).and_then(parse_utc);
        kind == "charge.paid" && paid_at.is_some_and(is_later)
    };
    let preceding =
        PRECEDING_TYPES.iter().find(|(later, _)| *later == kind).map_or(&[][..], |(_, types)| types);
    kind == "charge.expired"
        || is_paid_later()
        || times.any(|(kind, recorded_at)| preceding.contains(&kind) && is_later(recorded_at))
}

/// Returns the name of the header with the signature and its time `t`.
pub(super) fn signature_header(all: &Deliveries) -> String {
    format!("{}-Signature", all.header_prefix)
}

/// Returns `t` in Unix seconds; `None` if it is missing or in another unit.
pub(super) fn signed_at(all: &Deliveries, parsed: &ParsedDelivery<'_>) -> Option<i64> {
    let values = parsed.delivery.header_values(&signature_header(all));
    let times =
        values.iter().flat_map(|value| value.split(',')).filter_map(|part| part.trim().strip_prefix("t="));
    times.filter_map(|time| time.parse().ok()).find(|secs| *secs < SECONDS_MAX).map(u64::cast_signed)
}
