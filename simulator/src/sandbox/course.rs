//! The course of a world: when something is due, and all that happens then.

use reference_core::{
    book::Post,
    id::{AccountNo, DeliveryNo},
    mode::Mode,
    outbox::{DeliveryState, Landing, Outcome},
    sighting::Sighting,
    time::Timestamp,
};

use super::{Dispatch, Reach, Sandbox, Ticket, label_of, noting::Ended};
use crate::{
    network::{Flight, Network},
    tamper::Sent,
    witness,
};

impl Sandbox {
    /// When a post lands or the service wants to be woken; nothing if all its queues are empty.
    pub fn next_of_service(&self) -> Option<Timestamp> {
        self.network.next_due().into_iter().chain(self.desk.service().next_tick()).min()
    }

    /// When something will happen by itself; nothing if the world is at rest.
    pub fn next_due(&self) -> Option<Timestamp> {
        let find = || {
            let all = [self.chains.next_due(), self.network.next_due(), self.desk.service().next_tick()];
            all.into_iter().flatten().min()
        };
        let due = self.due.get().unwrap_or_else(find);
        debug_assert_eq!(due, find(), "whoever changes the world forgets when something is due");
        self.due.set(Some(due));
        due
    }

    /// Lets everything happen that is due up to `now`, each at its own time.
    pub fn advance_to(&mut self, now: Timestamp) {
        while let Some(due) = self.next_due()
            && due <= now
        {
            self.now = self.now.max(due);
            self.work();
        }
        self.now = self.now.max(now);
    }

    /// Everything that is due at this moment, until nothing is.
    pub(super) fn work(&mut self) {
        self.due.set(None);
        loop {
            if self.service().next_tick().is_some_and(|due| due <= self.now)
                && self.tamper.as_mut().is_none_or(|tamper| tamper.wakes(self.now))
            {
                self.desk.tick(self.now);
            }
            self.note_news();
            let mut quiet = self.watch_chains();
            while let Some(Flight { account, mode, post, outcome }) = self.network.land(self.now) {
                self.land(account, mode, &post, outcome.into());
                quiet = false;
            }
            while let Some((account, mode, mut post)) = self.desk.poll(self.now) {
                quiet = false;
                let sent = self.tamper.as_mut().map(|tamper| tamper.post(self.now, mode, &mut post));
                if matches!(sent, Some(Sent::Swallowed)) {
                    self.desk.outcome(
                        self.now,
                        (account, mode),
                        post.delivery,
                        Outcome::Answered(200).into(),
                    );
                    continue;
                }
                if let Some(Sent::WithAnother(other)) = sent {
                    let reception = Network::default().post(self.now, (account, mode, &other));
                    self.write_post(account, mode, *other, reception);
                }
                if post.url.is_simulated() || self.setup.reach == Reach::Simulated {
                    let reception = self.network.post(self.now, (account, mode, &post));
                    self.write_post(account, mode, post, reception);
                } else {
                    self.tickets += 1;
                    let ticket = Ticket(self.tickets);
                    self.abroad.insert(ticket, (account, mode, label_of(&post)));
                    self.outgoing.push(Dispatch { ticket, account, mode, post });
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// Hands what the chains show to the service. Says whether there was nothing.
    fn watch_chains(&mut self) -> bool {
        let mut seen = Vec::new();
        self.chains.advance(self.now, |place, notices| self.watchers.hear(place, notices, &mut seen));
        let held = self.watchers.take_ready();
        let batches = held.into_iter().chain([seen]).filter(|batch| !batch.is_empty());
        batches.map(|batch| self.tell(batch)).count() == 0
    }

    /// The service hears what watchers saw.
    pub(super) fn tell(&mut self, seen: Vec<Sighting>) {
        if !self.terse {
            for sighting in &seen {
                self.note_transfer(sighting);
            }
        }
        if let Some(tamper) = &mut self.tamper {
            // What is written down is what was told, before somebody spoils it.
            let mut spoilt = seen.clone();
            let heard_at = tamper.sightings(self.now, &mut spoilt);
            self.desk.sightings(heard_at, &spoilt);
        } else {
            self.desk.sightings(self.now, &seen);
        }
        if let Some(record) = &mut self.record {
            record.note(self.now, witness::What::Told(seen));
        }
        self.note_news();
    }

    pub(super) fn land(&mut self, account: AccountNo, mode: Mode, post: &Post, mut landing: Landing) {
        if let Some(record) = &mut self.record {
            let outcome = landing.outcome.clone();
            record.note(self.now, witness::What::Landed { delivery: post.id, outcome });
        }
        if let Some(tamper) = &mut self.tamper {
            tamper.outcome(self.now, post, &mut landing.outcome);
        }
        let answer = Ended::of(&landing.outcome);
        self.desk.outcome(self.now, (account, mode), post.delivery, landing);
        let next_at = match self.delivery_state(account, mode, post.delivery) {
            DeliveryState::Waiting(at) => Some(at),
            _ => None,
        };
        self.note_post(account, mode, post, &answer, next_at);
        self.note_news();
    }

    fn delivery_state(&self, account: AccountNo, mode: Mode, no: DeliveryNo) -> DeliveryState {
        self.service().account(account).book(mode).outbox().get(no).state
    }
}
