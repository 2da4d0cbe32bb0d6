//! Lists compared with events: every created object is listed, and every listed object has its events.
//!
//! Each statement compares two pages; the page that must contain the records was read later. Changes in the
//! last minute are ignored, because they may not be visible yet.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{text_at, utc};
use conformance_model::recording::{Exchange, List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::check::Check;
use crate::diff::{CONSISTENCY_TIME, KINDS, LATENESS, clock};
use crate::evidence::{PER_PAGE_MAX, PageView, comparable_groups, first_long_pages};
use crate::object_history;

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check::new("lists.complete", NEEDS, judge_complete),
    Check::new("events.recorded", NEEDS, judge_recorded),
];

fn time_at(row: &Value, name: &str) -> Option<OffsetDateTime> {
    utc(text_at(row, &[name])?)
}

fn code<'a>(event: &'a Value, member: &str) -> Option<&'a str> {
    text_at(event, &[member, "code"])
}

fn is_of(event: &Value, kind: &str) -> bool {
    text_at(event, &["type"]) == Some(kind)
}

/// Returns the time before which all records are visible, by the `Date` of the response or the newest event.
fn settled_until(later: &PageView<'_>, events: &PageView<'_>) -> Option<OffsetDateTime> {
    let date = clock(later.exchange);
    let newest = || events.rows().iter().filter_map(|row| time_at(row, "created_at")).max();
    // The `Date` may be wrong or from a cache; then the newest event counts.
    let latest = date.filter(|date| newest().is_none_or(|newest| *date >= newest)).or_else(newest);
    latest.map(|latest| latest - LATENESS)
}

/// Returns `true` if no event was recorded in the ten minutes before a response and none since, by the last long page
/// of events.
pub(super) fn is_quiet(views: &[PageView<'_>], since: Option<&Exchange>, mode: Mode) -> bool {
    let date = since.and_then(clock);
    let events = first_long_pages(views, List::Events, mode).next_back();
    let newest = events.filter(|view| since.is_some_and(|since| view.number() > since.number));
    let newest =
        newest.and_then(|view| view.rows().iter().filter_map(|row| time_at(row, "created_at")).max());
    date.zip(newest).is_some_and(|(date, newest)| newest + CONSISTENCY_TIME < date)
}

/// Returns the codes of a list's rows, if every row has a code.
fn codes<'a>(view: &'a PageView<'_>) -> Option<BTreeSet<&'a str>> {
    view.page.rows()?.iter().map(|row| text_at(row, &["code"])).collect()
}

/// Returns the reason why the lists could not be compared. `needed`: the members of an item that a comparison needs.
fn nothing_created(recording: &Recording, lists: &[List], needed: &[&str]) -> CheckError {
    let comparable_groups = comparable_groups(recording);
    let is_new = |view: &PageView<'_>, row: &Value| {
        text_at(row, &["type"]).is_some_and(|kind| kind.ends_with(".created"))
            && clock(view.exchange).is_some_and(|now| time_at(row, "created_at") > Some(now - LATENESS))
    };
    let others = || comparable_groups.iter().flatten().filter(|view| lists.contains(&view.request.list));
    let is_telling = |row: &Value| needed.iter().all(|name| text_at(row, &[name]).is_some());
    let is_shown = others().any(|view| view.rows().iter().any(is_telling));
    let events = comparable_groups.iter().flatten().filter(|view| view.request.list == List::Events);
    if is_shown && events.into_iter().any(|view| view.rows().iter().any(|row| is_new(view, row))) {
        return CheckError::unjudged(
            "new objects may take a minute to appear in the lists, and no older object is listed",
            "check again in a minute, while nothing is created",
        );
    }
    if others().any(|view| !view.rows().is_empty()) {
        return CheckError::Inapplicable(
            "codes and times of the lists and the events do not show which records belong together".into(),
        );
    }
    CheckError::unjudged(
        "no list contains the code of an object that was created more than a minute ago according to its event",
        "open a charge with the test key's account, wait a minute, then check again",
    )
}

/// Judges that created objects are listed. The newest events concern no more objects than fit on a long page.
fn judge_complete(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for views in &comparable_groups(recording) {
        for mode in Mode::BOTH {
            let Some(events) = first_long_pages(views, List::Events, mode).next() else { continue };
            for (list, member) in KINDS {
                let listed =
                    first_long_pages(views, list, mode).last().filter(|view| view.number() > events.number());
                let Some((listed, codes)) = listed.and_then(|view| Some((view, codes(view)?))) else {
                    continue;
                };
                let until = settled_until(listed, events);
                let created: Vec<_> =
                    events.rows().iter().filter(|row| is_of(row, &format!("{member}.created"))).collect();
                // Newer records may have moved the oldest ones to the next page.
                let is_full = listed.rows().len() as u64 == PER_PAGE_MAX;
                let is_on_page =
                    |event: &&Value| code(event, member).is_some_and(|code| codes.contains(code));
                let reach =
                    if is_full { created.iter().rposition(is_on_page) } else { created.len().checked_sub(1) };
                let Some(reach) = reach else { continue };
                let created = created[..=reach].iter();
                let arrived =
                    created.filter(|row| time_at(row, "created_at").is_some_and(|at| Some(at) <= until));
                for event in arrived {
                    let Some(code) = code(event, member) else { continue };
                    if !codes.contains(code) {
                        let id = text_at(event, &["id"]).unwrap_or("without an id");
                        return Err(CheckError::violation(
                            listed.number(),
                            format!("{member} {code} in the list of {}, as event {id} shows", list.as_str()),
                            format!("{} others, and not this one", codes.len()),
                        ));
                    }
                    judged = true;
                }
            }
        }
    }
    object_history::check_listed_values(recording)?;
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(nothing_created(recording, &[List::Charges, List::Invoices], &["code"]))
    }
}

/// Judges that listed charges have their events. Invoices may be listed before they are issued, so they do not count.
fn judge_recorded(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for views in &comparable_groups(recording) {
        for mode in Mode::BOTH {
            check_status_changes(views, mode)?;
            let Some(listed) = first_long_pages(views, List::Charges, mode).next() else { continue };
            let events = first_long_pages(views, List::Events, mode)
                .last()
                .filter(|view| view.number() > listed.number());
            let Some(events) = events else { continue };
            let until = settled_until(events, events);
            for (index, row) in listed.rows().iter().enumerate() {
                let opened = time_at(row, "created_at")
                    .or_else(|| opening_time_between(listed.rows(), index, events, until));
                let Some(missing) = missing_event(row, opened, events, until) else { continue };
                if let Err(kind) = missing {
                    let code = text_at(row, &["code"]).unwrap_or_default();
                    return Err(CheckError::violation(
                        events.number(),
                        format!("a {kind} of charge {code}, which is listed at {})", listed.exchange.target),
                        format!("{} other events, and not this one", events.rows().len()),
                    ));
                }
                judged = true;
            }
        }
    }
    object_history::check_created_first(recording)?;
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(nothing_created(recording, &[List::Charges], &["code", "created_at"]))
    }
}

/// Returns a time before a listed charge was opened, if its neighbours in the list, newest first, have creation events before
/// and after: charges may have no time of their own.
fn opening_time_between(
    rows: &[Value],
    index: usize,
    events: &PageView<'_>,
    until: Option<OffsetDateTime>,
) -> Option<OffsetDateTime> {
    let created = |row: &Value| {
        let own = text_at(row, &["code"])?;
        let mut created = events.rows().iter().filter(|event| is_of(event, "charge.created"));
        time_at(created.find(|event| code(event, "charge") == Some(own))?, "created_at")
    };
    rows[..=index].iter().rev().find_map(created).filter(|newer| Some(*newer) <= until)?;
    rows[index..].iter().find_map(created)
}

/// Returns the type of a missing event of a listed charge as an error. `None` if it cannot be judged: events older than
/// the oldest listed one may have expired.
fn missing_event(
    row: &Value,
    opened: Option<OffsetDateTime>,
    events: &PageView<'_>,
    until: Option<OffsetDateTime>,
) -> Option<Result<(), &'static str>> {
    let own = text_at(row, &["code"])?;
    if !names_objects(events, "charge") {
        return None;
    }
    let oldest = events.rows().iter().filter_map(|event| time_at(event, "created_at")).min()?;
    let opened = opened.filter(|at| *at > oldest + LATENESS && Some(*at) <= until)?;
    let has = |kind: &str| {
        events.rows().iter().any(|event| is_of(event, kind) && code(event, "charge") == Some(own))
    };
    if !has("charge.created") {
        return Some(Err("charge.created"));
    }
    let paid = time_at(row, "paid_at").filter(|at| *at >= opened && Some(*at) <= until);
    let is_paid = text_at(row, &["status"]) == Some("paid") && paid.is_some();
    if is_paid && !has("charge.paid") {
        return Some(Err("charge.paid"));
    }
    Some(Ok(()))
}

/// Returns `true` if every event has the code of its charge or invoice. Without it, the event may belong to any.
fn names_objects(events: &PageView<'_>, member: &str) -> bool {
    events.rows().iter().all(|event| {
        let kind = text_at(event, &["type"]).filter(|kind| EVENT_TYPES.contains(kind));
        kind.is_some_and(|kind| !kind.starts_with(member) || code(event, member).is_some())
    })
}

/// Checks that no charge or invoice changed its status and back without a recent event. A single change may have none,
/// such as an invoice that became overdue.
fn check_status_changes(views: &[PageView<'_>], mode: Mode) -> Result<(), CheckError> {
    let Some(events) = first_long_pages(views, List::Events, mode).last() else { return Ok(()) };
    let Some(until) = settled_until(events, events).map(|latest| latest - CONSISTENCY_TIME) else {
        return Ok(());
    };
    let recent = |event: &&Value| time_at(event, "created_at").is_none_or(|at| at > until);
    let is_full = events.rows().len() as u64 == PER_PAGE_MAX;
    for (list, member) in KINDS {
        if !names_objects(events, member) || (is_full && events.rows().iter().all(|row| recent(&row))) {
            continue;
        }
        let changed: BTreeSet<_> =
            events.rows().iter().filter(recent).filter_map(|row| code(row, member)).collect();
        let mut states: BTreeMap<&str, Vec<[Option<&Value>; 2]>> = BTreeMap::new();
        for view in views.iter().filter(|view| view.mode == mode && view.request.list == list) {
            for row in view.rows() {
                let Some(code) = text_at(row, &["code"]).filter(|code| !changed.contains(code)) else {
                    continue;
                };
                let state = ["status", "paid_at"].map(|name| row.get(name));
                let seen = states.entry(code).or_default();
                if seen.last() == Some(&state) {
                    continue;
                }
                if let Some(between) = seen.last().filter(|_| seen.contains(&state)) {
                    let state_text = |state: &[Option<&Value>; 2]| {
                        let [status, paid] = state.map(|value| value.map_or("none".into(), Value::to_string));
                        format!("status {status} and paid_at {paid}")
                    };
                    let expected = format!("{member} {code} with {}, as shown before", state_text(between));
                    let actual = format!("{} again, and no event of it", state_text(&state));
                    return Err(CheckError::violation(view.number(), expected, actual));
                }
                seen.push(state);
            }
        }
    }
    Ok(())
}

/// Checks that charges and invoices are in the order of their creation events, with a tolerance of one minute. Returns
/// `true` if some could be compared.
pub(super) fn check_creation_order(views: &[PageView<'_>]) -> Result<bool, CheckError> {
    let mut judged = false;
    for mode in Mode::BOTH {
        let Some(events) = first_long_pages(views, List::Events, mode).last() else { continue };
        for (list, member) in KINDS {
            let created = |wanted: &str| {
                let mut rows = events.rows().iter().filter(|row| is_of(row, &format!("{member}.created")));
                time_at(rows.find(|row| code(row, member) == Some(wanted))?, "created_at")
            };
            for view in first_long_pages(views, list, mode) {
                let codes: Vec<_> = view.rows().iter().filter_map(|row| text_at(row, &["code"])).collect();
                let times: Vec<_> =
                    codes.into_iter().filter_map(|code| Some((code, created(code)?))).collect();
                for pair in times.windows(2) {
                    let [(above, earlier), (below, later)] = pair else { continue };
                    if *later > *earlier + LATENESS {
                        return Err(CheckError::violation(
                            view.number(),
                            "the newest record first",
                            format!("{above} of {earlier} above {below} of {later}"),
                        ));
                    }
                    judged = true;
                }
            }
        }
    }
    Ok(judged)
}
