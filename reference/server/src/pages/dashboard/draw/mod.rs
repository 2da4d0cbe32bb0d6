//! The blocks of each page. A live block is drawn again at each change.

mod account;
mod developers;
mod history;
mod make;
mod overview;
mod payments;
mod requests;
mod search;
mod shell;

use std::fmt;

use askama::Template;

use super::{
    context::PageContext,
    facts,
    place::{self, Page},
};
use crate::{pages::Part, refusal::Refusal};

pub(super) use shell::{clock, login, menu, plain, shell};

/// Records on a page.
const PER_PAGE: u32 = 25;

/// One page.
pub(super) struct PageView {
    pub(super) title: String,
    /// The state of the page's object; the tab shows it first.
    pub(super) state: Option<String>,
    pub(super) blocks: Vec<Block>,
}

/// One block of a page.
pub(super) enum Block {
    /// It stays until the page is loaded again: forms.
    Still(String),
    /// It changes while the page is open.
    Live(Part),
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Still(html) => f.write_str(html),
            Block::Live(part) => part.fmt(f),
        }
    }
}

fn still(template: &impl Template) -> Result<Block, Refusal> {
    template.render().map(Block::Still).map_err(|_| Refusal::Broken)
}

fn live(id: &'static str, template: &impl Template) -> Result<Block, Refusal> {
    template.render().map(|html| Block::Live(Part { id, html })).map_err(|_| Refusal::Broken)
}

/// Draws the page that somebody is on.
pub(super) async fn draw(context: &PageContext) -> Result<PageView, Refusal> {
    match &context.page {
        Page::Overview => overview::overview(context).await,
        Page::World => overview::world(context).await,
        Page::History => history::history(context).await,
        Page::Charges => payments::charges(context).await,
        Page::NewCharge => make::charge(context).await,
        Page::NewInvoice => make::invoice(context).await,
        Page::NewLink => make::link(context).await,
        Page::Search => search::search(context).await,
        Page::Charge(code) => payments::charge(context, code).await,
        Page::Invoices => payments::invoices(context).await,
        Page::Invoice(code) => payments::invoice(context, code).await,
        Page::Links => payments::links(context).await,
        Page::Link(code) => payments::link(context, code).await,
        Page::Late => payments::late(context).await,
        Page::Events => developers::events(context).await,
        Page::Event(id) => developers::event(context, id).await,
        Page::Deliveries => developers::deliveries(context).await,
        Page::Delivery(id) => developers::delivery(context, id).await,
        Page::Endpoints => developers::endpoints(context).await,
        Page::Endpoint(id) => developers::endpoint(context, id).await,
        Page::Keys => developers::keys(context).await,
        Page::Requests => requests::requests(context),
        Page::Request(n) => requests::request(context, *n),
        Page::Wallets => account::wallets(context).await,
        Page::Wallet(asset) => account::wallet(context, asset).await,
        Page::Outbox => account::outbox(context).await,
        Page::Settings => account::settings(context).await,
    }
}

/// A choice among parts of a list.
struct Tab {
    label: &'static str,
    count: Option<u64>,
    href: String,
    current: bool,
}

#[derive(Template)]
#[template(path = "dashboard/tabs.html")]
struct Tabs {
    label: &'static str,
    tabs: Vec<Tab>,
}

impl Tabs {
    /// A tab for all records and one for each status. `counts`: how many, in that order.
    fn by_status(
        context: &PageContext,
        label: &'static str,
        path: &str,
        counts: &[(&'static str, u64)],
    ) -> Tabs {
        let chosen = context.query.get("status").unwrap_or("all");
        let tab = |(word, count): &(&'static str, u64)| Tab {
            label: word,
            count: Some(*count),
            href: context
                .to(format!("{path}{}", place::query(&[("status", Some(*word).filter(|w| *w != "all"))]))),
            current: *word == chosen,
        };
        Tabs { label, tabs: counts.iter().map(tab).collect() }
    }
}

/// The search of a list.
#[derive(Template)]
#[template(path = "dashboard/filter.html")]
struct Filter<'a> {
    context: &'a PageContext,
    /// Of the list, below the place.
    path: &'static str,
    label: &'static str,
    /// An example of a search.
    example: &'static str,
    /// The part of the list: the name of the field, and its value.
    part: (&'static str, &'a str),
    wanted: &'a str,
}

/// The way through a list.
#[derive(Template)]
#[template(path = "dashboard/pager.html")]
struct Pager {
    said: String,
    newer: Option<String>,
    older: Option<String>,
}

impl Pager {
    /// Of a list of the API. `filters` stand before the page.
    fn of<T>(
        context: &PageContext,
        path: &str,
        filters: &[(&str, Option<&str>)],
        list: &facts::List<T>,
    ) -> Pager {
        let meta = &list.meta;
        let anchor = list.links.anchor();
        let to = |page: u64| {
            let page = page.to_string();
            // Page 1 is always fresh.
            let fresh = page == "1";
            let mut fields = filters.to_vec();
            fields.push(("page", Some(page.as_str()).filter(|_| !fresh)));
            fields.push(("anchor", anchor.as_deref().filter(|_| !fresh)));
            context.to(format!("{path}{}", place::query(&fields)))
        };
        let said = match (meta.from, meta.to) {
            (Some(from), Some(to)) => format!("{from}–{to} of {}", meta.total),
            _ => String::new(),
        };
        Pager {
            said,
            newer: list.links.prev.as_ref().map(|_| to((meta.current_page - 1).clamp(1, meta.last_page))),
            older: list.links.next.as_ref().map(|_| to(meta.current_page + 1)),
        }
    }
}

/// The query for a list of the API: these filters, and the page that is asked for.
fn listed(context: &PageContext, filters: &[(&str, Option<&str>)]) -> String {
    let per_page = PER_PAGE.to_string();
    let mut fields = filters.to_vec();
    fields.extend([
        ("per_page", Some(per_page.as_str())),
        ("page", context.query.get("page")),
        ("anchor", context.query.get("anchor")),
    ]);
    place::query(&fields)
}
