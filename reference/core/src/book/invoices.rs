//! Invoices of a book.

use super::{Book, BookContext, Notice, charges::Order};
use crate::{
    asset::Asset,
    call::InvoiceDraft,
    charge::Customer,
    error::ApiError,
    event::{Details, EventType, Subject},
    id::{ChargeNo, Code, InvoiceNo},
    invoice::{Invoice, InvoiceStatus, InvoiceTerms, MAIL_INTERVAL_MIN},
    mail::{Mail, MailKind},
    mode::Mode,
    money::Fiat,
    outbox::InvoiceSnapshot,
    time::Timestamp,
};

impl Book {
    /// Issues an invoice, and e-mails it if requested. If the e-mail is not allowed, no invoice is issued.
    pub(crate) fn create_invoice(
        &mut self,
        context: &BookContext<'_>,
        draft: InvoiceDraft,
    ) -> Result<InvoiceNo, ApiError> {
        let amount = match (draft.amount, draft.items.is_empty()) {
            (Some(amount), true) => amount,
            (None, false) => {
                draft.items.iter().try_fold(Fiat::ZERO, |sum, item| sum.plus(item.total)).ok_or_else(
                    || ApiError::field("items", "The items add up to more than an invoice can hold."),
                )?
            }
            (Some(_), false) => {
                return Err(ApiError::field(
                    "amount",
                    "The amount field can't be given together with items.",
                ));
            }
            (None, true) => {
                return Err(ApiError::field(
                    "amount",
                    "The amount field is required when items is not present.",
                ));
            }
        };
        if amount == Fiat::ZERO {
            return Err(ApiError::field("amount", "The amount must be greater than 0."));
        }
        if draft.due_at.is_some_and(|day| day.end() <= context.now) {
            return Err(ApiError::field("due_at", "The due_at field must not be in the past."));
        }
        if draft.send_email {
            self.check_mail_allowed(context, draft.customer_email.as_deref())?;
        }
        let no = InvoiceNo::from_index(self.invoices.len());
        let code = Code::draw(&self.rng_keys.invoice, u64::from(no.0));
        let number = format!("INV-{:04}", u64::from(no.0) + 1);
        let terms = InvoiceTerms {
            customer_name: draft.customer_name,
            customer_email: draft.customer_email,
            amount,
            currency: draft.currency.unwrap_or(context.settings.default_currency),
            items: draft.items,
            memo: draft.memo,
            due_at: draft.due_at,
        };
        self.invoice_codes.insert(code, no);
        self.invoices_by_status.push(no.0, InvoiceStatus::Open as usize);
        self.invoices.push(Invoice::issue(context.now, code, number, terms));
        self.invoice_changes.push(0);
        self.record(context, EventType::InvoiceCreated, Subject::Invoice(no), Details::None);
        if draft.send_email {
            self.mail_invoice(context, no);
        }
        Ok(no)
    }

    /// Sends an invoice, or a reminder of it, by e-mail.
    pub(crate) fn send_invoice(&mut self, context: &BookContext<'_>, no: InvoiceNo) -> Result<(), ApiError> {
        let invoice = self.invoice(no);
        invoice.require_open()?;
        if let Some(sent_at) = invoice.sent_at
            && context.now.since(sent_at) < MAIL_INTERVAL_MIN
        {
            return Err(ApiError::RateLimited {
                message: "An invoice can be e-mailed at most once in 10 minutes.".into(),
                retry_after_secs: sent_at.plus(MAIL_INTERVAL_MIN).since(context.now).secs_rounded_up().max(1),
            });
        }
        self.check_mail_allowed(context, invoice.terms.customer_email.as_deref())?;
        self.mail_invoice(context, no);
        Ok(())
    }

    /// Voids an invoice and cancels its pending charge. Refused if a payment to that charge was seen.
    pub(crate) fn void_invoice(&mut self, context: &BookContext<'_>, no: InvoiceNo) -> Result<(), ApiError> {
        self.invoice(no).require_open()?;
        let pending_charge = self.untouched_charge(no)?;
        self.invoice_mut(no).void(context.now)?;
        self.invoices_by_status.change(no.0, InvoiceStatus::Void as usize);
        if let Some(charge) = pending_charge {
            self.cancel_charge(context, charge, Some("invoice_voided"))
                .expect("an untouched pending charge can be canceled");
        }
        self.record(context, EventType::InvoiceVoided, Subject::Invoice(no), Details::None);
        Ok(())
    }

    /// Records a view of the invoice's page. The first view records `invoice.viewed`.
    pub(crate) fn record_invoice_view(&mut self, context: &BookContext<'_>, no: InvoiceNo) {
        if self.invoice_mut(no).record_view(context.now) {
            self.record(context, EventType::InvoiceViewed, Subject::Invoice(no), Details::None);
        }
    }

    /// Returns the charge to pay in the coin that the customer chose. Choosing another coin cancels the earlier charge, and
    /// is refused if a payment to that charge was seen.
    pub(crate) fn choose_coin(
        &mut self,
        context: &BookContext<'_>,
        no: InvoiceNo,
        asset: Asset,
    ) -> Result<ChargeNo, ApiError> {
        let invoice = self.invoice(no);
        invoice.require_open()?;
        if let Some(current) = self.open_charge_of(no)
            && self.charge(current).terms.asset == asset
        {
            return Ok(current);
        }
        let earlier = self.untouched_charge(no)?;
        let terms = &self.invoice(no).terms;
        let order = Order {
            asset,
            amount: terms.amount,
            currency: terms.currency,
            link: None,
            invoice: Some(no),
            customer: Customer {
                email: terms.customer_email.clone(),
                name: terms.customer_name.clone(),
                ..Customer::default()
            },
            description: Some(self.invoice(no).number.clone()),
            metadata: Vec::new(),
            custom_fields: Vec::new(),
        };
        // Checked before the earlier charge is canceled, so that an error changes nothing.
        self.quote_order(context, &order)?;
        if let Some(earlier) = earlier {
            self.cancel_charge(context, earlier, Some("asset_switched"))
                .expect("an untouched pending charge can be canceled");
        }
        self.open_charge(context, order)
    }

    /// Settles an invoice, unless it is not open, because one of its charges was paid. `paid_at`: the time of the
    /// deciding confirmation.
    pub(super) fn settle_invoice(&mut self, context: &BookContext<'_>, no: InvoiceNo, paid_at: Timestamp) {
        if self.invoice_mut(no).settle(paid_at) {
            self.invoices_by_status.change(no.0, InvoiceStatus::Paid as usize);
            // Accepted late payments to an earlier charge may settle the invoice. Canceling the pending charge then
            // avoids a second payment.
            if let Ok(Some(charge)) = self.untouched_charge(no) {
                self.cancel_charge(context, charge, Some("invoice_paid"))
                    .expect("an untouched pending charge can be canceled");
            }
            self.record(context, EventType::InvoicePaid, Subject::Invoice(no), Details::None);
        }
    }

    /// Returns a snapshot of the invoice for deliveries.
    pub(super) fn invoice_snapshot(&self, no: InvoiceNo) -> InvoiceSnapshot {
        let invoice = self.invoice(no).clone();
        let summary = |no: &ChargeNo| {
            let charge = self.charge(*no);
            (charge.code, charge.status(), charge.terms.asset)
        };
        let charges = invoice.charges.iter().map(summary).collect();
        InvoiceSnapshot { invoice, charges }
    }

    /// Returns the open charge of an invoice, if there is one.
    fn open_charge_of(&self, no: InvoiceNo) -> Option<ChargeNo> {
        // Only the newest can be open: choosing another coin cancels the one before.
        let newest = *self.invoice(no).charges.last()?;
        self.charge(newest).status().is_open().then_some(newest)
    }

    /// Returns the open charge of an invoice, if there is one; an error if a payment to that charge was seen.
    fn untouched_charge(&self, no: InvoiceNo) -> Result<Option<ChargeNo>, ApiError> {
        let Some(charge_no) = self.open_charge_of(no) else { return Ok(None) };
        let charge = self.charge(charge_no);
        if !charge.is_untouched() {
            return Err(ApiError::conflict(format!(
                "A payment to the invoice's charge {} was seen; wait until it is settled.",
                charge.code
            )));
        }
        Ok(Some(charge_no))
    }

    /// Checks that the invoice may be e-mailed to this recipient now.
    fn check_mail_allowed(&self, context: &BookContext<'_>, to: Option<&str>) -> Result<(), ApiError> {
        let Some(to) = to else {
            return Err(ApiError::field(
                "customer_email",
                "The customer_email field is required to send an invoice.",
            ));
        };
        let is_member = context.settings.members.iter().any(|member| member.eq_ignore_ascii_case(to));
        if self.mode == Mode::Test && !is_member {
            return Err(ApiError::field(
                "customer_email",
                "In test mode invoices are only e-mailed to members of the account.",
            ));
        }
        self.mails.check_quota(context.now)
    }

    /// E-mails an invoice, or a reminder if it was e-mailed before. The recipient must have been checked.
    fn mail_invoice(&mut self, context: &BookContext<'_>, no: InvoiceNo) {
        let invoice = self.invoice_mut(no);
        let kind = if invoice.sent_at.is_some() { MailKind::Reminder } else { MailKind::Invoice };
        let to = invoice.terms.customer_email.clone().expect("the recipient was checked before");
        invoice.sent_at = Some(context.now);
        self.mails.push(Mail { to: to.clone(), kind, invoice: no, sent_at: context.now });
        self.notices.push(Notice::Mail { to, kind, invoice: no });
        self.record(context, EventType::InvoiceSent, Subject::Invoice(no), Details::None);
    }
}
