//! The frame of every page with its menu and clock, and the pages for login and errors.

use askama::Template;
use http::StatusCode;
use reference_core::mode::Mode;

use super::{Block, PageView};
use crate::{
    pages::{
        ErrorResponse, PageRequest, Part, Site,
        dashboard::{context::PageContext, flash::Notice, fragments, paths::Page},
        html,
    },
    refusal::Refusal,
    response::HttpResponse,
};

/// The path of the menu entry that is outside the dashboard.
const DOCS: &str = "/docs";

/// The menu: groups of entries, each with its path below account and mode, and its label.
const MENU: [(&str, &[(&str, &str)]); 5] = [
    ("", &[("", "Overview")]),
    (
        "Payments",
        &[
            ("/charges", "Charges"),
            ("/invoices", "Invoices"),
            ("/links", "Payment links"),
            ("/late", "Late payments"),
        ],
    ),
    (
        "Developers",
        &[
            ("/events", "Events"),
            ("/deliveries", "Deliveries"),
            ("/endpoints", "Webhook endpoints"),
            ("/requests", "API requests"),
            ("/keys", "API keys"),
            (DOCS, "API documentation"),
        ],
    ),
    ("Account", &[("/wallets", "Payout wallets"), ("/outbox", "E-mail outbox"), ("/settings", "Settings")]),
    ("Simulation", &[("/world", "Chain and clock"), ("/history", "History")]),
];

struct MenuEntry {
    id: &'static str,
    label: &'static str,
    href: String,
    is_current: bool,
    /// The number of late payments that need a decision; 0 for all other entries.
    late_payments: usize,
}

struct MenuGroup {
    label: &'static str,
    entries: Vec<MenuEntry>,
}

#[derive(Template)]
#[template(path = "dashboard/menu.html")]
struct Menu {
    groups: Vec<MenuGroup>,
}

/// Renders the menu, with the number of late payments.
pub(in super::super) async fn menu(context: &PageContext) -> Result<Part, Refusal> {
    let late = context.read(|book| Ok(book.sandbox.late_payments(book.account_and_mode).len())).await?;
    let section = context.page.section();
    let entry = |(path, label): &(&'static str, &'static str)| MenuEntry {
        id: path.trim_start_matches('/'),
        label,
        href: if *path == DOCS { context.site.to(DOCS) } else { context.to(path) },
        is_current: path.trim_start_matches('/') == section,
        late_payments: if *path == "/late" { late } else { 0 },
    };
    let groups = MENU
        .iter()
        .map(|(label, entries)| MenuGroup { label, entries: entries.iter().map(entry).collect() })
        .collect();
    let html = Menu { groups }.render().map_err(|_| Refusal::Broken)?;
    Ok(Part { id: "menu", html })
}

#[derive(Template)]
#[template(path = "dashboard/clock.html")]
struct ClockView<'a> {
    context: &'a PageContext,
}

/// Renders the service clock and its distance from real time.
pub(in super::super) fn clock(context: &PageContext) -> Result<Part, Refusal> {
    let html = ClockView { context }.render().map_err(|_| Refusal::Broken)?;
    Ok(Part { id: "clock", html })
}

/// A link to the same page of an account.
struct AccountLink {
    id: String,
    href: String,
    is_current: bool,
}

/// A link to the same page in a mode.
struct ModeLink {
    label: &'static str,
    href: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "dashboard/shell.html")]
struct Shell<'a> {
    site: &'a Site,
    context: &'a PageContext,
    title: &'a str,
    tab_title: String,
    search_text: &'a str,
    menu: Part,
    clock: Part,
    modes: [ModeLink; 2],
    accounts: Vec<AccountLink>,
    notice: Option<&'a Notice>,
    error_response: Option<&'a ErrorResponse>,
    blocks: &'a [Block],
    /// `true` if the browser logged in, so that it can log out.
    is_logged_in: bool,
}

/// Renders a page with its frame.
pub(in super::super) async fn shell(
    context: &PageContext,
    view: &PageView,
    notice: Option<&Notice>,
    is_logged_in: bool,
) -> Result<HttpResponse, Refusal> {
    let accounts = context.read(|book| Ok(book.sandbox.overview().accounts)).await?;
    let path = context.page.in_other_book();
    let modes = [("Live", Mode::Live), ("Test", Mode::Test)].map(|(label, mode)| {
        let href = context.site.to(&format!("/dashboard/{}/{mode}{path}", context.book_id.account));
        ModeLink { label, href, is_current: mode == context.book_id.mode }
    });
    let accounts = accounts
        .into_iter()
        .map(|account| AccountLink {
            href: context.site.to(&format!("/dashboard/{}/{}{path}", account.id, context.book_id.mode)),
            is_current: account.id == context.book_id.account,
            id: account.id,
        })
        .collect();
    let error_response = context.draft.error_response.as_ref();
    let page = Shell {
        site: &context.site,
        context,
        title: &view.title,
        tab_title: context.tab_title(view.state.as_deref(), &view.title),
        search_text: if context.page == Page::Search {
            context.query.get("q").unwrap_or_default()
        } else {
            ""
        },
        menu: menu(context).await?,
        clock: clock(context)?,
        modes,
        accounts,
        notice,
        error_response,
        blocks: &view.blocks,
        is_logged_in,
    };
    html(error_response.map_or(StatusCode::OK, |error_response| error_response.status), &page)
}

#[derive(Template)]
#[template(path = "dashboard/login.html")]
struct Login<'a> {
    site: &'a Site,
    form_token: &'a str,
    is_token_invalid: bool,
}

/// Renders the login page for callers from other machines. `is_token_invalid`: the previous attempt failed.
pub(in super::super) fn login(
    request: &PageRequest<'_>,
    is_token_invalid: bool,
) -> Result<HttpResponse, Refusal> {
    let site = request.site()?;
    let form_token = request.pages.dashboard.form_token();
    let status = if is_token_invalid { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED };
    html(status, &Login { site: &site, form_token, is_token_invalid })
}

#[derive(Template)]
#[template(path = "dashboard/error.html")]
struct ErrorPage<'a> {
    site: &'a Site,
    title: &'a str,
    message: String,
}

/// Renders the page for a refused request.
pub(in super::super) fn error_page(
    request: &PageRequest<'_>,
    refusal: Refusal,
) -> Result<HttpResponse, Refusal> {
    let site = request.site()?;
    let title = match refusal {
        Refusal::NotFound => "Page not found",
        _ => "Not allowed",
    };
    let message = match refusal {
        Refusal::NotFound => {
            "There is no such page, or no such object in this mode of this account.".to_owned()
        }
        other => other.to_string(),
    };
    html(refusal.status(), &ErrorPage { site: &site, title, message })
}
