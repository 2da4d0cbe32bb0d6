//! Late payments: reported by an event, and credited only if the owner accepts them.
//!
//! A test case is a list of steps on one charge: `Transfer(txid, amount, depth)` is a sighting of a transfer,
//! `Until(µs)` waits until that time after the lock expired, `Accept(txid, status)` accepts late payments. The expected
//! string is the status, the received amount and the events after `charge.created`.

use reference_core::{
    event::EventType, mode::Mode, money::Coin, outbox::AttemptResult, sighting::Sighting, time::Span,
};
use serde_json::{Value, json};

use crate::{
    charge_lifecycle::{
        Step::{Accept, Cancel, Refund, Transfer, Until, Wait},
        check_steps, run_steps,
    },
    test_service::{DROPPED, MEMPOOL, TestService, confirmed, parse_code},
};

#[test]
fn payments_to_expired_canceled_and_paid_charges_are_late() {
    check_steps(&[Until(0), Transfer("a", "0.0025", confirmed(2))], "expired 0: expired late_payment");
    check_steps(&[Cancel(200), Transfer("a", "0.0025", confirmed(2))], "canceled 0: canceled late_payment");
    let paid = Transfer("a", "0.0025", confirmed(2));
    check_steps(&[paid, Transfer("b", "0.001", MEMPOOL)], "paid 0.0025: payment_detected paid late_payment");
    check_steps(
        &[paid, Transfer("b", "0.001", confirmed(2))],
        "paid 0.0035: payment_detected paid late_payment",
    );
    check_steps(
        &[paid, Until(9), Transfer("b", "0.001", confirmed(2)), Transfer("b", "0.001", confirmed(3))],
        "paid 0.0035: payment_detected paid late_payment",
    );
    check_steps(
        &[paid, Transfer("b", "0.001", confirmed(2)), Refund("0.0035", 201)],
        "paid 0.0035: payment_detected paid late_payment refunded",
    );
}

#[test]
fn late_payments_are_not_credited_without_acceptance() {
    let late = Transfer("a", "0.0025", MEMPOOL);
    check_steps(
        &[Until(0), late, Transfer("a", "0.0025", confirmed(2)), Wait(Span::days(1))],
        "expired 0: expired late_payment",
    );
    check_steps(
        &[Until(0), late, Transfer("a", "0.0025", confirmed(9)), Transfer("b", "1", confirmed(9))],
        "expired 0: expired late_payment late_payment",
    );
    check_steps(
        &[Cancel(200), late, Transfer("a", "0.0025", confirmed(9))],
        "canceled 0: canceled late_payment",
    );
    check_steps(
        &[Transfer("p", "0.001", confirmed(2)), Until(0), Transfer("a", "1", confirmed(2))],
        "expired 0.001: payment_detected underpaid expired late_payment",
    );
}

#[test]
fn only_confirmed_late_payments_can_be_accepted() {
    check_steps(&[Accept(None, 409)], "pending 0:");
    check_steps(&[Until(0), Accept(None, 409)], "expired 0: expired");
    check_steps(
        &[Until(0), Transfer("a", "0.0025", MEMPOOL), Accept(None, 409)],
        "expired 0: expired late_payment",
    );
    check_steps(
        &[Until(0), Transfer("a", "0.0025", confirmed(1)), Accept(Some("a"), 409)],
        "expired 0: expired late_payment",
    );
    let on_time = Transfer("p", "0.001", confirmed(2));
    check_steps(
        &[on_time, Until(0), Accept(None, 409), Accept(Some("p"), 409)],
        "expired 0.001: payment_detected underpaid expired",
    );
    let late = Transfer("a", "0.0025", confirmed(2));
    check_steps(&[Until(0), late, Accept(Some("b"), 409)], "expired 0: expired late_payment");
    check_steps(
        &[Until(0), late, Transfer("a", "0.0025", DROPPED), Accept(None, 409)],
        "expired 0: expired late_payment",
    );
    check_steps(&[Until(0), late, Accept(Some("a"), 200)], "paid 0.0025: expired late_payment paid");
    check_steps(
        &[Until(0), late, Accept(None, 200), Accept(None, 409)],
        "paid 0.0025: expired late_payment paid",
    );
    check_steps(&[Cancel(200), late, Accept(None, 200)], "paid 0.0025: canceled late_payment paid");
    check_steps(&[late, Accept(None, 409)], "paid 0.0025: payment_detected paid");
}

#[test]
fn insufficient_accepted_payments_are_credited_and_reported() {
    let little = Transfer("a", "0.001", confirmed(2));
    check_steps(&[Until(0), little, Accept(None, 200)], "expired 0.001: expired late_payment underpaid");
    check_steps(&[Cancel(200), little, Accept(None, 200)], "canceled 0.001: canceled late_payment underpaid");
    check_steps(
        &[Until(0), little, Accept(None, 200), Transfer("b", "0.0015", confirmed(2)), Accept(Some("b"), 200)],
        "paid 0.0025: expired late_payment underpaid late_payment paid",
    );
    check_steps(
        &[
            Transfer("p", "0.001", confirmed(2)),
            Until(0),
            Transfer("a", "0.0015", confirmed(2)),
            Accept(None, 200),
        ],
        "paid 0.0025: payment_detected underpaid expired late_payment paid",
    );
    // An orphaned part payment returns late. Accepting it reports `underpaid` again.
    check_steps(
        &[
            little,
            Transfer("a", "0.001", MEMPOOL),
            Until(9),
            Transfer("a", "0.001", DROPPED),
            little,
            Accept(None, 200),
        ],
        "expired 0.001: payment_detected underpaid expired late_payment underpaid",
    );
}

#[test]
fn accepted_payments_can_still_be_orphaned() {
    let little = Transfer("a", "0.001", confirmed(2));
    let accepted = [Until(0), little, Accept(None, 200)];
    let accepted_then = |more: &[crate::charge_lifecycle::Step]| [&accepted[..], more].concat();
    check_steps(
        &accepted_then(&[Transfer("a", "0.001", MEMPOOL)]),
        "expired 0: expired late_payment underpaid",
    );
    check_steps(
        &accepted_then(&[Transfer("a", "0.001", DROPPED), little]),
        "expired 0.001: expired late_payment underpaid",
    );
    // A payment in time that was orphaned after the lock expired and then confirmed again counts with accepted ones.
    let on_time = Transfer("p", "0.0015", confirmed(2));
    check_steps(
        &[on_time, Until(0), Transfer("p", "0.0015", MEMPOOL), little, Accept(None, 200), on_time],
        "paid 0.0025: payment_detected underpaid expired late_payment underpaid paid",
    );
}

#[test]
fn paid_at_of_a_late_payment_is_its_confirmation_not_its_acceptance() {
    let (mut service, charge) = run_steps(&[
        Until(0),
        Transfer("a", "0.0025", MEMPOOL),
        Wait(Span::mins(20)),
        Transfer("a", "0.0025", confirmed(2)),
        Wait(Span::days(1)),
        Transfer("a", "0.0025", confirmed(3)),
        Wait(Span::days(1)),
        Accept(None, 200),
    ]);
    assert_eq!(service.read_charge(&charge)["paid_at"], "2026-09-20T10:50:00.000000Z");
    let event = &service.list("/v1/events")[0];
    assert_eq!(
        (&event["type"], &event["created_at"]),
        (&json!("charge.paid"), &json!("2026-09-22T10:50:00.000000Z"))
    );
}

#[test]
fn another_coin_at_a_deposit_address_is_not_a_payment() {
    let mut service = TestService::new();
    let charge = service.create("/v1/charges", &json!({"asset": "ETH", "amount": "150.00"}));
    let no = service.book(Mode::Live).find_charge(parse_code(&charge)).unwrap();
    let address = service.book(Mode::Live).charge(no).terms.deposit_address.clone();
    for (mode, asset) in
        [(Mode::Live, reference_core::asset::Asset::Usdt), (Mode::Test, reference_core::asset::Asset::Eth)]
    {
        service.api.service.on_sightings(
            service.now,
            &[Sighting {
                mode,
                asset,
                address: address.clone(),
                txid: "a".to_owned(),
                output: 0,
                amount: Coin::parse("150", asset).unwrap(),
                depth: confirmed(100),
                height: 0,
            }],
        );
    }
    assert_eq!(service.event_types(&charge), "created");
    assert_eq!(
        service.book(Mode::Live).unmatched_transfers().count(),
        1,
        "the transfer is stored as unmatched"
    );
}

#[test]
fn other_late_payments_are_credited_once_an_accepted_one_pays_the_charge() {
    // Of two confirmed late payments one is accepted and pays; the other reached a charge that is paid now.
    check_steps(
        &[
            Until(0),
            Transfer("a", "0.0025", confirmed(2)),
            Transfer("b", "0.001", confirmed(2)),
            Accept(Some("a"), 200),
        ],
        "paid 0.0035: expired late_payment late_payment paid",
    );
    check_steps(
        &[
            Until(0),
            Transfer("a", "0.0025", confirmed(2)),
            Transfer("b", "0.001", MEMPOOL),
            Accept(Some("a"), 200),
            Transfer("b", "0.001", confirmed(2)),
        ],
        "paid 0.0035: expired late_payment late_payment paid",
    );
}

#[test]
fn a_late_payment_webhook_contains_its_own_output() {
    let mut service = TestService::new();
    service.add_endpoint(Mode::Live, "https://shop.example/hook", &[EventType::ChargeLatePayment]);
    let charge = service.create_charge();
    let no = service.book(Mode::Live).find_charge(parse_code(&charge)).unwrap();
    let terms = service.book(Mode::Live).charge(no).terms.clone();
    let output = |txid: &str, output: u32, amount: &str, depth| Sighting {
        mode: Mode::Live,
        asset: terms.asset,
        address: terms.deposit_address.clone(),
        txid: txid.to_owned(),
        output,
        amount: Coin::parse(amount, terms.asset).unwrap(),
        depth,
        height: 0,
    };
    // One transaction pays the address twice, and both are late.
    service.wait(Span::hours(1));
    service.api.service.on_sightings(service.now, &[output("a", 0, "0.001", MEMPOOL)]);
    service.api.service.on_sightings(service.now, &[output("a", 1, "0.0002", MEMPOOL)]);
    let bodies: Vec<Value> = service
        .attempt_all(&AttemptResult::Response(200))
        .iter()
        .map(|(_, attempt)| serde_json::from_slice(&attempt.body).unwrap())
        .collect();
    let amounts: Vec<&str> =
        bodies.iter().map(|body| body["data"]["transaction"]["amount"].as_str().unwrap()).collect();
    assert_eq!(amounts, ["0.001000000000000000", "0.000200000000000000"]);
    assert_eq!(
        service.list("/v1/events?type=charge.late_payment")[1]["details"],
        json!({"txid": "a", "amount": "0.001"})
    );
}
