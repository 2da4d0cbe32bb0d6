//! The HTTP API of the payment service: routes, request bodies, JSON, idempotency, and the bodies of deliveries.
//!
//! [`Api`] wraps the state machine of [`reference_core`]. It opens no socket and reads no clock: a host passes a [`Request`]
//! and gets a [`Response`].
//!
//! ```
//! use reference_core::{dialect::Dialect, rng::Seed, service::ServiceConfig, time::Timestamp};
//! use reference_wire::{Api, Request};
//!
//! let mut api = Api::new(ServiceConfig {
//!     seed: Seed(1),
//!     dialect: Dialect::default(),
//!     public_url: "https://pay.shop.example".to_owned(),
//!     rate_limit: Some(120),
//!     wallet_cache: None,
//!     key_tag: String::new(),
//! });
//! let without_key = Request::new("http://127.0.0.1:8080", "GET", "/v1/account");
//! let request = Request { authorization: Some(b"Bearer svc_live_unknown"), ..without_key };
//! let response = api.respond(Timestamp(0), &request);
//! assert_eq!(response.status, 401);
//! ```

mod api;
pub mod fields;
mod http;
mod idempotency;
mod json;
mod json_cache;
mod owner_access;
mod read;
mod route;
mod unique_keys;
mod view;
mod web_address;
mod webhook;

pub use api::Api;
pub use http::{BODY_MAX, Request, Response, bearer, quota_headers};
pub use owner_access::{owner_read, parse_call, response_body};
pub use view::DetailsView;
pub use webhook::{AttemptRequest, delivery_body};
