//! Charges, invoices, payment links, late money.

use askama::Template;
use serde_json::value::RawValue;
use simulator::api::{BookCounts, DeliveryRecord, LateList, LatePayment, TransferList, TransferRecord};

use super::{Block, PageView, Pager, Tabs, listed, live, still};
use crate::{
    pages::dashboard::{
        context::PageContext,
        facts::{AccountAnswer, AttemptWords as _, DeliveryWords as _, List, One, TransferState as _},
        pieces, place,
    },
    pages::objects::{ChargeDetails as Charge, Event, Invoice, Link},
    pages::words::MomentWords as _,
    refusal::Refusal,
};

/// Events on the page of what they are about.
const EVENTS_SHOWN: u32 = 100;
/// Deliveries on the page of what they are about.
const DELIVERIES_SHOWN: usize = 25;

#[derive(Template)]
#[template(path = "dashboard/charges.html")]
struct ChargesBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<Charge>,
    pager: Pager,
    link: Option<&'a str>,
}

pub(super) async fn charges(context: &PageContext) -> Result<PageView, Refusal> {
    let (status, link) = (context.query.get("status"), context.query.get("link"));
    let list: List<Charge> = context
        .book(&format!("/charges{}", listed(context, &[("status", status), ("payment_link", link)])))
        .await?;
    let counts = context.book::<BookCounts>("").await?.charges;
    let counts = [
        ("all", counts.all),
        ("pending", counts.pending),
        ("underpaid", counts.underpaid),
        ("paid", counts.paid),
        ("expired", counts.expired),
        ("canceled", counts.canceled),
    ];
    let tabs = Tabs::by_status(context, "Charges by status", "/charges", &counts);
    let pager = Pager::of(context, "/charges", &[("status", status), ("link", link)], &list);
    let block = live("charges", &ChargesBlock { context, tabs, list, pager, link })?;
    Ok(PageView { state: None, title: "Charges".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/charge.html")]
struct ChargeBlock<'a> {
    context: &'a PageContext,
    charge: &'a Charge,
    transfers: &'a [TransferRecord],
    reorganised: bool,
    tab: String,
    /// The target of the refund form.
    refund: String,
}

impl ChargeBlock<'_> {
    /// Returns `true` if there is confirmed money that could be refunded.
    fn may_be_refunded(&self) -> bool {
        self.transfers.iter().any(|it| it.gone.is_none() && it.confirmed)
    }

    /// Returns `true` if it can be canceled. A vanished transfer does not prevent it.
    fn may_be_canceled(&self) -> bool {
        self.charge.status == "pending" && self.transfers.iter().all(|it| it.gone.is_some())
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
    /// The payment that is seen and not confirmed: a second payment would pay twice.
    on_its_way: Option<&'a TransferRecord>,
    form: String,
}

#[derive(Template)]
#[template(path = "dashboard/story.html")]
struct Story<'a> {
    context: &'a PageContext,
    events: Vec<Event>,
    deliveries: Vec<DeliveryRecord>,
    /// The API request for the same history.
    curl: String,
}

/// Events and deliveries of one object. `name`: `charge`, `invoice`.
async fn story(context: &PageContext, name: &str, code: &str) -> Result<Block, Refusal> {
    let events: List<Event> = context.book(&format!("/events?{name}={code}&per_page={EVENTS_SHOWN}")).await?;
    let deliveries = context.deliveries(DELIVERIES_SHOWN, &format!("&{name}={code}")).await?;
    let base = &context.site.base;
    let curl = format!("curl -s -H \"Authorization: Bearer $KEY\" '{base}/v1/events?{name}={code}'");
    live("story", &Story { context, events: events.data, deliveries, curl })
}

#[derive(Template)]
#[template(path = "dashboard/json.html")]
struct JsonBlock {
    curl: String,
    json: String,
}

/// An object as the API shows it. `list`: `charges`.
async fn json(context: &PageContext, list: &str, code: &str) -> Result<Block, Refusal> {
    let path = format!("/{list}/{code}");
    let One { data: raw } = context.book::<One<Box<RawValue>>>(&path).await?;
    let curl = format!("curl -s -H \"Authorization: Bearer $KEY\" '{}/v1{path}'", context.site.base);
    live("json", &JsonBlock { curl, json: pieces::pretty(raw.get()) })
}

pub(super) async fn charge(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let One { data: charge } = context.book::<One<Charge>>(&format!("/charges/{code}")).await?;
    let TransferList { transfers, reorganised } = context.book(&format!("/charges/{code}/transfers")).await?;
    let title = format!("Charge {code}");
    let tab = context.tab(Some(&charge.status), &title);
    let form = format!("/charges/{code}/pay");
    let on_its_way = transfers.iter().rfind(|it| it.gone.is_none() && !it.confirmed);
    let is_refused = context.draft.is_of(&form);
    let refund = format!("/charges/{code}/refund");
    let is_refund_refused = context.draft.is_of(&refund);
    let shown = ChargeBlock { context, charge: &charge, transfers: &transfers, reorganised, tab, refund };
    let pay = PayBlock { context, charge: &charge, on_its_way, form };
    let blocks = vec![
        // What is wrong with a form stays until it is sent again.
        if is_refund_refused { still(&shown)? } else { live("charge", &shown)? },
        if is_refused { still(&pay)? } else { live("pay", &pay)? },
        story(context, "charge", code).await?,
        still(&ChargeAbout { charge: &charge })?,
        json(context, "charges", code).await?,
    ];
    Ok(PageView { state: Some(charge.status.clone()), title, blocks })
}

#[derive(Template)]
#[template(path = "dashboard/invoices.html")]
struct InvoicesBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<Invoice>,
    pager: Pager,
}

pub(super) async fn invoices(context: &PageContext) -> Result<PageView, Refusal> {
    let status = context.query.get("status");
    let list: List<Invoice> =
        context.book(&format!("/invoices{}", listed(context, &[("status", status)]))).await?;
    let counts = context.book::<BookCounts>("").await?.invoices;
    let counts = [("all", counts.all), ("open", counts.open), ("paid", counts.paid), ("void", counts.void)];
    let tabs = Tabs::by_status(context, "Invoices by status", "/invoices", &counts);
    let pager = Pager::of(context, "/invoices", &[("status", status)], &list);
    let block = live("invoices", &InvoicesBlock { context, tabs, list, pager })?;
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
    let One { data: invoice } = context.book::<One<Invoice>>(&format!("/invoices/{code}")).await?;
    let title = format!("Invoice {}", invoice.number);
    let tab = context.tab(Some(&invoice.status), &title);
    let mut blocks = vec![live("invoice", &InvoiceBlock { context, invoice: &invoice, tab })?];
    if invoice.is_open() && !is_on_its_way(context, &invoice).await? {
        blocks.push(pay_in(context, &format!("/invoices/{code}/pay"), None, None).await?);
    }
    blocks.extend([story(context, "invoice", code).await?, json(context, "invoices", code).await?]);
    Ok(PageView { state: Some(invoice.status.clone()), title, blocks })
}

/// Returns `true` if a payment of the invoice is seen and not confirmed: a second payment would pay twice.
async fn is_on_its_way(context: &PageContext, invoice: &Invoice) -> Result<bool, Refusal> {
    let Some(newest) = invoice.charges.last() else { return Ok(false) };
    let TransferList { transfers, .. } = context.book(&format!("/charges/{}/transfers", newest.code)).await?;
    Ok(transfers.iter().any(|it| it.gone.is_none() && !it.confirmed))
}

#[derive(Template)]
#[template(path = "dashboard/links.html")]
struct LinksBlock<'a> {
    context: &'a PageContext,
    list: List<Link>,
    pager: Pager,
}

pub(super) async fn links(context: &PageContext) -> Result<PageView, Refusal> {
    let list: List<Link> = context.book(&format!("/payment-links{}", listed(context, &[]))).await?;
    let pager = Pager::of(context, "/links", &[], &list);
    let block = live("links", &LinksBlock { context, list, pager })?;
    Ok(PageView { state: None, title: "Payment links".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/link.html")]
struct LinkBlock<'a> {
    context: &'a PageContext,
    link: &'a Link,
    charges: List<Charge>,
    all: String,
}

pub(super) async fn link(context: &PageContext, code: &str) -> Result<PageView, Refusal> {
    let One { data: link } = context.book::<One<Link>>(&format!("/payment-links/{code}")).await?;
    let charges = context.book(&format!("/charges?payment_link={code}&per_page=10")).await?;
    let all = context.to(format!("/charges{}", place::query(&[("link", Some(code))])));
    let form = format!("/links/{code}/pay");
    let coins = link.accepted_assets.clone();
    // Where the customer chooses, something has to be chosen here too.
    let amount = link.amount.is_none().then(|| {
        let first = link.suggested_amounts.first().or(link.min_amount.as_ref());
        (link.currency.clone(), first.cloned().unwrap_or_else(|| "10.00".to_owned()))
    });
    let is_open = link.accepting_payments;
    let status = link.status.clone();
    let mut blocks = vec![live("link", &LinkBlock { context, link: &link, charges, all })?];
    if is_open {
        blocks.push(pay_in(context, &form, coins, amount).await?);
    }
    blocks.push(json(context, "payment-links", code).await?);
    Ok(PageView { state: Some(status), title: format!("Payment link {code}"), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/pay_in.html")]
struct PayIn<'a> {
    context: &'a PageContext,
    form: &'a str,
    coins: Vec<String>,
    /// Its currency and what stands there at first, where the customer chooses.
    amount: Option<(String, String)>,
}

/// A form that pays an invoice or by a link, as a customer would, in a coin of these, or of all that are accepted.
async fn pay_in(
    context: &PageContext,
    form: &str,
    coins: Option<Vec<String>>,
    amount: Option<(String, String)>,
) -> Result<Block, Refusal> {
    let AccountAnswer { meta, .. } = context.book("/account").await?;
    still(&PayIn { context, form, coins: coins.unwrap_or(meta.accepted_assets), amount })
}

#[derive(Template)]
#[template(path = "dashboard/late.html")]
struct LateBlock<'a> {
    context: &'a PageContext,
    late: Vec<LatePayment>,
}

pub(super) async fn late(context: &PageContext) -> Result<PageView, Refusal> {
    let LateList { late } = context.book("/late").await?;
    let block = live("late", &LateBlock { context, late })?;
    Ok(PageView { state: None, title: "Late payments".to_owned(), blocks: vec![block] })
}
