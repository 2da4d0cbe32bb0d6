//! The state transitions of a charge: inputs, the resulting status, and events.

use reference_core::{
    command::SettingsDraft,
    money::Percent,
    sighting::{Depth, Disappearance},
    time::Span,
};
use serde_json::{Value, json};

use crate::test_service::{DROPPED, LOCK, MEMPOOL, TICK, TestService, confirmed, string};

/// A step on a charge. A `u16` is the expected status of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Wait(Span),
    /// Waits until this many microseconds after the end of the lock; negative: before it.
    Until(i64),
    /// A sighting of a transfer: its transaction id, amount and depth (unconfirmed, confirmed or absent).
    Transfer(&'static str, &'static str, Depth),
    /// Several sightings at the same time.
    Transfers(&'static [(&'static str, &'static str, Depth)]),
    Cancel(u16),
    /// A refund of this amount.
    Refund(&'static str, u16),
    /// A refund of this amount that names a transaction; the expected status is 201.
    RefundOf(&'static str, &'static str),
    /// Accepts late payments: those of this transaction, or all that are confirmed.
    Accept(Option<&'static str>, u16),
}

use Step::{Accept, Cancel, Refund, RefundOf, Transfer, Transfers, Until, Wait};

/// Performs the steps on a charge of 0.0025 BTC that requires two confirmations; returns the service and the charge's code.
#[track_caller]
pub(crate) fn run_steps(steps: &[Step]) -> (TestService, String) {
    let mut service = TestService::new();
    let charge = service.create_charge();
    let lock_end = service.now.plus(LOCK);
    for &step in steps {
        match step {
            Wait(span) => service.wait(span),
            Until(micros) if micros < 0 => service.wait_until(lock_end.minus(Span(micros.unsigned_abs()))),
            Until(micros) => service.wait_until(lock_end.plus(Span(micros.unsigned_abs()))),
            Transfer(txid, amount, depth) => service.report_sighting(&charge, txid, amount, depth),
            Transfers(transfers) => service.report_sightings(&charge, transfers),
            Cancel(status) => {
                let response = service.post(&format!("/v1/charges/{charge}/cancel"), &json!({}));
                assert_eq!(response.status(), status, "{step:?}: {}", response.text());
            }
            Refund(amount, status) => {
                let refund = json!({ "amount": amount });
                let response = service.post(&format!("/v1/charges/{charge}/refunds"), &refund);
                assert_eq!(response.status(), status, "{step:?}: {}", response.text());
            }
            RefundOf(amount, txid) => {
                let refund = json!({ "amount": amount, "txid": txid });
                let response = service.post(&format!("/v1/charges/{charge}/refunds"), &refund);
                assert_eq!(response.status(), 201, "{step:?}: {}", response.text());
            }
            Accept(txid, status) => {
                let result =
                    service.accept_late_payments(&charge, txid).map_or_else(|error| error.status(), |()| 200);
                assert_eq!(result, status, "{step:?}");
            }
        }
    }
    (service, charge)
}

/// Checks the charge after the steps. `expected` is `status received_amount: events after charge.created`.
#[track_caller]
pub(crate) fn check_steps(steps: &[Step], expected: &str) {
    let (mut service, charge) = run_steps(steps);
    let object = service.read_charge(&charge);
    let (status, received) = (string(&object["status"]), string(&object["received_amount"]));
    let events = service.event_types(&charge);
    let events = events.strip_prefix("created").expect("the first event is charge.created");
    assert_eq!(format!("{status} {received}:{events}"), expected, "{steps:?}");
    assert_eq!(object["paid_at"].is_string(), status == "paid", "paid_at is set exactly when paid");
    assert_eq!(object["receipt_url"].is_string(), status == "paid", "receipt_url is set exactly when paid");
}

#[test]
fn an_unpaid_charge_expires_when_its_lock_ends() {
    check_steps(&[], "pending 0:");
    check_steps(&[Until(-1)], "pending 0:");
    check_steps(&[Until(0)], "expired 0: expired");
    check_steps(&[Wait(Span::days(300))], "expired 0: expired");
}

#[test]
fn a_charge_is_paid_when_its_payment_is_confirmed() {
    check_steps(&[Transfer("a", "0.0025", MEMPOOL)], "pending 0: payment_detected");
    check_steps(
        &[Transfer("a", "0.0025", MEMPOOL), Transfer("a", "0.0025", confirmed(1))],
        "pending 0: payment_detected",
    );
    check_steps(
        &[Transfer("a", "0.0025", MEMPOOL), Transfer("a", "0.0025", confirmed(2))],
        "paid 0.0025: payment_detected paid",
    );
    check_steps(&[Transfer("a", "0.0025", confirmed(7))], "paid 0.0025: payment_detected paid");
    check_steps(
        &[
            Transfer("a", "0.0025", confirmed(2)),
            Transfer("a", "0.0025", confirmed(2)),
            Transfer("a", "0.0025", confirmed(3)),
        ],
        "paid 0.0025: payment_detected paid",
    );
    check_steps(&[Transfer("a", "0.0025", confirmed(2)), Until(5)], "paid 0.0025: payment_detected paid");
}

#[test]
fn an_underpaid_charge_is_paid_by_further_transfers() {
    let part = Transfer("a", "0.001", confirmed(2));
    check_steps(&[part], "underpaid 0.001: payment_detected underpaid");
    check_steps(&[part, Until(0)], "expired 0.001: payment_detected underpaid expired");
    check_steps(
        &[part, Transfer("b", "0.0015", MEMPOOL)],
        "underpaid 0.001: payment_detected underpaid payment_detected",
    );
    check_steps(
        &[part, Transfer("b", "0.0015", confirmed(2))],
        "paid 0.0025: payment_detected underpaid payment_detected paid",
    );
    check_steps(
        &[part, Transfer("b", "0.001", confirmed(2)), Transfer("c", "0.0005", confirmed(2))],
        "paid 0.0025: payment_detected underpaid payment_detected underpaid payment_detected paid",
    );
    check_steps(&[part, Cancel(409)], "underpaid 0.001: payment_detected underpaid");
    // Transfers confirmed in one block are judged together, whether they were seen before or not.
    check_steps(
        &[
            Transfer("a", "0.001", MEMPOOL),
            Transfers(const { &[("a", "0.001", confirmed(2)), ("b", "0.0015", confirmed(2))] }),
        ],
        "paid 0.0025: payment_detected payment_detected paid",
    );
}

#[test]
fn many_small_transfers_add_up() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    for n in 0..25 {
        assert_ne!(service.charge_status(&charge), "paid", "after {n}");
        service.report_sighting(&charge, &format!("t{n}"), "0.0001", confirmed(2));
    }
    assert_eq!(service.charge_status(&charge), "paid");
    assert_eq!(service.read_charge(&charge)["transactions"].as_array().unwrap().len(), 25);
}

#[test]
fn zero_amounts_and_absent_transfers_are_not_payments() {
    check_steps(&[Transfer("a", "0", confirmed(9))], "pending 0:");
    check_steps(&[Transfer("a", "0.0025", DROPPED)], "pending 0:");
    check_steps(&[Transfer("a", "0", confirmed(9)), Cancel(200)], "canceled 0: canceled");
}

/// Checks status and `overpaid` of a charge of `fiat` in `asset` with one confirmed transfer.
#[track_caller]
fn check_amount(asset: &str, fiat: &str, amount: &str, expected: (&str, bool)) {
    let mut service = TestService::new();
    let charge = service.create("/v1/charges", &json!({"asset": asset, "amount": fiat}));
    service.report_sighting(&charge, "a", amount, confirmed(100));
    let object = service.read_charge(&charge);
    let found = (object["status"].as_str().unwrap(), object["overpaid"].as_bool().unwrap());
    assert_eq!(found, expected, "{amount} of {} {asset}", object["asset_amount"]);
}

#[test]
fn tolerances_are_exact_to_the_smallest_unit() {
    check_amount("BTC", "150.00", "0.00247499", ("underpaid", false));
    check_amount("BTC", "150.00", "0.002475", ("paid", false));
    check_amount("BTC", "150.00", "0.0025", ("paid", false));
    check_amount("BTC", "150.00", "0.002575", ("paid", false));
    check_amount("BTC", "150.00", "0.00257501", ("paid", true));
    check_amount("ETH", "150.00", "0.049499999999999999", ("underpaid", false));
    check_amount("ETH", "150.00", "0.0495", ("paid", false));
    check_amount("ETH", "150.00", "0.0515", ("paid", false));
    check_amount("ETH", "150.00", "0.051500000000000001", ("paid", true));
    // 17 satoshi are due: 99 % is not a whole number, and 16 are less.
    check_amount("BTC", "0.01", "0.00000016", ("underpaid", false));
    check_amount("BTC", "0.01", "0.00000017", ("paid", false));
    check_amount("BTC", "0.01", "0.00000018", ("paid", true));
}

#[test]
fn the_amount_due_is_rounded_up() {
    let mut service = TestService::new();
    for (asset, fiat, due) in [
        ("BTC", "150.00", "0.0025"),
        ("BTC", "0.01", "0.00000017"),
        ("BTC", "100.00", "0.00166667"),
        ("ETH", "0.01", "0.000003333333333334"),
        ("USDT", "0.01", "0.001"),
        ("DOGE", "33.33", "3.333"),
    ] {
        let charge = service.create("/v1/charges", &json!({"asset": asset, "amount": fiat}));
        assert_eq!(service.read_charge(&charge)["asset_amount"], due, "{fiat} in {asset}");
    }
}

#[test]
fn a_charge_keeps_the_terms_it_was_opened_with() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    let percent = |n| Some(Percent::hundredths(n));
    service.change_settings(SettingsDraft {
        underpayment_tolerance: percent(5_000),
        overpayment_threshold: percent(0),
        ..SettingsDraft::default()
    });
    let asset = reference_core::asset::Asset::Btc;
    service.api.service.on_rate(service.now, asset, reference_core::asset::Currency::Eur, None);
    service.report_sighting(&charge, "a", "0.002", confirmed(2));
    assert_eq!(service.charge_status(&charge), "underpaid");
    service.report_sighting(&charge, "b", "0.00055", confirmed(2));
    let object = service.read_charge(&charge);
    assert_eq!((&object["status"], &object["overpaid"]), (&json!("paid"), &json!(false)));
}

#[test]
fn a_payment_in_the_microsecond_of_the_lock_end_is_late() {
    let payment = Transfer("a", "0.0025", confirmed(2));
    check_steps(&[Until(-1), payment], "paid 0.0025: payment_detected paid");
    check_steps(&[Until(0), payment], "expired 0: expired late_payment");
    check_steps(&[Until(1), payment], "expired 0: expired late_payment");
    check_steps(&[Until(-1), Cancel(200)], "canceled 0: canceled");
    check_steps(&[Until(0), Cancel(409)], "expired 0: expired");
}

#[test]
fn a_transfer_seen_in_time_holds_the_charge_open_for_a_day() {
    let unconfirmed = Transfer("a", "0.0025", MEMPOOL);
    check_steps(&[Until(-1), unconfirmed, Until(0)], "pending 0: payment_detected");
    check_steps(&[Until(-1), unconfirmed, Wait(Span::hours(24))], "pending 0: payment_detected");
    check_steps(
        &[Until(-1), unconfirmed, Wait(Span::hours(24)), Transfer("a", "0.0025", confirmed(2))],
        "paid 0.0025: payment_detected paid",
    );
    // After a day, the same transfer is late.
    let day = Wait(Span::hours(24));
    check_steps(&[Until(-1), unconfirmed, Until(0), day], "expired 0: payment_detected expired late_payment");
    check_steps(
        &[Until(-1), unconfirmed, Until(0), day, Transfer("a", "0.0025", confirmed(2))],
        "expired 0: payment_detected expired late_payment",
    );
    for reason in [Disappearance::DoubleSpent, Disappearance::Replaced, Disappearance::Dropped] {
        let removed = Transfer("a", "0.0025", Depth::Absent(reason));
        check_steps(&[unconfirmed, removed, Until(-1)], "pending 0: payment_detected");
        check_steps(&[unconfirmed, removed, Until(0)], "expired 0: payment_detected expired");
        check_steps(&[unconfirmed, Until(9), removed], "expired 0: payment_detected expired");
        check_steps(
            &[unconfirmed, removed, Transfer("a", "0.0025", confirmed(2))],
            "paid 0.0025: payment_detected paid",
        );
        // It returns after the charge has ended, so it is late.
        check_steps(
            &[unconfirmed, Until(9), removed, Transfer("a", "0.0025", confirmed(2))],
            "expired 0: payment_detected expired late_payment",
        );
    }
    let little = Transfer("a", "0.001", MEMPOOL);
    check_steps(
        &[little, Until(9), Transfer("a", "0.001", confirmed(2))],
        "expired 0: payment_detected expired late_payment",
    );
}

#[test]
fn payments_hold_a_charge_open_if_their_sum_suffices() {
    let (little, rest) = (Transfer("a", "0.001", MEMPOOL), Transfer("b", "0.0015", MEMPOOL));
    check_steps(&[little, Until(0)], "expired 0: payment_detected expired late_payment");
    check_steps(
        &[Transfer("a", "0.00000001", MEMPOOL), Until(0)],
        "expired 0: payment_detected expired late_payment",
    );
    check_steps(&[little, rest, Until(9)], "pending 0: payment_detected payment_detected");
    check_steps(
        &[Transfer("a", "0.001", confirmed(2)), rest, Until(9)],
        "underpaid 0.001: payment_detected underpaid payment_detected",
    );
    // The tolerance is enough; one unit less is not.
    check_steps(&[Transfer("a", "0.002475", MEMPOOL), Until(9)], "pending 0: payment_detected");
    check_steps(
        &[Transfer("a", "0.00247499", MEMPOOL), Until(9)],
        "expired 0: payment_detected expired late_payment",
    );
    // After several transfers vanish, the rest is not enough, and unconfirmed ones become late.
    check_steps(
        &[little, rest, Until(9), Transfer("a", "0.001", DROPPED)],
        "expired 0: payment_detected payment_detected expired late_payment",
    );
}

#[test]
fn a_fee_bump_keeps_the_time_of_the_replaced_transfer() {
    type TransferState = (&'static str, &'static str, Depth);
    const OLD: TransferState = ("a", "0.0025", Depth::Absent(Disappearance::Replaced));
    let unconfirmed = Transfer("a", "0.0025", MEMPOOL);
    let check_bump = |bump: &'static [TransferState], expected: &str| {
        check_steps(&[unconfirmed, Until(9), Transfers(bump)], expected)
    };
    check_bump(&[OLD, ("b", "0.0025", MEMPOOL)], "pending 0: payment_detected payment_detected");
    // A replacement that pays less is late, also if it has two outputs or another transfer pays the rest.
    let late = "expired 0: payment_detected expired late_payment";
    check_bump(&[OLD, ("b", "0.0024", MEMPOOL)], late);
    check_bump(&[OLD, ("b", "0.00125", MEMPOOL), ("b", "0.00125", MEMPOOL)], late);
    check_bump(
        &[OLD, ("b", "0.00125", MEMPOOL), ("c", "0.00125", MEMPOOL)],
        "expired 0: payment_detected expired late_payment late_payment",
    );
    // Other new transfers at that moment are late.
    check_bump(
        &[OLD, ("b", "0.0025", MEMPOOL), ("c", "0.001", MEMPOOL)],
        "pending 0: payment_detected payment_detected late_payment",
    );
    // A transfer that still exists, or was replaced before, is not replaced again.
    check_bump(
        &[("a", "0.0025", MEMPOOL), ("b", "0.0025", MEMPOOL)],
        "pending 0: payment_detected late_payment",
    );
    const BUMP: &[TransferState] = &[OLD, ("b", "0.0025", MEMPOOL)];
    const AGAIN: &[TransferState] = &[OLD, ("c", "0.0025", MEMPOOL)];
    check_steps(
        &[unconfirmed, Until(-1), Transfers(BUMP), Until(9), Transfers(AGAIN)],
        "pending 0: payment_detected payment_detected late_payment",
    );
    // If two transfers are replaced at once, two replacements keep their times.
    const BOTH: &[TransferState] = &[
        OLD,
        ("c", "0.0025", Depth::Absent(Disappearance::Replaced)),
        ("b", "0.0025", MEMPOOL),
        ("d", "0.0025", MEMPOOL),
    ];
    check_steps(
        &[unconfirmed, Transfer("c", "0.0025", MEMPOOL), Until(9), Transfers(BOTH)],
        "pending 0: payment_detected payment_detected payment_detected payment_detected",
    );
}

#[test]
fn payments_first_seen_during_a_hold_are_late() {
    let enough = Transfer("a", "0.0025", MEMPOOL);
    check_steps(
        &[enough, Until(0), Transfer("b", "0.001", confirmed(2))],
        "pending 0: payment_detected late_payment",
    );
    // The hold ends before the new transfer counts, even in the microsecond in which the lock ended.
    for end in [0, 9] {
        check_steps(
            &[
                enough,
                Until(end),
                Transfers(const { &[("a", "0.0025", DROPPED), ("b", "0.0025", confirmed(2))] }),
            ],
            "expired 0: payment_detected expired late_payment",
        );
    }
    check_steps(
        &[enough, Until(9), Transfer("b", "0.001", confirmed(2))],
        "pending 0: payment_detected late_payment",
    );
    check_steps(
        &[enough, Until(9), Transfer("b", "0.001", confirmed(2)), Transfer("a", "0.0025", confirmed(2))],
        "paid 0.0035: payment_detected late_payment paid",
    );
    check_steps(
        &[enough, Until(9), Transfer("b", "0.0025", confirmed(2)), Transfer("a", "0.0025", DROPPED)],
        "expired 0: payment_detected late_payment expired",
    );
}

#[test]
fn only_a_pending_charge_without_money_can_be_canceled() {
    check_steps(&[Cancel(200), Cancel(409)], "canceled 0: canceled");
    check_steps(&[Transfer("a", "0.0025", MEMPOOL), Cancel(409)], "pending 0: payment_detected");
    let (unconfirmed, removed) = (Transfer("a", "0.0025", MEMPOOL), Transfer("a", "0.0025", DROPPED));
    check_steps(&[unconfirmed, removed, Cancel(200)], "canceled 0: payment_detected canceled");
    check_steps(
        &[unconfirmed, removed, Cancel(200), Transfer("a", "0.0025", confirmed(2))],
        "canceled 0: payment_detected canceled late_payment",
    );
    check_steps(&[Transfer("a", "0.0025", confirmed(2)), Cancel(409)], "paid 0.0025: payment_detected paid");
    check_steps(&[Cancel(200), Until(9)], "canceled 0: canceled");
}

#[test]
fn a_reorganisation_removes_credit_until_the_transfer_is_confirmed_again() {
    let part = Transfer("a", "0.001", confirmed(2));
    check_steps(&[part, Transfer("a", "0.001", confirmed(1))], "underpaid 0: payment_detected underpaid");
    check_steps(&[part, Transfer("a", "0.001", DROPPED)], "underpaid 0: payment_detected underpaid");
    check_steps(
        &[part, Transfer("a", "0.001", MEMPOOL), part],
        "underpaid 0.001: payment_detected underpaid",
    );
    let rest = Transfer("b", "0.0015", confirmed(2));
    check_steps(
        &[part, Transfer("a", "0.001", MEMPOOL), rest],
        "underpaid 0.0015: payment_detected underpaid payment_detected underpaid",
    );
    check_steps(
        &[part, Transfer("a", "0.001", MEMPOOL), rest, part],
        "paid 0.0025: payment_detected underpaid payment_detected underpaid paid",
    );
    // The orphaned transfer is unconfirmed again.
    check_steps(
        &[part, Transfer("a", "0.001", MEMPOOL), Until(9)],
        "expired 0: payment_detected underpaid expired late_payment",
    );
    check_steps(
        &[part, Transfer("a", "0.001", MEMPOOL), Transfer("b", "0.0015", MEMPOOL), Until(9)],
        "underpaid 0: payment_detected underpaid payment_detected",
    );
}

#[test]
fn a_paid_charge_stays_paid_after_a_reorganisation() {
    let payment = Transfer("a", "0.0025", confirmed(2));
    let (mut service, charge) =
        run_steps(&[payment, Transfer("a", "0.0025", Depth::Absent(Disappearance::DoubleSpent)), Until(9)]);
    let object = service.read_charge(&charge);
    assert_eq!(object["status"], "paid");
    assert_eq!(
        object["transactions"][0]["confirmations"], 0,
        "the dropped transfer is still in the list, without confirmations"
    );
    check_steps(&[payment, Transfer("a", "0.0025", MEMPOOL), payment], "paid 0.0025: payment_detected paid");
    check_steps(&[payment, Transfer("a", "0.0025", DROPPED)], "paid 0: payment_detected paid");
    check_steps(
        &[payment, Transfer("a", "0.0025", DROPPED), Refund("0.001", 422)],
        "paid 0: payment_detected paid",
    );
}

#[test]
fn paid_at_is_the_time_of_the_confirmation_that_completes_the_payment() {
    let (mut service, charge) = run_steps(&[
        Transfer("a", "0.001", confirmed(2)),
        Wait(Span::mins(3)),
        Transfer("b", "0.0015", MEMPOOL),
        Wait(Span::mins(3)),
        Transfer("b", "0.0015", confirmed(2)),
        Wait(Span::mins(3)),
        Transfer("b", "0.0015", MEMPOOL),
        Transfer("b", "0.0015", confirmed(2)),
    ]);
    assert_eq!(service.read_charge(&charge)["paid_at"], "2026-09-20T10:06:00.000000Z");
}

#[test]
fn refunds_are_limited_to_the_received_amount() {
    let payment = Transfer("a", "0.0025", confirmed(2));
    check_steps(&[Refund("0.001", 422)], "pending 0:");
    check_steps(
        &[Transfer("a", "0.0025", MEMPOOL), Refund("0.00000001", 422)],
        "pending 0: payment_detected",
    );
    check_steps(&[payment, Refund("0.0025", 201)], "paid 0.0025: payment_detected paid refunded");
    check_steps(&[payment, Refund("0.00250001", 422)], "paid 0.0025: payment_detected paid");
    check_steps(
        &[payment, Refund("0.001", 201), Refund("0.0015", 201), Refund("0.00000001", 422)],
        "paid 0.0025: payment_detected paid refunded refunded",
    );
    for bad in ["0", "-1", "0.000000001", "x", "1e-5", ""] {
        check_steps(&[payment, Refund(bad, 422)], "paid 0.0025: payment_detected paid");
    }
    let part = Transfer("a", "0.001", confirmed(2));
    check_steps(&[part, Refund("0.001", 201)], "underpaid 0.001: payment_detected underpaid refunded");
    check_steps(
        &[part, Until(0), Refund("0.001", 201)],
        "expired 0.001: payment_detected underpaid expired refunded",
    );
    // Late payments can be refunded without acceptance, once they are confirmed.
    let late = Transfer("a", "0.0025", confirmed(2));
    check_steps(
        &[Until(0), Transfer("a", "0.0025", MEMPOOL), Refund("0.0025", 422)],
        "expired 0: expired late_payment",
    );
    check_steps(&[Until(0), late, Refund("0.00250001", 422)], "expired 0: expired late_payment");
    check_steps(
        &[Until(0), late, Refund("0.0025", 201), Refund("0.0001", 422)],
        "expired 0: expired late_payment refunded",
    );
}

#[test]
fn event_details_depend_on_the_event_type() {
    let (mut service, charge) =
        run_steps(&[Transfer("a", "0.001", confirmed(2)), Transfer("b", "0.0016", confirmed(2))]);
    let refund = json!({"amount": "0.0001", "txid": "back", "reason": "change"});
    service.post(&format!("/v1/charges/{charge}/refunds"), &refund);
    let mut events = service.list(&format!("/v1/events?charge={charge}"));
    events.reverse();
    let details: Vec<Value> = events.iter().map(|event| event["details"].clone()).collect();
    assert_eq!(
        json!(details),
        json!([
            {},
            {"txid": "a", "amount": "0.001"},
            {"txid": "a", "amount": "0.001"},
            {"txid": "b", "amount": "0.0016"},
            {"txid": "b", "amount": "0.0026"},
            {"amount": "0.0001", "txid": "back", "reason": "change"},
        ])
    );
    let other = service.create_charge();
    let cancel = reference_core::command::BookCommand::CancelCharge(crate::test_service::parse_code(&other));
    service.run_command(reference_core::mode::Mode::Live, cancel).unwrap();
    assert_eq!(service.list("/v1/events")[0]["details"], json!({"reason": "dashboard"}));
}

#[test]
fn an_expiry_is_processed_before_inputs_of_the_same_microsecond() {
    let mut service = TestService::new();
    let charge = service.create_charge();
    service.wait(LOCK);
    assert_eq!(service.api.service.next_tick(), Some(service.now), "the expiry is due");
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    assert_eq!(service.event_types(&charge), "created expired late_payment");
    service.wait(TICK);
    service.tick();
    assert_eq!(service.api.service.next_tick(), None);
}
