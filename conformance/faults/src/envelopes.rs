//! Faults in the account, in JSON formatting, in single events and in filtered lists.

use conformance_model::recording::List;
use conformance_model::words::Mode;
use serde_json::{Value, json};

use crate::fault::{Fault, reply};
use crate::place::{Place, Show};
use crate::reply::Reply;

type AnswerFault = (&'static str, &'static [&'static str], fn(&mut Reply));

const ACCOUNT: &[AnswerFault] = &[
    ("`meta.mode` is missing", &["account.mode"], |it| it.body["meta"]["mode"] = Value::Null),
    ("`meta.mode` is `production`", &["account.mode"], |it| it.body["meta"]["mode"] = json!("production")),
    ("`meta.accepted_assets` is null", &["account.accepted_assets"], |it| {
        it.body["meta"]["accepted_assets"] = Value::Null;
    }),
    ("`meta.accepted_assets` is a text", &["account.accepted_assets"], |it| {
        it.body["meta"]["accepted_assets"] = json!("BTC,ETH");
    }),
    ("it is answered 500", &["account.served"], |it| {
        *it = Reply::json(500, json!({ "message": "Server Error" }));
    }),
];

/// The faults in the format of a response, at each place.
const WRITTEN: &[AnswerFault] = &[
    ("it is called text/html", &["answers.content_type"], |it| it.set("content-type", "text/html")),
    ("it has no Content-Type", &["answers.media_type"], |it| it.drop_header("content-type")),
    ("a warning stands before the JSON", &["answers.json"], |it| {
        it.raw = Some(format!("Warning: deprecated\n{}", it.body));
    }),
    ("it has a byte that is not UTF-8", &["answers.json"], |it| {
        it.raw = Some(it.body.to_string().replacen('{', "{\"\u{fffd}\":0,", 1));
    }),
    ("the JSON names a key twice", &["answers.duplicate_keys"], |it| {
        it.raw = Some(it.body.to_string().replacen('{', "{\"data\":null,", 1));
    }),
];

const SINGLE: &[AnswerFault] = &[
    ("it is answered 404", &["events.single"], |it| {
        *it = Reply::json(404, json!({ "message": "Not found." }));
    }),
    ("it is another event", &["events.single"], |it| {
        let holder = if it.body.get("id").is_some() { &mut it.body } else { &mut it.body["data"] };
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

const FILTERED: &[AnswerFault] = &[
    ("nothing is found", FILTERS, |it| {
        it.body["data"] = json!([]);
        it.body["meta"]["total"] = json!(0);
        it.body["meta"]["last_page"] = json!(1);
        it.body["links"]["next"] = Value::Null;
    }),
    ("only the newest is found", FILTERS, |it| {
        it.body["data"].as_array_mut().into_iter().for_each(|rows| rows.truncate(1));
        it.body["meta"]["total"] = json!(1);
        it.body["meta"]["last_page"] = json!(1);
        it.body["links"]["next"] = Value::Null;
    }),
    ("`total` counts more than is found", &["filters.total", "filters.combined", "paging.length"], |it| {
        let total = it.body["meta"]["total"].as_u64().unwrap_or_default();
        it.body["meta"]["total"] = json!(total + 3);
    }),
    (
        "it is refused with 400",
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
        |it| {
            *it = Reply::json(400, json!({ "message": "This filter is not supported." }));
        },
    ),
];

pub(crate) fn fill(all: &mut Vec<Fault>) {
    let mut each = |places: &[Place], lines: &[AnswerFault]| {
        for place in places {
            for (what, breaks, change) in lines {
                for mode in Mode::BOTH {
                    all.push(reply(what, breaks, *place, Some(mode), *change));
                }
            }
        }
    };
    each(&[Place::Account], ACCOUNT);
    let served = [
        Place::Account,
        Place::Page(List::Charges),
        Place::Page(List::Invoices),
        Place::Page(List::Events),
        Place::Event(Show::Alone),
    ];
    each(&served, WRITTEN);
    each(&[Place::Event(Show::Alone)], SINGLE);
    each(&["status", "payment_link", "type", "charge", "invoice"].map(Place::Filtered), FILTERED);
}
