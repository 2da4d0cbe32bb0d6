//! The probes of the conformance suite: they send requests to a server over HTTP and record its responses.
//!
//! The result of a run is a recording. This package does not judge responses and does not depend on the judge.

mod authorization;
mod delivery_source;
mod hook;
mod http_client;
mod interrupt;
mod plan;
mod probes;
mod progress;
mod request_paths;
mod run;
mod session;
mod target_clock;

pub use delivery_source::{DeliverySource, DeliveryTrigger, TriggerFuture, TriggeredDeliveries, Webhooks};
pub use hook::run_shell;
pub use http_client::{Connections, HttpClient};
pub use interrupt::Interrupt;
pub use plan::{CreateRequest, Hook, ObjectPaths, Plan};
pub use progress::{Progress, Silent};
pub use run::{RunResult, budget, record};
pub use target_clock::{ClockWait, RealClock, TargetClock};
