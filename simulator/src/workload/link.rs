//! The story of one payment link: its terms, the customers who open its page, and their charges.

use reference_core::rng::RngStream;

use super::{Fault, HOUR, MINUTE, Plan, SECOND, charge::OpenedCharge, words};
use crate::{
    chain::FeeLevel,
    model::money,
    script::step::{Brief, Choose, Drop, Link, LinkAnswer, LinkQuestion, Open, Pay, Step},
};

/// The questions of links.
const LABELS: [&str; 3] = ["Size", "Größe 👕", "\"Note\""];

/// The cents that a customer says. Of a fixed price nothing has to be said, but may be; a wrong one is refused.
fn said_amount(fixed: Option<u64>, cents: u64, draw: &mut RngStream) -> Option<u64> {
    match fixed {
        None => Some(cents),
        Some(_) if draw.chance(1, 4) => Some(cents + draw.below(2)),
        Some(_) => None,
    }
}

impl Plan {
    pub(super) fn tell_link(&mut self, n: u64) {
        let mut draw = self.stream(&format!("link/{n}"));
        let mode = self.pick_mode(&mut draw);
        let at = self.pick_moment(&mut draw);
        let fixed = draw.chance(2, 3).then(|| draw.between(1, 60_000));
        let name = format!("l{n}");
        let (account, bounds) = self.pick_account(&name);
        // More customers at once than payments are taken.
        let mut crowd = self.stream(&format!("crowd/{name}"));
        let is_crowded = self.strikes(Fault::FullLink, &mut crowd);
        let questions = self.questions(&name);
        let link = Link {
            link: words::name(&name),
            title: self.edge_name(&name),
            amount: fixed.map(words::price),
            currency: fixed.is_none().then_some(words::EUR),
            accepted_assets: draw.chance(1, 3).then(|| vec![words::coin(self.pick_coin(&mut draw))]),
            max_payments: (draw.chance(1, 2) || is_crowded).then(|| draw.between(1, 2) as u32),
            custom_fields: questions.clone(),
            account: account.clone(),
            mode: words::mode(mode),
            refused: None,
        };
        self.add(at, Step::Link(Brief(link)));
        for _ in 0..draw.below(3) {
            self.add(at + draw.below(2 * HOUR), Step::View(words::name(&name)));
        }
        let mut opened_at = at;
        for customer in 1..=draw.between(1, 4) {
            opened_at += draw.between(SECOND, 50 * MINUTE) / if is_crowded { 50 } else { 1 };
            let (asset, charge) = (self.pick_coin(&mut draw), format!("p{n}-{customer}"));
            let cents = fixed.unwrap_or_else(|| draw.between(1, 60_000));
            let said = said_amount(fixed, cents, &mut draw);
            let answers = self.answers(&charge, questions.as_deref());
            let step = if draw.chance(1, 2) {
                Step::Choose(Choose {
                    invoice: None,
                    link: Some(words::name(&name)),
                    asset: words::coin(asset),
                    charge: words::name(&charge),
                    amount: said.map(words::cents),
                    customer_email: None,
                    custom_fields: answers,
                    refused: None,
                })
            } else {
                Step::Open(Open {
                    charge: words::name(&charge),
                    asset: words::coin(asset),
                    amount: said.map(words::price),
                    link: Some(words::name(&name)),
                    customer_email: None,
                    description: None,
                    metadata: None,
                    custom_fields: answers,
                    idempotency_key: None,
                    account: account.clone(),
                    mode: words::mode(mode),
                    refused: None,
                })
            };
            self.add(opened_at, step);
            if is_crowded && crowd.chance(1, 3) {
                self.tell_vanished(&charge, opened_at);
            }
            let due = self.market.rate(asset, opened_at).map(|rate| money::due(cents, rate, asset));
            let opened = OpenedCharge { name: charge, mode, asset, at: opened_at, due, bounds };
            if draw.chance(3, 4) || self.strikes(Fault::CancelRace, &mut draw) {
                self.tell_payment(&opened, &mut draw);
            }
            self.tell_owner(&opened, &mut draw);
        }
    }

    /// A customer's transfer is forgotten a second after it was seen: the charge is untouched again.
    fn tell_vanished(&mut self, charge: &str, at: u64) {
        let tx = format!("{charge}v");
        let pay = Pay { fee: Some(FeeLevel::Stuck), ..words::pay(charge, &tx) };
        self.add(at, words::paid(pay));
        self.add(at + SECOND, Step::Drop(Brief(Drop { tx: words::name(&tx), refused: None })));
    }

    /// Returns the questions of a link: mostly none.
    fn questions(&self, link: &str) -> Option<Vec<LinkQuestion>> {
        let mut draw = self.stream(&format!("questions/{link}"));
        draw.chance(1, 3).then(|| {
            let labels = LABELS.iter().take(draw.between(1, 3) as usize);
            labels
                .map(|label| LinkQuestion { label: (*label).to_owned(), required: draw.chance(1, 2) })
                .collect()
        })
    }

    /// Returns the answers of a customer: mostly one per question, sometimes too few, too many or repeated; rarely
    /// some where nothing is asked.
    fn answers(&self, charge: &str, questions: Option<&[LinkQuestion]>) -> Option<Vec<LinkAnswer>> {
        let mut draw = self.stream(&format!("answers/{charge}"));
        let asked = questions.unwrap_or_default().iter().map(|question| question.label.as_str());
        let mut labels: Vec<&str> = match draw.below(8) {
            0 => Vec::new(),
            1 => asked.skip(1).collect(),
            _ => asked.collect(),
        };
        match draw.below(12) {
            0 => labels.push("Colour"),
            1 => labels.extend(labels.first().copied()),
            _ => {}
        }
        let mut answer = |label: &str| LinkAnswer {
            label: label.to_owned(),
            value: self.edge_text(&format!("answer/{charge}/{label}")).unwrap_or_else(|| "M".to_owned()),
        };
        (!labels.is_empty()).then(|| labels.into_iter().map(&mut answer).collect())
    }
}
