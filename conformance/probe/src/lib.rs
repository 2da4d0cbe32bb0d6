//! The probes of the conformance suite: they send requests to a server over HTTP and record its responses.
//!
//! The result of a run is a recording. This package does not judge responses and does not depend on the judge.

mod hook;
mod http_client;
mod interrupt;
mod plan;
mod probes;
mod progress;
mod run;
mod session;
mod waiter;
mod webhooks;

pub use hook::run_shell;
pub use http_client::{Connections, HttpClient};
pub use interrupt::Interrupt;
pub use plan::{Create, Hook, Paths, Plan};
pub use progress::{Progress, Silent};
pub use run::{Run, budget, record};
pub use waiter::{RealTime, Wait, Waiter};
pub use webhooks::{DeliveryTrigger, Source, TriggerFuture, TriggeredDeliveries, Webhooks};
