//! Attacks on memory: large responses that clients do not read, and an advance of the clock by ten years.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, FiguresResult, Unit};
use super::context::{CaseContext, CaseFailure, ServedReference};
use testkit::Connection;

const MEBIBYTE: u64 = 1024 * 1024;
/// The delay before a client retries a failed request.
const RETRY_DELAY: Duration = Duration::from_millis(1_000);

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "readers",
        title: "40 clients request a page of 20 MB (short: 5 MB) each and read nothing",
        bounds: &[Bound { title: "memory above idle", max: 64, unit: Unit::Mebibytes }],
        is_long: false,
        run: readers,
    },
    AttackCase {
        name: "tricklers",
        title: "10 clients request a page of 20 MB each and read a few bytes a second",
        bounds: &[
            Bound { title: "until another client has received such a page", max: 10_000, unit: Unit::Millis },
            Bound { title: "memory above idle", max: 96, unit: Unit::Mebibytes },
        ],
        is_long: true,
        run: slow_readers,
    },
    AttackCase {
        name: "advance",
        title: "the clock is advanced by ten years, with 5,000 charges and 5 endpoints that are down",
        bounds: &[
            Bound { title: "longest wait of another account's request", max: 50, unit: Unit::ShortMillis },
            Bound { title: "memory above idle", max: 400, unit: Unit::Mebibytes },
            Bound { title: "size of the response", max: 2, unit: Unit::Mebibytes },
        ],
        is_long: true,
        run: advance,
    },
];

/// The path of the page that the clients request.
const LARGE_PAGE: &str = "/v1/invoices?per_page=100";

/// Starts a reference server with large invoices, so that [`LARGE_PAGE`] has 20 MB (short: 5 MB). Returns also the
/// size in bytes.
fn serve_large_page(context: &CaseContext) -> Result<(ServedReference, usize), CaseFailure> {
    let mut server = context.serve(&["--clock", "frozen"])?;
    let text = "x".repeat(2_000);
    let item = json!({ "description": text, "quantity": "1", "unit_amount": "1.00" });
    let invoice = json!({ "currency": "EUR", "memo": text, "items": vec![item; 100] });
    let live = server.live_key.clone();
    for _ in 0..context.long_or_short(100, 25) {
        server.call("POST", "/v1/invoices", Some(&live), &invoice)?;
    }
    let size = Connection::open(&server.address)?.call("GET", LARGE_PAGE, Some(&live), "")?.body.len();
    Ok((server, size))
}

/// Opens connections and requests the large page on each, without reading the response.
fn request_large_page(server: &ServedReference, count: usize) -> Result<Vec<Connection>, CaseFailure> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(&server.address)?;
        connection.send_request("GET", LARGE_PAGE, Some(&server.live_key), "")?;
        connections.push(connection);
    }
    Ok(connections)
}

fn readers(context: &CaseContext) -> FiguresResult {
    let (server, size) = serve_large_page(context)?;
    if size < 4_000_000 {
        return Err(CaseFailure::Broken(format!("the page has only {size} bytes")));
    }
    let idle = server.memory()?;
    server.reset_peak_memory()?;
    let _connections = request_large_page(&server, 40)?;
    // Once these requests have a response, the server has also responded to the earlier ones, maybe with an error.
    for _ in 0..4 {
        read_account(&server)?;
    }
    Ok(vec![mebibytes_above(server.peak_memory()?, idle)])
}

/// Reads the account, which is a small response, over a new connection.
fn read_account(server: &ServedReference) -> Result<(), CaseFailure> {
    let response =
        Connection::open(&server.address)?.call("GET", "/v1/account", Some(&server.live_key), "")?;
    match response.status {
        200 => Ok(()),
        status => Err(CaseFailure::Broken(format!("a small request gets {status}"))),
    }
}

fn slow_readers(context: &CaseContext) -> FiguresResult {
    let (server, _) = serve_large_page(context)?;
    let idle = server.memory()?;
    server.reset_peak_memory()?;
    let mut connections = request_large_page(&server, 10)?;
    let is_finished = AtomicBool::new(false);
    let large_page_time = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_finished.load(Relaxed) {
                // If a connection is closed or broken, its client reconnects and repeats its request.
                for connection in &mut connections {
                    if !connection.discard_some().unwrap_or(false) {
                        let Ok(mut reconnected) = Connection::open(&server.address) else { continue };
                        let _ = reconnected.send_request("GET", LARGE_PAGE, Some(&server.live_key), "");
                        *connection = reconnected;
                    }
                }
                thread::sleep(Duration::from_millis(200));
            }
        });
        // Once this request has a response, the server has started to respond to the earlier ones.
        let large_page_time = read_account(&server).and_then(|()| large_page_millis(&server));
        is_finished.store(true, Relaxed);
        large_page_time
    })?;
    Ok(vec![large_page_time, mebibytes_above(server.peak_memory()?, idle)])
}

/// Returns the time in milliseconds until a normal client has received the large page. The client gives up
/// after 30 seconds.
fn large_page_millis(server: &ServedReference) -> Result<u64, CaseFailure> {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        let response = Connection::open(&server.address)?.call("GET", LARGE_PAGE, Some(&server.live_key), "");
        if response.is_ok_and(|response| response.status == 200) {
            break;
        }
        thread::sleep(RETRY_DELAY);
    }
    Ok(millis(started.elapsed()))
}

fn advance(context: &CaseContext) -> FiguresResult {
    let mut server = context.serve(&["--clock", "frozen"])?;
    server.post("/sandbox/merchants", &json!({ "name": "shop", "state": "down", "answers": [] }))?;
    for nth in 0..5 {
        server.post(
            "/sandbox/endpoints",
            &json!({ "mode": "live", "url": format!("https://shop.sim/{nth}") }),
        )?;
    }
    let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
    let live = server.live_key.clone();
    for _ in 0..context.long_or_short(5_000, 1_000) {
        server.call("POST", "/v1/charges", Some(&live), &charge)?;
    }
    let neighbour = server.post("/sandbox/accounts", &json!({ "id": "neighbour" }))?;
    let neighbour_key = neighbour["keys"]["live"].as_str().ok_or("an account has no key")?;
    let idle = server.memory()?;
    server.reset_peak_memory()?;
    let mut advancing = Connection::open(&server.address)?;
    let (is_finished, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let size = thread::scope(|scope| {
        let neighbour_client = scope.spawn(|| -> Result<(), CaseFailure> {
            let mut connection = Connection::open(&server.address)?;
            let paths = ["/healthz", "/v1/account", "/v1/charges?per_page=1"];
            for path in paths.iter().cycle() {
                let started = Instant::now();
                connection.call("GET", path, Some(neighbour_key), "")?;
                longest.fetch_max(millis(started.elapsed()), Relaxed);
                if is_finished.load(Relaxed) {
                    break;
                }
            }
            Ok(())
        });
        let response = advancing.call("POST", "/sandbox/advance", None, r#"{"by":"3650d"}"#);
        is_finished.store(true, Relaxed);
        neighbour_client.join().map_err(|_| "the other account's client panicked")??;
        let response = response?;
        let size = response.body.len();
        response.success()?;
        Ok::<_, CaseFailure>(size)
    })?;
    let overview = server.call("GET", "/sandbox", None, &Value::Null)?;
    if overview["happenings"].as_u64().unwrap_or(0) < 10_000 {
        return Err(CaseFailure::Broken("fewer than 10,000 events happened during the advance".to_owned()));
    }
    Ok(vec![
        longest.load(Relaxed),
        mebibytes_above(server.peak_memory()?, idle),
        (size as u64).div_ceil(MEBIBYTE),
    ])
}

/// Returns the difference in MiB, rounded up.
fn mebibytes_above(peak: u64, idle: u64) -> u64 {
    peak.saturating_sub(idle).div_ceil(MEBIBYTE)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
