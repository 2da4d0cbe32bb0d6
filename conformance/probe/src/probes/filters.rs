//! Requests for filtered lists: with one filter, with two, and with the three filters of events combined.
//!
//! The burst has read all of them in test mode. This probe reads single filters in live mode, and those that no burst
//! has read.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::budget::Cost;
use conformance_model::mode::Mode;
use conformance_model::reading::{
    ChargeInvoices, Page, event_charge_codes, is_later_page_by_number, nearest_long_pages, page_request,
    selected_ids, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose, Recording, Side};

use crate::probes::filter_values::{FilterValues, selective_type, value_counts, with_other_end};
use crate::probes::positions::{LONG_PAGE_SIZE, filtered_request, sized_request};
use crate::request_paths::percent_encode;
use crate::session::Session;

/// The number of links that are followed because their query lacks a parameter.
const LINKS_FOLLOWED_MAX: u32 = 2;
/// The requests with one filter: two pages of a type, and five filters.
const SINGLE_FILTERS: u32 = 7;
/// The requests with combined filters, and a second page by number. If a burst has read these, the requests are
/// used for the long pages instead.
const COMBINED_FILTERS: u32 = 6;
const UNKNOWN_VALUES: u32 = UNKNOWN_VALUE_FILTERS.len() as u32;
/// The requests for the events of a charge of an invoice.
const CHARGE_OF_INVOICE: u32 = 1;
/// The requests for an old paid invoice, and its charge.
const OLD_INVOICE: u32 = 2;
/// The final reads of the unfiltered lists, three in each mode.
const FINAL_READS: u32 = 6;
/// The number of filtered pages that are read again because records changed.
const REREADS_MAX: u32 = 3;
/// The requests for each of these pages.
const REQUESTS_PER_REREAD: u32 = 2;
/// The fewest requests that the statements about filters need.
pub(crate) const REQUESTS_MIN: u32 =
    SINGLE_FILTERS + COMBINED_FILTERS + OLD_INVOICE + UNKNOWN_VALUES + FINAL_READS;
const REQUESTS_MAX: u32 = REQUESTS_MIN
    + CHARGE_OF_INVOICE
    + LINKS_FOLLOWED_MAX
    + REREADS_MAX * REQUESTS_PER_REREAD
    + SIMILAR_FILTERS.len() as u32
    + OTHER_VALUES_MAX;
/// The most further types and statuses that are requested. A burst requests all of them in test mode.
const OTHER_VALUES_MAX: u32 = 9;
/// Equal bounds for both keys, because the values to filter by may be in either mode.
pub(crate) const COST: Cost = Cost { live: REQUESTS_MAX, test: REQUESTS_MAX, other: 0, total: REQUESTS_MAX };

/// Reads the filtered lists.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let mut links_followed = 0;
    let is_page = |purpose: &Purpose| matches!(purpose, Purpose::Page(_));
    let [live, test] = Mode::BOTH.map(|mode| FilterValues::from_recording(&session.recording, mode, is_page));
    let has_burst = has_burst_filtered(&session.recording, List::Events, &["type"]);
    let modes = match has_burst {
        true => [(Mode::Live, &live), (Mode::Test, &test)],
        false => [(Mode::Test, &test), (Mode::Live, &live)],
    };
    if let Some((mode, kind)) = selective_type(&modes) {
        let request = filtered_request(List::Events, &[("type", &kind)], 2);
        let first = session.read_page(mode, request.clone()).await;
        session.follow_link(mode, &first, "next").await;
        // Links may work where page numbers are ignored. A burst tests this in test mode.
        let total = Page::from_exchange(&first).and_then(|page| page.meta_number("total"));
        if !has_burst && total.is_some_and(|total| total > 2) {
            session.read_page(mode, PageRequest { page: Some(2), ..request }).await;
        }
    }
    // The first request filters by type, which was read above.
    for (live_request, test_request) in live.requests().into_iter().zip(test.requests()).skip(1) {
        let is_in_burst = |request: &PageRequest| {
            let names: Vec<_> = request.filters.iter().map(|(name, _)| name.as_str()).collect();
            has_burst_filtered(&session.recording, request.list, &names)
        };
        let was_in_burst = live_request.as_ref().or(test_request.as_ref()).is_some_and(is_in_burst);
        let found = match was_in_burst {
            true => live_request
                .filter(|request| request.filters.len() == 1)
                .map(|request| (Mode::Live, live.second_page(request))),
            false => test_request
                .map(|test_request| (Mode::Test, test_request))
                .or(live_request.map(|live_request| (Mode::Live, live_request))),
        };
        if let Some((mode, request)) = found {
            read_filtered(session, mode, request, &mut links_followed).await;
        }
    }
    read_charge_of_invoice(session, &modes).await;
    read_old_paid_invoice(session, &modes).await;
    read_unknown_values(session, &modes).await;
    read_similar_values(session, &modes).await;
    read_other_values(session, &modes).await;
    read_again(session).await;
}

/// Filters by the types and statuses that no request filtered by, in both modes alternately, and then by those that
/// were requested in one mode only, with the other key. The lists alternate.
async fn read_other_values(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    let was_requested = |mode: Mode, request: &PageRequest| {
        let has_same_filters =
            |sent: PageRequest| (sent.list, &sent.filters) == (request.list, &request.filters);
        let mut of_mode =
            session.recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(mode));
        of_mode.any(|exchange| page_request(exchange).is_some_and(has_same_filters))
    };
    let requests_by_list = UNKNOWN_VALUE_FILTERS.map(|(list, name)| {
        let [first, second] = modes.each_ref().map(|(_, available)| available.values(list, name));
        let values: BTreeSet<&String> = first.iter().chain(&second).collect();
        // `paid` is the only status of a charge that the specification names.
        let (paid, others): (Vec<_>, Vec<_>) = values.into_iter().partition(|value| *value == "paid");
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for value in paid.into_iter().chain(others) {
            let request = filtered_request(list, &[(name, value)], LONG_PAGE_SIZE);
            let values_by_mode = [(modes[0].0, &first), (modes[1].0, &second)];
            let mut remaining_modes: Vec<Mode> = values_by_mode
                .into_iter()
                .filter(|(mode, values)| values.contains(value) && !was_requested(*mode, &request))
                .map(|(mode, _)| mode)
                .collect();
            if modes.iter().any(|(mode, _)| was_requested(*mode, &request)) {
                known.extend(remaining_modes.into_iter().map(|mode| (mode, request.clone())));
            } else if !remaining_modes.is_empty() {
                let mode = remaining_modes.swap_remove(new.len() % remaining_modes.len());
                new.push((mode, request));
            }
        }
        new.extend(known);
        new
    });
    let longest = requests_by_list.iter().map(Vec::len).max().unwrap_or_default();
    let requests = (0..longest)
        .flat_map(|index| requests_by_list.iter().filter_map(move |requests| requests.get(index).cloned()));
    for (mode, request) in requests.take(OTHER_VALUES_MAX as usize) {
        if session.has_room() {
            session.read_page(mode, request).await;
        }
    }
}

/// Reads the unfiltered lists again, for comparison with the filtered pages that were read in between. If the records
/// that a filter selects changed meanwhile, reads that page once more, between two reads of the unfiltered list.
async fn read_again(session: &mut Session<'_>) {
    for mode in Mode::BOTH {
        for list in List::ALL {
            let lacks_comparison = |exchange: &Exchange| {
                filtered_request_of(exchange, mode).is_some_and(|request| request.list == list)
                    && nearest_long_pages(&session.recording, exchange, list).is_none()
            };
            if session.recording.exchanges.iter().any(lacks_comparison) && session.has_room() {
                session.read_page(mode, sized_request(list, None, LONG_PAGE_SIZE)).await;
            }
        }
    }
    for _ in 0..REREADS_MAX {
        let Some((mode, request)) = unstable_page(&session.recording) else { return };
        if !session.has_room_for(REQUESTS_PER_REREAD) {
            return;
        }
        let long = sized_request(request.list, None, LONG_PAGE_SIZE);
        session.read_page(mode, request).await;
        session.read_page(mode, long).await;
    }
}

/// Returns the request of an exchange if it read a filtered page with the key of a mode, and not by a link.
fn filtered_request_of(exchange: &Exchange, mode: Mode) -> Option<PageRequest> {
    let is_read = exchange.caller == Caller::Own(mode) && exchange.status() == Some(200);
    page_request(exchange).filter(|request| is_read && !request.filters.is_empty() && request.link.is_none())
}

/// Returns a filtered page whose last read was not between two unfiltered pages that contain the same selected records.
fn unstable_page(recording: &Recording) -> Option<(Mode, PageRequest)> {
    let pairs = &ChargeInvoices::from_recording(recording);
    let selected = |request: &PageRequest, long_page: &Exchange| {
        let page = Page::from_exchange(long_page)?;
        selected_ids(request.list, &page.rows()?.iter().collect::<Vec<_>>(), &request.filters, pairs)
    };
    let is_stable = |exchange: &Exchange, request: &PageRequest| {
        let pair = nearest_long_pages(recording, exchange, request.list);
        pair.is_some_and(|[before, after]| selected(request, before) == selected(request, after))
    };
    let mut unstable = Vec::new();
    for exchange in &recording.exchanges {
        let Some((mode, request)) =
            Mode::BOTH.into_iter().find_map(|mode| Some((mode, filtered_request_of(exchange, mode)?)))
        else {
            continue;
        };
        unstable.retain(|known| *known != (mode, request.clone()));
        // A later page may show the records of the first read, however often it is read.
        if !is_later_page_by_number(exchange) && !is_stable(exchange, &request) {
            unstable.push((mode, request));
        }
    }
    unstable.into_iter().next()
}

/// Reads the events of the newest charge of an invoice, unless they were read in either mode.
async fn read_charge_of_invoice(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    let mut found = Vec::new();
    for (mode, available) in modes {
        found.extend(
            available
                .charge_of_invoice()
                .map(|code| (*mode, filtered_request(List::Events, &[("charge", code)], LONG_PAGE_SIZE))),
        );
    }
    let is_read = |(mode, request): &(Mode, PageRequest)| {
        session.recording.exchanges.iter().any(|exchange| {
            filtered_request_of(exchange, *mode)
                .is_some_and(|read| (read.list, &read.filters) == (request.list, &request.filters))
        })
    };
    if !found.iter().any(is_read)
        && session.has_room()
        && let Some((mode, request)) = found.into_iter().next()
    {
        session.read_page(mode, request).await;
    }
}

/// Reads old payments of invoices and the events of a charge of one, if no recent event is a payment of an invoice.
async fn read_old_paid_invoice(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    let is_paid = |event: &Value| text_at(event, &["type"]) == Some("invoice.paid");
    if modes.iter().any(|(_, available)| available.rows(List::Events).iter().any(is_paid)) {
        return;
    }
    let with_older_events =
        modes.iter().filter(|(_, available)| available.rows(List::Events).len() as u64 >= LONG_PAGE_SIZE);
    for (mode, _) in with_older_events {
        if !session.has_room_for(OLD_INVOICE) {
            return;
        }
        let exchange = session
            .read_page(*mode, filtered_request(List::Events, &[("type", "invoice.paid")], LONG_PAGE_SIZE))
            .await;
        let rows = Page::from_exchange(&exchange).and_then(Page::rows).unwrap_or_default();
        if let Some(code) = rows.iter().find_map(|row| Some((*event_charge_codes(row)?.first()?).to_owned()))
        {
            session
                .read_page(*mode, filtered_request(List::Events, &[("charge", &code)], LONG_PAGE_SIZE))
                .await;
            return;
        }
    }
}

/// The filters that are requested by a value that no record has.
const UNKNOWN_VALUE_FILTERS: [(List, &str); 3] =
    [(List::Events, "type"), (List::Charges, "status"), (List::Invoices, "status")];

/// Filters by values that no record has: part of a value in the list, or a random one.
async fn read_unknown_values(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    /// The seed of the random value.
    const SEED: u64 = 7;
    for (list, filter) in UNKNOWN_VALUE_FILTERS {
        let with_rows = modes.iter().find(|(_, available)| !available.rows(list).is_empty());
        if let Some((mode, available)) = with_rows
            && session.has_room()
        {
            let unknown =
                session.unused_id_like(if filter == "type" { "charge.settled" } else { "settled" }, SEED);
            let value = value_prefix(available.rows(list), filter).unwrap_or(unknown);
            let path = format!("{}?{filter}={}", list.path(), percent_encode(&value));
            let purpose = Purpose::Filter { list, filter: filter.to_owned(), side: Side::AbsentBefore };
            session.send(Caller::Own(*mode), purpose, &path).await;
        }
    }
}

/// A function that returns a value similar to an existing one.
type SimilarValue = fn(&str) -> Option<String>;

/// The filters that are requested by similar values, because filters may compare only the start of a value. Values in
/// another letter case or with blanks are not tested: databases may ignore case and frameworks may trim blanks, which the
/// specification allows.
const SIMILAR_FILTERS: [(List, &str, SimilarValue); 5] = [
    (List::Events, "charge", first_half),
    (List::Charges, "payment_link", first_half),
    (List::Events, "charge", with_other_end),
    (List::Events, "invoice", with_other_end),
    (List::Charges, "payment_link", with_other_end),
];

/// Returns the first half of a value with 8 or more characters. A longer prefix of the code of a charge may be the
/// code of an older charge.
fn first_half(value: &str) -> Option<String> {
    const LEN_MIN: usize = 8;
    let len = value.chars().count();
    let half = || value.chars().take(len / 2).collect::<String>();
    (len >= LEN_MIN).then(half).filter(|half| !is_hexadecimal(half))
}

/// Filters by values that no record has, but that resemble an existing one.
async fn read_similar_values(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    for (list, filter, similar_to) in SIMILAR_FILTERS {
        let found = modes.iter().find_map(|(mode, available)| {
            let values = available.values(list, filter);
            let mut similar = values.iter().filter_map(|value| similar_to(value));
            Some((*mode, similar.find(|value| !values.contains(value))?))
        });
        if let Some((mode, value)) = found
            && session.has_room()
        {
            let path = format!("{}?{filter}={}", list.path(), percent_encode(&value));
            let purpose = Purpose::Filter { list, filter: filter.to_owned(), side: Side::AbsentAfter };
            session.send(Caller::Own(mode), purpose, &path).await;
        }
    }
}

/// Returns `true` for numbers and UUIDs, whose first half may be another value.
fn is_hexadecimal(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// Returns a prefix of a filter value that is not a value itself: the first word of `charge.paid`, or `paid`
/// without its last letter.
fn value_prefix(rows: &[Value], name: &str) -> Option<String> {
    let counts = value_counts(rows, name);
    let mut prefixes = counts.keys().filter_map(|value| {
        let last = value.char_indices().next_back().map(|(index, _)| index);
        let end = value.rfind('.').or(last).filter(|end| *end > 0)?;
        Some(&value[..end])
    });
    prefixes.find(|value| !counts.contains_key(value)).map(str::to_owned)
}

/// Returns `true` if a burst read a list with filters of these names.
fn has_burst_filtered(recording: &Recording, list: List, names: &[&str]) -> bool {
    let burst_requests =
        recording.exchanges.iter().filter(|exchange| matches!(exchange.purpose, Purpose::Burst(_)));
    burst_requests.filter(|exchange| exchange.status() == Some(200)).filter_map(page_request).any(|request| {
        request.list == list
            && request.filters.iter().map(|(name, _)| name.as_str()).eq(names.iter().copied())
    })
}

/// Reads a filtered page, and the page of a link that lacks a parameter of the request.
async fn read_filtered(session: &mut Session<'_>, mode: Mode, request: PageRequest, followed: &mut u32) {
    let exchange = session.read_page(mode, request).await;
    // A link with all parameters is not followed. Only the page of another link shows whether the filter is preserved.
    if *followed < LINKS_FOLLOWED_MAX
        && session.has_room()
        && let Some(rel) = link_lacking_parameter(&exchange)
    {
        *followed += 1;
        session.follow_link(mode, &exchange, rel).await;
    }
}

/// Returns the first link whose query lacks a requested parameter.
fn link_lacking_parameter(exchange: &Exchange) -> Option<&'static str> {
    let page = Page::from_exchange(exchange)?;
    let Purpose::Page(PageRequest { filters, per_page, .. }) = &exchange.purpose else { return None };
    let mut required = filters.clone();
    required.extend(per_page.map(|size| ("per_page".to_owned(), size.to_string())));
    ["next", "last", "first", "prev"].into_iter().find(|rel| {
        page.link(rel).filter(|link| !link.is_empty()).is_some_and(|link| {
            let query = link.split_once('?').map_or("", |(_, query)| query);
            let query = query.split('#').next().unwrap_or_default();
            let pairs: Vec<(String, String)> =
                url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            !required.iter().all(|pair| pairs.contains(pair))
        })
    })
}
