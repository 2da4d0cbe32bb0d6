//! Attacks that exhaust connection slots, descriptors or streams, and attacks on shutdown.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, FiguresResult, Unit};
use super::context::{CaseContext, CaseFailure, ServedReference};
use super::deliveries::first_attempt_error;
use super::dns::SLOW_PREFIX;
use testkit::{Connection, Receiver, signal};

/// The number of connection slots of a server. Repeated here, so that a changed limit is noticed.
const SLOTS: usize = 1_024;
/// The maximum wait for a delivery, a query or the end of the server.
const TIMEOUT: Duration = Duration::from_secs(40);

const NEW_CLIENT: Bound =
    Bound { title: "until a new client gets a response", max: 1_000, unit: Unit::Millis };
const UNKNOWN_PAGE_HEAD: &str =
    "POST /c/aaaaaaaaaaaa/sandbox HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
const LOGIN_HEAD: &str = "POST /dashboard/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
const SANDBOX_HEAD: &str = "POST /sandbox/pay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
/// The maximum number of event streams of a server.
const STREAMS: usize = SLOTS / 2;

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "slots",
        title: "1,024 idle clients use every connection slot, half of them without having sent a byte",
        bounds: &[NEW_CLIENT],
        is_long: false,
        run: slots,
    },
    AttackCase {
        name: "bodies",
        title: "1,024 clients send request heads to pages and the sandbox, but no bodies",
        bounds: &[NEW_CLIENT],
        is_long: false,
        run: |context| fill_slots(context, &[], &[UNKNOWN_PAGE_HEAD, LOGIN_HEAD, SANDBOX_HEAD]),
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
        title: "512 open checkout pages, half of them of one charge, while another account opens charges",
        bounds: &[Bound { title: "processor time for each charge", max: 20, unit: Unit::ShortMillis }],
        is_long: false,
        run: streams,
    },
    AttackCase {
        name: "descriptors",
        title: "idle clients use all descriptors of a process that is limited to 256",
        bounds: &[
            Bound { title: "until a delivery arrives", max: 2_000, unit: Unit::Millis },
            Bound { title: "connection errors reported without their cause", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: descriptors,
    },
    AttackCase {
        name: "stop",
        title: "SIGTERM while a name is looked up for half a minute",
        bounds: &[Bound { title: "until the server has ended", max: 10_500, unit: Unit::Millis }],
        is_long: false,
        run: |context| stop(context, &["TERM"]),
    },
    AttackCase {
        name: "stop-twice",
        title: "the same, and a second SIGTERM",
        bounds: &[Bound { title: "until the server has ended", max: 1_000, unit: Unit::Millis }],
        is_long: false,
        run: |context| stop(context, &["TERM", "TERM"]),
    },
];

/// Opens connections, as many as the system allows. Every second one sends a request first.
fn open_idle_connections(server: &ServedReference, count: usize) -> Vec<Connection> {
    let mut connections = Vec::new();
    for nth in 0..count {
        let Ok(mut connection) = Connection::open(&server.address) else { break };
        if nth % 2 == 0 && connection.call("GET", "/healthz", None, "").is_err() {
            break;
        }
        connections.push(connection);
    }
    connections
}

fn slots(context: &CaseContext) -> FiguresResult {
    let server = context.serve(&[])?;
    let connections = open_idle_connections(&server, SLOTS);
    longest_wait_of_new_clients(&server, &connections)
}

/// Fills all slots with connections that have sent one of the `prefixes`: nothing, or an incomplete request or
/// handshake.
fn fill_slots(context: &CaseContext, options: &[&str], prefixes: &[&str]) -> FiguresResult {
    let server = context.serve(options)?;
    let mut connections = Vec::new();
    for prefix in prefixes.iter().cycle().take(SLOTS) {
        let Ok(mut connection) = Connection::open(&server.address) else { break };
        connection.send(prefix)?;
        connections.push(connection);
    }
    longest_wait_of_new_clients(&server, &connections)
}

/// Returns the longest wait of new clients in milliseconds, while `held` connections use all slots.
fn longest_wait_of_new_clients(server: &ServedReference, held: &[Connection]) -> FiguresResult {
    if held.len() < SLOTS {
        let reason = format!("this machine allows only {} connections; raise `ulimit -n`", held.len());
        return Err(CaseFailure::Skipped(reason));
    }
    let mut longest = 0;
    for _ in 0..5 {
        let started = Instant::now();
        Connection::open(&server.address)?.call("GET", "/healthz", None, "")?;
        longest = longest.max(millis(started.elapsed()));
    }
    Ok(vec![longest])
}

fn streams(context: &CaseContext) -> FiguresResult {
    const CHANGES: u64 = 10;
    let mut server = context.serve(&["--clock", "frozen"])?;
    let (charge, live) =
        (json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" }), server.live_key.clone());
    let neighbour = server.post("/sandbox/accounts", &json!({ "id": "neighbour" }))?;
    let neighbour_key = neighbour["keys"]["live"].as_str().ok_or("an account has no key")?.to_owned();
    let mut codes = Vec::new();
    for _ in 0..=STREAMS / 2 {
        let opened = server.call("POST", "/v1/charges", Some(&live), &charge)?;
        codes.push(opened["data"]["code"].as_str().ok_or("a charge has no code")?.to_owned());
    }
    let mut connections = Vec::new();
    // The first half of the streams show the first charge; each other stream shows one of its own.
    for nth in 0..STREAMS {
        let path = format!("/c/{}/live", codes[nth.saturating_sub(STREAMS / 2 - 1)]);
        let mut connection = Connection::open(&server.address)?;
        connection.send_request("GET", &path, None, "")?;
        while !connection.line()?.starts_with("data: ") {}
        connections.push(connection);
    }
    // Enough time to render the pages for all new streams.
    thread::sleep(Duration::from_millis(200));
    let cpu_before = server.cpu_millis()?;
    for _ in 0..CHANGES {
        server.call("POST", "/v1/charges", Some(&neighbour_key), &charge)?;
        // Without the pause, several changes would be rendered as one.
        thread::sleep(Duration::from_millis(100));
    }
    Ok(vec![(server.cpu_millis()? - cpu_before) / CHANGES])
}

fn descriptors(context: &CaseContext) -> FiguresResult {
    let receiver = Receiver::ok()?;
    let forward = receiver.forward_option("shop.example");
    // No server listens on port 9 of this machine.
    let closed = "https://closed.example=http://127.0.0.1:9";
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\""]).arg(&context.program).stderr(Stdio::null());
    let mut server = ServedReference::start(
        command,
        &["--rate-limit", "off", "--forward", &forward, "--forward", closed],
    )?;
    let mut test_paths = Vec::new();
    for url in ["https://shop.example/hooks", "https://closed.example/"] {
        let response = server.post("/sandbox/endpoints", &json!({ "mode": "live", "url": url }))?;
        test_paths.push(format!(
            "/sandbox/endpoints/{}/test",
            response["endpoint"]["id"].as_str().unwrap_or_default()
        ));
    }
    let _idle = open_idle_connections(&server, 300);
    let started = Instant::now();
    server.post(&test_paths[0], &Value::Null)?;
    let arrived_after =
        receiver.arrival_time("/hooks", TIMEOUT).map_or(TIMEOUT, |at| at.saturating_duration_since(started));

    let test_delivery = server.post(&test_paths[1], &Value::Null)?;
    let error = first_attempt_error(&mut server, test_delivery["delivery"].as_str().unwrap_or_default())?;
    Ok(vec![millis(arrived_after), u64::from(!error.contains("refused"))])
}

fn stop(context: &CaseContext, signals: &[&str]) -> FiguresResult {
    let dns_server = context.dns_server()?;
    dns_server.set_slow(false);
    let mut server = context.serve(&[])?;
    let url = format!("https://{SLOW_PREFIX}-stop.example/");
    let response = server.post("/sandbox/endpoints", &json!({ "mode": "live", "url": url }))?;
    let id = response["endpoint"]["id"].as_str().unwrap_or_default().to_owned();
    dns_server.set_slow(true);
    let queries_before = dns_server.unanswered_queries();
    server.post(&format!("/sandbox/endpoints/{id}/test"), &Value::Null)?;
    let deadline = Instant::now() + TIMEOUT;
    while dns_server.unanswered_queries() == queries_before && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    for name in signals {
        signal(server.pid(), name)?;
        // Without the pause, two signals could be handled as one.
        thread::sleep(Duration::from_millis(100));
    }
    let stopped_after = server.wait(TIMEOUT).unwrap_or(TIMEOUT);
    dns_server.set_slow(false);
    Ok(vec![millis(stopped_after)])
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
