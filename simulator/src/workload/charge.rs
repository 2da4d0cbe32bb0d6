//! The plan of one charge: its opening, its payments, and later actions of the customer, the owner and the chain.

use reference_core::{asset::Asset, mode::Mode, rng::RngStream};
use serde_json::json;

use super::{Fault, HOUR, LOCK, MINUTE, Plan, SECOND, steps};
use crate::{
    model::money,
    script::step::{By, FeeLevel, Keep, Open, Pay, Reorg, Replace, Shorthand, Step},
};

/// A planned charge, for the plans of later actions on it.
pub(super) struct OpenedCharge {
    pub(super) name: String,
    pub(super) mode: Mode,
    pub(super) asset: Asset,
    /// The time at which it is opened.
    pub(super) at: u64,
    /// The amount due in the coin's smallest units; `None` if no rate is available.
    pub(super) due: Option<u128>,
    /// The tolerance and threshold of its account, in hundredths of a percent.
    pub(super) bounds: (u32, u32),
}

impl OpenedCharge {
    /// Returns the name of its `nth` transaction: 1 to 4 are payments, 5 and 6 are paid around the end of the
    /// lock, 7 to 9 are faults, 10 is the one that [`Plan::plan_fee_bumps`] replaces. The letter depends on
    /// that of the charge, so that names are unique.
    pub(super) fn transaction_name(&self, nth: u64) -> String {
        let number = self.name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let letter = match self.name.as_bytes().first() {
            Some(b'c') => "t",
            Some(b'x') => "u",
            Some(b'q') => "w",
            _ => "v",
        };
        format!("{letter}{number}-{nth}")
    }
}

impl Plan {
    pub(super) fn plan_charge(&mut self, n: u64) {
        let mut draw = self.stream(&format!("charge/{n}"));
        let (mode, asset) = (self.draw_mode(&mut draw), self.draw_coin(&mut draw));
        let at = self.draw_time(&mut draw);
        let cents = match draw.below(6) {
            0 => draw.between(1, 99),
            1 => draw.between(100_000, 9_999_999),
            _ => draw.between(100, 50_000),
        };
        let name = format!("c{n}");
        let cents = self.draw_edge_price(&name).unwrap_or(cents);
        let (account, bounds) = self.draw_account(&name);
        let key = self.draw_idempotency_key(&name);
        let is_repeated = key.is_some();
        let open = Open {
            charge: steps::name(&name),
            asset: steps::coin(asset),
            amount: Some(steps::price(cents)),
            link: None,
            customer_email: None,
            description: self.draw_prose(&format!("description/{name}")),
            metadata: self.draw_metadata(&name),
            custom_fields: None,
            idempotency_key: key,
            account,
            mode: steps::mode(mode),
            refused: None,
        };
        self.add(at, Step::Open(open));
        if is_repeated {
            self.plan_repeats(&name, at);
        }
        let due = self.market.rate(asset, at).map(|rate| money::amount_due(cents, rate, asset));
        let opened = OpenedCharge { name, mode, asset, at, due, bounds };
        self.plan_payments(&opened, &mut draw);
        self.plan_owner_actions(&opened, &mut draw);
        self.plan_lock_end(&opened);
        self.plan_fee_bumps(&opened);
    }

    /// Plans the customer's payments.
    pub(super) fn plan_payments(&mut self, charge: &OpenedCharge, draw: &mut RngStream) {
        let mut at = self.draw_first_payment(charge, draw);
        let tx = |nth: u64| charge.transaction_name(nth);
        match draw.below(12) {
            // Never paid.
            0 => {}
            1 | 2 => {
                // Paid in parts; the last part may pay all of the rest.
                let parts = draw.between(2, 4);
                for part in 1..=parts {
                    let mut pay = steps::pay(&charge.name, &tx(part));
                    if part < parts || draw.chance(1, 3) {
                        pay.share = Some(steps::share(draw.between(10, 90)));
                    }
                    self.plan_transaction(charge, at, pay, draw);
                    at += draw.between(SECOND, 20 * MINUTE);
                }
            }
            3 | 4 => {
                if let Some(due) = charge.due {
                    let units = amount_at_bound(due, charge.bounds, draw);
                    if draw.chance(1, 4) && units > 4 {
                        // The same amount in several parts.
                        let part = units / 4;
                        for (n, units) in [(1, part), (2, part), (3, part), (4, units - 3 * part)] {
                            self.plan_transaction_of(charge, at, units, &tx(n), draw);
                            at += draw.between(0, 2 * MINUTE);
                        }
                    } else {
                        self.plan_transaction_of(charge, at, units, &tx(1), draw);
                    }
                }
            }
            5 => {
                let mut pay = steps::pay(&charge.name, &tx(1));
                pay.over =
                    charge.due.map(|due| steps::amount(money::format_units(due / 20 + 1, charge.asset)));
                self.plan_transaction(charge, at, pay, draw);
            }
            _ => {
                self.plan_transaction(charge, at, steps::pay(&charge.name, &tx(1)), draw);
                if draw.chance(1, 6) {
                    // A customer who pays twice.
                    at += draw.between(SECOND, 3 * HOUR);
                    let mut pay = steps::pay(&charge.name, &tx(2));
                    pay.amount = charge.due.map(|due| steps::amount(money::format_units(due, charge.asset)));
                    self.plan_transaction(charge, at, pay, draw);
                }
            }
        }
        if self.draws_fault(Fault::Dust, draw) {
            self.plan_transaction_of(charge, at + draw.below(HOUR), 1, &tx(7), draw);
        }
        if self.draws_fault(Fault::WrongCoin, draw) {
            let mut pay = steps::pay(&charge.name, &tx(8));
            let other = Asset::ALL[draw.below(Asset::ALL.len() as u64) as usize];
            (pay.asset, pay.amount) = (Some(steps::coin(other)), Some(steps::amount("1".to_owned())));
            self.add(at + draw.below(HOUR), steps::pay_step(pay));
        }
        if self.draws_fault(Fault::WrongNetwork, draw) {
            let other = if charge.mode == Mode::Live { Mode::Test } else { Mode::Live };
            let pay = Pay {
                address_of: Some(steps::name(&charge.name)),
                amount: Some(steps::amount("2".to_owned())),
                mode: Some(crate::script::value::ModeName(other)),
                tx: Some(steps::name(&tx(9))),
                ..Pay::default()
            };
            self.add(at + draw.below(HOUR), steps::pay_step(pay));
        }
    }

    /// Draws the time of the first payment: usually within the rate lock, sometimes around its end or after it.
    fn draw_first_payment(&self, charge: &OpenedCharge, draw: &mut RngStream) -> u64 {
        let end = charge.at + LOCK;
        if self.draws_fault(Fault::LockEdge, draw) {
            return end - 1 + draw.below(3);
        }
        match draw.below(8) {
            0 => end + draw.between(1, 5 * HOUR),
            1 => charge.at,
            2 => end - draw.between(1, 5 * MINUTE),
            _ => charge.at + draw.between(SECOND, 25 * MINUTE),
        }
    }

    /// Plans a payment of an amount in the coin's smallest units.
    fn plan_transaction_of(
        &mut self,
        charge: &OpenedCharge,
        at: u64,
        units: u128,
        tx: &str,
        draw: &mut RngStream,
    ) {
        let mut pay = steps::pay(&charge.name, tx);
        pay.amount = Some(steps::amount(money::format_units(units, charge.asset)));
        self.plan_transaction(charge, at, pay, draw);
    }

    /// Plans a payment, and faults of its transaction.
    fn plan_transaction(&mut self, charge: &OpenedCharge, at: u64, mut pay: Pay, draw: &mut RngStream) {
        let tx = pay.tx.as_ref().expect("planned payments name their transactions").value.0.clone();
        if self.draws_fault(Fault::LowFee, draw) {
            pay.fee = Some(FeeLevel::Low);
        } else if self.draws_fault(Fault::Stuck, draw) {
            pay.fee = Some(FeeLevel::Stuck);
            self.stuck.push((at, tx.clone()));
        } else if draw.chance(1, 8) {
            pay.fee = Some(steps::FEES[draw.below(2) as usize]);
        }
        pay.unseen = self.draws_fault(Fault::Unseen, draw);
        if self.draws_fault(Fault::Outputs, draw) {
            pay.outputs = Some(draw.between(2, 4) as u32);
        }
        self.add(at, steps::pay_step(pay));
        let block = charge.asset.facts().block_time.0;
        let soon_after = |draw: &mut RngStream| at + draw.between(1, 2 * block);
        if self.draws_fault(Fault::DoubleSpend, draw) {
            self.add(soon_after(draw), Step::DoubleSpend(steps::transaction_step(&tx)));
        }
        if self.draws_fault(Fault::Replace, draw) {
            self.plan_replacement(charge, &tx, soon_after(draw), draw);
        }
        if self.draws_fault(Fault::Drop, draw) {
            let dropped_at = soon_after(draw);
            self.add(dropped_at, Step::Drop(steps::transaction_step(&tx)));
            if draw.chance(1, 2) {
                let sent_again_at = dropped_at + draw.between(1, HOUR);
                self.add(sent_again_at, Step::Rebroadcast(steps::transaction_step(&tx)));
            }
        }
        if self.draws_fault(Fault::Reorg, draw) {
            let required = charge.asset.required_confirmations(charge.mode);
            let depth = draw.between(1, u64::from(required) + 2) as u32;
            let blocks = draw.between(1, u64::from(required) + 3);
            self.plan_reorg(charge.mode, charge.asset, at + blocks * block, depth, draw);
        }
    }

    fn plan_replacement(&mut self, charge: &OpenedCharge, tx: &str, at: u64, draw: &mut RngStream) {
        let (mut amount, mut elsewhere) = (None, false);
        match draw.below(3) {
            0 => elsewhere = true,
            1 => {
                let units = charge.due.unwrap_or(1_000) / u128::from(draw.between(1, 4));
                amount = Some(steps::amount(money::format_units(units.max(1), charge.asset)));
            }
            _ => {}
        }
        let step = Replace {
            tx: steps::name(tx),
            named: Some(steps::name(&format!("{tx}r"))),
            amount,
            elsewhere,
            fee: Some(FeeLevel::High),
            refused: None,
        };
        self.add(at, Step::Replace(step));
    }

    pub(super) fn plan_reorg(&mut self, mode: Mode, asset: Asset, at: u64, depth: u32, draw: &mut RngStream) {
        if draw.chance(1, 8) {
            // With `account`, only payments to that account are reorganised.
            let mut request = steps::request("POST", "/sandbox/reorg".to_owned(), mode.as_str());
            request.body = Some(
                json!({ "account": "acme", "asset": asset.code(), "mode": mode.as_str(), "depth": depth }),
            );
            return self.add(at, Step::Request(request));
        }
        let keep = if draw.chance(1, 4) { Keep::All } else { Keep::None };
        let step = Reorg { asset: steps::coin(asset), mode: steps::mode(mode), depth, keep, refused: None };
        self.add(at, Step::Reorg(step));
    }

    /// Returns `true` if a payment with this transaction name is planned before a time.
    fn is_planned_before(&self, tx: &str, time: u64) -> bool {
        self.steps.iter().any(|planned| match &planned.step {
            Step::Pay(Shorthand(pay)) => {
                planned.at < time && pay.tx.as_ref().is_some_and(|name| name.value.0 == tx)
            }
            _ => false,
        })
    }

    /// Plans the account owner's actions on a charge.
    pub(super) fn plan_owner_actions(&mut self, charge: &OpenedCharge, draw: &mut RngStream) {
        let end = charge.at + LOCK;
        if self.draws_fault(Fault::CancelRace, draw) {
            let at = match draw.below(4) {
                0 => end - 1 + draw.below(3),
                1 => charge.at,
                _ => charge.at + draw.between(1, 40 * MINUTE),
            };
            let by = if draw.chance(1, 2) { By::Api } else { By::Dashboard };
            self.add(at, steps::cancel(&charge.name, by));
        }
        if draw.chance(1, 4) {
            // Refunds, in some worlds before the charge is fully paid.
            let from = if draw.chance(1, 3) { charge.at } else { end };
            for _ in 0..draw.between(1, 3) {
                let units = match charge.due {
                    Some(due) => due / u128::from(draw.between(1, 4)) + u128::from(draw.below(2)),
                    None => 1,
                };
                let amount = money::format_units(units.max(1), charge.asset);
                self.add(from + draw.below(6 * HOUR), steps::refund(&charge.name, amount));
            }
        }
        if draw.chance(1, 4) {
            let (at, tx) = (end + draw.below(10 * HOUR), charge.transaction_name(draw.between(1, 2)));
            let is_named = draw.chance(1, 2) && self.is_planned_before(&tx, at);
            self.add(at, steps::accept(&charge.name, is_named.then_some(&tx)));
        }
    }
}

/// Draws an amount: usually at a bound (paid or not, overpaid or not), where one unit makes a difference,
/// otherwise all or half of the amount due.
fn amount_at_bound(due: u128, (tolerance, threshold): (u32, u32), draw: &mut RngStream) -> u128 {
    let least_paid = money::least_enough(due, tolerance);
    let most_not_overpaid = money::most_not_overpaid(due, threshold);
    let units = match draw.below(6) {
        0 => least_paid.saturating_sub(1),
        1 => least_paid,
        2 => due,
        3 => most_not_overpaid,
        4 => most_not_overpaid + 1,
        _ => due / 2,
    };
    units.max(1)
}
