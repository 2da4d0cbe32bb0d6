//! The delivery log, and the simulated merchants that receive deliveries.

use reference_core::{
    book::Book,
    command::BookCommand,
    error::ApiError,
    event::{Event, Subject},
    id::{AccountNo, Code, parse_uuid},
    mode::Mode,
    outbox::{Delivery, DeliveryState},
};
use reference_wire::fields::{Fields, TEXT_MAX};
use uuid::Uuid;

use super::{
    Outcome,
    call::{SandboxCall, read_mode},
    empty_response, json_response, records,
};
use crate::{
    api::{Body, DeliveryList, DeliveryRecord, DeliveryResponse, MerchantRequest, MerchantResponse},
    network::ReceiverBehavior,
    sandbox::Sandbox,
};

/// The maximum number of deliveries in one response.
const LISTED_MAX: usize = 1_000;

/// The filters of the delivery log. Parsed once, because many deliveries are compared with them.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// The state.
    pub status: Option<&'static str>,
    /// The endpoint; `Some(None)` for an invalid id, which matches nothing.
    pub endpoint: Option<Option<Code>>,
    /// The event; `Some(None)` as above.
    pub event: Option<Option<Uuid>>,
    /// The charge of the event; `Some(None)` as above.
    pub charge: Option<Option<Code>>,
    /// The invoice of the event; `Some(None)` as above.
    pub invoice: Option<Option<Code>>,
    /// A delivery of one book; only older ones of that book match.
    pub before: Option<Uuid>,
}

impl DeliveryFilter {
    /// Returns the matching deliveries, newest first.
    fn newest<'b>(&self, book: &'b Book, limit: usize) -> impl Iterator<Item = &'b Delivery> {
        self.candidates(book).filter(|delivery| self.matches(book, delivery)).take(limit)
    }

    /// Returns the deliveries that the filters on events and `before` leave, newest first.
    fn candidates<'b>(&self, book: &'b Book) -> Box<dyn Iterator<Item = &'b Delivery> + 'b> {
        let Some(events) = self.events(book) else {
            return Box::new(book.outbox().deliveries_before(self.before).into_iter().flatten());
        };
        // The deliveries of an event are created with it, so the log need not be scanned.
        let deliveries_of = move |event: &'b Event| {
            let created = book.outbox().deliveries_opened_at(event.created_at);
            created.filter(move |delivery| delivery.payload.event.is_some_and(|(_, id)| id == event.id))
        };
        let newest_first = events.into_iter().rev().flat_map(deliveries_of);
        let Some(before) = self.before else { return Box::new(newest_first) };
        // Numbers increase with creation. Nothing matches if `before` is a delivery of another book.
        let number = move |id| book.outbox().find(id);
        let end = number(before);
        Box::new(newest_first.filter(move |delivery| end.is_some() && number(delivery.id) < end))
    }

    /// Returns the requested events, oldest first; `None` if there is no filter on events.
    fn events<'b>(&self, book: &'b Book) -> Option<Vec<&'b Event>> {
        let timeline = |subject: Option<Subject>| {
            subject.into_iter().flat_map(|subject| book.events().timeline(subject))
        };
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

    fn matches(&self, book: &Book, delivery: &Delivery) -> bool {
        self.endpoint.is_none_or(|id| id == Some(book.endpoint(delivery.endpoint).id))
            && self.status.is_none_or(|status| status == delivery.state.as_str())
    }
}

pub(super) fn list_deliveries(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let read_id = |f: &mut Fields<'_>, name| f.text(name, TEXT_MAX);
    let read_code = |f: &mut Fields<'_>, name| read_id(f, name).map(|id| Code::parse(&id));
    let parse_state = |text: &str| DeliveryState::NAMES.into_iter().find(|name| *name == text);
    let (account, mode) = (f.text("account", TEXT_MAX), read_mode(&mut f));
    let filter = DeliveryFilter {
        status: f.choice("status", &DeliveryState::NAMES, parse_state),
        endpoint: read_code(&mut f, "endpoint"),
        charge: read_code(&mut f, "charge"),
        invoice: read_code(&mut f, "invoice"),
        event: read_id(&mut f, "event").map(|id| parse_uuid(&id)),
        before: read_id(&mut f, "before").map(|id| parse_uuid(&id).ok_or(ApiError::NotFound)).transpose()?,
    };
    let limit = f.whole_number("limit").map_or(LISTED_MAX, |limit| usize::try_from(limit).unwrap_or(0));
    if !(1..=LISTED_MAX).contains(&limit) {
        f.add_error("limit", &format!("The {{}} field must be a whole number from 1 to {LISTED_MAX}."));
    }
    f.finish()?;
    let mut deliveries = Vec::new();
    for (book_id, book) in call.books() {
        let id = &*call.service().account(book_id.0).id;
        if account.as_ref().is_none_or(|account| account == id) && mode.is_none_or(|mode| mode == book_id.1) {
            let newest = filter.newest(book, limit);
            deliveries.extend(newest.map(|delivery| (book_id, delivery)));
        }
    }
    deliveries.sort_by_key(|(_, delivery)| std::cmp::Reverse(delivery.id));
    // Truncated after sorting, so that the newest deliveries of all books remain.
    deliveries.truncate(limit);
    let record = |(book_id, delivery): ((AccountNo, Mode), _)| {
        records::delivery_record(&call.service().account(book_id.0).id, call.book(book_id), delivery)
    };
    json_response(DeliveryList { deliveries: deliveries.into_iter().map(record).collect() })
}

impl Sandbox {
    /// Returns the newest deliveries of a book that match a filter, newest first.
    pub fn deliveries(
        &self,
        book_id: (AccountNo, Mode),
        filter: &DeliveryFilter,
        limit: usize,
    ) -> Vec<DeliveryRecord> {
        let (id, book) = (&self.service().account(book_id.0).id, self.book(book_id));
        filter.newest(book, limit).map(|delivery| records::delivery_record(id, book, delivery)).collect()
    }

    /// Returns a delivery of a book with its requests and responses.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if the book holds no such delivery.
    pub fn delivery(&self, book_id: (AccountNo, Mode), id: Uuid) -> Result<DeliveryRecord, ApiError> {
        let (service, book) = (self.service(), self.book(book_id));
        let no = book.outbox().find(id).ok_or(ApiError::NotFound)?;
        let account = &service.account(book_id.0).id;
        Ok(records::full_delivery_record(account, book, book.outbox().get(no), service.config()))
    }
}

/// Returns the id of the delivery that the path names.
fn id_from_path(call: &SandboxCall<'_>) -> Result<Uuid, ApiError> {
    Uuid::try_parse(call.parameters()[0]).map_err(|_| ApiError::NotFound)
}

pub(super) fn read_delivery(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let id = id_from_path(call)?;
    let book_id = call.find_book(|book| book.outbox().find(id).is_some())?;
    json_response(DeliveryResponse { delivery: call.sandbox.delivery(book_id, id)? })
}

pub(super) fn resend(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let id = id_from_path(call)?;
    let book_id = call.find_book(|book| book.outbox().find(id).is_some())?;
    f.finish()?;
    call.execute(book_id, BookCommand::Resend(id))?;
    empty_response()
}

pub(super) fn set_merchant(call: &mut SandboxCall<'_>, body: Body<'_, MerchantRequest>) -> Outcome {
    let MerchantRequest { name, state, answers } = body.finish()?;
    // URLs have lower-case hosts, so a merchant with another name would never receive a delivery.
    let is_host =
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.'));
    if !is_host {
        let message = "The name field must be the part before .sim of an endpoint's host name: a-z, 0-9, -, _ and dots.";
        return Err(ApiError::field("name", message));
    }
    let state = state.as_deref().and_then(ReceiverBehavior::parse);
    let responses = answers.iter().filter_map(|response| ReceiverBehavior::parse(response)).collect();
    call.world_mut().network.set_behavior(&format!("{name}.sim"), state, responses);
    json_response(MerchantResponse { merchant: name })
}
