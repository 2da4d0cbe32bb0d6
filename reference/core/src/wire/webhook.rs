//! The body of a delivery.

use serde::Serialize;

use super::view::{ChargeView, Facet, Frame, InvoiceView, TransactionView};
use super::{
    json::json,
    pen::write,
    text::{IdText, Text},
};
use crate::{
    book::{Book, Circumstances},
    charge::Charge,
    event::{Details, Event, EventType},
    id::InvoiceNo,
    outbox::{Content, Delivery},
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

/// `data` of an invoice's event, as the invoice is now.
pub(crate) fn invoice(book: &Book, no: InvoiceNo, at: &Circumstances<'_>) -> Vec<u8> {
    let frame = Frame { book, public_url: at.public_url, facet: Facet::Webhook, now: at.now };
    json(&InvoiceData { invoice: InvoiceView::of(frame, no) })
}

/// Writes `data` of a charge's event or of a test, as the charge was then.
fn write_charge(book: &Book, charge: &Charge, event: Option<&Event>, body: &mut Vec<u8>) {
    // Nothing of a charge in a webhook leads to a page of ours, or depends on the time.
    let frame = Frame { book, public_url: "", facet: Facet::Webhook, now: charge.created_at };
    let transaction = event.and_then(|event| {
        let announces = matches!(event.kind, EventType::ChargePaymentDetected | EventType::ChargeLatePayment);
        match &event.details {
            // One transaction may pay the address twice: the amount tells its outputs apart.
            Details::Transfer { txid, amount } if announces => charge
                .transfers()
                .iter()
                .rfind(|transfer| transfer.txid == *txid && transfer.amount == *amount)
                .map(|transfer| TransactionView::of(frame, charge.terms.asset, transfer)),
            _ => None,
        }
    });
    write(body, &ChargeData { charge: ChargeView::alone(frame, charge), transaction });
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

/// More than most bodies take. What is posted is let go at once, so a little too much costs nothing.
const BODY_ROOM: usize = 1_800;

/// The whole body. The same for every attempt.
pub(crate) fn body(book: &Book, delivery: &Delivery) -> Vec<u8> {
    let parcel = &delivery.parcel;
    let envelope = Envelope {
        id: IdText(delivery.id),
        event_id: parcel.event.map(|(_, id)| IdText(id)),
        event: parcel.kind.as_str(),
        mode: book.mode().as_str(),
        created_at: parcel.created_at.into(),
        test: parcel.event.is_none().then_some(true),
    };
    let mut body = Vec::with_capacity(BODY_ROOM);
    write(&mut body, &envelope);
    // `data` is the last entry of the same object.
    body.pop();
    body.extend_from_slice(b",\"data\":");
    match &parcel.content {
        Content::Charge(charge) => {
            let event = parcel.event.map(|(no, _)| book.events().get(no));
            write_charge(book, charge, event, &mut body);
        }
        Content::Written(data) => body.extend_from_slice(data),
    }
    body.push(b'}');
    body
}
