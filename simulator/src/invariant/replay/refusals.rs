//! Requests under `/v1` that must be refused whatever the state of their object is: an object of another account or
//! mode, or an invalid path, method, object, header or body.

use reference_core::time::Timestamp;
use serde_json::Value;

use super::{ModelReplay, Object, request_fields::read};
use crate::{
    invariant::Invariant,
    model::operation::{BODY_MAX, IDEMPOTENCY_KEY_MAX, Operation, is_json},
    record::{BookId, RecordedCall},
};

/// The refusal that a request must get.
pub(super) enum ExpectedRefusal {
    /// 404: the object belongs to another account or mode than the key.
    ForeignObject { owner: BookId, caller: BookId },
    /// The request is invalid; the body of a 422 must name these fields.
    Invalid { status: u16, invalid_fields: Vec<String> },
}

impl ModelReplay<'_> {
    /// Returns the refusal that a request must get whatever the state of its object is, if any.
    pub(super) fn expected_refusal(&self, call: &RecordedCall) -> Option<ExpectedRefusal> {
        self.foreign_object(call).or_else(|| self.invalid_request(call))
    }

    /// Checks that a request gets this refusal.
    pub(super) fn check_refusal(&mut self, now: Timestamp, call: &RecordedCall, refusal: ExpectedRefusal) {
        match refusal {
            ExpectedRefusal::ForeignObject { owner, caller } => {
                self.findings.check(Invariant::ModesApart, Some(now), || {
                    (call.status != 404).then(|| {
                        let other = if owner.0 == caller.0 { "the other mode" } else { "another account" };
                        let shape =
                            format!("a request for an object of {other}: status {}, not 404", call.status);
                        let key = format!("a {} key", caller.1);
                        (shape, format!("{} {} of {} with {key}", call.method, call.path, owner.1))
                    })
                });
            }
            ExpectedRefusal::Invalid { status, invalid_fields } => {
                let target = format!("{} {}", call.method, call.path);
                self.check_status(
                    Invariant::Edges,
                    now,
                    ("an invalid request", &target),
                    status,
                    call.status,
                );
                if status == 422 && call.status == 422 {
                    self.check_named_fields(now, call, &invalid_fields);
                }
            }
        }
    }

    /// Returns the refusal of a request for an object of another account or mode.
    fn foreign_object(&self, call: &RecordedCall) -> Option<ExpectedRefusal> {
        let mut parts = call.path.trim_matches('/').split('/');
        let (Some("v1"), Some(_), Some(code)) = (parts.next(), parts.next(), parts.next()) else {
            return None;
        };
        let (owner, _) = *self.objects.get(code)?;
        let caller = self.calling_book(call)?;
        (owner != caller).then_some(ExpectedRefusal::ForeignObject { owner, caller })
    }

    /// Returns the refusal of a request with an invalid path, method, object, header or body.
    fn invalid_request(&self, call: &RecordedCall) -> Option<ExpectedRefusal> {
        let method = if call.method == "HEAD" { "GET" } else { &call.method };
        match Operation::find(method, &call.path) {
            Some((operation, code)) => self.invalid_request_of(operation, code, call),
            None => {
                let methods = ["GET", "POST", "PATCH", "DELETE"];
                let found = methods.iter().find_map(|method| Operation::find(method, &call.path));
                let exists = found
                    .is_some_and(|(operation, code)| code.is_none_or(|code| self.is_known(operation, code)));
                let status = if exists { 405 } else { 404 };
                Some(ExpectedRefusal::Invalid { status, invalid_fields: Vec::new() })
            }
        }
    }

    /// Returns the refusal of a request for this operation, if its object, headers or body are invalid.
    /// `code` is that of the object in the path.
    fn invalid_request_of(
        &self,
        operation: Operation,
        code: Option<&str>,
        call: &RecordedCall,
    ) -> Option<ExpectedRefusal> {
        // A missing body and an empty list count as an object without fields.
        let parsed: Option<Value> = match call.body.as_slice() {
            [] => Some(Value::Null),
            bytes => read(bytes),
        };
        let is_object = |body: &&Value| {
            body.is_object() || call.body.is_empty() || body.as_array().is_some_and(Vec::is_empty)
        };
        let body = parsed.as_ref().filter(is_object);
        let invalid_fields = body.map(|body| operation.invalid_fields(body)).unwrap_or_default();
        // A charge needs an amount, or a link with one.
        let is_priced = |body: &Value| {
            (operation.method, operation.path) != ("POST", "/v1/charges")
                || ["amount", "payment_link"].iter().any(|name| body.get(name).is_some())
        };
        let is_valid_key =
            |key: &String| (1..=IDEMPOTENCY_KEY_MAX).contains(&key.chars().count()) && !key.trim().is_empty();
        // The objects of an account without an observer key are unknown.
        let is_observed = self.calling_book(call).is_some_and(|id| self.api_state.books.contains_key(&id));
        let status = match body {
            _ if code.is_some_and(|code| is_observed && !self.is_known(operation, code)) => 404,
            _ if operation.method == "GET" => return None,
            _ if call.body.len() > BODY_MAX => 413,
            _ if !call.body.is_empty() && !is_json(call.content_type.as_deref()) => 415,
            _ if !call.idempotency_key.as_ref().is_none_or(is_valid_key) => 400,
            None => 400,
            Some(body) if invalid_fields.is_empty() && is_priced(body) => return None,
            Some(_) => 422,
        };
        Some(ExpectedRefusal::Invalid { status, invalid_fields })
    }

    /// Returns `true` if the code is that of an object that the operation accepts. Events are checked when they are
    /// read.
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
