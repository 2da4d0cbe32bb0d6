//! Transactions: their outputs, ids and states.

use std::fmt;

use reference_core::{
    asset::{AddressFormat, Asset},
    money::Coin,
    rng::RngStream,
    sighting::Disappearance,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The payment that a customer's wallet sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The recipients and amounts, in the order of the outputs. An address may occur twice. Empty if the money goes to
    /// no watched address.
    pub outputs: Vec<Output>,
    /// The fee level, which determines how long the transaction waits for a block.
    pub fee: FeeLevel,
    /// Skips the watched mempool: the transaction is first seen in its block.
    pub unseen: bool,
}

/// One output (or log entry) of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The receiving address.
    pub address: String,
    /// The amount: a whole number of the coin's smallest units.
    pub amount: Coin,
}

/// The fee of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Fee")]
pub enum FeeLevel {
    /// Low: mined after a few blocks.
    Low,
    /// Normal: mined in the next block with room.
    Normal,
    /// High: mined even in full blocks.
    High,
    /// Too low: not mined unless replaced.
    Stuck,
}

impl FeeLevel {
    /// All levels, from low to stuck.
    pub const ALL: [FeeLevel; 4] = [FeeLevel::Low, FeeLevel::Normal, FeeLevel::High, FeeLevel::Stuck];

    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            FeeLevel::Low => "low",
            FeeLevel::Normal => "normal",
            FeeLevel::High => "high",
            FeeLevel::Stuck => "stuck",
        }
    }

    /// Parses the name of a level; `None` if it is unknown.
    pub fn parse(name: &str) -> Option<FeeLevel> {
        FeeLevel::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// The earliest block for a low fee, counted from now.
    pub(crate) const LOW_BLOCKS_MIN: u64 = 3;
    /// The latest block for a low fee, counted from now, unless blocks are empty or full.
    pub(crate) const LOW_BLOCKS_MAX: u64 = 8;
}

/// The id of a transaction, in the format of its network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TxId(String);

impl TxId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Draws an id: 64 hexadecimal digits, with `0x` on Ethereum-like networks; on Solana a signature in base58.
    pub(super) fn draw(asset: Asset, mut rng: RngStream) -> TxId {
        TxId(match asset.facts().address_format {
            AddressFormat::Bitcoin
            | AddressFormat::Litecoin
            | AddressFormat::Dogecoin
            | AddressFormat::BitcoinCash
            | AddressFormat::Monero
            | AddressFormat::Tron => hex::encode(rng.bytes::<32>()),
            AddressFormat::Evm => format!("0x{}", hex::encode(rng.bytes::<32>())),
            AddressFormat::Solana => bs58::encode(rng.bytes::<64>()).into_string(),
        })
    }
}

/// Accepts any string; a chain may have no transaction with this id.
impl From<&str> for TxId {
    fn from(text: &str) -> TxId {
        TxId(text.to_owned())
    }
}

impl fmt::Display for TxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransactionState {
    /// It is in the mempool.
    Mempool,
    /// It is in this block of the active branch.
    Block(u64),
    /// It was displaced or dropped, for this reason.
    Gone(Disappearance),
}

/// A transaction that was broadcast on a chain.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transaction {
    /// The id.
    pub txid: TxId,
    /// The recipients and amounts.
    pub outputs: Vec<Output>,
    /// The fee level.
    pub fee: FeeLevel,
    /// The state.
    pub state: TransactionState,
    /// `true` if the watcher has seen it.
    pub(super) is_reported: bool,
    /// The first height at which it can be mined, while it is in the mempool.
    pub(super) minable_from: u64,
    /// The first transaction that spent the same money; the transaction itself if it was the first.
    pub(super) first_rival: usize,
}

impl Transaction {
    /// Returns its confirmations when the chain has this height: 1 at the tip, 0 outside of the active branch.
    pub fn depth_at(&self, tip: u64) -> u64 {
        match self.state {
            TransactionState::Block(height) => tip - height + 1,
            TransactionState::Mempool | TransactionState::Gone(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use reference_core::rng::Seed;

    use super::*;

    #[track_caller]
    fn check(asset: Asset, txid: &str) {
        assert_eq!(TxId::draw(asset, Seed(7).rng_key("live", "form", "txid").stream(0)).as_str(), txid);
    }

    #[test]
    fn a_txid_has_the_format_of_its_network() {
        let digits = "b7c7aafd5aae628fb9c946a039dacde21f8000b64afe8fa4b7aaf059f613289d";
        for asset in [Asset::Btc, Asset::Ltc, Asset::Doge, Asset::Bch, Asset::Xmr, Asset::UsdtTron] {
            check(asset, digits);
        }
        for asset in
            [Asset::Eth, Asset::Usdt, Asset::Usdc, Asset::UsdcBase, Asset::UsdcPolygon, Asset::UsdtBsc]
        {
            check(asset, &format!("0x{digits}"));
        }
        check(
            Asset::Sol,
            "4g7WkuiDNPhkrhipnc2SsoCcvE5vnWKVLEK1anBWrg8KQuzH3vNs3VrgQbddgVuBQ34BvW2cX8CxmicfsFvN1GeS",
        );
    }
}
