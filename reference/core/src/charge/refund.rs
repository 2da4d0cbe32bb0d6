//! Refunds of a charge: their bound, and the transfers that each refund covers.

use serde::{Deserialize, Serialize};

use super::{Charge, Standing, Transfer};
use crate::{error::ApiError, money::Coin, time::Timestamp};

/// Money that the merchant sent back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refund {
    /// The amount.
    pub amount: Coin,
    /// The transaction, if the merchant named it.
    pub txid: Option<String>,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// The time at which it was recorded.
    pub created_at: Timestamp,
    /// The late transfers that the refund covers, by index, with the refunded amount of each. The rest of the amount
    /// refunds received money.
    late_parts: Vec<(usize, Coin)>,
}

impl Charge {
    /// Returns the total of all refunds.
    pub fn refunded_amount(&self) -> Coin {
        self.refunds.iter().map(|refund| refund.amount).sum()
    }

    /// Returns the total of the refunds of received money: all refunds except those of late transfers that are present and
    /// not accepted.
    pub(super) fn refunded_received_amount(&self) -> Coin {
        let is_late = |transfer: &Transfer| transfer.standing == Standing::Late && transfer.is_present();
        let late = self.transfers.iter().enumerate().filter(|(_, transfer)| is_late(transfer));
        self.refunded_amount().saturating_sub(late.map(|(index, _)| self.late_refund_amount(index)).sum())
    }

    /// Returns the amount of a transfer that was refunded while it was late.
    fn late_refund_amount(&self, index: usize) -> Coin {
        let parts = self.refunds.iter().flat_map(|refund| &refund.late_parts);
        parts.filter(|(transfer, _)| *transfer == index).map(|(_, part)| *part).sum()
    }

    /// Returns `true` if the transfer is late and was refunded in full, so that it cannot be accepted.
    pub(super) fn is_late_and_refunded(&self, index: usize) -> bool {
        let transfer = &self.transfers[index];
        transfer.standing == Standing::Late && self.late_refund_amount(index) >= transfer.amount
    }

    /// Returns the late transfers that were refunded in full.
    pub fn refunded_late_transfers(&self) -> impl Iterator<Item = &Transfer> {
        let indexes = 0..self.transfers.len();
        indexes.filter(|&index| self.is_late_and_refunded(index)).map(|index| &self.transfers[index])
    }

    /// Records a refund. All refunds together never exceed the received and the confirmed late payments.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] on `amount`, if it is zero or too much.
    pub(crate) fn refund(
        &mut self,
        now: Timestamp,
        amount: Coin,
        (txid, reason): (Option<String>, Option<String>),
        required: u32,
    ) -> Result<(), ApiError> {
        let refundable =
            self.received_amount().plus(self.late_amount(required)).saturating_sub(self.refunded_amount());
        if amount == Coin::ZERO {
            return Err(ApiError::field("amount", "The amount field must be greater than 0."));
        }
        if amount > refundable {
            return Err(ApiError::field(
                "amount",
                format!(
                    "The amount field must not be greater than {refundable}, the amount received and not yet refunded."
                ),
            ));
        }
        let late_parts = self.late_parts(amount, txid.as_deref(), required);
        self.refunds.push(Refund { amount, txid, reason, created_at: now, late_parts });
        Ok(())
    }

    /// Returns the late transfers that a refund covers, by index, with the refunded amount of each. Only confirmed
    /// transfers count. If `txid` is a transaction that paid this charge, only its transfers are covered. Transfers of
    /// which exactly this amount is not refunded yet come first, then the oldest.
    fn late_parts(&self, amount: Coin, txid: Option<&str>, required: u32) -> Vec<(usize, Coin)> {
        let is_named = |transfer: &Transfer| txid == Some(&*transfer.txid);
        let is_transfer_named = self.transfers.iter().any(is_named);
        let mut candidates: Vec<(usize, Coin)> = Vec::new();
        for (index, transfer) in self.transfers.iter().enumerate() {
            let is_late = transfer.standing == Standing::Late && transfer.is_confirmed(required);
            if is_late && (!is_transfer_named || is_named(transfer)) {
                candidates.push((index, transfer.amount.saturating_sub(self.late_refund_amount(index))));
            }
        }
        candidates.sort_by_key(|(_, unrefunded)| *unrefunded != amount);
        let mut left = amount;
        let parts = candidates.into_iter().map(|(index, unrefunded)| {
            let part = unrefunded.min(left);
            left = left.saturating_sub(part);
            (index, part)
        });
        parts.filter(|(_, part)| *part > Coin::ZERO).collect()
    }
}
