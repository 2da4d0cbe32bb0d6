//! A charge: an amount of a coin, due at one address, at a rate that is locked for 30 minutes.

mod lifecycle;
mod refund;
mod transfer;

pub use lifecycle::{ChargeChange, HOLD_MAX, RATE_LOCK};
pub use refund::Refund;
use serde::{Deserialize, Serialize};
pub use transfer::{Standing, Transfer};

use std::sync::{Arc, LazyLock};

use crate::{
    asset::{Asset, Currency},
    id::{Code, InvoiceNo, LinkNo},
    money::{Coin, Fiat, Percent, Rate},
    time::Timestamp,
};

/// The status of a charge (`open.charge.status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ChargeStatus {
    /// No payment is credited yet.
    Pending,
    /// A confirmed payment fell short; the rest may follow.
    Underpaid,
    /// Enough was confirmed. Final.
    Paid,
    /// The rate lock ran out before enough was paid.
    Expired,
    /// Canceled by the API, the dashboard, or a rule of an invoice or link.
    Canceled,
}

impl ChargeStatus {
    /// Every status, in the order of the classes of the status index.
    pub const ALL: [ChargeStatus; 5] = [
        ChargeStatus::Pending,
        ChargeStatus::Underpaid,
        ChargeStatus::Paid,
        ChargeStatus::Expired,
        ChargeStatus::Canceled,
    ];

    /// Returns the name in responses and filters.
    pub const fn as_str(self) -> &'static str {
        match self {
            ChargeStatus::Pending => "pending",
            ChargeStatus::Underpaid => "underpaid",
            ChargeStatus::Paid => "paid",
            ChargeStatus::Expired => "expired",
            ChargeStatus::Canceled => "canceled",
        }
    }

    /// Returns `true` for the statuses in which the charge awaits payment.
    pub const fn is_open(self) -> bool {
        matches!(self, ChargeStatus::Pending | ChargeStatus::Underpaid)
    }
}

/// The payer, as far as the merchant named them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// E-mail address.
    pub email: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// IP address of the customer's browser.
    pub ip_address: Option<String>,
    /// The `User-Agent` of the customer's browser.
    pub user_agent: Option<String>,
    /// The merchant's id for the customer.
    pub reference: Option<String>,
    /// Telephone number.
    pub phone: Option<String>,
    /// Two-letter country code.
    pub country: Option<String>,
    /// Key/value pairs about the customer.
    pub metadata: Metadata,
}

impl Customer {
    /// Returns the customer in a box; `None` if every field is empty.
    pub(crate) fn if_not_empty(self) -> Option<Box<Customer>> {
        (self != Customer::default()).then(|| Box::new(self))
    }
}

/// Key/value pairs of the account owner, in the order in which they were given.
pub type Metadata = Vec<(String, MetadataValue)>;

/// A value of a key/value pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetadataValue {
    /// Text of at most 500 characters.
    Text(String),
    /// A number, verbatim.
    Number(String),
    /// `true` or `false`.
    Bool(bool),
    /// No value.
    Null,
}

/// A customer's answer to a question of a payment link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomField {
    /// The question.
    pub label: String,
    /// The answer.
    pub value: String,
}

/// The terms of a new charge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Terms {
    /// The coin.
    pub asset: Asset,
    /// The price.
    pub fiat_amount: Fiat,
    /// The price's currency.
    pub fiat_currency: Currency,
    /// The rate, locked.
    pub rate: Rate,
    /// The amount due in the coin.
    pub asset_amount: Coin,
    /// The address to pay to.
    pub deposit_address: String,
    /// The payment link, if it came from one.
    pub link: Option<LinkNo>,
    /// The invoice, if it is for one.
    pub invoice: Option<InvoiceNo>,
    /// The payer. Takes no memory if the merchant named none.
    pub(crate) customer: Option<Box<Customer>>,
    /// Free text.
    pub description: Option<String>,
    /// The merchant's key/value pairs.
    pub metadata: Metadata,
    /// Answers to the link's questions.
    pub custom_fields: Vec<CustomField>,
}

impl Terms {
    /// Returns the payer, as far as the merchant named them.
    pub fn customer(&self) -> &Customer {
        static UNKNOWN: LazyLock<Customer> = LazyLock::new(Customer::default);
        self.customer.as_deref().unwrap_or(&UNKNOWN)
    }
}

/// A charge. Copies share the terms and are small: each delivery contains the charge as it was at the event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Charge {
    /// The public code, its id in the API.
    pub code: Code,
    /// The terms; they never change.
    #[serde(with = "crate::shared")]
    pub terms: Arc<Terms>,
    /// The time of opening.
    pub created_at: Timestamp,
    /// The end of the rate lock.
    pub expires_at: Timestamp,
    /// The tolerances of a payment.
    pub tolerances: PaymentTolerances,
    status: ChargeStatus,
    transfers: Vec<Transfer>,
    refunds: Vec<Refund>,
    paid_at: Option<Timestamp>,
}

/// The account's tolerances when the charge was opened.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PaymentTolerances {
    /// The percentage of the amount due that may be missing.
    pub underpayment: Percent,
    /// The percentage by which a payment may exceed the amount due before it counts as overpaid.
    pub overpayment: Percent,
}

impl Charge {
    /// Returns the status.
    pub fn status(&self) -> ChargeStatus {
        self.status
    }

    /// Returns all transfers to the charge's address in its coin, in order of their first sighting.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Returns the refunds.
    pub fn refunds(&self) -> &[Refund] {
        &self.refunds
    }

    /// Returns the time of the deciding confirmation, if the charge is paid.
    pub fn paid_at(&self) -> Option<Timestamp> {
        self.paid_at
    }

    /// Returns the credited amount.
    pub fn received_amount(&self) -> Coin {
        self.transfers.iter().filter(|transfer| transfer.is_credited).map(|transfer| transfer.amount).sum()
    }

    /// Returns the total of the late transfers that are confirmed and were not accepted.
    pub fn late_amount(&self, required: u32) -> Coin {
        let is_late =
            |transfer: &&Transfer| transfer.standing == Standing::Late && transfer.is_confirmed(required);
        self.transfers.iter().filter(is_late).map(|transfer| transfer.amount).sum()
    }

    /// Returns the amount that counts towards the amount due: the received amount, less the refunds of it while the
    /// charge is not paid.
    pub fn counted_amount(&self) -> Coin {
        match self.status {
            ChargeStatus::Paid => self.received_amount(),
            _ => self.received_amount().saturating_sub(self.refunded_received_amount()),
        }
    }

    /// Returns the amount still due.
    pub fn remaining_amount(&self) -> Coin {
        self.terms.asset_amount.saturating_sub(self.counted_amount())
    }

    /// Returns `true` if more was received than the overpayment threshold allows.
    pub fn is_overpaid(&self) -> bool {
        self.counted_amount().exceeds(self.terms.asset_amount, self.tolerances.overpayment)
    }

    /// Returns `true` if the charge is pending and no transfer to it is present or credited. Vanished ones do not count.
    pub fn is_untouched(&self) -> bool {
        let is_payment = |transfer: &Transfer| transfer.is_present() || transfer.is_credited;
        self.status == ChargeStatus::Pending && !self.transfers.iter().any(is_payment)
    }

    /// Returns `true` if the charge is paid but too little is credited now, because of a reorganisation.
    pub fn is_reorganised(&self) -> bool {
        self.status == ChargeStatus::Paid
            && !self.received_amount().covers(self.terms.asset_amount, self.tolerances.underpayment)
    }

    /// Returns `true` if a transfer is confirmed, so that its confirmations grow with the chain.
    pub(crate) fn has_confirmed_transfer(&self, required: u32) -> bool {
        self.transfers.iter().any(|transfer| transfer.is_confirmed(required))
    }

    /// Returns a copy with the confirmations that its transfers have at this height of the chain.
    pub(crate) fn snapshot(&self, height: u64, required: u32) -> Charge {
        let mut charge = self.clone();
        charge.transfers.iter_mut().for_each(|transfer| transfer.freeze(height, required));
        charge
    }
}
