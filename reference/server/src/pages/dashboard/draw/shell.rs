//! The frame of every page.

use askama::Template;
use http::StatusCode;
use reference_core::mode::Mode;

use super::{Block, PageView};
use crate::{
    answer::Answer,
    pages::{
        Call, Complaint, Part, Site,
        dashboard::{context::PageContext, flash::Notice, fragments, paths::Page},
        html,
    },
    refusal::Refusal,
};

/// The entry that leads out of the dashboard.
const DOCS: &str = "/docs";

/// The menu: groups of entries with their labels, and the path of each below account and mode.
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
    current: bool,
    /// The number of late payments that need a decision.
    waits: usize,
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
    let late = context.read(|book| Ok(book.sandbox.late_payments(book.place).len())).await?;
    let section = context.page.section();
    let entry = |(path, label): &(&'static str, &'static str)| MenuEntry {
        id: path.trim_start_matches('/'),
        label,
        href: if *path == DOCS { context.site.to(DOCS) } else { context.to(path) },
        current: path.trim_start_matches('/') == section,
        waits: if *path == "/late" { late } else { 0 },
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
struct ClockLine<'a> {
    context: &'a PageContext,
}

/// Renders the service clock and its distance from real time.
pub(in super::super) fn clock(context: &PageContext) -> Result<Part, Refusal> {
    let html = ClockLine { context }.render().map_err(|_| Refusal::Broken)?;
    Ok(Part { id: "clock", html })
}

/// Another account.
struct Neighbour {
    id: String,
    href: String,
    current: bool,
}

#[derive(Template)]
#[template(path = "dashboard/shell.html")]
struct Shell<'a> {
    site: &'a Site,
    context: &'a PageContext,
    title: &'a str,
    /// The title of the browser's tab.
    tab: String,
    /// The searched text.
    wanted: &'a str,
    menu: Part,
    clock: Part,
    modes: [(&'static str, String, bool); 2],
    neighbours: Vec<Neighbour>,
    notice: Option<&'a Notice>,
    complaint: Option<&'a Complaint>,
    blocks: &'a [Block],
    /// `true` if the browser logged in, so that it can log out.
    came_by_login: bool,
}

/// Renders a page with its frame.
pub(in super::super) async fn shell(
    context: &PageContext,
    view: &PageView,
    notice: Option<&Notice>,
    came_by_login: bool,
) -> Result<Answer, Refusal> {
    let accounts = context.read(|book| Ok(book.sandbox.overview().accounts)).await?;
    let path = context.page.in_other_mode();
    let modes = [("Live", Mode::Live), ("Test", Mode::Test)].map(|(label, mode)| {
        let href = context.site.to(&format!("/dashboard/{}/{mode}{path}", context.place.account));
        (label, href, mode == context.place.mode)
    });
    let neighbours = accounts
        .into_iter()
        .map(|account| Neighbour {
            href: context.site.to(&format!("/dashboard/{}/{}{path}", account.id, context.place.mode)),
            current: account.id == context.place.account,
            id: account.id,
        })
        .collect();
    let complaint = context.draft.complaint.as_ref();
    let page = Shell {
        site: &context.site,
        context,
        title: &view.title,
        tab: context.tab(view.state.as_deref(), &view.title),
        wanted: if context.page == Page::Search { context.query.get("q").unwrap_or_default() } else { "" },
        menu: menu(context).await?,
        clock: clock(context)?,
        modes,
        neighbours,
        notice,
        complaint,
        blocks: &view.blocks,
        came_by_login,
    };
    html(complaint.map_or(StatusCode::OK, |complaint| complaint.status), &page)
}

#[derive(Template)]
#[template(path = "dashboard/login.html")]
struct Login<'a> {
    site: &'a Site,
    word: &'a str,
    wrong: bool,
}

/// Renders the login page for callers from other machines.
pub(in super::super) fn login(call: &Call<'_>, wrong: bool) -> Result<Answer, Refusal> {
    let site = call.site()?;
    let word = call.pages.dashboard.form_token();
    let status = if wrong { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED };
    html(status, &Login { site: &site, word, wrong })
}

#[derive(Template)]
#[template(path = "dashboard/plain.html")]
struct PlainPage<'a> {
    site: &'a Site,
    title: &'a str,
    message: String,
}

/// Renders a page for an error.
pub(in super::super) fn error_page(call: &Call<'_>, refusal: Refusal) -> Result<Answer, Refusal> {
    let site = call.site()?;
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
    html(refusal.status(), &PlainPage { site: &site, title, message })
}
