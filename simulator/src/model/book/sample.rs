//! The sample object of test deliveries.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    money::Coin,
    sighting::{Depth, Sighting},
    time::Timestamp,
};

use super::view::Ids;
use crate::model::{
    Charge, Terms,
    texts::{ChargeTexts, CustomerTexts},
};

/// The paid charge in a test delivery. The specification fixes the format of its address and requires consistent
/// confirmations; the other values are those of the service.
pub(super) struct Sample {
    pub(super) charge: Charge,
    pub(super) ids: Ids,
}

impl Sample {
    /// Creates the sample of a test delivery that was created at `at`.
    pub(super) fn new(at: Timestamp, mode: Mode) -> Sample {
        // 150 EUR at 60,000 EUR per BTC are 0.0025 BTC.
        let (asset, cents, currency) = (Asset::Btc, 15_000, Currency::Eur);
        let terms = Terms { asset, cents, currency, rate: 60_000 * 100_000_000, link: None, invoice: None };
        let customer =
            CustomerTexts { email: Some("customer@shop.example".to_owned()), ..CustomerTexts::default() };
        let description = Some("A test delivery".to_owned());
        let texts = ChargeTexts { description, customer, ..ChargeTexts::default() };
        let (tolerance, threshold) = (0, 0);
        let mut charge = Charge::open(at, (terms, texts), (tolerance, threshold), mode);
        // The example addresses of BIP 173.
        let address = match mode {
            Mode::Live => "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            Mode::Test => "tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx",
        };
        let paid = Sighting {
            mode,
            asset,
            address: address.to_owned(),
            txid: "0".repeat(64),
            output: 0,
            amount: Coin::parse("0.0025", asset).expect("the constant is a valid amount"),
            depth: Depth::Confirmations(charge.required),
            height: 0,
        };
        charge.on_sightings(at, &[&paid]);
        let ids = Ids {
            charges: vec!["testcharge00".to_owned()],
            addresses: vec![address.to_owned()],
            ..Ids::default()
        };
        Sample { charge, ids }
    }
}
