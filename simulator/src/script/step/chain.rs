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

/// A payment on the chain: what remains, a share of it, an amount, so much more or so much less.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pay {
    /// The charge to pay.
    pub charge: Option<At<Name>>,
    /// Pays to the address of this charge as any wallet would; needs `amount`, and says coin and mode itself.
    pub address_of: Option<At<Name>>,
    /// A part of what remains: `0.5`.
    pub share: Option<At<Share>>,
    /// An amount of coins.
    pub amount: Option<At<Amount>>,
    /// Pays what remains, plus this amount.
    pub over: Option<At<Amount>>,
    /// Pays what remains, less this amount.
    pub short: Option<At<Amount>>,
    /// Another coin than the charge asks for.
    pub asset: Option<AssetCode>,
    /// Another mode's chain; only with `address_of`.
    pub mode: Option<InMode>,
    /// The fee level.
    pub fee: Option<FeeLevel>,
    /// Splits the amount over so many outputs of one transaction.
    pub outputs: Option<u32>,
    /// Goes straight into the next block, never through the mempool.
    #[serde(default)]
    pub unseen: bool,
    /// The transaction's name in the file; t1, t2, … if not given.
    pub tx: Option<At<Name>>,
    /// The refusal that must come.
    pub refused: Option<u16>,
}

impl super::FromWord for Pay {
    type Word = Name;

    const KEY: Option<&'static str> = None;

    fn from_word(word: At<Name>) -> Pay {
        Pay { charge: Some(word), ..Pay::default() }
    }
}

/// Blocks to come.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mine {
    /// On which coin's chain.
    pub asset: At<AssetCode>,
    /// Of which mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// The number of blocks; one if not given.
    pub blocks: Option<u32>,
    /// They come now, and the clock stands still.
    #[serde(default)]
    pub at_once: bool,
}

from_word!(Mine { asset: AssetCode, mode, blocks, at_once });

/// Blocks to be replaced by others.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorg {
    /// On which coin's chain.
    pub asset: AssetCode,
    /// Of which mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// The number of blocks.
    pub depth: u32,
    /// The transactions that the new blocks keep: `all`, `none` (they go back to the mempool) or a list.
    #[serde(default, skip_serializing_if = "Keep::is_none")]
    pub keep: Keep,
    /// The refusal that must come.
    pub refused: Option<u16>,
}

/// The transactions that the new branch of a reorganisation keeps.
#[derive(Clone, Debug, Default)]
pub enum Keep {
    /// The same transactions.
    All,
    /// None: they go back to the mempool.
    #[default]
    None,
    /// These.
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

/// A transaction to be overtaken by a conflicting one.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoubleSpend {
    /// The transaction.
    pub tx: At<Name>,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

from_word!(DoubleSpend { tx: Name, refused });

/// A transaction to be replaced by fee.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// The transaction.
    pub tx: At<Name>,
    /// The new transaction's name in the file; t1, t2, … if not given.
    #[serde(rename = "as")]
    pub named: Option<At<Name>>,
    /// Another amount.
    pub amount: Option<At<Amount>>,
    /// Pays somebody else.
    #[serde(default)]
    pub elsewhere: bool,
    /// Another fee.
    pub fee: Option<FeeLevel>,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

/// A transaction that the mempool forgets.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// The transaction.
    pub tx: At<Name>,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

from_word!(Drop { tx: Name, refused });

/// A transaction that was forgotten or displaced, sent again under its own id.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rebroadcast {
    /// The transaction.
    pub tx: At<Name>,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

from_word!(Rebroadcast { tx: Name, refused });

/// A chain without blocks for a while.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// Of which mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// For how long.
    #[serde(rename = "for")]
    pub lasting: Duration,
}

/// The fullness of the blocks to come, in percent of them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congest {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// Of which mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// Blocks that hold no transaction at all; none if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub empty: u32,
    /// Blocks that hold only high fees; none if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full: u32,
    /// The refusal that must come, such as 409.
    pub refused: Option<u16>,
}

/// The treatment of a chain's notices to the service.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watcher {
    /// The coin of the chain.
    pub asset: AssetCode,
    /// Of which mode; the scenario's if not given.
    pub mode: Option<InMode>,
    /// The treatment of its notices from now on.
    pub notices: Notices,
}

/// The treatment of a watcher's notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notices {
    /// They come at once.
    Up,
    /// They wait until it is said otherwise.
    Late,
    /// They wait, and then come last first.
    Reversed,
    /// They are lost; when it is said otherwise, the watcher looks at every transaction anew.
    Lost,
    /// Each comes twice.
    Twice,
}

impl Notices {
    /// The word of the API.
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
