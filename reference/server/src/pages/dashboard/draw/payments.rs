//! Charges, invoices, payment links, late money.

use askama::Template;

use super::{Block, Pager, Sheet, Tabs, listed, live, still};
use crate::{
    pages::dashboard::{
        desk::Desk,
        facts::{
            Charge, Delivery, Event, Glance, Invoice, Late, Lates, Link, List, One, Transfer, Transfers,
        },
        pieces, place,
    },
    refusal::Refusal,
};

/// Events on the page of what they are about.
const EVENTS_SHOWN: u32 = 100;
/// Deliveries on the page of what they are about.
const DELIVERIES_SHOWN: usize = 25;

#[derive(Template)]
#[template(path = "dashboard/charges.html")]
struct ChargesBlock<'a> {
    desk: &'a Desk,
    tabs: Tabs,
    list: List<Charge>,
    pager: Pager,
    link: Option<&'a str>,
}

pub(super) async fn charges(desk: &Desk) -> Result<Sheet, Refusal> {
    let (status, link) = (desk.query.get("status"), desk.query.get("link"));
    let list: List<Charge> = desk
        .book(&format!("/charges{}", listed(desk, &[("status", status), ("payment_link", link)])))
        .await?;
    let counts = desk.book::<Glance>("").await?.charges;
    let counts = [
        ("all", counts.all),
        ("pending", counts.pending),
        ("underpaid", counts.underpaid),
        ("paid", counts.paid),
        ("expired", counts.expired),
        ("canceled", counts.canceled),
    ];
    let tabs = Tabs::by_status(desk, "Charges by status", "/charges", &counts);
    let pager = Pager::of(desk, "/charges", &[("status", status), ("link", link)], &list);
    let block = live("charges", &ChargesBlock { desk, tabs, list, pager, link })?;
    Ok(Sheet { title: "Charges".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/charge.html")]
struct ChargeBlock<'a> {
    desk: &'a Desk,
    charge: &'a Charge,
    transfers: Vec<Transfer>,
}

#[derive(Template)]
#[template(path = "dashboard/charge_about.html")]
struct ChargeAbout<'a> {
    charge: &'a Charge,
}

#[derive(Template)]
#[template(path = "dashboard/pay.html")]
struct PayBlock<'a> {
    desk: &'a Desk,
    charge: &'a Charge,
    form: String,
}

#[derive(Template)]
#[template(path = "dashboard/story.html")]
struct Story<'a> {
    desk: &'a Desk,
    events: Vec<Event>,
    deliveries: Vec<Delivery>,
    /// How the story is asked for through the API.
    curl: String,
}

/// Events and deliveries of one object. `name`: `charge`, `invoice`.
async fn story(desk: &Desk, name: &str, code: &str) -> Result<Block, Refusal> {
    let events: List<Event> = desk.book(&format!("/events?{name}={code}&per_page={EVENTS_SHOWN}")).await?;
    let deliveries = desk.deliveries(DELIVERIES_SHOWN, &format!("&{name}={code}")).await?;
    let base = &desk.site.base;
    let curl = format!("curl -s -H \"Authorization: Bearer $KEY\" '{base}/v1/events?{name}={code}'");
    live("story", &Story { desk, events: events.data, deliveries, curl })
}

pub(super) async fn charge(desk: &Desk, code: &str) -> Result<Sheet, Refusal> {
    let One { data: charge } = desk.book::<One<Charge>>(&format!("/charges/{code}")).await?;
    let Transfers { transfers } = desk.book(&format!("/charges/{code}/transfers")).await?;
    let blocks = vec![
        live("charge", &ChargeBlock { desk, charge: &charge, transfers })?,
        still(&PayBlock { desk, charge: &charge, form: format!("/charges/{code}/pay") })?,
        story(desk, "charge", code).await?,
        still(&ChargeAbout { charge: &charge })?,
    ];
    Ok(Sheet { title: format!("Charge {code}"), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/invoices.html")]
struct InvoicesBlock<'a> {
    desk: &'a Desk,
    tabs: Tabs,
    list: List<Invoice>,
    pager: Pager,
}

pub(super) async fn invoices(desk: &Desk) -> Result<Sheet, Refusal> {
    let status = desk.query.get("status");
    let list: List<Invoice> = desk.book(&format!("/invoices{}", listed(desk, &[("status", status)]))).await?;
    let counts = desk.book::<Glance>("").await?.invoices;
    let counts = [("all", counts.all), ("open", counts.open), ("paid", counts.paid), ("void", counts.void)];
    let tabs = Tabs::by_status(desk, "Invoices by status", "/invoices", &counts);
    let pager = Pager::of(desk, "/invoices", &[("status", status)], &list);
    let block = live("invoices", &InvoicesBlock { desk, tabs, list, pager })?;
    Ok(Sheet { title: "Invoices".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/invoice.html")]
struct InvoiceBlock<'a> {
    desk: &'a Desk,
    invoice: &'a Invoice,
}

pub(super) async fn invoice(desk: &Desk, code: &str) -> Result<Sheet, Refusal> {
    let One { data: invoice } = desk.book::<One<Invoice>>(&format!("/invoices/{code}")).await?;
    let title = format!("Invoice {}", invoice.number);
    let blocks = vec![
        live("invoice", &InvoiceBlock { desk, invoice: &invoice })?,
        story(desk, "invoice", code).await?,
    ];
    Ok(Sheet { title, blocks })
}

#[derive(Template)]
#[template(path = "dashboard/links.html")]
struct LinksBlock<'a> {
    desk: &'a Desk,
    list: List<Link>,
    pager: Pager,
}

pub(super) async fn links(desk: &Desk) -> Result<Sheet, Refusal> {
    let list: List<Link> = desk.book(&format!("/payment-links{}", listed(desk, &[]))).await?;
    let pager = Pager::of(desk, "/links", &[], &list);
    let block = live("links", &LinksBlock { desk, list, pager })?;
    Ok(Sheet { title: "Payment links".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/link.html")]
struct LinkBlock<'a> {
    desk: &'a Desk,
    link: &'a Link,
    charges: List<Charge>,
    all: String,
}

pub(super) async fn link(desk: &Desk, code: &str) -> Result<Sheet, Refusal> {
    let One { data: link } = desk.book::<One<Link>>(&format!("/payment-links/{code}")).await?;
    let charges = desk.book(&format!("/charges?payment_link={code}&per_page=10")).await?;
    let all = desk.to(format!("/charges{}", place::query(&[("link", Some(code))])));
    let block = live("link", &LinkBlock { desk, link: &link, charges, all })?;
    Ok(Sheet { title: format!("Payment link {code}"), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/late.html")]
struct LateBlock<'a> {
    desk: &'a Desk,
    late: Vec<Late>,
}

pub(super) async fn late(desk: &Desk) -> Result<Sheet, Refusal> {
    let Lates { late } = desk.book("/late").await?;
    let block = live("late", &LateBlock { desk, late })?;
    Ok(Sheet { title: "Late payments".to_owned(), blocks: vec![block] })
}
