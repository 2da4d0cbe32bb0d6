//! The body of a delivery.

use serde::Serialize;

use super::view::{ChargeView, Facet, Frame, InvoiceView, TransactionView};
use super::{
    json::json,
    pen::write,
    text::{IdText, Text},
};
use crate::{
    book::Book,
    charge::Charge,
    event::{Details, Event, EventType, Subject},
    mode::Mode,
    outbox::Delivery,
};

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

/// Writes `data` of an event's deliveries, as its object is now.
pub(crate) fn write_data(book: &Book, event: &Event, public_url: &str, data: &mut Vec<u8>) {
    let frame = Frame { book, public_url, facet: Facet::Webhook, now: event.created_at };
    match event.subject {
        Subject::Charge(no) => {
            let charge = book.charge(no);
            let announces =
                matches!(event.kind, EventType::ChargePaymentDetected | EventType::ChargeLatePayment);
            let transaction = match &event.details {
                // One transaction may pay the address twice: the amount tells its outputs apart.
                Details::Transfer { txid, amount } if announces => charge
                    .transfers()
                    .iter()
                    .rfind(|transfer| transfer.txid == *txid && transfer.amount == *amount)
                    .map(|transfer| TransactionView::of(frame, charge.terms.asset, transfer)),
                _ => None,
            };
            write(data, &ChargeData { charge: ChargeView::of(frame, no), transaction });
        }
        Subject::Invoice(no) => write(data, &InvoiceData { invoice: InvoiceView::of(frame, no) }),
    }
}

/// `data` of a test delivery.
pub(crate) fn sample(book: &Book, charge: &Charge, public_url: &str) -> Vec<u8> {
    let frame = Frame { book, public_url, facet: Facet::Webhook, now: charge.created_at };
    json(&ChargeData { charge: ChargeView::alone(frame, charge), transaction: None })
}

#[derive(Serialize)]
struct Envelope<'a> {
    id: IdText,
    event_id: Option<IdText>,
    event: &'a str,
    mode: &'a str,
    created_at: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<bool>,
}

/// More than an envelope takes.
const ENVELOPE_ROOM: usize = 320;

/// The whole body. The same for every attempt.
pub(crate) fn body(delivery: &Delivery, mode: Mode) -> Vec<u8> {
    let parcel = &delivery.parcel;
    let envelope = Envelope {
        id: IdText(delivery.id),
        event_id: parcel.event.map(|(_, id)| IdText(id)),
        event: parcel.kind.as_str(),
        mode: mode.as_str(),
        created_at: parcel.created_at.into(),
        test: parcel.event.is_none().then_some(true),
    };
    let mut body = Vec::with_capacity(parcel.data.len() + ENVELOPE_ROOM);
    write(&mut body, &envelope);
    // `data` was written once for all deliveries of the event: it goes in as it is.
    body.pop();
    body.extend_from_slice(b",\"data\":");
    body.extend_from_slice(&parcel.data);
    body.push(b'}');
    body
}
