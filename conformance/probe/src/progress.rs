//! The progress of a run, reported to the operator.

use std::time::Duration;

use conformance_model::budget::{Budget, Ledger};

/// Receives the progress of a run. All methods have an empty default.
pub trait Progress {
    /// Called before the first request, with the budget of the run.
    fn on_budget(&mut self, budget: &Budget) {
        let _ = budget;
    }

    /// Called after each request.
    fn on_request(&mut self, ledger: &Ledger) {
        let _ = ledger;
    }

    /// Called when the reception of deliveries starts. `duration`: the planned time of the reception.
    fn on_receive(&mut self, duration: Duration) {
        let _ = duration;
    }

    /// Called before a wait, with its duration and reason.
    fn on_wait(&mut self, duration: Duration, reason: &str) {
        let _ = (duration, reason);
    }
}

/// A [`Progress`] that reports nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
