//! [`Request`] and [`Response`], independent of any HTTP library.

use bytes::Bytes;
use reference_core::{error::ApiError, service::Quota};

use crate::json;

/// A request, as the HTTP server passes it to the service.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// The path as received, still percent-encoded, without a path prefix of the server: `/v1/charges`.
    pub path: &'a str,
    /// The query after `?`, still encoded.
    pub query: Option<&'a str>,
    /// The `Authorization` header; `None` if it is missing or was sent more than once.
    pub authorization: Option<&'a [u8]>,
    /// The `Content-Type` header.
    pub content_type: Option<&'a [u8]>,
    /// The `Idempotency-Key` header; empty if it was sent more than once, so that the request is refused.
    pub idempotency_key: Option<&'a [u8]>,
    /// The base URL that the client used, without a slash at the end: `http://127.0.0.1:8080`. The links of a page of a
    /// list start with it.
    pub base: &'a str,
    /// The body. A write with more than [`BODY_MAX`] bytes is refused.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Creates a request without credentials, query and body.
    pub const fn new(base: &'a str, method: &'a str, path: &'a str) -> Request<'a> {
        Request {
            method,
            path,
            query: None,
            authorization: None,
            content_type: None,
            idempotency_key: None,
            base,
            body: b"",
        }
    }

    /// Creates a request with a JSON body.
    pub const fn json(base: &'a str, method: &'a str, path: &'a str, body: &'a str) -> Request<'a> {
        let without_body = Request::new(base, method, path);
        Request { content_type: Some(b"application/json"), body: body.as_bytes(), ..without_body }
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, and their values.
    pub headers: Vec<(&'static str, String)>,
    /// The body, JSON unless a `content-type` header names another type.
    pub body: Bytes,
}

/// The maximum size of the body of a write, in bytes.
pub const BODY_MAX: usize = 256 * 1024;
/// The largest length of an `Idempotency-Key`, in characters.
const IDEMPOTENCY_KEY_MAX: usize = 255;
/// The `Retry-After` of a missing exchange rate. The time of the next rate is unknown; a retry per minute is enough.
const NO_RATE_RETRY_SECS: u32 = 60;

impl Response {
    /// Returns the response to a call that failed with this error.
    pub fn refusal(error: &ApiError) -> Response {
        let mut headers = Vec::new();
        match error {
            ApiError::Unauthenticated => headers.push(("www-authenticate", "Bearer".to_owned())),
            ApiError::MethodNotAllowed { allow } => headers.push(("allow", allow.to_string())),
            ApiError::RateLimited { retry_after_secs, .. } => {
                headers.push(("retry-after", retry_after_secs.to_string()));
            }
            ApiError::NoRate(_) => headers.push(("retry-after", NO_RATE_RETRY_SECS.to_string())),
            _ => {}
        }
        Response { status: error.status(), headers, body: json::error(error).into() }
    }
}

/// Adds the [`quota_headers`] to a response.
pub(crate) fn with_quota(mut response: Response, quota: Option<Quota>) -> Response {
    response.headers.extend(quota_headers(quota));
    response
}

/// Returns the headers with the request limit and the remaining quota of a key; none without a limit.
pub fn quota_headers(quota: Option<Quota>) -> Vec<(&'static str, String)> {
    quota.map_or_else(Vec::new, |quota| {
        vec![
            ("x-ratelimit-limit", quota.limit.to_string()),
            ("x-ratelimit-remaining", quota.remaining.to_string()),
        ]
    })
}

/// Returns the token of `Authorization: Bearer <token>`.
pub fn bearer(authorization: Option<&[u8]>) -> Option<&[u8]> {
    let (scheme, token) = authorization?.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
}

/// Checks the size of a body, and its content type unless it is empty.
pub(crate) fn check_json_body(request: &Request<'_>) -> Result<(), ApiError> {
    if request.body.len() > BODY_MAX {
        return Err(ApiError::BodyTooLarge);
    }
    if !request.body.is_empty() && !is_json(request.content_type) {
        return Err(ApiError::UnsupportedMediaType);
    }
    Ok(())
}

/// Returns `true` for `application/json` or another JSON type, with any parameters.
fn is_json(content_type: Option<&[u8]>) -> bool {
    let Some(Ok(text)) = content_type.map(std::str::from_utf8) else { return false };
    let media_type = text.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

/// Returns the scope under which the idempotency cache stores the response: method, path and `Idempotency-Key`. `None`
/// if the request has no such header.
pub(crate) fn idempotency_scope(request: &Request<'_>) -> Result<Option<String>, ApiError> {
    let Some(key) = request.idempotency_key else { return Ok(None) };
    let key = std::str::from_utf8(key)
        .map_err(|_| ApiError::Malformed("The Idempotency-Key header is not UTF-8.".into()))?;
    // A blank key is refused: some HTTP libraries send a blank header, trimmed or not, for a missing key.
    if key.trim().is_empty() || key.chars().count() > IDEMPOTENCY_KEY_MAX {
        let message = format!(
            "The Idempotency-Key header must be sent once, with 1 to {IDEMPOTENCY_KEY_MAX} characters."
        );
        return Err(ApiError::Malformed(message.into()));
    }
    Ok(Some(format!("{} {} {key}", request.method, request.path)))
}
