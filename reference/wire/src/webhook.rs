//! [`AttemptRequest`]: the request of a webhook delivery attempt, and its body.

use std::sync::Arc;

use bytes::Bytes;
use reference_core::{
    book::Book,
    charge::Charge,
    endpoint::{Secret, address_rule::EndpointUrl},
    event::{Details, Event, EventType},
    id::{DeliveryNo, EndpointNo},
    outbox::{Delivery, Snapshot},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    json::write,
    view::{ChargeView, DisplayString, InvoiceView, ObjectContext, Presentation, TransactionView},
};

/// An attempt of a delivery, to be sent now. The host signs it with the time of the attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRequest {
    /// The number of the delivery, for the report of the result.
    pub delivery: DeliveryNo,
    /// The id of the delivery, for the header.
    pub id: Uuid,
    /// The endpoint.
    pub endpoint: EndpointNo,
    /// The receiving URL.
    #[serde(with = "reference_core::shared")]
    pub url: Arc<EndpointUrl>,
    /// The event type, for the header.
    pub kind: EventType,
    /// The signing secret.
    pub secret: Secret,
    /// The body.
    pub body: Bytes,
    /// The number of this attempt of the delivery, over all resends: 1 is the first.
    pub attempt: u32,
}

/// Returns the attempt of a delivery that is in flight, without its body.
pub(crate) fn attempt_without_body(book: &Book, no: DeliveryNo) -> AttemptRequest {
    let delivery = book.outbox().get(no);
    let endpoint = book.endpoint(delivery.endpoint);
    AttemptRequest {
        delivery: no,
        id: delivery.id,
        endpoint: delivery.endpoint,
        url: Arc::clone(&endpoint.url),
        kind: delivery.payload.kind,
        secret: endpoint.secret.clone(),
        body: Bytes::new(),
        attempt: u32::try_from(delivery.attempts.len()).expect("the number of attempts fits 32 bits") + 1,
    }
}

#[derive(Serialize)]
struct ChargeData<'a> {
    charge: ChargeView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction: Option<TransactionView<'a>>,
}

#[derive(Serialize)]
struct InvoiceData<'a> {
    invoice: InvoiceView<'a>,
}

impl<'a> ChargeData<'a> {
    /// Returns `data` of an event of a charge, or of a test delivery (`event` is `None`).
    fn new(context: ObjectContext<'a>, charge: &'a Charge, event: Option<&Event>) -> ChargeData<'a> {
        let transaction = event.and_then(|event| {
            let reports_transfer =
                matches!(event.kind, EventType::ChargePaymentDetected | EventType::ChargeLatePayment);
            match &event.details {
                // One transaction may pay the address twice: the amount distinguishes its outputs.
                Details::Transfer { txid, amount } if reports_transfer => charge
                    .transfers()
                    .iter()
                    .rfind(|transfer| transfer.txid == *txid && transfer.amount == *amount)
                    .map(|transfer| TransactionView::new(context, charge.terms.asset, transfer)),
                _ => None,
            }
        });
        ChargeData { charge: ChargeView::without_timeline(context, charge), transaction }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    id: Uuid,
    event_id: Option<Uuid>,
    event: &'a str,
    mode: &'a str,
    created_at: DisplayString<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<bool>,
}

/// The initial capacity of a body, more than most need. A body is freed after the attempt.
const BODY_CAPACITY: usize = 1_800;

/// Returns the body of a delivery, byte for byte the same for every attempt.
///
/// `public_url`: the base address of hosted pages, without a slash at the end.
pub fn delivery_body(book: &Book, delivery: &Delivery, public_url: &str) -> Bytes {
    let payload = &delivery.payload;
    let envelope = Envelope {
        id: delivery.id,
        event_id: payload.event.map(|(_, id)| id),
        event: payload.kind.as_str(),
        mode: book.mode().as_str(),
        created_at: DisplayString(payload.created_at),
        test: payload.event.is_none().then_some(true),
    };
    let mut body = Vec::with_capacity(BODY_CAPACITY);
    write(&mut body, &envelope);
    // The object is closed after its last entry, `data`.
    body.pop();
    body.extend_from_slice(b",\"data\":");
    let context = ObjectContext {
        book,
        public_url,
        presentation: Presentation::Webhook,
        now: payload.created_at,
        heights: None,
    };
    match &payload.snapshot {
        Snapshot::Charge(charge) => {
            let event = payload.event.map(|(no, _)| book.events().get(no));
            write(&mut body, &ChargeData::new(context, charge, event));
        }
        Snapshot::Invoice(snapshot) => {
            let charges = snapshot.charges.iter().map(|(code, status, asset)| (code, *status, *asset));
            write(
                &mut body,
                &InvoiceData { invoice: InvoiceView::without_timeline(context, &snapshot.invoice, charges) },
            );
        }
    }
    body.push(b'}');
    body.into()
}
