//! Steps of customers and miners on the simulated chains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{from_shorthand, is_default};
use crate::{
    api::{self, Mine},
    chain::FeeLevel,
    script::{
        At,
        value::{Amount, AssetCode, ModeName, Name, Share},
    },
};

/// A payment: the remaining amount, a share of it, an amount, or more or less than the remaining amount.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pay {
    /// The charge to pay.
    pub charge: Option<At<Name>>,
    /// Pays to the address of this charge like any wallet; requires `amount`, with `asset` and `mode` as needed.
    pub address_of: Option<At<Name>>,
    /// A share of the remaining amount: `0.5`.
    pub share: Option<At<Share>>,
    /// An amount of coins.
    pub amount: Option<At<Amount>>,
    /// Pays the remaining amount plus this.
    pub over: Option<At<Amount>>,
    /// Pays the remaining amount minus this.
    pub short: Option<At<Amount>>,
    /// The coin to pay in; the charge's by default.
    pub asset: Option<AssetCode>,
    /// The mode of the chain; only with `address_of`.
    pub mode: Option<ModeName>,
    /// The fee level.
    pub fee: Option<FeeLevel>,
    /// Splits the amount over this number of outputs of one transaction.
    pub outputs: Option<u32>,
    /// Skips the mempool: the transaction is first seen in a block.
    #[serde(default)]
    pub unseen: bool,
    /// The name of the transaction; t1, t2, … by default.
    pub tx: Option<At<Name>>,
    /// The HTTP status of the expected refusal.
    pub refused: Option<u16>,
}

impl super::FromShorthand for Pay {
    type Scalar = Name;

    const KEY: Option<&'static str> = None;

    fn from_shorthand(charge: At<Name>) -> Pay {
        Pay { charge: Some(charge), ..Pay::default() }
    }
}

from_shorthand!(Mine { asset.value: AssetCode, mode, blocks, at_once });

/// Blocks to replace by others.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorg {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<ModeName>,
    /// The number of replaced blocks.
    pub depth: u32,
    /// The transactions that the new blocks contain: `all`, `none` (they return to the mempool) or a list.
    #[serde(default, skip_serializing_if = "api::KeepRequest::is_none")]
    pub keep: Keep,
    /// The HTTP status of the expected refusal.
    pub refused: Option<u16>,
}

/// The transactions that the new blocks of a reorganisation contain.
pub type Keep = api::KeepRequest<At<Name>>;

/// A transaction to double-spend, to drop from the mempool, or to send again under its own id.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransactionStep {
    /// The transaction.
    pub tx: At<Name>,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_shorthand!(TransactionStep { tx: Name, refused });

/// A transaction to replace by fee.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// The transaction.
    pub tx: At<Name>,
    /// The name of the new transaction; t1, t2, … by default.
    #[serde(rename = "as")]
    pub named: Option<At<Name>>,
    /// The new amount.
    pub amount: Option<At<Amount>>,
    /// Pays to another address, not to the charge.
    #[serde(default)]
    pub elsewhere: bool,
    /// The new fee level.
    pub fee: Option<FeeLevel>,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}

/// The share of future blocks without free space, in percent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congest {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<ModeName>,
    /// Blocks without any transaction; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty: u32,
    /// Blocks with only high-fee transactions; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full: u32,
    /// The HTTP status of the expected refusal, such as 409.
    pub refused: Option<u16>,
}
