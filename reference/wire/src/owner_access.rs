//! Reads and writes of the dashboard in the format of the API, without a key.

use bytes::Bytes;

use crate::{
    json,
    json_cache::JsonCache,
    route::{Route, RouteMatch},
};
use reference_core::{
    book::Book,
    call::{Call, CallResult},
    error::ApiError,
    id::AccountNo,
    mode::Mode,
    service::Service,
    time::Timestamp,
};

/// Returns the call of a request without a key, for [`Command::Call`](reference_core::command::Command::Call), and
/// the status of its successful response.
///
/// # Errors
///
/// Those of the API: 404 for an unknown path or object, 405 for another method, 422 for invalid fields.
pub fn parse_call(
    book: &Book,
    (method, path, query): (&str, &str, Option<&str>),
    body: &[u8],
) -> Result<(Call, u16), ApiError> {
    let RouteMatch { object, route } = Route::find(method, path)?;
    if let Some(object) = object {
        object.check_exists_in(book)?;
    }
    let route = route?;
    let status = route.success_status();
    Ok((route.parse_call(query, body)?, status))
}

/// Returns the body of the response to a successful call, as a key of the book would get it.
///
/// `base`: the base URL with which the links of a page start.
pub fn response_body(
    service: &Service,
    now: Timestamp,
    (account, mode): (AccountNo, Mode),
    base: &str,
    result: &CallResult,
) -> Bytes {
    let public_url = &service.config().public_url;
    let (account, heights) = (service.account(account), service.heights());
    let response_context = json::ResponseContext { account, mode, public_url, base, now, heights };
    // Such calls are rare, so a cache is not worth its memory.
    json::response_body(&response_context, result, &mut JsonCache::disabled())
}

/// Returns the body that a key of this book would get for `GET {path}?{query}`. It does not count against a rate limit.
/// Later pages are stable only with an explicit anchor, because the service remembers no anchor for the owner.
///
/// `base`: the base URL with which the links of a page start.
///
/// # Errors
///
/// Those of the API, and [`ApiError::MethodNotAllowed`] for a path without `GET`.
pub fn owner_read(
    service: &Service,
    now: Timestamp,
    (account, mode): (AccountNo, Mode),
    (path, query): (&str, Option<&str>),
    base: &str,
) -> Result<Bytes, ApiError> {
    let call = Route::find("GET", path)?.route?.parse_call(query, &[])?;
    let result = service.owner_read((account, mode), call)?;
    Ok(response_body(service, now, (account, mode), base, &result))
}
