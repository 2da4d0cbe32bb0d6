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

/// Returns `true` if an exchange requested a page of a list after the first by its number.
pub fn is_later_page_by_number(exchange: &Exchange) -> bool {
    page_request(exchange)
        .is_some_and(|request| request.link.is_none() && request.page.is_some_and(|page| page > 1))
}

/// Returns the exchange in which the records of a page may have been selected: the read itself, or for a later page of a
/// filtered list by number the first read of this list with the same key and filters. A server may show later pages as
/// they were then, so that new records do not shift them.
fn selecting_read<'r>(recording: &'r Recording, read: &'r Exchange) -> &'r Exchange {
    let Some(request) =
        page_request(read).filter(|request| is_later_page_by_number(read) && !request.filters.is_empty())
    else {
        return read;
    };
    let is_same_list = |exchange: &&Exchange| {
        exchange.caller == read.caller
            && page_request(exchange)
                .is_some_and(|earlier| (earlier.list, &earlier.filters) == (request.list, &request.filters))
    };
    recording.exchanges.iter().find(is_same_list).filter(|first| first.number < read.number).unwrap_or(read)
}

/// Returns the nearest first long pages that the same key read of a list before the records of a page were selected, and
/// after the page was read.
pub fn nearest_long_pages<'r>(
    recording: &'r Recording,
    read: &'r Exchange,
    list: List,
) -> Option<[&'r Exchange; 2]> {
    let long_pages = || {
        recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.caller == read.caller && is_first_long_page(exchange, list))
    };
    let selecting = selecting_read(recording, read);
    let is_before =
        |exchange: &&Exchange| exchange.number < selecting.number && exchange.ended <= selecting.sent;
    let before = long_pages().rfind(is_before)?;
    let after = long_pages().find(|exchange| exchange.number > read.number && exchange.sent >= read.ended)?;
    Some([before, after])
}
