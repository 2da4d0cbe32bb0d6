//! The thread that commits records: one commit for all new records and all requests that wait.

use std::{
    io,
    mem::take,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{self, JoinHandle},
    time::Duration,
};

use simulator::sandbox::Setup;
use tokio::sync::watch;

use super::{
    FsyncPolicy, JournalMetadata, SetupRecord,
    checkpoints::Checkpoints,
    disk::{Batch, Disk, count_lines},
    history::{Rewind, Snapshot},
    lock,
    seal::CommitEnd,
    storage::{DatabaseAccess, Storage},
    world_position::WorldPosition,
};
use crate::clock;

/// The delay of a commit that no request waits for.
const COMMIT_DELAY: Duration = Duration::from_secs(1);
/// The bytes of waiting records above which a commit starts without the [delay](COMMIT_DELAY).
const PENDING_BYTES_MAX: usize = 1_024 * 1_024;
/// The interval at which an idle writer checks for work.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(3_600);

/// Starts the delivery attempts that follow from a commit.
type Dispatch = Box<dyn FnOnce() + Send>;

/// The progress of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DiskProgress {
    /// The number of failures. Inputs that were recorded before a failure and are not durable are lost.
    failures: u64,
    /// The number of durable inputs; see [`Queue::inputs`].
    durable: u64,
}

/// The commit that a request waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    /// The number of failures when the ticket was issued. A further failure means that the commit failed.
    failures: u64,
    /// The number of inputs that must be durable.
    durable: u64,
}

/// The durability of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DurabilityState {
    /// Changes are stored.
    Durable,
    /// The disk fails. The world was restored to the last commit and can be read.
    ReadOnly,
    /// The disk fails. The world has changes that will not be stored, and is about to be restored to the last commit.
    Lost,
}

/// The writer of a journal in a directory.
pub(crate) struct Writer {
    shared: Arc<WriterState>,
    pub(super) storage: Arc<dyn Storage>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Notices for the operator about opening the journal, one sentence each.
    pub(super) notices: Vec<String>,
}

struct WriterState {
    queue: Mutex<Queue>,
    wake: Condvar,
    progress: watch::Sender<DiskProgress>,
}

struct Queue {
    /// The open database; `None` before it is created and while the disk fails.
    disk: Option<Arc<Disk>>,
    /// The open database whose file was removed or replaced; it can still be read.
    removed_disk: Option<Arc<Disk>>,
    metadata: JournalMetadata,
    /// The content of the next commit.
    batch: Batch,
    /// The dispatches to run after the next commit.
    waiting_dispatches: Vec<Dispatch>,
    /// `true` if the next commit must not be delayed.
    is_urgent: bool,
    /// The number of inputs: records, snapshots, rewinds, world counts, dispatches, the creation and the deletion of the
    /// journal.
    inputs: u64,
    /// The number of inputs that must be durable before a response is sent.
    required: u64,
    /// The progress of the disk. Written here first, so that a holder of the queue needs no second lock.
    progress: DiskProgress,
    /// The end of the latest commit, and the metadata then.
    last_commit: (Option<CommitEnd>, JournalMetadata),
    durability: DurabilityState,
    failure_reason: String,
    is_closing: bool,
    /// `true` if the stored world is to be deleted.
    is_discarded: bool,
}

/// The first rows of a journal that is not on the disk yet.
pub(super) struct NewJournal {
    setup: Vec<u8>,
    options: Vec<u8>,
    first_batch: Batch,
}

impl Writer {
    /// Creates a journal, which is stored once its [ticket](Writer::ticket) is reached. `options`: the record of the request
    /// that opened the world.
    pub(super) fn create(
        storage: Arc<dyn Storage>,
        setup: &Setup,
        options: Vec<u8>,
        (lines, end): (Vec<u8>, CommitEnd),
    ) -> io::Result<Writer> {
        let metadata = JournalMetadata { records: count_lines(&lines), ..JournalMetadata::default() };
        let first_batch = Batch { lines, end: Some(end), ..Batch::default() };
        let new_journal =
            NewJournal { setup: SetupRecord::from_setup(setup).to_json(), options, first_batch };
        let checkpoints = Checkpoints::new(Arc::clone(&storage), setup.clone(), 0);
        Writer::start(storage, Err(new_journal), (Some(end), metadata), checkpoints)
    }

    /// Starts the thread of the writer. `disk`: an open database, or the first rows of a new one.
    pub(super) fn start(
        storage: Arc<dyn Storage>,
        disk: Result<Disk, NewJournal>,
        (last_end, metadata): (Option<CommitEnd>, JournalMetadata),
        mut checkpoints: Checkpoints,
    ) -> io::Result<Writer> {
        let records = metadata.records;
        let (disk, new_journal) = match disk {
            Ok(disk) => (Some(Arc::new(disk)), None),
            Err(new_journal) => (None, Some(new_journal)),
        };
        // The creation of a journal is its first input.
        let inputs = u64::from(new_journal.is_some());
        let shared = Arc::new(WriterState {
            queue: Mutex::new(Queue {
                disk,
                removed_disk: None,
                batch: Batch { first_record: records, ..Batch::default() },
                waiting_dispatches: Vec::new(),
                is_urgent: false,
                inputs,
                required: inputs,
                progress: DiskProgress::default(),
                last_commit: (last_end, metadata.clone()),
                metadata,
                durability: DurabilityState::Durable,
                failure_reason: String::new(),
                is_closing: false,
                is_discarded: false,
            }),
            wake: Condvar::new(),
            progress: watch::Sender::new(DiskProgress::default()),
        });
        let thread = {
            let (shared, storage) = (Arc::clone(&shared), Arc::clone(&storage));
            let run = move || {
                if let Some(new_journal) = new_journal {
                    shared.create_database(&storage, &new_journal);
                }
                shared.run(&*storage, &mut checkpoints);
            };
            thread::Builder::new().name("journal".to_owned()).spawn(run)?
        };
        Ok(Writer { shared, storage, thread: Mutex::new(Some(thread)), notices: Vec::new() })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.shared.queue)
    }

    /// Records a call, after which the world is at `end`. While the disk fails, nothing is recorded.
    pub(super) fn record(&self, line: Vec<u8>, fsync: FsyncPolicy, end: WorldPosition) {
        let mut queue = self.queue();
        if queue.durability != DurabilityState::Durable {
            return;
        }
        queue.batch.lines.extend_from_slice(&line);
        queue.batch.end = Some((end, clock::unix_micros()));
        queue.metadata.records += 1;
        queue.inputs += 1;
        if fsync == FsyncPolicy::BeforeResponse {
            queue.request_commit();
            self.shared.wake.notify_one();
        } else if queue.batch.lines.len() == line.len() || queue.batch.lines.len() > PENDING_BYTES_MAX {
            // The first record sets the time of the next commit; a large batch starts it.
            self.shared.wake.notify_one();
        }
    }

    /// Records a snapshot; with `None`, the deletion of the snapshot `n`.
    pub(super) fn record_snapshot(&self, n: u64, snapshot: Option<Snapshot>) {
        self.add_to_batch(|batch| batch.snapshots.push((n, snapshot)));
    }

    /// Records the number of worlds opened on request.
    pub(super) fn record_world_count(&self, worlds: u64) {
        self.add_to_batch(|batch| batch.world_count = Some(worlds));
    }

    pub(super) fn rewind(&self, rewind: Rewind) {
        self.add_to_batch(|batch| batch.rewinds.push(rewind));
    }

    fn add_to_batch(&self, add: impl FnOnce(&mut Batch)) {
        let mut queue = self.queue();
        if queue.durability == DurabilityState::Durable {
            add(&mut queue.batch);
            queue.inputs += 1;
            queue.request_commit();
            self.shared.wake.notify_one();
        }
    }

    /// Runs `dispatch` after the next commit; drops it while the disk fails.
    pub(super) fn queue_dispatch(&self, dispatch: Dispatch) {
        let mut queue = self.queue();
        if queue.durability == DurabilityState::Durable {
            queue.waiting_dispatches.push(dispatch);
            queue.inputs += 1;
            queue.request_commit();
            self.shared.wake.notify_one();
        }
    }

    /// Returns the ticket of the commit of all required inputs; `None` if they are durable.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        let queue = self.queue();
        let DiskProgress { failures, durable } = queue.progress;
        if queue.durability != DurabilityState::Durable {
            // Inputs after the failure were not recorded. A ticket with another number of failures fails at once.
            return Some(Ticket { failures: failures.wrapping_sub(1), durable });
        }
        (durable < queue.required).then_some(Ticket { failures, durable: queue.required })
    }

    /// Starts the next commit without delay; returns its ticket.
    pub(super) fn request_commit(&self) -> Option<Ticket> {
        self.queue().request_commit();
        self.shared.wake.notify_one();
        self.ticket()
    }

    /// Waits for a commit; returns `false` if it failed.
    pub(crate) async fn wait(&self, ticket: Ticket) -> bool {
        let mut progress = self.shared.progress.subscribe();
        let is_decided =
            |now: &DiskProgress| now.failures != ticket.failures || now.durable >= ticket.durable;
        match progress.wait_for(is_decided).await {
            Ok(reached) => reached.failures == ticket.failures,
            // The writer ended without this commit.
            Err(_) => false,
        }
    }

    /// Waits until the disk has failed more than `known` times; returns the number of failures.
    pub(crate) async fn wait_for_failure(&self, known: u64) -> u64 {
        let mut progress = self.shared.progress.subscribe();
        let failures = progress.wait_for(|now| now.failures > known).await.map(|now| now.failures);
        // The sender lives as long as this writer.
        failures.unwrap_or(known)
    }

    /// Returns the notices for the operator about opening the journal, one sentence each.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the present durability of changes.
    pub(crate) fn durability(&self) -> DurabilityState {
        self.queue().durability
    }

    /// Returns the reason why changes are not stored.
    pub(crate) fn failure_reason(&self) -> String {
        self.queue().failure_reason.clone()
    }

    pub(super) fn with_metadata<T>(&self, access: impl FnOnce(&mut JournalMetadata) -> T) -> T {
        access(&mut self.queue().metadata)
    }

    /// Returns the open database; `None` while the disk fails.
    pub(super) fn disk(&self) -> Option<Arc<Disk>> {
        self.queue().disk.clone()
    }

    /// Returns the open database whose file was removed or replaced. Closes it and returns `None` once the file is back.
    pub(super) fn removed_disk(&self) -> Option<Arc<Disk>> {
        let mut queue = self.queue();
        if self.storage.check_in_place().is_ok() {
            queue.removed_disk = None;
        }
        queue.removed_disk.clone()
    }

    /// Returns the end of the latest commit, and the metadata then.
    pub(super) fn last_commit(&self) -> (Option<CommitEnd>, JournalMetadata) {
        self.queue().last_commit.clone()
    }

    /// Returns the end of the latest commit.
    pub(crate) fn last_end(&self) -> Option<CommitEnd> {
        self.queue().last_commit.0
    }

    /// Continues with the world that [`Writer::reopen`] returned: writable if there is a disk, read-only otherwise.
    pub(crate) fn resume_after_failure(&self, disk: Option<ReopenedDisk>) {
        let mut queue = self.queue();
        queue.durability = if disk.is_some() { DurabilityState::Durable } else { DurabilityState::ReadOnly };
        queue.disk = disk.map(|ReopenedDisk(disk)| disk);
    }

    /// Starts to close the file and to delete the stored world, which is done once the ticket is reached.
    pub(crate) fn discard(&self) -> Option<Ticket> {
        {
            let mut queue = self.queue();
            (queue.is_closing, queue.is_discarded) = (true, true);
            queue.inputs += 1;
            queue.required = queue.inputs;
        }
        self.shared.wake.notify_one();
        self.ticket()
    }

    /// Starts to commit the remaining records and to close the file. Later records are lost.
    pub(crate) fn close(&self) {
        self.queue().is_closing = true;
        self.shared.wake.notify_one();
    }

    /// Closes the journal and waits until the file is closed.
    pub(crate) fn finish(&self) {
        self.close();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic in it was printed already.
            let _ = thread.join();
        }
    }
}

/// A database that was opened again after a failure.
pub(crate) struct ReopenedDisk(pub(super) Arc<Disk>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Queue {
    fn request_commit(&mut self) {
        // A failing disk accepts no commits.
        if self.durability == DurabilityState::Durable {
            self.is_urgent = true;
            self.required = self.inputs;
        }
    }

    fn has_work(&self) -> bool {
        self.is_urgent
            || self.batch.lines.len() > PENDING_BYTES_MAX
            || (self.is_closing && !self.batch.lines.is_empty())
    }

    /// Starts a checkpoint if one is due; returns the time until the next check.
    fn poll_checkpoints(&self, checkpoints: &mut Checkpoints) -> Option<Duration> {
        let (end, metadata) = &self.last_commit;
        checkpoints.poll(self.disk.as_ref()?, end.map(|(position, _)| position), metadata)
    }

    /// Records a failure of the disk, by which all inputs since the last commit are lost.
    fn fail(&mut self, storage: &dyn Storage, error: &io::Error) {
        self.progress.failures += 1;
        // Wakes every request that waits; each compares the number of failures with its ticket's.
        self.progress.durable = self.inputs;
        self.failure_reason = error.to_string();
        self.durability = DurabilityState::Lost;
        let disk = self.disk.take();
        // If the file is still in place, it is opened again later, which the lock of this handle would prevent.
        self.removed_disk = disk.filter(|_| storage.check_in_place().is_err());
        self.metadata = self.last_commit.1.clone();
        self.batch = Batch { first_record: self.metadata.records, ..Batch::default() };
        self.required = self.inputs;
        self.waiting_dispatches.clear();
        self.is_urgent = false;
    }
}

impl WriterState {
    /// Creates the database of a new journal.
    fn create_database(
        &self,
        storage: &Arc<dyn Storage>,
        NewJournal { setup, options, first_batch }: &NewJournal,
    ) {
        let created = Disk::open(storage, DatabaseAccess::Create)
            .and_then(|disk| disk.initialize(setup, Some(options), first_batch).map(|()| Arc::new(disk)));
        let mut queue = lock(&self.queue);
        match created {
            Ok(disk) => (queue.disk, queue.progress.durable) = (Some(disk), 1),
            Err(error) => queue.fail(&**storage, &error),
        }
        self.progress.send_replace(queue.progress);
    }

    /// Commits batches until the journal is closed.
    fn run(&self, storage: &dyn Storage, checkpoints: &mut Checkpoints) {
        let mut queue = lock(&self.queue);
        loop {
            while !queue.has_work() {
                if queue.is_closing {
                    drop(queue);
                    checkpoints.stop();
                    queue = lock(&self.queue);
                    queue.disk = None;
                    if queue.is_discarded {
                        match storage.remove() {
                            Ok(()) => queue.progress.durable = queue.inputs,
                            Err(error) => queue.fail(storage, &error),
                        }
                        self.progress.send_replace(queue.progress);
                    }
                    return;
                }
                if queue.batch.lines.is_empty() || queue.disk.is_none() {
                    let pause = queue.poll_checkpoints(checkpoints).unwrap_or(IDLE_CHECK_INTERVAL);
                    let waited = self.wake.wait_timeout(queue, pause);
                    queue = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
                    continue;
                }
                let (next, waited) = self
                    .wake
                    .wait_timeout(queue, COMMIT_DELAY)
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                queue = next;
                if waited.timed_out() {
                    break;
                }
            }
            let Some(disk) = queue.disk.clone() else { continue };
            let metadata = queue.metadata.clone();
            let batch = take(&mut queue.batch);
            queue.batch.first_record = metadata.records;
            let (waiting_dispatches, inputs) = (take(&mut queue.waiting_dispatches), queue.inputs);
            queue.is_urgent = false;
            drop(queue);
            let written = disk.append(&batch);
            drop(disk);
            if written.is_err() {
                checkpoints.stop();
            }
            queue = lock(&self.queue);
            match written {
                Ok(()) => {
                    queue.last_commit.0 = batch.end.or(queue.last_commit.0);
                    queue.last_commit.1 = metadata;
                    queue.progress.durable = inputs;
                    self.progress.send_replace(queue.progress);
                    waiting_dispatches.into_iter().for_each(|dispatch| dispatch());
                    queue.poll_checkpoints(checkpoints);
                }
                Err(error) => {
                    queue.fail(storage, &error);
                    self.progress.send_replace(queue.progress);
                }
            }
        }
    }
}
