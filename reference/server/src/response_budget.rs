//! [`ResponseBudget`]: the memory budget of responses that clients have not received yet, so that slow clients can
//! neither fill the memory nor block others.

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
pub(crate) struct ResponseBudget {
    bytes_max: usize,
    shared: Arc<SharedBudget>,
    /// One response at a time waits, because a waiting response uses memory.
    waiting_slot: Semaphore,
}

/// The part of the budget that responses keep alive until they are sent.
#[derive(Default)]
struct SharedBudget {
    state: Mutex<BudgetState>,
    /// Notified when a response frees its memory and another response waits for it.
    freed: Notify,
}

#[derive(Default)]
struct BudgetState {
    /// The responses that are being sent, by number, so oldest first.
    responses: BTreeMap<u64, PendingResponse>,
    next_number: u64,
    /// The sum of the sizes of all responses.
    used_bytes: usize,
    /// The size of the waiting response; 0 if none waits.
    waiting_bytes: usize,
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
    shared: Arc<SharedBudget>,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        let mut budget = self.shared.lock();
        budget.remove(self.number);
        let has_waiting = budget.waiting_bytes > 0;
        drop(budget);
        if has_waiting {
            self.shared.freed.notify_waiters();
        }
    }
}

impl ResponseBudget {
    /// Creates a budget of a number of bytes.
    pub(crate) fn new(bytes: usize) -> ResponseBudget {
        ResponseBudget { bytes_max: bytes, shared: Arc::default(), waiting_slot: Semaphore::new(1) }
    }

    /// Reserves memory for a body until its last reference is dropped. A body over the limit uses the whole budget. If
    /// memory is short, the connections with the longest-running responses are closed; returns `None` if that is not
    /// enough.
    pub(crate) async fn reserve(&self, bytes: Bytes, activity: &Arc<Activity>) -> Option<Bytes> {
        if bytes.len() <= SMALL_BYTES {
            return Some(bytes);
        }
        let needed = bytes.len().min(self.bytes_max);
        let number = match self.try_reserve(needed, activity) {
            Some(number) => number,
            None => Box::pin(self.reclaim(needed, activity)).await?,
        };
        Some(Bytes::from_owner(ReservedBytes { bytes, number, shared: Arc::clone(&self.shared) }))
    }

    /// Reserves memory if there is enough besides that of the waiting response; returns the number of the entry.
    fn try_reserve(&self, needed: usize, activity: &Arc<Activity>) -> Option<u64> {
        let mut budget = self.shared.lock();
        if budget.used_bytes + budget.waiting_bytes + needed > self.bytes_max {
            return None;
        }
        Some(budget.insert(needed, activity))
    }

    /// Closes slow connections and reserves their memory; returns the number of the entry.
    async fn reclaim(&self, needed: usize, activity: &Arc<Activity>) -> Option<u64> {
        let _waiting_slot = self.waiting_slot.try_acquire().ok()?;
        let reservation = {
            let mut budget = self.shared.lock();
            let missing = (budget.used_bytes + needed).saturating_sub(self.bytes_max);
            if !budget.close_slow_connections(missing) {
                return None;
            }
            budget.waiting_bytes = needed;
            WaitingReservation(&self.shared)
        };
        let enough_is_free = async {
            loop {
                // Register before checking, so that no notification is lost between the two.
                let mut freed = pin!(self.shared.freed.notified());
                freed.as_mut().enable();
                if self.shared.lock().used_bytes + needed <= self.bytes_max {
                    return;
                }
                freed.await;
            }
        };
        timeout(CLOSE_WAIT, enough_is_free).await.ok()?;
        drop(reservation);
        self.try_reserve(needed, activity)
    }
}

/// Guard of the memory that is reserved for the waiting response.
struct WaitingReservation<'a>(&'a SharedBudget);

impl Drop for WaitingReservation<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting_bytes = 0;
    }
}

impl BudgetState {
    /// Adds a response and returns its number.
    fn insert(&mut self, bytes: usize, activity: &Arc<Activity>) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.used_bytes += bytes;
        let since = Instant::now();
        self.responses.insert(number, PendingResponse { bytes, since, activity: Arc::clone(activity) });
        number
    }

    fn remove(&mut self, number: u64) {
        if let Some(removed) = self.responses.remove(&number) {
            self.used_bytes -= removed.bytes;
        }
    }

    /// Closes slow connections, the oldest first, if that frees enough bytes; returns `true` if it does.
    fn close_slow_connections(&self, missing: usize) -> bool {
        let (mut freed, mut slow) = (0, Vec::new());
        for response in self.responses.values().take_while(|response| response.since.elapsed() >= SLOW_AFTER)
        {
            if freed >= missing {
                break;
            }
            slow.push(response);
            freed += response.bytes;
        }
        if freed < missing {
            return false;
        }
        slow.iter().for_each(|response| response.activity.close_at_once());
        true
    }
}

impl SharedBudget {
    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        // No code under the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Bytes {
        vec![b'x'; len].into()
    }

    async fn reserve(budget: &ResponseBudget, len: usize) -> Option<Bytes> {
        budget.reserve(bytes(len), &Arc::new(Activity::new())).await
    }

    #[tokio::test]
    async fn memory_is_returned_with_the_last_reference() {
        let budget = ResponseBudget::new(3 * SMALL_BYTES);
        let first = reserve(&budget, 2 * SMALL_BYTES).await.expect("memory is available");
        let part = first.slice(1..);
        drop(first);
        assert_eq!(
            reserve(&budget, 2 * SMALL_BYTES).await,
            None,
            "a part of the first response is still in use"
        );
        assert!(reserve(&budget, SMALL_BYTES).await.is_some(), "a small response is not counted");
        drop(part);
        assert!(reserve(&budget, 2 * SMALL_BYTES).await.is_some());
    }

    #[tokio::test]
    async fn a_response_over_the_limit_uses_the_whole_budget() {
        let budget = ResponseBudget::new(2 * SMALL_BYTES);
        let all = reserve(&budget, 9 * SMALL_BYTES).await.expect("the budget is unused");
        assert_eq!(reserve(&budget, SMALL_BYTES + 1).await, None);
        assert_eq!(all.len(), 9 * SMALL_BYTES);
    }

    /// Starts four responses, one each second, with a budget for four, on connections that close when required. Then
    /// another response needs the memory of `needed` of them. Checks which of the four are closed, and whether the
    /// other response gets its memory.
    async fn check_reclaim(
        after: Duration,
        needed: usize,
        expected_closed: [bool; 4],
        expected_reserved: bool,
    ) {
        const UNIT: usize = 2 * SMALL_BYTES;
        let budget = ResponseBudget::new(4 * UNIT);
        let mut four = Vec::new();
        for _ in 0..4 {
            let activity = Arc::new(Activity::new());
            let response = budget.reserve(bytes(UNIT), &activity).await.expect("memory is available");
            four.push(tokio::spawn(async move {
                activity.wait_for_close().await;
                drop(response);
            }));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        tokio::time::advance(after).await;
        let reserved = reserve(&budget, needed * UNIT).await;
        tokio::task::yield_now().await;
        let closed: Vec<_> = four.iter().map(|connection| connection.is_finished()).collect();
        assert_eq!(
            (closed.as_slice(), reserved.is_some()),
            (&expected_closed[..], expected_reserved),
            "{after:?} {needed}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_response_is_dropped_first() {
        let at_once = Duration::ZERO;
        check_reclaim(at_once, 1, [true, false, false, false], true).await;
        check_reclaim(at_once, 2, [true, true, false, false], true).await;
        // The newest response is not slow yet, and no connection is closed without effect.
        check_reclaim(at_once, 4, [false; 4], false).await;
        check_reclaim(Duration::from_secs(9), 9, [true; 4], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_close_is_not_waited_for_long() {
        let budget = ResponseBudget::new(2 * SMALL_BYTES);
        let _stuck = reserve(&budget, 2 * SMALL_BYTES).await.expect("memory is available");
        tokio::time::advance(SLOW_AFTER).await;
        let started_at = Instant::now();
        assert_eq!(reserve(&budget, 2 * SMALL_BYTES).await, None);
        assert_eq!(started_at.elapsed(), CLOSE_WAIT);
    }
}
