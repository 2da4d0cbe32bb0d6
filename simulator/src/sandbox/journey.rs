//! Calls that move the clock, and stop wherever something goes abroad.
//!
//! "Advancing returns when everything due has happened" (contract 11): a post that left during the call has
//! landed before time goes on, so that its retries fall where they belong. Waits for nothing itself: the host
//! waits, without the world's lock, and other calls are answered meanwhile.

use reference_core::{error::ApiError, time::Timestamp, wire::http::Response};

use super::{Sandbox, Ticket, api};

/// How far a call has come.
#[derive(Debug)]
pub enum Progress {
    /// It is over.
    Done(Response),
    /// It goes on once something abroad has landed.
    Waiting(Journey),
}

/// A call on its way through time.
#[derive(Debug)]
pub struct Journey {
    /// Where it ends.
    until: Timestamp,
    /// What had happened before it began.
    before: u64,
    /// The world that it began in.
    era: u64,
    /// Everything abroad up to this one lands before time goes on. What leaves later because of other calls
    /// is not waited for, or a busy world would never arrive.
    last_awaited: Option<Ticket>,
}

impl Journey {
    pub(super) fn new(sandbox: &Sandbox, until: Timestamp, before: u64) -> Journey {
        Journey { until, before, era: sandbox.era, last_awaited: None }
    }
}

impl Sandbox {
    /// Goes on with a call after a landing.
    pub fn go_on(&mut self, now: Timestamp, journey: Journey) -> Progress {
        self.advance_to(now);
        if journey.era != self.era {
            let gone = ApiError::conflict("Another world began while the clock of this one was moving.");
            return Progress::Done(Response::refusal(&gone));
        }
        self.travel(journey)
    }

    /// As far as it goes without leaving anything behind that is abroad.
    pub(super) fn travel(&mut self, mut journey: Journey) -> Progress {
        loop {
            let last = journey.last_awaited.unwrap_or(Ticket(self.tickets));
            if self.abroad.range(..=last).next().is_some() {
                journey.last_awaited = Some(last);
                return Progress::Waiting(journey);
            }
            journey.last_awaited = None;
            if !self.step(journey.until) {
                return Progress::Done(api::arrived(self, journey.before));
            }
        }
    }

    /// Arrives without waiting.
    pub(super) fn hurry(&mut self, journey: Journey) -> Response {
        self.advance_to(journey.until);
        api::arrived(self, journey.before)
    }

    /// Lets the next thing happen that is due up to `until`; says whether there was one.
    fn step(&mut self, until: Timestamp) -> bool {
        let due = self.next_due().filter(|due| *due <= until);
        self.now = self.now.max(due.unwrap_or(until));
        if due.is_some() {
            self.work();
        }
        due.is_some()
    }
}
