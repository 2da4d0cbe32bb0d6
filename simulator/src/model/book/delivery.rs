//! Endpoints and deliveries by the contract: due times, and effects of attempts.

use std::collections::BTreeSet;

use reference_core::time::{Span, Timestamp};

use super::Book;

/// From the end of a failed attempt to the next; the last repeats.
const DELAYS: [Span; 8] = [
    Span::mins(1),
    Span::mins(5),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(4),
    Span::hours(8),
    Span::hours(10),
];
/// Attempts of a delivery before it has failed.
pub const TRIES: usize = 14;
/// So many failed deliveries in a row switch an endpoint off.
const FAILED_IN_A_ROW: u32 = 15;

/// The switch of an endpoint: on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words say it")]
pub enum EndpointSwitch {
    On,
    Off,
    Removed,
}

/// A webhook endpoint.
#[derive(Clone, Debug)]
pub struct EndpointModel {
    /// The types of events it wants.
    pub types: BTreeSet<String>,
    /// The switch.
    pub switch: EndpointSwitch,
    /// Deliveries that failed since the last that did not.
    pub failed_in_a_row: u32,
    /// Its secret, by its number among those of the book.
    pub secret: usize,
}

impl EndpointModel {
    fn wants(&self, kind: &str) -> bool {
        self.switch == EndpointSwitch::On && self.types.contains(kind)
    }
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the contract")]
pub enum DeliveryState {
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
    /// The time of fan-out.
    pub opened: Timestamp,
    /// The number of the endpoint.
    pub endpoint: usize,
    /// The state.
    pub state: DeliveryState,
    /// Attempts that ended, over all resends.
    pub attempts: u32,
    /// Attempts of its schedule: a resend is none of them.
    pub tries: usize,
    /// While it is sent again: the state that it keeps if that fails.
    kept: Option<DeliveryState>,
}

impl Delivery {
    /// It is not posted any more: what was over before it was sent again stays so.
    fn call_off(&mut self) {
        self.state = match self.kept.take() {
            Some(over @ (DeliveryState::Delivered | DeliveryState::Failed)) => over,
            _ => DeliveryState::Canceled,
        };
    }
}

impl Book {
    /// An endpoint for these types of events. Returns its number.
    pub fn add_endpoint(&mut self, types: BTreeSet<String>) -> usize {
        let secret = self.next_secret();
        self.endpoints.push(EndpointModel { types, switch: EndpointSwitch::On, failed_in_a_row: 0, secret });
        self.endpoints.len() - 1
    }

    /// An endpoint gets another secret.
    pub fn rotate(&mut self, endpoint: usize) {
        self.endpoints[endpoint].secret = self.next_secret();
    }

    fn next_secret(&mut self) -> usize {
        self.secrets += 1;
        self.secrets - 1
    }

    /// An endpoint is switched on, off, or removed. What waits for one that is not on is canceled.
    pub fn switch_endpoint(&mut self, endpoint: usize, switch: EndpointSwitch) {
        let it = &mut self.endpoints[endpoint];
        it.switch = switch;
        if switch == EndpointSwitch::On {
            it.failed_in_a_row = 0;
            return;
        }
        for delivery in self.deliveries.iter_mut().filter(|delivery| delivery.endpoint == endpoint) {
            if matches!(delivery.state, DeliveryState::Waiting(_)) {
                delivery.call_off();
            }
        }
    }

    /// A test event is sent. Returns the number of the delivery.
    ///
    /// # Errors
    ///
    /// 404 if the endpoint was removed, 409 if it is off.
    pub fn send_test(&mut self, now: Timestamp, endpoint: usize) -> Result<usize, u16> {
        match self.endpoints[endpoint].switch {
            EndpointSwitch::Removed => Err(404),
            EndpointSwitch::Off => Err(409),
            EndpointSwitch::On => {
                self.deliver(now, None, endpoint);
                Ok(self.deliveries.len() - 1)
            }
        }
    }

    /// A delivery is sent again, by one attempt.
    ///
    /// # Errors
    ///
    /// 409 if it is in flight, or if its endpoint is not on.
    pub fn resend(&mut self, now: Timestamp, no: usize) -> Result<(), u16> {
        let delivery = &mut self.deliveries[no];
        if self.endpoints[delivery.endpoint].switch != EndpointSwitch::On
            || delivery.state == DeliveryState::InFlight
        {
            return Err(409);
        }
        delivery.kept.get_or_insert(delivery.state);
        delivery.state = DeliveryState::Waiting(now);
        Ok(())
    }

    /// Returns `true` if an endpoint gets events of a type.
    pub(super) fn is_wanted(&self, kind: &str) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.wants(kind))
    }

    /// The newest event goes to each endpoint that wants its type.
    pub(super) fn fan_out(&mut self, at: Timestamp, kind: &str) {
        let event = self.events.len() - 1;
        for endpoint in 0..self.endpoints.len() {
            if self.endpoints[endpoint].wants(kind) {
                self.deliver(at, Some(event), endpoint);
            }
        }
    }

    fn deliver(&mut self, at: Timestamp, event: Option<usize>, endpoint: usize) {
        let state = DeliveryState::Waiting(at);
        self.deliveries.push(Delivery {
            event,
            opened: at,
            endpoint,
            state,
            attempts: 0,
            tries: 0,
            kept: None,
        });
    }

    /// The delivery that is due first, and when: the oldest where that is the same.
    pub fn first_waiting(&self) -> Option<(Timestamp, usize)> {
        let waiting = self.deliveries.iter().enumerate().filter_map(|(no, delivery)| match delivery.state {
            DeliveryState::Waiting(at) => Some((at, no)),
            _ => None,
        });
        waiting.min()
    }

    /// An attempt begins.
    pub fn post(&mut self, no: usize) {
        let delivery = &mut self.deliveries[no];
        delivery.state = DeliveryState::InFlight;
        delivery.tries += usize::from(delivery.kept.is_none());
    }

    /// An attempt ended; a success is any status from 200 to 299.
    pub fn land(&mut self, now: Timestamp, no: usize, is_success: bool) {
        let delivery = &mut self.deliveries[no];
        delivery.attempts += 1;
        let endpoint = delivery.endpoint;
        if is_success {
            (delivery.state, delivery.kept) = (DeliveryState::Delivered, None);
            self.endpoints[endpoint].failed_in_a_row = 0;
        } else if self.endpoints[endpoint].switch != EndpointSwitch::On {
            delivery.call_off();
        } else if let Some(kept) = delivery.kept.take() {
            delivery.state = match kept {
                // A retry that came due meanwhile follows at once.
                DeliveryState::Waiting(due) => DeliveryState::Waiting(due.max(now)),
                over => over,
            };
        } else if delivery.tries < TRIES {
            let delay = DELAYS[(delivery.tries - 1).min(DELAYS.len() - 1)];
            delivery.state = DeliveryState::Waiting(now.plus(delay));
        } else {
            delivery.state = DeliveryState::Failed;
            self.endpoints[endpoint].failed_in_a_row += 1;
            if self.endpoints[endpoint].failed_in_a_row >= FAILED_IN_A_ROW {
                self.switch_endpoint(endpoint, EndpointSwitch::Off);
            }
        }
    }

    /// Restarts the service: an attempt in flight has no known result, is due again, and does not count.
    pub(in crate::model) fn restart(&mut self, now: Timestamp) {
        for delivery in self.deliveries.iter_mut().filter(|it| it.state == DeliveryState::InFlight) {
            delivery.tries -= usize::from(delivery.kept.is_none());
            if self.endpoints[delivery.endpoint].switch == EndpointSwitch::On {
                delivery.state = DeliveryState::Waiting(now);
            } else {
                delivery.call_off();
            }
        }
    }
}
