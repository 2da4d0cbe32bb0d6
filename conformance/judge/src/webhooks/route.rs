//! The routing of deliveries: to the correct endpoints, and never to the target of a redirect.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::deliveries::{DeclaredEndpoint, Deliveries};
use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::part::Part;
use conformance_model::reading::{after_rows, before_rows, text_at};
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::NEEDS;
use crate::check::Check;
use crate::delivered::{ParsedDelivery, ReceivedDeliveries, received_deliveries};
use crate::diff::recorded_at;

/// The probes that cause deliveries, and the lists, which show the new events.
pub(super) const WITH_LISTS: &[Group] = &[Group::Account, Group::Lists, Group::Webhooks];

pub(crate) const CHECKS: &[Check] = &[
    Check::new("webhooks.mode_endpoints", WITH_LISTS, judge_mode_endpoints),
    Check::new("webhooks.subscribed", WITH_LISTS, judge_subscribed).part(Part::Subset),
    Check::new("webhooks.pushed", WITH_LISTS, judge_pushed),
    Check::new("webhooks.redirects", NEEDS, judge_redirects).part(Part::Redirects),
    Check::new("webhooks.retries", NEEDS, observe_retries),
];

/// The time that deliveries of a type may lag behind others before the type counts as not delivered.
const LATENESS: Duration = Duration::from_secs(30);
/// The time between deliveries of a service that still has others to send.
const QUEUE_PAUSE_MAX: Duration = Duration::from_secs(10);
/// The fewest lost deliveries at an endpoint that accepted all others.
const LOST_MIN: usize = 3;
/// The time that a single delivery may lag.
const LATENESS_LONG: Duration = Duration::from_secs(600);

/// Returns the events of a mode that were created while the receiver ran, newest first; `None` if unknown.
pub(super) fn new_events(recording: &Recording, mode: Mode) -> Option<Vec<Value>> {
    recording.deliveries.as_ref()?.receiver.as_ref()?;
    let id = |row: &Value| text_at(row, &["id"]).map(str::to_owned);
    let before: BTreeSet<_> = before_rows(recording, mode).iter().filter_map(id).collect();
    let mut rows = after_rows(recording, mode)?;
    rows.retain(|row| id(row).is_some_and(|id| !before.contains(&id)));
    Some(rows)
}

fn kind(row: &Value) -> &str {
    text_at(row, &["type"]).unwrap_or_default()
}

/// Returns `true` if there was an event of the mode, which could have been misrouted.
fn had_events(recording: &Recording, received: &ReceivedDeliveries<'_>, mode: Mode) -> bool {
    received.readable_deliveries().any(|parsed| parsed.mode() == Some(mode) && !parsed.is_test())
        || new_events(recording, mode).is_some_and(|rows| !rows.is_empty())
}

fn judge_mode_endpoints(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let mut exercised = false;
    let mut known = false;
    for seen in received.readable_deliveries() {
        let (Some(own), Some(stated)) = (received.endpoint_mode(seen), seen.mode()) else { continue };
        if own != stated {
            let path = &received.all.endpoints[seen.delivery.endpoint.unwrap_or_default()].path;
            return Err(seen.violation(
                format!("events of {} mode only at {path}", own.as_str()),
                format!("one of {} mode", stated.as_str()),
            ));
        }
        known = true;
        exercised |= had_events(recording, &received, own.other());
    }
    match (exercised, known) {
        (true, _) => Ok(CheckOutcome::Holds),
        (false, true) => Err(CheckError::unjudged(
            "events happened in one mode only",
            "cause deliveries in the other mode too while the suite receives",
        )),
        (false, false) if received.readable_deliveries().next().is_none() => Err(no_readable_body()),
        (false, false) => Err(no_endpoint()),
    }
}

fn no_readable_body() -> CheckError {
    CheckError::unjudged("no delivery has a body that is a JSON object", "see webhooks.post")
}

fn no_endpoint() -> CheckError {
    CheckError::unjudged(
        "no delivery arrived at an endpoint whose mode is known",
        "let the live endpoint's address end in /live and the test endpoint's in /test",
    )
}

fn subscription(endpoint: &DeclaredEndpoint) -> Option<(&BTreeSet<String>, Mode)> {
    Some((endpoint.events.as_ref()?, endpoint.mode?))
}

fn judge_subscribed(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let real = |parsed: &&ParsedDelivery<'_>| !parsed.is_test();
    for seen in received.readable_deliveries().filter(real) {
        let Some(endpoint) = seen.delivery.endpoint.and_then(|at| received.all.endpoints.get(at)) else {
            continue;
        };
        if let (Some(events), Some(kind)) = (&endpoint.events, seen.kind())
            && !events.contains(kind)
        {
            let wants: Vec<_> = events.iter().map(String::as_str).collect();
            return Err(seen.violation(format!("only {} at {}", wants.join(", "), endpoint.path), kind));
        }
    }
    // An endpoint that subscribes to all types cannot receive a wrong one.
    let exercised = received.all.endpoints.iter().filter_map(subscription).any(|(events, mode)| {
        let unwanted = |kind: &str| EVENT_TYPES.contains(&kind) && !events.contains(kind);
        let delivered =
            received.readable_deliveries().filter(real).filter(|parsed| parsed.mode() == Some(mode));
        delivered.filter_map(ParsedDelivery::kind).any(unwanted)
            || new_events(recording, mode).is_some_and(|rows| rows.iter().any(|row| unwanted(kind(row))))
    });
    if exercised {
        return Ok(CheckOutcome::Holds);
    }
    if received.readable_deliveries().next().is_none() {
        return Err(no_readable_body());
    }
    Err(CheckError::unjudged(
        "no endpoint is known to subscribe to some of the types that happened and not to others",
        "choose a few types at an endpoint, name them with `--subscribed`, and cause others too; or declare \
         `--without subset`",
    ))
}

fn judge_pushed(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let endpoints = received.all.endpoints.iter().enumerate();
    let rows: Vec<_> = endpoints
        .filter_map(|(at, endpoint)| {
            Some((endpoint, EndpointEvents::for_endpoint(recording, &received, at)?))
        })
        .collect();
    let count = rows.iter().map(|(_, row)| row.delivered_count()).sum::<usize>();
    let (mut behind, mut silent) = (None, None);
    for (endpoint, row) in &rows {
        if let Some(types) = row.types_if_few().filter(|_| !received.all.settled) {
            return Err(too_few_types(endpoint, &types));
        }
        if let Some(event) = row.events.first().filter(|_| row.is_silent) {
            let expected = format!("a {} at {}", kind(&event.0), endpoint.path);
            let actual = format!("nothing, for {} new events of this mode", row.events.len());
            if received.all.settled {
                return Err(CheckError::violation(None, expected, actual));
            }
            silent.get_or_insert((*endpoint, row.events.len()));
        }
        let is_broken = row.loses_deliveries() || has_stopped(row, &rows);
        for missing in row.missing_events() {
            let id = text_at(missing.event, &["id"]).unwrap_or("without an id");
            let expected = format!("event {id} at {}", endpoint.path);
            if (received.all.settled && !row.is_pending(id))
                || row.counts_as_undelivered(&missing)
                || is_never_delivered(&rows, &received, kind(missing.event))
                || is_broken
            {
                return Err(CheckError::violation(
                    None,
                    expected,
                    format!(
                        "no delivery of this {} at that endpoint, although others arrived",
                        kind(missing.event)
                    ),
                ));
            }
            if missing.overtaken_for.is_some() {
                behind.get_or_insert(format!("{expected} has not arrived, while later ones have"));
            } else if !row.is_still_delivering() {
                behind.get_or_insert(format!("{expected} and later ones have not arrived"));
            }
        }
    }
    if let Some(behind) = behind {
        return Err(CheckError::unjudged(
            behind,
            "it may have been lost on the way: receive longer with `--receive-for`, or check again",
        ));
    }
    if let Some((endpoint, events)) = silent.filter(|_| count > 0) {
        return Err(silent_endpoint(received.all, endpoint, events));
    }
    if count > 0 {
        return Ok(CheckOutcome::HoldsWith(format!(
            "{count} new events were delivered to the endpoints that are subscribed to them"
        )));
    }
    Err(nothing_pushed(&received))
}

/// Returns the result for an endpoint that received nothing, although `events` happened in its mode.
fn silent_endpoint(all: &Deliveries, endpoint: &DeclaredEndpoint, events: usize) -> CheckError {
    let mode = endpoint.mode.map_or("its", Mode::as_str);
    if let Some(accepted) = silent_registration(all, endpoint) {
        let expected = format!("deliveries at {accepted}, which the service accepted as an endpoint");
        let actual = format!(
            "nothing at that address and at {}, for {events} new events of {mode} mode",
            endpoint.path
        );
        return CheckError::violation(None, expected, actual);
    }
    CheckError::unjudged(
        format!("no delivery arrived at {}, although {events} events happened in {mode} mode", endpoint.path),
        format!("add this address as an endpoint in {mode} mode, then check again"),
    )
}

/// Returns the reason why no delivery could be assigned to an event and an endpoint.
fn nothing_pushed(received: &ReceivedDeliveries<'_>) -> CheckError {
    match received.all.receiver {
        None => CheckError::unjudged(
            "the events during the capture of these deliveries are unknown",
            "receive deliveries during the check, with `--receiver ADDR:PORT`",
        ),
        Some(_) if received.readable_deliveries().next().is_none() => no_readable_body(),
        Some(_) => CheckError::unjudged(
            "no new event was delivered to an endpoint whose mode and types are known",
            "let the addresses end in /live and /test, name their types with `--subscribed`, and cause an event",
        ),
    }
}

/// Returns an address that the service accepted as an endpoint in the mode of `endpoint`, by the `--register` command,
/// and that received nothing for half a minute.
fn silent_registration<'a>(all: &'a Deliveries, endpoint: &DeclaredEndpoint) -> Option<&'a str> {
    let accepted = all
        .registrations
        .iter()
        .find(|registration| registration.public && registration.accepted)?
        .address
        .as_str();
    let is_silent = all.received.iter().all(|delivery| !accepted.ends_with(&delivery.path));
    // The command registers endpoints in test mode only.
    (is_silent && endpoint.mode == Some(Mode::Test) && all.lasted >= LATENESS).then_some(accepted)
}

/// Returns the result for an endpoint that received few of the types that happened: it may be registered for these only.
fn too_few_types(endpoint: &DeclaredEndpoint, types: &BTreeSet<&str>) -> CheckError {
    let types: Vec<_> = types.iter().copied().collect();
    CheckError::unjudged(
        format!(
            "only {} arrived at {}, although events of more types happened",
            types.join(", "),
            endpoint.path
        ),
        "subscribe it to all types, or name its types with `--subscribed`",
    )
}

/// Returns `true` if several events of a type are overtaken at the endpoints together, and none was delivered anywhere. A
/// lost delivery is not limited to one type.
fn is_never_delivered(
    rows: &[(&DeclaredEndpoint, EndpointEvents)],
    received: &ReceivedDeliveries<'_>,
    wanted: &str,
) -> bool {
    let overtaken = |row: &EndpointEvents| {
        let same =
            |missing: &MissingEvent<'_>| kind(missing.event) == wanted && missing.is_overtaken_for(LATENESS);
        row.missing_events().filter(same).count()
    };
    let was_delivered =
        || received.readable_deliveries().any(|parsed| !parsed.is_test() && parsed.kind() == Some(wanted));
    rows.iter().map(|(_, row)| overtaken(row)).sum::<usize>() > 1 && !was_delivered()
}

/// Returns `true` if an endpoint that accepted all deliveries gets none any more: several events are missing there that are
/// half a minute older than one that another endpoint received.
fn has_stopped(row: &EndpointEvents, rows: &[(&DeclaredEndpoint, EndpointEvents)]) -> bool {
    let newest = rows.iter().filter_map(|(_, other)| other.newest_delivered()).max();
    let (Some(newest), Some(last)) = (newest, row.newest_delivered()) else { return false };
    let is_left_out = |missing: &MissingEvent<'_>| {
        recorded_at(missing.event).is_some_and(|at| at > last && at + LATENESS < newest)
    };
    row.last_failure.is_none() && row.missing_events().filter(is_left_out).count() >= LOST_MIN
}

/// The new events for one endpoint, newest first, each with the time of its first delivery there.
struct EndpointEvents {
    events: Vec<(Value, Option<Duration>)>,
    /// The arrival of the last delivery that was not accepted there. After a failure, the sender may delay further ones.
    last_failure: Option<Duration>,
    /// `true` if the endpoint subscribes to all types.
    wants_all: bool,
    /// `true` if the endpoint received nothing.
    is_silent: bool,
    run_duration: Duration,
    /// The ids of events that are newer than all delivered ones; the suite did not cause them.
    pending: BTreeSet<String>,
}

/// An event that was not delivered to an endpoint.
struct MissingEvent<'a> {
    event: &'a Value,
    /// The time since a newer event was delivered, if any was.
    overtaken_for: Option<Duration>,
}

impl EndpointEvents {
    fn for_endpoint(
        recording: &Recording,
        received: &ReceivedDeliveries<'_>,
        at: usize,
    ) -> Option<EndpointEvents> {
        let (events, mode) = subscription(&received.all.endpoints[at])?;
        let wants_all = EVENT_TYPES.iter().all(|kind| events.contains(*kind));
        let rows = new_events(recording, mode)?;
        let here = || received.parsed.iter().filter(|parsed| parsed.delivery.endpoint == Some(at));
        let mut arrivals: BTreeMap<&str, Duration> = BTreeMap::new();
        for seen in here() {
            if let Some(id) = seen.text(&["event_id"]) {
                arrivals.entry(id).or_insert(seen.delivery.arrived);
            }
        }
        let arrival = |row: &Value| text_at(row, &["id"]).and_then(|id| arrivals.get(id)).copied();
        let id = |row: &Value| text_at(row, &["id"]).unwrap_or_default().to_owned();
        let arrived_ids: BTreeSet<_> =
            received.parsed.iter().filter_map(|seen| seen.text(&["event_id"])).collect();
        let newest = rows.iter().position(|row| arrived_ids.contains(&*id(row)));
        let on_their_way = rows[..newest.unwrap_or(0)].iter().map(id).collect();
        let wanted = rows.into_iter().filter(|row| events.contains(kind(row)));
        let events = wanted
            .map(|row| {
                let then = arrival(&row);
                (row, then)
            })
            .collect();
        let failed = here()
            .filter(|parsed| !parsed.delivery.was_accepted())
            .map(|parsed| parsed.delivery.arrived)
            .max();
        let is_silent = here().next().is_none();
        Some(EndpointEvents {
            events,
            last_failure: failed,
            wants_all,
            is_silent,
            run_duration: received.all.lasted,
            pending: on_their_way,
        })
    }

    fn is_pending(&self, id: &str) -> bool {
        self.pending.contains(id)
    }

    /// Returns `true` if several events were overtaken for half a minute at an endpoint that accepted all deliveries, so
    /// that none waits for a retry.
    fn loses_deliveries(&self) -> bool {
        let overtaken = self.missing_events().filter(|missing| missing.is_overtaken_for(LATENESS)).count();
        self.last_failure.is_none() && overtaken >= LOST_MIN
    }

    /// Returns the time at which the newest event that was delivered here was recorded.
    fn newest_delivered(&self) -> Option<OffsetDateTime> {
        self.events
            .iter()
            .filter(|(_, arrival)| arrival.is_some())
            .filter_map(|(row, _)| recorded_at(row))
            .max()
    }

    /// Returns `true` if deliveries arrived until the end of the run. Events that none overtook may be queued.
    fn is_still_delivering(&self) -> bool {
        let last = self.events.iter().filter_map(|(_, arrival)| *arrival).max();
        last.is_some_and(|last| last + QUEUE_PAUSE_MAX >= self.run_duration)
    }

    fn delivered_count(&self) -> usize {
        self.events.iter().filter(|(_, arrival)| arrival.is_some()).count()
    }

    /// Returns the undelivered events that are newer than an event delivered after the last failure.
    /// The endpoint may not have existed before that.
    fn missing_events(&self) -> impl Iterator<Item = MissingEvent<'_>> {
        let counts = |arrival: &Option<Duration>| arrival.is_some() && *arrival > self.last_failure;
        let oldest = self.events.iter().rposition(|(_, arrival)| counts(arrival)).unwrap_or(0);
        let all = self.events.iter().enumerate().take(oldest);
        all.filter(|(_, (_, arrival))| arrival.is_none()).map(|(at, (event, _))| {
            let newer = self.events[..at].iter().filter_map(|(_, arrival)| *arrival);
            MissingEvent {
                event,
                overtaken_for: newer.min().map(|then| self.run_duration.saturating_sub(then)),
            }
        })
    }

    /// Returns `true` if a missing event counts as not delivered: it is very late, or no event of its type was
    /// delivered here. A single delivery may have been lost and be retried later.
    fn counts_as_undelivered(&self, missing: &MissingEvent<'_>) -> bool {
        let alike = |other: &MissingEvent<'_>| {
            kind(other.event) == kind(missing.event) && other.is_overtaken_for(LATENESS)
        };
        let was_delivered =
            self.events.iter().any(|(row, arrival)| arrival.is_some() && kind(row) == kind(missing.event));
        missing.is_overtaken_for(LATENESS_LONG)
            || (!was_delivered && self.missing_events().filter(alike).count() > 1)
    }

    /// Returns the types that were delivered, if the endpoint subscribes to all and as many others are missing. Without
    /// `--subscribed`, an endpoint counts as subscribed to all types, but it may be registered for these only.
    fn types_if_few(&self) -> Option<BTreeSet<&str>> {
        let delivered = self.events.iter().filter(|(_, arrival)| arrival.is_some()).map(|(row, _)| kind(row));
        let delivered: BTreeSet<_> = delivered.collect();
        let missing: BTreeSet<_> = self.missing_events().map(|missing| kind(missing.event)).collect();
        let never = missing.difference(&delivered).count();
        (self.wants_all && never > 1 && never >= delivered.len()).then_some(delivered)
    }
}

impl MissingEvent<'_> {
    fn is_overtaken_for(&self, span: Duration) -> bool {
        self.overtaken_for.is_some_and(|overtaken| overtaken >= span)
    }
}

fn judge_redirects(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let all = received.all;
    let answered: Vec<_> = all.received.iter().filter(|delivery| delivery.was_redirected()).collect();
    let followed = all.received.iter().find(|delivery| delivery.redirected);
    if let Some(followed) = followed {
        return Err(CheckError::violation(
            None,
            "no request to the target of a redirect",
            format!("a {} there (delivery {})", followed.method, followed.number),
        ));
    }
    match answered.len() {
        0 => Err(CheckError::unjudged(
            "no delivery was answered with a redirect",
            "check again with `--redirect-trial`: the first deliveries are then answered 302 and 307; or declare \
             `--without redirects`",
        )),
        count => Ok(CheckOutcome::HoldsWith(format!("{count} answered with a redirect, none followed"))),
    }
}

/// Observes the retries of deliveries that were not accepted.
fn observe_retries(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let mut seen = BTreeSet::new();
    let mut counted = BTreeSet::new();
    for (at, failed) in
        received.parsed.iter().enumerate().filter(|(_, parsed)| !parsed.delivery.was_accepted())
    {
        let Some(event) = failed.text(&["event_id"]) else { continue };
        // Only the first attempt of each event counts.
        if !counted.insert((failed.delivery.endpoint, event)) {
            continue;
        }
        let same = |parsed: &&ParsedDelivery<'_>| {
            parsed.delivery.endpoint == failed.delivery.endpoint && parsed.text(&["event_id"]) == Some(event)
        };
        let again: Vec<_> = received.parsed[at + 1..].iter().filter(same).collect();
        let response = match failed.delivery.answered {
            Some(0) | None => "no answer".to_owned(),
            Some(status) => format!("a {status}"),
        };
        let Some(first) = again.first() else {
            seen.insert(format!(
                "after {response} it was not delivered again{}",
                time_limit_text(received.all)
            ));
            continue;
        };
        let kept = again.iter().all(|parsed| parsed.text(&["id"]) == failed.text(&["id"]));
        let id = if kept { "under the same id" } else { "under a new id" };
        // If the clock of the service is controlled, arrival times prove nothing.
        let gap = first.delivery.arrived.saturating_sub(failed.delivery.arrived).as_secs();
        let when = if received.all.settled { String::new() } else { format!(" {gap} s later") };
        seen.insert(format!("after {response} it was delivered again{when} {id}"));
    }
    if seen.is_empty() {
        return Err(CheckError::unjudged(
            "every delivery was accepted",
            "check again with `--redirect-trial`: the first delivery is then refused",
        ));
    }
    Ok(CheckOutcome::Observed(seen.into_iter().collect::<Vec<_>>().join(", ")))
}

fn time_limit_text(all: &Deliveries) -> String {
    if all.settled { String::new() } else { format!(" within {} s", all.lasted.as_secs()) }
}
