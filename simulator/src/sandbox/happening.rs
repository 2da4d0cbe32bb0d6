//! What happened in a world, as somebody outside of it could have noticed, in order.

use std::{collections::VecDeque, fmt, sync::Arc};

use reference_core::{event::Details, id::Code, time::Timestamp, wire::DetailsView};
use serde::{Serialize, Serializer};
use uuid::Uuid;

/// So many are kept; readers that fall further behind have missed some.
const KEPT_MAX: usize = 200_000;

/// One thing that happened. Kept as it is, and printed when somebody reads it.
#[derive(Clone, Debug, Serialize)]
pub struct Happening {
    /// Counts from 1.
    pub n: u64,
    /// When.
    #[serde(serialize_with = "print")]
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened. The words are those of the JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum What {
    /// An event was recorded.
    Event {
        mode: &'static str,
        account: Arc<str>,
        #[serde(serialize_with = "print")]
        event: Uuid,
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(serialize_with = "print")]
        subject: Code,
        #[serde(serialize_with = "view")]
        details: Details,
    },
    /// A post was answered, or not.
    Post {
        mode: &'static str,
        account: Arc<str>,
        #[serde(serialize_with = "print")]
        endpoint: Code,
        host: String,
        #[serde(serialize_with = "print")]
        delivery: Uuid,
        #[serde(serialize_with = "print_any")]
        event: Option<Uuid>,
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(serialize_with = "print_any")]
        subject: Option<Code>,
        attempt: u32,
        answer: String,
        #[serde(serialize_with = "print_any")]
        next_at: Option<Timestamp>,
    },
    /// A transfer was seen, confirmed, thrown back or lost.
    Transfer {
        mode: &'static str,
        asset: &'static str,
        txid: String,
        output: u32,
        address: String,
        charge: Option<String>,
        amount: String,
        state: &'static str,
        confirmations: u32,
        required: u32,
    },
    /// The newest blocks of a chain were replaced.
    Reorg { mode: &'static str, asset: &'static str, depth: u32 },
    /// An e-mail went to the outbox.
    Mail {
        mode: &'static str,
        account: Arc<str>,
        to: String,
        kind: &'static str,
        #[serde(serialize_with = "print")]
        invoice: Code,
    },
    /// An endpoint failed too often and was switched off.
    EndpointOff {
        mode: &'static str,
        account: Arc<str>,
        #[serde(serialize_with = "print")]
        endpoint: Code,
        host: String,
    },
    /// The service stopped and started again.
    Restart,
}

fn print<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn print_any<S: Serializer>(value: &Option<impl fmt::Display>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

fn view<S: Serializer>(details: &Details, serializer: S) -> Result<S::Ok, S::Error> {
    DetailsView(details).serialize(serializer)
}

impl What {
    /// Somebody who knows only this account in this mode could have noticed it.
    pub(super) fn concerns(&self, own_account: &str, own_mode: &str) -> bool {
        match self {
            What::Event { mode, account, .. }
            | What::Post { mode, account, .. }
            | What::Mail { mode, account, .. }
            | What::EndpointOff { mode, account, .. } => *mode == own_mode && **account == *own_account,
            // A chain is there for everybody who uses it.
            What::Transfer { mode, .. } | What::Reorg { mode, .. } => *mode == own_mode,
            What::Restart => true,
        }
    }
}

/// The last things that happened.
#[derive(Default)]
pub struct Chronicle {
    kept: VecDeque<Happening>,
    count: u64,
}

impl Chronicle {
    /// How many things have happened.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn note(&mut self, at: Timestamp, what: What) {
        self.count += 1;
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Happening { n: self.count, at, what });
    }

    /// Everything that is kept and came after the `n`th.
    pub fn after(&self, n: u64) -> impl Iterator<Item = &Happening> {
        let first_kept = self.count - self.kept.len() as u64;
        let skip = usize::try_from(n.saturating_sub(first_kept)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip)
    }
}
