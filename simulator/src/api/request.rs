//! The request bodies under `/sandbox`: a JSON object of these fields and no others. A field that is `None` is
//! left out. Amounts are texts, because the number of allowed decimals depends on the coin.

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

/// A request as the JSON that is sent.
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

/// `POST /sandbox/world`: a new world in place of this one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorldRequest {
    /// The seed of every random draw; as before if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The start of the clock; as before if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Settings of the first account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<SettingsRequest>,
    /// Keeps all inputs, so that the service can be restarted; as before if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
}

/// `POST /sandbox/advance`: the clock moves `by` so much, or `to` a moment; exactly one is given.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct AdvanceRequest {
    /// The distance.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub by: Option<Span>,
    /// The destination.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Ends as soon as something has happened.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stop_early: bool,
    /// The number of the world event after which the answer begins.
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
    /// Fiat money for one coin; `None` takes the rate away.
    pub rate: Option<String>,
}

/// `POST /sandbox/accounts`
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccountRequest {
    /// Its id.
    pub id: String,
    /// `personal` or `organization`, which is the default.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Word>,
    /// Its settings.
    #[serde(flatten)]
    pub settings: SettingsRequest,
}

/// `PATCH /sandbox/accounts/{id}`: what is `None` stays as it is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SettingsRequest {
    /// The account's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name that customers see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The currency where none is given.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub default_currency: Option<Currency>,
    /// Percent below the amount due that still counts as paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underpayment_tolerance: Option<String>,
    /// Percent above the amount due from which a charge is overpaid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overpayment_threshold: Option<String>,
    /// The e-mail addresses of its members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
}

/// `POST /sandbox/keys`
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyRequest {
    /// The account; the first one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// In which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// `PUT /sandbox/wallets` with a key or addresses, `DELETE /sandbox/wallets` with neither.
#[derive(Clone, Debug, Serialize)]
pub struct WalletRequest {
    /// The account; the first one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// In which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// An extended public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The script of the key's addresses, where its prefix does not name it: `p2wpkh`, `p2sh-p2wpkh`, `p2pkh`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Word>,
    /// Addresses, for coins without such keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// `POST /sandbox/endpoints`
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndpointRequest {
    /// The account; the first one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// In which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The URL that receives deliveries.
    pub url: String,
    /// The event types that it gets; all if `None`.
    #[serde(serialize_with = "event_types", skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventType>>,
}

/// `PATCH /sandbox/endpoints/{id}`: what is `None` stays as it is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndpointChange {
    /// Another address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Other event types.
    #[serde(serialize_with = "event_types", skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventType>>,
    /// `enabled` or `disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word>,
}

fn event_types<S: Serializer>(events: &Option<Vec<EventType>>, serializer: S) -> Result<S::Ok, S::Error> {
    text::list::serialize(events.as_deref().unwrap_or_default(), serializer)
}

/// `POST /sandbox/merchants`: how the receiver of `name.sim` answers.
#[derive(Clone, Debug, Serialize)]
pub struct MerchantRequest {
    /// The part before `.sim` in its address.
    pub name: String,
    /// The answer from now on: `up`, `down`, `slow`, `lost`, `twice`, `lagging`, `redirect`, `private` or a
    /// status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The answers to the next posts before that, one each.
    pub answers: Vec<String>,
}

/// `POST /sandbox/charges/{id}/accept`
#[derive(Clone, Debug, Default, Serialize)]
pub struct AcceptRequest {
    /// The late payment; all that are confirmed if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub txid: Option<String>,
}

/// `POST /sandbox/invoices/{id}/choose` and `/sandbox/links/{id}/choose`; what is more than a coin is for links.
#[derive(Clone, Debug, Serialize)]
pub struct ChoiceRequest {
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The customer's amount, where the price is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// The customer's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_email: Option<String>,
    /// The customer's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer_name: Option<String>,
    /// Answers to the link's questions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_fields: Vec<AnswerRequest>,
}

/// An answer to a question of a payment link.
#[derive(Clone, Debug, Serialize)]
pub struct AnswerRequest {
    /// The question.
    pub label: String,
    /// The customer's answer.
    pub value: String,
}

/// `POST /sandbox/pay`: to a charge, or to an address with `asset` and `amount`.
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
    /// A share of what remains, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// The fee level; normal if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fee: Option<FeeLevel>,
    /// Splits the amount over so many outputs of one transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs: Option<u32>,
    /// Goes straight into the next block, never through the mempool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

/// `POST /sandbox/mine`
#[derive(Clone, Debug, Serialize)]
pub struct MineRequest {
    /// On which coin's chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// Of which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The number of blocks; one if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u32>,
    /// They come now, and the clock stands still.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_once: bool,
}

/// `POST /sandbox/reorg`
#[derive(Clone, Debug, Serialize)]
pub struct ReorgRequest {
    /// On which coin's chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// Of which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The number of replaced blocks.
    pub depth: u32,
    /// The transactions of the replaced blocks that the new blocks hold.
    pub keep: KeepRequest,
}

/// The transactions of the replaced blocks that the new ones hold.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeepRequest {
    /// All of them.
    All,
    /// None: they go back to the mempool.
    None,
    /// These, by txid.
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
    /// Another amount to the same address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// Pays somebody else.
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
    /// Of which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The time without blocks.
    #[serde(rename = "for", with = "text")]
    pub lasting: Span,
}

/// `POST /sandbox/congest`: shares of the blocks to come, in percent.
#[derive(Clone, Debug, Serialize)]
pub struct CongestRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// Of which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Blocks that hold no transaction; none if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<u32>,
    /// Blocks that hold only high fees; none if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<u32>,
}

/// `POST /sandbox/watchers`
#[derive(Clone, Debug, Serialize)]
pub struct WatcherRequest {
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// Of which mode; live if `None`.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The treatment of its notices: `up`, `late`, `reversed`, `lost` or `twice`.
    pub notices: Word,
}
