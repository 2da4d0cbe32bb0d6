//! The request bodies under `/sandbox`: each is a JSON object of these fields; unknown fields are refused. `None` fields
//! are omitted. Amounts are strings, because the number of allowed decimal places depends on the coin.

use reference_core::{
    asset::{Asset, Currency},
    endpoint::EndpointStatus,
    event::EventType,
    mode::Mode,
    money::Fiat,
    time::{Span, Timestamp},
    wallet::Script,
};
use reference_wire::fields::{Fields, PROSE_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CustomFieldValue, FieldValue, KeepRequest, Keyword, NoticePolicy, Settings, request_bodies, text,
};
use crate::{
    chain::FeeLevel,
    network::ReceiverBehavior,
    value::{Amount, AssetCode, Duration, FiatRate, ModeName, Share},
};

/// The maximum number of planned responses of a merchant.
const PLANNED_RESPONSES_MAX: usize = 1_000;

/// Returns a request as JSON.
///
/// ```
/// use simulator::api::{AdvanceRequest, json};
///
/// let request = AdvanceRequest { by: Some(reference_core::time::Span::secs(30)), ..Default::default() };
/// assert_eq!(json(&request).to_string(), r#"{"by":"30s"}"#);
/// ```
pub fn json(request: &impl Serialize) -> Value {
    serde_json::to_value(request).expect("the keys of a request are strings")
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
    pub account: Option<Settings>,
    /// Records all inputs, so that the service can be restarted; unchanged if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
}

/// `POST /sandbox/accounts`
#[derive(Clone, Debug, Default, Serialize)]
pub struct AccountRequest {
    /// The id of the new account.
    pub id: String,
    /// `personal` or `organization`, which is the default.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Keyword>,
    /// The settings of the new account.
    #[serde(flatten)]
    pub settings: Settings,
}

/// Returns a function that returns its argument if `parse` accepts it.
fn keyword_if_valid<T>(parse: impl Fn(&str) -> Option<T>) -> impl Fn(&str) -> Option<String> {
    move |keyword| parse(keyword).map(|_| keyword.to_owned())
}

request_bodies! {
    /// `POST /sandbox/advance`: advances the clock. Exactly one of `by` and `to` is required.
    #[derive(Copy, Default)]
    pub struct AdvanceRequest {
        /// The length of time to advance by.
        pub by: Option<Span>,
        /// The time to advance to.
        pub to: Option<Timestamp>,
        /// Stops at the first world event; with `after`, at the first one with a higher number.
        pub stop_early: bool,
        /// The response lists the world events after the one with this number.
        pub after: Option<u64>,
    }

    /// `POST /sandbox/rates`
    pub struct RateRequest {
        /// The coin.
        pub asset: Asset,
        /// The currency.
        pub currency: Currency,
        /// Fiat money for one coin; null removes the rate.
        pub rate: FiatRate,
    }

    /// `POST /sandbox/keys`
    #[derive(Default)]
    pub struct KeyRequest {
        /// The account; the first one if `None`.
        pub account: Option<String>,
        /// The mode; test if `None`.
        pub mode: Option<Mode>,
    }

    /// `PUT /sandbox/wallets`: with a key or addresses.
    pub struct WalletRequest {
        /// The account; the first one if `None`.
        pub account: Option<String>,
        /// The mode; test if `None`.
        pub mode: Option<Mode>,
        /// The coin.
        pub asset: Asset,
        /// An extended public key.
        pub key: Option<String> => |f| f.text("key", PROSE_MAX),
        /// The address type of the key, if its prefix does not determine it: `p2wpkh`, `p2sh-p2wpkh`, `p2pkh`.
        pub script: Option<String> => |f| f.choice("script", &Script::ALL.map(Script::as_str), keyword_if_valid(Script::parse)),
        /// The addresses, for coins without extended keys.
        pub addresses: Option<Vec<String>>,
    }

    /// `DELETE /sandbox/wallets`
    pub struct WalletRemovalRequest {
        /// The account; the first one if `None`.
        pub account: Option<String>,
        /// The mode; test if `None`.
        pub mode: Option<Mode>,
        /// The coin.
        pub asset: Asset,
    }

    /// `POST /sandbox/endpoints`
    #[derive(Default)]
    pub struct EndpointRequest {
        /// The account; the first one if `None`.
        pub account: Option<String>,
        /// The mode; test if `None`.
        pub mode: Option<Mode>,
        /// The URL that receives deliveries.
        pub url: String => |f| f.required_text("url", PROSE_MAX).unwrap_or_default(),
        /// The event types to deliver; all if `None`.
        pub events: Option<Vec<EventType>>,
    }

    /// `PATCH /sandbox/endpoints/{id}`: `None` fields are unchanged.
    #[derive(Default)]
    pub struct EndpointChangeRequest {
        /// The new URL.
        pub url: Option<String> => |f| f.text("url", PROSE_MAX),
        /// The new event types.
        pub events: Option<Vec<EventType>>,
        /// The new status.
        pub status: Option<EndpointStatus>,
    }

    /// `POST /sandbox/merchants`: sets how the receiver at `name.sim` responds.
    pub struct MerchantRequest {
        /// The host without `.sim`.
        pub name: String,
        /// The behaviour: `up`, `down`, `slow`, `lost`, `twice`, `lagging`, `redirect`, `private` or a status.
        pub state: Option<String> => |f| f.choice("state", &ReceiverBehavior::NAMES, keyword_if_valid(ReceiverBehavior::parse)),
        /// The behaviours for the next attempts, one each, before `state` applies.
        pub answers: Vec<String> =>
            |f| f.choices("answers", PLANNED_RESPONSES_MAX, &ReceiverBehavior::NAMES, keyword_if_valid(ReceiverBehavior::parse)),
    }

    /// `POST /sandbox/charges/{id}/accept`
    #[derive(Default)]
    pub struct AcceptRequest {
        /// The transaction of the late payment; all confirmed ones if `None`.
        pub txid: Option<String>,
    }

    /// `POST /sandbox/invoices/{id}/choose`
    pub struct InvoiceCoinRequest {
        /// The coin.
        pub asset: Asset,
    }

    /// `POST /sandbox/links/{id}/choose`
    pub struct LinkCoinRequest {
        /// The coin.
        pub asset: Asset,
        /// The amount, if the link lets the customer choose it.
        pub amount: Option<String> => |f| f.amount("amount", |text| Fiat::parse(text).map(|_| text.to_owned())),
        /// The customer's e-mail address.
        pub customer_email: Option<String> => |f| f.email("customer_email"),
        /// The customer's name.
        pub customer_name: Option<String>,
        /// The values of the link's custom fields.
        pub custom_fields: Vec<CustomFieldValue>,
    }

    /// `POST /sandbox/pay`: pays a charge, or an address with `asset` and `amount`.
    #[derive(Default)]
    pub struct PayRequest {
        /// The code of the charge to pay.
        pub charge: Option<String>,
        /// The address to pay to.
        pub address: Option<String>,
        /// The coin that is sent; the charge's if `None`.
        pub asset: Option<Asset>,
        /// The amount; the remaining amount if `None`.
        pub amount: Option<Amount>,
        /// The factor of the remaining amount, up to 1000: `0.5` pays half of it.
        pub share: Option<Share>,
        /// The mode of the address; test if `None`.
        pub mode: Option<Mode>,
        /// The fee level; normal if `None`.
        pub fee: Option<FeeLevel>,
        /// Splits the amount into this number of outputs of one transaction.
        pub outputs: Option<u32>,
        /// Skips the mempool: the transaction is first seen in a block.
        pub unseen: bool,
    }

    /// Mines blocks: `POST /sandbox/mine`, and the step `mine`.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Mine {
        /// The coin of the chain.
        pub asset: AssetCode,
        /// The mode; by default test, in a scenario the scenario's.
        pub mode: Option<ModeName>,
        /// The number of blocks; one by default.
        pub blocks: Option<u32>,
        /// Mines the blocks now, without advancing the clock.
        #[serde(default)]
        pub at_once: bool,
    }

    /// `POST /sandbox/reorg`
    pub struct ReorgRequest {
        /// The coin of the chain.
        pub asset: Asset,
        /// The mode of the chain; test if `None`.
        pub mode: Option<Mode>,
        /// The account whose transfers are affected; all if `None`.
        pub account: Option<String>,
        /// The number of replaced blocks.
        pub depth: u32,
        /// The transactions of the replaced blocks that the new blocks hold, by txid.
        pub keep: KeepRequest<String>,
    }

    /// `POST /sandbox/double-spend`, `/sandbox/drop` and `/sandbox/rebroadcast`
    pub struct TransactionRequest {
        /// The id of the transaction.
        pub txid: String,
    }

    /// `POST /sandbox/replace`
    pub struct ReplaceRequest {
        /// The id of the transaction.
        pub txid: String,
        /// The new amount, to the same address.
        pub amount: Option<Amount>,
        /// Pays to an address outside of the world, not to the charge.
        pub elsewhere: bool,
        /// The fee level; normal if `None`.
        pub fee: Option<FeeLevel>,
    }

    /// Stops the blocks of a chain for some time: `POST /sandbox/stall`, and the step `stall`.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Stall {
        /// The coin of the chain.
        pub asset: AssetCode,
        /// The mode; by default test, in a scenario the scenario's.
        pub mode: Option<ModeName>,
        /// The time without blocks.
        pub r#for: Duration,
    }

    /// `POST /sandbox/congest`: sets the shares of future blocks that are empty or full, in percent.
    pub struct CongestRequest {
        /// The coin of the chain.
        pub asset: Asset,
        /// The mode of the chain; test if `None`.
        pub mode: Option<Mode>,
        /// Blocks without any transaction; 0 if `None`.
        pub empty: Option<u32>,
        /// Blocks with only high-fee transactions; 0 if `None`.
        pub full: Option<u32>,
    }

    /// Sets how a watcher's notices about a chain reach the service: `POST /sandbox/watchers`, and the step `watcher`.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Watcher {
        /// The coin of the chain.
        pub asset: AssetCode,
        /// The mode; by default test, in a scenario the scenario's.
        pub mode: Option<ModeName>,
        /// The delivery of its notices from now on.
        pub notices: NoticePolicy,
    }
}
