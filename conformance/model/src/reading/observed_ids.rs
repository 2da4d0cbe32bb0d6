//! The events and identifiers of one mode in a recording.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{LONG_PAGE_SIZE, Page, page_request, payment_link_code, text_at};
use crate::mode::Mode;
use crate::recording::{Burst, Caller, Exchange, List, PageRequest, Purpose, Recording, Side};

/// An identifier of each kind of object, found in the lists of one mode.
#[derive(Clone, Debug, Default)]
pub struct ObservedIds {
    /// The id of an event.
    pub event: Option<String>,
    /// The code of a charge.
    pub charge: Option<String>,
    /// The code of an invoice.
    pub invoice: Option<String>,
    /// The code of a payment link.
    pub payment_link: Option<String>,
}

/// Returns the events of a mode on the last unfiltered long page that was read.
pub fn recent_events(recording: &Recording, mode: Mode) -> Vec<&Value> {
    let is_long_page = |exchange: &Exchange| {
        exchange.caller == Caller::Own(mode)
            && matches!(
                &exchange.purpose,
                Purpose::Page(PageRequest { list: List::Events, filters, per_page: Some(LONG_PAGE_SIZE), .. })
                    if filters.is_empty()
            )
            && exchange.status() == Some(200)
    };
    let page = recording.find_last(is_long_page).and_then(Page::from_exchange);
    page.and_then(Page::rows).into_iter().flatten().collect()
}

/// Returns the rows of a list on all pages of a mode, filtered or not, latest page first.
fn rows_of_list(recording: &Recording, mode: Mode, list: List) -> impl Iterator<Item = &Value> {
    let is_page_of_list = move |exchange: &&Exchange| {
        exchange.caller == Caller::Own(mode)
            && page_request(exchange).is_some_and(|request| request.list == list)
    };
    let pages = recording.exchanges.iter().rev().filter(is_page_of_list).filter_map(Page::from_exchange);
    pages.filter_map(Page::rows).flatten()
}

/// Returns an identifier of each kind in a mode. They are read from events, whose fields are specified; if no
/// recent event has one, from the other lists.
pub fn observed_ids(recording: &Recording, mode: Mode) -> ObservedIds {
    let events = recent_events(recording, mode);
    let in_events = |path: &[&str]| events.iter().find_map(|event| text_at(event, path)).map(str::to_owned);
    let in_list = |list, id_of: fn(&Value) -> Option<&str>| {
        rows_of_list(recording, mode, list).find_map(|row| id_of(row).map(str::to_owned))
    };
    ObservedIds {
        event: first_event_id(events.iter().copied())
            .or_else(|| in_list(List::Events, |row| text_at(row, &["id"]))),
        charge: in_events(&["charge", "code"])
            .or_else(|| in_list(List::Charges, |row| text_at(row, &["code"]))),
        invoice: in_events(&["invoice", "code"])
            .or_else(|| in_list(List::Invoices, |row| text_at(row, &["code"]))),
        payment_link: in_events(&["charge", "payment_link"])
            .or_else(|| in_list(List::Charges, payment_link_code)),
    }
}

/// Returns the event in a response to `GET /v1/events/{id}`. Its envelope is not specified, so the event is the
/// object with the most members of an event, the outermost of several.
pub fn single_event(exchange: &Exchange) -> Option<&Value> {
    Some(event_with_path(exchange)?.1)
}

/// Returns the event in a response to `GET /v1/events/{id}`, see [`single_event`], and the names of the members that
/// lead to it.
pub fn event_with_path(exchange: &Exchange) -> Option<(Vec<String>, &Value)> {
    const MEMBERS: [&str; 6] = ["id", "type", "details", "charge", "invoice", "created_at"];
    /// Limits the search to nested envelopes and the members of an event.
    const DEPTH_MAX: usize = 3;
    fn search_event<'a>(
        value: &'a Value,
        path: Vec<String>,
        found: &mut Vec<(usize, Vec<String>, &'a Value)>,
    ) {
        let known_members = MEMBERS.iter().filter(|name| value.get(**name).is_some()).count();
        // An envelope has none or few of the members of an event.
        if found.iter().all(|(previous, ..)| known_members > *previous) {
            found.push((known_members, path.clone(), value));
        }
        let members = value.as_object().into_iter().flatten().filter(|(_, member)| member.is_object());
        for (name, member) in members.take_while(|_| path.len() < DEPTH_MAX) {
            search_event(member, [path.clone(), vec![name.clone()]].concat(), found);
        }
    }
    let body = exchange.response()?.body.json()?;
    let mut found = Vec::new();
    search_event(body, Vec::new(), &mut found);
    found.pop().map(|(_, path, event)| (path, event))
}

/// Returns the id of the key's own event if an exchange requested a single one, in a burst or outside.
pub fn requested_own_event(exchange: &Exchange) -> Option<&str> {
    match &exchange.purpose {
        Purpose::Event { id, side: Side::Own, .. } => Some(id),
        Purpose::Burst(Burst::UntilRefused { .. } | Burst::ConcurrentLiveKey { .. }) => {
            let (list, id) = exchange.target.rsplit_once('/')?;
            list.ends_with(List::Events.path()).then_some(id)
        }
        _ => None,
    }
}

/// Returns the id of the first event that has one.
pub fn first_event_id<'a>(rows: impl IntoIterator<Item = &'a Value>) -> Option<String> {
    rows.into_iter().find_map(|row| row.get("id")?.as_str()).map(str::to_owned)
}

/// Returns the `meta` of a response with an account: a member of the body, or of the account in its envelope, whose name
/// is not specified.
pub fn account_meta(body: &Value) -> Option<&Value> {
    let in_envelope =
        || body.as_object()?.values().find_map(|member| member.get("meta").filter(|meta| meta.is_object()));
    body.get("meta").or_else(in_envelope)
}

/// Returns the code of an accepted asset, which may be a code or an object with one.
pub fn asset_code(asset: &Value) -> Option<&str> {
    asset.as_str().or_else(|| text_at(asset, &["code"]))
}

/// Returns the value of `meta.mode`, see [`account_meta`].
pub fn stated_mode(exchange: &Exchange) -> Option<String> {
    let body = exchange.response()?.body.json()?;
    text_at(account_meta(body)?, &["mode"]).map(str::to_owned)
}

/// Returns the listed events of a mode by id, each as listed last.
pub fn listed_events(recording: &Recording, mode: Mode) -> BTreeMap<&str, &Value> {
    let mut listed = BTreeMap::new();
    for rows in [
        recent_events(recording, mode),
        events_before_deliveries(recording, mode),
        events_after_deliveries(recording, mode).unwrap_or_default(),
    ] {
        for row in rows {
            if let Some(id) = text_at(row, &["id"]) {
                listed.insert(id, row);
            }
        }
    }
    listed
}

/// Returns the events of a mode before the first delivery; the recent events if none were read for this purpose.
pub fn events_before_deliveries(recording: &Recording, mode: Mode) -> Vec<&Value> {
    let rows = rows_read_for(recording, mode, &Purpose::BeforeDeliveries);
    rows.unwrap_or_else(|| recent_events(recording, mode))
}

/// Returns the events of a mode after the deliveries, newest first; `None` if they could not be read. New events
/// between two pages move records to the next page, so a record may be on both.
pub fn events_after_deliveries(recording: &Recording, mode: Mode) -> Option<Vec<&Value>> {
    let mut rows = rows_read_for(recording, mode, &Purpose::AfterDeliveries)?;
    let mut known_ids = BTreeSet::new();
    rows.retain(|row| text_at(row, &["id"]).is_none_or(|id| known_ids.insert(id)));
    Some(rows)
}

/// Returns the rows of all pages that were read for a purpose; `None` if no page could be read.
fn rows_read_for<'a>(recording: &'a Recording, mode: Mode, purpose: &Purpose) -> Option<Vec<&'a Value>> {
    let exchanges = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.caller == Caller::Own(mode) && exchange.purpose == *purpose);
    let pages: Vec<_> = exchanges.filter_map(|exchange| Page::from_exchange(exchange)?.rows()).collect();
    (!pages.is_empty()).then(|| pages.into_iter().flatten().collect())
}
