//! The dashboard of the account owner.
//!
//! ```text
//! access          login, and the token of forms
//! actions         the action of each form, as requests to /sandbox
//! context         one request, and its access to the world
//! diff            line-by-line diff of two texts
//! draft           the input of a refused form
//! flash           messages that are shown once
//! fragments       HTML fragments that many pages use
//! paths           account, mode and page in a path
//! record_display  the texts for records of the world
//! render          the blocks of each page
//! ```
//!
//! Everything works without scripts, with links, and with forms whose response is a redirect. Contains no rule of the
//! service: input goes to the world unchanged, and its errors are shown.

mod access;
mod actions;
mod context;
mod diff;
mod draft;
mod flash;
mod fragments;
mod paths;
mod record_display;
mod render;

use http::{
    HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION},
};
use reference_core::{dialect::Dialect, mode::Mode};
use simulator::api::ScenarioResponse;

use self::{
    access::{AccessControl, AccessDecision, FORM_TOKEN_FIELD},
    actions::Outcome,
    context::PageContext,
    draft::Draft,
    flash::{Notice, Notices},
    paths::{BookId, Page, Query},
    render::Block,
};
use super::{
    Asset, PageRequest, Part, Topic, WorldClient, form::Form, method_not_allowed, redirect, see_other,
    stream_parts,
};
use crate::{
    refusal::Refusal,
    response::{self, HttpResponse},
};

const SCENARIO_FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"scenario.yaml\"");

/// The style sheet of the dashboard.
pub(super) static DASHBOARD_CSS: Asset =
    Asset::css("dashboard", include_str!("../../../templates/dashboard/dashboard.css"));

/// The state that all requests to the dashboard share.
pub(crate) struct Dashboard {
    access: AccessControl,
    notices: Notices,
    key_starts: [(Mode, String); 2],
}

impl Dashboard {
    /// Creates the state; fails if the operating system provides no randomness.
    pub(crate) fn new(dialect: &Dialect) -> Result<Dashboard, getrandom::Error> {
        Ok(Dashboard {
            access: AccessControl::generate()?,
            notices: Notices::default(),
            key_starts: Mode::ALL.map(|mode| (mode, dialect.key_start(mode))),
        })
    }

    /// Returns the token of forms that act with the rights of the server's owner.
    pub(crate) fn form_token(&self) -> &str {
        self.access.form_token()
    }

    /// Returns the prefix of a mode's keys.
    fn key_start(&self, mode: Mode) -> String {
        let found = self.key_starts.iter().find(|(key_mode, _)| *key_mode == mode);
        found.map(|(_, start)| start.clone()).unwrap_or_default()
    }
}

/// Checks that the caller may use the dashboard and everything beyond customers' pages: this machine, callers with the
/// token, and logged-in browsers.
pub(super) fn admit(request: &PageRequest<'_>) -> Result<(), Refusal> {
    match request.pages.dashboard.access.decide(request)? {
        AccessDecision::Granted => Ok(()),
        AccessDecision::LoginRequired => Err(Refusal::MissingToken),
    }
}

/// Responds to a request under `/dashboard`.
pub(crate) async fn respond(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    let mut response = match route(request).await {
        Err(refusal @ Refusal::Broken) => return Err(refusal),
        Err(refusal) => render::error_page(request, refusal)?,
        Ok(response) => response,
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn route(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    let access = &request.pages.dashboard.access;
    let is_read = request.method() == Method::GET;
    if !is_read && request.method() != Method::POST {
        return Ok(method_not_allowed("GET, HEAD, POST"));
    }
    let decision = access.decide(request)?;
    let query = Query::parse(request.head.uri.query());
    if is_read && let Some(token) = query.get("token") {
        return exchange_token(request, token, request.path);
    }
    let path = request.path.strip_prefix("/dashboard").ok_or(Refusal::NotFound)?;
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if let AccessDecision::LoginRequired = decision {
        return match (is_read, segments.as_slice()) {
            (false, ["login"]) => log_in(request).await,
            // A form that was sent without a login is discarded.
            _ => render::login(request, false),
        };
    }
    match segments.as_slice() {
        [] | ["login"] if is_read => see_other(&request.site()?, &first_book_id(request).await?.path("")),
        ["login"] => log_in(request).await,
        ["logout"] if !is_read => log_out(request).await,
        [account, mode, "scenario"] if is_read => {
            scenario(request, BookId::parse(account, mode).ok_or(Refusal::NotFound)?).await
        }
        [account, mode, rest @ ..] => {
            let book_id = BookId::parse(account, mode).ok_or(Refusal::NotFound)?;
            if is_read {
                show_page(request, book_id, rest, query).await
            } else {
                submit_form(request, book_id, rest).await
            }
        }
        _ => Err(Refusal::NotFound),
    }
}

/// Returns the first account, in test mode.
async fn first_book_id(request: &PageRequest<'_>) -> Result<BookId, Refusal> {
    let accounts = request.client().read(|sandbox| Ok(sandbox.overview().accounts)).await?;
    let account = accounts.into_iter().next().ok_or(Refusal::NotFound)?.id;
    Ok(BookId { account, mode: Mode::Test })
}

async fn show_page(
    request: &PageRequest<'_>,
    book_id: BookId,
    rest: &[&str],
    query: Query,
) -> Result<HttpResponse, Refusal> {
    let page = Page::parse(rest).ok_or(Refusal::NotFound)?;
    let notice = query.get("notice").and_then(|name| request.pages.dashboard.notices.take(name));
    if query.get("stream").is_some() {
        let render = move |client: WorldClient| parts(client, book_id.clone(), page.clone(), query.clone());
        // Pages of the dashboard show every event.
        let topic = Topic::new(
            request.head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            |_| true,
        );
        return stream_parts(request.client(), topic, render);
    }
    let mut context = PageContext::new(request.client(), book_id, page, query)?;
    if context.page == Page::Search
        && let Some(path) = render::search::exact_hit(&context).await?
    {
        return see_other(&context.site, &path);
    }
    context.site.live = Some(stream_url(request, &context));
    respond_with_page(request, &context, notice.as_ref()).await
}

/// Returns the parts of a page that change while it is open.
async fn parts(client: WorldClient, book_id: BookId, page: Page, query: Query) -> Result<Vec<Part>, Refusal> {
    let context = PageContext::new(client, book_id, page, query)?;
    let frame_parts = [render::menu(&context).await?, render::clock(&context)?];
    let blocks = render::render_page(&context).await?.blocks;
    let live = blocks.into_iter().filter_map(|block| match block {
        Block::Live(part) => Some(part),
        Block::Static(_) => None,
    });
    Ok(frame_parts.into_iter().chain(live).collect())
}

/// Returns the URL of the page's stream, with the same query, for the same filters and list page.
fn stream_url(request: &PageRequest<'_>, context: &PageContext) -> String {
    // A URL with a notice is the target of a redirect after a form, which has no filters.
    let query = request.head.uri.query().filter(|query| !query.is_empty() && !query.contains("notice="));
    let query = query.map_or("stream=1".to_owned(), |query| format!("{query}&stream=1"));
    context.to(format!("{}?{query}", context.page.path()))
}

/// Returns the history of the world as a scenario file.
async fn scenario(request: &PageRequest<'_>, book_id: BookId) -> Result<HttpResponse, Refusal> {
    let context = PageContext::new(request.client(), book_id, Page::History, Query::default())?;
    // The host responds from the journal of the world, so this is not a read of the sandbox.
    match context.client.send("GET", "/sandbox/scenario", "").await? {
        Ok(ScenarioResponse { scenario, .. }) => {
            let mut response = response::with_media_type(StatusCode::OK, response::YAML, scenario);
            response.headers_mut().insert(CONTENT_DISPOSITION, SCENARIO_FILE);
            Ok(response)
        }
        Err(error_response) => {
            respond_with_page(
                request,
                &PageContext { draft: Draft::from_error_response(error_response), ..context },
                None,
            )
            .await
        }
    }
}

/// Renders the page of the context with its frame.
async fn respond_with_page(
    request: &PageRequest<'_>,
    context: &PageContext,
    notice: Option<&Notice>,
) -> Result<HttpResponse, Refusal> {
    let view = render::render_page(context).await?;
    // The caller has access, so without the sandbox token or trusted loopback, it has the cookie of a login.
    let is_logged_in = request.admit().is_err();
    render::shell(context, &view, notice, is_logged_in).await
}

/// Performs the action of a form and redirects the browser, or renders the form again with its errors.
async fn submit_form(
    request: &PageRequest<'_>,
    book_id: BookId,
    rest: &[&str],
) -> Result<HttpResponse, Refusal> {
    if !actions::accepts_form(rest) {
        return Err(Refusal::NotFound);
    }
    let form = read_own_form(request).await?;
    let context = PageContext::new(request.client(), book_id, Page::Overview, Query::default())?;
    let (page, outcome) = actions::perform(&context, rest, &form).await?;
    match outcome {
        Outcome::Success(notice) => {
            let name = request.pages.dashboard.notices.put(notice);
            let path = page.path() + &paths::query_string(&[("notice", name.as_deref())]);
            see_other(&context.site, &context.book_id.path(&path))
        }
        Outcome::NewWorld { dashboard_path, notice } => {
            let name = request.pages.dashboard.notices.put(notice);
            redirect(&(dashboard_path + &paths::query_string(&[("notice", name.as_deref())])))
        }
        Outcome::Error(error_response) => {
            let form_path = format!("/{}", rest.join("/"));
            let draft = Draft::new(form_path, form, error_response);
            let mut context = PageContext { page, draft, ..context };
            // The action may have changed the clock.
            context.site = request.site()?;
            respond_with_page(request, &context, None).await
        }
    }
}

/// Reads a form and checks that a page of this run of the server sent it.
///
/// # Errors
///
/// [`Refusal::ForeignForm`] for any other form. A form of another origin is refused before its body is read.
pub(crate) async fn read_own_form(request: &PageRequest<'_>) -> Result<Form, Refusal> {
    request.admit_form()?;
    let form = request.form().await?;
    request.pages.dashboard.access.check_form_token(form.text(FORM_TOKEN_FIELD))?;
    Ok(form)
}

/// Handles the login form.
async fn log_in(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    let form = read_own_form(request).await?;
    exchange_token(request, form.text("token").unwrap_or_default(), "/dashboard")
}

/// Exchanges the sandbox token for a session cookie and redirects to a URL without the token.
fn exchange_token(request: &PageRequest<'_>, token: &str, path: &str) -> Result<HttpResponse, Refusal> {
    if !AccessControl::is_sandbox_token(request, token) {
        return render::login(request, true);
    }
    let mut response = see_other(&request.site()?, path)?;
    request.pages.dashboard.access.log_in(request, &mut response)?;
    Ok(response)
}

async fn log_out(request: &PageRequest<'_>) -> Result<HttpResponse, Refusal> {
    read_own_form(request).await?;
    let mut response = see_other(&request.site()?, "/dashboard")?;
    AccessControl::log_out(request, &mut response)?;
    Ok(response)
}
