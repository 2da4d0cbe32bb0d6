//! Requests that are refused in every state: an invalid path, method, object, key or body.

use reference_core::time::Timestamp;
use serde_json::Value;

use super::{ModelReplay, Object, request_fields::read};
use crate::{
    invariant::Invariant,
    model::operation::{BODY_MAX, IDEMPOTENCY_KEY_MAX, Operation, is_json},
    record::RecordedCall,
};

impl ModelReplay<'_> {
    /// Checks the status of a request that must be refused. Returns `true` for such a request.
    pub(super) fn is_malformed(&mut self, at: Timestamp, call: &RecordedCall) -> bool {
        let method = if call.method == "HEAD" { "GET" } else { &call.method };
        let is_looked_at = self.calling_book(call).is_some_and(|id| self.shown.books.contains_key(&id));
        let mut invalid = Vec::new();
        let refusal = match Operation::find(method, &call.path) {
            None => {
                let any = ["GET", "POST", "PATCH", "DELETE"];
                let found = any.iter().find_map(|method| Operation::find(method, &call.path));
                let is_there = found
                    .is_some_and(|(operation, code)| code.is_none_or(|code| self.is_known(operation, code)));
                Some(if is_there { 405 } else { 404 })
            }
            Some((operation, code)) => {
                // A missing body and an empty list count as an object without fields.
                let parsed: Option<Value> = match call.body.as_slice() {
                    [] => Some(Value::Null),
                    bytes => read(bytes),
                };
                let is_object = |body: &&Value| {
                    body.is_object() || call.body.is_empty() || body.as_array().is_some_and(Vec::is_empty)
                };
                let body = parsed.as_ref().filter(is_object);
                invalid = body.map(|body| operation.invalid_fields(body)).unwrap_or_default();
                let takes = |body: &Value| {
                    // A charge needs an amount, or a link with one.
                    let is_charge = (method, operation.path) == ("POST", "/v1/charges");
                    let is_priced = ["amount", "payment_link"].iter().any(|name| body.get(name).is_some());
                    invalid.is_empty() && (is_priced || !is_charge)
                };
                let is_key = |key: &String| {
                    (1..=IDEMPOTENCY_KEY_MAX).contains(&key.chars().count()) && !key.trim().is_empty()
                };
                match () {
                    () if code.is_some_and(|code| is_looked_at && !self.is_known(operation, code)) => {
                        Some(404)
                    }
                    () if method == "GET" => None,
                    () if call.body.len() > BODY_MAX => Some(413),
                    () if !call.body.is_empty() && !is_json(call.content_type.as_deref()) => Some(415),
                    () if !call.idempotency_key.as_ref().is_none_or(is_key) => Some(400),
                    () if body.is_none() => Some(400),
                    () if !body.is_some_and(takes) => Some(422),
                    () => None,
                }
            }
        };
        if let Some(status) = refusal {
            let about = format!("{} {} at {at}", call.method, call.path);
            self.check_status(Invariant::Edges, at, ("a wrong request", &about), status, call.status);
            if status == 422 && call.status == 422 {
                self.judge_named_fields(at, call, &invalid);
            }
        }
        refusal.is_some()
    }

    /// Returns `true` if the code is one of an object that the operation takes. Events are checked when they are read.
    fn is_known(&self, operation: Operation, code: &str) -> bool {
        matches!(
            (operation.path.split('/').nth(2), self.objects.get(code)),
            (Some("events"), _)
                | (Some("charges"), Some((_, Object::Charge(_))))
                | (Some("invoices"), Some((_, Object::Invoice(_))))
                | (Some("payment-links"), Some((_, Object::Link(_))))
        )
    }
}
