//! The copies of all charges and invoices in lists, single reads, events and deliveries, with the time at which each was read.
//!
//! The times are those of the run's clock, so that copies can be ordered even if the clocks of the service differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::{Duration, OffsetDateTime};

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::mode::Mode;
use conformance_model::reading::{parse_utc, requested_own_event, single_event, text_at};
use conformance_model::recording::{Caller, Exchange, List, ObjectKind, Purpose, Recording, Side};

use crate::cached_responses::cached_exchanges;
use crate::diff::LISTED_KINDS;
use crate::evidence::{PageView, first_long_page_reads, joined_rows, readable_pages, recorded_at};
use crate::parsed_deliveries::{ReceivedDeliveries, received_deliveries};

/// The time from the first copy that shows a change to the first read that must show it.
pub(crate) const UPDATE_DELAY_MAX: Duration = Duration::seconds(65);

/// The source of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CopySource {
    /// An item of a list.
    List,
    /// The response for a single object.
    Single,
    /// A charge in an invoice that is listed or read alone.
    InInvoice,
    /// An event of the API.
    Event,
    /// A delivery.
    Delivery,
}

/// A charge or an invoice as read once.
#[derive(Clone, Copy)]
pub(crate) struct ObjectCopy<'a> {
    pub(crate) mode: Mode,
    /// `charge` or `invoice`.
    pub(crate) member: &'static str,
    pub(crate) code: &'a str,
    pub(crate) object: &'a Value,
    pub(crate) source: CopySource,
    /// The event, if the source is an event or a delivery.
    pub(crate) event: Option<CopiedEvent<'a>>,
    /// The time of the request; for a delivery, of its arrival.
    pub(crate) sent: Duration,
    /// The time of the response; for a delivery, of its arrival.
    pub(crate) seen: Duration,
    /// The number of the exchange; `None` for a delivery.
    pub(crate) number: Option<u32>,
}

/// The event that contains a copy.
#[derive(Clone, Copy)]
pub(crate) struct CopiedEvent<'a> {
    pub(crate) id: &'a str,
    pub(crate) kind: &'a str,
    /// The time of the event; for a delivery, that of its body.
    pub(crate) recorded_at: OffsetDateTime,
    /// The time of the last list of events that has the event and all later ones. For a delivery, the time of the last read of
    /// the first page, if the endpoint receives all types of charges.
    later_events_read_at: Option<Duration>,
}

/// The mode, the member and the code of an object.
pub(crate) type ObjectKey<'a> = (Mode, &'static str, &'a str);

impl<'a> ObjectCopy<'a> {
    pub(crate) fn key(&self) -> ObjectKey<'a> {
        (self.mode, self.member, self.code)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        text_at(self.object, &[name])
    }

    /// Returns `true` if the copy is an event of a list that was read from its first page without a gap.
    pub(crate) fn is_in_complete_list(&self) -> bool {
        self.source == CopySource::Event
            && self.event.is_some_and(|event| event.later_events_read_at.is_some())
    }

    /// Returns the type of the event; an empty text if the source is no event.
    pub(crate) fn kind(&self) -> &'a str {
        self.event.map_or("", |event| event.kind)
    }
}

/// The parsed responses and deliveries of a recording that contain copies.
pub(crate) struct CopySources<'a> {
    pub(crate) views: Vec<PageView<'a>>,
    /// Single objects with their modes and members.
    objects: Vec<(&'a Exchange, Mode, &'static str, &'a Value)>,
    events: Vec<(&'a Exchange, Mode, &'a Value)>,
    received: Option<ReceivedDeliveries<'a>>,
    /// The time of the run's clock at the start of the receiver, if it is known.
    receiver_start: Option<Duration>,
}

impl<'a> CopySources<'a> {
    /// Parses the responses and deliveries. Responses of a cache are left out.
    pub(crate) fn from_recording(recording: &'a Recording) -> CopySources<'a> {
        let cached = cached_exchanges(recording);
        let cached: BTreeSet<_> = cached.iter().map(|(exchange, _)| exchange.number).collect();
        let is_fresh = |exchange: &&Exchange| !cached.contains(&exchange.number);
        let views = readable_pages(recording).into_iter().filter(|view| is_fresh(&view.exchange)).collect();
        let mut objects = Vec::new();
        let mut events = Vec::new();
        for exchange in recording.exchanges.iter().filter(is_fresh) {
            let Caller::Own(mode) = exchange.caller else { continue };
            let Some(response) = exchange.response().filter(|response| response.status == 200) else {
                continue;
            };
            match &exchange.purpose {
                Purpose::Object { kind: kind @ (ObjectKind::Charge | ObjectKind::Invoice), side, .. } => {
                    if let Some(body) = response.body.json().filter(|_| *side == Side::Own) {
                        objects.push((exchange, mode, kind.json_name(), body));
                    }
                }
                purpose => {
                    let is_delivered = matches!(purpose, Purpose::DeliveredEvent { side: Side::Own, .. });
                    if is_delivered || requested_own_event(exchange).is_some() {
                        events.extend(single_event(exchange).map(|event| (exchange, mode, event)));
                    }
                }
            }
        }
        let received = received_deliveries(recording).ok();
        let listed_at = received.as_ref().and_then(|received| received.deliveries.listed_at);
        let is_after = |exchange: &&Exchange| {
            matches!(exchange.purpose, Purpose::AfterDeliveries | Purpose::ListAfterDeliveries(_))
        };
        let first_after = recording.exchanges.iter().find(is_after);
        let receiver_start =
            listed_at.zip(first_after).map(|(listed_at, first)| run_time(first.sent) - run_time(listed_at));
        CopySources { views, objects, events, received, receiver_start }
    }

    /// Returns all copies, those with exchanges first.
    pub(crate) fn copies(&self) -> Vec<ObjectCopy<'_>> {
        let mut copies = Vec::new();
        let lists = self.event_lists();
        for view in &self.views {
            let timing = Timing::of(view.exchange);
            match LISTED_KINDS.into_iter().find(|(list, _)| *list == view.request.list) {
                Some((_, member)) => {
                    for row in view.rows() {
                        push_object(&mut copies, view.mode, (member, row), CopySource::List, timing);
                    }
                }
                None => {
                    for row in view.rows() {
                        push_event(&mut copies, view.mode, (row, &lists), timing);
                    }
                }
            }
        }
        for (exchange, mode, member, body) in &self.objects {
            let Purpose::Object { id, .. } = &exchange.purpose else { continue };
            if let Some(object) = find_object(body, id) {
                let timing = Timing::of(exchange);
                push_object(&mut copies, *mode, (member, object), CopySource::Single, timing);
            }
        }
        for (exchange, mode, event) in &self.events {
            push_event(&mut copies, *mode, (event, &lists), Timing::of(exchange));
        }
        self.push_deliveries(&mut copies, &lists);
        copies
    }

    /// Returns the reads of the lists of events from their first page.
    fn event_lists(&self) -> EventLists<'_> {
        let mut lists = EventLists::default();
        for mode in Mode::BOTH {
            for first in first_long_page_reads(&self.views, List::Events, mode) {
                let read_at = run_time(first.exchange.sent);
                let last = lists.first_page_read_at.entry(mode).or_insert(read_at);
                *last = (*last).max(read_at);
                let rows = joined_rows(&self.views, first);
                for id in rows.iter().filter_map(|joined| text_at(joined.row, &["id"])) {
                    let last = lists.read_at_by_id.entry((mode, id)).or_insert(read_at);
                    *last = (*last).max(read_at);
                }
            }
        }
        lists
    }

    /// Adds the deliveries of events, if the start of the receiver is known.
    fn push_deliveries<'s>(&'s self, copies: &mut Vec<ObjectCopy<'s>>, lists: &EventLists<'_>) {
        let Some((received, start)) = self.received.as_ref().zip(self.receiver_start) else { return };
        let complete_endpoints = endpoints_with_all_types(received);
        for parsed in received.readable_deliveries().filter(|parsed| !parsed.is_test()) {
            let arrived = start.saturating_add(run_time(parsed.delivery.arrived));
            let created_at = parsed.text(&["created_at"]).and_then(parse_utc);
            let (Some(mode), Some(id), Some(kind), Some(recorded_at)) =
                (parsed.mode(), parsed.text(&["event_id"]), parsed.event_type(), created_at)
            else {
                continue;
            };
            let data = parsed.body.map_or(&Value::Null, |body| &body["data"]);
            let is_complete =
                parsed.delivery.endpoint.is_some_and(|endpoint| complete_endpoints.contains(&endpoint));
            let last_read_at = lists.first_page_read_at.get(&mode).copied();
            let later_events_read_at = last_read_at.filter(|_| is_complete);
            let event = CopiedEvent { id, kind, recorded_at, later_events_read_at };
            for (_, member) in LISTED_KINDS.into_iter().filter(|(_, member)| is_event_of(kind, member)) {
                if let Some(code) = text_at(data, &[member, "code"]) {
                    copies.push(ObjectCopy {
                        mode,
                        member,
                        code,
                        object: &data[member],
                        source: CopySource::Delivery,
                        event: Some(event),
                        sent: arrived,
                        seen: arrived,
                        number: None,
                    });
                }
            }
        }
    }
}

/// The reads of the first pages of the lists of events, with the pages that continue them without a gap.
#[derive(Default)]
struct EventLists<'a> {
    /// The time of the last read of the first page.
    first_page_read_at: BTreeMap<Mode, Duration>,
    /// The time of the last list that has an event.
    read_at_by_id: BTreeMap<(Mode, &'a str), Duration>,
}

/// Returns the endpoints that subscribe to all types of charges, or receive all of them.
fn endpoints_with_all_types(received: &ReceivedDeliveries<'_>) -> BTreeSet<usize> {
    let mut types: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for (number, endpoint) in received.deliveries.endpoints.iter().enumerate() {
        types.entry(number).or_default().extend(endpoint.events.iter().flatten().map(String::as_str));
    }
    for parsed in received.readable_deliveries().filter(|parsed| !parsed.is_test()) {
        if let Some((endpoint, kind)) = parsed.delivery.endpoint.zip(parsed.event_type()) {
            types.entry(endpoint).or_default().insert(kind);
        }
    }
    let charge_types = EVENT_TYPES.into_iter().filter(|kind| is_event_of(kind, "charge"));
    types.retain(|_, types| charge_types.clone().all(|kind| types.contains(kind)));
    types.into_keys().collect()
}

/// Returns a time of the run as a signed duration.
pub(crate) fn run_time(time: std::time::Duration) -> Duration {
    Duration::try_from(time).unwrap_or(Duration::MAX)
}

/// Returns `true` if an event type belongs to a kind of object.
fn is_event_of(kind: &str, member: &str) -> bool {
    kind.split('.').next() == Some(member)
}

/// The times of an exchange, and its number.
#[derive(Clone, Copy)]
struct Timing {
    sent: Duration,
    seen: Duration,
    number: u32,
}

impl Timing {
    fn of(exchange: &Exchange) -> Timing {
        Timing { sent: run_time(exchange.sent), seen: run_time(exchange.ended), number: exchange.number }
    }
}

/// Adds an object without an event, and the charges in an invoice.
fn push_object<'s>(
    copies: &mut Vec<ObjectCopy<'s>>,
    mode: Mode,
    (member, object): (&'static str, &'s Value),
    source: CopySource,
    timing: Timing,
) {
    let Timing { sent, seen, number } = timing;
    let mut push = |member, object: &'s Value, source| {
        if let Some(code) = text_at(object, &["code"]) {
            let number = Some(number);
            copies.push(ObjectCopy { mode, member, code, object, source, event: None, sent, seen, number });
        }
    };
    push(member, object, source);
    let charges = object.get("charges").filter(|_| member == "invoice").and_then(Value::as_array);
    charges.into_iter().flatten().for_each(|charge| push("charge", charge, CopySource::InInvoice));
}

/// Adds the object of an event that has an id, a type and a time.
fn push_event<'s>(
    copies: &mut Vec<ObjectCopy<'s>>,
    mode: Mode,
    (row, lists): (&'s Value, &EventLists<'_>),
    timing: Timing,
) {
    let [id, kind] = ["id", "type"].map(|name| text_at(row, &[name]));
    let (Some(id), Some(kind), Some(recorded_at)) = (id, kind, recorded_at(row)) else { return };
    let Timing { sent, seen, number } = timing;
    let later_events_read_at = lists.read_at_by_id.get(&(mode, id)).copied();
    for (_, member) in LISTED_KINDS.into_iter().filter(|(_, member)| is_event_of(kind, member)) {
        if let Some(code) = text_at(row, &[member, "code"]) {
            copies.push(ObjectCopy {
                mode,
                member,
                code,
                object: &row[member],
                source: CopySource::Event,
                event: Some(CopiedEvent { id, kind, recorded_at, later_events_read_at }),
                sent,
                seen,
                number: Some(number),
            });
        }
    }
}

/// Returns the outermost object of a body with this code.
pub(crate) fn find_object<'a>(body: &'a Value, code: &str) -> Option<&'a Value> {
    if text_at(body, &["code"]) == Some(code) {
        return Some(body);
    }
    body.as_object()?.values().find_map(|member| find_object(member, code))
}

/// Returns the outermost object of a body that has a code and most of these fields: the envelope of a single object is not
/// specified.
pub(crate) fn find_by_fields<'a>(body: &'a Value, fields: &[&str]) -> Option<&'a Value> {
    let count = fields.iter().filter(|name| body.get(**name).is_some()).count();
    if count * 2 > fields.len() && text_at(body, &["code"]).is_some() {
        return Some(body);
    }
    body.as_object()?.values().find_map(|member| find_by_fields(member, fields))
}

/// An event of an object, as known from all of its copies.
#[derive(Clone, Copy)]
pub(crate) struct KnownEvent<'a> {
    pub(crate) kind: &'a str,
    pub(crate) recorded_at: OffsetDateTime,
    /// The time at which the event was seen first.
    pub(crate) seen: Duration,
    /// The time of the last list of events that has the event and all later ones.
    later_events_read_at: Option<Duration>,
    /// The copy in the API, or else in the first delivery.
    pub(crate) copy: ObjectCopy<'a>,
}

impl KnownEvent<'_> {
    /// Returns `true` if all later events of the object were read, long enough after a copy.
    pub(crate) fn has_all_later_events(&self, copy: &ObjectCopy<'_>) -> bool {
        self.later_events_read_at.is_some_and(|read_at| read_at - copy.seen >= UPDATE_DELAY_MAX)
    }
}

/// Returns the known events of each object, oldest first. Events that were never read are missing.
pub(crate) fn known_events<'a>(copies: &[ObjectCopy<'a>]) -> BTreeMap<ObjectKey<'a>, Vec<KnownEvent<'a>>> {
    let mut by_id: BTreeMap<ObjectKey<'a>, BTreeMap<&str, KnownEvent<'a>>> = BTreeMap::new();
    for copy in copies {
        let Some(CopiedEvent { id, kind, recorded_at, later_events_read_at }) = copy.event else { continue };
        let new = KnownEvent { kind, recorded_at, seen: copy.seen, later_events_read_at, copy: *copy };
        let known = by_id.entry(copy.key()).or_default().entry(id).or_insert(new);
        known.seen = known.seen.min(copy.seen);
        known.later_events_read_at = known.later_events_read_at.max(later_events_read_at);
    }
    let sorted = |events: BTreeMap<&str, KnownEvent<'a>>| {
        let mut events: Vec<_> = events.into_values().collect();
        events.sort_by_key(|event| (event.recorded_at, !event.kind.ends_with(".created")));
        events
    };
    by_id.into_iter().map(|(key, events)| (key, sorted(events))).collect()
}
