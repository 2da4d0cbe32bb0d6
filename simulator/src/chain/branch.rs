//! The growth of the active branch (the blocks that no reorganisation has replaced), and the watcher's
//! sightings that it causes. A *rival* of a transaction spends the same money.

use std::collections::BTreeSet;

use reference_core::{
    money::Coin,
    sighting::{Depth, Disappearance, Sighting},
    time::Timestamp,
};

use super::{Chain, FeeLevel, Output, Transaction, TransactionState, TxId, mempool::BlockCapacity};

impl Chain {
    /// Creates the blocks that are due up to `now`. Skips blocks without effect.
    pub(super) fn catch_up(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        while let Some(height) = self.next_busy_height() {
            let at = self.schedule.time(height);
            if at > self.now {
                break;
            }
            self.add_block(height, at, self.capacity(height));
        }
        self.tip = self.schedule.height(self.now);
    }

    /// Returns the height of the next natural block with an effect: it takes a transaction, or adds a confirmation that is
    /// reported. `None` if there is none.
    pub(super) fn next_busy_height(&self) -> Option<u64> {
        if self.followed.is_empty() {
            self.mempool.next_height(self.tip, |height| self.capacity(height))
        } else {
            Some(self.tip + 1)
        }
    }

    /// Returns the capacity of the natural block with this height.
    fn capacity(&self, height: u64) -> BlockCapacity {
        self.congestion.capacity(&self.capacity_rng, self.schedule.natural_ordinal(height))
    }

    /// Adds the block of this height. Blocks between it and the tip, if any, are empty.
    pub(super) fn add_block(&mut self, height: u64, at: Timestamp, capacity: BlockCapacity) {
        self.tip = height;
        let mut displaced = BTreeSet::new();
        // Of two conflicting transactions the later one is mined: it was created to displace the other.
        for number in self.mempool.block_candidates(height, capacity).into_iter().rev() {
            if displaced.contains(&number) {
                continue;
            }
            displaced.extend(
                self.rivals(number)
                    .filter(|&rival| self.transactions[rival].state == TransactionState::Mempool),
            );
            self.leave_mempool(number);
            self.transactions[number].state = TransactionState::Block(height);
            self.blocks.entry(height).or_default().insert(number);
            // A double spend has no outputs to watched addresses, so its confirmations are not reported.
            if !self.transactions[number].outputs.is_empty() {
                self.followed.insert(number);
            }
        }
        for number in displaced {
            self.remove_transaction(number, at, Disappearance::DoubleSpent);
        }
        self.report_followed(at);
    }

    /// Creates a transaction, which the caller must put into the mempool. `rival` is a transaction that
    /// spends the same money, if any.
    pub(super) fn create(&mut self, outputs: Vec<Output>, fee: FeeLevel, rival: Option<usize>) -> usize {
        let number = self.transactions.len();
        let txid = TxId::draw(self.asset, self.txid_rng.stream(number as u64));
        for output in &outputs {
            let unit = Coin::unit(self.asset).atto();
            assert_eq!(output.amount.atto() % unit, 0, "a transfer is a whole number of the coin's units");
        }
        let first_rival = match rival {
            Some(rival) => self.transactions[rival].first_rival,
            None => number,
        };
        if first_rival != number {
            self.rivals.entry(first_rival).or_default().push(number);
        }
        let state = TransactionState::Mempool;
        self.transactions.push(Transaction {
            txid,
            outputs,
            fee,
            state,
            is_reported: false,
            minable_from: 0,
            first_rival,
        });
        self.index_from(number);
        number
    }

    /// Adds the transactions from this number on to the indexes.
    fn index_from(&mut self, first: usize) {
        for (number, transaction) in self.transactions.iter().enumerate().skip(first) {
            self.numbers_by_txid.insert(transaction.txid.clone(), number);
            for output in &transaction.outputs {
                self.numbers_by_address.entry(output.address.clone()).or_default().insert(number);
            }
        }
    }

    /// Rebuilds the indexes of a deserialized chain.
    pub(crate) fn rebuild_indexes(&mut self) {
        self.numbers_by_txid.reserve(self.transactions.len());
        self.numbers_by_address.reserve(self.transactions.len());
        self.index_from(0);
    }

    /// Returns the other transactions that spend the same money, oldest first.
    pub(super) fn rivals(&self, number: usize) -> impl Iterator<Item = usize> {
        let first = self.transactions[number].first_rival;
        let later = self.rivals.get(&first).into_iter().flatten().copied();
        std::iter::once(first).chain(later).filter(move |&rival| rival != number)
    }

    /// Puts a transaction into the mempool. Its fee determines the number of blocks until it can be mined.
    pub(super) fn enter_mempool_by_fee(&mut self, number: usize) {
        let blocks = match self.transactions[number].fee {
            FeeLevel::Low => self
                .low_fee_rng
                .stream(number as u64)
                .between(FeeLevel::LOW_BLOCKS_MIN, FeeLevel::LOW_BLOCKS_MAX),
            FeeLevel::Normal | FeeLevel::High | FeeLevel::Stuck => 1,
        };
        self.enter_mempool(number, self.tip + blocks);
    }

    /// Puts a transaction into the mempool; it can be mined from the height `minable_from` on.
    pub(super) fn enter_mempool(&mut self, number: usize, minable_from: u64) {
        let transaction = &mut self.transactions[number];
        transaction.state = TransactionState::Mempool;
        transaction.minable_from = minable_from;
        self.mempool.add(number, transaction.fee, minable_from);
    }

    fn leave_mempool(&mut self, number: usize) {
        let transaction = &self.transactions[number];
        self.mempool.remove(number, transaction.fee, transaction.minable_from);
    }

    /// Removes a transaction from the mempool. Reports it only if the watcher had seen it.
    pub(super) fn remove_transaction(&mut self, number: usize, at: Timestamp, gone: Disappearance) {
        self.leave_mempool(number);
        self.transactions[number].state = TransactionState::Gone(gone);
        if self.transactions[number].is_reported {
            self.report(number, at);
        }
    }

    /// Reports every followed transaction, and stops following those with the required confirmations.
    pub(super) fn report_followed(&mut self, at: Timestamp) {
        let required = u64::from(self.asset.required_confirmations(self.mode));
        let followed: Vec<usize> = self.followed.iter().copied().collect();
        for number in followed {
            self.report(number, at);
            if self.confirmations(&self.transactions[number]) >= required {
                self.followed.remove(&number);
            }
        }
    }

    /// Reports the state of a transaction: one sighting per output.
    pub(super) fn report(&mut self, number: usize, at: Timestamp) {
        let transaction = &self.transactions[number];
        let depth = match transaction.state {
            TransactionState::Gone(gone) => Depth::Absent(gone),
            TransactionState::Mempool | TransactionState::Block(_) => {
                let confirmations = self.confirmations(transaction);
                Depth::Confirmations(u32::try_from(confirmations).expect("fewer than four billion blocks"))
            }
        };
        self.notices.extend((0..).zip(&transaction.outputs).map(|(index, output)| {
            let sighting = Sighting {
                mode: self.mode,
                asset: self.asset,
                address: output.address.clone(),
                txid: transaction.txid.as_str().to_owned(),
                output: index,
                amount: output.amount,
                depth,
                height: self.tip,
            };
            (at, sighting)
        }));
        self.transactions[number].is_reported = true;
    }
}
