//! The calls under `/sandbox` in types: what each takes and what it answers. One place for the world that answers,
//! the server's pages, the player and the tests.
//!
//! A reader takes the type that is named for the call and ignores what else an answer holds:
//!
//! ```
//! use reference_core::{dialect::Dialect, rng::Seed, time::Timestamp};
//! use reference_wire::Request;
//! use simulator::{
//!     api::{ChainRecord, Overview},
//!     sandbox::{Reach, Sandbox, Setup},
//! };
//!
//! let mut sandbox = Sandbox::new(&Setup {
//!     seed: Seed(1),
//!     start: Timestamp::parse("2026-01-05T09:00:00Z").unwrap(),
//!     public_url: "https://pay.example".to_owned(),
//!     rate_limit: None,
//!     dialect: Dialect::default(),
//!     journal: false,
//!     reach: Reach::Simulated,
//!     wallet_cache: None,
//!     key_tag: String::new(),
//! });
//! let request = Request::new("https://pay.example", "GET", "/sandbox");
//! let answer = sandbox.respond(sandbox.now(), &request);
//! let overview: Overview = serde_json::from_slice(&answer.body).unwrap();
//! assert!(overview.chains.iter().any(|chain: &ChainRecord| chain.asset.code() == "BTC"));
//! ```
//!
//! Times are `2026-01-05T09:00:00.000000Z`, amounts decimals of whole coins as texts, ids and codes as the API writes
//! them. A word of a closed list is a [`Word`], unless somebody chooses by it: then it is an enum. The objects of `/v1`
//! in pages are type parameters: their reader says which fields it wants.
//!
//! Knows nothing of the world that answers; the table of routes is [`crate::sandbox::ROUTES`].

mod book;
mod event;
mod page;
mod request;
mod response;
mod text;

use std::borrow::Cow;

pub use self::{book::*, event::*, page::*, request::*, response::*, text::ApiText};

/// A word of a closed list, such as a status.
pub type Word = Cow<'static, str>;
