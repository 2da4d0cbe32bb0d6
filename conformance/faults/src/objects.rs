//! Faults in events and deliveries, in their charges and invoices, and in listed charges.

use conformance_model::mode::Mode;
use conformance_model::recording::List;
use serde_json::{Value, json};

use crate::fault::{Change, Fault};
use crate::injection_point::{EventView, InjectionPoint, Position};

/// A field, its replacement (`None` removes it), the description of the fault, and the violated statements.
type FieldFault = (&'static str, Option<fn() -> Value>, &'static str, &'static [&'static str]);

const MISSING: &str = "is missing";

const EVENT: &[FieldFault] = &[
    ("id", None, MISSING, &["events.id", "events.single"]),
    ("id", Some(|| json!(4711)), "is a number", &["events.id", "events.single"]),
    ("id", Some(|| json!("evt_1Nq")), "is not a UUID", &["events.id", "events.single"]),
    ("type", None, MISSING, &["events.type"]),
    ("type", Some(|| json!("charge.confirmed")), "is none of the thirteen types", &["events.type"]),
    ("details", None, MISSING, &["events.details"]),
    ("details", Some(|| json!([])), "is an array", &["events.details"]),
    ("details", Some(|| Value::Null), "is null", &["events.details"]),
    ("charge", None, MISSING, &["events.subject"]),
    // "always": in an event of an invoice, null is correct. Likewise for `invoice`.
    ("charge", Some(|| Value::Null), "is always null", &["events.subject"]),
    ("charge", Some(|| json!("ch_4711")), "is a string", &["events.subject"]),
    ("invoice", None, MISSING, &["events.subject"]),
    ("invoice", Some(|| Value::Null), "is always null", &["events.subject"]),
    ("invoice", Some(|| json!({})), "is an empty object", &["events.subject"]),
    ("created_at", None, MISSING, &["events.created_at"]),
    ("created_at", Some(|| json!(1_764_547_200)), "is a number", &["events.created_at"]),
    ("created_at", Some(|| json!("2025-12-01T10:00:00+02:00")), "is not in UTC", &["events.created_at"]),
    ("created_at", Some(|| json!("2025-12-01 10:00:00")), "has no zone", &["events.created_at"]),
];

const CHARGE: &[FieldFault] = &[
    ("code", None, MISSING, &["charges.fields", "charges.code", "events.subject"]),
    ("code", Some(|| json!(4711)), "is a number", &["charges.code", "events.subject"]),
    ("status", None, MISSING, &["charges.fields", "charges.status"]),
    ("status", Some(|| json!(3)), "is a number", &["charges.status"]),
    ("fiat_amount", None, MISSING, &["charges.fields", "charges.amounts"]),
    ("fiat_amount", Some(|| json!(49.9)), "is a number", &["charges.amounts", "charges.fiat_amount"]),
    ("fiat_currency", None, MISSING, &["charges.fields", "charges.fiat_currency"]),
    ("fiat_currency", Some(|| json!({ "code": "EUR" })), "is an object", &["charges.fiat_currency"]),
    ("asset", None, MISSING, &["charges.fields", "charges.asset"]),
    ("asset", Some(|| json!(1)), "is a number", &["charges.asset"]),
    ("asset_amount", None, MISSING, &["charges.fields", "charges.amounts"]),
    ("asset_amount", Some(|| json!(0.00025)), "is a number", &["charges.amounts", "charges.asset_amount"]),
    ("received_amount", None, MISSING, &["charges.fields", "charges.amounts"]),
    ("received_amount", Some(|| json!(0)), "is a number", &["charges.amounts", "charges.received_amount"]),
    ("customer_email", None, MISSING, &["charges.fields"]),
    ("customer_email", Some(|| json!(["ann@shop.example"])), "is an array", &["charges.customer_email"]),
    ("description", None, MISSING, &["charges.fields"]),
    ("description", Some(|| json!(false)), "is false", &["charges.description"]),
    ("metadata", None, MISSING, &["charges.fields"]),
    ("metadata", Some(|| json!([])), "is an array", &["charges.metadata"]),
    ("payment_link", None, MISSING, &["charges.fields"]),
    ("payment_link", Some(|| json!({ "code": "tea" })), "is an object", &["charges.payment_link"]),
    ("paid_at", None, MISSING, &["charges.fields", "charges.paid_at"]),
    ("paid_at", Some(|| json!(1_764_547_200)), "is a number", &["charges.paid_at"]),
];

/// The faults of the charge of a `charge.canceled` event.
const CANCELED_CHARGE: &[FieldFault] = &[(
    "paid_at",
    Some(|| json!("2025-12-01T10:00:00.000000Z")),
    "is set although nothing was paid",
    &["charges.paid_at"],
)];

const INVOICE: &[FieldFault] = &[
    ("code", None, MISSING, &["invoices.fields"]),
    ("number", None, MISSING, &["invoices.fields"]),
    ("status", None, MISSING, &["invoices.fields"]),
    ("amount", None, MISSING, &["invoices.fields"]),
    ("currency", None, MISSING, &["invoices.fields"]),
    ("customer", None, MISSING, &["invoices.fields"]),
    ("hosted_url", None, MISSING, &["invoices.fields"]),
    ("charges", None, MISSING, &["invoices.fields"]),
    (
        "charges",
        Some(|| json!([])),
        "is empty",
        &["types.invoice_paid", "invoices.settled", "events.both_paid"],
    ),
];

const DELIVERY: &[FieldFault] = &[
    ("id", None, MISSING, &["webhooks.body", "webhooks.delivery_id"]),
    ("id", Some(|| json!("4711")), "is not a UUID", &["webhooks.delivery_id"]),
    ("event_id", None, MISSING, &["webhooks.body", "webhooks.event_id"]),
    (
        "event_id",
        Some(|| json!("0190a5c6-7f3e-7ccf-8def-ffffffffffff")),
        "is the id of no event",
        &["webhooks.event_id"],
    ),
    ("event", None, MISSING, &["webhooks.body", "webhooks.event_type"]),
    ("event", Some(|| json!("charge.confirmed")), "is none of the thirteen types", &["webhooks.event_type"]),
    ("mode", Some(|| json!("production")), "is `production`", &["webhooks.mode", "webhooks.body"]),
    ("created_at", None, MISSING, &["webhooks.body", "webhooks.created_at"]),
    ("created_at", Some(|| json!("2026-02-01T10:00:00Z")), "has no microseconds", &["webhooks.created_at"]),
    ("data", None, MISSING, &["webhooks.body", "webhooks.data"]),
    ("data", Some(|| json!([])), "is an array", &["webhooks.body", "webhooks.data"]),
];

/// Differences between the charge of a single event and that of the same event in a list.
const SINGLE_CHARGE_DIFFERENCES: &[FieldFault] = &[
    ("status", Some(|| json!("elsewhere")), "differs from the list", &["events.single"]),
    ("asset", Some(|| json!("XYZ")), "differs from the list", &["events.single"]),
    ("fiat_amount", Some(|| json!("0.01")), "differs from the list", &["events.single"]),
];
const SINGLE_INVOICE_DIFFERENCES: &[FieldFault] = &[
    ("status", Some(|| json!("elsewhere")), "differs from the list", &["events.single"]),
    ("amount", Some(|| json!("0.01")), "differs from the list", &["events.single"]),
];
/// Differences between the charge of a delivery and that of its event in the API.
const DELIVERED_CHARGE_DIFFERENCES: &[FieldFault] = &[
    ("asset", Some(|| json!("XYZ")), "differs from the API", &["webhooks.event_id"]),
    ("fiat_amount", Some(|| json!("0.01")), "differs from the API", &["webhooks.event_id"]),
];
const DELIVERED_INVOICE_DIFFERENCES: &[FieldFault] = &[
    ("amount", Some(|| json!("0.01")), "differs from the API", &["webhooks.event_id"]),
    ("number", Some(|| json!("R0")), "differs from the API", &["webhooks.event_id"]),
];
const LISTED_CHARGE_DIFFERENCES: &[FieldFault] = &[(
    "paid_at",
    Some(|| json!("2020-01-01T00:00:00.000000Z")),
    "differs from the time in its newest event",
    &["lists.complete"],
)];

/// The faults of formats that are specified for deliveries only: decimals of amounts and precision of times.
const DELIVERED_CHARGE_FORMATS: &[FieldFault] = &[
    ("fiat_amount", Some(|| json!("49.9")), "has one decimal", &["charges.fiat_amount"]),
    ("asset_amount", Some(|| json!("0.00025")), "has 5 decimals", &["charges.asset_amount"]),
    ("received_amount", Some(|| json!("0.00025000")), "has 8 decimals", &["charges.received_amount"]),
    ("paid_at", Some(|| json!("2026-02-01T10:00:00Z")), "has no microseconds", &["charges.paid_at"]),
];

const LISTED_AND_SINGLE: [EventView; 2] = [EventView::Listed, EventView::Single];

pub(crate) fn add_faults(all: &mut Vec<Fault>) {
    for view in LISTED_AND_SINGLE {
        add_field_faults(all, EVENT, InjectionPoint::Event(view));
        add_field_faults(all, CHARGE, InjectionPoint::Charge(view));
        add_field_faults(all, INVOICE, InjectionPoint::Invoice(view));
    }
    add_part_faults(all, CANCELED_CHARGE, InjectionPoint::Event(EventView::Listed), canceled_charge);
    add_field_faults(all, SINGLE_CHARGE_DIFFERENCES, InjectionPoint::Charge(EventView::Single));
    add_field_faults(all, SINGLE_INVOICE_DIFFERENCES, InjectionPoint::Invoice(EventView::Single));
    add_field_faults(all, LISTED_CHARGE_DIFFERENCES, InjectionPoint::Row(List::Charges));
    add_field_faults(all, DELIVERED_CHARGE_DIFFERENCES, InjectionPoint::DeliveredCharge);
    add_field_faults(all, DELIVERED_INVOICE_DIFFERENCES, InjectionPoint::DeliveredInvoice);
    add_field_faults(all, DELIVERY, InjectionPoint::Delivery);
    add_field_faults(all, CHARGE, InjectionPoint::DeliveredCharge);
    add_field_faults(all, DELIVERED_CHARGE_FORMATS, InjectionPoint::DeliveredCharge);
    add_field_faults(all, INVOICE, InjectionPoint::DeliveredInvoice);
}

fn add_field_faults(all: &mut Vec<Fault>, faults: &[FieldFault], point: InjectionPoint) {
    add_part_faults(all, faults, point, |object| Some(object));
}

/// Returns the charge of a `charge.canceled` event.
fn canceled_charge(event: &mut Value) -> Option<&mut Value> {
    if event["type"] == "charge.canceled" { event.get_mut("charge") } else { None }
}

/// Adds faults, each once per mode, in the fields of a part of each object at an injection point: the part that
/// `part` returns. A fault changes only objects that have the field.
fn add_part_faults(
    all: &mut Vec<Fault>,
    faults: &[FieldFault],
    point: InjectionPoint,
    part: fn(&mut Value) -> Option<&mut Value>,
) {
    for (field, replacement, description, violates) in faults {
        for mode in Mode::BOTH {
            let (field, replacement) = (*field, *replacement);
            let change = move |object: &mut Value| {
                let object = part(object).and_then(Value::as_object_mut);
                let Some(members) = object.filter(|members| members.contains_key(field)) else { return };
                match replacement {
                    None => drop(members.remove(field)),
                    Some(value) => drop(members.insert(field.to_owned(), value())),
                }
            };
            all.push(Fault {
                description,
                field: Some(field),
                violates: violates.to_vec(),
                point,
                position: Position::Any,
                mode: Some(mode),
                change: Change::Object(Box::new(change)),
            });
        }
    }
}
