//! Steps of customers and miners on the simulated chains.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{SeqAccess, Visitor},
};

use super::{from_word, is_default};
use crate::chain::FeeLevel;
use crate::script::{
    At,
    value::{Amount, AssetCode, Duration, InMode, Name, Share},
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
    pub mode: Option<InMode>,
    /// The fee level.
    pub fee: Option<FeeLevel>,
    /// Splits the amount over this number of outputs of one transaction.
    pub outputs: Option<u32>,
    /// Skips the mempool: the transaction is first seen in a block.
    #[serde(default)]
    pub unseen: bool,
    /// The name of the transaction; t1, t2, … by default.
    pub tx: Option<At<Name>>,
    /// The expected refusal.
    pub refused: Option<u16>,
}

impl super::FromWord for Pay {
    type Word = Name;

    const KEY: Option<&'static str> = None;

    fn from_word(word: At<Name>) -> Pay {
        Pay { charge: Some(word), ..Pay::default() }
    }
}

/// New blocks.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mine {
    /// The coin of the chain.
    pub asset: At<AssetCode>,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<InMode>,
    /// The number of blocks; one by default.
    pub blocks: Option<u32>,
    /// Mines the blocks now, without advancing the clock.
    #[serde(default)]
    pub at_once: bool,
}

from_word!(Mine { asset: AssetCode, mode, blocks, at_once });

/// Blocks to replace by others.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorg {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<InMode>,
    /// The number of replaced blocks.
    pub depth: u32,
    /// The transactions that the new blocks contain: `all`, `none` (they return to the mempool) or a list.
    #[serde(default, skip_serializing_if = "Keep::is_none")]
    pub keep: Keep,
    /// The expected refusal.
    pub refused: Option<u16>,
}

/// The transactions that the new blocks of a reorganisation contain.
#[derive(Clone, Debug, Default)]
pub enum Keep {
    /// All transactions of the replaced blocks.
    All,
    /// None: they return to the mempool.
    #[default]
    None,
    /// Only these.
    Only(Vec<At<Name>>),
}

impl Keep {
    fn is_none(&self) -> bool {
        matches!(self, Keep::None)
    }
}

impl Serialize for Keep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Keep::All => serializer.serialize_str("all"),
            Keep::None => serializer.serialize_str("none"),
            Keep::Only(kept) => kept.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Keep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Keep, D::Error> {
        struct KeepForms;

        impl<'de> Visitor<'de> for KeepForms {
            type Value = Keep;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("`all`, `none` or a list of transactions")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Keep, E> {
                match word {
                    "all" => Ok(Keep::All),
                    "none" => Ok(Keep::None),
                    _ => Err(E::custom(format!(
                        "`{word}` is neither `all`, `none` nor a list of transactions"
                    ))),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keep, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element::<At<Name>>()? {
                    names.push(name);
                }
                Ok(Keep::Only(names))
            }
        }

        deserializer.deserialize_any(KeepForms)
    }
}

impl JsonSchema for Keep {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Keep".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Name>();
        json_schema!({ "anyOf": [{ "enum": ["all", "none"] }, { "type": "array", "items": name }] })
    }
}

/// A transaction to displace by a conflicting one in the next block.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoubleSpend {
    /// The transaction.
    pub tx: At<Name>,
    /// The expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_word!(DoubleSpend { tx: Name, refused });

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
    /// The expected refusal, such as 409.
    pub refused: Option<u16>,
}

/// A transaction to drop from the mempool.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// The transaction.
    pub tx: At<Name>,
    /// The expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_word!(Drop { tx: Name, refused });

/// A dropped or displaced transaction to send again under its own id.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rebroadcast {
    /// The transaction.
    pub tx: At<Name>,
    /// The expected refusal, such as 409.
    pub refused: Option<u16>,
}

from_word!(Rebroadcast { tx: Name, refused });

/// A period without blocks on a chain.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<InMode>,
    /// The length of the period.
    #[serde(rename = "for")]
    pub lasting: Duration,
}

/// The share of future blocks without free space, in percent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congest {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<InMode>,
    /// Blocks without any transaction; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty: u32,
    /// Blocks with only high-fee transactions; 0 by default.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full: u32,
    /// The expected refusal, such as 409.
    pub refused: Option<u16>,
}

/// The delivery of a chain's notices to the service.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watcher {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// The mode of the chain; the scenario's by default.
    pub mode: Option<InMode>,
    /// How notices are delivered from now on.
    pub notices: Notices,
}

/// How a watcher delivers its notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notices {
    /// Immediately.
    Up,
    /// Delayed until a later `watcher` step.
    Late,
    /// Delayed, then in reverse order.
    Reversed,
    /// Lost; a later `watcher` step makes the watcher rescan all transactions.
    Lost,
    /// Twice.
    Twice,
}

impl Notices {
    /// Returns the word in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Notices::Up => "up",
            Notices::Late => "late",
            Notices::Reversed => "reversed",
            Notices::Lost => "lost",
            Notices::Twice => "twice",
        }
    }
}
