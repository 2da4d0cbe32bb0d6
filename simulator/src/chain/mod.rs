//! One simulated blockchain: mempool, blocks, reorganisations, double spends, and the watcher's reports about them.
//!
//! A [`Chain`] is the chain of one coin in one mode. Coins that share a network have separate chains: a
//! reorganisation of ETH does not affect USDT. The chain contains addresses and amounts, but no charge and no
//! account. Its only output is a list of *notices*: [`Sighting`]s with their times, which is what a chain
//! watcher in front of the service would report.
//!
//! The chain does not tick. The times of blocks are a formula of the seed (`schedule`): the time of block *n* and the
//! number of blocks at a time each take one draw, so a jump over ten idle years costs as much as one over a block.
//! Every method takes `now` and first calls `catch_up`, which creates the blocks that were due until then. Only blocks
//! with an effect are created: those that take a waiting transaction, and those that add a confirmation to a
//! transaction whose confirmations the watcher still reports. One long jump therefore has the same result as many short
//! ones. If `now` is before that of an earlier call, the earlier one is used.
//!
//! A transaction waits in the mempool from `broadcast` on. Its fee determines the first block that takes it: the next
//! one for normal and high fees, a few blocks later for a low fee, none for a stuck one. [`Congestion`] makes some
//! blocks empty and others full, so that only high fees get in. The watcher reports a transfer when it is broadcast
//! (unless the payment is *unseen*), and with every block until it has the confirmations that the coin requires; then
//! it is no longer *followed*. A reorganisation of depth *d* replaces the last *d* blocks by a new branch of *d* + 1.
//! Transactions that the new branch does not contain return to the mempool, are reported with 0 confirmations and are
//! followed again. A double spend and a replacement remove a waiting transaction, and it is reported with a
//! [`Disappearance`](reference_core::sighting::Disappearance).
//!
//! Example: a payment in BTC (2 confirmations required) and a reorganisation of depth 1.
//!
//! ```text
//! 10:00  broadcast          mempool       sighting: 0 confirmations
//! 10:07  block 812,004      in a block    sighting: 1 confirmation
//! 10:09  reorganise(1)      mempool       sighting: 0 confirmations
//! 10:19  block 812,006      in a block    sighting: 1 confirmation
//! 10:31  block 812,007      2 deep        sighting: 2 confirmations, no longer followed
//! ```
//!
//! All random draws are keyed by mode, coin and purpose, so using one chain changes no other. Must not contain: a clock,
//! a stream of random numbers that two purposes share, charges, accounts, or a rule about whether a charge is paid.

mod branch;
mod error;
mod hazard;
mod mempool;
mod schedule;
#[cfg(test)]
mod tests;
mod transaction;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
};

use reference_core::{
    asset::Asset,
    mode::Mode,
    money::Coin,
    rng::{RngKey, Seed},
    sighting::Sighting,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

pub use self::{
    error::ChainError,
    hazard::KeptTransactions,
    mempool::Congestion,
    transaction::{FeeLevel, Output, Payment, Transaction, TransactionState, TxId},
};
use self::{
    mempool::{BlockCapacity, Mempool},
    schedule::Schedule,
};

/// The chain of one coin in one mode.
#[derive(Clone, Serialize, Deserialize)]
pub struct Chain {
    mode: Mode,
    asset: Asset,
    /// The draws of transaction ids, of the blocks that a low fee waits, and of block capacities.
    txid_rng: RngKey,
    low_fee_rng: RngKey,
    capacity_rng: RngKey,
    schedule: Schedule,
    congestion: Congestion,
    /// The time up to which all due blocks were created.
    now: Timestamp,
    /// The height at `now`.
    tip: u64,
    /// All transactions, in order of creation. None is ever removed, because a reorganisation may reach them all.
    transactions: Vec<Transaction>,
    /// The transactions by id. Transactions are identified by their index in `transactions` everywhere below.
    #[serde(skip)]
    numbers_by_txid: HashMap<TxId, usize>,
    /// The transactions with an output to each address.
    #[serde(skip)]
    numbers_by_address: HashMap<String, BTreeSet<usize>>,
    /// For each transaction whose inputs were spent again: the later transactions that spend them.
    rivals: BTreeMap<usize, Vec<usize>>,
    mempool: Mempool,
    /// The transactions of each non-empty block of the active branch.
    blocks: BTreeMap<u64, BTreeSet<usize>>,
    /// The mined transactions that do not have the required confirmations yet: each new block is reported for them.
    followed: BTreeSet<usize>,
    /// The watcher's notices that were not fetched yet: sightings with their times.
    notices: Vec<(Timestamp, Sighting)>,
}

impl Chain {
    /// Returns everything in which two chains of one seed may differ at the same time.
    pub(crate) fn state(&self) -> impl fmt::Debug + '_ {
        (
            (&self.congestion, self.tip, &self.transactions, &self.rivals, &self.mempool),
            (&self.blocks, &self.followed, &self.notices, self.schedule.state()),
        )
    }

    /// Creates a chain with some blocks at `start`, and no transactions.
    pub fn new(seed: Seed, mode: Mode, asset: Asset, start: Timestamp) -> Chain {
        let rng_key = |purpose| seed.rng_key(mode.as_str(), asset.code(), purpose);
        let start_height = rng_key("first height").stream(0).between(500_000, 999_999);
        Chain {
            mode,
            asset,
            txid_rng: rng_key("txid"),
            low_fee_rng: rng_key("low fee"),
            capacity_rng: rng_key("room"),
            schedule: Schedule::new(seed, mode, asset, start, start_height),
            congestion: Congestion::default(),
            now: start,
            tip: start_height,
            transactions: Vec::new(),
            numbers_by_txid: HashMap::new(),
            numbers_by_address: HashMap::new(),
            rivals: BTreeMap::new(),
            mempool: Mempool::default(),
            blocks: BTreeMap::new(),
            followed: BTreeSet::new(),
            notices: Vec::new(),
        }
    }

    /// Returns the mode: main network or test network.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the coin.
    pub fn asset(&self) -> Asset {
        self.asset
    }

    /// Returns `true` if a transaction was ever broadcast.
    pub fn is_used(&self) -> bool {
        !self.transactions.is_empty()
    }

    /// Returns the height of the chain at `now`.
    pub fn height(&self, now: Timestamp) -> u64 {
        self.schedule.height(now.max(self.now))
    }

    /// Returns the time at which `blocks` more natural blocks exist, at most [`Timestamp::LAST`]. Natural blocks are those
    /// of the schedule, as opposed to those of [`Chain::mine_at_once`].
    pub fn block_after(&self, now: Timestamp, blocks: u32) -> Timestamp {
        if blocks == 0 {
            return now;
        }
        self.schedule.time(self.height(now) + u64::from(blocks)).min(Timestamp::LAST)
    }

    /// Broadcasts a transaction. The watcher sees it immediately, unless it is unseen.
    pub fn broadcast(&mut self, now: Timestamp, payment: Payment) -> TxId {
        self.catch_up(now);
        let Payment { outputs, fee, unseen } = payment;
        let number = self.create(outputs, fee, None);
        self.enter_mempool_by_fee(number);
        if !unseen {
            self.report(number, self.now);
        }
        self.transactions[number].txid.clone()
    }

    /// Returns the time of the oldest notice that was not fetched yet, or else of the next block with an
    /// effect; `None` if there is neither.
    pub fn next_due(&self) -> Option<Timestamp> {
        // Fast path: most chains of a world are never used, and all are queried often.
        if !self.is_used() {
            return None;
        }
        if let Some((at, _)) = self.notices.first() {
            return Some(*at);
        }
        let at = self.schedule.time(self.next_busy_height()?);
        (at <= Timestamp::LAST).then_some(at)
    }

    /// Takes the watcher's notices up to `now`, in order, with their times.
    pub fn advance(&mut self, now: Timestamp) -> Vec<(Timestamp, Sighting)> {
        self.catch_up(now);
        std::mem::take(&mut self.notices)
    }

    /// Mines this number of blocks now, each with room for every transaction that can be mined at its height.
    /// The natural blocks keep their times.
    pub fn mine_at_once(&mut self, now: Timestamp, blocks: u32) {
        self.catch_up(now);
        let last = self.tip + u64::from(blocks);
        loop {
            let next = if self.followed.is_empty() {
                self.mempool.next_height(self.tip, |_| BlockCapacity::Everything)
            } else {
                Some(self.tip + 1)
            };
            match next {
                Some(height) if height <= last => self.add_block(height, self.now, BlockCapacity::Everything),
                _ => break,
            }
        }
        self.tip = last;
        self.schedule.add_at_once(u64::from(blocks));
    }

    /// Sets the shares of future natural blocks that are empty or full.
    ///
    /// # Errors
    ///
    /// [`ChainError::Congestion`] if the two shares exceed 90 percent together.
    pub fn congest(&mut self, now: Timestamp, congestion: Congestion) -> Result<(), ChainError> {
        let congestion = congestion.check()?;
        self.catch_up(now);
        self.congestion = congestion;
        Ok(())
    }

    /// Returns the confirmed balance of an address on the active branch, as of the latest `now`.
    pub fn balance(&self, address: &str) -> Coin {
        self.transactions_to(address)
            .filter(|transaction| matches!(transaction.state, TransactionState::Block(_)))
            .flat_map(|transaction| &transaction.outputs)
            .filter(|output| output.address == address)
            .map(|output| output.amount)
            .sum()
    }

    /// Returns all transactions that were ever broadcast, oldest first, as of the latest `now`.
    pub fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.transactions.iter()
    }

    /// Returns all transactions with an output to an address, oldest first, as of the latest `now`.
    pub fn transactions_to(&self, address: &str) -> impl Iterator<Item = &Transaction> {
        self.numbers_by_address.get(address).into_iter().flatten().map(|&number| &self.transactions[number])
    }

    /// Returns a transaction, if it was ever broadcast, as of the latest `now`.
    pub fn transaction(&self, txid: &TxId) -> Option<&Transaction> {
        self.numbers_by_txid.get(txid).map(|&number| &self.transactions[number])
    }

    /// Returns the confirmations of a transaction on the active branch: 1 at the tip, 0 outside of the branch; as
    /// of the latest `now`.
    pub fn confirmations(&self, transaction: &Transaction) -> u64 {
        transaction.depth_at(self.tip)
    }
}
