use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::chain::{Transaction, TransactionState};

/// Generates operations as strings. Names may refer to transactions that do not exist.
fn operations() -> impl Strategy<Value = Vec<String>> {
    let name = || (1_usize..8).prop_map(|n| format!("t{n}"));
    let fee = || prop::sample::select(vec!["low", "normal", "high", "stuck"]);
    let span = || prop::sample::select(vec!["0s", "1us", "400ms", "11s", "5m", "2h", "30d"]);
    let act = prop_oneof![
        4 => fee().prop_map(|fee| format!("pay {fee}")),
        1 => fee().prop_map(|fee| format!("pay_unseen {fee}")),
        1 => fee().prop_map(|fee| format!("pay_twice {fee}")),
        4 => (0..5).prop_map(|n| format!("mine {n}")),
        2 => (0..5).prop_map(|n| format!("at_once {n}")),
        4 => span().prop_map(|span| format!("wait {span}")),
        1 => span().prop_map(|span| format!("stall {span}")),
        2 => (1..5).prop_map(|n| format!("reorg {n}")),
        1 => (1..5).prop_map(|n| format!("reorg {n} all")),
        1 => (1..5, name()).prop_map(|(n, name)| format!("reorg {n} {name}")),
        2 => name().prop_map(|name| format!("double_spend {name}")),
        2 => (name(), fee()).prop_map(|(name, fee)| format!("replace {name} {fee}")),
        1 => name().prop_map(|name| format!("drop {name}")),
        1 => name().prop_map(|name| format!("rebroadcast {name}")),
        1 => (0..45, 0..45).prop_map(|(empty, full)| format!("congest {empty} {full}")),
    ];
    prop::collection::vec(act, 1..40)
}

/// Performs operations, and calls `step` at every stop of the clock. Returns all notices.
fn play(
    seed: u64,
    asset: Asset,
    acts: &[String],
    step: impl Fn(&mut Story) -> Vec<(Timestamp, Sighting)>,
) -> (Story, Vec<(Timestamp, Sighting)>) {
    let mut story = Story::new(seed, Mode::Live, asset);
    let mut noticed = Vec::new();
    for act in acts {
        // Many random operations are refused, which must not change anything either.
        let _ = story.act(act);
        noticed.extend(step(&mut story));
    }
    story.now = story.now.plus(Span::days(2));
    noticed.extend(step(&mut story));
    noticed.extend(story.chain.advance(story.now));
    (story, noticed)
}

fn in_one_jump(_: &mut Story) -> Vec<(Timestamp, Sighting)> {
    Vec::new()
}

/// Stops at every due time, and checks that the last report of each transfer is correct then.
fn at_every_due_time(story: &mut Story) -> Vec<(Timestamp, Sighting)> {
    let mut noticed = Vec::new();
    while let Some(due) = story.chain.next_due().filter(|&due| due <= story.now) {
        let seen = story.chain.advance(due);
        let latest: BTreeMap<_, _> =
            seen.iter().map(|(at, sighting)| (&sighting.txid, (at, sighting))).collect();
        for (txid, (at, sighting)) in latest {
            assert!(*at <= due);
            let transaction = story.chain.transaction(&TxId::from(txid.as_str())).unwrap();
            check_report(&story.chain, due, transaction, sighting);
        }
        check_books(&story.chain);
        noticed.extend(seen);
    }
    noticed
}

/// Checks that a report is correct, up to the required confirmations.
fn check_report(chain: &Chain, now: Timestamp, transaction: &Transaction, sighting: &Sighting) {
    let required = u64::from(chain.asset().required_confirmations(chain.mode()));
    let truth = match transaction.state {
        TransactionState::Mempool => Depth::Confirmations(0),
        TransactionState::Block(height) => {
            let deep = chain.height(now) - height + 1;
            assert_eq!(chain.confirmations(transaction), deep);
            Depth::Confirmations(deep.min(required) as u32)
        }
        TransactionState::Gone(gone) => Depth::Gone(gone),
    };
    assert_eq!(sighting.depth, truth, "{}", transaction.txid);
}

/// Checks the chain against the last report of every transfer.
fn check_last_reports(story: &Story, noticed: &[(Timestamp, Sighting)]) {
    let latest: BTreeMap<_, _> =
        noticed.iter().map(|(_, sighting)| ((&sighting.txid, sighting.output), sighting)).collect();
    for transaction in story.chain.transactions() {
        for (index, output) in (0..).zip(&transaction.outputs) {
            match latest.get(&(&transaction.txid.as_str().to_owned(), index)) {
                Some(sighting) => {
                    check_report(&story.chain, story.now, transaction, sighting);
                    assert_eq!((&sighting.address, sighting.amount), (&output.address, output.amount));
                }
                None => assert!(
                    !matches!(transaction.state, TransactionState::Block(_)),
                    "mined, and never reported"
                ),
            }
        }
    }
    for address in ["a", "b"] {
        let mined = story
            .chain
            .transactions()
            .filter(|transaction| matches!(transaction.state, TransactionState::Block(_)));
        let outputs = mined.flat_map(|transaction| &transaction.outputs);
        let sum: Coin = outputs.filter(|output| output.address == address).map(|output| output.amount).sum();
        assert_eq!(story.chain.balance(address), sum);
    }
}

proptest! {
    #[test]
    fn steps_jumps_and_a_second_run_give_the_same_notices(
        seed: u64, n in 0..Asset::ALL.len(), acts in operations(),
    ) {
        let asset = Asset::ALL[n];
        let (jumped, noticed) = play(seed, asset, &acts, in_one_jump);
        let (stepped, noticed_in_steps) = play(seed, asset, &acts, at_every_due_time);
        let (_, noticed_again) = play(seed, asset, &acts, in_one_jump);
        prop_assert_eq!(&noticed, &noticed_in_steps);
        prop_assert_eq!(&noticed, &noticed_again);
        prop_assert!(noticed.is_sorted_by_key(|(at, _)| *at), "times never fall");
        prop_assert_eq!(jumped.chain.height(jumped.now), stepped.chain.height(stepped.now));
        check_books(&jumped.chain);
        check_last_reports(&jumped, &noticed);
    }

    #[test]
    fn future_blocks_keep_their_scheduled_times(seed: u64, n in 0..Asset::ALL.len(), acts in operations()) {
        let (story, _) = play(seed, Asset::ALL[n], &acts, in_one_jump);
        let (chain, mut now) = (&story.chain, story.now);
        let tip = chain.height(now);
        for blocks in 1..20 {
            let at = chain.block_after(story.now, blocks);
            prop_assert!(at > now);
            prop_assert_eq!(chain.height(at), tip + u64::from(blocks));
            prop_assert_eq!(chain.height(at.minus(Span(1))), tip + u64::from(blocks) - 1);
            now = at;
        }
    }

    #[test]
    fn modes_and_coins_have_independent_draws(seed: u64) {
        let first = |mode, asset| {
            let mut story = Story { chain: Chain::new(Seed(seed), mode, asset, START), ..Story::new(seed, mode, asset) };
            story.pay(&["a"], "normal", false);
            (story.names[0].clone(), story.chain.height(START), story.chain.block_after(START, 1))
        };
        let base = first(Mode::Live, Asset::Usdt);
        for other in [first(Mode::Test, Asset::Usdt), first(Mode::Live, Asset::Usdc), first(Mode::Live, Asset::Eth)] {
            prop_assert!(base.0 != other.0 && base.2 != other.2);
        }
    }
}
