//! The delivery log, and the merchants that deliveries go to.

use reference_core::{
    action::Act,
    error::ApiError,
    wire::fields::{Fields, TEXT_MAX},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Outcome, answer, find_book, nothing, parameter, shape};
use crate::{network::Mood, sandbox::Sandbox};

/// So many deliveries are shown at once.
const SHOWN_MAX: usize = 1_000;
const ANSWERS_MAX: usize = 1_000;

pub(super) fn log(sandbox: &Sandbox, query: &str) -> Outcome {
    let (endpoint, event) = (parameter(query, "endpoint"), parameter(query, "event"));
    let mut deliveries: Vec<_> = sandbox
        .service()
        .books()
        .flat_map(|(_, _, book)| book.outbox().iter().rev().map(move |delivery| (book, delivery)))
        .filter(|(book, delivery)| {
            let of_endpoint = endpoint
                .as_ref()
                .is_none_or(|id| book.endpoint(delivery.endpoint).id.as_str() == id.as_ref());
            let of_event = event.as_ref().is_none_or(|id| {
                delivery.parcel.event.is_some_and(|(_, event)| event.to_string() == id.as_ref())
            });
            of_endpoint && of_event
        })
        .take(SHOWN_MAX)
        .collect();
    deliveries.sort_by_key(|(_, delivery)| std::cmp::Reverse(delivery.id));
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
    let found = sandbox.service().books().find_map(|(_, _, book)| {
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
    sandbox.network.set_mood(&format!("{name}.sim"), state, answers);
    answer("merchant", Value::String(name))
}
