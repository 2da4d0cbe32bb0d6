//! Webhook endpoints of a book, and what is posted to them.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;

use super::{Book, Circumstances, Notice};
use crate::{
    asset::{Asset, Currency},
    charge::{Bounds, Charge, Customer, Terms},
    endpoint::{Endpoint, EndpointStatus, Secret, address_rule},
    error::ApiError,
    event::EventType,
    id::{Code, DeliveryNo, EndpointNo},
    money::{Coin, Fiat, Rate},
    outbox::{Content, Landing, Parcel, Verdict},
    time::Timestamp,
    wire::webhook,
};

/// A delivery to be posted now. Unsigned: the host signs each attempt with its own time.
#[derive(Clone, Debug)]
pub struct Post {
    /// Its number, to report the outcome under.
    pub delivery: DeliveryNo,
    /// Its id, for the header.
    pub id: Uuid,
    /// The endpoint.
    pub endpoint: EndpointNo,
    /// Where to.
    pub url: Arc<address_rule::EndpointUrl>,
    /// The event type, for the header.
    pub kind: EventType,
    /// What to sign with.
    pub secret: Secret,
    /// The body.
    pub body: Vec<u8>,
    /// Which attempt this is, over all resends.
    pub attempt: u32,
}

impl Book {
    /// Adds an endpoint. The address is judged as typed; the host judges what its name resolves to.
    pub(crate) fn add_endpoint(
        &mut self,
        at: &Circumstances<'_>,
        url: &str,
        events: BTreeSet<EventType>,
    ) -> Result<EndpointNo, ApiError> {
        let url = judge(url)?;
        must_choose(&events)?;
        let no = EndpointNo::next(self.endpoints.len());
        let secret = self.next_secret();
        self.endpoints.push(Endpoint {
            id: Code::draw(&self.lots.endpoint, u64::from(no.0)),
            url: Arc::new(url),
            events,
            secret,
            status: EndpointStatus::Enabled,
            failed_in_a_row: 0,
            created_at: at.now,
        });
        Ok(no)
    }

    /// The endpoint with this id, unless it was removed.
    pub fn find_endpoint(&self, id: Code) -> Result<EndpointNo, ApiError> {
        self.endpoints
            .iter()
            .position(|endpoint| endpoint.id == id && endpoint.status != EndpointStatus::Removed)
            .map(EndpointNo::next)
            .ok_or(ApiError::NotFound)
    }

    /// Changes an endpoint. Nothing is changed if any part is refused.
    pub(crate) fn change_endpoint(
        &mut self,
        no: EndpointNo,
        url: Option<&str>,
        events: Option<BTreeSet<EventType>>,
        enabled: Option<bool>,
    ) -> Result<(), ApiError> {
        let url = url.map(judge).transpose()?;
        events.as_ref().map(must_choose).transpose()?;
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
            Some(false) => self.close_endpoint(no, EndpointStatus::Disabled),
            None => {}
        }
        Ok(())
    }

    /// Removes an endpoint; its deliveries stay in the log.
    pub(crate) fn remove_endpoint(&mut self, no: EndpointNo) {
        self.close_endpoint(no, EndpointStatus::Removed);
    }

    fn close_endpoint(&mut self, no: EndpointNo, status: EndpointStatus) {
        self.endpoints[no.index()].status = status;
        self.outbox.cancel_waiting(no);
    }

    /// Gives an endpoint a new secret.
    pub(crate) fn rotate_secret(&mut self, no: EndpointNo) {
        self.endpoints[no.index()].secret = self.next_secret();
    }

    fn next_secret(&mut self) -> Secret {
        let secret = Secret::draw(&self.lots.secret, self.secrets);
        self.secrets += 1;
        secret
    }

    /// Sends a sample `charge.paid`, whatever the endpoint subscribes to (`delivery.test`).
    pub(crate) fn send_test(&mut self, at: &Circumstances<'_>, no: EndpointNo) -> Result<Uuid, ApiError> {
        if self.endpoint(no).status != EndpointStatus::Enabled {
            return Err(ApiError::conflict("The endpoint is switched off; switch it on to test it."));
        }
        let parcel = Parcel {
            event: None,
            kind: EventType::ChargePaid,
            created_at: at.now,
            content: Content::Charge(Arc::new(sample_charge(at.now))),
        };
        let id = self.delivery_mint.next(at.now);
        self.outbox.open(at.now, id, no, parcel);
        Ok(id)
    }

    /// Posts a delivery again, under its id.
    pub(crate) fn resend(&mut self, at: &Circumstances<'_>, id: Uuid) -> Result<(), ApiError> {
        let no = self.outbox.find(id).ok_or(ApiError::NotFound)?;
        if self.endpoint(self.outbox.get(no).endpoint).status != EndpointStatus::Enabled {
            return Err(ApiError::conflict("The endpoint is switched off; switch it on to resend to it."));
        }
        if self.outbox.resend(at.now, no) {
            Ok(())
        } else {
            Err(ApiError::conflict("The delivery is being posted right now."))
        }
    }

    /// The next post that is due.
    pub(crate) fn poll_delivery(&mut self, now: Timestamp) -> Option<Post> {
        let no = self.outbox.take_due(now)?;
        let delivery = self.outbox.get(no);
        let endpoint = &self.endpoints[delivery.endpoint.index()];
        Some(Post {
            delivery: no,
            id: delivery.id,
            endpoint: delivery.endpoint,
            url: Arc::clone(&endpoint.url),
            kind: delivery.parcel.kind,
            secret: endpoint.secret.clone(),
            body: webhook::body(self, delivery),
            attempt: u32::try_from(delivery.attempts.len()).expect("a delivery has few attempts") + 1,
        })
    }

    /// A post came back.
    pub(crate) fn on_outcome(&mut self, now: Timestamp, no: DeliveryNo, landing: Landing) {
        let endpoint = &mut self.endpoints[self.outbox.get(no).endpoint.index()];
        if let Verdict::SwitchedOff(no) = self.outbox.on_outcome(now, no, landing, endpoint) {
            self.notices.push(Notice::EndpointOff(no));
        }
    }

    /// When the book needs to be woken.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        [self.next_lock_end(), self.outbox.next_due()].into_iter().flatten().min()
    }

    /// What is lost when the service stops: posts in flight are due again.
    pub(crate) fn restart(&mut self, now: Timestamp) {
        self.outbox.requeue_in_flight(now, &self.endpoints);
    }
}

fn judge(url: &str) -> Result<address_rule::EndpointUrl, ApiError> {
    address_rule::judge_url(url)
        .map_err(|refusal| ApiError::field("url", format!("The url field is invalid: {refusal}.")))
}

fn must_choose(events: &BTreeSet<EventType>) -> Result<(), ApiError> {
    if events.is_empty() {
        return Err(ApiError::field("events", "The events field must name at least one event type."));
    }
    Ok(())
}

/// A charge that never was, for test deliveries.
fn sample_charge(now: Timestamp) -> Charge {
    let asset_amount = Coin::parse("0.0025", Asset::Btc).expect("a constant");
    let terms = Terms {
        asset: Asset::Btc,
        fiat_amount: Fiat::parse("150.00").expect("a constant"),
        fiat_currency: Currency::Eur,
        rate: Rate::parse("60000").expect("a constant"),
        asset_amount,
        deposit_address: "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4".to_owned(),
        link: None,
        invoice: None,
        customer: Customer { email: Some("customer@shop.example".to_owned()), ..Customer::default() }
            .if_known(),
        description: Some("A test delivery".to_owned()),
        metadata: Vec::new(),
        custom_fields: Vec::new(),
    };
    let code = Code::parse("testcharge00").expect("a constant");
    let none = crate::money::Percent::hundredths(0);
    Charge::sample_paid(now, code, terms, Bounds { tolerance: none, threshold: none })
}
