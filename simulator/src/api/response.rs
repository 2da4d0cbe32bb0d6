//! The responses under `/sandbox`. Every success holds `now` too, and that of a call that changes something
//! `happened`: read these two as [`Caused`].

use reference_core::{
    asset::{Asset, Currency},
    event::EventType,
    id::Code,
    mode::Mode,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Word, WorldEvent, text};

/// The events that a call caused, and the time after it. Every success holds them beside its own fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Caused {
    /// Oldest first, a bounded number of them; empty for calls that only read.
    #[serde(default)]
    pub happened: Vec<WorldEvent>,
    /// There is more to tell: `GET /sandbox/happenings?after=` with this number goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The time on the service clock.
    #[serde(with = "text")]
    pub now: Timestamp,
}

/// `GET /sandbox/happenings`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldEvents {
    /// Oldest first, a bounded number of them.
    pub happened: Vec<WorldEvent>,
    /// The number of the last one: what to ask for as `after` the next time.
    pub next: u64,
}

/// `GET /sandbox`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Overview {
    /// The seed of every random draw of the world.
    pub seed: u64,
    /// Every account, in order of opening.
    pub accounts: Vec<AccountRecord>,
    /// Every chain, by mode and coin.
    pub chains: Vec<ChainRecord>,
    /// Every pair that has a rate now.
    pub rates: Vec<RateRecord>,
    /// The number of events so far.
    pub happenings: u64,
    /// The time of the next event that happens by itself; `None` if the world is at rest.
    #[serde(with = "text::option")]
    pub next_due: Option<Timestamp>,
}

/// An account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Its id.
    pub id: String,
    /// `personal` or `organization`.
    #[serde(rename = "type")]
    pub kind: Word,
    /// The e-mail addresses of its members.
    pub members: Vec<String>,
}

/// The chain of a coin in a mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChainRecord {
    /// The mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The number of the newest block.
    pub height: u64,
    /// Confirmations after which money counts.
    pub required_confirmations: u32,
    /// The network's name.
    pub network: Word,
    /// Decimal places of the coin.
    pub decimals: u32,
    /// The kind of wallet: an extended public `key`, or a list of `addresses`.
    pub wallet: Word,
    /// The time of the next block, if nothing stalls the chain.
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
    /// Fiat money for one coin.
    pub rate: String,
}

/// `POST /sandbox/world` and `POST /sandbox/accounts`: an account and the keys that it begins with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewAccount {
    /// The account's id.
    pub account: String,
    /// Its keys.
    pub keys: KeyPair,
}

/// An API key in each mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyPair {
    /// The key of live mode.
    pub live: String,
    /// The key of test mode.
    pub test: String,
}

/// `GET /sandbox/keys`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyList {
    /// Of every account, in order of making, revoked ones too.
    pub keys: Vec<KeyRecord>,
}

/// `POST /sandbox/keys`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyAnswer {
    /// The new key, with its text.
    pub key: KeyRecord,
}

/// An API key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Its id in the dashboard.
    #[serde(with = "text")]
    pub id: Code,
    /// The account.
    pub account: String,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The beginning and the end of its text.
    pub hint: String,
    /// The time of creation.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The time of revocation.
    #[serde(with = "text::option")]
    pub revoked_at: Option<Timestamp>,
    /// The whole key: in the answer that makes it, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `GET /sandbox/wallets`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalletList {
    /// Of every account, by mode and coin.
    pub wallets: Vec<WalletRecord>,
}

/// `PUT /sandbox/wallets`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalletAnswer {
    /// The wallet as it is now. Its first address tells the owner whether it is the right one.
    pub wallet: WalletRecord,
}

/// The wallet of a coin.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalletRecord {
    /// The account.
    pub account: String,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The extended public key; `None` for a list of addresses.
    pub key: Option<String>,
    /// The script of the key's addresses; `None` for a coin with one kind only.
    pub script: Option<Word>,
    /// The number of listed addresses.
    pub listed: usize,
    /// The first address; `None` if the list is empty.
    pub first_address: Option<String>,
}

/// `GET /sandbox/endpoints`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointList {
    /// Of every book within reach, in order of adding.
    pub endpoints: Vec<EndpointRecord>,
}

/// `POST` and `PATCH` under `/sandbox/endpoints`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointAnswer {
    /// The endpoint as it is now.
    pub endpoint: EndpointRecord,
}

/// A webhook endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// Its id.
    #[serde(with = "text")]
    pub id: Code,
    /// The account.
    pub account: String,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The URL that receives deliveries.
    pub url: String,
    /// The event types that it gets.
    #[serde(with = "text::list")]
    pub events: Vec<EventType>,
    /// `enabled`, `disabled` or `removed`.
    pub status: Word,
    /// Deliveries that used up their attempts since the last success.
    pub failed_in_a_row: u32,
    /// The time of registration.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The signing secret: in the response that creates it, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// `POST /sandbox/endpoints/{id}/test`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestAnswer {
    /// The delivery that carries the sample event.
    #[serde(with = "text")]
    pub delivery: Uuid,
}

/// `GET /sandbox/deliveries`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliveryList {
    /// Newest first, a bounded number of them.
    pub deliveries: Vec<DeliveryRecord>,
}

/// `GET /sandbox/deliveries/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliveryAnswer {
    /// The delivery, with all that went over the wire.
    pub delivery: DeliveryRecord,
}

/// A delivery and its attempts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliveryRecord {
    /// Its id, which every attempt carries.
    #[serde(with = "text")]
    pub id: Uuid,
    /// The account.
    pub account: String,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The endpoint that it goes to.
    #[serde(with = "text")]
    pub endpoint: Code,
    /// The endpoint's address now.
    pub url: String,
    /// The event that it carries; `None` for a test.
    #[serde(with = "text::option")]
    pub event: Option<Uuid>,
    /// The type of the event, or of the sample.
    #[serde(rename = "type", with = "text")]
    pub kind: EventType,
    /// It carries a sample event.
    pub test: bool,
    /// `waiting`, `in_flight`, `delivered`, `failed` or `canceled`.
    pub status: Word,
    /// Oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// The time of the next attempt.
    #[serde(with = "text::option")]
    pub next_at: Option<Timestamp>,
    /// The time of fan-out.
    #[serde(with = "text")]
    pub created_at: Timestamp,
    /// The posted body; in the response about one delivery only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_body: Option<String>,
}

/// One attempt to post a delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Counts from 1.
    pub n: u32,
    /// The time at which it began.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// The time at which it ended.
    #[serde(with = "text")]
    pub ended_at: Timestamp,
    /// The status of the answer; `None` if there was no answer.
    pub status: Option<u16>,
    /// The reason why there was no answer.
    pub error: Option<String>,
    /// The request and response; in the response about one delivery only.
    #[serde(flatten)]
    pub trace: Option<AttemptTrace>,
}

/// The request and response of an attempt, as far as the host kept them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AttemptTrace {
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The address that was connected to.
    pub address: Option<String>,
    /// The headers that were sent.
    pub request_headers: Vec<HeaderRecord>,
    /// The headers of the answer.
    pub response_headers: Vec<HeaderRecord>,
    /// The beginning of the answer's body.
    pub response_body: String,
    /// Something the owner should know: a local address that is refused in production.
    pub note: Option<String>,
}

/// A header.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeaderRecord {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// `POST /sandbox/merchants`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MerchantAnswer {
    /// The merchant's name.
    pub merchant: String,
}

/// `GET /sandbox/mails`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailList {
    /// Of every book within reach, newest first.
    pub mails: Vec<MailRecord>,
}

/// An e-mail that the service would have sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MailRecord {
    /// The account whose customer or member receives it.
    pub account: String,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The address.
    pub to: String,
    /// The purpose.
    pub kind: Word,
    /// The invoice that it is about.
    #[serde(with = "text")]
    pub invoice: Code,
    /// The time of sending.
    #[serde(with = "text")]
    pub at: Timestamp,
}

/// `GET /sandbox/books/{account}/{mode}`: how much there is of everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BookCounts {
    /// The account's id.
    pub account: String,
    /// The mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The e-mail addresses of the account's members.
    pub members: Vec<String>,
    /// Charges by status.
    pub charges: ChargeCounts,
    /// Invoices by status.
    pub invoices: InvoiceCounts,
    /// Payment links.
    pub links: u64,
    /// Events.
    pub events: u64,
    /// Late payments that wait for the owner.
    pub late: u64,
    /// Webhook endpoints by status.
    pub endpoints: EndpointCounts,
}

/// The number of charges by status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the statuses")]
pub struct ChargeCounts {
    /// Of any status.
    pub all: u64,
    pub pending: u64,
    pub underpaid: u64,
    pub paid: u64,
    pub expired: u64,
    pub canceled: u64,
}

/// The number of invoices by status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the statuses")]
pub struct InvoiceCounts {
    /// Of any status.
    pub all: u64,
    pub open: u64,
    pub paid: u64,
    pub void: u64,
}

/// The number of endpoints by status.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the statuses")]
pub struct EndpointCounts {
    pub enabled: u64,
    pub disabled: u64,
}

/// `GET /sandbox/books/{account}/{mode}/late`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LateList {
    /// Late payments that wait for the owner, newest first.
    pub late: Vec<LatePayment>,
}

/// A late payment and the charge that it was meant for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatePayment {
    /// The charge.
    #[serde(with = "text")]
    pub charge: Code,
    /// The charge's status.
    pub status: Word,
    /// The charge's coin.
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
    /// In the order in which they were first seen.
    pub transfers: Vec<TransferRecord>,
    /// The charge is paid, but a reorganisation took money away that it was paid with.
    pub reorganised: bool,
}

/// Money on its way to a charge, or arrived, or gone. Amounts are decimals of whole coins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferRecord {
    /// The transaction.
    pub txid: String,
    /// The index of the output.
    pub output: u32,
    /// The amount.
    pub amount: String,
    /// Blocks on top of it, its own included; 0 in the mempool.
    pub confirmations: u32,
    /// Confirmations after which it counts.
    pub required_confirmations: u32,
    /// It has as many as it needs.
    pub confirmed: bool,
    /// It is part of what the charge has received.
    pub credited: bool,
    /// The standing of the transfer.
    pub standing: TransferStanding,
    /// The reason why it has vanished; `None` while it is there.
    pub gone: Option<TransferGone>,
    /// The time at which it was first seen.
    #[serde(with = "text")]
    pub seen_at: Timestamp,
    /// The time of confirmation.
    #[serde(with = "text::option")]
    pub confirmed_at: Option<Timestamp>,
    /// It came late and was refunded in full, so it can't be accepted.
    pub sent_back: bool,
}

/// The standing of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferStanding {
    /// It came before the end of the rate lock.
    OnTime,
    /// It came after, and waits for the owner.
    Late,
    /// It came after, and the owner took it.
    Accepted,
    /// It came to a charge that was paid already.
    Extra,
}

/// The reason why a transfer has vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferGone {
    /// The same money was spent elsewhere.
    DoubleSpent,
    /// Its sender replaced it.
    Replaced,
    /// The network forgot it.
    Dropped,
}

/// `POST /sandbox/pay`, `/sandbox/double-spend` and `/sandbox/replace`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionAnswer {
    /// The new transaction.
    pub txid: String,
}

/// `GET /sandbox/scenario`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScenarioAnswer {
    /// The text of a scenario file.
    pub scenario: String,
    /// Calls that it does not tell; comments in it say which, and why.
    pub untold: u64,
}

/// `POST /sandbox/reorg`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReorgAnswer {
    /// The transactions that no block holds any more.
    pub orphaned: Vec<String>,
}

/// `POST` under `/sandbox/invoices/{id}/choose` and `/sandbox/links/{id}/choose`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChargeAnswer {
    /// The charge that was opened.
    #[serde(with = "text")]
    pub charge: Code,
}

/// An answer that says no more than [`Caused`].
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Empty {}
