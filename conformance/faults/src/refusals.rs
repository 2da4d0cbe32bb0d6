//! Faults in 401, 404 and 429 responses, and differences between foreign and absent objects.

use conformance_model::recording::{Caller, Forgery, ObjectKind};
use conformance_model::words::Mode;
use serde_json::json;

use crate::fault::{Fault, reply};
use crate::place::Place;
use crate::reply::Reply;

type RefusalFault = (&'static str, fn(&mut Reply));

/// The callers that must be refused, each with its statement.
const CALLERS: &[(Caller, &str)] = &[
    (Caller::NoKey, "auth.no_header"),
    (Caller::Revoked, "auth.revoked_key"),
    (Caller::Forged(Forgery::EmptyBearer), "auth.empty_bearer"),
    (Caller::Forged(Forgery::OtherScheme), "auth.token_scheme"),
    (Caller::Forged(Forgery::BasicScheme), "auth.other_scheme"),
    (Caller::Forged(Forgery::NoScheme), "auth.other_scheme"),
    (Caller::Forged(Forgery::Unknown), "auth.unknown_key"),
    (Caller::Forged(Forgery::LastCharacter), "auth.last_character"),
    (Caller::Forged(Forgery::LetterCase), "auth.letter_case"),
    (Caller::Forged(Forgery::Appended), "auth.appended"),
    (Caller::Forged(Forgery::WordAppended), "auth.appended"),
    (Caller::Forged(Forgery::BasicUser), "auth.other_scheme"),
    (Caller::Forged(Forgery::ListAppended), "auth.appended"),
    (Caller::Forged(Forgery::Encoded), "auth.encoded"),
    (Caller::Forged(Forgery::Shortened), "auth.shortened"),
    (Caller::Forged(Forgery::OtherPrefix), "auth.other_prefix"),
];

const LET_IN: &[RefusalFault] = &[
    ("is let in", |it| *it = Reply::json(200, json!({ "data": [], "meta": { "mode": "test" } }))),
    ("is answered 403", |it| it.status = 403),
    ("is answered 500", |it| *it = Reply::json(500, json!({ "message": "Server Error" }))),
    ("is sent to a login page", |it| {
        it.status = 302;
        it.set("location", "/login");
    }),
];

/// The responses that are not usable if every request gets them.
const UNCLEAR: &[RefusalFault] = &[
    ("is always answered 502", |it| *it = Reply::json(502, json!({ "message": "Bad gateway." }))),
    ("is always answered 503", |it| *it = Reply::json(503, json!({ "message": "Unavailable." }))),
];
/// A 429, which may be a lockout for a revoked key, but is not usable for other requests.
const LOCKED: RefusalFault =
    ("is always answered 429", |it| *it = Reply::json(429, json!({ "message": "Too many requests." })));

const GARBLED: &[RefusalFault] = &[("is refused with bytes that are not UTF-8", |it| {
    it.raw = Some(format!("{{\"message\":\"{}\"}}", char::REPLACEMENT_CHARACTER));
})];

const UNREADABLE: &[RefusalFault] = &[
    ("is refused with a page of HTML", |it| {
        it.raw = Some("<html><h1>Refused</h1></html>".into());
        it.set("content-type", "text/html");
    }),
    ("is refused without a body", |it| it.raw = Some(String::new())),
];

/// The responses that reveal the existence of an object in the other mode.
const TEXT_FAULTS: &[RefusalFault] = &[
    ("is answered 403", |it| it.status = 403),
    ("is answered 410", |it| it.status = 410),
    ("is answered 500", |it| *it = Reply::json(500, json!({ "message": "Server Error" }))),
    ("is served", |it| *it = Reply::json(200, json!({ "data": { "id": "leak" } }))),
    ("is refused in other words", |it| *it = Reply::json(it.status, json!({ "message": "Wrong mode." }))),
    ("is refused with one header more", |it| it.set("x-mode", "other")),
    ("is refused with another media type", |it| it.set("content-type", "application/problem+json")),
];

const FILTER_TELLS: &[RefusalFault] = &[
    ("counts them", |it| it.body["meta"]["total"] = json!(2)),
    ("shows them", |it| it.body["data"] = json!([{ "code": "leak" }])),
    ("is answered 403", |it| *it = Reply::json(403, json!({ "message": "Wrong mode." }))),
    ("knows their pages", |it| it.body["meta"]["last_page"] = json!(2)),
];

const RETRY_AFTER: &[RefusalFault] = &[
    ("are refused without `Retry-After`", |it| it.drop_header("retry-after")),
    ("are refused with `Retry-After` in words", |it| it.set("retry-after", "a minute")),
    ("are refused with `Retry-After` in a fraction of seconds", |it| it.set("retry-after", "59.5")),
    ("are refused with `Retry-After` below zero", |it| it.set("retry-after", "-1")),
    ("are refused with `Retry-After` of two minutes", |it| it.set("retry-after", "120")),
    ("are refused with two values in `Retry-After`", |it| it.set("retry-after", "60, 120")),
    ("are refused with `Retry-After` twice", |it| it.headers.push(("retry-after".into(), "120".into()))),
];

const PATHS: [&str; 5] = ["/v1/account", "/v1/charges", "/v1/invoices", "/v1/events", "/v1/events/"];

pub(crate) fn fill(all: &mut Vec<Fault>) {
    for (caller, statement) in CALLERS {
        for (what, change) in LET_IN {
            all.push(reply(
                what,
                &[statement, "auth.every_path"],
                Place::Unauthorized(*caller, None),
                None,
                *change,
            ));
        }
        for (what, change) in UNREADABLE.iter().chain(GARBLED) {
            all.push(reply(what, &["auth.message"], Place::Unauthorized(*caller, None), None, *change));
        }
    }
    for (what, change) in UNCLEAR {
        let revoked = Place::Unauthorized(Caller::Revoked, None);
        all.push(reply(what, &["auth.revoked_key"], revoked, None, *change));
    }
    for (what, change) in UNCLEAR.iter().chain([&LOCKED]) {
        let no_key = Place::Unauthorized(Caller::NoKey, None);
        all.push(reply(what, &["auth.no_header", "auth.every_path"], no_key, None, *change));
        all.push(reply(what, &["errors.not_found"], Place::Absent, None, *change));
        all.push(reply(what, &["isolation.not_found"], Place::Foreign, None, *change));
    }
    for path in PATHS {
        for (what, change) in LET_IN {
            let place = Place::Unauthorized(Caller::NoKey, Some(path));
            all.push(reply(what, &["auth.every_path", "auth.no_header"], place, None, *change));
        }
        for (what, change) in RETRY_AFTER {
            let place = Place::TooMany(Some(path));
            all.push(reply(what, &["limits.retry_after"], place, None, *change));
        }
    }
    for (what, change) in UNREADABLE.iter().chain(GARBLED) {
        all.push(reply(what, &["limits.json"], Place::TooMany(None), None, *change));
    }
    for mode in Mode::BOTH.map(Some) {
        for (what, change) in UNREADABLE {
            all.push(reply(what, &["errors.not_found_json"], Place::Absent, mode, *change));
        }
        for (what, change) in &TEXT_FAULTS[..4] {
            all.push(reply(what, &["errors.not_found"], Place::Absent, mode, *change));
        }
        for (what, change) in TEXT_FAULTS {
            let breaks = ["isolation.not_found", "isolation.indistinguishable"];
            all.push(reply(what, &breaks, Place::Foreign, mode, *change));
            for kind in [ObjectKind::Charge, ObjectKind::Invoice] {
                all.push(reply(what, &["isolation.objects"], Place::ForeignObject(kind), mode, *change));
            }
        }
        let filters = [
            ("charge", "isolation.filter_charge"),
            ("invoice", "isolation.filter_invoice"),
            ("payment_link", "isolation.filter_payment_link"),
        ];
        for (name, statement) in filters {
            for (what, change) in FILTER_TELLS {
                all.push(reply(what, &[statement], Place::ForeignFilter(name), mode, *change));
            }
        }
    }
}
