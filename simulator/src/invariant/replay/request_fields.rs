//! The fields of request bodies that the replay reads.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::model;

/// The fields of a request body that the replay reads; one type for all requests.
#[derive(Default, Deserialize)]
pub(super) struct RequestFields {
    pub(super) asset: Option<String>,
    pub(super) currency: Option<String>,
    pub(super) payment_link: Option<String>,
    pub(super) custom_fields: Option<Vec<CustomField>>,
    pub(super) customer: Option<Value>,
    pub(super) mode: Option<String>,
    pub(super) amount: Option<Value>,
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
    pub(super) account: Option<String>,
    pub(super) key: Option<String>,
    pub(super) script: Option<String>,
    pub(super) url: Option<String>,
    pub(super) status: Option<String>,
    pub(super) events: Option<BTreeSet<String>>,
    pub(super) addresses: Option<Vec<String>>,
}

/// The value that a customer gives a custom field of a payment link.
#[derive(Deserialize)]
pub(super) struct CustomField {
    pub(super) label: String,
    pub(super) value: Option<String>,
}

impl RequestFields {
    /// Returns the amount as a price; `None` if it is missing or invalid.
    pub(super) fn cents(&self) -> Option<u64> {
        model::cents(self.amount.as_ref()?)
    }

    /// Returns `true` if the request has the customer's e-mail address.
    pub(super) fn has_email(&self) -> bool {
        let email = self.customer.as_ref().and_then(|customer| model::non_empty_string(customer, "email"));
        email.or_else(|| self.customer_email.clone()).is_some_and(|email| !email.is_empty())
    }
}

/// Parses JSON; `None` if it is invalid.
pub(super) fn read<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}
