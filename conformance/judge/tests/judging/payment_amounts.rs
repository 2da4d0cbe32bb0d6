//! The amounts of charges compared with their payments.

use std::time::Duration;

use conformance_model::recording::{List, Recording};
use serde_json::{Value, json};

use super::check;
use super::current_states::{at, event, list, run};

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
        // More of a stablecoin than was due.
        (&["payment_detected", "paid"], 4, ["10.00", "9.98", "10.00"], "pass"),
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
        let list = list(List::Charges, 40, &rows);
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

/// Returns a list of charges, in which the first ones received something or null.
fn charges(second: u64, received: [&Value; 4]) -> conformance_model::recording::Exchange {
    let item = |(index, received): (usize, &&Value)| {
        let mut charge = charge(index, ["10.00", "0.5", ""]);
        charge["received_amount"] = (*received).clone();
        charge
    };
    list(List::Charges, second, &received.iter().enumerate().map(item).collect::<Vec<_>>())
}

#[test]
fn a_null_amount_is_zero() {
    let (null, half) = (Value::Null, json!("0.5"));
    let mut events = events(&["expired"], 0, [""; 3]);
    events.extend((4..7).flat_map(|index| {
        let charge = charge(index, ["10.00", "0.5", "0.0"]);
        [event(10 * index, "charge.created", 1, &charge), event(10 * index + 1, "charge.expired", 3, &charge)]
    }));
    for (nulls, expected) in [(4, "pass"), (2, "fail")] {
        let item = |index: usize| {
            let mut charge = charge(index, ["10.00", "0.5", ""]);
            charge["received_amount"] = if index < nulls { &null } else { &half }.clone();
            charge
        };
        // Half of the charges received a transfer whose events are not known.
        let list = list(List::Charges, 40, &(0..7).map(item).collect::<Vec<_>>());
        check(&run(vec![list], &events, 110), "charges.amounts", expected);
    }
}

/// Returns a run without a list of events at its end, in which the list of events was read at a second.
fn with_events_read_at(second: u64, charges_read_at: u64) -> Recording {
    let half = json!("0.5");
    let events = events(&["expired"], 0, [""; 3]);
    let mut read = run(vec![charges(charges_read_at, [&half; 4])], &events, 300);
    let last = read.exchanges.pop().expect("the run has exchanges");
    read.exchanges.insert(0, at(second, last));
    read.deliveries = None;
    for (number, exchange) in (1..).zip(&mut read.exchanges) {
        exchange.number = number;
    }
    read
}

#[test]
fn a_later_event_may_report_the_transfer() {
    let id = "charges.amounts";
    check(&with_events_read_at(100, 20), id, "fail");
    // The transfer was reported after the list of events was read.
    check(&with_events_read_at(100, 60), id, "pass");
    check(&with_events_read_at(100, 200), id, "pass");
}

#[test]
fn an_endpoint_may_receive_some_types_only() {
    let half = json!("0.5");
    let all_types = [
        "created",
        "payment_detected",
        "paid",
        "underpaid",
        "late_payment",
        "refunded",
        "expired",
        "canceled",
    ];
    for (types, expected) in [(&all_types[..], "fail"), (&["created", "expired"], "pass")] {
        let mut read = run(vec![charges(20, [&half; 4])], &events(&["expired"], 0, [""; 3]), 110);
        // The list of events has other events only.
        let other = event(99, "charge.created", 60, &charge(9, ["10.00", "0.5", "0.0"]));
        let last = read.exchanges.last_mut().expect("the run has exchanges");
        super::response_mut(last).body = json!({ "data": [other] }).to_string().into();
        last.sent = Duration::from_secs(110);
        let deliveries = read.deliveries.as_mut().expect("the run had a receiver");
        deliveries.endpoints[0].events = Some(types.iter().map(|kind| format!("charge.{kind}")).collect());
        check(&read, "charges.amounts", expected);
    }
}
