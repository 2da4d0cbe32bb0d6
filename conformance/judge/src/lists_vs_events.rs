//! Lists compared with events: every created object is listed, and every listed charge has its events.
//!
//! Each statement compares two pages; the page that must contain the records was read later. Changes in the
//! last minute are ignored, because they may not be visible yet.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, text_at};
use conformance_model::recording::{Exchange, List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::check::Check;
use crate::current_states;
use crate::diff::{CONSISTENCY_TIME, LIST_DELAY_MAX, LISTED_KINDS};
use crate::event_sequences;
use crate::evidence::{
    PER_PAGE_MAX, PageView, comparable_groups, first_long_page_reads, joined_rows, read_at, readable_pages,
    recorded_at,
};
use crate::final_statuses;
use crate::listed_objects;
use crate::listed_values;
use crate::object_copies::CopySource;
use crate::object_history;
use crate::repeated_events;
use crate::status_names;

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check::new("lists.complete", NEEDS, judge_complete)
        .with_optional_probes(&[Group::Objects, Group::Webhooks]),
    Check::new("events.recorded", NEEDS, judge_recorded).with_optional_probes(&[Group::Webhooks]),
];

fn paid_at(row: &Value) -> Option<OffsetDateTime> {
    parse_utc(text_at(row, &["paid_at"])?)
}

fn code<'a>(event: &'a Value, member: &str) -> Option<&'a str> {
    text_at(event, &[member, "code"])
}

fn has_type(event: &Value, kind: &str) -> bool {
    text_at(event, &["type"]) == Some(kind)
}

/// Returns the time up to which all records are visible in a list: a minute before it was read, or before the newest
/// event.
fn visible_until(later: &PageView<'_>, events: &PageView<'_>) -> Option<OffsetDateTime> {
    let date = later.read_at;
    let newest = || events.rows().iter().filter_map(recorded_at).max();
    // The `Date` may be wrong or from a cache; then the newest event counts.
    let latest = date.filter(|date| newest().is_none_or(|newest| *date >= newest)).or_else(newest);
    latest.map(|latest| latest - LIST_DELAY_MAX)
}

/// Returns `true` if no event was recorded in the ten minutes before the response `since` and none
/// afterwards, by the last read of the first long page of events. `false` if this read precedes `since`.
pub(super) fn has_no_recent_events(views: &[PageView<'_>], since: Option<&Exchange>, mode: Mode) -> bool {
    let date = since.and_then(|since| read_at(views, since));
    let last_page = first_long_page_reads(views, List::Events, mode).next_back();
    let later_page = last_page.filter(|view| since.is_some_and(|since| view.number() > since.number));
    let newest = later_page.and_then(|view| view.rows().iter().filter_map(recorded_at).max());
    date.zip(newest).is_some_and(|(date, newest)| newest + CONSISTENCY_TIME < date)
}

/// Returns the codes of a list's rows, if every row has a code.
fn codes<'a>(view: &'a PageView<'_>) -> Option<BTreeSet<&'a str>> {
    view.page.rows()?.iter().map(|row| text_at(row, &["code"])).collect()
}

/// Returns the error if lists could not be compared with events. `needed`: the members of an item
/// that a comparison needs.
fn lists_not_comparable(recording: &Recording, lists: &[List], needed: &[&str]) -> CheckError {
    let comparable_groups = comparable_groups(recording);
    let is_new = |view: &PageView<'_>, row: &Value| {
        text_at(row, &["type"]).is_some_and(|kind| kind.ends_with(".created"))
            && view.read_at.is_some_and(|read_at| recorded_at(row) > Some(read_at - LIST_DELAY_MAX))
    };
    let pages = || comparable_groups.iter().flatten().filter(|view| lists.contains(&view.request.list));
    let has_needed_members = |row: &Value| needed.iter().all(|name| text_at(row, &[name]).is_some());
    let is_comparable = pages().any(|view| view.rows().iter().any(has_needed_members));
    let events = comparable_groups.iter().flatten().filter(|view| view.request.list == List::Events);
    if is_comparable && events.into_iter().any(|view| view.rows().iter().any(|row| is_new(view, row))) {
        return CheckError::unjudged(
            "new objects may take a minute to appear in the lists, and no older object is listed",
            "check again in a minute, while nothing is created",
        );
    }
    if pages().any(|view| !view.rows().is_empty()) {
        return CheckError::Inapplicable(
            "the codes and times in lists and events do not show which records belong together".into(),
        );
    }
    CheckError::unjudged(
        "no list contains the code of an object that was created more than a minute ago according to its event",
        "open a charge with the test key's account, wait a minute, then check again",
    )
}

/// Judges that created objects are listed. One long page of each list suffices: the events of a long
/// page concern no more objects than fit on one.
fn judge_complete(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for views in &comparable_groups(recording) {
        for mode in Mode::BOTH {
            for (list, member) in LISTED_KINDS {
                let newest = first_long_page_reads(views, List::Events, mode).next();
                for events in newest.into_iter().chain(creations(views, mode, member)) {
                    judged |= check_listed(views, events, list, member)?;
                }
            }
        }
    }
    listed_values::check(recording)?;
    current_states::check(recording, &LISTED_KINDS.map(|(_, member)| (member, CopySource::List)))?;
    listed_objects::check(recording)?;
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(lists_not_comparable(recording, &[List::Charges, List::Invoices], &["code"]))
    }
}

/// Returns the first long page of the creation events of a kind of object. In a busy account, only this one has events that are
/// older than a minute.
fn creations<'s, 'a>(views: &'s [PageView<'a>], mode: Mode, member: &str) -> Option<&'s PageView<'a>> {
    let filter = ("type".to_owned(), format!("{member}.created"));
    views.iter().find(|view| {
        let request = &view.request;
        view.mode == mode
            && (request.list, &request.filters[..]) == (List::Events, std::slice::from_ref(&filter))
            && (request.page, request.per_page, &request.link) == (None, Some(PER_PAGE_MAX), &None)
    })
}

/// Checks that the objects of a page's creation events are on the long page of their list that was read last, and later than
/// the events. Returns `true` if there are such objects.
fn check_listed(
    views: &[PageView<'_>],
    events: &PageView<'_>,
    list: List,
    member: &str,
) -> Result<bool, CheckError> {
    let listed =
        first_long_page_reads(views, list, events.mode).last().filter(|view| view.number() > events.number());
    let Some((listed, codes)) = listed.and_then(|view| Some((view, codes(view)?))) else {
        return Ok(false);
    };
    let until = visible_until(listed, events);
    let created: Vec<_> =
        events.rows().iter().filter(|row| has_type(row, &format!("{member}.created"))).collect();
    // Newer records may have moved the oldest ones to the next page.
    let is_full = listed.rows().len() as u64 == PER_PAGE_MAX;
    let is_on_page = |event: &&Value| code(event, member).is_some_and(|code| codes.contains(code));
    let comparable_count =
        if is_full { created.iter().rposition(is_on_page).map_or(0, |last| last + 1) } else { created.len() };
    let created = &created[..comparable_count];
    // Records of about the same time may be in another order than their events.
    let oldest = created.last().and_then(|row| recorded_at(row)).filter(|_| is_full);
    let is_visible = |row: &&&Value| {
        recorded_at(row)
            .is_some_and(|at| Some(at) <= until && oldest.is_none_or(|oldest| at > oldest + LIST_DELAY_MAX))
    };
    let mut judged = false;
    for event in created.iter().filter(is_visible) {
        let Some(code) = code(event, member) else { continue };
        if !codes.contains(code) {
            let id = text_at(event, &["id"]).unwrap_or("without an id");
            return Err(CheckError::violation(
                listed.number(),
                format!("{member} {code} in the list of {}, as event {id} shows", list.as_str()),
                format!("{} others, but not this one", codes.len()),
            ));
        }
        judged = true;
    }
    Ok(judged)
}

/// Judges that listed charges have their events, and that the events of charges and invoices agree with their statuses.
/// Invoices may be listed before they are issued, so they need not have events.
fn judge_recorded(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for views in &comparable_groups(recording) {
        for mode in Mode::BOTH {
            check_status_changes(views, mode)?;
            let Some(listed) = first_long_page_reads(views, List::Charges, mode).next() else { continue };
            let events = first_long_page_reads(views, List::Events, mode)
                .last()
                .filter(|view| view.number() > listed.number());
            let Some(events) = events else { continue };
            let later =
                LaterEvents { rows: events.rows().iter().collect(), until: visible_until(events, events) };
            for (index, row) in listed.rows().iter().enumerate() {
                let Some(result) = later.check_charge(listed.rows(), index) else { continue };
                if let Err(kind) = result {
                    return Err(missing_event(listed, row, kind, events));
                }
                judged = true;
            }
        }
    }
    check_recent_charges(recording)?;
    object_history::check_event_order(recording)?;
    event_sequences::check(&readable_pages(recording))?;
    status_names::check(recording)?;
    final_statuses::check_listed(recording)?;
    repeated_events::check(recording)?;
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(lists_not_comparable(recording, &[List::Charges], &["code", "created_at"]))
    }
}

/// Returns the violation for a listed charge without an event.
fn missing_event(listed: &PageView<'_>, row: &Value, kind: &str, events: &PageView<'_>) -> CheckError {
    let code = text_at(row, &["code"]).unwrap_or_default();
    CheckError::violation(
        events.number(),
        format!("a {kind} of charge {code}, which is listed at {}", listed.exchange.target),
        format!("{} other events, but not this one", events.rows().len()),
    )
}

/// The minimum number of charges without an event in the list of a busy account, for a violation.
const WITHOUT_EVENT_MIN: usize = 2;

/// Checks the charges of busy accounts, whose events of the last minute fill a page: by the longest read of several pages of
/// events, and the last long page of charges that was read before.
fn check_recent_charges(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    for mode in Mode::BOTH {
        let reads = first_long_page_reads(&views, List::Events, mode)
            .map(|first| (joined_rows(&views, first), first));
        let Some((rows, first)) = reads.max_by_key(|(rows, _)| rows.len()) else { continue };
        let listed =
            first_long_page_reads(&views, List::Charges, mode).rfind(|view| view.number() < first.number());
        let Some(listed) = listed else { continue };
        let later = LaterEvents {
            rows: rows.into_iter().map(|joined| joined.row).collect(),
            until: visible_until(first, first),
        };
        let rows = listed.rows().iter().enumerate();
        let missing: Vec<_> = rows
            .filter_map(|(index, row)| Some((row, later.check_charge(listed.rows(), index)?.err()?)))
            .collect();
        if let Some((row, kind)) = missing.last().filter(|_| missing.len() >= WITHOUT_EVENT_MIN) {
            return Err(missing_event(listed, row, kind, first));
        }
    }
    Ok(())
}

/// The events of a list that was read later than a list of charges.
struct LaterEvents<'s> {
    rows: Vec<&'s Value>,
    /// The time up to which all events are visible.
    until: Option<OffsetDateTime>,
}

impl LaterEvents<'_> {
    /// Returns the time of a charge's creation event.
    fn creation_time(&self, charge: &Value) -> Option<OffsetDateTime> {
        let own = text_at(charge, &["code"])?;
        let mut creations = self.rows.iter().filter(|event| has_type(event, "charge.created"));
        recorded_at(creations.find(|event| code(event, "charge") == Some(own))?)
    }

    /// Returns the time of a listed charge's creation event, or else that of the next older charge in the list that has
    /// one. The charge or a newer one must have a visible creation event. Listed charges may have no time themselves.
    fn opening_time_between(&self, rows: &[Value], index: usize) -> Option<OffsetDateTime> {
        let mut newer = rows[..=index].iter().rev().filter_map(|row| self.creation_time(row));
        newer.next().filter(|newer| Some(*newer) <= self.until)?;
        rows[index..].iter().find_map(|row| self.creation_time(row))
    }

    /// Checks that a listed charge has its events; the error is the type of a missing one. `None` if it
    /// cannot be judged, such as for events older than the oldest one of the list.
    fn check_charge(&self, rows: &[Value], index: usize) -> Option<Result<(), &'static str>> {
        let row = &rows[index];
        let own = text_at(row, &["code"])?;
        if !all_have_codes(&self.rows, "charge") {
            return None;
        }
        let opened_at = recorded_at(row).or_else(|| self.opening_time_between(rows, index));
        let oldest = self.rows.iter().filter_map(|row| recorded_at(row)).min()?;
        let opened_at = opened_at.filter(|at| *at > oldest + LIST_DELAY_MAX && Some(*at) <= self.until)?;
        let has_event = |kind: &str| {
            self.rows.iter().any(|event| has_type(event, kind) && code(event, "charge") == Some(own))
        };
        if !has_event("charge.created") {
            return Some(Err("charge.created"));
        }
        let paid = paid_at(row).filter(|at| *at >= opened_at && Some(*at) <= self.until);
        let is_paid = text_at(row, &["status"]) == Some("paid") && paid.is_some();
        if is_paid && !has_event("charge.paid") {
            return Some(Err("charge.paid"));
        }
        Some(Ok(()))
    }
}

/// Returns `true` if every event of a kind of object has the code of its object, and all types are known. An event
/// without a code may belong to any object.
fn all_have_codes(events: &[&Value], member: &str) -> bool {
    events.iter().all(|event| {
        let kind = text_at(event, &["type"]).filter(|kind| EVENT_TYPES.contains(kind));
        kind.is_some_and(|kind| !kind.starts_with(member) || code(event, member).is_some())
    })
}

/// Checks that the status and `paid_at` of no charge or invoice changed and changed back without a recent event. A
/// single change may have no event, such as that of an invoice that became overdue.
fn check_status_changes(views: &[PageView<'_>], mode: Mode) -> Result<(), CheckError> {
    let Some(events) = first_long_page_reads(views, List::Events, mode).last() else { return Ok(()) };
    let Some(until) = visible_until(events, events).map(|latest| latest - CONSISTENCY_TIME) else {
        return Ok(());
    };
    let is_recent = |event: &&Value| recorded_at(event).is_none_or(|at| at > until);
    let is_full = events.rows().len() as u64 == PER_PAGE_MAX;
    let all: Vec<_> = events.rows().iter().collect();
    for (list, member) in LISTED_KINDS {
        if !all_have_codes(&all, member) || (is_full && events.rows().iter().all(|row| is_recent(&row))) {
            continue;
        }
        let changed: BTreeSet<_> =
            events.rows().iter().filter(is_recent).filter_map(|row| code(row, member)).collect();
        let mut states: BTreeMap<&str, Vec<[Option<&Value>; 2]>> = BTreeMap::new();
        for view in views.iter().filter(|view| view.mode == mode && view.request.list == list) {
            for row in view.rows() {
                let Some(code) = text_at(row, &["code"]).filter(|code| !changed.contains(code)) else {
                    continue;
                };
                let state = ["status", "paid_at"].map(|name| row.get(name));
                let known_states = states.entry(code).or_default();
                if known_states.last() == Some(&state) {
                    continue;
                }
                if let Some(previous) = known_states.last().filter(|_| known_states.contains(&state)) {
                    let state_text = |state: &[Option<&Value>; 2]| {
                        let [status, paid] = state.map(|value| value.map_or("none".into(), Value::to_string));
                        format!("status {status} and paid_at {paid}")
                    };
                    let expected = format!("{member} {code} with {}, as shown before", state_text(previous));
                    let actual = format!("{} again, and no event of it", state_text(&state));
                    return Err(CheckError::violation(view.number(), expected, actual));
                }
                known_states.push(state);
            }
        }
    }
    Ok(())
}

/// Checks that charges and invoices are listed in the order of their creation events, newest first,
/// with a tolerance of one minute. Returns `true` if some could be compared.
pub(super) fn check_creation_order(views: &[PageView<'_>]) -> Result<bool, CheckError> {
    let mut judged = false;
    for mode in Mode::BOTH {
        let Some(events) = first_long_page_reads(views, List::Events, mode).last() else { continue };
        for (list, member) in LISTED_KINDS {
            let created_at = |wanted: &str| {
                let mut rows = events.rows().iter().filter(|row| has_type(row, &format!("{member}.created")));
                recorded_at(rows.find(|row| code(row, member) == Some(wanted))?)
            };
            for view in first_long_page_reads(views, list, mode) {
                let codes: Vec<_> = view.rows().iter().filter_map(|row| text_at(row, &["code"])).collect();
                let times: Vec<_> =
                    codes.into_iter().filter_map(|code| Some((code, created_at(code)?))).collect();
                for pair in times.windows(2) {
                    let [(above, above_at), (below, below_at)] = pair else { continue };
                    if *below_at > *above_at + LIST_DELAY_MAX {
                        return Err(CheckError::violation(
                            view.number(),
                            "the newest record first",
                            format!("{above} of {above_at} above {below} of {below_at}"),
                        ));
                    }
                    judged = true;
                }
            }
        }
    }
    Ok(judged)
}
