//! The only place in this crate that knows bytes: HTTP in, JSON out.

pub mod http;
