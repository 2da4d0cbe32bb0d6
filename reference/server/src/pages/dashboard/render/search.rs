//! The search page.

use askama::Template;
use simulator::api::SearchHit;

use super::{PageView, static_block};
use crate::{
    pages::dashboard::{context::PageContext, fragments, paths},
    refusal::Refusal,
};

#[derive(Template)]
#[template(path = "dashboard/search.html")]
struct SearchBlock<'a> {
    context: &'a PageContext,
    search_text: &'a str,
    hits: Vec<SearchHit>,
}

impl SearchBlock<'_> {
    fn href(&self, hit: &SearchHit) -> String {
        self.context.to(path(hit))
    }
}

/// Returns the path of a search hit below account and mode.
fn path(hit: &SearchHit) -> String {
    let list = match &*hit.kind {
        "charge" => "charges",
        "invoice" => "invoices",
        "payment_link" => "links",
        "event" => "events",
        _ => "deliveries",
    };
    format!("/{list}/{}", hit.id)
}

/// Returns the path of the object whose code or id equals the search text; `None` if there is no such object.
pub(in super::super) async fn exact_hit(context: &PageContext) -> Result<Option<String>, Refusal> {
    let (search_text, hits) = search_hits(context).await?;
    Ok(hits.iter().find(|hit| *hit.id == *search_text).map(|hit| context.book_id.path(&path(hit))))
}

/// Returns the search text and the matching objects.
async fn search_hits(context: &PageContext) -> Result<(&str, Vec<SearchHit>), Refusal> {
    let search_text = context.query.get("q").map(str::trim).unwrap_or_default();
    // A text over the limit has no matches.
    if search_text.is_empty() || search_text.len() > paths::SEARCH_MAX {
        return Ok((search_text, Vec::new()));
    }
    Ok((search_text, context.read(|book| Ok(book.sandbox.search(book.account_and_mode, search_text))).await?))
}

pub(super) async fn search(context: &PageContext) -> Result<PageView, Refusal> {
    let (search_text, hits) = search_hits(context).await?;
    let block = static_block(&SearchBlock { context, search_text, hits })?;
    Ok(PageView { state: None, title: "Search".to_owned(), blocks: vec![block] })
}
