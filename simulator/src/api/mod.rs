//! The request and response types of the calls under `/sandbox`, shared by the world, the server's pages, the player
//! and the tests.
//!
//! A client deserializes the type named for the call; other fields of the response are ignored:
//!
//! ```
//! use reference_core::{rng::Seed, time::Timestamp};
//! use reference_wire::Request;
//! use simulator::{
//!     api::{ChainRecord, Overview},
//!     sandbox::{Sandbox, Setup},
//! };
//!
//! let start = Timestamp::parse("2026-01-05T09:00:00Z").unwrap();
//! let mut sandbox = Sandbox::new(&Setup::new(Seed(1), start, "https://pay.example"));
//! let request = Request::new("https://pay.example", "GET", "/sandbox");
//! let response = sandbox.respond(sandbox.now(), &request);
//! let overview: Overview = serde_json::from_slice(&response.body).unwrap();
//! assert!(overview.chains.iter().any(|chain: &ChainRecord| chain.asset.code() == "BTC"));
//! ```
//!
//! Times are `2026-01-05T09:00:00.000000Z`, amounts are decimals of whole coins as strings, ids and codes are written as
//! in the API. A keyword, such as a status, is an enum where code matches on it, otherwise a [`Keyword`]. The `/v1` objects
//! in pages are type parameters: the caller chooses their fields.
//!
//! Must not depend on the world; the table of routes is [`crate::sandbox::ROUTES`].

mod body;
mod book;
mod event;
mod page;
mod request;
mod response;
mod text;
mod value;

use std::borrow::Cow;

pub(crate) use self::body::{Body, FieldValue, RequestBody, field_name, request_bodies};
pub use self::{book::*, event::*, page::*, request::*, response::*, text::ApiText, value::*};

/// One of a fixed set of strings, such as a status.
pub type Keyword = Cow<'static, str>;
