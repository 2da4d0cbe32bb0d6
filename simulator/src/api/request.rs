//! The request bodies under `/sandbox`: a JSON object of these fields; unknown fields are refused. `None` fields are
//! omitted. Amounts are texts, because the number of allowed decimals depends on the coin.

use reference_core::{
    asset::{Asset, Currency},
    event::EventType,
    mode::Mode,
    time::{Span, Timestamp},
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Word, text};
use crate::chain::FeeLevel;

/// Returns a request as JSON.
///
/// ```
/// use simulator::api::{AdvanceRequest, json};
///
/// let request = AdvanceRequest { by: Some(reference_core::time::Span::secs(30)), ..Default::default() };
/// assert_eq!(json(&request).to_string(), r#"{"by":"30s"}"#);
/// ```
pub fn json(request: &impl Serialize) -> Value {
    serde_json::to_value(request).expect("a request is JSON")
}

/// `POST /sandbox/world`: replaces the world with a new one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorldRequest {
    /// The seed of every random draw; unchanged if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The start of the clock; unchanged if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Settings of the first account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<SettingsRequest>,
    /// Records all inputs, so that the service can be restarted; unchanged if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
}

/// `POST /sandbox/advance`: advances the clock `by` a time, or `to` a time; exactly one is required.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct AdvanceRequest {
    /// The time to advance by.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub by: Option<Span>,
    /// The time to advance to.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Stops at the first event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stop_early: bool,
    /// The number of the world event after which the response starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// `POST /sandbox/rates`
#[derive(Clone, Debug, Serialize)]
pub struct RateRequest {
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The currency.
    #[serde(with = "text")]
    pub currency: Currency,
    /// The price of one coin; `None` removes the rate.
    pub rate: Option<String>,
}

/// `POST /sandbox/accounts`
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccountRequest {
    /// The id of the new account.
    pub id: String,
    /// `personal` or `organization`, which is the default.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Word>,
    /// The settings of the new account.
    #[serde(flatten)]
    pub settings: SettingsRequest,
}

/// `PATCH /sandbox/accounts/{id}`: `None` fields are unchanged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SettingsRequest {
    /// The account's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name shown to customers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The default currency.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub default_currency: Option<Currency>,
    /// Percent below the amount due that still count as paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underpayment_tolerance: Option<String>,
    /// Percent above the amount due from which a charge is overpaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overpayment_threshold: Option<String>,
    /// The e-mail addresses of the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
}

/// `POST /sandbox/keys`
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyRequest {
    /// The account; the first one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// `PUT /sandbox/wallets` with a key or addresses; `DELETE /sandbox/wallets` with neither.
#[derive(Clone, Debug, Serialize)]
pub struct WalletRequest {
    /// The account; the first one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// An extended public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The address type of the key, if its prefix does not determine it: `p2wpkh`, `p2sh-p2wpkh`, `p2pkh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Word>,
    /// The addresses, for coins without extended keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// `POST /sandbox/endpoints`
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndpointRequest {
    /// The account; the first one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The URL that receives deliveries.
    pub url: String,
    /// The event types to deliver; all if `None`.
    #[serde(serialize_with = "event_types", skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventType>>,
}

/// `PATCH /sandbox/endpoints/{id}`: `None` fields are unchanged.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndpointChange {
    /// The new URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The new event types.
    #[serde(serialize_with = "event_types", skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventType>>,
    /// The new status: `enabled` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word>,
}

fn event_types<S: Serializer>(events: &Option<Vec<EventType>>, serializer: S) -> Result<S::Ok, S::Error> {
    text::list::serialize(events.as_deref().unwrap_or_default(), serializer)
}

/// `POST /sandbox/merchants`: sets how the receiver at `name.sim` responds.
#[derive(Clone, Debug, Serialize)]
pub struct MerchantRequest {
    /// The host without `.sim`.
    pub name: String,
    /// The behaviour: `up`, `down`, `slow`, `lost`, `twice`, `lagging`, `redirect`, `private` or a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The responses to the next posts, one each, before the behaviour applies.
    pub answers: Vec<String>,
}

/// `POST /sandbox/charges/{id}/accept`
#[derive(Clone, Debug, Default, Serialize)]
pub struct AcceptRequest {
    /// The transaction of the late payment; all confirmed ones if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txid: Option<String>,
}

/// `POST /sandbox/invoices/{id}/choose` and `/sandbox/links/{id}/choose`; only links allow more than the coin.
#[derive(Clone, Debug, Serialize)]
pub struct ChoiceRequest {
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The amount, if the link lets the customer choose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The customer's e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_email: Option<String>,
    /// The customer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_name: Option<String>,
    /// The answers to the link's custom fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_fields: Vec<AnswerRequest>,
}

/// An answer to a custom field of a payment link.
#[derive(Clone, Debug, Serialize)]
pub struct AnswerRequest {
    /// The label of the field.
    pub label: String,
    /// The answer.
    pub value: String,
}

/// `POST /sandbox/pay`: pays a charge, or an address with `asset` and `amount`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PayRequest {
    /// The code of the charge to pay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge: Option<String>,
    /// The address to pay to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The mode of the address; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The coin that is sent; the charge's if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub asset: Option<Asset>,
    /// The amount; the remaining amount if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The share of the remaining amount, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// The fee level; normal if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fee: Option<FeeLevel>,
    /// Splits the amount over this number of outputs of one transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<u32>,
    /// Skips the mempool: the transaction is first seen in a block.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

/// `POST /sandbox/mine`
#[derive(Clone, Debug, Serialize)]
pub struct MineRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The mode of the chain; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The number of blocks; one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// Mines the blocks now, without advancing the clock.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
}

/// `POST /sandbox/reorg`
#[derive(Clone, Debug, Serialize)]
pub struct ReorgRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The mode of the chain; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The number of replaced blocks.
    pub depth: u32,
    /// The transactions of the replaced blocks that the new blocks contain.
    pub keep: KeepRequest,
}

/// The transactions of the replaced blocks that the new blocks contain.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepRequest {
    /// All of them.
    All,
    /// None: they return to the mempool.
    None,
    /// Only these, by txid.
    #[serde(untagged)]
    Only(Vec<String>),
}

/// `POST /sandbox/double-spend`, `/sandbox/drop` and `/sandbox/rebroadcast`
#[derive(Clone, Debug, Serialize)]
pub struct TransactionRequest {
    /// The id of the transaction.
    pub txid: String,
}

/// `POST /sandbox/replace`
#[derive(Clone, Debug, Serialize)]
pub struct ReplaceRequest {
    /// The id of the transaction.
    pub txid: String,
    /// The new amount, to the same address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// Pays to another address, not to the charge.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// The fee level; normal if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fee: Option<FeeLevel>,
}

/// `POST /sandbox/stall`
#[derive(Clone, Debug, Serialize)]
pub struct StallRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The mode of the chain; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The length of the period without blocks.
    #[serde(rename = "for", with = "text")]
    pub lasting: Span,
}

/// `POST /sandbox/congest`: shares of the future blocks, in percent.
#[derive(Clone, Debug, Serialize)]
pub struct CongestRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The mode of the chain; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Blocks without any transaction; 0 if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<u32>,
    /// Blocks with only high-fee transactions; 0 if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<u32>,
}

/// `POST /sandbox/watchers`
#[derive(Clone, Debug, Serialize)]
pub struct WatcherRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The mode of the chain; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The delivery of notices: `up`, `late`, `reversed`, `lost` or `twice`.
    pub notices: Word,
}
