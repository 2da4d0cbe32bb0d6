//! The data of the conformance suite: the catalogue of statements, the recording of a run, deliveries, verdicts,
//! budgets and known failures.
//!
//! No code here opens a socket, reads a clock or a file, or judges. Probes write a recording and the judge reads it:
//! both depend on this package, not on each other.

pub mod baseline;
pub mod body;
pub mod budget;
pub mod catalogue;
pub mod deliveries;
pub mod group;
pub mod mode;
pub mod part;
pub mod raw_bytes;
pub mod reading;
pub mod recording;
pub mod redaction;
pub mod secret;
pub mod selection;
pub mod verdict;
