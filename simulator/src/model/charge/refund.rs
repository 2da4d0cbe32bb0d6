//! Refunds, and the transfers that each of them returns.

use std::collections::BTreeMap;

use reference_core::time::Timestamp;

use super::{Charge, ChargeTransfer, Role, Status};

/// A recorded refund.
#[derive(Clone, Debug)]
pub(in crate::model) struct RefundModel {
    pub(in crate::model) units: u128,
    pub(in crate::model) at: Timestamp,
    pub(in crate::model) txid: Option<String>,
    pub(in crate::model) reason: Option<String>,
    /// The part of each late transfer that this refund returned, by the index of the transfer. The rest of the refund was
    /// taken from the received amount.
    late: BTreeMap<usize, u128>,
}

impl Charge {
    /// Returns the total of all refunds.
    pub fn refunded_units(&self) -> u128 {
        self.refunds.iter().map(|refund| refund.units).sum()
    }

    /// Returns the maximum total of all refunds.
    pub fn refundable_units(&self) -> u128 {
        let late = self.transfers.iter().filter(|transfer| self.is_refundable_late(transfer));
        self.received_units() + late.map(|transfer| transfer.units).sum::<u128>()
    }

    /// Returns `true` for a confirmed late transfer: it can be refunded, although it is not part of the
    /// received amount.
    fn is_refundable_late(&self, transfer: &ChargeTransfer) -> bool {
        transfer.role == Role::Late && self.is_confirmed(transfer)
    }

    /// Returns the amount of a transfer that was refunded while it was late.
    fn refunded_while_late(&self, index: usize) -> u128 {
        self.refunds.iter().filter_map(|refund| refund.late.get(&index)).sum()
    }

    /// Returns `true` if a late transfer was refunded in full: the owner can no longer accept it as a payment.
    pub(super) fn is_fully_refunded(&self, index: usize) -> bool {
        let transfer = &self.transfers[index];
        transfer.role == Role::Late && self.refunded_while_late(index) >= transfer.units
    }

    /// Returns the total of the refunds that reduce the received amount. A refund of a late transfer does not, because late
    /// transfers are no part of the received amount. It does once the transfer has disappeared from the chain: then the
    /// refund returned other money.
    pub(super) fn refunds_of_received(&self) -> u128 {
        let mut units = self.refunded_units();
        for (index, transfer) in self.transfers.iter().enumerate() {
            if transfer.role == Role::Late && transfer.depth.is_some() {
                units -= self.refunded_while_late(index);
            }
        }
        units
    }

    /// Returns the amount that decides whether the charge is paid: the received amount minus its refunds. For a charge that is
    /// already paid, refunds are not subtracted.
    pub fn effective_units(&self) -> u128 {
        match self.status {
            Status::Paid => self.received_units(),
            _ => self.received_units().saturating_sub(self.refunds_of_received()),
        }
    }

    /// Records a refund; returns `false` if it is zero, or if the total exceeds [`Charge::refundable_units`].
    ///
    /// A refund first returns confirmed late transfers, in order; the rest is taken from the received amount. If `txid` is a
    /// transaction of this charge, only its late transfers are returned. If the unrefunded amount of one of them is exactly
    /// `units`, only the first such transfer is returned.
    pub fn refund(
        &mut self,
        at: Timestamp,
        units: u128,
        (txid, reason): (Option<&str>, Option<&str>),
    ) -> bool {
        if units == 0 || self.refunded_units() + units > self.refundable_units() {
            return false;
        }
        let paid_here = |txid: &&str| self.transfers.iter().any(|transfer| transfer.txid == *txid);
        let named = txid.filter(paid_here);
        let mut refundable: BTreeMap<usize, u128> = BTreeMap::new();
        for (index, transfer) in self.transfers.iter().enumerate() {
            if self.is_refundable_late(transfer) && named.is_none_or(|txid| txid == transfer.txid) {
                refundable.insert(index, transfer.units - self.refunded_while_late(index));
            }
        }
        let exact = refundable.iter().find(|(_, amount)| **amount == units).map(|(index, _)| *index);
        if let Some(index) = exact {
            refundable.retain(|other, _| *other == index);
        }
        let mut rest = units;
        let mut late: BTreeMap<usize, u128> = BTreeMap::new();
        for (index, amount) in refundable {
            let refunded = rest.min(amount);
            late.insert(index, refunded);
            rest -= refunded;
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        self.refunds.push(RefundModel { units, at, txid: owned(txid), reason: owned(reason), late });
        true
    }
}
