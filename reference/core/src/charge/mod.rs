//! A charge: an amount of a coin, due at one address, at a rate that is locked for a while.

mod life;
mod transfer;

pub use life::{ChargeChange, HOLD_MAX, LOCK};
use serde::{Deserialize, Serialize};
pub use transfer::{Standing, Transfer};

use std::sync::{Arc, LazyLock};

use crate::{
    asset::{Asset, Currency},
    id::{Code, InvoiceNo, LinkNo},
    money::{Coin, Fiat, Percent, Rate},
    time::Timestamp,
};

/// Where a charge is in its life (`open.charge.status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ChargeStatus {
    /// Waits for money.
    Pending,
    /// Got some, but too little; waits for the rest.
    Underpaid,
    /// Got enough, confirmed. For good.
    Paid,
    /// The lock ran out first.
    Expired,
    /// Called off.
    Canceled,
}

impl ChargeStatus {
    /// Every status; the place in this list is the class on the shelves.
    pub const ALL: [ChargeStatus; 5] = [
        ChargeStatus::Pending,
        ChargeStatus::Underpaid,
        ChargeStatus::Paid,
        ChargeStatus::Expired,
        ChargeStatus::Canceled,
    ];

    /// The word in answers and filters.
    pub const fn as_str(self) -> &'static str {
        match self {
            ChargeStatus::Pending => "pending",
            ChargeStatus::Underpaid => "underpaid",
            ChargeStatus::Paid => "paid",
            ChargeStatus::Expired => "expired",
            ChargeStatus::Canceled => "canceled",
        }
    }

    /// Money that arrives now is on time.
    pub const fn is_open(self) -> bool {
        matches!(self, ChargeStatus::Pending | ChargeStatus::Underpaid)
    }
}

/// Who pays, as far as the merchant said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// E-mail address.
    pub email: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Address of the customer's browser.
    pub ip_address: Option<String>,
    /// The customer's browser.
    pub user_agent: Option<String>,
    /// The merchant's own name for the customer.
    pub reference: Option<String>,
    /// Telephone number.
    pub phone: Option<String>,
    /// Two-letter country code.
    pub country: Option<String>,
    /// Key/value pairs about the customer.
    pub metadata: Metadata,
}

impl Customer {
    /// Itself, unless nothing is known.
    pub(crate) fn if_known(self) -> Option<Box<Customer>> {
        (self != Customer::default()).then(|| Box::new(self))
    }
}

/// Key/value pairs of the account owner, in the order in which they were given.
pub type Metadata = Vec<(String, MetaValue)>;

/// A value of a key/value pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MetaValue {
    /// Text of at most 500 characters.
    Text(String),
    /// A number, kept as it was written.
    Number(String),
    /// Yes or no.
    Truth(bool),
    /// Nothing.
    Null,
}

/// What the customer filled in on a payment link that asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomField {
    /// The question.
    pub label: String,
    /// The answer.
    pub value: String,
}

/// Money that the merchant sent back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refund {
    /// How much.
    pub amount: Coin,
    /// The transaction, if the merchant named it.
    pub txid: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// When it was recorded.
    pub created_at: Timestamp,
}

/// What a new charge is about.
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
    /// What is due in the coin.
    pub asset_amount: Coin,
    /// Where it is due.
    pub deposit_address: String,
    /// The payment link, if it came from one.
    pub link: Option<LinkNo>,
    /// The invoice, if it is for one.
    pub invoice: Option<InvoiceNo>,
    /// Who pays. Takes no room if the merchant said nothing about that.
    pub(crate) customer: Option<Box<Customer>>,
    /// Free text.
    pub description: Option<String>,
    /// The merchant's key/value pairs.
    pub metadata: Metadata,
    /// Answers to the link's questions.
    pub custom_fields: Vec<CustomField>,
}

impl Terms {
    /// Who pays, as far as the merchant said.
    pub fn customer(&self) -> &Customer {
        static UNKNOWN: LazyLock<Customer> = LazyLock::new(Customer::default);
        self.customer.as_deref().unwrap_or(&UNKNOWN)
    }
}

/// One charge. A copy shares the terms, and is small: deliveries keep the charge as it was when something happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Charge {
    /// Its public name.
    pub code: Code,
    /// What it is about; never changes.
    #[serde(with = "crate::shared")]
    pub terms: Arc<Terms>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// The end of the rate lock.
    pub expires_at: Timestamp,
    /// How far from what is due a payment may be.
    pub bounds: Bounds,
    status: ChargeStatus,
    transfers: Vec<Transfer>,
    refunds: Vec<Refund>,
    paid_at: Option<Timestamp>,
}

/// The account's tolerances when the charge was opened.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bounds {
    /// So many percent may be missing.
    pub tolerance: Percent,
    /// More than so many percent above is overpaid.
    pub threshold: Percent,
}

impl Charge {
    /// Where it is in its life.
    pub fn status(&self) -> ChargeStatus {
        self.status
    }

    /// Every transfer to its address in its coin, in order of sighting.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Money sent back.
    pub fn refunds(&self) -> &[Refund] {
        &self.refunds
    }

    /// When the deciding transfer was confirmed, if it is paid.
    pub fn paid_at(&self) -> Option<Timestamp> {
        self.paid_at
    }

    /// What was credited.
    pub fn received(&self) -> Coin {
        self.transfers.iter().filter(|transfer| transfer.credited).map(|transfer| transfer.amount).sum()
    }

    /// What came too late and is confirmed, but was not accepted.
    pub fn late(&self, required: u32) -> Coin {
        self.late_transfers(required).map(|transfer| transfer.amount).sum()
    }

    fn late_transfers(&self, required: u32) -> impl Iterator<Item = &Transfer> {
        let is_late = move |transfer: &&Transfer| {
            transfer.standing == Standing::Late && transfer.is_confirmed(required)
        };
        self.transfers.iter().filter(is_late)
    }

    /// The late transfers that the refunds make up for. A refund does not say what it sends back, and sending late money
    /// back is the usual answer to it: so refunds count for late money first, in order of sighting.
    pub fn sent_back(&self, required: u32) -> impl Iterator<Item = &Transfer> {
        let mut left = self.refunded();
        self.late_transfers(required).filter(move |transfer| {
            let is_covered = transfer.amount <= left;
            if is_covered {
                left = left.less(transfer.amount);
            }
            is_covered
        })
    }

    /// What is still due.
    pub fn remaining(&self) -> Coin {
        self.terms.asset_amount.less(self.received())
    }

    /// What was sent back.
    pub fn refunded(&self) -> Coin {
        self.refunds.iter().map(|refund| refund.amount).sum()
    }

    /// More came than the account lets pass as a rounding.
    pub fn is_overpaid(&self) -> bool {
        self.received().exceeds(self.terms.asset_amount, self.bounds.threshold)
    }

    /// A transfer to it was seen at some time, whatever became of it.
    pub fn was_touched(&self) -> bool {
        !self.transfers.is_empty()
    }
}
