//! The only place in this crate that knows bytes: HTTP in, JSON out.

pub mod fields;
mod fragments;
pub mod http;
mod json;
mod look;
mod pen;
mod read;
mod route;
mod text;
mod view;
mod web_address;
pub(crate) mod webhook;

pub(crate) use fragments::Fragments;
pub use look::{delivery_body, look};
pub use view::DetailsView;
