//! Checks of endpoints and posts of a recorded world: every post must be an attempt of a delivery that is due in the
//! model, and every delivery of the model must be posted.

use std::collections::{BTreeMap, BTreeSet};
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
    record::{BookId, RecordedCall, RecordedPost, Signature},
    workload::Fault,
};

/// The time for which attempts stay in the delivery log.
const LOG_KEPT: Span = Span::days(30);

#[derive(Deserialize)]
struct EndpointChanged {
    endpoint: EndpointMade,
}

/// The parts of an endpoint that no request determines.
#[derive(Deserialize)]
struct EndpointMade {
    id: String,
    #[serde(default)]
    secret: Option<String>,
}

#[derive(Deserialize)]
struct TestSent {
    delivery: String,
}

/// The first attempt of a delivery, which all others must repeat.
struct FirstPost<'a> {
    body: &'a [u8],
    kind: &'static str,
    endpoint: Code,
}

/// The known endpoints and posts.
#[derive(Default)]
pub(super) struct Posts<'a> {
    /// Endpoints by their ids.
    endpoints: BTreeMap<Code, (BookId, usize)>,
    secrets: BTreeMap<BookId, Vec<(String, HmacKey)>>,
    /// The numbers of processed events and deliveries of each book.
    processed: BTreeMap<BookId, (usize, usize)>,
    /// Deliveries that were not posted yet.
    unposted: Vec<(BookId, usize)>,
    /// Deliveries by their ids.
    deliveries: BTreeMap<Uuid, (BookId, usize)>,
    first: BTreeMap<Uuid, FirstPost<'a>>,
    /// The events sent to each endpoint.
    sent: BTreeSet<(Code, String)>,
    /// The object of each event, by its id.
    subjects: BTreeMap<String, (String, &'static str)>,
}

impl Posts<'_> {
    /// Takes the events and deliveries that a book recorded since the last call, as ranges of numbers.
    pub(super) fn take_new(&mut self, id: BookId, book: &Book) -> (Range<usize>, Range<usize>) {
        let noted = self.processed.entry(id).or_default();
        let news = (noted.0..book.events.len(), noted.1..book.deliveries.len());
        *noted = (book.events.len(), book.deliveries.len());
        news
    }

    /// Adds deliveries that must be posted.
    pub(super) fn expect(&mut self, id: BookId, deliveries: Range<usize>) {
        self.unposted.extend(deliveries.map(|no| (id, no)));
    }
}

impl<'a> ModelReplay<'a> {
    /// Applies a successful call on endpoints or deliveries. `path` is the part after `/sandbox/`.
    pub(super) fn call_about_deliveries(
        &mut self,
        path: &[&str],
        call: &RecordedCall,
        fields: &RequestFields,
    ) {
        let endpoint = |id: &str| Code::parse(id).and_then(|id| self.posts.endpoints.get(&id).copied());
        match (call.method.as_str(), path) {
            ("POST", ["endpoints"]) | ("PATCH", ["endpoints", _]) | ("POST", ["endpoints", _, "rotate"]) => {
                let Ok(EndpointChanged { endpoint }) = serde_json::from_slice(&call.answer) else { return };
                self.set_endpoint(endpoint, call, fields);
            }
            ("DELETE", ["endpoints", id]) => {
                if let Some((id, no)) = endpoint(id) {
                    self.model.account_and_book_mut(id).1.switch_endpoint(no, EndpointStatus::Removed);
                }
            }
            _ => {}
        }
    }

    /// Repeats a test of an endpoint in the model.
    pub(super) fn send_test(&mut self, at: Timestamp, endpoint: &str, call: &RecordedCall) {
        self.faults.strike_everywhere(at, Fault::EndpointChange);
        let known = Code::parse(endpoint).and_then(|id| self.posts.endpoints.get(&id).copied());
        let Some((id, no)) = known else { return };
        let sent = self.model.account_and_book_mut(id).1.send_test(at, no);
        let expected = sent.err().unwrap_or(200);
        self.check_status(Invariant::Deliveries, at, ("a test", endpoint), expected, call.status);
        let delivery = serde_json::from_slice(&call.answer).map(|TestSent { delivery }| delivery);
        if let (Ok(no), Some(delivery)) = (sent, delivery.ok().and_then(|id| Uuid::try_parse(&id).ok())) {
            self.posts.deliveries.insert(delivery, (id, no));
        }
    }

    /// Repeats a resend in the model. A refused resend changes nothing.
    pub(super) fn resend(&mut self, at: Timestamp, delivery: &str, call: &RecordedCall) {
        self.faults.strike_everywhere(at, Fault::Resend);
        let known = Uuid::try_parse(delivery).ok().and_then(|id| self.posts.deliveries.get(&id).copied());
        let Some((id, no)) = known else { return };
        let book = self.model.account_and_book_mut(id).1;
        // The log may have dropped a delivery of which the last attempt is that old.
        let is_dropped =
            call.status == 404 && book.deliveries[no].ended.is_some_and(|ended| at.since(ended) >= LOG_KEPT);
        if !is_dropped {
            let expected = book.resend(at, no).err().unwrap_or(200);
            let about = format!("of {delivery}");
            self.check_status(Invariant::Deliveries, at, ("a resend", &about), expected, call.status);
        }
    }

    fn set_endpoint(&mut self, made: EndpointMade, call: &RecordedCall, fields: &RequestFields) {
        let Some(code) = Code::parse(&made.id) else { return };
        let known = self.posts.endpoints.get(&code).copied();
        let Some(id) = known.map(|(id, _)| id).or_else(|| self.named_book(fields)) else { return };
        let secret = made.secret.map(|secret| {
            let keyed = HmacKey::new(secret.as_bytes());
            (secret, keyed)
        });
        let book = self.model.account_and_book_mut(id).1;
        let host = fields.url.as_deref().and_then(host_of);
        match known {
            None => {
                let no = book.add_endpoint(host.unwrap_or_default(), fields.events.clone());
                self.posts.endpoints.insert(code, (id, no));
            }
            Some((_, no)) if call.method == "PATCH" => {
                let endpoint = &mut book.endpoints[no];
                endpoint.host = host.unwrap_or_else(|| std::mem::take(&mut endpoint.host));
                endpoint.types = fields.events.clone().or_else(|| endpoint.types.take());
                if let Some(status) = &fields.status {
                    let switch =
                        if status == "enabled" { EndpointStatus::Enabled } else { EndpointStatus::Disabled };
                    book.switch_endpoint(no, switch);
                }
                return;
            }
            Some((_, no)) => book.rotate(no),
        }
        self.posts.secrets.entry(id).or_default().extend(secret);
    }

    /// Checks a post.
    pub(super) fn post(&mut self, at: Timestamp, post: &'a RecordedPost) {
        self.judge_signature(at, post);
        let is_first = !self.posts.first.contains_key(&post.delivery);
        if is_first {
            let first = FirstPost { body: &post.body, kind: post.kind, endpoint: post.endpoint };
            self.posts.first.insert(post.delivery, first);
            let Some(read) = Envelope::read(&post.body) else {
                self.findings.check(Invariant::Deliveries, Some(at), || {
                    Some(("a body is not valid JSON".to_owned(), post.delivery.to_string()))
                });
                return;
            };
            self.begin_delivery(at, post, &read);
        }
        self.findings.check(Invariant::Deliveries, Some(at), || {
            let shape = "a delivery goes to a host with a private address";
            post.is_private.then(|| (shape.to_owned(), post.delivery.to_string()))
        });
        let first = &self.posts.first[&post.delivery];
        let same = first.body == post.body && first.kind == post.kind;
        let same_endpoint = first.endpoint == post.endpoint;
        self.findings.check(Invariant::Once, Some(at), || {
            (!same).then(|| {
                ("an attempt carries another body than the first".to_owned(), post.delivery.to_string())
            })
        });
        self.findings.check(Invariant::Deliveries, Some(at), || {
            (!same_endpoint)
                .then(|| ("a delivery goes to another endpoint".to_owned(), post.delivery.to_string()))
        });
        let Some((id, no)) = self.posts.deliveries.get(&post.delivery).copied() else { return };
        let book = self.model.account_and_book_mut(id).1;
        let host = &book.endpoints[book.deliveries[no].endpoint].host;
        self.findings.check(Invariant::Deliveries, Some(at), || {
            let shape = "a delivery goes to another host than the endpoint's";
            let detail = || format!("{}: expected {host}, got {}", post.delivery, post.host);
            (*host != post.host).then(|| (shape.to_owned(), detail()))
        });
        let state = book.deliveries[no].state;
        book.post(no);
        let tries = book.deliveries[no].tries;
        self.findings.check(Invariant::Deliveries, Some(at), || {
            (state != DeliveryState::Waiting(at)).then(|| {
                let shape = match state {
                    DeliveryState::Waiting(due) if due < at => "an attempt is late",
                    DeliveryState::Waiting(_) => "an attempt is early",
                    DeliveryState::InFlight => "a delivery is posted while an attempt is in flight",
                    DeliveryState::Delivered => "a delivery is posted again after a success",
                    DeliveryState::Failed => "a delivery is posted after its last attempt",
                    DeliveryState::Canceled => "a delivery is posted after it was canceled",
                };
                (shape.to_owned(), format!("{} try {tries} at {at}, {state:?}", post.delivery))
            })
        });
    }

    /// Checks the first post of a delivery: it must be due, and contain the object at the time of its event.
    fn begin_delivery(&mut self, at: Timestamp, post: &RecordedPost, read: &Envelope<'_>) {
        if read.test {
            let fields = self.posts.deliveries.contains_key(&post.delivery);
            self.findings.check(Invariant::Deliveries, Some(at), || {
                (!fields || read.event_id.is_some())
                    .then(|| ("a test delivery without a request".to_owned(), post.delivery.to_string()))
            });
            if let Some(known) = self.posts.deliveries.get(&post.delivery).copied() {
                self.judge_body(at, known, post, "a test");
            }
            return;
        }
        let due = self.find_due_delivery(at, post, read.subject());
        let about = read.subject();
        let why = due.is_none().then(|| (self.why_not_due(post, about), format!("{about} at {at}")));
        self.findings.check(Invariant::Deliveries, Some(at), || why);
        self.judge_event_id(at, post, read);
        if let Some((id, no)) = due {
            self.posts.deliveries.insert(post.delivery, (id, no));
            self.posts.unposted.retain(|fresh| *fresh != (id, no));
            self.judge_body(at, (id, no), post, about);
        }
    }

    fn judge_body(&mut self, at: Timestamp, (id, no): (BookId, usize), post: &RecordedPost, about: &str) {
        let context = ObjectContext { ids: &self.ids[&id], public_url: self.public_url, now: at };
        let book = self.model.book(id);
        let expected = book.envelope_json(context, &post.delivery.to_string(), no);
        compare_delivery(&mut self.findings, at, about, (&expected, &post.body));
    }

    /// Returns the delivery of which a post can be the first attempt.
    fn find_due_delivery(
        &self,
        at: Timestamp,
        post: &RecordedPost,
        subject: &str,
    ) -> Option<(BookId, usize)> {
        let (id, endpoint) = self.posts.endpoints.get(&post.endpoint).copied()?;
        let book = self.model.book(id);
        let is_it = |no: usize| {
            let delivery = &book.deliveries[no];
            delivery.endpoint == endpoint
                && delivery.opened == at
                && delivery.event.map(|no| &book.events[no]).is_some_and(|event| {
                    event.kind == post.kind && self.ids[&id].code(event.subject) == subject
                })
        };
        self.posts.unposted.iter().copied().find(|(of, no)| *of == id && is_it(*no))
    }

    fn why_not_due(&self, post: &RecordedPost, subject: &str) -> String {
        let Some((id, endpoint)) = self.posts.endpoints.get(&post.endpoint).copied() else {
            return format!("{} goes to an unknown endpoint", post.kind);
        };
        let endpoint = &self.model.book(id).endpoints[endpoint];
        let owner = self.objects.get(subject).map(|(owner, _)| *owner);
        let why = if id.1 != post.mode {
            "goes to an endpoint of the other mode"
        } else if owner.is_some_and(|owner| owner != id) {
            "goes to an endpoint of another account"
        } else if !endpoint.subscribes(post.kind) {
            "goes to an endpoint that is not registered for it"
        } else if endpoint.status != EndpointStatus::Enabled {
            "goes to an endpoint that is not enabled"
        } else {
            "is delivered without a cause"
        };
        format!("{} {why}", post.kind)
    }

    /// Checks that an event has the same id for all endpoints.
    fn judge_event_id(&mut self, at: Timestamp, post: &RecordedPost, read: &Envelope<'_>) {
        let (id, subject) = (read.event_id.as_deref().unwrap_or_default().to_owned(), read.subject());
        let fresh = self.posts.sent.insert((post.endpoint, id.clone()));
        self.findings.check(Invariant::Once, Some(at), || {
            (!fresh)
                .then(|| ("an event is delivered to an endpoint by two deliveries".to_owned(), id.clone()))
        });
        let known = self.posts.subjects.entry(id.clone()).or_insert_with(|| (subject.to_owned(), post.kind));
        let same = (known.0.as_str(), known.1) == (subject, post.kind);
        self.findings.check(Invariant::Once, Some(at), || {
            (!same).then(|| ("two events share an id".to_owned(), id.clone()))
        });
    }

    fn judge_signature(&mut self, at: Timestamp, post: &RecordedPost) {
        if post.arrived.is_none() {
            return;
        }
        let secret = self.posts.endpoints.get(&post.endpoint).and_then(|(id, no)| {
            let secret = self.model.book(*id).endpoints[*no].secret;
            self.posts.secrets.get(id)?.get(secret)
        });
        let is_signed = secret.is_some_and(|(text, keyed)| match &post.signature {
            Signature::Secret(secret) => secret.reveal() == text,
            Signature::Header(header) => {
                let t = at.unix_secs().to_string();
                let shown = header.strip_prefix("t=").and_then(|rest| rest.split_once(",v1="));
                shown.is_some_and(|(time, digits)| {
                    time == t && digits.as_bytes() == keyed.hex(&[t.as_bytes(), b".", &post.body])
                })
            }
        });
        self.findings.check(Invariant::Deliveries, Some(at), || {
            (!is_signed).then(|| {
                ("the signature is not that of the endpoint's secret".to_owned(), post.delivery.to_string())
            })
        });
        let mut digits = Uuid::encode_buffer();
        let id = post.delivery.hyphenated().encode_lower(&mut digits);
        let rest = post.body.strip_prefix(b"{\"id\":\"").and_then(|body| body.strip_prefix(id.as_bytes()));
        let begins_with_it = rest.is_some_and(|rest| rest.starts_with(b"\","));
        self.findings.check(Invariant::Deliveries, Some(at), || {
            let is_in_body = begins_with_it || Envelope::read(&post.body).is_some_and(|read| read.id == *id);
            (!is_in_body).then(|| {
                ("the delivery's header is not the id in its body".to_owned(), post.delivery.to_string())
            })
        });
    }

    /// Applies the result of an attempt.
    pub(super) fn apply_attempt_result(&mut self, at: Timestamp, delivery: Uuid, is_success: bool) {
        let Some((id, no)) = self.posts.deliveries.get(&delivery).copied() else { return };
        let book = self.model.account_and_book_mut(id).1;
        if book.deliveries[no].state == DeliveryState::InFlight {
            book.end_attempt(at, no, is_success);
        }
    }

    /// Returns the names of the known deliveries by event, object and endpoint, with their ids.
    pub(crate) fn delivery_names(&self) -> impl Iterator<Item = (String, String)> {
        let endpoints: BTreeMap<(BookId, usize), Code> =
            self.posts.endpoints.iter().map(|(code, endpoint)| (*endpoint, *code)).collect();
        self.posts.deliveries.iter().map(move |(uuid, (id, no))| {
            let book = self.model.book(*id);
            let delivery = &book.deliveries[*no];
            let subject = delivery.event.map_or_else(
                || "a test".to_owned(),
                |no| format!("{} of {}", book.events[no].kind, self.ids[id].code(book.events[no].subject)),
            );
            let endpoint = endpoints.get(&(*id, delivery.endpoint)).map(Code::to_string).unwrap_or_default();
            (format!("{subject} to {endpoint}"), uuid.to_string())
        })
    }

    /// Checks that the API shows each delivered event under its id, if events were read.
    pub(crate) fn compare_event_ids(&self, shown: &ApiState) -> Findings {
        let mut findings = Findings::default();
        let events = shown.books.values().flat_map(|book| &book.events);
        let listed: BTreeMap<&str, (&str, &str)> =
            events.map(|event| (event.id.as_str(), (event.subject(), event.kind.as_str()))).collect();
        if listed.is_empty() {
            return findings;
        }
        for (id, (subject, kind)) in &self.posts.subjects {
            let same = listed.get(id.as_str()) == Some(&(subject.as_str(), *kind));
            findings.check(Invariant::SameObject, None, || {
                let shape = "a delivered event is missing in the list under its id";
                (!same).then(|| (shape.to_owned(), format!("{kind} {id}")))
            });
        }
        findings
    }

    /// Checks that no delivery is left.
    pub(super) fn finish_posts(&mut self) {
        for (id, no) in std::mem::take(&mut self.posts.unposted) {
            let book = self.model.book(id);
            let delivery = &book.deliveries[no];
            let Some(event) = delivery.event.map(|no| &book.events[no]) else { continue };
            self.findings.check(Invariant::Deliveries, Some(delivery.opened), || {
                matches!(delivery.state, DeliveryState::Waiting(_)).then(|| {
                    let subject = self.ids[&id].code(event.subject);
                    (format!("{} is not delivered", event.kind), format!("{subject} of {}", event.at))
                })
            });
        }
        for (uuid, (id, no)) in &self.posts.deliveries {
            let state = self.model.book(*id).deliveries[*no].state;
            self.findings.check(Invariant::Liveness, None, || match state {
                DeliveryState::Waiting(at) => {
                    Some(("a delivery is still waiting at the end".to_owned(), format!("{uuid} for {at}")))
                }
                DeliveryState::InFlight => Some(("a delivery never ends".to_owned(), uuid.to_string())),
                DeliveryState::Delivered | DeliveryState::Failed | DeliveryState::Canceled => None,
            });
        }
    }
}

/// Returns the host of an endpoint's URL.
fn host_of(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?;
    rest.split(['/', '?', ':']).next().map(str::to_ascii_lowercase)
}
