//! The bytes of answers that clients have yet to take, so that clients who take none, or hardly any, cannot fill the
//! memory nor keep the others from being answered.

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

/// An answer up to this size is not counted: there is at most one for each connection.
const SMALL_BYTES: usize = 16 * 1_024;

/// The time after which a slow response may be dropped for others, if there is no room for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time that a response waits for connections that were asked to close.
const CLOSING: Duration = Duration::from_millis(500);

/// Room for the answers that are on their way.
pub(crate) struct InFlight {
    most: usize,
    room: Arc<Room>,
    /// One answer at a time waits, because it takes memory meanwhile.
    turn: Semaphore,
}

#[derive(Default)]
struct Room {
    held: Mutex<HeldAnswers>,
    /// Notified when an answer gives its room back to one that waits.
    freed: Notify,
}

/// The answers on their way, in the order in which they began.
#[derive(Default)]
struct HeldAnswers {
    answers: BTreeMap<u64, HeldAnswer>,
    begun: u64,
    /// The sum of their bytes.
    taken: usize,
    /// Bytes that the answer that waits will take; 0 if none waits.
    promised: usize,
}

struct HeldAnswer {
    bytes: usize,
    since: Instant,
    /// The connection that it goes over.
    activity: Arc<Activity>,
}

/// Bytes with their room, which is given back when the last of them is gone.
struct HeldBytes {
    bytes: Bytes,
    number: u64,
    room: Arc<Room>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut held = self.room.held();
        held.remove(self.number);
        let is_awaited = held.promised > 0;
        drop(held);
        if is_awaited {
            self.room.freed.notify_waiters();
        }
    }
}

impl InFlight {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> InFlight {
        InFlight { most: bytes, room: Arc::default(), turn: Semaphore::new(1) }
    }

    /// The same bytes, counted until the last of them is gone; `None` if there is no room for them. Bytes that would
    /// never fit take all the room. Where there is none, the connections that have used it the longest are closed.
    pub(crate) async fn hold(&self, bytes: Bytes, activity: &Arc<Activity>) -> Option<Bytes> {
        if bytes.len() <= SMALL_BYTES {
            return Some(bytes);
        }
        let needed = bytes.len().min(self.most);
        let number = match self.take(needed, activity) {
            Some(number) => number,
            None => Box::pin(self.displace(needed, activity)).await?,
        };
        Some(Bytes::from_owner(HeldBytes { bytes, number, room: Arc::clone(&self.room) }))
    }

    /// The number of a place for so many bytes, if there is room that nobody was promised.
    fn take(&self, needed: usize, activity: &Arc<Activity>) -> Option<u64> {
        let mut held = self.room.held();
        if held.taken + held.promised + needed > self.most {
            return None;
        }
        Some(held.insert(needed, activity))
    }

    /// Closes slow connections and takes their place.
    async fn displace(&self, needed: usize, activity: &Arc<Activity>) -> Option<u64> {
        let _turn = self.turn.try_acquire().ok()?;
        let promise = {
            let mut held = self.room.held();
            let missing = (held.taken + needed).saturating_sub(self.most);
            if !held.make_room(missing) {
                return None;
            }
            held.promised = needed;
            Promise(&self.room)
        };
        let room = async {
            loop {
                // Listening begins before the look, so that no end falls between the two.
                let mut freed = pin!(self.room.freed.notified());
                freed.as_mut().enable();
                if self.room.held().taken + needed <= self.most {
                    return;
                }
                freed.await;
            }
        };
        timeout(CLOSING, room).await.ok()?;
        drop(promise);
        self.take(needed, activity)
    }
}

/// Room that others do not get until this is dropped.
struct Promise<'a>(&'a Room);

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        self.0.held().promised = 0;
    }
}

impl HeldAnswers {
    /// Adds an answer, and returns its number.
    fn insert(&mut self, bytes: usize, activity: &Arc<Activity>) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.taken += bytes;
        let since = Instant::now();
        self.answers.insert(number, HeldAnswer { bytes, since, activity: Arc::clone(activity) });
        number
    }

    fn remove(&mut self, number: u64) {
        if let Some(gone) = self.answers.remove(&number) {
            self.taken -= gone.bytes;
        }
    }

    /// Closes connections that are slow, the slowest first, if so many bytes become free by it. Says whether they do.
    fn make_room(&self, missing: usize) -> bool {
        let (mut freed, mut slow) = (0, Vec::new());
        for place in self.answers.values().take_while(|place| place.since.elapsed() >= PATIENCE) {
            if freed >= missing {
                break;
            }
            slow.push(place);
            freed += place.bytes;
        }
        if freed < missing {
            return false;
        }
        slow.iter().for_each(|place| place.activity.cut_off());
        true
    }
}

impl Room {
    fn held(&self) -> MutexGuard<'_, HeldAnswers> {
        // Nothing that can panic happens under the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Bytes {
        vec![b'x'; len].into()
    }

    async fn hold(room: &InFlight, len: usize) -> Option<Bytes> {
        room.hold(bytes(len), &Arc::new(Activity::new())).await
    }

    #[tokio::test]
    async fn room_is_given_back_with_the_last_byte() {
        let room = InFlight::new(3 * SMALL_BYTES);
        let first = hold(&room, 2 * SMALL_BYTES).await.expect("there is room");
        let part = first.slice(1..);
        drop(first);
        assert_eq!(hold(&room, 2 * SMALL_BYTES).await, None, "a part of the first is still there");
        assert!(hold(&room, SMALL_BYTES).await.is_some(), "a small one is not counted");
        drop(part);
        assert!(hold(&room, 2 * SMALL_BYTES).await.is_some());
    }

    #[tokio::test]
    async fn an_answer_that_would_never_fit_goes_alone() {
        let room = InFlight::new(2 * SMALL_BYTES);
        let all = hold(&room, 9 * SMALL_BYTES).await.expect("nobody else is there");
        assert_eq!(hold(&room, SMALL_BYTES + 1).await, None);
        assert_eq!(all.len(), 9 * SMALL_BYTES);
    }

    /// Four answers begin, one each second, in a room for four; connections that are told to close do. Then another one
    /// asks for so many places. Says which of the four are closed, and whether the other one has its room.
    async fn check(after: Duration, places: usize, closed: [bool; 4], finds_room: bool) {
        const PLACE: usize = 2 * SMALL_BYTES;
        let room = InFlight::new(4 * PLACE);
        let mut four = Vec::new();
        for _ in 0..4 {
            let activity = Arc::new(Activity::new());
            let answer = room.hold(bytes(PLACE), &activity).await.expect("there is room");
            four.push(tokio::spawn(async move {
                activity.closing().await;
                drop(answer);
            }));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        tokio::time::advance(after).await;
        let found = hold(&room, places * PLACE).await;
        tokio::task::yield_now().await;
        let seen: Vec<_> = four.iter().map(|connection| connection.is_finished()).collect();
        assert_eq!((seen.as_slice(), found.is_some()), (&closed[..], finds_room), "{after:?} {places}");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_slow_the_longest_gives_way() {
        let none = Duration::ZERO;
        check(none, 1, [true, false, false, false], true).await;
        check(none, 2, [true, true, false, false], true).await;
        // The last one has not had its time yet, and nobody is closed in vain.
        check(none, 4, [false; 4], false).await;
        check(Duration::from_secs(9), 9, [true; 4], true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_does_not_close_is_not_waited_for_long() {
        let room = InFlight::new(2 * SMALL_BYTES);
        let _stuck = hold(&room, 2 * SMALL_BYTES).await.expect("there is room");
        tokio::time::advance(PATIENCE).await;
        let began = Instant::now();
        assert_eq!(hold(&room, 2 * SMALL_BYTES).await, None);
        assert_eq!(began.elapsed(), CLOSING);
    }
}
