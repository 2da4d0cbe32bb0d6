//! Transactions: their outputs, ids and states.

use std::fmt;

use reference_core::{
    asset::{AddressForm, Asset},
    money::Coin,
    rng::RngStream,
    sighting::Gone,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The payment that a customer's wallet sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The receivers and amounts, in the order of the outputs. One address may stand in it twice. Empty if the
    /// money goes where no watcher looks.
    pub outputs: Vec<Output>,
    /// The fee level, which decides how long it waits for a block.
    pub fee: FeeLevel,
    /// It bypasses the mempool that the watcher sees: first seen in its block.
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

/// The fee that a payer offers the miners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Fee")]
pub enum FeeLevel {
    /// Little: blocks pass it by.
    Low,
    /// The usual.
    Normal,
    /// Much: the next block takes it.
    High,
    /// Too little: no block takes it by itself.
    Stuck,
}

impl FeeLevel {
    /// Every level, from low to stuck.
    pub const ALL: [FeeLevel; 4] = [FeeLevel::Low, FeeLevel::Normal, FeeLevel::High, FeeLevel::Stuck];

    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            FeeLevel::Low => "low",
            FeeLevel::Normal => "normal",
            FeeLevel::High => "high",
            FeeLevel::Stuck => "stuck",
        }
    }

    /// The level of a word.
    pub fn parse(word: &str) -> Option<FeeLevel> {
        FeeLevel::ALL.into_iter().find(|level| level.as_str() == word)
    }

    /// With a low fee, the earliest block is the third from now.
    pub(crate) const LOW_BLOCKS_MIN: u64 = 3;
    /// With a low fee, the latest block is the eighth from now, unless blocks are empty or full.
    pub(crate) const LOW_BLOCKS_MAX: u64 = 8;
}

/// The name of a transaction, in its network's own form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TxId(String);

impl TxId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// 64 hexadecimal digits, `0x` before them on Ethereum and its kin; on Solana the base58 of a
    /// signature.
    pub(super) fn drawn(asset: Asset, mut draw: RngStream) -> TxId {
        TxId(match asset.facts().form {
            AddressForm::Bitcoin
            | AddressForm::Litecoin
            | AddressForm::Dogecoin
            | AddressForm::BitcoinCash
            | AddressForm::Monero
            | AddressForm::Tron => hex::encode(draw.bytes::<32>()),
            AddressForm::Evm => format!("0x{}", hex::encode(draw.bytes::<32>())),
            AddressForm::Solana => bs58::encode(draw.bytes::<64>()).into_string(),
        })
    }
}

/// Any text may be asked for; whether it names a transaction is for the chain to say.
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
    /// It waits for a block.
    Mempool,
    /// It is in this block of the active branch.
    Block(u64),
    /// Neither, and why.
    Gone(Gone),
}

/// A transaction that a chain has heard of, for a judge to read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transaction {
    /// Its name.
    pub txid: TxId,
    /// The receivers and amounts.
    pub outputs: Vec<Output>,
    /// The fee level.
    pub fee: FeeLevel,
    /// The state.
    pub state: TransactionState,
    /// The watcher knows of it.
    pub(super) seen: bool,
    /// The first block that may hold it, while it waits.
    pub(super) ready: u64,
    /// The first transaction that spent the same money; itself, if it was the first.
    pub(super) first_rival: usize,
}

impl Transaction {
    /// Returns its depth when the chain has this height: 1 at the tip, 0 outside of the active branch.
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
        assert_eq!(TxId::drawn(asset, Seed(7).rng_key("live", "form", "txid").stream(0)).as_str(), txid);
    }

    #[test]
    fn a_txid_has_the_form_of_its_network() {
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
