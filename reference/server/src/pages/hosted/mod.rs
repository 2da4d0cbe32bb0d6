//! The pages for customers: checkout and receipt, payment link, invoice and its document.
//!
//! Anyone with the URL may open them. Only callers with access to the dashboard see the test panel.

mod brand;
mod checkout;
mod coin;
mod invoice;
mod link;
mod model;
mod panel;

use askama::Template;
use http::{Method, StatusCode, header::ACCEPT};
use reference_core::id::Code;

pub(super) use brand::brand_css;

use self::model::HostedPage;
use super::{Asset, PageRequest, Site, WorldClient, html, method_not_allowed};
use crate::{refusal::Refusal, response::HttpResponse};

/// The style sheet of hosted pages.
pub(crate) static HOSTED_CSS: Asset =
    Asset::css("hosted", include_str!("../../../templates/hosted/hosted.css"));
/// The script of hosted pages, in addition to that of all pages.
pub(crate) static HOSTED_JS: Asset = Asset::js("hosted", include_str!("../../../templates/hosted/hosted.js"));

/// Responds to a request under `/c`, `/pay` or `/i`.
pub(crate) async fn respond(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    let segments: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    let is_get = request.method() == Method::GET;
    let is_post = request.method() == Method::POST;
    match segments.as_slice() {
        ["c", code] if is_get => checkout::page(request, code).await,
        ["c", code, "live"] if is_get => checkout::live_updates(request, code).await,
        ["c", code, "receipt"] if is_get => checkout::receipt(request, code).await,
        ["c", code, "sandbox"] if is_post => panel::perform_action(request, &format!("/c/{code}")).await,
        ["i", code] if is_get => invoice::page(request, code).await,
        ["i", code, "live"] if is_get => invoice::live_updates(request, code).await,
        ["i", code, "document"] if is_get => invoice::document(request, code).await,
        ["i", code, "coin"] if is_post => invoice::choose_coin(request, code).await,
        ["i", code, "sandbox"] if is_post => panel::perform_action(request, &format!("/i/{code}")).await,
        ["pay", code, "sandbox"] if is_post => panel::perform_action(request, &format!("/pay/{code}")).await,
        ["pay", code] if is_get => link::page(request, code).await,
        ["pay", code] if is_post => link::open_charge(request, code).await,
        ["c" | "i" | "pay", _]
        | ["c", _, "live" | "receipt" | "sandbox"]
        | ["pay", _, "sandbox"]
        | ["i", _, "live" | "document" | "coin" | "sandbox"] => {
            Ok(method_not_allowed(match segments.as_slice() {
                ["pay", _] => "GET, HEAD, POST",
                [_, _, "sandbox" | "coin"] => "POST",
                _ => "GET, HEAD",
            }))
        }
        _ => page_not_found(request),
    }
}

/// Reads the content of the page at `path`, which ends with the code of its object; `None` if there is no such object.
async fn load<P: HostedPage>(client: &WorldClient, path: &str) -> Result<Option<P>, Refusal> {
    let Some(code) = path.rsplit('/').next().and_then(Code::parse) else { return Ok(None) };
    match client.read(|sandbox| P::read(sandbox, code)).await {
        Err(Refusal::NotFound) => Ok(None),
        page => page.map(Some),
    }
}

/// Returns `true` if the page's script sent the form: it displays the result itself.
fn wants_json(request: &PageRequest<'_>) -> bool {
    request.head.headers.get(ACCEPT).is_some_and(|accept| accept == "application/json")
}

#[derive(Template)]
#[template(path = "hosted/notice.html")]
struct NoticeTemplate<'a> {
    site: Site,
    heading: &'a str,
    message: &'a str,
    back: Option<String>,
}

/// Renders an error page. `back`: the page to return to.
fn error_page(site: Site, status: StatusCode, message: &str, back: &str) -> Result<HttpResponse, Refusal> {
    let back = Some(site.to(back));
    html(status, &NoticeTemplate { site, heading: "The request failed", message, back })
}

/// Renders the page for an unknown object.
fn page_not_found(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    let message = "There is no payment at this address. Check that the link is complete, or ask its sender.";
    let site = request.site()?;
    html(StatusCode::NOT_FOUND, &NoticeTemplate { site, heading: "Page not found", message, back: None })
}
