//! The page of the latest API requests.

use std::sync::Arc;

use askama::Template;

use super::{Filter, List, PageView, Pager, Tab, Tabs, live_block, static_block};
use crate::{
    log::{CapturedMessage, RequestLog, RequestRecord},
    pages::dashboard::{context::PageContext, fragments, paths},
    pages::formats::MomentWords as _,
    refusal::Refusal,
};

/// The number of requests on a page.
const SHOWN: usize = 50;

/// The filters for requests: a label, and the statuses.
const STATES: [(&str, std::ops::RangeInclusive<u16>); 4] =
    [("all", 100..=599), ("answered", 100..=399), ("refused", 400..=499), ("failed", 500..=599)];

#[derive(Template)]
#[template(path = "dashboard/requests.html")]
struct RequestsBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<Arc<RequestRecord>>,
    is_filtered: bool,
}

pub(super) fn requests(context: &PageContext) -> Result<PageView, Refusal> {
    let (status, statuses) = STATES
        .into_iter()
        .find(|(label, _)| context.query.get("status") == Some(*label))
        .unwrap_or_else(|| STATES[0].clone());
    let wanted = context.query.get("q").unwrap_or_default();
    let before: Option<u64> = context.query.get("before").and_then(|n| n.parse().ok());
    // A request without a key of this server is shown in both modes, because its mode is unknown.
    let own = |record: &Arc<RequestRecord>| record.mode.is_none_or(|mode| mode == context.place.mode);
    let text = wanted.to_lowercase();
    let fits = |record: &Arc<RequestRecord>| {
        let line = format!("{} {} {}", record.method, record.target, record.status).to_lowercase();
        line.contains(&text) && before.is_none_or(|n| record.n < n)
    };
    let all: Vec<_> = context.client.backend.requests.newest_first().into_iter().filter(own).collect();
    let found = |statuses: &std::ops::RangeInclusive<u16>| {
        all.iter().filter(|request| fits(request) && statuses.contains(&request.status)).collect::<Vec<_>>()
    };
    let query = |status: &str, before: Option<u64>| {
        let before = before.map(|n| n.to_string());
        let status = Some(status).filter(|status| *status != "all");
        let chosen = Some(wanted).filter(|wanted| !wanted.is_empty());
        context.to(format!(
            "/requests{}",
            paths::query(&[("status", status), ("q", chosen), ("before", before.as_deref())])
        ))
    };
    let tabs = STATES.map(|(label, statuses)| Tab {
        label,
        count: Some(found(&statuses).len() as u64),
        href: query(label, None),
        current: label == status,
    });
    let chosen = found(&statuses);
    let older = chosen.get(SHOWN).and_then(|_| chosen.get(SHOWN - 1)).map(|last| query(status, Some(last.n)));
    let pager = Pager { summary: String::new(), newer: before.map(|_| query(status, None)), older };
    let block = RequestsBlock {
        context,
        tabs: Tabs { label: "Requests by answer", tabs: tabs.into() },
        list: List { records: chosen.into_iter().take(SHOWN).map(Arc::clone).collect(), pager },
        is_filtered: status != "all" || !wanted.is_empty() || before.is_some(),
    };
    let blocks = vec![
        static_block(&Filter {
            context,
            path: "/requests",
            label: "Method, path or status",
            example: "POST /v1/charges",
            part: ("status", if status == "all" { "" } else { status }),
            wanted,
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
    halves: [(&'static str, MessageView<'a>); 2],
    curl: String,
}

/// A request or a response, as the page shows it.
struct MessageView<'a> {
    message: &'a CapturedMessage,
    headers: Vec<(String, String)>,
    body: String,
}

impl<'a> MessageView<'a> {
    fn new(log: &RequestLog, message: &'a CapturedMessage) -> MessageView<'a> {
        let headers = message.headers().into_iter();
        let headers = headers.map(|(name, value)| (name, log.redact(&value).into_owned())).collect();
        MessageView { message, headers, body: fragments::pretty(&log.redact(&message.body())) }
    }
}

pub(super) fn request(context: &PageContext, n: u64) -> Result<PageView, Refusal> {
    let log = &context.client.backend.requests;
    let record = log.find(n).ok_or(Refusal::NotFound)?;
    if record.mode.is_some_and(|mode| mode != context.place.mode) {
        return Err(Refusal::NotFound);
    }
    let block = RequestBlock {
        context,
        record: &record,
        halves: [("Request", &record.request), ("Response", &record.answer)]
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
    fn a_shell_takes_any_text_as_one_word() {
        assert_eq!(shell_quote("it's $HOME"), r"'it'\''s $HOME'");
    }
}
