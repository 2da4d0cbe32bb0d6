//! The history page: requests and their effects in one list.

use askama::Template;
use reference_core::time::Timestamp;
use simulator::api::{WorldEvent, WorldEventKind};

use super::{Filter, List, PageView, Pager, Tab, Tabs, live_block, static_block};
use crate::{
    host::RecentMutation,
    log::RequestRecord,
    pages::dashboard::{context::PageContext, fragments, paths, record_display::WorldEventDisplay as _},
    refusal::Refusal,
};

/// The number of rows on a page.
const ROWS_PER_PAGE: usize = 50;
/// The number of latest events of the world that are searched.
const EVENTS_SEARCHED: u64 = 1_000;
/// The categories that the list can be filtered by; the first stands for all.
const CATEGORIES: [&str; 8] =
    ["all", "requests", "payments", "events", "blocks", "clock", "deliveries", "e-mails"];

/// A row of the list.
struct HistoryRow {
    at: Timestamp,
    category: &'static str,
    summary: String,
    details: Option<String>,
    href: Option<String>,
}

impl HistoryRow {
    fn from_request(context: &PageContext, record: &RequestRecord) -> HistoryRow {
        HistoryRow {
            at: record.at,
            category: "requests",
            summary: format!("{} {} {}", record.method, record.target, record.status),
            details: record.message.clone(),
            href: Some(context.to(format!("/requests/{}", record.n))),
        }
    }

    fn from_mutation(mutation: &RecentMutation) -> HistoryRow {
        // The segment after `/sandbox`.
        let operation = mutation.path.split('/').nth(2).unwrap_or_default();
        let category = match operation {
            "advance" | "restart" | "world" | "restore" | "snapshots" => "clock",
            "mine" | "reorg" | "stall" | "congest" | "watchers" | "rates" => "blocks",
            "pay" | "double-spend" | "replace" | "drop" | "rebroadcast" => "payments",
            "deliveries" | "endpoints" | "merchants" => "deliveries",
            _ => "requests",
        };
        let details = Some(mutation.body.clone()).filter(|body| !matches!(body.as_str(), "" | "{}"));
        HistoryRow {
            at: mutation.at,
            category,
            summary: format!("{} {}", mutation.method, mutation.path),
            details,
            href: None,
        }
    }

    fn from_event(context: &PageContext, event: &WorldEvent) -> HistoryRow {
        let (category, path) = match &event.kind {
            WorldEventKind::Event { event, .. } => ("events", Some(format!("/events/{event}"))),
            WorldEventKind::Attempt { delivery, .. } => {
                ("deliveries", Some(format!("/deliveries/{delivery}")))
            }
            WorldEventKind::EndpointDisabled { endpoint, .. } => {
                ("deliveries", Some(format!("/endpoints/{endpoint}")))
            }
            WorldEventKind::Mail { invoice, .. } => ("e-mails", Some(format!("/invoices/{invoice}"))),
            WorldEventKind::Transfer { .. } => ("payments", None),
            WorldEventKind::Reorg { .. } => ("blocks", None),
            WorldEventKind::Restart => ("clock", None),
        };
        HistoryRow {
            at: event.at,
            category,
            summary: event.sentence(),
            details: None,
            href: path.map(|path| context.to(path)),
        }
    }

    /// Returns `true` if the row contains a text in any case. `text` must be in lower case.
    fn contains_text(&self, text: &str) -> bool {
        let mut texts = [Some(&self.summary), self.details.as_ref()].into_iter().flatten();
        text.is_empty() || texts.any(|row_text| row_text.to_lowercase().contains(text))
    }
}

#[derive(Template)]
#[template(path = "dashboard/history_about.html")]
struct HistoryIntro<'a> {
    context: &'a PageContext,
}

#[derive(Template)]
#[template(path = "dashboard/history.html")]
struct HistoryBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<HistoryRow>,
    is_filtered: bool,
}

pub(super) async fn history(context: &PageContext) -> Result<PageView, Refusal> {
    let is_selected = |name: &&&str| context.query.get("part") == Some(**name);
    let category = CATEGORIES.iter().find(is_selected).unwrap_or(&CATEGORIES[0]);
    let search_text = context.query.get("q").unwrap_or_default();
    let page: usize = context.query.get("page").and_then(|n| n.parse().ok()).unwrap_or(0);
    let text = search_text.to_lowercase();
    let mut all = load_rows(context).await?;
    all.retain(|row| row.contains_text(&text));
    let count_in = |category: &str| {
        let is_in = move |row: &&HistoryRow| category == CATEGORIES[0] || row.category == category;
        all.iter().filter(is_in).count()
    };
    let page_url = |category: &str, page: usize| {
        let (text, page) = (Some(search_text).filter(|text| !text.is_empty()), page.to_string());
        let fields = [
            ("part", Some(category).filter(|category| *category != CATEGORIES[0])),
            ("q", text),
            ("page", Some(page.as_str()).filter(|page| *page != "0")),
        ];
        context.to(format!("/history{}", paths::query_string(&fields)))
    };
    let tabs = CATEGORIES.map(|name| Tab {
        label: name,
        count: Some(count_in(name) as u64),
        href: page_url(name, 0),
        is_current: name == *category,
    });
    let remaining = count_in(category).saturating_sub(page.saturating_mul(ROWS_PER_PAGE));
    let pager = Pager {
        summary: String::new(),
        newer: page.checked_sub(1).map(|page| page_url(category, page)),
        older: (remaining > ROWS_PER_PAGE).then(|| page_url(category, page.saturating_add(1))),
    };
    let rows = all.into_iter().filter(|row| *category == CATEGORIES[0] || row.category == *category);
    let block = HistoryBlock {
        context,
        tabs: Tabs { label: "History by category", tabs: tabs.into() },
        list: List {
            records: rows.skip(page.saturating_mul(ROWS_PER_PAGE)).take(ROWS_PER_PAGE).collect(),
            pager,
        },
        is_filtered: *category != CATEGORIES[0] || !search_text.is_empty() || page > 0,
    };
    let blocks = vec![
        static_block(&HistoryIntro { context })?,
        static_block(&Filter {
            context,
            path: "/history",
            label: "Path, code or word",
            example: "charge.paid",
            other_field: ("part", if *category == CATEGORIES[0] { "" } else { category }),
            search_text,
        })?,
        live_block("history", &block)?,
    ];
    Ok(PageView { state: None, title: "History".to_owned(), blocks })
}

/// Returns `true` for the creation or revocation of a key. These are not listed: the command `trigger` creates and
/// revokes a key each time, and the page of the keys shows their times.
fn is_key_mutation(mutation: &RecentMutation) -> bool {
    mutation.path.split('/').nth(2) == Some("keys")
}

/// Returns all rows for this account and mode, newest first. Sandbox calls and API requests are listed for all
/// accounts; a request with a key of the other mode is not listed.
async fn load_rows(context: &PageContext) -> Result<Vec<HistoryRow>, Refusal> {
    let book_id = &context.book_id;
    let events = context
        .read(|book| {
            let log = book.sandbox.log();
            let newest = log.events_after(log.count().saturating_sub(EVENTS_SEARCHED));
            Ok(newest
                .filter(|event| event.is_visible_to(&book_id.account, book_id.mode))
                .cloned()
                .collect::<Vec<_>>())
        })
        .await?;
    let backend = &context.client.backend;
    let is_visible = |record: &RequestRecord| record.mode.is_none_or(|mode| mode == book_id.mode);
    let requests = backend.requests.newest_first();
    let mut rows: Vec<HistoryRow> =
        events.iter().rev().map(|event| HistoryRow::from_event(context, event)).collect();
    let mutations = backend.host.recent_mutations();
    rows.extend(
        mutations
            .iter()
            .filter(|mutation| !is_key_mutation(mutation))
            .map(|mutation| HistoryRow::from_mutation(mutation)),
    );
    rows.extend(
        requests
            .iter()
            .filter(|request| is_visible(request))
            .map(|request| HistoryRow::from_request(context, request)),
    );
    // The sort is stable: at the same time, the effects of a request stay above it.
    rows.sort_by_key(|row| std::cmp::Reverse(row.at));
    Ok(rows)
}
