//! The next step of a world: the time at which something is due, and everything that happens then.

use reference_core::{
    id::AccountNo,
    mode::Mode,
    outbox::{AttemptReport, AttemptResult, DeliveryState},
    sighting::Sighting,
    time::Timestamp,
};
use reference_wire::AttemptRequest;

use super::{
    Reach,
    observe::{AttemptEnd, Observers},
    world::World,
};
use crate::{
    network::{InFlight, LogDetail, Network},
    tamper::PostFate,
};

/// The work that may be done before the world's host serves other requests: attempts that leave or end, locks that
/// end, deliveries that this opens, and moments that come.
pub(super) struct Slice(u32);

impl Slice {
    /// Without a bound.
    pub(super) const fn whole() -> Slice {
        Slice(u32::MAX)
    }

    /// A few milliseconds of work.
    pub(super) const fn short() -> Slice {
        Slice(200)
    }

    fn spend(&mut self, work: u32) {
        // The whole is never used up.
        self.0 = if self.0 == u32::MAX { u32::MAX } else { self.0.saturating_sub(work) };
    }

    pub(super) fn is_over(&self) -> bool {
        self.0 == 0
    }
}

impl World {
    /// Returns the time of the next event that happens by itself; `None` if the world is at rest.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let find = || {
            let behind = self.is_behind.then_some(self.now);
            let all = [behind, self.chains.next_due(), self.network.next_due(), self.service().next_tick()];
            all.into_iter().flatten().min()
        };
        let due = self.due.get().unwrap_or_else(find);
        debug_assert_eq!(due, find(), "whoever changes the world forgets when something is due");
        self.due.set(Some(due));
        due
    }

    /// Lets everything happen that is due up to `now`, each at its own time, as far as the slice goes.
    pub(super) fn advance_to(&mut self, now: Timestamp, observers: &mut Observers, slice: &mut Slice) {
        while !slice.is_over() && self.step(now, observers, slice) {}
    }

    /// Lets the next thing happen that is due up to `until`, or moves the clock there; says whether there was one.
    pub(super) fn step(&mut self, until: Timestamp, observers: &mut Observers, slice: &mut Slice) -> bool {
        let due = self.next_due().filter(|due| *due <= until);
        self.now = self.now.max(due.unwrap_or(until));
        if due.is_some() {
            slice.spend(1);
            self.work(observers, slice);
        } else {
            self.report_heights();
        }
        due.is_some()
    }

    /// Everything that is due at this moment, until nothing is or the slice is over. What is left stays due.
    pub(super) fn work(&mut self, observers: &mut Observers, slice: &mut Slice) {
        self.due.set(None);
        self.report_heights();
        loop {
            if self.service().next_tick().is_some_and(|due| due <= self.now) {
                slice.spend(self.service.tick(self.now, slice.0));
            }
            self.announce(observers);
            if slice.is_over() {
                // Before all locks have ended nobody looks at the chains.
                self.is_behind = true;
                return;
            }
            let mut quiet = self.watch_chains(observers);
            while !slice.is_over()
                && let Some(InFlight { account, mode, post, result }) = self.network.land(self.now)
            {
                self.end_attempt((account, mode), &post, result, observers);
                slice.spend(1);
                quiet = false;
            }
            while !slice.is_over()
                && let Some((account, mode, mut post)) = self.service.poll(self.now)
            {
                if observers.read_posts() {
                    let write = || self.service.delivery_body((account, mode), post.delivery);
                    post.body = observers.known_body(post.id).unwrap_or_else(write);
                }
                self.send(account, mode, post, observers);
                slice.spend(1);
                quiet = false;
            }
            self.is_behind = slice.is_over();
            if quiet || self.is_behind {
                return;
            }
        }
    }

    /// The service counts confirmations on from the heights of the chains, which must be reported before anything that
    /// shows or records them.
    pub(super) fn report_heights(&mut self) {
        if let Some(heights) = self.chains.new_heights(self.now) {
            self.service.heights(self.now, heights);
        }
    }

    fn send(&mut self, account: AccountNo, mode: Mode, mut post: AttemptRequest, observers: &mut Observers) {
        match observers.sends(self.now, mode, &mut post) {
            PostFate::AsItIs => {}
            PostFate::Dropped => {
                let arrived = AttemptResult::Answered(200).into();
                self.service.outcome(self.now, (account, mode), post.delivery, arrived);
                return;
            }
            PostFate::WithAnother(other) => {
                let arrival = Network::default().post(self.now, (account, mode, &other), LogDetail::Result);
                observers.posted(&self.scene(), (account, mode), &other, &arrival);
            }
        }
        if post.url.is_simulated() || self.setup.reach == Reach::Simulated {
            let detail = if observers.is_terse() { LogDetail::Result } else { LogDetail::Headers };
            let arrival = self.network.post(self.now, (account, mode, &post), detail);
            observers.posted(&self.scene(), (account, mode), &post, &arrival);
        } else {
            self.external.send(account, mode, post);
        }
    }

    /// Hands what the chains show to the service. Says whether there was nothing.
    fn watch_chains(&mut self, observers: &mut Observers) -> bool {
        let mut seen = Vec::new();
        self.chains.advance(self.now, |place, notices| self.watchers.hear(place, notices, &mut seen));
        let held = self.watchers.take_ready();
        let batches = held.into_iter().chain([seen]).filter(|batch| !batch.is_empty());
        batches.map(|batch| self.tell(batch, observers)).count() == 0
    }

    /// The service hears what watchers saw.
    fn tell(&mut self, seen: Vec<Sighting>, observers: &mut Observers) {
        observers.saw(&self.scene(), &seen);
        let (heard_at, seen) = observers.hears(self.now, seen);
        self.service.sightings(heard_at, &seen);
        self.announce(observers);
    }

    /// An attempt ended, and the service hears how.
    pub(super) fn end_attempt(
        &mut self,
        (account, mode): (AccountNo, Mode),
        post: &AttemptRequest,
        mut report: AttemptReport,
        observers: &mut Observers,
    ) {
        observers.learns(self.now, post, &mut report.result);
        let end = AttemptEnd::of(&report.result);
        self.service.outcome(self.now, (account, mode), post.delivery, report);
        let delivery = self.service().account(account).book(mode).outbox().get(post.delivery);
        let next_at = match delivery.state {
            DeliveryState::Waiting(at) => Some(at),
            _ => None,
        };
        observers.ended(&self.scene(), (account, mode), post, &end, next_at);
        self.announce(observers);
    }

    /// Hands on what the service has to tell.
    fn announce(&mut self, observers: &mut Observers) {
        for (account, mode, notice) in self.service.take_notices() {
            observers.heard(&self.scene(), (account, mode), &notice);
        }
    }

    /// The service stops and starts again from what it was told. What is on its way is lost.
    pub(super) fn restart(
        &mut self,
        observers: &mut Observers,
    ) -> Result<(), reference_core::error::ApiError> {
        self.service.restart(self.now)?;
        observers.restarted(&self.scene());
        let flights = self.network.cut().into_iter().map(|flight| (flight.account, flight.mode, flight.post));
        let lost: Vec<_> = flights.chain(self.external.cut()).collect();
        for (account, mode, post) in lost {
            observers.ended(&self.scene(), (account, mode), &post, &AttemptEnd::Lost, None);
        }
        Ok(())
    }
}
