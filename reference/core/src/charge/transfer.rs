//! One transfer to a charge's address.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    money::Coin,
    sighting::{Depth, Disappearance, Sighting},
    time::Timestamp,
};

/// The standing of a transfer: whether it counts towards the received amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Seen in time: it counts once it is confirmed.
    OnTime,
    /// Late: it waits for acceptance by the account owner.
    Late,
    /// Late, and accepted by the account owner.
    Accepted,
    /// To a paid charge: it counts once it is confirmed.
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
    /// The height of the chain when these confirmations were seen.
    pub(super) height: u64,
    /// The reason for which it vanished, if it did.
    pub disappearance: Option<Disappearance>,
    /// `true` if it is part of the received amount.
    pub is_credited: bool,
    /// The service's time of the first sighting.
    pub seen_at: Timestamp,
    /// The time at which it last reached the required number of confirmations.
    pub confirmed_at: Option<Timestamp>,
    /// The rule by which it counts towards the received amount.
    pub standing: Standing,
    /// `true` once `charge.late_payment` was recorded for it.
    pub is_late_reported: bool,
    /// `true` once `charge.underpaid` was recorded for it.
    pub is_underpaid_reported: bool,
}

impl Transfer {
    /// Returns `true` if it is in the mempool or on the active branch.
    pub fn is_present(&self) -> bool {
        self.disappearance.is_none()
    }

    /// Returns `true` if it has the required confirmations.
    pub fn is_confirmed(&self, required: u32) -> bool {
        self.is_present() && self.confirmations >= required
    }

    /// Returns the status in responses: `pending`, `confirmed`, or the reason why it vanished: `double_spent`, `replaced`,
    /// `dropped`.
    pub fn status(&self, required: u32) -> &'static str {
        match self.disappearance {
            Some(reason) => reason.as_str(),
            None if self.is_confirmed(required) => "confirmed",
            None => "pending",
        }
    }

    /// Returns the confirmations at this height of the chain. The watcher reports them up to the required number; from then
    /// on every block adds one.
    pub fn confirmations_at(&self, height: u64, required: u32) -> u32 {
        let later_blocks = if self.is_confirmed(required) { height.saturating_sub(self.height) } else { 0 };
        self.confirmations.saturating_add(u32::try_from(later_blocks).unwrap_or(u32::MAX))
    }

    /// Replaces the reported confirmations by those at this height.
    pub(super) fn freeze(&mut self, height: u64, required: u32) {
        self.confirmations = self.confirmations_at(height, required);
        self.height = self.height.max(height);
    }

    /// Applies the depth that the chain watcher reported.
    pub(super) fn apply_depth(&mut self, now: Timestamp, sighting: &Sighting, required: u32) {
        let was_confirmed = self.is_confirmed(required);
        self.height = sighting.height;
        match sighting.depth {
            Depth::Confirmations(n) => {
                self.confirmations = n;
                self.disappearance = None;
            }
            Depth::Absent(reason) => {
                self.confirmations = 0;
                self.disappearance = Some(reason);
            }
        }
        if !was_confirmed && self.is_confirmed(required) {
            self.confirmed_at = Some(now);
        }
    }
}
