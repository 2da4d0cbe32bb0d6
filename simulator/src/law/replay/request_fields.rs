//! The request bodies, with the fields that the model needs.

use reference_core::asset::Currency;
use serde::Deserialize;

use crate::model::{Account, money};

/// A request body, with the fields that the model needs.
#[derive(Default, Deserialize)]
pub(super) struct RequestFields {
    pub(super) asset: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) payment_link: Option<String>,
    #[serde(default)]
    pub(super) custom_fields: Vec<CustomField>,
    pub(super) mode: Option<String>,
    pub(super) amount: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) rate: Option<String>,
    pub(super) txid: Option<String>,
    pub(super) customer_email: Option<String>,
    pub(super) send_email: Option<bool>,
    pub(super) notices: Option<String>,
    pub(super) empty: Option<u32>,
    pub(super) full: Option<u32>,
    pub(super) fee: Option<String>,
    pub(super) outputs: Option<u32>,
    pub(super) unseen: Option<bool>,
    pub(super) charge: Option<String>,
    pub(super) name: Option<String>,
    pub(super) state: Option<String>,
    #[serde(default)]
    pub(super) answers: Vec<String>,
    pub(super) underpayment_tolerance: Option<String>,
    pub(super) overpayment_threshold: Option<String>,
    pub(super) members: Option<Vec<String>>,
    pub(super) default_currency: Option<String>,
}

/// The answer to a custom field of a payment link.
#[derive(Deserialize)]
pub(super) struct CustomField {
    pub(super) label: String,
}

impl RequestFields {
    pub(super) fn cents(&self) -> Option<u64> {
        cents(self.amount.as_deref())
    }

    /// Applies the settings that the request contains.
    pub(super) fn change(self, account: &mut Account) {
        let percent = |text: Option<String>, before| {
            let hundredths = text.and_then(|text| money::read(&text, 2));
            hundredths.and_then(|n| u32::try_from(n).ok()).unwrap_or(before)
        };
        account.tolerance = percent(self.underpayment_tolerance, account.tolerance);
        account.threshold = percent(self.overpayment_threshold, account.threshold);
        let currency = self.default_currency.as_deref().and_then(Currency::parse);
        account.default_currency = currency.unwrap_or(account.default_currency);
        account.members = self.members.unwrap_or_else(|| std::mem::take(&mut account.members));
    }
}

/// Parses JSON; `None` if it is invalid.
pub(super) fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Parses an amount with two decimals to hundredths.
pub(super) fn cents(text: Option<&str>) -> Option<u64> {
    text.and_then(|text| money::read(text, 2)).and_then(|cents| u64::try_from(cents).ok())
}
