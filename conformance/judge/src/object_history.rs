//! The history of a charge or an invoice: its events, compared with its entry in the list.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::{
    LIST_DELAY_MAX, LISTED_KINDS, STATE_FIELDS, contradict_in_field, first_contradiction, is_nonzero,
};
use crate::evidence::{JoinedRow, PageView, first_long_page_reads, joined_rows, readable_pages, recorded_at};

/// The maximum delay between a timed change and its event: a job may record the expiry of a charge later.
pub(super) const EVENT_DELAY_MAX: Duration = Duration::days(1);
/// The event types that occur once per object. A view event is defined as the first view.
const ONCE_PER_OBJECT: [&str; 3] = ["charge.created", "invoice.created", "invoice.viewed"];
/// The event types that end an unpaid charge.
pub(super) const CHARGE_END_TYPES: [&str; 2] = ["charge.expired", "charge.canceled"];
/// The event types of a charge without a confirmed payment.
pub(super) const UNPAID_TYPES: [&str; 4] =
    ["charge.created", "charge.payment_detected", "charge.expired", "charge.canceled"];
/// The event types that report a confirmed payment.
pub(super) const CONFIRMED_TYPES: [&str; 2] = ["charge.paid", "charge.underpaid"];
/// The event types of a charge that was paid in time by one transfer.
pub(super) const ONE_PAYMENT_TYPES: [&str; 3] = ["charge.created", "charge.payment_detected", "charge.paid"];

/// The events of a charge or an invoice, oldest first.
pub(super) struct ObjectHistory<'a> {
    /// The name of the object in findings.
    name: String,
    pub(super) mode: Mode,
    /// `charge` or `invoice`.
    member: &'static str,
    events: Vec<ListedEvent<'a>>,
    /// `true` if two events on one page show different states, so that each event contains the object as it was when the
    /// event was recorded. Otherwise events may contain the current object.
    is_snapshot: bool,
}

/// An event on a page.
#[derive(Clone, Copy)]
pub(super) struct ListedEvent<'a> {
    pub(super) number: u32,
    pub(super) row: &'a Value,
    /// The time at which the page was read, if it is known.
    read_at: Option<OffsetDateTime>,
}

impl ListedEvent<'_> {
    pub(super) fn event_type(&self) -> &str {
        text_at(self.row, &["type"]).unwrap_or_default()
    }

    pub(super) fn id(&self) -> &str {
        text_at(self.row, &["id"]).unwrap_or("without an id")
    }

    pub(super) fn recorded_at(&self) -> Option<OffsetDateTime> {
        recorded_at(self.row)
    }

    /// Returns the time from this event to the read of its list.
    pub(super) fn age(&self) -> Option<Duration> {
        self.read_at.zip(self.recorded_at()).map(|(read_at, at)| read_at - at)
    }

    /// Returns `true` if this event was recorded more than a minute after the other one.
    fn is_later_than(&self, other: &ListedEvent<'_>) -> bool {
        other.recorded_at().zip(self.recorded_at()).is_some_and(|(earlier, at)| at > earlier + LIST_DELAY_MAX)
    }
}

/// Returns the histories of the objects in the most complete read of the list of events in each mode. The list starts
/// with the newest event and has no gaps, so only events older than all others may be missing.
pub(super) fn recent_histories<'a>(views: &'a [PageView<'_>]) -> Vec<ObjectHistory<'a>> {
    let mut found = Vec::new();
    for mode in Mode::BOTH {
        let reads = first_long_page_reads(views, List::Events, mode).map(|first| read_events(views, first));
        if let Some(events) =
            reads.max_by_key(|events| (events.len(), events.first().map(|event| event.number)))
        {
            found.extend(group_by_object(&snapshot_objects(views, mode), mode, events));
        }
    }
    found
}

/// Returns the events of a read of the list, from its first long page and the following ones.
fn read_events<'a>(views: &'a [PageView<'_>], first: &'a PageView<'_>) -> Vec<ListedEvent<'a>> {
    let rows = joined_rows(views, first);
    let newest = rows.iter().filter_map(|joined| recorded_at(joined.row)).max();
    // The `Date` may be wrong or from a cache; then the newest event counts.
    let read_at = first.read_at.filter(|date| Some(*date) >= newest).or(newest);
    let read_at = |joined: &JoinedRow<'_>| read_at.filter(|_| joined.is_simultaneous);
    let event = |joined| ListedEvent { number: first.number(), read_at: read_at(&joined), row: joined.row };
    rows.into_iter().map(event).collect()
}

/// Returns the histories of the objects whose creation is in a read of the list of events. For an object in several reads,
/// the last read counts. Each read starts with the newest event and has no gaps.
pub(super) fn complete_histories<'a>(views: &'a [PageView<'_>]) -> Vec<ObjectHistory<'a>> {
    let mut found = BTreeMap::new();
    for mode in Mode::BOTH {
        let snapshots = snapshot_objects(views, mode);
        for first in first_long_page_reads(views, List::Events, mode) {
            let of_read = group_by_object(&snapshots, mode, read_events(views, first));
            let complete = of_read.into_iter().filter(ObjectHistory::is_complete);
            found.extend(complete.map(|history| ((mode, history.name.clone()), history)));
        }
    }
    found.into_values().collect()
}

/// Returns the histories of the objects in all events on all pages. Events between two others may be missing.
pub(super) fn all_histories<'a>(views: &'a [PageView<'_>]) -> Vec<ObjectHistory<'a>> {
    let mut found = Vec::new();
    for mode in Mode::BOTH {
        let of_mode = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
        let rows = of_mode.flat_map(|view| view.rows().iter().map(|row| (view.number(), row)));
        let events = rows.map(|(number, row)| ListedEvent { number, row, read_at: None });
        found.extend(group_by_object(&snapshot_objects(views, mode), mode, events));
    }
    found
}

/// The kind and code of an object.
type KindAndCode<'a> = (&'static str, &'a str);

/// Returns the objects that two events on one page of a mode show in different states.
fn snapshot_objects<'a>(views: &[PageView<'a>], mode: Mode) -> BTreeSet<KindAndCode<'a>> {
    let of_mode = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
    of_mode.flat_map(|view| objects_in_two_states(view.rows())).collect()
}

/// Groups events by their objects. The same event may be on several pages; the last one counts.
fn group_by_object<'a>(
    snapshots: &BTreeSet<KindAndCode<'_>>,
    mode: Mode,
    events: impl IntoIterator<Item = ListedEvent<'a>>,
) -> Vec<ObjectHistory<'a>> {
    let distinct: BTreeMap<&str, ListedEvent<'_>> =
        events.into_iter().filter_map(|event| Some((text_at(event.row, &["id"])?, event))).collect();
    let mut histories: BTreeMap<KindAndCode<'_>, Vec<ListedEvent<'_>>> = BTreeMap::new();
    for event in distinct.into_values() {
        for (_, member) in LISTED_KINDS {
            if let Some(code) = text_at(event.row, &[member, "code"]) {
                histories.entry((member, code)).or_default().push(event);
            }
        }
    }
    let history = |((member, code), mut events): (_, Vec<ListedEvent<'a>>)| {
        events.sort_by_key(|event| (event.recorded_at(), !event.event_type().ends_with(".created")));
        let is_snapshot = snapshots.contains(&(member, code));
        ObjectHistory { name: format!("{member} {code}"), mode, member, events, is_snapshot }
    };
    histories.into_iter().map(history).collect()
}

/// Returns the kind and code of each object that two events on a page show in different states.
fn objects_in_two_states(rows: &[Value]) -> Vec<KindAndCode<'_>> {
    let mut states: BTreeMap<KindAndCode<'_>, &Value> = BTreeMap::new();
    let objects = LISTED_KINDS.into_iter().flat_map(|(_, member)| {
        rows.iter().filter_map(move |row| Some(((member, text_at(row, &[member, "code"])?), row)))
    });
    let in_two_states = objects.filter(|(object, row)| {
        let first = states.entry(*object).or_insert(row);
        first_contradiction(first, row, &STATE_FIELDS, contradict_in_field).is_some()
    });
    in_two_states.map(|(object, _)| object).collect()
}

impl<'a> ObjectHistory<'a> {
    pub(super) fn is_kind(&self, member: &str) -> bool {
        self.member == member
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the code of the object.
    pub(super) fn code(&self) -> &str {
        self.events.first().and_then(|event| text_at(event.row, &[self.member, "code"])).unwrap_or_default()
    }

    /// Returns all events, oldest first.
    pub(super) fn events(&self) -> &[ListedEvent<'a>] {
        &self.events
    }

    /// Returns the events of a type.
    pub(super) fn of_type(&self, kind: &str) -> impl Iterator<Item = &ListedEvent<'a>> {
        self.events.iter().filter(move |event| event.event_type() == kind)
    }

    /// Returns `true` if no event of the object is missing: the oldest one is its creation, and all have a time.
    pub(super) fn is_complete(&self) -> bool {
        self.events.first().is_some_and(|event| event.event_type().ends_with(".created"))
            && self.events.iter().all(|event| event.recorded_at().is_some())
    }

    /// Returns `true` if all events up to a minute after the given one have one of these types.
    pub(super) fn has_only_types_until(&self, kinds: &[&str], until: &ListedEvent<'_>) -> bool {
        self.events.iter().all(|event| event.is_later_than(until) || kinds.contains(&event.event_type()))
    }

    /// Returns `true` if all events have one of these types.
    pub(super) fn has_only_types(&self, kinds: &[&str]) -> bool {
        self.events.iter().all(|event| kinds.contains(&event.event_type()))
    }

    /// Returns `true` if at most one transfer was detected. Once a payment is confirmed, so is the whole received amount.
    pub(super) fn has_at_most_one_transfer(&self) -> bool {
        self.of_type("charge.payment_detected").count() <= 1
    }

    /// Returns `true` if an event certainly shows its object as it was when the event was recorded. It must have been read
    /// over a minute later, and be the newest event of the object; if the events are snapshots, newer ones may follow
    /// after a minute.
    pub(super) fn shows_own_state(&self, event: &ListedEvent<'_>) -> bool {
        let is_settled =
            event.recorded_at().zip(event.read_at).is_some_and(|(at, now)| at + LIST_DELAY_MAX < now);
        let mut others = self.events.iter().filter(|other| other.id() != event.id());
        others.all(|other| {
            other.recorded_at() < event.recorded_at() || (self.is_snapshot && other.is_later_than(event))
        }) && is_settled
    }
}

/// Checks the order of the events of each charge and invoice. [`check_order`] considers all pages; the other checks need the
/// most complete read of the list.
pub(super) fn check_event_order(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    all_histories(&views).iter().try_for_each(check_order)?;
    let recent = recent_histories(&views);
    recent.iter().try_for_each(check_paid_once)?;
    check_expired_after_paid(&recent)?;
    check_detected_first(&recent)?;
    check_canceled(&recent)?;
    check_late_payments(&recent)?;
    check_early_payments(&recent)
}

/// The minimum number of charges that expire within a minute after their payment, for a violation. For few, a payment and
/// the expiry may have been recorded at the same moment.
const EXPIRED_PAID_MIN: usize = 3;

/// Checks that charges do not expire after they were paid in time. A late payment may be accepted before a job records the
/// expiry.
fn check_expired_after_paid(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let found: Vec<_> = histories
        .iter()
        .filter(|history| history.is_complete() && history.of_type("charge.late_payment").next().is_none())
        .filter_map(|history| {
            let paid = history.of_type("charge.paid").next()?;
            let expired = history.of_type("charge.expired").last()?;
            (expired.recorded_at() > paid.recorded_at()).then_some((history, paid, expired))
        })
        .collect();
    let is_certain = |(_, paid, expired): &&(_, &ListedEvent<'_>, &ListedEvent<'_>)| {
        found.len() >= EXPIRED_PAID_MIN || expired.is_later_than(paid)
    };
    match found.iter().find(is_certain) {
        Some((history, paid, expired)) => Err(order_violation(history, paid, expired)),
        None => Ok(()),
    }
}

/// Checks that no payment is recorded as late that arrived in time. Counts payments of charges that neither expired nor were
/// canceled, if they are recorded in the first half of the rate lock: the shortest time from a creation to an expiry.
fn check_early_payments(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let since_creation = |history: &ObjectHistory<'_>, kind: &str| {
        let [created, event] = ["charge.created", kind].map(|kind| history.of_type(kind).next());
        Some(event?.recorded_at()? - created?.recorded_at()?)
    };
    let complete: Vec<_> = histories.iter().filter(|history| history.is_complete()).collect();
    let Some(rate_lock) =
        complete.iter().filter_map(|history| since_creation(history, "charge.expired")).min()
    else {
        return Ok(());
    };
    let is_in_time = |history: &&&ObjectHistory<'_>| {
        let has_ended = history.events.iter().any(|event| CHARGE_END_TYPES.contains(&event.event_type()));
        !has_ended
            && since_creation(history, "charge.late_payment").is_some_and(|passed| passed * 2 < rate_lock)
    };
    let early: Vec<_> = complete.iter().filter(is_in_time).collect();
    let Some(history) = early.last().filter(|_| early.len() >= LATE_MIN) else { return Ok(()) };
    Err(CheckError::violation(
        history.of_type("charge.late_payment").next().map(|event| event.number),
        format!("no charge.late_payment of {}, which neither expired nor was canceled", history.name()),
        format!(
            "one in less than half of the shortest rate lock, and so of {} more charges",
            early.len() - 1
        ),
    ))
}

/// The minimum number of charges that lack a `charge.late_payment`, or have one without reason, for a violation.
const LATE_MIN: usize = 2;

/// Checks that a charge has a `charge.late_payment` if its first transfer was detected over a minute after it expired or was
/// canceled. The transfer must have been confirmed later, or detected over a day ago with an amount that counts as received.
/// A transfer without such an amount may have vanished.
fn check_late_payments(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let is_late = |history: &&ObjectHistory<'_>| {
        let Some(detected) = history.of_type("charge.payment_detected").next() else { return false };
        let is_received = text_at(detected.row, &["charge", "received_amount"]).is_some_and(is_nonzero);
        let is_old =
            detected.recorded_at().zip(detected.read_at).is_some_and(|(at, now)| at + EVENT_DELAY_MAX < now);
        let ended = history.events.iter().find(|event| CHARGE_END_TYPES.contains(&event.event_type()));
        let confirmed = history.events.iter().find(|event| CONFIRMED_TYPES.contains(&event.event_type()));
        history.is_complete()
            && history.of_type("charge.late_payment").next().is_none()
            && ended.is_some_and(|ended| detected.is_later_than(ended))
            && confirmed.map_or(is_old && is_received, |event| event.recorded_at() >= detected.recorded_at())
    };
    let late: Vec<_> = histories.iter().filter(is_late).collect();
    let Some(history) = late.last().filter(|_| late.len() >= LATE_MIN) else { return Ok(()) };
    let number = history.events.last().map(|event| event.number);
    let kinds: Vec<_> = history.events.iter().map(ListedEvent::event_type).collect();
    Err(CheckError::violation(
        number,
        format!("a charge.late_payment of {}, which was over when its transfer was detected", history.name()),
        format!("{}, and {} more charges without it", kinds.join(", "), late.len() - 1),
    ))
}

/// Checks that no charge whose newest event is `charge.canceled` has the status paid in that event.
fn check_canceled(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let is_paid = |history: &&ObjectHistory<'_>| {
        history.is_complete()
            && history.events.last().is_some_and(|event| {
                event.event_type() == "charge.canceled"
                    && text_at(event.row, &["charge", "status"]) == Some("paid")
                    && history.shows_own_state(event)
            })
    };
    match histories.iter().find(is_paid) {
        Some(history) => Err(CheckError::violation(
            history.events.last().map(|event| event.number),
            format!("another status than paid of {}, whose newest event is charge.canceled", history.name()),
            "status paid",
        )),
        None => Ok(()),
    }
}

/// The minimum number of charges whose payment is recorded before its transfer is detected, for a violation.
const DETECTED_LATER_MIN: usize = 2;

/// Checks that transfers are detected before they are confirmed. A text in the details, such as the transaction id, shows
/// which events belong to one transfer.
fn check_detected_first(histories: &[ObjectHistory<'_>]) -> Result<(), CheckError> {
    let out_of_order: Vec<_> = histories
        .iter()
        .filter(|history| history.is_complete())
        .filter_map(|history| {
            let confirmed = history
                .events
                .iter()
                .filter(|event| matches!(event.event_type(), "charge.paid" | "charge.underpaid"));
            confirmed
                .filter_map(|event| {
                    // After a reorganisation, a transfer may be detected again.
                    let detected = history
                        .of_type("charge.payment_detected")
                        .find(|detected| is_same_transfer(detected, event))?;
                    (detected.recorded_at() > event.recorded_at()).then_some((history, event, detected))
                })
                .next()
        })
        .collect();
    match out_of_order.last().filter(|_| out_of_order.len() >= DETECTED_LATER_MIN) {
        Some((history, confirmed, detected)) => Err(order_violation(history, confirmed, detected)),
        None => Ok(()),
    }
}

/// Returns `true` if the details of two events have a long text in common, such as the id of a transaction.
fn is_same_transfer(first: &ListedEvent<'_>, second: &ListedEvent<'_>) -> bool {
    !long_detail_texts(first.row).is_disjoint(&long_detail_texts(second.row))
}

/// Returns the long texts in the details of an event, such as the id of a transaction.
pub(super) fn long_detail_texts(event: &Value) -> BTreeSet<String> {
    const ID_LEN_MIN: usize = 16;
    let values = event["details"].as_object().into_iter().flat_map(|details| details.values());
    values.filter_map(Value::as_str).filter(|text| text.len() >= ID_LEN_MIN).map(str::to_owned).collect()
}

/// Checks that the events in [`ONCE_PER_OBJECT`] occur once, that no event precedes the creation, and that no voided invoice
/// is paid. Events less than a minute apart may have either order.
fn check_order(history: &ObjectHistory<'_>) -> Result<(), CheckError> {
    let (name, events) = (history.name(), &history.events);
    for kind in ONCE_PER_OBJECT {
        let mut of_kind = history.of_type(kind);
        if let (Some(first), Some(second)) = (of_kind.next(), of_kind.next()) {
            let actual = format!("{} and {}", first.id(), second.id());
            return Err(CheckError::violation(second.number, format!("one {kind} of {name}"), actual));
        }
    }
    for event in events {
        let is_excluded_by = |earlier: &ListedEvent<'_>| {
            event.event_type().ends_with(".created")
                || (event.event_type(), earlier.event_type()) == ("invoice.paid", "invoice.voided")
        };
        let earlier = events.iter().find(|other| event.is_later_than(other) && is_excluded_by(other));
        if let Some(earlier) = earlier {
            return Err(order_violation(history, earlier, event));
        }
    }
    Ok(())
}

pub(super) fn order_violation(
    history: &ObjectHistory<'_>,
    earlier: &ListedEvent<'_>,
    event: &ListedEvent<'_>,
) -> CheckError {
    let event_text =
        |listed: &ListedEvent<'_>| format!("{} at {}", listed.event_type(), listed.row["created_at"]);
    let expected =
        format!("no {} of {} after its {}", event.event_type(), history.name(), earlier.event_type());
    CheckError::violation(event.number, expected, format!("{}, {}", event_text(earlier), event_text(event)))
}

/// Checks that one payment is not recorded twice: by two events with the same details or time, or by two snapshots of an
/// unchanged charge. A second transfer, a late payment or a refund may cause another event.
fn check_paid_once(history: &ObjectHistory<'_>) -> Result<(), CheckError> {
    let paid: Vec<_> = history.of_type("charge.paid").collect();
    let [first, second] = paid[..] else { return Ok(()) };
    if !history.is_complete()
        || !history.has_at_most_one_transfer()
        || !history.has_only_types_until(&ONE_PAYMENT_TYPES, second)
    {
        return Ok(());
    }
    let [first_row, second_row] = [first.row, second.row];
    let has_same_details = first_row["details"] == second_row["details"]
        && first_row["details"].as_object().is_some_and(|details| !details.is_empty());
    let has_same_charge = history.is_snapshot
        && first_contradiction(first_row, second_row, &STATE_FIELDS, contradict_in_field).is_none();
    if has_same_details || has_same_charge || first.recorded_at() == second.recorded_at() {
        let actual = format!("{} and {}", first.id(), second.id());
        return Err(CheckError::violation(
            second.number,
            format!("one charge.paid of {}", history.name()),
            actual,
        ));
    }
    Ok(())
}

/// The minimum number of charges whose time of payment is that of an earlier event, for a
/// violation. The clocks of a chain and a service may differ.
const PAID_EARLIER_MIN: usize = 2;

/// Checks that no charge has a time of payment although its events report no confirmed payment, and
/// that the times of payment are not those of earlier events, such as the creation.
pub(super) fn check_paid_at(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let histories = recent_histories(&views);
    check_paid_later(&histories, "charge.created", "charge.payment_detected")?;
    check_paid_later(&histories, "charge.payment_detected", "charge.paid")?;
    for history in histories.iter().filter(|history| history.is_kind("charge") && history.is_complete()) {
        let has_paid_at_without_payment = |event: &&ListedEvent<'_>| {
            event.row["charge"]["paid_at"].is_string()
                && history.has_only_types_until(&UNPAID_TYPES, event)
                && history.shows_own_state(event)
        };
        if let Some(event) = history.events.iter().find(has_paid_at_without_payment) {
            return Err(CheckError::violation(
                event.number,
                format!("no paid_at in the {} of {}, which was not paid", event.event_type(), history.name()),
                format!("paid_at {} (event {})", event.row["charge"]["paid_at"], event.id()),
            ));
        }
    }
    Ok(())
}

/// Checks that the `paid_at` of a charge with at most one transfer is not the time of its event of the type `earlier_type`,
/// if its event of the type `later_type` was recorded over a minute afterwards. The payment cannot precede that event.
fn check_paid_later(
    histories: &[ObjectHistory<'_>],
    earlier_type: &str,
    later_type: &str,
) -> Result<(), CheckError> {
    let violating: Vec<_> = histories
        .iter()
        .filter(|history| {
            history.is_kind("charge") && history.is_complete() && history.has_at_most_one_transfer()
        })
        .filter_map(|history| {
            let [earlier, later, paid] =
                [earlier_type, later_type, "charge.paid"].map(|kind| history.of_type(kind).next());
            let (earlier, later, paid) = (earlier?, later?, paid?);
            let paid_at = parse_utc(text_at(paid.row, &["charge", "paid_at"])?)?;
            let has_earlier_time = (paid_at - earlier.recorded_at()?).abs() < Duration::seconds(1);
            (has_earlier_time && later.is_later_than(earlier)).then_some((history, paid, later))
        })
        .collect();
    let Some((history, paid, later)) = violating.last().filter(|_| violating.len() >= PAID_EARLIER_MIN)
    else {
        return Ok(());
    };
    Err(CheckError::violation(
        paid.number,
        format!(
            "a paid_at of {} after its {}, at {}",
            history.name(),
            later.event_type(),
            later.row["created_at"]
        ),
        format!("{}, the time of its {earlier_type} (event {})", paid.row["charge"]["paid_at"], paid.id()),
    ))
}
