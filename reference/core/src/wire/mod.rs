//! The only place in this crate that knows bytes: HTTP in, JSON out.

pub mod fields;
pub mod http;
mod json;
mod read;
mod route;
mod view;
pub(crate) mod webhook;

pub use view::DetailsView;
