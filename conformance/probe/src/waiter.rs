//! The clock of the target.
//!
//! The suite never reads a clock directly. A real server uses real time; for a server with a virtual clock, a wait
//! advances that clock.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// A wait in progress. The error is the reason why the clock could not be advanced.
pub type Wait<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// The clock of the target.
pub trait Waiter {
    /// Returns the time since a fixed instant. It never decreases.
    fn now(&self) -> Duration;

    /// Waits for this duration by the clock of the target.
    fn wait(&mut self, duration: Duration) -> Wait<'_>;
}

/// The real clock. A wait sleeps.
#[derive(Debug)]
pub struct RealTime {
    start: Instant,
}

impl RealTime {
    /// Creates a clock that starts at zero.
    pub fn start() -> RealTime {
        RealTime { start: Instant::now() }
    }
}

impl Waiter for RealTime {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&mut self, duration: Duration) -> Wait<'_> {
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            Ok(())
        })
    }
}
