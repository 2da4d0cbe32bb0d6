//! Functions that extract data from recorded responses, shared by the probes and the judge. They return `None` for
//! data that is missing or of an unexpected type.

mod filter;
mod infrastructure;
mod json;
mod limit;
mod observed_ids;
mod page;
mod stable;
mod time;

pub use filter::{ChargeInvoices, Reach, fits, selected_names, selections, shown_link};
pub use infrastructure::{cache_evidence, is_infrastructure};
pub use json::{duplicate_key, has_text, is_json};
pub use limit::{
    BURST_TIME_MAX, BurstCounts, LIMIT, LimiterReading, SERVED_MAX, WINDOW, is_served, most_in_a_minute,
};
pub use observed_ids::{
    ObservedIds, after_rows, before_rows, events, first_event_id, learn, listed_events, requested_own_event,
    single_event, stated_mode, wrapped_event,
};
pub use page::{
    Page, charges_of, codes_of, holds_charge, identity, link_query, named_identity, names_invoice,
    next_random, page_request, text_at, unused_id_like,
};
pub use stable::{LONG, enclosing_reads};
pub use time::{http_date, retry_after, utc};
