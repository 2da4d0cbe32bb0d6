//! `/sandbox/snapshots`, `/sandbox/restore` and `/sandbox/scenario`: snapshots of a world, restoring them, worlds as files,
//! and the scenario of what was done in a world.

use std::{io, sync::Arc};

use reference_core::{error::ApiError, time::Timestamp};
use reference_wire::{
    Request, Response,
    fields::{Fields, TEXT_MAX},
};
use serde_json::{Value, json};
use simulator::sandbox::Setup;
use tokio::sync::Semaphore;

use crate::{
    journal::{
        Journal, RECORDS_MAX, Replay, SNAPSHOTS_MAX, Snapshot, SnapshotError, WorldFile, WorldPosition,
    },
    world::World,
};

const PATH: &str = "/sandbox/snapshots";
const RESTORE: &str = "/sandbox/restore";
pub(crate) const SCENARIO: &str = "/sandbox/scenario";
/// The number of concurrent replays; further ones wait. Each needs as much memory as its world.
static REPLAYS: Semaphore = Semaphore::const_new(4);

/// A request for one of these paths.
#[derive(Debug)]
pub(crate) enum SnapshotRequest {
    List,
    Take { name: String },
    Drop { n: u64 },
    File { n: u64 },
    Restore(WorldMoment),
    Scenario,
}

/// A moment of a world.
#[derive(Clone, Debug)]
pub(crate) enum WorldMoment {
    Snapshot(Snapshot),
    At(Timestamp),
    /// The present moment.
    Now,
}

impl WorldMoment {
    /// Reads a moment from the fields `snapshot` and `at`; the present moment if neither is given.
    pub(crate) fn read(f: &mut Fields<'_>, known: &[Snapshot]) -> WorldMoment {
        let snapshot = f.text("snapshot", TEXT_MAX);
        let at = f.parsed_text("at", "2026-01-05T09:00:00Z", Timestamp::parse);
        match (snapshot, at) {
            (None, None) => WorldMoment::Now,
            (None, Some(at)) => WorldMoment::At(at),
            (Some(_), Some(_)) => {
                f.add_error("at", "The {} field is for moments without a snapshot; give one of the two.");
                WorldMoment::Now
            }
            (Some(text), None) => match find(&text, known) {
                Some(found) => WorldMoment::Snapshot(found.clone()),
                None => {
                    f.add_error("snapshot", "The selected {} is not one of that world.");
                    WorldMoment::Now
                }
            },
        }
    }
}

impl SnapshotRequest {
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self, SnapshotRequest::List | SnapshotRequest::File { .. } | SnapshotRequest::Scenario)
    }
}

/// Returns `true` if the path is one of these.
pub(crate) fn is_snapshot_path(path: &str) -> bool {
    matches!(path, RESTORE | SCENARIO)
        || path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Parses a request from a caller that may use the sandbox.
pub(crate) fn read(request: &Request<'_>, known: &[Snapshot]) -> Result<SnapshotRequest, ApiError> {
    let number = |text: &str| find(text, known).map(|snapshot| snapshot.n).ok_or(ApiError::NotFound);
    let (is_read, method) = (matches!(request.method, "GET" | "HEAD"), request.method);
    let id = request.path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
    match (request.path, id) {
        (RESTORE, _) if method == "POST" => {
            let mut fields = Fields::read(request.body)?;
            fields.reject_unknown(&["snapshot", "at"]);
            if !fields.is_present("at") {
                let id = fields.required_text("snapshot", TEXT_MAX);
                fields.finish()?;
                let found = find(&id.unwrap_or_default(), known).ok_or(ApiError::NotFound)?;
                return Ok(SnapshotRequest::Restore(WorldMoment::Snapshot(found.clone())));
            }
            let moment = WorldMoment::read(&mut fields, known);
            fields.finish()?;
            Ok(SnapshotRequest::Restore(moment))
        }
        (RESTORE, _) => Err(ApiError::WrongMethod { allow: "POST".into() }),
        (SCENARIO, _) if is_read => Ok(SnapshotRequest::Scenario),
        (SCENARIO, _) => Err(ApiError::WrongMethod { allow: "GET, HEAD".into() }),
        (_, None) if is_read => Ok(SnapshotRequest::List),
        (_, None) if method == "POST" => {
            let mut fields = Fields::read(request.body)?;
            fields.reject_unknown(&["name"]);
            let name = fields.required_text("name", TEXT_MAX);
            fields.finish()?;
            Ok(SnapshotRequest::Take { name: name.unwrap_or_default() })
        }
        (_, None) => Err(ApiError::WrongMethod { allow: "GET, HEAD, POST".into() }),
        (_, Some(id)) if is_read => Ok(SnapshotRequest::File { n: number(id)? }),
        (_, Some(id)) if method == "DELETE" => {
            let n = number(id)?;
            Fields::require_empty(request.body)?;
            Ok(SnapshotRequest::Drop { n })
        }
        _ => Err(ApiError::WrongMethod { allow: "GET, HEAD, DELETE".into() }),
    }
}

/// Returns the snapshot of an id (`s7` is 7) or else of a name: the newest of that name.
fn find<'a>(text: &str, known: &'a [Snapshot]) -> Option<&'a Snapshot> {
    let digits = text.strip_prefix('s').filter(|digits| !digits.starts_with(['0', '+']));
    let by_id = digits.and_then(|digits| digits.parse::<u64>().ok());
    let by_id = by_id.and_then(|n| known.iter().find(|snapshot| snapshot.n == n));
    by_id.or_else(|| known.iter().rev().find(|snapshot| snapshot.name == text))
}

fn snapshot_json(snapshot: &Snapshot) -> Value {
    json!({
        "id": format!("s{}", snapshot.n),
        "name": snapshot.name,
        "at": Timestamp(snapshot.end.now).to_string(),
        "happenings": snapshot.end.happened,
    })
}

fn response(mut fields: Value, now: Timestamp) -> Response {
    fields["now"] = now.to_string().into();
    Response { status: 200, headers: Vec::new(), body: fields.to_string().into() }
}

/// Answers with all snapshots, oldest first.
pub(crate) fn list(journal: &Journal, now: Timestamp) -> Response {
    let all: Vec<Value> = journal.snapshots().iter().map(snapshot_json).collect();
    response(json!({ "snapshots": all }), now)
}

/// Takes a snapshot of the present moment.
pub(crate) fn take(journal: &Journal, name: String, world: &dyn World) -> Response {
    let end = WorldPosition { now: world.now().0, happened: world.event_count() };
    match journal.take_snapshot(name, end) {
        Ok(snapshot) => response(json!({ "snapshot": snapshot_json(&snapshot) }), world.now()),
        Err(why) => refusal_response(why),
    }
}

/// Returns the refusal of a snapshot that was not taken.
pub(crate) fn refusal_response(why: SnapshotError) -> Response {
    let why = match why {
        SnapshotError::TooLong { bytes_max } => format!(
            "This world has more than the {} MiB of records that are kept in memory, so it cannot be restored. Start the \
             server with --data, or begin a new world.",
            bytes_max / (1_024 * 1_024)
        ),
        SnapshotError::TooMany => {
            format!("This world has {SNAPSHOTS_MAX} snapshots, the most allowed. Delete one first.")
        }
    };
    Response::refusal(&ApiError::conflict(why))
}

/// Deletes a snapshot.
pub(crate) fn delete(journal: &Journal, n: u64, now: Timestamp) -> Response {
    if journal.drop_snapshot(n) { response(json!({}), now) } else { Response::refusal(&ApiError::NotFound) }
}

/// Answers after the world was restored to a moment.
pub(crate) fn restored_response(moment: &WorldMoment, now: Timestamp) -> Response {
    let fields = if let WorldMoment::Snapshot(snapshot) = moment {
        json!({ "snapshot": snapshot_json(snapshot) })
    } else {
        json!({})
    };
    response(fields, now)
}

/// Answers with the scenario of the records up to `position`, written by a replay of them.
pub(crate) async fn scenario(journal: Arc<Journal>, setup: Setup, position: u64, now: Timestamp) -> Response {
    let written = move || {
        let mut replay = Replay::with_scenario(&setup);
        journal.read(position, |lines| replay.replay_lines(lines))?;
        let request = Request::new(&setup.public_url, "GET", SCENARIO);
        Ok(Some(replay.finish(None)?.sandbox.respond(now, &request)))
    };
    run_replay(written).await.unwrap_or_else(|refusal| refusal)
}

/// Answers with a snapshot as a file: the setup of the world, and one line for each call that led to the snapshot.
pub(crate) async fn file(journal: Arc<Journal>, setup: Setup, n: u64) -> Response {
    let written = move || {
        let mut records = Vec::new();
        let Some(snapshot) = journal.snapshot(n) else { return Ok(None) };
        journal.read(snapshot.position, |lines| append_records(&mut records, lines))?;
        Ok(Some(WorldFile::encode(&setup, snapshot.end, &mut records)))
    };
    match run_replay(written).await {
        Ok(file) => Response {
            status: 200,
            headers: vec![("content-type", "application/octet-stream".to_owned())],
            body: file.into(),
        },
        Err(response) => response,
    }
}

/// Appends records to those of a file or of a branch.
///
/// # Errors
///
/// `FileTooLarge` above [`RECORDS_MAX`] bytes.
pub(crate) fn append_records(records: &mut Vec<u8>, lines: &[u8]) -> io::Result<()> {
    records.extend_from_slice(lines);
    if records.len() > RECORDS_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// Runs a replay on a separate thread; returns the error response if it fails.
pub(crate) async fn run_replay<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, Response> {
    let failed = |why: String| Response::refusal(&ApiError::conflict(why));
    let _permit = REPLAYS.acquire().await;
    match tokio::task::spawn_blocking(act).await {
        Ok(Ok(Some(found))) => Ok(found),
        Ok(Ok(None)) => Err(Response::refusal(&ApiError::NotFound)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => Err(failed(format!(
            "The world has more than the {} MiB of records that a file or a branch may have. Copy the directory of a \
             stopped server instead.",
            RECORDS_MAX / (1_024 * 1_024)
        ))),
        Ok(Err(error)) => Err(failed(format!("The world cannot be replayed: {error}."))),
        Err(_) => Err(failed("The world cannot be replayed; see the output of the server.".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(n: u64, name: &str) -> Snapshot {
        Snapshot { n, name: name.to_owned(), position: 9, end: WorldPosition { now: 0, happened: 0 } }
    }

    #[track_caller]
    fn check(method: &str, path: &str, body: &str, expected: &str) {
        let request = Request::json("http://localhost", method, path, body);
        let known = [snapshot(3, "paid"), snapshot(7, "paid"), snapshot(12, "s3")];
        let status = read(&request, &known).map_err(|error| error.status());
        assert_eq!(format!("{status:?}"), expected, "{method} {path}");
    }

    #[test]
    fn requests_are_read() {
        check("GET", "/sandbox/snapshots", "", "Ok(List)");
        check("POST", "/sandbox/snapshots", r#"{"name":"paid"}"#, r#"Ok(Take { name: "paid" })"#);
        check("POST", "/sandbox/snapshots", r#"{}"#, "Err(422)");
        check("POST", "/sandbox/snapshots", r#"{"name":"paid","at":1}"#, "Err(422)");
        check("PUT", "/sandbox/snapshots", "", "Err(405)");
        check("GET", "/sandbox/snapshots/s12", "", "Ok(File { n: 12 })");
        check("DELETE", "/sandbox/snapshots/s12", "", "Ok(Drop { n: 12 })");
        check("DELETE", "/sandbox/snapshots/s12", r#"{"name":"paid"}"#, "Err(422)");
        for id in ["", "12", "s", "s012", "s+1", "s-1", "s1/", "s99999999999999999999"] {
            check("GET", &format!("/sandbox/snapshots/{id}"), "", "Err(404)");
        }
        let restores = |n: u64, name: &str| {
            let snapshot = snapshot(n, name);
            format!("Ok(Restore(Snapshot({snapshot:?})))")
        };
        check("POST", "/sandbox/restore", r#"{"snapshot":"s3"}"#, &restores(3, "paid"));
        check("POST", "/sandbox/restore", r#"{"snapshot":"paid"}"#, &restores(7, "paid"));
        check(
            "POST",
            "/sandbox/restore",
            r#"{"at":"1970-01-01T00:00:01Z"}"#,
            "Ok(Restore(At(Timestamp(1000000))))",
        );
        check("POST", "/sandbox/restore", r#"{"at":"1970-01-01T00:00:01Z","snapshot":"s3"}"#, "Err(422)");
        check("POST", "/sandbox/restore", "{}", "Err(422)");
        check("POST", "/sandbox/restore", r#"{"at":null,"snapshot":""}"#, "Err(422)");
        check("POST", "/sandbox/restore", r#"{"at":"","snapshot":"s3"}"#, &restores(3, "paid"));
        check("POST", "/sandbox/restore", r#"{"snapshot":"s4"}"#, "Err(404)");
        check("POST", "/sandbox/restore", r#"{"snapshot":"unpaid"}"#, "Err(404)");
        check("GET", "/sandbox/restore", "", "Err(405)");
        check("GET", "/sandbox/scenario", "", "Ok(Scenario)");
        check("POST", "/sandbox/scenario", "", "Err(405)");
    }

    #[test]
    fn only_these_paths_are_served() {
        assert!(
            ["/sandbox/snapshots", "/sandbox/snapshots/s1", "/sandbox/restore", "/sandbox/scenario"]
                .iter()
                .all(|path| is_snapshot_path(path))
        );
        assert!(
            !["/sandbox/snapshotsx", "/sandbox/restore/x", "/sandbox"]
                .iter()
                .any(|path| is_snapshot_path(path))
        );
    }
}
