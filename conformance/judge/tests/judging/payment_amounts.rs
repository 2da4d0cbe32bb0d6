//! The amounts of charges compared with their payments.

use conformance_model::recording::List;
use serde_json::{Value, json};

use super::check;
use super::current_states::{event, list, run};

/// Returns a charge with its amounts in the fiat currency and in the coin, and the received one.
fn charge(index: usize, [fiat, due, received]: [&str; 3]) -> Value {
    json!({
        "code": format!("ch{index}"), "status": "open", "fiat_amount": fiat, "fiat_currency": "EUR", "asset": "BTC",
        "asset_amount": due, "received_amount": received, "metadata": {}, "payment_link": null,
    })
}

/// Returns the events of four charges of these types after the creation; the first ones have other amounts at the last event.
fn events(kinds: &[&str], faulty: usize, amounts: [&str; 3]) -> Vec<Value> {
    let kinds: Vec<_> = ["created"].iter().chain(kinds).collect();
    let of_charge = |index: usize| {
        let kinds = &kinds;
        (0..kinds.len()).map(move |number| {
            let is_faulty = index < faulty && number + 1 == kinds.len();
            let amounts = if is_faulty { amounts } else { ["10.00", "0.5", "0.0"] };
            let second = 1 + 2 * number as u64;
            event(10 * index + number, &format!("charge.{}", kinds[number]), second, &charge(index, amounts))
        })
    };
    (0..4).flat_map(of_charge).collect()
}

#[test]
fn amounts_agree_with_the_payments() {
    let id = "charges.amounts";
    for (kinds, faulty, amounts, expected) in [
        (&["expired"][..], 4, ["10.00", "0.5", "0.5"], "fail"),
        (&["canceled"], 3, ["10.00", "0.5", "0.1"], "fail"),
        (&["expired"], 2, ["10.00", "0.5", "0.5"], "pass"),
        // Transfers.
        (&["expired", "late_payment"], 4, ["10.00", "0.5", "0.5"], "pass"),
        (&["payment_detected", "canceled"], 4, ["10.00", "0.5", "0.5"], "pass"),
        // In the fiat currency.
        (&["payment_detected", "paid"], 4, ["10.00", "0.5", "10.00"], "fail"),
        (&["payment_detected", "paid"], 4, ["10.00", "10.00", "10.00"], "pass"),
        // No amount in the coin.
        (&["expired"], 3, ["10.00", "0.000", "0"], "fail"),
        (&["expired"], 3, ["0.00", "0.000", "0"], "pass"),
        // No received amount.
        (&["payment_detected", "underpaid"], 4, ["10.00", "0.5", "0"], "fail"),
        (&["payment_detected", "underpaid"], 3, ["10.00", "0.5", "0.3"], "pass"),
        (&["payment_detected", "paid", "refunded"], 4, ["10.00", "0.5", "0"], "pass"),
        (&["underpaid"], 4, ["10.00", "0.5", "0"], "pass"),
    ] {
        let events = events(kinds, faulty, amounts);
        let mut read = run(Vec::new(), &events, 110);
        check(&read, id, expected);
        read.exact_amounts = false;
        check(&read, id, "pass");
    }
}

#[test]
fn a_list_shows_no_received_amount_without_a_transfer() {
    for (faulty, expected) in [(3, "fail"), (2, "pass")] {
        let rows: Vec<_> = (0..4)
            .map(|index| charge(index, ["10.00", "0.5", if index < faulty { "0.5" } else { "0" }]))
            .collect();
        let list = list(List::Charges, 60, &rows);
        let read = run(vec![list], &events(&["expired"], 0, [""; 3]), 110);
        check(&read, "charges.amounts", expected);
    }
}

#[test]
fn an_underpaid_charge_is_not_paid() {
    let with_status = |kinds: &[&str], faulty: usize| {
        let mut events = events(kinds, 0, [""; 3]);
        for event in &mut events {
            let is_faulty = (0..faulty).any(|index| event["charge"]["code"] == format!("ch{index}"));
            if is_faulty && event["type"] == "charge.underpaid" {
                event["charge"]["status"] = json!("paid");
            }
            if event["type"] == "charge.paid" {
                event["charge"]["status"] = json!("paid");
            }
        }
        run(Vec::new(), &events, 110)
    };
    let id = "charges.status";
    check(&with_status(&["underpaid"], 3), id, "fail");
    check(&with_status(&["underpaid"], 2), id, "not judged");
    // Events that show the current charge.
    check(&with_status(&["underpaid", "paid"], 3), id, "pass");
}
