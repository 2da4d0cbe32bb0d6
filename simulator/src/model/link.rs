//! What a payment link must do, by the contract: ask its price, take its coins, and end when it was paid often enough.

use std::collections::BTreeMap;

use reference_core::{asset::Asset, time::Timestamp};
use serde::{Deserialize, de::IgnoredAny};

use super::{Model, Status, acts::Asked, money};
use crate::{
    law::Law,
    witness::{Call, Whose},
};

/// A payment link as it was made.
pub(super) struct Link {
    whose: Whose,
    /// Cents; nothing if the customer says how much.
    price: Option<u128>,
    currency: String,
    /// Nothing if all coins are taken.
    coins: Option<Vec<String>>,
    payments_max: Option<usize>,
    /// It was changed, or has terms that the model does not know: nobody can say what it does.
    is_strange: bool,
}

/// What is made of a request for a link.
#[derive(Deserialize)]
struct Made {
    data: Terms,
}

#[derive(Deserialize)]
struct Terms {
    code: String,
    amount: Option<String>,
    currency: String,
    accepted_assets: Option<Vec<String>>,
    max_payments: Option<usize>,
}

/// What a charge must cost.
pub(super) struct Price {
    /// Cents; nothing if nobody can say.
    pub(super) amount: Option<u128>,
    /// Nothing if nobody said.
    pub(super) currency: Option<String>,
    /// The link that it is opened by.
    pub(super) link: Option<String>,
}

impl Link {
    /// Whose it is.
    pub(super) fn whose(&self) -> Whose {
        self.whose
    }
}

impl Model<'_> {
    pub(super) fn make_link(&mut self, at: Timestamp, call: &Call, asked: &Asked) {
        let Some(whose) = self.asker(call).filter(|_| call.status == 201) else { return };
        let Ok(Made { data }) = serde_json::from_slice(&call.answer) else { return };
        let cents = |text: &Option<String>| text.as_deref().and_then(|text| money::read(text, 2));
        let price = cents(&asked.amount);
        let is_same = price == cents(&data.amount)
            && asked.accepted_assets == data.accepted_assets
            && asked.max_payments == data.max_payments;
        self.findings.check(Law::SameObject, Some(at), || {
            (!is_same)
                .then(|| ("a payment link has other terms than were asked for".to_owned(), data.code.clone()))
        });
        let link = Link {
            whose,
            price,
            currency: data.currency,
            coins: asked.accepted_assets.clone(),
            payments_max: asked.max_payments,
            is_strange: has_strange_terms(&call.body),
        };
        self.links.insert(data.code, link);
    }

    pub(super) fn change_link(&mut self, code: &str) {
        if let Some(link) = self.links.get_mut(code) {
            link.is_strange = true;
        }
    }

    /// Whether the model knows what a link does.
    pub fn knows_link(&self, code: &str) -> bool {
        self.links.get(code).is_none_or(|link| !link.is_strange)
    }

    /// Whether a link takes payments now; nothing if it was never made.
    pub fn link_takes_payments(&self, code: &str) -> Option<bool> {
        let most = self.links.get(code)?.payments_max;
        let of_link = self.charges.values().filter(|owned| owned.link.as_deref() == Some(code));
        let paid = of_link.filter(|owned| owned.charge.status == Status::Paid).count();
        Some(most.is_none_or(|most| paid < most))
    }

    /// What a charge that is asked for must cost, or how the request must be refused.
    pub(super) fn price(&self, whose: Whose, link: Option<&str>, asked: &Asked) -> Result<Price, u16> {
        let amount = asked.amount.as_deref().and_then(|text| money::read(text, 2));
        let Some(code) = link else {
            return Ok(Price { amount, currency: asked.currency.clone(), link: None });
        };
        let link = self.links.get(code).filter(|link| link.whose == whose).ok_or(422_u16)?;
        if link.is_strange {
            return Ok(Price { amount: None, currency: None, link: Some(code.to_owned()) });
        }
        if self.link_takes_payments(code) == Some(false) {
            return Err(409);
        }
        let coin = asked.asset.as_deref().unwrap_or_default();
        let is_known = Asset::parse(coin).is_some();
        let is_taken = link.coins.as_ref().is_none_or(|coins| coins.iter().any(|taken| taken == coin));
        let is_price = match (link.price, amount) {
            (Some(price), amount) => amount.is_none_or(|amount| amount == price),
            (None, amount) => amount.is_some(),
        };
        let is_currency = asked.currency.as_ref().is_none_or(|currency| *currency == link.currency);
        match (is_known && is_taken && is_price && is_currency, link.price.or(amount)) {
            (true, Some(amount)) => Ok(Price {
                amount: Some(amount),
                currency: Some(link.currency.clone()),
                link: Some(code.to_owned()),
            }),
            _ => Err(422),
        }
    }
}

/// Whether a request for a link says more than the model knows.
fn has_strange_terms(body: &[u8]) -> bool {
    const KNOWN: [&str; 6] =
        ["title", "pricing_type", "amount", "currency", "accepted_assets", "max_payments"];
    let asked: BTreeMap<String, IgnoredAny> = serde_json::from_slice(body).unwrap_or_default();
    asked.keys().any(|name| !KNOWN.contains(&name.as_str()))
}
