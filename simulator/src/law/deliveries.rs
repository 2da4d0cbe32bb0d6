//! Deliveries: who must get what and when, worked out again from what was recorded and from what endpoints were
//! set up, and compared with every post that left.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{id::Code, mode::Mode, outbox::Outcome, time::Timestamp};
use serde::Deserialize;
use uuid::Uuid;

use super::{
    Findings, Law, Shown,
    hmac::Keyed,
    object,
    schedule::{DELAYS, FAILED_IN_A_ROW, TRIES},
};
use crate::{
    model::{Model, Told},
    witness::{Call, Posted, Record, Seen, What, Whose},
};

#[derive(Deserialize)]
struct Added {
    endpoint: EndpointMade,
}

#[derive(Deserialize)]
struct EndpointMade {
    id: String,
    account: String,
    mode: String,
    events: BTreeSet<String>,
    status: String,
    #[serde(default)]
    secret: Option<String>,
}

#[derive(Deserialize)]
struct Tested {
    delivery: String,
}

struct Endpoint {
    /// Nothing if nobody knows the account.
    whose: Option<Whose>,
    events: BTreeSet<String>,
    is_on: bool,
    /// What its deliveries are signed with.
    secret: Option<Keyed>,
    failed_in_a_row: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting(Timestamp),
    Flying,
    Done,
    Failed,
    Canceled,
}

struct Delivery<'a> {
    endpoint: Code,
    /// The body of the first attempt, which every other must repeat.
    body: &'a [u8],
    kind: &'static str,
    state: State,
    tries: usize,
}

/// What was to be delivered: endpoint, type, subject and the moment of the event.
type Due = (Code, &'static str, Code, Timestamp);

struct Judge<'a> {
    findings: Findings,
    endpoints: BTreeMap<Code, Endpoint>,
    deliveries: BTreeMap<Uuid, Delivery<'a>>,
    /// How many deliveries of each kind have yet to begin.
    due: BTreeMap<Due, Vec<&'a Told>>,
    /// Events that are still to come, in order.
    coming: std::iter::Peekable<std::slice::Iter<'a, Told>>,
    tests: BTreeSet<Uuid>,
    /// The ids of events that an endpoint was sent.
    events: BTreeSet<(Code, String)>,
    /// What an event is about, by its id.
    subjects: BTreeMap<String, (String, &'static str)>,
}

/// Judges laws 2, 10, 11 and 17, as far as posts show them.
pub fn judge_deliveries<'a>(model: &'a Model<'_>, record: &'a Record, shown: &Shown) -> Findings {
    let mut judge = Judge {
        findings: Findings::default(),
        endpoints: BTreeMap::new(),
        deliveries: BTreeMap::new(),
        due: BTreeMap::new(),
        coming: model.told.iter().peekable(),
        tests: BTreeSet::new(),
        events: BTreeSet::new(),
        subjects: BTreeMap::new(),
    };
    for (number, Seen { at, what }) in record.seen.iter().enumerate() {
        judge.record_events(2 * number);
        match what {
            What::Call(call) => judge.act(*at, call, model),
            What::Post(posted) => judge.post(*at, posted, model),
            What::Landed { delivery, outcome } => judge.land(*at, *delivery, outcome),
            What::Restarted => judge.restart(*at),
            What::Told(_) => {}
        }
    }
    judge.compare_ids(shown);
    judge.finish()
}

impl<'a> Judge<'a> {
    /// Everything that was recorded up to a place is due at the endpoints that want it now.
    fn record_events(&mut self, place: usize) {
        while let Some(told) = self.coming.next_if(|told| told.place <= place) {
            let Some(subject) = Code::parse(&told.subject) else { continue };
            for (id, endpoint) in &self.endpoints {
                let wants = endpoint.is_on
                    && endpoint.whose == Some(told.whose())
                    && endpoint.events.contains(told.kind);
                if wants {
                    let due = (*id, told.kind, subject, told.at);
                    self.due.entry(due).or_default().push(told);
                }
            }
        }
    }

    fn act(&mut self, at: Timestamp, call: &Call, model: &Model<'_>) {
        if call.method == "GET" || call.status != 200 {
            return;
        }
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        match (call.method.as_str(), parts.as_slice()) {
            ("POST", ["sandbox", "endpoints"])
            | ("PATCH", ["sandbox", "endpoints", _])
            | ("POST", ["sandbox", "endpoints", _, "rotate"]) => {
                let Ok(Added { endpoint }) = serde_json::from_slice(&call.answer) else { return };
                let switches =
                    call.method == "PATCH" && call.body.windows(8).any(|part| part == b"\"status\"");
                self.set_endpoint(endpoint, switches, model);
            }
            ("DELETE", ["sandbox", "endpoints", id]) => {
                let Some(id) = Code::parse(id) else { return };
                if let Some(endpoint) = self.endpoints.get_mut(&id) {
                    endpoint.is_on = false;
                }
                self.cancel_waiting(id);
            }
            ("POST", ["sandbox", "endpoints", _, "test"]) => {
                if let Ok(Tested { delivery }) = serde_json::from_slice(&call.answer) {
                    self.tests.extend(Uuid::try_parse(&delivery));
                }
            }
            ("POST", ["sandbox", "deliveries", id, "resend"]) => {
                let delivery = Uuid::try_parse(id).ok().and_then(|id| self.deliveries.get_mut(&id));
                if let Some(delivery) = delivery {
                    (delivery.state, delivery.tries) = (State::Waiting(at), 0);
                }
            }
            _ => {}
        }
    }

    fn set_endpoint(&mut self, made: EndpointMade, switches: bool, model: &Model<'_>) {
        let Some(id) = Code::parse(&made.id) else { return };
        let is_on = made.status == "enabled";
        let known = self.endpoints.remove(&id);
        let before = known.as_ref().map_or(0, |known| known.failed_in_a_row);
        let told = made.secret.map(|secret| Keyed::new(secret.as_bytes()));
        let secret = told.or(known.and_then(|known| known.secret));
        // Switching on begins the count anew.
        let failed_in_a_row = if switches && is_on { 0 } else { before };
        if !is_on {
            self.cancel_waiting(id);
        }
        let whose = model.account(&made.account).zip(Mode::parse(&made.mode));
        self.endpoints.insert(id, Endpoint { whose, events: made.events, is_on, secret, failed_in_a_row });
    }

    fn cancel_waiting(&mut self, endpoint: Code) {
        for delivery in self.deliveries.values_mut().filter(|delivery| delivery.endpoint == endpoint) {
            if matches!(delivery.state, State::Waiting(_)) {
                delivery.state = State::Canceled;
            }
        }
    }

    fn restart(&mut self, at: Timestamp) {
        for delivery in self.deliveries.values_mut().filter(|delivery| delivery.state == State::Flying) {
            let is_on = self.endpoints.get(&delivery.endpoint).is_some_and(|endpoint| endpoint.is_on);
            delivery.state = if is_on { State::Waiting(at) } else { State::Canceled };
            delivery.tries -= 1;
        }
    }

    fn post(&mut self, at: Timestamp, posted: &'a Posted, model: &Model<'_>) {
        self.judge_envelope(at, posted);
        if !self.deliveries.contains_key(&posted.delivery) {
            let Some(read) = object::Envelope::read(&posted.body) else {
                self.findings.check(Law::Deliveries, Some(at), || {
                    Some(("a body is not the JSON it must be".to_owned(), posted.delivery.to_string()))
                });
                return;
            };
            self.begin(at, posted, &read, model);
        }
        let Some(delivery) = self.deliveries.get_mut(&posted.delivery) else { return };
        let expected = delivery.state;
        let same = delivery.body == posted.body && delivery.kind == posted.kind;
        let same_endpoint = delivery.endpoint == posted.endpoint;
        (delivery.state, delivery.tries) = (State::Flying, delivery.tries + 1);
        let tries = delivery.tries;
        self.findings.check(Law::Deliveries, Some(at), || {
            (expected != State::Waiting(at)).then(|| {
                let shape = match expected {
                    State::Waiting(due) if due < at => "an attempt comes later than its time",
                    State::Waiting(_) => "an attempt comes before its time",
                    State::Flying => "a delivery is posted while it is being posted",
                    State::Done => "a delivery is posted again after it arrived",
                    State::Failed => "a delivery is posted after its last attempt",
                    State::Canceled => "a delivery is posted though its endpoint was switched off",
                };
                (shape.to_owned(), format!("{} try {tries} at {at}, {expected:?}", posted.delivery))
            })
        });
        self.findings.check(Law::Once, Some(at), || {
            (!same).then(|| {
                ("an attempt carries another body than the first".to_owned(), posted.delivery.to_string())
            })
        });
        self.findings.check(Law::Deliveries, Some(at), || {
            (!same_endpoint)
                .then(|| ("a delivery goes to another endpoint".to_owned(), posted.delivery.to_string()))
        });
    }

    /// The first post of a delivery: it must be due, and carry its object as it was.
    fn begin(&mut self, at: Timestamp, posted: &'a Posted, read: &object::Envelope<'_>, model: &Model<'_>) {
        let delivery = Delivery {
            endpoint: posted.endpoint,
            body: &posted.body,
            kind: posted.kind,
            state: State::Waiting(at),
            tries: 0,
        };
        self.deliveries.insert(posted.delivery, delivery);
        if read.test {
            let asked = self.tests.contains(&posted.delivery);
            self.findings.check(Law::Deliveries, Some(at), || {
                (!asked || read.event_id.is_some()).then(|| {
                    ("a test delivery that nobody asked for".to_owned(), posted.delivery.to_string())
                })
            });
            return;
        }
        let subject = read.subject();
        let due = Code::parse(subject).map(|subject| (posted.endpoint, posted.kind, subject, at));
        let told = due
            .and_then(|due| self.due.get_mut(&due))
            .and_then(|all| (!all.is_empty()).then(|| all.remove(0)));
        self.findings.check(Law::Deliveries, Some(at), || {
            told.is_none().then(|| {
                let shape = match self.endpoints.get(&posted.endpoint) {
                    None => format!("{} goes to an endpoint that is not there", posted.kind),
                    Some(it) if it.whose.map(|(_, mode)| mode) != Some(posted.mode) => {
                        format!("{} goes to an endpoint of the other mode", posted.kind)
                    }
                    Some(it) if model.owner(subject).is_some_and(|owner| it.whose != Some(owner)) => {
                        format!("{} goes to an endpoint of another account", posted.kind)
                    }
                    Some(it) if !it.events.contains(posted.kind) => {
                        format!("{} goes to an endpoint that does not want it", posted.kind)
                    }
                    Some(it) if !it.is_on => format!("{} goes to an endpoint that is off", posted.kind),
                    Some(_) => format!("{} is delivered though nothing led to it now", posted.kind),
                };
                (shape, format!("{subject} at {at}"))
            })
        });
        self.judge_event_id(at, posted, read, subject);
        if let Some(told) = told {
            object::judge(&mut self.findings, told, read, model);
        }
    }

    /// One event has one id, over all endpoints.
    fn judge_event_id(&mut self, at: Timestamp, posted: &Posted, read: &object::Envelope<'_>, subject: &str) {
        let id = read.event_id.as_deref().unwrap_or_default().to_owned();
        let fresh = self.events.insert((posted.endpoint, id.clone()));
        self.findings.check(Law::Once, Some(at), || {
            (!fresh)
                .then(|| ("an event is delivered to an endpoint by two deliveries".to_owned(), id.clone()))
        });
        let known = self.subjects.entry(id.clone()).or_insert_with(|| (subject.to_owned(), posted.kind));
        let same = (known.0.as_str(), known.1) == (subject, posted.kind);
        self.findings.check(Law::Once, Some(at), || {
            (!same).then(|| ("two events share an id".to_owned(), id.clone()))
        });
    }

    fn judge_envelope(&mut self, at: Timestamp, posted: &Posted) {
        if posted.arrived.is_none() {
            return;
        }
        let secret = self.endpoints.get(&posted.endpoint).and_then(|endpoint| endpoint.secret.as_ref());
        let t = at.unix_secs().to_string();
        let shown = posted.signature.strip_prefix("t=").and_then(|rest| rest.split_once(",v1="));
        let is_signed = secret.zip(shown).is_some_and(|(secret, (time, digits))| {
            time == t && digits.as_bytes() == secret.hex(&[t.as_bytes(), b".", &posted.body])
        });
        self.findings.check(Law::Deliveries, Some(at), || {
            (!is_signed).then(|| {
                ("the signature is not that of the endpoint's secret".to_owned(), posted.delivery.to_string())
            })
        });
        let mut digits = Uuid::encode_buffer();
        let id = posted.delivery.hyphenated().encode_lower(&mut digits);
        let rest = posted.body.strip_prefix(b"{\"id\":\"").and_then(|body| body.strip_prefix(id.as_bytes()));
        let begins_with_it = rest.is_some_and(|rest| rest.starts_with(b"\","));
        self.findings.check(Law::Deliveries, Some(at), || {
            (!begins_with_it && object::Envelope::read(&posted.body).is_none_or(|read| read.id != *id)).then(
                || {
                    (
                        "the delivery's header is not the id in its body".to_owned(),
                        posted.delivery.to_string(),
                    )
                },
            )
        });
    }

    fn land(&mut self, at: Timestamp, id: Uuid, outcome: &Outcome) {
        let Some(delivery) = self.deliveries.get_mut(&id) else { return };
        if delivery.state != State::Flying {
            return;
        }
        let Some(endpoint) = self.endpoints.get_mut(&delivery.endpoint) else { return };
        if matches!(outcome, Outcome::Answered(200..=299)) {
            delivery.state = State::Done;
            endpoint.failed_in_a_row = 0;
            return;
        }
        if !endpoint.is_on {
            delivery.state = State::Canceled;
            return;
        }
        if delivery.tries < TRIES {
            let delay = DELAYS[(delivery.tries - 1).min(DELAYS.len() - 1)];
            delivery.state = State::Waiting(at.plus(delay));
            return;
        }
        delivery.state = State::Failed;
        endpoint.failed_in_a_row += 1;
        if endpoint.failed_in_a_row >= FAILED_IN_A_ROW {
            endpoint.is_on = false;
            let id = delivery.endpoint;
            self.cancel_waiting(id);
        }
    }

    /// What was delivered under an id is read under it through the API, if events were read at all.
    fn compare_ids(&mut self, shown: &Shown) {
        let events = shown.books.values().flat_map(|book| &book.events);
        let listed: BTreeMap<&str, (&str, &str)> =
            events.map(|event| (event.id.as_str(), (event.subject(), event.kind.as_str()))).collect();
        if listed.is_empty() {
            return;
        }
        for (id, (subject, kind)) in &self.subjects {
            let same = listed.get(id.as_str()) == Some(&(subject.as_str(), *kind));
            self.findings.check(Law::SameObject, None, || {
                (!same).then(|| {
                    (
                        "an event that was delivered is not in the list under its id".to_owned(),
                        format!("{kind} {id}"),
                    )
                })
            });
        }
    }

    fn finish(mut self) -> Findings {
        self.record_events(usize::MAX);
        for ((_, kind, subject, at), left) in &self.due {
            self.findings.check(Law::Deliveries, Some(*at), || {
                (!left.is_empty()).then(|| (format!("{kind} is not delivered"), format!("{subject} of {at}")))
            });
        }
        for (id, delivery) in &self.deliveries {
            self.findings.check(Law::Liveness, None, || match delivery.state {
                State::Waiting(at) => {
                    Some(("a delivery still waits at the end".to_owned(), format!("{id} for {at}")))
                }
                State::Flying => Some(("a delivery is never over".to_owned(), id.to_string())),
                State::Done | State::Failed | State::Canceled => None,
            });
        }
        self.findings
    }
}
