//! The hazards of a chain: reorganisations, double spends, replacements, dropped transactions.

use std::collections::BTreeSet;

use reference_core::{
    sighting::Disappearance,
    time::{Span, Timestamp},
};

use super::{Chain, ChainError, FeeLevel, Output, TransactionState, TxId};

/// The transactions of the replaced blocks that the new branch contains, at the same heights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptTransactions {
    /// All transactions: the blocks change, and the transfers get one confirmation more.
    All,
    /// None: they return to the mempool.
    None,
    /// Only these.
    Some(BTreeSet<TxId>),
}

impl Chain {
    /// Replaces the last `depth` blocks by `depth` + 1 new ones. Transactions that the new branch does not contain
    /// return to the mempool, are reported with 0 confirmations, are followed again, and enter the next block with
    /// room. Returns the ids of these transactions, oldest first.
    ///
    /// # Errors
    ///
    /// A depth of 0 or beyond the chain, or a transaction to keep that is not in the replaced blocks.
    pub fn reorganise(
        &mut self,
        now: Timestamp,
        depth: u32,
        keep: &KeptTransactions,
    ) -> Result<Vec<TxId>, ChainError> {
        self.reorganise_where(now, depth, keep, |_, _| true)
    }

    /// Works like [`Chain::reorganise`], but the new branch also contains every transaction that, like its
    /// rivals, pays no address for which `is_own` holds.
    ///
    /// # Errors
    ///
    /// As for [`Chain::reorganise`]; a transaction to keep that pays none of these addresses is unknown.
    pub(crate) fn reorganise_among(
        &mut self,
        now: Timestamp,
        depth: u32,
        keep: &KeptTransactions,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<Vec<TxId>, ChainError> {
        self.reorganise_where(now, depth, keep, |chain, number| chain.pays_any(number, &is_own))
    }

    /// Works like [`Chain::reorganise`] for the transactions for which `is_affected` holds; the new branch contains all
    /// others.
    fn reorganise_where(
        &mut self,
        now: Timestamp,
        depth: u32,
        keep: &KeptTransactions,
        is_affected: impl Fn(&Chain, usize) -> bool,
    ) -> Result<Vec<TxId>, ChainError> {
        self.catch_up(now);
        let deepest = self.tip - self.schedule.start_height();
        if depth == 0 || u64::from(depth) > deepest {
            return Err(ChainError::Depth { depth, deepest });
        }
        let fork = self.tip - u64::from(depth);
        let replaced = self.blocks.range(fork + 1..).flat_map(|(_, numbers)| numbers).copied();
        let replaced = replaced.filter(|&number| is_affected(self, number));
        let orphans: BTreeSet<usize> = match keep {
            KeptTransactions::All => BTreeSet::new(),
            KeptTransactions::None => replaced.collect(),
            KeptTransactions::Some(kept) => {
                let mut orphans: BTreeSet<usize> = replaced.collect();
                for txid in kept {
                    let number = self.number(txid)?;
                    if !is_affected(self, number) {
                        return Err(self.unknown_error(txid));
                    }
                    if !orphans.remove(&number) {
                        return Err(ChainError::NotReplaced { txid: txid.clone(), depth });
                    }
                }
                orphans
            }
        };
        self.tip += 1;
        self.schedule.add_at_once(1);
        for &number in &orphans {
            self.followed.remove(&number);
            self.remove_from_block(number);
            self.enter_mempool(number, self.tip + 1);
            self.report(number, self.now);
        }
        self.report_followed(self.now);
        Ok(orphans.iter().map(|&number| self.transactions[number].txid.clone()).collect())
    }

    /// Double-spends a waiting transaction: a conflicting one enters the next block that is not empty and displaces
    /// it. Returns the id of the conflicting transaction.
    ///
    /// # Errors
    ///
    /// An unknown transaction, one that is not in the mempool, or one that already has a conflicting transaction there.
    pub(crate) fn double_spend(&mut self, now: Timestamp, txid: &TxId) -> Result<TxId, ChainError> {
        self.catch_up(now);
        let number = self.find_in_mempool(txid)?;
        self.check_uncontested(number)?;
        let conflict = self.create(Vec::new(), FeeLevel::High, Some(number));
        self.enter_mempool_by_fee(conflict);
        Ok(self.transactions[conflict].txid.clone())
    }

    /// Replaces a waiting transaction by one with other outputs or another fee. The old one is gone and the new one is
    /// seen immediately. Returns the id of the new one.
    ///
    /// # Errors
    ///
    /// An unknown transaction, one that is not in the mempool, or one that already has a conflicting transaction there.
    pub fn replace(
        &mut self,
        now: Timestamp,
        txid: &TxId,
        outputs: Vec<Output>,
        fee: FeeLevel,
    ) -> Result<TxId, ChainError> {
        self.catch_up(now);
        let number = self.find_in_mempool(txid)?;
        self.check_uncontested(number)?;
        self.remove_transaction(number, self.now, Disappearance::Replaced);
        let replacement = self.create(outputs, fee, Some(number));
        self.enter_mempool_by_fee(replacement);
        self.report(replacement, self.now);
        Ok(self.transactions[replacement].txid.clone())
    }

    /// Drops a waiting transaction, as if evicted from a full mempool.
    ///
    /// # Errors
    ///
    /// An unknown transaction, or one that is not in the mempool.
    pub(crate) fn drop_from_mempool(&mut self, now: Timestamp, txid: &TxId) -> Result<(), ChainError> {
        self.catch_up(now);
        let number = self.find_in_mempool(txid)?;
        self.remove_transaction(number, self.now, Disappearance::Dropped);
        Ok(())
    }

    /// Broadcasts a gone transaction again, under the same id; it is seen immediately.
    ///
    /// # Errors
    ///
    /// An unknown transaction, one that is not gone, or one whose money another transaction in the mempool or
    /// a block spends.
    pub fn rebroadcast(&mut self, now: Timestamp, txid: &TxId) -> Result<(), ChainError> {
        self.catch_up(now);
        let number = self.number(txid)?;
        if !matches!(self.transactions[number].state, TransactionState::Gone(_)) {
            return Err(ChainError::NotGone { txid: txid.clone() });
        }
        self.check_uncontested(number)?;
        self.enter_mempool_by_fee(number);
        self.report(number, self.now);
        Ok(())
    }

    /// Delays all future natural blocks by `span`. Consecutive stalls add up.
    pub fn stall(&mut self, now: Timestamp, span: Span) {
        self.catch_up(now);
        self.schedule.stall(self.now, span);
    }

    /// Reports every transaction again that the watcher has seen or that is in a block.
    pub(crate) fn rescan(&mut self, now: Timestamp) {
        self.catch_up(now);
        for number in 0..self.transactions.len() {
            let transaction = &self.transactions[number];
            if transaction.is_reported || matches!(transaction.state, TransactionState::Block(_)) {
                self.report(number, self.now);
            }
        }
    }

    fn remove_from_block(&mut self, number: usize) {
        let TransactionState::Block(height) = self.transactions[number].state else {
            unreachable!("only a transaction in a block is orphaned");
        };
        let block = self.blocks.get_mut(&height).expect("the block of a mined transaction exists");
        block.remove(&number);
        if block.is_empty() {
            self.blocks.remove(&height);
        }
    }

    /// Returns `true` if a known transaction, or one that spends the same money, pays an address for which `is_own` holds.
    pub(crate) fn pays(&self, txid: &TxId, is_own: impl Fn(&str) -> bool) -> bool {
        self.numbers_by_txid.get(txid).is_some_and(|&number| self.pays_any(number, &is_own))
    }

    fn pays_any(&self, number: usize, is_own: &impl Fn(&str) -> bool) -> bool {
        let mut transactions = self.rivals(number).chain([number]);
        transactions
            .any(|number| self.transactions[number].outputs.iter().any(|output| is_own(&output.address)))
    }

    fn number(&self, txid: &TxId) -> Result<usize, ChainError> {
        self.numbers_by_txid.get(txid).copied().ok_or_else(|| self.unknown_error(txid))
    }

    fn unknown_error(&self, txid: &TxId) -> ChainError {
        ChainError::Unknown { txid: txid.clone(), mode: self.mode, asset: self.asset }
    }

    /// Returns the number of a transaction in the mempool.
    fn find_in_mempool(&self, txid: &TxId) -> Result<usize, ChainError> {
        let number = self.number(txid)?;
        let transaction = &self.transactions[number];
        match transaction.state {
            TransactionState::Mempool => Ok(number),
            TransactionState::Block(_) => {
                let confirmations = self.confirmations(transaction);
                Err(ChainError::InBlock { txid: txid.clone(), confirmations })
            }
            TransactionState::Gone(gone) => Err(ChainError::Gone { txid: txid.clone(), gone }),
        }
    }

    /// Returns an error if another transaction that spends the same money is in the mempool or a block. So at most two of
    /// them are ever in the mempool: one, and the conflict that will displace it.
    fn check_uncontested(&self, number: usize) -> Result<(), ChainError> {
        let rival = self.rivals(number).find(|&rival| match self.transactions[rival].state {
            TransactionState::Mempool | TransactionState::Block(_) => true,
            TransactionState::Gone(_) => false,
        });
        match rival {
            None => Ok(()),
            Some(rival) => Err(ChainError::Contested {
                txid: self.transactions[number].txid.clone(),
                rival: self.transactions[rival].txid.clone(),
            }),
        }
    }
}
