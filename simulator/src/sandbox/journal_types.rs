//! Records of values that a world hands to its host and gets back, for the host's own journal (write-ahead log).
//!
//! They contain numbers and flags only. A journal may be an untrusted file, so numbers that do not exist in
//! the world are rejected before they are used.

use reference_core::{
    id::{AccountNo, KeyNo},
    key::Principal,
    mode::Mode,
    service::{Admission, Quota},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{
    AdmittedRequest, AttemptId, OutgoingAttempt, PendingAdvance, Sandbox,
    route::{AdvanceTarget, Within},
};

/// The journal record of an [`AdmittedRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmittedRecord {
    book: BookRecord,
    key: u32,
    /// The rate limit and the remaining requests; `None` without a limit.
    quota: Option<(u32, u32)>,
    /// The number of worlds before the one that authenticated the request.
    era: u64,
}

/// The journal record of a [`PendingAdvance`], with the fields of that type and of its target. Times are in
/// microseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingRecord {
    until: u64,
    stop_early: bool,
    after: Option<u64>,
    before: u64,
    within: Option<BookRecord>,
    era: u64,
    last_awaited: Option<AttemptId>,
}

/// The number of an account, and `true` for its live book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BookRecord(u32, bool);

impl From<Within> for BookRecord {
    fn from((account, mode): Within) -> BookRecord {
        BookRecord(account.0, mode == Mode::Live)
    }
}

impl From<BookRecord> for Within {
    fn from(BookRecord(account, is_live): BookRecord) -> Within {
        (AccountNo(account), if is_live { Mode::Live } else { Mode::Test })
    }
}

impl AdmittedRequest {
    /// Returns the journal record.
    pub fn record(&self) -> AdmittedRecord {
        let Principal { account, mode, key } = self.admission.principal;
        AdmittedRecord {
            book: (account, mode).into(),
            key: key.0,
            quota: self.admission.quota.map(|quota| (quota.limit, quota.remaining)),
            era: self.era,
        }
    }
}

impl PendingAdvance {
    /// Returns the journal record.
    pub fn record(&self) -> PendingRecord {
        PendingRecord {
            until: self.target.until.0,
            stop_early: self.target.stop_early,
            after: self.target.after,
            before: self.after_event,
            within: self.within.map(BookRecord::from),
            era: self.era,
            last_awaited: self.last_awaited,
        }
    }
}

impl Sandbox {
    /// Restores an authenticated request from its record; `None` if this world has no such key.
    pub fn restore_admitted(&self, record: &AdmittedRecord) -> Option<AdmittedRequest> {
        let (account, mode) = record.book.into();
        let principal = Principal { account, mode, key: KeyNo(record.key) };
        // `call_as` refuses a request of an earlier world, so its key need not exist.
        let is_known = || self.service().keys().iter().any(|key| key.principal == principal);
        (record.era != self.era || is_known()).then(|| {
            let quota = record.quota.map(|(limit, remaining)| Quota { limit, remaining });
            AdmittedRequest { admission: Admission { principal, quota }, era: record.era }
        })
    }

    /// Restores a paused call from its record; `None` if this world has no such account.
    pub fn restore_pending(&self, record: &PendingRecord) -> Option<PendingAdvance> {
        let within = record.within.map(Within::from);
        let is_known =
            |book: Within| self.service().books().any(|(account, mode, _)| (account, mode) == book);
        (record.era != self.era || within.is_none_or(is_known)).then_some(PendingAdvance {
            target: AdvanceTarget {
                until: Timestamp(record.until),
                stop_early: record.stop_early,
                after: record.after,
            },
            after_event: record.before,
            within,
            era: record.era,
            last_awaited: record.last_awaited,
        })
    }

    /// Returns the number of worlds that this one replaced, and the number of outside attempts in all of them.
    pub fn lineage(&self) -> (u64, u64) {
        (self.era, self.world.external.count)
    }

    /// Continues the numbering of the world that this one replaces, given its [`Sandbox::lineage`]. Calls that started
    /// in that world are refused, as after `POST /sandbox/world`, and no new attempt gets a number of an attempt whose
    /// result may still be reported.
    pub fn continue_lineage(&mut self, (era, attempts): (u64, u64)) {
        self.era = self.era.max(era.saturating_add(1));
        self.world.external.count = self.world.external.count.max(attempts);
    }

    /// Returns the outside attempts that have not ended.
    pub fn open_attempts(&self) -> impl Iterator<Item = OutgoingAttempt> {
        self.world.external.open.iter().map(|(id, (account, mode, attempt))| {
            self.with_body(OutgoingAttempt {
                id: *id,
                account: *account,
                mode: *mode,
                request: attempt.clone(),
            })
        })
    }

    /// Drops the attempts that the host has not fetched by [`Sandbox::take_outgoing`]. They are never made.
    pub fn discard_outgoing(&mut self) {
        self.world.external.take_outgoing();
    }
}
