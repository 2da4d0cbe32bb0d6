//! Objects that are missing in a later read of their list, and the charges of invoices.

use conformance_model::recording::{Exchange, List, ObjectKind};
use serde_json::{Value, json};

use super::current_states::{check_fail, event, list, run, single};
use super::{check, recording, response_mut};

/// Returns the creation event of an object in a second of the run.
fn created(member: &str, index: usize, second: u64) -> Value {
    event(index, &format!("{member}.created"), second, &json!({ "code": format!("{member}{index}") }))
}

/// Returns the rows of a list of objects.
fn items(member: &str, indexes: &[usize]) -> Vec<Value> {
    indexes.iter().map(|index| json!({ "code": format!("{member}{index}") })).collect()
}

#[test]
fn a_known_object_is_listed_after_a_minute() {
    let lists = [(List::Charges, "charge"), (List::Invoices, "invoice")];
    for (of, member) in lists {
        for (listed, second, expected) in [
            (&[0, 1, 2, 3, 4][..], 100, "pass"),
            (&[0, 1, 2], 100, "fail"),
            (&[0, 1, 2, 3], 100, "pass"),
            // The last two were created in second 5.
            (&[0, 1, 2], 60, "pass"),
            // Newer objects are listed: the parts of an index refresh separately.
            (&[2, 3, 4], 30, "pass"),
            (&[], 100, "pass"),
        ] {
            let seconds = if second < 60 { [1, 1, 20, 20, 20] } else { [1, 1, 1, 5, 5] };
            let events: Vec<_> = (0..5).map(|index| created(member, index, seconds[index])).collect();
            let read = run(vec![list(of, second, &items(member, listed))], &events, 110);
            check_fail(&read, "lists.complete", expected);
        }
    }
}

#[test]
fn old_objects_may_be_on_the_next_page() {
    let listed: Vec<_> = (0..100).collect();
    for (created_at, expected) in [([300, 300], "fail"), ([1, 1], "pass"), ([300, 1], "pass")] {
        let of_page = listed.iter().map(|index| created("charge", *index, 200));
        let missing = (100..).zip(created_at).map(|(index, second)| created("charge", index, second));
        let events: Vec<_> = of_page.chain(missing).collect();
        let read = run(vec![list(List::Charges, 400, &items("charge", &listed))], &events, 410);
        check_fail(&read, "lists.complete", expected);
    }
}

fn invoice(index: usize, charges: &[&str]) -> Value {
    let charges: Vec<_> = charges.iter().map(|code| json!({ "code": format!("{code}-{index}") })).collect();
    json!({
        "code": format!("in{index}"), "number": format!("N-{index}"), "status": "open", "amount": format!("{index}.00"),
        "currency": "EUR", "customer": {}, "hosted_url": format!("https://pay.example/{index}"), "charges": charges,
    })
}

/// Returns two events of each of `count` invoices with these charges, at these seconds.
fn invoice_events(count: usize, charges: [&[&str]; 2], seconds: [u64; 2]) -> Vec<Value> {
    let events = |index| {
        [
            event(2 * index, "invoice.created", seconds[0], &invoice(index, charges[0])),
            event(2 * index + 1, "invoice.viewed", seconds[1], &invoice(index, charges[1])),
        ]
    };
    (0..count).flat_map(events).collect()
}

/// Returns the single reads of invoices at a second of the run.
fn reads(count: usize, charges: &[&str], second: u64) -> Vec<Exchange> {
    (0..count).map(|index| single(ObjectKind::Invoice, second, &invoice(index, charges))).collect()
}

#[test]
fn an_invoice_keeps_its_charges() {
    for (count, charges, second, expected) in [
        (2, &["b"][..], 100, "fail"),
        (2, &[], 100, "fail"),
        (1, &["b"], 100, "pass"),
        (2, &["b", "a"], 100, "pass"),
        (2, &["b", "a", "c"], 100, "pass"),
        // The invoice was changed a minute before.
        (2, &["b"], 60, "pass"),
    ] {
        let events = invoice_events(2, [&["a"], &["a"]], [1, 2]);
        check(&run(reads(count, charges, second), &events, 110), "invoices.fields", expected);
        let rows: Vec<_> = (0..count).map(|index| invoice(index, charges)).collect();
        let listed = run(vec![list(List::Invoices, second, &rows)], &events, 110);
        check(&listed, "invoices.fields", expected);
    }
    // In events on one page.
    for (charges, seconds, expected) in [
        ([&["a"][..], &["b"][..]], [1, 20], "fail"),
        ([&["a"], &["a", "b"]], [1, 20], "pass"),
        // At about the same time.
        ([&["a"], &["b"]], [1, 9], "pass"),
    ] {
        check(&run(Vec::new(), &invoice_events(2, charges, seconds), 110), "invoices.fields", expected);
        check(&run(Vec::new(), &invoice_events(1, charges, seconds), 110), "invoices.fields", "pass");
    }
}

#[test]
fn an_invoice_has_each_charge_once_and_no_other_one() {
    let twice = invoice_events(2, [&["a", "a"], &["a", "a"]], [1, 2]);
    check(&run(Vec::new(), &twice, 110), "invoices.fields", "fail");
    for (kind, invoices, expected) in [("sent", 6, "fail"), ("sent", 4, "pass"), ("voided", 6, "pass")] {
        let shared = |index: usize| {
            let mut invoice = invoice(index, &["a"]);
            invoice["charges"] = json!([format!("ch{}", index / 2)]);
            event(index, &format!("invoice.{kind}"), 1, &invoice)
        };
        let events: Vec<_> = (0..invoices).map(shared).collect();
        check(&run(Vec::new(), &events, 110), "invoices.fields", expected);
    }
}

#[test]
fn the_charges_of_an_invoice_have_its_currency() {
    for (currency, amount, count, expected) in [
        ("USD", "", 3, "fail"),
        ("USD", "", 2, "pass"),
        ("eur", "", 3, "pass"),
        // Converted.
        ("USD", "1", 3, "pass"),
        ("", "", 3, "pass"),
    ] {
        let events = (0..count).flat_map(|index| {
            let fiat_amount = format!("{amount}{index}.00");
            let charge = json!({ "code": format!("a-{index}"), "fiat_amount": fiat_amount, "fiat_currency": currency });
            [
                event(2 * index, "invoice.created", 1, &invoice(index, &["a"])),
                event(2 * index + 1, "charge.created", 2, &charge),
            ]
        });
        check(&run(Vec::new(), &events.collect::<Vec<_>>(), 110), "invoices.fields", expected);
    }
}

#[test]
fn a_single_invoice_is_the_requested_one() {
    let events = invoice_events(1, [&["a"], &["a"]], [1, 2]);
    for (index, expected) in [(0, "pass"), (1, "fail")] {
        let mut read = reads(1, &["a"], 20);
        let body = json!({ "code": "ok", "data": invoice(index, &["a"]) });
        response_mut(&mut read[0]).body = body.to_string().into();
        check(&run(read, &events, 110), "invoices.fields", expected);
    }
}

#[test]
fn listed_objects_have_the_values_of_their_events() {
    let object = |index: usize, is_changed: bool, name: &str| {
        let mut object = json!({
            "code": format!("ob{index}"), "number": format!("N-{index}"), "asset": "BTC", "asset_amount": "0.5",
            "fiat_amount": "10.00", "amount": "10.00", "currency": "EUR",
        });
        if is_changed {
            object[name] = json!(if name.ends_with("amount") { "7.00" } else { "XYZ" });
        }
        object
    };
    for (of, member, name, changed_count, of_earlier_page, of_later_page) in [
        (List::Charges, "charge", "fiat_amount", 3, "fail", "fail"),
        (List::Charges, "charge", "fiat_amount", 2, "fail", "pass"),
        // The customer selected another coin afterwards.
        (List::Charges, "charge", "asset", 3, "fail", "pass"),
        (List::Charges, "charge", "asset_amount", 3, "fail", "pass"),
        (List::Invoices, "invoice", "number", 3, "fail", "fail"),
        // The owner edited the invoices afterwards.
        (List::Invoices, "invoice", "amount", 3, "fail", "pass"),
        (List::Invoices, "invoice", "currency", 3, "fail", "pass"),
    ] {
        let events: Vec<_> = (0..5)
            .map(|index| event(index, &format!("{member}.created"), 1, &object(index, false, name)))
            .collect();
        let rows: Vec<_> = (0..5).map(|index| object(index, index < changed_count, name)).collect();
        let [events, listed] = [list(List::Events, 5, &events), list(of, 5, &rows)];
        let later_page = vec![events.clone(), listed.clone(), listed.clone()];
        check_fail(&recording(later_page), "lists.complete", of_later_page);
        check_fail(&recording(vec![listed, events]), "lists.complete", of_earlier_page);
    }
}

#[test]
fn an_invoice_may_drop_a_charge_that_ended() {
    for (end, kept, expected) in [
        (None, false, "fail"),
        (Some("expired"), false, "pass"),
        (Some("canceled"), false, "pass"),
        // Another invoice shows its charge long after the end.
        (Some("expired"), true, "fail"),
    ] {
        let mut events = invoice_events(3, [&["a"], &["a"]], [1, 2]);
        let charge = |index| json!({ "code": format!("a-{index}"), "status": "done" });
        let ended =
            |kind| (0..3).map(move |index| event(10 + index, &format!("charge.{kind}"), 3, &charge(index)));
        events.extend(end.into_iter().flat_map(ended));
        let mut exchanges = reads(2, &["b"], 100);
        if kept {
            exchanges.push(single(ObjectKind::Invoice, 100, &invoice(2, &["a"])));
        }
        // The deliveries show the ends early.
        check(&run(exchanges, &events, 110), "invoices.fields", expected);
    }
    // An event of the invoice after the end of its charge.
    let mut events = invoice_events(2, [&["a"], &[]], [1, 20]);
    events.extend((0..2).map(|index| {
        event(10 + index, "charge.expired", 15, &json!({ "code": format!("a-{index}"), "status": "expired" }))
    }));
    check(&run(Vec::new(), &events, 110), "invoices.fields", "pass");
}

#[test]
fn a_later_delivery_may_show_an_earlier_state() {
    for (second, expected) in [(40, "pass"), (80, "fail")] {
        let events = invoice_events(2, [&["a"], &["b"]], [1, second]);
        let mut read = run(Vec::new(), &events, 110);
        // The list of events has other events only.
        let other = event(99, "charge.created", 60, &json!({ "code": "ch9" }));
        let last = read.exchanges.last_mut().expect("the run has exchanges");
        response_mut(last).body = json!({ "data": [other] }).to_string().into();
        check(&read, "invoices.fields", expected);
    }
}

#[test]
fn a_withdrawn_invoice_shares_its_charges() {
    // Three invoices were withdrawn, and their charges moved to new ones.
    let of = |index: usize, code: usize| {
        let mut invoice = invoice(index, &[]);
        invoice["status"] = json!("withdrawn");
        invoice["charges"] = json!([format!("ch{code}")]);
        invoice
    };
    let event = [event(99, "invoice.created", 1, &invoice(9, &["a"]))];
    let read = |from: usize, second| {
        (0..3).map(move |index| single(ObjectKind::Invoice, second, &of(from + index, index)))
    };
    for (old, new, last_old, expected) in
        [(5, 30, None, "pass"), (5, 30, Some(105), "fail"), (5, 30, Some(80), "pass")]
    {
        let exchanges = read(0, old).chain(read(3, new)).chain(read(3, 104));
        let exchanges = exchanges.chain(last_old.into_iter().flat_map(|second| read(0, second)));
        check_fail(&run(exchanges.collect(), &event, 110), "invoices.fields", expected);
    }
}

#[test]
fn deliveries_do_not_show_which_objects_are_on_a_page() {
    let listed: Vec<_> = (0..100).collect();
    let of_page = listed.iter().map(|index| created("charge", *index, 200));
    let events: Vec<_> = of_page.chain((100..102).map(|index| created("charge", index, 300))).collect();
    let mut read = run(vec![list(List::Charges, 400, &items("charge", &listed))], &events, 410);
    // The list of events has the first hundred only.
    let last = read.exchanges.last_mut().expect("the run has exchanges");
    response_mut(last).body = json!({ "data": events[..100] }).to_string().into();
    check_fail(&read, "lists.complete", "pass");
}
