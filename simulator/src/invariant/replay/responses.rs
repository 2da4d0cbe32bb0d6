//! Checks of responses under `/v1` against the model: the authentication, and the complete body of every success.

use std::collections::BTreeMap;

use reference_core::time::{Span, Timestamp};

use super::{ModelReplay, Object};
use crate::{
    invariant::{
        Invariant,
        compare::report,
        diff::{differences, invariant_of_page},
        page::{ListRequest, public_ids},
    },
    model::{List, ObjectContext, Presentation},
    record::{BookId, RecordedCall},
};

/// The time for which the service stores the anchor of a key in a list after the key's last read of the list.
const ANCHOR_TTL: Span = Span::mins(10);

/// The end of a list for a key that pages through it by page numbers.
#[derive(Clone, Copy)]
struct Anchor {
    last_read_at: Timestamp,
    /// The number of the newest record when page 1 was read; `None` if the list was empty.
    newest: Option<usize>,
}

/// The anchors, by key and [`ListRequest::anchor_key`].
#[derive(Default)]
pub(super) struct ListAnchors {
    anchors: BTreeMap<(String, String), Anchor>,
}

impl ListAnchors {
    /// Removes all anchors, as a restarted service does.
    pub(super) fn restart(&mut self) {
        self.anchors.clear();
    }
}

impl ModelReplay<'_> {
    /// Returns `true` if the request has an API key that is neither unknown nor revoked.
    pub(super) fn is_key_valid(&self, call: &RecordedCall) -> bool {
        self.books_by_key.contains_key(call.key()) && !self.revoked_keys.contains(call.key())
    }

    /// Checks that a request gets 401 exactly if its key is not valid.
    pub(super) fn check_authentication(&mut self, now: Timestamp, call: &RecordedCall, is_key_valid: bool) {
        let is_refused = call.status == 401;
        self.findings.check(Invariant::ModesApart, Some(now), || {
            let shape = match is_key_valid {
                true if is_refused => "a valid key is refused",
                false if !is_refused => "a revoked, unknown or missing key is accepted",
                _ => return None,
            };
            Some((shape.to_owned(), format!("{} {} at {now}: {}", call.method, call.path, call.status)))
        });
    }

    /// Checks the body of a success, and the status of a `GET` or `HEAD` request.
    pub(super) fn check_response(&mut self, now: Timestamp, call: &RecordedCall) {
        let Some(id) = self.calling_book(call) else { return };
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        let is_success = (200..300).contains(&call.status);
        // The service writes the body of `HEAD` for its length; the host sends none.
        let is_read = matches!(call.method.as_str(), "GET" | "HEAD");
        let mut is_filtered = false;
        let expected = match parts.as_slice() {
            ["v1", "account"] if is_read => {
                let (account, book) = self.model.account_and_book_mut(id);
                Ok(account.response_json(book.mode, |asset| book.wallets.accepts(asset)))
            }
            // The objects of an account without an observer key are unknown.
            _ if !self.api_state.books.contains_key(&id) => return,
            ["v1", _] if is_read => match ListRequest::parse(&call.path, call.query.as_deref()) {
                // The ids of events are only known where all are read at the end.
                Some(Ok(request)) if request.list == List::Events && !self.knows_events(id) => return,
                Some(request) => {
                    is_filtered = request.as_ref().is_ok_and(|request| !request.filters.is_empty());
                    self.expected_page(now, id, call, request)
                }
                None => return,
            },
            ["v1", "events", _] if !self.knows_events(id) => return,
            ["v1", "events", event] if is_read => self.expected_event(now, id, event).ok_or(404),
            ["v1", _, code, ..] if is_read || is_success => self.expected_object(now, id, code).ok_or(404),
            ["v1", "charges" | "invoices" | "payment-links"] if is_success => {
                let code = created_id(call);
                self.expected_object(now, id, &code).ok_or(call.status)
            }
            _ => return,
        };
        let target = format!("{} {}", call.method, call.path);
        match expected {
            Ok(expected) if is_success => {
                let actual = String::from_utf8_lossy(&call.response_body);
                let found = differences(&expected, &actual, 0);
                self.findings.checks[Invariant::SameObject as usize] += u64::from(found.is_empty());
                let invariant = invariant_of_page(&found, is_filtered);
                let about = format!("{target} at {now}");
                report(&mut self.findings, ("a response", &about), Some(now), &found, invariant);
            }
            Ok(_) if !is_read => {}
            Ok(_) => self.check_status(Invariant::SameObject, now, ("a read", &target), 200, call.status),
            Err(status) if is_read => {
                self.check_status(Invariant::SameObject, now, ("a read", &target), status, call.status);
            }
            Err(_) => {}
        }
        self.is_response_checked = true;
    }

    /// Returns `true` if the ids of all events of a book are known.
    fn knows_events(&self, id: BookId) -> bool {
        self.ids[&id].events.len() >= self.model.book(id).events.len()
    }

    /// Returns the body of a response for one object; `None` if the book does not have it.
    fn expected_object(&self, now: Timestamp, id: BookId, code: &str) -> Option<String> {
        let (owner, object) = self.objects.get(code).copied()?;
        if owner != id {
            return None;
        }
        let book = self.model.book(id);
        let context = ObjectContext { ids: &self.ids[&id], public_url: self.public_url, now };
        let json = match object {
            Object::Charge(number) => book.charge_json(context, number, Presentation::Api),
            Object::Invoice(number) => book.invoice_json(context, number, Presentation::Api),
            Object::Link(number) => book.link_json(context, number),
        };
        Some(format!("{{\"data\":{json}}}"))
    }

    /// Returns an event as a list shows it.
    fn event_row(&self, now: Timestamp, id: BookId, number: usize) -> String {
        let (book, ids) = (self.model.book(id), &self.ids[&id]);
        let context = ObjectContext { ids, public_url: self.public_url, now };
        let object = book.event_object_json(context, book.events[number].subject);
        book.event_json(ids.events.get(number).map_or("", String::as_str), number, &object)
    }

    /// Returns the body of a response for one event; `None` if the book does not have it.
    fn expected_event(&self, now: Timestamp, id: BookId, event_id: &str) -> Option<String> {
        let event_id = event_id.to_ascii_lowercase();
        let number = self.ids[&id].events.iter().position(|known| *known == event_id)?;
        (number < self.model.book(id).events.len())
            .then(|| format!("{{\"data\":{}}}", self.event_row(now, id, number)))
    }

    /// Returns the body of a page, or the status of a refusal. The list ends at the anchor: that of the request, or else
    /// the newest record when the key read page 1.
    fn expected_page(
        &mut self,
        now: Timestamp,
        id: BookId,
        call: &RecordedCall,
        request: Result<ListRequest, u16>,
    ) -> Result<String, u16> {
        let request = request?;
        let (book, ids) = (self.model.book(id), &self.ids[&id]);
        let mut members = request.members(book, ids);
        let key = (call.key().to_owned(), request.anchor_key());
        let anchors = &mut self.list_anchors.anchors;
        // The service stores no anchor for `HEAD`.
        let stores_anchor = call.method == "GET";
        let stored = anchors.get(&key).filter(|anchor| now.since(anchor.last_read_at) < ANCHOR_TTL).copied();
        let newest = match (&request.anchor, stored) {
            (Some(anchor), _) => {
                let known = public_ids(ids, request.list).iter().position(|known| known == anchor);
                Some(known.filter(|number| *number < book.length(request.list)).ok_or(422_u16)?)
            }
            (None, Some(Anchor { newest, .. })) if request.page > 1 => {
                if stores_anchor {
                    anchors.insert(key, Anchor { last_read_at: now, newest });
                }
                newest
            }
            (None, _) => {
                let newest = members.last().copied();
                if request.page == 1 && stores_anchor {
                    anchors.insert(key, Anchor { last_read_at: now, newest });
                }
                newest
            }
        };
        members.retain(|number| newest.is_some_and(|newest| *number <= newest));
        let context = ObjectContext { ids, public_url: self.public_url, now };
        let list = request.list;
        let row = |number: usize| match list {
            List::Charges => book.charge_json(context, number, Presentation::Api),
            List::Invoices => book.invoice_json(context, number, Presentation::Api),
            List::Links => book.link_json(context, number),
            List::Events => self.event_row(now, id, number),
        };
        Ok(request.body(self.public_url, ids, (&members, newest), row))
    }
}

/// Returns the id of a created object.
fn created_id(call: &RecordedCall) -> String {
    let body: serde_json::Value = serde_json::from_slice(&call.response_body).unwrap_or_default();
    body["data"]["id"].as_str().unwrap_or_default().to_owned()
}
