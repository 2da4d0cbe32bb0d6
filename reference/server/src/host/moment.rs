//! Moments of a world: where they stand among its records, going back to one, and worlds that go on from one.

use std::sync::Arc;

use reference_core::{error::ApiError, time::Timestamp};
use reference_wire::Response;
use simulator::sandbox::Setup;

use super::{Broken, Held, Host, keep::Keep};
use crate::{
    clock::ClockKind,
    journal::{Beginning, Finder, Renaming, Replay, Tip},
    snapshots::{self, WorldMoment, blocking},
    world::Succession,
};

/// A moment, found among the records, which are on the disk.
struct FoundMoment {
    /// So many records had been written when the last one came that leads there.
    position: u64,
    /// The position that the world is compared with.
    tip: Option<Tip>,
    /// Time passes up to then, after the last record.
    until: Option<Timestamp>,
}

/// The result of a request.
type Answered<T> = Result<Result<T, Response>, Broken>;

impl Host {
    /// Returns the setup of the world and its kind of clock; `None` for a world that cannot be recreated.
    pub(crate) fn begun(&self) -> Option<(&Setup, ClockKind)> {
        self.keep.as_ref().map(|Keep { setup, clock, .. }| (setup, *clock))
    }

    /// Returns the time of the clock and the number of written records, all of which are then on the disk.
    pub(super) async fn written(&self, keep: &Keep) -> Answered<(Timestamp, u64)> {
        let (now, position, ticket) = self.locked(|held| {
            let reading = held.clock.read();
            (held.clock.at(reading), keep.journal.position(), keep.journal.hurry())
        })?;
        if !self.is_settled(ticket).await {
            return Ok(Err(self.unkept()));
        }
        Ok(position.map(|position| (now, position)).map_err(snapshots::refused))
    }

    /// `field`: the name of what says the moment, for a refusal.
    async fn find(&self, keep: &Keep, moment: &WorldMoment, field: &str) -> Answered<FoundMoment> {
        let (now, position) = match self.written(keep).await? {
            Ok(written) => written,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let at = match moment {
            WorldMoment::Snapshot(it) => {
                return Ok(Ok(FoundMoment { position: it.position, tip: Some(it.tip), until: None }));
            }
            WorldMoment::Now => return Ok(Ok(FoundMoment { position, tip: None, until: Some(now) })),
            WorldMoment::At(at) => *at,
        };
        let (journal, setup) = (Arc::clone(&keep.journal), keep.setup.clone());
        let found = blocking(move || {
            let mut finder = Finder::new(&setup, at);
            journal.read(position, |lines| finder.lines(lines))?;
            let (begun, count) = finder.found();
            Ok(Some((begun, journal.position_of(count, position))))
        });
        Ok(found.await.and_then(|(begun, position)| {
            if (begun..=now).contains(&at) {
                return Ok(FoundMoment { position, tip: None, until: Some(at) });
            }
            let why = format!(
                "The {field} field must be from {begun} to {now}: when that world began, and what its clock shows."
            );
            Err(Response::refusal(&ApiError::field(field, why)))
        }))
    }

    /// The world becomes what it was at a moment.
    pub(super) async fn go_back(&self, keep: &Keep, moment: WorldMoment) -> Result<Response, Broken> {
        let found = match self.find(keep, &moment, "at").await? {
            Ok(found) => found,
            Err(refusal) => return Ok(refusal),
        };
        let FoundMoment { position, tip, until } = found;
        let (journal, setup) = (Arc::clone(&keep.journal), keep.setup.clone());
        let replayed = blocking(move || {
            let mut replay = Replay::new(&setup);
            journal.read(position, |lines| replay.lines(lines))?;
            replay.finish(tip).map(Some)
        });
        let replayed = match replayed.await {
            Ok(replayed) => replayed,
            Err(refusal) => return Ok(refusal),
        };
        let (answer, ticket) = self.locked(|held: &mut Held| {
            if !self.keeps() {
                return (self.unkept(), None);
            }
            held.world.replace(replayed.sandbox, Succession::WentBack { to: position });
            held.world.take_outgoing();
            self.hand_out(replayed.in_flight);
            // Told like any other passing of time: it was in no record yet.
            while let Some(until) = until
                && (held.world.now() < until || held.world.next_due().is_some_and(|due| due <= until))
            {
                held.world.advance_to(until);
            }
            let (now, reading) = (held.world.now(), held.clock.read());
            held.clock.set(reading, now);
            held.armed = None;
            self.memory.set(held.world.held_bytes());
            self.shown.store(now.0, std::sync::atomic::Ordering::Relaxed);
            self.send_out(held);
            (snapshots::restored(&moment, now), self.ticket())
        })?;
        self.beat(super::Beat::Moved);
        self.rearm.notify_one();
        // Calls that waited in the world before are over.
        self.attempt_ended.notify_waiters();
        Ok(self.settled(answer, ticket).await)
    }

    /// A world of another name that goes on from a moment of this one.
    pub(crate) async fn branch(
        &self,
        moment: &WorldMoment,
        named: impl FnOnce(Setup) -> Setup,
    ) -> Answered<Beginning> {
        let Some(keep) = &self.keep else {
            let why = "This world is not written down, so it can't be made again.";
            return Ok(Err(Response::refusal(&ApiError::conflict(why))));
        };
        let FoundMoment { position, tip, until } = match self.find(keep, moment, "from.at").await? {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let journal = Arc::clone(&keep.journal);
        let setup = named(keep.setup.clone());
        let renaming = Renaming::new(&keep.setup, &setup);
        let begun = blocking(move || {
            let (mut records, mut replay) = (Vec::new(), Replay::new(&setup));
            journal.read(position, |lines| {
                let lines = replay.renamed(lines, &renaming)?;
                snapshots::gather(&mut records, &lines)
            })?;
            if let Some(until) = until {
                replay.pass(until, &mut records)?;
            }
            let world = replay.finish(tip)?;
            Ok(Some(Beginning { setup, records, world }))
        });
        Ok(begun.await)
    }
}
