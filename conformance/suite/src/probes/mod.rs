//! The probes: they talk and write down, and judge nothing.
//!
//! A probe may read an answer to learn what to ask next, or ask the same again. What an answer
//! means for a statement is none of its business.

pub(crate) mod account;
pub(crate) mod auth;
pub(crate) mod burst;
pub(crate) mod extended;
pub(crate) mod filters;
pub(crate) mod inserts;
pub(crate) mod isolation;
pub(crate) mod leaks;
pub(crate) mod lists;
pub(crate) mod objects;
pub(crate) mod second;
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
    Filters,
    Isolation,
    Auth,
    Objects,
    Second,
    Other,
    /// Last of those that count against the budget of the two keys: takes what is left of it.
    Leaks,
    /// What the reference server chose.
    Extended,
    /// After what reads, since the lists are others afterwards.
    Inserts,
    /// Last: whoever causes deliveries changes what the others read.
    Webhooks,
}

impl Group {
    /// What it asks at worst, bursts and repeats left aside.
    pub(crate) fn cost(self) -> Cost {
        match self {
            Group::Account => account::COST,
            Group::Burst | Group::Extended | Group::Inserts | Group::Objects => Cost::default(),
            Group::Lists => lists::COST,
            Group::Filters => filters::COST,
            Group::Isolation => isolation::COST,
            Group::Auth => auth::COST,
            Group::Second => second::COST,
            Group::Other => isolation::OTHER_COST,
            Group::Leaks => leaks::COST,
            Group::Webhooks => webhooks::COST,
        }
    }
}
