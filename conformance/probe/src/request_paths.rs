//! The paths and queries of requests for pages and single events, and the requests that accept a compressed response.

use conformance_model::mode::Mode;
use conformance_model::reading::LONG_PAGE_SIZE;
use conformance_model::recording::{Caller, List, PageRequest, Purpose};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Returns the path and query of a page. The values of combined filters have every punctuation mark
/// percent-encoded, which shows a server that compares values as received: it does not find `charge%2Epaid`.
pub(crate) fn page_path(request: &PageRequest) -> String {
    let is_combined = request.filters.len() > 1;
    let in_query = |value: &str| match is_combined {
        true => utf8_percent_encode(value, NON_ALPHANUMERIC).to_string(),
        false => percent_encode(value),
    };
    let filters = request.filters.iter().map(|(name, value)| format!("{name}={}", in_query(value)));
    let paging = [("per_page", request.per_page), ("page", request.page)];
    let paging = paging.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    let query = filters.chain(paging).collect::<Vec<_>>().join("&");
    if query.is_empty() { request.list.path().to_owned() } else { format!("{}?{query}", request.list.path()) }
}

/// Returns the path of one event.
pub(crate) fn event_path(id: &str) -> String {
    format!("{}/{}", List::Events.path(), percent_encode(id))
}

/// Percent-encodes a string for a path or a query.
pub(crate) fn percent_encode(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns `true` for the requests that accept a compressed body, as those of most clients do: the first long page of charges
/// and of events with the live key. Their bodies are the largest.
pub(crate) fn accepts_gzip(caller: Caller, purpose: &Purpose) -> bool {
    let Purpose::Page(request) = purpose else { return false };
    let is_first_long_page = request.filters.is_empty()
        && request.link.is_none()
        && (request.page, request.per_page) == (None, Some(LONG_PAGE_SIZE));
    let is_list = matches!(request.list, List::Charges | List::Events);
    caller == Caller::Own(Mode::Live) && is_first_long_page && is_list
}
