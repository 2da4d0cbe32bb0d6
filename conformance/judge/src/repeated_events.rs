//! Changes that are recorded twice, as by a listener that was registered twice.

use time::Duration;

use conformance_model::recording::Recording;
use conformance_model::verdict::CheckError;

use crate::diff::{STATE_FIELDS, are_most, contradict_in_field, first_contradiction};
use crate::evidence::readable_pages;
use crate::object_history::{ListedEvent, ObjectHistory, recent_histories};

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
/// The maximum time between two events of one change.
const SAME_CHANGE_MAX: Duration = Duration::seconds(2);

/// Checks that no type occurs twice at about the same time, with equal details and objects, in most of the objects that have
/// it. Two equal transfers may pay a charge at one time.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let histories = recent_histories(&views);
    for kind in CHANGE_TYPES {
        let with_kind = histories.iter().filter(|history| history.of_type(kind).next().is_some());
        let repeated: Vec<_> = with_kind
            .clone()
            .filter_map(|history| repeated_event(history, kind).map(|pair| (history, pair)))
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

/// Returns two events of a type that report the same change.
fn repeated_event<'h, 'a>(history: &'h ObjectHistory<'a>, kind: &'h str) -> Option<[&'h ListedEvent<'a>; 2]> {
    let events: Vec<_> = history.of_type(kind).collect();
    let is_same_change = |pair: &&[&ListedEvent<'_>]| {
        let times = pair[0].recorded_at().zip(pair[1].recorded_at());
        times.is_some_and(|(first, second)| (second - first).abs() <= SAME_CHANGE_MAX)
            && pair[0].row.get("details") == pair[1].row.get("details")
            && first_contradiction(pair[0].row, pair[1].row, &STATE_FIELDS, contradict_in_field).is_none()
    };
    events.windows(2).find(is_same_change).map(|pair| [pair[0], pair[1]])
}
