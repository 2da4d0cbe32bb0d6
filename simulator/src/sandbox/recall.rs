//! The journal's records of the values that a world hands to its host and gets back.
//!
//! Numbers only. A journal may come from a stranger's file, so every number is checked: one that names nothing in
//! the world is refused before anything looks it up.

use reference_core::{
    id::{AccountNo, KeyNo},
    key::Principal,
    mode::Mode,
    service::{Admission, Quota},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use super::{
    Admitted, AttemptId, OutgoingAttempt, PendingAdvance, Sandbox,
    route::{AdvanceTarget, Within},
};

/// An [`Admitted`] as a journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmittedRecord {
    book: BookRecord,
    key: u32,
    /// The limit and how many requests were left; none without a limit.
    quota: Option<(u32, u32)>,
    era: u64,
}

/// A [`PendingAdvance`] as a journal keeps it. Times are in microseconds since 1970.
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

/// An account by its number, and whether its live book is meant.
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

impl Admitted {
    /// Returns the journal's record of it.
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
    /// Returns the journal's record of it.
    pub fn record(&self) -> PendingRecord {
        PendingRecord {
            until: self.target.until.0,
            stop_early: self.target.stop_early,
            after: self.target.after,
            before: self.before,
            within: self.within.map(BookRecord::from),
            era: self.era,
            last_awaited: self.last_awaited,
        }
    }
}

impl Sandbox {
    /// The key that a journal says was let in; `None` if this world has no such key.
    pub fn recall_admitted(&self, record: &AdmittedRecord) -> Option<Admitted> {
        let (account, mode) = record.book.into();
        let principal = Principal { account, mode, key: KeyNo(record.key) };
        // A key of an earlier world is refused when it is used; nobody looks it up.
        let known = || self.service().keys().iter().any(|key| key.principal == principal);
        (record.era != self.era || known()).then(|| {
            let quota = record.quota.map(|(limit, remaining)| Quota { limit, remaining });
            Admitted { admission: Admission { principal, quota }, era: record.era }
        })
    }

    /// The call that a journal says was moving the clock; `None` if its account is not one of this world.
    pub fn recall_pending(&self, record: &PendingRecord) -> Option<PendingAdvance> {
        let within = record.within.map(Within::from);
        let known = |(account, mode): Within| {
            self.service().books().any(|(no, its_mode, _)| (no, its_mode) == (account, mode))
        };
        (record.era != self.era || within.is_none_or(known)).then_some(PendingAdvance {
            target: AdvanceTarget {
                until: Timestamp(record.until),
                stop_early: record.stop_early,
                after: record.after,
            },
            before: record.before,
            within,
            era: record.era,
            last_awaited: record.last_awaited,
        })
    }

    /// Returns the number of worlds before this one, and the number of attempts that went outside in all of them.
    pub fn lineage(&self) -> (u64, u64) {
        (self.era, self.world.external.count)
    }

    /// This world takes another one's place. Calls that began there are over, as after `POST /sandbox/world`, and a new
    /// attempt gets no number that one of the other world's may still be reported under. Takes what [`Sandbox::lineage`]
    /// said there.
    pub fn succeed(&mut self, (era, attempts): (u64, u64)) {
        self.era = self.era.max(era.saturating_add(1));
        self.world.external.count = self.world.external.count.max(attempts);
    }

    /// The attempts that went outside and have not ended.
    pub fn open_attempts(&self) -> impl Iterator<Item = OutgoingAttempt> {
        self.world.external.open.iter().map(|(id, (account, mode, post))| {
            self.with_body(OutgoingAttempt { id: *id, account: *account, mode: *mode, post: post.clone() })
        })
    }

    /// The attempts that the host has yet to fetch are made by nobody.
    pub fn forget_outgoing(&mut self) {
        self.world.external.take_outgoing();
    }
}
