//! Payments around the end of a charge's rate lock: fee bumps, stuck transactions, and late payments that are refunded.
//! Each plan has its own random streams, so that it does not affect the others.

use super::{Fault, HOUR, LOCK, MINUTE, Plan, SECOND, charge::OpenedCharge, steps};
use crate::{
    model::money,
    script::step::{FeeLevel, Replace, Step},
};

impl Plan {
    /// Plans a payment and fee bumps of it at the same time, often at the end of the lock. A bump pays the same
    /// amount, a larger or a smaller one.
    pub(super) fn plan_fee_bumps(&mut self, charge: &OpenedCharge) {
        let Some(due) = charge.due else { return };
        let mut draw = self.stream(&format!("bumps/{}", charge.name));
        if !self.draws_fault(Fault::BumpAtOnce, &mut draw) {
            return;
        }
        let end = charge.at + LOCK;
        let at = match draw.below(5) {
            0 => charge.at,
            1 => charge.at + draw.below(25 * MINUTE),
            // A microsecond before the end, at it, or after it.
            _ => end - 1 + draw.below(3),
        };
        let format_amount = |units: u128| steps::amount(money::format_units(units.max(1), charge.asset));
        let mut units = [due, due, due / 2][draw.below(3) as usize];
        let mut tx = charge.transaction_name(10);
        let mut pay = steps::pay(&charge.name, &tx);
        (pay.amount, pay.fee) = (Some(format_amount(units)), Some(FeeLevel::Low));
        self.add(at, steps::pay_step(pay));
        for _ in 0..draw.between(1, 3) {
            let amount =
                [None, Some(units + 1), Some(units.saturating_sub(1)), Some(due)][draw.below(4) as usize];
            units = amount.unwrap_or(units);
            let bumped = format!("{tx}r");
            let replace = Replace {
                tx: steps::name(&tx),
                named: Some(steps::name(&bumped)),
                amount: amount.map(format_amount),
                elsewhere: false,
                fee: Some(FeeLevel::High),
                refused: None,
            };
            self.add(at, Step::Replace(replace));
            tx = bumped;
        }
    }

    /// Plans a stuck transaction before the end of the lock, which may be replaced after it, or a late payment with
    /// refunds.
    pub(super) fn plan_lock_end(&mut self, charge: &OpenedCharge) {
        let Some(due) = charge.due else { return };
        let mut draw = self.stream(&format!("lock-end/{}", charge.name));
        let end = charge.at + LOCK;
        let format_amount = |units: u128| steps::amount(money::format_units(units.max(1), charge.asset));
        let (stuck_tx, other_tx) = (charge.transaction_name(5), charge.transaction_name(6));
        let (is_stuck, is_bumped) =
            (self.draws_fault(Fault::StuckAtEnd, &mut draw), self.draws_fault(Fault::BumpAtEnd, &mut draw));
        if is_stuck || is_bumped {
            let least_enough = money::least_enough(due, charge.bounds.0);
            let units = [1, least_enough.saturating_sub(1), least_enough, due][draw.below(4) as usize];
            let mut pay = steps::pay(&charge.name, &stuck_tx);
            (pay.amount, pay.fee) = (Some(format_amount(units)), Some(FeeLevel::Stuck));
            let at = end - 1 - draw.below(5 * MINUTE);
            self.add(at, steps::pay_step(pay));
            if is_bumped {
                let amount = [None, Some(units + 1), Some(units / 2), Some(due)][draw.below(4) as usize];
                let replace = Replace {
                    tx: steps::name(&stuck_tx),
                    named: Some(steps::name(&format!("{stuck_tx}r"))),
                    amount: amount.map(format_amount),
                    elsewhere: false,
                    fee: Some(FeeLevel::High),
                    refused: None,
                };
                self.add(end + draw.below(3 * HOUR), Step::Replace(replace));
            } else if draw.chance(1, 2) {
                // Dropped when all faults end. The other half of them is never dropped: the service stops
                // waiting for it after a while.
                self.stuck.push((at, stuck_tx));
            }
            if draw.chance(1, 2) {
                let mut pay = steps::pay(&charge.name, &other_tx);
                pay.amount = Some(format_amount(due));
                self.add(end + draw.below(10 * HOUR), steps::pay_step(pay));
            }
        } else if self.draws_fault(Fault::LateRefund, &mut draw) {
            let at = end + draw.between(1, 2 * HOUR);
            let mut pay = steps::pay(&charge.name, &other_tx);
            pay.amount = Some(format_amount(due));
            self.add(at, steps::pay_step(pay));
            let mut later = at + draw.between(SECOND, 3 * HOUR);
            for units in [due / 2, due - due / 2, 1] {
                let amount = money::format_units(units.max(1), charge.asset);
                self.add(later, steps::refund(&charge.name, amount));
                later += draw.below(HOUR);
            }
        }
    }
}
