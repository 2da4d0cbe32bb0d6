use super::*;
use crate::chain::TransactionState;

/// Checks the notices of Litecoin in live mode, with three required confirmations. `steps` and the notices after each step
/// are separated by `|`.
#[track_caller]
fn check(steps: &str, notices: &str) {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Ltc);
    let mut notices_by_step = Vec::new();
    for step in steps.split('|') {
        fixture.run_step(step).unwrap_or_else(|err| panic!("{step}: {err}"));
        notices_by_step.push(fixture.take_sightings());
        check_consistency(&fixture.chain);
    }
    let expected: Vec<&str> = notices.split('|').map(str::trim).collect();
    assert_eq!(notices_by_step, expected, "{steps}");
}

/// Checks that the last of the steps is refused with this message, and adds no transaction, block or notice.
#[track_caller]
fn check_refused(steps: &str, message: &str) {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Ltc);
    let (before, last) = steps.rsplit_once('|').unwrap_or(("wait 0s", steps));
    for step in before.split('|') {
        fixture.run_step(step).unwrap_or_else(|err| panic!("{step}: {err}"));
        fixture.take_sightings();
    }
    let (count, tip) = (fixture.chain.transactions().count(), fixture.chain.height(fixture.now));
    let err = fixture.run_step(last).expect_err(last);
    assert_eq!(fixture.with_names(&err.to_string()), message);
    assert_eq!(fixture.take_sightings(), "");
    assert_eq!((fixture.chain.transactions().count(), fixture.chain.height(fixture.now)), (count, tip));
}

#[test]
fn a_transfer_is_reported_until_it_counts() {
    check("pay normal | mine 1 | mine 1 | mine 1 | mine 1", "t1:0 | t1:1 | t1:2 | t1:3 |");
    check("pay high | mine 4", "t1:0 | t1:1 t1:2 t1:3");
    check("pay low | pay high | mine 1", "t1:0 | t2:0 | t2:1");
}

#[test]
fn every_output_is_reported() {
    check("pay_twice normal | mine 1", "t1:0 t1.1:0 | t1:1 t1.1:1");
}

#[test]
fn an_unseen_transaction_is_first_seen_in_its_block() {
    check("pay_unseen normal | mine 2", "| t1:1 t1:2");
    check("pay_unseen normal | mine 1 | reorg 1 | mine 1", "| t1:1 | t1:0 | t1:1");
    check("pay_unseen normal | drop t1 | mine 3", "||");
    check("pay_unseen normal | double_spend t1 | mine 3", "||");
}

#[test]
fn blocks_at_once_take_every_minable_transaction() {
    check("pay normal | at_once 1 | at_once 0 | at_once 5", "t1:0 | t1:1 || t1:2 t1:3");
    check("at_once 3 | pay normal | at_once 1 | mine 1", "| t1:0 | t1:1 | t1:2");
    check("pay low | at_once 2 | at_once 9", "t1:0 || t1:1 t1:2 t1:3");
}

#[test]
fn a_stuck_transaction_is_never_mined() {
    check("pay stuck | mine 1000 | at_once 1000", "t1:0 ||");
    check("pay stuck | replace t1 normal | mine 1", "t1:0 | t1:replaced t2:0 | t2:1");
    check("pay stuck | double_spend t1 | mine 1", "t1:0 || t1:double_spent");
    check("pay stuck | drop t1", "t1:0 | t1:dropped");
}

#[test]
fn a_reorganisation_returns_transfers_or_adds_a_confirmation() {
    check("pay normal | mine 1 | reorg 1 | mine 1", "t1:0 | t1:1 | t1:0 | t1:1");
    check("pay normal | mine 1 | reorg 1 all | mine 1", "t1:0 | t1:1 | t1:2 | t1:3");
    check("mine 1 | pay normal | mine 1 | reorg 2 | at_once 1", "| t1:0 | t1:1 | t1:0 | t1:1");
    check(
        "pay normal | pay normal | mine 1 | reorg 1 t2 | mine 1",
        "t1:0 | t2:0 | t1:1 t2:1 | t1:0 t2:2 | t1:1 t2:3",
    );
}

#[test]
fn a_reorganisation_below_a_transfer_only_adds_a_block() {
    check("pay normal | mine 2 | reorg 1 | mine 1", "t1:0 | t1:1 t1:2 | t1:3 |");
}

#[test]
fn an_orphaned_transfer_is_followed_again() {
    check(
        "pay normal | mine 10 | reorg 10 | mine 1 | mine 5",
        "t1:0 | t1:1 t1:2 t1:3 | t1:0 | t1:1 | t1:2 t1:3",
    );
    check("pay normal | mine 10 | reorg 10 all | mine 3", "t1:0 | t1:1 t1:2 t1:3 ||");
}

#[test]
fn a_conflict_wins_in_the_next_block() {
    check("pay normal | double_spend t1 | mine 1 | mine 3", "t1:0 || t1:double_spent |");
    check("pay high | double_spend t1 | at_once 1", "t1:0 || t1:double_spent");
    check(
        "pay normal | mine 1 | reorg 1 | double_spend t1 | mine 1",
        "t1:0 | t1:1 | t1:0 || t1:double_spent",
    );
    check("pay normal | pay normal | double_spend t1 | mine 1", "t1:0 | t2:0 || t1:double_spent t2:1");
    check("congest 0 90 | pay high | double_spend t1 | mine 1", "| t1:0 || t1:double_spent");
}

#[test]
fn no_block_is_due_for_the_confirmations_of_a_conflict() {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Ltc);
    for step in ["pay normal", "double_spend t1", "mine 1"] {
        fixture.run_step(step).unwrap();
        fixture.take_sightings();
    }
    assert_eq!(fixture.chain.next_due(), None);
}

#[test]
fn a_dropped_conflict_has_no_effect() {
    check("pay normal | double_spend t1 | drop t2 | mine 1", "t1:0 ||| t1:1");
}

#[test]
fn an_orphaned_conflict_is_mined_again() {
    check("pay normal | double_spend t1 | mine 1 | reorg 1 | mine 3", "t1:0 || t1:double_spent ||");
}

#[test]
fn a_replacement_takes_effect_immediately() {
    check("pay normal | replace t1 low | at_once 8 | mine 1", "t1:0 | t1:replaced t2:0 | t2:1 t2:2 t2:3 |");
    check(
        "pay normal | replace t1 normal | replace t2 high | mine 1",
        "t1:0 | t1:replaced t2:0 | t2:replaced t3:0 | t3:1",
    );
}

#[test]
fn a_dropped_transaction_returns_under_its_id() {
    check("pay normal | drop t1 | mine 5 | rebroadcast t1 | mine 1", "t1:0 | t1:dropped || t1:0 | t1:1");
    check(
        "pay normal | replace t1 normal | drop t2 | rebroadcast t1 | mine 1",
        "t1:0 | t1:replaced t2:0 | t2:dropped | t1:0 | t1:1",
    );
}

#[test]
fn no_block_comes_during_a_stall() {
    check("pay normal | stall 2h | wait 2h | mine 1", "t1:0 ||| t1:1");
    check("pay normal | stall 2h | wait 1h | stall 2h | wait 3h | mine 1", "t1:0 ||||| t1:1");
    check("pay normal | stall 2h | at_once 1 | wait 2h | mine 1", "t1:0 || t1:1 || t1:2");
}

#[test]
fn only_waiting_transactions_can_be_double_spent_replaced_or_dropped() {
    let in_block = "`t1` has 2 confirmations; a transaction in the mempool is required; \
                  reorganise 2 blocks first";
    let dropped = "`t1` is dropped; a transaction in the mempool is required; broadcast it again first";
    let replaced = "`t1` is replaced; a transaction in the mempool is required; \
                    name its replacement";
    for step in ["double_spend t1", "replace t1 high", "drop t1"] {
        check_refused(&format!("pay normal | mine 2 | {step}"), in_block);
        check_refused(&format!("pay normal | drop t1 | {step}"), dropped);
        check_refused(&format!("pay normal | replace t1 low | {step}"), replaced);
        check_refused(
            step,
            "`t1` is not a transaction of the live LTC chain; use one that was broadcast there; pay first",
        );
    }
}

#[test]
fn only_gone_transactions_can_be_broadcast_again() {
    let not_gone = "`t1` is in the mempool or in a block; a dropped transaction is required; drop it first";
    check_refused("pay normal | rebroadcast t1", not_gone);
    check_refused("pay normal | mine 1 | rebroadcast t1", not_gone);
}

#[test]
fn a_transaction_has_one_conflict_at_a_time() {
    let contested = "`t1` spends the same inputs as `t2`; a transaction without a conflict is required; \
                     drop `t2` first, after a reorganisation if it was mined";
    for steps in [
        "pay normal | double_spend t1 | double_spend t1",
        "pay normal | double_spend t1 | replace t1 high",
        "pay normal | double_spend t1 | mine 1 | rebroadcast t1",
        "pay normal | replace t1 normal | rebroadcast t1",
    ] {
        check_refused(steps, contested);
    }
}

#[test]
fn a_reorganisation_is_at_most_as_deep_as_the_chain() {
    check("mine 3 | at_once 2 | reorg 5 | reorg 6", "|||");
    check_refused(
        "mine 3 | reorg 4",
        "`4` blocks cannot be replaced; the depth must be 1 to 3; mine more blocks for a greater depth",
    );
    check_refused(
        "mine 3 | reorg 0",
        "`0` blocks cannot be replaced; the depth must be 1 to 3; mine more blocks for a greater depth",
    );
    check_refused(
        "reorg 1",
        "`1` blocks cannot be replaced; no block has been mined since the chain began; mine one first",
    );
}

#[test]
fn only_transactions_of_the_replaced_blocks_are_kept() {
    let not_replaced = "`t1` cannot be kept; a transaction of the last 1 blocks is required; leave it out or increase the depth";
    check_refused("pay normal | mine 2 | reorg 1 t1", not_replaced);
    check_refused("mine 1 | pay normal | reorg 1 t1", not_replaced);
}

#[test]
fn the_share_of_blocks_without_room_is_limited() {
    check_refused(
        "congest 50 41",
        "`91` percent of the blocks cannot be empty or full; the sum must be 0 to 90; lower one of the two",
    );
}

/// Checks the numbers of blocks after which the first transaction is mined, over many seeds.
#[track_caller]
fn check_blocks_waited(steps: &str, expected: impl IntoIterator<Item = u64>) {
    let waited = (0..200).map(|seed| {
        let mut fixture = ChainFixture::new(seed, Mode::Live, Asset::Eth);
        for step in steps.split('|') {
            fixture.run_step(step).unwrap();
        }
        let tip = fixture.chain.height(fixture.now);
        fixture.now = START.plus(Span::days(1));
        fixture.take_sightings();
        match fixture.chain.transactions().next().unwrap().state {
            TransactionState::Block(height) => height - tip,
            state => panic!("{state:?} after a day"),
        }
    });
    assert_eq!(waited.collect::<BTreeSet<_>>(), expected.into_iter().collect(), "{steps}");
}

#[test]
fn fees_decide_which_block_takes_a_transaction() {
    check_blocks_waited("pay high", [1]);
    check_blocks_waited("pay normal", [1]);
    check_blocks_waited("pay low", 3..=8);
    check_blocks_waited("congest 0 90 | pay high", [1]);
    check_blocks_waited("congest 10 0 | pay high", 1..=3);
}

#[test]
fn a_balance_is_that_of_the_active_branch() {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Ltc);
    for (step, a, b) in [
        ("pay_twice normal", 0, 0),
        ("mine 1", 2, 0),
        ("pay high", 2, 0),
        ("mine 1", 3, 0),
        ("reorg 1", 2, 0),
        ("replace t2 normal", 2, 0),
        ("mine 1", 2, 2),
        ("reorg 4", 0, 0),
        ("drop t1", 0, 0),
        ("mine 1", 0, 2),
        ("pay_both high", 0, 2),
        ("mine 1", 1, 3),
    ] {
        fixture.run_step(step).unwrap();
        fixture.take_sightings();
        assert_eq!((fixture.chain.balance("a"), fixture.chain.balance("b")), (coins(a), coins(b)), "{step}");
    }
}

#[test]
fn confirmations_are_counted_beyond_the_reported_ones() {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Ltc);
    for (step, confirmations) in [("pay normal", 0), ("at_once 10", 10), ("reorg 3", 11), ("reorg 11", 0)] {
        fixture.run_step(step).unwrap();
        let transaction = fixture.chain.transaction(&fixture.txids[0]).unwrap();
        assert_eq!(fixture.chain.confirmations(transaction), confirmations, "{step}");
    }
}

#[test]
fn no_block_is_due_in_ten_idle_years() {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Sol);
    fixture.run_step("pay stuck").unwrap();
    fixture.run_step("wait 3650d").unwrap();
    assert_eq!(fixture.take_sightings(), "t1:0");
    assert_eq!(fixture.chain.next_due(), None);
    assert!(fixture.chain.height(fixture.now) > 788_000_000);
    fixture.run_step("pay normal").unwrap();
    fixture.run_step("mine 32").unwrap();
    assert_eq!(fixture.take_sightings().split(' ').next_back(), Some("t2:32"));
}

#[test]
fn times_stop_at_the_last_representable_one() {
    let mut fixture = ChainFixture::new(7, Mode::Live, Asset::Btc);
    fixture.now = Timestamp::LAST;
    fixture.run_step("pay normal").unwrap();
    assert_eq!(fixture.take_sightings(), "t1:0");
    assert_eq!(fixture.chain.next_due(), None);
    assert_eq!(fixture.chain.block_after(fixture.now, u32::MAX), Timestamp::LAST);
}

#[test]
fn finished_transactions_are_not_followed_or_reported_again() {
    let mut fixture = ChainFixture::new(7, Mode::Test, Asset::Btc);
    for _ in 0..1_000 {
        for _ in 0..100 {
            fixture.pay(&["a"], "normal", true);
        }
        fixture.chain.mine_at_once(fixture.now, 1);
    }
    assert_eq!(fixture.chain.advance(fixture.now).len(), 100_000);
    assert!(fixture.chain.followed.is_empty());
    fixture.run_step("pay normal").unwrap();
    for _ in 0..10_000 {
        fixture.run_step("at_once 1").unwrap();
        fixture.run_step("reorg 1").unwrap();
    }
    let notices = fixture.chain.advance(fixture.now).len();
    assert_eq!(notices, 1 + 2 * 10_000, "only the last one is seen, mined and orphaned");
}

/// Checks the height of a new chain, and the times of its first blocks after the start.
#[track_caller]
fn check_golden(asset: Asset, expected: &str) {
    let chain = Chain::new(Seed(7), Mode::Live, asset, START);
    let [first, second, third] = [1, 2, 3].map(|blocks| chain.block_after(START, blocks).since(START));
    assert_eq!(format!("{}: {first} {second} {third}", chain.height(START)), expected);
}

#[test]
fn the_blocks_of_a_seed_never_change() {
    check_golden(Asset::Btc, "849530: 3m31s558ms487us 5m33s732ms616us 32m55s134ms40us");
    check_golden(Asset::Sol, "647107: 363ms994us 792ms704us 1s171ms921us");
}
