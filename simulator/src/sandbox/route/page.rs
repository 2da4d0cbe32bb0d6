//! The content of the hosted pages, one call per page. States are computed here, because they depend on the
//! rules of the service; a page only renders them. The caller passes functions (`view`) that convert the
//! objects to its own representation, such as JSON.

use reference_core::{
    asset::{Asset, Currency},
    book::Book,
    charge::{Charge, ChargeStatus, Standing},
    error::ApiError,
    id::{ChargeNo, Code, InvoiceNo, LinkNo},
    invoice::{Invoice, InvoiceStatus},
    link::{Link, Pricing},
    money::{Coin, Fiat},
    time::Timestamp,
};
use reference_wire::fields::Fields;
use serde_json::Value;

use super::{Outcome, call::SandboxCall, json_response, records};
use crate::{
    api::{
        ChargePage, CoinOffer, InvoiceOfCharge, InvoicePage, LinkClosedReason, LinkOfCharge, LinkPage,
        PageAccount, PaymentDetails, PaymentStage,
    },
    sandbox::{Sandbox, observe::AccountBook},
};

/// Returns an object as JSON, as the API shows it.
fn api_object(call: &SandboxCall<'_>, book_id: AccountBook, path: &str) -> Value {
    let body = reference_wire::owner_read(
        call.service(),
        call.world().now,
        book_id,
        (path, None),
        call.request.base,
    );
    let mut response: Value =
        serde_json::from_slice(&body.expect("the object exists")).expect("responses of the API are JSON");
    response["data"].take()
}

/// Handles `GET /sandbox/pages/c/{id}`: a charge.
pub(super) fn charge(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let code = call.id()?;
    let charge = |book_id, _| api_object(call, book_id, &format!("/v1/charges/{code}"));
    json_response(call.sandbox.charge_page(code, charge)?)
}

/// Handles `GET /sandbox/pages/i/{id}`: an invoice.
pub(super) fn invoice(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let code = call.id()?;
    let invoice = |book_id, _| api_object(call, book_id, &format!("/v1/invoices/{code}"));
    let charge = |book_id: AccountBook, no| {
        api_object(call, book_id, &format!("/v1/charges/{}", call.book(book_id).charge(no).code))
    };
    json_response(call.sandbox.invoice_page(code, invoice, charge)?)
}

/// Handles `GET /sandbox/pages/pay/{id}`: a payment link.
pub(super) fn link(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let code = call.id()?;
    let link = |book_id, _| api_object(call, book_id, &format!("/v1/payment-links/{code}"));
    json_response(call.sandbox.link_page(code, link)?)
}

impl Sandbox {
    /// Returns the content of the page of a charge. `view` converts the charge.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if no book holds the charge.
    pub fn charge_page<C>(
        &self,
        code: Code,
        view: impl FnOnce(AccountBook, ChargeNo) -> C,
    ) -> Result<ChargePage<C>, ApiError> {
        let (book_id, no) = self.find_object(|book| book.find_charge(code))?;
        let payment = self.payment(book_id, no, view);
        Ok(ChargePage { account: self.page_account(book_id), mode: book_id.1, payment })
    }

    /// Returns the content of the page of an invoice. `view` and `charge` convert the objects.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if no book holds the invoice.
    pub fn invoice_page<I, C>(
        &self,
        code: Code,
        view: impl FnOnce(AccountBook, InvoiceNo) -> I,
        charge: impl FnOnce(AccountBook, ChargeNo) -> C,
    ) -> Result<InvoicePage<I, C>, ApiError> {
        let (book_id, no) = self.find_object(|book| book.find_invoice(code))?;
        let book = self.book(book_id);
        let invoice = book.invoice(no);
        let terms = &invoice.terms;
        let may_choose = may_choose(book, invoice);
        Ok(InvoicePage {
            account: self.page_account(book_id),
            mode: book_id.1,
            invoice: view(book_id, no),
            payment: charge_to_show(book, invoice).map(|no| self.payment(book_id, no, charge)),
            may_choose,
            coins: match may_choose {
                true => self.coins(book_id, (Some(terms.amount), terms.currency), |_| true),
                false => Vec::new(),
            },
        })
    }

    /// Returns the content of the page of a payment link. `view` converts the link.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if no book holds the link.
    pub fn link_page<L>(
        &self,
        code: Code,
        view: impl FnOnce(AccountBook, LinkNo) -> L,
    ) -> Result<LinkPage<L>, ApiError> {
        let (book_id, no) = self.find_object(|book| book.find_link(code))?;
        let link = self.book(book_id).link(no);
        let terms = &link.terms;
        let price = match &terms.pricing {
            Pricing::Fixed(price) => Some(*price),
            Pricing::Open { .. } => None,
        };
        let accepts = |asset| terms.accepted_assets.as_ref().is_none_or(|assets| assets.contains(&asset));
        Ok(LinkPage {
            account: self.page_account(book_id),
            mode: book_id.1,
            link: view(book_id, no),
            closed: closed_reason(link, self.now()),
            coins: self.coins(book_id, (price, terms.currency), accepts),
        })
    }

    /// Returns the first object that `find` returns for a book, with that book.
    fn find_object<No>(
        &self,
        find: impl Fn(&Book) -> Result<No, ApiError>,
    ) -> Result<(AccountBook, No), ApiError> {
        let mut books = self.service().books();
        books
            .find_map(|(account, mode, book)| Some(((account, mode), find(book).ok()?)))
            .ok_or(ApiError::NotFound)
    }

    /// Returns the public data of the page's account.
    fn page_account(&self, book_id: AccountBook) -> PageAccount {
        let owner = self.service().account(book_id.0);
        let settings = &owner.settings;
        PageAccount {
            id: owner.id.to_string(),
            display_name: settings.display_name.clone(),
            brand_color: settings.brand_color.clone(),
            website_url: settings.website_url.clone(),
            support_email: settings.support_email.clone(),
        }
    }

    /// Returns the part of a page that shows a charge and its payment.
    fn payment<C>(
        &self,
        book_id: AccountBook,
        no: ChargeNo,
        view: impl FnOnce(AccountBook, ChargeNo) -> C,
    ) -> PaymentDetails<C> {
        let (book, now) = (self.book(book_id), self.now());
        let charge = book.charge(no);
        let asset = charge.terms.asset;
        let required = asset.required_confirmations(book.mode());
        let unconfirmed = unconfirmed_amount(charge, required);
        let total = charge.counted_amount().plus(unconfirmed);
        PaymentDetails {
            charge: view(book_id, no),
            stage: stage(charge, required),
            reorganised: charge.is_reorganised(),
            covered: total.covers(charge.terms.asset_amount, charge.tolerances.underpayment),
            missing: charge.remaining_amount().saturating_sub(unconfirmed).to_string(),
            coin: records::coin_record(asset, book.mode()),
            transfers: charge
                .transfers()
                .iter()
                .map(|transfer| records::transfer_record(self.service(), book, charge, transfer))
                .collect(),
            invoice: charge.terms.invoice.map(|no| {
                let invoice = book.invoice(no);
                InvoiceOfCharge {
                    code: invoice.code,
                    number: invoice.number.to_string(),
                    status: invoice.status().as_str().into(),
                }
            }),
            link: charge.terms.link.map(|no| {
                let link = book.link(no);
                LinkOfCharge {
                    code: link.code,
                    title: link.terms.title.clone(),
                    success_url: link.terms.success_url.clone(),
                    cancel_url: link.terms.cancel_url.clone(),
                    success_message: link.terms.success_message.clone(),
                    accepting_payments: link.accepts_payments(now),
                }
            }),
        }
    }

    /// Returns the available coins, each with the amount due if there is a price. Omits coins without a rate, and those
    /// in which the amount is too large.
    fn coins(
        &self,
        book_id: AccountBook,
        (price, currency): (Option<Fiat>, Currency),
        accepts: impl Fn(Asset) -> bool,
    ) -> Vec<CoinOffer> {
        let exchange = self.service().exchange();
        let wallets = self.book(book_id).wallets();
        let available = Asset::ALL.into_iter().filter(|&asset| wallets.accepts(asset) && accepts(asset));
        available
            .filter_map(|asset| {
                let rate = exchange.rate(asset, currency)?;
                let amount = match price {
                    Some(price) => Some(rate.quote(price, asset)?.to_string()),
                    None => None,
                };
                Some(CoinOffer { coin: records::coin_record(asset, book_id.1), amount })
            })
            .collect()
    }
}

/// Returns the unconfirmed amount that will count towards the charge.
fn unconfirmed_amount(charge: &Charge, required: u32) -> Coin {
    let unconfirmed = charge.transfers().iter().filter(|transfer| {
        transfer.standing == Standing::OnTime
            && transfer.is_present()
            && !transfer.is_credited
            && !transfer.is_confirmed(required)
    });
    unconfirmed.map(|transfer| transfer.amount).sum()
}

/// Returns the state of a charge that matters most to the customer.
fn stage(charge: &Charge, required: u32) -> PaymentStage {
    let has_transfer = |standing| {
        charge.transfers().iter().any(move |transfer| transfer.standing == standing && transfer.is_present())
    };
    let is_confirming = charge.transfers().iter().any(|transfer| {
        transfer.standing == Standing::OnTime && transfer.is_present() && !transfer.is_confirmed(required)
    });
    match charge.status() {
        ChargeStatus::Paid => PaymentStage::Paid,
        ChargeStatus::Pending | ChargeStatus::Underpaid if is_confirming => PaymentStage::Confirming,
        ChargeStatus::Pending => PaymentStage::Waiting,
        ChargeStatus::Underpaid => PaymentStage::Underpaid,
        ChargeStatus::Expired | ChargeStatus::Canceled if has_transfer(Standing::Late) => PaymentStage::Late,
        // A late payment was accepted, but the total was insufficient.
        ChargeStatus::Expired | ChargeStatus::Canceled if has_transfer(Standing::Accepted) => {
            PaymentStage::Short
        }
        ChargeStatus::Expired => PaymentStage::Expired,
        ChargeStatus::Canceled => PaymentStage::Canceled,
    }
}

/// Returns the charge to show for an invoice: the paid one, or else the newest.
fn charge_to_show(book: &Book, invoice: &Invoice) -> Option<ChargeNo> {
    let is_paid = |no: &&ChargeNo| book.charge(**no).status() == ChargeStatus::Paid;
    invoice.charges.iter().find(is_paid).or(invoice.charges.last()).copied()
}

/// Returns `true` if a coin can be chosen or changed: the invoice is open, and no payment for it is pending.
fn may_choose(book: &Book, invoice: &Invoice) -> bool {
    let newest = invoice.charges.last().map(|&no| book.charge(no));
    invoice.status() == InvoiceStatus::Open
        && newest.is_none_or(|charge| match charge.status() {
            ChargeStatus::Pending => charge.is_untouched(),
            status => !status.is_open(),
        })
}

/// Returns the reason why a link accepts no payments; `None` if it does.
fn closed_reason(link: &Link, now: Timestamp) -> Option<LinkClosedReason> {
    if link.accepts_payments(now) {
        None
    } else if link.archived {
        Some(LinkClosedReason::Archived)
    } else if link.terms.expires_at.is_some_and(|end| end <= now) {
        Some(LinkClosedReason::Expired)
    } else {
        Some(LinkClosedReason::Exhausted)
    }
}
