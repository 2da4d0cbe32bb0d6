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
pub(crate) mod webhooks;

pub(crate) use session::{REPEATS_MAX, Session, retry_after};

use crate::budget::Cost;

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
    /// Last: whoever causes deliveries changes what the others read.
    Webhooks,
}

impl Group {
    /// What it asks at worst, bursts and repeats left aside.
    pub(crate) fn cost(self) -> Cost {
        match self {
            Group::Account => account::COST,
            Group::Burst => Cost::default(),
            Group::Lists => lists::COST,
            Group::Isolation => isolation::COST,
            Group::Auth => auth::COST,
            Group::Second => isolation::SECOND_COST,
            Group::Webhooks => webhooks::COST,
        }
    }
}
