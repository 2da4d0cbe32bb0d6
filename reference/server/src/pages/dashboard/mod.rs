//! The dashboard of the account owner.
//!
//! ```text
//! access   login, and the token of forms
//! paths    account, mode and page in a path
//! context  one request, and its access to the world
//! draw     the blocks of each page
//! actions  the action of each form, as calls of /sandbox
//! compare  line-by-line diff of two payloads
//! flash    messages that are shown once
//! ```
//!
//! Everything works without scripts, with links and with forms that are answered by a redirect. Contains no rule of the
//! service: input goes to the world unchanged, and its errors are shown.

mod access;
mod actions;
mod compare;
mod context;
mod draft;
mod draw;
mod facts;
mod flash;
mod fragments;
mod paths;

use http::{
    HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION},
};
use reference_core::{dialect::Dialect, mode::Mode};
use simulator::api::ScenarioAnswer;

use self::{
    access::{Access, AccessDecision},
    actions::Outcome,
    context::PageContext,
    draft::Draft,
    draw::Block,
    flash::{Notice, Notices},
    paths::{BookId, Page, Query},
};
use super::{
    Asset, Call, Part, Topic, WorldClient, follow, form::Form, method_not_allowed, redirect, see_other,
};
use crate::{
    answer::{self, Answer},
    refusal::Refusal,
};

const SCENARIO_FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"scenario.yaml\"");

/// The style sheet of the dashboard.
pub(super) static DASHBOARD_CSS: Asset =
    Asset::css("dashboard", include_str!("../../../templates/dashboard/dashboard.css"));

/// The state that all requests to the dashboard share.
pub(crate) struct Dashboard {
    access: Access,
    notices: Notices,
    key_starts: [(Mode, String); 2],
}

impl Dashboard {
    /// Creates the state; fails if the operating system provides no randomness.
    pub(crate) fn new(dialect: &Dialect) -> Result<Dashboard, getrandom::Error> {
        Ok(Dashboard {
            access: Access::generate()?,
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
        let found = self.key_starts.iter().find(|(known, _)| *known == mode);
        found.map(|(_, start)| start.clone()).unwrap_or_default()
    }
}

/// Checks that the caller may use the dashboard and everything beyond customers' pages: this machine, callers with the
/// token, and logged-in browsers.
pub(super) fn admit(call: &Call<'_>) -> Result<(), Refusal> {
    match call.pages.dashboard.access.judge(call)? {
        AccessDecision::Open => Ok(()),
        AccessDecision::Login => Err(Refusal::SandboxToken),
    }
}

/// Answers a request under `/dashboard`.
pub(crate) async fn answer(call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut answer = match enter(call).await {
        Err(refusal @ Refusal::Broken) => return Err(refusal),
        Err(refusal) => draw::error_page(call, refusal)?,
        Ok(answer) => answer,
    };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

async fn enter(call: &Call<'_>) -> Result<Answer, Refusal> {
    let access = &call.pages.dashboard.access;
    let is_read = call.method() == Method::GET;
    if !is_read && call.method() != Method::POST {
        return Ok(method_not_allowed("GET, HEAD, POST"));
    }
    let entry = access.judge(call)?;
    let query = Query::read(call.head.uri.query());
    if is_read && let Some(token) = query.get("token") {
        return exchange(call, token, call.path);
    }
    let path = call.path.strip_prefix("/dashboard").ok_or(Refusal::NotFound)?;
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if let AccessDecision::Login = entry {
        return match (is_read, segments.as_slice()) {
            (false, ["login"]) => log_in(call).await,
            // A form that was sent without a login is discarded.
            _ => draw::login(call, false),
        };
    }
    match segments.as_slice() {
        [] | ["login"] if is_read => see_other(&call.site()?, &first_place(call).await?.path("")),
        ["login"] => log_in(call).await,
        ["logout"] if !is_read => log_out(call).await,
        [account, mode, "scenario"] if is_read => {
            scenario(call, BookId::read(account, mode).ok_or(Refusal::NotFound)?).await
        }
        [account, mode, rest @ ..] => {
            let place = BookId::read(account, mode).ok_or(Refusal::NotFound)?;
            if is_read { show(call, place, rest, query).await } else { act(call, place, rest).await }
        }
        _ => Err(Refusal::NotFound),
    }
}

/// Returns the first account, in test mode.
async fn first_place(call: &Call<'_>) -> Result<BookId, Refusal> {
    let accounts = call.client().read(|sandbox| Ok(sandbox.overview().accounts)).await?;
    let account = accounts.into_iter().next().ok_or(Refusal::NotFound)?.id;
    Ok(BookId { account, mode: Mode::Test })
}

async fn show(call: &Call<'_>, place: BookId, rest: &[&str], query: Query) -> Result<Answer, Refusal> {
    let page = Page::read(rest).ok_or(Refusal::NotFound)?;
    let notice = query.get("notice").and_then(|name| call.pages.dashboard.notices.take(name));
    if query.get("stream").is_some() {
        let drawn = move |client: WorldClient| parts(client, place.clone(), page.clone(), query.clone());
        // Pages of the dashboard show every event.
        let topic =
            Topic::new(call.head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(), |_| true);
        return follow(call.client(), topic, drawn);
    }
    let mut context = PageContext::new(call.client(), place, page, query)?;
    if context.page == Page::Search
        && let Some(path) = draw::search::exact_hit(&context).await?
    {
        return see_other(&context.site, &path);
    }
    context.site.live = Some(stream(call, &context));
    finish(call, &context, notice.as_ref()).await
}

/// Returns the parts of a page that change while it is open.
async fn parts(client: WorldClient, place: BookId, page: Page, query: Query) -> Result<Vec<Part>, Refusal> {
    let context = PageContext::new(client, place, page, query)?;
    let around = [draw::menu(&context).await?, draw::clock(&context)?];
    let blocks = draw::render_page(&context).await?.blocks;
    let live = blocks.into_iter().filter_map(|block| match block {
        Block::Live(part) => Some(part),
        Block::Still(_) => None,
    });
    Ok(around.into_iter().chain(live).collect())
}

/// Returns the address of the page's stream: the same query, for the same filters and page.
fn stream(call: &Call<'_>, context: &PageContext) -> String {
    let query = call.head.uri.query().filter(|query| !query.is_empty() && !query.contains("notice="));
    let query = query.map_or("stream=1".to_owned(), |query| format!("{query}&stream=1"));
    context.to(format!("{}?{query}", context.page.path()))
}

/// Returns the history of the world as a scenario file.
async fn scenario(call: &Call<'_>, place: BookId) -> Result<Answer, Refusal> {
    let context = PageContext::new(call.client(), place, Page::History, Query::default())?;
    // The host answers this from the journal of the world, so it is not a read of the sandbox.
    match context.client.act("GET", "/sandbox/scenario", "").await? {
        Ok(ScenarioAnswer { scenario, .. }) => {
            let mut answer = answer::with_media_type(StatusCode::OK, answer::YAML, scenario);
            answer.headers_mut().insert(CONTENT_DISPOSITION, SCENARIO_FILE);
            Ok(answer)
        }
        Err(complaint) => {
            finish(call, &PageContext { draft: Draft::from_complaint(complaint), ..context }, None).await
        }
    }
}

async fn finish(call: &Call<'_>, context: &PageContext, notice: Option<&Notice>) -> Result<Answer, Refusal> {
    let view = draw::render_page(context).await?;
    draw::shell(context, &view, notice, call.admit().is_err()).await
}

/// Performs the action of a form and redirects the browser, or shows the form again with its errors.
async fn act(call: &Call<'_>, place: BookId, rest: &[&str]) -> Result<Answer, Refusal> {
    if !actions::accepts_form(rest) {
        return Err(Refusal::NotFound);
    }
    let form = own_form(call).await?;
    let context = PageContext::new(call.client(), place, Page::Overview, Query::default())?;
    let (page, outcome) = actions::act(&context, rest, &form).await?;
    match outcome {
        Outcome::Done(notice) => {
            let name = call.pages.dashboard.notices.put(notice);
            let path = page.path() + &paths::query(&[("notice", name.as_deref())]);
            see_other(&context.site, &context.place.path(&path))
        }
        Outcome::Opened { dashboard, notice } => {
            let name = call.pages.dashboard.notices.put(notice);
            redirect(&(dashboard + &paths::query(&[("notice", name.as_deref())])))
        }
        Outcome::Refused(complaint) => {
            let sent_to = format!("/{}", rest.join("/"));
            let draft = Draft::new(sent_to, form, complaint);
            let mut context = PageContext { page, draft, ..context };
            context.site = call.site()?;
            finish(call, &context, None).await
        }
    }
}

/// Reads a form and checks that a page of this run of the server sent it.
///
/// # Errors
///
/// [`Refusal::FormOrigin`] for any other form. A form of another origin is refused before its body is read.
pub(crate) async fn own_form(call: &Call<'_>) -> Result<Form, Refusal> {
    call.admit_form()?;
    let form = call.form().await?;
    call.pages.dashboard.access.judge_form(form.text("word"))?;
    Ok(form)
}

/// Handles the login form.
async fn log_in(call: &Call<'_>) -> Result<Answer, Refusal> {
    let form = own_form(call).await?;
    exchange(call, form.text("token").unwrap_or_default(), "/dashboard")
}

/// Exchanges the token for a cookie and redirects to a URL without the token.
fn exchange(call: &Call<'_>, token: &str, path: &str) -> Result<Answer, Refusal> {
    if !Access::is_token(call, token) {
        return draw::login(call, true);
    }
    let mut answer = see_other(&call.site()?, path)?;
    call.pages.dashboard.access.log_in(call, &mut answer)?;
    Ok(answer)
}

async fn log_out(call: &Call<'_>) -> Result<Answer, Refusal> {
    own_form(call).await?;
    let mut answer = see_other(&call.site()?, "/dashboard")?;
    Access::log_out(call, &mut answer)?;
    Ok(answer)
}
