//! Endpoints that get no deliveries, although events for them were created.
//!
//! The specification sets no deadline for a delivery, so silence alone proves nothing: the address may be unknown to the
//! service, the network may have lost the deliveries, or a sender may send in batches. These rules exclude each of the three.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;
use url::{Host, Url};

use conformance_model::deliveries::{DeclaredEndpoint, Deliveries};
use conformance_model::mode::Mode;
use conformance_model::verdict::CheckError;

use super::endpoint_events::{EndpointEvents, LOST_MIN, event_type};
use crate::evidence::recorded_at;
use crate::parsed_deliveries::ReceivedDeliveries;

/// The minimum time without deliveries, and the minimum age of the events that were not delivered.
const SILENCE_MIN: Duration = Duration::from_secs(60);
/// The minimum number of prompt deliveries before the silence.
const PROMPT_MIN: usize = 5;
/// The minimum time between the first and the last of the prompt deliveries, and the maximum time between two of them. A sender
/// of batches has longer pauses.
const PROMPT_SPAN_MIN: Duration = Duration::from_secs(5);
const PROMPT_PAUSE_MAX: Duration = Duration::from_secs(15);
/// The maximum difference between the times that prompt deliveries took.
const PROMPT_DELAY_MAX: time::Duration = time::Duration::seconds(10);

/// The time at which an event was recorded, and the arrival of its delivery.
type Sent = (OffsetDateTime, Duration);

/// Returns the deliveries of an endpoint that were accepted after its last failed one, in order of arrival.
fn accepted(of_endpoint: &EndpointEvents<'_>) -> Vec<Sent> {
    let delivered =
        of_endpoint.events.iter().filter_map(|(row, arrival)| Some((recorded_at(row)?, (*arrival)?)));
    let mut accepted: Vec<_> =
        delivered.filter(|(_, arrival)| Some(*arrival) > of_endpoint.last_failure).collect();
    accepted.sort_by_key(|(_, arrival)| *arrival);
    accepted
}

/// Returns the time that a delivery took, by the clocks of the service and of the receiver, which may differ. Only two such
/// times can be compared.
fn delay((recorded_at, arrival): &Sent) -> time::Duration {
    let arrival = time::Duration::try_from(*arrival).unwrap_or(time::Duration::MAX);
    arrival.saturating_sub(*recorded_at - OffsetDateTime::UNIX_EPOCH)
}

/// Returns `true` if these deliveries arrived one by one, each soon after its event.
fn are_prompt(sent: &[Sent]) -> bool {
    let (Some((_, first)), Some((_, last))) = (sent.first(), sent.last()) else { return false };
    let delays: BTreeSet<_> = sent.iter().map(delay).collect();
    let is_even = delays.first().zip(delays.last()).is_some_and(|(min, max)| *max - *min <= PROMPT_DELAY_MAX);
    sent.len() >= PROMPT_MIN
        && *last - *first >= PROMPT_SPAN_MIN
        && sent.windows(2).all(|pair| pair[1].1 - pair[0].1 <= PROMPT_PAUSE_MAX)
        && is_even
}

/// Returns the time from the recording of an event to the end of the run, less the longest time that one of these deliveries
/// took.
fn overdue(recorded_at: OffsetDateTime, sent: &[Sent], run_duration: Duration) -> Option<time::Duration> {
    let slowest = sent.iter().map(delay).max()?;
    Some(delay(&(recorded_at, run_duration)) - slowest)
}

/// Returns `true` if an endpoint accepted prompt deliveries and then got none for [`SILENCE_MIN`], although events of types that
/// it received before were created meanwhile. Between the service and the receiver must be no tunnel, which may have failed.
pub(super) fn has_gone_silent(of_endpoint: &EndpointEvents<'_>, all: &Deliveries) -> bool {
    let sent = accepted(of_endpoint);
    let last_arrival = of_endpoint.last_arrival.unwrap_or_default();
    let types: BTreeSet<_> = delivered_types(of_endpoint).collect();
    let last_recorded = sent.iter().map(|(recorded_at, _)| *recorded_at).max();
    let is_overdue = |row: &Value| {
        recorded_at(row).is_some_and(|recorded_at| {
            Some(recorded_at) > last_recorded
                && overdue(recorded_at, &sent, of_endpoint.run_duration)
                    .is_some_and(|overdue| overdue >= SILENCE_MIN)
        })
    };
    let missing = of_endpoint
        .events
        .iter()
        .filter(|(row, arrival)| arrival.is_none() && types.contains(event_type(row)) && is_overdue(row));
    is_reached_directly(all)
        && !all.settled
        && of_endpoint.run_duration.saturating_sub(last_arrival) >= SILENCE_MIN
        && are_prompt(&sent)
        && missing.count() >= LOST_MIN
}

/// Returns the types of the events that were delivered to an endpoint.
fn delivered_types<'a>(of_endpoint: &EndpointEvents<'a>) -> impl Iterator<Item = &'a str> {
    of_endpoint.events.iter().filter(|(_, arrival)| arrival.is_some()).map(|(row, _)| event_type(row))
}

/// Returns `true` if the service reaches the receiver on the same machine or network.
fn is_reached_directly(all: &Deliveries) -> bool {
    let Some(public_url) = &all.public_url else { return all.receiver.is_some() };
    Url::parse(public_url).is_ok_and(|url| match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_private(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    })
}

/// Checks that no endpoint gets nothing at all while another one at the same receiver gets prompt deliveries. The operator must
/// have set the secret of the endpoint, which the service created with it. No delivery may have arrived at another path, which
/// would be that of the endpoint, and there must be no tunnel, whose former address the endpoint may have. Events of types that
/// the other endpoint did not get do not count.
pub(super) fn check_served(
    endpoints: &[(&DeclaredEndpoint, EndpointEvents<'_>)],
    received: &ReceivedDeliveries<'_>,
) -> Result<(), CheckError> {
    let has_other_path = received.parsed.iter().any(|parsed| parsed.delivery.endpoint.is_none());
    if has_other_path || received.deliveries.settled || !is_reached_directly(received.deliveries) {
        return Ok(());
    }
    for (endpoint, silent) in endpoints.iter().filter(|(endpoint, of)| of.is_silent && endpoint.has_secret) {
        for (other, served) in endpoints {
            let sent = accepted(served);
            let types: BTreeSet<_> = delivered_types(served).collect();
            let is_overdue = |row: &Value| {
                recorded_at(row)
                    .and_then(|recorded_at| overdue(recorded_at, &sent, silent.run_duration))
                    .is_some_and(|overdue| overdue >= SILENCE_MIN)
            };
            let rows = silent.events.iter().map(|(row, _)| row);
            let missing: Vec<_> =
                rows.filter(|row| types.contains(event_type(row)) && is_overdue(row)).collect();
            let missing_types: BTreeSet<_> = missing.iter().map(|row| event_type(row)).collect();
            if are_prompt(&sent) && missing.len() >= PROMPT_MIN && missing_types.len() >= LOST_MIN {
                let mode = endpoint.mode.map_or("its", Mode::as_str);
                return Err(CheckError::violation(
                    None,
                    format!(
                        "deliveries at {}, an endpoint in {mode} mode whose secret is set",
                        endpoint.path
                    ),
                    format!(
                        "nothing for {} events of {mode} mode, while {} got deliveries",
                        missing.len(),
                        other.path
                    ),
                ));
            }
        }
    }
    Ok(())
}
