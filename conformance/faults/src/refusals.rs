//! Faults in 401, 404 and 429 responses, and responses that distinguish foreign from absent objects and filter values.

use conformance_model::mode::Mode;
use conformance_model::recording::{Caller, Forgery, ObjectKind};
use serde_json::json;

use crate::editable_response::{EditableResponse, INVALID_BYTE};
use crate::fault::{Fault, response_fault};
use crate::injection_point::InjectionPoint;

/// The description of a fault, and the change of the response.
type RefusalFault = (&'static str, fn(&mut EditableResponse));

/// The callers that must be refused, each with the statement that requires it.
const CALLERS: &[(Caller, &str)] = &[
    (Caller::NoKey, "auth.no_header"),
    (Caller::Revoked, "auth.revoked_key"),
    (Caller::Forged(Forgery::EmptyBearer), "auth.empty_bearer"),
    // `OtherScheme` is the scheme `Token`. It has its own statement, because Rails accepts it in place of `Bearer`.
    // The statement `auth.other_scheme` is about a key with the scheme `Basic` or without a scheme.
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
    (Caller::Forged(Forgery::LiveKeyOtherPrefix), "auth.other_prefix"),
    (Caller::Forged(Forgery::UnknownLive), "auth.unknown_key"),
    (Caller::Forged(Forgery::FirstCharacter), "auth.last_character"),
];

/// Responses other than 401 to a request that must get 401.
const NOT_401: &[RefusalFault] = &[
    ("is accepted", |response| {
        *response = EditableResponse::json(200, json!({ "data": [], "meta": { "mode": "test" } }))
    }),
    ("gets the response 403", |response| response.status = 403),
    ("gets the response 500", |response| {
        *response = EditableResponse::json(500, json!({ "message": "Server Error" }))
    }),
    ("is redirected to a login page", |response| {
        response.status = 302;
        response.set_header("location", "/login");
    }),
];

/// Gateway errors. A single one is transient and shows nothing about authentication, so each fault changes every
/// response at its injection point.
const GATEWAY_ERRORS: &[RefusalFault] = &[
    ("always gets the response 502", |response| {
        *response = EditableResponse::json(502, json!({ "message": "Bad gateway." }))
    }),
    ("always gets the response 503", |response| {
        *response = EditableResponse::json(503, json!({ "message": "Unavailable." }))
    }),
];
/// A 429 in place of every response at the injection point. For a revoked key it is not a fault, because a service may
/// lock that key out.
const RATE_LIMITED: RefusalFault = ("always gets the response 429", |response| {
    *response = EditableResponse::json(429, json!({ "message": "Too many requests." }))
});

/// A body with a byte that is not UTF-8.
const NOT_UTF8_BODY: &[RefusalFault] = &[("is refused with bytes that are not UTF-8", |response| {
    response.raw = Some(format!("{{\"message\":\"{INVALID_BYTE}\"}}"));
})];

/// Bodies that are not JSON.
const MALFORMED_BODIES: &[RefusalFault] = &[
    ("is refused with a page of HTML", |response| {
        response.raw = Some("<html><h1>Refused</h1></html>".into());
        response.set_header("content-type", "text/html");
    }),
    ("is refused without a body", |response| response.raw = Some(String::new())),
];

/// Responses that reveal that an object exists in the other mode. The first [`NOT_404_COUNT`] have another status than
/// 404 and are also faults for an absent object.
const REVEALING: &[RefusalFault] = &[
    ("gets the response 403", |response| response.status = 403),
    ("gets the response 410", |response| response.status = 410),
    ("gets the response 500", |response| {
        *response = EditableResponse::json(500, json!({ "message": "Server Error" }))
    }),
    ("is served", |response| *response = EditableResponse::json(200, json!({ "data": { "id": "leak" } }))),
    ("is refused with a different message", |response| {
        *response = EditableResponse::json(response.status, json!({ "message": "Wrong mode." }))
    }),
    ("is refused with an additional header", |response| response.set_header("x-mode", "other")),
    ("is refused with a different media type", |response| {
        response.set_header("content-type", "application/problem+json")
    }),
];

/// The number of responses at the start of [`REVEALING`] whose status is not 404.
const NOT_404_COUNT: usize = 4;

/// Responses that reveal that the object of a filter exists in the other mode. The responses of a correct service are
/// those for an absent object.
const REVEALING_FILTERS: &[RefusalFault] = &[
    ("counts it in `total`", |response| response.body["meta"]["total"] = json!(2)),
    ("returns it", |response| response.body["data"] = json!([{ "code": "leak" }])),
    ("gets the response 403", |response| {
        *response = EditableResponse::json(403, json!({ "message": "Wrong mode." }))
    }),
    ("counts it in `last_page`", |response| response.body["meta"]["last_page"] = json!(2)),
];

/// Faults in the `Retry-After` header of 429 responses.
const RETRY_AFTER: &[RefusalFault] = &[
    ("are refused without `Retry-After`", |response| response.remove_header("retry-after")),
    ("are refused with a string in `Retry-After`", |response| response.set_header("retry-after", "a minute")),
    ("are refused with a fraction in `Retry-After`", |response| response.set_header("retry-after", "59.5")),
    ("are refused with a negative `Retry-After`", |response| response.set_header("retry-after", "-1")),
    ("are refused with a `Retry-After` of two minutes", |response| response.set_header("retry-after", "120")),
    ("are refused with two values in `Retry-After`", |response| {
        response.set_header("retry-after", "60, 120")
    }),
    ("are refused with two `Retry-After` headers", |response| {
        response.headers.push(("retry-after".into(), "120".into()))
    }),
];

/// The paths at which refusals have faults of their own. A path that ends with `/` stands for all paths below it.
const PATHS: [&str; 5] = ["/v1/account", "/v1/charges", "/v1/invoices", "/v1/events", "/v1/events/"];

pub(crate) fn add_faults(all: &mut Vec<Fault>) {
    for (caller, statement) in CALLERS {
        for (description, change) in NOT_401 {
            all.push(response_fault(
                description,
                &[statement, "auth.every_path"],
                InjectionPoint::Unauthorized(*caller, None),
                None,
                *change,
            ));
        }
        for (description, change) in MALFORMED_BODIES.iter().chain(NOT_UTF8_BODY) {
            all.push(response_fault(
                description,
                &["auth.message"],
                InjectionPoint::Unauthorized(*caller, None),
                None,
                *change,
            ));
        }
    }
    for (description, change) in GATEWAY_ERRORS {
        let revoked = InjectionPoint::Unauthorized(Caller::Revoked, None);
        all.push(response_fault(description, &["auth.revoked_key"], revoked, None, *change));
    }
    for (description, change) in GATEWAY_ERRORS.iter().chain([&RATE_LIMITED]) {
        let no_key = InjectionPoint::Unauthorized(Caller::NoKey, None);
        all.push(response_fault(description, &["auth.no_header", "auth.every_path"], no_key, None, *change));
        all.push(response_fault(
            description,
            &["errors.not_found"],
            InjectionPoint::AbsentEvent,
            None,
            *change,
        ));
        all.push(response_fault(
            description,
            &["isolation.not_found"],
            InjectionPoint::ForeignEvent,
            None,
            *change,
        ));
    }
    for path in PATHS {
        for (description, change) in NOT_401 {
            let point = InjectionPoint::Unauthorized(Caller::NoKey, Some(path));
            all.push(response_fault(
                description,
                &["auth.every_path", "auth.no_header"],
                point,
                None,
                *change,
            ));
        }
        for (description, change) in RETRY_AFTER {
            let point = InjectionPoint::RateLimited(Some(path));
            all.push(response_fault(description, &["limits.retry_after"], point, None, *change));
        }
    }
    for (description, change) in MALFORMED_BODIES.iter().chain(NOT_UTF8_BODY) {
        all.push(response_fault(
            description,
            &["limits.json"],
            InjectionPoint::RateLimited(None),
            None,
            *change,
        ));
    }
    add_not_found_faults(all);
}

/// Adds the faults in responses to requests of absent and foreign ids, and to filters by foreign ids.
fn add_not_found_faults(all: &mut Vec<Fault>) {
    for mode in Mode::BOTH.map(Some) {
        for (description, change) in MALFORMED_BODIES {
            all.push(response_fault(
                description,
                &["errors.not_found_json"],
                InjectionPoint::AbsentEvent,
                mode,
                *change,
            ));
        }
        for (description, change) in &REVEALING[..NOT_404_COUNT] {
            all.push(response_fault(
                description,
                &["errors.not_found"],
                InjectionPoint::AbsentEvent,
                mode,
                *change,
            ));
        }
        for (description, change) in REVEALING {
            let violates = ["isolation.not_found", "isolation.indistinguishable"];
            all.push(response_fault(description, &violates, InjectionPoint::ForeignEvent, mode, *change));
            for kind in [ObjectKind::Charge, ObjectKind::Invoice] {
                all.push(response_fault(
                    description,
                    &["isolation.objects"],
                    InjectionPoint::ForeignObject(kind),
                    mode,
                    *change,
                ));
            }
        }
        let filters = [
            ("charge", "isolation.filter_charge"),
            ("invoice", "isolation.filter_invoice"),
            ("payment_link", "isolation.filter_payment_link"),
        ];
        for (name, statement) in filters {
            for (description, change) in REVEALING_FILTERS {
                all.push(response_fault(
                    description,
                    &[statement],
                    InjectionPoint::ForeignFilter(name),
                    mode,
                    *change,
                ));
            }
        }
    }
}
