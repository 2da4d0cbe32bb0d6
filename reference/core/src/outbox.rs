//! The outbox: every delivery of one book, from fan-out to its last attempt.
//!
//! When the book records an event, it opens one delivery for each enabled endpoint that subscribes to the event's
//! type. The [`Payload`] is frozen at that moment: all attempts of a delivery send the same object under the same
//! id, and only the signature and its time differ. A receiver can therefore deduplicate by id, whatever happens to
//! the object meanwhile.
//!
//! A delivery is in one of five states ([`DeliveryState`]). `Waiting` has the time at which the next attempt is
//! due; a set ordered by that time makes the next one cheap to find. `take_due` returns one and moves it to
//! `InFlight`, in which it stays until the host reports the result, exactly once. A response of 2xx leads to
//! `Delivered`. Everything else (another status, a redirect, no connection, no response in time, a private address)
//! is a failed attempt and leads to `Waiting` again, later by the next of `RETRY_DELAYS`, or after `ATTEMPTS_MAX`
//! attempts to `Failed`. An endpoint with 15 failed deliveries in a row, without a success between them, is disabled,
//! and its waiting deliveries become `Canceled`. The specification leaves the schedule open (`open.delivery.retry`).
//!
//! A resend is one extra attempt outside the schedule. It does not count towards `ATTEMPTS_MAX`, and if it fails, the
//! delivery returns to the state that it had before. After a restart, the service does not know how an attempt in
//! flight ended, so the delivery is due again under its id and the lost attempt is not counted: a receiver may get the
//! event twice, but never misses it.
//!
//! Deliveries that ended stay in the log for 30 days. The log is in order of creation and ids increase with creation,
//! so a look-up by id is a binary search, and old entries are removed from its front only.
//!
//! Example: an endpoint responds with 500 twice and then with 200.
//!
//! ```text
//! 09:00:00  open             Waiting(09:00:00)
//! 09:00:00  take_due         InFlight
//! 09:00:02  result 500       Waiting(09:01:02)   1 minute after the end of the attempt
//! 09:01:02  take_due, 500    Waiting(09:06:02)   5 minutes
//! 09:06:02  take_due, 200    Delivered           the endpoint's count of failures is 0 again
//! ```
//!
//! Must not contain: a socket, a clock, JSON or the signature's code. `now` is an argument, and the host gets the attempts
//! to make from `Service::poll_delivery`.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    asset::Asset,
    charge::{Charge, ChargeStatus},
    endpoint::{Endpoint, EndpointStatus, FAILED_IN_A_ROW_MAX, Secret, address_rule::EndpointUrl},
    event::EventType,
    id::{Code, DeliveryNo, EndpointNo, EventNo},
    invoice::Invoice,
    time::{Span, Timestamp},
};

/// Delays from the end of a failed attempt to the next one (`open.delivery.retry`). The
/// specification leaves the schedule open. The last delay repeats.
const RETRY_DELAYS: [Span; 8] = [
    Span::mins(1),
    Span::mins(5),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(4),
    Span::hours(8),
    Span::hours(10),
];
/// The number of attempts after which a delivery has failed.
pub const ATTEMPTS_MAX: u32 = 14;
/// The time that an ended delivery stays in the log after its last attempt, or after its creation if it had none.
const LOGGED_FOR: Span = Span::days(30);

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptResult {
    /// The receiver responded with this status. Only 2xx is success; redirects are not followed.
    Response(u16),
    /// No connection, or the connection broke. Contains the reason.
    Unreachable(String),
    /// No response in time.
    TimedOut,
    /// The address was not public, so nothing was sent. Contains the reason.
    NotPublic(String),
}

impl AttemptResult {
    /// Returns `true` if the receiver accepted the delivery.
    pub const fn is_success(&self) -> bool {
        matches!(self, AttemptResult::Response(200..=299))
    }
}

/// The request and response of an attempt, for the delivery log. The host limits its size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HttpTrace {
    /// The peer address of the connection.
    pub address: Option<String>,
    /// The request headers.
    pub request_headers: SentHeaders,
    /// Header names and values of the response.
    pub response_headers: Vec<(String, String)>,
    /// The beginning of the response body.
    pub response_body: String,
    /// A note for the owner, for example that the attempt was forwarded to a local address.
    pub note: Option<String>,
    /// The duration in real time, independent of the service clock.
    pub took_ms: Option<u64>,
}

/// The headers of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SentHeaders {
    /// Names and values as they were sent.
    Stored(Vec<(String, String)>),
    /// The inputs from which the headers are computed when the log is read.
    Derived {
        /// The URL of the endpoint.
        #[serde(with = "crate::shared")]
        url: Arc<EndpointUrl>,
        /// The signing secret.
        secret: Secret,
    },
}

impl Default for SentHeaders {
    fn default() -> Self {
        SentHeaders::Stored(Vec::new())
    }
}

/// The result of an attempt, with its request and response if the host recorded them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptReport {
    /// The result.
    pub result: AttemptResult,
    /// The request and response.
    pub trace: Option<Box<HttpTrace>>,
}

impl From<AttemptResult> for AttemptReport {
    fn from(result: AttemptResult) -> AttemptReport {
        AttemptReport { result, trace: None }
    }
}

/// One attempt to send a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// The start time.
    pub started_at: Timestamp,
    /// The end time.
    pub ended_at: Timestamp,
    /// The result.
    pub result: AttemptResult,
    /// The request and response, if they were recorded.
    pub trace: Option<Box<HttpTrace>>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryState {
    /// The next attempt is due at this time.
    Waiting(Timestamp),
    /// An attempt started at this time and has no result yet.
    InFlight(Timestamp),
    /// The receiver accepted it.
    Delivered,
    /// It used up its attempts.
    Failed,
    /// Its endpoint was disabled or removed.
    Canceled,
}

impl DeliveryState {
    /// The names in API responses, in the order of the variants.
    pub const NAMES: [&str; 5] = ["waiting", "in_flight", "delivered", "failed", "canceled"];

    /// Returns the name in API responses.
    pub const fn as_str(self) -> &'static str {
        DeliveryState::NAMES[match self {
            DeliveryState::Waiting(_) => 0,
            DeliveryState::InFlight(_) => 1,
            DeliveryState::Delivered => 2,
            DeliveryState::Failed => 3,
            DeliveryState::Canceled => 4,
        }]
    }
}

/// The object of a delivery, as it was at fan-out. Attempts differ only in time and signature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Snapshot {
    /// A charge.
    Charge(#[serde(with = "crate::shared")] Arc<Charge>),
    /// An invoice.
    Invoice(#[serde(with = "crate::shared")] Arc<InvoiceSnapshot>),
}

/// An invoice at a point in time, with a summary of its charges.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvoiceSnapshot {
    /// The invoice.
    pub invoice: Invoice,
    /// Code, status and coin of each of its charges, in order.
    pub charges: Vec<(Code, ChargeStatus, Asset)>,
}

/// The content of a delivery. Frozen at fan-out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Payload {
    /// The event; `None` for a test delivery.
    pub event: Option<(EventNo, Uuid)>,
    /// The type of the event.
    pub kind: EventType,
    /// The time of the event.
    pub created_at: Timestamp,
    /// The charge or the invoice, shared by all deliveries of the event.
    pub snapshot: Snapshot,
}

/// One delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The delivery id in the header and the body, the same for all retries and resends.
    pub id: Uuid,
    /// The receiving endpoint.
    pub endpoint: EndpointNo,
    /// The content.
    pub payload: Payload,
    /// The state.
    pub state: DeliveryState,
    /// The attempts so far.
    pub attempts: Vec<Attempt>,
    /// The number of attempts so far, without resends and interrupted ones.
    scheduled_attempts: u32,
}

/// Returns the state of a delivery whose endpoint was disabled: canceled, unless it had ended before a resend.
fn state_without_endpoint(before_resend: Option<DeliveryState>) -> DeliveryState {
    match before_resend {
        Some(ended @ (DeliveryState::Delivered | DeliveryState::Failed)) => ended,
        _ => DeliveryState::Canceled,
    }
}

/// The deliveries of one book.
#[derive(Default, Serialize, Deserialize)]
pub struct Outbox {
    /// Deliveries in order of their numbers.
    log: VecDeque<Delivery>,
    /// The number of deliveries that were dropped from the front of the log, which is the number of its first one.
    dropped: u32,
    /// The due times of waiting deliveries.
    due: BTreeSet<(Timestamp, DeliveryNo)>,
    /// Resends that wait or are in flight, with the state to restore if the attempt fails.
    resends: BTreeMap<DeliveryNo, DeliveryState>,
}

impl Outbox {
    /// Opens a delivery to an endpoint, due at once.
    pub(crate) fn open(&mut self, now: Timestamp, id: Uuid, endpoint: EndpointNo, payload: Payload) {
        if let Some(last) = self.log.back() {
            assert!(last.id < id, "delivery ids strictly increase");
        }
        self.drop_expired(now);
        let no = DeliveryNo(self.dropped + DeliveryNo::from_index(self.log.len()).0);
        self.due.insert((now, no));
        let state = DeliveryState::Waiting(now);
        self.log.push_back(Delivery {
            id,
            endpoint,
            payload,
            state,
            attempts: Vec::new(),
            scheduled_attempts: 0,
        });
    }

    /// Returns the time at which the next attempt is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the number of the first delivery that is due, and moves the delivery to `InFlight`.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Option<DeliveryNo> {
        let &(at, no) = self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        let is_resend = self.resends.contains_key(&no);
        let delivery = self.delivery_mut(no);
        delivery.state = DeliveryState::InFlight(now);
        delivery.scheduled_attempts += u32::from(!is_resend);
        Some(no)
    }

    /// Records the result of an attempt. Returns the number of the endpoint if this failure disabled it.
    pub(crate) fn on_attempt_result(
        &mut self,
        now: Timestamp,
        no: DeliveryNo,
        AttemptReport { result, trace }: AttemptReport,
        endpoint: &mut Endpoint,
    ) -> Option<EndpointNo> {
        let resend = self.resends.remove(&no);
        let delivery = self.delivery_mut(no);
        let DeliveryState::InFlight(started_at) = delivery.state else {
            panic!("each attempt has exactly one result: {} is {:?}", delivery.id, delivery.state)
        };
        let is_success = result.is_success();
        // Most deliveries succeed at the first attempt: capacity for more would be the largest part of their memory.
        if delivery.attempts.is_empty() {
            delivery.attempts.reserve_exact(1);
        }
        delivery.attempts.push(Attempt { started_at, ended_at: now, result, trace });
        if is_success {
            delivery.state = DeliveryState::Delivered;
            endpoint.failed_in_a_row = 0;
            return None;
        }
        if endpoint.status != EndpointStatus::Enabled {
            delivery.state = state_without_endpoint(resend);
            return None;
        }
        if let Some(before) = resend {
            delivery.state = before;
            if let DeliveryState::Waiting(at) = before {
                // An attempt that became due meanwhile waits for this one to end.
                let next_at = at.max(now);
                delivery.state = DeliveryState::Waiting(next_at);
                self.due.insert((next_at, no));
            }
            return None;
        }
        if delivery.scheduled_attempts < ATTEMPTS_MAX {
            let delay = RETRY_DELAYS[(delivery.scheduled_attempts as usize - 1).min(RETRY_DELAYS.len() - 1)];
            let next_at = now.plus(delay);
            delivery.state = DeliveryState::Waiting(next_at);
            self.due.insert((next_at, no));
            return None;
        }
        delivery.state = DeliveryState::Failed;
        let endpoint_no = delivery.endpoint;
        endpoint.failed_in_a_row += 1;
        if endpoint.failed_in_a_row < FAILED_IN_A_ROW_MAX {
            return None;
        }
        endpoint.status = EndpointStatus::Disabled;
        self.cancel_waiting(endpoint_no);
        Some(endpoint_no)
    }

    /// Cancels all waiting deliveries to this endpoint.
    pub(crate) fn cancel_waiting(&mut self, endpoint: EndpointNo) {
        let (log, dropped, resends) = (&mut self.log, self.dropped, &mut self.resends);
        self.due.retain(|(_, no)| {
            let delivery = &mut log[(no.0 - dropped) as usize];
            let is_kept = delivery.endpoint != endpoint;
            if !is_kept {
                delivery.state = state_without_endpoint(resends.remove(no));
            }
            is_kept
        });
    }

    /// Schedules one extra attempt. If it fails, state and schedule are restored. Returns `false` if the delivery is in
    /// flight.
    pub(crate) fn resend(&mut self, now: Timestamp, no: DeliveryNo) -> bool {
        let before = self.delivery_mut(no).state;
        match before {
            DeliveryState::InFlight(_) => return false,
            DeliveryState::Waiting(at) => {
                self.due.remove(&(at, no));
            }
            _ => {}
        }
        // A second resend does not add another attempt.
        self.resends.entry(no).or_insert(before);
        self.delivery_mut(no).state = DeliveryState::Waiting(now);
        self.due.insert((now, no));
        true
    }

    /// Requeues deliveries in flight after a restart, under their ids, because the results of their attempts are unknown;
    /// cancels those whose endpoint was disabled meanwhile.
    pub(crate) fn requeue_in_flight(&mut self, now: Timestamp, endpoints: &[Endpoint]) {
        for (index, delivery) in self.log.iter_mut().enumerate() {
            if !matches!(delivery.state, DeliveryState::InFlight(_)) {
                continue;
            }
            let no = DeliveryNo(self.dropped + DeliveryNo::from_index(index).0);
            // The interrupted attempt does not count.
            delivery.scheduled_attempts -= u32::from(!self.resends.contains_key(&no));
            if endpoints[delivery.endpoint.index()].status == EndpointStatus::Enabled {
                delivery.state = DeliveryState::Waiting(now);
                self.due.insert((now, no));
                continue;
            }
            delivery.state = state_without_endpoint(self.resends.remove(&no));
        }
    }

    /// Returns a delivery of the log by its number.
    pub fn get(&self, no: DeliveryNo) -> &Delivery {
        &self.log[(no.0 - self.dropped) as usize]
    }

    /// Returns the number of the delivery with this id.
    pub fn find(&self, id: Uuid) -> Option<DeliveryNo> {
        // Ids increase with creation, so the log is sorted by id.
        let index = self.log.binary_search_by_key(&id, |delivery| delivery.id).ok()?;
        Some(DeliveryNo(self.dropped + DeliveryNo::from_index(index).0))
    }

    /// Returns the deliveries of the log, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Delivery> {
        self.log.iter()
    }

    /// Returns deliveries, newest first: all, or those opened before the delivery with this id. `None` if the log
    /// does not contain that delivery.
    pub fn deliveries_before(&self, id: Option<Uuid>) -> Option<impl Iterator<Item = &Delivery>> {
        let end = match id {
            None => self.log.len(),
            Some(id) => (self.find(id)?.0 - self.dropped) as usize,
        };
        Some(self.log.range(..end).rev())
    }

    /// Returns the deliveries opened at this time, newest first.
    pub fn deliveries_opened_at(&self, at: Timestamp) -> impl Iterator<Item = &Delivery> {
        // Time never decreases, so the log is sorted by it.
        let start = self.log.partition_point(|delivery| delivery.payload.created_at < at);
        let end = self.log.partition_point(|delivery| delivery.payload.created_at <= at);
        self.log.range(start..end).rev()
    }

    fn delivery_mut(&mut self, no: DeliveryNo) -> &mut Delivery {
        &mut self.log[(no.0 - self.dropped) as usize]
    }

    /// Drops the deliveries at the front of the log that ended at least [`LOGGED_FOR`] ago.
    fn drop_expired(&mut self, now: Timestamp) {
        while let Some(oldest) = self.log.front() {
            let has_ended = !matches!(oldest.state, DeliveryState::Waiting(_) | DeliveryState::InFlight(_));
            let ended_at =
                oldest.attempts.last().map_or(oldest.payload.created_at, |attempt| attempt.ended_at);
            if !has_ended || now.since(ended_at) < LOGGED_FOR {
                return;
            }
            self.log.pop_front();
            self.dropped += 1;
        }
    }
}
