//! Endpoints and deliveries: due times, and the effects of attempts.

use std::collections::BTreeSet;

use reference_core::time::{Span, Timestamp};

use super::Book;

/// The delays from the end of a failed attempt to the next one; the last repeats.
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
/// The maximum number of scheduled attempts of a delivery; resends are not counted.
pub const SCHEDULED_ATTEMPTS_MAX: usize = 14;
/// The number of consecutive failed deliveries after which an endpoint is disabled.
const FAILED_IN_A_ROW_MAX: u32 = 15;

/// The state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum EndpointStatus {
    Enabled,
    Disabled,
    Removed,
}

/// A webhook endpoint.
#[derive(Clone, Debug)]
pub struct EndpointModel {
    /// The host of its URL.
    pub host: String,
    /// The event types to deliver; all if `None`.
    pub types: Option<BTreeSet<String>>,
    /// The state.
    pub status: EndpointStatus,
    /// The number of deliveries that failed since the last success.
    pub failed_in_a_row: u32,
    /// The index of its secret among the secrets of the book.
    pub secret: usize,
}

impl EndpointModel {
    /// Returns `true` if events of this type are delivered while it is enabled.
    pub fn subscribes(&self, kind: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.contains(kind))
    }

    /// Returns `true` if an event of this type is delivered now.
    fn receives(&self, kind: &str) -> bool {
        self.status == EndpointStatus::Enabled && self.subscribes(kind)
    }
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the API")]
pub enum DeliveryState {
    /// The next attempt is due at this time.
    Waiting(Timestamp),
    InFlight,
    Delivered,
    Failed,
    Canceled,
}

/// A delivery to one endpoint.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The number of the event; `None` for a test.
    pub event: Option<usize>,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The number of the endpoint.
    pub endpoint: usize,
    /// The state.
    pub state: DeliveryState,
    /// The end of the last attempt.
    pub last_ended_at: Option<Timestamp>,
    /// The number of ended attempts, including resends.
    pub attempts: u32,
    /// The number of scheduled attempts, without resends.
    pub scheduled_attempts: usize,
    /// During a resend: the state to restore if it fails.
    before_resend: Option<DeliveryState>,
}

impl Delivery {
    /// Cancels the delivery. If it had ended before a resend, it returns to its state at that time.
    fn cancel(&mut self) {
        self.state = match self.before_resend.take() {
            Some(end_state @ (DeliveryState::Delivered | DeliveryState::Failed)) => end_state,
            _ => DeliveryState::Canceled,
        };
    }
}

impl Book {
    /// Adds an endpoint for these event types. Returns its number.
    pub fn add_endpoint(&mut self, host: String, types: Option<BTreeSet<String>>) -> usize {
        let (secret, status) = (self.next_secret(), EndpointStatus::Enabled);
        self.endpoints.push(EndpointModel { host, types, status, failed_in_a_row: 0, secret });
        self.endpoints.len() - 1
    }

    /// Replaces the secret of an endpoint.
    pub fn rotate_secret(&mut self, endpoint: usize) {
        self.endpoints[endpoint].secret = self.next_secret();
    }

    /// Creates a secret. Returns its number.
    fn next_secret(&mut self) -> usize {
        self.secret_count += 1;
        self.secret_count - 1
    }

    /// Enables, disables or removes an endpoint. Waiting deliveries of an endpoint that is not enabled are canceled.
    pub fn set_endpoint_status(&mut self, endpoint: usize, status: EndpointStatus) {
        let changed = &mut self.endpoints[endpoint];
        changed.status = status;
        if status == EndpointStatus::Enabled {
            changed.failed_in_a_row = 0;
            return;
        }
        for delivery in self.deliveries.iter_mut().filter(|delivery| delivery.endpoint == endpoint) {
            if matches!(delivery.state, DeliveryState::Waiting(_)) {
                delivery.cancel();
            }
        }
    }

    /// Sends a test event. Returns the number of the delivery.
    ///
    /// # Errors
    ///
    /// 404 if the endpoint was removed, 409 if it is disabled.
    pub fn send_test(&mut self, now: Timestamp, endpoint: usize) -> Result<usize, u16> {
        match self.endpoints[endpoint].status {
            EndpointStatus::Removed => Err(404),
            EndpointStatus::Disabled => Err(409),
            EndpointStatus::Enabled => {
                self.deliver(now, None, endpoint);
                Ok(self.deliveries.len() - 1)
            }
        }
    }

    /// Resends a delivery, with one attempt.
    ///
    /// # Errors
    ///
    /// 409 if it is in flight, or if its endpoint is not enabled.
    pub fn resend(&mut self, now: Timestamp, number: usize) -> Result<(), u16> {
        let delivery = &mut self.deliveries[number];
        if self.endpoints[delivery.endpoint].status != EndpointStatus::Enabled
            || delivery.state == DeliveryState::InFlight
        {
            return Err(409);
        }
        delivery.before_resend.get_or_insert(delivery.state);
        delivery.state = DeliveryState::Waiting(now);
        Ok(())
    }

    /// Returns `true` if any endpoint receives events of a type.
    pub(super) fn has_receiver(&self, kind: &str) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.receives(kind))
    }

    /// Creates a delivery of the newest event for each enabled endpoint that is registered for its type.
    pub(super) fn create_deliveries(&mut self, at: Timestamp, kind: &str) {
        let event = self.events.len() - 1;
        for endpoint in 0..self.endpoints.len() {
            if self.endpoints[endpoint].receives(kind) {
                self.deliver(at, Some(event), endpoint);
            }
        }
    }

    /// Creates a delivery that is due now; of a test if `event` is `None`.
    fn deliver(&mut self, at: Timestamp, event: Option<usize>, endpoint: usize) {
        let state = DeliveryState::Waiting(at);
        self.deliveries.push(Delivery {
            event,
            created_at: at,
            endpoint,
            state,
            last_ended_at: None,
            attempts: 0,
            scheduled_attempts: 0,
            before_resend: None,
        });
    }

    /// Starts an attempt of a delivery.
    pub fn start_attempt(&mut self, number: usize) {
        let delivery = &mut self.deliveries[number];
        delivery.state = DeliveryState::InFlight;
        delivery.scheduled_attempts += usize::from(delivery.before_resend.is_none());
    }

    /// Ends an attempt of a delivery. `is_success` holds for a status from 200 to 299.
    pub fn end_attempt(&mut self, now: Timestamp, number: usize, is_success: bool) {
        let delivery = &mut self.deliveries[number];
        delivery.attempts += 1;
        delivery.last_ended_at = Some(now);
        let endpoint = delivery.endpoint;
        if is_success {
            (delivery.state, delivery.before_resend) = (DeliveryState::Delivered, None);
            self.endpoints[endpoint].failed_in_a_row = 0;
        } else if self.endpoints[endpoint].status != EndpointStatus::Enabled {
            delivery.cancel();
        } else if let Some(state) = delivery.before_resend.take() {
            delivery.state = match state {
                // A retry that became due meanwhile follows immediately.
                DeliveryState::Waiting(due) => DeliveryState::Waiting(due.max(now)),
                end_state => end_state,
            };
        } else if delivery.scheduled_attempts < SCHEDULED_ATTEMPTS_MAX {
            let delay = RETRY_DELAYS[(delivery.scheduled_attempts - 1).min(RETRY_DELAYS.len() - 1)];
            delivery.state = DeliveryState::Waiting(now.plus(delay));
        } else {
            delivery.state = DeliveryState::Failed;
            self.endpoints[endpoint].failed_in_a_row += 1;
            if self.endpoints[endpoint].failed_in_a_row >= FAILED_IN_A_ROW_MAX {
                self.set_endpoint_status(endpoint, EndpointStatus::Disabled);
            }
        }
    }

    /// Applies a restart of the service: the result of an attempt in flight is lost, so the attempt is due again and is not
    /// counted.
    pub(in crate::model) fn restart(&mut self, now: Timestamp) {
        for delivery in
            self.deliveries.iter_mut().filter(|delivery| delivery.state == DeliveryState::InFlight)
        {
            delivery.scheduled_attempts -= usize::from(delivery.before_resend.is_none());
            if self.endpoints[delivery.endpoint].status == EndpointStatus::Enabled {
                delivery.state = DeliveryState::Waiting(now);
            } else {
                delivery.cancel();
            }
        }
    }
}
