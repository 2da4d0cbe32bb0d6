//! Objects as JSON: the complete documents that a response or a webhook must contain, written from the model alone.
//!
//! The fields are in the order of the service, so that equal objects are equal strings and the comparison needs no
//! parsing. The order is only an optimization: strings that differ are compared as JSON values.

use reference_core::{asset::Asset, mode::Mode, time::Timestamp};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};

use super::{
    Book, Details, EventObject, InvoiceModel, LinkModel, Pricing, Subject,
    sample::Sample,
    view::{Ids, TimelineEntry},
};
use crate::model::{
    Charge, ChargeTransfer, Status, money,
    texts::{ChargeTexts, CustomFieldText, CustomerTexts, ItemText},
};

/// The kind of document that contains an object, which determines the format of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presentation {
    /// A response for a single object, or a list.
    Api,
    /// An event read through the API.
    Event,
    /// The body of a webhook.
    Webhook,
}

/// The values besides its book that the JSON of an object depends on.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub struct ObjectContext<'a> {
    pub ids: &'a Ids,
    /// The base URL of the hosted pages.
    pub public_url: &'a str,
    pub now: Timestamp,
}

fn time_text(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the keys of an object are strings")
}

#[derive(Serialize)]
struct RefundJson<'a> {
    amount: String,
    txid: Option<&'a str>,
    reason: Option<&'a str>,
    explorer_url: Option<String>,
    created_at: String,
}

#[derive(Serialize)]
struct TransactionJson<'a> {
    txid: &'a str,
    amount: String,
    confirmations: u64,
    required_confirmations: u32,
    status: &'static str,
    credited: bool,
    explorer_url: String,
    seen_at: String,
}

#[derive(Serialize)]
struct ChargeJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    code: &'a str,
    object: &'static str,
    status: &'static str,
    payment_link: Option<&'a str>,
    invoice: Option<&'a str>,
    description: Option<&'a str>,
    fiat_amount: String,
    fiat_currency: &'static str,
    asset: &'static str,
    asset_amount: String,
    received_amount: String,
    remaining_amount: String,
    overpaid: bool,
    refunded_amount: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refunds: Option<Vec<RefundJson<'a>>>,
    exchange_rate: String,
    deposit_address: &'a str,
    transactions: Vec<TransactionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<TimelineEntry>>,
    customer_email: Option<&'a str>,
    customer_name: Option<&'a str>,
    customer: &'a CustomerTexts,
    custom_fields: &'a [CustomFieldText],
    metadata: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout_url: Option<String>,
    /// Omitted in webhooks; null unless the charge is paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_url: Option<Option<String>>,
    expires_at: String,
    paid_at: Option<String>,
    created_at: String,
}

#[derive(Serialize)]
struct InvoiceCustomerJson<'a> {
    name: Option<&'a str>,
    email: Option<&'a str>,
}

#[derive(Serialize)]
struct InvoiceChargeJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    code: &'a str,
    status: &'static str,
    asset: &'static str,
}

#[derive(Serialize)]
struct InvoiceJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    code: &'a str,
    object: &'static str,
    number: String,
    status: &'static str,
    overdue: bool,
    customer: InvoiceCustomerJson<'a>,
    customer_name: Option<&'a str>,
    customer_email: Option<&'a str>,
    memo: Option<&'a str>,
    amount: String,
    currency: &'static str,
    items: &'a [ItemText],
    due_at: Option<&'a str>,
    hosted_url: String,
    document_url: String,
    charges: Vec<InvoiceChargeJson<'a>>,
    sent_at: Option<String>,
    viewed_at: Option<String>,
    paid_at: Option<String>,
    voided_at: Option<String>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Vec<TimelineEntry>>,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    id: &'a str,
    code: &'a str,
    object: &'static str,
    title: &'a str,
    description: Option<&'a str>,
    pricing_type: &'static str,
    amount: Option<String>,
    suggested_amounts: &'a [String],
    min_amount: Option<String>,
    max_amount: Option<String>,
    currency: &'static str,
    accepted_assets: Option<Vec<&'static str>>,
    status: &'static str,
    success_url: Option<&'a str>,
    cancel_url: Option<&'a str>,
    collect_name: bool,
    require_email: bool,
    custom_fields: &'a [super::CustomFieldDefinition],
    success_message: Option<&'a str>,
    expires_at: Option<String>,
    max_payments: Option<u32>,
    accepting_payments: bool,
    views_count: u64,
    checkout_url: String,
    created_at: String,
    updated_at: String,
}

#[derive(Default, Serialize)]
struct DetailsJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    txid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct EventJson<'a> {
    id: &'a str,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    details: DetailsJson<'a>,
    charge: Option<&'a RawValue>,
    invoice: Option<&'a RawValue>,
    created_at: String,
}

#[derive(Serialize)]
struct EnvelopeJson<'a> {
    id: &'a str,
    event_id: Option<&'a str>,
    event: &'a str,
    mode: &'static str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<bool>,
    data: DataJson<'a>,
}

/// The `data` of a delivery: a charge and the transfer that the event is about, if any, or an invoice.
enum DataJson<'a> {
    Charge(Box<ChargeJson<'a>>, Option<TransactionJson<'a>>),
    Invoice(Box<InvoiceJson<'a>>),
}

impl Serialize for DataJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        match self {
            DataJson::Charge(charge, transaction) => {
                map.serialize_entry("charge", charge)?;
                if let Some(transaction) = transaction {
                    map.serialize_entry("transaction", transaction)?;
                }
            }
            DataJson::Invoice(invoice) => map.serialize_entry("invoice", invoice)?,
        }
        map.end()
    }
}

/// Writes the objects of one book.
struct Writer<'a> {
    book: &'a Book,
    context: ObjectContext<'a>,
    presentation: Presentation,
}

impl<'a> Writer<'a> {
    /// Formats an amount of a coin.
    fn coin(&self, units: u128, asset: Asset) -> String {
        match self.presentation {
            Presentation::Webhook => money::format_units_padded(units, asset),
            _ => money::format_units(units, asset),
        }
    }

    /// Returns the URL of a hosted page.
    fn page(&self, path: &str, code: &str, suffix: &str) -> String {
        [self.context.public_url, path, code, suffix].concat()
    }

    /// Returns the URL of a transaction in the block explorer.
    fn explorer(&self, asset: Asset, txid: &str) -> String {
        let path = if self.book.mode == Mode::Live { "/tx/" } else { "/testnet/tx/" };
        ["https://explorer.sim/", asset.facts().network, path, txid].concat()
    }

    /// Returns the timeline of an object, which only responses have; `events` are the numbers of its events.
    fn timeline(&self, events: &[usize]) -> Option<Vec<TimelineEntry>> {
        let entry = |number: &usize| {
            let event = &self.book.events[*number];
            TimelineEntry { event: event.kind.to_owned(), time: event.at.to_string() }
        };
        (self.presentation == Presentation::Api).then(|| events.iter().map(entry).collect())
    }

    /// Returns the fields of a transfer to a charge; `height` is that of its chain.
    fn transaction(
        &self,
        (charge, height): (&'a Charge, u64),
        transfer: &'a ChargeTransfer,
    ) -> TransactionJson<'a> {
        let asset = charge.terms.asset;
        TransactionJson {
            txid: &transfer.txid,
            amount: self.coin(transfer.units, asset),
            confirmations: charge.confirmations(transfer, height),
            required_confirmations: charge.required,
            status: charge.transfer_status(transfer),
            credited: transfer.is_counted,
            explorer_url: self.explorer(asset, &transfer.txid),
            seen_at: transfer.first_seen.to_string(),
        }
    }

    /// Returns the fields of a charge; `height` is that of its chain.
    fn charge(&self, number: usize, (charge, height): (&'a Charge, u64), events: &[usize]) -> ChargeJson<'a> {
        let ids = self.context.ids;
        let (terms, code) = (charge.terms, ids.charges[number].as_str());
        let ChargeTexts { description, customer, custom_fields, metadata } = &charge.texts;
        let has_api_fields = self.presentation != Presentation::Webhook;
        let coin = |units| self.coin(units, terms.asset);
        let refund = |refund: &'a crate::model::charge::RefundModel| RefundJson {
            amount: coin(refund.units),
            txid: refund.txid.as_deref(),
            reason: refund.reason.as_deref(),
            explorer_url: refund
                .txid
                .as_deref()
                .filter(|txid| terms.asset.facts().address_format.is_txid(txid))
                .map(|txid| self.explorer(terms.asset, txid)),
            created_at: refund.at.to_string(),
        };
        ChargeJson {
            id: has_api_fields.then_some(code),
            code,
            object: "charge",
            status: charge.status.as_str(),
            payment_link: terms.link.map(|number| ids.links[number].as_str()),
            invoice: terms.invoice.map(|number| ids.invoices[number].as_str()),
            description: description.as_deref(),
            fiat_amount: money::fiat(terms.cents),
            fiat_currency: terms.currency.code(),
            asset: terms.asset.code(),
            asset_amount: coin(charge.due),
            received_amount: coin(charge.received_units()),
            remaining_amount: coin(charge.due.saturating_sub(charge.effective_units())),
            overpaid: money::is_overpaid(charge.effective_units(), charge.due, charge.threshold),
            refunded_amount: coin(charge.refunded_units()),
            refunds: has_api_fields.then(|| charge.refunds.iter().map(refund).collect()),
            exchange_rate: if has_api_fields {
                money::rate(terms.rate)
            } else {
                money::rate_padded(terms.rate)
            },
            deposit_address: &ids.addresses[number],
            transactions: charge
                .transfers
                .iter()
                .map(|transfer| self.transaction((charge, height), transfer))
                .collect(),
            timeline: self.timeline(events),
            customer_email: customer.email.as_deref(),
            customer_name: customer.name.as_deref(),
            customer,
            custom_fields,
            metadata,
            checkout_url: has_api_fields.then(|| self.page("/c/", code, "")),
            receipt_url: has_api_fields
                .then(|| (charge.status == Status::Paid).then(|| self.page("/c/", code, "/receipt"))),
            expires_at: charge.lock_ends_at.to_string(),
            paid_at: time_text(charge.paid_at),
            created_at: charge.created_at.to_string(),
        }
    }

    /// Returns the fields of an invoice; `statuses` are those of its charges.
    fn invoice(
        &self,
        number: usize,
        (invoice, statuses): (&'a InvoiceModel, &[&'static str]),
        events: &[usize],
    ) -> InvoiceJson<'a> {
        let ids = self.context.ids;
        let (texts, code) = (&invoice.texts, ids.invoices[number].as_str());
        let has_api_fields = self.presentation != Presentation::Webhook;
        let charges = invoice.charges.iter().zip(statuses);
        InvoiceJson {
            id: has_api_fields.then_some(code),
            code,
            object: "invoice",
            number: super::invoice::display_number(number),
            status: invoice.status.as_str(),
            overdue: invoice.is_overdue(self.context.now),
            customer: InvoiceCustomerJson {
                name: texts.customer_name.as_deref(),
                email: invoice.recipient.as_deref(),
            },
            customer_name: texts.customer_name.as_deref(),
            customer_email: invoice.recipient.as_deref(),
            memo: texts.memo.as_deref(),
            amount: money::fiat(invoice.cents),
            currency: invoice.currency.code(),
            items: &texts.items,
            due_at: texts.due_at.as_deref(),
            hosted_url: self.page("/i/", code, ""),
            document_url: self.page("/i/", code, "/document"),
            charges: charges
                .map(|(number, status)| InvoiceChargeJson {
                    id: has_api_fields.then(|| ids.charges[*number].as_str()),
                    code: &ids.charges[*number],
                    status,
                    asset: self.book.charges[*number].terms.asset.code(),
                })
                .collect(),
            sent_at: time_text(invoice.sent_at),
            viewed_at: time_text(invoice.viewed_at),
            paid_at: time_text(invoice.paid_at),
            voided_at: time_text(invoice.voided_at),
            created_at: invoice.created_at.to_string(),
            timeline: self.timeline(events),
        }
    }
}

impl Book {
    fn writer<'a>(&'a self, context: ObjectContext<'a>, presentation: Presentation) -> Writer<'a> {
        Writer { book: self, context, presentation }
    }

    /// Returns the numbers of the events of an object, in order.
    pub fn event_numbers(&self, subject: Subject) -> &[usize] {
        let numbers = match subject {
            Subject::Charge(number) => self.object_events.0.get(number),
            Subject::Invoice(number) => self.object_events.1.get(number),
        };
        numbers.map_or(&[], Vec::as_slice)
    }

    /// Returns the expected JSON of a charge.
    pub fn charge_json(
        &self,
        context: ObjectContext<'_>,
        number: usize,
        presentation: Presentation,
    ) -> String {
        let charge = &self.charges[number];
        let height = self.height(charge.terms.asset);
        let events = self.event_numbers(Subject::Charge(number));
        json(&self.writer(context, presentation).charge(number, (charge, height), events))
    }

    /// Returns the expected JSON of an invoice.
    pub fn invoice_json(
        &self,
        context: ObjectContext<'_>,
        number: usize,
        presentation: Presentation,
    ) -> String {
        let invoice = &self.invoices[number];
        let statuses = self.statuses_of(invoice);
        let events = self.event_numbers(Subject::Invoice(number));
        json(&self.writer(context, presentation).invoice(number, (invoice, &statuses), events))
    }

    /// Returns the expected JSON of a payment link.
    pub fn link_json(&self, context: ObjectContext<'_>, number: usize) -> String {
        let link: &LinkModel = &self.links[number];
        let writer = self.writer(context, Presentation::Api);
        let (texts, code) = (&link.texts, context.ids.links[number].as_str());
        let (pricing_type, amount, min, max) = match link.pricing {
            Pricing::Fixed(cents) => ("fixed", Some(cents), None, None),
            Pricing::Open { min, max } => ("open", None, min, max),
        };
        json(&LinkJson {
            id: code,
            code,
            object: "payment_link",
            title: &texts.title,
            description: texts.description.as_deref(),
            pricing_type,
            amount: amount.map(money::fiat),
            suggested_amounts: &texts.suggested_amounts,
            min_amount: min.map(money::fiat),
            max_amount: max.map(money::fiat),
            currency: link.currency.code(),
            accepted_assets: link.coins.as_ref().map(|coins| coins.iter().map(|coin| coin.code()).collect()),
            status: if link.is_archived { "archived" } else { "active" },
            success_url: texts.success_url.as_deref(),
            cancel_url: texts.cancel_url.as_deref(),
            collect_name: texts.collect_name,
            require_email: texts.require_email,
            custom_fields: &link.custom_fields,
            success_message: texts.success_message.as_deref(),
            expires_at: time_text(link.expires_at),
            max_payments: link.max_payments,
            accepting_payments: self.accepts_payments(number, context.now),
            views_count: link.views,
            checkout_url: writer.page("/pay/", code, ""),
            created_at: link.created_at.to_string(),
            updated_at: link.updated_at.to_string(),
        })
    }

    /// Returns the expected JSON of an event. `object` is the JSON of its charge or invoice, from
    /// [`Book::event_object_json`].
    pub fn event_json(&self, id: &str, number: usize, object: &str) -> String {
        let event = &self.events[number];
        let object: &RawValue = serde_json::from_str(object).expect("the object is valid JSON");
        let (charge, invoice) = match event.subject {
            Subject::Charge(_) => (Some(object), None),
            Subject::Invoice(_) => (None, Some(object)),
        };
        json(&EventJson {
            id,
            object: "event",
            kind: event.kind,
            details: self.details_json(event.subject, &event.details),
            charge,
            invoice,
            created_at: event.at.to_string(),
        })
    }

    /// Returns the JSON of the object of an event, in its current state, in the format that events have.
    pub fn event_object_json(&self, context: ObjectContext<'_>, subject: Subject) -> String {
        match subject {
            Subject::Charge(number) => self.charge_json(context, number, Presentation::Event),
            Subject::Invoice(number) => self.invoice_json(context, number, Presentation::Event),
        }
    }

    /// Returns the fields of the `details` of an event.
    fn details_json<'d>(&self, subject: Subject, details: &'d Details) -> DetailsJson<'d> {
        let coin = |units: u128| match subject {
            Subject::Charge(number) => money::format_units(units, self.charges[number].terms.asset),
            Subject::Invoice(_) => String::new(),
        };
        match details {
            Details::None => DetailsJson::default(),
            Details::Transfer { txid, units } => {
                DetailsJson { txid: Some(txid), amount: Some(coin(*units)), reason: None }
            }
            Details::Refund { units, txid, reason } => {
                DetailsJson { txid: txid.as_deref(), amount: Some(coin(*units)), reason: reason.as_deref() }
            }
            Details::Reason(reason) => DetailsJson { reason: Some(reason), ..DetailsJson::default() },
        }
    }

    /// Returns the body of every attempt of a delivery.
    ///
    /// # Panics
    ///
    /// If the event of the delivery has no object. `Book::record` stores one for every delivered event.
    pub fn envelope_json(&self, context: ObjectContext<'_>, id: &str, number: usize) -> String {
        let delivery = &self.deliveries[number];
        let event = delivery.event.map(|number| (number, &self.events[number]));
        let sample = Sample::new(delivery.created_at, self.mode);
        let ids = if event.is_some() { context.ids } else { &sample.ids };
        let context = ObjectContext { ids, now: delivery.created_at, ..context };
        let writer = self.writer(context, Presentation::Webhook);
        let sample_data = || DataJson::Charge(Box::new(writer.charge(0, (&sample.charge, 0), &[])), None);
        let data = event.map_or_else(sample_data, |(_, event)| {
            let object = event.object.as_deref().expect("a delivered event stores its object");
            match (event.subject, object) {
                (Subject::Charge(number), EventObject::Charge(charge, height)) => {
                    let announced = match &event.details {
                        Details::Transfer { txid, units }
                            if matches!(event.kind, "charge.payment_detected" | "charge.late_payment") =>
                        {
                            let is_announced = |transfer: &&ChargeTransfer| {
                                transfer.txid == *txid && transfer.units == *units
                            };
                            charge.transfers.iter().rfind(is_announced)
                        }
                        _ => None,
                    };
                    let announced = announced.map(|transfer| writer.transaction((charge, *height), transfer));
                    DataJson::Charge(Box::new(writer.charge(number, (charge, *height), &[])), announced)
                }
                (Subject::Invoice(number), EventObject::Invoice(invoice, statuses)) => {
                    DataJson::Invoice(Box::new(writer.invoice(number, (invoice, statuses), &[])))
                }
                _ => unreachable!("the stored object of an event is of the kind of its subject"),
            }
        });
        json(&EnvelopeJson {
            id,
            event_id: event.map(|(number, _)| context.ids.events.get(number).map_or("", String::as_str)),
            event: event.map_or("charge.paid", |(_, event)| event.kind),
            mode: self.mode.as_str(),
            created_at: delivery.created_at.to_string(),
            test: event.is_none().then_some(true),
            data,
        })
    }
}
