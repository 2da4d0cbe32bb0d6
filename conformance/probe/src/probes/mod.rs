//! The probes: they send requests and record responses.
//!
//! A probe may read an answer to learn what to ask next, or ask the same again. What an answer
//! means for a statement is none of its business.

pub(crate) mod account;
pub(crate) mod auth;
pub(crate) mod burst;
pub(crate) mod extended;
pub(crate) mod filters;
pub(crate) mod inserts;
pub(crate) mod isolation;
pub(crate) mod leaks;
pub(crate) mod lists;
pub(crate) mod objects;
mod positions;
pub(crate) mod second;
pub(crate) mod webhooks;
