//! [`InFlight`]: the memory budget of responses that clients have not received yet, so that slow clients can neither
//! fill the memory nor block others.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, Semaphore},
    time::{Instant, timeout},
};

use crate::activity::Activity;

/// The maximum size of a response that is not counted; there is at most one for each connection.
const SMALL_BYTES: usize = 16 * 1_024;

/// The time after which a response that is still being sent may be dropped to free memory for others.
const SLOW_AFTER: Duration = Duration::from_secs(2);

/// The maximum time to wait for connections that are being closed.
const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// The memory budget of responses that are being sent.
pub(crate) struct InFlight {
    most: usize,
    room: Arc<Room>,
    /// One response at a time waits, because a waiting response uses memory.
    turn: Semaphore,
}

#[derive(Default)]
struct Room {
    held: Mutex<BudgetState>,
    /// Notified when a response frees its memory and another response waits for it.
    freed: Notify,
}

/// The responses that are being sent, oldest first.
#[derive(Default)]
struct BudgetState {
    answers: BTreeMap<u64, PendingResponse>,
    begun: u64,
    /// The sum of the sizes of all responses.
    taken: usize,
    /// The size of the waiting response; 0 if none waits.
    promised: usize,
}

struct PendingResponse {
    bytes: usize,
    since: Instant,
    /// The connection of the response.
    activity: Arc<Activity>,
}

/// A body whose memory is returned to the budget when its last reference is dropped.
struct ReservedBytes {
    bytes: Bytes,
    number: u64,
    room: Arc<Room>,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        let mut budget = self.room.lock();
        budget.remove(self.number);
        let is_awaited = budget.promised > 0;
        drop(budget);
        if is_awaited {
            self.room.freed.notify_waiters();
        }
    }
}

impl InFlight {
    /// Creates a budget of a number of bytes.
    pub(crate) fn new(bytes: usize) -> InFlight {
        InFlight { most: bytes, room: Arc::default(), turn: Semaphore::new(1) }
    }

    /// Reserves memory for a body until its last reference is dropped; returns `None` if there is none. A body over the
    /// limit takes the whole budget. Without room, the connections with the longest-running responses are closed.
    pub(crate) async fn reserve(&self, bytes: Bytes, activity: &Arc<Activity>) -> Option<Bytes> {
        if bytes.len() <= SMALL_BYTES {
            return Some(bytes);
        }
        let needed = bytes.len().min(self.most);
        let number = match self.take(needed, activity) {
            Some(number) => number,
            None => Box::pin(self.reclaim(needed, activity)).await?,
        };
        Some(Bytes::from_owner(ReservedBytes { bytes, number, room: Arc::clone(&self.room) }))
    }

    /// Reserves memory if there is enough besides that of the waiting response; returns the number of the entry.
    fn take(&self, needed: usize, activity: &Arc<Activity>) -> Option<u64> {
        let mut budget = self.room.lock();
        if budget.taken + budget.promised + needed > self.most {
            return None;
        }
        Some(budget.insert(needed, activity))
    }

    /// Closes slow connections and takes their memory.
    async fn reclaim(&self, needed: usize, activity: &Arc<Activity>) -> Option<u64> {
        let _turn = self.turn.try_acquire().ok()?;
        let promise = {
            let mut budget = self.room.lock();
            let missing = (budget.taken + needed).saturating_sub(self.most);
            if !budget.make_room(missing) {
                return None;
            }
            budget.promised = needed;
            Promise(&self.room)
        };
        let room = async {
            loop {
                // Register before checking, so that no notification is lost between the two.
                let mut freed = pin!(self.room.freed.notified());
                freed.as_mut().enable();
                if self.room.lock().taken + needed <= self.most {
                    return;
                }
                freed.await;
            }
        };
        timeout(CLOSE_WAIT, room).await.ok()?;
        drop(promise);
        self.take(needed, activity)
    }
}

/// Guard: memory that is reserved for the waiting response.
struct Promise<'a>(&'a Room);

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.0.lock().promised = 0;
    }
}

impl BudgetState {
    /// Adds a response and returns its number.
    fn insert(&mut self, bytes: usize, activity: &Arc<Activity>) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.taken += bytes;
        let since = Instant::now();
        self.answers.insert(number, PendingResponse { bytes, since, activity: Arc::clone(activity) });
        number
    }

    fn remove(&mut self, number: u64) {
        if let Some(gone) = self.answers.remove(&number) {
            self.taken -= gone.bytes;
        }
    }

    /// Closes slow connections, the oldest first, if that frees enough bytes; returns `true` if it does.
    fn make_room(&self, missing: usize) -> bool {
        let (mut freed, mut slow) = (0, Vec::new());
        for answer in self.answers.values().take_while(|answer| answer.since.elapsed() >= SLOW_AFTER) {
            if freed >= missing {
                break;
            }
            slow.push(answer);
            freed += answer.bytes;
        }
        if freed < missing {
            return false;
        }
        slow.iter().for_each(|answer| answer.activity.cut_off());
        true
    }
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        // No code under the lock can panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Bytes {
        vec![b'x'; len].into()
    }

    async fn reserve(room: &InFlight, len: usize) -> Option<Bytes> {
        room.reserve(bytes(len), &Arc::new(Activity::new())).await
    }

    #[tokio::test]
    async fn memory_is_returned_with_the_last_reference() {
        let room = InFlight::new(3 * SMALL_BYTES);
        let first = reserve(&room, 2 * SMALL_BYTES).await.expect("there is room");
        let part = first.slice(1..);
        drop(first);
        assert_eq!(reserve(&room, 2 * SMALL_BYTES).await, None, "a part of the first is still there");
        assert!(reserve(&room, SMALL_BYTES).await.is_some(), "a small one is not counted");
        drop(part);
        assert!(reserve(&room, 2 * SMALL_BYTES).await.is_some());
    }

    #[tokio::test]
    async fn a_response_over_the_limit_takes_the_whole_budget() {
        let room = InFlight::new(2 * SMALL_BYTES);
        let all = reserve(&room, 9 * SMALL_BYTES).await.expect("the budget is unused");
        assert_eq!(reserve(&room, SMALL_BYTES + 1).await, None);
        assert_eq!(all.len(), 9 * SMALL_BYTES);
    }

    /// Starts four responses, one each second, with a budget for four, on connections that close when required. Then
    /// another response needs the memory of `needed` of them. Checks which of the four are closed, and whether the
    /// other one gets its memory.
    async fn check(after: Duration, needed: usize, closed: [bool; 4], finds_room: bool) {
        const UNIT: usize = 2 * SMALL_BYTES;
        let room = InFlight::new(4 * UNIT);
        let mut four = Vec::new();
        for _ in 0..4 {
            let activity = Arc::new(Activity::new());
            let answer = room.reserve(bytes(UNIT), &activity).await.expect("there is room");
            four.push(tokio::spawn(async move {
                activity.wait_for_close().await;
                drop(answer);
            }));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        tokio::time::advance(after).await;
        let found = reserve(&room, needed * UNIT).await;
        tokio::task::yield_now().await;
        let seen: Vec<_> = four.iter().map(|connection| connection.is_finished()).collect();
        assert_eq!((seen.as_slice(), found.is_some()), (&closed[..], finds_room), "{after:?} {needed}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_response_is_dropped_first() {
        let none = Duration::ZERO;
        check(none, 1, [true, false, false, false], true).await;
        check(none, 2, [true, true, false, false], true).await;
        // The newest response is not slow yet, and no connection is closed without effect.
        check(none, 4, [false; 4], false).await;
        check(Duration::from_secs(9), 9, [true; 4], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_close_is_not_waited_for_long() {
        let room = InFlight::new(2 * SMALL_BYTES);
        let _stuck = reserve(&room, 2 * SMALL_BYTES).await.expect("there is room");
        tokio::time::advance(SLOW_AFTER).await;
        let began = Instant::now();
        assert_eq!(reserve(&room, 2 * SMALL_BYTES).await, None);
        assert_eq!(began.elapsed(), CLOSE_WAIT);
    }
}
