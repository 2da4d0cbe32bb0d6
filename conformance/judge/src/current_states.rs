//! The current state of charges and invoices in lists and single reads, compared with their events.
//!
//! A busy account has objects whose life takes less than a minute. So an object is compared some time after its final event was
//! seen, by the run's clock, and each rule needs several objects with the same fault.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::catalogue::FINAL_EVENT_TYPES;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::charge_versions::{SINGLE_OBJECTS_MIN, is_paid_once};
use crate::diff::{are_most, have_other_case, is_nonzero, is_other_time};
use crate::evidence::response_date;
use crate::object_copies::{
    CopySource, CopySources, KnownEvent, ObjectCopy, ObjectKey, UPDATE_DELAY_MAX, known_events, run_time,
};
use crate::parsed_deliveries::member_text;

/// The maximum time from the creation of an object to the delivery that shows the status of new objects.
const NEW_OBJECT_AGE_MAX: Duration = Duration::seconds(5);

/// The last read of an object in a source, long after its newest known event was seen.
struct LateRead<'a> {
    copy: ObjectCopy<'a>,
    newest: KnownEvent<'a>,
    /// All known events, oldest first.
    events: &'a [KnownEvent<'a>],
    /// The copies whose response was complete before the newest event was seen.
    earlier: Vec<ObjectCopy<'a>>,
}

/// A difference of a copy from its final event: the expected value, with the name of the object, and the actual value.
type StateDifference = Option<(String, String)>;

/// Checks the objects of some kinds, each in one source: their status, and for charges their payment.
pub(super) fn check(recording: &Recording, kinds: &[(&str, CopySource)]) -> Result<(), CheckError> {
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    kinds.iter().try_for_each(|(member, source)| check_kind(recording, &copies, member, *source))
}

fn check_kind(
    recording: &Recording,
    copies: &[ObjectCopy<'_>],
    member: &str,
    source: CopySource,
) -> Result<(), CheckError> {
    let events = known_events(copies);
    let reads = late_reads(copies, &events, member, source);
    let creation_status = creation_status(copies, &events, member, service_start(recording, copies));
    check_each(&reads, source, |read| has_ended(read).then(|| outdated_status(read, creation_status)))?;
    check_each(&reads, source, wrong_payment_time)?;
    if recording.exact_amounts && member == "charge" && source != CopySource::InInvoice {
        check_each(&reads, source, missing_amount)?;
    }
    Ok(())
}

/// Checks for each event type that most objects have no difference, or that few single objects have one. `difference` returns
/// `None` for objects that cannot be compared.
fn check_each(
    objects: &[LateRead<'_>],
    source: CopySource,
    difference: impl Fn(&LateRead<'_>) -> Option<StateDifference>,
) -> Result<(), CheckError> {
    let mut by_type: BTreeMap<&str, Vec<(&LateRead<'_>, StateDifference)>> = BTreeMap::new();
    for object in objects {
        let group = if source == CopySource::Single { "" } else { object.newest.kind };
        if let Some(result) = difference(object) {
            by_type.entry(group).or_default().push((object, result));
        }
    }
    for compared in by_type.into_values() {
        let count = compared.len();
        let wrong: Vec<_> =
            compared.into_iter().filter_map(|(object, result)| Some((object, result?))).collect();
        let are_enough = match source {
            CopySource::Single => wrong.len() >= SINGLE_OBJECTS_MIN && wrong.len() * 2 > count,
            _ => are_most(wrong.len(), count),
        };
        if let Some((object, (expected, actual))) = wrong.last().filter(|_| are_enough) {
            return Err(CheckError::violation(
                object.copy.number,
                format!("{expected}, {} s after its {}", object.age(), object.newest.kind),
                format!("{actual}, and so for {} more", wrong.len() - 1),
            ));
        }
    }
    Ok(())
}

impl LateRead<'_> {
    /// Returns the kind and the code of the object.
    fn name(&self) -> String {
        format!("{} {}", self.copy.member, self.copy.code)
    }

    /// Returns the seconds from the first copy of the newest event to the read.
    fn age(&self) -> i64 {
        (self.copy.sent - self.newest.seen).whole_seconds()
    }
}

/// Returns the last read of each object of a kind in a source, if it is more than [`UPDATE_DELAY_MAX`] later than the first copy
/// of the newest event.
fn late_reads<'s, 'a: 's>(
    copies: &[ObjectCopy<'a>],
    events: &'s BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>,
    member: &str,
    source: CopySource,
) -> Vec<LateRead<'s>> {
    let mut last: BTreeMap<ObjectKey<'_>, ObjectCopy<'_>> = BTreeMap::new();
    let mut by_object: BTreeMap<ObjectKey<'_>, Vec<ObjectCopy<'_>>> = BTreeMap::new();
    for copy in copies.iter().filter(|copy| copy.member == member) {
        by_object.entry(copy.key()).or_default().push(*copy);
        if copy.source == source {
            let known = last.entry(copy.key()).or_insert(*copy);
            if copy.sent >= known.sent {
                *known = *copy;
            }
        }
    }
    let mut found = Vec::new();
    for (key, copy) in last {
        let Some(events) = events.get(&key) else { continue };
        let Some(newest) = events.last().filter(|newest| copy.sent - newest.seen >= UPDATE_DELAY_MAX) else {
            continue;
        };
        let is_earlier = |other: &&ObjectCopy<'_>| other.seen < newest.seen;
        let earlier = by_object[&key].iter().filter(is_earlier).copied().collect();
        found.push(LateRead { copy, newest: *newest, events, earlier });
    }
    found
}

/// Returns `true` if the newest event of an object is a final one.
fn has_ended(read: &LateRead<'_>) -> bool {
    FINAL_EVENT_TYPES.contains(&read.newest.kind)
}

/// Returns the earliest possible time of the service's clock at the start of the run.
fn service_start(recording: &Recording, copies: &[ObjectCopy<'_>]) -> Option<OffsetDateTime> {
    let events = copies.iter().filter_map(|copy| copy.event?.recorded_at.checked_sub(copy.seen));
    let dates = recording
        .exchanges
        .iter()
        .filter_map(|exchange| response_date(exchange)?.checked_sub(run_time(exchange.ended)));
    events.chain(dates).max()
}

/// Returns the status with which most objects of a kind are delivered soon after their creation, before their next event. A
/// sender that is behind may show a later status. `None` if there are few such deliveries, or if the status is `paid`.
fn creation_status<'a>(
    copies: &[ObjectCopy<'a>],
    known: &BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>,
    member: &str,
    service_start: Option<OffsetDateTime>,
) -> Option<&'a str> {
    let service_start = service_start?;
    let created = format!("{member}.created");
    let is_new = |copy: &&ObjectCopy<'_>| {
        let (arrived_at, events) = (service_start.saturating_add(copy.seen), &known[&copy.key()]);
        let created_at = events.iter().find(|event| event.kind == created).map(|event| event.recorded_at);
        let next_at = events.iter().find(|event| event.kind != created).map(|event| event.recorded_at);
        created_at.is_some_and(|created_at| arrived_at - created_at <= NEW_OBJECT_AGE_MAX)
            && next_at.is_none_or(|next_at| arrived_at < next_at)
    };
    let mut codes_by_status: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let deliveries =
        copies.iter().filter(|copy| copy.source == CopySource::Delivery && copy.kind() == created);
    for copy in deliveries.filter(is_new) {
        codes_by_status.entry(copy.text("status")?).or_default().insert(copy.code);
    }
    let count: usize = codes_by_status.values().map(BTreeSet::len).sum();
    let (status, codes) = codes_by_status.into_iter().max_by_key(|(_, codes)| codes.len())?;
    (are_most(codes.len(), count) && !status.eq_ignore_ascii_case("paid")).then_some(status)
}

/// Compares the status of an object. A wrong one is that of new objects, or one that the object had before its final event.
fn outdated_status(object: &LateRead<'_>, creation_status: Option<&str>) -> StateDifference {
    let status = object.copy.text("status")?;
    let end_status = object.newest.copy.object.get("status")?;
    let had_before = |copy: &ObjectCopy<'_>| copy.text("status") == Some(status);
    let is_final = status.eq_ignore_ascii_case("paid")
        || *end_status == *status
        || have_other_case(end_status, &Value::from(status));
    let is_outdated = creation_status == Some(status) || !is_final && object.earlier.iter().any(had_before);
    is_outdated.then(|| {
        let expected = format!("{} with its final status", object.name());
        (expected, format!("status {status}, which it had before that event"))
    })
}

/// Compares the time of payment of a charge that was paid once and still has the status of its payment.
fn wrong_payment_time(object: &LateRead<'_>) -> Option<StateDifference> {
    let types = object.events.iter().map(|event| (event.kind, event.copy.event.map(|event| event.id)));
    if object.newest.kind != "charge.paid" || !is_paid_once(types) {
        return None;
    }
    let (copy, paid) = (object.copy.object, object.newest.copy.object);
    let time = parse_utc(text_at(paid, &["paid_at"])?)?;
    if copy.get("status")? != paid.get("status")? {
        return None;
    }
    let shown = copy.get("paid_at")?;
    let is_wrong = match shown.as_str().map(parse_utc) {
        None => shown.is_null(),
        Some(shown) => is_other_time(shown?, time),
    };
    let expected = || format!("{} of {}", member_text(paid, "paid_at"), object.name());
    Some(is_wrong.then(|| (expected(), member_text(copy, "paid_at"))))
}

/// Compares the received amount of a charge with its `charge.underpaid`: it is not zero if all of them have another amount.
/// Another rule judges the amounts of charges that were paid at once.
fn missing_amount(object: &LateRead<'_>) -> Option<StateDifference> {
    let underpaid: Vec<_> = object.events.iter().filter(|event| event.kind == "charge.underpaid").collect();
    let is_received = |event: &&KnownEvent<'_>| event.copy.text("received_amount").is_some_and(is_nonzero);
    let is_refunded = object.events.iter().any(|event| event.kind == "charge.refunded");
    if is_refunded || underpaid.is_empty() || !underpaid.iter().all(is_received) {
        return None;
    }
    let amount = object.copy.text("received_amount")?;
    let received = member_text(underpaid[0].copy.object, "received_amount");
    let expected = format!("{received} of {}", object.name());
    let is_number = amount.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Some((is_number && !is_nonzero(amount)).then(|| (expected, format!("received_amount {amount}"))))
}
