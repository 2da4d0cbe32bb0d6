//! `/sandbox/snapshots`, `/sandbox/restore` and `/sandbox/scenario`: moments of a world to come back to, worlds as files,
//! and what was done in them.

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
    journal::{Journal, NoSnapshot, RECORDS_MAX, Replay, SNAPSHOTS_MAX, Snapshot, Tip, WorldFile},
    world::World,
};

const PATH: &str = "/sandbox/snapshots";
const RESTORE: &str = "/sandbox/restore";
pub(crate) const SCENARIO: &str = "/sandbox/scenario";
/// Worlds that are made again at a time, others wait: each takes as much memory as it will hold.
static REPLAYS: Semaphore = Semaphore::const_new(4);

/// A request for one of these paths.
#[derive(Debug)]
pub(crate) enum Ask {
    List,
    Take { name: String },
    Drop { n: u64 },
    File { n: u64 },
    Restore(WorldMoment),
    Tell,
}

/// A moment of a world.
#[derive(Clone, Debug)]
pub(crate) enum WorldMoment {
    Snapshot(Snapshot),
    At(Timestamp),
    /// The one that it stands at.
    Now,
}

impl WorldMoment {
    /// Reads which moment is meant, out of `snapshot` and `at`.
    pub(crate) fn read(f: &mut Fields<'_>, known: &[Snapshot]) -> WorldMoment {
        let snapshot = f.text("snapshot", TEXT_MAX);
        let at = f.word_like("at", "2026-01-05T09:00:00Z", Timestamp::parse);
        match (snapshot, at) {
            (None, None) => WorldMoment::Now,
            (None, Some(at)) => WorldMoment::At(at),
            (Some(_), Some(_)) => {
                f.wrong("at", "The {} field is for moments without a snapshot; give one of the two.");
                WorldMoment::Now
            }
            (Some(text), None) => match find(&text, known) {
                Some(found) => WorldMoment::Snapshot(found.clone()),
                None => {
                    f.wrong("snapshot", "The selected {} is not one of that world.");
                    WorldMoment::Now
                }
            },
        }
    }
}

impl Ask {
    pub(crate) fn changes(&self) -> bool {
        !matches!(self, Ask::List | Ask::File { .. } | Ask::Tell)
    }
}

/// Returns `true` if the path is one of these.
pub(crate) fn serves(path: &str) -> bool {
    matches!(path, RESTORE | SCENARIO)
        || path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Parses a request from a caller that may use the sandbox.
pub(crate) fn read(request: &Request<'_>, known: &[Snapshot]) -> Result<Ask, ApiError> {
    let number = |text: &str| find(text, known).map(|it| it.n).ok_or(ApiError::NotFound);
    let (is_read, method) = (matches!(request.method, "GET" | "HEAD"), request.method);
    let id = request.path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
    match (request.path, id) {
        (RESTORE, _) if method == "POST" => {
            let mut fields = Fields::read(request.body)?;
            fields.only(&["snapshot", "at"]);
            if !fields.gives("at") {
                let id = fields.required_text("snapshot", TEXT_MAX);
                fields.finish()?;
                let found = find(&id.unwrap_or_default(), known).ok_or(ApiError::NotFound)?;
                return Ok(Ask::Restore(WorldMoment::Snapshot(found.clone())));
            }
            let moment = WorldMoment::read(&mut fields, known);
            fields.finish()?;
            Ok(Ask::Restore(moment))
        }
        (RESTORE, _) => Err(ApiError::WrongMethod { allow: "POST".into() }),
        (SCENARIO, _) if is_read => Ok(Ask::Tell),
        (SCENARIO, _) => Err(ApiError::WrongMethod { allow: "GET, HEAD".into() }),
        (_, None) if is_read => Ok(Ask::List),
        (_, None) if method == "POST" => {
            let mut fields = Fields::read(request.body)?;
            fields.only(&["name"]);
            let name = fields.required_text("name", TEXT_MAX);
            fields.finish()?;
            Ok(Ask::Take { name: name.unwrap_or_default() })
        }
        (_, None) => Err(ApiError::WrongMethod { allow: "GET, HEAD, POST".into() }),
        (_, Some(id)) if is_read => Ok(Ask::File { n: number(id)? }),
        (_, Some(id)) if method == "DELETE" => {
            let n = number(id)?;
            Fields::none(request.body)?;
            Ok(Ask::Drop { n })
        }
        _ => Err(ApiError::WrongMethod { allow: "GET, HEAD, DELETE".into() }),
    }
}

/// Returns the snapshot of an id (`s7` is 7) or else of a name: the newest of that name.
fn find<'a>(text: &str, known: &'a [Snapshot]) -> Option<&'a Snapshot> {
    let digits = text.strip_prefix('s').filter(|digits| !digits.starts_with(['0', '+']));
    let by_id = digits.and_then(|digits| digits.parse::<u64>().ok());
    let by_id = by_id.and_then(|n| known.iter().find(|it| it.n == n));
    by_id.or_else(|| known.iter().rev().find(|it| it.name == text))
}

fn shown(snapshot: &Snapshot) -> Value {
    json!({
        "id": format!("s{}", snapshot.n),
        "name": snapshot.name,
        "at": Timestamp(snapshot.tip.now).to_string(),
        "happenings": snapshot.tip.happened,
    })
}

fn answer(mut fields: Value, now: Timestamp) -> Response {
    fields["now"] = now.to_string().into();
    Response { status: 200, headers: Vec::new(), body: fields.to_string().into() }
}

/// All of them, the oldest first.
pub(crate) fn list(journal: &Journal, now: Timestamp) -> Response {
    let all: Vec<Value> = journal.snapshots().iter().map(shown).collect();
    answer(json!({ "snapshots": all }), now)
}

/// One of the moment that the world stands at.
pub(crate) fn take(journal: &Journal, name: String, world: &dyn World) -> Response {
    let tip = Tip { now: world.now().0, happened: world.happened() };
    match journal.take_snapshot(name, tip) {
        Ok(snapshot) => answer(json!({ "snapshot": shown(&snapshot) }), world.now()),
        Err(why) => refused(why),
    }
}

/// There is no moment to come back to.
pub(crate) fn refused(why: NoSnapshot) -> Response {
    let why = match why {
        NoSnapshot::TooLong { most } => format!(
            "This world was told more than the {} MiB that are kept in memory, so it can't be made again. Start the \
             server with --data, or begin a new world.",
            most / (1_024 * 1_024)
        ),
        NoSnapshot::TooMany => {
            format!("There are {SNAPSHOTS_MAX} snapshots, and no more are kept. Delete one first.")
        }
    };
    Response::refusal(&ApiError::conflict(why))
}

/// Forgets one.
pub(crate) fn drop(journal: &Journal, n: u64, now: Timestamp) -> Response {
    if journal.drop_snapshot(n) { answer(json!({}), now) } else { Response::refusal(&ApiError::NotFound) }
}

/// The world went back there.
pub(crate) fn restored(moment: &WorldMoment, now: Timestamp) -> Response {
    let fields =
        if let WorldMoment::Snapshot(it) = moment { json!({ "snapshot": shown(it) }) } else { json!({}) };
    answer(fields, now)
}

/// Returns the scenario of the first `position` records, written by the world that they make.
pub(crate) async fn tell(journal: Arc<Journal>, setup: Setup, position: u64, now: Timestamp) -> Response {
    let told = move || {
        let mut replay = Replay::telling(&setup);
        journal.read(position, |lines| replay.lines(lines))?;
        let request = Request::new(&setup.public_url, "GET", SCENARIO);
        Ok(Some(replay.finish(None)?.sandbox.respond(now, &request)))
    };
    blocking(told).await.unwrap_or_else(|refusal| refusal)
}

/// A snapshot as a file: what the world began with, and a line for each call that led to it.
pub(crate) async fn file(journal: Arc<Journal>, setup: Setup, n: u64) -> Response {
    let written = move || {
        let mut records = Vec::new();
        let Some(snapshot) = journal.snapshot(n) else { return Ok(None) };
        journal.read(snapshot.position, |lines| gather(&mut records, lines))?;
        Ok(Some(WorldFile::write(&setup, snapshot.tip, &mut records)))
    };
    match blocking(written).await {
        Ok(file) => Response {
            status: 200,
            headers: vec![("content-type", "application/octet-stream".to_owned())],
            body: file.into(),
        },
        Err(response) => response,
    }
}

/// Adds records to those of a file or of another world, if there is room.
pub(crate) fn gather(records: &mut Vec<u8>, lines: &[u8]) -> io::Result<()> {
    records.extend_from_slice(lines);
    if records.len() > RECORDS_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}

/// Runs what takes long beside the world; or says why it came to nothing.
pub(crate) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<Option<T>> + Send + 'static,
) -> Result<T, Response> {
    let failed = |why: String| Response::refusal(&ApiError::conflict(why));
    let _permit = REPLAYS.acquire().await;
    match tokio::task::spawn_blocking(act).await {
        Ok(Ok(Some(found))) => Ok(found),
        Ok(Ok(None)) => Err(Response::refusal(&ApiError::NotFound)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => Err(failed(format!(
            "The world has more than the {} MiB that a file or a branch may have. Copy the directory of a server that was \
             stopped.",
            RECORDS_MAX / (1_024 * 1_024)
        ))),
        Ok(Err(error)) => Err(failed(format!("The world can't be made again: {error}."))),
        Err(_) => Err(failed("The world can't be made again; the server's output says more.".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(n: u64, name: &str) -> Snapshot {
        Snapshot { n, name: name.to_owned(), position: 9, tip: Tip { now: 0, happened: 0 } }
    }

    #[track_caller]
    fn check(method: &str, path: &str, body: &str, expected: &str) {
        let request = Request::json("http://localhost", method, path, body);
        let known = [snapshot(3, "paid"), snapshot(7, "paid"), snapshot(12, "s3")];
        let asked = read(&request, &known).map_err(|error| error.status());
        assert_eq!(format!("{asked:?}"), expected, "{method} {path}");
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
        check("GET", "/sandbox/scenario", "", "Ok(Tell)");
        check("POST", "/sandbox/scenario", "", "Err(405)");
    }

    #[test]
    fn only_these_paths_are_served() {
        assert!(
            ["/sandbox/snapshots", "/sandbox/snapshots/s1", "/sandbox/restore", "/sandbox/scenario"]
                .iter()
                .all(|path| serves(path))
        );
        assert!(!["/sandbox/snapshotsx", "/sandbox/restore/x", "/sandbox"].iter().any(|path| serves(path)));
    }
}
