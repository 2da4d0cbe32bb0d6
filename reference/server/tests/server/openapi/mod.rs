//! Checks that the OpenAPI document, the routes and the responses agree.
//!
//! `BLESS=1 cargo test -p reference-server --test server openapi` formats the document and rewrites its
//! examples, and the table in reference/SANDBOX.md.

mod document;
mod enums_and_bounds;
mod example_run;
mod json_format;
mod routes;
mod sandbox_guide;
mod scenario_responses;
mod served;
mod world;

pub(crate) use document::{Document, Operation};
