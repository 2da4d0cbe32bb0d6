//! The journal: a write-ahead log of the inputs of a world, replayed on start and when the world is restored to an
//! earlier moment.
//!
//! A world is a deterministic state machine, so its inputs are all that has to be stored. One record is one call of
//! the host (`call`): a request, an advance of the clock, the result of a delivery attempt. It carries a digest of the
//! outcome (`outcome`), so a replay with a different result is detected at the first record that differs. The
//! first record is preceded by the setup: seed, start and settings (`setup`). `world` is the world that records its
//! calls, after each call and under the same lock, because the outcome decides whether a record is needed: a request
//! that only reads is recorded only if it counts against a rate limit or a scheduled event was due.
//!
//! *Durability.* With a directory, records are stored in a database (`disk`, by redb) in a directory (`storage`,
//! which tests replace by a failing one). One thread commits (`writer`). A request that changed something takes a
//! ticket and waits, after it has released the world's lock, for the commit that contains its record; one commit serves
//! all that wait. The response and the delivery attempts that follow from the record are sent after it. Records that no
//! response depends on are committed within a second. If the disk fails, the world returns to its last commit and is
//! read-only until the disk works again. Without a directory the records stay in memory, up to a bound.
//!
//! *Integrity.* Each commit has a seal, the running digest of all records up to it (`seal`), and the newest
//! acknowledged commit is also stored in a separate file. `verify` checks both before a journal is opened, without a
//! write to the disk (`overlay`); `recover` copies the undamaged part of a damaged one, on request.
//!
//! *Start.* `open` finds the newest checkpoint (`checkpoint`), the stored state after some of the records, and
//! replays the records after it (`rebuild`, `replay`). A checkpoint is a cache: a damaged one, or one from another
//! version, is reported and ignored, and all records are replayed. `checkpoints` writes the next one on a
//! separate thread.
//!
//! *Rewind.* Restoring a snapshot deletes no record. It appends a rewind to the position of the snapshot, and
//! `history` computes the records that lead to a position. `file` is a world with its records as one file, to be
//! opened by another server.
//!
//! ```text
//! position     0  1  2  3  4 │ rewind to 2 │ 5  6
//! records      a  b  c  d  e │             │ f  g      history of the world: a b f g
//! ```
//!
//! Must not contain: a rule of the service, JSON of the API, or a wait under the world's lock.

mod call;
mod checkpoint;
mod checkpoints;
mod disk;
mod file;
mod history;
mod open;
mod outcome;
mod overlay;
mod rebuild;
mod recover;
mod replay;
mod seal;
mod setup;
mod storage;
#[cfg(test)]
mod tests;
mod verify;
mod world;
mod world_position;
mod writer;

use std::{
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use simulator::sandbox::{OutgoingAttempt, Setup};

pub use self::file::WORLD_FILE_MAX;
pub(crate) use self::{
    call::{BranchTranslation, HostCall},
    file::{RECORDS_MAX, WorldFile},
    history::Snapshot,
    open::StoredWorld,
    replay::{MomentFinder, Replay, ReplayedWorld, new_sandbox},
    setup::{SetupRecord, damage_error},
    storage::{Directory, DirectoryOptions},
    world::JournaledWorld,
    world_position::WorldPosition,
    writer::{DurabilityState, Ticket, Writer},
};
use self::{
    disk::{count_lines, lines_in_range},
    history::{Rewind, position_of, record_ranges},
    outcome::OutcomeDigest,
    seal::CommitEnd,
};
use crate::{clock, config::StorageConfig, world::World};

/// The maximum size of the records that the first world stores in memory if it has no directory. A world with more cannot
/// be restored to an earlier moment.
pub(crate) const MEMORY_MAX: usize = 8 * 1_024 * 1_024;
/// The largest number of snapshots of one world.
pub(crate) const SNAPSHOTS_MAX: usize = 100;

/// The time by which a record must be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FsyncPolicy {
    /// Before the response is sent, because the response depends on the record.
    BeforeResponse,
    /// Within a second: a crash that loses the record loses nothing that was acknowledged.
    Later,
}

/// The records of a world.
pub(crate) enum Journal {
    /// Records that are lost when the process ends.
    Memory(Mutex<MemoryJournal>),
    /// Records in a directory.
    Disk(Writer),
}

/// The records of a world without a directory.
pub(crate) struct MemoryJournal {
    /// One record per line; `None` once they exceeded `bytes_max`.
    lines: Option<Vec<u8>>,
    /// The largest size of `lines`.
    bytes_max: usize,
    metadata: JournalMetadata,
}

/// The facts about a journal that are known without reading its records.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalMetadata {
    records: u64,
    rewinds: Vec<Rewind>,
    snapshots: Vec<Snapshot>,
    /// The highest number of any snapshot, deleted ones included.
    last_snapshot_number: u64,
    /// The number of worlds opened on request, ended ones included.
    world_count: u64,
}

impl JournalMetadata {
    fn snapshot(&self, n: u64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.n == n)
    }

    fn held_bytes(&self) -> u64 {
        let names: usize = self.snapshots.iter().map(|snapshot| snapshot.name.len()).sum();
        let rows = size_of_val(&*self.snapshots) + size_of_val(&*self.rewinds);
        (names + rows) as u64
    }
}

/// The reason why no snapshot can be taken, or no earlier moment restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotError {
    /// The world has more records than are stored in memory.
    JournalTooLong {
        /// The largest number of bytes stored.
        bytes_max: usize,
    },
    /// The world has [`SNAPSHOTS_MAX`] snapshots.
    TooManySnapshots,
}

impl Journal {
    /// Creates a journal in memory that begins with `lines` and stores at most `further_max` bytes of further records.
    pub(crate) fn in_memory(lines: Vec<u8>, further_max: usize) -> Journal {
        let bytes_max = lines.len().saturating_add(further_max);
        let metadata = JournalMetadata { records: count_lines(&lines), ..JournalMetadata::default() };
        Journal::Memory(Mutex::new(MemoryJournal { lines: Some(lines), bytes_max, metadata }))
    }

    /// Records a call with its outcome. `end`: the position of the world after the call.
    pub(crate) fn record(
        &self,
        call: &HostCall<'_>,
        outcome: OutcomeDigest,
        fsync: FsyncPolicy,
        end: WorldPosition,
    ) {
        match self {
            Journal::Disk(writer) => writer.record(call.to_line(outcome), fsync, end),
            Journal::Memory(memory) => {
                let mut memory = lock(memory);
                memory.metadata.records += 1;
                let bytes_max = memory.bytes_max;
                let Some(lines) = &mut memory.lines else { return };
                lines.extend_from_slice(&call.to_line(outcome));
                if lines.len() > bytes_max {
                    memory.lines = None;
                    memory.metadata.snapshots.clear();
                }
            }
        }
    }

    /// Returns the ticket of the commit that a response has to wait for; `None` if all required records are on the disk.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        match self {
            Journal::Memory(_) => None,
            Journal::Disk(writer) => writer.ticket(),
        }
    }

    /// Runs `dispatch`, which starts delivery attempts, once the records that led to them are on the disk.
    pub(crate) fn dispatch_after_commit(&self, dispatch: impl FnOnce() + Send + 'static) {
        match self {
            Journal::Memory(_) => dispatch(),
            Journal::Disk(writer) => writer.queue_dispatch(Box::new(dispatch)),
        }
    }

    /// Returns the writer of a journal on a disk.
    pub(crate) fn writer(&self) -> Option<&Writer> {
        if let Journal::Disk(writer) = self { Some(writer) } else { None }
    }

    fn with_metadata<T>(&self, access: impl FnOnce(&mut JournalMetadata) -> T) -> T {
        match self {
            Journal::Memory(memory) => access(&mut lock(memory).metadata),
            Journal::Disk(writer) => writer.with_metadata(access),
        }
    }

    /// Returns the snapshots, oldest first.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        self.with_metadata(|metadata| metadata.snapshots.clone())
    }

    /// Returns the number of records written so far, abandoned ones included: a position for [`Journal::read`].
    ///
    /// # Errors
    ///
    /// [`SnapshotError::JournalTooLong`]
    pub(crate) fn position(&self) -> Result<u64, SnapshotError> {
        match self {
            Journal::Disk(writer) => Ok(writer.with_metadata(|metadata| metadata.records)),
            Journal::Memory(memory) => match &*lock(memory) {
                MemoryJournal { lines: None, bytes_max, .. } => {
                    Err(SnapshotError::JournalTooLong { bytes_max: *bytes_max })
                }
                MemoryJournal { metadata, .. } => Ok(metadata.records),
            },
        }
    }

    /// Returns the position at which the first `count` of the records that lead to `position` had been written.
    pub(crate) fn position_of(&self, count: u64, position: u64) -> u64 {
        self.with_metadata(|metadata| position_of(count, &record_ranges(&metadata.rewinds, position)))
    }

    /// Returns the bytes of memory that the journal uses, estimated.
    pub(crate) fn held_bytes(&self) -> u64 {
        match self {
            Journal::Memory(memory) => {
                let memory = lock(memory);
                memory.lines.as_ref().map_or(0, |lines| lines.capacity() as u64)
                    + memory.metadata.held_bytes()
            }
            Journal::Disk(writer) => {
                disk::OPEN_BYTES + writer.with_metadata(|metadata| metadata.held_bytes())
            }
        }
    }

    /// Requests a commit of all records so far; returns its ticket, `None` if nothing is left to commit.
    pub(crate) fn request_commit(&self) -> Option<Ticket> {
        self.writer().and_then(Writer::request_commit)
    }

    /// Takes a snapshot of the world, which is at `end`.
    pub(crate) fn take_snapshot(&self, name: String, end: WorldPosition) -> Result<Snapshot, SnapshotError> {
        let position = self.position()?;
        let snapshot = self.with_metadata(|metadata| {
            if metadata.snapshots.len() >= SNAPSHOTS_MAX {
                return Err(SnapshotError::TooManySnapshots);
            }
            metadata.last_snapshot_number += 1;
            let snapshot = Snapshot { n: metadata.last_snapshot_number, name, position, end };
            metadata.snapshots.push(snapshot.clone());
            Ok(snapshot)
        })?;
        if let Journal::Disk(writer) = self {
            writer.record_snapshot(snapshot.n, Some(snapshot.clone()));
        }
        Ok(snapshot)
    }

    /// Deletes a snapshot; returns `false` if there is none with this number.
    pub(crate) fn delete_snapshot(&self, n: u64) -> bool {
        let found = self.with_metadata(|metadata| {
            let found = metadata.snapshot(n).is_some();
            metadata.snapshots.retain(|snapshot| snapshot.n != n);
            found
        });
        if let Journal::Disk(writer) = self
            && found
        {
            writer.record_snapshot(n, None);
        }
        found
    }

    /// Records that the world continues from the position `to`. The next record is the call that restores it.
    pub(crate) fn rewind(&self, to: u64) {
        let rewind = self.with_metadata(|metadata| {
            let rewind = Rewind { at: metadata.records, to };
            metadata.rewinds.push(rewind);
            rewind
        });
        if let Journal::Disk(writer) = self {
            writer.rewind(rewind);
        }
    }

    /// Returns the number of worlds opened on request, ended ones included.
    pub(crate) fn world_count(&self) -> u64 {
        self.with_metadata(|metadata| metadata.world_count)
    }

    /// Sets the number of worlds opened on request.
    pub(crate) fn record_world_count(&self, worlds: u64) {
        self.with_metadata(|metadata| metadata.world_count = worlds);
        if let Journal::Disk(writer) = self {
            writer.record_world_count(worlds);
        }
    }

    /// Returns the snapshot with a number.
    pub(crate) fn snapshot(&self, n: u64) -> Option<Snapshot> {
        self.with_metadata(|metadata| metadata.snapshot(n).cloned())
    }

    /// Passes the records that lead to a position to `visit`, in pieces of whole lines. On a disk, they must have been
    /// committed.
    pub(crate) fn read(
        &self,
        position: u64,
        mut visit: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let ranges = self.with_metadata(|metadata| record_ranges(&metadata.rewinds, position));
        match self {
            Journal::Memory(memory) => {
                // A copy, because a replay takes long and must not hold the lock.
                let pieces = lock(memory).lines.as_deref().map(|lines| copy_ranges(lines, &ranges));
                pieces
                    .ok_or_else(|| damage_error("its records are no longer stored"))?
                    .iter()
                    .try_for_each(|piece| visit(piece))
            }
            Journal::Disk(writer) => {
                let disk = writer.disk().ok_or_else(|| io::Error::other("the disk is failing"))?;
                ranges.into_iter().try_for_each(|range| disk.read(range, &mut visit))
            }
        }
    }
}

fn copy_ranges(lines: &[u8], ranges: &[Range<u64>]) -> Vec<Vec<u8>> {
    ranges.iter().map(|range| lines_in_range(lines, range.clone()).to_vec()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave the data half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A journal and the world that its records led to.
pub(crate) struct OpenedJournal {
    pub(crate) journal: Arc<Journal>,
    pub(crate) setup: Setup,
    pub(crate) world: ReplayedWorld,
    /// The end of the last commit; `None` for a new world.
    pub(crate) last_end: Option<CommitEnd>,
}

/// A new world whose journal does not exist yet.
pub(crate) struct NewWorld {
    pub(crate) setup: Setup,
    /// The recorded calls, one per line.
    pub(crate) records: Vec<u8>,
    pub(crate) world: ReplayedWorld,
}

impl NewWorld {
    /// Creates a world without records.
    pub(crate) fn new(setup: &Setup) -> NewWorld {
        let world = ReplayedWorld { sandbox: new_sandbox(setup), in_flight: Vec::new() };
        NewWorld { setup: setup.clone(), records: Vec::new(), world }
    }
}

/// A world that is ready for a host.
pub(crate) struct RunningWorld {
    pub(crate) world: Box<dyn World>,
    /// `None` for a world that cannot be restored.
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) setup: Setup,
    /// Delivery attempts to repeat under their ids.
    pub(crate) in_flight: Vec<OutgoingAttempt>,
    /// The end from which the clock resumes; `None` for a new world.
    pub(crate) last_end: Option<CommitEnd>,
}

impl RunningWorld {
    /// Creates a world without a journal.
    pub(crate) fn without_journal(world: Box<dyn World>, setup: &Setup) -> RunningWorld {
        RunningWorld { world, journal: None, setup: setup.clone(), in_flight: Vec::new(), last_end: None }
    }

    /// Creates a new world with a journal of at most `bytes_max` bytes in memory.
    pub(crate) fn in_memory(setup: &Setup, bytes_max: usize) -> RunningWorld {
        let NewWorld { setup, records, world } = NewWorld::new(setup);
        let journal = Arc::new(Journal::in_memory(records, bytes_max));
        RunningWorld::from_journal(OpenedJournal { journal, setup, world, last_end: None })
    }

    /// Creates a world with its first records in memory, and at most `further_max` bytes of further ones.
    pub(crate) fn from_records(
        NewWorld { setup, records, world }: NewWorld,
        further_max: usize,
    ) -> RunningWorld {
        let last_end = Some((WorldPosition::from_sandbox(&world.sandbox), clock::unix_micros()));
        let journal = Arc::new(Journal::in_memory(records, further_max));
        RunningWorld::from_journal(OpenedJournal { journal, setup, world, last_end })
    }

    /// Creates a world in a directory. It is stored once its journal's [ticket](Journal::ticket) is reached.
    ///
    /// # Errors
    ///
    /// The operating system cannot start a thread.
    pub(crate) fn on_disk(
        storage: Arc<Directory>,
        options: Vec<u8>,
        NewWorld { setup, records, world }: NewWorld,
    ) -> io::Result<RunningWorld> {
        let last_end = (WorldPosition::from_sandbox(&world.sandbox), clock::unix_micros());
        let journal = Arc::new(Journal::Disk(Writer::create(storage, &setup, options, (records, last_end))?));
        Ok(RunningWorld::from_journal(OpenedJournal { journal, setup, world, last_end: Some(last_end) }))
    }

    /// Creates the world of an opened journal.
    pub(crate) fn from_journal(opened: OpenedJournal) -> RunningWorld {
        let OpenedJournal { journal, setup, world: ReplayedWorld { sandbox, in_flight }, last_end } = opened;
        let world = Box::new(JournaledWorld::new(sandbox, Arc::clone(&journal)));
        RunningWorld { world, journal: Some(journal), setup, in_flight, last_end }
    }
}

impl StorageConfig {
    /// Returns `true` if this directory holds a world.
    pub fn has_world(directory: &Path) -> bool {
        Directory::has_world(directory)
    }

    /// Returns the options of a directory whose database caches `cache_bytes` in memory.
    pub(crate) fn options(&self, cache_bytes: usize) -> DirectoryOptions {
        DirectoryOptions { cache_bytes, checkpoint_after: self.checkpoint_after, recover: self.recover }
    }
}

/// Opens the world of a server: from the directory `data`, from a world file, or a new one.
///
/// # Errors
///
/// Those of [`Writer::open`]; `InvalidData` if the file is not a world; `InvalidInput` if its settings are not the requested
/// ones, or if `data` is not a directory.
pub(crate) fn open_or_create(
    requested: &Setup,
    data: Option<&StorageConfig>,
    file: Option<&[u8]>,
) -> io::Result<RunningWorld> {
    let file_error =
        |error: io::Error| io::Error::new(error.kind(), format!("the world in the file: {error}"));
    let file = file.map(WorldFile::parse).transpose().map_err(file_error)?;
    let mut setup = requested.clone();
    if let Some(file) = &file {
        setup = file.setup.to_setup(&requested.public_url);
        let requested = Setup { rate_limit: setup.rate_limit, ..requested.clone() };
        file.setup
            .check_compatible(&requested, None, None)
            .map_err(|why| invalid_input(format!("the world in the file {why}")))?;
    }
    if let Some(data) = data {
        let storage = Arc::new(Directory::new(data.directory.clone(), data.options(storage::CACHE_BYTES)));
        storage.create().map_err(|error| {
            invalid_input(format!(
                "`{}` cannot store a world: {error}; `--data` must be a directory",
                data.directory.display()
            ))
        })?;
        let check_setup = |record: &SetupRecord| record.check_compatible(requested, data.seed, data.start);
        return Ok(RunningWorld::from_journal(Writer::open(storage, &setup, file.as_ref(), check_setup)?));
    }
    let Some(file) = file else { return Ok(RunningWorld::in_memory(&setup, MEMORY_MAX)) };
    let world = file.replay(&setup).map_err(file_error)?;
    Ok(RunningWorld::from_records(NewWorld { setup, records: file.records, world }, MEMORY_MAX))
}

fn invalid_input(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
