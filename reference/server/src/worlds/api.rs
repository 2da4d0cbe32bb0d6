//! `/sandbox/worlds`: opens, lists and ends worlds, for every client that may use the sandbox of the server.

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header::LOCATION, request::Parts};
use reference_core::{
    error::ApiError,
    id::Code,
    time::{Span, Timestamp},
};
use reference_wire::{Response, fields::Fields};
use serde::Serialize;
use serde_json::{Value, json};

use super::{OpenError, OpenedWorld, TooManyWorlds, WORLDS_MAX, WorldOptions, Worlds};
use crate::{
    clock::ClockKind,
    host::InternalError,
    refusal::Refusal,
    response::{self, HttpResponse},
};

const PATH: &str = "/sandbox/worlds";

/// Returns `true` if a path of the first world is handled here.
pub(crate) fn is_worlds_path(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A world that was opened on request.
#[derive(Serialize)]
struct WorldRecord<'a> {
    /// The id, in the paths of the world and after the mode in its keys.
    world: &'a str,
    name: Option<&'a str>,
    base_url: String,
    sandbox_url: String,
    dashboard_url: String,
    seed: u64,
    clock: &'static str,
    /// The speed of the world's clock in seconds per second of real time; 0 if only the sandbox moves the clock.
    speed: u64,
    rate_limit: Option<u32>,
    ttl: Option<String>,
    /// The bytes of memory that the world uses, estimated.
    memory: u64,
    /// The time of the world's clock.
    now: String,
}

/// A world that was just opened, with its keys, which no other response contains.
#[derive(Serialize)]
struct CreatedWorld<'a> {
    #[serde(flatten)]
    record: WorldRecord<'a>,
    live_key: String,
    test_key: String,
}

/// Responds to a request of a client that may use the sandbox.
pub(crate) async fn respond(
    worlds: &Worlds,
    head: &Parts,
    path: &str,
    authority: Option<&str>,
    body: &Bytes,
) -> Result<HttpResponse, Refusal> {
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let result = match path.strip_prefix(PATH).unwrap_or_default() {
        "" => match *method {
            Method::GET => list(worlds, authority).await,
            Method::POST => open(worlds, authority, body).await,
            _ => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD, POST".into() }.into()),
        },
        rest => {
            let id = Code::parse(rest.trim_start_matches('/')).ok_or(Refusal::UnknownWorld)?;
            worlds.waiting.prioritize_and_wait(id).await;
            match *method {
                Method::GET => {
                    let world = worlds.get(id).ok_or(Refusal::UnknownWorld)?;
                    json_response(StatusCode::OK, &record(&world, authority)?)
                }
                Method::DELETE => end(worlds, id, authority, body).await,
                _ => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD, DELETE".into() }.into()),
            }
        }
    };
    match result {
        Ok(response) => Ok(response),
        Err(WorldsError::Refused(response)) => Ok(response::from_world(response)?),
        Err(WorldsError::Unknown) => Err(Refusal::UnknownWorld),
        Err(WorldsError::Broken) => Err(Refusal::Broken),
    }
}

/// The reason why a request fails.
enum WorldsError {
    /// The response to send.
    Refused(Response),
    /// No such world is open.
    Unknown,
    /// A world had an internal error.
    Broken,
}

impl From<ApiError> for WorldsError {
    fn from(error: ApiError) -> WorldsError {
        WorldsError::Refused(Response::refusal(&error))
    }
}

impl From<OpenError> for WorldsError {
    fn from(why: OpenError) -> WorldsError {
        match why {
            OpenError::Broken(error) => error.into(),
            why => WorldsError::Refused(refusal_response(why)),
        }
    }
}

impl From<InternalError> for WorldsError {
    fn from(InternalError: InternalError) -> WorldsError {
        WorldsError::Broken
    }
}

/// Ends a world and deletes its stored data.
async fn end(
    worlds: &Worlds,
    id: Code,
    authority: Option<&str>,
    body: &Bytes,
) -> Result<HttpResponse, WorldsError> {
    Fields::require_empty(body)?;
    let world = worlds.end(id).ok_or(WorldsError::Unknown)?;
    world.backend.host.wait_for_all_commits().await.map_err(WorldsError::Refused)?;
    json_response(StatusCode::OK, &record(&world, authority)?)
}

/// Lists the open worlds, once every stored world is open or unavailable.
async fn list(worlds: &Worlds, authority: Option<&str>) -> Result<HttpResponse, WorldsError> {
    worlds.waiting.wait_for_all().await;
    let all = worlds.all();
    // The clock of a world with an internal error cannot be read; the other worlds are listed nevertheless.
    let records: Vec<_> = all.iter().filter_map(|world| record(world, authority).ok()).collect();
    let listening = worlds.first().addresses.listening_url();
    json_response(StatusCode::OK, &json!({ "worlds": records, "most": WORLDS_MAX, "listening": listening }))
}

/// Returns the error response for a world that was not opened.
pub(super) fn refusal_response(why: OpenError) -> Response {
    let why = match why {
        OpenError::Refused(response) => return response,
        OpenError::TooMany(TooManyWorlds) => format!(
            "{WORLDS_MAX} worlds are open, the maximum. DELETE {PATH}/{{world}} ends one, and one that is opened \
             with a ttl, such as \"10m\", ends by itself when it is unused."
        ),
        OpenError::OutOfMemory(why) => format!(
            "{why}, so no world is opened. DELETE {PATH}/{{world}} ends one, and GET {PATH} shows the memory of each; or start \
             the server with a higher limit."
        ),
        OpenError::NotStored(error) => format!("The world cannot be stored ({error}), so it was not opened."),
        OpenError::Broken(InternalError) => {
            "The world to branch from failed with an internal error.".to_owned()
        }
    };
    Response::refusal(&ApiError::conflict(why))
}

/// Opens a world, or a branch of one.
async fn open(worlds: &Worlds, authority: Option<&str>, body: &Bytes) -> Result<HttpResponse, WorldsError> {
    if worlds.has_waiting() {
        // Waits for the world to branch from, if it is stored and not open yet.
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        if let Some(id) = request["from"]["world"].as_str().and_then(Code::parse) {
            worlds.waiting.prioritize_and_wait(id).await;
        }
    }
    let (options, branch_point) = WorldOptions::read(body, worlds.defaults(), |id| worlds.backend(id))?;
    let world = match branch_point {
        None => worlds.open(options)?,
        Some(branch_point) => worlds.open_branch(options, &branch_point).await?,
    };
    worlds.wait_until_stored(&world).await.map_err(WorldsError::Refused)?;
    let keys = world.backend.host.first_keys()?;
    let record = record(&world, authority)?;
    let location = HeaderValue::try_from(format!("{PATH}/{}", world.id)).map_err(|_| InternalError)?;
    let mut response = json_response(
        StatusCode::CREATED,
        &CreatedWorld { record, live_key: keys.live, test_key: keys.test },
    )?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

fn record<'a>(world: &'a OpenedWorld, authority: Option<&str>) -> Result<WorldRecord<'a>, InternalError> {
    let base = world.backend.addresses.base_url(authority).into_owned();
    let (now, speed): (Timestamp, u64) = world.backend.host.time_and_speed()?;
    Ok(WorldRecord {
        world: world.id.as_str(),
        name: world.name.as_deref(),
        sandbox_url: format!("{base}/sandbox"),
        dashboard_url: format!("{base}/dashboard"),
        base_url: base,
        seed: world.parameters.seed.0,
        clock: match world.parameters.clock {
            ClockKind::Wall => "wall",
            ClockKind::Fast { .. } => "fast",
            ClockKind::Frozen => "frozen",
        },
        speed,
        rate_limit: world.parameters.rate_limit,
        ttl: world.ttl.map(|ttl| Span(u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)).to_string()),
        memory: world.backend.host.held_bytes(),
        now: now.to_string(),
    })
}

fn json_response(status: StatusCode, value: &impl Serialize) -> Result<HttpResponse, WorldsError> {
    let body = serde_json::to_vec(value).map_err(|_| InternalError)?;
    Ok(response::json(status, body))
}
