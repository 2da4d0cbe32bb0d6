//! The steps of a world: the time of the next due event, and the processing of everything due then.

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
    tamper::AttemptFate,
};

/// A budget of work, after which the host serves other requests. Each step of the clock, started or ended
/// attempt, expired rate lock and delivery of its event spends it.
pub(super) struct WorkBudget(u32);

impl WorkBudget {
    /// Returns an unlimited budget.
    pub(super) const fn unlimited() -> WorkBudget {
        WorkBudget(u32::MAX)
    }

    /// Returns a budget that takes a few milliseconds.
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
        let compute = || {
            let remaining_work = self.is_behind.then_some(self.now);
            let all =
                [remaining_work, self.chains.next_due(), self.network.next_due(), self.service().next_tick()];
            all.into_iter().flatten().min()
        };
        let due = self.cached_due.get().unwrap_or_else(compute);
        debug_assert_eq!(due, compute(), "a change of the world must clear the cached due time");
        self.cached_due.set(Some(due));
        due
    }

    /// Performs all events due up to `now`, each at its own time, within the budget.
    pub(super) fn advance_to(&mut self, now: Timestamp, observers: &mut Observers, budget: &mut WorkBudget) {
        while !budget.is_used_up() && self.step(now, observers, budget) {}
    }

    /// Moves the clock to the next due time and performs everything due then, within the budget. If nothing
    /// is due up to `until`, moves the clock there and returns `false`.
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
            self.perform_due(observers, budget);
        } else {
            self.report_heights(observers);
        }
        due.is_some()
    }

    /// Performs everything due at the current time, within the budget. The rest stays due.
    pub(super) fn perform_due(&mut self, observers: &mut Observers, budget: &mut WorkBudget) {
        self.cached_due.set(None);
        self.report_heights(observers);
        loop {
            if self.service().next_tick().is_some_and(|due| due <= self.now) {
                budget.spend(self.service.tick(self.now, budget.0));
            }
            self.report_notices(observers);
            if budget.is_used_up() {
                // All locks must have expired before the chains are observed.
                self.is_behind = true;
                return;
            }
            let mut is_idle = !self.report_chain_events(observers);
            while !budget.is_used_up()
                && let Some(in_flight) = self.network.take_due(self.now)
            {
                let InFlight { account, mode, request, result } = in_flight;
                self.end_attempt((account, mode), &request, result, observers);
                budget.spend(1);
                is_idle = false;
            }
            while !budget.is_used_up()
                && let Some((account, mode, mut attempt)) = self.service.poll(self.now)
            {
                if observers.reads_bodies() {
                    let write = || self.service.delivery_body((account, mode), attempt.delivery);
                    attempt.body = observers.known_body(attempt.id).unwrap_or_else(write);
                }
                self.send(account, mode, attempt, observers);
                budget.spend(1);
                is_idle = false;
            }
            self.is_behind = budget.is_used_up();
            if is_idle || self.is_behind {
                return;
            }
        }
    }

    /// Reports the heights of the chains, from which the service counts confirmations. Must run before anything that
    /// reads confirmations.
    fn report_heights(&mut self, observers: &mut Observers) {
        if let Some(heights) = self.chains.new_heights(self.now) {
            observers.on_heights(self.now, &heights);
            self.service.on_heights(self.now, heights);
        }
    }

    /// Sends an attempt: inside the simulated network, or by the host.
    fn send(
        &mut self,
        account: AccountNo,
        mode: Mode,
        mut attempt: AttemptRequest,
        observers: &mut Observers,
    ) {
        match observers.tamper_attempt(self.now, mode, &mut attempt) {
            AttemptFate::Unchanged => {}
            AttemptFate::Dropped => {
                let success = AttemptResult::Response(200).into();
                self.service.on_attempt_result(self.now, (account, mode), attempt.delivery, success);
                return;
            }
            // The extra attempt uses a separate network, so that the service receives no result for it.
            AttemptFate::WithExtra(extra) => {
                let arrival =
                    Network::default().send_attempt(self.now, (account, mode, &extra), LogDetail::Result);
                observers.on_attempt(&self.view(), (account, mode), &extra, &arrival);
            }
        }
        if attempt.url.is_simulated() || self.setup.reach == Reach::Simulated {
            let detail = if observers.is_log_disabled() { LogDetail::Result } else { LogDetail::Headers };
            let arrival = self.network.send_attempt(self.now, (account, mode, &attempt), detail);
            observers.on_attempt(&self.view(), (account, mode), &attempt, &arrival);
        } else {
            self.external.send(account, mode, attempt);
        }
    }

    /// Passes new sightings of the watchers to the service. Returns `true` if there were any.
    fn report_chain_events(&mut self, observers: &mut Observers) -> bool {
        let mut on_time = Vec::new();
        self.chains.advance(self.now, |chain, sightings| {
            self.watchers.on_sightings(chain, sightings, &mut on_time);
        });
        let ready = self.watchers.take_ready();
        let batches = ready.into_iter().chain([on_time]).filter(|batch| !batch.is_empty());
        batches.map(|batch| self.report_sightings(batch, observers)).count() > 0
    }

    /// Reports sightings to the service.
    fn report_sightings(&mut self, sightings: Vec<Sighting>, observers: &mut Observers) {
        observers.on_sightings(&self.view(), &sightings);
        let (received_at, sightings) = observers.tamper_sightings(self.now, sightings);
        self.service.on_sightings(received_at, &sightings);
        self.report_notices(observers);
    }

    /// Reports the result of an attempt to the service.
    pub(super) fn end_attempt(
        &mut self,
        (account, mode): (AccountNo, Mode),
        attempt: &AttemptRequest,
        mut report: AttemptReport,
        observers: &mut Observers,
    ) {
        observers.on_attempt_result(self.now, attempt, &mut report.result);
        let end = AttemptEnd::from_result(&report.result);
        self.service.on_attempt_result(self.now, (account, mode), attempt.delivery, report);
        let delivery = self.service().account(account).book(mode).outbox().get(attempt.delivery);
        let next_at = match delivery.state {
            DeliveryState::Waiting(at) => Some(at),
            _ => None,
        };
        observers.on_attempt_end(&self.view(), (account, mode), attempt, &end, next_at);
        self.report_notices(observers);
    }

    /// Passes the notices of the service to the observers.
    fn report_notices(&mut self, observers: &mut Observers) {
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
            self.network.drop_all().into_iter().map(|flight| (flight.account, flight.mode, flight.request));
        let lost: Vec<_> = in_flight.chain(self.external.drop_all()).collect();
        for (account, mode, attempt) in lost {
            observers.on_attempt_end(&self.view(), (account, mode), &attempt, &AttemptEnd::Lost, None);
        }
        Ok(())
    }
}
