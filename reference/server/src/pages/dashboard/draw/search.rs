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
    wanted: &'a str,
    found: Vec<SearchHit>,
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

/// Returns the path of the object whose whole code or id is searched for; `None` if there is no such object.
pub(in super::super) async fn exact_hit(context: &PageContext) -> Result<Option<String>, Refusal> {
    let (wanted, found) = search_hits(context).await?;
    Ok(found.iter().find(|hit| *hit.id == *wanted).map(|hit| context.place.path(&path(hit))))
}

/// Returns the searched text and the matching objects.
async fn search_hits(context: &PageContext) -> Result<(&str, Vec<SearchHit>), Refusal> {
    let wanted = context.query.get("q").map(str::trim).unwrap_or_default();
    // A text over the limit has no matches.
    if wanted.is_empty() || wanted.len() > paths::WANTED_MAX {
        return Ok((wanted, Vec::new()));
    }
    Ok((wanted, context.read(|book| Ok(book.sandbox.search(book.place, wanted))).await?))
}

pub(super) async fn search(context: &PageContext) -> Result<PageView, Refusal> {
    let (wanted, found) = search_hits(context).await?;
    let block = static_block(&SearchBlock { context, wanted, found })?;
    Ok(PageView { state: None, title: "Search".to_owned(), blocks: vec![block] })
}
