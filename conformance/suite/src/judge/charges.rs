//! Chapter "charges": the charge as deliveries carry it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Check;
use super::delivered::{Flaw, Seen, caught, each, has_microseconds, missing, told};
use crate::probes::Group;
use crate::reading::text_at;
use crate::recording::Recording;
use crate::verdict::{Halt, Held, Judged};

const NEEDS: &[Group] = &[Group::Account, Group::Webhooks];

pub(super) const CHECKS: &[Check] = &[
    Check { id: "charges.fields", needs: NEEDS, judge: |it| of_charges(it, fields) },
    Check { id: "charges.amounts", needs: NEEDS, judge: |it| of_charges(it, amounts) },
    Check { id: "charges.fiat_amount", needs: NEEDS, judge: |it| places(it, "fiat_amount", 2) },
    Check { id: "charges.asset_amount", needs: NEEDS, judge: |it| places(it, "asset_amount", 18) },
    Check { id: "charges.received_amount", needs: NEEDS, judge: |it| places(it, "received_amount", 18) },
    Check { id: "charges.code", needs: NEEDS, judge: |it| word(it, "code") },
    Check { id: "charges.status", needs: NEEDS, judge: status },
    Check { id: "charges.fiat_currency", needs: NEEDS, judge: |it| word(it, "fiat_currency") },
    Check { id: "charges.asset", needs: NEEDS, judge: |it| word(it, "asset") },
    Check { id: "charges.customer_email", needs: NEEDS, judge: |it| prose(it, "customer_email") },
    Check { id: "charges.description", needs: NEEDS, judge: |it| prose(it, "description") },
    Check { id: "charges.metadata", needs: NEEDS, judge: metadata },
    Check { id: "charges.payment_link", needs: NEEDS, judge: |it| of_charges(it, payment_link) },
    Check { id: "charges.paid_at", needs: NEEDS, judge: paid_at },
    Check { id: "charges.other_fields", needs: NEEDS, judge: other_fields },
    Check { id: "charges.status_values", needs: NEEDS, judge: status_values },
    Check { id: "charges.transitions", needs: NEEDS, judge: transitions },
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
const AMOUNTS: [&str; 3] = ["fiat_amount", "asset_amount", "received_amount"];
const OF_A_CHARGE: &str = "a charge";

/// The charge that a delivery carries.
fn charge<'a>(it: &'a Seen<'_>) -> Option<&'a Value> {
    it.body.as_ref()?.get("data")?.get("charge").filter(|charge| charge.is_object())
}

/// Until it is paid, much of a charge may be open: then null passes.
fn is_paid(it: &Seen<'_>) -> bool {
    it.kind() == Some("charge.paid") || it.text(&["data", "charge", "status"]) == Some("paid")
}

fn of_charges(recording: &Recording, flaw: impl Fn(&Value, &Seen<'_>) -> Flaw) -> Judged {
    each(recording, OF_A_CHARGE, |it| charge(it).is_some(), |_, it| flaw(charge(it)?, it))
}

/// Judges a field where it is not null, and needs one charge at least where it is not.
fn of_filled(recording: &Recording, name: &str, flaw: impl Fn(&Value) -> Option<String>) -> Judged {
    let filled = |it: &Seen<'_>| charge(it).and_then(|it| it.get(name)).is_some_and(|it| !it.is_null());
    let wants = format!("a charge that has a {name}");
    each(recording, &wants, filled, |_, it| {
        let charge = charge(it)?;
        flaw(charge.get(name)?).map(|expected| (expected, told(charge, name)))
    })
}

fn fields(charge: &Value, _: &Seen<'_>) -> Flaw {
    let name = FIELDS.into_iter().find(|name| charge.get(name).is_none())?;
    Some((format!("{name} in the charge"), told(charge, name)))
}

fn decimals(text: &str) -> Option<usize> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, it)| (whole, Some(it)));
    let digits = |it: &str| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && fraction.is_none_or(digits)).then(|| fraction.map_or(0, str::len))
}

fn amounts(charge: &Value, it: &Seen<'_>) -> Flaw {
    for name in AMOUNTS {
        let fine = match charge.get(name) {
            None => true,
            Some(Value::Null) => !is_paid(it),
            Some(value) => value.as_str().is_some_and(|text| decimals(text).is_some()),
        };
        if !fine {
            return Some((format!("{name} as a decimal number in a string"), told(charge, name)));
        }
    }
    None
}

/// Of what is no decimal number, `charges.amounts` tells.
fn places(recording: &Recording, name: &str, places: usize) -> Judged {
    let found = |it: &Seen<'_>| charge(it).and_then(|it| decimals(text_at(it, &[name])?));
    let wants = format!("a charge that has a {name}");
    each(
        recording,
        &wants,
        |it| found(it).is_some(),
        |_, it| {
            let fine = found(it)? == places;
            (!fine).then(|| Some((format!("{name} with {places} decimals"), told(charge(it)?, name))))?
        },
    )
}

fn word(recording: &Recording, name: &str) -> Judged {
    of_charges(recording, |charge, _| {
        let value = charge.get(name)?;
        let fine = value.as_str().is_some_and(|text| !text.trim().is_empty());
        (!fine).then(|| (format!("{name} as a string"), told(charge, name)))
    })
}

fn prose(recording: &Recording, name: &str) -> Judged {
    of_filled(recording, name, |value| (!value.is_string()).then(|| format!("{name} as a string")))
}

fn status(recording: &Recording) -> Judged {
    word(recording, "status")?;
    let catch = caught(recording)?;
    let paid = || catch.readable().filter(|it| it.kind() == Some("charge.paid") && charge(it).is_some());
    let Some(first) = paid().next() else { return Err(missing("a charge that was paid")) };
    // A body may be made when it is sent, and by then the charge may have moved on: one is enough.
    if paid().any(|it| it.text(&["data", "charge", "status"]) == Some("paid")) {
        return Ok(Held::Plainly);
    }
    Err(first.broken(
        "status paid of a charge that is paid",
        told(charge(first).unwrap_or(&Value::Null), "status"),
    ))
}

fn metadata(recording: &Recording) -> Judged {
    of_charges(recording, |charge, it| {
        let fine = match charge.get("metadata")? {
            Value::Null => !is_paid(it),
            value => value.is_object(),
        };
        (!fine).then(|| ("metadata as an object".into(), told(charge, "metadata")))
    })
}

fn payment_link(charge: &Value, _: &Seen<'_>) -> Flaw {
    let value = charge.get("payment_link")?;
    let fine = value.is_null() || value.as_str().is_some_and(|text| !text.is_empty());
    (!fine).then(|| ("payment_link as a string or null".into(), told(charge, "payment_link")))
}

fn paid_at(recording: &Recording) -> Judged {
    let is_meant = |it: &Seen<'_>| charge(it).is_some_and(|it| it.get("paid_at").is_some());
    let has_value =
        |it: &Seen<'_>| charge(it).and_then(|it| it.get("paid_at")).is_some_and(|it| !it.is_null());
    let catch = caught(recording)?;
    for it in catch.readable().filter(|it| is_meant(it)) {
        let charge = charge(it).unwrap_or(&Value::Null);
        // A charge paid too late, or refunded, may have lost or kept it: only the event itself is sure.
        if !has_value(it) && it.kind() == Some("charge.paid") {
            return Err(it.broken("paid_at of a charge that is paid", told(charge, "paid_at")));
        }
        let fine =
            text_at(charge, &["paid_at"]).is_some_and(|text| text.ends_with('Z') && has_microseconds(text));
        if has_value(it) && !fine {
            return Err(it.broken("paid_at in UTC with microseconds and a Z", told(charge, "paid_at")));
        }
    }
    if catch.readable().any(has_value) { Ok(Held::Plainly) } else { Err(missing("a charge that was paid")) }
}

/// What all charges that came show, taken together.
fn seen_in(recording: &Recording, look: impl Fn(&Value) -> Vec<String>) -> Judged {
    let catch = caught(recording)?;
    let charges: Vec<&Value> = catch.readable().filter_map(charge).collect();
    if charges.is_empty() {
        return Err(missing(OF_A_CHARGE));
    }
    let seen: BTreeSet<String> = charges.into_iter().flat_map(look).collect();
    let seen =
        if seen.is_empty() { "nothing".to_owned() } else { seen.into_iter().collect::<Vec<_>>().join(", ") };
    Ok(Held::Seen(seen))
}

fn other_fields(recording: &Recording) -> Judged {
    seen_in(recording, |charge| {
        let names = charge.as_object().into_iter().flat_map(|it| it.keys().cloned());
        names.filter(|name| !FIELDS.contains(&name.as_str())).collect()
    })
}

fn status_values(recording: &Recording) -> Judged {
    seen_in(recording, |charge| text_at(charge, &["status"]).map(str::to_owned).into_iter().collect())
}

/// Which status came after which, by the time of the events.
fn transitions(recording: &Recording) -> Judged {
    let catch = caught(recording)?;
    let mut lives: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for it in catch.readable().filter(|it| !it.is_test()) {
        if let (Some(code), Some(status), Some(at)) = (
            it.text(&["data", "charge", "code"]),
            it.text(&["data", "charge", "status"]),
            it.text(&["created_at"]),
        ) {
            lives.entry(code).or_default().push((at, status));
        }
    }
    let mut seen = BTreeSet::new();
    for mut life in lives.into_values() {
        // Stable: what happened at the same time stays as it came.
        life.sort_by_key(|(at, _)| *at);
        let changes = life.windows(2).filter(|it| it[0].1 != it[1].1);
        seen.extend(changes.map(|it| format!("{} to {}", it[0].1, it[1].1)));
    }
    match seen.is_empty() {
        true => Err(Halt::unjudged(
            "no charge was delivered in two statuses",
            "open a charge and pay it while the suite receives",
        )),
        false => Ok(Held::Seen(seen.into_iter().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<usize>) {
        assert_eq!(decimals(text), expected, "{text}");
    }

    #[test]
    fn decimals_are_counted_as_they_are_written() {
        check("49.90", Some(2));
        check("0.000000000000000000", Some(18));
        check("100", Some(0));
    }

    #[test]
    fn what_is_no_decimal_number_has_no_decimals() {
        for text in ["", ".", "1.", ".5", "1e3", "-", "1,5", "0x10", " 1", "NaN"] {
            check(text, None);
        }
    }
}
