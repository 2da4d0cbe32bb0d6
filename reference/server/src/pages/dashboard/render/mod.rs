//! Renders the blocks of each page. A live block is rendered again after each change.

mod account;
mod create;
mod developers;
mod history;
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

/// The content of a page.
pub(super) struct PageView {
    pub(super) title: String,
    /// The state of the page's object; the title of the browser's tab starts with it.
    pub(super) state: Option<String>,
    pub(super) blocks: Vec<Block>,
}

/// One block of a page.
pub(super) enum Block {
    /// A block that does not change while the page is open, such as a form.
    Static(String),
    /// A block that changes while the page is open.
    Live(Part),
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Static(html) => f.write_str(html),
            Block::Live(part) => part.fmt(f),
        }
    }
}

fn static_block(template: &impl Template) -> Result<Block, Refusal> {
    template.render().map(Block::Static).map_err(|_| Refusal::Broken)
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
        Page::NewCharge => create::charge(context).await,
        Page::NewInvoice => create::invoice(context).await,
        Page::NewLink => create::link(context).await,
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
    is_current: bool,
}

#[derive(Template)]
#[template(path = "dashboard/tabs.html")]
struct Tabs {
    label: &'static str,
    tabs: Vec<Tab>,
}

impl Tabs {
    /// Returns a tab for each status, or `all`, in `counts`, with its number of records.
    fn by_status(
        context: &PageContext,
        label: &'static str,
        path: &str,
        counts: &[(&'static str, u64)],
    ) -> Tabs {
        let selected = context.query.get("status").unwrap_or("all");
        let tab = |(status, count): &(&'static str, u64)| Tab {
            label: status,
            count: Some(*count),
            href: context.to(format!(
                "{path}{}",
                paths::query_string(&[("status", Some(*status).filter(|status| *status != "all"))])
            )),
            is_current: *status == selected,
        };
        Tabs { label, tabs: counts.iter().map(tab).collect() }
    }
}

/// The search form of a list.
#[derive(Template)]
#[template(path = "dashboard/filter.html")]
struct Filter<'a> {
    context: &'a PageContext,
    /// The path of the list, below account and mode.
    path: &'static str,
    label: &'static str,
    /// An example of a search.
    example: &'static str,
    /// The query field of the list's other filter: its name and value.
    other_field: (&'static str, &'a str),
    search_text: &'a str,
}

/// The links to the other pages of a list.
#[derive(Default, Template)]
#[template(path = "dashboard/pager.html")]
struct Pager {
    summary: String,
    newer: Option<String>,
    older: Option<String>,
}

/// A page of a list, as `list.html` renders it.
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

/// Reads a page of a list. `api_list`: the list of the API and its filters; `page_list`: the path and query of this
/// page, for links to its other list pages; `view` reads the record with a number.
async fn list<T>(
    context: &PageContext,
    api_list: (&str, &[(&str, Option<&str>)]),
    page_list: (&str, &[(&str, Option<&str>)]),
    view: impl Fn(&BookReader<'_>, u32) -> T,
) -> Result<List<T>, Refusal> {
    let per_page = PER_PAGE.to_string();
    let (name, mut fields) = (api_list.0, api_list.1.to_vec());
    fields.extend([
        ("per_page", Some(per_page.as_str())),
        ("page", context.query.get("page")),
        ("anchor", context.query.get("anchor")),
    ]);
    let path = format!("{name}{}", paths::query_string(&fields));
    let (records, page, anchor) = context
        .read(|book| {
            let (page, anchor) = book.list(&path)?;
            Ok((page.members.iter().map(|no| view(book, *no)).collect(), page, anchor))
        })
        .await?;
    let page_url = |n: u64| {
        // Page 1 has no anchor, so it always shows the newest records.
        let (n, is_later) = (n.to_string(), n > 1);
        let mut fields = page_list.1.to_vec();
        fields.push(("page", Some(n.as_str()).filter(|_| is_later)));
        fields.push(("anchor", anchor.as_deref().filter(|_| is_later)));
        context.to(format!("{}{}", page_list.0, paths::query_string(&fields)))
    };
    let summary = match (page.from(), page.to()) {
        (Some(from), Some(to)) => format!("{from}–{to} of {}", page.total),
        _ => String::new(),
    };
    let pager = Pager { summary, newer: page.prev().map(&page_url), older: page.next().map(&page_url) };
    Ok(List { records, pager })
}
