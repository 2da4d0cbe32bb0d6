//! The replay of a world: its recorded calls are repeated in order, each at its recorded time.

use std::{
    cell::Cell,
    error::Error,
    fmt, io,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use reference_core::time::Timestamp;
use simulator::sandbox::{OutgoingAttempt, Sandbox, Setup};

use super::{
    call::{BranchTranslation, HostCall, JournalLine},
    outcome::OutcomeDigest,
    setup::damage_error,
    world_position::WorldPosition,
};

/// A replayed world.
pub(crate) struct ReplayedWorld {
    pub(crate) sandbox: Sandbox,
    /// Attempts that had not ended, to be repeated under their ids.
    pub(crate) in_flight: Vec<OutgoingAttempt>,
}

/// A replay in progress.
pub(crate) struct Replay {
    sandbox: Sandbox,
    /// The number of records so far, including those before a checkpoint.
    records: u64,
}

thread_local! {
    /// `true` while this thread is in [`catch_panic`].
    static CATCHES_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Runs code that depends on the content of a file. A panic means that the file is damaged or from another program:
/// returns `None` and prints nothing.
pub(super) fn catch_panic<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let default_hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic_info| {
            if !CATCHES_PANICS.get() {
                default_hook(panic_info);
            }
        }));
    });
    CATCHES_PANICS.set(true);
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    CATCHES_PANICS.set(false);
    result
}

/// A record that cannot be replayed, or whose outcome differs.
#[derive(Debug)]
pub(super) struct ReplayError {
    /// The number of records before it.
    pub(super) records_before: u64,
    why: String,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for ReplayError {}

/// Creates a new world for a server: long calls work in slices, so that other requests are served in between.
pub(crate) fn new_sandbox(setup: &Setup) -> Sandbox {
    let mut sandbox = Sandbox::new(setup);
    sandbox.work_in_slices();
    sandbox
}

impl Replay {
    pub(crate) fn new(setup: &Setup) -> Replay {
        Replay::resume(new_sandbox(setup), 0)
    }

    /// Creates a replay that continues after `records` records.
    pub(super) fn resume(mut sandbox: Sandbox, records: u64) -> Replay {
        sandbox.work_in_slices();
        Replay { sandbox, records }
    }

    /// Creates a replay whose world can write its scenario.
    pub(crate) fn with_scenario(setup: &Setup) -> Replay {
        let mut replay = Replay::new(setup);
        replay.sandbox.enable_history();
        replay
    }

    /// Replays the records of these lines.
    ///
    /// # Errors
    ///
    /// `InvalidData` names the record that is unreadable, that this world could not have written, or whose outcome differs.
    pub(crate) fn replay_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        lines.split_inclusive(|byte| *byte == b'\n').try_for_each(|line| self.replay_line(line).map(drop))
    }

    /// Replays the records of another world, translated for this one. Returns the translated records.
    pub(crate) fn replay_translated(
        &mut self,
        lines: &[u8],
        translation: &BranchTranslation,
    ) -> io::Result<Vec<u8>> {
        let mut translated = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let call = translation.translate_call(self.next_call(line)?.call);
            let text = serde_json::to_vec(&call).expect("strings and numbers are JSON");
            let outcome = self.replay_call(call)?;
            let call: HostCall<'_> = serde_json::from_slice(&text).expect("the call was serialized above");
            translated.extend(call.to_line(outcome));
        }
        Ok(translated)
    }

    /// Parses a line and counts it.
    fn next_call<'a>(&mut self, line: &'a [u8]) -> io::Result<JournalLine<'a>> {
        self.records += 1;
        JournalLine::parse(line).ok_or_else(|| self.record_error("is unreadable"))
    }

    fn replay_call(&mut self, call: HostCall<'_>) -> io::Result<OutcomeDigest> {
        let outcome = catch_panic(|| call.replay(&mut self.sandbox)).flatten();
        self.sandbox.discard_outgoing();
        outcome.ok_or_else(|| self.record_error("does not belong to this world"))
    }

    /// Returns an error about the last record.
    fn record_error(&self, why: &str) -> io::Error {
        let why = format!("record {} {why}", self.records);
        io::Error::new(io::ErrorKind::InvalidData, ReplayError { records_before: self.records - 1, why })
    }

    /// Replays one line; returns `true` if a new world replaced the one before. The restoring of an earlier moment changes the
    /// era as well, but not the world.
    fn replay_line(&mut self, line: &[u8]) -> io::Result<bool> {
        let JournalLine { outcome: recorded, call } = self.next_call(line)?;
        let (era, _) = self.sandbox.lineage();
        let continues_lineage = matches!(call, HostCall::ContinueLineage { .. });
        let outcome = self.replay_call(call)?;
        if recorded.is_some_and(|recorded| recorded != outcome) {
            let label = JournalLine::parse(line).map(|line| line.call.label()).unwrap_or_default();
            return Err(self.record_error(&format!(
                "({label}) has a different outcome than when it was recorded: another version of this program recorded it"
            )));
        }
        Ok(!continues_lineage && self.sandbox.lineage().0 != era)
    }

    /// Advances the clock to a moment and appends the records of the advance.
    ///
    /// # Errors
    ///
    /// Those of [`Replay::replay_lines`].
    pub(crate) fn advance_to(&mut self, at: Timestamp, lines: &mut Vec<u8>) -> io::Result<()> {
        // A long advance consists of several slices, each a record.
        loop {
            self.records += 1;
            let outcome = self.replay_call(HostCall::Advance { at: at.0 })?;
            lines.extend_from_slice(&HostCall::Advance { at: at.0 }.to_line(outcome));
            if self.sandbox.next_due().is_none_or(|due| due > at) {
                return Ok(());
            }
        }
    }

    /// Returns the world. If `end` is given, the world must have reached this position.
    ///
    /// # Errors
    ///
    /// `InvalidData` if it reached another one: another version of the program wrote the records, or they were changed.
    pub(crate) fn finish(mut self, end: Option<WorldPosition>) -> io::Result<ReplayedWorld> {
        // An advance of the clock without events leaves no record.
        if let Some(WorldPosition { now, .. }) = end
            && self.sandbox.next_due().is_none_or(|due| due.0 > now)
        {
            self.sandbox.advance_to(Timestamp(now));
        }
        let reached = WorldPosition::from_sandbox(&self.sandbox);
        if let Some(recorded) = end.filter(|recorded| *recorded != reached) {
            let time = |position: &WorldPosition| Timestamp(position.now).to_string();
            return Err(damage_error(format!(
                "its {} records lead to {} and {} events, but {} and {} were recorded: another version of \
                 this program recorded them",
                self.records,
                time(&reached),
                reached.event_count,
                time(&recorded),
                recorded.event_count
            )));
        }
        self.sandbox.discard_outgoing();
        let in_flight = self.sandbox.open_attempts().collect();
        Ok(ReplayedWorld { sandbox: self.sandbox, in_flight })
    }
}

/// A search for the records before a moment `at`, by replay.
pub(crate) struct MomentFinder {
    replay: Replay,
    at: Timestamp,
    /// The start of the present world.
    world_start: Timestamp,
    /// The number of records before the first one that is later than the moment; `None` if there is none so far.
    records_before: Option<u64>,
}

impl MomentFinder {
    pub(crate) fn new(setup: &Setup, at: Timestamp) -> MomentFinder {
        let replay = Replay::new(setup);
        let world_start = replay.sandbox.now();
        MomentFinder { replay, at, world_start, records_before: None }
    }

    /// Replays the records of these lines.
    ///
    /// # Errors
    ///
    /// Those of [`Replay::replay_lines`].
    pub(crate) fn replay_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let is_new_world = self.replay.replay_line(line)?;
            let now = self.replay.sandbox.now();
            if is_new_world {
                (self.world_start, self.records_before) = (now, None);
            }
            // A call that moves the clock past the moment is later than the moment.
            if self.records_before.is_none() && now > self.at {
                self.records_before = Some(self.replay.records - 1);
            }
        }
        Ok(())
    }

    /// Returns the start of the present world, and the number of records up to the moment. The number is meaningless if the
    /// moment is before the start.
    pub(crate) fn result(&self) -> (Timestamp, u64) {
        (self.world_start, self.records_before.unwrap_or(self.replay.records))
    }
}
