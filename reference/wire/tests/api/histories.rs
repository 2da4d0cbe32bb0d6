//! Property tests: random histories of charges, checked against invariants that are independent of the code.
//!
//! The check compares responses with its own records: the reported sightings, and the previous response.

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

use crate::test_service::{LOCK, TestService, parse_code, string};

/// The amount due of every charge of these histories.
const DUE: &str = "0.0025";
/// The smallest amount that pays such a charge.
const SUFFICIENT: &str = "0.002475";
/// The number of confirmations that a transfer needs.
const REQUIRED: u32 = 2;
/// The transaction ids and amounts of transfers.
const TRANSFERS: [(&str, &str); 7] = [
    ("all", "0.0025"),
    ("enough", SUFFICIENT),
    ("short", "0.00247499"),
    ("part", "0.001"),
    ("rest", "0.0015"),
    ("dust", "0.00000001"),
    ("much", "0.0099"),
];

/// A step of a history. `charge` is an index modulo the number of charges, `transfer` an index in [`TRANSFERS`].
#[derive(Clone, Debug)]
enum Step {
    Open,
    Sighting { charge: usize, transfer: usize, depth: Depth },
    Wait(Span),
    Cancel { charge: usize },
    Accept { charge: usize, transfer: Option<usize> },
    Refund { charge: usize, amount: &'static str },
    Restart,
}

fn a_step() -> impl Strategy<Value = Step> {
    let charge = 0_usize..3;
    let transfer = 0..TRANSFERS.len();
    let depth = prop_oneof![
        8 => (0_u32..4).prop_map(Depth::Confirmations),
        2 => select(&[Disappearance::DoubleSpent, Disappearance::Replaced, Disappearance::Dropped][..]).prop_map(Depth::Absent),
    ];
    let almost = Span(LOCK.0 - 1);
    let wait = select(vec![Span(0), Span(1), Span::mins(10), almost, LOCK, Span(LOCK.0 + 1), Span::days(1)]);
    prop_oneof![
        1 => Just(Step::Open),
        12 => (charge.clone(), transfer.clone(), depth).prop_map(|(charge, transfer, depth)| Step::Sighting { charge, transfer, depth }),
        3 => wait.prop_map(Step::Wait),
        1 => charge.clone().prop_map(|charge| Step::Cancel { charge }),
        3 => (charge.clone(), option::of(transfer)).prop_map(|(charge, transfer)| Step::Accept { charge, transfer }),
        1 => (charge, select(&["0.0001", "0.001", "0.0025", "0.0099"][..])).prop_map(|(charge, amount)| Step::Refund { charge, amount }),
        1 => Just(Step::Restart),
    ]
}

/// The expected state of a charge.
struct ExpectedCharge {
    code: String,
    lock_ends_at: Timestamp,
    status: String,
    /// The transfers by index: the time of the first sighting, and the current depth.
    transfers: BTreeMap<usize, (Timestamp, Depth)>,
    /// The accepted late transfers.
    accepted: BTreeSet<usize>,
    paid_at: Value,
    event_count: usize,
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

/// Checks the invariants of a charge, and updates its expected state.
#[expect(clippy::too_many_lines, reason = "one invariant after the other")]
fn check_charge(service: &mut TestService, charge: &mut ExpectedCharge) -> Result<(), TestCaseError> {
    let object = service.read_charge(&charge.code);
    let status = string(&object["status"]);
    prop_assert!(
        is_transition_allowed(&charge.status, &status, !charge.accepted.is_empty()),
        "{} became {status}",
        charge.status
    );
    let becomes_paid = status == "paid" && charge.status != "paid";

    let mut events = service.list(&format!("/v1/events?charge={}&per_page=100", charge.code));
    events.reverse();
    let events_of = |index: usize, kind: &str| {
        let is_wanted =
            |event: &&Value| event["type"] == kind && event["details"]["txid"] == TRANSFERS[index].0;
        events.iter().filter(is_wanted).count()
    };

    let refunds: Coin =
        object["refunds"].as_array().expect("a list").iter().map(|refund| coin_of(&refund["amount"])).sum();
    prop_assert_eq!(coin_of(&object["refunded_amount"]), refunds);

    // Each reported transaction is shown exactly once, and a credited one is confirmed.
    let mut received = Coin::ZERO;
    // The credited amount without late payments that were not accepted.
    let mut counted = Coin::ZERO;
    let mut shown_transfers = BTreeMap::new();
    for transaction in object["transactions"].as_array().expect("a list") {
        let index = TRANSFERS
            .iter()
            .position(|(txid, _)| transaction["txid"] == *txid)
            .expect("only reported transfers are shown");
        let (_, depth) = charge.transfers[&index];
        let confirmations = if let Depth::Confirmations(n) = depth { n } else { 0 };
        prop_assert_eq!(&transaction["confirmations"], confirmations);
        prop_assert_eq!(coin_of(&transaction["amount"]), coin(TRANSFERS[index].1));
        if transaction["credited"] == true {
            received = received.plus(coin_of(&transaction["amount"]));
            if events_of(index, "charge.late_payment") == 0 || charge.accepted.contains(&index) {
                counted = counted.plus(coin_of(&transaction["amount"]));
            }
            prop_assert!(is_confirmed(depth), "credit without confirmation");
        } else {
            let is_refunded = refunds >= coin(TRANSFERS[index].1);
            prop_assert!(
                status != "paid" || !is_confirmed(depth) || is_refunded,
                "a paid charge credits every confirmed transfer that was not refunded"
            );
        }
        prop_assert!(shown_transfers.insert(index, depth).is_none(), "a transaction is listed once");
    }
    prop_assert_eq!(shown_transfers.len(), charge.transfers.len(), "every transfer is shown");
    prop_assert_eq!(coin_of(&object["received_amount"]), received, "received is the sum of what is credited");
    // While the charge is not paid, refunded parts of the received amount are due again. Refunded late payments were never
    // part of it.
    let remaining = coin_of(&object["remaining_amount"]);
    let received_after_refunds = if status == "paid" { received } else { received.saturating_sub(refunds) };
    prop_assert!(
        (coin(DUE).saturating_sub(received)..=coin(DUE).saturating_sub(received_after_refunds))
            .contains(&remaining),
        "{remaining} remains"
    );
    // A late payment pays a charge only after it was accepted.
    let is_enough = counted >= coin(SUFFICIENT);
    prop_assert!(!becomes_paid || is_enough, "paid with {counted}");
    let present = charge.transfers.iter().filter(|(_, (_, depth))| matches!(depth, Depth::Confirmations(_)));
    let present: Coin = present.map(|(index, _)| coin(TRANSFERS[*index].1)).sum();
    prop_assert!(
        !becomes_paid || present.saturating_sub(refunds) >= coin(SUFFICIENT),
        "paid with refunded money"
    );
    prop_assert!(
        status == "paid" || received == counted,
        "a late payment was credited before it was accepted"
    );
    let is_open = matches!(status.as_str(), "pending" | "underpaid");
    prop_assert!(
        !(is_open && counted.saturating_sub(refunds) >= coin(SUFFICIENT)),
        "{status} with {received}"
    );

    // The lock, and the transfers that hold a charge open beyond it.
    let on_time = charge.transfers.iter().filter(|(_, (seen_at, depth))| {
        *seen_at < charge.lock_ends_at && matches!(depth, Depth::Confirmations(_))
    });
    let on_time_amount: Coin = on_time.map(|(index, _)| coin(TRANSFERS[*index].1)).sum();
    let is_held =
        on_time_amount >= coin(SUFFICIENT) && service.now < charge.lock_ends_at.plus(Span::hours(24));
    prop_assert!(!is_open || service.now < charge.lock_ends_at || is_held, "an expired charge is still open");
    prop_assert!(status != "expired" || service.now >= charge.lock_ends_at, "expired before its time");

    // The events are in causal order, with at most one `charge.paid`.
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().expect("a string")).collect();
    prop_assert!(events.len() >= charge.event_count, "events are never removed");
    charge.event_count = events.len();
    prop_assert!(events.is_sorted_by(|a, b| a["id"].as_str() < b["id"].as_str()), "event ids rise strictly");
    prop_assert!(events.is_sorted_by(|a, b| a["created_at"].as_str() <= b["created_at"].as_str()));
    let timeline: Vec<&str> = object["timeline"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| row["event"].as_str().expect("a string"))
        .collect();
    prop_assert_eq!(&timeline, &types, "the timeline has the events");
    let count = |kind: &str| types.iter().filter(|recorded| **recorded == kind).count();
    let position_of = |kind: &str| types.iter().position(|recorded| *recorded == kind);
    prop_assert_eq!(position_of("charge.created"), Some(0));
    prop_assert_eq!(count("charge.created"), 1);
    prop_assert_eq!(count("charge.paid"), usize::from(status == "paid"));
    prop_assert!(count("charge.expired") <= 1 && count("charge.canceled") <= 1);
    prop_assert_eq!(status == "expired", position_of("charge.expired").is_some() && status != "paid");
    prop_assert!(status != "underpaid" || position_of("charge.underpaid").is_some());
    let first_sighting =
        position_of("charge.payment_detected").into_iter().chain(position_of("charge.late_payment")).min();
    prop_assert!(
        position_of("charge.paid").is_none_or(|paid| first_sighting.is_some_and(|seen| seen < paid))
    );
    prop_assert!(
        position_of("charge.underpaid").is_none_or(|short| first_sighting.is_some_and(|seen| seen < short))
    );
    prop_assert_eq!(count("charge.refunded"), object["refunds"].as_array().expect("a list").len());
    for (index, (txid, _)) in TRANSFERS.iter().enumerate() {
        let (detected, late) =
            (events_of(index, "charge.payment_detected"), events_of(index, "charge.late_payment"));
        prop_assert!(detected <= 1 && late <= 1, "{txid} was announced twice");
        prop_assert_eq!(
            detected + late >= 1,
            charge.transfers.contains_key(&index),
            "{} was not announced",
            txid
        );
    }

    // paid_at.
    prop_assert_eq!(object["paid_at"].is_string(), status == "paid");
    prop_assert!(charge.status != "paid" || object["paid_at"] == charge.paid_at, "paid_at is set once");
    charge.paid_at = object["paid_at"].clone();
    charge.status = status;
    Ok(())
}

/// Creates a charge; returns its expected state.
fn open_charge(service: &mut TestService) -> ExpectedCharge {
    let code = service.create_charge();
    ExpectedCharge {
        code,
        lock_ends_at: service.now.plus(LOCK),
        status: "pending".to_owned(),
        transfers: BTreeMap::new(),
        accepted: BTreeSet::new(),
        paid_at: Value::Null,
        event_count: 1,
    }
}

/// Performs the steps and checks every charge after each.
#[expect(clippy::too_many_lines, reason = "one arm for each step of a history")]
fn run_history(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut service = TestService::new();
    let mut charges = vec![open_charge(&mut service)];
    for step in steps {
        match step.clone() {
            Step::Open if charges.len() < 3 => charges.push(open_charge(&mut service)),
            Step::Open => {}
            Step::Sighting { charge: nth, transfer: index, depth } => {
                let nth = nth % charges.len();
                let (txid, amount) = TRANSFERS[index];
                let now = service.now;
                service.report_sighting(&charges[nth].code, txid, amount, depth);
                match charges[nth].transfers.get_mut(&index) {
                    Some(known) => known.1 = depth,
                    None if matches!(depth, Depth::Absent(_)) => {}
                    None => drop(charges[nth].transfers.insert(index, (now, depth))),
                }
            }
            Step::Wait(span) => {
                service.wait(span);
                service.tick();
            }
            Step::Cancel { charge: nth } => {
                let charge = &charges[nth % charges.len()];
                let is_untouched =
                    charge.transfers.values().all(|(_, depth)| matches!(depth, Depth::Absent(_)));
                let allowed = charge.status == "pending" && is_untouched;
                let response = service.post(&format!("/v1/charges/{}/cancel", charge.code), &json!({}));
                prop_assert_eq!(response.status(), if allowed { 200 } else { 409 });
            }
            Step::Accept { charge: nth, transfer: index } => {
                let nth = nth % charges.len();
                let result =
                    service.accept_late_payments(&charges[nth].code, index.map(|index| TRANSFERS[index].0));
                let has_ended = matches!(charges[nth].status.as_str(), "expired" | "canceled");
                let has_confirmed = charges[nth].transfers.iter().any(|(known, (_, depth))| {
                    index.is_none_or(|index| index == *known) && is_confirmed(*depth)
                });
                prop_assert!(
                    has_ended && has_confirmed || result.is_err(),
                    "accepted without a confirmed late payment"
                );
                if result.is_ok() {
                    let charge = &mut charges[nth];
                    let named = charge
                        .transfers
                        .iter()
                        .filter(|(known, _)| index.is_none_or(|index| index == **known));
                    let confirmed = named.filter(|(_, (_, depth))| is_confirmed(*depth));
                    charge.accepted.extend(confirmed.map(|(known, _)| *known));
                }
            }
            Step::Refund { charge: nth, amount } => {
                let charge = &charges[nth % charges.len()];
                let before = service.read_charge(&charge.code);
                let total = coin_of(&before["refunded_amount"]).plus(coin(amount));
                let late = before["transactions"].as_array().expect("a list").iter();
                let late = late
                    .filter(|transfer| transfer["credited"] == false && transfer["status"] == "confirmed");
                let late: Coin = late.map(|transfer| coin_of(&transfer["amount"])).sum();
                let allowed = total <= coin_of(&before["received_amount"]).plus(late);
                let response =
                    service.post(&format!("/v1/charges/{}/refunds", charge.code), &json!({"amount": amount}));
                prop_assert_eq!(response.status(), if allowed { 201 } else { 422 });
            }
            Step::Restart => service.api.service.restart(service.now),
        }
        for charge in &mut charges {
            check_charge(&mut service, charge)?;
        }
    }
    // All charges together: each status filter lists its charges.
    for charge in &charges {
        let listed = service.list(&format!("/v1/charges?status={}", charge.status));
        prop_assert!(listed.iter().any(|object| object["code"] == charge.code.as_str()));
        service.book(Mode::Live).find_charge(parse_code(&charge.code)).expect("a charge is never lost");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn every_history_satisfies_the_invariants(steps in vec(a_step(), 1..40)) {
        run_history(&steps)?;
    }
}
