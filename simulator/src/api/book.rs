//! The requests of an account owner under `/sandbox/books/{account}/{mode}`: creating objects, and searching. The created
//! objects are those of the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Keyword;

/// `POST /sandbox/books/{account}/{mode}/charges`. Fields are unchecked user input; the service validates them.
///
/// ```
/// use simulator::api::{NewCharge, json};
///
/// let charge = NewCharge { asset: Some("BTC".to_owned()), amount: Some("49.90".to_owned()), ..Default::default() };
/// assert_eq!(json(&charge), serde_json::json!({ "asset": "BTC", "amount": "49.90" }));
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewCharge {
    /// The coin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    /// The price, a decimal with at most two places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The currency of the price; the account's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The customer's e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_email: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Key/value pairs of the account owner.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// `POST /sandbox/books/{account}/{mode}/invoices`, with unchecked user input.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewInvoice {
    /// The customer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_name: Option<String>,
    /// The customer's e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_email: Option<String>,
    /// The currency; the account's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The amount, if there are no items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The items.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<NewItem>,
    /// A note to the customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
    /// The last day to pay in time: `2026-10-15`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// E-mails the invoice immediately.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub send_email: bool,
}

/// An item of a new invoice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewItem {
    /// The description of the goods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The quantity, a decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// The price of one unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_amount: Option<String>,
}

/// `POST /sandbox/books/{account}/{mode}/payment-links`, with unchecked user input.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewLink {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `fixed` or `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pricing_type: Option<String>,
    /// The price, if it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The minimum amount that a customer may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_amount: Option<String>,
    /// The maximum amount that a customer may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<String>,
    /// The currency; the account's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The accepted coins; all coins of the account if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_assets: Vec<String>,
    /// Requests a name from the customer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub collect_name: bool,
    /// Requires an e-mail address from the customer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_email: bool,
}

/// `POST /sandbox/books/{account}/{mode}/charges/{id}/refunds`, with unchecked user input.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewRefund {
    /// The refunded amount, in the coin of the charge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The id of the transaction that refunds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txid: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `GET /sandbox/books/{account}/{mode}/search?q=`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchResponse {
    /// The first matching objects, by kind and newest first.
    pub found: Vec<SearchHit>,
}

/// An object that matches a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// `charge`, `invoice`, `payment_link`, `event` or `delivery`.
    pub kind: Keyword,
    /// The code or id of the object.
    pub id: String,
    /// The field that matches, such as `customer_email`, `txid` or `metadata.order_id`.
    pub field: String,
    /// The value of the field.
    pub value: String,
    /// The status of the object, or the type of the event.
    pub status: Keyword,
}
