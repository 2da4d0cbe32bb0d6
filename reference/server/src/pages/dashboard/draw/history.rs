//! The history page: requests and their effects in one list.

use askama::Template;
use reference_core::time::Timestamp;
use simulator::api::{WorldEvent, WorldEventKind};

use super::{Filter, List, PageView, Pager, Tab, Tabs, live_block, static_block};
use crate::{
    host::RecentMutation,
    log::RequestRecord,
    pages::dashboard::{context::PageContext, facts::WorldEventWords as _, fragments, paths},
    refusal::Refusal,
};

/// The number of rows on a page.
const SHOWN: usize = 50;
/// The number of latest events of the world that are searched.
const HAPPENINGS_SHOWN: u64 = 1_000;
/// The filters of the list.
const PARTS: [&str; 8] =
    ["all", "requests", "payments", "events", "blocks", "clock", "deliveries", "e-mails"];

/// A row of the list.
struct HistoryRow {
    at: Timestamp,
    part: &'static str,
    summary: String,
    /// Details.
    more: Option<String>,
    href: Option<String>,
}

impl HistoryRow {
    fn from_request(context: &PageContext, record: &RequestRecord) -> HistoryRow {
        HistoryRow {
            at: record.at,
            part: "requests",
            summary: format!("{} {} {}", record.method, record.target, record.status),
            more: record.message.clone(),
            href: Some(context.to(format!("/requests/{}", record.n))),
        }
    }

    fn from_mutation(mutation: &RecentMutation) -> HistoryRow {
        let word = mutation.path.split('/').nth(2).unwrap_or_default();
        let part = match word {
            "advance" | "restart" | "world" | "restore" | "snapshots" => "clock",
            "mine" | "reorg" | "stall" | "congest" | "watchers" | "rates" => "blocks",
            "pay" | "double-spend" | "replace" | "drop" | "rebroadcast" => "payments",
            "deliveries" | "endpoints" | "merchants" => "deliveries",
            _ => "requests",
        };
        let more = Some(mutation.body.clone()).filter(|body| !matches!(body.as_str(), "" | "{}"));
        HistoryRow {
            at: mutation.at,
            part,
            summary: format!("{} {}", mutation.method, mutation.path),
            more,
            href: None,
        }
    }

    fn from_event(context: &PageContext, event: &WorldEvent) -> HistoryRow {
        let (part, leads) = match &event.what {
            WorldEventKind::Event { event, .. } => ("events", Some(format!("/events/{event}"))),
            WorldEventKind::Post { delivery, .. } => ("deliveries", Some(format!("/deliveries/{delivery}"))),
            WorldEventKind::EndpointOff { endpoint, .. } => {
                ("deliveries", Some(format!("/endpoints/{endpoint}")))
            }
            WorldEventKind::Mail { invoice, .. } => ("e-mails", Some(format!("/invoices/{invoice}"))),
            WorldEventKind::Transfer { .. } => ("payments", None),
            WorldEventKind::Reorg { .. } => ("blocks", None),
            WorldEventKind::Restart => ("clock", None),
        };
        HistoryRow {
            at: event.at,
            part,
            summary: event.sentence(),
            more: None,
            href: leads.map(|rest| context.to(rest)),
        }
    }

    fn contains_text(&self, text: &str) -> bool {
        let mut summary = [Some(&self.summary), self.more.as_ref()].into_iter().flatten();
        text.is_empty() || summary.any(|part| part.to_lowercase().contains(text))
    }
}

#[derive(Template)]
#[template(path = "dashboard/history_about.html")]
struct AboutHistory<'a> {
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
    let is_chosen = |part: &&&str| context.query.get("part") == Some(**part);
    let part = PARTS.iter().find(is_chosen).unwrap_or(&PARTS[0]);
    let wanted = context.query.get("q").unwrap_or_default();
    let page: usize = context.query.get("page").and_then(|n| n.parse().ok()).unwrap_or(0);
    let text = wanted.to_lowercase();
    let mut all = rows(context).await?;
    all.retain(|row| row.contains_text(&text));
    let of_part = |part: &str| {
        let fits = move |row: &&HistoryRow| part == PARTS[0] || row.part == part;
        all.iter().filter(fits).count()
    };
    let query = |part: &str, page: usize| {
        let (text, page) = (Some(wanted).filter(|text| !text.is_empty()), page.to_string());
        let fields = [
            ("part", Some(part).filter(|part| *part != PARTS[0])),
            ("q", text),
            ("page", Some(page.as_str()).filter(|page| *page != "0")),
        ];
        context.to(format!("/history{}", paths::query(&fields)))
    };
    let tabs = PARTS.map(|name| Tab {
        label: name,
        count: Some(of_part(name) as u64),
        href: query(name, 0),
        current: name == *part,
    });
    let left = of_part(part).saturating_sub(page.saturating_mul(SHOWN));
    let pager = Pager {
        summary: String::new(),
        newer: page.checked_sub(1).map(|page| query(part, page)),
        older: (left > SHOWN).then(|| query(part, page.saturating_add(1))),
    };
    let shown = all.into_iter().filter(|row| *part == PARTS[0] || row.part == *part);
    let block = HistoryBlock {
        context,
        tabs: Tabs { label: "History by part", tabs: tabs.into() },
        list: List { records: shown.skip(page.saturating_mul(SHOWN)).take(SHOWN).collect(), pager },
        is_filtered: *part != PARTS[0] || !wanted.is_empty() || page > 0,
    };
    let blocks = vec![
        static_block(&AboutHistory { context })?,
        static_block(&Filter {
            context,
            path: "/history",
            label: "Path, code or word",
            example: "charge.paid",
            part: ("part", if *part == PARTS[0] { "" } else { part }),
            wanted,
        })?,
        live_block("history", &block)?,
    ];
    Ok(PageView { state: None, title: "History".to_owned(), blocks })
}

/// Returns `true` for the creation or revocation of a key. `trigger` creates and revokes one each time, and the page of
/// the keys shows their times.
fn is_key_mutation(mutation: &RecentMutation) -> bool {
    mutation.path.split('/').nth(2) == Some("keys")
}

/// Returns all rows for this account and mode, newest first. Rows that concern all accounts are included.
async fn rows(context: &PageContext) -> Result<Vec<HistoryRow>, Refusal> {
    let place = &context.place;
    let happened = context
        .read(|book| {
            let log = book.sandbox.log();
            let newest = log.events_after(log.count().saturating_sub(HAPPENINGS_SHOWN));
            Ok(newest
                .filter(|event| event.is_visible_to(&place.account, place.mode))
                .cloned()
                .collect::<Vec<_>>())
        })
        .await?;
    let backend = &context.client.backend;
    let own = |record: &RequestRecord| record.mode.is_none_or(|mode| mode == place.mode);
    let requests = backend.requests.newest_first();
    let mut rows: Vec<HistoryRow> =
        happened.iter().rev().map(|event| HistoryRow::from_event(context, event)).collect();
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
            .filter(|request| own(request))
            .map(|request| HistoryRow::from_request(context, request)),
    );
    // Stable: at the same time, effects of a request stay above it.
    rows.sort_by_key(|row| std::cmp::Reverse(row.at));
    Ok(rows)
}
