use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::chain::{Transaction, TransactionState};

/// Generates steps for [`ChainFixture::run_step`]. Names may refer to transactions that do not exist.
fn operations() -> impl Strategy<Value = Vec<String>> {
    let name = || (1_usize..8).prop_map(|n| format!("t{n}"));
    let fee = || prop::sample::select(vec!["low", "normal", "high", "stuck"]);
    let span = || prop::sample::select(vec!["0s", "1us", "400ms", "11s", "5m", "2h", "30d"]);
    let step = prop_oneof![
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
    prop::collection::vec(step, 1..40)
}

/// Runs steps, and calls `fetch` after each. Returns the chain and all notices: those that `fetch` returned,
/// and the rest.
fn play(
    seed: u64,
    asset: Asset,
    steps: &[String],
    fetch: impl Fn(&mut ChainFixture) -> Vec<(Timestamp, Sighting)>,
) -> (ChainFixture, Vec<(Timestamp, Sighting)>) {
    let mut fixture = ChainFixture::new(seed, Mode::Live, asset);
    let mut notices = Vec::new();
    for step in steps {
        // Many random steps are refused, which must not change anything either.
        let _ = fixture.run_step(step);
        notices.extend(fetch(&mut fixture));
    }
    fixture.now = fixture.now.plus(Span::days(2));
    notices.extend(fetch(&mut fixture));
    notices.extend(fixture.chain.advance(fixture.now));
    (fixture, notices)
}

/// Fetches nothing until the end.
fn in_one_jump(_: &mut ChainFixture) -> Vec<(Timestamp, Sighting)> {
    Vec::new()
}

/// Fetches at every due time, and checks that the last report of each transfer is correct then.
fn at_every_due_time(fixture: &mut ChainFixture) -> Vec<(Timestamp, Sighting)> {
    let mut notices = Vec::new();
    while let Some(due) = fixture.chain.next_due().filter(|&due| due <= fixture.now) {
        let sightings = fixture.chain.advance(due);
        let latest: BTreeMap<_, _> =
            sightings.iter().map(|(at, sighting)| (&sighting.txid, (at, sighting))).collect();
        for (txid, (at, sighting)) in latest {
            assert!(*at <= due);
            let transaction = fixture.chain.transaction(&TxId::from(txid.as_str())).unwrap();
            check_report(&fixture.chain, due, transaction, sighting);
        }
        check_consistency(&fixture.chain);
        notices.extend(sightings);
    }
    notices
}

/// Checks that a report is correct, up to the required confirmations.
fn check_report(chain: &Chain, now: Timestamp, transaction: &Transaction, sighting: &Sighting) {
    let required = u64::from(chain.asset().required_confirmations(chain.mode()));
    let expected = match transaction.state {
        TransactionState::Mempool => Depth::Confirmations(0),
        TransactionState::Block(height) => {
            let confirmations = chain.height(now) - height + 1;
            assert_eq!(chain.confirmations(transaction), confirmations);
            Depth::Confirmations(confirmations.min(required) as u32)
        }
        TransactionState::Gone(gone) => Depth::Absent(gone),
    };
    assert_eq!(sighting.depth, expected, "{}", transaction.txid);
}

/// Checks the chain against the last report of every transfer.
fn check_last_reports(fixture: &ChainFixture, notices: &[(Timestamp, Sighting)]) {
    let latest: BTreeMap<_, _> =
        notices.iter().map(|(_, sighting)| ((&sighting.txid, sighting.output), sighting)).collect();
    for transaction in fixture.chain.transactions() {
        for (index, output) in (0..).zip(&transaction.outputs) {
            match latest.get(&(&transaction.txid.as_str().to_owned(), index)) {
                Some(sighting) => {
                    check_report(&fixture.chain, fixture.now, transaction, sighting);
                    assert_eq!((&sighting.address, sighting.amount), (&output.address, output.amount));
                }
                None => assert!(
                    !matches!(transaction.state, TransactionState::Block(_)),
                    "a mined transfer is reported"
                ),
            }
        }
    }
    for address in ["a", "b"] {
        let mined = fixture
            .chain
            .transactions()
            .filter(|transaction| matches!(transaction.state, TransactionState::Block(_)));
        let outputs = mined.flat_map(|transaction| &transaction.outputs);
        let sum: Coin = outputs.filter(|output| output.address == address).map(|output| output.amount).sum();
        assert_eq!(fixture.chain.balance(address), sum);
    }
}

proptest! {
    #[test]
    fn steps_jumps_and_a_second_run_give_the_same_notices(
        seed: u64, n in 0..Asset::ALL.len(), steps in operations(),
    ) {
        let asset = Asset::ALL[n];
        let (jumped, notices) = play(seed, asset, &steps, in_one_jump);
        let (stepped, notices_in_steps) = play(seed, asset, &steps, at_every_due_time);
        let (_, notices_again) = play(seed, asset, &steps, in_one_jump);
        prop_assert_eq!(&notices, &notices_in_steps);
        prop_assert_eq!(&notices, &notices_again);
        prop_assert!(notices.is_sorted_by_key(|(at, _)| *at), "times never decrease");
        prop_assert_eq!(jumped.chain.height(jumped.now), stepped.chain.height(stepped.now));
        check_consistency(&jumped.chain);
        check_last_reports(&jumped, &notices);
    }

    #[test]
    fn future_blocks_keep_their_scheduled_times(seed: u64, n in 0..Asset::ALL.len(), steps in operations()) {
        let (fixture, _) = play(seed, Asset::ALL[n], &steps, in_one_jump);
        let (chain, mut now) = (&fixture.chain, fixture.now);
        let tip = chain.height(now);
        for blocks in 1..20 {
            let at = chain.block_after(fixture.now, blocks);
            prop_assert!(at > now);
            prop_assert_eq!(chain.height(at), tip + u64::from(blocks));
            prop_assert_eq!(chain.height(at.minus(Span(1))), tip + u64::from(blocks) - 1);
            now = at;
        }
    }

    #[test]
    fn modes_and_coins_differ_in_txids_and_block_times(seed: u64) {
        let draws = |mode, asset| {
            let mut fixture = ChainFixture::new(seed, mode, asset);
            fixture.pay(&["a"], "normal", false);
            (fixture.txids[0].clone(), fixture.chain.block_after(START, 1))
        };
        let (txid, block_at) = draws(Mode::Live, Asset::Usdt);
        for (mode, asset) in [(Mode::Test, Asset::Usdt), (Mode::Live, Asset::Usdc), (Mode::Live, Asset::Eth)] {
            let (other_txid, other_block_at) = draws(mode, asset);
            prop_assert!(txid != other_txid && block_at != other_block_at);
        }
    }
}
