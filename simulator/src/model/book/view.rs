//! Objects as the API and webhooks show them, as far as they are judged: read from answers, and built from the model
//! as they must be.

use std::{borrow::Cow, collections::BTreeMap};

use reference_core::{asset::Asset, time::Timestamp};
use serde::Deserialize;

use super::{Book, Details, Event, InvoiceModel, LinkModel, Pricing, Subject};
use crate::model::{Charge, ChargeTransfer, money};

/// A charge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct ChargeView {
    pub code: String,
    pub status: String,
    pub payment_link: Option<String>,
    pub invoice: Option<String>,
    pub fiat_amount: String,
    pub fiat_currency: String,
    pub asset: String,
    pub asset_amount: String,
    pub received_amount: String,
    pub remaining_amount: String,
    pub refunded_amount: String,
    pub refunds: Vec<RefundView>,
    pub overpaid: bool,
    pub exchange_rate: String,
    pub deposit_address: String,
    pub description: Option<String>,
    #[serde(default)]
    pub metadata: serde_json::Value,
    pub transactions: Vec<TransferView>,
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    pub expires_at: String,
    pub paid_at: Option<String>,
    pub created_at: String,
}

/// A refund of a charge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct RefundView {
    pub amount: String,
}

/// A transfer of a charge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct TransferView {
    pub txid: String,
    pub amount: String,
    pub confirmations: u64,
    pub required_confirmations: u32,
    pub status: String,
    pub credited: bool,
    pub seen_at: String,
}

/// An entry of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct TimelineEntry {
    pub event: String,
    pub time: String,
}

/// An invoice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct InvoiceView {
    pub code: String,
    pub number: String,
    pub status: String,
    pub amount: String,
    pub currency: String,
    pub customer_email: Option<String>,
    pub charges: Vec<NestedCharge>,
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    pub sent_at: Option<String>,
    pub viewed_at: Option<String>,
    pub paid_at: Option<String>,
    pub voided_at: Option<String>,
    pub created_at: String,
}

/// A charge within its invoice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct NestedCharge {
    pub code: String,
    pub status: String,
    pub asset: String,
}

/// A payment link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct LinkView {
    pub code: String,
    pub status: String,
    pub pricing_type: String,
    pub amount: Option<String>,
    pub min_amount: Option<String>,
    pub max_amount: Option<String>,
    pub currency: String,
    pub accepted_assets: Option<Vec<String>>,
    pub max_payments: Option<u32>,
    pub expires_at: Option<String>,
    pub accepting_payments: bool,
    pub views_count: u64,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct EventView {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub details: BTreeMap<String, String>,
    pub charge: Option<SubjectView>,
    pub invoice: Option<SubjectView>,
    pub created_at: String,
}

impl EventView {
    /// The code of what it is about.
    pub fn subject(&self) -> &str {
        self.charge.as_ref().or(self.invoice.as_ref()).map_or("", |it| it.code.as_str())
    }
}

/// The object of an event, as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct SubjectView {
    pub code: String,
    pub status: String,
}

/// The body of a delivery.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct Envelope<'b> {
    #[serde(borrow)]
    pub id: Cow<'b, str>,
    #[serde(borrow)]
    pub event_id: Option<Cow<'b, str>>,
    #[serde(borrow)]
    pub event: Cow<'b, str>,
    #[serde(borrow)]
    pub mode: Cow<'b, str>,
    #[serde(borrow)]
    pub created_at: Cow<'b, str>,
    #[serde(default)]
    pub test: bool,
    #[serde(borrow)]
    pub data: EnvelopeData<'b>,
}

/// The object in the body of a delivery.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct EnvelopeData<'b> {
    #[serde(borrow)]
    pub charge: Option<EnvelopeCharge<'b>>,
    #[serde(borrow)]
    pub invoice: Option<EnvelopeInvoice<'b>>,
}

/// A charge in the body of a delivery.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct EnvelopeCharge<'b> {
    #[serde(borrow)]
    pub code: Cow<'b, str>,
    #[serde(borrow)]
    pub status: Cow<'b, str>,
    #[serde(borrow)]
    pub asset_amount: Cow<'b, str>,
    #[serde(borrow)]
    pub received_amount: Cow<'b, str>,
}

/// An invoice in the body of a delivery.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct EnvelopeInvoice<'b> {
    #[serde(borrow)]
    pub code: Cow<'b, str>,
    #[serde(borrow)]
    pub status: Cow<'b, str>,
    #[serde(borrow)]
    pub charges: Vec<EnvelopeStatus<'b>>,
}

/// A charge within an invoice in the body of a delivery.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct EnvelopeStatus<'b> {
    #[serde(borrow)]
    pub status: Cow<'b, str>,
}

impl<'b> Envelope<'b> {
    /// Reads a body; `None` if it is not the JSON it must be.
    pub fn read(body: &'b [u8]) -> Option<Envelope<'b>> {
        serde_json::from_slice(body).ok()
    }

    /// The code of what it is about.
    pub fn subject(&self) -> &str {
        match (&self.data.charge, &self.data.invoice) {
            (Some(charge), None) => charge.code.as_ref(),
            (None, Some(invoice)) => invoice.code.as_ref(),
            _ => "",
        }
    }
}

/// The public names of what a book holds, in order of creation, as far as somebody outside has learned them.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the words of the contract")]
pub struct Ids {
    pub charges: Vec<String>,
    pub addresses: Vec<String>,
    pub invoices: Vec<String>,
    pub links: Vec<String>,
    pub events: Vec<String>,
}

impl Ids {
    /// The code of a charge or an invoice.
    pub fn code(&self, subject: Subject) -> &str {
        match subject {
            Subject::Charge(no) => &self.charges[no],
            Subject::Invoice(no) => &self.invoices[no],
        }
    }
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

impl Book {
    /// A charge as it must be shown when its chain has this height, but for its timeline, its description and its metadata.
    pub(crate) fn charge_view(&self, ids: &Ids, no: usize, height: u64) -> ChargeView {
        let charge: &Charge = &self.charges[no];
        let terms = charge.terms;
        let coin = |units| money::written(units, terms.asset);
        let received = charge.received();
        let transfer = |it: &ChargeTransfer| TransferView {
            txid: it.txid.clone(),
            amount: coin(it.units),
            confirmations: charge.confirmations(it, height),
            required_confirmations: charge.required,
            status: charge.word(it).to_owned(),
            credited: it.counted,
            seen_at: it.first_seen.to_string(),
        };
        ChargeView {
            code: ids.charges[no].clone(),
            status: charge.status.as_str().to_owned(),
            payment_link: terms.link.map(|no| ids.links[no].clone()),
            invoice: terms.invoice.map(|no| ids.invoices[no].clone()),
            fiat_amount: money::fiat(terms.cents),
            fiat_currency: terms.currency.code().to_owned(),
            asset: terms.asset.code().to_owned(),
            asset_amount: coin(charge.due),
            received_amount: coin(received),
            remaining_amount: coin(charge.due.saturating_sub(charge.counting())),
            refunded_amount: coin(charge.refunded()),
            refunds: charge.refunds.iter().map(|refund| RefundView { amount: coin(refund.units) }).collect(),
            overpaid: money::is_overpaid(charge.counting(), charge.due, charge.threshold),
            exchange_rate: money::rate(terms.rate),
            deposit_address: ids.addresses[no].clone(),
            description: None,
            metadata: serde_json::Value::Null,
            transactions: charge.transfers.iter().map(transfer).collect(),
            timeline: Vec::new(),
            expires_at: charge.end.to_string(),
            paid_at: time(charge.paid_at),
            created_at: charge.opened.to_string(),
        }
    }

    /// An invoice as it must be shown, but for its timeline.
    pub(crate) fn invoice_view(&self, ids: &Ids, no: usize) -> InvoiceView {
        let invoice: &InvoiceModel = &self.invoices[no];
        let nested = |no: &usize| NestedCharge {
            code: ids.charges[*no].clone(),
            status: self.charges[*no].status.as_str().to_owned(),
            asset: self.charges[*no].terms.asset.code().to_owned(),
        };
        InvoiceView {
            code: ids.invoices[no].clone(),
            number: format!("INV-{:04}", no + 1),
            status: invoice.status.as_str().to_owned(),
            amount: money::fiat(invoice.cents),
            currency: invoice.currency.code().to_owned(),
            customer_email: invoice.reader.clone(),
            charges: invoice.charges.iter().map(nested).collect(),
            timeline: Vec::new(),
            sent_at: time(invoice.sent_at),
            viewed_at: time(invoice.viewed_at),
            paid_at: time(invoice.paid_at),
            voided_at: time(invoice.voided_at),
            created_at: invoice.issued.to_string(),
        }
    }

    /// A payment link as it must be shown.
    pub(crate) fn link_view(&self, ids: &Ids, no: usize, now: Timestamp) -> LinkView {
        let link: &LinkModel = &self.links[no];
        let (pricing_type, amount, min, max) = match link.pricing {
            Pricing::Fixed(cents) => ("fixed", Some(cents), None, None),
            Pricing::Open { min, max } => ("open", None, min, max),
        };
        let codes = |coins: &Vec<Asset>| coins.iter().map(|coin| coin.code().to_owned()).collect();
        LinkView {
            code: ids.links[no].clone(),
            status: if link.is_archived { "archived" } else { "active" }.to_owned(),
            pricing_type: pricing_type.to_owned(),
            amount: amount.map(money::fiat),
            min_amount: min.map(money::fiat),
            max_amount: max.map(money::fiat),
            currency: link.currency.code().to_owned(),
            accepted_assets: link.coins.as_ref().map(codes),
            max_payments: link.max_payments,
            expires_at: time(link.expires_at),
            accepting_payments: self.accepts_payments(no, now),
            views_count: link.views,
        }
    }

    /// An event as it must be shown: with its object as it is now. Its id is empty where nobody has learned it.
    pub(crate) fn event_view(&self, ids: &Ids, no: usize) -> EventView {
        let event = &self.events[no];
        let subject = SubjectView {
            code: ids.code(event.subject).to_owned(),
            status: match event.subject {
                Subject::Charge(no) => self.charges[no].status.as_str(),
                Subject::Invoice(no) => self.invoices[no].status.as_str(),
            }
            .to_owned(),
        };
        let (charge, invoice) = match event.subject {
            Subject::Charge(_) => (Some(subject), None),
            Subject::Invoice(_) => (None, Some(subject)),
        };
        EventView {
            id: ids.events.get(no).cloned().unwrap_or_default(),
            kind: event.kind.to_owned(),
            details: self.details_view(event),
            charge,
            invoice,
            created_at: event.at.to_string(),
        }
    }

    fn details_view(&self, event: &Event) -> BTreeMap<String, String> {
        let coin = |units: u128| match event.subject {
            Subject::Charge(no) => money::written(units, self.charges[no].terms.asset),
            Subject::Invoice(_) => String::new(),
        };
        let named = match &event.details {
            Details::None => Vec::new(),
            Details::Transfer { txid, units } => vec![("amount", coin(*units)), ("txid", txid.clone())],
            Details::Refund { units, txid, reason } => {
                let said = [("txid", txid), ("reason", reason)];
                let said = said.into_iter().filter_map(|(name, text)| Some((name, text.clone()?)));
                [("amount", coin(*units))].into_iter().chain(said).collect()
            }
            Details::Reason(why) => vec![("reason", (*why).to_owned())],
        };
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The body of a delivery as it must be from the first attempt to the last. Nobody has to know the object of a test.
    pub fn envelope(&self, ids: &Ids, id: &str, no: usize) -> Envelope<'static> {
        let delivery = &self.deliveries[no];
        let event = delivery.event.map(|event| &self.events[event]);
        let data = match event.map(|event| (event.subject, &event.then)) {
            None => EnvelopeData { charge: None, invoice: None },
            Some((subject @ Subject::Charge(no), then)) => {
                let charge = &self.charges[no];
                let padded = |units| Cow::from(money::written_padded(units, charge.terms.asset));
                let charge = EnvelopeCharge {
                    code: ids.code(subject).to_owned().into(),
                    status: then.status.into(),
                    asset_amount: padded(charge.due),
                    received_amount: padded(then.received),
                };
                EnvelopeData { charge: Some(charge), invoice: None }
            }
            Some((subject, then)) => {
                let status = |status: &&'static str| EnvelopeStatus { status: (*status).into() };
                let invoice = EnvelopeInvoice {
                    code: ids.code(subject).to_owned().into(),
                    status: then.status.into(),
                    charges: then.charges.iter().map(status).collect(),
                };
                EnvelopeData { charge: None, invoice: Some(invoice) }
            }
        };
        Envelope {
            id: id.to_owned().into(),
            event_id: delivery.event.map(|no| ids.events.get(no).cloned().unwrap_or_default().into()),
            event: event.map_or("charge.paid", |event| event.kind).into(),
            mode: self.mode.as_str().into(),
            created_at: delivery.opened.to_string().into(),
            test: event.is_none(),
            data,
        }
    }
}
