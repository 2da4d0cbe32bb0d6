//! What a connection is doing, for its own stream and for whoever hands out the seats.

use std::sync::{
    LazyLock,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use tokio::{sync::Notify, time::Instant};

/// What all moments are counted from, so that they can be compared and fit into an atomic.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What one connection is doing. Nothing in it orders anything else, so relaxed is enough.
pub(crate) struct Activity {
    /// Beginnings and ends of requests: odd while one is being answered.
    turns: AtomicU32,
    /// When a byte last moved, in milliseconds.
    moved_at: AtomicU64,
    leave: Notify,
    /// Rings when it is closed, whatever it does.
    cut: Notify,
    /// How long it had been quiet when it was last asked to leave.
    asked: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Activity {
        let activity = Activity {
            turns: AtomicU32::new(0),
            moved_at: AtomicU64::new(0),
            leave: Notify::new(),
            cut: Notify::new(),
            asked: AtomicU64::new(u64::MAX),
        };
        activity.on_move(Instant::now());
        activity
    }

    /// A request begins or ends.
    pub(crate) fn on_turn(&self) {
        self.turns.fetch_add(1, Relaxed);
    }

    /// Beginnings and ends of requests so far.
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Relaxed)
    }

    /// A byte moved in either direction.
    pub(crate) fn on_move(&self, at: Instant) {
        let millis = at.saturating_duration_since(*ORIGIN).as_millis();
        self.moved_at.store(u64::try_from(millis).unwrap_or(u64::MAX), Relaxed);
    }

    /// Since when no byte has moved, in milliseconds from some beginning; `None` while a request is being answered.
    pub(crate) fn quiet_since(&self) -> Option<u64> {
        self.turns().is_multiple_of(2).then(|| self.moved_at.load(Relaxed))
    }

    /// Somebody else needs the seat, if this one has been quiet since then.
    pub(crate) fn ask_to_leave(&self, quiet_since: u64) {
        self.asked.store(quiet_since, Relaxed);
        self.leave.notify_one();
    }

    /// It is closed, even in the middle of an answer.
    pub(crate) fn cut_off(&self) {
        self.cut.notify_one();
    }

    /// Ends when the connection is to be closed.
    pub(crate) async fn told_to_go(&self) {
        self.cut.notified().await;
    }

    /// Ends when somebody else needs the seat; says whether it has been quiet until now.
    pub(crate) async fn asked_to_leave(&self) -> bool {
        self.leave.notified().await;
        self.quiet_since() == Some(self.asked.load(Relaxed))
    }
}
