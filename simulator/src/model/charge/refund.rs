//! Refunds by the contract, and which transfers each returns.

use std::collections::BTreeMap;

use reference_core::time::Timestamp;

use super::{Charge, ChargeTransfer, Role, Status};

/// Money that the merchant sent back.
#[derive(Clone, Debug)]
pub(in crate::model) struct RefundModel {
    pub(in crate::model) units: u128,
    pub(in crate::model) at: Timestamp,
    pub(in crate::model) txid: Option<String>,
    pub(in crate::model) reason: Option<String>,
    /// Units that it returns of late transfers, by their places. The rest is of what was received.
    late: BTreeMap<usize, u128>,
}

impl Charge {
    /// The total of all refunds.
    pub fn refunded(&self) -> u128 {
        self.refunds.iter().map(|refund| refund.units).sum()
    }

    /// The bound of that total.
    pub fn refundable(&self) -> u128 {
        let late = self.transfers.iter().filter(|money| self.is_refundable_late(money));
        self.received() + late.map(|money| money.units).sum::<u128>()
    }

    fn is_refundable_late(&self, money: &ChargeTransfer) -> bool {
        money.role == Role::Late && self.is_deep(money)
    }

    /// Units that were sent back of a transfer while it was late.
    fn returned(&self, place: usize) -> u128 {
        self.refunds.iter().filter_map(|refund| refund.late.get(&place)).sum()
    }

    /// A late transfer all of which was sent back. Nobody can accept it.
    pub(super) fn is_returned(&self, place: usize) -> bool {
        let money = &self.transfers[place];
        money.role == Role::Late && self.returned(place) >= money.units
    }

    /// Refunds other than those of late transfers that are still on the chain: these were never part of what was received.
    pub(super) fn returned_of_received(&self) -> u128 {
        let mut units = self.refunded();
        for (place, money) in self.transfers.iter().enumerate() {
            if money.role == Role::Late && money.depth.is_some() {
                units -= self.returned(place);
            }
        }
        units
    }

    /// The units that count as received in a decision: while it is not paid, without refunded money.
    pub fn counting(&self) -> u128 {
        match self.status {
            Status::Paid => self.received(),
            _ => self.received().saturating_sub(self.returned_of_received()),
        }
    }

    /// Records a refund, unless it is of nothing or, with those before, of more than may be sent back. It returns the
    /// transfers of the transaction that it names, if that paid this charge; otherwise late ones, first the one of just
    /// this amount, then in order.
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
