//! [`Activity`]: the state of a connection that its stream and the accept loop share, by which idle connections are
//! evicted.

use std::sync::{
    LazyLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

use tokio::{sync::Notify, time::Instant};

/// The origin of all times in this module, so that they are comparable and fit into an atomic.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// The value of `awaited_since` while the server waits for no client.
const NEVER: u64 = u64::MAX;
/// The time after which a waited-for client is evicted before connections that are idle between two requests.
const USUAL_WAIT_MS: u64 = 1_000;

/// The activity of one connection. The fields order no other memory access, so relaxed ordering is enough.
pub(crate) struct Activity {
    /// The number of starts and ends of requests: odd while a request is being answered.
    turns: AtomicU32,
    /// The time of the latest byte, in milliseconds.
    moved_at: AtomicU64,
    /// The time since which the server has been waiting for the rest of a handshake, a head or a body, in milliseconds.
    awaited_since: AtomicU64,
    /// Notified when the connection must close, by eviction or at once. The connection polls it at every wake, so one
    /// notification is enough for both.
    close: Notify,
    /// `true` if the connection must close at once, even during a response.
    is_cut: AtomicBool,
    /// The number of turns at the latest eviction.
    turns_at_eviction: AtomicU32,
}

/// The rank of an idle connection: the smallest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Idleness {
    rank: u8,
    since: u64,
}

impl Activity {
    /// Creates the activity of a new connection, which waits for a handshake or a head.
    pub(crate) fn new() -> Activity {
        let now = millis(Instant::now());
        Activity {
            turns: AtomicU32::new(0),
            moved_at: AtomicU64::new(now),
            awaited_since: AtomicU64::new(now),
            close: Notify::new(),
            is_cut: AtomicBool::new(false),
            turns_at_eviction: AtomicU32::new(0),
        }
    }

    /// Counts the start or end of a request.
    pub(crate) fn on_turn(&self) {
        self.awaited_since.store(NEVER, Relaxed);
        self.turns.fetch_add(1, Relaxed);
    }

    /// Returns the number of starts and ends of requests.
    pub(crate) fn turn_count(&self) -> u32 {
        self.turns.load(Relaxed)
    }

    /// Records a byte in either direction.
    pub(crate) fn on_traffic(&self, at: Instant) {
        self.moved_at.store(millis(at), Relaxed);
    }

    /// Records that the server waits for the rest of a head.
    pub(crate) fn on_await(&self, since: Instant) {
        self.awaited_since.store(millis(since), Relaxed);
    }

    /// Records that the server waits for a body, until the guard is dropped.
    pub(crate) fn await_body(&self) -> AwaitedBody<'_> {
        self.on_await(Instant::now());
        AwaitedBody(self)
    }

    /// Returns the rank for eviction; `None` while a request is being answered.
    pub(crate) fn idleness(&self, now: Instant) -> Option<Idleness> {
        let awaited_since = self.awaited_since.load(Relaxed);
        if awaited_since != NEVER {
            let is_long = millis(now).saturating_sub(awaited_since) > USUAL_WAIT_MS;
            return Some(Idleness { rank: if is_long { 0 } else { 2 }, since: awaited_since });
        }
        let is_idle = self.turn_count().is_multiple_of(2);
        is_idle.then(|| Idleness { rank: 1, since: self.moved_at.load(Relaxed) })
    }

    /// Closes the connection in favour of another one, unless a request arrives meanwhile.
    pub(crate) fn evict(&self) {
        self.turns_at_eviction.store(self.turn_count(), Relaxed);
        self.close.notify_one();
    }

    /// Closes the connection at once, even during a response.
    pub(crate) fn cut_off(&self) {
        self.is_cut.store(true, Relaxed);
        self.close.notify_one();
    }

    /// Waits until the connection must close.
    pub(crate) async fn wait_for_close(&self) {
        loop {
            self.close.notified().await;
            let is_quiet = || {
                self.turn_count() == self.turns_at_eviction.load(Relaxed)
                    && self.idleness(Instant::now()).is_some()
            };
            if self.is_cut.load(Relaxed) || is_quiet() {
                return;
            }
        }
    }
}

/// Guard: the server waits for a body.
pub(crate) struct AwaitedBody<'a>(&'a Activity);

impl Drop for AwaitedBody<'_> {
    fn drop(&mut self) {
        self.0.awaited_since.store(NEVER, Relaxed);
    }
}

fn millis(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*ORIGIN).as_millis()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Letters are connections: `b` waits for a body, `h` for its first head, `i` is idle after a request, `a` is being
    /// answered. Each is opened a quarter of a second after the one before. Returns the order of their eviction.
    async fn check(connections: &str, after_ms: u64, expected: &str) {
        let mut all = Vec::new();
        for (index, kind) in connections.chars().enumerate() {
            let activity = Activity::new();
            if kind != 'h' {
                activity.on_turn();
            }
            match kind {
                'b' => activity.on_await(Instant::now()),
                'i' => activity.on_turn(),
                _ => {}
            }
            all.push((index, activity));
            tokio::time::advance(Duration::from_millis(250)).await;
        }
        tokio::time::advance(Duration::from_millis(after_ms)).await;
        let now = Instant::now();
        let mut order: Vec<_> =
            all.iter().filter_map(|(index, activity)| Some((activity.idleness(now)?, *index))).collect();
        order.sort();
        let order: Vec<_> = order.iter().map(|(_, index)| index.to_string()).collect();
        assert_eq!(order.join(" "), expected, "{connections}");
    }

    #[tokio::test(start_paused = true)]
    async fn awaited_clients_are_evicted_before_idle_ones_and_the_longest_wait_first() {
        LazyLock::force(&ORIGIN);
        check("ibhai", 1_001, "1 2 0 4").await;
        // A wait of up to a second is not ranked as slow.
        check("ibhai", 0, "0 4 1 2").await;
        check("hbhb", 0, "0 1 2 3").await;
        check("aaa", 9_000, "").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_received_body_is_no_longer_awaited() {
        let activity = Activity::new();
        activity.on_turn();
        let awaited = activity.await_body();
        assert!(activity.idleness(Instant::now()).is_some());
        drop(awaited);
        assert_eq!(activity.idleness(Instant::now()), None);
    }
}
