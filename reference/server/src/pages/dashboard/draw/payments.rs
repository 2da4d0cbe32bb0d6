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
        facts::{AttemptWords as _, DeliveryWords as _, TransferState as _},
        fragments, paths,
    },
    pages::formats::MomentWords as _,
    pages::objects::{Charge, Event, Invoice, Link},
    refusal::Refusal,
};

/// The number of events on the page of an object.
const EVENTS_SHOWN: u32 = 100;
/// The number of deliveries on the page of an object.
const DELIVERIES_SHOWN: usize = 25;

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
    let shown = [("status", status), ("link", link)];
    let list = list(context, ("charges", &filters), ("/charges", &shown), view).await?;
    let counts = context.read(|book| Ok(book.sandbox.counts(book.place).charges)).await?;
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
    tab: String,
    /// The target of the refund form.
    refund: String,
}

impl ChargeBlock<'_> {
    /// Returns `true` if there is confirmed money that could be refunded.
    fn may_be_refunded(&self) -> bool {
        self.transfers.iter().any(|transfer| transfer.gone.is_none() && transfer.confirmed)
    }

    /// Returns `true` if the charge can be canceled. A transfer that vanished does not prevent it.
    fn may_be_canceled(&self) -> bool {
        self.charge.status() == ChargeStatus::Pending
            && self.transfers.iter().all(|transfer| transfer.gone.is_some())
    }
}

#[derive(Template)]
#[template(path = "dashboard/charge_about.html")]
struct ChargeAbout<'a> {
    charge: &'a Charge,
}

#[derive(Template)]
#[template(path = "dashboard/pay.html")]
struct PayBlock<'a> {
    context: &'a PageContext,
    charge: &'a Charge,
    /// The unconfirmed payment, if there is one: another payment would pay twice.
    on_its_way: Option<&'a TransferRecord>,
    form: String,
}

#[derive(Template)]
#[template(path = "dashboard/story.html")]
struct TimelineBlock<'a> {
    context: &'a PageContext,
    events: Vec<Event>,
    deliveries: Vec<DeliveryRecord>,
    /// The API request for the same history.
    curl: String,
}

/// Renders the events and deliveries of an object. `name`: `charge`, `invoice`.
async fn history_block(
    context: &PageContext,
    (name, code): (&str, Code),
    filter: DeliveryFilter,
) -> Result<Block, Refusal> {
    let query = format!("?{name}={code}&per_page={EVENTS_SHOWN}");
    let events = context.read(|book| book.events(&query)).await?;
    let deliveries = context.deliveries(DELIVERIES_SHOWN, filter).await?;
    let curl = context.curl_get(&format!("/v1/events?{name}={code}"));
    live_block("story", &TimelineBlock { context, events, deliveries, curl })
}

#[derive(Template)]
#[template(path = "dashboard/json.html")]
struct JsonBlock {
    curl: String,
    json: String,
}

/// Renders an object as JSON of the API. `list`: `charges`.
async fn json(context: &PageContext, list: &str, code: &str) -> Result<Block, Refusal> {
    let path = format!("{list}/{code}");
    let raw = context.read(|book| book.json(&path)).await?;
    let curl = context.curl_get(&format!("/v1/{path}"));
    live_block("json", &JsonBlock { curl, json: fragments::pretty(&raw) })
}

pub(super) async fn charge(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let (charge, transfers) = context
        .read(|book| {
            let charge = book.charge(code)?;
            let transfers = book.sandbox.transfers(book.place, &charge);
            Ok((charge, transfers))
        })
        .await?;
    let title = format!("Charge {code}");
    let status = charge.status().as_str();
    let tab = context.tab(Some(status), &title);
    let form = format!("/charges/{code}/pay");
    let on_its_way = transfers.iter().rfind(|transfer| transfer.gone.is_none() && !transfer.confirmed);
    let is_refused = context.draft.is_of(&form);
    let refund = format!("/charges/{code}/refund");
    let is_refund_refused = context.draft.is_of(&refund);
    let shown = ChargeBlock { context, charge: &charge, transfers: &transfers, tab, refund };
    let filter = DeliveryFilter { charge: Some(Some(charge.code)), ..DeliveryFilter::default() };
    let pay = PayBlock { context, charge: &charge, on_its_way, form };
    let blocks = vec![
        // The errors of a form stay until it is sent again.
        if is_refund_refused { static_block(&shown)? } else { live_block("charge", &shown)? },
        if is_refused { static_block(&pay)? } else { live_block("pay", &pay)? },
        history_block(context, ("charge", charge.code), filter).await?,
        static_block(&ChargeAbout { charge: &charge })?,
        json(context, "charges", code).await?,
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
    let counts = context.read(|book| Ok(book.sandbox.counts(book.place).invoices)).await?;
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
    tab: String,
}

pub(super) async fn invoice(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let invoice = context.read(|book| book.invoice(code)).await?;
    let title = format!("Invoice {}", invoice.number);
    let status = invoice.status().as_str();
    let tab = context.tab(Some(status), &title);
    let mut blocks = vec![live_block("invoice", &InvoiceBlock { context, invoice: &invoice, tab })?];
    if invoice.is_open() && !is_on_its_way(context, &invoice).await? {
        blocks.push(pay_in(context, &format!("/invoices/{code}/pay"), None, None).await?);
    }
    let filter = DeliveryFilter { invoice: Some(Some(invoice.code)), ..DeliveryFilter::default() };
    blocks.extend([
        history_block(context, ("invoice", invoice.code), filter).await?,
        json(context, "invoices", code).await?,
    ]);
    Ok(PageView { state: Some(status.to_owned()), title, blocks })
}

/// Returns `true` if the invoice has an unconfirmed payment: another one would pay twice.
async fn is_on_its_way(context: &PageContext, invoice: &Invoice) -> Result<bool, Refusal> {
    let Some(newest) = invoice.charges.last() else { return Ok(false) };
    let transfers = context
        .read(|book| Ok(book.sandbox.transfers(book.place, &*book.charge(newest.code.as_str())?)))
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
    all: String,
}

pub(super) async fn link(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let (link, charges, total) = context
        .read(|book| {
            let (page, _) = book.list(&format!("charges?payment_link={code}&per_page=10"))?;
            let charges: Vec<_> =
                page.members.iter().map(|no| Charge::from_book(book, ChargeNo(*no))).collect();
            Ok((book.link(code)?, charges, page.total))
        })
        .await?;
    let all = context.to(format!("/charges{}", paths::query(&[("link", Some(code))])));
    let form = format!("/links/{code}/pay");
    let coins = link.terms.accepted_assets.clone();
    // A price that the customer chooses needs an initial value.
    let amount = link.sample_amount().map(|amount| (link.terms.currency.to_string(), amount));
    let mut blocks = vec![live_block("link", &LinkBlock { context, link: &link, charges, total, all })?];
    if link.accepts_payments {
        blocks.push(pay_in(context, &form, coins, amount).await?);
    }
    blocks.push(json(context, "payment-links", code).await?);
    Ok(PageView { state: Some(link.status().to_owned()), title: format!("Payment link {code}"), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/pay_in.html")]
struct PayIn<'a> {
    context: &'a PageContext,
    form: &'a str,
    coins: Vec<Asset>,
    /// The currency and initial value of a price that the customer chooses.
    amount: Option<(String, String)>,
}

/// Renders the form that pays an invoice or a link as a customer would, in one of these coins, or in any accepted one.
async fn pay_in(
    context: &PageContext,
    form: &str,
    coins: Option<Vec<Asset>>,
    amount: Option<(String, String)>,
) -> Result<Block, Refusal> {
    let account = context.read(|book| Ok(book.account())).await?;
    static_block(&PayIn { context, form, coins: coins.unwrap_or(account.accepted), amount })
}

#[derive(Template)]
#[template(path = "dashboard/late.html")]
struct LateBlock<'a> {
    context: &'a PageContext,
    list: List<LatePayment>,
}

pub(super) async fn late_payments(context: &PageContext) -> Result<PageView, Refusal> {
    let list = List::single_page(context.read(|book| Ok(book.sandbox.late_payments(book.place))).await?);
    let block = live_block("late", &LateBlock { context, list })?;
    Ok(PageView { state: None, title: "Late payments".to_owned(), blocks: vec![block] })
}
