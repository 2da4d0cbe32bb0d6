//! Comparable reads of a list, although records are created and change their status meanwhile.
//!
//! A read of part of a list counts only between two equal reads of its first 100 records.

use crate::reading::page_request;
use crate::recording::{Exchange, List, Recording};

/// The largest page size, in records. A page of this size is a *long page*.
pub const LONG_PAGE_SIZE: u64 = 100;

/// Returns `true` if an exchange is the first long page of a list.
fn is_first_long_page(exchange: &Exchange, list: List) -> bool {
    exchange.status() == Some(200)
        && page_request(exchange).is_some_and(|request| {
            request.list == list
                && request.filters.is_empty()
                && request.link.is_none()
                && request.per_page == Some(LONG_PAGE_SIZE)
                && request.page.unwrap_or(1) == 1
        })
}

/// Returns the nearest first long pages that the same key read of a list before and after an exchange.
pub fn nearest_long_pages<'r>(
    recording: &'r Recording,
    read: &Exchange,
    list: List,
) -> Option<[&'r Exchange; 2]> {
    let long_pages = || {
        recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.caller == read.caller && is_first_long_page(exchange, list))
    };
    let before =
        long_pages().rfind(|exchange| exchange.number < read.number && exchange.ended <= read.sent)?;
    let after = long_pages().find(|exchange| exchange.number > read.number && exchange.sent >= read.ended)?;
    Some([before, after])
}
