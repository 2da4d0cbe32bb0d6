//! The page with the first steps, which browsers get at `/` and at unknown paths. Other clients get JSON there.

use askama::Template;
use http::{Method, StatusCode, header::ACCEPT, request::Parts};

use super::{PageRequest, Site, html};
use crate::{refusal::Refusal, response::HttpResponse};

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage<'a> {
    site: &'a Site,
    title: &'a str,
    is_not_found: bool,
}

/// Returns `true` if a `GET` or `HEAD` request accepts HTML, as those of browsers do.
pub(crate) fn accepts_html(head: &Parts) -> bool {
    let has_html = |value: &http::HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/html"));
    matches!(head.method, Method::GET | Method::HEAD) && head.headers.get_all(ACCEPT).iter().any(has_html)
}

/// Responds to `/` for browsers.
pub(crate) fn home(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    html(
        StatusCode::OK,
        &HomePage { site: &request.site()?, title: "A reference server", is_not_found: false },
    )
}

/// Responds to an unknown path: with the first steps for a browser, with a JSON error for a program.
pub(crate) fn not_found(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    if !accepts_html(request.head) {
        return Err(Refusal::NotFound);
    }
    html(
        StatusCode::NOT_FOUND,
        &HomePage { site: &request.site()?, title: "Page not found", is_not_found: true },
    )
}
