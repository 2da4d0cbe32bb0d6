//! How things of the dashboard look in JSON.

use reference_core::{
    book::Book,
    endpoint::Endpoint,
    id::AccountNo,
    key::ApiKey,
    mode::Mode,
    outbox::{Delivery, DeliveryState, Outcome},
    service::Service,
};
use serde_json::{Value, json};

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
pub(super) fn delivery(book: &Book, delivery: &Delivery) -> Value {
    let attempts: Vec<Value> = delivery
        .attempts
        .iter()
        .enumerate()
        .map(|(n, attempt)| {
            let (status, error) = match &attempt.outcome {
                Outcome::Answered(status) => (Some(*status), None),
                Outcome::Unreachable(why) => (None, Some(format!("unreachable: {why}"))),
                Outcome::TimedOut => (None, Some("timeout".to_owned())),
                Outcome::Refused(why) => (None, Some(format!("refused: {why}"))),
            };
            json!({
                "n": n + 1,
                "at": attempt.at.to_string(),
                "ended_at": attempt.ended_at.to_string(),
                "status": status,
                "error": error,
            })
        })
        .collect();
    let next_at = match delivery.state {
        DeliveryState::Waiting(at) => Some(at.to_string()),
        _ => None,
    };
    json!({
        "id": delivery.id.to_string(),
        "mode": book.mode().as_str(),
        "endpoint": book.endpoint(delivery.endpoint).id.as_str(),
        "event": delivery.parcel.event.map(|(_, id)| id.to_string()),
        "type": delivery.parcel.kind.as_str(),
        "test": delivery.parcel.event.is_none(),
        "status": delivery.state.as_str(),
        "attempts": attempts,
        "next_at": next_at,
        "created_at": delivery.parcel.created_at.to_string(),
    })
}
