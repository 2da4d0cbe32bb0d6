//! Measures common mock servers that are installed.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::case::{CASES, CaseRequest, PreparedRequest, World};
use super::figures::{Figures, Sample, Spread};
use super::process::{Cores, RunningProgram};
use super::{Options, Programs};

/// A mock server with its figures, or the reason why it was skipped.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    /// The ratio to bare hyper for each case, and the memory in KiB.
    pub(crate) figures: Result<(Vec<Spread>, u64), String>,
}

struct PeerKind {
    name: &'static str,
    /// A command that succeeds if the server is installed.
    probe: &'static [&'static str],
    command: fn(&MockContext<'_>) -> Result<Command, String>,
}

/// The responses that a mock server is configured with.
struct MockContext<'a> {
    work: &'a Path,
    answers: &'a [PreparedRequest],
    address: SocketAddr,
}

const KINDS: &[PeerKind] = &[
    PeerKind {
        name: "uvicorn, an ASGI function, one worker",
        probe: &["uvicorn", "--version"],
        command: uvicorn,
    },
    PeerKind { name: "Prism", probe: &["prism", "--version"], command: prism },
    PeerKind { name: "Mockoon", probe: &["mockoon-cli", "--version"], command: mockoon },
];

/// Other common mock servers, which are not supported.
const UNKNOWN: &[&str] = &["WireMock", "json-server"];

pub(crate) fn measure(programs: &Programs, work: &Path, options: &Options) -> Result<Vec<Peer>, String> {
    let ours = RunningProgram::start_reference(programs, Cores::Shared)?;
    let world = World::make(&ours, work)?;
    let reads = CASES.iter().filter(|case| matches!(case.request, CaseRequest::Get(_)));
    let answers = reads.map(|case| world.prepare(case, work)).collect::<Result<Vec<_>, _>>()?;
    let bare: Vec<_> = answers
        .iter()
        .map(|answer| world.start_bare_server(programs, Cores::Shared, answer))
        .collect::<Result<_, _>>()?;
    let measured = KINDS.iter().map(|kind| {
        let figures = if is_installed(kind.probe) {
            measure_peer(kind, programs, work, &answers, &bare, options)
        } else {
            Err(format!("`{}` is not installed", kind.probe[0]))
        };
        Peer { name: kind.name, figures }
    });
    let unknown =
        UNKNOWN.iter().map(|name| Peer { name, figures: Err("this program cannot start it".to_owned()) });
    Ok(measured.chain(unknown).collect())
}

fn is_installed(probe: &[&str]) -> bool {
    Command::new(probe[0]).args(&probe[1..]).output().is_ok_and(|done| done.status.success())
}

fn measure_peer(
    kind: &PeerKind,
    programs: &Programs,
    work: &Path,
    answers: &[PreparedRequest],
    bare: &[RunningProgram],
    options: &Options,
) -> Result<(Vec<Spread>, u64), String> {
    let context = MockContext { work, answers, address: testkit::free_address()? };
    let peer =
        RunningProgram::start_third_party((kind.command)(&context)?, context.address, &answers[0].path)?;
    let mut all = vec![Figures::default(); answers.len()];
    for round in 0..options.rounds {
        for ((figures, answer), bare) in all.iter_mut().zip(answers).zip(bare) {
            eprintln!("{}: round {} of {}, {}", kind.name, round + 1, options.rounds, answer.path);
            let sample = |server: &RunningProgram| {
                Sample::measure(programs, server, answer, Cores::Shared, options.seconds)
            };
            figures.add(sample(&peer)?, sample(bare)?);
        }
    }
    Ok((all.iter().map(Figures::ratio).collect(), peer.resident_kib()))
}

impl MockContext<'_> {
    fn save(&self, name: &str, text: &str) -> Result<(), String> {
        fs::write(self.work.join(name), text).map_err(|err| format!("cannot write `{name}`: {err}"))
    }

    /// Returns the path of each response without its query, and its body.
    fn bodies(&self) -> Result<Vec<(&str, String)>, String> {
        let read = |prepared: &PreparedRequest| {
            fs::read_to_string(&prepared.file)
                .map_err(|err| format!("cannot read `{}`: {err}", prepared.file.display()))
        };
        let path =
            |prepared: &PreparedRequest| prepared.path.find('?').map_or(prepared.path.len(), |end| end);
        self.answers.iter().map(|answer| Ok((&answer.path[..path(answer)], read(answer)?))).collect()
    }
}

fn uvicorn(context: &MockContext<'_>) -> Result<Command, String> {
    let mut app = "ANSWERS = {\n".to_owned();
    for (answer, (path, _)) in context.answers.iter().zip(context.bodies()?) {
        app.push_str(&format!("    {path:?}: open({:?}, 'rb').read(),\n", answer.file));
    }
    app.push_str(
        "}\n\n\
         async def app(scope, receive, send):\n\
         \x20   body = ANSWERS.get(scope['path'])\n\
         \x20   headers = [(b'content-type', b'application/json'), (b'content-length', str(len(body)).encode())]\n\
         \x20   await send({'type': 'http.response.start', 'status': 200, 'headers': headers})\n\
         \x20   await send({'type': 'http.response.body', 'body': body})\n",
    );
    context.save("asgi_app.py", &app)?;
    let mut command = Cores::Shared.server("uvicorn");
    command.current_dir(context.work).args([
        "asgi_app:app",
        "--lifespan",
        "off",
        "--no-access-log",
        "--log-level",
    ]);
    command.args(["critical", "--host", "127.0.0.1", "--port", &context.address.port().to_string()]);
    Ok(command)
}

fn prism(context: &MockContext<'_>) -> Result<Command, String> {
    let mut paths = serde_json::Map::new();
    for (path, body) in context.bodies()? {
        let example: serde_json::Value =
            serde_json::from_str(&body).map_err(|err| format!("a response is not JSON: {err}"))?;
        let content = serde_json::json!({ "application/json": { "example": example } });
        let answers = serde_json::json!({ "200": { "description": "as prepared", "content": content } });
        paths.insert(path.to_owned(), serde_json::json!({ "get": { "responses": answers } }));
    }
    let document = serde_json::json!({
        "openapi": "3.1.0", "info": { "title": "prepared", "version": "1" }, "paths": paths,
    });
    context.save("prism.json", &document.to_string())?;
    let mut command = Cores::Shared.server("prism");
    command.current_dir(context.work).args([
        "mock",
        "prism.json",
        "--host",
        "127.0.0.1",
        "--verboseLevel",
        "silent",
    ]);
    command.args(["--port", &context.address.port().to_string()]);
    Ok(command)
}

fn mockoon(context: &MockContext<'_>) -> Result<Command, String> {
    let mut routes = Vec::new();
    for (nth, (path, body)) in context.bodies()?.into_iter().enumerate() {
        let header = serde_json::json!({ "key": "Content-Type", "value": "application/json" });
        let answer = serde_json::json!({
            "uuid": format!("00000000-0000-4000-8000-0000000001{nth:02}"), "body": body, "latency": 0,
            "statusCode": 200, "label": "", "headers": [header], "bodyType": "INLINE", "filePath": "",
            "databucketID": "", "sendFileAsBody": false, "rules": [], "rulesOperator": "OR",
            "disableTemplating": true, "fallbackTo404": false, "default": true, "crudKey": "id", "callbacks": [],
        });
        routes.push(serde_json::json!({
            "uuid": format!("00000000-0000-4000-8000-0000000000{nth:02}"), "type": "http", "documentation": "",
            "method": "get", "endpoint": path.trim_start_matches('/'), "responses": [answer],
            "responseMode": null, "streamingMode": null, "streamingInterval": 0,
        }));
    }
    let children: Vec<_> =
        routes.iter().map(|route| serde_json::json!({ "type": "route", "uuid": route["uuid"] })).collect();
    let document = serde_json::json!({
        "uuid": "00000000-0000-4000-8000-000000000099", "lastMigration": 33, "name": "prepared",
        "endpointPrefix": "", "latency": 0, "port": context.address.port(), "hostname": "127.0.0.1", "folders": [],
        "routes": routes, "rootChildren": children, "proxyMode": false, "proxyHost": "", "proxyRemovePrefix": false,
        "cors": false, "headers": [], "proxyReqHeaders": [], "proxyResHeaders": [], "data": [], "callbacks": [],
        "tlsOptions": { "enabled": false, "type": "CERT", "pfxPath": "", "certPath": "", "keyPath": "",
                        "caPath": "", "passphrase": "" },
    });
    context.save("mockoon.json", &document.to_string())?;
    let mut command = Cores::Shared.server("mockoon-cli");
    command.current_dir(context.work).args(["start", "--disable-log-to-file", "--data", "mockoon.json"]);
    Ok(command)
}
