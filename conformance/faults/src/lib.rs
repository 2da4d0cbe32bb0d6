//! Fault injection: known faults of implementations, and the share of them that a recording would have revealed.
//!
//! A [`Fault`] is a pure function that changes the data at one injection point, in one position and one mode. Because
//! a verdict is a pure function of a recording, a fault can be injected into a recording, which is then judged again.
//! If no verdict changes, the run would not have noticed a server with this fault. The same faults are injected into
//! the responses of the fake server that tests the suite.

mod delivery_headers;
mod editable_response;
mod fault;
mod grid;
mod injection;
mod injection_point;
mod objects;
mod pages;
mod power;
mod refusals;
mod responses;

pub use editable_response::EditableResponse;
pub use fault::Fault;
pub use grid::faults;
pub use injection::ObservedRequest;
pub use injection_point::{EventView, InjectionPoint, Position};
pub use power::{Chapter, FaultEffect, FaultTrial, Power, fault_trials, power};
