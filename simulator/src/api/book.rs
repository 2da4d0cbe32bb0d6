//! The requests of a book's owner: creating objects, searching. The objects themselves are those of the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Word;

/// `POST /sandbox/books/{account}/{mode}/charges`. Every field is as somebody typed it: the service judges it.
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
    /// The price's currency; the account's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The customer's e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_email: Option<String>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Key/value pairs of the owner.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// `POST /sandbox/books/{account}/{mode}/invoices`, as somebody typed it.
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
    /// The lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<NewItem>,
    /// A note to the customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
    /// The last day to pay in time: `2026-10-15`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    /// It is e-mailed at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub send_email: bool,
}

/// A line of a new invoice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewItem {
    /// The description of the goods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The quantity, a decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// The price of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_amount: Option<String>,
}

/// `POST /sandbox/books/{account}/{mode}/payment-links`, as somebody typed it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewLink {
    /// The title of the goods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `fixed` or `open`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pricing_type: Option<String>,
    /// The price, where it is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The least that a customer may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_amount: Option<String>,
    /// The most that a customer may choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_amount: Option<String>,
    /// The currency; the account's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The coins; all that the account accepts if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted_assets: Vec<String>,
    /// The customer is asked for a name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub collect_name: bool,
    /// The customer must give an e-mail address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_email: bool,
}

/// `POST /sandbox/books/{account}/{mode}/charges/{id}/refunds`, as somebody typed it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewRefund {
    /// The amount of the coin that was sent back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txid: Option<String>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `GET /sandbox/books/{account}/{mode}/search?q=`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchAnswer {
    /// Newest first by kind, a bounded number of them.
    pub found: Vec<SearchHit>,
}

/// Something that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// `charge`, `invoice`, `payment_link`, `event` or `delivery`.
    pub kind: Word,
    /// Its code, or its id.
    pub id: String,
    /// The field that holds what was looked for: `customer_email`, `txid`, `metadata.order_id`.
    pub field: String,
    /// The answer.
    pub value: String,
    /// Its status, or the event's type.
    pub status: Word,
}
