//! Attacks that exhaust connection slots, descriptors or streams, and attacks on shutdown.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, MeasureResult, Unit};
use super::context::{CaseContext, CaseFailure, Host};
use super::deliveries::first_attempt_error;
use super::names::SLOW;
use testkit::{Connection, Receiver, signal};

/// The connection slots of a server. Repeated here, so that a changed limit is noticed.
const SLOTS: usize = 1_024;
const TIMEOUT: Duration = Duration::from_secs(40);

const NEW_CLIENT: Bound = Bound { title: "until a new client is answered", most: 1_000, unit: Unit::Millis };
const UNKNOWN_PAGE: &str =
    "POST /c/aaaaaaaaaaaa/sandbox HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
const LOGIN: &str = "POST /dashboard/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
const SANDBOX: &str = "POST /sandbox/pay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
/// The maximum number of streams of a server.
const STREAMS: usize = SLOTS / 2;

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "slots",
        title: "1,024 idle clients take every connection slot, half of them without a byte sent",
        bounds: &[NEW_CLIENT],
        is_long: false,
        run: slots,
    },
    AttackCase {
        name: "bodies",
        title: "1,024 clients send heads to pages and the sandbox, and none of the bodies that they announce",
        bounds: &[NEW_CLIENT],
        is_long: false,
        run: |context| fill_slots(context, &[], &[UNKNOWN_PAGE, LOGIN, SANDBOX]),
    },
    AttackCase {
        name: "handshakes",
        title: "with --tls, 1,024 clients send nothing, or the beginning of a handshake",
        bounds: &[NEW_CLIENT],
        is_long: false,
        run: |context| fill_slots(context, &["--tls"], &["", "\x16\x03\x01\x02"]),
    },
    AttackCase {
        name: "streams",
        title: "512 open checkouts, half of them of one charge, while another account opens charges",
        bounds: &[Bound { title: "processor time for each change elsewhere", most: 20, unit: Unit::Moment }],
        is_long: false,
        run: streams,
    },
    AttackCase {
        name: "descriptors",
        title: "idle clients use all descriptors of a process that is limited to 256",
        bounds: &[
            Bound { title: "until a delivery arrives", most: 2_000, unit: Unit::Millis },
            Bound { title: "connection errors that hide their cause", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: descriptors,
    },
    AttackCase {
        name: "stop",
        title: "SIGTERM while a name is looked up for half a minute",
        bounds: &[Bound { title: "until the server has ended", most: 10_500, unit: Unit::Millis }],
        is_long: false,
        run: |context| stop(context, &["TERM"]),
    },
    AttackCase {
        name: "stop-twice",
        title: "the same, and a second SIGTERM",
        bounds: &[Bound { title: "until the server has ended", most: 1_000, unit: Unit::Millis }],
        is_long: false,
        run: |context| stop(context, &["TERM", "TERM"]),
    },
];

/// Opens connections, every second one after a request, as many as the system allows.
fn open_idle_connections(host: &Host, count: usize) -> Vec<Connection> {
    let mut connections = Vec::new();
    for n in 0..count {
        let Ok(mut connection) = Connection::open(&host.address) else { break };
        if n % 2 == 0 && connection.call("GET", "/healthz", None, "").is_err() {
            break;
        }
        connections.push(connection);
    }
    connections
}

fn slots(context: &CaseContext) -> MeasureResult {
    let host = context.serve(&[])?;
    let connections = open_idle_connections(&host, SLOTS);
    new_client(&host, &connections)
}

/// Fills all slots with connections that have sent an incomplete request or handshake.
fn fill_slots(context: &CaseContext, options: &[&str], prefixes: &[&str]) -> MeasureResult {
    let host = context.serve(options)?;
    let mut connections = Vec::new();
    for prefix in prefixes.iter().cycle().take(SLOTS) {
        let Ok(mut connection) = Connection::open(&host.address) else { break };
        connection.send(prefix)?;
        connections.push(connection);
    }
    new_client(&host, &connections)
}

/// Returns the longest wait of new clients while others hold all connection slots.
fn new_client(host: &Host, others: &[Connection]) -> MeasureResult {
    if others.len() < SLOTS {
        let why = format!("this machine allows only {} connections; raise `ulimit -n`", others.len());
        return Err(CaseFailure::Skipped(why));
    }
    let mut longest = 0;
    for _ in 0..5 {
        let began = Instant::now();
        Connection::open(&host.address)?.call("GET", "/healthz", None, "")?;
        longest = longest.max(millis(began.elapsed()));
    }
    Ok(vec![longest])
}

fn streams(context: &CaseContext) -> MeasureResult {
    const CHANGES: u64 = 10;
    let mut host = context.serve(&["--clock", "frozen"])?;
    let (charge, live) = (json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" }), host.live.clone());
    let neighbour = host.post("/sandbox/accounts", &json!({ "id": "neighbour" }))?;
    let other = neighbour["keys"]["live"].as_str().ok_or("an account has no key")?.to_owned();
    let mut codes = Vec::new();
    for _ in 0..=STREAMS / 2 {
        let opened = host.call("POST", "/v1/charges", Some(&live), &charge)?;
        codes.push(opened["data"]["code"].as_str().ok_or("a charge has no code")?.to_owned());
    }
    let mut connections = Vec::new();
    for n in 0..STREAMS {
        let path = format!("/c/{}/live", codes[n.saturating_sub(STREAMS / 2 - 1)]);
        let mut connection = Connection::open(&host.address)?;
        connection.send_request("GET", &path, None, "")?;
        while !connection.line()?.starts_with("data: ") {}
        connections.push(connection);
    }
    // Each new stream caused a rendering of the page.
    thread::sleep(Duration::from_millis(200));
    let before = host.cpu_millis()?;
    for _ in 0..CHANGES {
        host.call("POST", "/v1/charges", Some(&other), &charge)?;
        // Concurrent signals or changes would count as one.
        thread::sleep(Duration::from_millis(100));
    }
    Ok(vec![(host.cpu_millis()? - before) / CHANGES])
}

fn descriptors(context: &CaseContext) -> MeasureResult {
    let shop = Receiver::ok()?;
    let forward = shop.forward("shop.example");
    // No server listens on port 9 of this machine.
    let closed = "https://closed.example=http://127.0.0.1:9";
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""]).arg(&context.program).stderr(Stdio::null());
    let mut host =
        Host::start(command, &["--rate-limit", "off", "--forward", &forward, "--forward", closed])?;
    let mut tests = Vec::new();
    for url in ["https://shop.example/hooks", "https://closed.example/"] {
        let answer = host.post("/sandbox/endpoints", &json!({ "mode": "live", "url": url }))?;
        tests.push(format!(
            "/sandbox/endpoints/{}/test",
            answer["endpoint"]["id"].as_str().unwrap_or_default()
        ));
    }
    let _idle = open_idle_connections(&host, 300);
    let began = Instant::now();
    host.post(&tests[0], &Value::Null)?;
    let came = shop.arrival_time("/hooks", TIMEOUT).map_or(TIMEOUT, |at| at.saturating_duration_since(began));

    let sent = host.post(&tests[1], &Value::Null)?;
    let error = first_attempt_error(&mut host, sent["delivery"].as_str().unwrap_or_default())?;
    Ok(vec![millis(came), u64::from(!error.contains("refused"))])
}

fn stop(context: &CaseContext, signals: &[&str]) -> MeasureResult {
    let names = context.names()?;
    names.set_slow(false);
    let mut host = context.serve(&[])?;
    let url = format!("https://{SLOW}-stop.example/");
    let answer = host.post("/sandbox/endpoints", &json!({ "mode": "live", "url": url }))?;
    let id = answer["endpoint"]["id"].as_str().unwrap_or_default().to_owned();
    names.set_slow(true);
    let before = names.unanswered_queries();
    host.post(&format!("/sandbox/endpoints/{id}/test"), &Value::Null)?;
    let until = Instant::now() + TIMEOUT;
    while names.unanswered_queries() == before && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    for name in signals {
        signal(host.pid(), name)?;
        // Concurrent signals or changes would count as one.
        thread::sleep(Duration::from_millis(100));
    }
    let took = host.wait(TIMEOUT).unwrap_or(TIMEOUT);
    names.set_slow(false);
    Ok(vec![millis(took)])
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
