//! Checks that the OpenAPI document, the routes and the responses agree.
//!
//! `BLESS=1 cargo test -p reference-server --test server openapi` formats the document and rewrites its
//! examples, and the table in reference/SANDBOX.md.

mod answers;
mod document;
mod layout;
mod lists;
mod routes;
mod sandbox_guide;
mod served;
mod story;
mod world;

pub(crate) use document::{Document, Operation};
