//! What the account owner sees in the dashboard, written as the API writes it.

use bytes::Bytes;

use crate::{json, json_cache::JsonCache, route::Route};
use reference_core::{error::ApiError, id::AccountNo, mode::Mode, service::Service, time::Timestamp};

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
    let public_url = &service.config().public_url;
    let scene = json::Scene { account: service.account(account), mode, public_url, base, now };
    // A look is rare, and changes nothing: what it writes is not kept.
    Ok(json::answer(&scene, &answer, &mut JsonCache::disabled()))
}
