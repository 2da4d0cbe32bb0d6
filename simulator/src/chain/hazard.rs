//! The hazards of a chain: reorganisations, double spends, replacements, dropped transactions.

use std::collections::BTreeSet;

use reference_core::{
    sighting::Gone,
    time::{Span, Timestamp},
};

use super::{Chain, ChainError, FeeLevel, Output, TransactionState, TxId};

/// The transactions of the replaced blocks that the new branch holds too, at the same heights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptTransactions {
    /// All of them: the blocks change, the transfers only get deeper.
    All,
    /// None: they all wait in the mempool again.
    None,
    /// These.
    Some(BTreeSet<TxId>),
}

impl Chain {
    /// The last `depth` blocks are replaced by one more, all at once. A transaction that the new branch
    /// does not hold waits in the mempool again, is reported with 0 confirmations and followed again,
    /// and gets into the next block that has room for it. Returns those transactions, oldest first.
    ///
    /// # Errors
    ///
    /// A depth that the chain does not have or that is not allowed, or a transaction to keep that is in none of the
    /// blocks.
    pub fn reorganise(
        &mut self,
        now: Timestamp,
        depth: u32,
        keep: &KeptTransactions,
    ) -> Result<Vec<TxId>, ChainError> {
        self.reorganise_where(now, depth, keep, |_, _| true)
    }

    /// The same, except that the new branch also holds every transaction whose money does not go to one of these addresses.
    ///
    /// # Errors
    ///
    /// As for [`Chain::reorganise`]; a transaction to keep that pays none of the addresses is an unknown one.
    pub(crate) fn reorganise_among(
        &mut self,
        now: Timestamp,
        depth: u32,
        keep: &KeptTransactions,
        is_own: impl Fn(&str) -> bool,
    ) -> Result<Vec<TxId>, ChainError> {
        self.reorganise_where(now, depth, keep, |chain, number| chain.pays_any(number, &is_own))
    }

    fn reorganise_where(
        &mut self,
        now: Timestamp,
        depth: u32,
        keep: &KeptTransactions,
        is_reached: impl Fn(&Chain, usize) -> bool,
    ) -> Result<Vec<TxId>, ChainError> {
        self.catch_up(now);
        let deepest = self.tip - self.schedule.first();
        if depth == 0 || u64::from(depth) > deepest {
            return Err(ChainError::Depth { depth, deepest });
        }
        let fork = self.tip - u64::from(depth);
        let replaced = self.blocks.range(fork + 1..).flat_map(|(_, numbers)| numbers).copied();
        let replaced = replaced.filter(|&number| is_reached(self, number));
        let orphans: BTreeSet<usize> = match keep {
            KeptTransactions::All => BTreeSet::new(),
            KeptTransactions::None => replaced.collect(),
            KeptTransactions::Some(kept) => {
                let mut orphans: BTreeSet<usize> = replaced.collect();
                for txid in kept {
                    let number = self.number(txid)?;
                    if !is_reached(self, number) {
                        return Err(self.unknown(txid));
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
            self.unbury(number);
            self.enter_mempool(number, self.tip + 1);
            self.report(number, self.now);
        }
        self.report_followed(self.now);
        Ok(orphans.iter().map(|&number| self.transactions[number].txid.clone()).collect())
    }

    /// The sender of a waiting transaction has the same money paid elsewhere: that conflict gets into
    /// the next block that is not empty, and the transaction is gone from then on. Returns the conflict.
    ///
    /// # Errors
    ///
    /// An unknown transaction, or one that does not wait for a block.
    pub(crate) fn double_spend(&mut self, now: Timestamp, txid: &TxId) -> Result<TxId, ChainError> {
        self.catch_up(now);
        let number = self.waiting(txid)?;
        self.uncontested(number)?;
        let conflict = self.create(Vec::new(), FeeLevel::High, Some(number));
        self.wait(conflict);
        Ok(self.transactions[conflict].txid.clone())
    }

    /// The sender of a waiting transaction sends another one instead, which may pay others or less. The
    /// old one is gone at once, the new one is seen at once. Returns the new one.
    ///
    /// # Errors
    ///
    /// An unknown transaction, or one that does not wait for a block.
    pub fn replace(
        &mut self,
        now: Timestamp,
        txid: &TxId,
        outputs: Vec<Output>,
        fee: FeeLevel,
    ) -> Result<TxId, ChainError> {
        self.catch_up(now);
        let number = self.waiting(txid)?;
        self.uncontested(number)?;
        self.vanish(number, self.now, Gone::Replaced);
        let replacement = self.create(outputs, fee, Some(number));
        self.wait(replacement);
        self.report(replacement, self.now);
        Ok(self.transactions[replacement].txid.clone())
    }

    /// A waiting transaction is forgotten, as if evicted from a full mempool.
    ///
    /// # Errors
    ///
    /// An unknown transaction, or one that does not wait for a block.
    pub(crate) fn drop_from_mempool(&mut self, now: Timestamp, txid: &TxId) -> Result<(), ChainError> {
        self.catch_up(now);
        let number = self.waiting(txid)?;
        self.vanish(number, self.now, Gone::Dropped);
        Ok(())
    }

    /// A transaction that is gone is broadcast again, under its old name, and seen at once. Its money
    /// must not be spent by another.
    ///
    /// # Errors
    ///
    /// An unknown transaction, one that is not gone, or one whose money was spent.
    pub fn rebroadcast(&mut self, now: Timestamp, txid: &TxId) -> Result<(), ChainError> {
        self.catch_up(now);
        let number = self.number(txid)?;
        if !matches!(self.transactions[number].state, TransactionState::Gone(_)) {
            return Err(ChainError::NotGone { txid: txid.clone() });
        }
        self.uncontested(number)?;
        self.wait(number);
        self.report(number, self.now);
        Ok(())
    }

    /// No natural block comes for so long, and all that were to come are later by as much. A stall
    /// during a stall adds to it.
    pub fn stall(&mut self, now: Timestamp, span: Span) {
        self.catch_up(now);
        self.schedule.stall(self.now, span);
    }

    /// The watcher looks at every transaction anew: at those it knew, and at those that a block holds.
    pub(crate) fn rescan(&mut self, now: Timestamp) {
        self.catch_up(now);
        for number in 0..self.transactions.len() {
            let transaction = &self.transactions[number];
            if transaction.seen || matches!(transaction.state, TransactionState::Block(_)) {
                self.report(number, self.now);
            }
        }
    }

    fn unbury(&mut self, number: usize) {
        let TransactionState::Block(height) = self.transactions[number].state else {
            unreachable!("only a transaction in a block is orphaned");
        };
        let block = self.blocks.get_mut(&height).expect("the block of a buried transaction holds it");
        block.remove(&number);
        if block.is_empty() {
            self.blocks.remove(&height);
        }
    }

    /// Returns whether the money of a known transaction goes to one of these addresses, or would if no other transaction
    /// had spent it.
    pub(crate) fn pays(&self, txid: &TxId, is_own: impl Fn(&str) -> bool) -> bool {
        self.numbers.get(txid).is_some_and(|&number| self.pays_any(number, &is_own))
    }

    fn pays_any(&self, number: usize, is_own: &impl Fn(&str) -> bool) -> bool {
        let mut same_money = self.rivals(number).chain([number]);
        same_money
            .any(|number| self.transactions[number].outputs.iter().any(|output| is_own(&output.address)))
    }

    fn number(&self, txid: &TxId) -> Result<usize, ChainError> {
        self.numbers.get(txid).copied().ok_or_else(|| self.unknown(txid))
    }

    fn unknown(&self, txid: &TxId) -> ChainError {
        ChainError::Unknown { txid: txid.clone(), mode: self.mode, asset: self.asset }
    }

    fn waiting(&self, txid: &TxId) -> Result<usize, ChainError> {
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

    /// At most two that spend the same money ever wait together: one, and the conflict that will win.
    fn uncontested(&self, number: usize) -> Result<(), ChainError> {
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
