//! The keeper of the world: one lock around it and its clock, and one timer that wakes it.
//!
//! A call takes the lock once and never holds it while waiting. Knows nothing of HTTP libraries, and nothing
//! of charges.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use reference_core::{
    time::Timestamp,
    wire::http::{Request, Response},
};
use simulator::sandbox::FirstKeys;
use tokio::sync::Notify;

use crate::{clock::Clock, world::World};

/// A world that leaves something due although it was just brought up to date must not spin the timer.
const NAP_MIN: Duration = Duration::from_millis(1);
/// The timer looks again at least so often, so that a wall clock that jumps ahead is noticed.
const NAP_MAX: Duration = Duration::from_secs(10);

/// The world met a bug of its own and panicked. What it holds may be half changed, so it answers nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// The world, its clock and its timer.
pub(crate) struct Host {
    held: Mutex<Held>,
    rearm: Notify,
    frozen: bool,
}

struct Held {
    world: Box<dyn World>,
    clock: Clock,
    /// What the timer is set to.
    armed: Option<Timestamp>,
}

impl Host {
    pub(crate) fn new(world: Box<dyn World>, clock: Clock) -> Host {
        let frozen = clock.is_frozen();
        Host { held: Mutex::new(Held { world, clock, armed: None }), rearm: Notify::new(), frozen }
    }

    /// Whether only `/sandbox` moves the clock.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Whether the world met a bug of its own. Takes no lock.
    pub(crate) fn is_broken(&self) -> bool {
        self.held.is_poisoned()
    }

    /// Answers a request at the time it is.
    pub(crate) fn respond(&self, request: &Request<'_>) -> Result<Response, Broken> {
        let (response, rearm) = self.locked(|held| {
            let reading = held.clock.read();
            let now = held.clock.at(reading);
            let response = held.world.respond(now, request);
            let moved = held.clock.follow(reading, held.world.now());
            let due = held.world.next_due();
            let sooner = due.is_some_and(|due| held.armed.is_none_or(|armed| due < armed));
            if sooner {
                held.armed = due;
            }
            (response, moved || sooner)
        })?;
        if rearm {
            self.rearm.notify_one();
        }
        Ok(response)
    }

    /// The keys that the present world started with.
    pub(crate) fn first_keys(&self) -> Result<FirstKeys, Broken> {
        self.locked(|held| held.world.first_keys())
    }

    /// What the service clock shows, and when something is due.
    pub(crate) fn times(&self) -> Result<(Timestamp, Option<Timestamp>), Broken> {
        self.locked(|held| {
            let reading = held.clock.read();
            (held.clock.at(reading), held.world.next_due())
        })
    }

    /// Wakes the world whenever something is due. Ends only with a broken world.
    pub(crate) async fn keep_time(&self) {
        loop {
            match self.turn() {
                Err(Broken) => return,
                Ok(None) => self.rearm.notified().await,
                Ok(Some(nap)) => {
                    tokio::select! {
                        () = self.rearm.notified() => {}
                        () = tokio::time::sleep(nap.clamp(NAP_MIN, NAP_MAX)) => {}
                    }
                }
            }
        }
    }

    /// Lets happen what is due, and says how long nothing else will be.
    fn turn(&self) -> Result<Option<Duration>, Broken> {
        self.locked(|held| {
            let reading = held.clock.read();
            let now = held.clock.at(reading);
            if held.world.next_due().is_some_and(|due| due <= now) {
                held.world.advance_to(now);
                held.clock.follow(reading, held.world.now());
            }
            held.armed = held.world.next_due();
            held.armed.and_then(|due| held.clock.until(now, due))
        })
    }

    /// A panic inside poisons the lock, which is how all later calls know.
    fn locked<T>(&self, act: impl FnOnce(&mut Held) -> T) -> Result<T, Broken> {
        catch_unwind(AssertUnwindSafe(|| {
            let mut held: MutexGuard<'_, Held> = self.held.lock().map_err(|_| Broken)?;
            Ok(act(&mut held))
        }))
        .unwrap_or(Err(Broken))
    }
}
