//! The journal: a write-ahead log of the inputs of a world, replayed on start and when the world is restored to an
//! earlier moment.
//!
//! A world is a deterministic state machine, so its inputs are all that has to be stored. One record is one call of
//! the host (`call`): a request, an advance of the clock, the result of a webhook post. It carries a digest of the
//! outcome (`outcome`), so a replay that comes to another result is detected at the record where it differs. The
//! first record is preceded by the setup: seed, start and settings (`setup`). `world` is the world that records its
//! calls, after each call and under the same lock: only then is it known whether the call changed anything. A
//! request that only reads leaves a record only if it counts against a limit or something was due.
//!
//! *Durability.* With a directory, records are stored in a database (`disk`, by redb) on a medium (`medium`: a
//! directory, or a test double that fails). One thread commits (`writer`). A request that changed something takes a
//! ticket and waits, after it has released the world's lock, for the commit that contains its record; one commit
//! serves all that wait. The response and the webhook posts that follow from the record leave after it. Records
//! that no response depends on are committed within a second. If the disk fails, the world returns to its last
//! commit and is read-only until the disk works again. Without a directory the records stay in memory, up to a
//! bound.
//!
//! *Integrity.* Each commit has a seal, the running digest of all records up to it (`seal`), and the newest
//! acknowledged commit is also in a file of its own. `verify` checks both before a journal is opened; `recover`
//! copies the sound part of a damaged one, on request.
//!
//! *Start.* `open` finds the newest checkpoint (`checkpoint`), the stored state after some of the records, and
//! replays the records after it (`rebuild`, `replay`). A checkpoint is a cache: a damaged one, or one from another
//! version, is reported and ignored, and all records are replayed. `checkpoints` writes the next one in a thread of
//! its own.
//!
//! *Rewind.* Restoring a snapshot deletes no record. It appends a rewind to the position of the snapshot, and
//! `history` computes the records that lead to a position. `file` is a world with its records as one file, to be
//! taken to another server.
//!
//! ```text
//! position     0  1  2  3  4 │ rewind to 2 │ 5  6
//! records      a  b  c  d  e │             │ f  g      the world now: a b f g
//! ```
//!
//! Must not contain: a rule of the service, JSON of the API, or a wait under the world's lock.

mod call;
mod checkpoint;
mod checkpoints;
mod disk;
mod file;
mod history;
mod medium;
mod open;
mod outcome;
mod overlay;
mod rebuild;
mod recover;
mod replay;
mod seal;
mod setup;
#[cfg(test)]
mod tests;
mod tip;
mod verify;
mod world;
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
    call::{HostCall, Renaming},
    file::{RECORDS_MAX, WorldFile},
    history::Snapshot,
    medium::{Directory, DirectoryOptions},
    open::KeptWorld,
    replay::{Finder, Replay, Replayed, begin},
    setup::{SetupRecord, damaged},
    tip::Tip,
    world::JournaledWorld,
    writer::{Keeping, Ticket, Writer},
};
use self::{
    disk::{count, part},
    history::{Return, path, position_of},
    outcome::CallOutcome,
};
use crate::{clock, config::Data, world::World};

/// Bytes of records that the first world without a directory keeps. A world that was told more cannot go back.
pub(crate) const MEMORY_MAX: usize = 8 * 1_024 * 1_024;
/// Snapshots of a world.
pub(crate) const SNAPSHOTS_MAX: usize = 100;

/// The need for an fsync: before the answer leaves, or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Something changed that somebody is told of.
    Commit,
    /// It is found out again by itself, or nobody minds.
    Later,
}

/// The records of a world.
pub(crate) enum Journal {
    /// As long as the process lives.
    Memory(Mutex<InMemory>),
    /// In a directory.
    Disk(Writer),
}

/// Records that no file keeps.
pub(crate) struct InMemory {
    /// `None` once there were too many.
    lines: Option<Vec<u8>>,
    /// Bytes of them.
    most: usize,
    marks: Marks,
}

/// The facts about the records that are known without reading them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    /// The number of records.
    records: u64,
    returns: Vec<Return>,
    snapshots: Vec<Snapshot>,
    /// The highest number that a snapshot had.
    last_snapshot: u64,
    /// The number of worlds opened beside it.
    worlds: u64,
}

impl Marks {
    fn snapshot(&self, n: u64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|it| it.n == n)
    }

    fn held_bytes(&self) -> u64 {
        let names: usize = self.snapshots.iter().map(|it| it.name.len()).sum();
        let rows = size_of_val(&*self.snapshots) + size_of_val(&*self.returns);
        (names + rows) as u64
    }
}

/// The reason why there is no new snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSnapshot {
    /// The records were more than are kept in memory.
    TooLong {
        /// Bytes.
        most: usize,
    },
    /// There are [`SNAPSHOTS_MAX`].
    TooMany,
}

impl Journal {
    /// One that ends with the process, beginning with these records. Keeps at most so many bytes of further ones.
    pub(crate) fn in_memory(lines: Vec<u8>, further_max: usize) -> Journal {
        let most = lines.len().saturating_add(further_max);
        let marks = Marks { records: count(&lines), ..Marks::default() };
        Journal::Memory(Mutex::new(InMemory { lines: Some(lines), most, marks }))
    }

    /// Records a call with its outcome. `tip`: where the world stands after it.
    pub(crate) fn note(&self, call: &HostCall<'_>, outcome: CallOutcome, need: Need, tip: Tip) {
        match self {
            Journal::Disk(writer) => writer.note(call.line(outcome), need, tip),
            Journal::Memory(memory) => {
                let mut memory = lock(memory);
                memory.marks.records += 1;
                let most = memory.most;
                let Some(lines) = &mut memory.lines else { return };
                lines.extend_from_slice(&call.line(outcome));
                if lines.len() > most {
                    memory.lines = None;
                    memory.marks.snapshots.clear();
                }
            }
        }
    }

    /// Returns the ticket of the commit that must be on the disk before an answer leaves; `None` if all of it is.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        match self {
            Journal::Memory(_) => None,
            Journal::Disk(writer) => writer.ticket(),
        }
    }

    /// Lets posts leave once what led to them is on the disk.
    pub(crate) fn hand_out(&self, posts: impl FnOnce() + Send + 'static) {
        match self {
            Journal::Memory(_) => posts(),
            Journal::Disk(writer) => writer.hold(Box::new(posts)),
        }
    }

    /// The writer, if records are on a disk.
    pub(crate) fn writer(&self) -> Option<&Writer> {
        if let Journal::Disk(writer) = self { Some(writer) } else { None }
    }

    fn with_marks<T>(&self, act: impl FnOnce(&mut Marks) -> T) -> T {
        match self {
            Journal::Memory(memory) => act(&mut lock(memory).marks),
            Journal::Disk(writer) => writer.with_marks(act),
        }
    }

    /// The snapshots, the oldest first.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        self.with_marks(|marks| marks.snapshots.clone())
    }

    /// Returns the number of records written so far, of whatever branch; [`Journal::read`] takes it.
    ///
    /// # Errors
    ///
    /// There were more than are kept.
    pub(crate) fn position(&self) -> Result<u64, NoSnapshot> {
        match self {
            Journal::Disk(writer) => Ok(writer.with_marks(|marks| marks.records)),
            Journal::Memory(memory) => match &*lock(memory) {
                InMemory { lines: None, most, .. } => Err(NoSnapshot::TooLong { most: *most }),
                InMemory { marks, .. } => Ok(marks.records),
            },
        }
    }

    /// Returns the position at which the first `count` of the records that lead to `position` had been written.
    pub(crate) fn position_of(&self, count: u64, position: u64) -> u64 {
        self.with_marks(|marks| position_of(count, &path(&marks.returns, position)))
    }

    /// Bytes of memory that they take.
    pub(crate) fn held_bytes(&self) -> u64 {
        match self {
            Journal::Memory(memory) => {
                let memory = lock(memory);
                memory.lines.as_ref().map_or(0, |lines| lines.capacity() as u64) + memory.marks.held_bytes()
            }
            Journal::Disk(writer) => disk::OPEN_BYTES + writer.with_marks(|marks| marks.held_bytes()),
        }
    }

    /// Brings everything that was told on its way to the disk.
    pub(crate) fn hurry(&self) -> Option<Ticket> {
        self.writer().and_then(Writer::hurry)
    }

    /// Keeps the moment that the world stands at.
    pub(crate) fn take_snapshot(&self, name: String, tip: Tip) -> Result<Snapshot, NoSnapshot> {
        let position = self.position()?;
        let snapshot = self.with_marks(|marks| {
            if marks.snapshots.len() >= SNAPSHOTS_MAX {
                return Err(NoSnapshot::TooMany);
            }
            marks.last_snapshot += 1;
            let snapshot = Snapshot { n: marks.last_snapshot, name, position, tip };
            marks.snapshots.push(snapshot.clone());
            Ok(snapshot)
        })?;
        if let Journal::Disk(writer) = self {
            writer.mark(snapshot.n, Some(snapshot.clone()));
        }
        Ok(snapshot)
    }

    /// Says whether there was such a snapshot.
    pub(crate) fn drop_snapshot(&self, n: u64) -> bool {
        let found = self.with_marks(|marks| {
            let found = marks.snapshot(n).is_some();
            marks.snapshots.retain(|it| it.n != n);
            found
        });
        if let Journal::Disk(writer) = self
            && found
        {
            writer.mark(n, None);
        }
        found
    }

    /// The world goes on from where so many records had been written. The call that says so follows.
    pub(crate) fn go_back(&self, to: u64) {
        let back = self.with_marks(|marks| {
            let back = Return { at: marks.records, to };
            marks.returns.push(back);
            back
        });
        if let Journal::Disk(writer) = self {
            writer.go_back(back);
        }
    }

    /// Returns the number of worlds opened beside it.
    pub(crate) fn worlds(&self) -> u64 {
        self.with_marks(|marks| marks.worlds)
    }

    /// So many were, from now on.
    pub(crate) fn count_worlds(&self, worlds: u64) {
        self.with_marks(|marks| marks.worlds = worlds);
        if let Journal::Disk(writer) = self {
            writer.count_worlds(worlds);
        }
    }

    /// A snapshot by its number.
    pub(crate) fn snapshot(&self, n: u64) -> Option<Snapshot> {
        self.with_marks(|marks| marks.snapshot(n).cloned())
    }

    /// Hands out the records that lead to where so many had been written, in pieces of whole lines; what has to be on the
    /// disk for that must be.
    pub(crate) fn read(
        &self,
        position: u64,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let ranges = self.with_marks(|marks| path(&marks.returns, position));
        match self {
            Journal::Memory(memory) => {
                // A copy, because making the calls again takes long.
                let pieces = lock(memory).lines.as_deref().map(|lines| copy(lines, &ranges));
                pieces.ok_or_else(|| damaged("its records are gone"))?.iter().try_for_each(|it| take(it))
            }
            Journal::Disk(writer) => {
                let disk = writer.disk().ok_or_else(|| io::Error::other("the disk is failing"))?;
                ranges.into_iter().try_for_each(|range| disk.read(range, &mut take))
            }
        }
    }
}

fn copy(lines: &[u8], ranges: &[Range<u64>]) -> Vec<Vec<u8>> {
    ranges.iter().map(|range| part(lines, range.clone()).to_vec()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What stands in it is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A journal in a directory, and the world that it led to.
pub(crate) struct OpenedJournal {
    pub(crate) journal: Arc<Journal>,
    pub(crate) setup: Setup,
    pub(crate) world: Replayed,
    /// The position of the world, and the time of day then in microseconds since 1970; `None` if it just began.
    pub(crate) stood: Option<(Tip, u64)>,
}

/// A world before it is known where it is kept.
pub(crate) struct Beginning {
    pub(crate) setup: Setup,
    /// The recorded inputs.
    pub(crate) records: Vec<u8>,
    pub(crate) world: Replayed,
}

impl Beginning {
    /// A new world.
    pub(crate) fn new(setup: &Setup) -> Beginning {
        let world = Replayed { sandbox: begin(setup), in_flight: Vec::new() };
        Beginning { setup: setup.clone(), records: Vec::new(), world }
    }
}

/// A world that a server begins with, or goes on with.
pub(crate) struct Started {
    pub(crate) world: Box<dyn World>,
    /// `None` for a world that can't be made again.
    pub(crate) journal: Option<Arc<Journal>>,
    pub(crate) setup: Setup,
    /// Posts to be made again under their ids.
    pub(crate) in_flight: Vec<OutgoingAttempt>,
    pub(crate) stood: Option<(Tip, u64)>,
}

impl Started {
    /// A world without a journal.
    pub(crate) fn alone(world: Box<dyn World>, setup: &Setup) -> Started {
        Started { world, journal: None, setup: setup.clone(), in_flight: Vec::new(), stood: None }
    }

    /// A new world that goes back as long as it was told no more than so many bytes.
    pub(crate) fn in_memory(setup: &Setup, most: usize) -> Started {
        let Beginning { setup, records, world } = Beginning::new(setup);
        let journal = Arc::new(Journal::in_memory(records, most));
        Started::kept(OpenedJournal { journal, setup, world, stood: None })
    }

    /// A world that goes back as long as it was told no more than so many bytes besides what it begins with.
    pub(crate) fn from_records(
        Beginning { setup, records, world }: Beginning,
        further_max: usize,
    ) -> Started {
        let stood = Some((Tip::of(&world.sandbox), clock::unix_micros()));
        let journal = Arc::new(Journal::in_memory(records, further_max));
        Started::kept(OpenedJournal { journal, setup, world, stood })
    }

    /// A world that is kept from now on. It is once its journal's [ticket](Journal::ticket) is.
    ///
    /// # Errors
    ///
    /// The operating system has no thread.
    pub(crate) fn on_disk(
        medium: Arc<Directory>,
        opening: Vec<u8>,
        Beginning { setup, records, world }: Beginning,
    ) -> io::Result<Started> {
        let stood = (Tip::of(&world.sandbox), clock::unix_micros());
        let journal = Arc::new(Journal::Disk(Writer::begin(medium, &setup, opening, (records, stood))?));
        Ok(Started::kept(OpenedJournal { journal, setup, world, stood: Some(stood) }))
    }

    pub(crate) fn kept(opened: OpenedJournal) -> Started {
        let OpenedJournal { journal, setup, world: Replayed { sandbox, in_flight }, stood } = opened;
        let world = Box::new(JournaledWorld::new(sandbox, Arc::clone(&journal)));
        Started { world, journal: Some(journal), setup, in_flight, stood }
    }
}

impl Data {
    /// Returns `true` if this directory holds a world.
    pub fn has_world(directory: &Path) -> bool {
        Directory::has_world(directory)
    }

    /// How a directory is opened in which redb keeps so many bytes in memory.
    pub(crate) fn options(&self, cache_bytes: usize) -> DirectoryOptions {
        DirectoryOptions { cache_bytes, checkpoint_after: self.checkpoint_after, recover: self.recover }
    }
}

/// The world of a server that was started so: kept in a directory, brought in a file, or new.
///
/// # Errors
///
/// Those of [`Writer::open`], and `InvalidData` if the file is not a world.
pub(crate) fn start(asked: &Setup, data: Option<&Data>, from: Option<&[u8]>) -> io::Result<Started> {
    let in_file = |error: io::Error| io::Error::new(error.kind(), format!("the world in the file: {error}"));
    let file = from.map(WorldFile::parse).transpose().map_err(in_file)?;
    let mut setup = asked.clone();
    if let Some(file) = &file {
        setup = file.setup.setup(&asked.public_url);
        let asked = Setup { rate_limit: setup.rate_limit, ..asked.clone() };
        file.setup
            .judge(&asked, None, None)
            .map_err(|why| invalid(format!("the world in the file {why}")))?;
    }
    if let Some(data) = data {
        let medium = Arc::new(Directory::at(data.directory.clone(), data.options(medium::CACHE_BYTES)));
        medium.create().map_err(|error| {
            invalid(format!(
                "`{}` can't keep a world: {error}; `--data` takes a directory",
                data.directory.display()
            ))
        })?;
        let judge = |kept: &SetupRecord| kept.judge(asked, data.seed, data.start);
        return Ok(Started::kept(Writer::open(medium, &setup, file.as_ref(), judge)?));
    }
    let Some(file) = file else { return Ok(Started::in_memory(&setup, MEMORY_MAX)) };
    let world = file.replay(&setup).map_err(in_file)?;
    Ok(Started::from_records(Beginning { setup, records: file.records, world }, MEMORY_MAX))
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
