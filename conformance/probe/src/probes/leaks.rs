//! One event of each type, requested with the key of the other mode, because isolation may fail for a single type.
//! Then filters by objects of the other mode in the remaining direction.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::budget::Cost;
use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::mode::Mode;
use conformance_model::reading::{recent_events, text_at};
use conformance_model::recording::{List, Purpose, Recording, SIMILAR_ID_ROUND, Side};

use crate::probes::filter_values::with_other_end;
use crate::probes::isolation::{
    events_with_most_data, old_event, request_event, test_other_spellings, test_remaining_directions,
};
use crate::probes::positions::sized_request;
use crate::session::Session;

const EVENT_TYPES_MAX: u32 = EVENT_TYPES.len() as u32;
/// Pages with an invalid size. Zero stands for "no limit" in some services.
const INVALID_PAGE_SIZES: [(List, u64); 4] =
    [(List::Events, 101), (List::Charges, 101), (List::Invoices, 101), (List::Events, 0)];
/// The events of each mode with the other key and once with their own, the pages with an invalid size, three filters with
/// two values each, an old event, an id in capital letters and three ids that resemble an existing one.
const REQUESTS_MAX: u32 = 3 * EVENT_TYPES_MAX + INVALID_PAGE_SIZES.len() as u32 + 6 + 5;
pub(crate) const COST: Cost = Cost { live: REQUESTS_MAX, test: REQUESTS_MAX, other: 0, total: REQUESTS_MAX };
/// The round number, different from those of comparisons.
pub(crate) const ROUND: u8 = 9;

/// Requests events of as many types as the budget allows.
pub(crate) async fn probe(session: &mut Session<'_>) {
    request_resembling_ids(session).await;
    // The specification leaves the response to an invalid page size open, so these requests are optional.
    for (list, size) in INVALID_PAGE_SIZES {
        if session.has_room() {
            session.read_page(Mode::Test, sized_request(list, None, size)).await;
        }
    }
    test_remaining_directions(session).await;
    test_other_spellings(session).await;
    // Isolation may fail for old events.
    if let Some(id) = old_event(session, Mode::Test)
        && session.has_room()
    {
        request_event(session, Mode::Live, &id, Side::Foreign, ROUND).await;
    }
    let types: Vec<_> = untested_types(&session.recording).into_iter().enumerate().collect();
    // The first round alternates between the modes; the second requests the remaining events.
    for round in 0..2 {
        for (index, (_, ids)) in &types {
            let preferred = Mode::BOTH[(index + round) % 2];
            let found =
                [preferred, preferred.other()].into_iter().find_map(|mode| Some((mode, ids.get(&mode)?)));
            let Some((mode, id)) = found.filter(|(mode, _)| round == 0 || *mode == preferred) else {
                continue;
            };
            if session.has_room() {
                request_event(session, mode.other(), id, Side::Foreign, ROUND).await;
            }
        }
    }
    // The burst has read one event of each type in test mode.
    for id in types.iter().filter_map(|(_, (_, ids))| ids.get(&Mode::Live)) {
        if session.has_room() {
            request_event(session, Mode::Live, id, Side::Own, ROUND).await;
        }
    }
}

/// Requests the id of an event with another last character, with one more and with one less.
async fn request_resembling_ids(session: &mut Session<'_>) {
    let Some(id) = events_with_most_data(session, Mode::Test).into_iter().find(|id| id.is_ascii()) else {
        return;
    };
    let shortened = id[..id.len().saturating_sub(1)].to_owned();
    for id in with_other_end(&id).into_iter().chain([format!("{id}0"), shortened]) {
        if session.has_room() && !id.is_empty() {
            request_event(session, Mode::Test, &id, Side::AbsentAfter, SIMILAR_ID_ROUND).await;
        }
    }
}

/// Returns the newest event of each type in each mode, for the types of which no recent event was requested with the
/// other key.
fn untested_types(recording: &Recording) -> BTreeMap<String, BTreeMap<Mode, String>> {
    let mut found: BTreeMap<String, BTreeMap<Mode, String>> = BTreeMap::new();
    let mut tested = Vec::new();
    for mode in Mode::BOTH {
        for event in recent_events(recording, mode) {
            let (Some(kind), Some(id)) = (text_at(event, &["type"]), text_at(event, &["id"])) else {
                continue;
            };
            if was_requested_as_foreign(recording, event) {
                tested.push(kind.to_owned());
            }
            found.entry(kind.to_owned()).or_default().entry(mode).or_insert_with(|| id.to_owned());
        }
    }
    found.retain(|kind, _| !tested.contains(kind));
    found
}

/// Returns `true` if an event was requested with the key of the other mode.
fn was_requested_as_foreign(recording: &Recording, event: &Value) -> bool {
    recording.exchanges.iter().any(|exchange| match &exchange.purpose {
        Purpose::Event { id, side: Side::Foreign, .. } => event["id"] == **id,
        _ => false,
    })
}
