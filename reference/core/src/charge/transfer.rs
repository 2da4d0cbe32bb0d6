//! One transfer to a charge's address.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    money::Coin,
    sighting::{Depth, Gone, Sighting},
    time::Timestamp,
};

/// The timing of a transfer: on time or late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// It counts once it is confirmed.
    OnTime,
    /// The charge was over: it waits for the account owner.
    Late,
    /// Late, and the account owner took it.
    Accepted,
    /// The charge was paid already: it counts by itself once it is confirmed.
    Extra,
}

/// One output of one transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// The transaction.
    #[serde(with = "crate::shared::text")]
    pub txid: Arc<str>,
    /// The output.
    pub output: u32,
    /// The amount.
    pub amount: Coin,
    /// Confirmations on the active branch, as last seen; [`Transfer::confirmations_at`] counts on from there.
    pub confirmations: u32,
    /// The height of the chain when they were seen.
    pub(super) height: u64,
    /// The reason for its absence, if it has vanished.
    pub gone: Option<Gone>,
    /// It is part of what the charge received.
    pub credited: bool,
    /// The service's time of the first sighting.
    pub seen_at: Timestamp,
    /// The time of the latest confirmation.
    pub confirmed_at: Option<Timestamp>,
    /// In time or not.
    pub standing: Standing,
    /// It was announced as a late payment.
    pub told_late: bool,
    /// It was announced as falling short.
    pub told_short: bool,
}

impl Transfer {
    /// In the mempool or on the active branch.
    pub fn is_alive(&self) -> bool {
        self.gone.is_none()
    }

    /// Deep enough to count.
    pub fn is_confirmed(&self, required: u32) -> bool {
        self.is_alive() && self.confirmations >= required
    }

    /// The word in answers: `pending`, `confirmed`, or why it has vanished: `double_spent`, `replaced`, `dropped`.
    pub fn status(&self, required: u32) -> &'static str {
        match self.gone {
            Some(why) => why.as_str(),
            None if self.is_confirmed(required) => "confirmed",
            None => "pending",
        }
    }

    /// The confirmations when the chain has this height. A watcher reports them until there are enough; from then on
    /// every block adds one.
    pub fn confirmations_at(&self, height: u64, required: u32) -> u32 {
        let since = if self.is_confirmed(required) { height.saturating_sub(self.height) } else { 0 };
        self.confirmations.saturating_add(u32::try_from(since).unwrap_or(u32::MAX))
    }

    /// Takes the confirmations at this height for those last seen.
    pub(super) fn freeze(&mut self, height: u64, required: u32) {
        self.confirmations = self.confirmations_at(height, required);
        self.height = self.height.max(height);
    }

    pub(super) fn take_depth(&mut self, now: Timestamp, sighting: &Sighting, required: u32) {
        let was_confirmed = self.is_confirmed(required);
        self.height = sighting.height;
        match sighting.depth {
            Depth::Confirmations(n) => {
                self.confirmations = n;
                self.gone = None;
            }
            Depth::Gone(why) => {
                self.confirmations = 0;
                self.gone = Some(why);
            }
        }
        if !was_confirmed && self.is_confirmed(required) {
            self.confirmed_at = Some(now);
        }
    }
}
