//! Values of one object that are shown at another one, as by a join with the wrong key.
//!
//! The formats of list items are not specified, and an owner may edit an object. But a value that only one object has in one
//! source cannot be the value of another object in another source.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::{FAULTY_OBJECTS_MIN, LISTED_KINDS};
use crate::evidence::readable_pages;
use crate::subjects::subjects;

/// A source of objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    List,
    Event,
    Delivery,
}

/// The values of a field in one source, by the mode and the code of the object.
type ValuesByCode = BTreeMap<(Mode, String), BTreeSet<String>>;

/// Checks for each of these fields of charges or invoices that no source shows the values of other objects.
pub(super) fn check(recording: &Recording, member: &str, fields: &[&str]) -> Result<(), CheckError> {
    let found = subjects(recording, member)?;
    let views = readable_pages(recording);
    let (list, _) = LISTED_KINDS.into_iter().find(|(_, name)| *name == member).unwrap_or((List::Charges, ""));
    let listed = views.iter().filter(|view| view.request.list == list);
    let listed = listed.flat_map(|view| view.rows().iter().map(|row| (Source::List, view.mode, row)));
    let in_events = found.iter().filter_map(|subject| {
        let source = if subject.is_delivered { Source::Delivery } else { Source::Event };
        Some((source, subject.mode?, &subject.object))
    });
    let objects: Vec<_> = listed.chain(in_events).collect();
    for name in fields {
        let mut sources: BTreeMap<Source, ValuesByCode> = BTreeMap::new();
        for (source, mode, object) in &objects {
            if let (Some(code), Some(value)) = (text_at(object, &["code"]), shown_value(object.get(*name))) {
                let values = sources.entry(*source).or_default();
                values.entry((*mode, code.to_owned())).or_default().insert(value);
            }
        }
        for (source, values) in &sources {
            for reference in sources.iter().filter(|(other, _)| *other != source).map(|(_, values)| values) {
                let exchanged = exchanged_values(values, reference);
                if let Some(((_, code), value)) =
                    exchanged.last().filter(|_| exchanged.len() >= FAULTY_OBJECTS_MIN)
                {
                    return Err(CheckError::violation(
                        None,
                        format!("the same {name} of {member} {code} in lists, events and deliveries"),
                        format!("{value}, of another {member}, and so for {} more", exchanged.len() - 1),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Returns a value as text, if it is neither null nor empty.
fn shown_value(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Object(members) if !members.is_empty() => value.map(Value::to_string),
        _ => None,
    }
}

/// Returns the objects that have other values than in the reference, each of which is there the value of exactly one other
/// object.
fn exchanged_values<'v>(
    values: &'v ValuesByCode,
    reference: &ValuesByCode,
) -> Vec<(&'v (Mode, String), &'v String)> {
    let mut owners: BTreeMap<(Mode, &str), BTreeSet<&str>> = BTreeMap::new();
    for ((mode, code), shown) in reference {
        for value in shown {
            owners.entry((*mode, value)).or_default().insert(code);
        }
    }
    let is_of_one_other = |(mode, code): &(Mode, String), value: &String| {
        owners
            .get(&(*mode, value.as_str()))
            .is_some_and(|owners| owners.len() == 1 && !owners.contains(&**code))
    };
    let has_values_of_others = |(key, shown): &(&(Mode, String), &BTreeSet<String>)| {
        reference.contains_key(*key) && shown.iter().all(|value| is_of_one_other(key, value))
    };
    values
        .iter()
        .filter(has_values_of_others)
        .filter_map(|(key, shown)| Some((key, shown.first()?)))
        .collect()
}
