//! [`RequestSchedule`]: the due times of requests, and [`RetryAfterGate`]: pauses after a 429.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

/// The shortest sleep of `RequestSchedule::release_tickets`.
const SLEEP_MIN: Duration = Duration::from_micros(50);
/// The longest sleep of `RequestSchedule::release_tickets`, so that it soon notices an interrupt.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The time that the last requests of a run may wait for a connection.
const LAST_TICKET_WAIT: Duration = Duration::from_millis(20);

/// The schedule of a run at a rate: each request (*ticket*) has a due time, and the next free connection takes it.
pub(crate) struct RequestSchedule {
    /// The number of tickets per second.
    rate: u64,
    /// The number of tickets of the run.
    total: u64,
    /// A permit for each ticket that is due and not taken.
    permits: Semaphore,
    /// The number of tickets that connections took.
    taken: AtomicU64,
    /// The number of released tickets.
    released: AtomicU64,
    stopped: AtomicBool,
}

impl RequestSchedule {
    pub(crate) fn new(rate: NonZeroU32, duration: Duration) -> RequestSchedule {
        let rate = u64::from(rate.get());
        let total = u64::try_from(duration.as_millis() * u128::from(rate) / 1_000).unwrap_or(u64::MAX).max(1);
        RequestSchedule {
            rate,
            total,
            permits: Semaphore::new(0),
            taken: AtomicU64::new(0),
            released: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    /// Returns the due time of the `nth` ticket, counted from the start.
    pub(crate) fn due_time(&self, nth: u64) -> Duration {
        let nanos = u128::from(nth) * 1_000_000_000 / u128::from(self.rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the number of tickets that are due by this time after the start.
    fn tickets_due_by(&self, elapsed: Duration) -> u64 {
        // The first ticket is due at the start.
        let due = elapsed.as_nanos() * u128::from(self.rate) / 1_000_000_000 + 1;
        u64::try_from(due).unwrap_or(u64::MAX).min(self.total)
    }

    /// Waits until a ticket is due, and returns its number; `None` once the run is over.
    pub(crate) async fn next_ticket(&self) -> Option<u64> {
        self.permits.acquire().await.ok()?.forget();
        Some(self.taken.fetch_add(1, Relaxed))
    }

    /// Stops the schedule and wakes all waiting connections.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        self.permits.close();
    }

    /// Releases tickets when they are due. Runs on a separate thread, because the timers of the runtimes have a
    /// resolution of milliseconds.
    pub(crate) fn release_tickets(&self, start: Instant, end: Instant) {
        let mut released = 0;
        loop {
            let now = Instant::now();
            let due = self.tickets_due_by(now.saturating_duration_since(start));
            if due > released && now < end {
                self.permits.add_permits(usize::try_from(due - released).unwrap_or(Semaphore::MAX_PERMITS));
                released = due;
                self.released.store(released, Relaxed);
            }
            if self.stopped.load(Relaxed) {
                return;
            }
            if now >= end {
                break;
            }
            let next_at = if released < self.total { start + self.due_time(released) } else { end };
            thread::park_timeout(next_at.min(end).saturating_duration_since(now).clamp(SLEEP_MIN, SLEEP_MAX));
        }
        // For a moment after the end, free connections may take the remaining tickets. The others are never taken.
        self.permits.add_permits(usize::try_from(self.total - released).unwrap_or(0));
        self.released.store(self.total, Relaxed);
        let closes_at = Instant::now() + LAST_TICKET_WAIT;
        while let Some(left) = closes_at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        {
            thread::park_timeout(left);
        }
        self.permits.close();
    }

    /// Returns the numbers of the tickets that were due and not taken.
    pub(crate) fn unsent_tickets(&self) -> std::ops::Range<u64> {
        let released = self.released.load(Relaxed);
        self.taken.load(Relaxed).min(released)..released
    }
}

/// A pause of all requests after a 429.
pub(crate) struct RetryAfterGate {
    start: Instant,
    /// The end of the pause, in microseconds after the start.
    paused_until: AtomicU64,
}

impl RetryAfterGate {
    pub(crate) fn new(start: Instant) -> RetryAfterGate {
        RetryAfterGate { start, paused_until: AtomicU64::new(0) }
    }

    /// Starts a pause, or extends the current one. Returns the time by which it extends the pauses.
    pub(crate) fn pause(&self, now: Instant, duration: Duration) -> Duration {
        let micros = |instant: Instant| {
            u64::try_from(instant.saturating_duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
        };
        let (now_micros, end) = (micros(now), micros(now + duration));
        let previous_end = self.paused_until.fetch_max(end, Relaxed).max(now_micros);
        Duration::from_micros(end.saturating_sub(previous_end))
    }

    /// Returns the end of the pause; `None` without a pause.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        let end = self.start + Duration::from_micros(self.paused_until.load(Relaxed));
        (end > now).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_due_evenly() {
        let schedule = RequestSchedule::new(NonZeroU32::new(3).unwrap(), Duration::from_secs(2));
        let due_millis: Vec<_> = (0..4).map(|n| schedule.due_time(n).as_millis()).collect();
        assert_eq!((due_millis, schedule.total), (vec![0, 333, 666, 1_000], 6));
        let due_counts: Vec<_> = [0, 333, 334, 999, 1_000, 9_999]
            .map(|ms| schedule.tickets_due_by(Duration::from_millis(ms)))
            .into();
        assert_eq!(due_counts, [1, 1, 2, 3, 4, 6]);
    }

    #[test]
    fn overlapping_pauses_count_once() {
        let start = Instant::now();
        let gate = RetryAfterGate::new(start);
        let at = |secs| start + Duration::from_secs(secs);
        assert_eq!(gate.paused_until(start), None);
        assert_eq!(gate.pause(at(1), Duration::from_secs(10)).as_secs(), 10);
        assert_eq!(gate.pause(at(2), Duration::from_secs(10)).as_secs(), 1);
        assert_eq!(gate.pause(at(3), Duration::from_secs(5)).as_secs(), 0);
        assert_eq!(gate.paused_until(at(4)), Some(at(12)));
        assert_eq!(gate.paused_until(at(12)), None);
        assert_eq!(gate.pause(at(20), Duration::from_secs(5)).as_secs(), 5);
    }
}
