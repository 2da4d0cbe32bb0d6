//! The pages of charges, invoices, payment links and late payments.

use askama::Template;
use reference_core::{
    asset::Asset,
    charge::ChargeStatus,
    id::{ChargeNo, Code, InvoiceNo, LinkNo},
};
use simulator::{
    api::{DeliveryRecord, LatePayment, TransferRecord},
    sandbox::DeliveryFilter,
};

use super::{Block, List, PageView, Tabs, list, live_block, static_block};
use crate::{
    pages::book::BookReader,
    pages::dashboard::{
        context::PageContext,
        fragments, paths,
        record_display::{AttemptDisplay as _, DeliveryDisplay as _, TransferState as _},
    },
    pages::formats::TimeFormats as _,
    pages::objects::{Charge, Event, Invoice, Link},
    refusal::Refusal,
};

/// The maximum number of events on the page of an object.
const EVENTS_MAX: u32 = 100;
/// The maximum number of deliveries on the page of an object.
const DELIVERIES_MAX: usize = 25;
/// The maximum number of charges on the page of a payment link.
const LINK_CHARGES_MAX: u32 = 10;

#[derive(Template)]
#[template(path = "dashboard/charges.html")]
struct ChargesBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<Charge>,
    link: Option<&'a str>,
}

pub(super) async fn charges(context: &PageContext) -> Result<PageView, Refusal> {
    let (status, link) = (context.query.get("status"), context.query.get("link"));
    let view = |book: &BookReader<'_>, no| Charge::from_book(book, ChargeNo(no));
    let filters = [("status", status), ("payment_link", link)];
    let page_filters = [("status", status), ("link", link)];
    let list = list(context, ("charges", &filters), ("/charges", &page_filters), view).await?;
    let counts = context.read(|book| Ok(book.sandbox.counts(book.account_and_mode).charges)).await?;
    let counts = [
        ("all", counts.all),
        ("pending", counts.pending),
        ("underpaid", counts.underpaid),
        ("paid", counts.paid),
        ("expired", counts.expired),
        ("canceled", counts.canceled),
    ];
    let tabs = Tabs::by_status(context, "Charges by status", "/charges", &counts);
    let block = live_block("charges", &ChargesBlock { context, tabs, list, link })?;
    Ok(PageView { state: None, title: "Charges".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/charge.html")]
struct ChargeBlock<'a> {
    context: &'a PageContext,
    charge: &'a Charge,
    transfers: &'a [TransferRecord],
    tab_title: String,
    /// The path of the refund form.
    refund_form: String,
}

impl ChargeBlock<'_> {
    /// Returns `true` if a confirmed transfer exists, which could be refunded.
    fn may_be_refunded(&self) -> bool {
        self.transfers.iter().any(|transfer| transfer.gone.is_none() && transfer.confirmed)
    }

    /// Returns `true` if the charge can be canceled. A transfer that was dropped or replaced does not prevent it.
    fn may_be_canceled(&self) -> bool {
        self.charge.status() == ChargeStatus::Pending
            && self.transfers.iter().all(|transfer| transfer.gone.is_some())
    }
}

#[derive(Template)]
#[template(path = "dashboard/charge_about.html")]
struct ChargeDetails<'a> {
    charge: &'a Charge,
}

#[derive(Template)]
#[template(path = "dashboard/pay.html")]
struct PayBlock<'a> {
    context: &'a PageContext,
    charge: &'a Charge,
    /// The unconfirmed payment, if there is one: another payment would pay twice.
    pending_transfer: Option<&'a TransferRecord>,
    form: String,
}

#[derive(Template)]
#[template(path = "dashboard/timeline.html")]
struct TimelineBlock<'a> {
    context: &'a PageContext,
    events: Vec<Event>,
    deliveries: Vec<DeliveryRecord>,
    /// The API request for the same history.
    curl: String,
}

/// Renders the events and deliveries of an object. `name`: `charge` or `invoice`.
async fn timeline_block(
    context: &PageContext,
    (name, code): (&str, Code),
    filter: DeliveryFilter,
) -> Result<Block, Refusal> {
    let query = format!("?{name}={code}&per_page={EVENTS_MAX}");
    let events = context.read(|book| book.events(&query)).await?;
    let deliveries = context.deliveries(DELIVERIES_MAX, filter).await?;
    let curl = context.curl_get(&format!("/v1/events?{name}={code}"));
    live_block("timeline", &TimelineBlock { context, events, deliveries, curl })
}

#[derive(Template)]
#[template(path = "dashboard/json.html")]
struct JsonBlock {
    curl: String,
    json: String,
}

/// Renders an object as JSON of the API. `list`: its list in the API, such as `charges`.
async fn json_block(context: &PageContext, list: &str, code: &str) -> Result<Block, Refusal> {
    let path = format!("{list}/{code}");
    let raw = context.read(|book| book.json(&path)).await?;
    let curl = context.curl_get(&format!("/v1/{path}"));
    live_block("json", &JsonBlock { curl, json: fragments::pretty(&raw) })
}

pub(super) async fn charge(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let (charge, transfers) = context
        .read(|book| {
            let charge = book.charge(code)?;
            let transfers = book.sandbox.transfers(book.account_and_mode, &charge);
            Ok((charge, transfers))
        })
        .await?;
    let title = format!("Charge {code}");
    let status = charge.status().as_str();
    let tab_title = context.tab_title(Some(status), &title);
    let form = format!("/charges/{code}/pay");
    let pending_transfer = transfers.iter().rfind(|transfer| transfer.gone.is_none() && !transfer.confirmed);
    let is_payment_refused = context.draft.is_for(&form);
    let refund_form = format!("/charges/{code}/refund");
    let is_refund_refused = context.draft.is_for(&refund_form);
    let main = ChargeBlock { context, charge: &charge, transfers: &transfers, tab_title, refund_form };
    let filter = DeliveryFilter { charge: Some(Some(charge.code)), ..DeliveryFilter::default() };
    let pay = PayBlock { context, charge: &charge, pending_transfer, form };
    let blocks = vec![
        // A refused form is static, so that its errors stay until it is sent again.
        if is_refund_refused { static_block(&main)? } else { live_block("charge", &main)? },
        if is_payment_refused { static_block(&pay)? } else { live_block("pay", &pay)? },
        timeline_block(context, ("charge", charge.code), filter).await?,
        static_block(&ChargeDetails { charge: &charge })?,
        json_block(context, "charges", code).await?,
    ];
    Ok(PageView { state: Some(status.to_owned()), title, blocks })
}

#[derive(Template)]
#[template(path = "dashboard/invoices.html")]
struct InvoicesBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<Invoice>,
}

pub(super) async fn invoices(context: &PageContext) -> Result<PageView, Refusal> {
    let status = context.query.get("status");
    let filters = [("status", status)];
    let view = |book: &BookReader<'_>, no| Invoice::from_book(book, InvoiceNo(no));
    let list = list(context, ("invoices", &filters), ("/invoices", &filters), view).await?;
    let counts = context.read(|book| Ok(book.sandbox.counts(book.account_and_mode).invoices)).await?;
    let counts = [("all", counts.all), ("open", counts.open), ("paid", counts.paid), ("void", counts.void)];
    let tabs = Tabs::by_status(context, "Invoices by status", "/invoices", &counts);
    let block = live_block("invoices", &InvoicesBlock { context, tabs, list })?;
    Ok(PageView { state: None, title: "Invoices".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/invoice.html")]
struct InvoiceBlock<'a> {
    context: &'a PageContext,
    invoice: &'a Invoice,
    tab_title: String,
}

pub(super) async fn invoice(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let invoice = context.read(|book| book.invoice(code)).await?;
    let title = format!("Invoice {}", invoice.number);
    let status = invoice.status().as_str();
    let tab_title = context.tab_title(Some(status), &title);
    let mut blocks = vec![live_block("invoice", &InvoiceBlock { context, invoice: &invoice, tab_title })?];
    if invoice.is_open() && !has_pending_transfer(context, &invoice).await? {
        blocks.push(pay_form(context, &format!("/invoices/{code}/pay"), None, None).await?);
    }
    let filter = DeliveryFilter { invoice: Some(Some(invoice.code)), ..DeliveryFilter::default() };
    blocks.extend([
        timeline_block(context, ("invoice", invoice.code), filter).await?,
        json_block(context, "invoices", code).await?,
    ]);
    Ok(PageView { state: Some(status.to_owned()), title, blocks })
}

/// Returns `true` if the newest charge of the invoice has an unconfirmed payment: another payment would pay twice.
async fn has_pending_transfer(context: &PageContext, invoice: &Invoice) -> Result<bool, Refusal> {
    let Some(newest) = invoice.charges.last() else { return Ok(false) };
    let transfers = context
        .read(|book| Ok(book.sandbox.transfers(book.account_and_mode, &*book.charge(newest.code.as_str())?)))
        .await?;
    Ok(transfers.iter().any(|transfer| transfer.gone.is_none() && !transfer.confirmed))
}

#[derive(Template)]
#[template(path = "dashboard/links.html")]
struct LinksBlock<'a> {
    context: &'a PageContext,
    list: List<Link>,
}

pub(super) async fn links(context: &PageContext) -> Result<PageView, Refusal> {
    let view = |book: &BookReader<'_>, no| Link::from_book(book, LinkNo(no), book.sandbox.now());
    let list = list(context, ("payment-links", &[]), ("/links", &[]), view).await?;
    let block = live_block("links", &LinksBlock { context, list })?;
    Ok(PageView { state: None, title: "Payment links".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/link.html")]
struct LinkBlock<'a> {
    context: &'a PageContext,
    link: &'a Link,
    charges: Vec<Charge>,
    total: u64,
    all_charges_url: String,
}

pub(super) async fn link(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let (link, charges, total) = context
        .read(|book| {
            let (page, _) = book.list(&format!("charges?payment_link={code}&per_page={LINK_CHARGES_MAX}"))?;
            let charges: Vec<_> =
                page.members.iter().map(|no| Charge::from_book(book, ChargeNo(*no))).collect();
            Ok((book.link(code)?, charges, page.total))
        })
        .await?;
    let all_charges_url = context.to(format!("/charges{}", paths::query_string(&[("link", Some(code))])));
    let form = format!("/links/{code}/pay");
    let coins = link.terms.accepted_assets.clone();
    // The form needs an initial value for a price that the customer chooses.
    let amount = link.sample_amount().map(|amount| (link.terms.currency.to_string(), amount));
    let mut blocks =
        vec![live_block("link", &LinkBlock { context, link: &link, charges, total, all_charges_url })?];
    if link.accepts_payments {
        blocks.push(pay_form(context, &form, coins, amount).await?);
    }
    blocks.push(json_block(context, "payment-links", code).await?);
    Ok(PageView { state: Some(link.status().to_owned()), title: format!("Payment link {code}"), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/pay_in.html")]
struct PayForm<'a> {
    context: &'a PageContext,
    form: &'a str,
    coins: Vec<Asset>,
    /// The currency and initial value of a price that the customer chooses.
    amount: Option<(String, String)>,
}

/// Renders the form that pays an invoice or a link as a customer would. `coins`: `None` for all accepted ones.
async fn pay_form(
    context: &PageContext,
    form: &str,
    coins: Option<Vec<Asset>>,
    amount: Option<(String, String)>,
) -> Result<Block, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    static_block(&PayForm { context, form, coins: coins.unwrap_or(account.accepted_assets), amount })
}

#[derive(Template)]
#[template(path = "dashboard/late.html")]
struct LateBlock<'a> {
    context: &'a PageContext,
    list: List<LatePayment>,
}

pub(super) async fn late_payments(context: &PageContext) -> Result<PageView, Refusal> {
    let list =
        List::single_page(context.read(|book| Ok(book.sandbox.late_payments(book.account_and_mode))).await?);
    let block = live_block("late", &LateBlock { context, list })?;
    Ok(PageView { state: None, title: "Late payments".to_owned(), blocks: vec![block] })
}
