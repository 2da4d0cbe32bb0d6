//! [`EndpointEvents`]: the events that were created while the receiver ran, with their deliveries at an endpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::deliveries::DeclaredEndpoint;
use conformance_model::mode::Mode;
use conformance_model::reading::{events_after_deliveries, events_before_deliveries, text_at};
use conformance_model::recording::Recording;

use crate::evidence::recorded_at;
use crate::parsed_deliveries::ReceivedDeliveries;

/// The maximum time by which the deliveries of a type lag behind others. Beyond it, the type counts as not delivered.
pub(super) const DELIVERY_LAG_MAX: Duration = Duration::from_secs(30);
/// The maximum time between two deliveries of a service that has more to send.
const QUEUE_PAUSE_MAX: Duration = Duration::from_secs(10);
/// The minimum number of lost deliveries at an endpoint that accepted all others, for a violation.
pub(super) const LOST_MIN: usize = 3;
/// The maximum time by which a single delivery lags.
const SINGLE_DELIVERY_LAG_MAX: Duration = Duration::from_secs(600);

/// Returns the events of a mode that were created while the receiver ran, newest first; `None` if unknown.
pub(super) fn new_events(recording: &Recording, mode: Mode) -> Option<Vec<&Value>> {
    recording.deliveries.as_ref()?.receiver.as_ref()?;
    let before = events_before_deliveries(recording, mode);
    let before: BTreeSet<_> = before.into_iter().filter_map(|row| text_at(row, &["id"])).collect();
    let mut rows = events_after_deliveries(recording, mode)?;
    rows.retain(|row| text_at(row, &["id"]).is_some_and(|id| !before.contains(id)));
    Some(rows)
}

/// Returns the type of a listed event.
pub(super) fn event_type(row: &Value) -> &str {
    text_at(row, &["type"]).unwrap_or_default()
}

/// Returns the types and the mode of an endpoint, if both are known.
pub(super) fn subscription(endpoint: &DeclaredEndpoint) -> Option<(&BTreeSet<String>, Mode)> {
    Some((endpoint.events.as_ref()?, endpoint.mode?))
}

/// The new events for one endpoint, newest first, each with the time of its first delivery there.
pub(super) struct EndpointEvents<'a> {
    pub(super) events: Vec<(&'a Value, Option<Duration>)>,
    /// The arrival of the last delivery that was not accepted there. After a failure, the sender may delay further ones.
    pub(super) last_failure: Option<Duration>,
    /// The arrival of the last delivery there.
    pub(super) last_arrival: Option<Duration>,
    /// `true` if the endpoint subscribes to all types.
    subscribes_to_all: bool,
    /// `true` if the endpoint received nothing.
    pub(super) is_silent: bool,
    pub(super) run_duration: Duration,
    /// The ids of events that are newer than all delivered ones; the suite did not cause them.
    pending: BTreeSet<&'a str>,
}

/// An event that was not delivered to an endpoint.
pub(super) struct MissingEvent<'a> {
    pub(super) event: &'a Value,
    /// The time since a newer event was delivered, if any was.
    pub(super) overtaken_for: Option<Duration>,
}

impl<'a> EndpointEvents<'a> {
    pub(super) fn for_endpoint(
        recording: &'a Recording,
        received: &ReceivedDeliveries<'_>,
        index: usize,
    ) -> Option<EndpointEvents<'a>> {
        let (events, mode) = subscription(&received.deliveries.endpoints[index])?;
        let subscribes_to_all = EVENT_TYPES.iter().all(|event_type| events.contains(*event_type));
        let rows = new_events(recording, mode)?;
        let at_endpoint = || received.parsed.iter().filter(|parsed| parsed.delivery.endpoint == Some(index));
        let mut arrivals: BTreeMap<&str, Duration> = BTreeMap::new();
        for parsed in at_endpoint() {
            if let Some(id) = parsed.text(&["event_id"]) {
                arrivals.entry(id).or_insert(parsed.delivery.arrived);
            }
        }
        let id = |row: &'a Value| text_at(row, &["id"]).unwrap_or_default();
        let arrived_ids: BTreeSet<_> =
            received.parsed.iter().filter_map(|parsed| parsed.text(&["event_id"])).collect();
        let newest = rows.iter().position(|row| arrived_ids.contains(id(row)));
        let pending = rows[..newest.unwrap_or(0)].iter().map(|row| id(row)).collect();
        let wanted = rows.into_iter().filter(|row| events.contains(event_type(row)));
        let events = wanted.map(|row| (row, arrivals.get(id(row)).copied())).collect();
        let last_failure = at_endpoint()
            .filter(|parsed| !parsed.delivery.was_accepted())
            .map(|parsed| parsed.delivery.arrived)
            .max();
        let is_silent = at_endpoint().next().is_none();
        Some(EndpointEvents {
            events,
            last_failure,
            last_arrival: at_endpoint().map(|parsed| parsed.delivery.arrived).max(),
            subscribes_to_all,
            is_silent,
            run_duration: received.deliveries.duration,
            pending,
        })
    }

    pub(super) fn is_pending(&self, id: &str) -> bool {
        self.pending.contains(id)
    }

    /// Returns `true` if several events were overtaken for half a minute at an endpoint that accepted all deliveries, so
    /// that none waits for a retry.
    pub(super) fn loses_deliveries(&self) -> bool {
        let overtaken =
            self.missing_events().filter(|missing| missing.is_overtaken_for(DELIVERY_LAG_MAX)).count();
        self.last_failure.is_none() && overtaken >= LOST_MIN
    }

    /// Returns the time at which the newest event that was delivered here was recorded.
    pub(super) fn newest_delivered(&self) -> Option<OffsetDateTime> {
        self.events
            .iter()
            .filter(|(_, arrival)| arrival.is_some())
            .filter_map(|(row, _)| recorded_at(row))
            .max()
    }

    /// Returns `true` if deliveries arrived until the end of the run. Events that none overtook may be queued.
    pub(super) fn is_still_delivering(&self) -> bool {
        let last = self.events.iter().filter_map(|(_, arrival)| *arrival).max();
        last.is_some_and(|last| last + QUEUE_PAUSE_MAX >= self.run_duration)
    }

    pub(super) fn delivered_count(&self) -> usize {
        self.events.iter().filter(|(_, arrival)| arrival.is_some()).count()
    }

    /// Returns the undelivered events that are newer than the oldest event delivered after the last
    /// failure. The endpoint may not have existed before that.
    pub(super) fn missing_events(&self) -> impl Iterator<Item = MissingEvent<'_>> {
        let is_after_failure = |arrival: &Option<Duration>| arrival.is_some() && *arrival > self.last_failure;
        let oldest = self.events.iter().rposition(|(_, arrival)| is_after_failure(arrival)).unwrap_or(0);
        let candidates = self.events.iter().enumerate().take(oldest);
        candidates.filter(|(_, (_, arrival))| arrival.is_none()).map(|(index, (event, _))| {
            let newer = self.events[..index].iter().filter_map(|(_, arrival)| *arrival);
            MissingEvent {
                event,
                overtaken_for: newer.min().map(|arrival| self.run_duration.saturating_sub(arrival)),
            }
        })
    }

    /// Returns `true` if a missing event counts as not delivered: it is very late, or no event of its type was
    /// delivered here. A single delivery may have been lost and be retried later.
    pub(super) fn counts_as_undelivered(&self, missing: &MissingEvent<'_>) -> bool {
        let is_same_type = |other: &MissingEvent<'_>| {
            event_type(other.event) == event_type(missing.event) && other.is_overtaken_for(DELIVERY_LAG_MAX)
        };
        let was_delivered = self
            .events
            .iter()
            .any(|(row, arrival)| arrival.is_some() && event_type(row) == event_type(missing.event));
        missing.is_overtaken_for(SINGLE_DELIVERY_LAG_MAX)
            || (!was_delivered && self.missing_events().filter(is_same_type).count() > 1)
    }

    /// Returns the delivered types if the endpoint subscribes to all types, but at least as many were never delivered.
    /// Without `--subscribed`, an endpoint counts as subscribed to all types, but may be registered for these only.
    pub(super) fn types_if_few(&self) -> Option<BTreeSet<&str>> {
        let delivered =
            self.events.iter().filter(|(_, arrival)| arrival.is_some()).map(|(row, _)| event_type(row));
        let delivered: BTreeSet<_> = delivered.collect();
        let missing: BTreeSet<_> = self.missing_events().map(|missing| event_type(missing.event)).collect();
        let never = missing.difference(&delivered).count();
        (self.subscribes_to_all && never > 1 && never >= delivered.len()).then_some(delivered)
    }
}

impl MissingEvent<'_> {
    pub(super) fn is_overtaken_for(&self, span: Duration) -> bool {
        self.overtaken_for.is_some_and(|overtaken| overtaken >= span)
    }
}
