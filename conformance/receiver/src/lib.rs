//! Receives webhook deliveries, verifies their signatures, and explains invalid ones.
//!
//! [`Receiver`] listens, records requests and responds. [`diagnose()`] and [`notes`] are pure functions of a recorded
//! request ([`ReceivedRequest`]), so a stored request gets the same diagnosis later. The signature code follows the
//! specification and shares none with the server.
//!
//! Must not contain: code of the server, or judgement of requests in [`Receiver`].

mod background_receiver;
mod base64;
mod construction;
mod delivery_notes;
mod diagnose;
mod endpoint;
mod forward;
mod head_capture;
mod head_limit;
mod keyring;
mod listen;
mod reason;
mod received_request;
mod response_script;
mod rewriting;
mod routes;
mod secret_redaction;
mod signature_header;
mod signature_search;
#[cfg(test)]
mod tests;

pub use background_receiver::{BackgroundReceiver, ReceivedRequests};
pub use conformance_model::raw_bytes::RawBytes;
pub use construction::signature_status;
pub use delivery_notes::{DeliveryCounter, Note, notes};
pub use diagnose::{Diagnosis, diagnose};
pub use endpoint::Endpoint;
pub use forward::HandlerUrl;
pub use head_limit::LimitedHead;
pub use keyring::Keyring;
pub use listen::{
    Arrival, Bounds, Methods, REDIRECT_PATH, Receiver, ReceiverResponse, RejectedRequest, Settings,
};
pub use reason::{Encoding, MessageLayout, PaddedSide, Reason, TOLERANCE_SECS, TimeUnit};
pub use received_request::{DeliverySummary, ReceivedRequest, WebhookNames, timestamp};
pub use response_script::{ResponseScript, ScriptedResponse};
pub use rewriting::Rewriting;
pub use routes::Routes;
pub use secret_redaction::SecretRedaction;
