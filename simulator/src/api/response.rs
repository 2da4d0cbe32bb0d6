//! The responses under `/sandbox`. Every success also has the fields of [`CausedEvents`].

use reference_core::{
    asset::{Asset, Currency},
    event::EventType,
    id::Code,
    mode::Mode,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Keyword, WorldEvent, text};

/// The events that a call caused, and the time after it. Every success has `now`; that of a call that changes something
/// also has `happened`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CausedEvents {
    /// The first of the events, oldest first; empty for calls that only read.
    #[serde(default)]
    pub happened: Vec<WorldEvent>,
    /// The `after` for `GET /sandbox/happenings` if there are more events; otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The time on the service clock.
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// `GET /sandbox/happenings`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldEvents {
    /// The first of the events, oldest first.
    pub happened: Vec<WorldEvent>,
    /// The number of the last event: the `after` of the next request.
    pub next: u64,
}

/// `GET /sandbox`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Overview {
    /// The seed of every random draw of the world.
    pub seed: u64,
    /// All accounts, in order of creation.
    pub accounts: Vec<AccountRecord>,
    /// All chains, by mode and coin.
    pub chains: Vec<ChainRecord>,
    /// All pairs with a rate.
    pub rates: Vec<RateRecord>,
    /// The number of events so far.
    pub happenings: u64,
    /// The time of the next event that is due without a call; `None` if there is none.
    #[serde(with = "text::option")]
    pub next_due: Option<Timestamp>,
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountRecord {
    /// The id of the account.
    pub id: String,
    /// `personal` or `organization`.
    #[serde(rename = "type")]
    pub kind: Keyword,
    /// The e-mail addresses of the members.
    pub members: Vec<String>,
}

/// The chain of a coin in a mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChainRecord {
    /// The mode of the chain.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The coin of the chain.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The number of the newest block.
    pub height: u64,
    /// The confirmations after which a transfer counts.
    pub required_confirmations: u32,
    /// The network's name.
    pub network: Keyword,
    /// The decimal places of the coin.
    pub decimals: u32,
    /// The kind of wallet: an extended public `key`, or a list of `addresses`.
    pub wallet: Keyword,
    /// The time of the next block, unless the chain is stalled.
    #[serde(with = "text")]
    pub next_block_at: Timestamp,
}

/// The rate of a pair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RateRecord {
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The currency.
    #[serde(with = "text")]
    pub currency: Currency,
    /// The price of one coin.
    pub rate: String,
}

/// `POST /sandbox/world` and `POST /sandbox/accounts`: an account and its first keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAccount {
    /// The id of the account.
    pub account: String,
    /// The keys of the account.
    pub keys: KeyPair,
}

/// An API key in each mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyPair {
    /// The live key.
    pub live: String,
    /// The test key.
    pub test: String,
}

/// `GET /sandbox/keys`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyList {
    /// The keys of all accounts, in order of creation, including revoked ones.
    pub keys: Vec<KeyRecord>,
}

/// `POST /sandbox/keys`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyResponse {
    /// The new key, with its secret.
    pub key: KeyRecord,
}

/// An API key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyRecord {
    /// The id of the key in the dashboard.
    #[serde(with = "text")]
    pub id: Code,
    /// The account.
    pub account: String,
    /// The mode of the key.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The first and last characters of the key.
    pub hint: String,
    /// The time of creation.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The time of revocation; `None` if the key is valid.
    #[serde(with = "text::option")]
    pub revoked_at: Option<Timestamp>,
    /// The complete key; only in the response to its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `GET /sandbox/wallets`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalletList {
    /// The wallets of all accounts, by mode and coin.
    pub wallets: Vec<WalletRecord>,
}

/// `PUT /sandbox/wallets`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalletResponse {
    /// The new wallet. By its first address the owner can check that the key or the list is the right one.
    pub wallet: WalletRecord,
}

/// The wallet of a coin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalletRecord {
    /// The account.
    pub account: String,
    /// The mode of the wallet.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The extended public key; `None` for a list of addresses.
    pub key: Option<String>,
    /// The address type of the key; `None` for a coin with only one.
    pub script: Option<Keyword>,
    /// The number of listed addresses.
    pub listed: usize,
    /// The first address; `None` if the list is empty.
    pub first_address: Option<String>,
}

/// `GET /sandbox/endpoints`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointList {
    /// The endpoints of all books that the caller may access, in order of creation.
    pub endpoints: Vec<EndpointRecord>,
}

/// `POST` and `PATCH` under `/sandbox/endpoints`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointResponse {
    /// The new or changed endpoint.
    pub endpoint: EndpointRecord,
}

/// A webhook endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// The id of the endpoint.
    #[serde(with = "text")]
    pub id: Code,
    /// The account.
    pub account: String,
    /// The mode of the endpoint.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The URL that receives deliveries.
    pub url: String,
    /// The event types to deliver.
    #[serde(with = "text::list")]
    pub events: Vec<EventType>,
    /// `enabled`, `disabled` or `removed`.
    pub status: Keyword,
    /// The number of deliveries that failed in all attempts since the last success.
    pub failed_in_a_row: u32,
    /// The time of registration.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The signing secret; only in the responses that add the endpoint or rotate the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `POST /sandbox/endpoints/{id}/test`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestDeliveryResponse {
    /// The delivery with the sample event.
    #[serde(with = "text")]
    pub delivery: Uuid,
}

/// `GET /sandbox/deliveries`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliveryList {
    /// The newest deliveries, newest first.
    pub deliveries: Vec<DeliveryRecord>,
}

/// `GET /sandbox/deliveries/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliveryResponse {
    /// The delivery, with the requests and responses of its attempts.
    pub delivery: DeliveryRecord,
}

/// A delivery and its attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// The id of the delivery, which all its attempts carry.
    #[serde(with = "text")]
    pub id: Uuid,
    /// The account.
    pub account: String,
    /// The mode of the delivery.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The endpoint.
    #[serde(with = "text")]
    pub endpoint: Code,
    /// The current URL of the endpoint.
    pub url: String,
    /// The delivered event; `None` for a test.
    #[serde(with = "text::option")]
    pub event: Option<Uuid>,
    /// The type of the event, or of the sample.
    #[serde(rename = "type", with = "text")]
    pub kind: EventType,
    /// `true` if the event is a sample.
    pub test: bool,
    /// `waiting`, `in_flight`, `delivered`, `failed` or `canceled`.
    pub status: Keyword,
    /// The attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// The time of the next attempt; `None` if there is none.
    #[serde(with = "text::option")]
    pub next_at: Option<Timestamp>,
    /// The time of creation.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The body of all attempts; only in the response for a single delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
}

/// One attempt of a delivery: an HTTP `POST`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The number of the attempt, from 1 on.
    pub n: u32,
    /// The time of the start.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// The time of the end.
    #[serde(with = "text")]
    pub ended_at: Timestamp,
    /// The status of the response; `None` if there was none.
    pub status: Option<u16>,
    /// The reason why there was no response.
    pub error: Option<String>,
    /// The request and response; only in the response for a single delivery.
    #[serde(flatten)]
    pub trace: Option<AttemptTrace>,
}

/// The request and response of an attempt, as far as the host recorded them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AttemptTrace {
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The IP address of the connection.
    pub address: Option<String>,
    /// The request headers.
    pub request_headers: Vec<HeaderRecord>,
    /// The response headers.
    pub response_headers: Vec<HeaderRecord>,
    /// The beginning of the response body.
    pub response_body: String,
    /// A warning for the owner: a local address that is refused in production.
    pub note: Option<String>,
}

/// A header.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeaderRecord {
    /// The name of the header.
    pub name: String,
    /// The value of the header.
    pub value: String,
}

/// `POST /sandbox/merchants`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MerchantResponse {
    /// The name of the merchant.
    pub merchant: String,
}

/// `GET /sandbox/mails`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailList {
    /// The e-mails of all books that the caller may access, newest first.
    pub mails: Vec<MailRecord>,
}

/// An e-mail of the service; the simulator sends none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailRecord {
    /// The account whose customer or member receives it.
    pub account: String,
    /// The mode of the e-mail.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The recipient's address.
    pub to: String,
    /// The purpose.
    pub kind: Keyword,
    /// The invoice of the e-mail.
    #[serde(with = "text")]
    pub invoice: Code,
    /// The time of sending.
    #[serde(with = "text")]
    pub at: Timestamp,
}

/// `GET /sandbox/books/{account}/{mode}`: the number of objects of each kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BookCounts {
    /// The id of the account.
    pub account: String,
    /// The mode of the book.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The e-mail addresses of the members.
    pub members: Vec<String>,
    /// The number of charges by status.
    pub charges: ChargeCounts,
    /// The number of invoices by status.
    pub invoices: InvoiceCounts,
    /// The number of payment links.
    pub links: u64,
    /// The number of events.
    pub events: u64,
    /// The number of unresolved late payments.
    pub late: u64,
    /// The number of webhook endpoints by status.
    pub endpoints: EndpointCounts,
}

/// The number of charges by status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named for the statuses")]
pub struct ChargeCounts {
    /// The total.
    pub all: u64,
    pub pending: u64,
    pub underpaid: u64,
    pub paid: u64,
    pub expired: u64,
    pub canceled: u64,
}

/// The number of invoices by status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named for the statuses")]
pub struct InvoiceCounts {
    /// The total.
    pub all: u64,
    pub open: u64,
    pub paid: u64,
    pub void: u64,
}

/// The number of endpoints by status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are named for the statuses")]
pub struct EndpointCounts {
    pub enabled: u64,
    pub disabled: u64,
}

/// `GET /sandbox/books/{account}/{mode}/late`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LateList {
    /// The unresolved late payments, newest first.
    pub late: Vec<LatePayment>,
}

/// A late payment and its charge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatePayment {
    /// The charge.
    #[serde(with = "text")]
    pub charge: Code,
    /// The status of the charge.
    pub status: Keyword,
    /// The coin of the charge.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The amount due.
    pub asset_amount: String,
    /// The credited amount.
    pub received_amount: String,
    /// The transfer.
    #[serde(flatten)]
    pub transfer: TransferRecord,
}

/// `GET /sandbox/books/{account}/{mode}/charges/{id}/transfers`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferList {
    /// The transfers, in the order in which they were first seen.
    pub transfers: Vec<TransferRecord>,
    /// `true` if the charge is paid, but a reorganisation removed a transfer that paid it.
    pub reorganised: bool,
}

/// A transfer to a charge. Amounts are decimals of whole coins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferRecord {
    /// The id of the transaction.
    pub txid: String,
    /// The index of the output.
    pub output: u32,
    /// The amount.
    pub amount: String,
    /// The number of blocks from that of the transfer to the newest, both included; 0 in the mempool.
    pub confirmations: u32,
    /// The confirmations after which the transfer counts.
    pub required_confirmations: u32,
    /// `true` if it has the required confirmations.
    pub confirmed: bool,
    /// `true` if it is part of the charge's received amount.
    pub credited: bool,
    /// The role of the transfer for the charge.
    pub standing: TransferStanding,
    /// The reason why it disappeared; `None` if it exists.
    pub gone: Option<TransferDisappearance>,
    /// The time at which it was first seen.
    #[serde(with = "text")]
    pub seen_at: Timestamp,
    /// The time of confirmation; `None` if it is unconfirmed.
    #[serde(with = "text::option")]
    pub confirmed_at: Option<Timestamp>,
    /// `true` if it was late and was refunded in full; it cannot be accepted then.
    pub sent_back: bool,
}

/// The role of a transfer for its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferStanding {
    /// It was seen before the rate lock expired.
    OnTime,
    /// It was seen later, and the owner has not accepted it.
    Late,
    /// It was seen later, and the owner accepted it.
    Accepted,
    /// It was seen after the charge was paid.
    Extra,
}

/// The reason why a transfer disappeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferDisappearance {
    /// A conflicting transaction was confirmed.
    DoubleSpent,
    /// The sender replaced it.
    Replaced,
    /// It was dropped from the mempool.
    Dropped,
}

/// `POST /sandbox/pay`, `/sandbox/double-spend` and `/sandbox/replace`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionResponse {
    /// The id of the new transaction.
    pub txid: String,
}

/// `GET /sandbox/scenario`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioResponse {
    /// The text of a scenario file.
    pub scenario: String,
    /// The number of omitted calls; comments in the scenario give the reasons.
    pub untold: u64,
}

/// `POST /sandbox/reorg`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReorgResponse {
    /// The transactions that are no longer in a block.
    pub orphaned: Vec<String>,
}

/// `POST /sandbox/invoices/{id}/choose` and `/sandbox/links/{id}/choose`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChargeResponse {
    /// The new charge.
    #[serde(with = "text")]
    pub charge: Code,
}

/// A response without fields besides [`CausedEvents`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct EmptyResponse {}
