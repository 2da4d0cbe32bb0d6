//! The clock of the target.
//!
//! The suite never reads a clock directly. A real server uses real time; for a server with a virtual clock, a wait
//! advances that clock.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// A wait in progress. The error is the reason why the clock could not be advanced.
pub type ClockWait<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// The clock of the target.
pub trait TargetClock {
    /// Returns the time since a fixed instant. It never decreases.
    fn now(&self) -> Duration;

    /// Waits for this duration by the clock of the target.
    fn wait(&mut self, duration: Duration) -> ClockWait<'_>;
}

/// The real clock. A wait sleeps.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// Creates a clock that starts at zero.
    pub fn start() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl TargetClock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait(&mut self, duration: Duration) -> ClockWait<'_> {
        Box::pin(async move {
            tokio::time::sleep(duration).await;
            Ok(())
        })
    }
}
