//! The amounts of charges compared with their payments: nothing is received without a transfer, a confirmed transfer is not zero,
//! and amounts in a coin are not those in the fiat currency.
//!
//! Each rule needs several charges with the same fault in one source. Amounts must be those that the target sent.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::charge_versions::versions_by_charge;
use crate::diff::{FAULTY_OBJECTS_MIN, are_most, is_nonzero};
use crate::object_copies::{CopySource, CopySources, KnownEvent, ObjectCopy, ObjectKey, known_events};
use crate::object_history::{CHARGE_END_TYPES, CONFIRMED_TYPES};
use crate::parsed_deliveries::member_text;
use crate::subjects::{Subject, subjects};
use crate::underpayments::parse_scaled;

/// The event types of a charge without a transfer.
const WITHOUT_TRANSFER_TYPES: [&str; 3] = ["charge.created", "charge.expired", "charge.canceled"];

/// The known events of all objects.
type EventsByObject<'a> = BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>>;

/// A copy of a charge with its known events.
type CopyWithEvents<'s, 'a> = (&'s ObjectCopy<'a>, &'s [KnownEvent<'a>]);

/// A rule about a field of charges.
struct AmountRule {
    /// Returns `true` if a copy has a fault; `None` if it is not compared.
    is_faulty: fn(CopyWithEvents<'_, '_>) -> Option<bool>,
    /// Returns the expected value for the charge with a code.
    expected: fn(&str) -> String,
    /// The field that a violation shows.
    field: &'static str,
}

const RULES: [AmountRule; 3] = [
    AmountRule {
        is_faulty: is_received_without_transfer,
        expected: |code| format!("received_amount 0 of charge {code}, which has no transfer"),
        field: "received_amount",
    },
    AmountRule {
        is_faulty: is_received_in_fiat,
        expected: |code| format!("the amount in the coin of charge {code}"),
        field: "received_amount",
    },
    AmountRule {
        is_faulty: is_asset_amount_zero,
        expected: |code| format!("an amount in the coin of charge {code} that is not zero"),
        field: "asset_amount",
    },
];
/// The rule that an underpaid charge is not shown as paid.
const UNDERPAID_STATUS: AmountRule = AmountRule {
    is_faulty: is_underpaid_shown_as_paid,
    expected: |code| format!("a status other than paid for underpaid charge {code}"),
    field: "status",
};

/// Checks the amounts of all charges.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    if !recording.exact_amounts {
        return Ok(());
    }
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    let events = known_events(&copies);
    RULES.iter().try_for_each(|rule| check_rule(&copies, &events, rule))?;
    check_zero_payments(recording, false)
}

/// Checks that charges which are delivered or listed as underpaid are not shown as paid, if no event reports a payment since.
pub(super) fn check_underpaid_status(recording: &Recording) -> Result<(), CheckError> {
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    let events = known_events(&copies);
    check_rule(&copies, &events, &UNDERPAID_STATUS)
}

/// Returns `true` if the event of an underpayment shows the charge as paid, and all its events are known.
fn is_underpaid_shown_as_paid((copy, events): CopyWithEvents<'_, '_>) -> Option<bool> {
    let is_underpaid = |event: &KnownEvent<'_>| {
        WITHOUT_TRANSFER_TYPES.contains(&event.kind)
            || ["charge.payment_detected", "charge.underpaid"].contains(&event.kind)
    };
    let has_all_events = has_all_events((copy, events)) && events.iter().all(is_underpaid);
    (copy.kind() == "charge.underpaid" && has_all_events).then(|| copy.text("status") == Some("paid"))
}

/// Checks for each source that most charges do not have a fault.
fn check_rule(
    copies: &[ObjectCopy<'_>],
    events: &EventsByObject<'_>,
    rule: &AmountRule,
) -> Result<(), CheckError> {
    let mut compared: BTreeMap<CopySource, BTreeMap<ObjectKey<'_>, (bool, &ObjectCopy<'_>)>> =
        BTreeMap::new();
    for copy in copies.iter().filter(|copy| copy.member == "charge") {
        let Some(events) = events.get(&copy.key()) else { continue };
        if let Some(has_fault) = (rule.is_faulty)((copy, events)) {
            compared.entry(copy.source).or_default().insert(copy.key(), (has_fault, copy));
        }
    }
    for of_source in compared.into_values() {
        let faulty: Vec<_> = of_source.values().filter(|(has_fault, _)| *has_fault).collect();
        if let Some((_, copy)) = faulty.last().filter(|_| are_most(faulty.len(), of_source.len())) {
            return Err(violation(copy, rule, faulty.len()));
        }
    }
    Ok(())
}

fn violation(copy: &ObjectCopy<'_>, rule: &AmountRule, count: usize) -> CheckError {
    let actual = member_text(copy.object, rule.field);
    let kind = if copy.number.is_none() { format!(" (delivery of {})", copy.kind()) } else { String::new() };
    CheckError::violation(
        copy.number,
        (rule.expected)(copy.code),
        format!("{actual}, and so for {} more charges{kind}", count - 1),
    )
}

/// Returns a decimal number as an integer multiple of 10⁻¹⁸.
fn amount(object: &Value, name: &str) -> Option<u128> {
    parse_scaled(text_at(object, &[name])?)
}

/// Returns `true` if all events of a charge that a copy may show are known.
fn has_all_events((copy, events): CopyWithEvents<'_, '_>) -> bool {
    events.first().is_some_and(|event| event.kind == "charge.created" && event.has_all_later_events(copy))
}

/// Compares the received amount of a charge that ended without an event of a transfer. Null counts as zero.
fn is_received_without_transfer((copy, events): CopyWithEvents<'_, '_>) -> Option<bool> {
    let has_transfer = events.iter().any(|event| !WITHOUT_TRANSFER_TYPES.contains(&event.kind));
    let has_ended = events.last().is_some_and(|event| CHARGE_END_TYPES.contains(&event.kind));
    if has_transfer || !has_ended || !has_all_events((copy, events)) {
        return None;
    }
    match copy.object.get("received_amount") {
        None | Some(Value::Null) => Some(false),
        Some(_) => Some(amount(copy.object, "received_amount")? > 0),
    }
}

/// Compares the received amount of a paid charge with its amount in the fiat currency, if that differs by more than 10 % from
/// the amount due: a customer may pay a little more in a stablecoin.
fn is_received_in_fiat((copy, events): CopyWithEvents<'_, '_>) -> Option<bool> {
    let is_paid = events.iter().any(|event| CONFIRMED_TYPES.contains(&event.kind));
    let [received, due, fiat] =
        ["received_amount", "asset_amount", "fiat_amount"].map(|name| amount(copy.object, name));
    let (received, due, fiat) = (received?, due?, fiat?);
    (is_paid && due.abs_diff(fiat) > fiat / 10 && received > 0).then_some(received == fiat)
}

/// Returns `true` if the amount due is zero, but not the amount in the fiat currency.
fn is_asset_amount_zero((copy, _): CopyWithEvents<'_, '_>) -> Option<bool> {
    let (due, fiat) = (amount(copy.object, "asset_amount")?, amount(copy.object, "fiat_amount")?);
    (fiat > 0).then_some(due == 0)
}

/// An event type, a mode and a coin, whose payments may have the same fault. `None`: all modes, or all coins.
type PaymentGroup<'a> = (&'a str, Option<Mode>, Option<&'a str>);

/// A confirmed payment of each charge of a group, with its received amount.
type PaymentsByCharge<'a> = BTreeMap<(Mode, &'a str), (&'a str, &'a Subject<'a>)>;

/// Checks that no group of confirmed payments in events, or in deliveries, has only received amounts of zero: those of an event
/// type, in one mode, with one coin, or all. The owner may settle a charge manually, so only charges with a detected transfer
/// count, and none that were refunded. Redaction hides zero.
pub(super) fn check_zero_payments(recording: &Recording, is_delivered: bool) -> Result<(), CheckError> {
    if !recording.exact_amounts {
        return Ok(());
    }
    let found = subjects(recording, "charge")?;
    let mut groups: BTreeMap<PaymentGroup<'_>, PaymentsByCharge<'_>> = BTreeMap::new();
    for ((mode, code), versions) in versions_by_charge(&found) {
        let has = |kind: &str| versions.iter().any(|version| version.kind == kind);
        if !has("charge.payment_detected") || has("charge.refunded") {
            continue;
        }
        let payments = versions.iter().filter(|version| CONFIRMED_TYPES.contains(&version.kind));
        for payment in payments.filter(|version| version.is_delivered == is_delivered) {
            let [amount, asset] = ["received_amount", "asset"].map(|name| text_at(payment.object, &[name]));
            let Some(amount) = amount else { continue };
            for (mode_of_group, asset) in [(None, None), (Some(mode), None), (None, asset)] {
                let group = groups.entry((payment.kind, mode_of_group, asset)).or_default();
                group.insert((mode, code), (amount, payment));
            }
        }
    }
    for group in groups.into_values().filter(|group| group.len() >= FAULTY_OBJECTS_MIN) {
        let are_zero = group.values().all(|(amount, _)| !is_nonzero(amount));
        if let Some(((_, code), (amount, payment))) = group.last_key_value().filter(|_| are_zero) {
            return Err(payment.violation(
                format!("the amount of the confirmed payment as received_amount of charge {code}"),
                format!("{amount}, as in all {} payments", group.len()),
            ));
        }
    }
    Ok(())
}
