//! `/sandbox/snapshots`, `/sandbox/restore` and `/sandbox/scenario`: snapshots of a world, restoring and exporting
//! them, and the scenario of the calls that changed a world.

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
const RESTORE_PATH: &str = "/sandbox/restore";
pub(crate) const SCENARIO: &str = "/sandbox/scenario";
/// The slots for concurrent replays; further ones wait. Each needs as much memory as its world.
static REPLAYS: Semaphore = Semaphore::const_new(4);

/// A request for one of these paths.
#[derive(Debug)]
pub(crate) enum SnapshotRequest {
    List,
    Create { name: String },
    Delete { n: u64 },
    Download { n: u64 },
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
    /// Reads a moment from the fields `snapshot` and `at`; the present moment if neither is given. An unknown snapshot
    /// or both fields are an error of `fields`.
    pub(crate) fn read(fields: &mut Fields<'_>, known: &[Snapshot]) -> WorldMoment {
        let snapshot = fields.text("snapshot", TEXT_MAX);
        let at = fields.parsed_text("at", "2026-01-05T09:00:00Z", Timestamp::parse);
        match (snapshot, at) {
            (None, None) => WorldMoment::Now,
            (None, Some(at)) => WorldMoment::At(at),
            (Some(_), Some(_)) => {
                fields
                    .add_error("at", "The {} field is for moments without a snapshot; give one of the two.");
                WorldMoment::Now
            }
            (Some(id_or_name), None) => match find_snapshot(&id_or_name, known) {
                Some(snapshot) => WorldMoment::Snapshot(snapshot.clone()),
                None => {
                    fields.add_error("snapshot", "The selected {} is not one of that world.");
                    WorldMoment::Now
                }
            },
        }
    }
}

impl SnapshotRequest {
    /// Returns `true` if the request changes the world or its snapshots.
    pub(crate) fn changes_world(&self) -> bool {
        !matches!(self, SnapshotRequest::List | SnapshotRequest::Download { .. } | SnapshotRequest::Scenario)
    }
}

/// Returns `true` if this module handles the path.
pub(crate) fn is_snapshot_path(path: &str) -> bool {
    matches!(path, RESTORE_PATH | SCENARIO)
        || path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Parses a request from a caller that may use the sandbox.
pub(crate) fn parse_request(request: &Request<'_>, known: &[Snapshot]) -> Result<SnapshotRequest, ApiError> {
    let number = |id: &str| find_snapshot(id, known).map(|snapshot| snapshot.n).ok_or(ApiError::NotFound);
    let (is_read, method) = (matches!(request.method, "GET" | "HEAD"), request.method);
    let id = request.path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
    match (request.path, id) {
        (RESTORE_PATH, _) if method == "POST" => {
            let mut fields = Fields::read(request.body)?;
            fields.reject_unknown(&["snapshot", "at"]);
            if !fields.has_value("at") {
                let id_or_name = fields.required_text("snapshot", TEXT_MAX);
                fields.finish()?;
                let snapshot = find_snapshot(&id_or_name.unwrap_or_default(), known);
                let snapshot = snapshot.ok_or(ApiError::NotFound)?.clone();
                return Ok(SnapshotRequest::Restore(WorldMoment::Snapshot(snapshot)));
            }
            let moment = WorldMoment::read(&mut fields, known);
            fields.finish()?;
            Ok(SnapshotRequest::Restore(moment))
        }
        (RESTORE_PATH, _) => Err(ApiError::MethodNotAllowed { allow: "POST".into() }),
        (SCENARIO, _) if is_read => Ok(SnapshotRequest::Scenario),
        (SCENARIO, _) => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD".into() }),
        (_, None) if is_read => Ok(SnapshotRequest::List),
        (_, None) if method == "POST" => {
            let mut fields = Fields::read(request.body)?;
            fields.reject_unknown(&["name"]);
            let name = fields.required_text("name", TEXT_MAX);
            fields.finish()?;
            Ok(SnapshotRequest::Create { name: name.unwrap_or_default() })
        }
        (_, None) => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD, POST".into() }),
        (_, Some(id)) if is_read => Ok(SnapshotRequest::Download { n: number(id)? }),
        (_, Some(id)) if method == "DELETE" => {
            let n = number(id)?;
            Fields::require_empty(request.body)?;
            Ok(SnapshotRequest::Delete { n })
        }
        _ => Err(ApiError::MethodNotAllowed { allow: "GET, HEAD, DELETE".into() }),
    }
}

/// Returns the snapshot with this id (`s7` is number 7), otherwise the newest with this name.
fn find_snapshot<'a>(id_or_name: &str, known: &'a [Snapshot]) -> Option<&'a Snapshot> {
    let digits = id_or_name.strip_prefix('s').filter(|digits| !digits.starts_with(['0', '+']));
    let by_id = digits.and_then(|digits| digits.parse::<u64>().ok());
    let by_id = by_id.and_then(|n| known.iter().find(|snapshot| snapshot.n == n));
    by_id.or_else(|| known.iter().rev().find(|snapshot| snapshot.name == id_or_name))
}

fn snapshot_json(snapshot: &Snapshot) -> Value {
    json!({
        "id": format!("s{}", snapshot.n),
        "name": snapshot.name,
        "at": Timestamp(snapshot.end.now).to_string(),
        "happenings": snapshot.end.event_count,
    })
}

/// Returns a response with these fields and the service time.
fn json_response(mut fields: Value, now: Timestamp) -> Response {
    fields["now"] = now.to_string().into();
    Response { status: 200, headers: Vec::new(), body: fields.to_string().into() }
}

/// Returns the response with all snapshots, oldest first.
pub(crate) fn list(journal: &Journal, now: Timestamp) -> Response {
    let all: Vec<Value> = journal.snapshots().iter().map(snapshot_json).collect();
    json_response(json!({ "snapshots": all }), now)
}

/// Takes a snapshot of the present state.
pub(crate) fn take_snapshot(journal: &Journal, name: String, world: &dyn World) -> Response {
    let end = WorldPosition { now: world.now().0, event_count: world.event_count() };
    match journal.take_snapshot(name, end) {
        Ok(snapshot) => json_response(json!({ "snapshot": snapshot_json(&snapshot) }), world.now()),
        Err(error) => error_response(error),
    }
}

/// Returns the error response for a snapshot that cannot be taken.
pub(crate) fn error_response(error: SnapshotError) -> Response {
    let message = match error {
        SnapshotError::JournalTooLong { bytes_max } => format!(
            "This world has more than the {} MiB of records that are kept in memory, so it cannot be restored. Start the \
             server with --data, or start a new world.",
            bytes_max / (1_024 * 1_024)
        ),
        SnapshotError::TooManySnapshots => {
            format!("This world has {SNAPSHOTS_MAX} snapshots, the maximum. Delete one first.")
        }
    };
    Response::refusal(&ApiError::conflict(message))
}

/// Deletes a snapshot.
pub(crate) fn delete(journal: &Journal, n: u64, now: Timestamp) -> Response {
    if journal.delete_snapshot(n) {
        json_response(json!({}), now)
    } else {
        Response::refusal(&ApiError::NotFound)
    }
}

/// Returns the response after the world was restored to a moment.
pub(crate) fn restored_response(moment: &WorldMoment, now: Timestamp) -> Response {
    let fields = if let WorldMoment::Snapshot(snapshot) = moment {
        json!({ "snapshot": snapshot_json(snapshot) })
    } else {
        json!({})
    };
    json_response(fields, now)
}

/// Returns the response with the scenario of the records up to `position`, written by a replay of them.
pub(crate) async fn scenario(journal: Arc<Journal>, setup: Setup, position: u64, now: Timestamp) -> Response {
    let write_scenario = move || {
        let mut replay = Replay::with_scenario(&setup);
        journal.read(position, |lines| replay.replay_lines(lines))?;
        let request = Request::new(&setup.public_url, "GET", SCENARIO);
        Ok(Some(replay.finish(None)?.sandbox.respond(now, &request)))
    };
    run_replay(write_scenario).await.unwrap_or_else(|error_response| error_response)
}

/// Returns the response with a snapshot as a file: the setup of the world, and one line for each call before the
/// snapshot.
pub(crate) async fn file(journal: Arc<Journal>, setup: Setup, n: u64) -> Response {
    let write_file = move || {
        let mut records = Vec::new();
        let Some(snapshot) = journal.snapshot(n) else { return Ok(None) };
        journal.read(snapshot.position, |lines| append_records(&mut records, lines))?;
        Ok(Some(WorldFile::encode(&setup, snapshot.end, &mut records)))
    };
    match run_replay(write_file).await {
        Ok(file) => Response {
            status: 200,
            headers: vec![("content-type", "application/octet-stream".to_owned())],
            body: file.into(),
        },
        Err(error_response) => error_response,
    }
}

/// Appends lines to the records of a file or a branch.
///
/// # Errors
///
/// `FileTooLarge` above [`RECORDS_MAX`] bytes.
pub(crate) fn append_records(records: &mut Vec<u8>, lines: &[u8]) -> io::Result<()> {
    records.extend_from_slice(lines);
    if records.len() > RECORDS_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// Runs a replay on a separate thread. Returns an error response if it fails, 404 if `replay` returns `None`.
pub(crate) async fn run_replay<T: Send + 'static>(
    replay: impl FnOnce() -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, Response> {
    let conflict = |message: String| Response::refusal(&ApiError::conflict(message));
    let _permit = REPLAYS.acquire().await;
    match tokio::task::spawn_blocking(replay).await {
        Ok(Ok(Some(result))) => Ok(result),
        Ok(Ok(None)) => Err(Response::refusal(&ApiError::NotFound)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => Err(conflict(format!(
            "The world has more than the {} MiB of records that a file or a branch may have. Copy the directory of a \
             stopped server instead.",
            RECORDS_MAX / (1_024 * 1_024)
        ))),
        Ok(Err(error)) => Err(conflict(format!("The world cannot be replayed: {error}."))),
        Err(_) => Err(conflict("The world cannot be replayed; see the output of the server.".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(n: u64, name: &str) -> Snapshot {
        Snapshot { n, name: name.to_owned(), position: 9, end: WorldPosition { now: 0, event_count: 0 } }
    }

    #[track_caller]
    fn check(method: &str, path: &str, body: &str, expected: &str) {
        let request = Request::json("http://localhost", method, path, body);
        let known = [snapshot(3, "paid"), snapshot(7, "paid"), snapshot(12, "s3")];
        let parsed = parse_request(&request, &known).map_err(|error| error.status());
        assert_eq!(format!("{parsed:?}"), expected, "{method} {path}");
    }

    #[test]
    fn requests_are_parsed() {
        check("GET", "/sandbox/snapshots", "", "Ok(List)");
        check("POST", "/sandbox/snapshots", r#"{"name":"paid"}"#, r#"Ok(Create { name: "paid" })"#);
        check("POST", "/sandbox/snapshots", r#"{}"#, "Err(422)");
        check("POST", "/sandbox/snapshots", r#"{"name":"paid","at":1}"#, "Err(422)");
        check("PUT", "/sandbox/snapshots", "", "Err(405)");
        check("GET", "/sandbox/snapshots/s12", "", "Ok(Download { n: 12 })");
        check("DELETE", "/sandbox/snapshots/s12", "", "Ok(Delete { n: 12 })");
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
    fn only_snapshot_paths_are_handled() {
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
