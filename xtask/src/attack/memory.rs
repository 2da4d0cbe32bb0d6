//! Attacks on memory: large responses that clients do not read, and an advance of the clock by ten years.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, MeasureResult, Unit};
use super::context::{CaseContext, CaseFailure, Host};
use testkit::Connection;

const MEBIBYTE: u64 = 1024 * 1024;
/// The time after which a rejected client retries.
const RETRY_DELAY: Duration = Duration::from_millis(1_000);

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "readers",
        title: "40 clients request a page of 20 MB (short: 5 MB) each and read nothing",
        bounds: &[Bound { title: "memory above idle", most: 64, unit: Unit::Mebibytes }],
        is_long: false,
        run: readers,
    },
    AttackCase {
        name: "tricklers",
        title: "10 clients request a page of 20 MB each and read a few bytes a second",
        bounds: &[
            Bound {
                title: "until another client has received such a page",
                most: 10_000,
                unit: Unit::Millis,
            },
            Bound { title: "memory above idle", most: 96, unit: Unit::Mebibytes },
        ],
        is_long: true,
        run: slow_readers,
    },
    AttackCase {
        name: "advance",
        title: "the clock is advanced by ten years, with 5,000 charges and 5 endpoints that are down",
        bounds: &[
            Bound { title: "longest wait of another account's request", most: 50, unit: Unit::Moment },
            Bound { title: "memory above idle", most: 400, unit: Unit::Mebibytes },
            Bound { title: "size of the response", most: 2, unit: Unit::Mebibytes },
        ],
        is_long: true,
        run: advance,
    },
];

/// The path of the page that the clients request.
const LARGE_PAGE: &str = "/v1/invoices?per_page=100";

/// Starts a reference server whose page of invoices has the maximum size. Returns also the size in bytes.
fn serve_large_page(context: &CaseContext) -> Result<(Host, usize), CaseFailure> {
    let mut server = context.serve(&["--clock", "frozen"])?;
    let text = "x".repeat(2_000);
    let item = json!({ "description": text, "quantity": "1", "unit_amount": "1.00" });
    let invoice = json!({ "currency": "EUR", "memo": text, "items": vec![item; 100] });
    let live = server.live.clone();
    for _ in 0..context.long_or_short(100, 25) {
        server.call("POST", "/v1/invoices", Some(&live), &invoice)?;
    }
    let size = Connection::open(&server.address)?.call("GET", LARGE_PAGE, Some(&live), "")?.body.len();
    Ok((server, size))
}

/// Opens connections and requests the large page on each, without reading the response.
fn request_large_page(server: &Host, count: usize) -> Result<Vec<Connection>, CaseFailure> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(&server.address)?;
        connection.send_request("GET", LARGE_PAGE, Some(&server.live), "")?;
        connections.push(connection);
    }
    Ok(connections)
}

fn readers(context: &CaseContext) -> MeasureResult {
    let (server, size) = serve_large_page(context)?;
    if size < 4_000_000 {
        return Err(CaseFailure::Broken(format!("the page has only {size} bytes")));
    }
    let idle = server.memory()?;
    server.forget_peak()?;
    let _connections = request_large_page(&server, 40)?;
    // Once these requests are answered, all earlier ones have a response, which may be an error.
    for _ in 0..4 {
        request_small_page(&server)?;
    }
    Ok(vec![mebibytes_above(server.peak()?, idle)])
}

/// Requests a small response over a new connection.
fn request_small_page(server: &Host) -> Result<(), CaseFailure> {
    let response = Connection::open(&server.address)?.call("GET", "/v1/account", Some(&server.live), "")?;
    match response.status {
        200 => Ok(()),
        status => Err(CaseFailure::Broken(format!("a small request gets {status}"))),
    }
}

fn slow_readers(context: &CaseContext) -> MeasureResult {
    let (server, _) = serve_large_page(context)?;
    let idle = server.memory()?;
    server.forget_peak()?;
    let mut connections = request_large_page(&server, 10)?;
    let is_finished = AtomicBool::new(false);
    let large_page_time = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_finished.load(Relaxed) {
                // If the server has closed a connection, its client reconnects and repeats its request.
                for connection in &mut connections {
                    if !connection.read_some() {
                        let Ok(mut reconnected) = Connection::open(&server.address) else { continue };
                        let _ = reconnected.send_request("GET", LARGE_PAGE, Some(&server.live), "");
                        *connection = reconnected;
                    }
                }
                thread::sleep(Duration::from_millis(200));
            }
        });
        // Once this request is answered, all earlier ones have been started.
        let large_page_time = request_small_page(&server).and_then(|()| large_page_millis(&server));
        is_finished.store(true, Relaxed);
        large_page_time
    })?;
    Ok(vec![large_page_time, mebibytes_above(server.peak()?, idle)])
}

/// Returns the time in milliseconds until a normal client has received the large page.
fn large_page_millis(server: &Host) -> Result<u64, CaseFailure> {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        let response = Connection::open(&server.address)?.call("GET", LARGE_PAGE, Some(&server.live), "");
        if response.is_ok_and(|response| response.status == 200) {
            break;
        }
        thread::sleep(RETRY_DELAY);
    }
    Ok(millis(started.elapsed()))
}

fn advance(context: &CaseContext) -> MeasureResult {
    let mut server = context.serve(&["--clock", "frozen"])?;
    server.post("/sandbox/merchants", &json!({ "name": "shop", "state": "down", "answers": [] }))?;
    for nth in 0..5 {
        server.post(
            "/sandbox/endpoints",
            &json!({ "mode": "live", "url": format!("https://shop.sim/{nth}") }),
        )?;
    }
    let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
    let live = server.live.clone();
    for _ in 0..context.long_or_short(5_000, 1_000) {
        server.call("POST", "/v1/charges", Some(&live), &charge)?;
    }
    let neighbour = server.post("/sandbox/accounts", &json!({ "id": "neighbour" }))?;
    let neighbour_key = neighbour["keys"]["live"].as_str().ok_or("an account has no key")?;
    let idle = server.memory()?;
    server.forget_peak()?;
    let mut advancing = Connection::open(&server.address)?;
    let (is_finished, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let size = thread::scope(|scope| {
        let observer = scope.spawn(|| -> Result<(), CaseFailure> {
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
        observer.join().map_err(|_| "the watching client panicked")??;
        let response = response?;
        let size = response.body.len();
        response.success()?;
        Ok::<_, CaseFailure>(size)
    })?;
    let overview = server.call("GET", "/sandbox", None, &Value::Null)?;
    if overview["happenings"].as_u64().unwrap_or(0) < 10_000 {
        return Err(CaseFailure::Broken("fewer than 10,000 events happened during the advance".to_owned()));
    }
    Ok(vec![longest.load(Relaxed), mebibytes_above(server.peak()?, idle), (size as u64).div_ceil(MEBIBYTE)])
}

fn mebibytes_above(peak: u64, idle: u64) -> u64 {
    peak.saturating_sub(idle).div_ceil(MEBIBYTE)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
