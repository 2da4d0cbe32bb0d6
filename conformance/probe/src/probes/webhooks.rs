//! Deliveries, and requests to the API for their events.
//!
//! This probe sends no requests that cause deliveries: the operator or a [`DeliveryTrigger`] causes them.

use conformance_model::budget::Cost;
use conformance_model::deliveries::{Deliveries, Delivery, SignatureStatus};
use conformance_model::mode::Mode;
use conformance_model::raw_bytes::RawBytes;
use conformance_model::reading::{
    LONG_PAGE_SIZE, Page, events_after_deliveries, events_before_deliveries, listed_events,
    requested_own_event, single_event, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, Purpose, Recording, Side};
use conformance_model::secret::{Redactor, Secret};
use conformance_receiver::{
    BackgroundReceiver, Endpoint, Keyring, REDIRECT_PATH, ReceivedRequest, ReceivedRequests, SecretRedaction,
    WebhookNames, signature_status,
};

use crate::delivery_source::{DeliverySource, DeliveryTrigger, TriggeredDeliveries, Webhooks};
use crate::plan::Plan;
use crate::probes::objects;
use crate::request_paths::event_path;
use crate::session::Session;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

/// With each key: one page before the deliveries, [`AFTER_PAGES`] after them, one of [`FINAL_LISTS`], and
/// [`SINGLE_EVENTS_MAX`] events of each mode.
pub(crate) const COST: Cost = Cost { live: 9, test: 9, other: 0, total: 18 };
/// The lists that are read after the deliveries: one in each mode, because one code usually serves both modes.
const FINAL_LISTS: [(Mode, List); 2] = [(Mode::Live, List::Charges), (Mode::Test, List::Invoices)];
/// The number of events per mode that are requested by their id with each key.
const SINGLE_EVENTS_MAX: usize = 2;
/// The most pages of events per mode that are read after the deliveries. A busy account has more new events than a
/// page.
const AFTER_PAGES: u32 = 3;
/// The bounds of the lowest time limit of the wait for the deliveries of the listed events, which ends once all have arrived.
/// The judge ignores events that later deliveries overtook for less than half a minute.
const LISTED_EVENTS_WAITS: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(32)];
/// The longest wait between the delivery of the last awaited type and the read of the list: further deliveries may
/// arrive.
const FURTHER_DELIVERIES_WAIT: Duration = Duration::from_secs(2);

/// Records the deliveries, and requests their events from the API.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let Some(webhooks) = &session.plan.webhooks else { return };
    let deliveries = match &webhooks.source {
        DeliverySource::Receiver { receiver, receive_for, trigger } => {
            let (triggered, listed_at) = receive(session, receiver, *receive_for, trigger.as_deref()).await;
            let received = receiver.received().await;
            Deliveries {
                listed_at,
                ..record_received(webhooks, receiver, received, triggered, &session.redactor)
            }
        }
        DeliverySource::Captured { received, endpoints } => {
            record_captured(webhooks, received, endpoints, &session.redactor)
        }
    };
    let is_empty = deliveries.received.is_empty();
    session.recording.deliveries = Some(deliveries);
    if !is_empty {
        read_back(session).await;
    }
}

/// Returns the longest total wait of a run. `other_waits`: the waits of the other probes, during which deliveries are
/// received, too.
pub(crate) fn wait_max(plan: &Plan, other_waits: Duration) -> Duration {
    match plan.webhooks.as_ref().map(|webhooks| &webhooks.source) {
        Some(DeliverySource::Receiver { receive_for, .. }) if !receive_for.is_zero() => {
            other_waits.max(*receive_for) + listed_events_wait(*receive_for)
        }
        _ => other_waits,
    }
}

/// Returns the lowest time limit of the wait for the deliveries of the listed events.
fn listed_events_wait(receive_for: Duration) -> Duration {
    let [min, max] = LISTED_EVENTS_WAITS;
    receive_for.clamp(min, max)
}

/// Reads the newest events of each mode, one page, and starts the time in which deliveries are received.
pub(crate) async fn read_existing_events(session: &mut Session<'_>) {
    let source = session.plan.webhooks.as_ref().map(|webhooks| &webhooks.source);
    let Some(DeliverySource::Receiver { receive_for, .. }) = source else { return };
    for mode in Mode::BOTH {
        request_long_page(session, mode, Purpose::BeforeDeliveries, 1).await;
    }
    session.receiving_since = Some(session.clock.now());
    session.progress.on_receive(*receive_for);
}

/// Reads the watched objects and the [`FINAL_LISTS`], so that the events which are read later include all of their changes. Then
/// reads the events of both modes, newest first, until a page has one that existed before the deliveries.
async fn read_new_events(session: &mut Session<'_>) {
    objects::read_watched_again(session).await;
    for (mode, list) in FINAL_LISTS {
        let path = format!("{}?per_page={LONG_PAGE_SIZE}", list.path());
        session.send(Caller::Own(mode), Purpose::ListAfterDeliveries(list), &path).await;
    }
    for mode in Mode::BOTH {
        for page in 1..=AFTER_PAGES {
            let exchange = request_long_page(session, mode, Purpose::AfterDeliveries, page).await;
            let rows = Page::from_exchange(&exchange).and_then(Page::rows).unwrap_or_default();
            let before = events_before_deliveries(&session.recording, mode);
            let is_known = |row: &Value| before.iter().any(|known| known["id"] == row["id"]);
            if (rows.len() as u64) < LONG_PAGE_SIZE || rows.iter().any(is_known) {
                break;
            }
        }
    }
}

async fn request_long_page(session: &mut Session<'_>, mode: Mode, purpose: Purpose, page: u32) -> Exchange {
    let page_parameter = if page == 1 { String::new() } else { format!("&page={page}") };
    let path = format!("{}?per_page={LONG_PAGE_SIZE}{page_parameter}", List::Events.path());
    session.send(Caller::Own(mode), purpose, &path).await
}

/// Runs the trigger, and waits until every type was delivered, at most until the end of `receive_for`, which began with
/// [`read_existing_events`]. Then reads the list of events, and waits for the deliveries of the new ones.
///
/// Returns the result of the trigger, and the time between the start of the receiver and the read of the list. If the
/// trigger has sent every delivery, there is no wait and no read, and the time is `None`.
async fn receive(
    session: &mut Session<'_>,
    receiver: &BackgroundReceiver,
    receive_for: Duration,
    trigger: Option<&dyn DeliveryTrigger>,
) -> (Result<TriggeredDeliveries, String>, Option<Duration>) {
    let triggered = match trigger {
        None => Ok(TriggeredDeliveries::default()),
        Some(trigger) => trigger.trigger(receiver).await,
    };
    if triggered.as_ref().is_ok_and(|deliveries| deliveries.settled) {
        return (triggered, None);
    }
    let since = session.receiving_since.unwrap_or_default();
    let until = since + receive_for;
    let left = until.saturating_sub(session.clock.now());
    let all_types = receiver.wait_for_request(every_type_delivered(receiver.endpoints()));
    let has_all_types = tokio::select! {
        _ = session.wait_uncounted(left, "deliveries may arrive") => false,
        () = all_types, if !left.is_zero() => true,
    };
    if has_all_types {
        let left = until.saturating_sub(session.clock.now());
        session.wait_uncounted(FURTHER_DELIVERIES_WAIT.min(left), "further deliveries may arrive").await;
    }
    let listed_at = Duration::try_from(time::OffsetDateTime::now_utc() - receiver.started_at()).ok();
    read_new_events(session).await;
    // Every type was delivered, or the time is over. Deliveries of the listed events may still arrive.
    let missing = expected_deliveries(&session.recording, &receiver.endpoints());
    let left = until.saturating_sub(session.clock.now()).max(listed_events_wait(receive_for));
    tokio::select! {
        _ = session.wait_uncounted(left, "deliveries of the listed events may arrive") => {}
        () = receiver.wait_for_request(all_delivered(missing, receiver.endpoints())) => {}
    }
    (triggered, listed_at)
}

/// Returns the index of the endpoint that received a request.
fn endpoint_of(endpoints: &[Endpoint], received: &ReceivedRequest) -> Option<usize> {
    let path = received.path.split('?').next().unwrap_or_default();
    // A proxy may have added a prefix.
    endpoints.iter().position(|endpoint| path.ends_with(&endpoint.path))
}

/// Returns a function that is called with each received request, and returns `true` once every endpoint has
/// received every type that it subscribes to.
fn every_type_delivered(endpoints: Vec<Endpoint>) -> impl FnMut(&ReceivedRequest) -> bool {
    let types = endpoints.iter().enumerate().flat_map(|(index, endpoint)| {
        endpoint.events.iter().flatten().map(move |kind| (index, kind.clone())).collect::<Vec<_>>()
    });
    let mut awaited: BTreeSet<_> = types.collect();
    move |received| {
        let body: Value = serde_json::from_slice(&received.body.0).unwrap_or_default();
        if let (Some(endpoint), Some(kind)) = (endpoint_of(&endpoints, received), text_at(&body, &["event"]))
        {
            awaited.remove(&(endpoint, kind.to_owned()));
        }
        awaited.is_empty()
    }
}

/// Returns the expected deliveries: the index of each endpoint with the id of each new event that it subscribes to.
fn expected_deliveries(recording: &Recording, endpoints: &[Endpoint]) -> BTreeSet<(usize, String)> {
    let mut expected = BTreeSet::new();
    for (index, endpoint) in endpoints.iter().enumerate() {
        let (Some(mode), Some(types)) = (endpoint.mode, &endpoint.events) else { continue };
        let before = events_before_deliveries(recording, mode);
        let known: BTreeSet<_> = before.iter().filter_map(|row| text_at(row, &["id"])).collect();
        for row in events_after_deliveries(recording, mode).unwrap_or_default() {
            let is_subscribed = text_at(row, &["type"]).is_some_and(|kind| types.contains(kind));
            if let Some(id) = text_at(row, &["id"]).filter(|id| is_subscribed && !known.contains(id)) {
                expected.insert((index, id.to_owned()));
            }
        }
    }
    expected
}

/// Returns a function that is called with each received request, and returns `true` once each of these events was
/// delivered to its endpoint.
fn all_delivered(
    mut missing: BTreeSet<(usize, String)>,
    endpoints: Vec<Endpoint>,
) -> impl FnMut(&ReceivedRequest) -> bool {
    move |received| {
        let body: Value = serde_json::from_slice(&received.body.0).unwrap_or_default();
        if let (Some(endpoint), Some(id)) = (endpoint_of(&endpoints, received), text_at(&body, &["event_id"]))
        {
            missing.remove(&(endpoint, id.to_owned()));
        }
        missing.is_empty()
    }
}

/// Returns the deliveries that a receiver got during the run.
fn record_received(
    webhooks: &Webhooks,
    receiver: &BackgroundReceiver,
    received: ReceivedRequests,
    triggered: Result<TriggeredDeliveries, String>,
    redactor: &Redactor,
) -> Deliveries {
    let (triggered, error) = match triggered {
        Ok(triggered) => (triggered, None),
        Err(why) => (TriggeredDeliveries::default(), Some(redactor.redact(&why))),
    };
    let ReceivedRequests { requests, dropped, rejected } = received;
    let started_at = receiver.started_at();
    let since = |received: &ReceivedRequest| Duration::try_from(received.at - started_at).unwrap_or_default();
    let arrivals = requests.iter().map(|(received, status)| (since(received), received, Some(*status)));
    let mut deliveries = redacted_deliveries(&webhooks.names, &receiver.endpoints(), arrivals, redactor);
    deliveries.receiver = Some(receiver.address().to_string());
    deliveries.public_url = webhooks.public_url.as_deref().map(|url| redactor.redact(url));
    deliveries.started_at = Some(started_at.unix_timestamp());
    deliveries.duration =
        Duration::try_from(time::OffsetDateTime::now_utc() - started_at).unwrap_or_default();
    deliveries.settled = triggered.settled;
    deliveries.trigger_error = error;
    deliveries.registrations = triggered.registrations;
    deliveries.dropped = dropped;
    deliveries.other_requests += rejected;
    deliveries
}

/// Returns the deliveries that were captured before the run.
fn record_captured(
    webhooks: &Webhooks,
    received: &[ReceivedRequest],
    endpoints: &[Endpoint],
    redactor: &Redactor,
) -> Deliveries {
    let first = received.iter().map(|request| request.at).min();
    let since = |request: &ReceivedRequest| {
        first.and_then(|first| Duration::try_from(request.at - first).ok()).unwrap_or_default()
    };
    let duration = received.iter().map(since).max().unwrap_or_default();
    let arrivals = received.iter().map(|delivery| (since(delivery), delivery, None));
    Deliveries { duration, ..redacted_deliveries(&webhooks.names, endpoints, arrivals, redactor) }
}

/// Records the received requests, without keys and secrets.
fn redacted_deliveries<'a>(
    names: &WebhookNames,
    endpoints: &[Endpoint],
    arrivals: impl Iterator<Item = (Duration, &'a ReceivedRequest, Option<u16>)>,
    redactor: &Redactor,
) -> Deliveries {
    let secrets = endpoints.iter().filter_map(|endpoint| endpoint.secret.as_ref());
    let redaction = SecretRedaction::new(secrets);
    let mut deliveries = Deliveries {
        header_prefix: names.header_prefix.clone(),
        user_agent: names.user_agent.clone(),
        endpoints: endpoints.iter().map(Endpoint::without_secret).collect(),
        ..Deliveries::default()
    };
    for (arrived, received, response_status) in arrivals {
        let path = received.path.split('?').next().unwrap_or_default();
        let redirected = path == REDIRECT_PATH;
        if !redirected && !looks_like_delivery(received, names) {
            deliveries.other_requests = deliveries.other_requests.saturating_add(1);
            continue;
        }
        let endpoint = endpoint_of(endpoints, received);
        let clean = redaction.redact_request(received);
        deliveries.received.push(Delivery {
            number: deliveries.received.len() as u32 + 1,
            arrived,
            endpoint,
            redirected,
            method: redactor.redact(&clean.method),
            path: redactor.redact(&clean.path),
            headers: clean
                .headers
                .iter()
                .map(|(name, value)| (redactor.redact(name), without_keys(redactor, value)))
                .collect(),
            body: without_keys(redactor, &clean.body).into(),
            response_status,
            signature: match signature_status(received, &keyring(names, endpoints, endpoint)) {
                // The delivery may be signed with the secret of its endpoint, which is unknown.
                SignatureStatus::Unknown
                    if endpoint.is_none_or(|index| endpoints[index].secret.is_none()) =>
                {
                    SignatureStatus::NoSecret
                }
                signed => signed,
            },
        });
    }
    deliveries
}

/// Returns `true` if a request has a feature of a delivery. A public receiver gets other requests too.
fn looks_like_delivery(received: &ReceivedRequest, names: &WebhookNames) -> bool {
    let has_webhook_header = ["Event", "Delivery", "Signature"]
        .iter()
        .any(|header| !received.header_values(&names.header(header)).is_empty());
    let has_envelope = || {
        let body: Option<Value> = serde_json::from_slice(&received.body.0).ok();
        body.is_some_and(|body| body.get("event_id").is_some() && body.get("data").is_some())
    };
    has_webhook_header || received.header_text("User-Agent") == Some(&names.user_agent) || has_envelope()
}

/// Returns the secrets for a delivery to an endpoint: its own, and those of all other endpoints.
fn keyring(names: &WebhookNames, endpoints: &[Endpoint], own: Option<usize>) -> Keyring {
    let mut keyring = Keyring { names: names.clone(), ..Keyring::default() };
    let own_secret = own.and_then(|index| endpoints[index].secret.as_ref());
    for (index, endpoint) in endpoints.iter().enumerate() {
        let Some(secret) = &endpoint.secret else { continue };
        let named = (endpoint.path.clone(), secret.clone());
        // Endpoints may share a secret, so if the secret of this endpoint is unknown, it may be any.
        if own == Some(index) || own_secret.is_none_or(|known: &Secret| known == secret) {
            keyring.secrets.push(named);
        } else {
            keyring.other_endpoints.push(named);
        }
    }
    keyring
}

/// Redacts keys in bytes.
fn without_keys(redactor: &Redactor, bytes: &RawBytes) -> RawBytes {
    match std::str::from_utf8(&bytes.0) {
        Ok(text) => RawBytes(redactor.redact(text).into_bytes()),
        Err(_) => {
            let text = bytes.to_string_lossy();
            let clean = redactor.redact(&text);
            if clean == *text {
                return bytes.clone();
            }
            // Invalid UTF-8 must not become valid.
            RawBytes([clean.as_bytes(), &[0xff]].concat())
        }
    }
}

/// Reads the delivered events from the API.
async fn read_back(session: &mut Session<'_>) {
    if session.recording.find_last(|exchange| exchange.purpose == Purpose::AfterDeliveries).is_none() {
        read_new_events(session).await;
    }
    for mode in Mode::BOTH {
        for id in events_to_read(&session.recording, mode) {
            for (key, side) in [(mode, Side::Own), (mode.other(), Side::Foreign)] {
                let purpose = Purpose::DeliveredEvent { id: id.clone(), side };
                session.send(Caller::Own(key), purpose, &event_path(&id)).await;
            }
        }
    }
}

/// Returns the ids of the delivered events of a mode to request: unlisted ones first, then one of each type of which no single
/// event was read, because a service may render each type in its own way.
fn events_to_read(recording: &Recording, mode: Mode) -> Vec<String> {
    let listed = listed_events(recording, mode);
    let single = recording.exchanges.iter().filter(|exchange| requested_own_event(exchange).is_some());
    let single = single.filter(|exchange| exchange.status() == Some(200)).filter_map(single_event);
    let mut known_types: BTreeSet<_> =
        single.filter_map(|event| text_at(event, &["type"]).map(str::to_owned)).collect();
    let mut delivered: Vec<(u8, String)> = Vec::new();
    let received = recording.deliveries.iter().flat_map(|deliveries| &deliveries.received);
    for body in received.filter_map(|delivery| delivery.body.json()) {
        let Some(id) = text_at(body, &["event_id"]).filter(|id| !id.is_empty()) else { continue };
        if text_at(body, &["mode"]) != Some(mode.as_str()) || delivered.iter().any(|(_, known)| known == id) {
            continue;
        }
        let kind = text_at(body, &["event"]).unwrap_or_default();
        let rank = match listed.contains_key(id) {
            false => 0,
            true if known_types.insert(kind.to_owned()) => 1,
            true => 2,
        };
        delivered.push((rank, id.to_owned()));
    }
    // The sort is stable: events of one rank stay in the order of delivery.
    delivered.sort_by_key(|(rank, _)| *rank);
    delivered.into_iter().take(SINGLE_EVENTS_MAX).map(|(_, id)| id).collect()
}
