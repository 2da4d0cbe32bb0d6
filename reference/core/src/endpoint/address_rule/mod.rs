//! The rule that a webhook address is reachable from the open internet (spec 2.5).
//!
//! Checked twice: `judge_url` when an address is saved, `judge_resolved` before each delivery. Resolves no name: the host
//! passes in the addresses and connects only to those that were checked.

mod endpoint_url;
mod ranges;
mod refusal;

pub use endpoint_url::{EndpointUrl, Host, judge_url};
pub use ranges::{judge_address, judge_resolved};
pub use refusal::{Range, Refusal, URL_BYTES_MAX};

#[cfg(test)]
mod tests;
