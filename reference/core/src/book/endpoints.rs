//! Webhook endpoints of a book, and the deliveries to them.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;

use super::{Book, BookContext, Notice};
use crate::{
    asset::{Asset, Currency},
    charge::{Charge, Customer, PaymentTolerances, Terms},
    endpoint::{Endpoint, EndpointStatus, Secret, address_rule},
    error::ApiError,
    event::EventType,
    id::{Code, DeliveryNo, EndpointNo},
    mode::Mode,
    money::{Coin, Fiat, Rate},
    outbox::{AttemptReport, Payload, Snapshot},
    time::Timestamp,
};

/// The largest number of endpoints of a book. Bounded, because every event goes to all of them.
const ENDPOINTS_MAX: usize = 50;

impl Book {
    /// Adds an endpoint. Checks the URL without resolving its name; the host checks the resolved addresses.
    pub(crate) fn add_endpoint(
        &mut self,
        context: &BookContext<'_>,
        url: &str,
        events: BTreeSet<EventType>,
    ) -> Result<EndpointNo, ApiError> {
        let url = parse_url(url)?;
        require_event_type(&events)?;
        let existing = self.endpoints.iter().filter(|endpoint| endpoint.status != EndpointStatus::Removed);
        if existing.count() >= ENDPOINTS_MAX {
            let message = format!(
                "There are {ENDPOINTS_MAX} webhook endpoints already, the maximum. Delete one first."
            );
            return Err(ApiError::field("url", message));
        }
        let no = EndpointNo::from_index(self.endpoints.len());
        let secret = self.next_secret();
        self.endpoints.push(Endpoint {
            id: Code::draw(&self.rng_keys.endpoint, u64::from(no.0)),
            url: Arc::new(url),
            events,
            secret,
            status: EndpointStatus::Enabled,
            failed_in_a_row: 0,
            created_at: context.now,
        });
        Ok(no)
    }

    /// Returns the number of the endpoint with this id, unless it was removed.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if this book has no such endpoint, or it was removed.
    pub fn find_endpoint(&self, id: Code) -> Result<EndpointNo, ApiError> {
        self.endpoints
            .iter()
            .position(|endpoint| endpoint.id == id && endpoint.status != EndpointStatus::Removed)
            .map(EndpointNo::from_index)
            .ok_or(ApiError::NotFound)
    }

    /// Changes an endpoint. If any part is invalid, nothing changes.
    pub(crate) fn change_endpoint(
        &mut self,
        no: EndpointNo,
        url: Option<&str>,
        events: Option<BTreeSet<EventType>>,
        enabled: Option<bool>,
    ) -> Result<(), ApiError> {
        let url = url.map(parse_url).transpose()?;
        events.as_ref().map(require_event_type).transpose()?;
        let endpoint = &mut self.endpoints[no.index()];
        if let Some(url) = url {
            endpoint.url = Arc::new(url);
        }
        if let Some(events) = events {
            endpoint.events = events;
        }
        match enabled {
            Some(true) => {
                endpoint.status = EndpointStatus::Enabled;
                endpoint.failed_in_a_row = 0;
            }
            Some(false) => self.deactivate_endpoint(no, EndpointStatus::Disabled),
            None => {}
        }
        Ok(())
    }

    /// Removes an endpoint; its deliveries stay in the log.
    pub(crate) fn remove_endpoint(&mut self, no: EndpointNo) {
        self.deactivate_endpoint(no, EndpointStatus::Removed);
    }

    /// Sets the status to disabled or removed, and cancels the waiting deliveries.
    fn deactivate_endpoint(&mut self, no: EndpointNo, status: EndpointStatus) {
        self.endpoints[no.index()].status = status;
        self.outbox.cancel_waiting(no);
    }

    /// Gives an endpoint a new secret.
    pub(crate) fn rotate_secret(&mut self, no: EndpointNo) {
        self.endpoints[no.index()].secret = self.next_secret();
    }

    fn next_secret(&mut self) -> Secret {
        let secret = Secret::draw(&self.rng_keys.secret, self.secrets);
        self.secrets += 1;
        secret
    }

    /// Opens a delivery of a sample `charge.paid`, whatever the endpoint subscribes to (`delivery.test`). Returns its
    /// id.
    pub(crate) fn send_test(&mut self, context: &BookContext<'_>, no: EndpointNo) -> Result<Uuid, ApiError> {
        if self.endpoint(no).status != EndpointStatus::Enabled {
            return Err(ApiError::conflict("The endpoint is disabled; enable it to test it."));
        }
        let payload = Payload {
            event: None,
            kind: EventType::ChargePaid,
            created_at: context.now,
            snapshot: Snapshot::Charge(Arc::new(sample_charge(context.now, self.mode))),
        };
        let id = self.delivery_ids.next(context.now);
        self.outbox.open(context.now, id, no, payload);
        Ok(id)
    }

    /// Resends a delivery under the same id.
    pub(crate) fn resend(&mut self, context: &BookContext<'_>, id: Uuid) -> Result<(), ApiError> {
        let no = self.outbox.find(id).ok_or(ApiError::NotFound)?;
        if self.endpoint(self.outbox.get(no).endpoint).status != EndpointStatus::Enabled {
            return Err(ApiError::conflict("The endpoint is disabled; enable it to resend to it."));
        }
        if self.outbox.resend(context.now, no) {
            Ok(())
        } else {
            Err(ApiError::conflict(
                "An attempt of the delivery is in flight; resend it when the attempt has ended.",
            ))
        }
    }

    /// Returns the next due delivery, which is in flight until its result is reported.
    pub(crate) fn poll_delivery(&mut self, now: Timestamp) -> Option<DeliveryNo> {
        self.outbox.take_due(now)
    }

    /// Records the result of a delivery attempt.
    pub(crate) fn on_attempt_result(&mut self, now: Timestamp, no: DeliveryNo, report: AttemptReport) {
        let endpoint = &mut self.endpoints[self.outbox.get(no).endpoint.index()];
        if let Some(no) = self.outbox.on_attempt_result(now, no, report, endpoint) {
            self.notices.push(Notice::EndpointDisabled(no));
        }
    }

    /// Returns the time at which the next rate lock ends or the next delivery is due.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        [self.next_lock_end(), self.outbox.next_due()].into_iter().flatten().min()
    }

    /// Discards the volatile state, as a restart does: deliveries in flight become due again.
    pub(crate) fn restart(&mut self, now: Timestamp) {
        self.outbox.requeue_in_flight(now, &self.endpoints);
    }
}

fn parse_url(url: &str) -> Result<address_rule::EndpointUrl, ApiError> {
    address_rule::parse_endpoint_url(url)
        .map_err(|refusal| ApiError::field("url", format!("The url field is invalid: {refusal}.")))
}

fn require_event_type(events: &BTreeSet<EventType>) -> Result<(), ApiError> {
    if events.is_empty() {
        return Err(ApiError::field("events", "The events field must name at least one event type."));
    }
    Ok(())
}

/// Returns a sample charge for test deliveries. All its values except the times are constant.
fn sample_charge(now: Timestamp, mode: Mode) -> Charge {
    let asset_amount = Coin::parse("0.0025", Asset::Btc).expect("the constant is valid");
    // The example addresses of BIP 173.
    let address = match mode {
        Mode::Live => "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        Mode::Test => "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
    };
    let terms = Terms {
        asset: Asset::Btc,
        fiat_amount: Fiat::parse("150.00").expect("the constant is valid"),
        fiat_currency: Currency::Eur,
        rate: Rate::parse("60000").expect("the constant is valid"),
        asset_amount,
        deposit_address: address.to_owned(),
        link: None,
        invoice: None,
        customer: Customer { email: Some("customer@shop.example".to_owned()), ..Customer::default() }
            .if_not_empty(),
        description: Some("A test delivery".to_owned()),
        metadata: Vec::new(),
        custom_fields: Vec::new(),
    };
    let code = Code::parse("testcharge00").expect("the constant is valid");
    let zero = crate::money::Percent::hundredths(0);
    let tolerances = PaymentTolerances { underpayment: zero, overpayment: zero };
    Charge::sample_paid(now, code, terms, tolerances, Asset::Btc.required_confirmations(mode))
}
