//! The thread that writes records: one commit for all new records, and for all requests that wait.

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
    Marks, Need, SetupRecord,
    checkpoints::Checkpoints,
    disk::{Batch, Disk, count},
    history::{Return, Snapshot},
    lock,
    medium::{DatabaseAccess, Medium},
    tip::Tip,
};
use crate::clock;

/// Records that nobody waits for are written after so long.
const LATER: Duration = Duration::from_secs(1);
/// Or when there are so many bytes of them.
const LATER_BYTES_MAX: usize = 1_024 * 1_024;
/// Without records it looks so often whether there is anything to do.
const REST: Duration = Duration::from_secs(3_600);

/// Lets posts leave.
type Posts = Box<dyn FnOnce() + Send>;

/// The progress of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Counts failures. What was told before one and is not on the disk never will be.
    failures: u64,
    /// The number of durable inputs.
    durable: u64,
}

/// The commit that a request waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    failures: u64,
    /// The number of inputs that must be durable.
    durable: u64,
}

/// The state of durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// They are.
    Yes,
    /// The disk fails, and the world is back where the disk has it: it can be read.
    ReadOnly,
    /// The disk fails, and the world holds what will not be kept.
    No,
}

/// Writes to a directory.
pub(crate) struct Writer {
    shared: Arc<WriterState>,
    pub(super) medium: Arc<dyn Medium>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The notices about how it was opened, a sentence each.
    pub(super) notices: Vec<String>,
}

struct WriterState {
    queue: Mutex<Queue>,
    wake: Condvar,
    progress: watch::Sender<Progress>,
}

struct Queue {
    disk: Option<Arc<Disk>>,
    /// The database that was open when its file was removed or replaced: it can still be read.
    removed: Option<Arc<Disk>>,
    marks: Marks,
    /// The content of the next commit.
    batch: Batch,
    /// Posts that leave after it.
    held: Vec<Posts>,
    /// `true` if a request waits for it.
    is_urgent: bool,
    /// The number of inputs: records, snapshots, rewinds, posts.
    told: u64,
    /// The number of inputs that must be durable before an answer leaves.
    must: u64,
    /// The progress of the disk. Written here first, so that a holder of the queue needs no second lock.
    progress: Progress,
    /// The position of the world at the end of the latest commit, and the marks then.
    last: (Option<(Tip, u64)>, Marks),
    kept: Keeping,
    /// The reason why the disk failed.
    why: String,
    is_closing: bool,
    /// `true` if the stored world is to be deleted.
    is_discarded: bool,
}

/// A journal that is not on the disk yet.
pub(super) struct Begins {
    setup: Vec<u8>,
    opening: Vec<u8>,
    first: Batch,
}

impl Writer {
    /// Begins a journal, which is there once its [ticket](Writer::ticket) is. `opening`: why it was opened.
    pub(super) fn begin(
        medium: Arc<dyn Medium>,
        setup: &Setup,
        opening: Vec<u8>,
        (lines, end): (Vec<u8>, (Tip, u64)),
    ) -> io::Result<Writer> {
        let marks = Marks { records: count(&lines), ..Marks::default() };
        let first = Batch { lines, end: Some(end), ..Batch::default() };
        let begins = Begins { setup: SetupRecord::of(setup).text(), opening, first };
        let checkpoints = Checkpoints::new(Arc::clone(&medium), setup.clone(), 0);
        Writer::start(medium, Err(begins), (Some(end), marks), checkpoints)
    }

    /// `disk`: one that is open, or what it will begin with.
    pub(super) fn start(
        medium: Arc<dyn Medium>,
        disk: Result<Disk, Begins>,
        (stood, marks): (Option<(Tip, u64)>, Marks),
        mut checkpoints: Checkpoints,
    ) -> io::Result<Writer> {
        let records = marks.records;
        let (disk, begins) = match disk {
            Ok(disk) => (Some(Arc::new(disk)), None),
            Err(begins) => (None, Some(begins)),
        };
        let told = u64::from(begins.is_some());
        let shared = Arc::new(WriterState {
            queue: Mutex::new(Queue {
                disk,
                removed: None,
                batch: Batch { first: records, ..Batch::default() },
                held: Vec::new(),
                is_urgent: false,
                told,
                must: told,
                progress: Progress::default(),
                last: (stood, marks.clone()),
                marks,
                kept: Keeping::Yes,
                why: String::new(),
                is_closing: false,
                is_discarded: false,
            }),
            wake: Condvar::new(),
            progress: watch::Sender::new(Progress::default()),
        });
        let thread = {
            let (shared, medium) = (Arc::clone(&shared), Arc::clone(&medium));
            let write = move || {
                if let Some(begins) = begins {
                    shared.begin(&medium, &begins);
                }
                shared.write(&*medium, &mut checkpoints);
            };
            thread::Builder::new().name("journal".to_owned()).spawn(write)?
        };
        Ok(Writer { shared, medium, thread: Mutex::new(Some(thread)), notices: Vec::new() })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.shared.queue)
    }

    pub(super) fn note(&self, line: Vec<u8>, need: Need, tip: Tip) {
        let mut queue = self.queue();
        if queue.kept != Keeping::Yes {
            return;
        }
        queue.batch.lines.extend_from_slice(&line);
        queue.batch.end = Some((tip, clock::unix_micros()));
        queue.marks.records += 1;
        queue.told += 1;
        if need == Need::Commit {
            queue.hurry();
            self.shared.wake.notify_one();
        } else if queue.batch.lines.len() == line.len() || queue.batch.lines.len() > LATER_BYTES_MAX {
            // It sets the time of the next commit, or brings it on.
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn mark(&self, n: u64, snapshot: Option<Snapshot>) {
        self.add(|batch| batch.snapshots.push((n, snapshot)));
    }

    /// So many worlds were opened beside this one.
    pub(super) fn count_worlds(&self, worlds: u64) {
        self.add(|batch| batch.worlds = Some(worlds));
    }

    pub(super) fn go_back(&self, back: Return) {
        self.add(|batch| batch.returns.push(back));
    }

    fn add(&self, act: impl FnOnce(&mut Batch)) {
        let mut queue = self.queue();
        if queue.kept == Keeping::Yes {
            act(&mut queue.batch);
            queue.told += 1;
            queue.hurry();
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn hold(&self, posts: Posts) {
        let mut queue = self.queue();
        if queue.kept == Keeping::Yes {
            queue.held.push(posts);
            queue.told += 1;
            queue.hurry();
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn ticket(&self) -> Option<Ticket> {
        let queue = self.queue();
        let Progress { failures, durable } = queue.progress;
        if queue.kept != Keeping::Yes {
            // What was told after the failure was not even taken.
            return Some(Ticket { failures: failures.wrapping_sub(1), durable });
        }
        (durable < queue.must).then_some(Ticket { failures, durable: queue.must })
    }

    /// Lets the next commit come at once; answers may leave without it.
    pub(super) fn hurry(&self) -> Option<Ticket> {
        self.queue().hurry();
        self.shared.wake.notify_one();
        self.ticket()
    }

    /// Waits until it is on the disk; says whether it is.
    pub(crate) async fn wait(&self, ticket: Ticket) -> bool {
        let mut progress = self.shared.progress.subscribe();
        let over = |it: &Progress| it.failures != ticket.failures || it.durable >= ticket.durable;
        match progress.wait_for(over).await {
            Ok(reached) => reached.failures == ticket.failures,
            // The writer is gone with what it had to write.
            Err(_) => false,
        }
    }

    /// Waits until the disk has failed more often than so many times; says how often it has.
    pub(crate) async fn fails(&self, times: u64) -> u64 {
        let mut progress = self.shared.progress.subscribe();
        let failed = progress.wait_for(|it| it.failures > times).await.map(|it| it.failures);
        // The sender is part of this writer.
        failed.unwrap_or(times)
    }

    /// The notices about how it was opened, a sentence each.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns the present state of durability.
    pub(crate) fn kept(&self) -> Keeping {
        self.queue().kept
    }

    /// Returns the reason why changes are not kept.
    pub(crate) fn why(&self) -> String {
        self.queue().why.clone()
    }

    pub(super) fn with_marks<T>(&self, act: impl FnOnce(&mut Marks) -> T) -> T {
        act(&mut self.queue().marks)
    }

    /// The disk; `None` while it fails.
    pub(super) fn disk(&self) -> Option<Arc<Disk>> {
        self.queue().disk.clone()
    }

    /// The database that can still be read although its file was removed or replaced; `None` once the file is back, and then
    /// nobody holds it any more.
    pub(super) fn removed(&self) -> Option<Arc<Disk>> {
        let mut queue = self.queue();
        if self.medium.check_in_place().is_ok() {
            queue.removed = None;
        }
        queue.removed.clone()
    }

    /// Returns the position of the world at the end of the latest commit, with the time of day then, and the marks
    /// then.
    pub(super) fn reached(&self) -> (Option<(Tip, u64)>, Marks) {
        self.queue().last.clone()
    }

    /// Returns the position of the world at the end of the latest commit, and the time of day then in microseconds
    /// since 1970.
    pub(crate) fn stood(&self) -> Option<(Tip, u64)> {
        self.queue().last.0
    }

    /// The world is the one that [`Writer::reopen`] gave. From now on changes are kept again, or it can be read at least.
    pub(crate) fn recover(&self, disk: Option<ReopenedDisk>) {
        let mut queue = self.queue();
        queue.kept = if disk.is_some() { Keeping::Yes } else { Keeping::ReadOnly };
        queue.disk = disk.map(|ReopenedDisk(disk)| disk);
    }

    /// Closes the file and takes it away, which is done once the ticket is.
    pub(crate) fn discard(&self) -> Option<Ticket> {
        {
            let mut queue = self.queue();
            (queue.is_closing, queue.is_discarded) = (true, true);
            queue.told += 1;
            queue.must = queue.told;
        }
        self.shared.wake.notify_one();
        self.ticket()
    }

    /// Writes what is left, and closes the file. Later records are lost.
    pub(crate) fn close(&self) {
        self.queue().is_closing = true;
        self.shared.wake.notify_one();
    }

    /// The same, and waits until the file is closed.
    pub(crate) fn finish(&self) {
        self.close();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic in it was printed already.
            let _ = thread.join();
        }
    }
}

/// A disk that can be written to again.
pub(crate) struct ReopenedDisk(pub(super) Arc<Disk>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Queue {
    fn hurry(&mut self) {
        // While the disk fails there is nothing to be written.
        if self.kept == Keeping::Yes {
            self.is_urgent = true;
            self.must = self.told;
        }
    }

    fn has_work(&self) -> bool {
        self.is_urgent
            || self.batch.lines.len() > LATER_BYTES_MAX
            || (self.is_closing && !self.batch.lines.is_empty())
    }

    /// Says after how long to ask again.
    fn tend(&self, checkpoints: &mut Checkpoints) -> Option<Duration> {
        let (end, marks) = &self.last;
        checkpoints.tend(self.disk.as_ref()?, end.map(|(tip, _)| tip), marks)
    }

    fn fail(&mut self, medium: &dyn Medium, error: &io::Error) {
        self.progress.failures += 1;
        // Whoever waits for more is told of the failure.
        self.progress.durable = self.told;
        self.why = error.to_string();
        self.kept = Keeping::No;
        let disk = self.disk.take();
        // Where the file is in its place it is opened again, by nobody else at the same time.
        self.removed = disk.filter(|_| medium.check_in_place().is_err());
        self.marks = self.last.1.clone();
        self.batch = Batch { first: self.marks.records, ..Batch::default() };
        self.must = self.told;
        self.held.clear();
        self.is_urgent = false;
    }
}

impl WriterState {
    /// Makes the file.
    fn begin(&self, medium: &Arc<dyn Medium>, Begins { setup, opening, first }: &Begins) {
        let begun = Disk::open(medium, DatabaseAccess::Create)
            .and_then(|disk| disk.begin(setup, Some(opening), first).map(|()| Arc::new(disk)));
        let mut queue = lock(&self.queue);
        match begun {
            Ok(disk) => (queue.disk, queue.progress.durable) = (Some(disk), 1),
            Err(error) => queue.fail(&**medium, &error),
        }
        self.progress.send_replace(queue.progress);
    }

    /// Until the journal is closed.
    fn write(&self, medium: &dyn Medium, checkpoints: &mut Checkpoints) {
        let mut queue = lock(&self.queue);
        loop {
            while !queue.has_work() {
                if queue.is_closing {
                    drop(queue);
                    checkpoints.stop();
                    queue = lock(&self.queue);
                    queue.disk = None;
                    if queue.is_discarded {
                        match medium.remove() {
                            Ok(()) => queue.progress.durable = queue.told,
                            Err(error) => queue.fail(medium, &error),
                        }
                        self.progress.send_replace(queue.progress);
                    }
                    return;
                }
                if queue.batch.lines.is_empty() || queue.disk.is_none() {
                    let pause = queue.tend(checkpoints).unwrap_or(REST);
                    let waited = self.wake.wait_timeout(queue, pause);
                    queue = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
                    continue;
                }
                let (next, waited) =
                    self.wake.wait_timeout(queue, LATER).unwrap_or_else(std::sync::PoisonError::into_inner);
                queue = next;
                if waited.timed_out() {
                    break;
                }
            }
            let Some(disk) = queue.disk.clone() else { continue };
            let marks = queue.marks.clone();
            let batch = take(&mut queue.batch);
            queue.batch.first = marks.records;
            let (held, told) = (take(&mut queue.held), queue.told);
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
                    queue.last.0 = batch.end.or(queue.last.0);
                    queue.last.1 = marks;
                    queue.progress.durable = told;
                    self.progress.send_replace(queue.progress);
                    held.into_iter().for_each(|posts| posts());
                    queue.tend(checkpoints);
                }
                Err(error) => {
                    queue.fail(medium, &error);
                    self.progress.send_replace(queue.progress);
                }
            }
        }
    }
}
