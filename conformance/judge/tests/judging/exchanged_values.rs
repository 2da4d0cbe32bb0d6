//! Values of one object that are shown at another one.

use conformance_model::recording::{List, PageRequest, Purpose, Recording, Side};
use serde_json::{Value, json};

use super::{TEST, charge_purpose, check, events_request, exchange, page, recording};

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

/// Returns the recording of a list in which `altered` charges have another value of a field than in their events.
fn altered(name: &str, altered: usize, [in_event, in_list]: [&Value; 2]) -> Recording {
    listed(name, &|index| [in_event, if index < altered { in_list } else { in_event }].map(Value::clone))
}

#[test]
fn a_list_does_not_show_texts_in_another_notation() {
    let id = "charges.fields";
    let [quoted, escaped] = [json!("Pro \"yearly\""), json!("Pro &#34;yearly&#34;")];
    check(&altered("description", 3, [&quoted, &escaped]), id, "fail");
    check(&altered("description", 2, [&quoted, &escaped]), id, "pass");
    check(&altered("description", 3, [&escaped, &quoted]), id, "fail");
    check(&altered("description", 5, [&json!("Größe"), &json!("GrÃ¶ÃŸe")]), id, "fail");
    check(
        &altered("customer_email", 5, [&json!("Ann@shop.example"), &json!("ann@shop.example")]),
        id,
        "fail",
    );
    let metadata = |note: &Value| json!({ "order": 7, "note": note });
    check(&altered("metadata", 5, [&metadata(&quoted), &metadata(&escaped)]), id, "fail");
    check(&altered("payment_link", 5, [&json!("Shop-1"), &json!("shop-1")]), id, "fail");
    // Shortened or edited.
    check(&altered("description", 5, [&quoted, &json!("Pro…")]), id, "pass");
    check(&altered("description", 5, [&quoted, &json!("Basic")]), id, "pass");
    check(&altered("metadata", 5, [&metadata(&quoted), &json!({ "order": 7 })]), id, "pass");
}

#[test]
fn only_texts_with_special_characters_can_be_escaped() {
    // Of the texts of all charges, fewer than half.
    let text = |index: usize| if index < 3 { format!("a<{index}") } else { format!("a{index}") };
    let escaped = |index: usize| text(index).replace('<', "&lt;");
    let list = |index: usize| [json!(text(index)), json!(escaped(index))];
    check(&listed("description", &list), "charges.fields", "fail");
    // Two of three texts.
    let some = |index: usize| [json!(text(index)), json!(if index == 0 { text(0) } else { escaped(index) })];
    check(&listed("description", &some), "charges.fields", "pass");
}

#[test]
fn single_charges_do_not_show_texts_in_another_notation() {
    let [plain, escaped] = [json!("Tea & <cake>"), json!("Tea &amp; &lt;cake&gt;")];
    for (count, expected) in [(3, "fail"), (2, "pass")] {
        let mut read = altered("description", 0, [&plain, &plain]);
        for index in 0..count {
            let code = format!("ch{index}");
            let body = json!({ "data": {
                "code": code, "description": escaped, "fiat_amount": "10.00", "fiat_currency": "EUR",
                "asset": "BTC", "asset_amount": "0.5",
            } });
            read.exchanges.push(exchange(TEST, charge_purpose(&code, Side::Own), "/v1/charges", 200, &body));
        }
        check(&read, "charges.fields", expected);
    }
}

#[test]
fn an_asset_is_a_code() {
    let bitcoin = (json!(["BTC", "USDC_BASE"]), "Bitcoin");
    for ((accepted, asset), expected) in [
        (bitcoin.clone(), "fail"),
        ((json!([{ "code": "BTC", "name": "Bitcoin" }]), "USD Coin"), "fail"),
        ((json!(["BTC"]), "btc"), "pass"),
        // No longer accepted.
        ((json!(["BTC"]), "LTC"), "pass"),
        ((json!(["ETH"]), "wBTC"), "pass"),
        ((json!(["Bitcoin"]), "Bitcoin"), "pass"),
        ((json!(["Litecoin"]), "Bitcoin"), "pass"),
        ((json!([]), "Bitcoin"), "pass"),
        ((json!([{ "symbol": "BTC" }]), "Bitcoin"), "pass"),
    ] {
        let mut read = listed("asset", &|_| [json!(asset), json!(asset)]);
        let body = json!({ "data": {}, "meta": { "mode": "test", "accepted_assets": accepted } });
        read.exchanges.push(exchange(TEST, Purpose::Account, "/v1/account", 200, &body));
        check(&read, "charges.asset", expected);
    }
    // The asset of one charge is a code.
    let (accepted, name) = bitcoin;
    let mut read = listed("asset", &|index| [json!(if index == 0 { "BTC" } else { name }), json!(name)]);
    let body = json!({ "data": {}, "meta": { "mode": "test", "accepted_assets": accepted } });
    read.exchanges.push(exchange(TEST, Purpose::Account, "/v1/account", 200, &body));
    check(&read, "charges.asset", "pass");
}
