//! Faults in the account, in JSON formatting, in single events and in filtered lists.

use conformance_model::mode::Mode;
use conformance_model::recording::List;
use serde_json::{Value, json};

use crate::editable_response::{EditableResponse, INVALID_BYTE};
use crate::fault::{Fault, response_fault};
use crate::injection_point::{EventView, InjectionPoint};

/// The description of a fault, the statements of which at least one must be violated, and the change of the response.
type ResponseFault = (&'static str, &'static [&'static str], fn(&mut EditableResponse));

const ACCOUNT: &[ResponseFault] = &[
    ("`meta.mode` is null", &["account.mode"], |response| response.body["meta"]["mode"] = Value::Null),
    ("`meta.mode` is `production`", &["account.mode"], |response| {
        response.body["meta"]["mode"] = json!("production")
    }),
    ("`meta.accepted_assets` is null", &["account.accepted_assets"], |response| {
        response.body["meta"]["accepted_assets"] = Value::Null;
    }),
    ("`meta.accepted_assets` is a string", &["account.accepted_assets"], |response| {
        response.body["meta"]["accepted_assets"] = json!("BTC,ETH");
    }),
    ("the response is 500", &["account.served"], |response| {
        *response = EditableResponse::json(500, json!({ "message": "Server Error" }));
    }),
];

/// The faults in the format of a successful response.
const FORMAT: &[ResponseFault] = &[
    // `answers.content_type` is required: the type is not a wrong one. `answers.media_type` is recommended: there is a type.
    ("the response is labelled text/html", &["answers.content_type"], |response| {
        response.set_header("content-type", "text/html")
    }),
    ("the response has no Content-Type", &["answers.media_type"], |response| {
        response.remove_header("content-type")
    }),
    ("a warning precedes the JSON", &["answers.json"], |response| {
        response.raw = Some(format!("Warning: deprecated\n{}", response.body));
    }),
    ("the response has a byte that is not UTF-8", &["answers.json"], |response| {
        response.raw = Some(response.body.to_string().replacen('{', &format!("{{\"{INVALID_BYTE}\":0,"), 1));
    }),
    ("the JSON has a duplicate key", &["answers.duplicate_keys"], |response| {
        response.raw = Some(response.body.to_string().replacen('{', "{\"data\":null,", 1));
    }),
];

const SINGLE_EVENT: &[ResponseFault] = &[
    ("the response is 404", &["events.single"], |response| {
        *response = EditableResponse::json(404, json!({ "message": "Not found." }));
    }),
    ("a different event is returned", &["events.single"], |response| {
        let holder =
            if response.body.get("id").is_some() { &mut response.body } else { &mut response.body["data"] };
        holder["id"] = json!("0190a5c4-7f3e-7abc-8def-aaaaaaaaaaaa");
    }),
];

const FILTERS: &[&str] = &[
    "filters.total",
    "filters.type",
    "filters.status",
    "filters.charge",
    "filters.invoice",
    "filters.payment_link",
    "filters.combined",
];

const FILTERED: &[ResponseFault] = &[
    ("no record is found", FILTERS, |response| keep_first_records(response, 0)),
    ("only the newest record is found", FILTERS, |response| keep_first_records(response, 1)),
    (
        "`total` is higher than the number of found records",
        &["filters.total", "filters.combined", "paging.length"],
        |response| {
            let total = response.body["meta"]["total"].as_u64().unwrap_or_default();
            response.body["meta"]["total"] = json!(total + 3);
        },
    ),
    (
        "the request is refused with 400",
        &[
            "filters.type",
            "filters.status",
            "filters.charge",
            "filters.invoice",
            "filters.payment_link",
            "filters.combined",
            "filters.total",
            "lists.served",
        ],
        |response| {
            *response = EditableResponse::json(400, json!({ "message": "This filter is not supported." }));
        },
    ),
];

/// Reduces a list to its first records, on one page.
fn keep_first_records(response: &mut EditableResponse, records_max: usize) {
    response.body["data"].as_array_mut().into_iter().for_each(|records| records.truncate(records_max));
    response.body["meta"]["total"] = json!(records_max);
    response.body["meta"]["last_page"] = json!(1);
    response.body["links"]["next"] = Value::Null;
}

pub(crate) fn add_faults(all: &mut Vec<Fault>) {
    let mut add = |points: &[InjectionPoint], faults: &[ResponseFault]| {
        for point in points {
            for (description, violates, change) in faults {
                for mode in Mode::BOTH {
                    all.push(response_fault(description, violates, *point, Some(mode), *change));
                }
            }
        }
    };
    add(&[InjectionPoint::Account], ACCOUNT);
    let successful = [
        InjectionPoint::Account,
        InjectionPoint::Page(List::Charges),
        InjectionPoint::Page(List::Invoices),
        InjectionPoint::Page(List::Events),
        InjectionPoint::Event(EventView::Single),
    ];
    add(&successful, FORMAT);
    add(&[InjectionPoint::Event(EventView::Single)], SINGLE_EVENT);
    add(&["status", "payment_link", "type", "charge", "invoice"].map(InjectionPoint::Filtered), FILTERED);
}
