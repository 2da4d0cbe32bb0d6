//! Reports: pure functions of an outcome.

mod command;
mod json;
mod text;

pub use json::json;
pub use text::{Style, text};
