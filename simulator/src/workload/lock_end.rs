//! Actions around the end of a charge's lock: stuck money, fee bumps after it, late money that is refunded. The
//! draws are its own, so that other plans keep theirs.

use super::{Fault, HOUR, LOCK, MINUTE, Plan, SECOND, charge::OpenedCharge, words};
use crate::{
    model::money,
    script::step::{FeeLevel, Replace, Step},
};

impl Plan {
    /// A payer who raises the fee in the moment in which the payment was sent, once or several times: to as much, to more
    /// or to less. Around the end of the lock such a moment decides.
    pub(super) fn tell_bumps(&mut self, charge: &OpenedCharge) {
        let Some(due) = charge.due else { return };
        let mut draw = self.stream(&format!("bumps/{}", charge.name));
        if !self.strikes(Fault::BumpAtOnce, &mut draw) {
            return;
        }
        let end = charge.at + LOCK;
        let at = match draw.below(5) {
            0 => charge.at,
            1 => charge.at + draw.below(25 * MINUTE),
            _ => end - 1 + draw.below(3),
        };
        let written = |units: u128| words::amount(money::written(units.max(1), charge.asset));
        let mut units = [due, due, due / 2][draw.below(3) as usize];
        let mut tx = charge.tx(10);
        let mut pay = words::pay(&charge.name, &tx);
        (pay.amount, pay.fee) = (Some(written(units)), Some(FeeLevel::Low));
        self.add(at, words::paid(pay));
        for _ in 0..draw.between(1, 3) {
            let amount =
                [None, Some(units + 1), Some(units.saturating_sub(1)), Some(due)][draw.below(4) as usize];
            units = amount.unwrap_or(units);
            let bumped = format!("{tx}r");
            let replace = Replace {
                tx: words::name(&tx),
                named: Some(words::name(&bumped)),
                amount: amount.map(written),
                elsewhere: false,
                fee: Some(FeeLevel::High),
                refused: None,
            };
            self.add(at, Step::Replace(replace));
            tx = bumped;
        }
    }

    pub(super) fn tell_lock_end(&mut self, charge: &OpenedCharge) {
        let Some(due) = charge.due else { return };
        let mut draw = self.stream(&format!("lock-end/{}", charge.name));
        let end = charge.at + LOCK;
        let written = |units: u128| words::amount(money::written(units.max(1), charge.asset));
        let (stuck, other) = (charge.tx(5), charge.tx(6));
        let (is_stuck, is_bumped) =
            (self.strikes(Fault::StuckAtEnd, &mut draw), self.strikes(Fault::BumpAtEnd, &mut draw));
        if is_stuck || is_bumped {
            let least = money::least_enough(due, charge.bounds.0);
            let units = [1, least.saturating_sub(1), least, due][draw.below(4) as usize];
            let mut pay = words::pay(&charge.name, &stuck);
            (pay.amount, pay.fee) = (Some(written(units)), Some(FeeLevel::Stuck));
            let at = end - 1 - draw.below(5 * MINUTE);
            self.add(at, words::paid(pay));
            if is_bumped {
                let amount = [None, Some(units + 1), Some(units / 2), Some(due)][draw.below(4) as usize];
                let replace = Replace {
                    tx: words::name(&stuck),
                    named: Some(words::name(&format!("{stuck}r"))),
                    amount: amount.map(written),
                    elsewhere: false,
                    fee: Some(FeeLevel::High),
                    refused: None,
                };
                self.add(end + draw.below(3 * HOUR), Step::Replace(replace));
            } else if draw.chance(1, 2) {
                // The others stay stuck for good: a hold ends by itself.
                self.stuck.push((at, stuck));
            }
            if draw.chance(1, 2) {
                let mut pay = words::pay(&charge.name, &other);
                pay.amount = Some(written(due));
                self.add(end + draw.below(10 * HOUR), words::paid(pay));
            }
        } else if self.strikes(Fault::LateRefund, &mut draw) {
            let at = end + draw.between(1, 2 * HOUR);
            let mut pay = words::pay(&charge.name, &other);
            pay.amount = Some(written(due));
            self.add(at, words::paid(pay));
            let mut later = at + draw.between(SECOND, 3 * HOUR);
            for units in [due / 2, due - due / 2, 1] {
                let text = money::written(units.max(1), charge.asset);
                self.add(later, words::refund(&charge.name, text));
                later += draw.below(HOUR);
            }
        }
    }
}
