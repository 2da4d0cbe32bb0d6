//! The plan of one payment link: its terms, views of its page, and the charges of its customers.

use reference_core::rng::RngStream;

use super::{Fault, HOUR, MINUTE, Plan, SECOND, charge::OpenedCharge, steps};
use crate::{
    chain::FeeLevel,
    model::money,
    script::step::{Choose, CustomFieldValue, Link, LinkCustomField, Open, Pay, Shorthand, Step},
};

/// The labels of custom fields.
const LABELS: [&str; 3] = ["Size", "Größe 👕", "\"Note\""];

/// Draws the amount that a customer enters, in cents. A customer of a link with a fixed price usually enters
/// none, sometimes the same price, and sometimes a wrong one, which is refused.
fn draw_amount(fixed: Option<u64>, cents: u64, draw: &mut RngStream) -> Option<u64> {
    match fixed {
        None => Some(cents),
        Some(_) if draw.chance(1, 4) => Some(cents + draw.below(2)),
        Some(_) => None,
    }
}

impl Plan {
    pub(super) fn plan_link(&mut self, n: u64) {
        let mut draw = self.stream(&format!("link/{n}"));
        let mode = self.draw_mode(&mut draw);
        let at = self.draw_time(&mut draw);
        let fixed = draw.chance(2, 3).then(|| draw.between(1, 60_000));
        let name = format!("l{n}");
        let (account, bounds) = self.draw_account(&name);
        // More customers at the same time than the link accepts payments.
        let mut crowd = self.stream(&format!("crowd/{name}"));
        let is_crowded = self.draws_fault(Fault::FullLink, &mut crowd);
        let custom_fields = self.draw_custom_fields(&name);
        let link = Link {
            link: steps::name(&name),
            title: self.draw_short_text(&name),
            amount: fixed.map(steps::price),
            currency: fixed.is_none().then_some(steps::EUR),
            accepted_assets: draw.chance(1, 3).then(|| vec![steps::coin(self.draw_coin(&mut draw))]),
            max_payments: (draw.chance(1, 2) || is_crowded).then(|| draw.between(1, 2) as u32),
            custom_fields: custom_fields.clone(),
            account: account.clone(),
            mode: steps::mode(mode),
            refused: None,
        };
        self.add(at, Step::Link(Shorthand(link)));
        for _ in 0..draw.below(3) {
            self.add(at + draw.below(2 * HOUR), Step::View(steps::name(&name)));
        }
        let mut opened_at = at;
        let customers = draw.between(1, 4) + if is_crowded { 2 } else { 0 };
        for customer in 1..=customers {
            opened_at += draw.between(SECOND, 50 * MINUTE) / if is_crowded { 50 } else { 1 };
            let (asset, charge) = (self.draw_coin(&mut draw), format!("p{n}-{customer}"));
            let cents = fixed.unwrap_or_else(|| draw.between(1, 60_000));
            let amount = draw_amount(fixed, cents, &mut draw);
            let field_values = self.draw_field_values(&charge, custom_fields.as_deref());
            let step = if draw.chance(1, 2) {
                Step::Choose(Choose {
                    invoice: None,
                    link: Some(steps::name(&name)),
                    asset: steps::coin(asset),
                    charge: steps::name(&charge),
                    amount: amount.map(steps::cents),
                    customer_email: None,
                    custom_fields: field_values,
                    refused: None,
                })
            } else {
                Step::Open(Open {
                    charge: steps::name(&charge),
                    asset: steps::coin(asset),
                    amount: amount.map(steps::price),
                    link: Some(steps::name(&name)),
                    customer_email: None,
                    description: None,
                    metadata: None,
                    custom_fields: field_values,
                    idempotency_key: None,
                    account: account.clone(),
                    mode: steps::mode(mode),
                    refused: None,
                })
            };
            self.add(opened_at, step);
            let due = self.market.rate(asset, opened_at).map(|rate| money::amount_due(cents, rate, asset));
            let opened = OpenedCharge { name: charge, mode, asset, at: opened_at, due, bounds };
            self.plan_customer(&opened, is_crowded && crowd.chance(1, 2), &mut draw);
        }
    }

    /// Plans the actions on a link's charge. With `has_only_dropped`, its only transfer is dropped.
    fn plan_customer(&mut self, charge: &OpenedCharge, has_only_dropped: bool, draw: &mut RngStream) {
        if has_only_dropped {
            self.plan_dropped_transfer(&charge.name, charge.at);
        }
        let is_paid = draw.chance(3, 4) || self.draws_fault(Fault::CancelRace, draw);
        if is_paid && !has_only_dropped {
            self.plan_payments(charge, draw);
        }
        self.plan_owner_actions(charge, draw);
    }

    /// Plans a transfer that is dropped a second after it was seen, so that the charge is untouched again. An
    /// untouched charge is canceled when the link has reached its maximum number of payments.
    fn plan_dropped_transfer(&mut self, charge: &str, at: u64) {
        let tx = format!("{charge}v");
        let pay = Pay { fee: Some(FeeLevel::Stuck), ..steps::pay(charge, &tx) };
        self.add(at, steps::pay_step(pay));
        self.add(at + SECOND, Step::Drop(steps::transaction_step(&tx)));
    }

    /// Draws the custom fields of a link: usually none.
    fn draw_custom_fields(&self, link: &str) -> Option<Vec<LinkCustomField>> {
        let mut draw = self.stream(&format!("questions/{link}"));
        draw.chance(1, 3).then(|| {
            let labels = LABELS.iter().take(draw.between(1, 3) as usize);
            labels
                .map(|label| LinkCustomField { label: (*label).to_owned(), required: draw.chance(1, 2) })
                .collect()
        })
    }

    /// Draws the values that a customer enters in custom fields: usually one per field, sometimes too few, repeated
    /// ones, or one for an unknown field.
    fn draw_field_values(
        &self,
        charge: &str,
        fields: Option<&[LinkCustomField]>,
    ) -> Option<Vec<CustomFieldValue>> {
        let mut draw = self.stream(&format!("answers/{charge}"));
        let labels = fields.unwrap_or_default().iter().map(|field| field.label.as_str());
        let mut labels: Vec<&str> = match draw.below(8) {
            0 => Vec::new(),
            1 => labels.skip(1).collect(),
            _ => labels.collect(),
        };
        match draw.below(12) {
            0 => labels.push("Colour"),
            1 => labels.extend(labels.first().copied()),
            _ => {}
        }
        let mut field_value = |label: &str| CustomFieldValue {
            label: label.to_owned(),
            value: self.draw_prose(&format!("answer/{charge}/{label}")).unwrap_or_else(|| "M".to_owned()),
        };
        (!labels.is_empty()).then(|| labels.into_iter().map(&mut field_value).collect())
    }
}
