//! The next step of a world: the time at which something is due, and the processing of everything due then.

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

/// A budget of work, after which the host serves other requests. Attempts that start or end, expiring locks, their
/// deliveries and steps of the clock use it up.
pub(super) struct WorkBudget(u32);

impl WorkBudget {
    /// Returns an unlimited budget.
    pub(super) const fn unlimited() -> WorkBudget {
        WorkBudget(u32::MAX)
    }

    /// Returns a budget of a few milliseconds.
    pub(super) const fn limited() -> WorkBudget {
        WorkBudget(200)
    }

    fn spend(&mut self, work: u32) {
        // An unlimited budget is never used up.
        self.0 = if self.0 == u32::MAX { u32::MAX } else { self.0.saturating_sub(work) };
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.0 == 0
    }
}

impl World {
    /// Returns the time of the next event that is due without a call; `None` if there is none.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let find = || {
            let behind = self.is_behind.then_some(self.now);
            let all = [behind, self.chains.next_due(), self.network.next_due(), self.service().next_tick()];
            all.into_iter().flatten().min()
        };
        let due = self.due.get().unwrap_or_else(find);
        debug_assert_eq!(due, find(), "a change of the world must clear the cached due time");
        self.due.set(Some(due));
        due
    }

    /// Performs all events due up to `now`, each at its own time, within the budget.
    pub(super) fn advance_to(&mut self, now: Timestamp, observers: &mut Observers, budget: &mut WorkBudget) {
        while !budget.is_used_up() && self.step(now, observers, budget) {}
    }

    /// Performs the next event due up to `until`, or moves the clock there. Returns `true` if there was an event.
    pub(super) fn step(
        &mut self,
        until: Timestamp,
        observers: &mut Observers,
        budget: &mut WorkBudget,
    ) -> bool {
        let due = self.next_due().filter(|due| *due <= until);
        self.now = self.now.max(due.unwrap_or(until));
        if due.is_some() {
            budget.spend(1);
            self.work(observers, budget);
        } else {
            self.report_heights(observers);
        }
        due.is_some()
    }

    /// Performs everything due at this moment, within the budget. The rest stays due.
    pub(super) fn work(&mut self, observers: &mut Observers, budget: &mut WorkBudget) {
        self.due.set(None);
        self.report_heights(observers);
        loop {
            if self.service().next_tick().is_some_and(|due| due <= self.now) {
                budget.spend(self.service.tick(self.now, budget.0));
            }
            self.announce(observers);
            if budget.is_used_up() {
                // All locks must have expired before the chains are observed.
                self.is_behind = true;
                return;
            }
            let mut quiet = self.watch_chains(observers);
            while !budget.is_used_up()
                && let Some(InFlight { account, mode, post, result }) = self.network.take_due(self.now)
            {
                self.end_attempt((account, mode), &post, result, observers);
                budget.spend(1);
                quiet = false;
            }
            while !budget.is_used_up()
                && let Some((account, mode, mut post)) = self.service.poll(self.now)
            {
                if observers.read_posts() {
                    let write = || self.service.delivery_body((account, mode), post.delivery);
                    post.body = observers.known_body(post.id).unwrap_or_else(write);
                }
                self.send(account, mode, post, observers);
                budget.spend(1);
                quiet = false;
            }
            self.is_behind = budget.is_used_up();
            if quiet || self.is_behind {
                return;
            }
        }
    }

    /// Reports the heights of the chains. Must run before anything that shows or records confirmations, which the
    /// service counts from them.
    fn report_heights(&mut self, observers: &mut Observers) {
        if let Some(heights) = self.chains.new_heights(self.now) {
            observers.on_heights(self.now, &heights);
            self.service.heights(self.now, heights);
        }
    }

    fn send(&mut self, account: AccountNo, mode: Mode, mut post: AttemptRequest, observers: &mut Observers) {
        match observers.tamper_post(self.now, mode, &mut post) {
            PostFate::Unchanged => {}
            PostFate::Dropped => {
                let success = AttemptResult::Answered(200).into();
                self.service.outcome(self.now, (account, mode), post.delivery, success);
                return;
            }
            PostFate::WithExtra(other) => {
                let arrival = Network::default().post(self.now, (account, mode, &other), LogDetail::Result);
                observers.on_post(&self.view(), (account, mode), &other, &arrival);
            }
        }
        if post.url.is_simulated() || self.setup.reach == Reach::Simulated {
            let detail = if observers.is_log_disabled() { LogDetail::Result } else { LogDetail::Headers };
            let arrival = self.network.post(self.now, (account, mode, &post), detail);
            observers.on_post(&self.view(), (account, mode), &post, &arrival);
        } else {
            self.external.send(account, mode, post);
        }
    }

    /// Passes new chain events to the service. Returns `true` if there were none.
    fn watch_chains(&mut self, observers: &mut Observers) -> bool {
        let mut seen = Vec::new();
        self.chains.advance(self.now, |chain, notices| self.watchers.on_sightings(chain, notices, &mut seen));
        let ready = self.watchers.take_ready();
        let batches = ready.into_iter().chain([seen]).filter(|batch| !batch.is_empty());
        batches.map(|batch| self.report_sightings(batch, observers)).count() == 0
    }

    /// Reports sightings to the service.
    fn report_sightings(&mut self, seen: Vec<Sighting>, observers: &mut Observers) {
        observers.on_sightings(&self.view(), &seen);
        let (received_at, seen) = observers.tamper_sightings(self.now, seen);
        self.service.sightings(received_at, &seen);
        self.announce(observers);
    }

    /// Reports the result of an attempt to the service.
    pub(super) fn end_attempt(
        &mut self,
        (account, mode): (AccountNo, Mode),
        post: &AttemptRequest,
        mut report: AttemptReport,
        observers: &mut Observers,
    ) {
        observers.on_attempt_result(self.now, post, &mut report.result);
        let end = AttemptEnd::from_result(&report.result);
        self.service.outcome(self.now, (account, mode), post.delivery, report);
        let delivery = self.service().account(account).book(mode).outbox().get(post.delivery);
        let next_at = match delivery.state {
            DeliveryState::Waiting(at) => Some(at),
            _ => None,
        };
        observers.on_attempt_end(&self.view(), (account, mode), post, &end, next_at);
        self.announce(observers);
    }

    /// Passes the notices of the service to the observers.
    fn announce(&mut self, observers: &mut Observers) {
        for (account, mode, notice) in self.service.take_notices() {
            observers.on_notice(&self.view(), (account, mode), &notice);
        }
    }

    /// Restarts the service by replaying its inputs. Attempts in flight are lost.
    pub(super) fn restart(
        &mut self,
        observers: &mut Observers,
    ) -> Result<(), reference_core::error::ApiError> {
        self.service.restart(self.now)?;
        observers.on_restart(&self.view());
        let in_flight =
            self.network.drop_all().into_iter().map(|flight| (flight.account, flight.mode, flight.post));
        let lost: Vec<_> = in_flight.chain(self.external.drop_all()).collect();
        for (account, mode, post) in lost {
            observers.on_attempt_end(&self.view(), (account, mode), &post, &AttemptEnd::Lost, None);
        }
        Ok(())
    }
}
