//! An open-loop load generator for any implementation of the payment service.
//!
//! At a fixed rate, each request has a due time that is independent of the server, and its latency is measured from
//! then. This avoids coordinated omission: a server that stalls cannot hide the waiting requests. Without a rate, every
//! connection sends its next request as soon as it has a response.
//!
//! The generator must not be the bottleneck: requests are written once before the run, the response parser only finds
//! the end of a response, and every thread has its own runtime.
//!
//! Must not contain: a dependency on another package of this workspace, or a check of what a response contains.

mod answer;
mod connection;
mod delivery;
mod mix;
mod pace;
mod plan;
mod report;
mod run;
mod stream;
mod tally;
mod target;

pub use plan::{Pace, Plan, Stop, Work};
pub use report::{Latency, Report};
pub use run::{RunProgress, run};
