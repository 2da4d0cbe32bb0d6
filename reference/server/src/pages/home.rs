//! The page for browsers at `/` and at unknown paths, with the first steps. Programs get JSON there.

use askama::Template;
use http::{Method, StatusCode, header::ACCEPT, request::Parts};

use super::{Call, Site, html};
use crate::{answer::Answer, refusal::Refusal};

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    site: &'a Site,
    title: &'a str,
    is_lost: bool,
}

/// Returns `true` if a request accepts HTML, so comes from a browser.
pub(crate) fn wants_page(head: &Parts) -> bool {
    let asks = |value: &http::HeaderValue| value.to_str().is_ok_and(|text| text.contains("text/html"));
    matches!(head.method, Method::GET | Method::HEAD) && head.headers.get_all(ACCEPT).iter().any(asks)
}

/// Answers `/` for browsers.
pub(crate) fn home(call: &Call<'_>) -> Result<Answer, Refusal> {
    html(StatusCode::OK, &HomePage { site: &call.site()?, title: "A reference server", is_lost: false })
}

/// Answers an unknown path: the first steps for a browser, a JSON error for a program.
pub(crate) fn not_found(call: &Call<'_>) -> Result<Answer, Refusal> {
    if !wants_page(call.head) {
        return Err(Refusal::NotFound);
    }
    html(StatusCode::NOT_FOUND, &HomePage { site: &call.site()?, title: "Page not found", is_lost: true })
}
