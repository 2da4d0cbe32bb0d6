//! Renders the blocks of each page. A live block is rendered again after each change.

mod account;
mod developers;
mod history;
mod make;
mod overview;
mod payments;
mod requests;
pub(super) mod search;
mod shell;

use std::fmt;

use askama::Template;

use super::{
    context::PageContext,
    paths::{self, Page},
};
use crate::{
    pages::{Part, book::BookReader},
    refusal::Refusal,
};

pub(super) use shell::{clock, error_page, login, menu, shell};

/// The number of records on a page.
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
    /// A block that does not change while the page is open, such as a form.
    Still(String),
    /// A block that changes while the page is open.
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

fn static_block(template: &impl Template) -> Result<Block, Refusal> {
    template.render().map(Block::Still).map_err(|_| Refusal::Broken)
}

fn live_block(id: &'static str, template: &impl Template) -> Result<Block, Refusal> {
    template.render().map(|html| Block::Live(Part { id, html })).map_err(|_| Refusal::Broken)
}

/// Renders the requested page.
pub(super) async fn render_page(context: &PageContext) -> Result<PageView, Refusal> {
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
        Page::Late => payments::late_payments(context).await,
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

/// A tab that filters a list.
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
    /// Returns a tab for all records and one for each status. `counts`: the number of records, in that order.
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
                .to(format!("{path}{}", paths::query(&[("status", Some(*word).filter(|w| *w != "all"))]))),
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
    /// The path of the list, below account and mode.
    path: &'static str,
    label: &'static str,
    /// An example of a search.
    example: &'static str,
    /// The other filter of the list: the name of the field, and its value.
    part: (&'static str, &'a str),
    wanted: &'a str,
}

/// The links to the other pages of a list.
#[derive(Default, Template)]
#[template(path = "dashboard/pager.html")]
struct Pager {
    summary: String,
    newer: Option<String>,
    older: Option<String>,
}

/// A page of a list, as `list.html` draws it.
struct List<T> {
    records: Vec<T>,
    pager: Pager,
}

impl<T> List<T> {
    /// Creates a list with a single page.
    fn single_page(records: Vec<T>) -> List<T> {
        List { records, pager: Pager::default() }
    }
}

/// Reads a page of a list. `list`: the list of the API and its filters; `shown`: the same for links on this page.
async fn list<T>(
    context: &PageContext,
    list: (&str, &[(&str, Option<&str>)]),
    shown: (&str, &[(&str, Option<&str>)]),
    view: impl Fn(&BookReader<'_>, u32) -> T,
) -> Result<List<T>, Refusal> {
    let per_page = PER_PAGE.to_string();
    let (name, mut fields) = (list.0, list.1.to_vec());
    fields.extend([
        ("per_page", Some(per_page.as_str())),
        ("page", context.query.get("page")),
        ("anchor", context.query.get("anchor")),
    ]);
    let path = format!("{name}{}", paths::query(&fields));
    let (records, page, anchor) = context
        .read(|book| {
            let (page, anchor) = book.list(&path)?;
            Ok((page.members.iter().map(|no| view(book, *no)).collect(), page, anchor))
        })
        .await?;
    let to = |n: u64| {
        // Page 1 has no anchor, so it always shows the newest records.
        let (n, is_later) = (n.to_string(), n > 1);
        let mut fields = shown.1.to_vec();
        fields.push(("page", Some(n.as_str()).filter(|_| is_later)));
        fields.push(("anchor", anchor.as_deref().filter(|_| is_later)));
        context.to(format!("{}{}", shown.0, paths::query(&fields)))
    };
    let summary = match (page.from(), page.to()) {
        (Some(from), Some(to)) => format!("{from}–{to} of {}", page.total),
        _ => String::new(),
    };
    let pager = Pager { summary, newer: page.prev().map(&to), older: page.next().map(&to) };
    Ok(List { records, pager })
}
