//! A world out of its calls: each is made again, in order, with the same time.

use std::{
    cell::Cell,
    io,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use reference_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use simulator::sandbox::{OutgoingAttempt, Sandbox, Setup};

use super::{call::HostCall, setup::damaged};

/// Where a world stands, as far as a replay is compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tip {
    /// What the service clock shows, in microseconds since 1970.
    pub(crate) now: u64,
    /// How much has happened.
    pub(crate) happened: u64,
}

impl Tip {
    pub(crate) fn of(sandbox: &Sandbox) -> Tip {
        Tip { now: sandbox.now().0, happened: sandbox.log().count() }
    }
}

/// A world that its calls were made in again.
pub(crate) struct Replayed {
    pub(crate) sandbox: Sandbox,
    /// Posts that had not ended, to be made again under their ids.
    pub(crate) in_flight: Vec<OutgoingAttempt>,
}

/// A world whose calls are being made again.
pub(crate) struct Replay {
    sandbox: Sandbox,
    records: u64,
}

thread_local! {
    /// Whether this thread makes a call of a file.
    static IS_TRYING: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call of a file. What panics in it was written by another program or by nobody's: that is an error, and no bug
/// to be printed.
fn tried(call: impl FnOnce() -> bool) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |bug| {
            if !IS_TRYING.get() {
                print(bug);
            }
        }));
    });
    IS_TRYING.set(true);
    let fits = catch_unwind(AssertUnwindSafe(call)).unwrap_or(false);
    IS_TRYING.set(false);
    fits
}

/// The world that a server begins with.
pub(crate) fn begin(setup: &Setup) -> Sandbox {
    let mut sandbox = Sandbox::new(setup);
    sandbox.work_in_slices();
    sandbox
}

impl Replay {
    pub(crate) fn new(setup: &Setup) -> Replay {
        Replay::resume(begin(setup), 0)
    }

    /// One that so many records led to.
    pub(super) fn resume(mut sandbox: Sandbox, records: u64) -> Replay {
        sandbox.work_in_slices();
        sandbox.answer_nobody();
        Replay { sandbox, records }
    }

    /// The same for a world that tells what was done in it.
    pub(crate) fn telling(setup: &Setup) -> Replay {
        let mut replay = Replay::new(setup);
        // What was made is named by the answers.
        replay.sandbox.answer_again();
        replay.sandbox.keep_history();
        replay
    }

    /// Makes the calls of these lines.
    ///
    /// # Errors
    ///
    /// `InvalidData` names the record that is not readable, or that this world could not have written.
    pub(crate) fn lines(&mut self, lines: &[u8]) -> io::Result<()> {
        lines.split_inclusive(|byte| *byte == b'\n').try_for_each(|line| self.line(line).map(drop))
    }

    /// The same for one line. Says whether a world began by it in place of the one before.
    fn line(&mut self, line: &[u8]) -> io::Result<bool> {
        self.records += 1;
        let (n, (era, _)) = (self.records, self.sandbox.lineage());
        let call = HostCall::read(line).ok_or_else(|| damaged(format!("record {n} is not readable")))?;
        let goes_on = matches!(call, HostCall::Succeed { .. });
        if !tried(|| call.replay(&mut self.sandbox)) {
            return Err(damaged(format!("record {n} is not one of this world")));
        }
        self.sandbox.forget_outgoing();
        Ok(!goes_on && self.sandbox.lineage().0 != era)
    }

    /// Lets time pass up to a moment, and adds the records of it.
    ///
    /// # Errors
    ///
    /// None that [`Replay::lines`] did not have before.
    pub(crate) fn pass(&mut self, at: Timestamp, lines: &mut Vec<u8>) -> io::Result<()> {
        let line = HostCall::Advance { at: at.0 }.line();
        loop {
            self.line(&line)?;
            lines.extend_from_slice(&line);
            if self.sandbox.next_due().is_none_or(|due| due > at) {
                return Ok(());
            }
        }
    }

    /// The world, if it came to where it stood when it was kept.
    ///
    /// # Errors
    ///
    /// `InvalidData` if it came elsewhere: another version of this program wrote it, or another hand.
    pub(crate) fn finish(mut self, tip: Option<Tip>) -> io::Result<Replayed> {
        // Time that passes while nothing happens leaves no record.
        if let Some(Tip { now, .. }) = tip
            && self.sandbox.next_due().is_none_or(|due| due.0 > now)
        {
            self.sandbox.advance_to(Timestamp(now));
        }
        let here = Tip::of(&self.sandbox);
        if let Some(kept) = tip.filter(|kept| *kept != here) {
            let time = |tip: &Tip| Timestamp(tip.now).to_string();
            return Err(damaged(format!(
                "its {} records lead to {} and {} things that happened, but {} and {} were kept: another version of \
                 this program wrote them",
                self.records,
                time(&here),
                here.happened,
                time(&kept),
                kept.happened
            )));
        }
        self.sandbox.forget_outgoing();
        self.sandbox.answer_again();
        let in_flight = self.sandbox.open_attempts().collect();
        Ok(Replayed { sandbox: self.sandbox, in_flight })
    }
}

/// Looks for a moment of a world whose calls are being made again.
pub(crate) struct Finder {
    replay: Replay,
    at: Timestamp,
    /// When the world began that is there now.
    begun: Timestamp,
    /// How many records had been made when the first of it came that leads past the moment.
    before: Option<u64>,
}

impl Finder {
    pub(crate) fn new(setup: &Setup, at: Timestamp) -> Finder {
        let replay = Replay::new(setup);
        let begun = replay.sandbox.now();
        Finder { replay, at, begun, before: None }
    }

    /// Makes the calls of these lines.
    ///
    /// # Errors
    ///
    /// Those of [`Replay::lines`].
    pub(crate) fn lines(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let begins = self.replay.line(line)?;
            let now = self.replay.sandbox.now();
            if begins {
                (self.begun, self.before) = (now, None);
            }
            // A call may move the clock past the moment: it is not part of what led there.
            if self.before.is_none() && now > self.at {
                self.before = Some(self.replay.records - 1);
            }
        }
        Ok(())
    }

    /// When the world began, and how many records lead to the moment if it was after that.
    pub(crate) fn found(&self) -> (Timestamp, u64) {
        (self.begun, self.before.unwrap_or(self.replay.records))
    }
}
