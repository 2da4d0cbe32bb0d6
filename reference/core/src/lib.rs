//! The crypto payment service as one pure state machine.
//!
//! [`Service`](service::Service) is the state, and its methods are the transitions. A host calls a method, hands in the
//! time as the argument `now`, and gets the result back as a value. There are seven kinds of input: a request of the
//! API (`admit`, then `on_call`), a command of the account owner (`on_command`), a visit to a hosted page (`on_visit`),
//! the chain watcher's reports (`on_sightings`, `on_height`), a rate (`on_rate`), the result of a delivery attempt
//! (`on_attempt_result`) and a timer (`on_tick`). There are three kinds of output that the host polls: `next_tick` is
//! the time at which the service must be called again, `poll_delivery` is the next delivery to attempt, and
//! `take_notices` returns what happened since its last call. Codes, ids, keys and secrets are drawn from the seed in
//! [`ServiceConfig`](service::ServiceConfig). Equal seeds and equal inputs therefore give equal states: the simulator
//! can run years in a second, a test never sleeps, and a server can rebuild its state by replaying its inputs.
//!
//! Time has two rules. `now` never decreases; the service panics if it does. And an input first processes everything
//! that was due by `now` in the books that it changes: a rate lock that ends in the same microsecond as a payment
//! arrives has ended before the payment counts.
//!
//! The state is a tree. The service has accounts, an account has one [`Book`](book::Book) for each mode, and a book
//! holds the charges, invoices, payment links, endpoints, events and deliveries of one account in one mode. Every
//! look-up is a method of one book, so an object of the other mode cannot be found by mistake (`isolation.not_found`).
//! Every event is recorded by one function of the book, which also opens its deliveries in the [`outbox`].
//!
//! ```
//! use reference_core::{
//!     account::{AccountKind, Settings},
//!     command::{Command, CommandResult},
//!     mode::Mode,
//!     service::{Service, ServiceConfig},
//!     time::{Span, Timestamp},
//! };
//!
//! let mut service = Service::new(ServiceConfig {
//!     seed: reference_core::rng::Seed(1),
//!     dialect: Default::default(),
//!     public_url: "https://pay.shop.example".to_owned(),
//!     rate_limit: Some(2),
//!     wallet_cache: None,
//!     key_tag: String::new(),
//! });
//! let now = Timestamp::parse("2026-01-05T09:00:00Z").unwrap();
//! let account = service.open_account(now, "shop", AccountKind::Personal, Settings::new("Shop")).unwrap();
//! let result = service.on_command(now, (account, Mode::Test), Command::CreateKey).unwrap();
//! let CommandResult::Key(_, key) = result else { unreachable!() };
//! let bearer = Some(key.reveal().as_bytes());
//! assert!(service.admit(now, bearer).is_ok());
//! assert!(service.admit(now, bearer).is_ok());
//! // The third request within a minute exceeds the limit of this configuration.
//! assert!(service.admit(now, bearer).is_err());
//! assert!(service.admit(now.plus(Span::secs(60)), bearer).is_ok());
//! ```
//!
//! Must not contain: a clock, a socket, a file, randomness of its own, iteration over a hash map (clippy enforces
//! these), JSON, or HTTP other than [`ApiError::status`](error::ApiError::status).

pub mod account;
pub mod asset;
pub mod book;
pub mod business;
pub mod call;
pub mod charge;
pub mod command;
pub mod dialect;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod exchange;
pub mod heights;
pub mod id;
pub mod invoice;
pub mod key;
pub mod limit;
pub mod link;
pub mod mail;
pub mod mode;
pub mod money;
pub mod outbox;
pub mod page;
pub mod rng;
pub mod service;
pub mod shared;
pub mod sighting;
pub mod signature;
pub mod status_index;
pub mod time;
pub mod wallet;
