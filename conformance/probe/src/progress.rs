//! The progress that the operator sees while a check runs.

use std::time::Duration;

use conformance_model::budget::{Budget, Ledger};

/// Told what is about to happen and what has happened. Every method has an empty default.
pub trait Progress {
    /// Before the first byte: what the run may cost at worst.
    fn budget(&mut self, budget: &Budget) {
        let _ = budget;
    }

    /// After every request.
    fn asked(&mut self, ledger: &Ledger) {
        let _ = ledger;
    }

    /// From now on deliveries count, for so long at least.
    fn receiving(&mut self, span: Duration) {
        let _ = span;
    }

    /// Before a wait.
    fn waiting(&mut self, span: Duration, why: &str) {
        let _ = (span, why);
    }
}

/// Shows nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Progress for Silent {}
