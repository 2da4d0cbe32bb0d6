//! The steps for charges, payment links and invoices. An [`At`] is a value with its position in the file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{from_shorthand, is_default};
use crate::{
    api::CustomFieldValue,
    script::{
        At,
        value::{Amount, AssetCode, CurrencyCode, ModeName, Name, Price},
    },
};

/// The way to perform an action: with an API key, or in the dashboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A request under `/v1`.
    #[default]
    Api,
    /// The account owner in the dashboard.
    Dashboard,
}

/// A charge to open.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The name of the charge.
    pub charge: At<Name>,
    /// The coin.
    pub asset: AssetCode,
    /// The fiat price; not allowed with a link of a fixed price.
    pub amount: Option<Price>,
    /// The payment link of the charge.
    pub link: Option<At<Name>>,
    /// The customer's e-mail address.
    pub customer_email: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// Key/value pairs of the account owner.
    pub metadata: Option<BTreeMap<String, Value>>,
    /// The answers to the link's custom fields.
    pub custom_fields: Option<Vec<CustomFieldValue>>,
    /// The `Idempotency-Key`, which `repeat` needs.
    pub idempotency_key: Option<String>,
    /// The account; the first one by default.
    pub account: Option<At<Name>>,
    /// The mode; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The HTTP status of the expected refusal, such as 503.
    pub refused: Option<u16>,
}

/// The repetition of the request that opened a charge, with its `Idempotency-Key`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The charge; its step must have an `idempotency_key`.
    pub charge: At<Name>,
    /// A changed description, which makes it a different request.
    pub description: Option<String>,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

// The short form is the name alone: `repeat: c1`.
from_shorthand!(Repeat { charge: Name, description, refused });

/// A custom field of a payment link.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkCustomField {
    /// The label of the field.
    pub label: String,
    /// Requires an answer.
    #[serde(default)]
    pub required: bool,
}

/// A payment link to create.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The name of the link.
    pub link: At<Name>,
    /// The title; the name by default.
    pub title: Option<String>,
    /// The fixed price; without it, the customer chooses the amount.
    pub amount: Option<Price>,
    /// The currency if the customer chooses the amount.
    pub currency: Option<CurrencyCode>,
    /// The accepted coins; all by default.
    pub accepted_assets: Option<Vec<AssetCode>>,
    /// The maximum number of payments.
    pub max_payments: Option<u32>,
    /// The custom fields.
    pub custom_fields: Option<Vec<LinkCustomField>>,
    /// The account; the first one by default.
    pub account: Option<At<Name>>,
    /// The mode; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The HTTP status of the expected refusal, such as 422.
    pub refused: Option<u16>,
}

from_shorthand!(Link {
    link: Name,
    title,
    amount,
    currency,
    accepted_assets,
    max_payments,
    custom_fields,
    account,
    mode,
    refused
});

/// An invoice to issue.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Invoice {
    /// The name of the invoice.
    pub invoice: At<Name>,
    /// The amount, unless there are items.
    pub amount: Option<Price>,
    /// The items, in `currency`.
    pub items: Option<Vec<Item>>,
    /// The currency of the items.
    pub currency: Option<CurrencyCode>,
    /// The customer's e-mail address.
    pub customer_email: Option<String>,
    /// The customer's name.
    pub customer_name: Option<String>,
    /// A note to the customer.
    pub memo: Option<String>,
    /// The due date, such as `2026-10-15`.
    pub due_at: Option<String>,
    /// E-mails the invoice immediately.
    #[serde(default)]
    pub send: bool,
    /// The account; the first one by default.
    pub account: Option<At<Name>>,
    /// The mode; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The HTTP status of the expected refusal, such as 422.
    pub refused: Option<u16>,
}

/// An item of an invoice.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The description of the item.
    pub description: String,
    /// The quantity, with at most three decimals.
    pub quantity: Amount,
    /// The price of one unit.
    pub unit_amount: Amount,
}

/// An invoice to e-mail.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The invoice.
    pub invoice: At<Name>,
    /// The way to perform it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The HTTP status of the expected refusal, such as 429.
    pub refused: Option<u16>,
}

from_shorthand!(Send { invoice: Name, by, refused });

/// The choice of a coin on the hosted page of an invoice or a payment link.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choose {
    /// The invoice of the page; either this or `link` is required.
    pub invoice: Option<At<Name>>,
    /// The payment link of the page; ignored if `invoice` is given.
    pub link: Option<At<Name>>,
    /// The coin.
    pub asset: AssetCode,
    /// The name of the new charge.
    pub charge: At<Name>,
    /// The amount, if the link lets the customer choose it.
    pub amount: Option<Amount>,
    /// The customer's e-mail address.
    pub customer_email: Option<String>,
    /// The answers to the link's custom fields.
    pub custom_fields: Option<Vec<CustomFieldValue>>,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

/// A charge to cancel.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The charge.
    pub charge: At<Name>,
    /// The way to perform it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_shorthand!(Cancel { charge: Name, by, refused });

/// A refund to record.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refund {
    /// The charge.
    pub charge: At<Name>,
    /// The amount of coins.
    pub amount: Amount,
    /// The reason.
    pub reason: Option<String>,
    /// The transaction of the refund.
    pub txid: Option<String>,
    /// The HTTP status of the expected refusal, such as 422.
    pub refused: Option<u16>,
}

/// An invoice to void.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Void {
    /// The invoice.
    pub invoice: At<Name>,
    /// The way to perform it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_shorthand!(Void { invoice: Name, by, refused });
