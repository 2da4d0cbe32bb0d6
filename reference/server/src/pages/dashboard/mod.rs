//! The dashboard: what the account owner sees and does.
//!
//! ```text
//! access   who may come in, and which forms are ours
//! place    account, mode and page in a path
//! context  one request: where it is, and how it asks the world
//! draw     what each page shows, as blocks
//! acts     what each form does, as calls of /sandbox
//! compare  two payloads, line by line
//! flash    what is shown once afterwards
//! ```
//!
//! Everything works without scripts: forms that are sent, answered with a redirection, and links. Holds no
//! rule of the service: whatever is typed goes to the world as it is, and what the world says against it is
//! shown.

mod access;
mod acts;
mod compare;
mod context;
mod draft;
mod draw;
mod facts;
mod flash;
mod pieces;
mod place;

use http::{
    HeaderValue, Method, StatusCode,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION},
};
use reference_core::{dialect::Dialect, mode::Mode};
use simulator::api::ScenarioAnswer;

use self::{
    access::{Access, Entrance},
    acts::Outcome,
    context::PageContext,
    draft::Draft,
    draw::Block,
    flash::{Notice, Notices},
    place::{Page, Place, Query},
};
use super::{Asker, Asset, Call, Part, Topic, follow, form::Form, redirect, see_other, takes_only};
use crate::{
    answer::{self, Answer},
    refusal::Refusal,
};

const SCENARIO_FILE: HeaderValue = HeaderValue::from_static("attachment; filename=\"scenario.yaml\"");

/// The look of the dashboard.
pub(super) static DASHBOARD_CSS: Asset =
    Asset::css("dashboard", include_str!("../../../templates/dashboard/dashboard.css"));

/// The state that all requests to the dashboard share.
pub(crate) struct Dashboard {
    access: Access,
    notices: Notices,
    key_starts: [(Mode, String); 2],
}

impl Dashboard {
    /// Fails if the operating system gives no randomness.
    pub(crate) fn new(dialect: &Dialect) -> Result<Dashboard, getrandom::Error> {
        Ok(Dashboard {
            access: Access::draw()?,
            notices: Notices::default(),
            key_starts: Mode::ALL.map(|mode| (mode, dialect.key_start(mode))),
        })
    }

    /// The token of every form that acts with the rights of the server's owner.
    pub(crate) fn form_word(&self) -> &str {
        self.access.form_word()
    }

    /// Returns the start of a mode's keys.
    fn key_start(&self, mode: Mode) -> String {
        let found = self.key_starts.iter().find(|(known, _)| *known == mode);
        found.map(|(_, start)| start.clone()).unwrap_or_default()
    }
}

/// Checks that the caller may use the dashboard, and with it all that goes beyond customers' pages: this machine,
/// callers with the token, and browsers that sent it once.
pub(super) fn admit(call: &Call<'_>) -> Result<(), Refusal> {
    match call.pages.dashboard.access.judge(call)? {
        Entrance::Open => Ok(()),
        Entrance::Login => Err(Refusal::SandboxToken),
    }
}

/// Answers a request under `/dashboard`.
pub(crate) async fn answer(call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut answer = match enter(call).await {
        Err(refusal @ Refusal::Broken) => return Err(refusal),
        Err(refusal) => draw::plain(call, refusal)?,
        Ok(answer) => answer,
    };
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

async fn enter(call: &Call<'_>) -> Result<Answer, Refusal> {
    let access = &call.pages.dashboard.access;
    let is_read = call.method() == Method::GET;
    if !is_read && call.method() != Method::POST {
        return Ok(takes_only("GET, HEAD, POST"));
    }
    let entry = access.judge(call)?;
    let query = Query::read(call.head.uri.query());
    if is_read && let Some(token) = query.get("token") {
        return exchange(call, token, call.path);
    }
    let path = call.path.strip_prefix("/dashboard").ok_or(Refusal::NotFound)?;
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if let Entrance::Login = entry {
        return match (is_read, segments.as_slice()) {
            (false, ["login"]) => log_in(call).await,
            // What was posted is lost with its login; it is not kept for later.
            _ => draw::login(call, false),
        };
    }
    match segments.as_slice() {
        [] | ["login"] if is_read => see_other(&call.site()?, &first_place(call).await?.path("")),
        ["login"] => log_in(call).await,
        ["logout"] if !is_read => log_out(call).await,
        [account, mode, "scenario"] if is_read => {
            scenario(call, Place::read(account, mode).ok_or(Refusal::NotFound)?).await
        }
        [account, mode, rest @ ..] => {
            let place = Place::read(account, mode).ok_or(Refusal::NotFound)?;
            if is_read { show(call, place, rest, query).await } else { act(call, place, rest).await }
        }
        _ => Err(Refusal::NotFound),
    }
}

/// Returns the first account, in test mode.
async fn first_place(call: &Call<'_>) -> Result<Place, Refusal> {
    let accounts = call.asker().read(|sandbox| Ok(sandbox.overview().accounts)).await?;
    let account = accounts.into_iter().next().ok_or(Refusal::NotFound)?.id;
    Ok(Place { account, mode: Mode::Test })
}

async fn show(call: &Call<'_>, place: Place, rest: &[&str], query: Query) -> Result<Answer, Refusal> {
    let page = Page::read(rest).ok_or(Refusal::NotFound)?;
    let notice = query.get("said").and_then(|name| call.pages.dashboard.notices.take(name));
    if query.get("stream").is_some() {
        let drawn = move |asker: Asker| parts(asker, place.clone(), page.clone(), query.clone());
        // Its pages show all that happens.
        let topic =
            Topic::new(call.head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(), |_| true);
        return follow(call.asker(), topic, drawn);
    }
    let mut context = PageContext::new(call.asker(), place, page, query)?;
    if context.page == Page::Search
        && let Some(path) = draw::search::exact_hit(&context).await?
    {
        return see_other(&context.site, &path);
    }
    context.site.live = Some(stream(call, &context));
    finish(call, &context, notice.as_ref()).await
}

/// Returns the parts of a page that change while it is open.
async fn parts(asker: Asker, place: Place, page: Page, query: Query) -> Result<Vec<Part>, Refusal> {
    let context = PageContext::new(asker, place, page, query)?;
    let around = [draw::menu(&context).await?, draw::clock(&context)?];
    let blocks = draw::draw(&context).await?.blocks;
    let live = blocks.into_iter().filter_map(|block| match block {
        Block::Live(part) => Some(part),
        Block::Still(_) => None,
    });
    Ok(around.into_iter().chain(live).collect())
}

/// Returns the address of the page's stream: the same query, for the same filters and page.
fn stream(call: &Call<'_>, context: &PageContext) -> String {
    let query = call.head.uri.query().filter(|query| !query.is_empty() && !query.contains("said="));
    let query = query.map_or("stream=1".to_owned(), |query| format!("{query}&stream=1"));
    context.to(format!("{}?{query}", context.page.path()))
}

/// Returns the history of the world as a scenario file.
async fn scenario(call: &Call<'_>, place: Place) -> Result<Answer, Refusal> {
    let context = PageContext::new(call.asker(), place, Page::History, Query::default())?;
    // The host keeps the history of a world with a journal, so this is no read of the sandbox.
    match context.asker.act("GET", "/sandbox/scenario", "").await? {
        Ok(ScenarioAnswer { scenario, .. }) => {
            let mut answer = answer::own(StatusCode::OK, answer::YAML, scenario);
            answer.headers_mut().insert(CONTENT_DISPOSITION, SCENARIO_FILE);
            Ok(answer)
        }
        Err(complaint) => {
            finish(call, &PageContext { draft: Draft::refused(complaint), ..context }, None).await
        }
    }
}

async fn finish(call: &Call<'_>, context: &PageContext, notice: Option<&Notice>) -> Result<Answer, Refusal> {
    let view = draw::draw(context).await?;
    draw::shell(context, &view, notice, call.admit().is_err()).await
}

/// A form: what it says is done and the browser sent on, or it is shown again with what is wrong.
async fn act(call: &Call<'_>, place: Place, rest: &[&str]) -> Result<Answer, Refusal> {
    if !acts::takes_form(rest) {
        return Err(Refusal::NotFound);
    }
    let form = own_form(call).await?;
    let context = PageContext::new(call.asker(), place, Page::Overview, Query::default())?;
    let (page, outcome) = acts::act(&context, rest, &form).await?;
    match outcome {
        Outcome::Done(notice) => {
            let said = call.pages.dashboard.notices.put(notice);
            let path = page.path() + &place::query(&[("said", said.as_deref())]);
            see_other(&context.site, &context.place.path(&path))
        }
        Outcome::Opened { dashboard, notice } => {
            let said = call.pages.dashboard.notices.put(notice);
            redirect(&(dashboard + &place::query(&[("said", said.as_deref())])))
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

/// Reads a form that a page of this run of the server sent.
///
/// # Errors
///
/// [`Refusal::FormOrigin`] for any other form; one of a foreign origin is refused before its body is read.
pub(crate) async fn own_form(call: &Call<'_>) -> Result<Form, Refusal> {
    call.admit_form()?;
    let form = call.form().await?;
    call.pages.dashboard.access.judge_form(form.text("word"))?;
    Ok(form)
}

/// The token was shown in a form.
async fn log_in(call: &Call<'_>) -> Result<Answer, Refusal> {
    let form = own_form(call).await?;
    exchange(call, form.text("token").unwrap_or_default(), "/dashboard")
}

/// The token for a cookie; the browser goes on to an address without it.
fn exchange(call: &Call<'_>, token: &str, path: &str) -> Result<Answer, Refusal> {
    if !Access::is_token(call, token) {
        return draw::login(call, true);
    }
    let mut answer = see_other(&call.site()?, path)?;
    call.pages.dashboard.access.open(call, &mut answer)?;
    Ok(answer)
}

async fn log_out(call: &Call<'_>) -> Result<Answer, Refusal> {
    own_form(call).await?;
    let mut answer = see_other(&call.site()?, "/dashboard")?;
    Access::close(call, &mut answer)?;
    Ok(answer)
}
