//! Catches webhook deliveries and says of each whether its signature is right, and if not, why.
//!
//! `Receiver` listens, catches and answers; it judges nothing. `diagnose` and `notes` are pure: they read
//! what was caught, so a record judges the same later. The signature's code is written from the
//! specification and shares none with the server's.

mod answers;
mod base64;
mod catch;
mod caught;
mod construction;
mod diagnose;
mod endpoint;
mod fit;
mod forward;
mod head_limit;
mod header;
mod keyring;
mod listen;
mod note;
mod reason;
mod rewriting;
mod routes;
mod tap;
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
pub use listen::{Arrival, Bounds, Given, Methods, REDIRECTED, Receiver, Settings, Turned};
pub use note::{Note, Tally, notes};
pub use reason::{Encoding, Joined, Padding, Reason, TOLERANCE_SECS, TimeUnit};
pub use rewriting::Rewriting;
pub use routes::Routes;
pub use withheld::Withheld;
