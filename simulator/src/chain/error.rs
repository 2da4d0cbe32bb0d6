//! The errors of chain operations.

use std::fmt;

use reference_core::{asset::Asset, mode::Mode, sighting::Gone};

use super::TxId;

/// The reason why a chain refuses an operation. The chain is unchanged then. Prints the value, the allowed ones
/// and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainError {
    /// No such transaction was ever broadcast here.
    Unknown {
        /// The requested transaction.
        txid: TxId,
        /// The chain that was asked.
        mode: Mode,
        /// The chain that was asked.
        asset: Asset,
    },
    /// Only a waiting transaction can be double-spent, replaced or dropped.
    InBlock {
        /// The transaction.
        txid: TxId,
        /// The depth of its block: 1 is the tip.
        confirmations: u64,
    },
    /// The transaction is gone.
    Gone {
        /// The transaction.
        txid: TxId,
        /// The reason for its absence.
        gone: Gone,
    },
    /// Only a transaction that is gone can be broadcast again.
    NotGone {
        /// The transaction.
        txid: TxId,
    },
    /// Another transaction that spends the same money waits or was mined.
    Contested {
        /// The transaction.
        txid: TxId,
        /// The other one.
        rival: TxId,
    },
    /// Only blocks that came since the chain began can be replaced, and at least one.
    Depth {
        /// The number of blocks to replace.
        depth: u32,
        /// The number of existing blocks.
        deepest: u64,
    },
    /// Only a transaction of the replaced blocks can be kept.
    NotReplaced {
        /// The transaction.
        txid: TxId,
        /// The number of blocks to replace.
        depth: u32,
    },
    /// Some blocks must have room for everyone.
    Congestion {
        /// Empty and full blocks together, in percent.
        percent: u32,
    },
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainError::Unknown { txid, mode, asset } => write!(
                f,
                "`{txid}` is no transaction of the {mode} {asset} chain; it takes one that was broadcast there; \
                 pay first"
            ),
            ChainError::InBlock { txid, confirmations } => write!(
                f,
                "`{txid}` lies {confirmations} deep in the chain; it takes a transaction that waits in the mempool; \
                 reorganise {confirmations} blocks first"
            ),
            ChainError::Gone { txid, gone: Gone::Dropped } => write!(
                f,
                "`{txid}` is dropped; it takes a transaction that waits in the mempool; broadcast it again first"
            ),
            ChainError::Gone { txid, gone } => write!(
                f,
                "`{txid}` is {}; it takes a transaction that waits in the mempool; name the one that took its place",
                gone.as_str()
            ),
            ChainError::NotGone { txid } => write!(
                f,
                "`{txid}` waits in the mempool or is in a block; it takes a transaction that is gone; drop it first"
            ),
            ChainError::Contested { txid, rival } => write!(
                f,
                "`{txid}` spends the same money as `{rival}`; it takes a transaction without a rival; \
                 drop `{rival}` first, after a reorganisation if it was mined"
            ),
            ChainError::Depth { depth, deepest: 0 } => write!(
                f,
                "`{depth}` blocks cannot be replaced; no block has come since the chain began; mine one first"
            ),
            ChainError::Depth { depth, deepest } => {
                write!(
                    f,
                    "`{depth}` blocks cannot be replaced; it takes 1 to {deepest}; mine more to go deeper"
                )
            }
            ChainError::NotReplaced { txid, depth } => write!(
                f,
                "`{txid}` cannot be kept; it takes a transaction of the last {depth} blocks; \
                 leave it out or go deeper"
            ),
            ChainError::Congestion { percent } => write!(
                f,
                "`{percent}` percent of the blocks cannot be empty or full; it takes 0 to 90; lower one of the two"
            ),
        }
    }
}

impl std::error::Error for ChainError {}
