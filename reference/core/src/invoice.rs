//! Invoices: an amount that one customer owes, settled once by any one of its charges.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    asset::Currency,
    error::ApiError,
    id::{ChargeNo, Code},
    money::{Fiat, Quantity},
    time::{Day, Span, Timestamp},
};

/// The shortest time between two e-mails of the same invoice (`open.invoice.email`).
pub const MAIL_INTERVAL_MIN: Span = Span::mins(10);

/// The status of an invoice (`open.invoice.status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InvoiceStatus {
    /// Neither paid nor voided.
    Open,
    /// Settled. Final.
    Paid,
    /// Withdrawn. Final.
    Void,
}

impl InvoiceStatus {
    /// Every status, in the order of the classes of the status index.
    pub const ALL: [InvoiceStatus; 3] = [InvoiceStatus::Open, InvoiceStatus::Paid, InvoiceStatus::Void];

    /// Returns the name in responses and filters.
    pub const fn as_str(self) -> &'static str {
        match self {
            InvoiceStatus::Open => "open",
            InvoiceStatus::Paid => "paid",
            InvoiceStatus::Void => "void",
        }
    }
}

/// One line of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The text of the item.
    pub description: String,
    /// The number of units.
    pub quantity: Quantity,
    /// The price of one unit.
    pub unit_amount: Fiat,
    /// Quantity times price, rounded half up.
    pub total: Fiat,
}

/// The terms of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoiceTerms {
    /// The customer's name.
    pub customer_name: Option<String>,
    /// The e-mail address of the customer, to which the invoice is sent.
    pub customer_email: Option<String>,
    /// The total amount owed.
    pub amount: Fiat,
    /// The currency.
    pub currency: Currency,
    /// The lines, if there are any.
    pub items: Vec<Item>,
    /// A note to the customer.
    pub memo: Option<String>,
    /// The due day.
    pub due_at: Option<Day>,
}

/// An invoice. Copies share the terms: each delivery contains the invoice as it was at the event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Invoice {
    /// The public code, its id in the API.
    pub code: Code,
    /// `INV-0001`, counting per account and mode.
    pub number: String,
    /// The terms; they never change.
    #[serde(with = "crate::shared")]
    pub terms: Arc<InvoiceTerms>,
    /// Every charge that was opened for it, in order.
    pub charges: Vec<ChargeNo>,
    /// The time of issue.
    pub created_at: Timestamp,
    /// The time of the latest e-mail or reminder.
    pub sent_at: Option<Timestamp>,
    /// The time at which the customer first opened it.
    pub viewed_at: Option<Timestamp>,
    /// The time of settlement.
    pub paid_at: Option<Timestamp>,
    /// The time at which it was voided.
    pub voided_at: Option<Timestamp>,
    status: InvoiceStatus,
}

impl Invoice {
    /// Issues an invoice.
    pub fn issue(now: Timestamp, code: Code, number: String, terms: InvoiceTerms) -> Invoice {
        Invoice {
            code,
            number,
            terms: Arc::new(terms),
            charges: Vec::new(),
            created_at: now,
            sent_at: None,
            viewed_at: None,
            paid_at: None,
            voided_at: None,
            status: InvoiceStatus::Open,
        }
    }

    /// Returns the status.
    pub fn status(&self) -> InvoiceStatus {
        self.status
    }

    /// Returns `true` if it is open and past the due day.
    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.status == InvoiceStatus::Open && self.terms.due_at.is_some_and(|day| now >= day.end())
    }

    /// Checks that it is open.
    pub(crate) fn require_open(&self) -> Result<(), ApiError> {
        match self.status {
            InvoiceStatus::Open => Ok(()),
            status => Err(ApiError::conflict(format!("The invoice is {}, not open.", status.as_str()))),
        }
    }

    /// Settles the invoice when one of its charges is paid. Returns `false`, and changes nothing, if it is not open.
    pub fn settle(&mut self, paid_at: Timestamp) -> bool {
        let is_open = self.status == InvoiceStatus::Open;
        if is_open {
            self.status = InvoiceStatus::Paid;
            self.paid_at = Some(paid_at);
        }
        is_open
    }

    /// Voids the invoice.
    ///
    /// # Errors
    ///
    /// [`ApiError::Conflict`] if it is not open.
    pub fn void(&mut self, now: Timestamp) -> Result<(), ApiError> {
        self.require_open()?;
        self.status = InvoiceStatus::Void;
        self.voided_at = Some(now);
        Ok(())
    }

    /// Records a view of its page. Returns `true` for the first one.
    pub fn record_view(&mut self, now: Timestamp) -> bool {
        let is_first = self.viewed_at.is_none();
        self.viewed_at.get_or_insert(now);
        is_first
    }
}
