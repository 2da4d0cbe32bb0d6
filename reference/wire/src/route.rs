//! Routing: finds the [`Route`] of a method and a path, and parses query and body into its call.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use uuid::Uuid;

use crate::read::{self, ListKind, ListQuery};
use reference_core::{
    book::Book,
    call::Call,
    error::ApiError,
    id::{Code, parse_uuid},
};

/// An operation of the API: a known path with an allowed method.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    Account,
    List(ListKind),
    CreateCharge,
    Charge(Code),
    CancelCharge(Code),
    RefundCharge(Code),
    CreateLink,
    Link(Code),
    ChangeLink(Code),
    ArchiveLink(Code),
    RestoreLink(Code),
    CreateInvoice,
    Invoice(Code),
    SendInvoice(Code),
    VoidInvoice(Code),
    Event(Uuid),
}

/// The id of the object that a path names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ObjectId {
    Charge(Code),
    Link(Code),
    Invoice(Code),
    Event(Uuid),
}

impl ObjectId {
    /// Checks that the object is in the book.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`].
    pub(crate) fn check_exists_in(self, book: &Book) -> Result<(), ApiError> {
        match self {
            ObjectId::Charge(code) => book.find_charge(code).map(drop),
            ObjectId::Link(code) => book.find_link(code).map(drop),
            ObjectId::Invoice(code) => book.find_invoice(code).map(drop),
            ObjectId::Event(id) => book.find_event(id).map(drop),
        }
    }
}

/// A known path: the object that it names, and the operation, if the method is allowed.
pub(crate) struct RouteMatch {
    pub(crate) object: Option<ObjectId>,
    pub(crate) route: Result<Route, ApiError>,
}

/// The largest number of segments of a path.
const SEGMENTS_MAX: usize = 4;

impl Route {
    /// Finds the route. `HEAD` is routed like `GET`; the host omits the body.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] for an unknown path.
    pub(crate) fn find(method: &str, path: &str) -> Result<RouteMatch, ApiError> {
        let mut segments = [""; SEGMENTS_MAX];
        let Some(count) = split_path(path, &mut segments) else { return Err(ApiError::NotFound) };
        let segments = &segments[..count];
        // Few paths need decoding. `count` instead of `any`, because the compiler vectorises it.
        if path.bytes().filter(|b| *b == b'%').count() == 0 {
            return Route::find_segments(method, segments);
        }
        let decoded = segments.iter().map(|segment| percent_decode_str(segment).decode_utf8());
        let decoded: Vec<Cow<'_, str>> = decoded.collect::<Result<_, _>>().map_err(|_| ApiError::NotFound)?;
        let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
        Route::find_segments(method, &segments)
    }

    fn find_segments(method: &str, segments: &[&str]) -> Result<RouteMatch, ApiError> {
        let method = if method == "HEAD" { "GET" } else { method };
        let object = match segments {
            ["v1", "charges", id, ..] => Some(ObjectId::Charge(parse_code(id)?)),
            ["v1", "payment-links", id, ..] => Some(ObjectId::Link(parse_code(id)?)),
            ["v1", "invoices", id, ..] => Some(ObjectId::Invoice(parse_code(id)?)),
            ["v1", "events", id] => Some(ObjectId::Event(parse_uuid(id).ok_or(ApiError::NotFound)?)),
            _ => None,
        };
        let route = match Route::from_segments(method, segments)? {
            Some(route) => Ok(route),
            None => Err(ApiError::MethodNotAllowed { allow: allowed_methods(segments)?.into() }),
        };
        Ok(RouteMatch { object, route })
    }

    /// Returns the route; `None` for an unknown path, or a method that the path does not allow.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if the id in the path is invalid.
    fn from_segments(method: &str, segments: &[&str]) -> Result<Option<Route>, ApiError> {
        Ok(Some(match (segments, method) {
            (["v1", "account"], "GET") => Route::Account,
            (["v1", "charges"], "GET") => Route::List(ListKind::Charges),
            (["v1", "charges"], "POST") => Route::CreateCharge,
            (["v1", "charges", id], "GET") => Route::Charge(parse_code(id)?),
            (["v1", "charges", id, "cancel"], "POST") => Route::CancelCharge(parse_code(id)?),
            (["v1", "charges", id, "refunds"], "POST") => Route::RefundCharge(parse_code(id)?),
            (["v1", "payment-links"], "GET") => Route::List(ListKind::Links),
            (["v1", "payment-links"], "POST") => Route::CreateLink,
            (["v1", "payment-links", id], "GET") => Route::Link(parse_code(id)?),
            (["v1", "payment-links", id], "PATCH") => Route::ChangeLink(parse_code(id)?),
            (["v1", "payment-links", id, "archive"], "POST") => Route::ArchiveLink(parse_code(id)?),
            (["v1", "payment-links", id, "archive"], "DELETE") => Route::RestoreLink(parse_code(id)?),
            (["v1", "invoices"], "GET") => Route::List(ListKind::Invoices),
            (["v1", "invoices"], "POST") => Route::CreateInvoice,
            (["v1", "invoices", id], "GET") => Route::Invoice(parse_code(id)?),
            (["v1", "invoices", id, "send"], "POST") => Route::SendInvoice(parse_code(id)?),
            (["v1", "invoices", id, "void"], "POST") => Route::VoidInvoice(parse_code(id)?),
            (["v1", "events"], "GET") => Route::List(ListKind::Events),
            (["v1", "events", id], "GET") => Route::Event(parse_uuid(id).ok_or(ApiError::NotFound)?),
            _ => return Ok(None),
        }))
    }

    /// Returns the status of a successful response.
    pub(crate) fn success_status(&self) -> u16 {
        match self {
            Route::CreateCharge | Route::RefundCharge(_) | Route::CreateLink | Route::CreateInvoice => 201,
            _ => 200,
        }
    }

    /// Parses query and body into a call.
    pub(crate) fn parse_call(self, query: Option<&str>, body: &[u8]) -> Result<Call, ApiError> {
        Ok(match self {
            Route::Account => Call::Account,
            Route::List(kind) => {
                let ListQuery { list, page, anchor } = read::parse_list_query(kind, query)?;
                Call::List { list, page, anchor }
            }
            Route::CreateCharge => Call::CreateCharge(Box::new(read::parse_charge(body)?)),
            Route::Charge(code) => Call::Charge(code),
            Route::CancelCharge(code) => read::require_object(body).map(|()| Call::CancelCharge(code))?,
            Route::RefundCharge(code) => Call::RefundCharge(code, read::parse_refund(body)?),
            Route::CreateLink => Call::CreateLink(Box::new(read::parse_link(body)?)),
            Route::Link(code) => Call::Link(code),
            Route::ChangeLink(code) => Call::ChangeLink(code, Box::new(read::parse_link(body)?)),
            Route::ArchiveLink(code) => read::require_object(body).map(|()| Call::ArchiveLink(code))?,
            Route::RestoreLink(code) => read::require_object(body).map(|()| Call::RestoreLink(code))?,
            Route::CreateInvoice => Call::CreateInvoice(Box::new(read::parse_invoice(body)?)),
            Route::Invoice(code) => Call::Invoice(code),
            Route::SendInvoice(code) => read::require_object(body).map(|()| Call::SendInvoice(code))?,
            Route::VoidInvoice(code) => read::require_object(body).map(|()| Call::VoidInvoice(code))?,
            Route::Event(id) => Call::Event(id),
        })
    }
}

fn parse_code(text: &str) -> Result<Code, ApiError> {
    Code::parse(text).ok_or(ApiError::NotFound)
}

/// Returns the methods that a path allows, for the `Allow` header; [`ApiError::NotFound`] for an unknown path.
fn allowed_methods(segments: &[&str]) -> Result<String, ApiError> {
    let is_allowed = |method: &str| matches!(Route::from_segments(method, segments), Ok(Some(_)));
    let all = [("GET", "GET, HEAD"), ("POST", "POST"), ("PATCH", "PATCH"), ("DELETE", "DELETE")];
    let allowed: Vec<&str> =
        all.into_iter().filter(|(method, _)| is_allowed(method)).map(|(_, names)| names).collect();
    if allowed.is_empty() { Err(ApiError::NotFound) } else { Ok(allowed.join(", ")) }
}

/// Splits a path into segments and returns their number; `None` if it has no leading slash or too many segments.
fn split_path<'a>(path: &'a str, segments: &mut [&'a str; SEGMENTS_MAX]) -> Option<usize> {
    let mut rest = path.strip_prefix('/')?;
    for (index, segment) in segments.iter_mut().enumerate() {
        match rest.bytes().position(|b| b == b'/') {
            Some(end) => (*segment, rest) = (&rest[..end], &rest[end + 1..]),
            None => {
                *segment = rest;
                return Some(index + 1);
            }
        }
    }
    None
}
