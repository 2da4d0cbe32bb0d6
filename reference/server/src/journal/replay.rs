//! A world out of its calls: each is made again, in order, with the same time.

use std::{
    collections::BTreeMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
};

use reference_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use simulator::sandbox::{AttemptId, OutgoingAttempt, Sandbox, Setup};

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
    outgoing: BTreeMap<AttemptId, OutgoingAttempt>,
    records: u64,
}

/// The world that a server begins with.
pub(crate) fn begin(setup: &Setup) -> Sandbox {
    let mut sandbox = Sandbox::new(setup);
    sandbox.work_in_slices();
    sandbox
}

impl Replay {
    pub(crate) fn new(setup: &Setup) -> Replay {
        Replay { sandbox: begin(setup), outgoing: BTreeMap::new(), records: 0 }
    }

    /// The same for a world that tells what was done in it.
    pub(crate) fn telling(setup: &Setup) -> Replay {
        let mut replay = Replay::new(setup);
        replay.sandbox.keep_history();
        replay
    }

    /// Makes the calls of these lines. What panics in them was written by another program or by nobody's.
    ///
    /// # Errors
    ///
    /// `InvalidData` names the record that is not readable, or that this world could not have written.
    pub(crate) fn lines(&mut self, lines: &[u8]) -> io::Result<()> {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.records += 1;
            let n = self.records;
            let call = line.strip_suffix(b"\n").and_then(|line| serde_json::from_slice(line).ok());
            let call: HostCall<'_> = call.ok_or_else(|| damaged(format!("record {n} is not readable")))?;
            let ended = if let HostCall::Ended { id, .. } = &call { Some(*id) } else { None };
            let fits = catch_unwind(AssertUnwindSafe(|| call.replay(&mut self.sandbox))).unwrap_or(false);
            if !fits {
                return Err(damaged(format!("record {n} is not one of this world")));
            }
            self.outgoing.extend(self.sandbox.take_outgoing().into_iter().map(|it| (it.id, it)));
            ended.map(|id| self.outgoing.remove(&id));
        }
        Ok(())
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
        let open = self.sandbox.open_attempts().collect::<Vec<_>>();
        let in_flight = open.into_iter().filter_map(|id| self.outgoing.remove(&id)).collect();
        Ok(Replayed { sandbox: self.sandbox, in_flight })
    }
}
