//! How things of the dashboard look in JSON.

use reference_core::{
    book::Book,
    endpoint::Endpoint,
    id::AccountNo,
    key::ApiKey,
    mode::Mode,
    outbox::{Attempt, Delivery, DeliveryState, Outcome, Trace},
    service::Service,
    wire,
};
use serde_json::{Value, json};

const MICROS_PER_MILLI: u64 = 1_000;

/// A key, without its text.
pub(super) fn key(service: &Service, key: &ApiKey) -> Value {
    json!({
        "id": key.id.as_str(),
        "account": service.account(key.principal.account).id,
        "mode": key.principal.mode.as_str(),
        "hint": key.hint,
        "created_at": key.created_at.to_string(),
        "revoked_at": key.revoked_at.map(|at| at.to_string()),
    })
}

/// A webhook endpoint, without its secret.
pub(super) fn endpoint(service: &Service, account: AccountNo, mode: Mode, endpoint: &Endpoint) -> Value {
    json!({
        "id": endpoint.id.as_str(),
        "account": service.account(account).id,
        "mode": mode.as_str(),
        "url": endpoint.url.to_string(),
        "events": endpoint.events.iter().map(|kind| kind.as_str()).collect::<Vec<_>>(),
        "status": endpoint.status.as_str(),
        "failed_in_a_row": endpoint.failed_in_a_row,
        "created_at": endpoint.created_at.to_string(),
    })
}

/// A delivery with its attempts.
pub(super) fn delivery(account: &str, book: &Book, delivery: &Delivery) -> Value {
    shape_delivery(account, book, delivery, |_, _| {})
}

/// The same with all that went over the wire.
pub(super) fn delivery_in_full(account: &str, book: &Book, delivery: &Delivery) -> Value {
    let mut shape = shape_delivery(account, book, delivery, add_trace);
    shape["request_body"] = json!(String::from_utf8_lossy(&wire::delivery_body(book, delivery)));
    shape
}

fn shape_delivery(
    account: &str,
    book: &Book,
    delivery: &Delivery,
    add: impl Fn(&Attempt, &mut Value),
) -> Value {
    let attempts: Vec<Value> = (1..)
        .zip(&delivery.attempts)
        .map(|(n, attempt)| {
            let mut shape = shape_attempt(n, attempt);
            add(attempt, &mut shape);
            shape
        })
        .collect();
    let next_at = match delivery.state {
        DeliveryState::Waiting(at) => Some(at.to_string()),
        _ => None,
    };
    let endpoint = book.endpoint(delivery.endpoint);
    json!({
        "id": delivery.id.to_string(),
        "account": account,
        "mode": book.mode().as_str(),
        "endpoint": endpoint.id.as_str(),
        "url": endpoint.url.to_string(),
        "event": delivery.parcel.event.map(|(_, id)| id.to_string()),
        "type": delivery.parcel.kind.as_str(),
        "test": delivery.parcel.event.is_none(),
        "status": delivery.state.as_str(),
        "attempts": attempts,
        "next_at": next_at,
        "created_at": delivery.parcel.created_at.to_string(),
    })
}

fn shape_attempt(n: u32, attempt: &Attempt) -> Value {
    let (status, error) = match &attempt.outcome {
        Outcome::Answered(status) => (Some(*status), None),
        Outcome::Unreachable(why) => (None, Some(format!("unreachable: {why}"))),
        Outcome::TimedOut => (None, Some("timeout".to_owned())),
        Outcome::Refused(why) => (None, Some(format!("refused: {why}"))),
    };
    json!({
        "n": n,
        "at": attempt.at.to_string(),
        "ended_at": attempt.ended_at.to_string(),
        "status": status,
        "error": error,
    })
}

/// What went over the wire, as far as the host kept it. Posts inside the simulated network leave no trace,
/// so there the time is the service clock's and the rest is empty.
fn add_trace(attempt: &Attempt, shape: &mut Value) {
    let none = Trace::default();
    let trace = attempt.trace.as_deref().unwrap_or(&none);
    let headers = |all: &[(String, String)]| -> Vec<Value> {
        all.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    shape["duration_ms"] =
        json!(trace.took_ms.unwrap_or(attempt.ended_at.since(attempt.at).0 / MICROS_PER_MILLI));
    shape["address"] = json!(trace.address);
    shape["request_headers"] = json!(headers(&trace.request_headers));
    shape["response_headers"] = json!(headers(&trace.response_headers));
    shape["response_body"] = json!(trace.response_body);
    shape["note"] = json!(trace.note);
}
