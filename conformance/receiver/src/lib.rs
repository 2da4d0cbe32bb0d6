//! Receives webhook deliveries, verifies their signatures, and explains invalid ones.
//!
//! [`Receiver`] listens, records and responds. [`diagnose`] and [`notes`] are pure functions of a recorded request
//! ([`Caught`]), so a stored request gets the same diagnosis later. The signature code is written from the specification.
//!
//! Must not contain: code of the server, or a verdict in the part that listens.

mod answers;
mod base64;
mod catch;
mod caught;
mod construction;
mod diagnose;
mod endpoint;
mod forward;
mod head_capture;
mod head_limit;
mod header;
mod keyring;
mod listen;
mod note;
mod reason;
mod rewriting;
mod routes;
mod signature_search;
#[cfg(test)]
mod tests;
mod withheld;

pub use answers::{Answers, Reply};
pub use catch::{Catch, CaughtRequests};
pub use caught::{Caught, DeliverySummary, Names, stamp};
pub use conformance_model::octets::Octets;
pub use construction::construction;
pub use diagnose::{Diagnosis, diagnose};
pub use endpoint::Endpoint;
pub use forward::ForwardTo;
pub use head_limit::LimitedHead;
pub use keyring::Keyring;
pub use listen::{Arrival, Bounds, Methods, REDIRECTED, Receiver, ReceiverAnswer, RejectedRequest, Settings};
pub use note::{Note, Tally, notes};
pub use reason::{Encoding, Joined, Padding, Reason, TOLERANCE_SECS, TimeUnit};
pub use rewriting::Rewriting;
pub use routes::Routes;
pub use withheld::Withheld;
