//! The clock of the target.
//!
//! The suite never reads a clock directly. A real server uses real time; for a server with a virtual clock, the waiter
//! advances that clock.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// A wait in progress. The error is the reason why the clock could not be advanced.
pub type Wait<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// The clock of the target.
pub trait Waiter {
    /// Returns the time since a fixed moment by the clock of the target. It never decreases.
    fn now(&self) -> Duration;

    /// Waits for a time by the clock of the target.
    fn wait(&mut self, span: Duration) -> Wait<'_>;
}

/// A waiter in real time, which sleeps.
#[derive(Debug)]
pub struct RealTime {
    start: Instant,
}

impl RealTime {
    /// Creates a waiter that starts at zero.
    pub fn start() -> RealTime {
        RealTime { start: Instant::now() }
    }
}

impl Waiter for RealTime {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&mut self, span: Duration) -> Wait<'_> {
        Box::pin(async move {
            tokio::time::sleep(span).await;
            Ok(())
        })
    }
}
