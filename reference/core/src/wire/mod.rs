//! The only place in this crate that knows bytes: HTTP in, JSON out.

pub mod fields;
pub mod http;
mod json;
mod look;
mod read;
mod route;
mod view;
pub(crate) mod webhook;

pub use look::{delivery_body, look};
pub use view::DetailsView;
