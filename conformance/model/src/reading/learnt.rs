//! The events and identifiers of one mode that a recording contains.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{LONG, Page, page_ask, shown_link, text_at};
use crate::recording::{Burst, Caller, Exchange, List, PageAsk, Purpose, Recording, Side};
use crate::words::Mode;

/// The events and identifiers from the lists of one mode.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// The id of an event.
    pub event: Option<String>,
    /// The code of a charge.
    pub charge: Option<String>,
    /// The code of an invoice.
    pub invoice: Option<String>,
    /// The code of a payment link.
    pub payment_link: Option<String>,
}

/// The events of a mode in the longest page that was read.
pub fn events(recording: &Recording, mode: Mode) -> Vec<Value> {
    let long = |it: &Exchange| {
        it.caller == Caller::Own(mode)
            && matches!(
                &it.purpose,
                Purpose::Page(PageAsk { list: List::Events, filters, per_page: Some(LONG), .. })
                    if filters.is_empty()
            )
            && it.status() == Some(200)
    };
    let page = recording.last(long).and_then(Page::of);
    page.and_then(|page| page.rows().cloned()).unwrap_or_default()
}

/// The rows of a list that pages of a mode show, filtered or not, the latest page first.
fn rows_of_list(recording: &Recording, mode: Mode, list: List) -> impl Iterator<Item = Value> {
    let of_list = move |it: &&Exchange| {
        it.caller == Caller::Own(mode) && page_ask(it).is_some_and(|ask| ask.list == list)
    };
    let pages = recording.exchanges.iter().rev().filter(of_list).filter_map(Page::of);
    pages.flat_map(|page| page.rows().cloned().unwrap_or_default())
}

/// Identifiers come from events, since the items of the other lists are open; what no recent event shows, from those
/// lists as far as they show it.
pub fn learn(recording: &Recording, mode: Mode) -> Learnt {
    let events = events(recording, mode);
    let first = |path: &[&str]| events.iter().find_map(|event| text_at(event, path)).map(str::to_owned);
    let listed = |list, tell: fn(&Value) -> Option<&str>| {
        rows_of_list(recording, mode, list).find_map(|row| tell(&row).map(str::to_owned))
    };
    Learnt {
        event: first_event_id(&events).or_else(|| listed(List::Events, |row| text_at(row, &["id"]))),
        charge: first(&["charge", "code"]).or_else(|| listed(List::Charges, |row| text_at(row, &["code"]))),
        invoice: first(&["invoice", "code"])
            .or_else(|| listed(List::Invoices, |row| text_at(row, &["code"]))),
        payment_link: first(&["charge", "payment_link"]).or_else(|| listed(List::Charges, shown_link)),
    }
}

/// The single event in an answer: bare, or under any member, since its envelope is left open. Found by its shape:
/// the object with the most members of an event, the outermost of these.
pub fn single_event(exchange: &Exchange) -> Option<Value> {
    Some(wrapped_event(exchange)?.1)
}

/// The single event in an answer, and the names of the members that lead to it.
pub fn wrapped_event(exchange: &Exchange) -> Option<(Vec<String>, Value)> {
    const MEMBERS: [&str; 6] = ["id", "type", "details", "charge", "invoice", "created_at"];
    /// Envelopes around envelopes, and what an event itself holds.
    const DEPTH_MAX: usize = 3;
    fn look(at: &Value, path: Vec<String>, found: &mut Vec<(usize, Vec<String>, Value)>) {
        let likeness = MEMBERS.iter().filter(|name| at.get(**name).is_some()).count();
        // What stands around an event has none of its members, or only few.
        if found.iter().all(|(most, ..)| likeness > *most) {
            found.push((likeness, path.clone(), at.clone()));
        }
        let members = at.as_object().into_iter().flatten().filter(|(_, it)| it.is_object());
        for (name, member) in members.take_while(|_| path.len() < DEPTH_MAX) {
            look(member, [path.clone(), vec![name.clone()]].concat(), found);
        }
    }
    let body = exchange.answer()?.body.json()?;
    let mut found = Vec::new();
    look(&body, Vec::new(), &mut found);
    found.pop().map(|(_, path, event)| (path, event))
}

/// The id of the event that a key was to see alone, be it to read it or as part of a burst.
pub fn own_event_asked(exchange: &Exchange) -> Option<&str> {
    match &exchange.purpose {
        Purpose::Event { id, side: Side::Own, .. } => Some(id),
        Purpose::Burst(Burst::Shot { .. } | Burst::Beside { .. }) => {
            let (list, id) = exchange.target.rsplit_once('/')?;
            list.ends_with(List::Events.path()).then_some(id)
        }
        _ => None,
    }
}

/// The id of an event in the rows of a page.
pub fn first_event_id(rows: &[Value]) -> Option<String> {
    rows.iter().find_map(|row| row.get("id")?.as_str()).map(str::to_owned)
}

/// Returns the value of `meta.mode`.
pub fn mode_told(exchange: &Exchange) -> Option<String> {
    let body = exchange.answer()?.body.json()?;
    text_at(&body, &["meta", "mode"]).map(str::to_owned)
}

/// The events of a mode that some list has shown, by id; as shown last.
pub fn listed(recording: &Recording, mode: Mode) -> BTreeMap<String, Value> {
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

/// The events of a mode from before anything was delivered.
pub fn before_rows(recording: &Recording, mode: Mode) -> Vec<Value> {
    let asked = rows_of(recording, mode, &Purpose::BeforeDeliveries);
    asked.unwrap_or_else(|| events(recording, mode))
}

/// The events of a mode once deliveries had come, newest first; `None` if they could not be read.
pub fn after_rows(recording: &Recording, mode: Mode) -> Option<Vec<Value>> {
    rows_of(recording, mode, &Purpose::AfterDeliveries)
}

fn rows_of(recording: &Recording, mode: Mode, purpose: &Purpose) -> Option<Vec<Value>> {
    let exchange = recording.last(|it| it.caller == Caller::Own(mode) && it.purpose == *purpose)?;
    Page::of(exchange)?.rows().cloned()
}
