//! Exchange rates: the current prices of coins in fiat currencies. Rates are inputs; a pair of coin and currency may
//! have none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    asset::{Asset, Currency},
    money::Rate,
};

/// The current rate of each pair.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Exchange {
    rates: BTreeMap<(Asset, Currency), Rate>,
}

impl Exchange {
    /// Returns the rate of a pair: the price of one unit of the coin, if it is known.
    pub fn rate(&self, asset: Asset, currency: Currency) -> Option<Rate> {
        self.rates.get(&(asset, currency)).copied()
    }

    /// Sets or withdraws the rate of a pair.
    pub fn set(&mut self, asset: Asset, currency: Currency, rate: Option<Rate>) {
        match rate {
            Some(rate) => self.rates.insert((asset, currency), rate),
            None => self.rates.remove(&(asset, currency)),
        };
    }

    /// Returns every pair that has a rate, with the rate.
    pub fn iter(&self) -> impl Iterator<Item = (Asset, Currency, Rate)> {
        self.rates.iter().map(|(&(asset, currency), &rate)| (asset, currency, rate))
    }
}
