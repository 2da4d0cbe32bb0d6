//! Checks of the format of responses under `/v1`: the headers of every response, and the bodies of refusals.

use std::collections::BTreeSet;

use bytes::Bytes;
use reference_core::time::Timestamp;
use serde_json::{Map, Value};

use super::ModelReplay;
use crate::{
    invariant::{Invariant, limits::PER_MINUTE},
    model::operation::Operation,
    record::RecordedCall,
};

/// Returns the methods of a path, as `Allow` lists them; `HEAD` is allowed wherever `GET` is.
fn allowed_methods(path: &str) -> BTreeSet<&'static str> {
    let methods = ["GET", "POST", "PATCH", "DELETE"];
    let mut allowed: BTreeSet<&str> =
        methods.into_iter().filter(|method| Operation::find(method, path).is_some()).collect();
    if allowed.contains("GET") {
        allowed.insert("HEAD");
    }
    allowed
}

/// Returns the format error in the body of a refusal, if any. The body has a message; for 422, it also has the errors of
/// each field, and the message quotes one of them and counts the others.
fn format_error(call: &RecordedCall) -> Option<&'static str> {
    let Ok(body) = serde_json::from_slice::<Map<String, Value>>(&call.response_body) else {
        return Some("is not a JSON object");
    };
    let Some(message) = body.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return Some("has no message");
    };
    if call.status != 422 {
        return (body.len() > 1).then_some("has another field than the message");
    }
    let errors = body.get("errors").and_then(Value::as_object).filter(|errors| !errors.is_empty());
    let Some(errors) = errors.filter(|_| body.len() == 2) else { return Some("has no field errors") };
    let mut messages: Vec<&str> = Vec::new();
    for field_errors in errors.values() {
        let list = field_errors.as_array().filter(|list| !list.is_empty());
        let Some(field_messages) =
            list.and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<&str>>>())
        else {
            return Some("has a field without messages");
        };
        messages.extend(field_messages);
    }
    let count_of_others = match messages.len() - 1 {
        0 => String::new(),
        1 => " (and 1 more error)".to_owned(),
        more => format!(" (and {more} more errors)"),
    };
    let is_summary = message.strip_suffix(&count_of_others).is_some_and(|first| messages.contains(&first));
    (!is_summary).then_some("has a message that does not summarize the errors")
}

impl ModelReplay<'_> {
    /// Checks the headers of a response, and its body if it is a refusal. `remaining` is the number of
    /// requests left in the rate limit; `None` for a request without a valid key.
    pub(super) fn check_response_format(
        &mut self,
        now: Timestamp,
        call: &RecordedCall,
        remaining: Option<usize>,
    ) {
        let about = || format!("{} {} at {now}, status {}", call.method, call.path, call.status);
        let mut expected: Vec<(&str, Option<String>)> = Vec::new();
        if let Some(remaining) = remaining {
            expected.push(("x-ratelimit-limit", Some(PER_MINUTE.to_string())));
            expected.push(("x-ratelimit-remaining", Some(remaining.to_string())));
        }
        match call.status {
            401 => expected.push(("www-authenticate", Some("Bearer".to_owned()))),
            405 => expected.push(("allow", None)),
            429 | 503 => expected.push(("retry-after", None)),
            _ => {}
        }
        if call.is_replayed() {
            expected.push(("idempotent-replayed", None));
        }
        let wrong = expected.iter().find(|(name, value)| match (call.header(name), value) {
            (None, _) => true,
            (Some(actual), Some(value)) => actual != value,
            (Some(_), None) => false,
        });
        let unexpected =
            call.headers.iter().find(|(name, _)| !expected.iter().any(|(known, _)| known == name));
        self.findings.check(Invariant::Edges, Some(now), || match (wrong, unexpected) {
            (Some((name, value)), _) => {
                let value = value.as_deref().unwrap_or("a value");
                let actual = call.header(name).unwrap_or("none");
                Some((
                    format!("the header {name} is wrong"),
                    format!("{}: expected {value}, got {actual}", about()),
                ))
            }
            (None, Some((name, value))) => {
                Some((format!("there is an unexpected header {name}"), format!("{}: {value}", about())))
            }
            (None, None) => None,
        });
        if let Some(allow) = call.header("allow") {
            let listed: BTreeSet<&str> = allow.split(',').map(str::trim).collect();
            self.findings.check(Invariant::Edges, Some(now), || {
                let shape = "the header allow does not list the methods of the path";
                (listed != allowed_methods(&call.path)).then(|| (shape.to_owned(), about()))
            });
        }
        if call.status < 400 {
            return;
        }
        let error = format_error(call);
        self.findings.check(Invariant::Edges, Some(now), || {
            error.map(|error| (format!("the body of a refusal {error}"), about()))
        });
        // A client must not be able to distinguish an object of another book from a missing one, nor an unknown key from a
        // revoked one.
        if matches!(call.status, 401 | 404) {
            let first: &Bytes =
                self.first_refusals.entry(call.status).or_insert_with(|| call.response_body.clone());
            let is_same = *first == call.response_body;
            self.findings.check(Invariant::ModesApart, Some(now), || {
                let shape = format!("the bodies of two responses with status {} differ", call.status);
                (!is_same).then(|| (shape, about()))
            });
        }
    }

    /// Checks that a refusal names every invalid field.
    pub(super) fn check_named_fields(&mut self, now: Timestamp, call: &RecordedCall, fields: &[String]) {
        let body: Value = serde_json::from_slice(&call.response_body).unwrap_or_default();
        let names = |field: &str| {
            let is_in_field = |name: &String| {
                name.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            body["errors"].as_object().is_some_and(|errors| errors.keys().any(is_in_field))
        };
        let missing = fields.iter().find(|field| !names(field));
        self.findings.check(Invariant::Edges, Some(now), || {
            missing.map(|field| {
                let shape = "a refusal does not name an invalid field";
                (shape.to_owned(), format!("{field} in {} {} at {now}", call.method, call.path))
            })
        });
    }
}
