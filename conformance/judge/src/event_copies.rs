//! The copies of each event on all pages of events, compared with each other: an event that was recorded does not change.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::is_other_time;
use crate::evidence::readable_pages;
use crate::parsed_deliveries::member_text;

/// The minimum number of events with different copies, for a violation.
const CHANGED_EVENTS_MIN: usize = 2;

/// Checks that all copies of an event have the same value in a field: `type`, `created_at` or `details`.
pub(super) fn check_unchanged_field(recording: &Recording, name: &str) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let mut first_copies: BTreeMap<(Mode, &str), &Value> = BTreeMap::new();
    let mut changed: BTreeMap<(Mode, &str), (u32, &Value, &Value)> = BTreeMap::new();
    for view in views.iter().filter(|view| view.request.list == List::Events) {
        for row in view.rows() {
            let Some(id) = text_at(row, &["id"]) else { continue };
            let first = *first_copies.entry((view.mode, id)).or_insert(row);
            if has_changed(first.get(name), row.get(name)) {
                changed.entry((view.mode, id)).or_insert((view.number(), first, row));
            }
        }
    }
    match changed.last_key_value().filter(|_| changed.len() >= CHANGED_EVENTS_MIN) {
        None => Ok(()),
        Some(((_, id), (number, first, row))) => Err(CheckError::violation(
            *number,
            format!("{} of event {id}, as on an earlier page", member_text(first, name)),
            format!("{}, and other values of {} more events", member_text(row, name), changed.len() - 1),
        )),
    }
}

/// Returns `true` if a later copy has another text or time, or lost all details. Details may be added later.
fn has_changed(first: Option<&Value>, later: Option<&Value>) -> bool {
    match (first, later) {
        (Some(Value::String(first)), Some(Value::String(later))) => {
            match (parse_utc(first), parse_utc(later)) {
                (Some(first), Some(later)) => is_other_time(first, later),
                _ => first != later,
            }
        }
        (Some(Value::Object(first)), Some(Value::Object(later))) => !first.is_empty() && later.is_empty(),
        _ => false,
    }
}
