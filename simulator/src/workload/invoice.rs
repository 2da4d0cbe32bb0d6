//! The plan of one invoice: it is issued, sent, viewed, and paid in one of several coins or voided.

use super::{Fault, HOUR, MINUTE, Plan, SECOND, charge::OpenedCharge, steps};
use crate::{
    model::money,
    script::step::{By, Choose, Invoice, Send, Shorthand, Step, Void},
};

/// The e-mail address of a member of the account. In test mode only members receive e-mails.
const MEMBER: &str = "owner@acme.example";

impl Plan {
    pub(super) fn plan_invoice(&mut self, n: u64) {
        let mut draw = self.stream(&format!("invoice/{n}"));
        let mode = self.draw_mode(&mut draw);
        let at = self.draw_time(&mut draw);
        let cents = draw.between(100, 200_000);
        let name = format!("i{n}");
        let (account, bounds) = self.draw_account(&name);
        let invoice = Invoice {
            invoice: steps::name(&name),
            amount: Some(steps::price(cents)),
            items: None,
            currency: None,
            customer_email: draw.chance(3, 4).then(|| MEMBER.to_owned()),
            customer_name: self.draw_short_text(&name),
            memo: self.draw_prose(&format!("memo/{name}")),
            due_at: None,
            send: draw.chance(1, 2),
            account,
            mode: steps::mode(mode),
            refused: None,
        };
        self.add(at, Step::Invoice(invoice));
        let by = |in_dashboard: bool| if in_dashboard { By::Dashboard } else { By::Api };
        for _ in 0..draw.below(3) {
            let send = Send { invoice: steps::name(&name), by: by(draw.chance(1, 2)), refused: None };
            self.add(at + draw.below(2 * HOUR), Step::Send(Shorthand(send)));
        }
        for _ in 0..draw.below(3) {
            self.add(at + draw.below(2 * HOUR), Step::View(steps::name(&name)));
        }
        let mut chosen_at = at;
        for choice in 1..=draw.between(0, 3) {
            chosen_at += draw.between(SECOND, 50 * MINUTE);
            let asset = self.draw_coin(&mut draw);
            let charge = format!("x{n}-{choice}");
            let choose = Choose {
                invoice: Some(steps::name(&name)),
                link: None,
                asset: steps::coin(asset),
                charge: steps::name(&charge),
                amount: None,
                customer_email: None,
                custom_fields: None,
                refused: None,
            };
            self.add(chosen_at, Step::Choose(choose));
            let due = self.market.rate(asset, chosen_at).map(|rate| money::amount_due(cents, rate, asset));
            let opened = OpenedCharge { name: charge, mode, asset, at: chosen_at, due, bounds };
            if draw.chance(3, 4) {
                self.plan_payments(&opened, &mut draw);
            }
            self.plan_owner_actions(&opened, &mut draw);
        }
        if draw.chance(1, 4) || self.draws_fault(Fault::CancelRace, &mut draw) {
            let void = Void { invoice: steps::name(&name), by: by(draw.chance(1, 2)), refused: None };
            self.add(at + draw.below(3 * HOUR), Step::Void(Shorthand(void)));
        }
    }
}
