//! The lists: default pages, long pages, all kinds of positions, and links.
//!
//! The burst reads many pages with the test key. So this probe reads the lists of live mode, and those of test mode
//! that no burst has read or of which live mode has too few records.

use conformance_model::budget::Cost;
use conformance_model::mode::Mode;
use conformance_model::reading::{Page, link_query, page_request};
use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose};

use crate::probes::positions::{self, LONG, plain_request, sized_request};
use crate::session::Session;

/// The lists are read completely with either key, so both bounds are equal.
pub(crate) const COST: Cost = Cost { live: 32, test: 32, other: 0, total: 37 };
/// The fewest records of a list with a second page.
pub(crate) const RECORDS_MIN: u64 = 3;

pub(crate) async fn probe(session: &mut Session<'_>) {
    // Charges are compared with events that are read later, invoices with events that were read before.
    for list in [List::Charges, List::Events, List::Invoices] {
        let live = total(session, list, Mode::Live).await;
        let test = total(session, list, Mode::Test).await;
        let (mode, total) = if live >= RECORDS_MIN { (Mode::Live, live) } else { (Mode::Test, test) };
        for read_mode in Mode::BOTH {
            let long = sized_request(list, None, LONG);
            let is_read =
                session.recording.find_last(|exchange| is_page(exchange, read_mode, &long)).is_some();
            // The events of both modes provide identifiers.
            let is_wanted =
                read_mode == mode || list == List::Events || !session.has_burst_page(read_mode, &long);
            if is_wanted && !is_read {
                session.page(read_mode, long).await;
            }
        }
        if total >= RECORDS_MIN {
            pages(session, list, mode, total).await;
            read_again(session, list, mode).await;
        }
    }
}

/// Returns the number of records in a list, from a page of a burst if there is one; otherwise reads a page.
async fn total(session: &mut Session<'_>, list: List, mode: Mode) -> u64 {
    let page = match session.burst_page(mode, &plain_request(list)).and_then(Page::from_exchange) {
        Some(page) => Some(page),
        None if (mode, list == List::Events) == (Mode::Test, false) => {
            session.page(mode, sized_request(list, None, LONG)).await.1
        }
        None => session.page(mode, plain_request(list)).await.1,
    };
    page.and_then(|page| page.meta("total").or(Some(page.rows()?.len() as u64))).unwrap_or(0)
}

/// Reads the long page of a list again if the list has grown.
async fn read_again(session: &mut Session<'_>, list: List, mode: Mode) {
    let pages = || session.recording.exchanges.iter().rev().filter(|exchange| is_of(exchange, list, mode));
    let total = |exchange: &Exchange| Page::from_exchange(exchange)?.meta("total");
    let long = sized_request(list, None, LONG);
    let whole = pages().find(|exchange| page_request(exchange).as_ref() == Some(&long));
    if whole.map(total) != pages().next().map(total) && session.has_room() {
        session.page(mode, long).await;
    }
}

fn is_of(exchange: &Exchange, list: List, mode: Mode) -> bool {
    let request = page_request(exchange).filter(|_| exchange.caller == Caller::Own(mode));
    request.is_some_and(|request| request.list == list && request.filters.is_empty())
}

/// Reads all kinds of positions, and the links of a page that has all four.
async fn pages(session: &mut Session<'_>, list: List, mode: Mode, total: u64) {
    let mut requests = positions::covering_pages(list, total).into_iter();
    let Some(middle) = requests.next() else { return };
    let (middle, _) = session.page(mode, middle).await;
    for request in requests {
        if request.page == Some(1) || !session.has_burst_page(mode, &request) {
            session.page(mode, request).await;
        }
    }
    if list == List::Events {
        // A size that does not divide the total, from the first page.
        let uneven = (2..=7).find(|size| !total.is_multiple_of(*size)).unwrap_or(2);
        let (first, _) = session.page(mode, sized_request(list, Some(1), uneven)).await;
        follow(session, mode, &first, &["next"]).await;
        let further: &[_] = if is_plain(&middle) { &["last"] } else { &["prev", "first", "last"] };
        follow(session, mode, &middle, further).await;
    } else if !is_plain(&middle) {
        follow(session, mode, &middle, &["next", "last"]).await;
    }
}

/// Returns `true` if all links of a page have a page number and specified parameters only. Such links need not be
/// followed.
fn is_plain(exchange: &Exchange) -> bool {
    let page = Page::from_exchange(exchange);
    let links = ["first", "last", "prev", "next"].map(|rel| page.as_ref()?.link(rel).map(link_query));
    links
        .into_iter()
        .flatten()
        .all(|(pairs, is_plain)| is_plain && pairs.iter().any(|(name, _)| name == "page"))
}

fn is_page(exchange: &Exchange, mode: Mode, request: &PageRequest) -> bool {
    exchange.caller == Caller::Own(mode) && exchange.purpose == Purpose::Page(request.clone())
}

async fn follow(session: &mut Session<'_>, mode: Mode, from: &Exchange, rels: &[&str]) {
    for rel in rels {
        session.follow(mode, from, rel).await;
    }
}
