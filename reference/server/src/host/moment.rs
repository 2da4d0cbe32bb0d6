//! Restoring a world to an earlier moment, and branching another world from one.

use std::sync::Arc;

use reference_core::{error::ApiError, time::Timestamp};
use reference_wire::Response;
use simulator::sandbox::Setup;

use super::{Host, HostState, InternalError, durability::Durability};
use crate::{
    clock::ClockKind,
    journal::{BranchTranslation, MomentFinder, NewWorld, Replay, WorldPosition},
    snapshots::{self, WorldMoment, run_replay},
    world::RestoreKind,
};

/// A moment and its position among the records, all of which are on the disk.
struct FoundMoment {
    /// The number of records written up to and including the last one before the moment.
    position: u64,
    /// The world position that a replay must reach, if it is known.
    end: Option<WorldPosition>,
    /// The time to which the clock advances after the last record; `None` if it does not advance.
    until: Option<Timestamp>,
}

/// A value, or the response to send instead.
type RequestResult<T> = Result<Result<T, Response>, InternalError>;

impl Host {
    /// Returns the setup of the world and its kind of clock; `None` if the world cannot be recreated.
    pub(crate) fn setup_and_clock(&self) -> Option<(&Setup, ClockKind)> {
        self.durability.as_ref().map(|Durability { setup, clock, .. }| (setup, *clock))
    }

    /// Returns the time of the clock and the number of written records, all of which are then on the disk.
    pub(super) async fn commit_all(&self, durability: &Durability) -> RequestResult<(Timestamp, u64)> {
        let (now, position, ticket) = self.with_state(|state| {
            let reading = state.clock.read();
            (state.clock.time_at(reading), durability.journal.position(), durability.journal.request_commit())
        })?;
        if !self.wait_for_commit(ticket).await {
            return Ok(Err(self.storage_failure()));
        }
        Ok(position.map(|position| (now, position)).map_err(snapshots::error_response))
    }

    /// Finds a moment among the records. `field`: the name of the request field, for the error message.
    async fn find_moment(
        &self,
        durability: &Durability,
        moment: &WorldMoment,
        field: &str,
    ) -> RequestResult<FoundMoment> {
        let (now, position) = match self.commit_all(durability).await? {
            Ok(written) => written,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let at = match moment {
            WorldMoment::Snapshot(snapshot) => {
                return Ok(Ok(FoundMoment {
                    position: snapshot.position,
                    end: Some(snapshot.end),
                    until: None,
                }));
            }
            WorldMoment::Now => return Ok(Ok(FoundMoment { position, end: None, until: Some(now) })),
            WorldMoment::At(at) => *at,
        };
        let (journal, setup) = (Arc::clone(&durability.journal), durability.setup.clone());
        let found = run_replay(move || {
            let mut finder = MomentFinder::new(&setup, at);
            journal.read(position, |lines| finder.replay_lines(lines))?;
            let (world_start, count) = finder.result();
            Ok(Some((world_start, journal.position_of(count, position))))
        });
        Ok(found.await.and_then(|(world_start, position)| {
            if (world_start..=now).contains(&at) {
                return Ok(FoundMoment { position, end: None, until: Some(at) });
            }
            let why = format!(
                "The {field} field must be from {world_start} to {now}, the start of that world and the present time of its \
                 clock."
            );
            Err(Response::refusal(&ApiError::field(field, why)))
        }))
    }

    /// Restores the world to a moment.
    pub(super) async fn restore(
        &self,
        durability: &Durability,
        moment: WorldMoment,
    ) -> Result<Response, InternalError> {
        let found = match self.find_moment(durability, &moment, "at").await? {
            Ok(found) => found,
            Err(refusal) => return Ok(refusal),
        };
        let FoundMoment { position, end, until } = found;
        let (journal, setup) = (Arc::clone(&durability.journal), durability.setup.clone());
        let replayed = run_replay(move || {
            let mut replay = Replay::new(&setup);
            journal.read(position, |lines| replay.replay_lines(lines))?;
            replay.finish(end).map(Some)
        });
        let replayed = match replayed.await {
            Ok(replayed) => replayed,
            Err(refusal) => return Ok(refusal),
        };
        let (response, ticket) = self.with_state(|state: &mut HostState| {
            if !self.is_durable() {
                return (self.storage_failure(), None);
            }
            state.world.replace(replayed.sandbox, RestoreKind::Rewind { to: position });
            state.world.take_outgoing();
            self.dispatch(replayed.in_flight);
            // The records before the position do not contain this advance, so it is recorded like any other.
            while let Some(until) = until
                && (state.world.now() < until || state.world.next_due().is_some_and(|due| due <= until))
            {
                state.world.advance_to(until);
            }
            let (now, reading) = (state.world.now(), state.clock.read());
            state.clock.set(reading, now);
            state.timer_due = None;
            self.memory.set(state.world.held_bytes());
            self.latest_time.store(now.0, std::sync::atomic::Ordering::Relaxed);
            self.dispatch_outgoing(state);
            (snapshots::restored_response(&moment, now), self.ticket())
        })?;
        self.notify_observers(super::WorldChange::Everything);
        self.timer_changed.notify_one();
        // Calls that waited in the replaced world must end.
        self.attempt_ended.notify_waiters();
        Ok(self.respond_after_commit(response, ticket).await)
    }

    /// Creates a world that continues from a moment of this one. `rename` sets its id and addresses.
    pub(crate) async fn branch(
        &self,
        moment: &WorldMoment,
        rename: impl FnOnce(Setup) -> Setup,
    ) -> RequestResult<NewWorld> {
        let Some(durability) = &self.durability else {
            let why = "This world has no journal, so it cannot be branched.";
            return Ok(Err(Response::refusal(&ApiError::conflict(why))));
        };
        let FoundMoment { position, end, until } =
            match self.find_moment(durability, moment, "from.at").await? {
                Ok(found) => found,
                Err(refusal) => return Ok(Err(refusal)),
            };
        let journal = Arc::clone(&durability.journal);
        let setup = rename(durability.setup.clone());
        let translation = BranchTranslation::new(&durability.setup, &setup);
        let branched = run_replay(move || {
            let (mut records, mut replay) = (Vec::new(), Replay::new(&setup));
            journal.read(position, |lines| {
                let lines = replay.replay_translated(lines, &translation)?;
                snapshots::append_records(&mut records, &lines)
            })?;
            if let Some(until) = until {
                replay.advance_to(until, &mut records)?;
            }
            let world = replay.finish(end)?;
            Ok(Some(NewWorld { setup, records, world }))
        });
        Ok(branched.await)
    }
}
