//! The probes: they send requests and record responses.
//!
//! A probe may read a response to choose the next request or to retry. It must not judge a response.

pub(crate) mod account;
pub(crate) mod auth;
pub(crate) mod burst;
mod burst_pages;
pub(crate) mod extended;
pub(crate) mod filter_values;
pub(crate) mod filters;
pub(crate) mod inserts;
pub(crate) mod isolation;
pub(crate) mod leaks;
pub(crate) mod lists;
pub(crate) mod objects;
mod positions;
pub(crate) mod second_key;
pub(crate) mod webhooks;
