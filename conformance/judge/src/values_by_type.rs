//! The fields of one object in events of different types: a serializer of one type may omit or replace values.
//!
//! Events contain the full object, and only its owner or customer changes these fields. So a value that an earlier event of
//! the object shows is not empty in most events of another type; and if an earlier and a later event show the same value, the
//! events between them do not show another one. Only events of one page, or only deliveries, are compared with each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{Recording, shorten};
use conformance_model::verdict::CheckError;

use crate::diff::{are_most, contradict_as_written};
use crate::parsed_deliveries::member_text;
use crate::subjects::{Subject, subjects};

/// The fields of a charge and of an invoice that no event changes.
const FIELDS: [(&str, &[&str]); 2] = [
    (
        "charge",
        &[
            "description",
            "customer_email",
            "metadata",
            "payment_link",
            "fiat_amount",
            "fiat_currency",
            "asset",
            "asset_amount",
        ],
    ),
    ("invoice", &["number", "amount", "currency", "customer", "hosted_url"]),
];
/// The fields of the locked rate, of which only empty values are a fault here.
const RATE_FIELDS: [&str; 3] = ["fiat_amount", "fiat_currency", "asset_amount"];
/// The event types after which an invoice may lack its page; other rules judge those of a paid invoice.
const WITHDRAWN_TYPES: [&str; 2] = ["invoice.voided", "invoice.paid"];

/// A source whose versions of an object are comparable: the deliveries, or the page with this exchange number.
type SourceId = Option<u32>;

/// The versions of one object in one source, oldest first.
type FieldVersions<'s> = Vec<&'s Subject<'s>>;

/// Checks the fields of charges or of invoices.
pub(super) fn check(recording: &Recording, member: &str) -> Result<(), CheckError> {
    let found = subjects(recording, member)?;
    let mut objects: BTreeMap<(Mode, &str, SourceId), FieldVersions<'_>> = BTreeMap::new();
    for subject in &found {
        if let (Some(mode), Some(code)) = (subject.mode, text_at(subject.object, &["code"])) {
            objects.entry((mode, code, subject.exchange)).or_default().push(subject);
        }
    }
    for versions in objects.values_mut() {
        versions.sort_by_key(|version| version.created_at);
    }
    let fields = FIELDS.iter().find(|(name, _)| *name == member).map_or(&[][..], |(_, fields)| *fields);
    fields.iter().try_for_each(|name| check_field(&objects, member, name))
}

/// The number of compared objects, and the versions with a fault by the code of their object.
#[derive(Default)]
struct FaultsOfType<'s> {
    compared: BTreeSet<(Mode, &'s str)>,
    faulty: BTreeMap<(Mode, &'s str), (&'s Subject<'s>, &'s Subject<'s>)>,
}

/// Checks one field, for each event type and separately in deliveries and on pages.
fn check_field<'s>(
    objects: &BTreeMap<(Mode, &'s str, SourceId), FieldVersions<'s>>,
    member: &str,
    name: &str,
) -> Result<(), CheckError> {
    let mut by_type: BTreeMap<(&str, bool), FaultsOfType<'_>> = BTreeMap::new();
    for ((mode, code, source), versions) in objects {
        let judged = versions.iter().enumerate().filter(|(_, version)| !version.kind.ends_with(".created"));
        for (index, version) in judged {
            let Some(reference) = reference(&versions[..index], name) else { continue };
            if may_differ(name, version.kind) {
                continue;
            }
            let of_type = by_type.entry((version.kind, source.is_some())).or_default();
            of_type.compared.insert((*mode, code));
            let is_faulty = is_empty(version.object.get(name))
                || is_temporarily_different(name, reference, version, &versions[index + 1..]);
            if is_faulty {
                of_type.faulty.insert((*mode, code), (version, reference));
            }
        }
    }
    for ((kind, _), of_type) in &by_type {
        if let Some(((_, code), (version, reference))) =
            of_type.faulty.last_key_value().filter(|_| are_most(of_type.faulty.len(), of_type.compared.len()))
        {
            let shown = shorten(&member_text(reference.object, name));
            let actual = member_text(version.object, name);
            return Err(version.violation(
                format!("{shown} of {member} {code}, as in its {}", reference.kind),
                format!("{actual}, and other values in the {kind} of {} more", of_type.faulty.len() - 1),
            ));
        }
    }
    Ok(())
}

/// Returns `true` if the events of a type may show another value: a withdrawn invoice may have no page, and late funds may be
/// credited at another rate.
fn may_differ(name: &str, kind: &str) -> bool {
    match name {
        "hosted_url" => WITHDRAWN_TYPES.contains(&kind),
        "asset_amount" => kind == "charge.late_payment",
        _ => false,
    }
}

/// Returns the latest of these versions that shows a value of the field.
fn reference<'s>(earlier: &[&'s Subject<'s>], name: &str) -> Option<&'s Subject<'s>> {
    earlier.iter().rev().find(|version| !is_empty(version.object.get(name))).copied()
}

/// Returns `true` if a field is missing or has no content.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

/// Returns `true` if a version contradicts the reference, and a later version of another type equals the reference again. Another
/// rule compares the fields of the locked rate.
fn is_temporarily_different(
    name: &str,
    reference: &Subject<'_>,
    version: &Subject<'_>,
    later: &[&Subject<'_>],
) -> bool {
    let contradicts = |other: &Subject<'_>| match (reference.object.get(name), other.object.get(name)) {
        (Some(Value::Object(first)), Some(Value::Object(second))) => first != second,
        (Some(first), Some(second)) => contradict_as_written(name, first, second),
        _ => false,
    };
    let equals = |other: &&Subject<'_>| {
        other.kind != version.kind && other.object.get(name) == reference.object.get(name)
    };
    !RATE_FIELDS.contains(&name) && contradicts(version) && later.iter().any(equals)
}
