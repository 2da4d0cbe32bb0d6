//! Refunds: refunded part payments do not count, and refunded late payments cannot be accepted.

use reference_core::{asset::Asset, time::Span};
use serde_json::json;

use crate::{
    charge_lifecycle::{
        Step::{self, Accept, Refund, RefundOf, Transfer, Until, Wait},
        check_steps, run_steps,
    },
    test_service::{DROPPED, MEMPOOL, TestService, confirmed, string},
};

const HALF: Step = Transfer("a", "0.00125", confirmed(2));
const OTHER_HALF: Step = Transfer("b", "0.00125", confirmed(2));

/// Checks `remaining_amount` and `overpaid` of the charge after the steps.
#[track_caller]
fn check_remaining(steps: &[Step], remaining: &str, overpaid: bool) {
    let (mut service, charge) = run_steps(steps);
    let object = service.read_charge(&charge);
    let found = (string(&object["remaining_amount"]), object["overpaid"] == true);
    assert_eq!(found, (remaining.to_owned(), overpaid), "{steps:?}");
}

#[test]
fn a_refunded_part_payment_does_not_count_towards_the_amount_due() {
    let events = "payment_detected underpaid refunded payment_detected";
    check_steps(
        &[HALF, Refund("0.00125", 201), OTHER_HALF],
        &format!("underpaid 0.0025: {events} underpaid"),
    );
    check_steps(&[HALF, Refund("0.0005", 201), OTHER_HALF], &format!("underpaid 0.0025: {events} underpaid"));
    let rest = Transfer("c", "0.00125", confirmed(2));
    check_steps(
        &[HALF, Refund("0.00125", 201), OTHER_HALF, rest],
        &format!("paid 0.00375: {events} underpaid payment_detected paid"),
    );
    // Within the tolerance of the amount due, and one unit more.
    check_steps(&[HALF, Refund("0.000025", 201), OTHER_HALF], &format!("paid 0.0025: {events} paid"));
    check_steps(
        &[HALF, Refund("0.00002501", 201), OTHER_HALF],
        &format!("underpaid 0.0025: {events} underpaid"),
    );
    // A paid charge stays paid.
    let both = [HALF, OTHER_HALF, Refund("0.0025", 201)];
    check_steps(&both, "paid 0.0025: payment_detected underpaid payment_detected paid refunded");
}

#[test]
fn refunded_amounts_are_due_again() {
    check_remaining(&[HALF], "0.00125", false);
    check_remaining(&[HALF, Refund("0.00125", 201)], "0.0025", false);
    check_remaining(&[HALF, Refund("0.0005", 201)], "0.00175", false);
    check_remaining(&[HALF, Refund("0.0005", 201), Until(0)], "0.00175", false);
    check_remaining(&[HALF, Refund("0.00125", 201), OTHER_HALF], "0.00125", false);
    // More than the amount due was received, but most was refunded: an unpaid charge is not overpaid.
    let much = Transfer("c", "0.0024", confirmed(2));
    let most = [much, Refund("0.0024", 201), HALF, Refund("0.00125", 201), OTHER_HALF];
    check_remaining(&most, "0.00125", false);
    // A transfer may be orphaned after it was refunded.
    check_remaining(&[HALF, Refund("0.00125", 201), Transfer("a", "0.00125", DROPPED)], "0.0025", false);
    // A paid charge shows the amount on the chain.
    check_remaining(&[HALF, OTHER_HALF, Refund("0.0025", 201)], "0", false);
    check_remaining(&[Transfer("a", "0.003", confirmed(2)), Refund("0.0005", 201)], "0", true);
}

#[test]
fn refunded_payments_do_not_settle_an_invoice() {
    let mut service = TestService::new();
    let invoice = service.create("/v1/invoices", &json!({"amount": "150.00", "currency": "EUR"}));
    let charge = service.choose_coin(&invoice, Asset::Btc).unwrap();
    service.report_sighting(&charge, "a", "0.00125", confirmed(2));
    service.post(&format!("/v1/charges/{charge}/refunds"), &json!({"amount": "0.00125"})).data();
    service.report_sighting(&charge, "b", "0.00125", confirmed(2));
    assert_eq!(service.read_invoice(&invoice)["status"], "open");
    service.report_sighting(&charge, "c", "0.00125", confirmed(2));
    assert_eq!(service.read_invoice(&invoice)["status"], "paid");
}

#[test]
fn a_refund_that_leaves_too_little_ends_the_hold_of_a_charge() {
    let rest = Transfer("b", "0.00125", MEMPOOL);
    let steps = [HALF, rest, Until(9)];
    let held_then = |more: &[Step]| [&steps[..], more].concat();
    let events = "payment_detected underpaid payment_detected";
    check_steps(&held_then(&[Refund("0.000025", 201)]), &format!("underpaid 0.00125: {events} refunded"));
    check_steps(
        &held_then(&[Refund("0.00002501", 201)]),
        &format!("expired 0.00125: {events} refunded expired late_payment"),
    );
    // A transfer that was refunded before the lock expired does not hold the charge open.
    check_steps(
        &[HALF, Refund("0.00125", 201), rest, Until(0)],
        "expired 0.00125: payment_detected underpaid refunded payment_detected expired late_payment",
    );
}

#[test]
fn refunded_late_payments_are_not_accepted() {
    let late = Transfer("a", "0.0025", confirmed(2));
    let refunded = [Until(0), late, Refund("0.0025", 201)];
    for txid in [None, Some("a")] {
        let expected = "expired 0: expired late_payment refunded";
        check_steps(&[&refunded[..], &[Accept(txid, 409)]].concat(), expected);
    }
    // Of two, only the one without a refund is accepted. The other does not count, although the charge is now paid.
    let other = Transfer("b", "0.0025", confirmed(2));
    for txid in [None, Some("b")] {
        check_steps(
            &[&refunded[..], &[other, Accept(Some("a"), 409), Accept(txid, 200)]].concat(),
            "paid 0.0025: expired late_payment refunded late_payment paid",
        );
    }
    // Refunded in two parts.
    check_steps(
        &[Until(0), late, Refund("0.001", 201), Refund("0.0015", 201), Accept(None, 409)],
        "expired 0: expired late_payment refunded refunded",
    );
    // A partly refunded transfer is accepted, and is too little.
    let part = [Until(0), late, Refund("0.001", 201), Accept(None, 200)];
    check_steps(&part, "expired 0.0025: expired late_payment refunded underpaid");
    check_remaining(&part, "0.001", false);
}

#[test]
fn a_refund_uses_late_payments_before_received_ones() {
    let (first, second) = (Transfer("c", "0.001", confirmed(2)), Transfer("d", "0.0015", confirmed(2)));
    let two_late = [HALF, Until(0), first, second];
    let two_late_then = |more: &[Step]| [&two_late[..], more].concat();
    // No part of the received amount was refunded.
    check_remaining(&two_late_then(&[Refund("0.0025", 201)]), "0.00125", false);
    check_remaining(&two_late_then(&[Refund("0.0026", 201)]), "0.00135", false);
    let events = "payment_detected underpaid expired late_payment late_payment";
    // Refunds, then accepts both transfers with these statuses. The charge is paid if one is accepted.
    let check_accepts = |refund: Step, c_status: u16, d_status: u16, status_and_amount: &str| {
        let steps = two_late_then(&[refund, Accept(Some("c"), c_status), Accept(Some("d"), d_status)]);
        let paid = if (c_status, d_status) == (409, 409) { "" } else { " paid" };
        check_steps(&steps, &format!("{status_and_amount}: {events} refunded{paid}"));
    };
    // The oldest is refunded first, unless another has exactly this amount.
    check_accepts(Refund("0.001", 201), 409, 200, "paid 0.00275");
    check_steps(
        &two_late_then(&[Refund("0.0015", 201), Accept(Some("d"), 409)]),
        &format!("expired 0.00125: {events} refunded"),
    );
    check_accepts(Refund("0.0025", 201), 409, 409, "expired 0.00125");
    // A refund may name the transaction that it returns.
    check_steps(
        &two_late_then(&[RefundOf("0.001", "d"), Accept(Some("c"), 200)]),
        &format!("expired 0.00225: {events} refunded underpaid"),
    );
    check_remaining(&two_late_then(&[RefundOf("0.001", "c")]), "0.00125", false);
    check_remaining(&two_late_then(&[RefundOf("0.001", "a")]), "0.00225", false);
    check_remaining(&two_late_then(&[RefundOf("0.001", "another")]), "0.00125", false);
}

#[test]
fn a_refund_does_not_cover_later_transfers() {
    // The part that was on time was refunded. The late transfer is another payment.
    check_steps(
        &[HALF, Refund("0.00125", 201), Until(0), OTHER_HALF, Wait(Span::hours(1)), Accept(None, 200)],
        "expired 0.0025: payment_detected underpaid refunded expired late_payment underpaid",
    );
    // A late payment that was refunded and then dropped is missing from the rest.
    let late = Transfer("a", "0.0025", confirmed(2));
    let vanished = [Until(0), late, Refund("0.0025", 201), Transfer("a", "0.0025", DROPPED)];
    let again = Transfer("b", "0.0025", confirmed(2));
    check_steps(
        &[&vanished[..], &[again, Accept(None, 200)]].concat(),
        "expired 0.0025: expired late_payment refunded late_payment underpaid",
    );
}
