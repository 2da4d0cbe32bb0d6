//! The delivery log, and the merchants that deliveries go to.

use std::borrow::Cow;

use reference_core::{
    action::Act,
    book::Book,
    error::ApiError,
    event::{Event, Subject},
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

/// Which part of the log is asked for. Read once, for the whole log may be compared with it.
struct Filter<'q> {
    account: Option<Cow<'q, str>>,
    mode: Option<Cow<'q, str>>,
    status: Option<Cow<'q, str>>,
    /// What is no id is no delivery's.
    endpoint: Option<Option<Code>>,
    event: Option<Option<Uuid>>,
    charge: Option<Option<Code>>,
    invoice: Option<Option<Code>>,
    /// A delivery of one book: what is older is asked of that book only.
    before: Option<Uuid>,
}

impl Filter<'_> {
    fn takes_book(&self, account: &str, book: &Book) -> bool {
        self.account.as_ref().is_none_or(|wanted| wanted == account)
            && self.mode.as_ref().is_none_or(|wanted| wanted == book.mode().as_str())
    }

    /// Newest first, before the filters that look at each delivery.
    fn of_book<'b>(&self, book: &'b Book) -> Box<dyn Iterator<Item = &'b Delivery> + 'b> {
        let Some(events) = self.events(book) else {
            return Box::new(book.outbox().before(self.before).into_iter().flatten());
        };
        // Deliveries of an event were opened with it, so nobody has to look through the log for them.
        let of_event = move |event: &'b Event| {
            let opened = book.outbox().opened_at(event.created_at);
            opened.filter(move |delivery| delivery.parcel.event.is_some_and(|(_, id)| id == event.id))
        };
        Box::new(events.into_iter().rev().flat_map(of_event))
    }

    /// The events that are asked for, oldest first; nothing if any will do.
    fn events<'b>(&self, book: &'b Book) -> Option<Vec<&'b Event>> {
        let timeline =
            |subject: Option<Subject>| subject.into_iter().flat_map(|it| book.events().timeline(it));
        if let Some(id) = self.event {
            let found = id.and_then(|id| book.find_event(id).ok());
            return Some(found.map(|no| book.events().get(no)).into_iter().collect());
        }
        if let Some(code) = self.charge {
            let found = code.and_then(|code| book.find_charge(code).ok());
            return Some(timeline(found.map(Subject::Charge)).collect());
        }
        let code = self.invoice?;
        let found = code.and_then(|code| book.find_invoice(code).ok());
        Some(timeline(found.map(Subject::Invoice)).collect())
    }

    fn takes(&self, book: &Book, delivery: &Delivery) -> bool {
        self.endpoint.is_none_or(|id| id == Some(book.endpoint(delivery.endpoint).id))
            && self.status.as_ref().is_none_or(|wanted| wanted == delivery.state.as_str())
    }
}

pub(super) fn log(sandbox: &Sandbox, query: &str) -> Outcome {
    let code = |name| parameter(query, name).map(|id| Code::parse(&id));
    let wanted = Filter {
        account: parameter(query, "account"),
        mode: parameter(query, "mode"),
        status: parameter(query, "status"),
        endpoint: code("endpoint"),
        charge: code("charge"),
        invoice: code("invoice"),
        event: parameter(query, "event").map(|id| parse_uuid(&id)),
        before: parameter(query, "before").map(|id| parse_uuid(&id).ok_or(ApiError::NotFound)).transpose()?,
    };
    let limit = match parameter(query, "limit") {
        None => SHOWN_MAX,
        Some(text) => text.parse().ok().filter(|limit| (1..=SHOWN_MAX).contains(limit)).ok_or_else(|| {
            ApiError::field("limit", format!("The limit field must be a whole number from 1 to {SHOWN_MAX}."))
        })?,
    };
    let mut deliveries = Vec::new();
    let service = sandbox.service();
    for (account, _, book) in books(sandbox) {
        let account = &*service.account(account).id;
        if wanted.takes_book(account, book) {
            let all = wanted.of_book(book);
            let newest = all.filter(|delivery| wanted.takes(book, delivery)).take(limit);
            deliveries.extend(newest.map(|delivery| (account, book, delivery)));
        }
    }
    deliveries.sort_by_key(|(_, _, delivery)| std::cmp::Reverse(delivery.id));
    // Only now: a busy book must not hide what is newer in another.
    deliveries.truncate(limit);
    let shapes =
        deliveries.into_iter().map(|(account, book, delivery)| shape::delivery(account, book, delivery));
    answer("deliveries", shapes.collect())
}

fn read_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| ApiError::NotFound)
}

pub(super) fn one(sandbox: &Sandbox, id: &str) -> Outcome {
    let id = read_id(id)?;
    let service = sandbox.service();
    let found = books(sandbox).find_map(|(account, _, book)| {
        let outbox = book.outbox();
        Some((&service.account(account).id, book, outbox.get(outbox.find(id)?)))
    });
    let (account, book, delivery) = found.ok_or(ApiError::NotFound)?;
    answer("delivery", shape::delivery_in_full(account, book, delivery))
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
