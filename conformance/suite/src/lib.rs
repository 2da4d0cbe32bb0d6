//! Judges any implementation of the payment service over HTTP.
//!
//! A run is a recording; a verdict is a pure function of the recording. `probes` talk and write down,
//! `judge` reads, `report` tells. Nothing here knows another package of this workspace: all it has is a
//! base address, some keys and the specification.

mod baseline;
mod budget;
mod catalogue;
mod check;
mod deliveries;
pub mod fuzz;
pub mod handler;
mod har;
mod hook;
mod judge;
mod kept;
mod observe;
mod plan;
mod probes;
mod progress;
mod reading;
pub mod receiver;
mod recording;
pub mod report;
mod secret;
mod target;
mod veil;
mod verdict;
mod waiter;
mod webhooks;

pub use baseline::{Baseline, Known};
pub use budget::{Budget, Cost, Ledger};
pub use catalogue::{Level, Requirement, catalogue, extended, fits, judged};
pub use check::{Outcome, Profile, Selection, Stop, check, judge};
pub use deliveries::{Deliveries, Delivery, Difference, Place, Registration, Signed};
pub use judge::needs_deliveries;
pub use observe::Observation;
pub use plan::{Create, Hook, Mode, Part, Paths, Plan};
pub use progress::{Progress, Silent};
pub use recording::{
    Answer, Burst, Caller, Ending, Exchange, FORMAT, Forgery, Inserting, Kind, Link, List, PageAsk, Purpose,
    Recording, Side, Step,
};
pub use secret::Secret;
pub use veil::Veil;
pub use verdict::{Finding, Row, Verdict};
pub use waiter::{RealTime, Wait, Waiter};
pub use webhooks::{Caused, Causing, Endpoint, Occasion, Source, Webhooks};
