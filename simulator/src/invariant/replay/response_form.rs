//! Checks of the form of responses under `/v1`: the headers of every one, and the bodies of refusals.

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

/// Returns the methods of a path, as `Allow` lists them; `HEAD` is possible wherever `GET` is.
fn allowed_methods(path: &str) -> BTreeSet<&'static str> {
    let methods = ["GET", "POST", "PATCH", "DELETE"];
    let mut allowed: BTreeSet<&str> =
        methods.into_iter().filter(|method| Operation::find(method, path).is_some()).collect();
    if allowed.contains("GET") {
        allowed.insert("HEAD");
    }
    allowed
}

/// Returns the error of a refusal's body by its form, or `None`: a message, and for 422 the messages of each field, of
/// which the message quotes one and counts the others.
fn fault_of_refusal(call: &RecordedCall) -> Option<&'static str> {
    let Ok(body) = serde_json::from_slice::<Map<String, Value>>(&call.answer) else {
        return Some("is not a JSON object");
    };
    let Some(message) = body.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return Some("has no message");
    };
    if call.status != 422 {
        return (body.len() > 1).then_some("has another field than the message");
    }
    let errors = body.get("errors").and_then(Value::as_object).filter(|errors| !errors.is_empty());
    let Some(errors) = errors.filter(|_| body.len() == 2) else { return Some("has no errors by field") };
    let mut messages: Vec<&str> = Vec::new();
    for of_field in errors.values() {
        let texts = of_field.as_array().filter(|list| !list.is_empty());
        let Some(texts) =
            texts.and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<&str>>>())
        else {
            return Some("has a field without messages");
        };
        messages.extend(texts);
    }
    let rest = match messages.len() - 1 {
        0 => String::new(),
        1 => " (and 1 more error)".to_owned(),
        more => format!(" (and {more} more errors)"),
    };
    let is_summary = message.strip_suffix(&rest).is_some_and(|first| messages.contains(&first));
    (!is_summary).then_some("has a message that does not sum up the errors")
}

impl ModelReplay<'_> {
    /// Checks the headers of a response, and its body if it is a refusal. `remaining` is the rest of the rate limit;
    /// `None` for a request that no key is charged for.
    pub(super) fn judge_form(&mut self, at: Timestamp, call: &RecordedCall, remaining: Option<usize>) {
        let about = || format!("{} {} at {at}, answered {}", call.method, call.path, call.status);
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
        let other = call.headers.iter().find(|(name, _)| !expected.iter().any(|(known, _)| known == name));
        self.findings.check(Invariant::Edges, Some(at), || match (wrong, other) {
            (Some((name, value)), _) => {
                let value = value.as_deref().unwrap_or("a value");
                let actual = call.header(name).unwrap_or("none");
                Some((
                    format!("the header {name} is wrong"),
                    format!("{}: expected {value}, got {actual}", about()),
                ))
            }
            (None, Some((name, value))) => {
                Some((format!("there is a header {name}"), format!("{}: {value}", about())))
            }
            (None, None) => None,
        });
        if let Some(allow) = call.header("allow") {
            let allow: BTreeSet<&str> = allow.split(',').map(str::trim).collect();
            self.findings.check(Invariant::Edges, Some(at), || {
                let shape = "the header allow does not list the methods of the path";
                (allow != allowed_methods(&call.path)).then(|| (shape.to_owned(), about()))
            });
        }
        if call.status < 400 {
            return;
        }
        let fault = fault_of_refusal(call);
        self.findings.check(Invariant::Edges, Some(at), || {
            fault.map(|fault| (format!("the body of a refusal {fault}"), about()))
        });
        // An object of another book must look like an absent one, and an unknown key like a revoked one.
        if matches!(call.status, 401 | 404) {
            let first: &Bytes = self.refusals.entry(call.status).or_insert_with(|| call.answer.clone());
            let is_same = *first == call.answer;
            self.findings.check(Invariant::ModesApart, Some(at), || {
                let shape = format!("two refusals with {} differ", call.status);
                (!is_same).then(|| (shape, about()))
            });
        }
    }

    /// Checks that a refusal names every invalid field.
    pub(super) fn judge_named_fields(&mut self, at: Timestamp, call: &RecordedCall, fields: &[String]) {
        let body: Value = serde_json::from_slice(&call.answer).unwrap_or_default();
        let names = |field: &str| {
            let is_it = |name: &String| {
                name.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            body["errors"].as_object().is_some_and(|errors| errors.keys().any(is_it))
        };
        let missing = fields.iter().find(|field| !names(field));
        self.findings.check(Invariant::Edges, Some(at), || {
            missing.map(|field| {
                let shape = "a refusal does not name an invalid field";
                (shape.to_owned(), format!("{field} in {} {} at {at}", call.method, call.path))
            })
        });
    }
}
