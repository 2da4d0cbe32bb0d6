//! Schedules checkpoints. A background thread replays the calls after the last checkpoint in a world of its own, so no
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
    Marks,
    checkpoint::{length, stopped, tail},
    disk::Disk,
    history::path,
    medium::Medium,
    rebuild::rebuild,
    tip::Tip,
};

/// So much longer than one took to write, none is written.
const PAUSE: u32 = 3;
/// After one could not be written. Long, because on a disk that is nearly full each try takes the room of records.
const PAUSE_FAILED: Duration = Duration::from_secs(10 * 60);
/// The interval of checks for a finished checkpoint.
const ASKED: Duration = Duration::from_millis(100);

/// Only one is written at a time, of whatever world: for so long it takes as much memory as its world.
static TURN: Mutex<()> = Mutex::new(());

/// Sees to it that the next one is written in time.
pub(super) struct Checkpoints {
    medium: Arc<dyn Medium>,
    setup: Setup,
    /// The position of the latest one.
    position: u64,
    job: Option<Job>,
    /// The next one is not begun before.
    next: Instant,
}

/// One that is being written.
struct Job {
    /// Says where it stands, and how long it took.
    thread: JoinHandle<io::Result<(u64, Duration)>>,
    /// The request to stop writing.
    stop: Arc<AtomicBool>,
}

impl Checkpoints {
    /// `position`: where the last one stands, from 1 on.
    pub(super) fn new(medium: Arc<dyn Medium>, setup: Setup, position: u64) -> Checkpoints {
        Checkpoints { medium, setup, position, job: None, next: Instant::now() }
    }

    /// Begins the next one if it is time. Says after how long to ask again, if nothing is written before.
    pub(super) fn tend(&mut self, disk: &Arc<Disk>, tip: Option<Tip>, marks: &Marks) -> Option<Duration> {
        let after = self.medium.checkpoint_after()?;
        self.reap();
        if self.job.is_some() {
            return Some(ASKED);
        }
        let way = path(&marks.returns, marks.records);
        if length(&tail(&way, self.position)) < after {
            return None;
        }
        let wait = self.next.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            self.job = Job::begin(&self.medium, disk, self.setup.clone(), (tip, marks.clone()));
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
    /// `None` if the operating system has no thread.
    fn begin(
        medium: &Arc<dyn Medium>,
        disk: &Arc<Disk>,
        setup: Setup,
        (tip, marks): (Option<Tip>, Marks),
    ) -> Option<Job> {
        let (medium, disk, stop) = (Arc::clone(medium), Arc::clone(disk), Arc::<AtomicBool>::default());
        let is_over = Arc::clone(&stop);
        let write = move || {
            let _turn = turn(&is_over)?;
            let began = Instant::now();
            let written = rebuild((&*medium, &disk), (tip, &marks), &setup, &is_over)?.checkpoint;
            match written == marks.records {
                true => Ok((written, began.elapsed())),
                false => Err(io::Error::other("it could not be written")),
            }
        };
        let thread = thread::Builder::new().name("checkpoint".to_owned()).spawn(write).ok()?;
        Some(Job { thread, stop })
    }
}

/// Waits until no other world's is being written.
fn turn(stop: &AtomicBool) -> io::Result<MutexGuard<'static, ()>> {
    loop {
        match TURN.try_lock() {
            Ok(turn) => return Ok(turn),
            // Nothing stands in it that a panic could have left half done.
            Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
            Err(TryLockError::WouldBlock) if stop.load(Ordering::Relaxed) => return Err(stopped()),
            Err(TryLockError::WouldBlock) => thread::park_timeout(ASKED),
        }
    }
}
