//! The routing of deliveries: to the correct endpoints, and never to the target of a redirect.

use std::collections::BTreeSet;

use conformance_model::catalogue::EVENT_TYPES;
use conformance_model::deliveries::{DeclaredEndpoint, Deliveries};
use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::part::Part;
use conformance_model::reading::text_at;
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::NEEDS;
use super::endpoint_events::{
    DELIVERY_LAG_MAX, EndpointEvents, LOST_MIN, MissingEvent, event_type, new_events, subscription,
};
use super::silence::{check_served, has_gone_silent};
use crate::check::Check;
use crate::evidence::recorded_at;
use crate::parsed_deliveries::{ParsedDelivery, ReceivedDeliveries, received_deliveries};

/// The probes that cause deliveries, and the lists, which show the new events.
pub(super) const NEEDS_WITH_LISTS: &[Group] = &[Group::Account, Group::Lists, Group::Webhooks];

pub(crate) const CHECKS: &[Check] = &[
    Check::new("webhooks.mode_endpoints", NEEDS_WITH_LISTS, judge_mode_endpoints),
    Check::new("webhooks.subscribed", NEEDS_WITH_LISTS, judge_subscribed).excluded_with(Part::TypeSubset),
    Check::new("webhooks.pushed", NEEDS_WITH_LISTS, judge_pushed),
    Check::new("webhooks.redirects", NEEDS, judge_redirects).excluded_with(Part::Redirects),
    Check::new("webhooks.retries", NEEDS, observe_retries),
];

/// Returns `true` if there was an event of the mode, which could have been misrouted.
fn has_events_of(recording: &Recording, received: &ReceivedDeliveries<'_>, mode: Mode) -> bool {
    received.readable_deliveries().any(|parsed| parsed.mode() == Some(mode) && !parsed.is_test())
        || new_events(recording, mode).is_some_and(|rows| !rows.is_empty())
}

fn judge_mode_endpoints(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let mut is_exercised = false;
    let mut has_known_mode = false;
    for parsed in received.readable_deliveries() {
        let (Some(endpoint_mode), Some(stated)) = (received.endpoint_mode(parsed), parsed.mode()) else {
            continue;
        };
        if endpoint_mode != stated {
            let path = &received.deliveries.endpoints[parsed.delivery.endpoint.unwrap_or_default()].path;
            return Err(parsed.violation(
                format!("events of {} mode only at {path}", endpoint_mode.as_str()),
                format!("one of {} mode", stated.as_str()),
            ));
        }
        has_known_mode = true;
        is_exercised |= has_events_of(recording, &received, endpoint_mode.other());
    }
    match (is_exercised, has_known_mode) {
        (true, _) => Ok(CheckOutcome::Holds),
        (false, true) => Err(CheckError::unjudged(
            "events were created in one mode only",
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

fn judge_subscribed(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let is_event = |parsed: &&ParsedDelivery<'_>| !parsed.is_test();
    for parsed in received.readable_deliveries().filter(is_event) {
        let Some(endpoint) =
            parsed.delivery.endpoint.and_then(|index| received.deliveries.endpoints.get(index))
        else {
            continue;
        };
        if let (Some(events), Some(event_type)) = (&endpoint.events, parsed.event_type())
            && !events.contains(event_type)
        {
            let subscribed: Vec<_> = events.iter().map(String::as_str).collect();
            return Err(
                parsed.violation(format!("only {} at {}", subscribed.join(", "), endpoint.path), event_type)
            );
        }
    }
    // An endpoint that subscribes to all types cannot receive a wrong one.
    let is_exercised = received.deliveries.endpoints.iter().filter_map(subscription).any(|(events, mode)| {
        let is_unsubscribed = |kind: &str| EVENT_TYPES.contains(&kind) && !events.contains(kind);
        let delivered =
            received.readable_deliveries().filter(is_event).filter(|parsed| parsed.mode() == Some(mode));
        delivered.filter_map(ParsedDelivery::event_type).any(is_unsubscribed)
            || new_events(recording, mode)
                .is_some_and(|rows| rows.iter().any(|row| is_unsubscribed(event_type(row))))
    });
    if is_exercised {
        return Ok(CheckOutcome::Holds);
    }
    if received.readable_deliveries().next().is_none() {
        return Err(no_readable_body());
    }
    Err(CheckError::unjudged(
        "no endpoint is known to subscribe to some but not all of the types of the events that were created",
        "choose a few types at an endpoint, name them with `--subscribed`, and cause others too; or declare \
         `--without subset`",
    ))
}

fn judge_pushed(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let endpoints = received.deliveries.endpoints.iter().enumerate();
    let endpoint_events: Vec<_> = endpoints
        .filter_map(|(index, endpoint)| {
            Some((endpoint, EndpointEvents::for_endpoint(recording, &received, index)?))
        })
        .collect();
    let count = endpoint_events.iter().map(|(_, of_endpoint)| of_endpoint.delivered_count()).sum::<usize>();
    let (mut late, mut silent) = (None, None);
    for (endpoint, of_endpoint) in &endpoint_events {
        if let Some(types) = of_endpoint.types_if_few().filter(|_| !received.deliveries.settled) {
            return Err(too_few_types(endpoint, &types));
        }
        if let Some(event) = of_endpoint.events.first().filter(|_| of_endpoint.is_silent) {
            let expected = format!("a {} at {}", event_type(event.0), endpoint.path);
            let actual = format!("nothing, for {} new events of this mode", of_endpoint.events.len());
            if received.deliveries.settled {
                return Err(CheckError::violation(None, expected, actual));
            }
            silent.get_or_insert((*endpoint, of_endpoint.events.len()));
        }
        let is_broken = of_endpoint.loses_deliveries()
            || has_stopped(of_endpoint, &endpoint_events)
            || has_gone_silent(of_endpoint, received.deliveries);
        for missing in of_endpoint.missing_events() {
            let id = text_at(missing.event, &["id"]).unwrap_or("without an id");
            let expected = format!("event {id} at {}", endpoint.path);
            if (received.deliveries.settled && !of_endpoint.is_pending(id))
                || of_endpoint.counts_as_undelivered(&missing)
                || is_never_delivered(&endpoint_events, &received, event_type(missing.event))
                || is_broken
            {
                return Err(CheckError::violation(
                    None,
                    expected,
                    format!(
                        "no delivery of this {} at that endpoint, although others arrived",
                        event_type(missing.event)
                    ),
                ));
            }
            if missing.overtaken_for.is_some() {
                late.get_or_insert(format!("{expected} has not arrived, while later ones have"));
            } else if !of_endpoint.is_still_delivering() {
                late.get_or_insert(format!("{expected} and later ones have not arrived"));
            }
        }
    }
    if let Some(late) = late {
        return Err(CheckError::unjudged(
            late,
            "it may have been lost on the way: receive longer with `--receive-for`, or check again",
        ));
    }
    check_served(&endpoint_events, &received)?;
    if let Some((endpoint, events)) = silent.filter(|_| count > 0) {
        return Err(silent_endpoint(received.deliveries, endpoint, events));
    }
    if count > 0 {
        return Ok(CheckOutcome::HoldsWith(format!(
            "{count} new events were delivered to the endpoints that are subscribed to them"
        )));
    }
    Err(no_assignable_delivery(&received))
}

/// Returns the result for an endpoint that received nothing, although this number of events was created in its mode.
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
        format!(
            "no delivery arrived at {}, although {events} events were created in {mode} mode",
            endpoint.path
        ),
        format!("add this address as an endpoint in {mode} mode, then check again"),
    )
}

/// Returns the reason why no delivery could be assigned to an event and an endpoint.
fn no_assignable_delivery(received: &ReceivedDeliveries<'_>) -> CheckError {
    match received.deliveries.receiver {
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
    (is_silent && endpoint.mode == Some(Mode::Test) && all.duration >= DELIVERY_LAG_MAX).then_some(accepted)
}

/// Returns the result for an endpoint that received few of the types of the created events: it may
/// be registered for these only.
fn too_few_types(endpoint: &DeclaredEndpoint, types: &BTreeSet<&str>) -> CheckError {
    let types: Vec<_> = types.iter().copied().collect();
    CheckError::unjudged(
        format!(
            "only {} arrived at {}, although events of more types were created",
            types.join(", "),
            endpoint.path
        ),
        "subscribe it to all types, or name its types with `--subscribed`",
    )
}

/// Returns `true` if several events of a type were overtaken by newer ones, counted over all endpoints, and no event of
/// the type was delivered anywhere. Deliveries lost on the way would not be limited to one type.
fn is_never_delivered(
    endpoints: &[(&DeclaredEndpoint, EndpointEvents<'_>)],
    received: &ReceivedDeliveries<'_>,
    wanted: &str,
) -> bool {
    let overtaken_count = |of_endpoint: &EndpointEvents| {
        let is_wanted = |missing: &MissingEvent<'_>| {
            event_type(missing.event) == wanted && missing.is_overtaken_for(DELIVERY_LAG_MAX)
        };
        of_endpoint.missing_events().filter(is_wanted).count()
    };
    let was_delivered = || {
        received.readable_deliveries().any(|parsed| !parsed.is_test() && parsed.event_type() == Some(wanted))
    };
    endpoints.iter().map(|(_, of_endpoint)| overtaken_count(of_endpoint)).sum::<usize>() > 1
        && !was_delivered()
}

/// Returns `true` if an endpoint that accepted all deliveries no longer gets any: several events are missing there that
/// are newer than its last one, but half a minute older than one that another endpoint received.
fn has_stopped(
    of_endpoint: &EndpointEvents<'_>,
    endpoints: &[(&DeclaredEndpoint, EndpointEvents<'_>)],
) -> bool {
    let newest = endpoints.iter().filter_map(|(_, other)| other.newest_delivered()).max();
    let (Some(newest), Some(last)) = (newest, of_endpoint.newest_delivered()) else { return false };
    let is_newer_and_late = |missing: &MissingEvent<'_>| {
        recorded_at(missing.event).is_some_and(|at| at > last && at + DELIVERY_LAG_MAX < newest)
    };
    of_endpoint.last_failure.is_none()
        && of_endpoint.missing_events().filter(is_newer_and_late).count() >= LOST_MIN
}

fn judge_redirects(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let all = received.deliveries;
    let redirects: Vec<_> = all.received.iter().filter(|delivery| delivery.got_redirect()).collect();
    let followed = all.received.iter().find(|delivery| delivery.redirected);
    if let Some(followed) = followed {
        return Err(CheckError::violation(
            None,
            "no request to the target of a redirect",
            format!("a {} there (delivery {})", followed.method, followed.number),
        ));
    }
    match redirects.len() {
        0 => Err(CheckError::unjudged(
            "no delivery got a redirect",
            "check again with `--redirect-trial`: the receiver then responds to the first deliveries with 302 and 307; \
             or declare `--without redirects`",
        )),
        count => Ok(CheckOutcome::HoldsWith(format!("{count} redirects, none followed"))),
    }
}

/// Observes the retries of deliveries that were not accepted.
fn observe_retries(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let mut observed = BTreeSet::new();
    let mut known_events = BTreeSet::new();
    for (index, failed) in
        received.parsed.iter().enumerate().filter(|(_, parsed)| !parsed.delivery.was_accepted())
    {
        let Some(event) = failed.text(&["event_id"]) else { continue };
        // Only the first failed attempt of each event counts.
        if !known_events.insert((failed.delivery.endpoint, event)) {
            continue;
        }
        let is_same_event = |parsed: &&ParsedDelivery<'_>| {
            parsed.delivery.endpoint == failed.delivery.endpoint && parsed.text(&["event_id"]) == Some(event)
        };
        let retries: Vec<_> = received.parsed[index + 1..].iter().filter(is_same_event).collect();
        let response = match failed.delivery.response_status {
            // 0: the receiver sent no response.
            Some(0) | None => "no response".to_owned(),
            Some(status) => format!("a {status}"),
        };
        let Some(first) = retries.first() else {
            observed.insert(format!(
                "after {response} it was not delivered again{}",
                time_limit_text(received.deliveries)
            ));
            continue;
        };
        let has_same_id = retries.iter().all(|parsed| parsed.text(&["id"]) == failed.text(&["id"]));
        let id = if has_same_id { "under the same id" } else { "under a new id" };
        // If the suite controls the clock of the service, arrival times prove nothing.
        let secs = first.delivery.arrived.saturating_sub(failed.delivery.arrived).as_secs();
        let delay = if received.deliveries.settled { String::new() } else { format!(" {secs} s later") };
        observed.insert(format!("after {response} it was delivered again{delay} {id}"));
    }
    if observed.is_empty() {
        return Err(CheckError::unjudged(
            "every delivery was accepted",
            "check again with `--redirect-trial`: the first delivery is then refused",
        ));
    }
    Ok(CheckOutcome::Observed(observed.into_iter().collect::<Vec<_>>().join(", ")))
}

fn time_limit_text(all: &Deliveries) -> String {
    if all.settled { String::new() } else { format!(" within {} s", all.duration.as_secs()) }
}
