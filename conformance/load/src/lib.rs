//! A load generator for any implementation of the payment service, and for webhook handlers.
//!
//! At a fixed rate, the generator is open-loop: each request has a due time that does not depend on the responses, and
//! its latency is measured from its due time. This avoids coordinated omission: a server that stalls cannot hide the
//! waiting requests. Without a rate, every connection sends its next request as soon as it has a response.
//!
//! The generator must not be the bottleneck: all requests except deliveries are written once before the run, the
//! response parser only finds the end of a response, and every thread has its own runtime.
//!
//! Must not contain: a dependency on another package of this workspace, or a check of what a response contains.

mod connection;
mod delivery;
mod mix;
mod pace;
mod plan;
mod report;
mod response_parser;
mod run;
mod stream;
mod tally;
mod target;

pub use plan::{Pace, Plan, StartError, Work};
pub use report::{Latency, Report};
pub use run::{RunProgress, run};
