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

/// The pause after a checkpoint is this multiple of the time that it took.
const PAUSE_FACTOR: u32 = 3;
/// The pause after a failed checkpoint. Long, because on a nearly full disk each attempt uses space that records need.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(10 * 60);
/// The interval of checks for a finished checkpoint.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Locked while a checkpoint of any world is written: one at a time, because each needs as much memory as its world.
static WRITE_LOCK: Mutex<()> = Mutex::new(());

/// The schedule of the checkpoints of one world.
pub(super) struct Checkpoints {
    storage: Arc<dyn Storage>,
    setup: Setup,
    /// The position of the latest checkpoint.
    position: u64,
    job: Option<Job>,
    /// The earliest start of the next checkpoint.
    next_at: Instant,
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
        Checkpoints { storage, setup, position, job: None, next_at: Instant::now() }
    }

    /// Starts a checkpoint if one is due; returns the time until the next check. `None`: after the next commit. `end`: the
    /// position of the world after the last commit.
    pub(super) fn poll(
        &mut self,
        disk: &Arc<Disk>,
        end: Option<WorldPosition>,
        metadata: &JournalMetadata,
    ) -> Option<Duration> {
        let checkpoint_after = self.storage.checkpoint_after()?;
        self.finish_job();
        if self.job.is_some() {
            return Some(POLL_INTERVAL);
        }
        let ranges = record_ranges(&metadata.rewinds, metadata.records);
        if record_count(&records_after(&ranges, self.position)) < checkpoint_after {
            return None;
        }
        let wait = self.next_at.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            self.job = Job::start(&self.storage, disk, self.setup.clone(), (end, metadata.clone()));
        }
        Some(wait.max(POLL_INTERVAL))
    }

    /// Reads the result of the checkpoint if it has ended, and schedules the next one.
    fn finish_job(&mut self) {
        if let Some(job) = self.job.take_if(|job| job.thread.is_finished()) {
            // A panic in it was printed already.
            let pause = job.thread.join().ok().and_then(Result::ok).map_or(
                PAUSE_AFTER_FAILURE,
                |(position, duration)| {
                    self.position = position;
                    duration * PAUSE_FACTOR
                },
            );
            self.next_at = Instant::now() + pause;
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
        (end, metadata): (Option<WorldPosition>, JournalMetadata),
    ) -> Option<Job> {
        let (storage, disk, stop) = (Arc::clone(storage), Arc::clone(disk), Arc::<AtomicBool>::default());
        let stop_requested = Arc::clone(&stop);
        let write = move || {
            let _writing = wait_for_other_checkpoints(&stop_requested)?;
            let started_at = Instant::now();
            let written =
                rebuild((&*storage, &disk), (end, &metadata), &setup, &stop_requested)?.checkpoint_position;
            match written == metadata.records {
                true => Ok((written, started_at.elapsed())),
                false => Err(io::Error::other("the checkpoint could not be written")),
            }
        };
        let thread = thread::Builder::new().name("checkpoint".to_owned()).spawn(write).ok()?;
        Some(Job { thread, stop })
    }
}

/// Waits until no other checkpoint is being written; the returned guard keeps others from being written. Fails once `stop`
/// is set.
fn wait_for_other_checkpoints(stop: &AtomicBool) -> io::Result<MutexGuard<'static, ()>> {
    loop {
        match WRITE_LOCK.try_lock() {
            Ok(guard) => return Ok(guard),
            // The lock guards no data, so a panic leaves nothing half changed.
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if stop.load(Ordering::Relaxed) => return Err(stopped_error()),
            Err(TryLockError::WouldBlock) => thread::park_timeout(POLL_INTERVAL),
        }
    }
}
