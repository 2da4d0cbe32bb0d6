//! Stored worlds that are not open yet: the server already listens, and a request to such a world waits until it is open.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use reference_core::id::Code;
use tokio::sync::watch;

/// A stored world that cannot be opened.
#[derive(Clone, Debug)]
pub struct UnavailableWorld {
    /// The id of the world, or the name of a file or directory that is not a world.
    pub id: String,
    /// The reason.
    pub why: String,
}

/// The progress of opening the stored worlds.
#[derive(Clone, Debug, Default)]
pub struct OpeningProgress {
    /// The number of worlds that are not open yet.
    pub waiting: usize,
    /// The worlds that cannot be opened. Their files are not changed.
    pub unavailable: Vec<UnavailableWorld>,
    /// Notices about open worlds for the operator, one sentence each, such as an ignored checkpoint, recovered damage, or a
    /// clock that is ahead.
    pub notices: Vec<String>,
}

/// The stored worlds that are not open yet.
#[derive(Default)]
pub(super) struct WaitingWorlds {
    queue: Mutex<OpeningQueue>,
    /// The number of worlds that are not open yet, for readers without the lock.
    remaining: AtomicUsize,
    /// The progress, for observers.
    openings: watch::Sender<OpeningProgress>,
}

#[derive(Default)]
struct OpeningQueue {
    /// The ids in the order of opening.
    next: VecDeque<Code>,
    /// The worlds that are being opened.
    in_progress: BTreeSet<Code>,
}

impl WaitingWorlds {
    /// Creates the queue. `initial`: the progress before the first opening.
    pub(super) fn new(worlds: VecDeque<Code>, initial: OpeningProgress) -> WaitingWorlds {
        let waiting = worlds.len();
        WaitingWorlds {
            queue: Mutex::new(OpeningQueue { next: worlds, in_progress: BTreeSet::new() }),
            remaining: AtomicUsize::new(waiting),
            openings: watch::Sender::new(OpeningProgress { waiting, ..initial }),
        }
    }

    /// Adds a notice for the operator, if there is one.
    pub(super) fn add_notice(&self, notice: Option<String>) {
        self.openings.send_modify(|openings| openings.notices.extend(notice));
    }

    /// Takes the next world to open, if one is left; the caller reports the result with [`finish`](WaitingWorlds::finish).
    pub(super) fn take(&self) -> Option<Code> {
        let mut queue = self.queue();
        let id = queue.next.pop_front()?;
        queue.in_progress.insert(id);
        Some(id)
    }

    /// Reports a world as open, with notices, or as unavailable, with the reason.
    pub(super) fn finish(&self, id: Code, opened: Result<Vec<String>, String>) {
        self.queue().in_progress.remove(&id);
        self.remaining.fetch_sub(1, Ordering::Release);
        self.openings.send_modify(|openings| {
            openings.waiting -= 1;
            match opened {
                Ok(notices) => openings.notices.extend(notices),
                Err(why) => openings.unavailable.push(UnavailableWorld { id: id.to_string(), why }),
            }
        });
    }

    /// Empties the queue, so that no further world is opened. Its worlds still count as not open.
    pub(super) fn stop(&self) {
        self.queue().next.clear();
    }

    /// Returns the number of worlds that are not open yet. Takes no lock.
    pub(super) fn remaining(&self) -> usize {
        self.remaining.load(Ordering::Acquire)
    }

    /// Returns the progress of opening the stored worlds.
    pub(super) fn openings(&self) -> watch::Receiver<OpeningProgress> {
        self.openings.subscribe()
    }

    /// Returns `true` if a world is stored and not open yet.
    pub(super) fn has(&self, id: Code) -> bool {
        let queue = self.queue();
        queue.in_progress.contains(&id) || queue.next.contains(&id)
    }

    /// Moves a world to the front of the queue and waits until it is open or unavailable, or the queue was emptied.
    pub(super) async fn prioritize_and_wait(&self, id: Code) {
        let mut openings = self.openings.subscribe();
        while self.prioritize(id) {
            // The sender lives as long as `self`.
            let _ = openings.changed().await;
        }
    }

    /// Waits until every world is open or unavailable.
    pub(super) async fn wait_for_all(&self) {
        let _ = self.openings.subscribe().wait_for(|openings| openings.waiting == 0).await;
    }

    /// Moves a world to the front of the queue if it is in the queue. Returns `true` if it is, or is being opened.
    fn prioritize(&self, id: Code) -> bool {
        let mut queue = self.queue();
        if let Some(index) = queue.next.iter().position(|waiting| *waiting == id) {
            queue.next.remove(index);
            queue.next.push_front(id);
            return true;
        }
        queue.in_progress.contains(&id)
    }

    fn queue(&self) -> MutexGuard<'_, OpeningQueue> {
        // A panic cannot leave the data half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn a_requested_world_is_opened_first() {
        let ids = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"].map(|id| Code::parse(id).expect("an id"));
        let [a, b, c] = ids;
        let waiting = Arc::new(WaitingWorlds::new(ids.into(), OpeningProgress::default()));
        assert_eq!(waiting.take(), Some(a));
        let request = |id| {
            let waiting = Arc::clone(&waiting);
            tokio::spawn(async move { waiting.prioritize_and_wait(id).await })
        };
        let (request_of_a, request_of_c) = (request(a), request(c));
        tokio::task::yield_now().await;
        assert_eq!(waiting.take(), Some(c));
        waiting.finish(c, Ok(Vec::new()));
        request_of_c.await.expect("the task of a request does not panic");
        assert!(!request_of_a.is_finished() && waiting.has(a) && !waiting.has(c));
        waiting.finish(a, Err("damaged".to_owned()));
        request_of_a.await.expect("the task of a request does not panic");
        assert_eq!((waiting.remaining(), waiting.openings().borrow().unavailable.len()), (1, 1));
        waiting.prioritize_and_wait(a).await;
        assert_eq!(waiting.take(), Some(b));
        waiting.finish(b, Ok(vec!["a notice".to_owned()]));
        waiting.wait_for_all().await;
        assert_eq!(waiting.take(), None);
        assert_eq!(waiting.openings().borrow().notices, ["a notice"]);
    }
}
