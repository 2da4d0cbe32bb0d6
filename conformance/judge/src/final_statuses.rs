//! The statuses of objects at their final events, compared with those at their creation.

use std::collections::{BTreeMap, BTreeSet};

use conformance_model::catalogue::FINAL_EVENT_TYPES;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::FAULTY_OBJECTS_MIN;
use crate::evidence::readable_pages;

/// The event types after which a charge may accept another payment, for which more objects are needed.
const REOPENABLE_TYPES: [&str; 2] = ["charge.expired", "charge.refunded"];
/// The minimum number of objects whose status is unchanged after a final event, for a violation, and of changed objects that
/// show the status of a creation: one may have changed while the page was rendered.
const OBJECTS_MIN: usize = 2;

/// The status of an object in one of its events. `T` identifies the event in a violation.
pub(crate) struct EventStatus<'a, T> {
    pub(crate) kind: &'a str,
    pub(crate) code: &'a str,
    pub(crate) status: &'a str,
    pub(crate) source: T,
}

impl<'a, T> EventStatus<'a, T> {
    /// Reads the code and the status of the object of an event. `text` returns a field of a member of the event.
    pub(crate) fn read(
        kind: &'a str,
        text: impl Fn(&str, &str) -> Option<&'a str>,
        source: T,
    ) -> Option<EventStatus<'a, T>> {
        let (member, _) = kind.split_once('.')?;
        Some(EventStatus { kind, code: text(member, "code")?, status: text(member, "status")?, source })
    }
}

/// A final event that shows the status of the creation, and the texts of the violation.
pub(crate) struct UnchangedStatus<T> {
    pub(crate) source: T,
    pub(crate) expected: String,
    pub(crate) actual: String,
}

/// The last event of an object of each type.
type StatusesByType<'a, T> = BTreeMap<&'a str, EventStatus<'a, T>>;

/// Returns a final event whose object still has its creation status. At least [`OBJECTS_MIN`] objects must show it; for
/// [`REOPENABLE_TYPES`], [`FAULTY_OBJECTS_MIN`]. A creation may be shown with a later status. So a status counts as that of a
/// creation only if all objects whose status changes have it in the event of their creation, and none in this final event.
pub(crate) fn unchanged_status<'a, T: Copy>(
    events: impl Iterator<Item = EventStatus<'a, T>>,
) -> Option<UnchangedStatus<T>> {
    let mut objects: BTreeMap<(&str, &str), StatusesByType<'_, T>> = BTreeMap::new();
    for event in events {
        let member = event.kind.split('.').next().unwrap_or_default();
        objects.entry((member, event.code)).or_default().insert(event.kind, event);
    }
    let status_at = |states: &StatusesByType<'a, T>, kind: &str| states.get(kind).map(|event| event.status);
    FINAL_EVENT_TYPES.into_iter().find_map(|kind| {
        let created = format!("{}.created", kind.split('.').next().unwrap_or_default());
        let has_changed = |states: &&StatusesByType<'a, T>| {
            let created_status = status_at(states, &created);
            states.values().any(|event| Some(event.status) != created_status)
        };
        let changed: Vec<_> = objects.values().filter(has_changed).collect();
        let statuses_of_changed =
            |kind: &str| -> Vec<_> { changed.iter().filter_map(|states| status_at(states, kind)).collect() };
        let at_creation = statuses_of_changed(&created);
        let creation_statuses: BTreeSet<_> = at_creation.iter().copied().collect();
        let is_ambiguous = statuses_of_changed(kind).iter().any(|status| creation_statuses.contains(status));
        if at_creation.len() < OBJECTS_MIN || is_ambiguous {
            return None;
        }
        let is_unchanged = |states: &&StatusesByType<'a, T>| {
            let (created_status, final_status) = (status_at(states, &created), status_at(states, kind));
            // The status `paid` is specified: a creation that shows it was read after the payment.
            created_status == final_status
                && !(kind.ends_with(".paid") && final_status == Some("paid"))
                && final_status
                    .is_some_and(|status| creation_statuses.len() == 1 && creation_statuses.contains(&status))
        };
        let unchanged: Vec<_> = objects.values().filter(is_unchanged).collect();
        let count_min = if REOPENABLE_TYPES.contains(&kind) { FAULTY_OBJECTS_MIN } else { OBJECTS_MIN };
        let event = unchanged.last().filter(|_| unchanged.len() >= count_min)?.get(kind)?;
        Some(UnchangedStatus {
            source: event.source,
            expected: format!("another status in a {kind} than at the creation"),
            actual: format!("status {}, as {} others", event.status, unchanged.len() - 1),
        })
    })
}

/// Checks the statuses on each page of events. Events that contain the current object show only one status of an object on
/// a page, so they prove nothing.
pub(super) fn check_listed(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    for view in views.iter().filter(|view| view.request.list == List::Events) {
        let statuses = view.rows().iter().filter_map(|row| {
            let [kind, id] = ["type", "id"].map(|name| text_at(row, &[name]));
            EventStatus::read(kind?, |member, name| text_at(row, &[member, name]), id?)
        });
        if let Some(UnchangedStatus { source, expected, actual }) = unchanged_status(statuses) {
            return Err(CheckError::violation(view.number(), expected, format!("{actual} (event {source})")));
        }
    }
    Ok(())
}
