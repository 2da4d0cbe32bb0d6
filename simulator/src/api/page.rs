//! The content of the hosted pages, one call per page. The objects of the API in them are type parameters: a
//! reader chooses the fields it wants.

use reference_core::{asset::Asset, id::Code, mode::Mode};
use serde::{Deserialize, Serialize};

use super::{TransferRecord, Word, text};

/// `GET /sandbox/pages/c/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChargePage<C> {
    /// The account of the page.
    pub account: PageAccount,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The charge, and all that belongs to it.
    #[serde(flatten)]
    pub payment: PaymentPart<C>,
}

/// `GET /sandbox/pages/i/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvoicePage<I, C> {
    /// The account of the page.
    pub account: PageAccount,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The invoice, as `/v1/invoices/{id}` answers it.
    pub invoice: I,
    /// The charge that says most about it: the paid one, or else the newest.
    pub payment: Option<PaymentPart<C>>,
    /// The customer may choose a coin, or another one.
    pub may_choose: bool,
    /// The coins to choose from; empty if none can be chosen.
    pub coins: Vec<CoinOffer>,
}

/// `GET /sandbox/pages/pay/{id}`
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkPage<L> {
    /// The account of the page.
    pub account: PageAccount,
    /// In which mode.
    #[serde(with = "text")]
    pub mode: Mode,
    /// The payment link, as `/v1/payment-links/{id}` answers it.
    pub link: L,
    /// The reason why it takes no payments; `None` if it does.
    pub closed: Option<LinkClosed>,
    /// The coins to choose from.
    pub coins: Vec<CoinOffer>,
}

/// An account, as far as customers may know it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageAccount {
    /// Its id.
    pub id: String,
    /// The name that customers see.
    pub display_name: String,
    /// `#` and six hex digits.
    pub brand_color: String,
    /// Its website.
    pub website_url: Option<String>,
    /// The address to which customers may write.
    pub support_email: Option<String>,
}

/// A charge and all that belongs to it. Amounts are decimals of whole coins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PaymentPart<C> {
    /// The charge, as `/v1/charges/{id}` answers it.
    pub charge: C,
    /// The most important fact for the customer.
    pub stage: PaymentStage,
    /// It is paid, but a reorganisation took money away that it was paid with.
    pub reorganised: bool,
    /// `true` if the transfers that arrived or are on their way are enough.
    pub covered: bool,
    /// The amount that is neither here nor on its way.
    pub missing: String,
    /// The coin to pay in.
    pub coin: CoinRecord,
    /// Money that came, or is coming.
    pub transfers: Vec<TransferRecord>,
    /// The invoice that it is for.
    pub invoice: Option<InvoiceOfCharge>,
    /// The payment link that it came from.
    pub link: Option<LinkOfCharge>,
}

/// The most important fact about a charge for the customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentStage {
    /// No money is there or on its way.
    Waiting,
    /// Money is on its way.
    Confirming,
    /// Money arrived, and is not enough.
    Underpaid,
    /// It is paid.
    Paid,
    /// Money came after the end, and the owner has yet to take it.
    Late,
    /// Late money was taken, and was not enough.
    Short,
    /// Its time is over.
    Expired,
    /// It was canceled.
    Canceled,
}

/// The invoice that a charge is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InvoiceOfCharge {
    /// Its code.
    #[serde(with = "text")]
    pub code: Code,
    /// Its number.
    pub number: String,
    /// `open`, `paid` or `void`.
    pub status: Word,
}

/// The payment link that a charge came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkOfCharge {
    /// Its code.
    #[serde(with = "text")]
    pub code: Code,
    /// Its title.
    pub title: String,
    /// The URL that customers are sent to after payment.
    pub success_url: Option<String>,
    /// The URL that customers are sent to when they give up.
    pub cancel_url: Option<String>,
    /// The message shown after payment.
    pub success_message: Option<String>,
    /// It takes another payment now.
    pub accepting_payments: bool,
}

/// A coin on its network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoinRecord {
    /// Its code.
    #[serde(with = "text")]
    pub asset: Asset,
    /// Its network.
    pub network: Word,
    /// Its decimal places.
    pub decimals: u32,
    /// Confirmations after which money counts.
    pub required_confirmations: u32,
}

/// A coin to choose.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoinOffer {
    /// The coin.
    #[serde(flatten)]
    pub coin: CoinRecord,
    /// The price in this coin now; `None` if the customer chooses it.
    pub amount: Option<String>,
}

/// The reason why a payment link takes no payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkClosed {
    /// Its owner archived it.
    Archived,
    /// Its time is over.
    Expired,
    /// It took as many payments as it may.
    Exhausted,
}
