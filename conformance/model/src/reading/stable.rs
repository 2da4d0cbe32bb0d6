//! Reads that may be compared: records are created, and change their status, while a client reads.
//!
//! A read of part of a list counts only between two reads of the whole of it that show the same.

use crate::reading::page_ask;
use crate::recording::{Exchange, List, Recording};

/// The largest size of a page. The whole of a list is read by pages of this size.
pub const LONG: u64 = 100;

/// Returns `true` if an exchange is the first long page of a list.
fn is_long(exchange: &Exchange, list: List) -> bool {
    exchange.status() == Some(200)
        && page_ask(exchange).is_some_and(|ask| {
            ask.list == list
                && ask.filters.is_empty()
                && ask.link.is_none()
                && ask.per_page == Some(LONG)
                && ask.page.unwrap_or(1) == 1
        })
}

/// The nearest first long pages of a list that the same key read before and after an exchange.
pub fn enclosing<'r>(recording: &'r Recording, read: &Exchange, list: List) -> Option<[&'r Exchange; 2]> {
    let longs = || recording.exchanges.iter().filter(|it| it.caller == read.caller && is_long(it, list));
    let before = longs().rfind(|it| it.number < read.number && it.ended <= read.sent)?;
    let after = longs().find(|it| it.number > read.number && it.sent >= read.ended)?;
    Some([before, after])
}
