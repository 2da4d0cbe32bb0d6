//! Changes that are recorded twice, as by a listener that was registered twice.

use time::Duration;

use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::diff::{STATE_FIELDS, are_most, contradict_in_field, first_contradiction};
use crate::event_sequences::SAME_CHANGE_MAX;
use crate::evidence::readable_pages;
use crate::object_history::{ListedEvent, ObjectHistory, long_detail_texts, recent_histories};

/// The event types of which each event reports another change. `invoice.sent` is missing because a reminder causes another
/// one. Other rules judge the remaining types.
const CHANGE_TYPES: [&str; 7] = [
    "charge.payment_detected",
    "charge.underpaid",
    "charge.late_payment",
    "charge.refunded",
    "charge.expired",
    "charge.canceled",
    "invoice.voided",
];

/// The event types after which an object does not change back, so that another one at any time reports the same change.
const LASTING_TYPES: [&str; 2] = ["charge.canceled", "invoice.voided"];
/// The maximum time between two events of one refund. A transfer to a charge is reported again, such as when it is mined.
const SAME_REFUND_MAX: Duration = Duration::minutes(1);

/// Checks that no type occurs twice for one change, with equal details and objects, in most of the objects that have it: at
/// about the same time, for a lasting change at any time, for one refund within a minute, and for an expiry in less than half
/// of the shortest rate lock. Two equal transfers may pay a charge at one time.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let histories = recent_histories(&views);
    let rate_lock = shortest_rate_lock(&histories);
    for kind in CHANGE_TYPES {
        let distance_max = match kind {
            "charge.expired" => {
                rate_lock.map_or(SAME_CHANGE_MAX, |rate_lock| (rate_lock / 2_i32).max(SAME_CHANGE_MAX))
            }
            kind if LASTING_TYPES.contains(&kind) => Duration::MAX,
            _ => SAME_CHANGE_MAX,
        };
        let with_kind = histories.iter().filter(|history| history.of_type(kind).next().is_some());
        let repeated: Vec<_> = with_kind
            .clone()
            .filter_map(|history| repeated_event(history, kind, distance_max).map(|pair| (history, pair)))
            .collect();
        let compared = with_kind.count();
        if let Some((history, [first, second])) =
            repeated.last().filter(|_| are_most(repeated.len(), compared))
        {
            return Err(CheckError::violation(
                second.number,
                format!("one {kind} of {} for one change", history.name()),
                format!("{} and {}, as of {} more objects", first.id(), second.id(), repeated.len() - 1),
            ));
        }
    }
    Ok(())
}

/// Returns the shortest time from the creation of a charge to its first expiry.
fn shortest_rate_lock(histories: &[ObjectHistory<'_>]) -> Option<Duration> {
    let complete = histories.iter().filter(|history| history.is_complete());
    let rate_lock = |history: &ObjectHistory<'_>| {
        let [created, expired] =
            ["charge.created", "charge.expired"].map(|kind| history.of_type(kind).next());
        Some(expired?.recorded_at()? - created?.recorded_at()?)
    };
    complete.filter_map(rate_lock).min()
}

/// Returns two events of a type that report the same change, at most `distance_max` apart.
fn repeated_event<'h, 'a>(
    history: &'h ObjectHistory<'a>,
    kind: &'h str,
    distance_max: Duration,
) -> Option<[&'h ListedEvent<'a>; 2]> {
    let events: Vec<_> = history.of_type(kind).collect();
    let is_same_change = |pair: &&[&ListedEvent<'_>]| {
        let [first, second] = [pair[0], pair[1]];
        let Some((start, end)) = first.recorded_at().zip(second.recorded_at()) else { return false };
        let is_same_refund = kind == "charge.refunded"
            && !long_detail_texts(first.row).is_disjoint(&long_detail_texts(second.row));
        let distance_max = if is_same_refund { distance_max.max(SAME_REFUND_MAX) } else { distance_max };
        // Another change in between may have been reverted.
        let is_adjacent = history.events().iter().all(|event| {
            event.event_type() == kind || event.recorded_at().is_some_and(|at| at <= start || at >= end)
        });
        (end - start).abs() <= distance_max
            && is_adjacent
            && first.row.get("details") == second.row.get("details")
            && first_contradiction(first.row, second.row, &STATE_FIELDS, contradict_in_field).is_none()
    };
    events.windows(2).find(is_same_change).map(|pair| [pair[0], pair[1]])
}
