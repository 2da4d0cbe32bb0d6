//! Commands of the account owner in the dashboard, and visits of customers to hosted pages.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    asset::{Asset, Currency},
    business::Business,
    call::{Call, CallResult, PaymentChoice},
    event::EventType,
    id::{AccountNo, ChargeNo, Code, EndpointNo, KeyNo},
    key::KeyText,
    mode::Mode,
    money::Percent,
    wallet::Script,
};

/// A command of the account owner in the dashboard of one account and mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Creates an API key of the mode.
    CreateKey,
    /// Revokes a key.
    RevokeKey(Code),
    /// Sets the wallet that receives the payments in a coin.
    SetWallet {
        /// The coin.
        asset: Asset,
        /// An extended public key, or addresses.
        input: WalletInput,
    },
    /// Changes the account's settings, in both modes.
    ChangeSettings(Box<SettingsDraft>),
    /// A command about objects of the mode.
    Book(BookCommand),
    /// An API call that the owner makes without a key, such as opening a charge.
    Call(Call),
}

impl From<BookCommand> for Command {
    fn from(command: BookCommand) -> Command {
        Command::Book(command)
    }
}

/// A command about objects of one account in one mode.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum BookCommand {
    /// Adds a webhook endpoint. The caller has already checked the addresses that the host name of its URL resolves to.
    AddEndpoint {
        /// The URL as typed.
        url: String,
        /// The chosen event types.
        events: BTreeSet<EventType>,
    },
    /// Changes a webhook endpoint. `None` leaves a value as it is.
    ChangeEndpoint {
        /// The id of the endpoint.
        id: Code,
        /// The new URL.
        url: Option<String>,
        /// The new event types.
        events: Option<BTreeSet<EventType>>,
        /// `true` to enable it, `false` to disable it.
        enabled: Option<bool>,
    },
    /// Removes a webhook endpoint.
    RemoveEndpoint(Code),
    /// Gives a webhook endpoint a new secret, used from the next attempt on.
    RotateSecret(Code),
    /// Sends a sample event to a webhook endpoint.
    SendTest(Code),
    /// Resends the delivery with this id.
    Resend(Uuid),
    /// Removes a coin's wallet.
    RemoveWallet(Asset),
    /// Accepts a late payment.
    AcceptLate {
        /// The charge.
        charge: Code,
        /// The transaction; `None` for all confirmed late payments.
        txid: Option<String>,
    },
    /// Cancels a charge.
    CancelCharge(Code),
    /// E-mails an invoice.
    SendInvoice(Code),
    /// Voids an invoice.
    VoidInvoice(Code),
}

/// The owner's input for a wallet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WalletInput {
    /// An extended public key.
    Key {
        /// The key as typed.
        text: String,
        /// The script of its addresses, if the owner stated one.
        script: Option<Script>,
    },
    /// A list of addresses, for coins whose addresses can't be derived.
    Addresses(Vec<String>),
}

impl WalletInput {
    /// Returns the name of the field in error messages about it.
    pub(crate) const fn field(&self) -> &'static str {
        match self {
            WalletInput::Key { .. } => "key",
            WalletInput::Addresses(_) => "addresses",
        }
    }
}

/// Changes to an account's settings. `None` leaves a value as it is, `Some(None)` removes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of Settings")]
pub struct SettingsDraft {
    pub name: Option<String>,
    pub display_name: Option<String>,
    pub logo_url: Option<Option<String>>,
    pub website_url: Option<Option<String>>,
    pub support_email: Option<Option<String>>,
    pub support_phone: Option<Option<String>>,
    pub brand_color: Option<String>,
    pub business: Option<Option<Business>>,
    pub default_currency: Option<Currency>,
    pub underpayment_tolerance: Option<Percent>,
    pub overpayment_threshold: Option<Percent>,
    pub members: Option<Vec<String>>,
}

/// The result of a command.
#[derive(Clone, Debug)]
pub enum CommandResult {
    /// No result.
    Nothing,
    /// The created API key: its number, and its text, to be shown once.
    Key(KeyNo, KeyText),
    /// The webhook endpoint that was added or changed, or has a new secret.
    Endpoint(EndpointNo),
    /// The delivery of the sample event, or the one to resend.
    Delivery(Uuid),
    /// The result of [`Command::Call`].
    Call(CallResult),
}

/// An action of a customer on a hosted page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Visit {
    /// Opens an invoice.
    ViewInvoice(Code),
    /// Chooses the coin to pay an invoice in.
    ChooseCoin {
        /// The invoice.
        invoice: Code,
        /// The coin.
        asset: Asset,
    },
    /// Opens a payment link.
    ViewLink(Code),
    /// Opens a charge from a payment link.
    PayLink {
        /// The link.
        link: Code,
        /// Coin, amount and answers.
        choice: Box<PaymentChoice>,
    },
}

/// The page that a customer sees next.
#[derive(Clone, Copy, Debug)]
pub enum VisitResult {
    /// The page they opened.
    Page,
    /// A charge to pay, in the book it belongs to.
    Charge(AccountNo, Mode, ChargeNo),
}
