//! A request as the service needs to see it, and its answer, both free of any HTTP library.

use bytes::Bytes;

use super::{json, route::Route};
use crate::{
    call::Answer,
    error::ApiError,
    idempotency::{self, Known},
    key::Principal,
    service::{Admission, Quota, Service},
    time::Timestamp,
};

/// What a host hands over of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// The path as received, still percent-encoded, without any prefix of the host's: `/v1/charges`.
    pub path: &'a str,
    /// What stands after `?`, still encoded.
    pub query: Option<&'a str>,
    /// The `Authorization` header; nothing if there is none or more than one.
    pub authorization: Option<&'a [u8]>,
    /// The `Content-Type` header.
    pub content_type: Option<&'a [u8]>,
    /// The `Idempotency-Key` header.
    pub idempotency_key: Option<&'a [u8]>,
    /// The address the client called, without a slash at the end: `http://127.0.0.1:8080`. Links start with it.
    pub base: &'a str,
    /// The body, already bounded by the host.
    pub body: &'a [u8],
}

/// What goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, and their values.
    pub headers: Vec<(&'static str, String)>,
    /// The body, JSON unless the headers say otherwise.
    pub body: Bytes,
}

/// The largest body that is read.
pub const BODY_MAX: usize = 256 * 1024;
const IDEMPOTENCY_KEY_MAX: usize = 255;

impl Response {
    /// The answer to a refused call, on any path of the service.
    pub fn refusal(error: &ApiError) -> Response {
        let mut headers = Vec::new();
        match error {
            ApiError::UnknownKey => headers.push(("www-authenticate", "Bearer".to_owned())),
            ApiError::WrongMethod { allow } => headers.push(("allow", (*allow).to_owned())),
            ApiError::TooMany { retry_after_secs, .. } => {
                headers.push(("retry-after", retry_after_secs.to_string()));
            }
            _ => {}
        }
        Response { status: error.status(), headers, body: json::error(error).into() }
    }
}

/// Answers a request to a path under `/v1`: who asks, what for, and then the call itself.
pub fn respond(service: &mut Service, now: Timestamp, request: &Request<'_>) -> Response {
    match admit(service, now, request.authorization) {
        Ok(admission) => respond_to(service, now, &admission, request),
        Err(refusal) => refusal,
    }
}

/// Who asks, or the refusal as it goes back. Counts as one request of the key.
pub fn admit(
    service: &mut Service,
    now: Timestamp,
    authorization: Option<&[u8]>,
) -> Result<Admission, Response> {
    service
        .admit(now, bearer(authorization))
        .map_err(|(error, quota)| with_quota(Response::refusal(&error), quota))
}

/// Answers a request of a key that was admitted: it is not counted again, and its `authorization` is not looked at.
pub fn respond_to(
    service: &mut Service,
    now: Timestamp,
    admission: &Admission,
    request: &Request<'_>,
) -> Response {
    let answer = call(service, now, &admission.principal, request);
    with_quota(answer.unwrap_or_else(|error| Response::refusal(&error)), admission.quota)
}

fn with_quota(mut response: Response, quota: Option<Quota>) -> Response {
    response.headers.extend(quota_headers(quota));
    response
}

/// What says how much a key may still ask: nothing without a limit.
pub fn quota_headers(quota: Option<Quota>) -> Vec<(&'static str, String)> {
    quota.map_or_else(Vec::new, |quota| {
        vec![
            ("x-ratelimit-limit", quota.limit.to_string()),
            ("x-ratelimit-remaining", quota.remaining.to_string()),
        ]
    })
}

/// The token of `Authorization: Bearer <token>`.
pub fn bearer(authorization: Option<&[u8]>) -> Option<&[u8]> {
    let (scheme, token) = authorization?.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

fn call(
    service: &mut Service,
    now: Timestamp,
    who: &Principal,
    request: &Request<'_>,
) -> Result<Response, ApiError> {
    let route = Route::find(request.method, request.path)?;
    let status = route.success();
    if !route.is_write() {
        let call = route.call(request.query, &[])?;
        let answer = service.on_call(now, who, call)?;
        return Ok(reply(service, now, who, request.base, status, &answer));
    }
    if request.body.len() > BODY_MAX {
        return Err(ApiError::BodyTooLarge);
    }
    if !request.body.is_empty() && !is_json(request.content_type) {
        return Err(ApiError::NotJson);
    }
    let Some(scope) = idempotency_scope(request)? else {
        let answer = service.on_call(now, who, route.call(request.query, request.body)?)?;
        return Ok(reply(service, now, who, request.base, status, &answer));
    };
    let print = idempotency::fingerprint(request.query, request.body);
    let answers = &mut service.book_mut(who.account, who.mode).answers;
    match answers.look_up(now, &scope, &print) {
        Known::Fresh => {}
        Known::Same(mut response) => {
            response.headers.push(("idempotent-replayed", "true".to_owned()));
            return Ok(response);
        }
        Known::Other => {
            return Err(ApiError::conflict("This Idempotency-Key was used for another request."));
        }
    }
    let answer = service.on_call(now, who, route.call(request.query, request.body)?)?;
    let response = reply(service, now, who, request.base, status, &answer);
    service.book_mut(who.account, who.mode).answers.keep(now, scope, print, response.clone());
    Ok(response)
}

fn reply(
    service: &mut Service,
    now: Timestamp,
    who: &Principal,
    base: &str,
    status: u16,
    answer: &Answer,
) -> Response {
    let mut fragments = std::mem::take(&mut service.book_mut(who.account, who.mode).fragments);
    let public_url = &service.start().public_url;
    let scene = json::Scene { account: service.account(who.account), mode: who.mode, public_url, base, now };
    let body = json::answer(&scene, answer, &mut fragments);
    service.book_mut(who.account, who.mode).fragments = fragments;
    Response { status, headers: Vec::new(), body }
}

/// `application/json`, or another type of JSON, whatever its parameters.
fn is_json(content_type: Option<&[u8]>) -> bool {
    let Some(Ok(text)) = content_type.map(std::str::from_utf8) else { return false };
    let essence = text.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Under what an answer is kept: method, path and key. Account and mode are the book's.
fn idempotency_scope(request: &Request<'_>) -> Result<Option<String>, ApiError> {
    let Some(key) = request.idempotency_key else { return Ok(None) };
    let key = std::str::from_utf8(key)
        .map_err(|_| ApiError::Malformed("The Idempotency-Key header is not UTF-8.".into()))?;
    if key.chars().count() > IDEMPOTENCY_KEY_MAX {
        return Err(ApiError::Malformed(
            format!("The Idempotency-Key header is longer than {IDEMPOTENCY_KEY_MAX} characters.").into(),
        ));
    }
    Ok(Some(format!("{} {} {key}", request.method, request.path)))
}
