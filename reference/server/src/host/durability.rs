//! The durability of a world: waiting for commits, and recovery after the disk failed.
//!
//! A replay takes long, so it runs without the world's lock; the world is then replaced under the lock.

use std::{io, pin::pin, sync::Arc, time::Duration};

use reference_core::{rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use serde_json::{Value, json};
use simulator::sandbox::Setup;

use super::{Host, InternalError};
use crate::{
    clock::{self, Clock, ClockKind},
    journal::{DurabilityState, Journal, Snapshot, Ticket, Writer},
    snapshots::{self, SnapshotRequest},
    world::RestoreKind,
};

/// The delay between two attempts to recover a failing disk.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest time that a read waits for the world to be restored after a failure of the disk.
const READABLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of the snapshot that is taken before the clock is reset.
const BEFORE_RESET: &str = "before --clock-reset";
/// The value of the `Retry-After` header, in seconds.
const RETRY_AFTER: &str = "2";

/// The journal of a world, with the setup and the kind of clock that the world started with.
pub(crate) struct Durability {
    pub(crate) journal: Arc<Journal>,
    pub(crate) setup: Setup,
    pub(crate) clock: ClockKind,
}

impl Host {
    /// Returns the seed of the world; `None` for a world without a journal.
    pub(crate) fn seed(&self) -> Option<Seed> {
        self.durability.as_ref().map(|durability| durability.setup.seed)
    }

    /// Returns the snapshots of the world, oldest first.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        self.durability.as_ref().map(|durability| durability.journal.snapshots()).unwrap_or_default()
    }

    /// Returns `true` if the journal is on a disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.writer().is_some()
    }

    /// Returns notices for the operator about opening the world, one sentence each.
    pub(crate) fn notices(&self) -> Vec<String> {
        let Some((durability, writer)) = self.durability.as_ref().zip(self.writer()) else {
            return Vec::new();
        };
        let last_end = writer.last_end();
        let clock = last_end.and_then(|(position, wall)| {
            let now = Clock::detect_set_back(durability.clock, wall)?;
            Some(format!(
                "this machine's clock was set back: it showed {} when the world was last written, and shows {now}. The \
                 clock of the world is at {} and continues from there; `--clock-reset` restores the world to its last moment that is \
                 not in the future",
                Timestamp(wall),
                Timestamp(position.now)
            ))
        });
        writer.notices().iter().cloned().chain(clock).collect()
    }

    /// Restores a world whose clock is ahead of real time to its last moment that is not in the future, as
    /// `POST /sandbox/restore` does. The later state is stored as a snapshot. Returns a notice; `None` if the clock is not
    /// ahead.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: the clock does not follow real time, the world starts in the future or has failed, or the change
    /// cannot be stored.
    pub(crate) async fn reset_clock(&self) -> io::Result<Option<String>> {
        let clock_reset_error =
            |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("`--clock-reset`: {why}"));
        if self.durability.as_ref().is_none_or(|durability| durability.clock != ClockKind::Wall) {
            return Err(clock_reset_error(
                "it needs a world in `--data` whose clock follows real time (`--clock wall`)",
            ));
        }
        let internal_error = |_: InternalError| clock_reset_error("the world failed with an internal error");
        // The service clock is read first, so that a correct one is never ahead of the time of day.
        let (service_time, _) = self.time_and_next_due().map_err(internal_error)?;
        let now = clock::time_of_day();
        if service_time <= now {
            return Ok(None);
        }
        for (path, body) in [
            ("/sandbox/snapshots", json!({ "name": BEFORE_RESET })),
            ("/sandbox/restore", json!({ "at": now.to_string() })),
        ] {
            let body = body.to_string();
            let response =
                self.respond(&Request::json("", "POST", path, &body)).await.map_err(internal_error)?;
            if response.status != 200 {
                let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                return Err(clock_reset_error(body["message"].as_str().unwrap_or_default()));
            }
        }
        Ok(Some(format!(
            "the clock of the world was at {service_time}, and the world was restored to {now}; the snapshot \"{BEFORE_RESET}\" has the later \
             state"
        )))
    }

    /// Starts the commit of the remaining records. Later records are lost.
    pub(crate) fn close_journal(&self) {
        if let Some(writer) = self.writer() {
            writer.close();
        }
    }

    /// Commits the remaining records and waits until the file is closed.
    pub(crate) fn finish_journal(&self) {
        if let Some(writer) = self.writer() {
            writer.finish();
        }
    }

    /// Deletes the stored world, which must receive no further requests; returns the ticket of the deletion, `None`
    /// for a world without a directory.
    pub(crate) fn discard_journal(&self) -> Option<Ticket> {
        self.writer()?.discard()
    }

    /// Records the number of worlds opened on request.
    pub(crate) fn record_world_count(&self, worlds: u64) {
        if let Some(durability) = &self.durability {
            durability.journal.record_world_count(worlds);
        }
    }

    /// Returns the number of worlds opened on request, ended ones and those of earlier servers included.
    pub(crate) fn world_count(&self) -> u64 {
        self.durability.as_ref().map_or(0, |durability| durability.journal.world_count())
    }

    /// Waits until all records that a response may depend on are on the disk.
    ///
    /// # Errors
    ///
    /// The response for a failing disk.
    pub(crate) async fn wait_for_all_commits(&self) -> Result<(), Response> {
        if self.wait_for_commit(self.ticket()).await { Ok(()) } else { Err(self.storage_failure()) }
    }

    fn writer(&self) -> Option<&Writer> {
        self.durability.as_ref()?.journal.writer()
    }

    /// Returns the present state of durability.
    pub(super) fn durability_state(&self) -> DurabilityState {
        self.writer().map_or(DurabilityState::Durable, |writer| writer.durability())
    }

    pub(super) fn is_durable(&self) -> bool {
        self.durability_state() == DurabilityState::Durable
    }

    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.durability.as_ref()?.journal.ticket()
    }

    /// Returns the response once the commit that it depends on is stored, or the response for a failing disk.
    pub(super) async fn respond_after_commit(&self, response: Response, ticket: Option<Ticket>) -> Response {
        if self.wait_for_commit(ticket).await { response } else { self.storage_failure() }
    }

    /// Waits for a commit; returns `false` if it failed.
    pub(crate) async fn wait_for_commit(&self, ticket: Option<Ticket>) -> bool {
        match (self.writer(), ticket) {
            (Some(writer), Some(ticket)) => writer.wait(ticket).await,
            _ => true,
        }
    }

    /// Returns the response to a request that cannot be served while the disk fails.
    pub(crate) fn storage_failure(&self) -> Response {
        let why = self.writer().map(Writer::failure_reason);
        let message = format!(
            "The directory of this world cannot be written now ({}), so nothing was changed. Reads still work. Free some \
             space or repair the disk, and try again.",
            why.unwrap_or_default()
        );
        unavailable(&message)
    }

    /// Returns the refusal of a change while the worlds that were opened on request use all of their memory budget.
    pub(super) fn memory_refusal(&self) -> Option<Response> {
        let exceeded = self.memory.limit_error()?;
        Some(unavailable(&format!(
            "{exceeded}, so nothing was changed. Reads still work. End worlds that are no longer needed (DELETE /sandbox/worlds/{{world}}), \
             or restart the server with more memory for worlds, and try again."
        )))
    }

    /// Restores the world to its last commit after each failure of the disk, and makes it writable once the disk works again.
    /// Never returns.
    pub(crate) async fn recover_storage(self: &Arc<Self>) {
        let mut failures = 0;
        while let Some(writer) = self.writer() {
            failures = writer.wait_for_failure(failures).await;
            loop {
                let host = Arc::clone(self);
                // An error comes from the disk or from a bug in the replay; both are retried.
                let recovered =
                    tokio::task::spawn_blocking(move || host.restore_last_commit()).await.unwrap_or(false);
                if recovered {
                    break;
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Waits until the world has been restored after a failure of the disk: until then it has changes that will not be stored.
    /// Gives up after [`READABLE_TIMEOUT`].
    pub(crate) async fn wait_until_readable(&self) {
        let readable = async {
            loop {
                let mut recovered = pin!(self.recovered.notified());
                recovered.as_mut().enable();
                if self.durability_state() != DurabilityState::Lost {
                    return;
                }
                recovered.await;
            }
        };
        // A read after the timeout gets 503.
        let _ = tokio::time::timeout(READABLE_TIMEOUT, readable).await;
    }

    /// Restores the world to its last commit; returns `true` if changes are stored again.
    fn restore_last_commit(&self) -> bool {
        let (Some(durability), Some(writer)) = (&self.durability, self.writer()) else { return true };
        let Ok((replayed, disk)) = writer.reopen(&durability.setup) else { return false };
        let is_writable = disk.is_some();
        let recovered = self.with_state(|state| {
            state.world.replace(replayed.sandbox, RestoreKind::LastCommit);
            // The delivery attempts of committed records were dispatched before the failure.
            state.world.take_outgoing();
            let now = writer.last_end().map_or(state.world.now(), |(_, wall)| {
                Clock::resume_time(durability.clock, state.world.now(), wall)
            });
            let reading = state.clock.read();
            state.clock.set(reading, now);
            state.timer_due = None;
            self.memory.set(state.world.held_bytes());
            writer.resume_after_failure(disk);
            if is_writable {
                let unreported = std::mem::take(&mut state.unreported_attempts);
                for (id, report) in unreported {
                    state.world.on_attempt_result(now, id, report);
                }
                self.dispatch_outgoing(state);
            }
        });
        self.notify_observers(super::WorldChange::Everything);
        self.timer_changed.notify_one();
        self.attempt_ended.notify_waiters();
        self.recovered.notify_waiters();
        is_writable && recovered.is_ok()
    }

    /// Responds to requests about snapshots, restoring and the scenario, which need the journal.
    pub(super) async fn respond_with_journal(
        self: &Host,
        durability: &Durability,
        request: &Request<'_>,
    ) -> Result<Response, InternalError> {
        let snapshot_request = match snapshots::parse_request(request, &durability.journal.snapshots()) {
            Ok(snapshot_request) => snapshot_request,
            Err(error) => return Ok(Response::refusal(&error)),
        };
        if snapshot_request.changes_world() && !self.is_durable() {
            return Ok(self.storage_failure());
        }
        self.wait_until_readable().await;
        // The records of a snapshot are on the disk before it can be used.
        if self.is_durable() && !self.wait_for_commit(self.ticket()).await {
            return Ok(self.storage_failure());
        }
        match snapshot_request {
            SnapshotRequest::List => {
                self.with_state(|state| snapshots::list(&durability.journal, state.world.now()))
            }
            SnapshotRequest::Create { name } => {
                if let Some(refusal) = self.memory_refusal() {
                    return Ok(refusal);
                }
                // Everything due happens first, so that the snapshot contains it.
                let stepped = self.step(super::Effect::Changes, |world, now| {
                    world.advance_to(now);
                    snapshots::take_snapshot(&durability.journal, name, world)
                })?;
                match stepped {
                    Err(failure) => Ok(failure),
                    Ok((response, ticket)) => Ok(self.respond_after_commit(response, ticket).await),
                }
            }
            SnapshotRequest::Delete { n } => {
                let response =
                    self.with_state(|state| snapshots::delete(&durability.journal, n, state.world.now()))?;
                Ok(self.respond_after_commit(response, self.ticket()).await)
            }
            SnapshotRequest::Download { n } => {
                Ok(snapshots::file(Arc::clone(&durability.journal), durability.setup.clone(), n).await)
            }
            SnapshotRequest::Restore(moment) => self.restore(durability, moment).await,
            SnapshotRequest::Scenario => Ok(match self.commit_all(durability).await? {
                Ok((now, position)) => {
                    snapshots::scenario(
                        Arc::clone(&durability.journal),
                        durability.setup.clone(),
                        position,
                        now,
                    )
                    .await
                }
                Err(refusal) => refusal,
            }),
        }
    }
}

fn unavailable(message: &str) -> Response {
    Response {
        status: 503,
        headers: vec![("retry-after", RETRY_AFTER.to_owned())],
        body: json!({ "message": message }).to_string().into(),
    }
}
