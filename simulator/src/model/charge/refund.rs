//! Refunds by the contract, and the transfers that each of them returns.

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
    /// The amounts returned of late transfers, by index. The rest is of the received amount.
    late: BTreeMap<usize, u128>,
}

impl Charge {
    /// Returns the total of all refunds.
    pub fn refunded(&self) -> u128 {
        self.refunds.iter().map(|refund| refund.units).sum()
    }

    /// Returns the maximum of that total.
    pub fn refundable(&self) -> u128 {
        let late = self.transfers.iter().filter(|money| self.is_refundable_late(money));
        self.received() + late.map(|money| money.units).sum::<u128>()
    }

    fn is_refundable_late(&self, money: &ChargeTransfer) -> bool {
        money.role == Role::Late && self.is_deep(money)
    }

    /// Returns the amount of a transfer that was refunded while it was late.
    fn returned(&self, place: usize) -> u128 {
        self.refunds.iter().filter_map(|refund| refund.late.get(&place)).sum()
    }

    /// Returns `true` if a late transfer was refunded in full. It cannot be accepted.
    pub(super) fn is_returned(&self, place: usize) -> bool {
        let money = &self.transfers[place];
        money.role == Role::Late && self.returned(place) >= money.units
    }

    /// Returns the total of refunds, without those of late transfers that are still on the chain, which were never
    /// part of the received amount.
    pub(super) fn returned_of_received(&self) -> u128 {
        let mut units = self.refunded();
        for (place, money) in self.transfers.iter().enumerate() {
            if money.role == Role::Late && money.depth.is_some() {
                units -= self.returned(place);
            }
        }
        units
    }

    /// Returns the amount that counts as received for a decision: without refunds, unless the charge is paid.
    pub fn counting(&self) -> u128 {
        match self.status {
            Status::Paid => self.received(),
            _ => self.received().saturating_sub(self.returned_of_received()),
        }
    }

    /// Records a refund, unless it is zero or the total exceeds what can be refunded. It returns the transfers of the
    /// given transaction, if that paid this charge; otherwise late ones, first one of exactly this amount, then in
    /// order.
    pub fn refund(
        &mut self,
        at: Timestamp,
        units: u128,
        (txid, reason): (Option<&str>, Option<&str>),
    ) -> bool {
        if units == 0 || self.refunded() + units > self.refundable() {
            return false;
        }
        let paid_here = |txid: &&str| self.transfers.iter().any(|money| money.txid == *txid);
        let named = txid.filter(paid_here);
        let mut late: BTreeMap<usize, u128> = BTreeMap::new();
        for (place, money) in self.transfers.iter().enumerate() {
            if self.is_refundable_late(money) && named.is_none_or(|txid| txid == money.txid) {
                late.insert(place, money.units - self.returned(place));
            }
        }
        let exact = late.iter().find(|(_, open)| **open == units).map(|(place, _)| *place);
        let mut rest = units;
        if let Some(place) = exact {
            late.retain(|other, _| *other == place);
        }
        for open in late.values_mut() {
            *open = rest.min(*open);
            rest -= *open;
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        self.refunds.push(RefundModel { units, at, txid: owned(txid), reason: owned(reason), late });
        true
    }
}
