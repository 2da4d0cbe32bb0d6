//! The page of the latest API requests, and the page of one request.

use std::sync::Arc;

use askama::Template;

use super::{Filter, List, PageView, Pager, Tab, Tabs, live_block, static_block};
use crate::{
    log::{CapturedMessage, RequestLog, RequestRecord},
    pages::dashboard::{context::PageContext, fragments, paths},
    pages::formats::TimeFormats as _,
    refusal::Refusal,
};

/// The number of requests on a page.
const REQUESTS_PER_PAGE: usize = 50;

/// The filters for requests: a label, and the range of statuses.
const STATUS_FILTERS: [(&str, std::ops::RangeInclusive<u16>); 4] =
    [("all", 100..=599), ("succeeded", 100..=399), ("refused", 400..=499), ("failed", 500..=599)];

#[derive(Template)]
#[template(path = "dashboard/requests.html")]
struct RequestsBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<Arc<RequestRecord>>,
    is_filtered: bool,
}

pub(super) fn requests(context: &PageContext) -> Result<PageView, Refusal> {
    let (status, statuses) = STATUS_FILTERS
        .into_iter()
        .find(|(label, _)| context.query.get("status") == Some(*label))
        .unwrap_or_else(|| STATUS_FILTERS[0].clone());
    let search_text = context.query.get("q").unwrap_or_default();
    let before: Option<u64> = context.query.get("before").and_then(|n| n.parse().ok());
    // A request without a key of this server is shown in both modes, because its mode is unknown.
    let is_visible =
        |record: &Arc<RequestRecord>| record.mode.is_none_or(|mode| mode == context.book_id.mode);
    let text = search_text.to_lowercase();
    let is_match = |record: &Arc<RequestRecord>| {
        let line = format!("{} {} {}", record.method, record.target, record.status).to_lowercase();
        line.contains(&text) && before.is_none_or(|n| record.n < n)
    };
    let all: Vec<_> = context.client.backend.requests.newest_first().into_iter().filter(is_visible).collect();
    let matches_in = |statuses: &std::ops::RangeInclusive<u16>| {
        all.iter()
            .filter(|request| is_match(request) && statuses.contains(&request.status))
            .collect::<Vec<_>>()
    };
    let page_url = |status: &str, before: Option<u64>| {
        let before = before.map(|n| n.to_string());
        let status = Some(status).filter(|status| *status != "all");
        let text = Some(search_text).filter(|text| !text.is_empty());
        context.to(format!(
            "/requests{}",
            paths::query_string(&[("status", status), ("q", text), ("before", before.as_deref())])
        ))
    };
    let tabs = STATUS_FILTERS.map(|(label, statuses)| Tab {
        label,
        count: Some(matches_in(&statuses).len() as u64),
        href: page_url(label, None),
        is_current: label == status,
    });
    let matches = matches_in(&statuses);
    let has_older = matches.len() > REQUESTS_PER_PAGE;
    let last_shown = matches.get(REQUESTS_PER_PAGE - 1).filter(|_| has_older);
    let older = last_shown.map(|last_shown| page_url(status, Some(last_shown.n)));
    let pager = Pager { summary: String::new(), newer: before.map(|_| page_url(status, None)), older };
    let block = RequestsBlock {
        context,
        tabs: Tabs { label: "Requests by status", tabs: tabs.into() },
        list: List { records: matches.into_iter().take(REQUESTS_PER_PAGE).map(Arc::clone).collect(), pager },
        is_filtered: status != "all" || !search_text.is_empty() || before.is_some(),
    };
    let blocks = vec![
        static_block(&Filter {
            context,
            path: "/requests",
            label: "Method, path or status",
            example: "POST /v1/charges",
            other_field: ("status", if status == "all" { "" } else { status }),
            search_text,
        })?,
        live_block("requests", &block)?,
    ];
    Ok(PageView { state: None, title: "API requests".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/request.html")]
struct RequestBlock<'a> {
    context: &'a PageContext,
    record: &'a RequestRecord,
    /// The request and the response, each with its heading.
    messages: [(&'static str, MessageView<'a>); 2],
    curl: String,
}

/// A request or a response, redacted and formatted for the page.
struct MessageView<'a> {
    captured: &'a CapturedMessage,
    headers: Vec<(String, String)>,
    body: String,
}

impl<'a> MessageView<'a> {
    fn new(log: &RequestLog, captured: &'a CapturedMessage) -> MessageView<'a> {
        let headers = captured.headers().into_iter();
        let headers = headers.map(|(name, value)| (name, log.redact(&value).into_owned())).collect();
        MessageView { captured, headers, body: fragments::pretty(&log.redact(&captured.body())) }
    }
}

pub(super) fn request(context: &PageContext, n: u64) -> Result<PageView, Refusal> {
    let log = &context.client.backend.requests;
    let record = log.find(n).ok_or(Refusal::NotFound)?;
    if record.mode.is_some_and(|mode| mode != context.book_id.mode) {
        return Err(Refusal::NotFound);
    }
    let block = RequestBlock {
        context,
        record: &record,
        messages: [("Request", &record.request), ("Response", &record.response)]
            .map(|(name, message)| (name, MessageView::new(log, message))),
        curl: log.redact(&curl(&record, context)).into_owned(),
    };
    let title = format!("Request {n}");
    Ok(PageView { state: None, title, blocks: vec![static_block(&block)?] })
}

/// Returns a curl command that repeats the request, with the key in a variable.
fn curl(record: &RequestRecord, context: &PageContext) -> String {
    let mut line = "curl -i".to_owned();
    if record.method != "GET" {
        line.push_str(&format!(" -X {}", record.method));
    }
    if record.key.is_some() {
        line.push_str(&format!(" -H \"Authorization: Bearer {}\"", context.key_variable()));
    }
    for (name, value) in record.request.headers() {
        if matches!(name.as_str(), "content-type" | "idempotency-key") {
            line.push_str(&format!(" -H {}", shell_quote(&format!("{name}: {value}"))));
        }
    }
    let body = record.request.body();
    if !body.is_empty() {
        line.push_str(&format!(" -d {}", shell_quote(&fragments::escape_directions(&body))));
    }
    format!("{line} {}", shell_quote(&format!("{}{}", context.site.base, record.target)))
}

/// Quotes a string for a shell.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_string_is_one_shell_word() {
        assert_eq!(shell_quote("it's $HOME"), r"'it'\''s $HOME'");
    }
}
