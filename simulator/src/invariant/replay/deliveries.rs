//! Checks of the webhook endpoints and deliveries of a recorded world: every recorded attempt must be an attempt of a
//! delivery that is due in the model, and every delivery of the model must be attempted.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use std::ops::Range;

use reference_core::{
    id::Code,
    time::{Span, Timestamp},
};
use serde::Deserialize;
use uuid::Uuid;

use super::{ModelReplay, request_fields::RequestFields};
use crate::{
    invariant::{ApiState, Findings, Invariant, compare_delivery, hmac::HmacKey},
    model::{Book, DeliveryState, EndpointStatus, Envelope, ObjectContext},
    record::{BookId, RecordedAttempt, RecordedCall, Signature},
    workload::Fault,
};

/// The time for which attempts stay in the delivery log.
const LOG_RETENTION: Span = Span::days(30);

/// The response of a request that creates or changes an endpoint.
#[derive(Deserialize)]
struct ChangedEndpointResponse {
    endpoint: EndpointFields,
}

/// The fields of an endpoint that no request determines.
#[derive(Deserialize)]
struct EndpointFields {
    id: String,
    #[serde(default)]
    secret: Option<String>,
}

/// The response of `POST /sandbox/endpoints/{id}/test`.
#[derive(Deserialize)]
struct CreatedTestResponse {
    delivery: String,
}

/// The first attempt of a delivery, which all others must repeat.
struct FirstAttempt<'a> {
    body: &'a [u8],
    kind: &'static str,
    endpoint: Code,
}

/// The endpoints and deliveries of the recorded world, and their counterparts in the model.
#[derive(Default)]
pub(super) struct DeliveryTracker<'a> {
    /// The endpoints by their ids, as numbers in their books.
    endpoints: BTreeMap<Code, (BookId, usize)>,
    /// The signing secrets of each book, in order of creation.
    secrets: BTreeMap<BookId, Vec<(String, HmacKey)>>,
    /// The numbers of processed events and deliveries of each book.
    processed: BTreeMap<BookId, (usize, usize)>,
    /// The deliveries without an attempt, as numbers in their books.
    unattempted: Vec<(BookId, usize)>,
    /// The deliveries by their ids, as numbers in their books.
    deliveries: BTreeMap<Uuid, (BookId, usize)>,
    /// The first attempts by delivery.
    first_attempts: BTreeMap<Uuid, FirstAttempt<'a>>,
    /// The delivered events, as pairs of endpoint and event id.
    delivered: BTreeSet<(Code, String)>,
    /// The object and the type of each delivered event, by its id.
    subjects: BTreeMap<String, (String, &'static str)>,
}

impl DeliveryTracker<'_> {
    /// Returns the events and deliveries that a book recorded since the last call, as ranges of numbers, and marks them
    /// as processed.
    pub(super) fn take_unprocessed(&mut self, id: BookId, book: &Book) -> (Range<usize>, Range<usize>) {
        let (events, deliveries) = self.processed.entry(id).or_default();
        let new = (*events..book.events.len(), *deliveries..book.deliveries.len());
        (*events, *deliveries) = (book.events.len(), book.deliveries.len());
        new
    }

    /// Adds deliveries that must be attempted.
    pub(super) fn expect_deliveries(&mut self, id: BookId, deliveries: Range<usize>) {
        self.unattempted.extend(deliveries.map(|number| (id, number)));
    }
}

impl<'a> ModelReplay<'a> {
    /// Applies a successful request that creates, changes or removes an endpoint, or rotates its secret.
    /// `path` is the part after `/sandbox/`.
    pub(super) fn replay_endpoint_change(
        &mut self,
        path: &[&str],
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let endpoint = |id: &str| Code::parse(id).and_then(|id| self.deliveries.endpoints.get(&id).copied());
        match (call.method.as_str(), path) {
            ("POST", ["endpoints"]) | ("PATCH", ["endpoints", _]) | ("POST", ["endpoints", _, "rotate"]) => {
                let Ok(ChangedEndpointResponse { endpoint }) = serde_json::from_slice(&call.response_body)
                else {
                    return;
                };
                self.set_endpoint(endpoint, call, fields);
            }
            ("DELETE", ["endpoints", id]) => {
                if let Some((id, number)) = endpoint(id) {
                    self.model
                        .account_and_book_mut(id)
                        .1
                        .set_endpoint_status(number, EndpointStatus::Removed);
                }
            }
            _ => {}
        }
    }

    /// Replays a test delivery to an endpoint.
    pub(super) fn replay_test_delivery(&mut self, now: Timestamp, endpoint: &str, call: &RecordedCall) {
        self.faults.record_world_fault(now, Fault::EndpointChange);
        let known = Code::parse(endpoint).and_then(|id| self.deliveries.endpoints.get(&id).copied());
        let Some((id, number)) = known else { return };
        let created = self.model.account_and_book_mut(id).1.send_test(now, number);
        let expected = created.err().unwrap_or(200);
        self.check_status(
            Invariant::Deliveries,
            now,
            ("a test delivery to", endpoint),
            expected,
            call.status,
        );
        let delivery =
            serde_json::from_slice(&call.response_body).map(|CreatedTestResponse { delivery }| delivery);
        if let (Ok(number), Some(delivery)) =
            (created, delivery.ok().and_then(|id| Uuid::try_parse(&id).ok()))
        {
            self.deliveries.deliveries.insert(delivery, (id, number));
        }
    }

    /// Replays a resend. A refused resend changes nothing.
    pub(super) fn replay_resend(&mut self, now: Timestamp, delivery: &str, call: &RecordedCall) {
        self.faults.record_world_fault(now, Fault::Resend);
        let known =
            Uuid::try_parse(delivery).ok().and_then(|id| self.deliveries.deliveries.get(&id).copied());
        let Some((id, number)) = known else { return };
        let book = self.model.account_and_book_mut(id).1;
        // The log may have dropped a delivery whose last attempt is older than the retention time.
        let is_dropped = call.status == 404
            && book.deliveries[number].last_ended_at.is_some_and(|ended| now.since(ended) >= LOG_RETENTION);
        if !is_dropped {
            let expected = book.resend(now, number).err().unwrap_or(200);
            self.check_status(Invariant::Deliveries, now, ("a resend of", delivery), expected, call.status);
        }
    }

    /// Adds an endpoint to the model, changes it, or rotates its secret.
    fn set_endpoint(&mut self, response: EndpointFields, call: &RecordedCall, fields: &RequestFields) {
        let Some(code) = Code::parse(&response.id) else { return };
        let known = self.deliveries.endpoints.get(&code).copied();
        let Some(id) = known.map(|(id, _)| id).or_else(|| self.named_book(fields)) else { return };
        let secret = response.secret.map(|secret| {
            let hmac_key = HmacKey::new(secret.as_bytes());
            (secret, hmac_key)
        });
        let book = self.model.account_and_book_mut(id).1;
        let host = fields.url.as_deref().and_then(host_of);
        match known {
            None => {
                let number = book.add_endpoint(host.unwrap_or_default(), fields.events.clone());
                self.deliveries.endpoints.insert(code, (id, number));
            }
            Some((_, number)) if call.method == "PATCH" => {
                let endpoint = &mut book.endpoints[number];
                endpoint.host = host.unwrap_or_else(|| std::mem::take(&mut endpoint.host));
                endpoint.types = fields.events.clone().or_else(|| endpoint.types.take());
                if let Some(status) = &fields.status {
                    let status =
                        if status == "enabled" { EndpointStatus::Enabled } else { EndpointStatus::Disabled };
                    book.set_endpoint_status(number, status);
                }
                return;
            }
            Some((_, number)) => book.rotate_secret(number),
        }
        self.deliveries.secrets.entry(id).or_default().extend(secret);
    }

    /// Checks an attempt: its signature, its body, its destination and its time.
    pub(super) fn check_attempt(&mut self, now: Timestamp, attempt: &'a RecordedAttempt) {
        self.check_signature(now, attempt);
        self.check_delivery_id(now, attempt);
        if let Entry::Vacant(entry) = self.deliveries.first_attempts.entry(attempt.delivery) {
            entry.insert(FirstAttempt {
                body: &attempt.body,
                kind: attempt.kind,
                endpoint: attempt.endpoint,
            });
            let Some(envelope) = Envelope::read(&attempt.body) else {
                self.findings.check(Invariant::Deliveries, Some(now), || {
                    Some(("a body is not valid JSON".to_owned(), attempt.delivery.to_string()))
                });
                return;
            };
            self.check_first_attempt(now, attempt, &envelope);
        }
        self.check_repetition(now, attempt);
        self.check_destination_and_time(now, attempt);
    }

    /// Checks that an attempt goes to a public address, and repeats the first attempt of its delivery.
    fn check_repetition(&mut self, now: Timestamp, attempt: &RecordedAttempt) {
        self.findings.check(Invariant::Deliveries, Some(now), || {
            let shape = "a delivery goes to a host with a private address";
            attempt.is_private.then(|| (shape.to_owned(), attempt.delivery.to_string()))
        });
        let first = &self.deliveries.first_attempts[&attempt.delivery];
        let is_same = first.body == attempt.body && first.kind == attempt.kind;
        let is_same_endpoint = first.endpoint == attempt.endpoint;
        self.findings.check(Invariant::Once, Some(now), || {
            (!is_same).then(|| {
                ("an attempt has another body than the first".to_owned(), attempt.delivery.to_string())
            })
        });
        self.findings.check(Invariant::Deliveries, Some(now), || {
            let shape = "an attempt goes to another endpoint than the first";
            (!is_same_endpoint).then(|| (shape.to_owned(), attempt.delivery.to_string()))
        });
    }

    /// Checks that an attempt goes to the host of its endpoint when the model's delivery is due. Starts the attempt in
    /// the model.
    fn check_destination_and_time(&mut self, now: Timestamp, attempt: &RecordedAttempt) {
        let Some((id, number)) = self.deliveries.deliveries.get(&attempt.delivery).copied() else { return };
        let book = self.model.account_and_book_mut(id).1;
        let host = &book.endpoints[book.deliveries[number].endpoint].host;
        self.findings.check(Invariant::Deliveries, Some(now), || {
            let shape = "a delivery goes to another host than the endpoint's";
            let details = || format!("{}: expected {host}, got {}", attempt.delivery, attempt.host);
            (*host != attempt.host).then(|| (shape.to_owned(), details()))
        });
        let state = book.deliveries[number].state;
        book.start_attempt(number);
        let attempt_number = book.deliveries[number].scheduled_attempts;
        self.findings.check(Invariant::Deliveries, Some(now), || {
            (state != DeliveryState::Waiting(now)).then(|| {
                let shape = match state {
                    DeliveryState::Waiting(due) if due < now => "an attempt is late",
                    DeliveryState::Waiting(_) => "an attempt is early",
                    DeliveryState::InFlight => "an attempt starts while another is in flight",
                    DeliveryState::Delivered => "an attempt follows a success",
                    DeliveryState::Failed => "an attempt follows the last one",
                    DeliveryState::Canceled => "an attempt follows the cancellation of the delivery",
                };
                (
                    shape.to_owned(),
                    format!("{} attempt {attempt_number} at {now}, {state:?}", attempt.delivery),
                )
            })
        });
    }

    /// Checks the first attempt of a delivery: it must be due, and contain the object at the time of its event.
    fn check_first_attempt(&mut self, now: Timestamp, attempt: &RecordedAttempt, envelope: &Envelope<'_>) {
        if envelope.test {
            let known = self.deliveries.deliveries.get(&attempt.delivery).copied();
            self.findings.check(Invariant::Deliveries, Some(now), || {
                let shape = "a test delivery that no request created, or with an event id";
                (known.is_none() || envelope.event_id.is_some())
                    .then(|| (shape.to_owned(), attempt.delivery.to_string()))
            });
            if let Some(known) = known {
                self.check_body(now, known, attempt, "a test");
            }
            return;
        }
        let subject = envelope.subject();
        let due = self.find_due_delivery(now, attempt, subject);
        let violation =
            due.is_none().then(|| (self.why_not_due(attempt, subject), format!("{subject} at {now}")));
        self.findings.check(Invariant::Deliveries, Some(now), || violation);
        self.check_event_id(now, attempt, envelope);
        if let Some(due) = due {
            self.deliveries.deliveries.insert(attempt.delivery, due);
            self.deliveries.unattempted.retain(|other| *other != due);
            self.check_body(now, due, attempt, subject);
        }
    }

    /// Checks the body of a delivery against the model; `about` names the delivery in reports.
    fn check_body(
        &mut self,
        now: Timestamp,
        (id, number): (BookId, usize),
        attempt: &RecordedAttempt,
        about: &str,
    ) {
        let context = ObjectContext { ids: &self.ids[&id], public_url: self.public_url, now };
        let book = self.model.book(id);
        let expected = book.envelope_json(context, &attempt.delivery.to_string(), number);
        compare_delivery(&mut self.findings, now, about, (&expected, &attempt.body));
    }

    /// Returns the delivery of the model that is due and that an attempt can be the first one of.
    fn find_due_delivery(
        &self,
        now: Timestamp,
        attempt: &RecordedAttempt,
        subject: &str,
    ) -> Option<(BookId, usize)> {
        let (id, endpoint) = self.deliveries.endpoints.get(&attempt.endpoint).copied()?;
        let book = self.model.book(id);
        let is_due = |number: usize| {
            let delivery = &book.deliveries[number];
            delivery.endpoint == endpoint
                && delivery.created_at == now
                && delivery.event.map(|number| &book.events[number]).is_some_and(|event| {
                    event.kind == attempt.kind && self.ids[&id].code(event.subject) == subject
                })
        };
        self.deliveries.unattempted.iter().copied().find(|(owner, number)| *owner == id && is_due(*number))
    }

    /// Returns the reason why no delivery of the model is due for a first attempt, as the shape of a violation.
    fn why_not_due(&self, attempt: &RecordedAttempt, subject: &str) -> String {
        let Some((id, endpoint)) = self.deliveries.endpoints.get(&attempt.endpoint).copied() else {
            return format!("{} goes to an unknown endpoint", attempt.kind);
        };
        let endpoint = &self.model.book(id).endpoints[endpoint];
        let owner = self.objects.get(subject).map(|(owner, _)| *owner);
        let reason = if id.1 != attempt.mode {
            "goes to an endpoint of the other mode"
        } else if owner.is_some_and(|owner| owner != id) {
            "goes to an endpoint of another account"
        } else if !endpoint.subscribes(attempt.kind) {
            "goes to an endpoint that is not registered for it"
        } else if endpoint.status != EndpointStatus::Enabled {
            "goes to an endpoint that is not enabled"
        } else {
            "is delivered although no such event is due"
        };
        format!("{} {reason}", attempt.kind)
    }

    /// Checks that an event id is delivered to each endpoint once, and always stands for the same event.
    fn check_event_id(&mut self, now: Timestamp, attempt: &RecordedAttempt, envelope: &Envelope<'_>) {
        let (id, subject) = (envelope.event_id.as_deref().unwrap_or_default().to_owned(), envelope.subject());
        let is_new = self.deliveries.delivered.insert((attempt.endpoint, id.clone()));
        self.findings.check(Invariant::Once, Some(now), || {
            (!is_new)
                .then(|| ("an event is delivered to an endpoint by two deliveries".to_owned(), id.clone()))
        });
        let known =
            self.deliveries.subjects.entry(id.clone()).or_insert_with(|| (subject.to_owned(), attempt.kind));
        let is_same = (known.0.as_str(), known.1) == (subject, attempt.kind);
        self.findings.check(Invariant::Once, Some(now), || {
            (!is_same).then(|| ("two events share an id".to_owned(), id.clone()))
        });
    }

    /// Checks the signature of an attempt that arrived.
    fn check_signature(&mut self, now: Timestamp, attempt: &RecordedAttempt) {
        if attempt.arrived_at.is_none() {
            return;
        }
        let secret = self.deliveries.endpoints.get(&attempt.endpoint).and_then(|(id, number)| {
            let secret = self.model.book(*id).endpoints[*number].secret;
            self.deliveries.secrets.get(id)?.get(secret)
        });
        let is_signed = secret.is_some_and(|(secret_text, hmac_key)| match &attempt.signature {
            Signature::Secret(secret) => secret.reveal() == secret_text,
            Signature::Header(header) => {
                let seconds = now.unix_secs().to_string();
                let parts = header.strip_prefix("t=").and_then(|rest| rest.split_once(",v1="));
                parts.is_some_and(|(time, digest)| {
                    let expected = hmac_key.hex(&[seconds.as_bytes(), b".", &attempt.body]);
                    time == seconds && digest.as_bytes() == expected
                })
            }
        });
        self.findings.check(Invariant::Deliveries, Some(now), || {
            (!is_signed).then(|| {
                (
                    "the signature is not that of the endpoint's secret".to_owned(),
                    attempt.delivery.to_string(),
                )
            })
        });
    }

    /// Checks that the delivery id in the headers of an attempt that arrived is the id in its body.
    fn check_delivery_id(&mut self, now: Timestamp, attempt: &RecordedAttempt) {
        if attempt.arrived_at.is_none() {
            return;
        }
        // Fast path: the id is usually the first field, so the body need not be parsed.
        let mut buffer = Uuid::encode_buffer();
        let id = attempt.delivery.hyphenated().encode_lower(&mut buffer);
        let rest = attempt.body.strip_prefix(b"{\"id\":\"").and_then(|body| body.strip_prefix(id.as_bytes()));
        let is_first_field = rest.is_some_and(|rest| rest.starts_with(b"\","));
        self.findings.check(Invariant::Deliveries, Some(now), || {
            let has_id =
                is_first_field || Envelope::read(&attempt.body).is_some_and(|envelope| envelope.id == *id);
            let shape = "the delivery id in the headers is not the id in the body";
            (!has_id).then(|| (shape.to_owned(), attempt.delivery.to_string()))
        });
    }

    /// Applies the result of an attempt to the model, unless a restart has ended the attempt.
    pub(super) fn apply_attempt_result(&mut self, now: Timestamp, delivery: Uuid, is_success: bool) {
        let Some((id, number)) = self.deliveries.deliveries.get(&delivery).copied() else { return };
        let book = self.model.account_and_book_mut(id).1;
        if book.deliveries[number].state == DeliveryState::InFlight {
            book.end_attempt(now, number, is_success);
        }
    }

    /// Returns a name for each delivery (`charge.paid of {code} to {endpoint}`), with its id.
    pub(crate) fn delivery_names(&self) -> impl Iterator<Item = (String, String)> {
        let endpoints: BTreeMap<(BookId, usize), Code> =
            self.deliveries.endpoints.iter().map(|(code, endpoint)| (*endpoint, *code)).collect();
        self.deliveries.deliveries.iter().map(move |(uuid, (id, number))| {
            let book = self.model.book(*id);
            let delivery = &book.deliveries[*number];
            let subject = delivery.event.map_or_else(
                || "a test".to_owned(),
                |number| {
                    format!(
                        "{} of {}",
                        book.events[number].kind,
                        self.ids[id].code(book.events[number].subject)
                    )
                },
            );
            let endpoint = endpoints.get(&(*id, delivery.endpoint)).map(Code::to_string).unwrap_or_default();
            (format!("{subject} to {endpoint}"), uuid.to_string())
        })
    }

    /// Checks that the API shows each delivered event under its id, if events were read.
    pub(crate) fn compare_event_ids(&self, api_state: &ApiState) -> Findings {
        let mut findings = Findings::default();
        let events = api_state.books.values().flat_map(|book| &book.events);
        let listed: BTreeMap<&str, (&str, &str)> =
            events.map(|event| (event.id.as_str(), (event.subject(), event.kind.as_str()))).collect();
        if listed.is_empty() {
            return findings;
        }
        for (id, (subject, kind)) in &self.deliveries.subjects {
            let is_listed = listed.get(id.as_str()) == Some(&(subject.as_str(), *kind));
            findings.check(Invariant::SameObject, None, || {
                let shape = "a delivered event is missing from the list under its id";
                (!is_listed).then(|| (shape.to_owned(), format!("{kind} {id}")))
            });
        }
        findings
    }

    /// Checks that every delivery was attempted, and that none is waiting or in flight at the end.
    pub(super) fn check_remaining_deliveries(&mut self) {
        for (id, number) in std::mem::take(&mut self.deliveries.unattempted) {
            let book = self.model.book(id);
            let delivery = &book.deliveries[number];
            let Some(event) = delivery.event.map(|number| &book.events[number]) else { continue };
            self.findings.check(Invariant::Deliveries, Some(delivery.created_at), || {
                matches!(delivery.state, DeliveryState::Waiting(_)).then(|| {
                    let subject = self.ids[&id].code(event.subject);
                    (format!("{} is not delivered", event.kind), format!("{subject} of {}", event.at))
                })
            });
        }
        for (uuid, (id, number)) in &self.deliveries.deliveries {
            let state = self.model.book(*id).deliveries[*number].state;
            self.findings.check(Invariant::Liveness, None, || match state {
                DeliveryState::Waiting(due) => {
                    Some(("a delivery is still waiting at the end".to_owned(), format!("{uuid} for {due}")))
                }
                DeliveryState::InFlight => {
                    Some(("a delivery is in flight at the end".to_owned(), uuid.to_string()))
                }
                DeliveryState::Delivered | DeliveryState::Failed | DeliveryState::Canceled => None,
            });
        }
    }
}

/// Returns the host of an endpoint's URL, in lower case; `None` if the URL does not begin with `https://`.
fn host_of(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?;
    rest.split(['/', '?', ':']).next().map(str::to_ascii_lowercase)
}
