//! The account owner's view of a book in the dashboard, read and written in the form of the API.

use bytes::Bytes;

use crate::{
    json,
    json_cache::JsonCache,
    route::{Found, Route},
};
use reference_core::{
    book::Book,
    call::{Answer, Call},
    error::ApiError,
    id::AccountNo,
    mode::Mode,
    service::Service,
    time::Timestamp,
};

/// Returns the call of a request without a key, for [`Command::Call`](reference_core::command::Command::Call), and
/// the status of its success.
///
/// # Errors
///
/// As the API answers such a request: 404 for an unknown path or object, 405 for another method, 422 for wrong
/// fields.
pub fn read_call(
    book: &Book,
    (method, path, query): (&str, &str, Option<&str>),
    body: &[u8],
) -> Result<(Call, u16), ApiError> {
    let Found { object, route } = Route::find(method, path)?;
    if let Some(object) = object {
        object.must_be_in(book)?;
    }
    let route = route?;
    let status = route.success();
    Ok((route.call(query, body)?, status))
}

/// An answer as a key of the book would get it.
///
/// `base`: what the links in lists start with.
pub fn write_answer(
    service: &Service,
    now: Timestamp,
    (account, mode): (AccountNo, Mode),
    base: &str,
    answer: &Answer,
) -> Bytes {
    let public_url = &service.config().public_url;
    let (account, heights) = (service.account(account), service.heights());
    let scene = json::Scene { account, mode, public_url, base, now, heights };
    // A look is rare: what it writes is not kept.
    json::answer(&scene, answer, &mut JsonCache::disabled())
}

/// The body that a key of this book would get for `GET {path}?{query}`. No key is asked for and no limit
/// counts; page 2 and later need an anchor to belong to an earlier page 1, because nobody's place is
/// remembered.
///
/// `base`: what the links in lists start with.
///
/// # Errors
///
/// As the API answers such a request, and [`ApiError::WrongMethod`] for a path that only writes.
pub fn look(
    service: &Service,
    now: Timestamp,
    (account, mode): (AccountNo, Mode),
    (path, query): (&str, Option<&str>),
    base: &str,
) -> Result<Bytes, ApiError> {
    let call = Route::find("GET", path)?.route?.call(query, &[])?;
    let answer = service.look((account, mode), call)?;
    Ok(write_answer(service, now, (account, mode), base, &answer))
}
