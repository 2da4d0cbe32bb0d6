//! Values of one object that are shown at another one.

use conformance_model::recording::{List, PageRequest, Recording};
use serde_json::{Value, json};

use super::{check, events_request, page, recording};

/// Returns a recording of the events and the list of five charges. `value`: the field in the event and in the list item, by
/// the number of the charge.
fn listed(name: &str, value: &dyn Fn(usize) -> [Value; 2]) -> Recording {
    let charge = |index: usize, value: &Value| {
        let mut charge = json!({
            "code": format!("ch{index}"), "status": "paid", "fiat_amount": "10.00", "fiat_currency": "EUR",
            "asset": "BTC", "asset_amount": "0.5", "received_amount": "0.5", "customer_email": null,
            "description": null, "metadata": {}, "payment_link": null, "paid_at": "2026-02-01T10:00:00.000000Z",
        });
        charge[name] = value.clone();
        charge
    };
    let event = |index: usize| {
        json!({
            "id": format!("00000000-0000-4000-8000-{index:012}"),
            "type": "charge.paid",
            "details": {},
            "charge": charge(index, &value(index)[0]),
            "invoice": null,
            "created_at": "2026-02-01T10:00:00Z",
        })
    };
    let events = Value::from_iter((0..5).map(event));
    let items = Value::from_iter((0..5).map(|index| charge(index, &value(index)[1])));
    let charges = PageRequest { list: List::Charges, ..events_request(None, 100) };
    let numbers = [1, 1, 100, 5];
    recording(vec![page(charges, &items, numbers), page(events_request(None, 100), &events, numbers)])
}

#[test]
fn a_list_does_not_show_the_values_of_other_charges() {
    let email = |index: usize| json!(format!("c{index}@shop.example"));
    let order = |index: usize| json!({ "order": index });
    let id = "charges.fields";
    check(&listed("customer_email", &|index| [email(index), email(index)]), id, "pass");
    check(&listed("customer_email", &|index| [email(index), email(index + 1)]), id, "fail");
    check(&listed("metadata", &|index| [order(index), order((index + 1) % 5)]), id, "fail");
    // Two charges only.
    check(
        &listed("description", &|index| [email(index), email(if index < 2 { 1 - index } else { index })]),
        id,
        "pass",
    );
    // All charges have one of two values.
    check(&listed("description", &|index| [email(index % 2), email((index + 1) % 2)]), id, "pass");
    // Masked, shortened or omitted.
    check(&listed("customer_email", &|index| [email(index), json!("c***@shop.example")]), id, "pass");
    check(&listed("customer_email", &|index| [email(index), Value::Null]), id, "pass");
}
