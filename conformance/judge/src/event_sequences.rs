//! The order of the events of each object, by rules that also hold for a busy account, in which the life of an object takes
//! a few seconds.
//!
//! Each rule needs several objects with the same fault. Events at about the same time may have either order.

use std::collections::BTreeMap;

use time::Duration;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::reading::text_at;
use conformance_model::verdict::CheckError;

use crate::diff::{SAME_TIME_MAX, are_most};
use crate::evidence::PageView;
use crate::object_history::{
    CHARGE_END_TYPES, CONFIRMED_TYPES, ListedEvent, ObjectHistory, all_histories, complete_histories,
    long_detail_texts, order_violation,
};

/// The minimum number of objects with an order of events that is never legal, for a violation.
const OBJECTS_MIN: usize = 2;
/// The event types that report a transfer.
const TRANSFER_TYPES: [&str; 4] =
    ["charge.payment_detected", "charge.paid", "charge.underpaid", "charge.late_payment"];

/// The maximum time by which events of several machines are recorded in the wrong order.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::seconds(5);
/// The maximum time after the end of a charge at which a transfer that was sent before may be detected.
const DETECTION_DELAY_MAX: Duration = Duration::seconds(30);

/// Checks the order of the events of all objects.
pub(super) fn check(views: &[PageView<'_>]) -> Result<(), CheckError> {
    check_created_first(&all_histories(views))?;
    let histories = complete_histories(views);
    check_paid_after_voided(&histories)?;
    check_withdrawn_after_paid(&histories)?;
    check_refunds(&histories)?;
    check_exclusive_types(&histories)?;
    check_late_transfers(&histories)
}

/// Returns `true` if an event was recorded later than another one by more than a tolerance.
fn is_after(event: &ListedEvent<'_>, earlier: &ListedEvent<'_>, tolerance: Duration) -> bool {
    earlier.recorded_at().zip(event.recorded_at()).is_some_and(|(earlier, at)| at - earlier > tolerance)
}

/// Checks for each event type that most objects do not have such an event before their creation.
fn check_created_first(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    for kind in EVENT_TYPES {
        let created = format!("{}.created", kind.split('.').next().unwrap_or_default());
        let pairs = histories.iter().filter(|_| kind != created).filter_map(|history| {
            Some((history, history.of_type(kind).next()?, history.of_type(&created).next()?))
        });
        let pairs: Vec<_> = pairs.collect();
        let reversed: Vec<_> = pairs
            .iter()
            .filter(|(_, event, created)| is_after(created, event, CLOCK_DIFFERENCE_MAX))
            .collect();
        if let Some((history, event, created)) =
            reversed.last().filter(|_| are_most(reversed.len(), pairs.len()))
        {
            return Err(order_violation(history, event, created));
        }
    }
    Ok(())
}

/// Checks that voided invoices are not paid: they can no longer be paid. Within the tolerance for several clocks, it counts only
/// if most of the invoices with both events were paid last.
fn check_paid_after_voided(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let both: Vec<_> = histories
        .iter()
        .filter_map(|history| {
            let voided = history.of_type("invoice.voided").next()?;
            Some((history, voided, history.of_type("invoice.paid").last()?))
        })
        .collect();
    let paid_after = |tolerance| -> Vec<_> {
        both.iter().filter(|(_, voided, paid)| is_after(paid, voided, tolerance)).collect()
    };
    let (certain, possible) = (paid_after(CLOCK_DIFFERENCE_MAX), paid_after(SAME_TIME_MAX));
    let is_violated = certain.len() >= OBJECTS_MIN || are_most(possible.len(), both.len());
    match possible.last().filter(|_| is_violated) {
        Some((history, voided, paid)) => Err(order_violation(history, voided, paid)),
        None => Ok(()),
    }
}

/// Checks that most charges and invoices whose newest event is a withdrawal are not still paid: they were paid before, and
/// this event shows the status `paid`.
fn check_withdrawn_after_paid(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    for (kind, member) in [("charge.canceled", "charge"), ("invoice.voided", "invoice")] {
        let withdrawn: Vec<_> = histories
            .iter()
            .filter_map(|history| {
                let newest = history.events().last().filter(|event| event.event_type() == kind)?;
                let paid = history.of_type(&format!("{member}.paid")).next();
                let is_paid = text_at(newest.row, &[member, "status"]) == Some("paid");
                let paid = paid.filter(|paid| is_paid && is_after(newest, paid, SAME_TIME_MAX));
                Some((history, newest, paid))
            })
            .collect();
        let paid: Vec<_> =
            withdrawn.iter().filter_map(|(history, event, paid)| Some((history, event, (*paid)?))).collect();
        if let Some((history, event, paid)) = paid.last().filter(|_| are_most(paid.len(), withdrawn.len())) {
            return Err(order_violation(history, paid, event));
        }
    }
    Ok(())
}

/// Checks that charges are refunded only after a transfer: funds that were never received cannot be sent back.
fn check_refunds(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let has_transfer = |history: &ObjectHistory<'_>| {
        history.events().iter().any(|event| {
            TRANSFER_TYPES.contains(&event.event_type()) || !EVENT_TYPES.contains(&event.event_type())
        })
    };
    let all: Vec<_> = histories
        .iter()
        .filter_map(|history| Some((history, history.of_type("charge.refunded").next()?)))
        .collect();
    // A transfer of another coin may be sent back, too.
    let refunded: Vec<_> = all.iter().filter(|(history, _)| !has_transfer(history)).collect();
    match refunded.last().filter(|_| are_most(refunded.len(), all.len())) {
        None => Ok(()),
        Some((history, event)) => {
            let kinds: Vec<_> = history.events().iter().map(ListedEvent::event_type).collect();
            Err(CheckError::violation(
                event.number,
                format!("an event of a transfer to {}, which was refunded", history.name()),
                format!("{}, and no transfer to {} more charges", kinds.join(", "), refunded.len() - 1),
            ))
        }
    }
}

/// Pairs of event types that one change never has together.
const EXCLUSIVE_TYPES: [[&str; 2]; 2] =
    [["charge.paid", "charge.underpaid"], ["charge.canceled", "charge.expired"]];
/// The maximum time between two events of one change.
pub(super) const SAME_CHANGE_MAX: Duration = Duration::seconds(2);

/// Checks that most objects which have the rarer of two exclusive events do not have both for one change: at about the same time,
/// and with a common transaction if both have one. A second or a late transfer may pay a charge at any time.
fn check_exclusive_types(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let single = || {
        histories.iter().filter(|history| {
            history.has_at_most_one_transfer() && history.of_type("charge.late_payment").next().is_none()
        })
    };
    for [first, second] in EXCLUSIVE_TYPES {
        let count = |kind: &str| single().filter(|history| history.of_type(kind).next().is_some()).count();
        let is_same_change = |one: &ListedEvent<'_>, other: &ListedEvent<'_>| {
            let [texts, other_texts] = [one, other].map(|event| long_detail_texts(event.row));
            let has_same_transfer =
                texts.is_empty() || other_texts.is_empty() || !texts.is_disjoint(&other_texts);
            has_same_transfer
                && one
                    .recorded_at()
                    .zip(other.recorded_at())
                    .is_some_and(|(one, other)| (one - other).abs() <= SAME_CHANGE_MAX)
        };
        let with_both: Vec<_> = single()
            .filter_map(|history| {
                let [one, other] = [first, second].map(|kind| history.of_type(kind).next());
                let (one, other) = (one?, other?);
                is_same_change(one, other).then_some((history, one, other))
            })
            .collect();
        let rarer_count = count(first).min(count(second));
        if let Some((history, one, other)) =
            with_both.last().filter(|_| are_most(with_both.len(), rarer_count))
        {
            return Err(order_violation(history, one, other));
        }
    }
    Ok(())
}

/// The minimum number of confirmed transfers from which the duration of a confirmation is known.
const CONFIRMED_MIN: usize = 3;
/// The number of durations of the longest confirmation after which a late transfer must be reported as late.
const CONFIRMATIONS_WAITED: i32 = 3;

/// Checks that transfers after the end of a charge are reported as late payments, at the latest when they are confirmed.
fn check_late_transfers(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let mut confirmations: BTreeMap<_, Vec<Duration>> = BTreeMap::new();
    for history in histories {
        if let Some(duration) = confirmation_time(history) {
            confirmations.entry(asset(history)).or_default().push(duration);
        }
    }
    // A coin may need an hour for what another one does in seconds.
    let wait_of = |history| {
        let durations =
            confirmations.get(&asset(history)).filter(|durations| durations.len() >= CONFIRMED_MIN)?;
        Some((*durations.iter().max()? * CONFIRMATIONS_WAITED).max(Duration::seconds(10)))
    };
    let late: Vec<_> =
        histories.iter().filter_map(|history| Some((history, transfer_after_end(history)?))).collect();
    let unreported: Vec<_> = late
        .iter()
        .filter(|(history, (ended, transfer))| {
            let is_result_missing = match confirmation_after(history, transfer) {
                // The transfer may have been sent before the end.
                Some(_) => is_after(transfer, ended, DETECTION_DELAY_MAX),
                None => wait_of(history).is_some_and(|wait| transfer.age() >= Some(wait)),
            };
            is_result_missing && history.of_type("charge.late_payment").next().is_none()
        })
        .collect();
    let Some((history, _)) = unreported.last().filter(|_| are_most(unreported.len(), late.len())) else {
        return Ok(());
    };
    let kinds: Vec<_> = history.events().iter().map(ListedEvent::event_type).collect();
    Err(CheckError::violation(
        history.events().last().map(|event| event.number),
        format!("a charge.late_payment of {}, which was over when its transfer was detected", history.name()),
        format!("{}, and {} more charges without it", kinds.join(", "), unreported.len() - 1),
    ))
}

/// Returns the coin of a charge.
fn asset<'a>(history: &ObjectHistory<'a>) -> Option<&'a str> {
    history.events().iter().find_map(|event| text_at(event.row, &["charge", "asset"]))
}

/// Returns the time from the first detection of a transfer to the next confirmed payment.
fn confirmation_time(history: &ObjectHistory<'_>) -> Option<Duration> {
    let detected = history.of_type("charge.payment_detected").next()?;
    Some(confirmation_after(history, detected)?.recorded_at()? - detected.recorded_at()?)
}

/// Returns the first confirmed payment that is not earlier than an event.
fn confirmation_after<'h, 'a>(
    history: &'h ObjectHistory<'a>,
    event: &ListedEvent<'_>,
) -> Option<&'h ListedEvent<'a>> {
    let mut events = history.events().iter();
    events.find(|other| {
        CONFIRMED_TYPES.contains(&other.event_type()) && other.recorded_at() >= event.recorded_at()
    })
}

/// Returns the end of a charge, and the first transfer to it if it was recorded later: the detection, or a confirmed payment whose
/// details have the id of a transaction. The owner may settle a charge manually, without a transfer.
fn transfer_after_end<'h, 'a>(
    history: &'h ObjectHistory<'a>,
) -> Option<(&'h ListedEvent<'a>, &'h ListedEvent<'a>)> {
    let ended = history.events().iter().find(|event| CHARGE_END_TYPES.contains(&event.event_type()))?;
    let mut transfers =
        history.events().iter().filter(|event| TRANSFER_TYPES[..3].contains(&event.event_type()));
    let first = transfers.next()?;
    let has_transaction =
        first.event_type() == "charge.payment_detected" || !long_detail_texts(first.row).is_empty();
    (has_transaction && is_after(first, ended, Duration::ZERO)).then_some((ended, first))
}
