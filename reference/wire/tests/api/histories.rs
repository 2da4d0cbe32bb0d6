//! Property tests: random histories of charges, checked against invariants that are independent of the code.
//!
//! The check has its own records: the sightings that it reported, and the previous responses.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, option, prelude::*, sample::select};
use reference_core::{
    asset::Asset,
    mode::Mode,
    money::Coin,
    sighting::{Depth, Disappearance},
    time::{Span, Timestamp},
};
use serde_json::{Value, json};

use crate::test_service::{LOCK, TestService, code, string};

/// The amount due of every charge of these histories.
const DUE: &str = "0.0025";
const REQUIRED: u32 = 2;
/// The names and amounts of transfers. 0.002475 is just enough.
const TRANSFERS: [(&str, &str); 7] = [
    ("all", "0.0025"),
    ("enough", "0.002475"),
    ("short", "0.00247499"),
    ("part", "0.001"),
    ("rest", "0.0015"),
    ("dust", "0.00000001"),
    ("much", "0.0099"),
];

#[derive(Clone, Debug)]
enum Step {
    Open,
    See(usize, usize, Depth),
    Wait(Span),
    Cancel(usize),
    Accept(usize, Option<usize>),
    Refund(usize, &'static str),
    Restart,
}

fn a_step() -> impl Strategy<Value = Step> {
    let charge = 0_usize..3;
    let transfer = 0..TRANSFERS.len();
    let depth = prop_oneof![
        8 => (0_u32..4).prop_map(Depth::Confirmations),
        2 => select(&[Disappearance::DoubleSpent, Disappearance::Replaced, Disappearance::Dropped][..]).prop_map(Depth::Gone),
    ];
    let almost = Span(LOCK.0 - 1);
    let wait = select(vec![Span(0), Span(1), Span::mins(10), almost, LOCK, Span(LOCK.0 + 1), Span::days(1)]);
    prop_oneof![
        1 => Just(Step::Open),
        12 => (charge.clone(), transfer.clone(), depth).prop_map(|(c, t, d)| Step::See(c, t, d)),
        3 => wait.prop_map(Step::Wait),
        1 => charge.clone().prop_map(Step::Cancel),
        3 => (charge.clone(), option::of(transfer)).prop_map(|(c, t)| Step::Accept(c, t)),
        1 => (charge, select(&["0.0001", "0.001", "0.0025", "0.0099"][..])).prop_map(|(c, a)| Step::Refund(c, a)),
        1 => Just(Step::Restart),
    ]
}

/// The expected state of a charge.
struct Case {
    code: String,
    ends: Timestamp,
    status: String,
    /// The transfers: the time of the first sighting, and the current depth.
    chain: BTreeMap<usize, (Timestamp, Depth)>,
    /// The accepted late transfers.
    accepted: BTreeSet<usize>,
    paid_at: Value,
    events: usize,
}

fn coin(text: &str) -> Coin {
    Coin::parse(text, Asset::Btc).expect("an amount of BTC")
}

fn coin_of(value: &Value) -> Coin {
    coin(value.as_str().expect("amounts are strings"))
}

fn is_confirmed(depth: Depth) -> bool {
    matches!(depth, Depth::Confirmations(n) if n >= REQUIRED)
}

fn is_transition_allowed(from: &str, to: &str, accepted_any: bool) -> bool {
    match (from, to) {
        _ if from == to => true,
        ("pending", _) => true,
        ("underpaid", "paid" | "expired") => true,
        ("expired" | "canceled", "paid") => accepted_any,
        _ => false,
    }
}

#[expect(clippy::too_many_lines, reason = "one property after the other")]
fn judge(service: &mut TestService, case: &mut Case) -> Result<(), TestCaseError> {
    let shown = service.show_charge(&case.code);
    let status = string(&shown["status"]);
    prop_assert!(
        is_transition_allowed(&case.status, &status, !case.accepted.is_empty()),
        "{} became {status}",
        case.status
    );
    let becomes_paid = status == "paid" && case.status != "paid";

    let mut events = service.list(&format!("/v1/events?charge={}&per_page=100", case.code));
    events.reverse();
    let events_of = |index: usize, kind: &str| {
        let about = |event: &&Value| event["type"] == kind && event["details"]["txid"] == TRANSFERS[index].0;
        events.iter().filter(about).count()
    };

    let refunds: Coin =
        shown["refunds"].as_array().expect("a list").iter().map(|refund| coin_of(&refund["amount"])).sum();
    prop_assert_eq!(coin_of(&shown["refunded_amount"]), refunds);

    // Each reported transaction is shown exactly once.
    let mut received = Coin::ZERO;
    let mut rightful = Coin::ZERO;
    let mut standing = BTreeMap::new();
    for transaction in shown["transactions"].as_array().expect("a list") {
        let index =
            TRANSFERS.iter().position(|(txid, _)| transaction["txid"] == *txid).expect("a transfer we sent");
        let (_, depth) = case.chain[&index];
        let confirmations = if let Depth::Confirmations(n) = depth { n } else { 0 };
        prop_assert_eq!(&transaction["confirmations"], confirmations);
        prop_assert_eq!(coin_of(&transaction["amount"]), coin(TRANSFERS[index].1));
        if transaction["credited"] == true {
            received = received.plus(coin_of(&transaction["amount"]));
            if events_of(index, "charge.late_payment") == 0 || case.accepted.contains(&index) {
                rightful = rightful.plus(coin_of(&transaction["amount"]));
            }
            prop_assert!(is_confirmed(depth), "credit without confirmation");
        } else {
            let sent_back = refunds >= coin(TRANSFERS[index].1);
            prop_assert!(
                status != "paid" || !is_confirmed(depth) || sent_back,
                "a paid charge counts what is confirmed and was not sent back"
            );
        }
        prop_assert!(standing.insert(index, depth).is_none(), "a transaction counts once");
    }
    prop_assert_eq!(standing.len(), case.chain.len(), "no transfer is forgotten");
    prop_assert_eq!(coin_of(&shown["received_amount"]), received, "received is the sum of what is credited");
    // While the charge is not paid, refunded parts of the received amount are due again. Refunded late payments were never
    // part of it.
    let remaining = coin_of(&shown["remaining_amount"]);
    let most = if status == "paid" { received } else { received.saturating_sub(refunds) };
    prop_assert!(
        (coin(DUE).saturating_sub(received)..=coin(DUE).saturating_sub(most)).contains(&remaining),
        "{remaining} remains"
    );
    // A late payment pays a charge only after it was accepted.
    let enough = rightful >= coin("0.002475");
    prop_assert!(!becomes_paid || enough, "paid with {rightful}");
    let present = case.chain.iter().filter(|(_, (_, depth))| matches!(depth, Depth::Confirmations(_)));
    let present: Coin = present.map(|(index, _)| coin(TRANSFERS[*index].1)).sum();
    prop_assert!(
        !becomes_paid || present.saturating_sub(refunds) >= coin("0.002475"),
        "paid with refunded money"
    );
    prop_assert!(status == "paid" || received == rightful, "late money counts before it is accepted");
    let open = matches!(status.as_str(), "pending" | "underpaid");
    prop_assert!(!(open && rightful.saturating_sub(refunds) >= coin("0.002475")), "{status} with {received}");

    // The lock, and the transfers that hold a charge open beyond it.
    let on_time = case
        .chain
        .iter()
        .filter(|(_, (seen_at, depth))| *seen_at < case.ends && matches!(depth, Depth::Confirmations(_)));
    let coming: Coin = on_time.map(|(index, _)| coin(TRANSFERS[*index].1)).sum();
    let is_held = coming >= coin("0.002475") && service.now < case.ends.plus(Span::hours(24));
    prop_assert!(!open || service.now < case.ends || is_held, "nothing holds it open");
    prop_assert!(status != "expired" || service.now >= case.ends, "expired before its time");

    // The events are in causal order, with at most one `charge.paid`.
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().expect("a string")).collect();
    prop_assert!(events.len() >= case.events, "events are never taken back");
    case.events = events.len();
    prop_assert!(events.is_sorted_by(|a, b| a["id"].as_str() < b["id"].as_str()), "ids strictly rise");
    prop_assert!(events.is_sorted_by(|a, b| a["created_at"].as_str() <= b["created_at"].as_str()));
    let timeline: Vec<&str> = shown["timeline"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| row["event"].as_str().expect("a string"))
        .collect();
    prop_assert_eq!(&timeline, &types, "events are kept in the timeline");
    let count = |kind: &str| types.iter().filter(|recorded| **recorded == kind).count();
    let position_of = |kind: &str| types.iter().position(|recorded| *recorded == kind);
    prop_assert_eq!(position_of("charge.created"), Some(0));
    prop_assert_eq!(count("charge.created"), 1);
    prop_assert_eq!(count("charge.paid"), usize::from(status == "paid"));
    prop_assert!(count("charge.expired") <= 1 && count("charge.canceled") <= 1);
    prop_assert_eq!(status == "expired", position_of("charge.expired").is_some() && status != "paid");
    prop_assert!(status != "underpaid" || position_of("charge.underpaid").is_some());
    let seen =
        position_of("charge.payment_detected").into_iter().chain(position_of("charge.late_payment")).min();
    prop_assert!(position_of("charge.paid").is_none_or(|paid| seen.is_some_and(|seen| seen < paid)));
    prop_assert!(position_of("charge.underpaid").is_none_or(|short| seen.is_some_and(|seen| seen < short)));
    prop_assert_eq!(count("charge.refunded"), shown["refunds"].as_array().expect("a list").len());
    for (index, (txid, _)) in TRANSFERS.iter().enumerate() {
        let (detected, late) =
            (events_of(index, "charge.payment_detected"), events_of(index, "charge.late_payment"));
        prop_assert!(detected <= 1 && late <= 1, "{txid} was announced twice");
        prop_assert_eq!(detected + late >= 1, case.chain.contains_key(&index), "{} was not announced", txid);
    }

    // paid_at.
    prop_assert_eq!(shown["paid_at"].is_string(), status == "paid");
    prop_assert!(case.status != "paid" || shown["paid_at"] == case.paid_at, "paid_at is set once");
    case.paid_at = shown["paid_at"].clone();
    case.status = status;
    Ok(())
}

fn open(service: &mut TestService) -> Case {
    let code = service.charge();
    Case {
        code,
        ends: service.now.plus(LOCK),
        status: "pending".to_owned(),
        chain: BTreeMap::new(),
        accepted: BTreeSet::new(),
        paid_at: Value::Null,
        events: 1,
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each step of a history")]
fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut service = TestService::new();
    let mut cases = vec![open(&mut service)];
    for step in steps {
        match step.clone() {
            Step::Open if cases.len() < 3 => cases.push(open(&mut service)),
            Step::Open => {}
            Step::See(nth, index, depth) => {
                let nth = nth % cases.len();
                let (txid, amount) = TRANSFERS[index];
                let now = service.now;
                service.report_sighting(&cases[nth].code, txid, amount, depth);
                match cases[nth].chain.get_mut(&index) {
                    Some(known) => known.1 = depth,
                    None if matches!(depth, Depth::Gone(_)) => {}
                    None => drop(cases[nth].chain.insert(index, (now, depth))),
                }
            }
            Step::Wait(span) => {
                service.wait(span);
                service.tick();
            }
            Step::Cancel(nth) => {
                let case = &cases[nth % cases.len()];
                let vanished = case.chain.values().all(|(_, depth)| matches!(depth, Depth::Gone(_)));
                let allowed = case.status == "pending" && vanished;
                let reply = service.post(&format!("/v1/charges/{}/cancel", case.code), &json!({}));
                prop_assert_eq!(reply.status(), if allowed { 200 } else { 409 });
            }
            Step::Accept(nth, index) => {
                let nth = nth % cases.len();
                let answer = service.accept(&cases[nth].code, index.map(|index| TRANSFERS[index].0));
                let over = matches!(cases[nth].status.as_str(), "expired" | "canceled");
                let confirmed = cases[nth]
                    .chain
                    .iter()
                    .any(|(at, (_, depth))| index.is_none_or(|index| index == *at) && is_confirmed(*depth));
                prop_assert!(
                    over && confirmed || answer.is_err(),
                    "accepted without a confirmed late payment"
                );
                if answer.is_ok() {
                    let case = &mut cases[nth];
                    let meant = case.chain.iter().filter(|(at, _)| index.is_none_or(|index| index == **at));
                    case.accepted
                        .extend(meant.filter(|(_, (_, depth))| is_confirmed(*depth)).map(|(at, _)| *at));
                }
            }
            Step::Refund(nth, amount) => {
                let case = &cases[nth % cases.len()];
                let before = service.show_charge(&case.code);
                let total = coin_of(&before["refunded_amount"]).plus(coin(amount));
                let late = before["transactions"].as_array().expect("a list").iter();
                let late = late.filter(|late| late["credited"] == false && late["status"] == "confirmed");
                let late: Coin = late.map(|late| coin_of(&late["amount"])).sum();
                let allowed = total <= coin_of(&before["received_amount"]).plus(late);
                let reply =
                    service.post(&format!("/v1/charges/{}/refunds", case.code), &json!({"amount": amount}));
                prop_assert_eq!(reply.status(), if allowed { 201 } else { 422 });
            }
            Step::Restart => service.api.service.restart(service.now),
        }
        for case in &mut cases {
            judge(&mut service, case)?;
        }
    }
    // All charges together: each status filter lists its charges.
    for case in &cases {
        let listed = service.list(&format!("/v1/charges?status={}", case.status));
        prop_assert!(listed.iter().any(|charge| charge["code"] == case.code.as_str()));
        service.book(Mode::Live).find_charge(code(&case.code)).expect("a charge is never lost");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn every_history_satisfies_the_invariants(steps in vec(a_step(), 1..40)) {
        play(&steps)?;
    }
}
