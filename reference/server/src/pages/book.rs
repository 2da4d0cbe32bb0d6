//! [`BookReader`]: reads a book (the objects of an account in one mode) for its owner. Codes and queries from a browser
//! are validated as in the API.

use std::ops::Deref;

use reference_core::{
    book::Book,
    call::CallResult,
    error::ApiError,
    id::{AccountNo, Code, EventNo, parse_uuid},
    mode::Mode,
    page::Page,
};
use simulator::sandbox::Sandbox;

use super::objects::{AccountView, Charge, Event, Invoice, Link};

/// A book, read under the lock of its world.
pub(crate) struct BookReader<'w> {
    pub(crate) sandbox: &'w Sandbox,
    pub(crate) account_and_mode: (AccountNo, Mode),
    book: &'w Book,
}

impl Deref for BookReader<'_> {
    type Target = Book;

    fn deref(&self) -> &Book {
        self.book
    }
}

impl<'w> BookReader<'w> {
    pub(crate) fn new(sandbox: &'w Sandbox, account_and_mode: (AccountNo, Mode)) -> BookReader<'w> {
        BookReader { sandbox, account_and_mode, book: sandbox.book(account_and_mode) }
    }

    pub(crate) fn charge(&self, code: &str) -> Result<Charge, ApiError> {
        Ok(Charge::from_book(self, self.find_charge(parse_code(code)?)?))
    }

    pub(crate) fn invoice(&self, code: &str) -> Result<Invoice, ApiError> {
        Ok(Invoice::from_book(self, self.find_invoice(parse_code(code)?)?))
    }

    pub(crate) fn link(&self, code: &str) -> Result<Link, ApiError> {
        Ok(Link::from_book(self, self.find_link(parse_code(code)?)?, self.sandbox.now()))
    }

    pub(crate) fn event(&self, id: &str) -> Result<Event, ApiError> {
        Ok(Event::from_book(self, self.find_event(parse_uuid(id).ok_or(ApiError::NotFound)?)?))
    }

    /// Returns the first page of the events of the book, newest first. `query`: `?per_page=8`, as after `/v1/events`.
    pub(crate) fn events(&self, query: &str) -> Result<Vec<Event>, ApiError> {
        let (page, _) = self.list(&format!("events{query}"))?;
        Ok(page.members.into_iter().map(|no| Event::from_book(self, EventNo(no))).collect())
    }

    /// Returns the object numbers on a page of a list, and the anchor for its later pages. `path`:
    /// `charges?status=paid`, as after `/v1/`.
    pub(crate) fn list(&self, path: &str) -> Result<(Page, Option<String>), ApiError> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let request = ("GET", &*format!("/v1/{path}"), query);
        let (call, _) = reference_wire::parse_call(self, request, b"")?;
        match self.sandbox.service().owner_read(self.account_and_mode, call)? {
            CallResult::Page { page, anchor, .. } => Ok((page, anchor)),
            other => unreachable!("{path} is a list, not {other:?}"),
        }
    }

    /// Returns an object as JSON of the API. `path`: `charges/abc123`, as after `/v1/`.
    pub(crate) fn json(&self, path: &str) -> Result<String, ApiError> {
        let (service, now) = (self.sandbox.service(), self.sandbox.now());
        let body = reference_wire::owner_read(
            service,
            now,
            self.account_and_mode,
            (&format!("/v1/{path}"), None),
            "",
        )?;
        let text = String::from_utf8_lossy(&body);
        let data = text.strip_prefix(r#"{"data":"#).and_then(|text| text.strip_suffix('}'));
        Ok(data.expect("an object is under `data`").to_owned())
    }

    pub(crate) fn account(&self) -> AccountView {
        AccountView::new(self.sandbox.service().account(self.account_and_mode.0), self.account_and_mode.1)
    }
}

fn parse_code(code: &str) -> Result<Code, ApiError> {
    Code::parse(code).ok_or(ApiError::NotFound)
}
