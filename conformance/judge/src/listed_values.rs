//! The values of listed charges and invoices, compared with the objects in their newest events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::{
    CONSISTENCY_TIME, IMMUTABLE_FIELDS, LISTED_KINDS, are_most, contradict, contradict_in_field,
};
use crate::evidence::{PageView, comparable_groups, first_long_page_reads, recorded_at};
use crate::object_history::EVENT_DELAY_MAX;

/// The fields that a customer who selects another coin, or an owner who edits an invoice, changes without an event.
const EDITABLE_FIELDS: [&str; 4] = ["asset", "asset_amount", "amount", "currency"];

/// A listed object, with its page and its newest event.
type ListedObject<'a> = (&'a PageView<'a>, &'a Value, &'a Value);

/// Compares each listed charge or invoice with the same object in its newest event. The immutable fields must be equal in pages
/// that were read before the events; those of later pages may have been edited. `status` and `paid_at` must be, too, once no
/// further event can have changed them.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    for views in &comparable_groups(recording) {
        for mode in Mode::BOTH {
            let Some(events) = first_long_page_reads(views, List::Events, mode).next_back() else { continue };
            for ((list, member), (_, immutable_fields)) in LISTED_KINDS.into_iter().zip(IMMUTABLE_FIELDS) {
                let mut newest: BTreeMap<&str, &Value> = BTreeMap::new();
                for row in events.rows() {
                    let Some(code) = text_at(row, &[member, "code"]) else { continue };
                    let known = newest.entry(code).or_insert(row);
                    if recorded_at(row) > recorded_at(known) {
                        *known = row;
                    }
                }
                let listed = views
                    .iter()
                    .filter(|view| (view.mode, view.request.list) == (mode, list))
                    .flat_map(|view| view.rows().iter().map(move |row| (view, row)))
                    .filter_map(|(view, row)| Some((view, row, *newest.get(text_at(row, &["code"])?)?)));
                let (earlier, later): (Vec<_>, Vec<_>) =
                    listed.partition(|(view, ..)| view.number() < events.number());
                for name in immutable_fields.iter().copied() {
                    check_field(&earlier, member, name, |_, _, _| true)?;
                    if !EDITABLE_FIELDS.contains(&name) {
                        check_field_of_most(&later, member, name)?;
                    }
                }
                check_field(&earlier, member, "status", |view, _, event| is_final(member, view, event))?;
                check_field(&earlier, member, "paid_at", |view, row, event| {
                    is_final(member, view, event) || is_unchanged(member, view, row, event)
                })?;
            }
        }
    }
    Ok(())
}

/// Returns `true` if the status of an object in its newest event cannot have changed without an event before a page was read:
/// the event is so old that an expiry would be recorded. An unpaid invoice may become overdue without an event.
fn is_final(member: &str, view: &PageView<'_>, event: &Value) -> bool {
    let is_old = recorded_at(event).zip(view.read_at).is_some_and(|(at, now)| at + EVENT_DELAY_MAX < now);
    is_old && (member == "charge" || text_at(event, &["type"]) == Some("invoice.paid"))
}

/// Returns `true` if a listed object has the status of its newest event, which all copies of the object must show by now.
fn is_unchanged(member: &str, view: &PageView<'_>, row: &Value, event: &Value) -> bool {
    let status = text_at(row, &["status"]);
    let is_consistent =
        recorded_at(event).zip(view.read_at).is_some_and(|(at, now)| at + CONSISTENCY_TIME < now);
    is_consistent && status.is_some() && status == text_at(event, &[member, "status"])
}

/// Checks one field of the listed objects for which `counts` returns `true`.
fn check_field(
    listed: &[ListedObject<'_>],
    member: &str,
    name: &str,
    counts: impl Fn(&PageView<'_>, &Value, &Value) -> bool,
) -> Result<(), CheckError> {
    let mut differing = differing_objects(listed, member, name).into_iter();
    let counted = differing.find(|(view, row, event)| counts(view, row, event));
    counted.map_or(Ok(()), |object| Err(other_value(object, member, name)))
}

/// Checks that one field does not differ in most of the listed objects. The owner may edit a few of them.
fn check_field_of_most(listed: &[ListedObject<'_>], member: &str, name: &str) -> Result<(), CheckError> {
    let count = |objects: &[ListedObject<'_>]| {
        objects.iter().filter_map(|(_, row, _)| text_at(row, &["code"])).collect::<BTreeSet<_>>().len()
    };
    let differing = differing_objects(listed, member, name);
    match differing.last().filter(|_| are_most(count(&differing), count(listed))) {
        Some(object) => Err(other_value(*object, member, name)),
        None => Ok(()),
    }
}

/// Returns the listed objects with another value of a field than in their newest events. The fields and formats of lists are not
/// specified, so a different value counts only if some object has the value of its event, if both values are times, or if only
/// the event has a time.
fn differing_objects<'a>(listed: &[ListedObject<'a>], member: &str, name: &str) -> Vec<ListedObject<'a>> {
    let values = |(_, row, event): &ListedObject<'a>| Some((row.get(name)?, event[member].get(name)?));
    let is_comparable = listed
        .iter()
        .filter_map(values)
        .any(|(listed, shown)| listed.is_string() && !contradict(listed, shown));
    let is_time = |value: &Value| value.as_str().is_some_and(|text| parse_utc(text).is_some());
    let is_differing = |object: &&ListedObject<'a>| {
        values(object).is_some_and(|(listed, shown)| {
            let is_lost = listed.is_null() && is_time(shown);
            contradict_in_field(name, listed, shown)
                && (is_comparable || is_lost || (is_time(listed) && is_time(shown)))
        })
    };
    listed.iter().filter(is_differing).copied().collect()
}

/// Returns the violation for a listed object with another value of a field than in its newest event.
fn other_value((view, row, event): ListedObject<'_>, member: &str, name: &str) -> CheckError {
    let expected = format!(
        "{name} {} of {member} {}, as its newest event {} shows",
        event[member][name], row["code"], event["id"]
    );
    CheckError::violation(view.number(), expected, format!("{name} {}", row[name]))
}
