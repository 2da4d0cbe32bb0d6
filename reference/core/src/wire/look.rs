//! What the account owner sees in the dashboard, written as the API and the webhooks write it.

use bytes::Bytes;

use super::{Fragments, json, route::Route, webhook};
use crate::{
    book::Book, error::ApiError, id::AccountNo, mode::Mode, outbox::Delivery, service::Service,
    time::Timestamp,
};

/// The body that a key of this book would get for `GET {path}?{query}`. No key is asked for and no limit
/// counts; page 2 and later need an anchor to belong to an earlier page 1, because nobody's place is
/// remembered.
///
/// `base`: what the links in lists start with. Fails as the API would, and with a path that writes.
pub fn look(
    service: &Service,
    now: Timestamp,
    (account, mode): (AccountNo, Mode),
    (path, query): (&str, Option<&str>),
    base: &str,
) -> Result<Bytes, ApiError> {
    let call = Route::find("GET", path)?.call(query, &[])?;
    let answer = service.look((account, mode), call)?;
    let public_url = &service.start().public_url;
    let scene = json::Scene { account: service.account(account), mode, public_url, base, now };
    // A look is rare, and changes nothing: what it writes is not kept.
    Ok(json::answer(&scene, &answer, &mut Fragments::unkept()))
}

/// The whole body that is posted for a delivery of a book, byte for byte.
pub fn delivery_body(book: &Book, delivery: &Delivery) -> Vec<u8> {
    webhook::body(book, delivery)
}
