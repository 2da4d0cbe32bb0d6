//! The errors of chain operations.

use std::fmt;

use reference_core::{asset::Asset, mode::Mode, sighting::Disappearance};

use super::TxId;

/// The reason why a chain refuses an operation, which then changes nothing. Displays the wrong value, the allowed values
/// and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// The transaction was never broadcast on this chain.
    Unknown {
        /// The requested transaction.
        txid: TxId,
        /// The mode of the chain.
        mode: Mode,
        /// The coin of the chain.
        asset: Asset,
    },
    /// The transaction is in a block; only one in the mempool can be double-spent, replaced or dropped.
    InBlock {
        /// The transaction.
        txid: TxId,
        /// The depth of its block: 1 is the tip.
        confirmations: u64,
    },
    /// The transaction was displaced or dropped.
    Gone {
        /// The transaction.
        txid: TxId,
        /// The reason.
        gone: Disappearance,
    },
    /// The transaction is not gone; only a gone transaction can be rebroadcast.
    NotGone {
        /// The transaction.
        txid: TxId,
    },
    /// Another transaction that spends the same money is in the mempool or a block.
    Contested {
        /// The transaction.
        txid: TxId,
        /// The other transaction.
        rival: TxId,
    },
    /// The depth is 0 or exceeds the number of blocks since the start of the chain.
    Depth {
        /// The number of blocks to replace.
        depth: u32,
        /// The number of blocks since the start of the chain.
        deepest: u64,
    },
    /// The transaction to keep is not in the replaced blocks.
    NotReplaced {
        /// The transaction.
        txid: TxId,
        /// The number of blocks to replace.
        depth: u32,
    },
    /// The shares of empty and full blocks are too large.
    Congestion {
        /// Their sum, in percent.
        percent: u32,
    },
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Unknown { txid, mode, asset } => write!(
                f,
                "`{txid}` is not a transaction of the {mode} {asset} chain; use one that was broadcast there; \
                 pay first"
            ),
            ChainError::InBlock { txid, confirmations } => write!(
                f,
                "`{txid}` has {confirmations} confirmations; a transaction in the mempool is required; \
                 reorganise {confirmations} blocks first"
            ),
            ChainError::Gone { txid, gone: Disappearance::Dropped } => write!(
                f,
                "`{txid}` is dropped; a transaction in the mempool is required; broadcast it again first"
            ),
            ChainError::Gone { txid, gone } => write!(
                f,
                "`{txid}` is {}; a transaction in the mempool is required; name its replacement",
                gone.as_str()
            ),
            ChainError::NotGone { txid } => write!(
                f,
                "`{txid}` is in the mempool or in a block; a dropped transaction is required; drop it first"
            ),
            ChainError::Contested { txid, rival } => write!(
                f,
                "`{txid}` spends the same inputs as `{rival}`; a transaction without a conflict is required; \
                 drop `{rival}` first, after a reorganisation if it was mined"
            ),
            ChainError::Depth { depth, deepest: 0 } => write!(
                f,
                "`{depth}` blocks cannot be replaced; no block has been mined since the chain began; mine one first"
            ),
            ChainError::Depth { depth, deepest } => {
                write!(
                    f,
                    "`{depth}` blocks cannot be replaced; the depth must be 1 to {deepest}; mine more blocks for a greater depth"
                )
            }
            ChainError::NotReplaced { txid, depth } => write!(
                f,
                "`{txid}` cannot be kept; a transaction of the last {depth} blocks is required; \
                 leave it out or increase the depth"
            ),
            ChainError::Congestion { percent } => write!(
                f,
                "`{percent}` percent of the blocks cannot be empty or full; the sum must be 0 to 90; lower one of the two"
            ),
        }
    }
}

impl std::error::Error for ChainError {}
