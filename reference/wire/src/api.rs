//! [`Api`]: the service behind its HTTP API, with the idempotency cache and the cache of serialized objects.

use bytes::Bytes;
use reference_core::{
    call::Answer,
    error::ApiError,
    id::{AccountNo, DeliveryNo},
    key::Principal,
    mode::Mode,
    service::{Admission, Service, ServiceConfig},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    http::{self, Request, Response, bearer, with_quota},
    idempotency::{self, IdempotencyCache, Lookup},
    json,
    json_cache::JsonCache,
    route::{Route, RouteMatch},
    webhook::{self, AttemptRequest},
};

/// The payment service and its HTTP API.
///
/// Every input other than a request goes to [`service`](Api::service) directly: sightings, rates, the dashboard, hosted
/// pages, time.
#[derive(Serialize, Deserialize)]
pub struct Api {
    /// The service.
    pub service: Service,
    books: Vec<[BookState; 2]>,
    /// `true` if responses are not read, and successful ones have no body.
    #[serde(skip)]
    is_unread: bool,
}

/// The state of the API for one book.
#[derive(Default, Serialize, Deserialize)]
struct BookState {
    answers: IdempotencyCache,
    #[serde(skip)]
    json: JsonCache,
}

impl Api {
    /// Creates a service without accounts.
    pub fn new(config: ServiceConfig) -> Api {
        Api { service: Service::new(config), books: Vec::new(), is_unread: false }
    }

    /// Declares that responses are not read from now on, or are read again. Unread successful responses have no body.
    pub fn set_unread(&mut self, is_unread: bool) {
        self.is_unread = is_unread;
    }

    /// Answers a request to a path under `/v1`: authenticates it, counts it, executes the call.
    ///
    /// # Panics
    ///
    /// If `now` is earlier than at a previous input.
    pub fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        match self.admit(now, request.authorization) {
            Ok(admission) => self.respond_to(now, &admission, request),
            Err(refusal) => refusal,
        }
    }

    /// Authenticates a request by its `Authorization` header and counts it.
    ///
    /// # Errors
    ///
    /// The response: 401 for a missing, revoked or unknown key, 429 above the limit.
    ///
    /// # Panics
    ///
    /// If `now` is earlier than at a previous input.
    pub fn admit(&mut self, now: Timestamp, authorization: Option<&[u8]>) -> Result<Admission, Response> {
        self.service
            .admit(now, bearer(authorization))
            .map_err(|(error, quota)| with_quota(Response::refusal(&error), quota))
    }

    /// Checks the head of an admitted request, for hosts that have not read the body yet.
    ///
    /// # Errors
    ///
    /// The response that no body could change: 404 for an unknown path or object, 405 for another method.
    pub fn check_head(&self, admission: &Admission, method: &str, path: &str) -> Result<(), Response> {
        match self.route(&admission.principal, method, path) {
            Ok(_) => Ok(()),
            Err(error) => Err(with_quota(Response::refusal(&error), admission.quota)),
        }
    }

    /// Answers an admitted request. It is not counted again, and its `authorization` is ignored.
    ///
    /// # Panics
    ///
    /// If `now` is earlier than at an input before.
    pub fn respond_to(&mut self, now: Timestamp, admission: &Admission, request: &Request<'_>) -> Response {
        let answer = self.call(now, &admission.principal, request);
        with_quota(answer.unwrap_or_else(|error| Response::refusal(&error)), admission.quota)
    }

    /// Takes the next due delivery attempt. The delivery is in flight until the result is reported.
    pub fn poll_delivery(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, AttemptRequest)> {
        let (account, mode, mut post) = self.poll_delivery_label(now)?;
        post.body = self.delivery_body((account, mode), post.delivery);
        Some((account, mode, post))
    }

    /// Takes the next due delivery attempt without its body, for hosts that rarely need it: [`Api::delivery_body`] writes it.
    pub fn poll_delivery_label(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, AttemptRequest)> {
        let (account, mode, delivery) = self.service.poll_delivery(now)?;
        Some((
            account,
            mode,
            webhook::attempt_without_body(self.service.account(account).book(mode), delivery),
        ))
    }

    /// Returns the body of a delivery, the same for all attempts.
    pub fn delivery_body(&self, (account, mode): (AccountNo, Mode), no: DeliveryNo) -> Bytes {
        let book = self.service.account(account).book(mode);
        webhook::delivery_body(book, book.outbox().get(no), &self.service.config().public_url)
    }

    /// Executes a call. Errors are checked in this order: path and object, method, size and type of the body, fields, state.
    fn call(
        &mut self,
        now: Timestamp,
        principal: &Principal,
        request: &Request<'_>,
    ) -> Result<Response, ApiError> {
        let route = self.route(principal, request.method, request.path)?;
        let status = route.success_status();
        if matches!(request.method, "GET" | "HEAD") {
            let call = route.call(request.query, &[])?;
            // `HEAD` changes no remembered anchor.
            let answer = match request.method {
                "HEAD" => self.service.peek(now, principal, call)?,
                _ => self.service.on_call(now, principal, call)?,
            };
            return Ok(self.write_response(now, principal, request.base, status, (&answer, !self.is_unread)));
        }
        http::must_be_json(request)?;
        let scope = http::idempotency_scope(request)?;
        let call = route.call(request.query, request.body)?;
        let Some(scope) = scope else {
            let answer = self.service.on_call(now, principal, call)?;
            return Ok(self.write_response(now, principal, request.base, status, (&answer, !self.is_unread)));
        };
        let print = idempotency::fingerprint(request.query, request.body);
        match self.book_state(principal).answers.look_up(now, &scope, &print) {
            Lookup::New => {}
            Lookup::Repeated(mut response) => {
                response.headers.push(("idempotent-replayed", "true".to_owned()));
                return Ok(response);
            }
            Lookup::OtherRequest => {
                return Err(ApiError::conflict("This Idempotency-Key was used for another request."));
            }
        }
        let answer = self.service.on_call(now, principal, call)?;
        // The stored response needs its body: a repeated request may be read.
        let response = self.write_response(now, principal, request.base, status, (&answer, true));
        self.book_state(principal).answers.store(now, scope, print, response.clone());
        Ok(response)
    }

    /// Returns the route of a request, if the object that its path names exists.
    fn route(&self, principal: &Principal, method: &str, path: &str) -> Result<Route, ApiError> {
        let RouteMatch { object, route } = Route::find(method, path)?;
        if let Some(object) = object {
            object.check_exists_in(self.service.account(principal.account).book(principal.mode))?;
        }
        route
    }

    fn write_response(
        &mut self,
        now: Timestamp,
        principal: &Principal,
        base: &str,
        status: u16,
        (answer, has_reader): (&Answer, bool),
    ) -> Response {
        if !has_reader {
            return Response { status, headers: Vec::new(), body: Bytes::new() };
        }
        let cache = &mut book_state(&mut self.books, principal).json;
        let (account, public_url) =
            (self.service.account(principal.account), &self.service.config().public_url);
        let heights = self.service.heights();
        let response_context =
            json::ResponseContext { account, mode: principal.mode, public_url, base, now, heights };
        let body = json::answer(&response_context, answer, cache);
        Response { status, headers: Vec::new(), body }
    }

    fn book_state(&mut self, principal: &Principal) -> &mut BookState {
        book_state(&mut self.books, principal)
    }
}

fn book_state<'b>(books: &'b mut Vec<[BookState; 2]>, principal: &Principal) -> &'b mut BookState {
    let index = principal.account.index();
    if books.len() <= index {
        books.resize_with(index + 1, Default::default);
    }
    &mut books[index][principal.mode as usize]
}
