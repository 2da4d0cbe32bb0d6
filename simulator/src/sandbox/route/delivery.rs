//! The delivery log, and the merchants that deliveries go to.

use reference_core::{
    book::Book,
    command::BookCommand,
    error::ApiError,
    event::{Event, Subject},
    id::{Code, parse_uuid},
    mode::Mode,
    outbox::{Delivery, DeliveryState},
};
use reference_wire::fields::{Fields, TEXT_MAX};
use uuid::Uuid;

use super::{
    Outcome, answer,
    call::{SandboxCall, read_mode, required},
    nothing, records,
};
use crate::{
    api::{DeliveryAnswer, DeliveryList, MerchantAnswer},
    network::ReceiverBehavior,
};

/// So many deliveries are shown at once.
const SHOWN_MAX: usize = 1_000;
const ANSWERS_MAX: usize = 1_000;

/// The requested part of the log. Parsed once, because the whole log may be compared with it.
struct Filter {
    account: Option<String>,
    mode: Option<Mode>,
    status: Option<&'static str>,
    /// The endpoint; `Some(None)` for a text that is no id, which selects nothing.
    endpoint: Option<Option<Code>>,
    event: Option<Option<Uuid>>,
    charge: Option<Option<Code>>,
    invoice: Option<Option<Code>>,
    /// A delivery of one book: what is older is asked of that book only.
    before: Option<Uuid>,
}

impl Filter {
    fn takes_book(&self, account: &str, book: &Book) -> bool {
        self.account.as_ref().is_none_or(|wanted| wanted == account)
            && self.mode.is_none_or(|wanted| wanted == book.mode())
    }

    /// Newest first, before the filters that look at each delivery.
    fn of_book<'b>(&self, book: &'b Book) -> Box<dyn Iterator<Item = &'b Delivery> + 'b> {
        let Some(events) = self.events(book) else {
            return Box::new(book.outbox().before(self.before).into_iter().flatten());
        };
        // Deliveries of an event were opened with it, so nobody has to look through the log for them.
        let of_event = move |event: &'b Event| {
            let opened = book.outbox().opened_at(event.created_at);
            opened.filter(move |delivery| delivery.payload.event.is_some_and(|(_, id)| id == event.id))
        };
        Box::new(events.into_iter().rev().flat_map(of_event))
    }

    /// The events that are asked for, oldest first; `None` if any will do.
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
            && self.status.is_none_or(|wanted| wanted == delivery.state.as_str())
    }
}

pub(super) fn log(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let id = |f: &mut Fields<'_>, name| f.text(name, TEXT_MAX);
    let code = |f: &mut Fields<'_>, name| id(f, name).map(|id| Code::parse(&id));
    let state = |text: &str| DeliveryState::WORDS.into_iter().find(|word| *word == text);
    let wanted = Filter {
        account: f.text("account", TEXT_MAX),
        mode: read_mode(&mut f),
        status: f.word("status", &DeliveryState::WORDS, state),
        endpoint: code(&mut f, "endpoint"),
        charge: code(&mut f, "charge"),
        invoice: code(&mut f, "invoice"),
        event: id(&mut f, "event").map(|id| parse_uuid(&id)),
        before: id(&mut f, "before").map(|id| parse_uuid(&id).ok_or(ApiError::NotFound)).transpose()?,
    };
    let limit = f.whole("limit").map_or(SHOWN_MAX, |limit| usize::try_from(limit).unwrap_or(0));
    if !(1..=SHOWN_MAX).contains(&limit) {
        f.wrong("limit", &format!("The {{}} field must be a whole number from 1 to {SHOWN_MAX}."));
    }
    f.finish()?;
    let mut deliveries = Vec::new();
    for ((account, _), book) in call.books() {
        let account = &*call.service().account(account).id;
        if wanted.takes_book(account, book) {
            let all = wanted.of_book(book);
            let newest = all.filter(|delivery| wanted.takes(book, delivery)).take(limit);
            deliveries.extend(newest.map(|delivery| (account, book, delivery)));
        }
    }
    deliveries.sort_by_key(|(_, _, delivery)| std::cmp::Reverse(delivery.id));
    // Only now: a busy book must not hide what is newer in another.
    deliveries.truncate(limit);
    let records =
        deliveries.into_iter().map(|(account, book, delivery)| records::delivery(account, book, delivery));
    answer(DeliveryList { deliveries: records.collect() })
}

/// The delivery that the path names.
fn named(call: &SandboxCall<'_>) -> Result<Uuid, ApiError> {
    Uuid::try_parse(call.parameters()[0]).map_err(|_| ApiError::NotFound)
}

pub(super) fn one(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let id = named(call)?;
    let found = call.books().find_map(|((account, _), book)| {
        let outbox = book.outbox();
        Some((&call.service().account(account).id, book, outbox.get(outbox.find(id)?)))
    });
    let (account, book, delivery) = found.ok_or(ApiError::NotFound)?;
    answer(DeliveryAnswer {
        delivery: records::delivery_in_full(account, book, delivery, call.service().config()),
    })
}

pub(super) fn resend(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let id = named(call)?;
    let place = call.find_book(|book| book.outbox().find(id).is_some())?;
    f.finish()?;
    call.act(place, BookCommand::Resend(id))?;
    nothing()
}

pub(super) fn set_merchant(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let name = f.required_text("name", TEXT_MAX);
    let state = f.word("state", &ReceiverBehavior::WORDS, ReceiverBehavior::parse);
    let answers = f.words("answers", ANSWERS_MAX, &ReceiverBehavior::WORDS, ReceiverBehavior::parse);
    f.finish()?;
    let name = required(name, "name")?;
    // URLs spell hosts in lower case, so no post would ever meet a merchant named otherwise.
    let is_host =
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
    if !is_host {
        let message = "The name field must be what stands before .sim in an endpoint's address: a-z, 0-9, -, _ and dots.";
        return Err(ApiError::field("name", message));
    }
    call.world_mut().network.set_behavior(&format!("{name}.sim"), state, answers);
    answer(MerchantAnswer { merchant: name })
}
