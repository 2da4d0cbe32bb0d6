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

    /// Called when the reception of deliveries starts. `span`: its minimum duration.
    fn on_receive(&mut self, span: Duration) {
        let _ = span;
    }

    /// Called before a wait.
    fn on_wait(&mut self, span: Duration, why: &str) {
        let _ = (span, why);
    }
}

/// A [`Progress`] that reports nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
