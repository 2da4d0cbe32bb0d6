//! Tests of a chain: examples of one line each, and properties of random histories.

mod behaviour;
mod invariants;

use std::collections::BTreeSet;

use reference_core::{
    asset::Asset,
    mode::Mode,
    money::Coin,
    rng::Seed,
    sighting::{Depth, Sighting},
    time::{Span, Timestamp},
};

use super::{Chain, ChainError, Congestion, FeeLevel, KeptTransactions, Output, Payment, TxId};

const START: Timestamp = Timestamp(1_750_000_000_000_000);

fn coins(n: u128) -> Coin {
    Coin::new(n * 10_u128.pow(18)).unwrap()
}

fn output(address: &str, n: u128) -> Output {
    Output { address: address.to_owned(), amount: coins(n) }
}

/// A chain that tests control by steps such as `pay normal` or `mine 1`, with a clock. Steps name the
/// transactions `t1`, `t2` and so on, in order of creation.
#[derive(Clone)]
struct ChainFixture {
    chain: Chain,
    now: Timestamp,
    /// The ids of the transactions, in order of creation.
    txids: Vec<TxId>,
}

impl ChainFixture {
    fn new(seed: u64, mode: Mode, asset: Asset) -> ChainFixture {
        ChainFixture { chain: Chain::new(Seed(seed), mode, asset, START), now: START, txids: Vec::new() }
    }

    /// Runs one step: an operation of the chain, or a move of the clock.
    fn run_step(&mut self, step: &str) -> Result<(), ChainError> {
        let parts: Vec<&str> = step.split_whitespace().collect();
        let (chain, now) = (&mut self.chain, self.now);
        match parts[..] {
            ["pay", fee] => self.pay(&["a"], fee, false),
            ["pay_unseen", fee] => self.pay(&["a"], fee, true),
            ["pay_twice", fee] => self.pay(&["a", "a"], fee, false),
            ["pay_both", fee] => self.pay(&["a", "b"], fee, false),
            ["mine", blocks] => self.now = chain.block_after(now, blocks.parse().unwrap()),
            ["at_once", blocks] => chain.mine_at_once(now, blocks.parse().unwrap()),
            ["wait", span] => self.now = now.plus(Span::parse(span).unwrap()),
            ["stall", span] => chain.stall(now, Span::parse(span).unwrap()),
            ["reorg", depth, ref kept @ ..] => {
                let keep = match kept {
                    [] => KeptTransactions::None,
                    ["all"] => KeptTransactions::All,
                    names => KeptTransactions::Some(names.iter().map(|name| self.txid(name)).collect()),
                };
                self.chain.reorganise(now, depth.parse().unwrap(), &keep)?;
            }
            ["double_spend", name] => {
                let original = self.txid(name);
                let conflict = self.chain.double_spend(now, &original)?;
                self.txids.push(conflict);
            }
            ["replace", name, fee] => {
                let old = self.txid(name);
                let new = self.chain.replace(now, &old, vec![output("b", 2)], fee_level(fee))?;
                self.txids.push(new);
            }
            ["drop", name] => {
                let txid = self.txid(name);
                self.chain.drop_from_mempool(now, &txid)?;
            }
            ["rebroadcast", name] => {
                let txid = self.txid(name);
                self.chain.rebroadcast(now, &txid)?;
            }
            ["congest", empty_percent, full_percent] => {
                let [empty_percent, full_percent] = [empty_percent, full_percent].map(|n| n.parse().unwrap());
                chain.congest(now, Congestion { empty_percent, full_percent })?;
            }
            _ => panic!("unknown step: {step}"),
        }
        Ok(())
    }

    /// Broadcasts a payment of one coin to each address.
    fn pay(&mut self, addresses: &[&str], fee: &str, unseen: bool) {
        let outputs = addresses.iter().map(|address| output(address, 1)).collect();
        let txid = self.chain.broadcast(self.now, Payment { outputs, fee: fee_level(fee), unseen });
        self.txids.push(txid);
    }

    /// Returns the sightings until now: `t1:0 t1:1 t2:dropped`, a later output as `t1.1:0`.
    fn take_sightings(&mut self) -> String {
        let notices = self.chain.advance(self.now);
        let parts: Vec<String> = notices.iter().map(|(_, sighting)| self.describe(sighting)).collect();
        parts.join(" ")
    }

    /// Formats a sighting as `t1:0`: transaction and confirmations, or the reason why it disappeared.
    fn describe(&self, sighting: &Sighting) -> String {
        let number = self.txids.iter().position(|txid| txid.as_str() == sighting.txid).unwrap() + 1;
        let output = if sighting.output == 0 { String::new() } else { format!(".{}", sighting.output) };
        match sighting.depth {
            Depth::Confirmations(n) => format!("t{number}{output}:{n}"),
            Depth::Absent(gone) => format!("t{number}{output}:{}", gone.as_str()),
        }
    }

    /// Returns the id of `t1`, the first transaction, and so on; an unknown name is returned as it is.
    fn txid(&self, name: &str) -> TxId {
        let number: Option<usize> = name.strip_prefix('t').and_then(|n| n.parse().ok());
        match number.and_then(|n| self.txids.get(n - 1)) {
            Some(txid) => txid.clone(),
            None => TxId::from(name),
        }
    }

    /// Replaces the transaction ids in a string by names.
    fn with_names(&self, text: &str) -> String {
        let named = (1..).zip(&self.txids);
        named.fold(text.to_owned(), |text, (n, txid)| text.replace(txid.as_str(), &format!("t{n}")))
    }
}

/// Parses a fee level.
fn fee_level(fee: &str) -> FeeLevel {
    match fee {
        "low" => FeeLevel::Low,
        "normal" => FeeLevel::Normal,
        "high" => FeeLevel::High,
        "stuck" => FeeLevel::Stuck,
        _ => panic!("unknown fee: {fee}"),
    }
}

/// Checks that the blocks and the states of the transactions agree, and that no money is spent twice.
fn check_consistency(chain: &Chain) {
    use super::TransactionState;
    let mut in_blocks = BTreeSet::new();
    for (&height, numbers) in &chain.blocks {
        assert!(height <= chain.tip && !numbers.is_empty(), "block {height} of {}", chain.tip);
        for &number in numbers {
            assert_eq!(chain.transactions[number].state, TransactionState::Block(height));
            assert!(in_blocks.insert(number), "transaction {number} is in two blocks");
        }
    }
    for (number, transaction) in (0..).zip(chain.transactions()) {
        let rivals = chain.rivals(number).map(|rival| chain.transactions[rival].state);
        match transaction.state {
            TransactionState::Block(_) => {
                assert!(in_blocks.contains(&number));
                assert!(
                    rivals.into_iter().all(|state| matches!(state, TransactionState::Gone(_))),
                    "money is spent once"
                );
            }
            TransactionState::Mempool => {
                let waiting = rivals.into_iter().filter(|&state| state == TransactionState::Mempool).count();
                assert!(waiting <= 1, "{waiting} rivals wait");
            }
            TransactionState::Gone(_) => {}
        }
    }
}
