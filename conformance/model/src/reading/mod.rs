//! Functions that extract data from recorded responses, shared by the probes and the judge. Those that return an
//! `Option` return `None` for data that is missing or of an unexpected type.

mod filter;
mod infrastructure;
mod json;
mod limit;
mod observed_ids;
mod page;
mod stable;
mod time;

pub use filter::{
    ChargeInvoices, FilterScope, matches_filter, payment_link_code, selected_ids, selected_rows,
};
pub use infrastructure::{cache_evidence, is_infrastructure};
pub use json::{declares_json, first_duplicate_name, has_text};
pub use limit::{
    BURST_TIME_MAX, BurstCounts, LIMIT_WINDOW, LimiterKind, REQUESTS_PER_MINUTE, SERVED_MAX, is_cached,
    is_served, most_served_in_a_minute,
};
pub use observed_ids::{
    ObservedIds, account_meta, asset_code, event_with_path, events_after_deliveries,
    events_before_deliveries, first_event_id, listed_events, observed_ids, recent_events,
    requested_own_event, single_event, stated_mode,
};
pub use page::{
    Page, event_charge_codes, id_or_code, id_or_json, invoice_charge_codes, link_query, lists_charge,
    names_invoice, next_random, page_request, request_of_target, text_at, unused_id_like,
};
pub use stable::{LONG_PAGE_SIZE, is_later_page_by_number, nearest_long_pages};
pub use time::{parse_http_date, parse_utc, retry_after};
