//! Schedules checkpoints. A background thread replays the calls after the last checkpoint in a separate world, so no
//! request waits.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use simulator::sandbox::Setup;

use super::{
    JournalMetadata,
    checkpoint::{record_count, records_after, stopped_error},
    disk::Disk,
    history::record_ranges,
    rebuild::rebuild,
    storage::Storage,
    world_position::WorldPosition,
};

/// The pause after a checkpoint, as a multiple of the time that it took.
const PAUSE: u32 = 3;
/// The pause after a failed checkpoint. Long, because on a nearly full disk each attempt uses space that records need.
const PAUSE_FAILED: Duration = Duration::from_secs(10 * 60);
/// The interval of checks for a finished checkpoint.
const ASKED: Duration = Duration::from_millis(100);

/// Held while a checkpoint of any world is written: each needs as much memory as its world.
static TURN: Mutex<()> = Mutex::new(());

/// The schedule of the checkpoints of one world.
pub(super) struct Checkpoints {
    storage: Arc<dyn Storage>,
    setup: Setup,
    /// The position of the latest checkpoint.
    position: u64,
    job: Option<Job>,
    /// The earliest start of the next checkpoint.
    next: Instant,
}

/// A checkpoint that is being written.
struct Job {
    /// Returns the position of the checkpoint and the time that it took.
    thread: JoinHandle<io::Result<(u64, Duration)>>,
    /// The request to stop writing.
    stop: Arc<AtomicBool>,
}

impl Checkpoints {
    /// Creates a schedule. `position`: that of the latest checkpoint, 0 for none.
    pub(super) fn new(storage: Arc<dyn Storage>, setup: Setup, position: u64) -> Checkpoints {
        Checkpoints { storage, setup, position, job: None, next: Instant::now() }
    }

    /// Starts a checkpoint if one is due; returns the time until the next check. `None`: after the next commit.
    pub(super) fn poll(
        &mut self,
        disk: &Arc<Disk>,
        tip: Option<WorldPosition>,
        metadata: &JournalMetadata,
    ) -> Option<Duration> {
        let after = self.storage.checkpoint_after()?;
        self.reap();
        if self.job.is_some() {
            return Some(ASKED);
        }
        let ranges = record_ranges(&metadata.rewinds, metadata.records);
        if record_count(&records_after(&ranges, self.position)) < after {
            return None;
        }
        let wait = self.next.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            self.job = Job::start(&self.storage, disk, self.setup.clone(), (tip, metadata.clone()));
        }
        Some(wait.max(ASKED))
    }

    fn reap(&mut self) {
        if let Some(job) = self.job.take_if(|job| job.thread.is_finished()) {
            // A panic in it was printed already.
            let pause =
                job.thread.join().ok().and_then(Result::ok).map_or(PAUSE_FAILED, |(position, took)| {
                    self.position = position;
                    took * PAUSE
                });
            self.next = Instant::now() + pause;
        }
    }

    /// Stops writing checkpoints for good.
    pub(super) fn stop(&mut self) {
        if let Some(job) = self.job.take() {
            job.stop.store(true, Ordering::Relaxed);
            job.thread.thread().unpark();
            // A panic in it was printed already.
            let _ = job.thread.join();
        }
    }
}

impl Job {
    /// Starts writing a checkpoint; returns `None` if the operating system cannot start a thread.
    fn start(
        storage: &Arc<dyn Storage>,
        disk: &Arc<Disk>,
        setup: Setup,
        (tip, metadata): (Option<WorldPosition>, JournalMetadata),
    ) -> Option<Job> {
        let (storage, disk, stop) = (Arc::clone(storage), Arc::clone(disk), Arc::<AtomicBool>::default());
        let is_over = Arc::clone(&stop);
        let write = move || {
            let _turn = wait_for_turn(&is_over)?;
            let began = Instant::now();
            let written = rebuild((&*storage, &disk), (tip, &metadata), &setup, &is_over)?.checkpoint;
            match written == metadata.records {
                true => Ok((written, began.elapsed())),
                false => Err(io::Error::other("it could not be written")),
            }
        };
        let thread = thread::Builder::new().name("checkpoint".to_owned()).spawn(write).ok()?;
        Some(Job { thread, stop })
    }
}

/// Waits until no other checkpoint is being written.
fn wait_for_turn(stop: &AtomicBool) -> io::Result<MutexGuard<'static, ()>> {
    loop {
        match TURN.try_lock() {
            Ok(turn) => return Ok(turn),
            // The lock guards no data, so a panic leaves nothing half changed.
            Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
            Err(TryLockError::WouldBlock) if stop.load(Ordering::Relaxed) => return Err(stopped_error()),
            Err(TryLockError::WouldBlock) => thread::park_timeout(ASKED),
        }
    }
}
