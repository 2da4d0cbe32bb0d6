//! The history of a charge or an invoice: its events, compared with its entry in the list.

use std::collections::BTreeMap;

use serde_json::Value;
use time::Duration;

use conformance_model::reading::{text_at, utc};
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;
use conformance_model::words::Mode;

use crate::diff::{KINDS, LATENESS, SETTLED, at, clock, contradict, differ};
use crate::evidence::{PageView, eras, longs, pages};

/// The longest delay between a timed change and its event: a job may record the expiry of a charge later.
const EVENT_DELAY_MAX: Duration = Duration::days(1);
/// The event types that occur once per object. A view event is defined as the first view.
const ONCE: [&str; 3] = ["charge.created", "invoice.created", "invoice.viewed"];

/// Checks that an object is created once and first, and that a voided invoice is not paid.
pub(super) fn created_once_and_first(recording: &Recording) -> Result<(), CheckError> {
    let views = pages(recording);
    for mode in Mode::BOTH {
        let of_mode = views.iter().filter(|view| view.mode == mode && view.ask.list == List::Events);
        let rows = of_mode.flat_map(|view| view.rows().iter().map(|row| (view.number(), row)));
        let known = rows.filter_map(|(number, row)| Some((text_at(row, &["id"])?, (number, row))));
        // The same event may be on several pages.
        let events: BTreeMap<&str, (u32, &Value)> = known.collect();
        for (_, member) in KINDS {
            let mut histories: BTreeMap<&str, Vec<(u32, &Value)>> = BTreeMap::new();
            for (number, row) in events.values() {
                if let Some(code) = text_at(row, &[member, "code"]) {
                    histories.entry(code).or_default().push((*number, row));
                }
            }
            histories
                .into_iter()
                .try_for_each(|(code, history)| in_order(&format!("{member} {code}"), &history))?;
        }
    }
    Ok(())
}

fn in_order(name: &str, history: &[(u32, &Value)]) -> Result<(), CheckError> {
    let kind = |row: &Value| text_at(row, &["type"]).unwrap_or_default().to_owned();
    let id = |row: &Value| text_at(row, &["id"]).unwrap_or_default().to_owned();
    for once in ONCE {
        let mut same = history.iter().filter(|(_, row)| kind(row) == once);
        if let (Some((_, first)), Some((number, second))) = (same.next(), same.next()) {
            let actual = format!("{} and {}", id(first), id(second));
            return Err(CheckError::broken(*number, format!("one {once} of {name}"), actual));
        }
    }
    for (number, row) in history {
        let is_late = |than: &Value| at(than).zip(at(row)).is_some_and(|(than, at)| at > than + LATENESS);
        let earlier = history.iter().map(|(_, other)| *other).find(|other| {
            is_late(other)
                && (kind(row).ends_with(".created")
                    || (kind(row) == "invoice.paid" && kind(other) == "invoice.voided"))
        });
        if let Some(earlier) = earlier {
            let event_text = |row: &Value| format!("{} at {}", kind(row), row["created_at"]);
            let expected = format!("no {} of {name} after its {}", kind(row), kind(earlier));
            return Err(CheckError::broken(
                *number,
                expected,
                format!("{}, {}", event_text(earlier), event_text(row)),
            ));
        }
    }
    Ok(())
}

/// Compares a listed charge or invoice with the same object in its newest event. The immutable fields must be equal,
/// and so must the status, because every change is recorded as an event.
pub(super) fn listed_as_in_newest_event(recording: &Recording) -> Result<(), CheckError> {
    for views in &eras(recording) {
        for mode in Mode::BOTH {
            let Some(events) = longs(views, List::Events, mode).next_back() else { continue };
            for ((list, member), (_, settled)) in KINDS.into_iter().zip(SETTLED) {
                let mut newest: BTreeMap<&str, &Value> = BTreeMap::new();
                for row in events.rows() {
                    let Some(code) = text_at(row, &[member, "code"]) else { continue };
                    let known = newest.entry(code).or_insert(row);
                    if at(row) > at(known) {
                        *known = row;
                    }
                }
                let listed: Vec<_> = views
                    .iter()
                    .filter(|view| {
                        (view.mode, view.ask.list) == (mode, list) && view.number() < events.number()
                    })
                    .flat_map(|view| view.rows().iter().map(move |row| (view, row)))
                    .filter_map(|(view, row)| Some((view, row, *newest.get(text_at(row, &["code"])?)?)))
                    .collect();
                for name in settled.iter().copied() {
                    same(&listed, member, name, |_, _| true)?;
                }
                for name in ["status", "paid_at"] {
                    same(&listed, member, name, |view, event| is_final(member, view, event))?;
                }
            }
        }
    }
    Ok(())
}

/// Returns `true` if the status of an object in its newest event is final. An unpaid invoice may become overdue.
fn is_final(member: &str, view: &PageView<'_>, event: &Value) -> bool {
    let is_old = at(event).zip(clock(view.exchange)).is_some_and(|(at, now)| at + EVENT_DELAY_MAX < now);
    is_old && (member == "charge" || text_at(event, &["type"]) == Some("invoice.paid"))
}

/// Judges one field of listed items. Their fields and formats are not specified, so a different value counts only if
/// some item has the value of its event, or both values are times.
fn same(
    listed: &[(&PageView<'_>, &Value, &Value)],
    member: &str,
    name: &str,
    counts: impl Fn(&PageView<'_>, &Value) -> bool,
) -> Result<(), CheckError> {
    let pairs: Vec<_> = listed
        .iter()
        .filter_map(|(view, row, event)| Some((view, row, row.get(name)?, event[member].get(name)?, event)))
        .collect();
    let is_alike = pairs.iter().any(|(.., one, other, _)| one.is_string() && !contradict(one, other));
    let is_time = |it: &Value| it.as_str().is_some_and(|text| utc(text).is_some());
    let odd = pairs.iter().find(|(view, _, one, other, event)| {
        differ(name, one, other) && (is_alike || (is_time(one) && is_time(other))) && counts(view, event)
    });
    let Some((view, row, listed, shown, event)) = odd else { return Ok(()) };
    let expected =
        format!("{name} {shown} of {member} {}, as its newest event {} says", row["code"], event["id"]);
    Err(CheckError::broken(view.number(), expected, format!("{name} {listed}")))
}
