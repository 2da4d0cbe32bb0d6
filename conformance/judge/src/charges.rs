//! Chapter "charges": the charge in deliveries and events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{ObjectKind, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::account_profile::check_asset_codes;
use crate::charge_versions::{
    check_amounts_of_paid_charges, check_locked_rate, check_single_charges, check_single_objects,
    check_times_of_payment, check_unpaid,
};
use crate::check::{Check, Mismatch};
use crate::current_states;
use crate::diff::are_most;
use crate::exchanged_values;
use crate::object_copies::CopySource;
use crate::object_history::check_paid_at;
use crate::parsed_deliveries::{
    ParsedDelivery, has_microseconds, judge_each_delivery, member_text, no_delivery_with, received_deliveries,
};
use crate::payment_amounts;
use crate::subjects::{Subject, judge_each_subject, no_subject, subjects};
use crate::values_by_type;

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation];
const NEEDS_DELIVERIES: &[Group] = &[Group::Account, Group::Webhooks];
const DELIVERIES: &[Group] = &[Group::Webhooks];
const DELIVERIES_AND_OBJECTS: &[Group] = &[Group::Webhooks, Group::Objects];

pub(super) const CHECKS: &[Check] = &[
    Check::new("charges.fields", NEEDS, |recording| {
        let outcome = judge_charges(recording, missing_field)?;
        exchanged_values::check(recording, "charge", &OWN_TEXT_FIELDS)?;
        values_by_type::check(recording, "charge")?;
        exchanged_values::check_notation(recording).map(|()| outcome)
    })
    .with_optional_probes(DELIVERIES_AND_OBJECTS),
    Check::new("charges.amounts", NEEDS, |recording| {
        let outcome = judge_charges(recording, invalid_amount)?;
        check_amounts_of_paid_charges(recording)?;
        payment_amounts::check(recording).map(|()| outcome)
    })
    .with_optional_probes(DELIVERIES_AND_OBJECTS),
    Check::new("charges.fiat_amount", NEEDS_DELIVERIES, |recording| {
        judge_decimals(recording, "fiat_amount", 2)
    }),
    Check::new("charges.asset_amount", NEEDS_DELIVERIES, |recording| {
        judge_decimals(recording, "asset_amount", 18)
    }),
    Check::new("charges.received_amount", NEEDS_DELIVERIES, |recording| {
        let outcome = judge_decimals(recording, "received_amount", 18)?;
        payment_amounts::check_zero_payments(recording, true).map(|()| outcome)
    }),
    Check::new("charges.code", NEEDS, |recording| {
        let outcome = judge_string(recording, "code")?;
        check_single_charges(recording)?;
        check_locked_rate(recording).map(|()| outcome)
    })
    .with_optional_probes(DELIVERIES_AND_OBJECTS),
    Check::new("charges.status", NEEDS, judge_status).with_optional_probes(DELIVERIES_AND_OBJECTS),
    Check::new("charges.fiat_currency", NEEDS, judge_currency).with_optional_probes(DELIVERIES),
    Check::new("charges.asset", NEEDS, |recording| {
        let outcome = judge_string(recording, "asset")?;
        check_asset_codes(recording).map(|()| outcome)
    })
    .with_optional_probes(DELIVERIES),
    Check::new("charges.customer_email", NEEDS, |recording| {
        let outcome = judge_nullable_string(recording, "customer_email")?;
        check_email_addresses(recording)?;
        check_unmasked_addresses(recording).map(|()| outcome)
    })
    .with_optional_probes(DELIVERIES),
    Check::new("charges.description", NEEDS, |recording| judge_nullable_string(recording, "description"))
        .with_optional_probes(DELIVERIES),
    Check::new("charges.metadata", NEEDS, judge_metadata).with_optional_probes(DELIVERIES),
    Check::new("charges.payment_link", NEEDS, |recording| judge_charges(recording, invalid_payment_link))
        .with_optional_probes(DELIVERIES),
    Check::new("charges.paid_at", NEEDS, judge_paid_at).with_optional_probes(DELIVERIES),
    Check::new("charges.other_fields", NEEDS_DELIVERIES, observe_other_fields),
    Check::new("charges.status_values", NEEDS_DELIVERIES, observe_statuses),
    Check::new("charges.transitions", NEEDS_DELIVERIES, observe_transitions),
];

const FIELDS: [&str; 12] = [
    "code",
    "status",
    "fiat_amount",
    "fiat_currency",
    "asset",
    "asset_amount",
    "received_amount",
    "customer_email",
    "description",
    "metadata",
    "payment_link",
    "paid_at",
];
/// The fields whose values differ between most charges.
const OWN_TEXT_FIELDS: [&str; 3] = ["customer_email", "description", "metadata"];
const AMOUNTS: [&str; 3] = ["fiat_amount", "asset_amount", "received_amount"];
const A_CHARGE: &str = "a charge";

fn judge_charges(
    recording: &Recording,
    mismatch: impl Fn(&Value, &Subject<'_>) -> Option<Mismatch>,
) -> CheckResult {
    judge_each_subject(recording, "charge", A_CHARGE, |subject| Some(mismatch(subject.object, subject)))
}

/// Judges a field in the charges where it is not null. Not judged if there is no such charge.
fn judge_non_null(
    recording: &Recording,
    name: &str,
    mismatch: impl Fn(&Value) -> Option<String>,
) -> CheckResult {
    judge_each_subject(recording, "charge", &format!("a charge that has a {name}"), |subject| {
        let value = subject.object.get(name).filter(|value| !value.is_null())?;
        Some(mismatch(value).map(|expected| (expected, member_text(subject.object, name))))
    })
}

/// The fields that may be absent until the charge is paid, in the interpretation of this check. A paid charge has all
/// twelve.
const OPTIONAL_UNTIL_PAID: [&str; 3] = ["customer_email", "description", "paid_at"];

fn missing_field(charge: &Value, subject: &Subject<'_>) -> Option<Mismatch> {
    let is_missing = |name: &&str| {
        charge.get(*name).is_none() && (subject.is_paid() || !OPTIONAL_UNTIL_PAID.contains(name))
    };
    let name = FIELDS.into_iter().find(|name| is_missing(name))?;
    Some((format!("{name} in the charge"), member_text(charge, name)))
}

/// Returns the number of decimals of a decimal number; `None` if the text is not one.
fn decimal_count(text: &str) -> Option<usize> {
    let (whole, fraction) =
        text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let are_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (are_digits(whole) && fraction.is_none_or(are_digits)).then(|| fraction.map_or(0, str::len))
}

/// Returns the mantissa of a number in scientific notation, which some languages use for small numbers; other text as
/// it is. In deliveries, where the number of decimals is specified, the notation is invalid.
fn mantissa(text: &str) -> &str {
    let (number, exponent) = text.split_once(['E', 'e']).unwrap_or((text, "0"));
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) { number } else { text }
}

fn invalid_amount(charge: &Value, subject: &Subject<'_>) -> Option<Mismatch> {
    for name in AMOUNTS {
        let is_valid = match charge.get(name) {
            None => true,
            // Nothing was received yet.
            Some(Value::Null) if name == "received_amount" => !subject.is_paid(),
            Some(value) => value.as_str().is_some_and(|text| {
                decimal_count(text).is_some()
                    || (!subject.is_delivered && decimal_count(mantissa(text)).is_some())
            }),
        };
        if !is_valid {
            return Some((format!("{name} as a decimal number in a string"), member_text(charge, name)));
        }
    }
    None
}

/// Judges the number of decimals. `charges.amounts` judges values that are not decimal numbers.
fn judge_decimals(recording: &Recording, name: &str, required: usize) -> CheckResult {
    let decimals = |parsed: &ParsedDelivery<'_>| {
        parsed.charge().and_then(|charge_object| decimal_count(text_at(charge_object, &[name])?))
    };
    let needed = format!("a charge that has a {name}");
    judge_each_delivery(
        recording,
        &needed,
        |parsed| decimals(parsed).is_some(),
        |_, parsed| {
            let is_valid = decimals(parsed)? == required;
            (!is_valid).then(|| {
                Some((format!("{name} with {required} decimals"), member_text(parsed.charge()?, name)))
            })?
        },
    )
}

fn judge_string(recording: &Recording, name: &str) -> CheckResult {
    judge_charges(recording, |charge, _| {
        let value = charge.get(name)?;
        let is_valid = value.as_str().is_some_and(|text| !text.trim().is_empty());
        (!is_valid).then(|| (format!("{name} as a string"), member_text(charge, name)))
    })
}

/// Judges the currency code, which is no symbol such as `€`.
fn judge_currency(recording: &Recording) -> CheckResult {
    judge_charges(recording, |charge, _| {
        let value = charge.get("fiat_currency")?;
        let is_code = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (!value.as_str().is_some_and(is_code))
            .then(|| ("fiat_currency as a code such as EUR".into(), member_text(charge, "fiat_currency")))
    })
}

fn judge_nullable_string(recording: &Recording, name: &str) -> CheckResult {
    judge_non_null(recording, name, |value| (!value.is_string()).then(|| format!("{name} as a string")))
}

/// The minimum number of different values of `customer_email`, none of them an address, for a violation.
const NO_ADDRESS_MIN: usize = 3;

/// Checks that not all values of `customer_email` are texts without an `@`, such as names. A service may mask addresses by
/// characters that are not letters, and redaction hides them.
fn check_email_addresses(recording: &Recording) -> Result<(), CheckError> {
    let charges = subjects(recording, "charge")?;
    let with_email = |charge: &'_ Subject| text_at(charge.object, &["customer_email"]).map(str::to_owned);
    let values: BTreeSet<_> = charges.iter().filter_map(with_email).filter(|text| !text.is_empty()).collect();
    let is_no_address = |text: &String| !text.contains('@') && text.chars().any(char::is_alphabetic);
    let has_fault =
        recording.exact_amounts && values.len() >= NO_ADDRESS_MIN && values.iter().all(is_no_address);
    match charges
        .iter()
        .rfind(|charge| has_fault && with_email(charge).is_some_and(|text| is_no_address(&text)))
    {
        None => Ok(()),
        Some(charge) => {
            Err(charge.violation("an e-mail address", member_text(charge.object, "customer_email")))
        }
    }
}

/// Returns `true` for an address in which characters are replaced, as in `l***@example.net`.
fn is_masked_address(text: &str) -> bool {
    text.contains('@') && ["**", "••", "…"].into_iter().any(|mask| text.contains(mask))
}

/// Checks that most addresses are not masked, neither in deliveries nor in events.
fn check_unmasked_addresses(recording: &Recording) -> Result<(), CheckError> {
    let charges = subjects(recording, "charge")?;
    for is_delivered in [true, false] {
        let of_source = charges.iter().filter(|charge| charge.is_delivered == is_delivered);
        let addresses: BTreeMap<&str, &Subject<'_>> = of_source
            .filter_map(|charge| Some((text_at(charge.object, &["customer_email"])?, charge)))
            .filter(|(text, _)| text.contains('@'))
            .collect();
        let masked: Vec<_> = addresses.iter().filter(|(text, _)| is_masked_address(text)).collect();
        if let Some((_, charge)) = masked.last().filter(|_| are_most(masked.len(), addresses.len())) {
            let actual = member_text(charge.object, "customer_email");
            let actual = format!("{actual}, and {} more masked addresses", masked.len() - 1);
            return Err(charge.violation("the customer's e-mail address", actual));
        }
    }
    Ok(())
}

fn judge_status(recording: &Recording) -> CheckResult {
    judge_string(recording, "status")?;
    check_unpaid(recording, ("status", |status| status == "paid"))?;
    check_single_objects(recording, ObjectKind::Charge)?;
    payment_amounts::check_underpaid_status(recording)?;
    current_states::check(recording, &[("charge", CopySource::Single)])?;
    let found = subjects(recording, "charge")?;
    let mut judged = false;
    for delivered in [true, false] {
        let paid =
            || found.iter().filter(|subject| subject.is_payment() && subject.is_delivered == delivered);
        let Some(first) = paid().next() else { continue };
        // A body may show the charge at the time it was sent, when the status may have changed again: one
        // paid charge suffices.
        if !paid().any(|subject| text_at(subject.object, &["status"]) == Some("paid")) {
            return Err(
                first.violation("status paid of a charge that is paid", member_text(first.object, "status"))
            );
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_subject(recording, "a charge that was paid")) }
}

fn judge_metadata(recording: &Recording) -> CheckResult {
    judge_charges(recording, |charge, subject| {
        let is_valid = match charge.get("metadata")? {
            Value::Null => !subject.is_paid(),
            value => value.is_object(),
        };
        (!is_valid).then(|| ("metadata as an object".into(), member_text(charge, "metadata")))
    })
}

fn invalid_payment_link(charge: &Value, _: &Subject<'_>) -> Option<Mismatch> {
    let value = charge.get("payment_link")?;
    let is_valid = value.is_null() || value.as_str().is_some_and(|text| !text.is_empty());
    (!is_valid).then(|| ("payment_link as a string or null".into(), member_text(charge, "payment_link")))
}

/// Checks that `paid_at` is not null in all listed payments of two or more charges. A single charge may have lost it by
/// a refund.
fn check_some_paid_at(recording: &Recording) -> Result<(), CheckError> {
    let found = subjects(recording, "charge")?;
    let paid = || found.iter().filter(|subject| subject.is_payment() && !subject.is_delivered);
    let codes: BTreeSet<_> = paid().filter_map(|subject| text_at(subject.object, &["code"])).collect();
    let has_null_paid_at = |subject: &Subject<'_>| subject.object.get("paid_at").is_some_and(Value::is_null);
    match paid().next().filter(|_| codes.len() > 1 && paid().all(has_null_paid_at)) {
        None => Ok(()),
        Some(first) => {
            Err(first.violation("paid_at of a charge that is paid", "null, as of every other charge.paid"))
        }
    }
}

fn judge_paid_at(recording: &Recording) -> CheckResult {
    check_some_paid_at(recording)?;
    check_paid_at(recording)?;
    check_times_of_payment(recording)?;
    check_unpaid(recording, ("paid_at", Value::is_string))?;
    judge_each_subject(recording, "charge", "a charge that was paid", |subject| {
        let actual = || member_text(subject.object, "paid_at");
        let value = subject.object.get("paid_at").filter(|value| !value.is_null());
        let Some(value) = value else {
            // A late or refunded payment may have no `paid_at`, and a listed event may show a later state of the
            // charge: only a delivered payment must have it.
            let must_be_set =
                subject.is_payment() && subject.is_delivered && subject.object.get("paid_at").is_some();
            return must_be_set.then(|| Some(("paid_at of a charge that is paid".into(), actual())));
        };
        let text = value.as_str().unwrap_or_default();
        if !subject.is_delivered {
            let is_valid = parse_utc(text).is_some();
            return Some((!is_valid).then(|| ("paid_at as an ISO 8601 time in UTC".into(), actual())));
        }
        let is_valid = text.ends_with('Z') && has_microseconds(text);
        Some((!is_valid).then(|| ("paid_at in UTC with microseconds and a Z".into(), actual())))
    })
}

/// Returns the distinct values that `values_of` finds in all delivered charges.
fn observe_charges(recording: &Recording, values_of: impl Fn(&Value) -> Vec<String>) -> CheckResult {
    let received = received_deliveries(recording)?;
    let charges: Vec<&Value> = received.readable_deliveries().filter_map(ParsedDelivery::charge).collect();
    if charges.is_empty() {
        return Err(no_delivery_with(A_CHARGE));
    }
    let values: BTreeSet<String> = charges.into_iter().flat_map(values_of).collect();
    let values = if values.is_empty() {
        "nothing".to_owned()
    } else {
        values.into_iter().collect::<Vec<_>>().join(", ")
    };
    Ok(CheckOutcome::Observed(values))
}

fn observe_other_fields(recording: &Recording) -> CheckResult {
    observe_charges(recording, |charge| {
        let names = charge.as_object().into_iter().flat_map(|members| members.keys().cloned());
        names.filter(|name| !FIELDS.contains(&name.as_str())).collect()
    })
}

fn observe_statuses(recording: &Recording) -> CheckResult {
    observe_charges(recording, |charge| text_at(charge, &["status"]).map(str::to_owned).into_iter().collect())
}

/// Observes the changes of status of each charge, in the order of the events' times.
fn observe_transitions(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    // By the code of the charge, then by the time of the event.
    let mut statuses_by_time: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for parsed in received.readable_deliveries().filter(|parsed| !parsed.is_test()) {
        if let (Some(code), Some(status), Some(created_at)) = (
            parsed.text(&["data", "charge", "code"]),
            parsed.text(&["data", "charge", "status"]),
            parsed.text(&["created_at"]),
        ) {
            statuses_by_time.entry(code).or_default().entry(created_at).or_default().insert(status);
        }
    }
    let mut transitions = BTreeSet::new();
    for history in statuses_by_time.into_values() {
        // The order of events at the same time is unknown.
        let statuses: Vec<_> = history.into_values().collect();
        let changes =
            statuses.windows(2).filter(|pair| pair[0].len() == 1 && pair[1].len() == 1 && pair[0] != pair[1]);
        let status = |statuses: &BTreeSet<&str>| statuses.first().copied().unwrap_or_default().to_owned();
        transitions.extend(changes.map(|pair| format!("{} to {}", status(&pair[0]), status(&pair[1]))));
    }
    match transitions.is_empty() {
        true => Err(CheckError::unjudged(
            "no charge was delivered in two statuses",
            "open a charge and pay it while the suite receives",
        )),
        false => Ok(CheckOutcome::Observed(transitions.into_iter().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_decimal_count(text: &str, expected: Option<usize>) {
        assert_eq!(decimal_count(text), expected, "{text}");
    }

    #[test]
    fn trailing_zeros_count_as_decimals() {
        check_decimal_count("49.90", Some(2));
        check_decimal_count("0.000000000000000000", Some(18));
        check_decimal_count("100", Some(0));
    }

    #[test]
    fn text_that_is_not_a_decimal_number_has_no_decimals() {
        for text in ["", ".", "1.", ".5", "1e3", "-", "1,5", "0x10", " 1", "NaN"] {
            check_decimal_count(text, None);
        }
    }
}
