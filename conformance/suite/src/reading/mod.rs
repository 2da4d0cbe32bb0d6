//! Reading answers: pure, tolerant, and shared by the probes that learn from them and the judge.

mod json;
mod limit;
mod page;
mod time;

pub(crate) use json::{duplicate_key, has_text, is_json, parse};
pub(crate) use limit::{BURST_TIME_MAX, Fit, LIMIT, SERVED_MAX, Series, WINDOW};
pub(crate) use page::{Page, holds_charge, identity, named_identity, names_invoice, text_at, twin_of};
pub(crate) use time::{http_date, utc};
