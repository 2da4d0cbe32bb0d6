//! [`Clock`]: the service clock, which follows real time, a multiple of it, or only the sandbox.
//!
//! The only module that reads the operating system's clocks. The service time depends on a [`Reading`] only, so that no
//! test has to wait.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant, SystemTime},
};

use reference_core::time::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// The source of the service clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// Real time.
    Wall,
    /// A multiple of real time.
    Fast {
        /// The seconds of service time in a second of real time.
        factor: NonZeroU32,
    },
    /// A frozen clock, which only `/sandbox` moves.
    Frozen,
}

/// A step back of the system clock is reported if it is larger than this; smaller ones are ordinary corrections.
const SET_BACK_MIN: Span = Span::secs(60);

/// A reading of a system clock in microseconds, from an origin that depends on the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading(u64);

/// Returns the operating system's time.
pub(crate) fn time_of_day() -> Timestamp {
    Timestamp::default().plus(Span(wall_clock().0))
}

/// The service clock. It never goes back if the system clock does, only if another world replaces the one before:
/// through [`Clock::set`], or [`Clock::sync_to_world`] with a frozen clock.
pub(crate) struct Clock {
    kind: ClockKind,
    origin: Instant,
    /// A reading, and the service time at that moment.
    anchor: (Reading, Timestamp),
    /// The latest time that the clock returned.
    latest: Timestamp,
}

impl Clock {
    /// Creates a clock that shows `start` now; `None` for the time of day.
    pub(crate) fn new(kind: ClockKind, start: Option<Timestamp>) -> Clock {
        let start = start.unwrap_or_else(time_of_day);
        let mut clock = Clock { kind, origin: monotonic_now(), anchor: (Reading(0), start), latest: start };
        clock.anchor.0 = clock.read();
        clock
    }

    /// Sets the clock to `time` at `reading`, even back, after another world replaced the one before.
    pub(crate) fn set(&mut self, reading: Reading, time: Timestamp) {
        self.anchor = (reading, time);
        self.latest = time;
    }

    /// Returns the present time of a clock that showed `time` when the time of day was
    /// `saved_wall_micros` since 1970. A clock of kind [`ClockKind::Wall`] has advanced since, any other has not.
    pub(crate) fn resume_time(kind: ClockKind, time: Timestamp, saved_wall_micros: u64) -> Timestamp {
        match kind {
            ClockKind::Wall => time.plus(Span(wall_clock().0.saturating_sub(saved_wall_micros))),
            ClockKind::Fast { .. } | ClockKind::Frozen => time,
        }
    }

    /// Returns the time of day if it was set back by over a minute since `saved_wall_micros`, and this kind of clock
    /// follows it.
    pub(crate) fn detect_set_back(kind: ClockKind, saved_wall_micros: u64) -> Option<Timestamp> {
        let now = time_of_day();
        (kind == ClockKind::Wall && Timestamp(saved_wall_micros) > now.plus(SET_BACK_MIN)).then_some(now)
    }

    /// Returns `true` if only the sandbox moves the clock.
    pub(crate) fn is_frozen(&self) -> bool {
        self.kind == ClockKind::Frozen
    }

    /// Reads the system clock.
    pub(crate) fn read(&self) -> Reading {
        match self.kind {
            // Not the monotonic clock, which stops while a laptop sleeps.
            ClockKind::Wall => wall_clock(),
            ClockKind::Fast { .. } => micros(monotonic_now().saturating_duration_since(self.origin)),
            ClockKind::Frozen => Reading(0),
        }
    }

    /// Returns the service time at `reading`, never earlier than a time returned before.
    pub(crate) fn time_at(&mut self, reading: Reading) -> Timestamp {
        let (anchor_reading, anchor_time) = self.anchor;
        let elapsed = reading.0.saturating_sub(anchor_reading.0).saturating_mul(self.factor());
        self.latest = self.latest.max(anchor_time.plus(Span(elapsed)));
        self.latest
    }

    /// Sets the clock to the world's time if a sandbox call moved it: if the time is later, or the clock is frozen.
    /// Returns `true` if the time changed.
    pub(crate) fn sync_to_world(&mut self, reading: Reading, world: Timestamp) -> bool {
        if world > self.latest || self.is_frozen() {
            let moved = world != self.latest;
            self.anchor = (reading, world);
            self.latest = world;
            moved
        } else {
            false
        }
    }

    /// Returns the real time from `now` to `due`; `None` if the clock is frozen.
    pub(crate) fn duration_until(&self, now: Timestamp, due: Timestamp) -> Option<Duration> {
        (!self.is_frozen()).then(|| Duration::from_micros(due.since(now).0.div_ceil(self.factor())))
    }

    /// Returns the seconds of service time in a second of real time; 0 if only the sandbox moves the clock.
    pub(crate) fn factor(&self) -> u64 {
        match self.kind {
            ClockKind::Wall => 1,
            ClockKind::Fast { factor } => u64::from(factor.get()),
            ClockKind::Frozen => 0,
        }
    }
}

/// Returns the time of day in microseconds since 1970.
pub(crate) fn unix_micros() -> u64 {
    wall_clock().0
}

/// Returns the time of day in seconds since 1970, for signatures, which real receivers compare with their own clocks.
pub(crate) fn unix_secs() -> u64 {
    wall_clock().0 / 1_000_000
}

#[allow(clippy::disallowed_methods)] // The only use.
fn wall_clock() -> Reading {
    // A system clock before 1970 counts as 1970.
    micros(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

#[allow(clippy::disallowed_methods)] // The only use.
fn monotonic_now() -> Instant {
    Instant::now()
}

fn micros(length: Duration) -> Reading {
    Reading(u64::try_from(length.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_000_000_000);

    /// Returns a clock that starts at reading 500.
    fn clock(kind: ClockKind) -> Clock {
        Clock { kind, origin: monotonic_now(), anchor: (Reading(500), START), latest: START }
    }

    fn fast(factor: u32) -> ClockKind {
        ClockKind::Fast { factor: NonZeroU32::new(factor).expect("factors in tests are not 0") }
    }

    /// Checks a clock. `steps`: readings, each with the expected time since the start.
    #[track_caller]
    fn check(kind: ClockKind, steps: &[(u64, u64)]) {
        let mut clock = clock(kind);
        for (reading, since_start) in steps {
            assert_eq!(
                clock.time_at(Reading(*reading)),
                START.plus(Span(*since_start)),
                "at reading {reading}"
            );
        }
    }

    #[test]
    fn wall_time_continues_from_the_start() {
        check(ClockKind::Wall, &[(500, 0), (501, 1), (1_500, 1_000)]);
    }

    #[test]
    fn a_wall_clock_that_is_set_back_stands_still_until_time_catches_up() {
        check(ClockKind::Wall, &[(900, 400), (100, 400), (899, 400), (901, 401)]);
    }

    #[test]
    fn fast_time_is_a_multiple() {
        check(fast(60), &[(500, 0), (501, 60), (600, 6_000)]);
    }

    #[test]
    fn frozen_time_does_not_move() {
        check(ClockKind::Frozen, &[(500, 0), (9_000_000, 0)]);
    }

    #[test]
    fn time_stops_at_the_end_of_the_year_9999() {
        let mut clock = clock(fast(u32::MAX));
        assert_eq!(clock.time_at(Reading(u64::MAX)), Timestamp::LAST);
    }

    /// Checks [`Clock::sync_to_world`]: at reading 600 the world's time is `world` after the start, and at reading 700
    /// the clock must show `later`.
    #[track_caller]
    fn check_sync_to_world(kind: ClockKind, world: u64, moved: bool, later: u64) {
        let mut clock = clock(kind);
        clock.time_at(Reading(600));
        assert_eq!(clock.sync_to_world(Reading(600), START.plus(Span(world))), moved, "moved");
        assert_eq!(clock.time_at(Reading(700)), START.plus(Span(later)), "later");
    }

    #[test]
    fn time_continues_from_where_the_sandbox_moved_it() {
        check_sync_to_world(ClockKind::Wall, 5_000, true, 5_100);
        check_sync_to_world(fast(10), 5_000, true, 6_000);
        check_sync_to_world(ClockKind::Frozen, 5_000, true, 5_000);
    }

    #[test]
    fn a_world_that_was_not_moved_leaves_the_clock_unchanged() {
        check_sync_to_world(ClockKind::Wall, 100, false, 200);
        check_sync_to_world(fast(10), 1_000, false, 2_000);
        check_sync_to_world(ClockKind::Frozen, 0, false, 0);
    }

    #[test]
    fn a_new_world_may_set_a_frozen_clock_back() {
        let mut clock = clock(ClockKind::Frozen);
        assert!(clock.sync_to_world(Reading(0), Timestamp(7)));
        assert_eq!(clock.time_at(Reading(0)), Timestamp(7));
    }

    #[test]
    fn a_system_clock_that_was_set_back_is_detected_for_wall_clocks_only() {
        let later = |seconds: u64| time_of_day().plus(Span::secs(seconds)).0;
        for (kind, saved_wall, is_detected) in [
            (ClockKind::Wall, later(0), false),
            (ClockKind::Wall, later(30), false),
            (ClockKind::Wall, later(3_600), true),
            (fast(60), later(3_600), false),
            (ClockKind::Frozen, later(3_600), false),
        ] {
            assert_eq!(
                Clock::detect_set_back(kind, saved_wall).is_some(),
                is_detected,
                "{kind:?} {saved_wall}"
            );
        }
    }

    #[track_caller]
    fn check_wait(kind: ClockKind, due: u64, wait: Option<u64>) {
        let found = clock(kind).duration_until(START, START.plus(Span(due)));
        assert_eq!(found, wait.map(Duration::from_micros));
    }

    #[test]
    fn a_wait_is_scaled_and_rounded_up() {
        check_wait(ClockKind::Wall, 90, Some(90));
        check_wait(fast(60), 60, Some(1));
        check_wait(fast(60), 61, Some(2));
        check_wait(ClockKind::Wall, 0, Some(0));
        check_wait(ClockKind::Frozen, 90, None);
    }

    #[test]
    fn without_a_start_the_clock_shows_the_time_of_day() {
        let (before, mut clock) = (wall_clock(), Clock::new(ClockKind::Frozen, None));
        let time = clock.time_at(Reading(0));
        assert!((before.0..=wall_clock().0).contains(&time.0), "{time}");
    }
}
