//! The JSON of objects: views that borrow the fields of an object for serialization.
//!
//! The order of fields is the order in the structs. The fields of an object depend on its [`Presentation`]: in a
//! response, in an event, or in a webhook.

use std::fmt::Display;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;

use reference_core::{
    asset::Asset,
    book::Book,
    charge::{Charge, ChargeStatus, CustomField, Metadata, MetadataValue, Transfer},
    event::{Details, Event, Subject},
    heights::ChainHeights,
    id::{ChargeNo, Code, InvoiceNo, LinkNo},
    invoice::Invoice,
    link::Pricing,
    mode::Mode,
    money::{Coin, DecimalText, Fiat, Quantity, Rate},
    time::{Day, Timestamp},
};
use uuid::Uuid;

/// The kind of document that contains an object. It determines the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presentation {
    /// In a response, alone or in a list.
    Api,
    /// In an event read through the API: without a timeline.
    Event,
    /// In the `data` of a webhook: coin amounts and rates padded to 18 decimals; without `id` and timeline; a charge
    /// also without refunds and page URLs.
    Webhook,
}

/// The context of every view.
#[derive(Clone, Copy)]
pub(crate) struct ObjectContext<'a> {
    pub(crate) book: &'a Book,
    pub(crate) public_url: &'a str,
    pub(crate) presentation: Presentation,
    /// The service time, for fields that depend on it.
    pub(crate) now: Timestamp,
    /// The heights from which confirmations are computed; `None` for a snapshot, whose confirmations
    /// were computed when it was taken.
    pub(crate) heights: Option<&'a ChainHeights>,
}

impl<'a> ObjectContext<'a> {
    fn is_webhook(&self) -> bool {
        self.presentation == Presentation::Webhook
    }

    fn coin(&self, amount: Coin) -> Decimals<Coin> {
        if self.is_webhook() { Decimals::Padded(amount.padded_text()) } else { Decimals::Trimmed(amount) }
    }

    fn rate(&self, rate: Rate) -> Decimals<Rate> {
        if self.is_webhook() { Decimals::Padded(rate.padded_text()) } else { Decimals::Trimmed(rate) }
    }

    /// Returns the URL of a hosted page; `path` begins and ends with a slash.
    fn page_url(&self, path: &str, code: &Code, suffix: &str) -> String {
        [self.public_url, path, code.as_str(), suffix].concat()
    }

    fn explorer_url(&self, asset: Asset, txid: &str) -> String {
        let path = match self.book.mode() {
            Mode::Live => "/tx/",
            Mode::Test => "/testnet/tx/",
        };
        ["https://explorer.sim/", asset.facts().network, path, txid].concat()
    }

    fn timeline(&self, subject: Subject) -> Option<Timeline<'a>> {
        (self.presentation == Presentation::Api).then_some(Timeline { book: self.book, subject })
    }
}

/// A value serialized as a string by its `Display`, without an intermediate copy.
pub(crate) struct DisplayString<T>(pub(crate) T);

impl<T: Display> Serialize for DisplayString<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An amount of coins or a rate, with the decimals of its presentation.
enum Decimals<T> {
    Trimmed(T),
    Padded(DecimalText),
}

impl<T: Display> Serialize for Decimals<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Decimals::Trimmed(amount) => serializer.collect_str(amount),
            Decimals::Padded(text) => serializer.serialize_str(text),
        }
    }
}

/// The timeline of a charge or an invoice, oldest first.
struct Timeline<'a> {
    book: &'a Book,
    subject: Subject,
}

#[derive(Serialize)]
struct TimelineEntry {
    event: &'static str,
    time: DisplayString<Timestamp>,
}

impl Serialize for Timeline<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = self.book.events().timeline(self.subject);
        serializer.collect_seq(
            events.map(|event| TimelineEntry {
                event: event.kind.as_str(),
                time: DisplayString(event.created_at),
            }),
        )
    }
}

/// Metadata as an object, in the order of its keys in the request.
struct MetadataView<'a>(&'a Metadata);

impl Serialize for MetadataView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            match value {
                MetadataValue::Text(text) => map.serialize_entry(key, text)?,
                MetadataValue::Bool(value) => map.serialize_entry(key, value)?,
                MetadataValue::Null => map.serialize_entry(key, &())?,
                MetadataValue::Number(text) => {
                    let number: &RawValue =
                        serde_json::from_str(text).expect("the request contained it as a number");
                    map.serialize_entry(key, number)?;
                }
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct CustomerView<'a> {
    email: Option<&'a str>,
    name: Option<&'a str>,
    ip_address: Option<&'a str>,
    user_agent: Option<&'a str>,
    reference: Option<&'a str>,
    phone: Option<&'a str>,
    country: Option<&'a str>,
    metadata: MetadataView<'a>,
}

#[derive(Serialize)]
struct RefundView<'a> {
    amount: Decimals<Coin>,
    txid: Option<&'a str>,
    reason: Option<&'a str>,
    explorer_url: Option<String>,
    created_at: DisplayString<Timestamp>,
}

/// A transfer, in `transactions` and as `data.transaction`.
#[derive(Serialize)]
pub(crate) struct TransactionView<'a> {
    txid: &'a str,
    amount: Decimals<Coin>,
    confirmations: u32,
    required_confirmations: u32,
    status: &'static str,
    credited: bool,
    explorer_url: String,
    seen_at: DisplayString<Timestamp>,
}

impl<'a> TransactionView<'a> {
    pub(crate) fn new(
        context: ObjectContext<'a>,
        asset: Asset,
        transfer: &'a Transfer,
    ) -> TransactionView<'a> {
        let mode = context.book.mode();
        let required = asset.required_confirmations(mode);
        let height = context.heights.map_or(0, |heights| heights.get(mode, asset));
        TransactionView {
            txid: &transfer.txid,
            amount: context.coin(transfer.amount),
            confirmations: transfer.confirmations_at(height, required),
            required_confirmations: required,
            status: transfer.status(required),
            credited: transfer.is_credited,
            explorer_url: context.explorer_url(asset, &transfer.txid),
            seen_at: DisplayString(transfer.seen_at),
        }
    }
}

/// The transfers of a charge.
struct Transactions<'a> {
    context: ObjectContext<'a>,
    charge: &'a Charge,
}

impl Serialize for Transactions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let view = |transfer| TransactionView::new(self.context, self.charge.terms.asset, transfer);
        serializer.collect_seq(self.charge.transfers().iter().map(view))
    }
}

#[derive(Serialize)]
struct CustomFieldView<'a> {
    label: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
pub(crate) struct ChargeView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    code: &'a str,
    object: &'static str,
    status: &'static str,
    payment_link: Option<&'a str>,
    invoice: Option<&'a str>,
    description: Option<&'a str>,
    fiat_amount: DisplayString<Fiat>,
    fiat_currency: &'static str,
    asset: &'static str,
    asset_amount: Decimals<Coin>,
    received_amount: Decimals<Coin>,
    remaining_amount: Decimals<Coin>,
    overpaid: bool,
    refunded_amount: Decimals<Coin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refunds: Option<Vec<RefundView<'a>>>,
    exchange_rate: Decimals<Rate>,
    deposit_address: &'a str,
    transactions: Transactions<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Timeline<'a>>,
    customer_email: Option<&'a str>,
    customer_name: Option<&'a str>,
    customer: CustomerView<'a>,
    custom_fields: Vec<CustomFieldView<'a>>,
    metadata: MetadataView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_url: Option<Option<String>>,
    expires_at: DisplayString<Timestamp>,
    paid_at: Option<DisplayString<Timestamp>>,
    created_at: DisplayString<Timestamp>,
}

impl<'a> ChargeView<'a> {
    /// Returns the view of a charge of the book, with its timeline for [`Presentation::Api`].
    pub(crate) fn with_timeline(context: ObjectContext<'a>, no: ChargeNo) -> ChargeView<'a> {
        let mut view = ChargeView::without_timeline(context, context.book.charge(no));
        view.timeline = context.timeline(Subject::Charge(no));
        view
    }

    /// Returns the view of a snapshot of a charge, without a timeline.
    pub(crate) fn without_timeline(context: ObjectContext<'a>, charge: &'a Charge) -> ChargeView<'a> {
        let terms = &charge.terms;
        let customer = terms.customer();
        let is_webhook = context.is_webhook();
        let code = charge.code.as_str();
        ChargeView {
            id: (!is_webhook).then_some(code),
            code,
            object: "charge",
            status: charge.status().as_str(),
            payment_link: terms.link.map(|no| context.book.link(no).code.as_str()),
            invoice: terms.invoice.map(|no| context.book.invoice(no).code.as_str()),
            description: terms.description.as_deref(),
            fiat_amount: DisplayString(terms.fiat_amount),
            fiat_currency: terms.fiat_currency.code(),
            asset: terms.asset.code(),
            asset_amount: context.coin(terms.asset_amount),
            received_amount: context.coin(charge.received_amount()),
            remaining_amount: context.coin(charge.remaining_amount()),
            overpaid: charge.is_overpaid(),
            refunded_amount: context.coin(charge.refunded_amount()),
            refunds: (!is_webhook).then(|| {
                let refunds = charge.refunds().iter();
                refunds
                    .map(|refund| RefundView {
                        amount: context.coin(refund.amount),
                        txid: refund.txid.as_deref(),
                        reason: refund.reason.as_deref(),
                        explorer_url: refund
                            .txid
                            .as_deref()
                            .filter(|txid| terms.asset.facts().address_format.is_txid(txid))
                            .map(|txid| context.explorer_url(terms.asset, txid)),
                        created_at: DisplayString(refund.created_at),
                    })
                    .collect()
            }),
            exchange_rate: context.rate(terms.rate),
            deposit_address: terms.deposit_address.as_str(),
            transactions: Transactions { context, charge },
            timeline: None,
            customer_email: customer.email.as_deref(),
            customer_name: customer.name.as_deref(),
            customer: CustomerView {
                email: customer.email.as_deref(),
                name: customer.name.as_deref(),
                ip_address: customer.ip_address.as_deref(),
                user_agent: customer.user_agent.as_deref(),
                reference: customer.reference.as_deref(),
                phone: customer.phone.as_deref(),
                country: customer.country.as_deref(),
                metadata: MetadataView(&customer.metadata),
            },
            custom_fields: terms
                .custom_fields
                .iter()
                .map(|CustomField { label, value }| CustomFieldView { label, value })
                .collect(),
            metadata: MetadataView(&terms.metadata),
            checkout_url: (!is_webhook).then(|| context.page_url("/c/", &charge.code, "")),
            receipt_url: (!is_webhook).then(|| {
                (charge.status() == ChargeStatus::Paid)
                    .then(|| context.page_url("/c/", &charge.code, "/receipt"))
            }),
            expires_at: DisplayString(charge.expires_at),
            paid_at: charge.paid_at().map(DisplayString),
            created_at: DisplayString(charge.created_at),
        }
    }
}

#[derive(Serialize)]
struct InvoiceCustomerView<'a> {
    name: Option<&'a str>,
    email: Option<&'a str>,
}

#[derive(Serialize)]
struct ItemView<'a> {
    description: &'a str,
    quantity: DisplayString<Quantity>,
    unit_amount: DisplayString<Fiat>,
    total: DisplayString<Fiat>,
}

#[derive(Serialize)]
struct InvoiceChargeView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    code: &'a str,
    status: &'static str,
    asset: &'static str,
}

#[derive(Serialize)]
pub(crate) struct InvoiceView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    code: &'a str,
    object: &'static str,
    number: &'a str,
    status: &'static str,
    overdue: bool,
    customer: InvoiceCustomerView<'a>,
    customer_name: Option<&'a str>,
    customer_email: Option<&'a str>,
    memo: Option<&'a str>,
    amount: DisplayString<Fiat>,
    currency: &'static str,
    items: Vec<ItemView<'a>>,
    due_at: Option<DisplayString<Day>>,
    hosted_url: String,
    document_url: String,
    charges: Vec<InvoiceChargeView<'a>>,
    sent_at: Option<DisplayString<Timestamp>>,
    viewed_at: Option<DisplayString<Timestamp>>,
    paid_at: Option<DisplayString<Timestamp>>,
    voided_at: Option<DisplayString<Timestamp>>,
    created_at: DisplayString<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Timeline<'a>>,
}

impl<'a> InvoiceView<'a> {
    /// Returns the view of an invoice of the book, with its timeline for [`Presentation::Api`].
    pub(crate) fn with_timeline(context: ObjectContext<'a>, no: InvoiceNo) -> InvoiceView<'a> {
        let invoice = context.book.invoice(no);
        let charges = invoice.charges.iter().map(|&no| {
            let charge = context.book.charge(no);
            (&charge.code, charge.status(), charge.terms.asset)
        });
        InvoiceView {
            timeline: context.timeline(Subject::Invoice(no)),
            ..InvoiceView::without_timeline(context, invoice, charges)
        }
    }

    /// Returns the view of a snapshot of an invoice, without a timeline. `charges`: code, status and coin of its charges.
    pub(crate) fn without_timeline(
        context: ObjectContext<'a>,
        invoice: &'a Invoice,
        charges: impl Iterator<Item = (&'a Code, ChargeStatus, Asset)>,
    ) -> InvoiceView<'a> {
        let terms = &invoice.terms;
        let name = terms.customer_name.as_deref();
        let email = terms.customer_email.as_deref();
        let has_id = !context.is_webhook();
        let time = |at: Option<Timestamp>| at.map(DisplayString);
        InvoiceView {
            id: has_id.then(|| invoice.code.as_str()),
            code: invoice.code.as_str(),
            object: "invoice",
            number: &invoice.number,
            status: invoice.status().as_str(),
            overdue: invoice.is_overdue(context.now),
            customer: InvoiceCustomerView { name, email },
            customer_name: name,
            customer_email: email,
            memo: terms.memo.as_deref(),
            amount: DisplayString(terms.amount),
            currency: terms.currency.code(),
            items: terms
                .items
                .iter()
                .map(|item| ItemView {
                    description: &item.description,
                    quantity: DisplayString(item.quantity),
                    unit_amount: DisplayString(item.unit_amount),
                    total: DisplayString(item.total),
                })
                .collect(),
            due_at: terms.due_at.map(DisplayString),
            hosted_url: context.page_url("/i/", &invoice.code, ""),
            document_url: context.page_url("/i/", &invoice.code, "/document"),
            charges: charges
                .map(|(code, status, asset)| InvoiceChargeView {
                    id: has_id.then(|| code.as_str()),
                    code: code.as_str(),
                    status: status.as_str(),
                    asset: asset.code(),
                })
                .collect(),
            sent_at: time(invoice.sent_at),
            viewed_at: time(invoice.viewed_at),
            paid_at: time(invoice.paid_at),
            voided_at: time(invoice.voided_at),
            created_at: DisplayString(invoice.created_at),
            timeline: None,
        }
    }
}

#[derive(Serialize)]
struct QuestionView<'a> {
    label: &'a str,
    required: bool,
}

#[derive(Serialize)]
pub(crate) struct LinkView<'a> {
    id: &'a str,
    code: &'a str,
    object: &'static str,
    title: &'a str,
    description: Option<&'a str>,
    pricing_type: &'static str,
    amount: Option<DisplayString<Fiat>>,
    suggested_amounts: Vec<DisplayString<Fiat>>,
    min_amount: Option<DisplayString<Fiat>>,
    max_amount: Option<DisplayString<Fiat>>,
    currency: &'static str,
    accepted_assets: Option<Vec<&'static str>>,
    status: &'static str,
    success_url: Option<&'a str>,
    cancel_url: Option<&'a str>,
    collect_name: bool,
    require_email: bool,
    custom_fields: Vec<QuestionView<'a>>,
    success_message: Option<&'a str>,
    expires_at: Option<DisplayString<Timestamp>>,
    max_payments: Option<u32>,
    accepting_payments: bool,
    views_count: u64,
    checkout_url: String,
    created_at: DisplayString<Timestamp>,
    updated_at: DisplayString<Timestamp>,
}

impl<'a> LinkView<'a> {
    pub(crate) fn new(context: ObjectContext<'a>, no: LinkNo) -> LinkView<'a> {
        let link = context.book.link(no);
        let terms = &link.terms;
        let (pricing_type, amount, suggested, min, max) = match &terms.pricing {
            Pricing::Fixed(price) => ("fixed", Some(*price), &[][..], None, None),
            Pricing::Open { suggested, min, max } => ("open", None, suggested.as_slice(), *min, *max),
        };
        LinkView {
            id: link.code.as_str(),
            code: link.code.as_str(),
            object: "payment_link",
            title: &terms.title,
            description: terms.description.as_deref(),
            pricing_type,
            amount: amount.map(DisplayString),
            suggested_amounts: suggested.iter().copied().map(DisplayString).collect(),
            min_amount: min.map(DisplayString),
            max_amount: max.map(DisplayString),
            currency: terms.currency.code(),
            accepted_assets: terms
                .accepted_assets
                .as_ref()
                .map(|assets| assets.iter().map(|asset| asset.code()).collect()),
            status: if link.archived { "archived" } else { "active" },
            success_url: terms.success_url.as_deref(),
            cancel_url: terms.cancel_url.as_deref(),
            collect_name: terms.collect_name,
            require_email: terms.require_email,
            custom_fields: terms
                .custom_fields
                .iter()
                .map(|question| QuestionView { label: &question.label, required: question.required })
                .collect(),
            success_message: terms.success_message.as_deref(),
            expires_at: terms.expires_at.map(DisplayString),
            max_payments: terms.max_payments,
            accepting_payments: link.accepts_payments(context.now),
            views_count: link.views,
            checkout_url: context.page_url("/pay/", &link.code, ""),
            created_at: DisplayString(link.created_at),
            updated_at: DisplayString(link.updated_at),
        }
    }
}

/// The `details` of an event: an object, empty for event types without details.
pub struct DetailsView<'a>(pub &'a Details);

impl Serialize for DetailsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.fields())
    }
}

#[derive(Serialize)]
pub(crate) struct EventView<'a> {
    id: Uuid,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    details: DetailsView<'a>,
    charge: Option<ChargeView<'a>>,
    invoice: Option<InvoiceView<'a>>,
    created_at: DisplayString<Timestamp>,
}

impl<'a> EventView<'a> {
    pub(crate) fn new(context: ObjectContext<'a>, event: &'a Event) -> EventView<'a> {
        let context = ObjectContext { presentation: Presentation::Event, ..context };
        let (charge, invoice) = match event.subject {
            Subject::Charge(no) => (Some(ChargeView::with_timeline(context, no)), None),
            Subject::Invoice(no) => (None, Some(InvoiceView::with_timeline(context, no))),
        };
        EventView {
            id: event.id,
            object: "event",
            kind: event.kind.as_str(),
            details: DetailsView(&event.details),
            charge,
            invoice,
            created_at: DisplayString(event.created_at),
        }
    }
}
