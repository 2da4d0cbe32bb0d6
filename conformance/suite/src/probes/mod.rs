//! The probes: they talk and write down, and judge nothing.
//!
//! A probe may read an answer to learn what to ask next, or ask the same again. What an answer
//! means for a statement is none of its business.

pub(crate) mod account;
pub(crate) mod auth;
pub(crate) mod burst;
pub(crate) mod isolation;
pub(crate) mod lists;
mod session;

pub(crate) use session::{Session, retry_after};

/// Probes that run together, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Account,
    /// Before all but the account: what comes later then runs in a fresh window.
    Burst,
    Lists,
    Isolation,
    Auth,
    Second,
}

impl Group {
    /// The requests it sends at most, repeats after a refusal left aside.
    pub(crate) fn requests_max(self) -> u32 {
        match self {
            Group::Account => account::REQUESTS_MAX,
            Group::Burst => 0,
            Group::Lists => lists::REQUESTS_MAX,
            Group::Isolation => isolation::REQUESTS_MAX,
            Group::Auth => auth::REQUESTS_MAX,
            Group::Second => isolation::SECOND_REQUESTS_MAX,
        }
    }
}
