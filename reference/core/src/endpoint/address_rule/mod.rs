//! The rule that a webhook address is reachable from the open internet (`open.delivery.address`).
//!
//! Checked twice: [`parse_endpoint_url`] when a URL is saved, [`check_resolved`] before each attempt. Resolves no name:
//! the caller passes in the addresses and connects only to those that were checked.

mod endpoint_url;
mod ranges;
mod refusal;

pub use endpoint_url::{EndpointUrl, Host, parse_endpoint_url};
pub use ranges::{check_address, check_resolved};
pub use refusal::{Range, Refusal, URL_BYTES_MAX};

#[cfg(test)]
mod tests;
