//! The amounts of charges compared with their payments: nothing is received without a transfer, a confirmed transfer is not zero,
//! and amounts in a coin are not those in the fiat currency.
//!
//! Each rule needs several charges with the same fault in one source. Amounts must be those that the target sent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::diff::{FAULTY_OBJECTS_MIN, are_most, is_nonzero};
use crate::object_copies::{CopySource, CopySources, KnownEvent, ObjectCopy, ObjectKey, known_events};
use crate::object_history::CHARGE_END_TYPES;
use crate::parsed_deliveries::member_text;
use crate::underpayments::parse_scaled;

/// The event types of a charge without a transfer.
const WITHOUT_TRANSFER_TYPES: [&str; 3] = ["charge.created", "charge.expired", "charge.canceled"];
/// The event types of a confirmed payment.
const CONFIRMED_TYPES: [&str; 2] = ["charge.paid", "charge.underpaid"];

/// The known events of all objects.
type EventsByObject<'a> = BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>;

/// A copy of a charge with its known events.
type CopyWithEvents<'s, 'a> = (&'s ObjectCopy<'a>, &'s [KnownEvent<'a>]);

/// A rule: returns whether a copy has a fault; `None` if it is not compared. The text is the expected value.
type AmountRule = (fn(CopyWithEvents<'_, '_>) -> Option<bool>, &'static str, &'static str);

/// The rules, each with the expected value and the field that is shown.
const RULES: [AmountRule; 3] = [
    (is_received_without_transfer, "nothing received without a transfer", "received_amount"),
    (is_received_in_fiat, "the amount in the coin", "received_amount"),
    (is_asset_amount_zero, "an amount in the coin that is not zero", "asset_amount"),
];

/// Checks the amounts of all charges.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    if !recording.exact_amounts {
        return Ok(());
    }
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    let events = known_events(&copies);
    for (is_faulty, expected, name) in RULES {
        check_rule(&copies, &events, is_faulty, (expected, name))?;
    }
    check_zero_payments(&copies, &events)
}

/// Checks that charges which are delivered or listed as underpaid are not shown as paid, if no event reports a payment since.
pub(super) fn check_underpaid_status(recording: &Recording) -> Result<(), CheckError> {
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    let events = known_events(&copies);
    let has_paid_status = |(copy, events): CopyWithEvents<'_, '_>| {
        let is_underpaid = |event: &KnownEvent<'_>| {
            WITHOUT_TRANSFER_TYPES.contains(&event.kind)
                || ["charge.payment_detected", "charge.underpaid"].contains(&event.kind)
        };
        let has_all_events = is_followed_from_creation(events) && events.iter().all(is_underpaid);
        (copy.kind() == "charge.underpaid" && has_all_events).then(|| copy.text("status") == Some("paid"))
    };
    check_rule(
        &copies,
        &events,
        has_paid_status,
        ("another status than paid, because it is underpaid,", "status"),
    )
}

/// Checks for each source that most charges do not have a fault.
fn check_rule<'a>(
    copies: &[ObjectCopy<'a>],
    events: &EventsByObject<'a>,
    is_faulty: impl Fn(CopyWithEvents<'_, 'a>) -> Option<bool>,
    (expected, name): (&str, &str),
) -> Result<(), CheckError> {
    let mut compared: BTreeMap<CopySource, BTreeMap<ObjectKey<'_>, (bool, &ObjectCopy<'_>)>> =
        BTreeMap::new();
    for copy in copies.iter().filter(|copy| copy.member == "charge") {
        let Some(events) = events.get(&copy.key()) else { continue };
        if let Some(has_fault) = is_faulty((copy, events)) {
            compared.entry(copy.source).or_default().insert(copy.key(), (has_fault, copy));
        }
    }
    for of_source in compared.into_values() {
        let faulty: Vec<_> = of_source.values().filter(|(has_fault, _)| *has_fault).collect();
        if let Some((_, copy)) = faulty.last().filter(|_| are_most(faulty.len(), of_source.len())) {
            return Err(violation(copy, expected, name, faulty.len()));
        }
    }
    Ok(())
}

fn violation(copy: &ObjectCopy<'_>, expected: &str, name: &str, count: usize) -> CheckError {
    let actual = member_text(copy.object, name);
    let kind = if copy.number.is_none() { format!(" (delivery of {})", copy.kind()) } else { String::new() };
    CheckError::violation(
        copy.number,
        format!("{expected} of charge {}", copy.code),
        format!("{actual}, and so for {} more charges{kind}", count - 1),
    )
}

/// Returns a decimal number as an integer multiple of 10⁻¹⁸.
fn amount(object: &Value, name: &str) -> Option<u128> {
    parse_scaled(text_at(object, &[name])?)
}

/// Returns `true` if all events of a charge are known, as far as they had been recorded.
fn is_followed_from_creation(events: &[KnownEvent<'_>]) -> bool {
    events.first().is_some_and(|event| event.kind == "charge.created" && event.is_followed)
}

/// Compares the received amount of a charge that ended without an event of a transfer.
fn is_received_without_transfer((copy, events): CopyWithEvents<'_, '_>) -> Option<bool> {
    let has_transfer = events.iter().any(|event| !WITHOUT_TRANSFER_TYPES.contains(&event.kind));
    let is_created = is_followed_from_creation(events);
    let has_ended = events.last().is_some_and(|event| CHARGE_END_TYPES.contains(&event.kind));
    if has_transfer || !is_created || !has_ended {
        return None;
    }
    Some(amount(copy.object, "received_amount")? > 0)
}

/// Compares the received amount of a paid charge with its amount in the fiat currency, if that differs from the amount due.
fn is_received_in_fiat((copy, events): CopyWithEvents<'_, '_>) -> Option<bool> {
    let is_paid = events.iter().any(|event| CONFIRMED_TYPES.contains(&event.kind));
    let [received, due, fiat] =
        ["received_amount", "asset_amount", "fiat_amount"].map(|name| amount(copy.object, name));
    let (received, due, fiat) = (received?, due?, fiat?);
    (is_paid && due != fiat && received > 0).then_some(received == fiat)
}

/// Returns `true` if the amount due is zero, but not the amount in the fiat currency.
fn is_asset_amount_zero((copy, _): CopyWithEvents<'_, '_>) -> Option<bool> {
    let (due, fiat) = (amount(copy.object, "asset_amount")?, amount(copy.object, "fiat_amount")?);
    (fiat > 0).then_some(due == 0)
}

/// A group of payments whose received amounts may have the same fault.
type PaymentGroup<'a> = (CopySource, &'a str, Option<Mode>, Option<&'a str>);

/// Checks that no group of confirmed payments has only received amounts of zero: those of a source and an event type, in one mode
/// or with one coin. The owner may settle a charge manually, so only charges with a detected transfer count, and none that were
/// refunded.
fn check_zero_payments(copies: &[ObjectCopy<'_>], events: &EventsByObject<'_>) -> Result<(), CheckError> {
    let mut groups: BTreeMap<PaymentGroup<'_>, BTreeMap<ObjectKey<'_>, (&str, &ObjectCopy<'_>)>> =
        BTreeMap::new();
    for copy in copies.iter().filter(|copy| CONFIRMED_TYPES.contains(&copy.kind())) {
        let Some(known) = events.get(&copy.key()) else { continue };
        let has = |kind: &str| known.iter().any(|event| event.kind == kind);
        let Some(amount) = copy.text("received_amount") else { continue };
        if !has("charge.payment_detected") || has("charge.refunded") {
            continue;
        }
        for (mode, asset) in [(Some(copy.mode), None), (None, copy.text("asset"))] {
            let group = groups.entry((copy.source, copy.kind(), mode, asset)).or_default();
            group.insert(copy.key(), (amount, copy));
        }
    }
    for group in groups.into_values() {
        let codes: BTreeSet<_> = group.keys().collect();
        let are_zero = group.values().all(|(amount, _)| !is_nonzero(amount));
        if let Some((_, copy)) =
            group.values().last().filter(|_| are_zero && codes.len() >= FAULTY_OBJECTS_MIN)
        {
            return Err(violation(
                copy,
                "the amount of the confirmed payment",
                "received_amount",
                codes.len(),
            ));
        }
    }
    Ok(())
}
