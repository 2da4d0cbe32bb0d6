//! Invoices: e-mails, views, coin choices, and settlement.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::{Span, Timestamp},
};

use super::{Book, Details, Subject};
use crate::model::{
    Account, Terms,
    texts::{ChargeTexts, CustomerTexts, InvoiceTexts},
};

/// The minimum time between two e-mails of an invoice.
const MAIL_INTERVAL_MIN: Span = Span::mins(10);
/// The maximum number of e-mails per hour, account and mode.
const MAILS_PER_HOUR_MAX: usize = 100;
const HOUR: Span = Span::hours(1);

/// The status of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub enum InvoiceStatus {
    Open,
    Paid,
    Void,
}

impl InvoiceStatus {
    /// All statuses.
    pub const ALL: [InvoiceStatus; 3] = [InvoiceStatus::Open, InvoiceStatus::Paid, InvoiceStatus::Void];

    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            InvoiceStatus::Open => "open",
            InvoiceStatus::Paid => "paid",
            InvoiceStatus::Void => "void",
        }
    }
}

/// The expected state of an invoice.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct InvoiceModel {
    pub cents: u64,
    pub currency: Currency,
    /// The recipient of e-mails.
    pub recipient: Option<String>,
    pub texts: InvoiceTexts,
    pub created_at: Timestamp,
    pub status: InvoiceStatus,
    /// The charges, as numbers in the book.
    pub charges: Vec<usize>,
    pub sent_at: Option<Timestamp>,
    pub viewed_at: Option<Timestamp>,
    pub paid_at: Option<Timestamp>,
    pub voided_at: Option<Timestamp>,
}

/// Returns the number of an invoice in the API: `INV-0001`.
pub(super) fn display_number(number: usize) -> String {
    format!("INV-{:04}", number + 1)
}

/// The values of a new invoice.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct InvoiceDraft {
    pub cents: u64,
    pub currency: Currency,
    pub recipient: Option<String>,
    pub texts: InvoiceTexts,
}

impl InvoiceModel {
    /// Returns `true` if the invoice is open and its due date has passed.
    pub(super) fn is_overdue(&self, now: Timestamp) -> bool {
        self.status == InvoiceStatus::Open && self.texts.is_past_due(now)
    }
}

impl InvoiceDraft {
    /// Returns `true` if the invoice may be issued: it has either an amount or items, costs more than zero, and is not due
    /// before today. `amount` is the amount in the request.
    pub fn is_valid(&self, now: Timestamp, amount: Option<u64>) -> bool {
        amount.is_some() == self.texts.items.is_empty() && self.cents > 0 && !self.texts.is_past_due(now)
    }
}

impl Book {
    /// Issues an invoice, and e-mails it if `sends_email` is set. Returns its number.
    ///
    /// # Errors
    ///
    /// 422 or 429 if it cannot be e-mailed.
    pub fn issue(
        &mut self,
        now: Timestamp,
        account: &Account,
        InvoiceDraft { cents, currency, recipient, texts }: InvoiceDraft,
        sends_email: bool,
    ) -> Result<usize, u16> {
        if sends_email {
            self.check_mail_allowed(now, account, recipient.as_ref())?;
        }
        let number = self.invoices.len();
        self.invoices.push(InvoiceModel {
            cents,
            currency,
            recipient,
            texts,
            created_at: now,
            status: InvoiceStatus::Open,
            charges: Vec::new(),
            sent_at: None,
            viewed_at: None,
            paid_at: None,
            voided_at: None,
        });
        self.record(now, "invoice.created", Subject::Invoice(number), Details::None);
        if sends_email {
            self.record_mail(now, number);
        }
        Ok(number)
    }

    /// E-mails an invoice.
    ///
    /// # Errors
    ///
    /// 409 if it is not open, 429 if a limit of e-mails is reached, 422 if it has no allowed recipient.
    pub fn send(&mut self, now: Timestamp, account: &Account, number: usize) -> Result<(), u16> {
        let invoice = &self.invoices[number];
        if invoice.status != InvoiceStatus::Open {
            return Err(409);
        }
        if invoice.sent_at.is_some_and(|sent| now.since(sent) < MAIL_INTERVAL_MIN) {
            return Err(429);
        }
        self.check_mail_allowed(now, account, invoice.recipient.as_ref())?;
        self.record_mail(now, number);
        Ok(())
    }

    /// Checks that an e-mail to `recipient` is allowed: 422 if the recipient is not, 429 if the hourly limit is reached.
    fn check_mail_allowed(
        &self,
        now: Timestamp,
        account: &Account,
        recipient: Option<&String>,
    ) -> Result<(), u16> {
        let is_member = |to: &String| account.members.iter().any(|member| member.eq_ignore_ascii_case(to));
        if !recipient.is_some_and(|to| self.mode == Mode::Live || is_member(to)) {
            return Err(422);
        }
        let recent = self.mails.iter().filter(|sent| now.since(**sent) < HOUR).count();
        if recent >= MAILS_PER_HOUR_MAX { Err(429) } else { Ok(()) }
    }

    /// Returns the seconds after which an e-mail refused with 429 may be sent. `number` is the invoice; `None` for a new
    /// one.
    pub fn mail_retry_secs(&self, now: Timestamp, number: Option<usize>) -> u64 {
        let of_invoice =
            number.and_then(|number| self.invoices[number].sent_at).map(|sent| sent.plus(MAIL_INTERVAL_MIN));
        let of_account = self.mails.iter().rev().nth(MAILS_PER_HOUR_MAX - 1).map(|sent| sent.plus(HOUR));
        let ends = [of_invoice, of_account].into_iter().flatten().find(|end| *end > now);
        ends.map_or(0, |end| end.since(now).secs_rounded_up().max(1))
    }

    /// Records that an invoice was e-mailed.
    fn record_mail(&mut self, at: Timestamp, number: usize) {
        self.mails.push(at);
        self.invoices[number].sent_at = Some(at);
        self.record(at, "invoice.sent", Subject::Invoice(number), Details::None);
    }

    /// Records the first view of the hosted page.
    pub fn record_view(&mut self, now: Timestamp, number: usize) {
        if self.invoices[number].viewed_at.is_none() {
            self.invoices[number].viewed_at = Some(now);
            self.record(now, "invoice.viewed", Subject::Invoice(number), Details::None);
        }
    }

    /// Voids an invoice and cancels its open charge.
    ///
    /// # Errors
    ///
    /// 409 if it is not open, or if a transfer was seen.
    pub fn void(&mut self, now: Timestamp, number: usize) -> Result<(), u16> {
        if self.invoices[number].status != InvoiceStatus::Open {
            return Err(409);
        }
        let open_charge = self.untouched_charge(number)?;
        let invoice = &mut self.invoices[number];
        (invoice.status, invoice.voided_at) = (InvoiceStatus::Void, Some(now));
        if let Some(charge) = open_charge {
            self.cancel_charge(now, charge, "invoice_voided");
        }
        self.record(now, "invoice.voided", Subject::Invoice(number), Details::None);
        Ok(())
    }

    /// Checks the choice of a coin on the hosted page. Returns the number of the open charge in this coin, or
    /// `None` if one must be opened with [`Book::switch_asset`].
    ///
    /// # Errors
    ///
    /// 409 if the invoice is not open, or if a transfer in another coin was seen.
    pub fn open_charge_in(&self, number: usize, asset: Asset) -> Result<Option<usize>, u16> {
        if self.invoices[number].status != InvoiceStatus::Open {
            return Err(409);
        }
        let in_asset = self.open_charge(number).filter(|charge| self.charges[*charge].terms.asset == asset);
        if in_asset.is_none() {
            self.untouched_charge(number)?;
        }
        Ok(in_asset)
    }

    /// Opens a charge for the invoice in `terms`, and cancels the open one. Returns the number of the new charge.
    ///
    /// # Panics
    ///
    /// If [`Book::open_charge_in`] returns an error.
    pub fn switch_asset(&mut self, now: Timestamp, account: &Account, terms: Terms) -> usize {
        let invoice = terms.invoice.expect("the terms name the invoice");
        if let Some(earlier) = self.untouched_charge(invoice).expect("the invoice allows another coin") {
            self.cancel_charge(now, earlier, "asset_switched");
        }
        let InvoiceModel { recipient, texts, .. } = &self.invoices[invoice];
        let customer = CustomerTexts {
            email: recipient.clone(),
            name: texts.customer_name.clone(),
            ..Default::default()
        };
        // The contract leaves the description open: the service uses the number of the invoice.
        let description = Some(display_number(invoice));
        self.open(now, account, (terms, ChargeTexts { description, customer, ..Default::default() }))
    }

    /// Marks the invoice of a paid charge as paid, unless it is closed, and cancels another open charge without transfers.
    pub(super) fn settle_invoice(&mut self, at: Timestamp, charge: usize) {
        let Some(number) = self.charges[charge].terms.invoice else { return };
        let invoice = &mut self.invoices[number];
        if invoice.status != InvoiceStatus::Open {
            return;
        }
        // An accepted late payment was confirmed earlier.
        (invoice.status, invoice.paid_at) = (InvoiceStatus::Paid, self.charges[charge].paid_at);
        if let Ok(Some(other)) = self.untouched_charge(number) {
            self.cancel_charge(at, other, "invoice_paid");
        }
        self.record(at, "invoice.paid", Subject::Invoice(number), Details::None);
    }

    /// Cancels an untouched charge for a reason other than a request.
    pub(super) fn cancel_charge(&mut self, at: Timestamp, charge: usize, reason: &'static str) {
        self.cancel(at, charge, Details::Reason(reason)).expect("only an untouched charge is canceled");
    }

    /// Returns the number of the open charge of an invoice.
    fn open_charge(&self, invoice: usize) -> Option<usize> {
        self.invoices[invoice].charges.iter().copied().find(|number| self.charges[*number].is_open())
    }

    /// Returns the number of the open charge of an invoice, or `None` if it has none; 409 if the charge is
    /// not [untouched](crate::model::Charge::is_untouched).
    fn untouched_charge(&self, invoice: usize) -> Result<Option<usize>, u16> {
        match self.open_charge(invoice) {
            Some(number) if !self.charges[number].is_untouched() => Err(409),
            untouched => Ok(untouched),
        }
    }
}
