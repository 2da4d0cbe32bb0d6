//! The content of the hosted pages, one call per page. The API objects in them are type parameters: the caller chooses
//! their fields.

use reference_core::{asset::Asset, id::Code, mode::Mode};
use serde::{Deserialize, Serialize};

use super::{Keyword, TransferRecord, text};

/// `GET /sandbox/pages/c/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChargePage<C> {
    /// The merchant's account.
    pub account: PageAccount,
    /// The mode of the object.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The charge and its payment.
    #[serde(flatten)]
    pub payment: PaymentDetails<C>,
}

/// `GET /sandbox/pages/i/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvoicePage<I, C> {
    /// The merchant's account.
    pub account: PageAccount,
    /// The mode of the object.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The invoice, as in the response of `/v1/invoices/{id}`.
    pub invoice: I,
    /// The charge that the page shows: the paid one, or else the newest.
    pub payment: Option<PaymentDetails<C>>,
    /// `true` if the customer may choose a coin, or change it.
    pub may_choose: bool,
    /// The coins to choose from; empty if none can be chosen.
    pub coins: Vec<CoinOffer>,
}

/// `GET /sandbox/pages/pay/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkPage<L> {
    /// The merchant's account.
    pub account: PageAccount,
    /// The mode of the object.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The payment link, as in the response of `/v1/payment-links/{id}`.
    pub link: L,
    /// The reason why the link accepts no payments; `None` if it does.
    pub closed: Option<LinkClosedReason>,
    /// The coins to choose from.
    pub coins: Vec<CoinOffer>,
}

/// The public data of an account.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageAccount {
    /// The id of the account.
    pub id: String,
    /// The name shown to customers.
    pub display_name: String,
    /// The brand color: `#` and six hex digits.
    pub brand_color: String,
    /// The website of the account.
    pub website_url: Option<String>,
    /// The e-mail address for support.
    pub support_email: Option<String>,
}

/// A charge and its payment. Amounts are decimals of whole coins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PaymentDetails<C> {
    /// The charge, as in the response of `/v1/charges/{id}`.
    pub charge: C,
    /// The state that matters most to the customer.
    pub stage: PaymentStage,
    /// `true` if the charge is paid, but a reorganisation removed a transfer that paid it.
    pub reorganised: bool,
    /// `true` if the received and pending transfers together are sufficient.
    pub covered: bool,
    /// The amount that is neither received nor pending.
    pub missing: String,
    /// The coin to pay in.
    pub coin: CoinRecord,
    /// The transfers to the charge.
    pub transfers: Vec<TransferRecord>,
    /// The invoice of the charge.
    pub invoice: Option<InvoiceOfCharge>,
    /// The payment link of the charge.
    pub link: Option<LinkOfCharge>,
}

/// The state of a charge that matters most to the customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStage {
    /// There is no transfer.
    Waiting,
    /// A transfer is waiting for confirmations.
    Confirming,
    /// The received amount is insufficient.
    Underpaid,
    /// The charge is paid.
    Paid,
    /// A payment arrived late, and the owner has not accepted it yet.
    Late,
    /// A late payment was accepted, but the received amount is insufficient.
    Short,
    /// The charge expired.
    Expired,
    /// The charge was canceled.
    Canceled,
}

/// The invoice of a charge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvoiceOfCharge {
    /// The code of the invoice.
    #[serde(with = "text")]
    pub code: Code,
    /// The number of the invoice.
    pub number: String,
    /// `open`, `paid` or `void`.
    pub status: Keyword,
}

/// The payment link of a charge.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkOfCharge {
    /// The code of the link.
    #[serde(with = "text")]
    pub code: Code,
    /// The title of the link.
    pub title: String,
    /// The URL that customers are sent to after payment.
    pub success_url: Option<String>,
    /// The URL that customers are sent to when they cancel.
    pub cancel_url: Option<String>,
    /// The message shown after payment.
    pub success_message: Option<String>,
    /// `true` if the link accepts another payment now.
    pub accepting_payments: bool,
}

/// A coin on its network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoinRecord {
    /// The code of the coin.
    #[serde(with = "text")]
    pub asset: Asset,
    /// The network of the coin.
    pub network: Keyword,
    /// The decimal places of the coin.
    pub decimals: u32,
    /// The confirmations after which a transfer counts.
    pub required_confirmations: u32,
}

/// A coin that the customer can choose, and its price.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoinOffer {
    /// The coin.
    #[serde(flatten)]
    pub coin: CoinRecord,
    /// The price in this coin; `None` if the customer chooses the amount.
    pub amount: Option<String>,
}

/// The reason why a payment link accepts no payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkClosedReason {
    /// The owner archived the link.
    Archived,
    /// The link expired.
    Expired,
    /// The link reached its maximum number of payments.
    Exhausted,
}
