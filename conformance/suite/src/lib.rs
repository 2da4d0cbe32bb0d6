//! Judges any implementation of the payment service over HTTP.
//!
//! A run is a recording; a verdict is a pure function of the recording. The probes send requests and record, the
//! judge reads the recording, `report` formats the verdicts. Nothing here depends on a server of this workspace: all it has is a base address,
//! some keys and the specification.

mod check;
mod compare;
pub mod fuzz;
pub mod handler;
mod har;
mod kept;
pub mod report;

pub use check::{Accept, Origin, Outcome, check};
pub use compare::{ChoiceDifference, ComparedRun, ComparedVerdict, Comparison, StatementDifference, compare};
pub use conformance_faults::{Chapter, Power};
pub use conformance_judge::{Observation, judge, needs_deliveries};
pub use conformance_model::baseline::{Baseline, fingerprint};
pub use conformance_model::body::Body;
pub use conformance_model::budget::{Budget, Cost, Ledger};
pub use conformance_model::catalogue::{EVENT_TYPES, Level, Requirement, catalogue, extended, fits, judged};
pub use conformance_model::deliveries::{Deliveries, Delivery, Difference, Place, Registration, Signed};
pub use conformance_model::recording::{
    Answer, Burst, Caller, Ending, Exchange, FORMAT, Forgery, Inserts, Kind, Link, List, PageAsk, Purpose,
    Recording, Side, Step,
};
pub use conformance_model::redaction::Redaction;
pub use conformance_model::secret::{KEY_BLANK, Redactor, Secret};
pub use conformance_model::selection::{Profile, Selection};
pub use conformance_model::verdict::{Finding, Known, Row, Stop, Verdict};
pub use conformance_model::words::{Mode, Part};
pub use conformance_probe::{
    Caused, Causing, Create, Hook, Interrupt, Occasion, Paths, Plan, Progress, RealTime, Silent, Source,
    Wait, Waiter, Webhooks, run_shell,
};
pub use conformance_receiver as receiver;
pub use conformance_receiver::Endpoint;
