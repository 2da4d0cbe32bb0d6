//! The passing of time for the target.
//!
//! The suite never reads a clock itself. Against a real server time is real; against a server whose clock stands
//! still, the waiter moves that clock.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// A wait in progress. The error says why the time could not be made to pass.
pub type Wait<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// The target's time.
pub trait Waiter {
    /// The time since some fixed moment, by the clock that the target goes by. Never falls.
    fn now(&self) -> Duration;

    /// Lets that much of the target's time pass.
    fn wait(&mut self, span: Duration) -> Wait<'_>;
}

/// Real time: a wait is a sleep.
#[derive(Debug)]
pub struct RealTime {
    start: Instant,
}

impl RealTime {
    /// Starts counting now.
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
