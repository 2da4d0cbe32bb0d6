//! The chain watcher's report of one transfer to one of the service's addresses.

use serde::{Deserialize, Serialize};

use crate::{asset::Asset, mode::Mode, money::Coin};

/// The current state of a transfer, as the chain watcher reports it. Reported again whenever it changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// Main network or test network.
    pub mode: Mode,
    /// The coin; each is a coin on one network.
    pub asset: Asset,
    /// The receiving address.
    pub address: String,
    /// The transaction id, in the format of the network.
    pub txid: String,
    /// The index of the output (or log entry) in the transaction: one transaction may pay one address twice.
    pub output: u32,
    /// The amount.
    pub amount: Coin,
    /// The depth, or the reason for which the transfer vanished.
    pub depth: Depth,
    /// The height of the chain at the time of the report.
    pub height: u64,
}

/// The position of a transfer on the active branch of its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Depth {
    /// In a block with this many confirmations (1 at the tip), or in the mempool with 0.
    Confirmations(u32),
    /// No longer in the mempool and not on the active branch.
    Absent(Disappearance),
}

/// The reason why a transfer has vanished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disappearance {
    /// Another transaction that spends the same money elsewhere was mined.
    DoubleSpent,
    /// Its sender replaced it by a transaction with a higher fee.
    Replaced,
    /// It was evicted from the mempool.
    Dropped,
}

impl Disappearance {
    /// Returns the name in transcripts and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Disappearance::DoubleSpent => "double_spent",
            Disappearance::Replaced => "replaced",
            Disappearance::Dropped => "dropped",
        }
    }
}
