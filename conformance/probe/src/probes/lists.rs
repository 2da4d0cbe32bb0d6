//! Reads the lists: default pages, long pages, pages at all kinds of positions, and links.
//!
//! The burst reads many pages with the test key. So this probe reads the lists of live mode, and those of test mode
//! that no burst has read or of which live mode has too few records.

use conformance_model::budget::Cost;
use conformance_model::mode::Mode;
use conformance_model::reading::{Page, link_query, page_request};
use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose};

use crate::probes::positions::{self, LONG_PAGE_SIZE, default_request, sized_request};
use crate::session::Session;

/// The pages of a list may all be read with the live key, or all with the test key, so both bounds are equal.
pub(crate) const COST: Cost = Cost { live: 32, test: 32, other: 0, total: 37 };
/// The fewest records of a list that needs a second page if a page has two records.
pub(crate) const RECORDS_MIN: u64 = 3;

/// Reads the lists, in live mode if it has enough records.
pub(crate) async fn probe(session: &mut Session<'_>) {
    // Charges are compared with events that are read later, invoices with events that were read before.
    for list in [List::Charges, List::Events, List::Invoices] {
        let live = read_total(session, list, Mode::Live).await;
        let test = read_total(session, list, Mode::Test).await;
        let (mode, total) = if live >= RECORDS_MIN { (Mode::Live, live) } else { (Mode::Test, test) };
        for read_mode in Mode::BOTH {
            let long = sized_request(list, None, LONG_PAGE_SIZE);
            let is_read =
                session.recording.find_last(|exchange| is_page(exchange, read_mode, &long)).is_some();
            // The events of both modes provide identifiers.
            let is_needed =
                read_mode == mode || list == List::Events || !session.has_burst_page(read_mode, &long);
            if is_needed && !is_read {
                session.read_page(read_mode, long).await;
            }
        }
        if total >= RECORDS_MIN {
            read_pages(session, list, mode, total).await;
            reread_if_total_changed(session, list, mode).await;
        }
    }
}

/// Returns the number of records in a list, from a page of a burst if there is one; otherwise reads a page. Returns the
/// number of rows if the page states no total, and 0 if there is no page.
async fn read_total(session: &mut Session<'_>, list: List, mode: Mode) -> u64 {
    let burst_page = session
        .burst_page(mode, &default_request(list))
        .filter(|exchange| Page::from_exchange(exchange).is_some());
    let exchange = match burst_page.cloned() {
        Some(exchange) => exchange,
        None if mode == Mode::Test && list != List::Events => {
            session.read_page(mode, sized_request(list, None, LONG_PAGE_SIZE)).await
        }
        None => session.read_page(mode, default_request(list)).await,
    };
    Page::from_exchange(&exchange)
        .and_then(|page| page.meta_number("total").or(Some(page.rows()?.len() as u64)))
        .unwrap_or(0)
}

/// Reads the long page of a list again if the newest unfiltered page states another total than the last long page.
async fn reread_if_total_changed(session: &mut Session<'_>, list: List, mode: Mode) {
    let pages = || {
        session.recording.exchanges.iter().rev().filter(|exchange| is_unfiltered_page(exchange, list, mode))
    };
    let total = |exchange: &Exchange| Page::from_exchange(exchange)?.meta_number("total");
    let long = sized_request(list, None, LONG_PAGE_SIZE);
    let long_page = pages().find(|exchange| page_request(exchange).as_ref() == Some(&long));
    if long_page.map(total) != pages().next().map(total) && session.has_room() {
        session.read_page(mode, long).await;
    }
}

/// Returns `true` if the exchange requests a page of this list without filters, with the key of this mode.
fn is_unfiltered_page(exchange: &Exchange, list: List, mode: Mode) -> bool {
    let request = page_request(exchange).filter(|_| exchange.caller == Caller::Own(mode));
    request.is_some_and(|request| request.list == list && request.filters.is_empty())
}

/// Reads pages at all kinds of positions, and follows links of a middle page; for events, also the link to the page
/// after the first.
async fn read_pages(session: &mut Session<'_>, list: List, mode: Mode, total: u64) {
    let mut requests = positions::covering_pages(list, total).into_iter();
    let Some(middle) = requests.next() else { return };
    let middle = session.read_page(mode, middle).await;
    for request in requests {
        if request.page == Some(1) || !session.has_burst_page(mode, &request) {
            session.read_page(mode, request).await;
        }
    }
    if list == List::Events {
        // The first page, of a size that does not divide the total.
        let uneven = (2..=7).find(|size| !total.is_multiple_of(*size)).unwrap_or(2);
        let first = session.read_page(mode, sized_request(list, Some(1), uneven)).await;
        follow_links(session, mode, &first, &["next"]).await;
        let rels: &[_] = if has_known_links(&middle) { &["last"] } else { &["prev", "first", "last"] };
        follow_links(session, mode, &middle, rels).await;
    } else if !has_known_links(&middle) {
        follow_links(session, mode, &middle, &["next", "last"]).await;
    }
}

/// Returns `true` if all links that a page has contain a page number and only parameters of the specification. The targets
/// of such links are known, so they need not be followed.
fn has_known_links(exchange: &Exchange) -> bool {
    let page = Page::from_exchange(exchange);
    let links = ["first", "last", "prev", "next"].map(|rel| page.as_ref()?.link(rel).map(link_query));
    links
        .into_iter()
        .flatten()
        .all(|(pairs, has_only_specified)| has_only_specified && pairs.iter().any(|(name, _)| name == "page"))
}

fn is_page(exchange: &Exchange, mode: Mode, request: &PageRequest) -> bool {
    exchange.caller == Caller::Own(mode) && exchange.purpose == Purpose::Page(request.clone())
}

/// Follows links of a page.
async fn follow_links(session: &mut Session<'_>, mode: Mode, from: &Exchange, rels: &[&str]) {
    for rel in rels {
        session.follow_link(mode, from, rel).await;
    }
}
