//! The calls of the service's API and their results, independent of the wire format.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    asset::{Asset, Currency},
    charge::{ChargeStatus, CustomField, Customer, Metadata},
    event::EventType,
    id::{ChargeNo, Code, EventNo, InvoiceNo, LinkNo},
    invoice::{InvoiceStatus, Item},
    link::Question,
    money::Fiat,
    page::{Page, PageRequest},
    time::{Day, Timestamp},
};

/// One API request, parsed and typed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Call {
    /// `GET /v1/account`
    Account,
    /// `GET /v1/charges`, `/v1/invoices`, `/v1/payment-links`, `/v1/events`
    List {
        /// The list.
        list: List,
        /// The page.
        page: PageRequest,
        /// The anchor: the public id of the newest record when page 1 was read.
        anchor: Option<String>,
    },
    /// `POST /v1/charges`
    CreateCharge(Box<ChargeDraft>),
    /// `GET /v1/charges/{id}`
    Charge(Code),
    /// `POST /v1/charges/{id}/cancel`
    CancelCharge(Code),
    /// `POST /v1/charges/{id}/refunds`
    RefundCharge(Code, RefundDraft),
    /// `POST /v1/payment-links`
    CreateLink(Box<LinkDraft>),
    /// `GET /v1/payment-links/{id}`
    Link(Code),
    /// `PATCH /v1/payment-links/{id}`
    ChangeLink(Code, Box<LinkDraft>),
    /// `POST /v1/payment-links/{id}/archive`
    ArchiveLink(Code),
    /// `DELETE /v1/payment-links/{id}/archive`
    RestoreLink(Code),
    /// `POST /v1/invoices`
    CreateInvoice(Box<InvoiceDraft>),
    /// `GET /v1/invoices/{id}`
    Invoice(Code),
    /// `POST /v1/invoices/{id}/send`
    SendInvoice(Code),
    /// `POST /v1/invoices/{id}/void`
    VoidInvoice(Code),
    /// `GET /v1/events/{id}`
    Event(Uuid),
}

/// A list with its filters. A filter by an object that the key cannot see selects nothing, whether the object is absent or
/// of the other mode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum List {
    /// Charges.
    Charges {
        /// Only objects with this status.
        status: Option<ChargeStatus>,
        /// Only charges of this payment link.
        link: Option<String>,
    },
    /// Invoices.
    Invoices {
        /// Only objects with this status.
        status: Option<InvoiceStatus>,
    },
    /// Payment links.
    Links,
    /// Events.
    Events {
        /// Only events of this type.
        kind: Option<EventType>,
        /// Only events of this charge.
        charge: Option<String>,
        /// Only events of this invoice.
        invoice: Option<String>,
    },
}

/// A list with its filters and page size: the key of a remembered anchor.
pub type ListKey = (List, u32);

/// The result of a call. Contains the numbers of objects, which are read from the caller's book.
#[derive(Clone, Debug)]
pub enum CallResult {
    /// The account.
    Account,
    /// A charge.
    Charge(ChargeNo),
    /// A payment link.
    Link(LinkNo),
    /// An invoice.
    Invoice(InvoiceNo),
    /// An event.
    Event(EventNo),
    /// A page of a list.
    Page {
        /// The list.
        list: List,
        /// The page.
        page: Page,
        /// The public id of the anchor's record.
        anchor: Option<String>,
    },
}

/// A charge to be opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChargeDraft {
    /// The coin.
    pub asset: Asset,
    /// The price; optional only for a link with a fixed price.
    pub amount: Option<Fiat>,
    /// The currency of the price; that of the link or the account if none is given.
    pub currency: Option<Currency>,
    /// The code of the payment link that it comes from.
    pub link: Option<String>,
    /// The payer.
    pub customer: Customer,
    /// Free text.
    pub description: Option<String>,
    /// Key/value pairs.
    pub metadata: Metadata,
    /// Answers to the link's questions.
    pub custom_fields: Vec<CustomField>,
}

/// A refund to be recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefundDraft {
    /// The amount as written: its decimals depend on the charge's coin.
    pub amount: String,
    /// The transaction.
    pub txid: Option<String>,
    /// The reason.
    pub reason: Option<String>,
}

/// The values to set on a payment link. `None` leaves a value as it is, or sets the default on a new link; `Some(None)`
/// removes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of LinkTerms")]
pub struct LinkDraft {
    pub title: Option<String>,
    pub description: Option<Option<String>>,
    pub pricing_type: Option<PricingType>,
    pub amount: Option<Option<Fiat>>,
    pub suggested_amounts: Option<Vec<Fiat>>,
    pub min_amount: Option<Option<Fiat>>,
    pub max_amount: Option<Option<Fiat>>,
    pub currency: Option<Currency>,
    pub accepted_assets: Option<Option<Vec<Asset>>>,
    pub success_url: Option<Option<String>>,
    pub cancel_url: Option<Option<String>>,
    pub collect_name: Option<bool>,
    pub require_email: Option<bool>,
    pub custom_fields: Option<Vec<Question>>,
    pub success_message: Option<Option<String>>,
    pub expires_at: Option<Option<Timestamp>>,
    pub max_payments: Option<Option<u32>>,
}

/// The pricing of a link: fixed or open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PricingType {
    /// One price.
    Fixed,
    /// The customer chooses.
    Open,
}

/// An invoice to be issued.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvoiceDraft {
    /// The customer's name.
    pub customer_name: Option<String>,
    /// The customer's e-mail address.
    pub customer_email: Option<String>,
    /// The currency; the account's default if none is given.
    pub currency: Option<Currency>,
    /// The amount, if there are no items.
    pub amount: Option<Fiat>,
    /// The items, if there is no amount.
    pub items: Vec<Item>,
    /// A note.
    pub memo: Option<String>,
    /// The due day.
    pub due_at: Option<Day>,
    /// `true` to e-mail the invoice at once.
    pub send_email: bool,
}

/// A customer's choice on a payment link's page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PaymentChoice {
    /// The coin.
    pub asset: Asset,
    /// The amount, if the price is open.
    pub amount: Option<Fiat>,
    /// The payer.
    pub customer: Customer,
    /// Answers to the link's questions.
    pub custom_fields: Vec<CustomField>,
}
