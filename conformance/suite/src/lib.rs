//! The conformance suite: checks any implementation of the payment service over HTTP.
//!
//! [`check()`] runs the probes, which send requests and record the responses, and the judge, which computes verdicts
//! from the recording alone; [`report`] formats the verdicts. [`fuzz`] sends random requests, [`handler`] tests a
//! webhook handler. The suite needs a base address and keys; it must not depend on a server of this workspace.

mod check;
mod compare;
mod file_error;
pub mod fuzz;
pub mod handler;
mod har;
pub mod report;
mod run_file;

pub use check::{AcceptedGaps, Origin, Outcome, check};
pub use compare::{ChoiceDifference, ComparedRun, ComparedVerdict, Comparison, StatementDifference, compare};
pub use conformance_faults::{Chapter, Power};
pub use conformance_judge::{Observation, judge, uses_deliveries};
pub use conformance_model::baseline::{Baseline, fingerprint};
pub use conformance_model::body::Body;
pub use conformance_model::budget::{Budget, Cost, Ledger};
pub use conformance_model::catalogue::{
    EVENT_TYPES, Level, Requirement, catalogue, extended_statements, judged_statements, matches_pattern,
};
pub use conformance_model::deliveries::{
    DeclaredEndpoint, Deliveries, Delivery, Difference, Registration, SignatureStatus,
};
pub use conformance_model::mode::Mode;
pub use conformance_model::part::Part;
pub use conformance_model::recording::{
    Burst, Caller, Exchange, ExchangeOutcome, FORMAT_VERSION, FollowedLink, Forgery, Inserts, List,
    ObjectKind, PageRequest, Purpose, ReceivedResponse, Recording, Side, Step,
};
pub use conformance_model::redaction::Redaction;
pub use conformance_model::secret::{KEY_PLACEHOLDER, Redactor, Secret};
pub use conformance_model::selection::{Profile, Selection, SelectionError};
pub use conformance_model::verdict::{Finding, KnownFailure, StatementResult, Stop, Verdict};
pub use conformance_probe::{
    ClockWait, CreateRequest, DeliverySource, DeliveryTrigger, Hook, Interrupt, ObjectPaths, Plan, Progress,
    RealClock, Silent, TargetClock, TriggerFuture, TriggeredDeliveries, Webhooks, run_shell,
};
pub use conformance_receiver as receiver;
pub use conformance_receiver::Endpoint;
pub use file_error::FileError;
