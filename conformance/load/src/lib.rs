//! An open-loop load generator for any implementation of the payment service.
//!
//! At a rate, requests have a time at which they are due, whatever the server does, and a latency is counted from
//! then: a server that stalls can't hide the requests that had to wait for it (coordinated omission). Without a
//! rate every connection asks as fast as it is answered.
//!
//! It must not be the bottleneck, so it is little more than a loop: requests are written once before the run,
//! answers are cut by a parser that only looks for their end, and every thread has a runtime of its own. Knows a
//! URL and a key, and nothing of this workspace.

mod answer;
mod delivery;
mod mix;
mod pace;
mod plan;
mod report;
mod run;
mod stream;
mod talk;
mod tally;
mod target;

pub use plan::{Pace, Plan, Stop, Work};
pub use report::{Latency, Report};
pub use run::{SoFar, run};
