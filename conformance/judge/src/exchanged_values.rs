//! Values of one object that are shown at another one, as by a join with the wrong key; and texts in another notation, such as
//! HTML.
//!
//! The formats of list items are not specified, and an owner may edit an object. But a value that only one object has in one
//! source cannot be the value of another object in another source, and few edits change the notation of a text only.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording, shorten};
use conformance_model::verdict::CheckError;

use crate::charge_versions::{find_charge, single_charges};
use crate::diff::{FAULTY_OBJECTS_MIN, LISTED_KINDS, are_most};
use crate::evidence::readable_pages;
use crate::subjects::{Subject, subjects};
use crate::webhooks::{is_rewritten, unescape};

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
        Some((source, subject.mode?, subject.object))
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

/// The fields of a charge that contain texts of its owner or customer.
const TEXT_FIELDS: [&str; 4] = ["description", "customer_email", "metadata", "payment_link"];
/// The characters that have references in HTML.
const HTML_CHARACTERS: [char; 5] = ['<', '>', '&', '"', '\''];

/// A charge in a list or alone, with its mode and the number of its exchange.
type ChargeCopy<'v> = (Mode, &'v Value, u32);

/// The value of a charge in events, and a copy in another notation with the number of its exchange, if there is one.
type ComparedValue<'v> = (&'v Value, Option<(&'v Value, u32)>);

/// Checks that the texts of charges in lists, and of single charges, have the notation that all events show: not escaped, not in
/// another case or encoding. Only texts with special characters may show a fault, so these are also compared by themselves.
pub(super) fn check_notation(recording: &Recording) -> Result<(), CheckError> {
    let found = subjects(recording, "charge")?;
    let views = readable_pages(recording);
    let lists = views.iter().filter(|view| view.request.list == List::Charges);
    let listed: Vec<ChargeCopy<'_>> =
        lists.flat_map(|view| view.rows().iter().map(|row| (view.mode, row, view.number()))).collect();
    let single: Vec<_> = single_charges(recording).collect();
    let single: Vec<ChargeCopy<'_>> = single
        .iter()
        .filter_map(|single| Some((single.mode, find_charge(single.body)?, single.number)))
        .collect();
    for name in TEXT_FIELDS {
        let in_events = values_in_events(&found, name);
        check_notation_of(&listed, &in_events, name)?;
        check_notation_of(&single, &in_events, name)?;
    }
    Ok(())
}

/// Returns the value of a field in the events of each charge. `None` if the events show different values.
fn values_in_events<'s>(
    found: &'s [Subject<'_>],
    name: &str,
) -> BTreeMap<(Mode, &'s str), Option<&'s Value>> {
    let mut values: BTreeMap<_, Option<&Value>> = BTreeMap::new();
    for subject in found.iter().filter(|subject| !subject.is_delivered) {
        if let (Some(mode), Some(code)) = (subject.mode, text_at(subject.object, &["code"])) {
            let value = subject.object.get(name);
            let known = values.entry((mode, code)).or_insert(value);
            *known = known.filter(|known| Some(*known) == value);
        }
    }
    values
}

/// Checks one field in one source of charges.
fn check_notation_of(
    copies: &[ChargeCopy<'_>],
    in_events: &BTreeMap<(Mode, &str), Option<&Value>>,
    name: &str,
) -> Result<(), CheckError> {
    let mut compared: BTreeMap<(Mode, &str), ComparedValue<'_>> = BTreeMap::new();
    for (mode, charge, number) in copies {
        let Some(code) = text_at(charge, &["code"]) else { continue };
        let (Some(value), Some(Some(shown))) = (charge.get(name), in_events.get(&(*mode, code))) else {
            continue;
        };
        let (_, altered) = compared.entry((*mode, code)).or_insert((shown, None));
        if has_other_notation(value, shown) {
            *altered = Some((value, *number));
        }
    }
    let groups: [fn(&str) -> bool; 3] =
        [|_| true, |text| text.contains(HTML_CHARACTERS), |text| !text.is_ascii()];
    for is_in_group in groups {
        let of_group: Vec<_> =
            compared.iter().filter(|(_, (shown, _))| texts(shown).any(is_in_group)).collect();
        let altered: Vec<_> =
            of_group.iter().filter_map(|(key, (shown, altered))| Some((key, shown, (*altered)?))).collect();
        if let Some(((_, code), shown, (value, number))) =
            altered.last().filter(|_| are_most(altered.len(), of_group.len()))
        {
            let [shown, value] = [*shown, value].map(|value| shorten(&value.to_string()));
            let expected = format!("{name} {shown} of charge {code}, as in its events");
            let actual = format!("{value}, and another notation in {} more charges", altered.len() - 1);
            return Err(CheckError::violation(*number, expected, actual));
        }
    }
    Ok(())
}

/// Returns the text of a string, or the texts in an object.
fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let members = value.as_object().into_iter().flat_map(|members| members.values());
    std::iter::once(value).chain(members).filter_map(Value::as_str)
}

/// Returns `true` if two different values, or two values of one key in two objects, are one text in two notations.
fn has_other_notation(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            let (one_letters, other_letters) = (letters(one), letters(other));
            // A list may show a text in one line.
            !one.split_whitespace().eq(other.split_whitespace())
                && one_letters == other_letters
                && !one_letters.is_empty()
        }
        (Value::Object(one), Value::Object(other)) => one.iter().any(|(key, value)| {
            other.get(key).is_some_and(|other| match (value, other) {
                (Value::String(_), Value::String(_)) => has_other_notation(value, other),
                _ => is_rewritten(value, other),
            })
        }),
        _ => false,
    }
}

/// Returns the letters and digits of a text, without HTML, in lower case. Other letters than those of ASCII differ between
/// encodings.
fn letters(text: &str) -> String {
    let plain = unescape(&unescape(text));
    plain.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}
