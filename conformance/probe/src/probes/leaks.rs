//! One event of every type, asked for with the key of the other mode: isolation may fail for one type. Then
//! the filters by objects of the other mode, in the direction that was left out.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::budget::Cost;
use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::reading::{events, text_at};
use conformance_model::recording::{List, Purpose, Recording, Side};
use conformance_model::words::Mode;

use crate::probes::isolation::{ask_event, in_other_ways, oldest_event, other_ways};
use crate::probes::positions::sized;
use crate::session::Session;

const ASKED_MAX: u32 = EVENT_TYPES.len() as u32;
/// Each mode's events with the other's key and once alone, a page of a size out of range, three filters, each with two values, an old event and an id in capitals.
const MOST: u32 = 3 * ASKED_MAX + 1 + 6 + 2;
const OUT_OF_RANGE: u64 = 101;
pub(crate) const COST: Cost = Cost { live: MOST, test: MOST, other: 0, total: MOST };
/// Beside the rounds that have absent twins.
pub(crate) const ROUND: u8 = 9;

/// Asks for as many types as the budget has left.
pub(crate) async fn probe(session: &mut Session<'_>) {
    // What comes of it is left open, so a quick run has no room for it.
    if session.has_room() {
        session.page(Mode::Test, sized(List::Events, None, OUT_OF_RANGE)).await;
    }
    other_ways(session).await;
    in_other_ways(session).await;
    // Isolation may fail for what is old.
    if let Some(id) = oldest_event(session, Mode::Test)
        && session.has_room()
    {
        ask_event(session, Mode::Live, &id, Side::Foreign, ROUND).await;
    }
    let wanted: Vec<_> = types(&session.recording).into_iter().enumerate().collect();
    // In turns, so that both modes are tried; then what is left of either.
    for round in 0..2 {
        for (place, (_, of)) in &wanted {
            let turn = Mode::BOTH[(place + round) % 2];
            let found = [turn, turn.other()].into_iter().find_map(|mode| Some((mode, of.get(&mode)?)));
            let Some((mode, id)) = found.filter(|(mode, _)| round == 0 || *mode == turn) else { continue };
            if session.has_room() {
                ask_event(session, mode.other(), id, Side::Foreign, ROUND).await;
            }
        }
    }
    // The burst has read one of each type alone in test mode.
    for of in wanted.iter().filter_map(|(_, (_, of))| of.get(&Mode::Live)) {
        if session.has_room() {
            ask_event(session, Mode::Live, of, Side::Own, ROUND).await;
        }
    }
}

/// For each type the first event of each mode, without those that were asked for from the other side.
fn types(recording: &Recording) -> BTreeMap<String, BTreeMap<Mode, String>> {
    let mut found: BTreeMap<String, BTreeMap<Mode, String>> = BTreeMap::new();
    let mut tried = Vec::new();
    for mode in Mode::BOTH {
        for event in events(recording, mode) {
            let (Some(kind), Some(id)) = (text_at(&event, &["type"]), text_at(&event, &["id"])) else {
                continue;
            };
            if was_asked(recording, &event) {
                tried.push(kind.to_owned());
            }
            found.entry(kind.to_owned()).or_default().entry(mode).or_insert_with(|| id.to_owned());
        }
    }
    found.retain(|kind, _| !tried.contains(kind));
    found
}

fn was_asked(recording: &Recording, event: &Value) -> bool {
    recording.exchanges.iter().any(|it| match &it.purpose {
        Purpose::Event { id, side: Side::Foreign, .. } => event["id"] == **id,
        _ => false,
    })
}
