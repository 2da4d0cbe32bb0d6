//! The events and identifiers of one mode in a recording.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{LONG, Page, page_request, shown_link, text_at};
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

/// Returns the events of a mode on its last long page.
pub fn events(recording: &Recording, mode: Mode) -> Vec<Value> {
    let long = |exchange: &Exchange| {
        exchange.caller == Caller::Own(mode)
            && matches!(
                &exchange.purpose,
                Purpose::Page(PageRequest { list: List::Events, filters, per_page: Some(LONG), .. })
                    if filters.is_empty()
            )
            && exchange.status() == Some(200)
    };
    let page = recording.find_last(long).and_then(Page::from_exchange);
    page.and_then(|page| page.rows().cloned()).unwrap_or_default()
}

/// Returns the rows of a list on all pages of a mode, filtered or not, latest page first.
fn rows_of_list(recording: &Recording, mode: Mode, list: List) -> impl Iterator<Item = Value> {
    let of_list = move |exchange: &&Exchange| {
        exchange.caller == Caller::Own(mode)
            && page_request(exchange).is_some_and(|request| request.list == list)
    };
    let pages = recording.exchanges.iter().rev().filter(of_list).filter_map(Page::from_exchange);
    pages.flat_map(|page| page.rows().cloned().unwrap_or_default())
}

/// Returns identifiers of a mode. They are read from events, whose fields are specified; if no recent event has one,
/// from the other lists.
pub fn learn(recording: &Recording, mode: Mode) -> ObservedIds {
    let events = events(recording, mode);
    let first = |path: &[&str]| events.iter().find_map(|event| text_at(event, path)).map(str::to_owned);
    let listed = |list, id_of: fn(&Value) -> Option<&str>| {
        rows_of_list(recording, mode, list).find_map(|row| id_of(&row).map(str::to_owned))
    };
    ObservedIds {
        event: first_event_id(&events).or_else(|| listed(List::Events, |row| text_at(row, &["id"]))),
        charge: first(&["charge", "code"]).or_else(|| listed(List::Charges, |row| text_at(row, &["code"]))),
        invoice: first(&["invoice", "code"])
            .or_else(|| listed(List::Invoices, |row| text_at(row, &["code"]))),
        payment_link: first(&["charge", "payment_link"]).or_else(|| listed(List::Charges, shown_link)),
    }
}

/// Returns the event in a response to `GET /v1/events/{id}`. Its envelope is not specified, so the event is the object
/// with the most members of an event, the outermost of several.
pub fn single_event(exchange: &Exchange) -> Option<Value> {
    Some(wrapped_event(exchange)?.1)
}

/// Returns the event in such a response, with the names of the members that lead to it.
pub fn wrapped_event(exchange: &Exchange) -> Option<(Vec<String>, Value)> {
    const MEMBERS: [&str; 6] = ["id", "type", "details", "charge", "invoice", "created_at"];
    /// Limits the search to nested envelopes and the members of an event.
    const DEPTH_MAX: usize = 3;
    fn search_event(at: &Value, path: Vec<String>, found: &mut Vec<(usize, Vec<String>, Value)>) {
        let likeness = MEMBERS.iter().filter(|name| at.get(**name).is_some()).count();
        // An envelope has none or few of the members of an event.
        if found.iter().all(|(most, ..)| likeness > *most) {
            found.push((likeness, path.clone(), at.clone()));
        }
        let members = at.as_object().into_iter().flatten().filter(|(_, value)| value.is_object());
        for (name, member) in members.take_while(|_| path.len() < DEPTH_MAX) {
            search_event(member, [path.clone(), vec![name.clone()]].concat(), found);
        }
    }
    let body = exchange.answer()?.body.json()?;
    let mut found = Vec::new();
    search_event(&body, Vec::new(), &mut found);
    found.pop().map(|(_, path, event)| (path, event))
}

/// Returns the id of the key's own event that an exchange requested, alone or in a burst.
pub fn requested_own_event(exchange: &Exchange) -> Option<&str> {
    match &exchange.purpose {
        Purpose::Event { id, side: Side::Own, .. } => Some(id),
        Purpose::Burst(Burst::Shot { .. } | Burst::Beside { .. }) => {
            let (list, id) = exchange.target.rsplit_once('/')?;
            list.ends_with(List::Events.path()).then_some(id)
        }
        _ => None,
    }
}

/// Returns the first id in the rows of a page.
pub fn first_event_id(rows: &[Value]) -> Option<String> {
    rows.iter().find_map(|row| row.get("id")?.as_str()).map(str::to_owned)
}

/// Returns the value of `meta.mode`.
pub fn stated_mode(exchange: &Exchange) -> Option<String> {
    let body = exchange.answer()?.body.json()?;
    text_at(&body, &["meta", "mode"]).map(str::to_owned)
}

/// Returns the listed events of a mode by id, each as listed last.
pub fn listed_events(recording: &Recording, mode: Mode) -> BTreeMap<String, Value> {
    let mut listed = BTreeMap::new();
    for rows in [
        events(recording, mode),
        before_rows(recording, mode),
        after_rows(recording, mode).unwrap_or_default(),
    ] {
        for row in rows {
            if let Some(id) = text_at(&row, &["id"]).map(str::to_owned) {
                listed.insert(id, row);
            }
        }
    }
    listed
}

/// Returns the events of a mode before the first delivery.
pub fn before_rows(recording: &Recording, mode: Mode) -> Vec<Value> {
    let rows = rows_of(recording, mode, &Purpose::BeforeDeliveries);
    rows.unwrap_or_else(|| events(recording, mode))
}

/// Returns the events of a mode after the deliveries, newest first; `None` if they could not be read. New events between
/// two pages move records to the next page, so a record may be on both.
pub fn after_rows(recording: &Recording, mode: Mode) -> Option<Vec<Value>> {
    let mut rows = rows_of(recording, mode, &Purpose::AfterDeliveries)?;
    let mut seen = BTreeSet::new();
    rows.retain(|row| text_at(row, &["id"]).is_none_or(|id| seen.insert(id.to_owned())));
    Some(rows)
}

/// Returns the rows of all pages that were read for a purpose.
fn rows_of(recording: &Recording, mode: Mode, purpose: &Purpose) -> Option<Vec<Value>> {
    let rows = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.caller == Caller::Own(mode) && exchange.purpose == *purpose);
    let pages: Vec<_> = rows.filter_map(|exchange| Page::from_exchange(exchange)?.rows().cloned()).collect();
    (!pages.is_empty()).then(|| pages.concat())
}
