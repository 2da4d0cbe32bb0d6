//! The delivery log, and the merchants that deliveries go to.

use reference_core::{
    action::Act,
    book::Book,
    error::ApiError,
    id::{Code, parse_uuid},
    outbox::Delivery,
    wire::fields::{Fields, TEXT_MAX},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Outcome, answer, books, find_book, nothing, parameter, shape};
use crate::{network::Mood, sandbox::Sandbox};

/// So many deliveries are shown at once.
const SHOWN_MAX: usize = 1_000;
const ANSWERS_MAX: usize = 1_000;

pub(super) fn log(sandbox: &Sandbox, query: &str) -> Outcome {
    // Read once, for the whole log may be compared with them. What is no id is no delivery's.
    let endpoint = parameter(query, "endpoint").map(|id| Code::parse(&id));
    let event = parameter(query, "event").map(|id| parse_uuid(&id));
    let wanted = |book: &Book, delivery: &Delivery| {
        let of_endpoint = endpoint.is_none_or(|id| id == Some(book.endpoint(delivery.endpoint).id));
        let of_event =
            event.is_none_or(|id| id.is_some() && id == delivery.parcel.event.map(|(_, event)| event));
        of_endpoint && of_event
    };
    let mut deliveries = Vec::new();
    for (_, _, book) in books(sandbox) {
        let newest = book.outbox().iter().rev().filter(|delivery| wanted(book, delivery)).take(SHOWN_MAX);
        deliveries.extend(newest.map(|delivery| (book, delivery)));
    }
    deliveries.sort_by_key(|(_, delivery)| std::cmp::Reverse(delivery.id));
    // Only now: a busy book must not hide what is newer in another.
    deliveries.truncate(SHOWN_MAX);
    answer(
        "deliveries",
        deliveries.into_iter().map(|(book, delivery)| shape::delivery(book, delivery)).collect(),
    )
}

fn read_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| ApiError::NotFound)
}

pub(super) fn one(sandbox: &Sandbox, id: &str) -> Outcome {
    let id = read_id(id)?;
    let found = books(sandbox).find_map(|(_, _, book)| {
        let outbox = book.outbox();
        Some((book, outbox.get(outbox.find(id)?)))
    });
    let (book, delivery) = found.ok_or(ApiError::NotFound)?;
    answer("delivery", shape::delivery_in_full(book, delivery))
}

pub(super) fn resend(sandbox: &mut Sandbox, id: &str) -> Outcome {
    let id = read_id(id)?;
    let (account, mode) = find_book(sandbox, |book| book.outbox().find(id).is_some())?;
    sandbox.act(account, mode, Act::Resend(id))?;
    nothing()
}

pub(super) fn set_merchant(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["name", "state", "answers"]);
    let name = f.required_text("name", TEXT_MAX);
    let state = f.word("state", Mood::parse);
    let answers: Vec<Mood> = f.words("answers", ANSWERS_MAX, Mood::parse);
    f.finish()?;
    let name = name.ok_or_else(|| ApiError::field("name", "The name field is required."))?;
    // URLs spell hosts in lower case, so no post would ever meet a merchant named otherwise.
    let is_host =
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
    if !is_host {
        let message = "The name field must be what stands before .sim in an endpoint's address: a-z, 0-9, -, _ and dots.";
        return Err(ApiError::field("name", message));
    }
    sandbox.network.set_mood(&format!("{name}.sim"), state, answers);
    answer("merchant", Value::String(name))
}
