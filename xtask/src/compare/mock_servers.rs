//! Measures other mock servers, as far as they are installed.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::case::{CASES, CaseRequest, PreparedRequest, ReferenceWorld};
use super::figures::{Figures, Sample, Spread};
use super::process::{Cores, MeasuredServer};
use super::{CompareOptions, Programs};

/// A mock server with its figures, or the reason why it was skipped.
pub(crate) struct MockServer {
    pub(crate) name: &'static str,
    /// The rate relative to the bare server for each case, and the memory in KiB.
    pub(crate) figures: Result<(Vec<Spread>, u64), String>,
}

/// A supported mock server.
struct MockServerKind {
    name: &'static str,
    /// A command that succeeds if the server is installed.
    probe: &'static [&'static str],
    command: fn(&MockContext<'_>) -> Result<Command, String>,
}

/// The data for the configuration of a mock server: its directory, its responses and its address.
struct MockContext<'a> {
    work: &'a Path,
    requests: &'a [PreparedRequest],
    address: SocketAddr,
}

const KINDS: &[MockServerKind] = &[
    MockServerKind {
        name: "uvicorn, an ASGI function, one worker",
        probe: &["uvicorn", "--version"],
        command: uvicorn,
    },
    MockServerKind { name: "Prism", probe: &["prism", "--version"], command: prism },
    MockServerKind { name: "Mockoon", probe: &["mockoon-cli", "--version"], command: mockoon },
];

/// Mock servers that this task does not support.
const UNSUPPORTED: &[&str] = &["WireMock", "json-server"];

/// Measures each installed mock server with the requests that only read.
pub(crate) fn measure(
    programs: &Programs,
    work: &Path,
    options: &CompareOptions,
) -> Result<Vec<MockServer>, String> {
    let reference = MeasuredServer::start_reference(programs, Cores::Shared)?;
    let world = ReferenceWorld::create(&reference, work)?;
    let reads = CASES.iter().filter(|case| matches!(case.request, CaseRequest::Get(_)));
    let requests = reads.map(|case| world.prepare(case, work)).collect::<Result<Vec<_>, _>>()?;
    let bare: Vec<_> = requests
        .iter()
        .map(|request| world.start_bare_server(programs, Cores::Shared, request))
        .collect::<Result<_, _>>()?;
    let measured = KINDS.iter().map(|kind| {
        let figures = if is_installed(kind.probe) {
            measure_mock_server(kind, programs, work, &requests, &bare, options)
        } else {
            Err(format!("`{}` is not installed", kind.probe[0]))
        };
        MockServer { name: kind.name, figures }
    });
    let unsupported = UNSUPPORTED
        .iter()
        .map(|name| MockServer { name, figures: Err("not supported by this task".to_owned()) });
    Ok(measured.chain(unsupported).collect())
}

fn is_installed(probe: &[&str]) -> bool {
    Command::new(probe[0]).args(&probe[1..]).output().is_ok_and(|output| output.status.success())
}

fn measure_mock_server(
    kind: &MockServerKind,
    programs: &Programs,
    work: &Path,
    requests: &[PreparedRequest],
    bare: &[MeasuredServer],
    options: &CompareOptions,
) -> Result<(Vec<Spread>, u64), String> {
    let context = MockContext { work, requests, address: testkit::free_address()? };
    let server =
        MeasuredServer::start_third_party((kind.command)(&context)?, context.address, &requests[0].path)?;
    let mut figures_by_request = vec![Figures::default(); requests.len()];
    for round in 0..options.rounds {
        for ((figures, request), bare) in figures_by_request.iter_mut().zip(requests).zip(bare) {
            eprintln!("{}: round {} of {}, {}", kind.name, round + 1, options.rounds, request.path);
            let sample = |server: &MeasuredServer| {
                Sample::measure(programs, server, request, Cores::Shared, options.seconds)
            };
            figures.add(sample(&server)?, sample(bare)?);
        }
    }
    Ok((figures_by_request.iter().map(Figures::ratio).collect(), server.resident_kib()))
}

impl MockContext<'_> {
    fn save(&self, name: &str, text: &str) -> Result<(), String> {
        fs::write(self.work.join(name), text).map_err(|err| format!("cannot write `{name}`: {err}"))
    }

    /// Returns the path of each request without its query, and the body of its response.
    fn bodies(&self) -> Result<Vec<(&str, String)>, String> {
        let read = |prepared: &PreparedRequest| {
            fs::read_to_string(&prepared.file)
                .map_err(|err| format!("cannot read `{}`: {err}", prepared.file.display()))
        };
        let path_length =
            |prepared: &PreparedRequest| prepared.path.find('?').map_or(prepared.path.len(), |end| end);
        self.requests
            .iter()
            .map(|request| Ok((&request.path[..path_length(request)], read(request)?)))
            .collect()
    }
}

fn uvicorn(context: &MockContext<'_>) -> Result<Command, String> {
    let mut app = "RESPONSES = {\n".to_owned();
    for (request, (path, _)) in context.requests.iter().zip(context.bodies()?) {
        app.push_str(&format!("    {path:?}: open({:?}, 'rb').read(),\n", request.file));
    }
    app.push_str(
        "}\n\n\
         async def app(scope, receive, send):\n\
         \x20   body = RESPONSES.get(scope['path'])\n\
         \x20   headers = [(b'content-type', b'application/json'), (b'content-length', str(len(body)).encode())]\n\
         \x20   await send({'type': 'http.response.start', 'status': 200, 'headers': headers})\n\
         \x20   await send({'type': 'http.response.body', 'body': body})\n",
    );
    context.save("asgi_app.py", &app)?;
    let mut command = Cores::Shared.server_command("uvicorn");
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
        let responses = serde_json::json!({ "200": { "description": "as prepared", "content": content } });
        paths.insert(path.to_owned(), serde_json::json!({ "get": { "responses": responses } }));
    }
    let document = serde_json::json!({
        "openapi": "3.1.0", "info": { "title": "prepared", "version": "1" }, "paths": paths,
    });
    context.save("prism.json", &document.to_string())?;
    let mut command = Cores::Shared.server_command("prism");
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
        let response = serde_json::json!({
            "uuid": format!("00000000-0000-4000-8000-0000000001{nth:02}"), "body": body, "latency": 0,
            "statusCode": 200, "label": "", "headers": [header], "bodyType": "INLINE", "filePath": "",
            "databucketID": "", "sendFileAsBody": false, "rules": [], "rulesOperator": "OR",
            "disableTemplating": true, "fallbackTo404": false, "default": true, "crudKey": "id", "callbacks": [],
        });
        routes.push(serde_json::json!({
            "uuid": format!("00000000-0000-4000-8000-0000000000{nth:02}"), "type": "http", "documentation": "",
            "method": "get", "endpoint": path.trim_start_matches('/'), "responses": [response],
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
    let mut command = Cores::Shared.server_command("mockoon-cli");
    command.current_dir(context.work).args(["start", "--disable-log-to-file", "--data", "mockoon.json"]);
    Ok(command)
}
