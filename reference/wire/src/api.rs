//! [`Api`]: the service behind its HTTP API, with the idempotency cache and the cache of serialized objects.

use bytes::Bytes;
use reference_core::{
    call::CallResult,
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
    /// `true` if successful responses have no body, because the host does not read them. Responses to requests with an
    /// `Idempotency-Key` always have one.
    #[serde(skip)]
    omits_bodies: bool,
}

/// The state of the API for one book.
#[derive(Default, Serialize, Deserialize)]
struct BookState {
    #[serde(rename = "answers")]
    responses: IdempotencyCache,
    #[serde(skip)]
    json: JsonCache,
}

impl Api {
    /// Creates a service without accounts.
    pub fn new(config: ServiceConfig) -> Api {
        Api { service: Service::new(config), books: Vec::new(), omits_bodies: false }
    }

    /// Sets whether successful responses omit their body, for a host that does not read it. Responses to requests with
    /// an `Idempotency-Key` keep it.
    pub fn set_omits_bodies(&mut self, omits_bodies: bool) {
        self.omits_bodies = omits_bodies;
    }

    /// Responds to a request to a path under `/v1`: authenticates it, counts it, executes the call.
    ///
    /// # Panics
    ///
    /// If `now` is earlier than at a previous input.
    pub fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        match self.admit(now, request.authorization) {
            Ok(admission) => self.respond_to(now, &admission, request),
            Err(response) => response,
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

    /// Checks method and path of an admitted request, for hosts that have not read the body yet.
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

    /// Responds to an admitted request. It is not counted again, and its `authorization` is ignored.
    ///
    /// # Panics
    ///
    /// If `now` is earlier than at a previous input.
    pub fn respond_to(&mut self, now: Timestamp, admission: &Admission, request: &Request<'_>) -> Response {
        let response = self.call(now, &admission.principal, request);
        with_quota(response.unwrap_or_else(|error| Response::refusal(&error)), admission.quota)
    }

    /// Starts the next due delivery attempt. The delivery is in flight until its result is reported.
    pub fn poll_delivery(&mut self, now: Timestamp) -> Option<(AccountNo, Mode, AttemptRequest)> {
        let (account, mode, mut attempt) = self.poll_delivery_without_body(now)?;
        attempt.body = self.delivery_body((account, mode), attempt.delivery);
        Some((account, mode, attempt))
    }

    /// Like [`Api::poll_delivery`], but without the body, for hosts that rarely need it: [`Api::delivery_body`] returns
    /// the body.
    pub fn poll_delivery_without_body(
        &mut self,
        now: Timestamp,
    ) -> Option<(AccountNo, Mode, AttemptRequest)> {
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
            let call = route.parse_call(request.query, &[])?;
            // `HEAD` does not change the anchors that the service remembers to keep later pages of a list stable.
            let result = match request.method {
                "HEAD" => self.service.peek(now, principal, call)?,
                _ => self.service.on_call(now, principal, call)?,
            };
            return Ok(self.write_response(
                now,
                principal,
                request.base,
                status,
                (&result, !self.omits_bodies),
            ));
        }
        http::check_json_body(request)?;
        let scope = http::idempotency_scope(request)?;
        let call = route.parse_call(request.query, request.body)?;
        let Some(scope) = scope else {
            let result = self.service.on_call(now, principal, call)?;
            return Ok(self.write_response(
                now,
                principal,
                request.base,
                status,
                (&result, !self.omits_bodies),
            ));
        };
        let fingerprint = idempotency::fingerprint(request.query, request.body);
        match self.book_state(principal).responses.look_up(now, &scope, &fingerprint) {
            Lookup::New => {}
            Lookup::Repeated(mut response) => {
                response.headers.push(("idempotent-replayed", "true".to_owned()));
                return Ok(response);
            }
            Lookup::OtherRequest => {
                return Err(ApiError::conflict("This Idempotency-Key was used for another request."));
            }
        }
        let result = self.service.on_call(now, principal, call)?;
        // The stored response needs its body: the response to a repeated request may be read.
        let response = self.write_response(now, principal, request.base, status, (&result, true));
        self.book_state(principal).responses.store(now, scope, fingerprint, response.clone());
        Ok(response)
    }

    /// Finds the route of a request, and checks that the object in its path exists.
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
        (result, writes_body): (&CallResult, bool),
    ) -> Response {
        if !writes_body {
            return Response { status, headers: Vec::new(), body: Bytes::new() };
        }
        let cache = &mut book_state(&mut self.books, principal).json;
        let (account, public_url) =
            (self.service.account(principal.account), &self.service.config().public_url);
        let heights = self.service.heights();
        let response_context =
            json::ResponseContext { account, mode: principal.mode, public_url, base, now, heights };
        let body = json::response_body(&response_context, result, cache);
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
