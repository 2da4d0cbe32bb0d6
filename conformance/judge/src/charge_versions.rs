//! The versions of each charge in events and deliveries, compared with each other.
//!
//! An account may have so much traffic that the life of most charges takes less than a minute. Then no single event proves
//! which state it shows, but a fault shows in most charges. A service may also alter a single charge in ways that the
//! specification leaves open, so each rule needs several charges with the same fault.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{Caller, List, ObjectKind, Purpose, Recording, Side};
use conformance_model::verdict::CheckError;

use crate::diff::{
    FAULTY_OBJECTS_MIN, SAME_TIME_MAX, are_most, contradict_as_written, contradict_unless_rounded,
    have_other_case, is_nonzero, is_other_time, is_unchanged_before,
};
use crate::evidence::{PageView, readable_pages};
use crate::object_copies::{find_by_fields, find_object};
use crate::object_history::{CHARGE_END_TYPES, UNPAID_TYPES};
use crate::parsed_deliveries::member_text;
use crate::subjects::{Subject, subjects};
use crate::underpayments::parse_scaled;

/// The fields of a charge that its locked exchange rate connects.
const LOCKED_FIELDS: [&str; 4] = ["fiat_amount", "fiat_currency", "asset", "asset_amount"];
/// The event types after which a charge may be paid at another rate.
const REQUOTED_TYPES: [&str; 2] = ["charge.expired", "charge.late_payment"];
/// The minimum number of single objects with another value than in the lists or events, for a violation.
pub(crate) const SINGLE_OBJECTS_MIN: usize = 2;
/// The event types after which an object is still open.
const OPEN_TYPES: [&str; 5] =
    ["charge.created", "charge.payment_detected", "invoice.created", "invoice.sent", "invoice.viewed"];
/// The minimum time between two events of a charge, for a comparison of the first one with its time of payment.
const DETECTION_DELAY_MIN: Duration = Duration::seconds(5);
/// The minimum time between the detection and the payment of a charge, for such a comparison. For a coin with instant finality,
/// the detection is the confirmation, and a job may record `charge.paid` later.
const CONFIRMATION_DELAY_MIN: Duration = Duration::seconds(30);

/// The versions of one charge, those in deliveries first.
pub(crate) type Versions<'s> = Vec<&'s Subject<'s>>;

/// Returns the versions of each charge, by the code of the charge.
pub(crate) fn versions_by_charge<'s>(found: &'s [Subject<'s>]) -> BTreeMap<(Mode, &'s str), Versions<'s>> {
    let mut charges: BTreeMap<_, Versions<'s>> = BTreeMap::new();
    for subject in found {
        if let (Some(mode), Some(code)) = (subject.mode, text_at(subject.object, &["code"])) {
            charges.entry((mode, code)).or_default().push(subject);
        }
    }
    charges
}

/// Returns the time of payment of a version.
fn paid_at(version: &Subject<'_>) -> Option<OffsetDateTime> {
    parse_utc(text_at(version.object, &["paid_at"])?)
}

/// The type and the id of an event.
pub(crate) type TypeAndId<'a> = (&'a str, Option<&'a str>);

/// Returns the type and the id of the event of each version.
fn types_and_ids<'s>(versions: &[&'s Subject<'s>]) -> impl Iterator<Item = TypeAndId<'s>> + Clone {
    versions.iter().map(|version| (version.kind, version.event_id))
}

/// Returns the number of different events of a type.
fn count_events<'a>(events: impl Iterator<Item = TypeAndId<'a>>, wanted: &str) -> usize {
    let of_type = events.filter(|(kind, _)| *kind == wanted);
    of_type.map(|(_, id)| id).collect::<BTreeSet<_>>().len()
}

/// Returns `true` if a charge was paid once, by at most one transfer, as far as its events show.
pub(crate) fn is_paid_once<'a>(events: impl Iterator<Item = TypeAndId<'a>> + Clone) -> bool {
    let count = |kind: &str| count_events(events.clone(), kind);
    count("charge.paid") == 1
        && count("charge.payment_detected") <= 1
        && count("charge.late_payment") == 0
        && count("charge.underpaid") == 0
}

/// Returns the last of the violations if most of the compared charges have one.
fn last_of_most<T>(mut violating: Vec<T>, compared: usize) -> Option<T> {
    if are_most(violating.len(), compared) { violating.pop() } else { None }
}

/// Checks that the exchange rate of a charge is the same in all its versions. Two versions that differ in exactly one of the
/// [`LOCKED_FIELDS`] other than the asset have different rates. Events and deliveries may round amounts differently, so they
/// are not compared with each other.
pub(super) fn check_locked_rate(recording: &Recording) -> Result<(), CheckError> {
    let found = subjects(recording, "charge")?;
    let charges = versions_by_charge(&found);
    let is_requoted = |version: &&Subject<'_>| REQUOTED_TYPES.contains(&version.kind);
    let changed: Vec<_> = charges
        .iter()
        .filter(|(_, versions)| !versions.iter().any(is_requoted))
        .filter_map(|((_, code), versions)| {
            [true, false].into_iter().find_map(|is_delivered| {
                let mut of_source = versions.iter().filter(|version| version.is_delivered == is_delivered);
                let first = of_source.next()?;
                of_source.find_map(|other| {
                    Some((*code, first, other, only_changed_field(first.object, other.object)?))
                })
            })
        })
        .collect();
    match changed.last().filter(|_| changed.len() >= FAULTY_OBJECTS_MIN) {
        None => Ok(()),
        Some((code, first, other, name)) => {
            let expected =
                format!("{} of charge {code}, as in its {}", member_text(first.object, name), first.kind);
            let more = changed.len() - 1;
            Err(other.violation(
                expected,
                format!("{}, as of {more} more charges", member_text(other.object, name)),
            ))
        }
    }
}

/// Returns the locked field in which two charges differ, if it is the only one, and not the asset: a customer may pay with
/// another coin of the same value.
fn only_changed_field(first: &Value, other: &Value) -> Option<&'static str> {
    let differs = |name: &&str| {
        let [first, other] = [first, other].map(|charge| charge.get(*name));
        first.zip(other).is_some_and(|(first, other)| contradict_as_written(name, first, other))
    };
    let mut differing = LOCKED_FIELDS.into_iter().filter(differs);
    differing.next().filter(|name| *name != "asset" && differing.next().is_none())
}

/// Returns the charge in the response for a single charge.
pub(crate) fn find_charge(body: &Value) -> Option<&Value> {
    find_by_fields(body, &LOCKED_FIELDS)
}

/// The response to a request of a single charge.
pub(crate) struct SingleCharge<'a> {
    pub(crate) mode: Mode,
    /// The requested id.
    id: &'a str,
    /// The number of the exchange.
    pub(crate) number: u32,
    pub(crate) body: &'a Value,
}

/// Returns the single charges that the key of their mode read.
pub(crate) fn single_charges(recording: &Recording) -> impl Iterator<Item = SingleCharge<'_>> {
    recording.exchanges.iter().filter_map(|exchange| {
        let (Purpose::Object { kind: ObjectKind::Charge, id, side: Side::Own, .. }, Caller::Own(mode)) =
            (&exchange.purpose, exchange.caller)
        else {
            return None;
        };
        let response = exchange.response().filter(|response| response.status == 200)?;
        Some(SingleCharge { mode, id, number: exchange.number, body: response.body.json()? })
    })
}

/// Checks that a single charge has the code by which it was requested, and that the single charges of both modes have the
/// amounts and the currency that their events show.
pub(super) fn check_single_charges(recording: &Recording) -> Result<(), CheckError> {
    let found = subjects(recording, "charge")?;
    let charges = versions_by_charge(&found);
    let mut changed_charges = BTreeMap::new();
    for SingleCharge { mode, id, number, body } in single_charges(recording) {
        let Some(charge) = find_charge(body) else { continue };
        if text_at(charge, &["code"]) != Some(id) {
            let actual = member_text(charge, "code");
            return Err(CheckError::violation(number, format!("the charge with code {id}"), actual));
        }
        let versions = charges.get(&(mode, id)).map_or(&[][..], Vec::as_slice);
        let changed = |version: &&Subject<'_>| only_changed_field(version.object, charge);
        let of_events = || versions.iter().filter(|version| !version.is_delivered);
        if let Some((version, name)) =
            of_events().next().and_then(|version| Some((version, changed(version)?)))
            && of_events().all(|version| changed(version) == Some(name))
        {
            let expected = format!("{} of charge {id}, as in its events", member_text(version.object, name));
            let violation = CheckError::violation(number, expected, member_text(charge, name));
            changed_charges.insert((mode, id), violation);
        }
    }
    let are_enough = changed_charges.len() >= SINGLE_OBJECTS_MIN;
    changed_charges.into_values().next().filter(|_| are_enough).map_or(Ok(()), Err)
}

/// Checks that single objects of a kind have the values that all pages show: the status if they did not change for a while,
/// and the immutable fields of an invoice. An open object may expire at the request, so its status is not compared.
pub(super) fn check_single_objects(recording: &Recording, judged: ObjectKind) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let immutable_fields: &[_] =
        if judged == ObjectKind::Invoice { &["number", "amount", "currency"] } else { &[] };
    let mut changed: BTreeMap<&str, BTreeMap<_, _>> = BTreeMap::new();
    for exchange in &recording.exchanges {
        let (Purpose::Object { kind, id, side: Side::Own, .. }, Caller::Own(mode)) =
            (&exchange.purpose, exchange.caller)
        else {
            continue;
        };
        let Some(list) = kind.list().filter(|_| *kind == judged) else { continue };
        let member = kind.json_name();
        let body = exchange.response().filter(|response| response.status == 200);
        let body = body.and_then(|response| response.body.json());
        let Some(object) = body.and_then(|body| find_object(body, id)) else { continue };
        let event = serde_json::json!({ member: { "code": id } });
        for name in immutable_fields.iter().chain(&["status"]) {
            let of_list = views.iter().filter(|view| (view.mode, view.request.list) == (mode, list));
            let rows = of_list.flat_map(PageView::rows).filter(|row| text_at(row, &["code"]) == Some(id));
            let mut listed = rows.filter_map(|row| row.get(*name));
            let (Some(expected), Some(actual)) = (listed.next(), object.get(*name)) else { continue };
            if listed.all(|value| value == expected)
                && contradict_as_written(name, expected, actual)
                && (*name != "status"
                    || !have_other_case(expected, actual)
                        && is_closed(&views, mode, member, id)
                        && is_unchanged_before(&views, mode, &event, exchange))
            {
                let expected = format!("{name} {expected} of {} {id}, as in the list", kind.as_str());
                let violation = CheckError::violation(exchange.number, expected, member_text(object, name));
                changed.entry(*name).or_default().insert((mode, id), violation);
            }
        }
    }
    let violations = changed.into_values().find(|violations| violations.len() >= SINGLE_OBJECTS_MIN);
    violations.and_then(|violations| violations.into_values().next()).map_or(Ok(()), Err)
}

/// Returns `true` if an object has an event after which it is no longer open.
fn is_closed(views: &[PageView<'_>], mode: Mode, member: &str, id: &str) -> bool {
    let events = views.iter().filter(|view| (view.mode, view.request.list) == (mode, List::Events));
    events.flat_map(PageView::rows).any(|row| {
        text_at(row, &[member, "code"]) == Some(id)
            && text_at(row, &["type"]).is_some_and(|kind| !OPEN_TYPES.contains(&kind))
    })
}

/// Checks the times of payment of charges that were paid once: each charge keeps its own, which is neither that of its
/// creation nor that of the detection of its transfer.
pub(super) fn check_times_of_payment(recording: &Recording) -> Result<(), CheckError> {
    let found = subjects(recording, "charge")?;
    let charges = versions_by_charge(&found);
    let paid_once: Vec<_> =
        charges.iter().filter(|(_, versions)| is_paid_once(types_and_ids(versions))).collect();
    for rule in [changed_paid_at, paid_at_of_creation, paid_at_of_detection] {
        let compared: Vec<_> = paid_once.iter().filter_map(|(_, versions)| rule(versions)).collect();
        let count = compared.len();
        let violating = compared.into_iter().flatten().collect();
        if let Some((version, expected)) = last_of_most(violating, count) {
            let actual = member_text(version.object, "paid_at");
            return Err(version.violation(expected, format!("{actual}, as most other charges")));
        }
    }
    Ok(())
}

/// A version with a wrong time of payment, and the correct one. `None` if the time is correct.
type WrongTime<'s> = Option<(&'s Subject<'s>, String)>;

/// Compares the times of payment of all paid versions of a charge. `None` if there is only one version.
fn changed_paid_at<'s>(versions: &Versions<'s>) -> Option<WrongTime<'s>> {
    let mut paid = versions.iter().copied().filter(|version| version.is_paid() && paid_at(version).is_some());
    let first = paid.next()?;
    let others: Vec<_> = paid.collect();
    others.first()?;
    let differs = |other: &&&Subject<'_>| {
        paid_at(first).zip(paid_at(other)).is_some_and(|(first, other)| is_other_time(first, other))
    };
    let expected = || format!("{}, as in another {}", member_text(first.object, "paid_at"), first.kind);
    Some(others.iter().find(differs).map(|other| (*other, expected())))
}

/// Returns the first version in a `charge.paid` that has a time of payment, and this time.
fn payment_with_time<'s>(versions: &Versions<'s>) -> Option<(&'s Subject<'s>, OffsetDateTime)> {
    let payments = versions.iter().filter(|version| version.is_payment());
    payments.into_iter().find_map(|version| Some((*version, paid_at(version)?)))
}

/// Returns the time of the event of a type.
fn event_time(versions: &[&Subject<'_>], kind: &str) -> Option<OffsetDateTime> {
    versions.iter().filter(|version| version.kind == kind).find_map(|version| version.recorded_at)
}

/// Compares the time of payment of a charge with the time of its creation, which must not be equal. `None` if the transfer of
/// the charge was not detected a while after the creation.
fn paid_at_of_creation<'s>(versions: &Versions<'s>) -> Option<WrongTime<'s>> {
    copied_paid_at(versions, ["charge.created", "charge.payment_detected"], DETECTION_DELAY_MIN)
}

/// Compares the time of payment of a charge with the time at which its transfer was detected, which must not be equal. `None` if
/// the transfer was not confirmed a while later.
fn paid_at_of_detection<'s>(versions: &Versions<'s>) -> Option<WrongTime<'s>> {
    copied_paid_at(versions, ["charge.payment_detected", "charge.paid"], CONFIRMATION_DELAY_MIN)
}

/// Compares the time of payment of a charge with that of the first of two events. `None` if the second event was recorded less
/// than `delay_min` after the first one.
fn copied_paid_at<'s>(
    versions: &Versions<'s>,
    kinds: [&str; 2],
    delay_min: Duration,
) -> Option<WrongTime<'s>> {
    let [first, second] = kinds.map(|kind| event_time(versions, kind));
    let (first, second) = (first?, second?);
    let (version, time) = payment_with_time(versions)?;
    if second - first < delay_min {
        return None;
    }
    let is_copied = (time - first).abs() < SAME_TIME_MAX;
    Some(is_copied.then(|| (version, format!("a paid_at after {first}, the time of its {}", kinds[0]))))
}

/// A field that shows a payment, and a function that recognizes its values.
pub(super) type PaymentField = (&'static str, fn(&Value) -> bool);

/// Checks one field in the deliveries of charges that expired or were canceled and have no event of a payment: it must not
/// show a payment.
pub(super) fn check_unpaid(
    recording: &Recording,
    (name, is_payment): PaymentField,
) -> Result<(), CheckError> {
    let found = subjects(recording, "charge")?;
    let charges = versions_by_charge(&found);
    let unpaid: Vec<_> = charges
        .values()
        .filter(|versions| versions.iter().all(|version| UNPAID_TYPES.contains(&version.kind)))
        .filter_map(|versions| {
            let is_end =
                |version: &&&Subject<'_>| version.is_delivered && CHARGE_END_TYPES.contains(&version.kind);
            versions.iter().find(is_end).copied()
        })
        .collect();
    let violating =
        unpaid.iter().filter(|version| version.object.get(name).is_some_and(is_payment)).collect();
    match last_of_most(violating, unpaid.len()) {
        None => Ok(()),
        Some(version) => {
            let expected = format!("no {name} of a payment of a charge that has none");
            Err(version.violation(expected, member_text(version.object, name)))
        }
    }
}

/// Checks that paid charges in lists, and single ones, have at least the received amount of their `charge.paid`. A second
/// transfer may have increased it. Charges with a refund or several transfers are left out. Null counts as a lower amount
/// if another charge of a list has an amount. Redacted amounts cannot be compared by size.
pub(super) fn check_amounts_of_paid_charges(recording: &Recording) -> Result<(), CheckError> {
    let Some(found) = subjects(recording, "charge").ok().filter(|_| recording.exact_amounts) else {
        return Ok(());
    };
    let charges = versions_by_charge(&found);
    let views = readable_pages(recording);
    let lists = views.iter().filter(|view| view.request.list == List::Charges);
    let listed: Vec<_> = lists
        .flat_map(|view| view.rows().iter().map(move |row| (view.mode, row, view.number())))
        .filter_map(|(mode, row, number)| Some(((mode, text_at(row, &["code"])?), row, number)))
        .collect();
    let is_field_used = listed.iter().any(|(_, row, _)| row["received_amount"].is_string());
    let single: Vec<_> = single_charges(recording).collect();
    let single = single
        .iter()
        .filter_map(|single| Some(((single.mode, single.id), find_charge(single.body)?, single.number)));
    for (copies, count_min) in
        [(listed.clone(), FAULTY_OBJECTS_MIN), (single.collect::<Vec<_>>(), SINGLE_OBJECTS_MIN)]
    {
        let mut lower = BTreeMap::new();
        for (key, charge, number) in copies {
            let Some(amount) = charges.get(&key).and_then(|versions| amount_of_payment(versions)) else {
                continue;
            };
            let is_paid = text_at(charge, &["status"]) == Some("paid");
            if is_paid && is_lower_amount(charge.get("received_amount"), amount, is_field_used) {
                lower.insert(key, (amount, charge, number));
            }
        }
        if let Some(((_, code), (amount, charge, number))) =
            lower.last_key_value().filter(|_| lower.len() >= count_min)
        {
            let actual = member_text(charge, "received_amount");
            let more = lower.len() - 1;
            return Err(CheckError::violation(
                *number,
                format!("received_amount {amount} of charge {code}, as in its charge.paid"),
                format!("{actual}, and too little of {more} more charges"),
            ));
        }
    }
    Ok(())
}

/// Returns the smallest received amount in the `charge.paid` of a charge that was paid once and not refunded.
fn amount_of_payment<'s>(versions: &[&'s Subject<'s>]) -> Option<&'s str> {
    let is_refunded = versions.iter().any(|version| version.kind == "charge.refunded");
    let is_paid_once = is_paid_once(types_and_ids(versions)) && !is_refunded;
    let payments = versions.iter().filter(|version| is_paid_once && version.is_payment());
    payments
        .filter_map(|version| text_at(version.object, &["received_amount"]))
        .min_by_key(|amount| parse_scaled(amount))
}

/// Returns `true` if a value of `received_amount` is less than an amount, and not the same one rounded.
fn is_lower_amount(value: Option<&Value>, amount: &str, is_null_lower: bool) -> bool {
    match value {
        Some(Value::Null) => is_null_lower && is_nonzero(amount),
        Some(Value::String(text)) => {
            parse_scaled(text).zip(parse_scaled(amount)).is_some_and(|(lower, amount)| lower < amount)
                && contradict_unless_rounded("", &Value::from(text.as_str()), &Value::from(amount))
        }
        _ => false,
    }
}
