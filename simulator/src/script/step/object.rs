//! The steps for charges, payment links and invoices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{from_word, is_default};
use crate::script::{
    At,
    value::{Amount, AssetCode, CurrencyCode, InMode, Name, Price},
};

/// The caller: a program with a key, or a person in the dashboard.
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
    /// The name in the file.
    pub charge: At<Name>,
    /// In which coin.
    pub asset: AssetCode,
    /// The fiat price; not with a link of a fixed price.
    pub amount: Option<Price>,
    /// The payment link it belongs to.
    pub link: Option<At<Name>>,
    /// The customer's address.
    pub customer_email: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// The owner's own keys and values.
    pub metadata: Option<BTreeMap<String, Value>>,
    /// Answers to the link's questions.
    pub custom_fields: Option<Vec<LinkAnswer>>,
    /// Sent as `Idempotency-Key`, so that `repeat` can send the request again.
    pub idempotency_key: Option<String>,
    /// The account; the first one if not given.
    pub account: Option<At<Name>>,
    /// The mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// The refusal that must come, such as 503.
    pub refused: Option<u16>,
}

/// The request that opened a charge, sent again with its `Idempotency-Key`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// The charge; its step says `idempotency_key`.
    pub charge: At<Name>,
    /// Another description than the first time, so that it is another request.
    pub description: Option<String>,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

from_word!(Repeat { charge: Name, description, refused });

/// A question that a payment link asks its customers.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkQuestion {
    /// The question.
    pub label: String,
    /// No charge opens without an answer.
    #[serde(default)]
    pub required: bool,
}

/// The answer to a question of a payment link.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkAnswer {
    /// The question.
    pub label: String,
    /// The customer's answer.
    pub value: String,
}

/// A payment link to make.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The name in the file.
    pub link: At<Name>,
    /// Its title; its name if not given.
    pub title: Option<String>,
    /// Its fixed price; the customer says the amount if not given.
    pub amount: Option<Price>,
    /// The currency of an open price.
    pub currency: Option<CurrencyCode>,
    /// The coins it takes; all if not given.
    pub accepted_assets: Option<Vec<AssetCode>>,
    /// The number of payments it takes.
    pub max_payments: Option<u32>,
    /// The questions to its customers.
    pub custom_fields: Option<Vec<LinkQuestion>>,
    /// The account; the first one if not given.
    pub account: Option<At<Name>>,
    /// The mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// The refusal that must come, such as 422.
    pub refused: Option<u16>,
}

from_word!(Link {
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
    /// The name in the file.
    pub invoice: At<Name>,
    /// Its amount, unless items make it up.
    pub amount: Option<Price>,
    /// Its items, in the currency given.
    pub items: Option<Vec<Item>>,
    /// The currency of the items.
    pub currency: Option<CurrencyCode>,
    /// To whom.
    pub customer_email: Option<String>,
    /// The customer's name.
    pub customer_name: Option<String>,
    /// A note on it.
    pub memo: Option<String>,
    /// The day it is due: `2026-10-15`.
    pub due_at: Option<String>,
    /// E-mails it at once.
    #[serde(default)]
    pub send: bool,
    /// The account; the first one if not given.
    pub account: Option<At<Name>>,
    /// The mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// The refusal that must come, such as 422.
    pub refused: Option<u16>,
}

/// An item of an invoice.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The description of the item.
    pub description: String,
    /// The quantity, at most three decimals.
    pub quantity: Amount,
    /// Fiat money for one.
    pub unit_amount: Amount,
}

/// An invoice to e-mail.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The invoice.
    pub invoice: At<Name>,
    /// The caller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The refusal that must come, such as 429.
    pub refused: Option<u16>,
}

from_word!(Send { invoice: Name, by, refused });

/// A coin picked on the hosted page of an invoice or of a payment link.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choose {
    /// On the page of this invoice.
    pub invoice: Option<At<Name>>,
    /// On the page of this payment link.
    pub link: Option<At<Name>>,
    /// The coin.
    pub asset: AssetCode,
    /// The new charge's name in the file.
    pub charge: At<Name>,
    /// The customer's amount, for a link whose price is open.
    pub amount: Option<Amount>,
    /// The customer's address.
    pub customer_email: Option<String>,
    /// Answers to the link's questions.
    pub custom_fields: Option<Vec<LinkAnswer>>,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

/// A charge to cancel.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The charge.
    pub charge: At<Name>,
    /// The caller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

from_word!(Cancel { charge: Name, by, refused });

/// Money sent back, to be recorded.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refund {
    /// Of which charge.
    pub charge: At<Name>,
    /// The amount of coins.
    pub amount: Amount,
    /// The reason.
    pub reason: Option<String>,
    /// The transaction that carried it, as the merchant says.
    pub txid: Option<String>,
    /// The refusal that must come, such as 422.
    pub refused: Option<u16>,
}

/// An invoice to withdraw.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Void {
    /// The invoice.
    pub invoice: At<Name>,
    /// The caller.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

from_word!(Void { invoice: Name, by, refused });
