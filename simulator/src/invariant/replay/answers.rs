//! Checks of responses under `/v1` against the model: the status for keys, and the complete body of every success.

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

/// The time for which the anchor of a key in a list is stored after its last read.
const ANCHOR_TTL: Span = Span::mins(10);

/// The anchors of keys in lists: the newest record when page 1 was read, and the time of the last read.
#[derive(Default)]
pub(super) struct ListReads {
    anchors: BTreeMap<(String, String), (Timestamp, Option<usize>)>,
}

impl ListReads {
    pub(super) fn restart(&mut self) {
        self.anchors.clear();
    }
}

impl ModelReplay<'_> {
    /// Checks the authentication of a request. Returns `false` if there is nothing else to check.
    pub(super) fn judge_key(&mut self, at: Timestamp, call: &RecordedCall) -> bool {
        if !call.is_api() {
            return true;
        }
        let bearer = call.key();
        let is_live = self.bearers.contains_key(bearer) && !self.revoked.contains(bearer);
        let is_refused = call.status == 401;
        self.findings.check(Invariant::ModesApart, Some(at), || {
            let shape = match is_live {
                true if is_refused => "a valid key is refused",
                false if !is_refused => "a revoked, unknown or missing key is accepted",
                _ => return None,
            };
            Some((shape.to_owned(), format!("{} {} at {at}: {}", call.method, call.path, call.status)))
        });
        is_live && !is_refused
    }

    /// Checks the body of a success, and the status of a request that reads.
    pub(super) fn judge_answer(&mut self, at: Timestamp, call: &RecordedCall) {
        let Some(id) = self.calling_book(call) else { return };
        let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
        let is_good = (200..300).contains(&call.status);
        // The service writes the body of `HEAD` for its length; the host sends none.
        let reads = matches!(call.method.as_str(), "GET" | "HEAD");
        let mut is_filtered = false;
        let expected = match parts.as_slice() {
            ["v1", "account"] if reads => {
                let (account, book) = self.model.account_and_book_mut(id);
                Ok(account.response_json(book.mode, |asset| book.wallets.accepts(asset)))
            }
            // The objects of an account without an observer key are unknown.
            _ if !self.shown.books.contains_key(&id) => return,
            ["v1", _] if reads => match ListRequest::parse(&call.path, call.query.as_deref()) {
                // The ids of events are only known where all are read at the end.
                Some(Ok(request)) if request.list == List::Events && !self.knows_events(id) => return,
                Some(request) => {
                    is_filtered = request.as_ref().is_ok_and(|request| !request.filters.is_empty());
                    self.expected_page(at, id, call, request)
                }
                None => return,
            },
            ["v1", "events", _] if !self.knows_events(id) => return,
            ["v1", "events", event] if reads => self.expected_event(at, id, event).ok_or(404),
            ["v1", _, code, ..] if reads || is_good => self.expected_object(at, id, code).ok_or(404),
            ["v1", "charges" | "invoices" | "payment-links"] if is_good => {
                let code = created_id(call);
                self.expected_object(at, id, &code).ok_or(call.status)
            }
            _ => return,
        };
        let about = format!("{} {} at {at}", call.method, call.path);
        match expected {
            Ok(expected) if is_good => {
                let actual = String::from_utf8_lossy(&call.answer);
                let found = differences(&expected, &actual, 0);
                self.findings.checks[Invariant::SameObject as usize] += u64::from(found.is_empty());
                let invariant = invariant_of_page(&found, is_filtered);
                report(&mut self.findings, ("an answer", &about), Some(at), &found, invariant);
            }
            Ok(_) if !reads => {}
            Ok(_) => self.check_status(Invariant::SameObject, at, ("read", &about), 200, call.status),
            Err(status) if reads => {
                self.check_status(Invariant::SameObject, at, ("read", &about), status, call.status);
            }
            Err(_) => {}
        }
        self.is_judged = true;
    }

    fn knows_events(&self, id: BookId) -> bool {
        self.ids[&id].events.len() >= self.model.book(id).events.len()
    }

    fn expected_object(&self, at: Timestamp, id: BookId, code: &str) -> Option<String> {
        let (owner, object) = self.objects.get(code).copied()?;
        if owner != id {
            return None;
        }
        let book = self.model.book(id);
        let context = ObjectContext { ids: &self.ids[&id], public_url: self.public_url, now: at };
        let data = match object {
            Object::Charge(no) => book.charge_json(context, no, Presentation::Api),
            Object::Invoice(no) => book.invoice_json(context, no, Presentation::Api),
            Object::Link(no) => book.link_json(context, no),
        };
        Some(format!("{{\"data\":{data}}}"))
    }

    fn event_row(&self, at: Timestamp, id: BookId, no: usize) -> String {
        let (book, ids) = (self.model.book(id), &self.ids[&id]);
        let context = ObjectContext { ids, public_url: self.public_url, now: at };
        let object = book.event_object_json(context, book.events[no].subject);
        book.event_json(ids.events.get(no).map_or("", String::as_str), no, &object)
    }

    fn expected_event(&self, at: Timestamp, id: BookId, event: &str) -> Option<String> {
        let event = event.to_ascii_lowercase();
        let no = self.ids[&id].events.iter().position(|known| *known == event)?;
        (no < self.model.book(id).events.len())
            .then(|| format!("{{\"data\":{}}}", self.event_row(at, id, no)))
    }

    /// Returns the body of a page. The list has the length that it had when page 1 was read.
    fn expected_page(
        &mut self,
        at: Timestamp,
        id: BookId,
        call: &RecordedCall,
        request: Result<ListRequest, u16>,
    ) -> Result<String, u16> {
        let request = request?;
        let (book, ids) = (self.model.book(id), &self.ids[&id]);
        let mut members = request.members(book, ids);
        let key = (call.key().to_owned(), request.anchor_key());
        let anchors = &mut self.lists.anchors;
        let remembers = call.method == "GET";
        let remembered = anchors.get(&key).filter(|(read, _)| at.since(*read) < ANCHOR_TTL).copied();
        let newest = match (&request.anchor, remembered) {
            (Some(anchor), _) => {
                let known = public_ids(ids, request.list).iter().position(|known| known == anchor);
                Some(known.filter(|no| *no < book.length(request.list)).ok_or(422_u16)?)
            }
            (None, Some((_, newest))) if request.page > 1 => {
                if remembers {
                    anchors.insert(key, (at, newest));
                }
                newest
            }
            (None, _) => {
                let newest = members.last().copied();
                if request.page == 1 && remembers {
                    anchors.insert(key, (at, newest));
                }
                newest
            }
        };
        members.retain(|no| newest.is_some_and(|newest| *no <= newest));
        let context = ObjectContext { ids, public_url: self.public_url, now: at };
        let list = request.list;
        let row = |no: usize| match list {
            List::Charges => book.charge_json(context, no, Presentation::Api),
            List::Invoices => book.invoice_json(context, no, Presentation::Api),
            List::Links => book.link_json(context, no),
            List::Events => self.event_row(at, id, no),
        };
        Ok(request.body(self.public_url, ids, (&members, newest), row))
    }
}

/// Returns the id of a created object.
fn created_id(call: &RecordedCall) -> String {
    let answer: serde_json::Value = serde_json::from_slice(&call.answer).unwrap_or_default();
    answer["data"]["id"].as_str().unwrap_or_default().to_owned()
}
