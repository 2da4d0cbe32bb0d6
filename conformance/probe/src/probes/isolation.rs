//! Requests for objects of the other mode between requests for objects that do not exist.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::budget::Cost;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{
    ObservedIds, Page, first_event_id, is_infrastructure, observed_ids, page_request, recent_events,
    stated_mode, text_at,
};
use conformance_model::recording::{
    Caller, Exchange, List, ObjectKind, Purpose, ReceivedResponse, Side, UPPERCASE_ID_ROUND,
};

use crate::probes::objects::{request_object_of_other_account, round_order};
use crate::probes::positions::{LONG_PAGE_SIZE, sized_request};
use crate::request_paths::{event_path, page_path, percent_encode};
use crate::session::Session;

/// The requests of three rounds per mode. The second and the third may need one more.
const ROUNDS: u32 = Mode::BOTH.len() as u32 * (3 + 2 * ROUND_MAX);
/// The requests for own events, and filters by objects of each mode.
const OWN_AND_FILTERS: u32 = 14;
pub(crate) const COST: Cost = Cost { live: 20, test: 20, other: 0, total: OWN_AND_FILTERS + ROUNDS };
/// The requests without the third rounds.
pub(crate) const REQUESTS_MIN: u32 = OWN_AND_FILTERS + Mode::BOTH.len() as u32 * (3 + ROUND_MAX);
/// The comparisons among these: two rounds per mode, and a pair per filter.
const COMPARED: u32 = Mode::BOTH.len() as u32 * (3 + ROUND_MAX) + 4 * 2;
pub(crate) const OTHER_ACCOUNT_COST: Cost = Cost { live: 4, test: 4, other: 4, total: 8 };

/// Requests own events, then events and filters of the other mode.
pub(crate) async fn probe(session: &mut Session<'_>) {
    for mode in Mode::BOTH {
        let mut own_events = events_with_most_data(session, mode);
        // A refusal counts only if an own event is served, so one is always read. Those that a burst has read need
        // not be read again.
        let is_read = |id: &String| {
            session
                .recording
                .find_last(|exchange| {
                    exchange.caller == Caller::Own(mode) && exchange.target.ends_with(id.as_str())
                })
                .is_some()
        };
        let mut position = 0;
        own_events.retain(|id| {
            position += 1;
            position == 1 || !is_read(id)
        });
        own_events.extend(old_event(session, mode).filter(|id| !own_events.contains(id)));
        for (index, id) in own_events.iter().enumerate() {
            if index == 0 || session.has_room_for(1 + COMPARED) {
                request_event(session, mode, id, Side::Own, 1).await;
            }
        }
    }
    let mut compared = Vec::new();
    for mode in Mode::BOTH {
        let foreign = observed_ids(&session.recording, mode.other());
        // An event that the key of its mode has just read: a cache that ignores the key would reveal it.
        let event = events_with_most_data(session, mode.other()).into_iter().next().or(foreign.event);
        if let Some(id) = event {
            let is_alike = Comparison { mode, foreign: &id }.send_round(session, 1).await;
            compared.push((mode, id, is_alike));
        }
        if let Some(code) = foreign.charge {
            request_filter_pair(session, mode, List::Events, "charge", &code, "").await;
        }
    }
    for (list, filter, select) in ONE_WAY {
        let found =
            Mode::BOTH.into_iter().find_map(|mode| Some((mode, foreign_value(session, mode, select)?)));
        if let Some((mode, code)) = found {
            request_filter_pair(session, mode, list, filter, &code, "").await;
        }
    }
    // A difference counts only if it occurs in every round. After two such rounds, a third is sent.
    for (mode, id, is_alike) in compared {
        let comparison = Comparison { mode, foreign: &id };
        if session.has_room_for(ROUND_MAX)
            && !comparison.send_round(session, 2).await
            && !is_alike
            && session.has_room_for(ROUND_MAX)
        {
            comparison.send_round(session, 3).await;
        }
    }
}

/// A function that selects the value of a filter.
type SelectValue = fn(ObservedIds) -> Option<String>;

/// The filters that are tested in one direction first, and in the other if requests are left.
const ONE_WAY: [(List, &str, SelectValue); 2] = [
    (List::Events, "invoice", |observed| observed.invoice),
    (List::Charges, "payment_link", |observed| observed.payment_link),
];

/// Returns a filter value of the other mode.
fn foreign_value(session: &Session<'_>, mode: Mode, select: SelectValue) -> Option<String> {
    select(observed_ids(&session.recording, mode.other()))
}

/// Tests the other directions of these filters, if requests are left.
pub(super) async fn test_remaining_directions(session: &mut Session<'_>) {
    for (list, filter, select) in ONE_WAY {
        let mut found = Mode::BOTH
            .into_iter()
            .filter_map(|mode| Some((mode, foreign_value(session, mode, select)?)))
            .skip(1);
        if let Some((mode, code)) = found.next() {
            request_filter_pair(session, mode, list, filter, &code, "").await;
        }
    }
}

/// Returns an event of a paid charge and one of a paid invoice, whose objects have the most data; otherwise any of
/// each.
pub(super) fn events_with_most_data(session: &Session<'_>, mode: Mode) -> Vec<String> {
    let events = recent_events(&session.recording, mode);
    let first_of_type = |prefix: &str| {
        let matching = events
            .iter()
            .filter(|event| text_at(event, &["type"]).is_some_and(|text| text.starts_with(prefix)));
        matching.filter_map(|event| text_at(event, &["id"])).map(str::to_owned).next()
    };
    let found: Vec<_> = ["charge", "invoice"]
        .iter()
        .filter_map(|object| {
            first_of_type(&format!("{object}.paid")).or_else(|| first_of_type(&format!("{object}.")))
        })
        .collect();
    // The events may have no readable types.
    if found.is_empty() { first_event_id(events).into_iter().collect() } else { found }
}

/// Returns an old event of the unfiltered pages: the oldest one whose object changed its status later, so that the
/// event alone must show the same status as the list, or the oldest of all. In live mode a charge comes first, in
/// test mode an invoice.
pub(super) fn old_event(session: &Session<'_>, mode: Mode) -> Option<String> {
    let own = session.recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(mode));
    let pages = own.filter(|exchange| {
        page_request(exchange)
            .is_some_and(|request| request.list == List::Events && request.filters.is_empty())
    });
    let rows = pages.filter_map(|exchange| Page::from_exchange(exchange)?.rows()).flatten();
    let mut rows: Vec<&Value> = rows.collect();
    rows.sort_by_key(|row| text_at(row, &["created_at"]).map(str::to_owned));
    let members = if mode == Mode::Live { ["charge", "invoice"] } else { ["invoice", "charge"] };
    let index_of_changed =
        |member| (0..rows.len()).find(|&index| has_changed(rows[index], &rows[index..], member));
    let row = members.into_iter().find_map(index_of_changed).map_or(rows.first(), |index| rows.get(index))?;
    text_at(row, &["id"]).map(str::to_owned)
}

/// Returns `true` if a newer event shows the charge or invoice of an event with another status.
fn has_changed(event: &Value, newer: &[&Value], member: &str) -> bool {
    let [code, status] = ["code", "status"].map(|field| text_at(event, &[member, field]));
    let is_same = |row: &&&Value| code.is_some() && text_at(row, &[member, "code"]) == code;
    newer.iter().filter(is_same).any(|row| text_at(row, &[member, "status"]) != status)
}

/// Requests an event of the other mode with its id in capital letters, which is the same id, and its charge by two
/// filters.
pub(super) async fn test_other_spellings(session: &mut Session<'_>) {
    let found = Mode::BOTH.into_iter().rev().find_map(|mode| {
        let event = recent_events(&session.recording, mode.other())
            .into_iter()
            .find(|event| text_at(event, &["charge", "code"]).is_some())?;
        let paths = [&["id"][..], &["type"], &["charge", "code"]];
        Some((mode, paths.map(|path| text_at(event, path).unwrap_or_default().to_owned())))
    });
    let Some((mode, [id, kind, code])) = found else { return };
    if session.has_room() && id != id.to_ascii_uppercase() {
        request_event(session, mode, &id.to_ascii_uppercase(), Side::Foreign, UPPERCASE_ID_ROUND).await;
    }
    request_filter_pair(
        session,
        mode,
        List::Events,
        "charge",
        &code,
        &format!("&type={}", percent_encode(&kind)),
    )
    .await;
}

/// The largest number of requests of one round.
const ROUND_MAX: u32 = 4;

/// A comparison of an event of the other mode with nonexistent ids.
struct Comparison<'a> {
    mode: Mode,
    foreign: &'a str,
}

impl Comparison<'_> {
    /// Sends the requests of one round, at an odd distance from the previous round, so that an effect on every second
    /// response affects another request. Returns `true` if all responses look alike.
    async fn send_round(&self, session: &mut Session<'_>, round: u8) -> bool {
        let mut sides = round_order(round);
        let previous = session.recording.find_last(|exchange| {
            exchange.caller == Caller::Own(self.mode)
                && matches!(&exchange.purpose, Purpose::Event { side: Side::Foreign, round: earlier, .. }
                    if *earlier + 1 == round)
        });
        let next = session.recording.exchanges.len() as u32 + 1;
        let foreign_index = sides.iter().position(|side| *side == Side::Foreign).unwrap_or_default() as u32;
        if previous.is_some_and(|previous| (next + foreign_index - previous.number).is_multiple_of(2)) {
            sides.insert(0, Side::AbsentBefore);
        }
        let mut exchanges = Vec::new();
        // Each request for a nonexistent id has an id of its own.
        for (variant, side) in (u64::from(round) * u64::from(ROUND_MAX)..).zip(sides) {
            let id = if side == Side::Foreign {
                self.foreign.to_owned()
            } else {
                session.unused_id_like(self.foreign, variant)
            };
            exchanges.push((request_event(session, self.mode, &id, side, round).await, id));
        }
        look_alike(&exchanges)
    }
}

/// Returns `true` if foreign responses differ from absent ones only in features that also differ within a kind, and
/// in header fields of gateways.
fn look_alike(exchanges: &[(Exchange, String)]) -> bool {
    let is_foreign =
        |exchange: &Exchange| matches!(&exchange.purpose, Purpose::Event { side: Side::Foreign, .. });
    let features = |foreign: bool,
                    feature_of: &dyn Fn(&ReceivedResponse, &str) -> Option<String>|
     -> BTreeSet<Option<String>> {
        let of_side = exchanges.iter().filter(|(exchange, _)| is_foreign(exchange) == foreign);
        of_side.filter_map(|(exchange, id)| Some(feature_of(exchange.response()?, id))).collect()
    };
    let is_alike = |feature_of: &dyn Fn(&ReceivedResponse, &str) -> Option<String>| {
        let [foreign, absent] = [true, false].map(|foreign| features(foreign, feature_of));
        foreign.len() != 1 || absent.len() != 1 || foreign == absent
    };
    let responses = || exchanges.iter().filter_map(|(exchange, _)| exchange.response());
    let names: BTreeSet<&String> =
        responses().flat_map(|response| response.headers.iter().map(|(name, _)| name)).collect();
    is_alike(&|response, _| Some(response.status.to_string()))
        && is_alike(&|response, id| Some(response.body.replace(id, "")))
        && names
            .into_iter()
            .filter(|name| !is_infrastructure(name))
            .all(|name| is_alike(&|response, id| response.header(name).map(|value| value.replace(id, ""))))
}

/// Requests one event with the key of a mode.
pub(crate) async fn request_event(
    session: &mut Session<'_>,
    mode: Mode,
    id: &str,
    side: Side,
    round: u8,
) -> Exchange {
    let purpose = Purpose::Event { id: id.to_owned(), side, round };
    session.send(Caller::Own(mode), purpose, &event_path(id)).await
}

/// Filters a list by a nonexistent value and by a foreign one. `more_query`: appended to the query.
async fn request_filter_pair(
    session: &mut Session<'_>,
    mode: Mode,
    list: List,
    filter: &str,
    foreign: &str,
    more_query: &str,
) {
    if !session.has_room_for(2) {
        return;
    }
    let absent = session.unused_id_like(foreign, 1);
    for (code, side) in [(absent.as_str(), Side::AbsentBefore), (foreign, Side::Foreign)] {
        let purpose = Purpose::Filter { list, filter: filter.to_owned(), side };
        let path = format!("{}?{filter}={}{more_query}", list.path(), percent_encode(code));
        session.send(Caller::Own(mode), purpose, &path).await;
    }
}

/// The filters by objects of the other account, each with the path of its value in an event.
const FILTERS_OF_OTHER_ACCOUNT: [(List, &str, [&str; 2]); 3] = [
    (List::Events, "charge", ["charge", "code"]),
    (List::Events, "invoice", ["invoice", "code"]),
    (List::Charges, "payment_link", ["charge", "payment_link"]),
];

/// Reads the lists of the other account, and requests an event, filters by a charge, an invoice and a payment link, a single
/// charge and a single invoice of it with the own key of the same mode.
pub(crate) async fn probe_other_account(session: &mut Session<'_>) {
    let account = session.send(Caller::OtherAccount, Purpose::Account, ACCOUNT_PATH).await;
    let stated = stated_mode(&account);
    let Some(mode) = Mode::BOTH.into_iter().find(|mode| stated.as_deref() == Some(mode.as_str())) else {
        return;
    };
    // The exchange of the last list, the events.
    let mut last_list = None;
    let mut oldest_objects = Vec::new();
    for list in [List::Charges, List::Invoices, List::Events] {
        let request = sized_request(list, None, LONG_PAGE_SIZE);
        let path = page_path(&request);
        let exchange = session.send(Caller::OtherAccount, Purpose::Page(request), &path).await;
        let exchange = last_list.insert(exchange);
        let rows = Page::from_exchange(exchange).and_then(Page::rows).unwrap_or_default();
        let listed_kind = ObjectKind::ALL.into_iter().find(|kind| kind.list() == Some(list));
        let Some(kind) = listed_kind else { continue };
        // An old object is unlikely to change before it is requested.
        let oldest = rows.last().and_then(|row| text_at(row, &["code"]));
        oldest_objects.extend(oldest.map(|code| (kind, code.to_owned())));
    }
    for (kind, code) in oldest_objects {
        request_object_of_other_account(session, mode, kind, &code).await;
    }
    let rows = last_list.as_ref().and_then(Page::from_exchange).and_then(Page::rows).unwrap_or_default();
    if let Some(id) = first_event_id(rows) {
        request_event(session, mode, &id, Side::OtherAccount, 1).await;
    }
    for (list, filter, value_path) in FILTERS_OF_OTHER_ACCOUNT {
        if let Some(value) = rows.iter().find_map(|row| text_at(row, &value_path)) {
            let path = format!("{}?{filter}={}", list.path(), percent_encode(value));
            let purpose = Purpose::Filter { list, filter: filter.to_owned(), side: Side::OtherAccount };
            session.send(Caller::Own(mode), purpose, &path).await;
        }
    }
}
