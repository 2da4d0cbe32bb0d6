//! The probes of the conformance suite: they send requests to a server over HTTP and record its responses.
//!
//! A run is a recording. What an answer means for a statement is the judge's business, which this package
//! does not know.

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
pub use webhooks::{Caused, Causing, Occasion, Source, Webhooks};
