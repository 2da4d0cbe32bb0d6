//! The search of the owner.

use askama::Template;
use simulator::api::SearchHit;

use super::{PageView, still};
use crate::{
    pages::dashboard::{context::PageContext, pieces, place},
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
        let list = match &*hit.kind {
            "charge" => "charges",
            "invoice" => "invoices",
            "payment_link" => "links",
            "event" => "events",
            _ => "deliveries",
        };
        self.context.to(format!("/{list}/{}", hit.id))
    }
}

pub(super) async fn search(context: &PageContext) -> Result<PageView, Refusal> {
    let wanted = context.query.get("q").map(str::trim).unwrap_or_default();
    let found = match wanted {
        "" => Vec::new(),
        // What is too long to be asked is found nowhere.
        text if text.len() > place::WANTED_MAX => Vec::new(),
        text => context.read(|book| Ok(book.sandbox.search(book.place, text))).await?,
    };
    let block = still(&SearchBlock { context, wanted, found })?;
    Ok(PageView { state: None, title: "Search".to_owned(), blocks: vec![block] })
}
