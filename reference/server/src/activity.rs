//! [`Activity`]: the state of one connection. The connection updates it, and the accept loop uses it to evict idle
//! connections.

use std::sync::{
    LazyLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
};

use tokio::{sync::Notify, time::Instant};

/// The origin of the times in this module, which are milliseconds since this instant, so that they fit into an atomic.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// The value of `waiting_since` while the server does not wait for the client.
const NOT_WAITING: u64 = u64::MAX;
/// A client for which the server has waited longer than this is evicted before connections that are idle between two
/// requests.
const SLOW_CLIENT_AFTER_MS: u64 = 1_000;

/// The activity of one connection. The fields order no other memory access, so relaxed ordering is enough.
pub(crate) struct Activity {
    /// The number of starts and ends of requests: odd while a request is in progress.
    request_boundaries: AtomicU32,
    /// The time of the latest byte in either direction, in milliseconds.
    last_byte_at: AtomicU64,
    /// The start of the wait for the rest of a handshake, a head or a body, in milliseconds.
    waiting_since: AtomicU64,
    /// Notified when the connection must close, by eviction or at once. The connection polls it at every wake, so one
    /// notification is enough for both.
    close: Notify,
    /// `true` if the connection must close at once, even during a response.
    closes_at_once: AtomicBool,
    /// The value of `request_boundaries` at the latest eviction.
    boundaries_at_eviction: AtomicU32,
}

/// The rank of an idle connection: the smallest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Idleness {
    /// 0 for a slow client, 1 for a connection between two requests, 2 for a short wait for the client.
    rank: u8,
    /// The start of the wait, or the time of the latest byte.
    since: u64,
}

impl Activity {
    /// Creates the activity of a new connection, which waits for a handshake or a head.
    pub(crate) fn new() -> Activity {
        let now = millis(Instant::now());
        Activity {
            request_boundaries: AtomicU32::new(0),
            last_byte_at: AtomicU64::new(now),
            waiting_since: AtomicU64::new(now),
            close: Notify::new(),
            closes_at_once: AtomicBool::new(false),
            boundaries_at_eviction: AtomicU32::new(0),
        }
    }

    /// Counts the start or end of a request. Ends a wait for the client.
    pub(crate) fn on_request_boundary(&self) {
        self.waiting_since.store(NOT_WAITING, Relaxed);
        self.request_boundaries.fetch_add(1, Relaxed);
    }

    /// Returns the number of starts and ends of requests.
    pub(crate) fn request_boundary_count(&self) -> u32 {
        self.request_boundaries.load(Relaxed)
    }

    /// Records a byte in either direction.
    pub(crate) fn on_traffic(&self, at: Instant) {
        self.last_byte_at.store(millis(at), Relaxed);
    }

    /// Records that the server has waited for the rest of a head or a body since this time.
    pub(crate) fn on_wait_for_client(&self, since: Instant) {
        self.waiting_since.store(millis(since), Relaxed);
    }

    /// Records that the server waits for a body, until the guard is dropped.
    pub(crate) fn start_body_wait(&self) -> BodyWait<'_> {
        self.on_wait_for_client(Instant::now());
        BodyWait(self)
    }

    /// Returns the rank for eviction; `None` while a request is in progress, unless the server waits for its body.
    pub(crate) fn idleness(&self, now: Instant) -> Option<Idleness> {
        let waiting_since = self.waiting_since.load(Relaxed);
        if waiting_since != NOT_WAITING {
            let is_slow = millis(now).saturating_sub(waiting_since) > SLOW_CLIENT_AFTER_MS;
            return Some(Idleness { rank: if is_slow { 0 } else { 2 }, since: waiting_since });
        }
        let is_idle = self.request_boundary_count().is_multiple_of(2);
        is_idle.then(|| Idleness { rank: 1, since: self.last_byte_at.load(Relaxed) })
    }

    /// Closes the connection to make room for another one, unless it becomes active before it is notified.
    pub(crate) fn evict(&self) {
        self.boundaries_at_eviction.store(self.request_boundary_count(), Relaxed);
        self.close.notify_one();
    }

    /// Closes the connection at once, even during a response.
    pub(crate) fn close_at_once(&self) {
        self.closes_at_once.store(true, Relaxed);
        self.close.notify_one();
    }

    /// Waits until the connection must close.
    pub(crate) async fn wait_for_close(&self) {
        loop {
            self.close.notified().await;
            let is_still_idle = || {
                self.request_boundary_count() == self.boundaries_at_eviction.load(Relaxed)
                    && self.idleness(Instant::now()).is_some()
            };
            if self.closes_at_once.load(Relaxed) || is_still_idle() {
                return;
            }
        }
    }
}

/// Guard of a wait for a body.
pub(crate) struct BodyWait<'a>(&'a Activity);

impl Drop for BodyWait<'_> {
    fn drop(&mut self) {
        self.0.waiting_since.store(NOT_WAITING, Relaxed);
    }
}

/// Returns the milliseconds since [`ORIGIN`], which are never [`NOT_WAITING`].
fn millis(at: Instant) -> u64 {
    u64::try_from(at.saturating_duration_since(*ORIGIN).as_millis()).unwrap_or(NOT_WAITING - 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Letters are connections: `b` waits for a body, `h` for its first head, `i` is idle after a request, `a` has a
    /// request in progress. Each is opened a quarter of a second after the one before. `expected`: the indices in the
    /// order of eviction.
    async fn check_eviction_order(connections: &str, after_ms: u64, expected: &str) {
        let mut opened = Vec::new();
        for (index, kind) in connections.chars().enumerate() {
            let activity = Activity::new();
            if kind != 'h' {
                activity.on_request_boundary();
            }
            match kind {
                'b' => activity.on_wait_for_client(Instant::now()),
                'i' => activity.on_request_boundary(),
                _ => {}
            }
            opened.push((index, activity));
            tokio::time::advance(Duration::from_millis(250)).await;
        }
        tokio::time::advance(Duration::from_millis(after_ms)).await;
        let now = Instant::now();
        let mut order: Vec<_> =
            opened.iter().filter_map(|(index, activity)| Some((activity.idleness(now)?, *index))).collect();
        order.sort();
        let order: Vec<_> = order.iter().map(|(_, index)| index.to_string()).collect();
        assert_eq!(order.join(" "), expected, "{connections}");
    }

    #[tokio::test(start_paused = true)]
    async fn clients_awaited_for_over_a_second_are_evicted_before_idle_connections() {
        LazyLock::force(&ORIGIN);
        check_eviction_order("ibhai", 1_001, "1 2 0 4").await;
        // A wait of up to a second is not ranked as slow.
        check_eviction_order("ibhai", 0, "0 4 1 2").await;
        check_eviction_order("hbhb", 0, "0 1 2 3").await;
        check_eviction_order("aaa", 9_000, "").await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_received_body_is_no_longer_awaited() {
        let activity = Activity::new();
        activity.on_request_boundary();
        let body_wait = activity.start_body_wait();
        assert!(activity.idleness(Instant::now()).is_some());
        drop(body_wait);
        assert_eq!(activity.idleness(Instant::now()), None);
    }
}
